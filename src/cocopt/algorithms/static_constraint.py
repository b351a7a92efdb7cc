"""The constraint of an algorithm whose analysis needs the same one in every round."""

from __future__ import annotations

from typing import Any, NamedTuple

from cocopt.algorithms.base import Feedback
from cocopt.algorithms.constraint_memory import fitting_constraint, own_copy
from cocopt.constraints import Constraint
from cocopt.errors import InvalidInput
from cocopt.sets.base import ConvexSet
from cocopt.state import as_fields

__all__ = ["StaticConstraint"]


class StaticConstraint(NamedTuple):
    """The constraint that the first round with one revealed; None before it."""

    K: ConvexSet
    algorithm: str  #: for error messages
    constraint: Constraint | None = None

    def after(self, feedback: Feedback) -> StaticConstraint:
        """Itself, with the first constraint; an error if a round reveals another one than the first."""
        revealed = feedback.constraint
        if revealed is None:
            return self
        if self.constraint is None:
            return self._replace(constraint=own_copy(revealed))
        if not self.constraint.equals(revealed):
            raise InvalidInput(
                f"constraint: expected the same constraint in every round, which {self.algorithm} is made for, got "
                f"another one in round {feedback.t} (constraints are the same if their classes and numbers are, black "
                "boxes if they call the same functions); algorithms for constraints that change are CLASP and all that "
                "`cocopt list algorithms` calls dynamic"
            )
        return self

    def stored(self) -> dict[str, Any]:
        """The constraint."""
        return {"constraint": self.constraint}

    def restored(self, stored: Any, batch: tuple[int, ...]) -> StaticConstraint:
        """The same with the constraint that `stored` describes, if it fits K and the trials."""
        (constraint,) = as_fields(stored, "constraint")
        if constraint is not None:
            constraint = fitting_constraint(constraint, self.K, batch)
        return self._replace(constraint=constraint)

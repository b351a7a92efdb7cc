"""Warnings, once each, of what cannot be meant: a learner that does not move, subgradients that contradict values."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from cocopt.algorithms.records import Feedback
from cocopt.arrays import Array, all_finite
from cocopt.constraints import Constraint
from cocopt.errors import InvalidInput, SuspiciousInput
from cocopt.losses import Loss
from cocopt.sets.base import ConvexSet

__all__ = ["Watch", "refuse_wrong_subgradients"]

ROUNDS = 100  # the first rounds with a loss, which are watched
STILL = 1e-3  # a move by less than this share of K's diameter is none to speak of
CONSISTENT = 0.5  # the share of all gradients' lengths that their sum must have: else they cancel, and x may rest
LAGGED = 3  # in so many rounds running an action of an earlier round is played by more than chance
TOLERANCE = 1e-6  # by which share of its terms the subgradient inequality may fail


class Watch:
    """Watches the first rounds of a learner. It is no part of the state: a loaded learner is watched anew.

    A learner is taken to be stuck if in 100 rounds with a loss x moved by less than 0.1 % of K's diameter, although
    −∇f_t was never in the normal cone of K at x_t, no constraint held it there, and the gradients do not cancel. Losses
    that are black boxes are evaluated at the action before, too: f_t(z) ≥ f_t(x) + ⟨∇f_t(x), z − x⟩ must hold. The
    normal cone is found by projections, so that ``movement`` is not watched for algorithms that are to make none.
    """

    def __init__(self, K: ConvexSet, *, movement: bool = True) -> None:
        self.active = True  #: whether there is something left to watch
        self._K = K
        self._rounds = 0
        self.movement = movement  #: whether x has not moved yet
        self._origin: Array | None = None
        self._sum: Any = 0.0
        self._lengths: Any = 0.0
        self._previous: Array | None = None
        self._compares = True  # whether no contradiction was found yet
        self._lags: set[int] = set()  # by how many rounds ``played`` may have lagged behind
        self._lagged = 0  # in how many rounds running
        self._last_played = -1  # the last of them

    def see_played(self, played: Array, recent: Sequence[Array], t: int) -> None:
        """Warns once if the action played was asked for the same number of rounds before, in three rounds running.

        ``recent`` holds the actions that were asked for, the newest last; t rounds have been played before.
        """
        lags = {lag for lag, earlier in enumerate(reversed(recent), start=1) if np.array_equal(played, earlier)}
        common = self._lags & lags if t == self._last_played + 1 else set()
        self._lagged = self._lagged + 1 if common else 1
        self._lags, self._last_played = common or lags, t
        if self._lags and self._lagged == LAGGED:
            warnings.warn(
                f"played: in {LAGGED} rounds this was the action of {min(self._lags)} rounds before. Feedback that "
                "comes late belongs to the round in which its action was played: use round, x = play() and "
                "tell(loss, constraint, round=round)",
                SuspiciousInput,
                stacklevel=6,
            )

    def see(self, feedback: Feedback, x_next: Array) -> None:
        """One more round; warns where it must."""
        if feedback.gradient is not None:
            self._rounds += 1
            if self.movement:
                self._see_movement(feedback, feedback.gradient, x_next)
        if feedback.played is feedback.x:
            self._compare_with_previous(feedback)
            self._previous = feedback.x
        self.active = self._rounds < ROUNDS

    def _see_movement(self, feedback: Feedback, gradient: Array, x_next: Array) -> None:
        if self._origin is None:
            self._origin = feedback.x
        D = self._K.diameter
        length = D if np.isfinite(D) else max(self._K.scale, float(np.abs(self._origin).max()))
        norm = np.sqrt(feedback.gradient_sq)[..., None]
        held = feedback.rows is not None and bool((feedback.rows.max(axis=-1) >= 0.0).any())
        moved = np.linalg.norm(x_next - self._origin, axis=-1) > STILL * length
        if held or np.any(moved) or not np.all(norm > 0.0):
            self.movement = False
            return
        pushed = self._K.project_unchecked(feedback.x - (length / norm) * gradient) - feedback.x
        if not np.all(np.linalg.norm(pushed, axis=-1) > STILL * length):
            self.movement = False
            return
        self._sum, self._lengths = self._sum + gradient, self._lengths + norm[..., 0]
        if self._rounds == ROUNDS:
            self.movement = False
            if np.all(np.linalg.norm(self._sum, axis=-1) >= CONSISTENT * self._lengths):
                warnings.warn(
                    f"the action has moved by less than {STILL:.1%} of the diameter of K in {ROUNDS} rounds, although "
                    "every loss asked for it: the steps are too small for the units of the losses. "
                    "steps.Adaptive(), the default of CLASP, suits any units; else give the schedule a larger scale",
                    SuspiciousInput,
                    stacklevel=4,
                )

    def _compare_with_previous(self, feedback: Feedback) -> None:
        z, x = self._previous, feedback.x
        if z is None or z is x or not self._compares:
            return
        if feedback.loss is not None and feedback.gradient is not None and is_black_box(feedback.loss):
            found = _loss_gap(feedback.loss, feedback.value, feedback.gradient, x, z)
            if found > 0.0:
                self._compares = False
                warnings.warn(_text("loss", found), SuspiciousInput, stacklevel=4)


def is_black_box(revealed: Loss | Constraint) -> bool:
    """Whether values and gradients come from the user's code, so that they may contradict one another."""
    members = getattr(revealed, "members", (revealed,))
    return any(not type(one).__module__.startswith("cocopt.") or type(one).__name__ == "Function" for one in members)


def refuse_wrong_subgradients(constraint: Constraint, *points: Array) -> None:
    """An error if the subgradients of a black box contradict its values between two of the points.

    It is asked where a round seems infeasible: a gradient with the wrong sign leads away from every feasible point.
    """
    if not is_black_box(constraint):
        return
    for x in points:
        for z in points:
            found = 0.0 if z is x else _constraint_gap(constraint, x, z)
            if found > 0.0:
                raise InvalidInput(_text("constraint", found))


def _text(name: str, gap: float) -> str:
    return (
        f"{name}: expected a convex function and its subgradients, got values and gradients that contradict one "
        f"another: between two points g(z) ≥ g(x) + ⟨∇g(x), z − x⟩ fails by {gap:.3g}; the gradient may have the wrong "
        f"sign (cocopt.checks.check_{name} tells more)"
    )


def _loss_gap(loss: Loss, value: Any, gradient: Array, x: Array, z: Array) -> float:
    other, _ = loss.value_and_gradient_unchecked(z)
    return _gap(value, np.vecdot(gradient, z - x), other)


def _constraint_gap(constraint: Constraint, x: Array, z: Array) -> float:
    slope = np.matvec(constraint.jacobian_unchecked(x), z - x)
    return _gap(constraint.rows_unchecked(x), slope, constraint.rows_unchecked(z))


def _gap(value: Any, slope: Any, other: Any) -> float:
    """By how much value + slope exceeds the other value beyond rounding, in the worst trial; 0 if it does not."""
    terms = np.abs(value) + np.abs(slope) + np.abs(other)
    if not all_finite(np.asarray(terms)):
        return 0.0
    excess = value + slope - other
    return float(np.max(np.where(excess > TOLERANCE * terms, excess, 0.0)))

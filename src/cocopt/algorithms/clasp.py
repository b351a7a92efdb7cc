"""CLASP: Convex Losses And Squared Penalties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from cocopt import state
from cocopt.algorithms.base import Arrays, Feedback, Learner, Update, checked_rows
from cocopt.algorithms.persistent import encode_constraint, own_copy, restore_intersection, store_intersection
from cocopt.arrays import Array, ArrayLike, describe, frozen, make_tuple, positive_int
from cocopt.constraints import Constraint, Stack
from cocopt.errors import InvalidInput
from cocopt.geometry.ladder import Request, solve
from cocopt.geometry.persistent import PersistentIntersection
from cocopt.metrics import CompensatedSum
from cocopt.sets.base import ConvexSet
from cocopt.steps import Power, Schedule, Step, as_schedule, checked_step
from cocopt.theory import Bounds, Certificate, bounds

__all__ = ["CLASP"]


class _Kept(NamedTuple):
    """A constraint of an earlier round that is still to be met."""

    constraint: Constraint  # all of it, which the metrics judge
    row: Any = None  # the row (one a trial) that is projected onto; None for all rows

    @property
    def demanded(self) -> Constraint:
        return self.constraint if self.row is None else self.constraint.select(self.row)


class _Everything(NamedTuple):
    """All constraints so far, as window=None keeps them."""

    demanded: PersistentIntersection  # what is projected onto
    told: PersistentIntersection | None  # what the metrics judge, where that is more: with rows="worst"

    def after(self, constraint: Constraint | None, row: Any) -> _Everything:
        demanded, told = self
        if constraint is None:
            return self
        constraint = own_copy(constraint)
        if told is None:
            return _Everything(demanded.plus(constraint), None)
        return _Everything(demanded.plus(constraint if row is None else constraint.select(row)), told.plus(constraint))

    def squares(self, x: Array) -> tuple[_Everything, Array]:
        """Σ_τ (g_τ^+(x))²."""
        if self.told is None:
            demanded, total = self.demanded.squares(x)
            return _Everything(demanded, None), total
        told, total = self.told.squares(x)
        return self._replace(told=told), total


class _Memory(NamedTuple):
    taken: int  # gradient steps so far: rounds that revealed a loss
    last: Step  # the last step
    gradients: CompensatedSum  # Σ ‖∇f_s(x_s)‖², if the steps depend on it
    proof: Certificate
    window: tuple[_Kept | None, ...] | _Everything  # the earlier constraints that are still to be met, oldest first


class CLASP(Learner):
    """A gradient step on the loss, then the exact projection onto K and the constraint just revealed.

        x_{t+1} = P_{K ∩ {g_t ≤ 0}}( x_t − η_t ∇f_t(x_t) )

    Guarantees (K of diameter D, ‖∇f_t‖ ≤ L_f, ‖∇g_t‖ ≤ L_g on K, some x in K satisfies every g_t, η_t non-increasing):

    - convex losses, η_t = t^(−β): Regret_T ≤ D²T^β/2 + (L_f²/2) Σ t^(−β) = O(T^max(β, 1−β)) and
      CCV₂ ≤ L_g²(D² + 2 L_f D Σ η_t) = O(T^(1−β));
    - m-strongly convex losses, η_t = 1/(m t): Regret_T ≤ (L_f²/2m)(1 + ln T) and
      CCV₂ ≤ L_g²(D² + (2 L_f D/m)(1 + ln T)): both logarithmic.

    No horizon and no constant needs to be known. `certificate` gives the regret bound that the run itself proves, and
    `bounds` the a-priori ones. Steps are counted in losses: a round without one takes none.

    Parameters
    ----------
    K : ConvexSet
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: the point of K nearest to 0.
    steps : Schedule or callable of t
        η_t, positive and non-increasing, for example ``steps.Power(0.5)`` or ``steps.StronglyConvex(m)``.
    rows : "all" or "worst"
        With several rows in a round: project onto all of them, or, as in the paper's section on multiple constraints,
        onto the largest one at x_t alone (the first on ties, violated or not). All rows violate less.
    window : int or None
        Project onto the constraints of the last ``window`` rounds; None keeps every constraint (the paper's
        persistent ones), at a cost a round that hardly grows with their number as long as they are affine (see
        `cocopt.geometry.persistent`), and memory that does. Black boxes in a window cannot be saved.
    infeasible : "raise" or "nearest"
        If K and the constraint have no point in common: raise `InfeasibleRound` and stay, or go to the point of K of
        least violation nearest to the target and count the round as infeasible.

    References
    ----------
    Ferreira, Xavier and Soares, "CLASP: An online learning algorithm for Convex Losses And Squared Penalties".

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt import CLASP, Box, constraints, losses, steps
    >>> rng = np.random.default_rng(0)
    >>> learner = CLASP(Box(0.0, 1.0, dim=3), start=np.full(3, 0.5), steps=steps.Power(beta=0.5))
    >>> for t in range(100):
    ...     x = learner.ask()
    ...     H, y = rng.uniform(-1, 1, (2, 3)), rng.normal(size=2)
    ...     record = learner.tell(losses.Norm(H, y), constraints.Affine(rng.uniform(0, 1, 3), 0.5))
    >>> learner.ledger.rounds
    100
    >>> bool(learner.certificate().valid)
    True
    """

    def __init__(
        self,
        K: ConvexSet,
        *,
        start: ArrayLike | None = None,
        steps: Schedule | Callable[[int], Step] | None = None,
        rows: Literal["all", "worst"] = "all",
        window: int | None = 1,
        infeasible: Literal["raise", "nearest"] = "raise",
    ) -> None:
        self.steps = Power(0.5) if steps is None else as_schedule(steps)
        if infeasible not in ("raise", "nearest"):
            raise InvalidInput(f'infeasible: expected "raise" or "nearest", got {describe(infeasible)}')
        self.rows, self.infeasible = checked_rows(rows), infeasible
        self.window = None if window is None else positive_int("window", window)
        self._history = None if window == 1 else "hist" if window is None else "window"
        super().__init__(K, start)

    def bounds(self, T: ArrayLike, *, lipschitz_f: float, lipschitz_g: float) -> Bounds:
        """What is promised for T rounds, see [`cocopt.theory.bounds`][]."""
        return bounds(self.steps, T, diameter=self.K.diameter, lipschitz_f=lipschitz_f, lipschitz_g=lipschitz_g)

    def certificate(self) -> Certificate:
        """The regret bound that this run proves, one a trial; void once its assumptions were seen to fail."""
        proof: Certificate = self._state.memory.proof
        return proof

    def parameters(self) -> dict[str, Any]:
        return {
            "K": self.K,
            "steps": self.steps,
            "rows": self.rows,
            "window": self.window,
            "infeasible": self.infeasible,
        }

    def initial_memory(self, batch: tuple[int, ...]) -> _Memory:
        proof = Certificate.zero(batch, diameter=self.K.diameter, modulus=self.steps.modulus)
        window: tuple[_Kept | None, ...] | _Everything = ()
        if self.window is None:
            # with "nearest" the intersection may be empty, and then no row is implied by the others
            demanded = PersistentIntersection.begin(self.K, batch, forget=self.infeasible == "raise")
            window = _Everything(
                demanded, PersistentIntersection.begin(self.K, batch) if self.rows == "worst" else None
            )
        return _Memory(0, float("inf"), CompensatedSum(), proof, window)

    def update(self, memory: _Memory, feedback: Feedback) -> Update:
        taken, last, gradients, proof, window = memory
        target, step, gradient_sq, modulus = feedback.x, None, None, None
        if feedback.gradient is not None and feedback.loss is not None:
            taken += 1
            gradient_sq = feedback.gradient_sq
            if self.steps.needs_gradients:
                gradients = gradients.plus(gradient_sq)
            step = checked_step(self.steps, taken, gradients.value, last)
            if isinstance(step, np.ndarray):  # a copy, since a callable may use its array again
                step = frozen(step)
                target = feedback.x - step[..., None] * feedback.gradient
            else:
                target = feedback.x - step * feedback.gradient
            last = step
            modulus = feedback.loss.strong_convexity if self.steps.modulus > 0 else None
        row = None
        if self.rows == "worst" and feedback.rows is not None and feedback.rows.shape[-1] > 1:
            row = feedback.rows.argmax(axis=-1)
        past = None
        if isinstance(window, _Everything):
            window, past = window.squares(feedback.x)
            window = window.after(feedback.constraint, row)
            demanded, found = window.demanded.project(target, self.infeasible)
            window = window._replace(demanded=demanded)
            x, method, feasible = found.point, found.method, found.feasible
        else:
            current = (
                feedback.constraint if row is None or feedback.constraint is None else feedback.constraint.select(row)
            )
            if self.window is not None and self.window > 1:
                past = _squares(window, feedback.x)
                now = None if feedback.constraint is None else _Kept(own_copy(feedback.constraint), row)
                remembered = [kept.demanded for kept in (*window, now) if kept is not None]
                current = Stack(remembered) if remembered else None
                window = (*window, now)[1 - self.window :]
            if current is None:
                x, method, feasible = self.K.project_unchecked(target), "set", np.True_
            else:
                found = solve(Request(self.K, current, target, infeasible=self.infeasible))
                x, method, feasible = found.point, found.method, found.feasible
        infeasible = None if feasible is np.True_ or feasible.all() else ~feasible
        proof = proof.after(step, gradient_sq, modulus=modulus, infeasible=infeasible, moved=feedback.moved)
        memory = make_tuple(_Memory, (taken, last, gradients, proof, window))
        return make_tuple(Update, (x, memory, 0.0 if step is None else step, method, feasible, past))

    def _store(self, memory: _Memory) -> tuple[dict[str, Any], Arrays]:
        arrays: Arrays = {"last": np.asarray(memory.last)}
        arrays["gradients"], arrays["carry"] = np.asarray(memory.gradients.total), np.asarray(memory.gradients.carry)
        arrays.update({f"proof.{key}": array for key, array in memory.proof.arrays().items()})
        window: Any = []
        if isinstance(memory.window, _Everything):
            window = {}
            for name, intersection in memory.window._asdict().items():
                if intersection is not None:
                    window[name], own = store_intersection(intersection, name)
                    arrays.update(own)
            return {"taken": memory.taken, "window": window}, arrays
        for i, kept in enumerate(memory.window):
            if kept is None:
                window.append(None)
                continue
            spec, own = encode_constraint(kept.constraint, f"window.{i}")
            window.append(spec)
            arrays.update(own)
            if kept.row is not None:
                arrays[f"row.{i}"] = np.asarray(kept.row)
        return {"taken": memory.taken, "window": window}, arrays

    def _restore(self, plain: Mapping[str, Any], arrays: Arrays) -> _Memory:
        proof = Certificate.from_arrays(
            {key.removeprefix("proof."): array for key, array in arrays.items() if key.startswith("proof.")}
        )
        window: tuple[_Kept | None, ...] | _Everything
        if self.window is None:
            kept = {
                name: restore_intersection(self.K, self.batch, own, arrays, name)
                for name, own in plain["window"].items()
            }
            window = _Everything(kept["demanded"], kept.get("told"))
        else:
            window = tuple(
                None if spec is None else _Kept(state.decode(spec, arrays), arrays.get(f"row.{i}"))
                for i, spec in enumerate(plain["window"])
            )
        total, carry, last = (_plain(arrays[name]) for name in ("gradients", "carry", "last"))
        return _Memory(plain["taken"], last, CompensatedSum(total, carry), proof, window)


def _plain(array: Array) -> Step:
    """A number as a number, an array as an array: so that resumed arithmetic is the same to the bit."""
    return float(array) if array.ndim == 0 else array


def _squares(window: tuple[_Kept | None, ...], x: Array) -> Array:
    """Σ_τ (g_τ^+(x))² over the constraints kept."""
    total = np.zeros(x.shape[:-1])
    for kept in window:
        if kept is not None:
            total = total + np.square(kept.constraint.violation_unchecked(x))
    return total

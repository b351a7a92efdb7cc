"""CLASP-F: CLASP from first-order information alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np

from cocopt.algorithms.base import Feedback, Learner, Update
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.algorithms.step_state import StepState, rates_of_schedule
from cocopt.arrays import ArrayLike, all_finite, one_of, squared_norm
from cocopt.geometry.cutter import cut
from cocopt.registry import register
from cocopt.sets.base import ConvexSet
from cocopt.steps import Adaptive, Schedule, Step, StronglyConvex, as_schedule
from cocopt.theory import Bounds, bounds_clasp_f

__all__ = ["CLASPF"]


@register
class CLASPF(Learner):
    """A Polyak step on the constraint, then a gradient step on the loss, each followed by the projection onto K.

        x̄ = P_K( x_t − (v_t/‖s_t‖²) s_t ),    x_t itself if v_t = 0
        x_{t+1} = P_K( x̄ − η_t ∇f_t(z) ),     z = x_t or x̄

    with v_t = max(0, g_t(x_t)) and s_t a subgradient of g_t at x_t. Where CLASP solves for the projection onto K ∩
    {g_t ≤ 0}, this needs one value and one subgradient of the constraint: for constraints that are expensive or black
    boxes. Guarantees, for K of diameter D, Lipschitz constants L_f and L_g on K, some x in K that satisfies every
    g_t, and η_t non-increasing (derived in [`cocopt.theory.bounds_clasp_f`][]):

    - Regret_T ≤ D²/(2η_T) + L_f² Σ η_t, or (L_f²/m)(1 + ln T) with η_t = 1/(m t), to which z = x̄ adds L_f D;
    - CCV₂ ≤ L_g²(D² + 2 L_f D Σ η_t + L_f² Σ η_t²).

    With several rows in a round g_t is their maximum and s_t a subgradient of the largest at x_t, so that both
    choices of ``rows`` are the same. Steps are counted in losses: a round without one takes none. A round counts as
    infeasible, and raises `InfeasibleRound`, only where s_t = 0 proves it.

    Parameters
    ----------
    K : ConvexSet
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: the point of K nearest to 0.
    steps : Schedule, its name, or callable of t
        η_t, positive and non-increasing. Default: ``steps.Adaptive()`` with the diameter of K.
    gradient_at : "x" or "xb"
        z: x_t, or x̄ at the cost of a second evaluation of the loss.
    rows : "all" or "worst"
        As for the other algorithms; here all that counts is the largest row either way.
    **options
        Arguments of the schedule, as on the command line: ``beta=0.5`` or ``steps="power", scale=2.0``.

    References
    ----------
    The first-order variant in the published version of Ferreira, Xavier and Soares, "CLASP: An online learning
    algorithm for Convex Losses And Squared Penalties".

    Examples
    --------
    >>> from cocopt import CLASPF, Box, constraints, losses
    >>> learner = CLASPF(Box(0.0, 1.0, dim=2), start=[1.0, 1.0], beta=0.5)
    >>> unit_disc = constraints.Function(lambda x: x @ x - 1.0, lambda x: 2 * x)
    >>> record = learner.tell(losses.Linear([0.0, 0.5]), unit_disc)
    >>> learner.ask()
    array([0.75, 0.25])
    """

    name = "clasp-f"
    title = "CLASP-F"
    accepts_delays = True
    facts = Facts(
        2026,
        "2 projections onto K, a subgradient of g_t",
        "update: the authors' code; constants derived here",
        convex=Rates.from_squares(Rate(0.5), Rate(0.5)),
        strongly_convex=Rates.from_squares(Rate(0.0, 1.0), Rate(0.0, 1.0)),
    )

    run_options: ClassVar[dict[str, Any]] = {"steps": "power"}  # those of the paper's experiments

    def __init__(
        self,
        K: ConvexSet,
        *,
        start: ArrayLike | None = None,
        steps: Schedule | Callable[[int], Step] | str | None = None,
        gradient_at: Literal["x", "xb"] = "x",
        rows: Literal["all", "worst"] = "all",
        **options: float,
    ) -> None:
        super().__init__(K, start)
        self.steps = as_schedule(steps, default="adaptive", **options).for_diameter(K.diameter)
        self.gradient_at = one_of("gradient_at", gradient_at, "x", "xb")
        self.rows = one_of("rows", rows, "all", "worst")

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        return [{}, {"gradient_at": "xb"}, {"steps": Adaptive(1.0)}, {"steps": StronglyConvex(0.1)}]

    @property
    def rates(self) -> Rates | None:
        return rates_of_schedule(self.steps, self.facts)

    def bounds(self, T: ArrayLike, *, lipschitz_f: float, lipschitz_g: float) -> Bounds:
        """What is promised for T rounds, see [`cocopt.theory.bounds_clasp_f`][]."""
        return bounds_clasp_f(
            self.steps,
            T,
            diameter=self.K.diameter,
            lipschitz_f=lipschitz_f,
            lipschitz_g=lipschitz_g,
            gradient_at=self.gradient_at,
        )

    def initial_memory(self, batch: tuple[int, ...]) -> StepState:
        return StepState()

    def update(self, memory: StepState, feedback: Feedback) -> Update:
        xb, gradient, gradient_sq = feedback.x, feedback.gradient, feedback.gradient_sq
        rows = feedback.rows
        if feedback.constraint is not None and feedback.played is not feedback.x:
            rows = feedback.constraint.rows_unchecked(feedback.x)
        if feedback.constraint is not None and rows is not None and (rows > 0.0).any():
            violation, subgradient = feedback.largest_row(feedback.x, rows)
            moved = cut(feedback.x, violation, subgradient)
            if not all_finite(moved):
                feedback.constraint.raise_nonfinite(feedback.x)
            xb = np.where((violation > 0.0)[..., None], self.K.project_unchecked(moved), feedback.x)
        if feedback.loss is None or gradient is None:
            return Update(self.K.project_unchecked(xb), memory)
        if self.gradient_at == "xb":
            gradient = feedback.loss.value_and_gradient_unchecked(xb)[1]
            if not all_finite(gradient):
                feedback.loss.raise_nonfinite(xb)
            gradient = feedback.along(gradient)
            gradient_sq = squared_norm(gradient)
        memory, step, move = memory.next(self.steps, feedback.losses, gradient, gradient_sq)
        return Update(self.K.project_unchecked(xb - move), memory, step)

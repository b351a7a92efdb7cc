"""CLASP: Convex Losses And Squared Penalties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from cocopt.algorithms.base import Feedback, Learner, Update
from cocopt.algorithms.constraint_memory import AllConstraints, ConstraintMemory, ConstraintWindow, CurrentConstraint
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.algorithms.single_stream import SingleStream
from cocopt.algorithms.step_state import StepState, rates_of_schedule
from cocopt.arrays import Array, ArrayLike, make_tuple, one_of, positive_int
from cocopt.constraints.base import row_norms
from cocopt.errors import InvalidInput
from cocopt.registry import register
from cocopt.sets.base import ConvexSet
from cocopt.steps import Schedule, Step, as_schedule
from cocopt.theory import Bounds, Certificate, bounds, dynamic_bounds

__all__ = ["CLASP"]


class _Memory(NamedTuple):
    steps: StepState
    proof: Certificate
    constraints: ConstraintMemory  # the earlier constraints that still have to be met


@register
class CLASP(Learner):
    """A gradient step on the loss, then the exact projection onto K and the constraint just revealed.

        x_{t+1} = P_{K ∩ {g_t ≤ 0}}( x_t − η_t ∇f_t(x_t) )

    Guarantees (K of diameter D, ‖∇f_t‖ ≤ L_f, ‖∇g_t‖ ≤ L_g on K, some x in K satisfies every g_t, η_t non-increasing):

    - convex losses, adaptive steps: Regret_T ≤ √2·D·√(Σ ‖∇f_t(x_t)‖²) = O(√T);
    - convex losses, η_t = t^(−β): Regret_T ≤ D²T^β/2 + (L_f²/2) Σ t^(−β) = O(T^max(β, 1−β)) and
      CCV₂ ≤ L_g²(D² + 2 L_f D Σ η_t) = O(T^(1−β));
    - m-strongly convex losses, η_t = 1/(m t): Regret_T ≤ (L_f²/2m)(1 + ln T) and
      CCV₂ ≤ L_g²(D² + (2 L_f D/m)(1 + ln T)): both logarithmic.

    With feedback that comes late (see `play`) the update of round s, when it comes, goes from the iterate of that
    moment along ∇f_s(x_s); a loss without its constraint steps on K, a constraint without its loss is a projection.

    No horizon and no constant needs to be known. `certificate` gives the regret bound that the run itself proves, and
    `bounds` the a-priori ones. Steps are counted in losses: a round without one takes none.

    Parameters
    ----------
    K : ConvexSet
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: the point of K nearest to 0.
    steps : Schedule, its name, or callable of t
        η_t, positive and non-increasing. Default: ``steps.Adaptive()`` with the diameter of K, which suits losses in
        any units. The paper's own are ``steps.Power(0.5)`` and ``steps.StronglyConvex(m)``.
    rows : "all" or "worst"
        With several rows in a round: project onto all of them, or, as in the paper's section on multiple constraints,
        onto the largest one at x_t alone (the first on ties, violated or not). All rows violate less.
    window : int or None
        Project onto the constraints of the last ``window`` rounds; None keeps every constraint (the paper's
        persistent ones), at a cost per round that hardly grows with their number as long as they are affine (see
        `cocopt.geometry.persistent`), and memory that does. Black boxes in a window cannot be saved.
    infeasible : "raise", "nearest" or "skip"
        If K and the constraint have no point in common: raise `InfeasibleRound` and stay; go to the point of K of least
        violation nearest to the target (hard rows first, see [`cocopt.constraints.Soft`][]), which voids the
        certificate; or leave the constraint out, so that the certificate holds against every action that satisfies
        the other rounds. The last two count the round as infeasible.
    **options
        Arguments of the schedule, as on the command line: ``beta=0.5`` or ``steps="power", scale=2.0``.

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

    name = "clasp"
    title = "CLASP"
    accepts_delays = True
    facts = Facts(
        2025,
        "projection onto K ∩ {g_t ≤ 0}",
        "the paper",
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
        rows: Literal["all", "worst"] = "all",
        window: int | None = 1,
        infeasible: Literal["raise", "nearest", "skip"] = "raise",
        **options: float,
    ) -> None:
        super().__init__(K, start)
        self.steps = as_schedule(steps, default="adaptive", **options).for_diameter(K.diameter)
        self.infeasible = one_of("infeasible", infeasible, "raise", "nearest", "skip")
        self.rows = one_of("rows", rows, "all", "worst")
        self.window = None if window is None else positive_int("window", window)
        self.history = None if self.window == 1 else "hist" if self.window is None else "window"
        self.grows = self.window is None
        if type(self) is CLASP and self.window == 1 and not self.batch:
            self.stream = SingleStream.begin(K, self.steps, one_row=self.rows == "worst")

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        return [{}, {"rows": "worst"}, {"window": 3}, {"window": None}, {"window": None, "rows": "worst"}]

    @property
    def rates(self) -> Rates | None:
        return rates_of_schedule(self.steps, self.facts)

    def bounds(self, T: ArrayLike, *, lipschitz_f: float, lipschitz_g: float) -> Bounds:
        """What is promised for T rounds, see [`cocopt.theory.bounds`][]."""
        return bounds(self.steps, T, diameter=self.K.diameter, lipschitz_f=lipschitz_f, lipschitz_g=lipschitz_g)

    def dynamic_bounds(self, increments: ArrayLike, *, lipschitz_f: ArrayLike) -> Array:
        """What is promised against actions that move by these increments, see [`cocopt.theory.dynamic_bounds`][].

        They need to satisfy the constraint of their own round only, which a larger window does not allow.
        """
        if self.window != 1:
            raise InvalidInput(f"window: expected 1 for a bound on dynamic regret, got {self.window}")
        return dynamic_bounds(self.steps, increments, diameter=self.K.diameter, lipschitz_f=lipschitz_f)

    def certificate(self) -> Certificate:
        """The regret bound that this run proves, one per trial; void once its assumptions were seen to fail."""
        proof: Certificate = self.memory.proof
        return proof

    def initial_memory(self, batch: tuple[int, ...]) -> _Memory:
        constraints: ConstraintMemory
        if self.window == 1:
            constraints = CurrentConstraint(self.K)
        elif self.window is not None:
            constraints = ConstraintWindow(self.K, self.window)
        else:  # with "nearest" the intersection may be empty, and then no row is implied by the others
            forget, one_row = self.infeasible != "nearest", self.rows == "worst"
            constraints = AllConstraints.begin(self.K, batch, forget=forget, one_row=one_row)
        proof = Certificate.zero(batch, diameter=self.K.diameter, modulus=self.steps.modulus)
        return _Memory(StepState(), proof, constraints)

    def update(self, memory: _Memory, feedback: Feedback) -> Update:
        steps, proof, constraints = memory
        target, step, modulus, distance = feedback.x, None, None, None
        if feedback.loss is not None and feedback.gradient is not None:
            steps, step, move = steps.next(self.steps, feedback.losses, feedback.gradient, feedback.gradient_sq)
            target = feedback.x - move
            if self.steps.modulus > 0:
                modulus = feedback.loss.strong_convexity
                distance = None if feedback.drift is None else row_norms(feedback.played - feedback.x)
        row = None
        if self.rows == "worst" and feedback.rows is not None and feedback.rows.shape[-1] > 1:
            row = feedback.rows.argmax(axis=-1)
        constraints, past = constraints.past_squares(feedback.played)
        constraints, found = constraints.project(target, feedback.constraint, row, self.infeasible)
        feasible = found.feasible
        infeasible = None if feasible is np.True_ or feasible.all() else ~feasible
        proof = proof.after_unchecked(
            step,
            feedback.gradient_sq,
            modulus=modulus,
            infeasible=None if self.infeasible == "skip" else infeasible,
            skipped=infeasible if self.infeasible == "skip" else None,
            drift=feedback.drift,
            distance=distance,
        )
        memory = make_tuple(_Memory, (steps, proof, constraints))
        return make_tuple(Update, (found.point, memory, 0.0 if step is None else step, found.method, feasible, past))

"""OFW: an online Frank–Wolfe method that restarts whenever the surrogate has grown too steep."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.algorithms.base import Feedback, Update, optional_scalar
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.algorithms.frank_wolfe import AnchoredFrankWolfe, Path
from cocopt.arrays import ArrayLike
from cocopt.registry import register
from cocopt.sets.base import ConvexSet
from cocopt.state import Counts, NonNegative, Positive

__all__ = ["OFW"]


class _Memory(NamedTuple):
    queue: NonNegative  # Q_t
    guess: Positive  # Ĝ
    age: Counts  # rounds since the last restart
    path: Path


@register
class OFW(AnchoredFrankWolfe):
    """One linear minimisation per round on a surrogate of loss and violation; no projection at all.

        Q_t = Q_{t−1} + b v_t
        n_t = V b ∇f_t(x_t) + Φ'(Q_t) b s_t
        while Ĝ < bG(V + Φ'(Q_t)):  Ĝ ← 2Ĝ,  and restart:  s = t
        w = argmin over K of ⟨η Σ_{s≤τ≤t} n_τ + 2(x_t − x_s), w⟩,    η = D/(2ĜT^¾)
        x_{t+1} = x_t + min(1, 2/√(t−s+1)) (w − x_t)

    with v_t = max(0, g_t(x_t)), s_t a subgradient of g_t at x_t (0 if v_t = 0), b = 1/(64GD), Φ(q) = exp(q/(2T^¾)) − 1
    and s = 1 at first. With D the diameter of K, G bounding ‖∇f_t‖ and ‖∇g_t‖ on K, and some x in K that satisfies
    every g_t, for the horizon T and V = 1:

    - convex losses: Regret_T = O(T^¾) and CCV₁ = O(T^¾ log T);
    - strongly convex losses: nothing better; see [`SCOFW`][cocopt.SCOFW].

    It needs T, G and D, a bounded K with a linear minimiser, and per round one linear minimisation and a subgradient of
    g_t. Two things are as reconstructed here: the step is cut off at 1, since the printed one exceeds 1 at first and
    would leave K; and Ĝ starts at 2bG(V + Φ'(0)), since with the paper's 1 the regret stays linear at practical
    horizons (``initial_guess=1.0`` is the paper's).

    With V = 1 the constraint hardly acts at practical horizons: the weight Φ'(Q_t) of a violation begins at 1/(2T^¾),
    the weight of the loss is 1, and Q_t ≤ T/64, so that up to T = 10⁷ the former less than doubles.
    ``weight=T**-0.75`` makes the two comparable; no guarantee is claimed for it.

    With several rows in a round g_t is their maximum. A round that reveals only one half counts as one whose other half
    is 0. If another action was played, its gradients are used, and the step begins at the action that was asked for.
    Trials restart one by one.

    Parameters
    ----------
    K : ConvexSet
    horizon : int
        T.
    lipschitz : float
        G.
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: ``K.minimise_linear(0)``, some point of K.
    diameter : float, optional
        D. Default: the diameter of K; a finite one is needed.
    initial_guess : float, optional
        Ĝ before round 1. Default: 2bG(V + Φ'(0)).
    weight : float
        V.

    References
    ----------
    Wang, Wan and Zhang, "Revisiting projection-free online learning with time-varying constraints", AAAI 2025.

    Examples
    --------
    >>> from cocopt import OFW, Simplex, constraints, losses
    >>> learner = OFW(Simplex(3), horizon=400, lipschitz=1.0, start=[1.0, 0.0, 0.0])
    >>> for t in range(400):
    ...     record = learner.tell(losses.Linear([1.0, 0.5, 0.0]), constraints.Affine([1.0, 0.0, 0.0], 0.5))
    >>> learner.ask().round(1)
    array([0.6, 0. , 0.4])
    """

    name = "ofw"
    title = "OFW"
    projection_free = True
    facts = Facts(
        2025,
        "1 linear minimisation over K, a subgradient of g_t",
        "the authors' paper; the first guess and the cut of the step as reconstructed here",
        convex=Rates.from_sums(Rate(0.75), Rate(0.75, 1.0)),
    )

    def __init__(
        self,
        K: ConvexSet,
        horizon: int,
        lipschitz: float,
        *,
        start: ArrayLike | None = None,
        diameter: float | None = None,
        initial_guess: float | None = None,
        weight: float = 1.0,
    ) -> None:
        super().__init__(K, start, horizon, lipschitz, diameter, weight)
        self.initial_guess = optional_scalar("initial_guess", initial_guess, positive=True)

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        return [
            {"horizon": 100, "lipschitz": 10.0},
            {"horizon": 2, "lipschitz": 0.001, "weight": 0.01},  # many restarts
            {"horizon": 100, "lipschitz": 3.0, "diameter": 3.0, "initial_guess": 1.0},
        ]

    def _steepest(self, queue: Any) -> Any:
        """bG(V + Φ'(q)), which bounds the gradients of the surrogate."""
        return self.surrogate.b * self.lipschitz * (self.weight + self.surrogate.weight(queue))

    def initial_memory(self, batch: tuple[int, ...]) -> _Memory:
        zero = np.zeros(batch)[()]
        guess = 2.0 * self._steepest(0.0) if self.initial_guess is None else self.initial_guess
        return _Memory(zero, np.full(batch, guess)[()], np.zeros(batch, dtype=np.int64)[()], self.initial_path(batch))

    def update(self, memory: _Memory, feedback: Feedback) -> Update:
        _, guess, age, path = memory
        queue, n = self.surrogate.gradient(memory.queue, feedback)
        needed, age = self._steepest(queue), age + 1
        restart = guess < needed
        if restart.any():
            while (low := guess < needed).any():
                guess = np.where(low, 2.0 * guess, guess)[()]
            age = np.where(restart, 1, age)[()]
            path = Path(*(np.where(restart[..., None], 0.0, part) for part in path))
        eta = self.step_scale / guess
        x, path = self.step(path, n, eta, age)
        return Update(x, _Memory(queue, guess, age, path), eta)

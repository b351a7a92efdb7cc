"""A hard instance about movement."""

from __future__ import annotations

from math import floor, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import MAX_INTEGER, Array, ArrayLike, as_integers, describe, positive_int, scalar
from cocopt.constraints import Affine
from cocopt.errors import InvalidInput
from cocopt.losses import Linear
from cocopt.problems.deterministic import DeterministicProblem
from cocopt.registry import register
from cocopt.sets.box import Box

__all__ = ["Zigzag"]


@register
class Zigzag(DeterministicProblem):
    """Nested polygons whose best corner changes sides, K = [−1, 1] × [0, 1]: small regret takes much movement.

        f(x, y) = −y,  S_k = conv{c, z_k, …, z_N},  z_k = ((−1)^k, 1 − (k − 1)δ),  c = (0, 1 − Nδ),
        δ = 2√((R + 1)/T),  N = ⌊1/(2δ)⌋,  T = ``rounds``,  R = ``regret``

    S_k is the constraint of ⌊T/N⌋ rounds, and S_N of the remaining ones. With σ = (−1)^N it is

        y ≥ 1 − Nδ + δσx,  y ≥ 1 − Nδ − 2δσx,  y − (−1)^k (δ/2) x ≤ 1 − (k − ½)δ

    on K; S_N is the segment from c to z_N, y ≤ 1 − Nδ + δσx in place of the last row.

    The sets are meant to be known before acting. If a method always plays in the S_t of the round, and its regret
    against the optimum of **each** S_t, Σ_t f(x_t) − min over S_t of f, is at most R, then it moves by at least
    N − 1 ≥ ¼√(T/(R + 1)) − 2 in all. (Against a single fixed point the claim is false.) `best` gives these optima.

    Here as everywhere constraints are revealed after acting. Then a method that is in the set of the last round pays
    at most 2δ for the next, so that CCV₁ < 2 at any step: the instance is about movement, not about violation.

    L_f = 1; L_g = √(1 + 4δ²) and B are exact.

    Parameters
    ----------
    regret : float
        R ≥ 0.
    rounds : int
        T ≥ 64(R + 1), so that N ≥ 2; there are no more rounds than these. A run of fewer rounds sees the first phases
        alone: for a shorter instance pass this option.

    References
    ----------
    arXiv 2609.11207.

    Examples
    --------
    >>> from cocopt import problems
    >>> problem = problems.get("zigzag", rounds=2000)
    >>> problem.phases, problem.best([1, 2, 300])
    (7, array([-1.        , -1.        , -0.93675445]))
    """

    name = "zigzag"
    rounds = 10_000
    feasible = True
    static = False
    lipschitz_f = 1.0

    def __init__(self, regret: float = 1.0, rounds: int = 10_000) -> None:
        self.regret = scalar("regret", regret, nonnegative=True)
        self.rounds = self.max_rounds = positive_int("rounds", rounds)
        self.options = {"regret": self.regret, "rounds": self.rounds}
        self.delta = 2.0 * sqrt((self.regret + 1.0) / self.rounds)
        self.phases = floor(0.5 / self.delta)
        if self.phases < 2:
            least = 64.0 * (self.regret + 1.0)
            raise InvalidInput(f"rounds: expected at least 64(regret + 1) = {least:g}, got {self.rounds}")
        self.K = Box([-1.0, 0.0], [1.0, 1.0])
        self._A, self._b = _polygons(self.phases, self.delta)
        corners = np.array([[-1.0, 0.0], [-1.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        self.lipschitz_g = sqrt(1.0 + 4.0 * self.delta**2)
        self.bound = float(np.abs(self._A @ corners.T - self._b[..., None]).max())

    def initial(self, rng: np.random.Generator) -> ArrayLike:
        return [-1.0, 1.0]  # z_1

    def best(self, t: ArrayLike) -> Array:
        """The least loss over the set of each of these rounds."""
        rounds = as_integers("t", t, "numbers of rounds")
        if rounds.min() < 1 or rounds.max() > MAX_INTEGER:
            raise InvalidInput(f"t: expected numbers of rounds from 1 on, got {describe(t)}")
        best: Array = -1.0 + self.delta * self._phase(rounds.astype(np.int64))
        return best

    def reveal(self, *data: NDArray[Any]) -> tuple[Linear, Affine]:
        (t,) = data
        phase = self._phase(t)
        return Linear([0.0, -1.0]), Affine(self._A[phase], self._b[phase])

    def _phase(self, t: NDArray[Any]) -> NDArray[Any]:
        """k − 1 for the rounds with the constraint S_k."""
        phase: NDArray[Any] = np.minimum((t - 1) // (self.rounds // self.phases), self.phases - 1)
        return phase


def _polygons(N: int, delta: float) -> tuple[Array, Array]:
    """The rows of S_1, …, S_N, (N, 3, 2) and (N, 3)."""
    sigma, bottom = (-1.0) ** N, 1.0 - N * delta
    k = np.arange(1, N + 1)
    A, b = np.empty((N, 3, 2)), np.full((N, 3), -bottom)
    A[:, 0], A[:, 1] = (delta * sigma, -1.0), (-2.0 * delta * sigma, -1.0)
    A[:, 2] = np.stack([-((-1.0) ** k) * delta / 2.0, np.ones(N)], axis=-1)
    b[:, 2] = 1.0 - (k - 0.5) * delta
    A[-1, 2], b[-1, 2] = (-delta * sigma, 1.0), bottom
    return A, b

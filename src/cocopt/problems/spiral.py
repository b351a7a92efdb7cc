"""A hard instance for every window."""

from __future__ import annotations

from math import atan, ceil, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import ArrayLike, positive_int
from cocopt.constraints import Affine
from cocopt.losses import Linear
from cocopt.problems.deterministic import DeterministicProblem
from cocopt.registry import register
from cocopt.sets.box import Box

__all__ = ["Spiral"]


@register
class Spiral(DeterministicProblem):
    """Half-planes around a disc that shrinks, K = [−2, 2]²: remembering earlier constraints does not help.

    Blocks j = 0, 1, … of p = ⌊T^¼⌋ rounds, T = ``rounds``, with step η = T^(−½) in mind:

        f(x) = −⟨e(φ_j + π/2), x⟩,  g(x) = ⟨e(φ_j), x⟩ − r_j,  e(φ) = (cos φ, sin φ),
        φ_0 = 0,  r_0 = 1,  φ_{j+1} = φ_j + arctan(pη/r_j),  r_{j+1} = r_j − (pη)³/(2π r_j²),  x_1 = (1, 0)

    CLASP with the constant step η (``clasp:steps=constant,c=0.01`` for T = 10⁴) moves along each line for a block and
    is then outside the next half-plane. No earlier row binds again, so that every window makes the same moves:

        CCV₁ = Σ_{j=0..J−2} (√(r_j² + p²η²) − r_{j+1}),  J = ⌈T/p⌉,  ≈ 0.55 T^¼

    although the intersection of all constraints holds a disc of radius 0.8.

    L_f = 1, L_g = 1 and B = 2√2 + 1 (an upper bound).

    Parameters
    ----------
    rounds : int
        T; there are no more rounds than these.

    References
    ----------
    Derived here. The exponent is (n − 1)/(2n) at n = 2, which arXiv 2607.10808 states in its abstract.

    Examples
    --------
    >>> import cocopt
    >>> methods = ["clasp:steps=constant,c=0.03125", "clasp:steps=constant,c=0.03125,window=none"]
    >>> result = cocopt.run("spiral:rounds=1024", methods, trials=1)
    >>> [float(result.finals(label)["ccv1"][0]) for label in result.algorithms]
    [2.8007, 2.8007]
    """

    name = "spiral"
    rounds = 10_000
    feasible = True
    static = False
    lipschitz_f = 1.0
    lipschitz_g = 1.0
    bound = 2.0 * sqrt(2.0) + 1.0

    def __init__(self, rounds: int = 10_000) -> None:
        self.rounds = self.max_rounds = positive_int("rounds", rounds, at_most=10**7)
        self.options = {"rounds": self.rounds}
        self.K = Box(-2.0, 2.0, dim=2)
        self._block = int(sqrt(sqrt(self.rounds)))
        self._phi, self._radius = _blocks(ceil(self.rounds / self._block), self._block / sqrt(self.rounds))

    def initial(self, rng: np.random.Generator) -> ArrayLike:
        return [1.0, 0.0]

    def reveal(self, *data: NDArray[Any]) -> tuple[Linear, Affine]:
        (t,) = data
        block = (t - 1) // self._block
        cosine, sine = np.cos(self._phi[block]), np.sin(self._phi[block])
        normal = np.stack([cosine, sine], axis=-1)[..., None, :]
        return Linear(np.stack([sine, -cosine], axis=-1)), Affine(normal, self._radius[block][..., None])


def _blocks(count: int, move: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """φ_j and r_j of the first blocks, in each of which the action moves by ``move``."""
    phi, radius = np.zeros(count), np.ones(count)
    for j in range(count - 1):
        phi[j + 1] = phi[j] + atan(move / radius[j])
        radius[j + 1] = radius[j] - move**3 / (2.0 * pi * radius[j] ** 2)
    return phi, radius

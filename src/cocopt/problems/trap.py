"""A hard instance for AdaGrad."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import ArrayLike, scalar
from cocopt.constraints import Affine
from cocopt.errors import InvalidInput
from cocopt.losses import Quadratic
from cocopt.problems.deterministic import DeterministicProblem
from cocopt.registry import register
from cocopt.sets.box import Box

__all__ = ["Trap"]


@register
class Trap(DeterministicProblem):
    """The same loss and constraint in every round, on which AdaGrad violates the constraint for a very long time.

        f(x) = c x²,  g(x) = a/2 − x,  K = [1, a],  x_1 = (1 + a/2)/2

    The best feasible point is a/2. A method that projects onto the constraint pays a/2 − x_1 once. AdaGrad (convex
    form, V = 1) falls to x = 1, and stays there as long as the weight λ exp(λQ) of a violation is below 2c:

        CCV₁ = (a/2 − x_1) + (a/2 − 1)(T − 1)

    for all horizons T at which that is less than 4GD√T ln(4c√T); with a = 4, c = 10 up to T ≈ 10⁸. For larger T, CCV₁
    levels off at 4GD√T ln(2ca√T), which c = 0.1 shows from T = 10⁴ on (derived here, and measured). So the violation
    is linear at practical horizons, and √T log T in the end.

    L_f = 2ca, L_g = 1, B = a/2 and the modulus 2c of strong convexity are exact.

    Parameters
    ----------
    a : float
        More than 2.
    c : float

    References
    ----------
    Vaze and Sinha, "O(√T) static regret and instance dependent constraint violation for constrained online convex
    optimization", NeurIPS 2025, Lemma 6.

    Examples
    --------
    >>> import cocopt
    >>> result = cocopt.run("trap", ["clasp", "adagrad"], trials=1, rounds=100)
    >>> {label: float(result.finals(label)["ccv1"][0]) for label in result.algorithms}
    {'clasp': 0.5, 'adagrad': 99.5}
    """

    name = "trap"
    rounds = 10_000
    feasible = True
    static = True
    lipschitz_g = 1.0

    def __init__(self, a: float = 4.0, c: float = 10.0) -> None:
        self.a, self.c = scalar("a", a), scalar("c", c, positive=True)
        if self.a <= 2.0:
            raise InvalidInput(f"a: expected a number above 2, so that g changes its sign on K, got {self.a}")
        self.options = {"a": self.a, "c": self.c}
        self.K = Box(1.0, self.a, dim=1)
        self.lipschitz_f = 2.0 * self.c * self.a
        self.strong_convexity = 2.0 * self.c
        self.bound = self.a / 2.0
        self._round = Quadratic([[2.0 * self.c]], [0.0]), Affine([-1.0], -self.a / 2.0)

    def initial(self, rng: np.random.Generator) -> ArrayLike:
        return [(1.0 + self.a / 2.0) / 2.0]

    def reveal(self, *data: NDArray[Any]) -> tuple[Quadratic, Affine]:
        return self._round

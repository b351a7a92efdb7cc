"""A hard instance for projections onto the last constraint alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import ArrayLike, positive_int, scalar
from cocopt.constraints import Affine
from cocopt.errors import InvalidInput
from cocopt.losses import Linear
from cocopt.problems.deterministic import DeterministicProblem
from cocopt.registry import register
from cocopt.sets.ball import Ball

__all__ = ["Drift"]

_MAX_KAPPA = 1e150  # its square is a number


@register
class Drift(DeterministicProblem):
    """Half-planes that turn ahead of the action, K = {‖x‖ ≤ 1} in the plane: CLASP's bound on CCV₂ is tight in T.

        f_t(x) = −κ⟨e(φ_t), x⟩,  g_t(x) = ⟨a_t, x⟩ − margin,  a_t = (sin φ_{t+1}, −cos φ_{t+1}),
        φ_1 = 0,  φ_{t+1} = φ_t + θ_t,  e(φ) = (cos φ, sin φ),  x_1 = (1, 0)

    where cos θ_t = 1/(1 + κ η_t), η_t = t^(−β), if κ > 0, and θ_t = T^(−½) for T = ``rounds`` if κ = 0.

    For margin = 0, CLASP(window=1) with steps η_t stays on the ray, x_t = ρ_t e(φ_t), with violation ρ_t sin θ_t:

    - κ > 0: ρ_t = 1, CCV₁ = Σ √(2κη_t + κ²η_t²)/(1 + κη_t), CCV₂ = Σ (1 − (1 + κη_t)^(−2)), Regret = −κT against
      x* = 0. With κ = 1, β = ½ that is ~ (4√2/3) T^¾ and ~ 4√T, half of the bound D² + 2 L_f D Σ η_t: the rate of CCV₂
      and CCV₁ ≤ √(T·CCV₂) are tight;
    - κ = 0: ρ_t = cos^(t−1) θ, CCV₁ = sin θ (1 − cos^T θ)/(1 − cos θ) ≈ 0.787√T, although CCV₂ < 1.

    Methods that project onto all constraints so far pay less than 4 in all: after half a turn the intersection is {0},
    or with a margin a small disc.

    L_f = κ, L_g = 1 and B = 1 + margin are exact.

    Parameters
    ----------
    kappa : float
        κ ≥ 0, the weight of the losses.
    beta : float
        β, the exponent of the steps that the angles are made for.
    margin : float
        Moves the half-planes outwards, so that the intersection of all keeps an interior.
        With 0 the intersection is too thin for the comparator: run it without regret.
    rounds : int
        The number of rounds that the instance is made for; there are no more than these. For κ = 0 the angles depend on
        it.

    References
    ----------
    Derived here.

    Examples
    --------
    >>> import cocopt
    >>> result = cocopt.run("drift:rounds=1000", ["clasp", "clasp:window=none"], trials=1)
    >>> {label: float(result.finals(label)["ccv1"][0]) for label in result.algorithms}
    {'clasp': 316.9, 'clasp:window=none': 3.918}
    """

    name = "drift"
    rounds = 10_000
    feasible = True
    static = False
    lipschitz_g = 1.0

    def __init__(self, kappa: float = 1.0, beta: float = 0.5, margin: float = 1e-6, rounds: int = 10_000) -> None:
        self.kappa = scalar("kappa", kappa, nonnegative=True)
        if self.kappa > _MAX_KAPPA:
            raise InvalidInput(f"kappa: expected at most {_MAX_KAPPA:g}, got {self.kappa}")
        self.beta = scalar("beta", beta, nonnegative=True)
        self.margin = scalar("margin", margin, nonnegative=True)
        self.rounds = self.max_rounds = positive_int("rounds", rounds, at_most=10**7)
        self.options = {"kappa": self.kappa, "beta": self.beta, "margin": self.margin, "rounds": self.rounds}
        self.K = Ball(0.0, 1.0, dim=2)
        self.lipschitz_f = self.kappa
        self.bound = 1.0 + self.margin
        if self.kappa > 0.0:
            # tan θ = √((1 + κη)² − 1): the arc cosine would lose digits at small angles
            move = self.kappa * np.arange(1.0, self.rounds + 1.0) ** -self.beta
            angles = np.arctan(np.sqrt(move * (2.0 + move)))
        else:
            angles = np.full(self.rounds, self.rounds**-0.5)
        phi = np.append(0.0, np.cumsum(angles))
        self._directions = np.stack([np.cos(phi), np.sin(phi)], axis=-1)

    def initial(self, rng: np.random.Generator) -> ArrayLike:
        return [1.0, 0.0]

    def reveal(self, *data: NDArray[Any]) -> tuple[Linear, Affine]:
        (t,) = data
        now, after = self._directions[t - 1], self._directions[t]
        A = np.stack([after[..., 1], -after[..., 0]], axis=-1)[..., None, :]
        return Linear(-self.kappa * now), Affine(A, np.full((*t.shape, 1), self.margin))

"""The bounds of AdaGrad."""

from __future__ import annotations

import numpy as np

from cocopt.arrays import ArrayLike, positive_int, scalar
from cocopt.errors import InvalidInput
from cocopt.theory.base import Bounds, check_constants, check_rounds, computed

__all__ = ["bounds_adagrad"]


@computed
def bounds_adagrad(
    T: ArrayLike,
    *,
    horizon: int,
    diameter: float,
    lipschitz: float,
    strong_convexity: float | None = None,
    weight: float = 1.0,
) -> Bounds:
    """What AdaGrad promises for T rounds, T up to the horizon N; CCV₂ through G D · CCV₁.

    ================ ============================ =====================================================
    losses           Regret_T ≤                   CCV₁ ≤
    ================ ============================ =====================================================
    convex           2GD(√T + 1/V)                4GD√N ln(2(1 + 2VT))
    strongly convex  (G²/m)(1 + ln T)             4G√(GDT ln(eN)/m) + 4G² ln(eN)/m
    ================ ============================ =====================================================

    The convex row is Sinha and Vaze's (2024) for V = 1. For any V their inequality reads
    b V Regret_T + Φ(Q_T) ≤ √T (V + Φ'(Q_T)) with Φ' = λ(Φ + 1) and λ√T ≤ ½; it gives the regret, and, as
    b V Regret_T ≥ −V T/2, exp(λ Q_T) ≤ 2(1 + V√T + V T/2).

    Parameters
    ----------
    T, diameter
        As for `bounds`.
    horizon, lipschitz, strong_convexity, weight
        As for [`cocopt.AdaGrad`][]; both the losses and the constraints have the Lipschitz constant G.

    Examples
    --------
    >>> from cocopt import theory
    >>> theory.bounds_adagrad(100, horizon=100, diameter=1.0, lipschitz=1.0)
    Bounds(regret=np.float64(22.0), ccv1=np.float64(239.86), ccv2=np.float64(239.86))
    """
    D, G, _ = check_constants(diameter, lipschitz, lipschitz)
    N, V = positive_int("horizon", horizon), scalar("weight", weight, positive=True)
    rounds = check_rounds(T)
    if rounds.max() > N:
        raise InvalidInput(f"T: expected at most the horizon {N}, got {rounds.max()}")
    if strong_convexity is None:
        regret = 2 * G * D * (np.sqrt(rounds) + 1 / V)
        ccv1 = 4 * G * D * np.sqrt(N) * np.log(2 * (1 + 2 * V * rounds))
    else:
        m = scalar("strong_convexity", strong_convexity, positive=True)
        regret = G**2 / m * (1 + np.log(rounds))
        share = (1 + np.log(N)) / m
        ccv1 = 4 * G * np.sqrt(G * D * share * rounds) + 4 * G**2 * share
    return Bounds(regret, ccv1, G * D * ccv1)

"""The bounds of Double-Q."""

from __future__ import annotations

from math import e, sqrt

import numpy as np

from cocopt.arrays import ArrayLike, positive_int, scalar
from cocopt.errors import InvalidInput
from cocopt.theory.base import Bounds, check_rounds, computed

__all__ = ["bounds_double_q"]


@computed
def bounds_double_q(
    T: ArrayLike, *, horizon: int, diameter: float, lipschitz: float, weight: float = 5.0, row_count: int = 1
) -> Bounds:
    """What Double-Q promises for the first T rounds, T up to the horizon N; CCV₂ through GD · CCV₁.

    ================ ===============================================
    Regret_T ≤       κGD√T + rM/V
    CCV₁ ≤           2(4GDe² + 1) M √N ln( (1 + V GD (κ√T + T)/M)/(1 − r) )
    ================ ===============================================

    with κ = 5/√8 = 1.77, r = κGDβ/2 < 0.03 and M rows. As derived here: the update minimises a (1/α_t)-strongly convex
    function, so for x* with g_t(x*) ≤ 0

        ⟨p_t, x_t − x*⟩ ≤ α_t‖p_t‖²/2 + (‖x* − x_t‖² − ‖x* − x_{t+1}‖²)/(2α_t),

    which sums to at most κD√(Σ_t ‖p_t‖²). With E = Σ_i exp(λ z_{T,i}) and λ√N = ½, that root is at most VG√T + βGE/2.
    On the left, convexity gives V Regret_T + E − M, since exp(λz_{t,i}) − exp(λz_{t−1,i}) ≤ λ exp(λz_{t,i}) β v_{t,i}.
    Hence V Regret_T + (1 − r) E ≤ κVGD√T + M. The regret follows from E ≥ M; the violation from Regret_T ≥ −GDT and
    λ Σ_i z_{T,i} ≤ M ln(E/M).

    Parameters
    ----------
    T, horizon, diameter, lipschitz, weight
        As for [`cocopt.DoubleQ`][].
    row_count : int
        M.

    Examples
    --------
    >>> from cocopt import theory
    >>> theory.bounds_double_q(100, horizon=100, diameter=1.0, lipschitz=1.0).regret
    np.float64(17.68)
    """
    rounds, N = check_rounds(T), positive_int("horizon", horizon)
    if rounds.max() > N:
        raise InvalidInput(f"T: expected at most the horizon {N}, got {rounds.max()}")
    GD = scalar("diameter", diameter, positive=True) * scalar("lipschitz", lipschitz, positive=True)
    V, M = scalar("weight", weight, positive=True), positive_int("row_count", row_count)
    n = rounds.astype(np.float64)
    kappa, scale = 5.0 / sqrt(8.0), 4.0 * GD * e**2 + 1.0
    r = kappa * GD / (2.0 * scale)
    regret = kappa * GD * np.sqrt(n) + r * M / V
    ccv1 = 2.0 * scale * M * sqrt(N) * np.log((1.0 + V * GD * (kappa * np.sqrt(n) + n) / M) / (1.0 - r))
    return Bounds(regret, ccv1, GD * ccv1)

"""The bounds of COLDQ."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cocopt.arrays import ArrayLike, positive_int, scalar
from cocopt.steps import Schedule, as_schedule
from cocopt.theory.base import Bounds, check_constants, check_rounds, computed, step_sums
from cocopt.theory.clasp import bounds

__all__ = ["bounds_coldq"]


@computed
def bounds_coldq(
    steps: Schedule | Callable[[int], float],
    T: ArrayLike,
    *,
    diameter: float,
    lipschitz_f: float,
    lipschitz_g: float,
    horizon: int | None = None,
    epsilon: float = 0.5,
) -> Bounds:
    """What COLDQ promises for T rounds.

    ================ ===============================================
    Regret_T ≤       D²/(2η_T) + (L_f²/2) Σ_t η_t; or (L_f²/2m)(1 + ln T) with η_t = 1/(m t)
    CCV₂ ≤           2 S_T + 2 min(L_g D, h) R_T,    S_T = L_g² (D² + 2 L_f D Σ_t η_t)
    CCV₁ ≤           √(T S_T) + R_T
    ================ ===============================================

    with η_t = 1/(2α_t), and for the horizon N and ε

    ================ ======================================= ==============================
    form             R_T                                     h
    ================ ======================================= ==============================
    horizon N        (L_f D T + α_T D²)/(εN)                 (L_f D + α_T D²)/(εN)
    anytime          (L_f D Σ_t 1/t² + α_1 D²)/ε             (L_f D + α_1 D²)/ε
    ================ ======================================= ==============================

    As derived here: the update minimises a 2α_t-strongly convex function over K, so for x* with g_t(x*) ≤ 0

        α_t‖x_{t+1} − x_t‖² + q_t h_t ≤ L_f D + α_t(‖x* − x_t‖² − ‖x* − x_{t+1}‖²),    h_t = g_t^+(x_{t+1}),

    since every queue is at least q_t. Without its first term and divided by q_t it bounds every h_t by h and sums to
    Σ h_t ≤ R_T, since α_t/q_t increases with a horizon and decreases in the anytime form. Divided by α_t it sums to
    Σ‖x_{t+1} − x_t‖² ≤ S_T/L_g². Last, g_t^+(x_t) ≤ h_t + L_g‖x_{t+1} − x_t‖.

    Parameters
    ----------
    steps : Schedule or callable of t
        η_t, as in ``COLDQ(...).steps``; the anytime form needs 1/(t² η_t) not to increase.
    T, diameter, lipschitz_f, lipschitz_g
        As for `bounds`.
    horizon, epsilon
        As for [`cocopt.COLDQ`][].

    Examples
    --------
    >>> from cocopt import steps, theory
    >>> theory.bounds_coldq(steps.Power(0.5, 0.5), [100, 10_000], diameter=1.0, lipschitz_f=1.0, lipschitz_g=1.0).ccv2
    array([ 49.72, 409.67])
    """
    D, L_f, L_g = check_constants(diameter, lipschitz_f, lipschitz_g)
    rounds = check_rounds(T)
    eps = scalar("epsilon", epsilon, positive=True)
    schedule = as_schedule(steps)
    moves = bounds(schedule, T, diameter=D, lipschitz_f=L_f, lipschitz_g=L_g)
    assert moves.ccv2 is not None
    eta = step_sums(schedule, rounds if horizon is not None else np.ones_like(rounds))[2]
    drift = D**2 / (2.0 * eta)  # α_T D², or α_1 D²
    if horizon is None:
        weights = np.cumsum(np.arange(1, int(rounds.max()) + 1, dtype=np.float64) ** -2)[rounds - 1]
        total, largest = (L_f * D * weights + drift) / eps, (L_f * D + drift) / eps
    else:
        minimum = eps * positive_int("horizon", horizon)
        total, largest = (L_f * D * rounds + drift) / minimum, (L_f * D + drift) / minimum
    ccv2 = 2.0 * moves.ccv2 + 2.0 * np.minimum(L_g * D, largest) * total
    return Bounds(moves.regret, np.sqrt(rounds * moves.ccv2) + total, ccv2)

"""The bounds of the primal-dual method of Mahdavi, Jin and Yang."""

from __future__ import annotations

from math import sqrt

import numpy as np

from cocopt.arrays import ArrayLike, positive_int, scalar
from cocopt.errors import InvalidInput
from cocopt.theory.base import Bounds, check_rounds, computed

__all__ = ["bounds_mahdavi", "mahdavi_constants"]


def mahdavi_constants(horizon: int, diameter: float, lipschitz: float, bound: float, rows: int) -> tuple[float, float]:
    """(η, δ) of [`cocopt.Mahdavi`][]: the step, and the weight of the penalty on the multipliers.

    Examples
    --------
    >>> from cocopt.theory.mahdavi import mahdavi_constants
    >>> mahdavi_constants(100, diameter=2.0, lipschitz=1.0, bound=1.0, rows=1)
    (0.05, 4.0)
    """
    curvature = (rows + 1) * lipschitz**2
    eta = diameter / 2 / sqrt((curvature + 2 * rows * bound**2) * horizon)
    return min(eta, 1.0 / sqrt(8.0 * curvature)), 2.0 * curvature


@computed
def bounds_mahdavi(
    T: ArrayLike, *, horizon: int, diameter: float, lipschitz: float, bound: float, rows: int = 1
) -> Bounds:
    """What Mahdavi's method promises for T rounds, T up to the horizon; ``ccv_soft`` bounds Σ_t g_i(x_t) for each row.

    ================ ===============================================
    Regret_T ≤       E_T = D²/(2η) + (ηT/2)((M+1)G² + 2MB²)
    soft CCV ≤       √(2 (G D T + E_T)(δηT + 1/η))
    ================ ===============================================

    As derived here: the updates of x and λ give, for every x in K and λ ≥ 0,

        L_t(x_t, λ) − L_t(x, λ_t) ≤ (‖x − x_t‖² − ‖x − x_{t+1}‖² + ‖λ − λ_t‖² − ‖λ − λ_{t+1}‖²)/(2η)
                                    + (η/2)((M+1)G²(1 + ‖λ_t‖²) + 2MB² + 2δ²η²‖λ_t‖²),

    where the terms in ‖λ_t‖² are at most (ηδ/2)‖λ_t‖² since δ = 2(M+1)G² and 8(M+1)G²η² ≤ 1, which the penalty in L_t
    cancels. The sum over t with g(x) ≤ 0 is Regret_T + ⟨λ, Σ g(x_t)⟩ − ‖λ‖²(δηT + 1/η)/2 ≤ E_T. λ = 0 bounds the
    regret; the best λ, and Regret_T ≥ −G D T, bound the violation.

    Parameters
    ----------
    T : int or array of int
        At most ``horizon``.
    horizon, diameter, lipschitz, bound
        As for [`cocopt.Mahdavi`][].
    rows : int
        M.

    Examples
    --------
    >>> from cocopt import theory
    >>> theory.bounds_mahdavi(100, horizon=100, diameter=2.0, lipschitz=1.0, bound=1.0).regret
    np.float64(50.0)
    """
    rounds, horizon = check_rounds(T), positive_int("horizon", horizon)
    if rounds.max() > horizon:
        raise InvalidInput(f"T: expected at most the horizon {horizon}, got {rounds.max()}")
    D, G = scalar("diameter", diameter, positive=True), scalar("lipschitz", lipschitz, positive=True)
    B, M = scalar("bound", bound, positive=True), positive_int("rows", rows)
    eta, delta = mahdavi_constants(horizon, D, G, B, M)
    t = rounds.astype(np.float64)
    regret = D**2 / (2 * eta) + eta / 2 * t * ((M + 1) * G**2 + 2 * M * B**2)
    soft = np.sqrt(2 * (G * D * t + regret) * (delta * eta * t + 1 / eta))
    return Bounds(regret[()], None, None, soft[()])

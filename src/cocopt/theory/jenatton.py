"""The bounds of the adaptive primal-dual method of Jenatton, Huang and Archambeau."""

from __future__ import annotations

import numpy as np

from cocopt.arrays import ArrayLike, as_flag, scalar
from cocopt.errors import InvalidInput
from cocopt.theory.base import Bounds, check_rounds, computed

__all__ = ["bounds_jenatton"]


# (eight parameters, all but one of them keywords: the constants of the theorem)
@computed
def bounds_jenatton(
    T: ArrayLike,
    *,
    diameter: float,
    lipschitz: float,
    bound: float,
    beta: float = 0.5,
    strong_convexity: float | None = None,
    hard: bool = False,
) -> Bounds:
    """What the method of Jenatton et al. promises for T rounds.

    ================ ===============================================
    Regret_T ≤       E_T = (D G + B²/(3βDG)) T^β + (D G/(1−β)) T^(1−β)
    soft CCV ≤       √( (12 D G/(1−β)) (E_T + G D T) T^(1−β) )
    ================ ===============================================

    and for m-strongly convex losses E_T = (G²/m)(1 + ln T) + (B² m/(6βG²)) T^β, with 12DG replaced by 24G²/m. These are
    the authors' for a ball of radius R with D = 2R, where their first constant takes x_1 for at most R away from the
    comparator, as derived here. With ``hard`` the second line bounds CCV₁, and CCV₂ ≤ B · CCV₁.

    Parameters
    ----------
    T : int or array of int
    diameter, lipschitz, bound, beta, strong_convexity, hard
        As for [`cocopt.Jenatton`][].

    Examples
    --------
    >>> from cocopt import theory
    >>> theory.bounds_jenatton(100, diameter=1.0, lipschitz=1.0, bound=1.0).regret
    np.float64(36.66)
    """
    rounds = check_rounds(T)
    D, G = scalar("diameter", diameter, positive=True), scalar("lipschitz", lipschitz, positive=True)
    B, b = scalar("bound", bound, positive=True), scalar("beta", beta, positive=True)
    if b >= 1.0:
        raise InvalidInput(f"beta: expected a number between 0 and 1, got {beta}")
    t = rounds.astype(np.float64)
    if strong_convexity is None:
        weight = 12.0 * D * G
        regret = (D * G + B**2 / (3 * b * D * G)) * t**b + D * G / (1 - b) * t ** (1 - b)
    else:
        m = scalar("strong_convexity", strong_convexity, positive=True)
        weight = 24.0 * G**2 / m
        regret = G**2 / m * (1 + np.log(t)) + B**2 * m / (6 * b * G**2) * t**b
    violation = np.sqrt(weight / (1 - b) * (regret + G * D * t) * t ** (1 - b))[()]
    if as_flag("hard", hard):
        return Bounds(regret[()], violation, B * violation, violation)
    return Bounds(regret[()], None, None, violation)

"""The bounds of the anytime method of Yu, Lee and Lee."""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from cocopt.arrays import ArrayLike, scalar
from cocopt.theory.base import Bounds, check_rounds, computed

__all__ = ["bounds_yu_lee_lee", "queue_rate"]


def queue_rate(t: int, diameter: float, lipschitz: float, bound: float, delta: float | None = None) -> float:
    """γ_t of [`cocopt.YuLeeLee`][].

    Examples
    --------
    >>> from cocopt.theory.yu_lee_lee import queue_rate
    >>> queue_rate(100, diameter=1.0, lipschitz=1.0, bound=1.0)
    0.0083
    """
    scale = diameter * lipschitz
    if delta is not None:
        scale += 8.0 * bound * sqrt(log(12.0 * t**2 / delta))
    return min(1.0 / (12.0 * bound * sqrt(t)), 1.0 / (24.0 * scale), 1.0)


@computed
def bounds_yu_lee_lee(
    T: ArrayLike, *, diameter: float, lipschitz: float, bound: float, strong_convexity: float | None = None
) -> Bounds:
    """What the method of Yu, Lee and Lee promises for T rounds, in its hard form; CCV₂ ≤ B · CCV₁.

    ================ ===============================================
    Regret_T ≤       E_T + 1, E_T = 2DL√T + ln T + 1 + D; or (L²/m)(1 + ln T) + ln T + 1
    CCV₁ ≤           ln(DLT + E_T + 1)/γ_{T+1} + 2B√T + 4DL√( T(1 + 2 ln(T(DLT + E_T + 1)/γ_1)) )
    ================ ===============================================

    Parameters
    ----------
    T : int or array of int
    diameter, lipschitz, bound, strong_convexity
        As for [`cocopt.YuLeeLee`][].

    Examples
    --------
    >>> from cocopt import theory
    >>> theory.bounds_yu_lee_lee(100, diameter=1.0, lipschitz=1.0, bound=1.0).regret
    np.float64(27.6)
    """
    rounds = check_rounds(T)
    D, L = scalar("diameter", diameter, positive=True), scalar("lipschitz", lipschitz, positive=True)
    B, t = scalar("bound", bound, positive=True), rounds.astype(np.float64)
    if strong_convexity is None:
        E = 2 * D * L * np.sqrt(t) + np.log(t) + 1 + D
    else:
        m = scalar("strong_convexity", strong_convexity, positive=True)
        E = L**2 / m * (1 + np.log(t)) + np.log(t) + 1
    size = D * L * t + E + 1
    rate = np.minimum(1 / (12 * B * np.sqrt(t + 1)), min(1 / (24 * D * L), 1.0))
    first = queue_rate(1, D, L, B)
    regularizers = 2 * B * np.sqrt(t) + 4 * D * L * np.sqrt(t * (1 + 2 * np.log(t * size / first)))
    ccv1 = np.log(size) / rate + regularizers
    return Bounds((E + 1)[()], ccv1[()], (B * ccv1)[()])

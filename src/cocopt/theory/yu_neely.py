"""The bound of the method of Yu and Neely."""

from __future__ import annotations

from math import sqrt

import numpy as np

from cocopt.arrays import ArrayLike, positive_int, scalar
from cocopt.errors import InvalidInput
from cocopt.theory.base import Bounds, check_rounds, computed

__all__ = ["bounds_yu_neely"]


@computed
def bounds_yu_neely(
    T: ArrayLike, *, horizon: int, diameter: float, lipschitz: float, lipschitz_f: float, rows: int = 1
) -> Bounds:
    """What the method of Yu and Neely promises for T rounds, T up to the horizon N.

        Regret_T ≤ α D² + L_f² T/(2√N),    α = (M G² + 1)√N/2

    As derived here from the orders of the authors. Under Slater's condition the soft violation is O(1); its constant is
    not stated here.

    Parameters
    ----------
    T : int or array of int
        At most ``horizon``.
    horizon, diameter, lipschitz
        As for [`cocopt.YuNeely`][].
    lipschitz_f : float
        L_f.
    rows : int
        M.

    Examples
    --------
    >>> from cocopt import theory
    >>> theory.bounds_yu_neely(100, horizon=100, diameter=1.0, lipschitz=1.0, lipschitz_f=1.0).regret
    np.float64(15.0)
    """
    rounds, N = check_rounds(T), positive_int("horizon", horizon)
    if rounds.max() > N:
        raise InvalidInput(f"T: expected at most the horizon {N}, got {rounds.max()}")
    D, G = scalar("diameter", diameter, nonnegative=True), scalar("lipschitz", lipschitz, positive=True)
    L, M = scalar("lipschitz_f", lipschitz_f, nonnegative=True), positive_int("rows", rows)
    alpha = (M * G**2 + 1.0) * sqrt(N) / 2
    return Bounds(alpha * D**2 + L**2 / (2 * sqrt(N)) * rounds.astype(np.float64)[()])

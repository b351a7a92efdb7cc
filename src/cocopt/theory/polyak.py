"""The bounds of online gradient descent with Polyak feasibility steps."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from cocopt.arrays import ArrayLike, positive_int, scalar
from cocopt.errors import InvalidInput
from cocopt.theory.base import Bounds, check_rounds, computed

__all__ = ["bounds_polyak", "safe_parameters"]


def safe_parameters(horizon: int, diameter: float, lipschitz: float, slack: float) -> tuple[float, float]:
    """(η, ρ) with which no round violates the constraint, see [`cocopt.PolyakFeasibility`][].

    Examples
    --------
    >>> from cocopt.theory.polyak import safe_parameters
    >>> safe_parameters(100, diameter=1.0, lipschitz=1.0, slack=0.5)
    (0.0034, 0.05)
    """
    rho = min(slack / 2, slack / sqrt(horizon))
    k = (slack - rho) / (diameter * lipschitz)
    eta = k * k * rho / (2.0 * (1.0 + k) * (lipschitz * lipschitz))
    if not 0.0 < eta < inf:
        raise InvalidInput(f"slack, diameter, lipschitz: expected constants of moderate size, got the step {eta}")
    return eta, rho


@computed
def bounds_polyak(T: ArrayLike, *, horizon: int, diameter: float, lipschitz: float, slack: float) -> Bounds:
    """What [`cocopt.PolyakFeasibility`][] promises for T rounds up to the horizon, with its default parameters.

        Regret_T ≤ D²/(2η) + η G² T/2 + G D ρ T/ε,    CCV₁ = CCV₂ = 0

    As derived here.

    Parameters
    ----------
    T : int or array of int
        At most ``horizon``.
    horizon, diameter, lipschitz, slack
        As for [`cocopt.PolyakFeasibility`][].

    Examples
    --------
    >>> from cocopt import theory
    >>> theory.bounds_polyak(10_000, horizon=10_000, diameter=1.0, lipschitz=1.0, slack=1.0).regret
    np.float64(315.35)
    """
    rounds, horizon = check_rounds(T), positive_int("horizon", horizon)
    if rounds.max() > horizon:
        raise InvalidInput(f"T: expected at most the horizon {horizon}, got {rounds.max()}")
    D, G = scalar("diameter", diameter, positive=True), scalar("lipschitz", lipschitz, positive=True)
    slack = scalar("slack", slack, positive=True)
    eta, rho = safe_parameters(horizon, D, G, slack)
    t = rounds.astype(np.float64)
    regret = D**2 / (2 * eta) + eta * G**2 * t / 2 + G * D * rho * t / slack
    none = np.zeros(t.shape)[()]
    return Bounds(regret[()], none, none, none)

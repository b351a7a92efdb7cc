"""The bounds of the method of Yuan and Lamperski."""

from __future__ import annotations

import numpy as np

from cocopt.arrays import ArrayLike, positive_int, scalar
from cocopt.steps import Schedule, as_schedule
from cocopt.theory.base import Bounds, check_rounds, computed, step_sums

__all__ = ["bounds_yuan_lamperski"]


@computed
def bounds_yuan_lamperski(
    steps: Schedule, T: ArrayLike, *, diameter: float, lipschitz: float, lipschitz_f: float, rows: int = 1
) -> Bounds:
    """What the method of Yuan and Lamperski promises for T rounds; CCV₁ through √(T · CCV₂).

    ================ ===============================================
    Regret_T ≤       D²/(2η_T) + ((M+1) L_f²/2) Σ η_t; without the first term for η_t = 1/(m t)
    CCV₂ ≤           (M+1) G² (D² + 2 L_f D Σ η_t + (M+1) L_f² Σ η_t²), the squares of all rows added up
    ================ ===============================================

    As derived here, for θ_t = (M+1)G²η_t with ‖∇g_{t,i}‖ ≤ G: with v_i = g_{t,i}^+(x_t) and a feasible x*,

        ‖x_{t+1} − x*‖² ≤ ‖x_t − x*‖² − 2η⟨∇f_t, x_t − x*⟩ − 2(η/θ) Σ v_i² + η²(M+1)(L_f² + G² Σ v_i²/θ²),

    and the last term in v is at most half of the one before it, so that Σ v_i²/((M+1)G²) remains. Nothing in it needs
    the same constraint in every round.

    Parameters
    ----------
    steps : Schedule
        η_t.
    T : int or array of int
    diameter, lipschitz
        As for [`cocopt.YuanLamperski`][].
    lipschitz_f : float
        L_f.
    rows : int
        M.

    Examples
    --------
    >>> from cocopt import steps, theory
    >>> theory.bounds_yuan_lamperski(
    ...     steps.StronglyConvex(1.0), 100, diameter=1.0, lipschitz=1.0, lipschitz_f=1.0
    ... ).regret
    np.float64(5.19)
    """
    rounds, M = check_rounds(T), positive_int("rows", rows)
    D, G = scalar("diameter", diameter, nonnegative=True), scalar("lipschitz", lipschitz, positive=True)
    L = scalar("lipschitz_f", lipschitz_f, nonnegative=True)
    schedule = as_schedule(steps)
    total, squares, last = step_sums(schedule, rounds)
    regret = (M + 1) * L**2 / 2 * total
    if not schedule.modulus > 0.0:
        regret = regret + D**2 / (2 * last)
    ccv2 = (M + 1) * G**2 * (D**2 + 2 * L * D * total + (M + 1) * L**2 * squares)
    return Bounds(regret, np.sqrt(rounds * ccv2), ccv2)

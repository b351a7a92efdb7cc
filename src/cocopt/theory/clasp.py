"""The bounds of CLASP."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cocopt.arrays import ArrayLike, scalar
from cocopt.steps import Adaptive, Schedule, StronglyConvex, as_schedule
from cocopt.theory.base import Bounds, check_constants, check_rounds, computed, step_sums

__all__ = ["bounds"]


@computed
def bounds(
    steps: Schedule | Callable[[int], float],
    T: ArrayLike,
    *,
    diameter: float,
    lipschitz_f: float,
    lipschitz_g: float,
    first_gradient: float | None = None,
) -> Bounds:
    """What CLASP promises for T rounds, with constants; CCV₁ always through √(T · CCV₂).

    ================ ======================================== ===========================================
    steps            Regret_T ≤                               CCV₂ ≤
    ================ ======================================== ===========================================
    any η_t          D²/(2η_T) + (L_f²/2) Σ_t η_t             L_g² (D² + 2 L_f D Σ_t η_t)
    StronglyConvex   (L_f²/(2m)) (1 + ln T)                   L_g² (D² + (2 L_f D/m) (1 + ln T))
    Adaptive         (D²/(2c) + c) L_f √T                     L_g² (D² + 2 c D S)
    ================ ======================================== ===========================================

    The first row is meant for convex losses: Power, Constant and any callable that never increases. In the last one
    c is the schedule's own scale · D. With n_t = ‖∇f_t(x_t)‖ and G_t = Σ_{s≤t} n_s², its regret follows from
    D²/(2η_T) + Σ_t η_t n_t²/2 with η_t = c/√G_t and Σ_t n_t²/√G_t ≤ 2√G_T ≤ 2 L_f √T; its CCV₂ from
    L_g² (D² + 2 D Σ_t η_t n_t) and Σ_t n_t/√G_t ≤ S. Without knowledge of the gradients S = T (they may grow
    geometrically, and each step is then as long as K); given the first of them that is not 0,
    S = √(T (1 + ln(T L_f²/n_1²))), from Cauchy's inequality and Σ_t n_t²/G_t ≤ 1 + ln(G_T/n_1²).

    Parameters
    ----------
    steps : Schedule or callable of t
    T : int or array of int
        The numbers of rounds; sums over t are computed term by term up to the largest.
    diameter, lipschitz_f, lipschitz_g : float
        D, L_f and L_g.
    first_gradient : float, optional
        For Adaptive: the norm of the first gradient that is not 0, or a lower bound of it.

    Examples
    --------
    >>> from cocopt import steps, theory
    >>> theory.bounds(steps.Power(0.5), [100, 10_000], diameter=1.0, lipschitz_f=1.0, lipschitz_g=1.0).regret
    array([ 14.29, 149.27])
    >>> theory.bounds(steps.StronglyConvex(1.0), 100, diameter=1.0, lipschitz_f=2.0, lipschitz_g=1.0)
    Bounds(regret=np.float64(11.21), ccv1=np.float64(48.40), ccv2=np.float64(23.42))
    """
    schedule = as_schedule(steps)
    D, L_f, L_g = check_constants(diameter, lipschitz_f, lipschitz_g)
    rounds = check_rounds(T)
    n = rounds.astype(np.float64)
    if isinstance(schedule, StronglyConvex):
        total = (1.0 + np.log(n)) / schedule.m
        regret = L_f**2 / 2 * total
        path = L_f * total
    elif isinstance(schedule, Adaptive):
        c = schedule.scale * (D if schedule.D is None else schedule.D)
        regret = (D**2 / (2 * c) + c) * L_f * np.sqrt(n)
        if first_gradient is None:
            path = c * n
        else:
            first = scalar("first_gradient", first_gradient, positive=True)
            path = c * np.minimum(n, np.sqrt(n * (1.0 + np.log(np.maximum(n * (L_f / first) ** 2, 1.0)))))
    else:
        total, _, last = step_sums(schedule, rounds)
        regret = D**2 / (2 * last) + L_f**2 / 2 * total
        path = L_f * total
    ccv2 = L_g**2 * (D**2 + 2 * D * path)
    return Bounds(regret, np.sqrt(n * ccv2), ccv2)

"""The bounds of the algorithm of Yi et al. 2021."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np

from cocopt.arrays import ArrayLike, positive_int, scalar
from cocopt.steps import Schedule, as_schedule
from cocopt.theory.base import Bounds, check_constants, check_rounds, computed, step_sums
from cocopt.theory.clasp import bounds

__all__ = ["bounds_yi2021"]


@computed
def bounds_yi2021(
    steps: Schedule | Callable[[int], float],
    T: ArrayLike,
    *,
    diameter: float,
    lipschitz_f: float,
    lipschitz_g: float,
    gamma_0: float | None = None,
    row_count: int = 1,
) -> Bounds:
    """What the algorithm of Yi et al. promises for T rounds; CCV₂ through L_g D · CCV₁.

    ================ ===============================================
    Regret_T ≤       D²/(2η_T) + (L_f²/2) Σ_t η_t; or (L_f²/2m)(1 + ln T) with η_t = 1/(m t)
    CCV₁ ≤           C_T/γ_T + Σ_{t<T} C_t (1/γ_t − 1/γ_{t+1})
    ================ ===============================================

    with η_t = α_t/2, M rows, b = γ_0 L_g √M and C_t = √(M(2 L_f D t + (2 + b²) D²/α_t + b² D²/α_1)); the bound of CCV₁
    needs b ≤ √2. As derived here: the update minimises a 2-strongly convex function over K, so for x* with g(x*) ≤ 0
    and the vector v_t of the rows' violations at x_t

        γ_{t+1}⟨q_t + γ_t v_t, v_{t+1}⟩ ≤ L_f D + (‖x* − x_t‖² − ‖x* − x_{t+1}‖² − ‖x_{t+1} − x_t‖²)/α_t.

    It bounds the first term of ½‖q_{t+1}‖² − ½‖q_t‖² = γ_{t+1}⟨q_t, v_{t+1}⟩ + ½γ_{t+1}²‖v_{t+1}‖². Since ‖v_{t+1} −
    v_t‖ ≤ L_g√M‖x_{t+1} − x_t‖ and b ≤ √2, γ_tγ_{t+1}⟨v_t, v_{t+1}⟩ ≥ ½γ_tγ_{t+1}(‖v_t‖² + ‖v_{t+1}‖²) −
    ‖x_{t+1} − x_t‖²/α_t. As γ_t never decreases, summation leaves ½‖q_T‖² ≤ ½‖q_1‖² + L_f D T + D²/α_T + ½γ_T²‖v_T‖²,
    and no ‖v_t‖ exceeds L_g√M D: thus Σ_i q_{T,i} ≤ √M‖q_T‖ ≤ C_T. Last, Σ_i v_{t,i} = Σ_i (q_{t,i} − q_{t−1,i})/γ_t
    is summed by parts.

    Parameters
    ----------
    steps : Schedule or callable of t
        η_t, as in ``Yi2021(...).steps``.
    T, diameter, lipschitz_f, lipschitz_g
        As for `bounds`.
    gamma_0 : float, optional
        γ_0. Default: 1/(L_g√(2M)).
    row_count : int
        M.

    Examples
    --------
    >>> from cocopt import steps, theory
    >>> theory.bounds_yi2021(steps.Power(0.5, 0.5), 10_000, diameter=1.0, lipschitz_f=1.0, lipschitz_g=1.0).ccv1
    np.float64(39.39)
    """
    D, L_f, L_g = check_constants(diameter, lipschitz_f, lipschitz_g)
    rounds, M = check_rounds(T), positive_int("row_count", row_count)
    schedule = as_schedule(steps)
    regret = bounds(schedule, T, diameter=D, lipschitz_f=L_f, lipschitz_g=L_g).regret
    if gamma_0 is None:
        b, scale = 1.0 / sqrt(2.0), L_g * sqrt(2.0 * M)  # 1/γ_0
    else:
        scale = 1.0 / scalar("gamma_0", gamma_0, positive=True)
        b = L_g * sqrt(M) / scale
    if b > sqrt(2.0) * (1.0 + 1e-12):  # (rounding)
        return Bounds(regret)
    t = np.arange(1, int(rounds.max()) + 1)
    alpha = 2.0 * step_sums(schedule, t)[2]
    queue = np.sqrt(M * (2.0 * L_f * D * t + (2.0 + b**2) * D**2 / alpha + b**2 * D**2 / alpha[0]))
    inverse = scale * np.sqrt(np.concatenate([alpha[:1], alpha[:-1]]))  # 1/γ_t
    parts = np.concatenate([[0.0], np.cumsum(queue[:-1] * (inverse[:-1] - inverse[1:]))])
    ccv1 = (queue * inverse + parts)[rounds - 1]
    return Bounds(regret, ccv1, L_g * D * ccv1)

"""The bounds of RECOO."""

from __future__ import annotations

from typing import Literal

import numpy as np

from cocopt.arrays import ArrayLike, describe, one_of, scalar
from cocopt.errors import InvalidInput
from cocopt.theory.base import MAX_ROWS, Bounds, check_constants, check_rounds, computed

__all__ = ["bounds_recoo"]


@computed
def bounds_recoo(
    T: ArrayLike,
    *,
    diameter: float,
    lipschitz_f: float,
    lipschitz_g: float,
    strong_convexity: float | None = None,
    epsilon: float = 0.1,
    queue: Literal["after", "before"] = "after",
    scales: tuple[float, float, float] = (1.0, 1.0, 1.0),
) -> Bounds:
    """What RECOO promises for T rounds; CCV₁ through √(T · CCV₂).

    ================ ===============================================
    Regret_T ≤       (L_f²/4) Σ_t 1/α_t + D² α_T, α_t = √t; or (L_f²/2m)(1 + ln T), α_t = m t/2
    CCV₂ ≤           2 L_g² (D² + L_f D Σ_t 1/α_t) + 2 min(L_g D, L_f D + α_1 D²) R_T
    ================ ===============================================

    As derived here: the update minimises a 2α_t-strongly convex function over K, so for x* with g_t(x*) ≤ 0

        α_t‖x_{t+1} − x_t‖² + Q_t γ_t h_t ≤ L_f D + α_t(‖x* − x_t‖² − ‖x* − x_{t+1}‖²),    h_t = g_t^+(x_{t+1}).

    Divided by α_t it sums to Σ‖x_{t+1} − x_t‖² ≤ D² + L_f D Σ 1/α_t, and g_t^+(x_t) ≤ h_t + L_g‖x_{t+1} − x_t‖. Since
    Q_{t+1} = Q_t + γ_t h_t wherever it exceeds √(t+1), and γ_t h_t ≤ c_t = L_f D + D² max_{s≤t} α_s/√s, the same
    inequality gives Q_t² ≤ t + 2 L_f D t + 2 α_t D² + c_t Q_t, hence Σ_{s≤t} γ_s h_s ≤ Q_{t+1} ≤ C_{t+1} with C_t =
    c_t + √(t + 2 L_f D t + 2 α_t D²), and summation by parts Σ_t h_t ≤ R_T = C_{T+1}/γ_T + Σ_{t<T} C_{t+1}(1/γ_t −
    1/γ_{t+1}), which is O(1/ε). Every h_t is at most L_g D, and at most L_f D + α_1 D².

    With ``queue="before"`` the same inequality holds with Σ_i Q_{t,i} γ_t g_{t,i}^+(x_{t+1}) ≥ √t γ_t h_t. Divided by
    √t γ_t = t^(1+ε) it sums to Σ_t h_t ≤ R_T = L_f D Σ_t t^(−1−ε) + α_1 D², since α_t t^(−1−ε) decreases.

    Scales (a, e, g) multiply α_t, η_t = √t and γ_t: c_t is divided by e, C_t has e² t for its first t, R_T is divided
    by eg with ``queue="before"``, and h_t ≤ (L_f D + α_1 D²)/(eg). Strongly convex losses with a > 1 add
    (a − 1)(m/2) D² T to the regret, since the steps are then too short.

    Parameters
    ----------
    T, diameter, lipschitz_f, lipschitz_g
        As for `bounds`.
    strong_convexity, epsilon, queue
        As for [`cocopt.RECOO`][].
    scales : three floats
        ``alpha_scale``, ``eta_scale`` and ``gamma_scale``.

    Examples
    --------
    >>> from cocopt import theory
    >>> theory.bounds_recoo([100, 10_000], diameter=1.0, lipschitz_f=1.0, lipschitz_g=1.0).regret
    array([ 14.65, 149.64])
    """
    D, L_f, L_g = check_constants(diameter, lipschitz_f, lipschitz_g)
    a, e, g = _as_scales(scales)
    rounds = check_rounds(T, MAX_ROWS)
    t = np.arange(1, int(rounds.max()) + 2, dtype=np.float64)
    at = rounds - 1
    inverse = t ** -(0.5 + scalar("epsilon", epsilon, positive=True)) / g  # 1/γ_t
    if strong_convexity is None:
        alpha, c = a * np.sqrt(t), np.full(t.shape, (L_f * D + a * D**2) / e)
        total = np.cumsum(1.0 / alpha)[at]
        regret = L_f**2 / 4 * total + D**2 * alpha[at]
    else:
        m = scalar("strong_convexity", strong_convexity, positive=True)
        alpha, c = a * m * t / 2, (L_f * D + D**2 * a * m * np.sqrt(t) / 2) / e
        total = np.cumsum(1.0 / alpha)[at]
        regret = L_f**2 / (2 * a * m) * (1 + np.log(rounds)) + max(a - 1.0, 0.0) * m / 2 * D**2 * rounds
    if one_of("queue", queue, "after", "before") == "after":
        sizes = c + np.sqrt(e**2 * t + 2 * L_f * D * t + 2 * alpha * D**2)
        parts = np.concatenate([[0.0], np.cumsum(sizes[1:-1] * (inverse[:-2] - inverse[1:-1]))])
        after = sizes[at + 1] * inverse[at] + parts[at]
    else:
        after = (L_f * D * np.cumsum(inverse / np.sqrt(t))[at] + alpha[0] * D**2 / g) / e
    largest = min(L_g * D, (L_f * D + alpha[0] * D**2) / (e * g))
    ccv2 = 2 * L_g**2 * (D**2 + L_f * D * total) + 2 * largest * after
    return Bounds(regret, np.sqrt(rounds * ccv2), ccv2)


def _as_scales(scales: tuple[float, float, float]) -> tuple[float, ...]:
    if not isinstance(scales, tuple | list) or len(scales) != 3:
        raise InvalidInput(f"scales: expected three numbers, got {describe(scales)}")
    return tuple(scalar("scales", scale, positive=True) for scale in scales)

"""The bounds of CLASP-F."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import ArrayLike, one_of
from cocopt.errors import InvalidInput
from cocopt.steps import Adaptive, Schedule, StronglyConvex, as_schedule
from cocopt.theory.base import Bounds, check_constants, check_rounds, computed, step_sums

__all__ = ["bounds_clasp_f"]


@computed
def bounds_clasp_f(
    steps: Schedule | Callable[[int], float],
    T: ArrayLike,
    *,
    diameter: float,
    lipschitz_f: float,
    lipschitz_g: float,
    gradient_at: Literal["x", "xb"] = "x",
) -> Bounds:
    """What CLASP-F promises for T rounds; CCV₁ through √(T · CCV₂).

    ================ ======================================== ===========================================
    steps            Regret_T ≤                               CCV₂ ≤
    ================ ======================================== ===========================================
    any η_t          D²/(2η_T) + L_f² Σ_t η_t                 L_g² (D² + 2 L_f D Σ_t η_t + L_f² Σ_t η_t²)
    StronglyConvex   (L_f²/m) (1 + ln T)                      the same
    Adaptive         (D²/(2c) + 2c) L_f √T                    L_g² (D² + 2 c D T + c² T)
    ================ ======================================== ===========================================

    As derived here: with δ = v_t/‖s_t‖, the cutter gives ‖x̄ − x*‖² ≤ ‖x_t − x*‖² − δ², the gradient step ‖x_{t+1} −
    x*‖² ≤ ‖x̄ − x*‖² − 2η_t⟨∇f_t, x̄ − x*⟩ + η_t² L_f², and ‖x̄ − x_t‖ ≤ δ. The inner product is at least −L_f D,
    which sums to CCV₂, and at least f_t(x_t) − f_t(x*) − L_f δ; 2η_t L_f δ − δ² ≤ η_t² L_f² does away with δ. With
    the gradient at x̄ and 1/(m t), round 1 lacks the −δ² and adds L_f D to the regret. With adaptive steps
    η_t = c/√G_t, G_t = Σ_{s≤t} n_s² and n_t = ‖∇f_t(x_t)‖ in place of L_f, the sums are Σ η_t n_t² ≤ 2c L_f √T,
    Σ η_t n_t ≤ c T and Σ η_t² n_t² ≤ c² T; with the gradient at x̄ they are not covered.

    Parameters
    ----------
    steps, T, diameter, lipschitz_f, lipschitz_g
        As for `bounds`.
    gradient_at : "x" or "xb"
        As for [`cocopt.CLASPF`][].

    Examples
    --------
    >>> from cocopt import steps, theory
    >>> theory.bounds_clasp_f(steps.Power(0.5), 100, diameter=1.0, lipschitz_f=1.0, lipschitz_g=1.0)
    Bounds(regret=np.float64(23.59), ccv1=np.float64(65.85), ccv2=np.float64(43.37))
    """
    schedule = as_schedule(steps)
    D, L_f, L_g = check_constants(diameter, lipschitz_f, lipschitz_g)
    rounds = check_rounds(T)
    one_of("gradient_at", gradient_at, "x", "xb")
    if isinstance(schedule, Adaptive):
        return _adaptive(schedule.scale * (D if schedule.D is None else schedule.D), rounds, (D, L_f, L_g), gradient_at)
    total, squares, last = step_sums(schedule, rounds)
    if isinstance(schedule, StronglyConvex):
        regret = L_f**2 / schedule.m * (1.0 + np.log(rounds)) + (L_f * D if gradient_at == "xb" else 0.0)
    else:
        regret = D**2 / (2 * last) + L_f**2 * total
    ccv2 = L_g**2 * (D**2 + 2 * L_f * D * total + L_f**2 * squares)
    return Bounds(regret, np.sqrt(rounds * ccv2), ccv2)


def _adaptive(c: float, rounds: NDArray[np.int64], constants: tuple[float, float, float], gradient_at: str) -> Bounds:
    """The bounds with η_t = c/√Σ."""
    if gradient_at != "x":
        raise InvalidInput('gradient_at: expected "x" for a bound with adaptive steps, got "xb"')
    (D, L_f, L_g), n = constants, rounds.astype(np.float64)
    ccv2 = L_g**2 * (D**2 + 2 * D * c * n + c**2 * n)
    return Bounds((D**2 / (2 * c) + 2 * c) * L_f * np.sqrt(n), np.sqrt(n * ccv2), ccv2)

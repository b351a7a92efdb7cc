"""The bound on dynamic regret, which grows with the path of the comparator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cocopt.arrays import Array, ArrayLike, as_floats, batch_shape, require_finite, scalar
from cocopt.errors import InvalidInput
from cocopt.steps import Adaptive, Schedule, as_schedule, checked_step
from cocopt.theory.base import computed

__all__ = ["dynamic_bounds"]


@computed
def dynamic_bounds(
    steps: Schedule | Callable[[int], float] | ArrayLike,
    increments: ArrayLike,
    *,
    diameter: float,
    lipschitz_f: ArrayLike,
) -> Array:
    """What proximal methods promise against u_1, u_2, … with u_t in K ∩ {g_t ≤ 0}, after every round.

        Σ_{t≤T} f_t(x_t) − f_t(u_t) ≤ D²/(2η_T) + ½ Σ_{t≤T} η_t n_t² + D Σ_{2≤t≤T} ‖u_t − u_{t−1}‖/η_{t−1}

    with n_t = ‖∇f_t(x_t)‖ ≤ L_f. It holds for [`cocopt.CLASP`][] with ``window=1`` and for [`cocopt.RECOO`][], whose
    step is η_t = 1/(2α_t), with α_t = √t or m t/2; in terms of α_t the bound reads

        D² α_T + ¼ Σ_{t≤T} n_t²/α_t + 2D Σ_{2≤t≤T} α_{t−1} ‖u_t − u_{t−1}‖,

    and is that of COLDQ (Wang et al., AAAI 2025), which has the same inequality of the proximal step:
    ⟨∇f_t(x_t), x_t − u_t⟩ ≤ (‖x_t − u_t‖² − ‖x_{t+1} − u_t‖²)/(2η_t) + η_t n_t²/2. Sum it, and use ‖x_t − u_t‖² ≤
    ‖x_t − u_{t−1}‖² + 2D‖u_t − u_{t−1}‖. Steps 1/(m t) and m-strongly convex losses need no D²/(2η_T).
    For Adaptive steps the first two terms are at most (D²/(2c) + c) L_f √T, see `bounds`, and 1/η_{t−1} is at most
    L_f √(t − 1)/c.

    Parameters
    ----------
    steps : Schedule, callable of t, or array (..., T)
        η_t; never increasing.
    increments : array (..., T)
        ‖u_t − u_{t−1}‖, the first entry 0; see `cocopt.hindsight.DynamicHindsight.increments`.
    diameter : float
        D.
    lipschitz_f : float or array (..., T)
        L_f, or the norms n_t of the gradients of a run: the bound is then one that the run itself proves.

    Returns
    -------
    array (..., T)

    Examples
    --------
    >>> from cocopt import steps, theory
    >>> theory.dynamic_bounds(steps.Power(0.5), [0.0, 0.5, 0.0, 0.5], diameter=1.0, lipschitz_f=1.0).round(2)
    array([1.  , 2.06, 2.51, 3.76])
    """
    D, moves = scalar("diameter", diameter, nonnegative=True), _nonnegative("increments", increments)
    if moves.ndim == 0 or moves[..., 0].any():
        raise InvalidInput("increments: expected shape (..., T) with 0 as the first of each trial, got others")
    T = moves.shape[-1]
    norms = _nonnegative("lipschitz_f", lipschitz_f)
    if norms.ndim and norms.shape[-1] != T:
        raise InvalidInput(f"lipschitz_f: expected a number or shape (..., {T}), got shape {norms.shape}")
    batch_shape(("increments", moves.shape[:-1]), ("lipschitz_f", norms.shape[:-1]))
    t = np.arange(1, T + 1)
    if isinstance(steps, Adaptive):
        if norms.ndim:
            raise InvalidInput("lipschitz_f: expected a number for adaptive steps, got an array; pass the steps as one")
        c = steps.scale * (D if steps.D is None else steps.D)
        static, inverse = (D**2 / (2 * c) + c) * norms * np.sqrt(t), norms * np.sqrt(t) / c
    else:
        modulus, eta = _steps(steps, T)
        with np.errstate(divide="ignore"):
            # a step of 0, where the gradient is 0, does not count: the last other one stands for it
            inverse = np.maximum.accumulate(np.where(eta > 0.0, 1.0 / eta, 0.0), axis=-1)
        static = np.cumsum(eta * norms**2, axis=-1) / 2
        if not modulus:
            static = static + D**2 / 2 * inverse
    before = np.concatenate([np.zeros_like(inverse[..., :1]), inverse[..., :-1]], axis=-1)
    return np.asarray(static + D * np.cumsum(before * moves, axis=-1), dtype=np.float64)


def _nonnegative(name: str, value: ArrayLike) -> Array:
    array = require_finite(name, as_floats(name, value))
    if (array < 0.0).any():
        raise InvalidInput(f"{name}: expected non-negative numbers, got {array.min()}")
    return array


def _steps(steps: Any, T: int) -> tuple[float, Array]:
    """(m of the steps 1/(m t) or 0, η_1, …, η_T)."""
    if not (isinstance(steps, Schedule) or callable(steps)):
        eta = _nonnegative("steps", steps)
        if eta.ndim == 0 or eta.shape[-1] != T:
            raise InvalidInput(f"steps: expected shape (..., {T}) as that of increments, got {eta.shape}")
        if (eta > np.minimum.accumulate(np.where(eta > 0.0, eta, np.inf), axis=-1)).any():
            raise InvalidInput("steps: expected steps that never increase, got others")
        return 0.0, eta
    schedule = as_schedule(steps)
    known = schedule.steps_at(np.arange(1, T + 1))
    if known is None:
        known, previous = np.empty(T), np.inf
        for i in range(T):
            known[i] = previous = float(checked_step(schedule, i + 1, np.nan, previous))
    return schedule.modulus, known

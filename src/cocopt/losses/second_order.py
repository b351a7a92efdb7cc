"""What a loss may offer about its curvature, so that sums of many losses can be minimised by Newton's method.

Both methods below are optional. They sum over the first ``count`` entries of the loss's leading axis (rounds); a loss
without leading axes counts ``count`` times. A loss that returns None from both is treated as a black box: its value and
its subgradient are used, nothing else.

============================== ====================================================================================
`Loss.quadratic_form`          for quadratic losses: the exact coefficients of the sum
`Loss.second_order`            for others: value, gradient and Hessian of a smooth approximation of the sum, and an
                               affine minorant of the sum itself
============================== ====================================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cocopt.arrays import Array
from cocopt.tolerances import TINY

__all__ = [
    "Kink",
    "Neighborhood",
    "QuadraticForm",
    "SecondOrder",
    "absolute_residuals",
    "leading_entries",
    "merge_equal_kinks",
    "residual_entries",
]


class QuadraticForm(NamedTuple):
    """The function ½dᵀP d + ⟨q, d⟩ + r of d = x − center."""

    P: Array
    q: Array
    r: float


class Kink(NamedTuple):
    """A term ‖H x − y‖, not differentiable where H x = y."""

    H: Array
    y: Array


class Neighborhood(NamedTuple):
    """The kinks with ‖H·point − y‖ ≤ radius."""

    point: Array
    radius: float


class SecondOrder(NamedTuple):
    """A sum F of losses at a point x.

    Attributes
    ----------
    value : float
        F(x).
    minorant : float
        The value at x of an affine function with slope ``gradient`` that is at most F everywhere, terms in ``kinks``
        left out.
    smoothed : float
        The value of the smooth approximation, whose derivatives follow.
    gradient, hessian : ndarray (n,), (n, n)
    kinks : tuple of Kink
        Terms of F that the caller asked to keep exact: ``value`` contains them, the other fields do not.
    """

    value: float
    minorant: float
    smoothed: float
    gradient: Array
    hessian: Array
    kinks: tuple[Kink, ...] = ()

    def plus(self, other: SecondOrder) -> SecondOrder:
        """The sum of both."""
        return SecondOrder(
            self.value + other.value,
            self.minorant + other.minorant,
            self.smoothed + other.smoothed,
            self.gradient + other.gradient,
            self.hessian + other.hessian,
            self.kinks + other.kinks,
        )


def leading_entries(batch: tuple[int, ...], count: int, array: Array, ndim: int) -> tuple[float, Array]:
    """(weight, data) of the first ``count`` rounds: data with an axis for rounds, each entry to be counted ``weight``
    times.

    Parameters
    ----------
    batch : tuple of int
        The leading axes of the loss.
    count : int
        The number of rounds.
    array : ndarray
        One of the arrays of the loss, with its leading axes or without.
    ndim : int
        The number of axes of ``array`` without leading axes.
    """
    if not batch:
        return float(count), array[None]
    if array.ndim == ndim:  # shared by all rounds, unlike other data of the loss
        array = np.broadcast_to(array, (*batch, *array.shape))
    return 1.0, array[:count]


def merge_equal_kinks(H: Array, y: Array) -> tuple[Kink, ...]:
    """Kinks whose sum is Σ_k ‖H_k x − y_k‖; k equal terms become one that is k times as large."""
    if not len(H):
        return ()
    distinct, counts = np.unique(np.concatenate([H, y[..., None]], axis=-1), axis=0, return_counts=True)
    return tuple(Kink(k * one[:, :-1], k * one[:, -1]) for one, k in zip(distinct, counts, strict=True))


def absolute_residuals(
    rows: tuple[float, Array, Array],
    slope: Array,
    size: float,
    x: Array,
    smoothing: float,
    exact_kinks: Neighborhood | None,
) -> SecondOrder:
    """Σ_k slope_k·s_k + size·|s_k| with the residuals s_k = ⟨u_k, x⟩ − y_k.

    |s| ≥ p s if |p| ≤ 1; it is smoothed to √(s² + μ²), whose derivative is such a p.

    Parameters
    ----------
    rows : (weight, ndarray (K, n), ndarray (K,))
        How often each term counts, u and y.
    slope : ndarray (K,)
    size : float
    x, smoothing, exact_kinks
        See `cocopt.losses.Loss.second_order`.
    """
    weight, u, y = rows
    s = u @ x - y
    root = np.sqrt(s**2 + smoothing**2) + TINY
    p, curvature, smooth = s / root, (smoothing / root) ** 2 / root, root
    kinks: tuple[Kink, ...] = ()
    if exact_kinks is not None:
        near = np.abs(u @ exact_kinks.point - y) <= exact_kinks.radius
        kinks = merge_equal_kinks(size * weight * u[near][:, None, :], size * weight * y[near][:, None])
        p, curvature, smooth = np.where(near, 0.0, p), np.where(near, 0.0, curvature), np.where(near, 0.0, root)
    derivative = slope + size * p
    return SecondOrder(
        weight * float((slope * s + size * np.abs(s)).sum()),
        minorant=weight * float((derivative * s).sum()),
        smoothed=weight * float((slope * s + size * smooth).sum()),
        gradient=weight * derivative @ u,
        hessian=weight * size * (u.T * curvature) @ u,
        kinks=kinks,
    )


def residual_entries(batch: tuple[int, ...], count: int, u: Array, *numbers: Array) -> tuple[float, list[Array]]:
    """(weight, [u (K, n), further data (K,), …]) of the first ``count`` rounds, as `leading_entries`."""
    weight, features = leading_entries(batch, count, u, 1)
    others = [leading_entries(batch, count, number, 0)[1] for number in numbers]
    return weight, [np.broadcast_to(features, (len(features), u.shape[-1])), *others]

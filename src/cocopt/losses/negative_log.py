"""The logarithmic loss of portfolio selection."""

from __future__ import annotations

from typing import Any, Never, Self

import numpy as np

from cocopt.arrays import Array, ArrayLike, ignore_fp_warnings
from cocopt.errors import InvalidInput
from cocopt.losses.base import Loss, as_vector
from cocopt.losses.second_order import Neighborhood, SecondOrder, residual_entries
from cocopt.registry import register

__all__ = ["NegativeLog"]


@register
class NegativeLog(Loss):
    """f(x) = −log⟨r, x⟩, with gradient −r/⟨r, x⟩: less the logarithm of the growth of wealth (Cover 1991).

    It is defined where ⟨r, x⟩ > 0; elsewhere its value is an error. K is expected to lie in that domain, as the
    simplex does if all r_i are positive.

    Parameters
    ----------
    r : array (..., n)
        What one unit of each asset becomes in the round, or any coefficients.

    Examples
    --------
    >>> from cocopt import losses
    >>> f = losses.NegativeLog([1.5, 0.5])
    >>> f.value([0.5, 0.5]) == 0.0
    np.True_
    >>> f.gradient([0.5, 0.5])
    array([-1.5, -0.5])
    >>> f.value([0.0, 0.0])
    Traceback (most recent call last):
    ...
    cocopt.errors.InvalidInput: x: expected points with ⟨r, x⟩ > 0, the domain of losses.NegativeLog, got ⟨r, x⟩ = 0.0
    """

    __slots__ = ("batch", "dim", "r")

    data_axes = (1,)

    def __init__(self, r: ArrayLike) -> None:
        self.r = as_vector("r", r)
        self.batch: tuple[int, ...] = self.r.shape[:-1]
        self.dim: int = self.r.shape[-1]

    def value_and_gradient_unchecked(self, x: Array) -> tuple[Array, Array]:
        growth = np.vecdot(x, self.r)
        growth = np.where(growth > 0.0, growth, np.nan)  # without a warning; NaN is reported as an error
        return -np.log(growth), -self.r / growth[..., None]

    def in_domain(self, x: ArrayLike) -> np.bool_ | np.ndarray[Any, np.dtype[np.bool_]]:
        points = self.check_points(x)
        with ignore_fp_warnings():
            inside: np.bool_ | np.ndarray[Any, np.dtype[np.bool_]] = np.vecdot(points, self.r) > 0.0
        return inside

    def raise_nonfinite(self, x: Array) -> Never:
        self.require_finite_data()
        with ignore_fp_warnings():
            least = float(np.vecdot(x, self.r).min())
        if least <= 0.0 and np.isfinite(x).all():
            domain = "expected points with ⟨r, x⟩ > 0, the domain of losses.NegativeLog"
            raise InvalidInput(f"x: {domain}, got ⟨r, x⟩ = {least}")
        super().raise_nonfinite(x)

    def data_arrays(self) -> list[tuple[str, Array]]:
        return [("r", self.r)]

    def second_order(
        self, x: Array, count: int, smoothing: float, exact_kinks: Neighborhood | None = None
    ) -> SecondOrder:
        """Exact in the domain, but for growth s below ε, smoothing·‖r‖: there by the Taylor polynomial at ε.

        It is at most −log s, since its third derivative is negative, and finite outside of the domain.
        """
        weight, (r,) = residual_entries(self.batch, count, self.r)
        growth = r @ x
        at = np.maximum(growth, min(smoothing, 1.0) * np.linalg.norm(r, axis=-1))
        at = np.where(at > 0.0, at, np.nan)
        off = growth - at
        slope, curvature = -1.0 / at + off / at**2, 1.0 / at**2
        smoothed = weight * float((-np.log(at) - off / at + 0.5 * (off / at) ** 2).sum())
        inside = bool((growth > 0.0).all())
        value = -weight * float(np.log(growth).sum()) if inside else np.inf
        return SecondOrder(value, smoothed, smoothed, weight * slope @ r, weight * (r.T * curvature) @ r)

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([1.0, 0.5]), cls([[1.0, 2.0], [0.5, 3.0]])]

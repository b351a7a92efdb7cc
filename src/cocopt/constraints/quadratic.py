"""Quadratic constraints."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from cocopt import functions
from cocopt.arrays import (
    Array,
    ArrayLike,
    broadcast,
)
from cocopt.cones import Cones
from cocopt.constraints.base import (
    Constraint,
    data_batch_shape,
    finite_part,
    no_cones,
    row_norms,
    take,
)
from cocopt.registry import register
from cocopt.threads import matvec

__all__ = ["Quadratic"]


@register
class Quadratic(Constraint):
    """g(x) = ½ xᵀP x + ⟨q, x⟩ + r, with gradient P x + q.

    P must be symmetric, which is checked at construction, and positive semidefinite, which is checked by a
    factorisation in `cones`, and until then reported when it shows, that is at the first x with xᵀP x < 0.

    Parameters
    ----------
    P : array (..., n, n)
    q : array (..., n)
    r : float or array (...)
        −inf switches the constraint off.

    Examples
    --------
    >>> from cocopt import constraints
    >>> g = constraints.Quadratic([[2.0, 0.0], [0.0, 4.0]], [1.0, 0.0], -1.0)
    >>> g.value([1.0, 1.0])
    np.float64(3.0)
    >>> g.gradient([1.0, 1.0])
    array([3., 4.])
    """

    __slots__ = ("P", "batch", "diagonal", "dim", "q", "r")

    def __init__(self, P: ArrayLike, q: ArrayLike, r: ArrayLike) -> None:
        self.P, self.q, self.r, self.batch, self.diagonal = functions.as_quadratic(P, q, r)
        self.dim: int = self.P.shape[-1]

    def rows_unchecked(self, x: Array) -> Array:
        curvature = functions.curvature("constraints.Quadratic", self.P, x, matvec(self.P, x))
        value: Array = 0.5 * curvature + np.vecdot(x, self.q) + self.r
        return value[..., None]

    def jacobian_unchecked(self, x: Array) -> Array:
        gradient = matvec(self.P, x) + self.q
        return broadcast(gradient, (*data_batch_shape(self, x), self.dim))[..., None, :]

    def magnitude(self, x: Array) -> Array:
        size = row_norms(x)
        P: Array = np.linalg.norm(self.P, axis=(-2, -1))
        return ((0.5 * P * size + row_norms(self.q)) * size + np.abs(finite_part(self.r, -np.inf)))[..., None]

    @property
    def conic(self) -> bool:
        return True

    def cones(self) -> Cones:
        return self.cones_near(np.zeros(self.dim), 1.0)

    def cones_near(self, center: Array, size: float) -> Cones:
        """½‖F(x − c)‖² ≤ s with P = FᵀF, s = t − ⟨Pc + q, x − c⟩ − g(c), c the center.

        That is (s/κ + 1, s/κ − 1, √(2/κ) F(x − c)) in the second-order cone. Any κ > 0 gives the same set; rounding
        spoils it by a factor max(s/κ, κ/s).
        """
        self.require_single()
        self.require_finite_data()
        if self.r == -np.inf:
            return no_cones(self.dim)
        F = functions.square_root("constraints.Quadratic", self.P)
        if len(F) == 0:
            return Cones(self.q[None, :], -self.r.reshape(1), np.ones((1, 1)), (("nonneg", 1),))
        q, r = matvec(self.P, center) + self.q, float(self.rows_unchecked(center)[0])
        kappa = _balance(_largest_curvature(self.P), float(q @ q), abs(r), size)
        A = np.vstack([q / kappa, q / kappa, -np.sqrt(2.0 / kappa) * F])
        b = matvec(A, center)
        b[0] += 1.0 - r / kappa
        b[1] -= 1.0 + r / kappa
        E = np.zeros((len(A), 1))
        E[:2] = 1.0 / kappa
        return Cones(A, b, E, (("soc", len(A)),))

    def parameters(self) -> dict[str, Any]:
        return {"P": self.P, "q": self.q, "r": self.r}

    def trials_unchecked(self, index: Any) -> Quadratic:
        return Quadratic(*take(self.batch, index, (self.P, 2), (self.q, 1), (self.r, 0)))

    def data_arrays(self) -> list[tuple[str, Array, bool]]:
        return [("P", self.P, False), ("q", self.q, False), ("r", finite_part(self.r, -np.inf), False)]

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([[2.0, 0.5], [0.5, 1.0]], [1.0, 0.0], -1.0), cls(np.eye(2), [[1.0, 0.0], [0.0, 2.0]], -0.5)]


def _largest_curvature(P: Array) -> float:
    """The largest eigenvalue of P but for a small factor, from below, by two steps of the power method."""
    column = P[np.argmax(np.diagonal(P))]
    return float(np.linalg.norm(matvec(P, column)) / np.linalg.norm(column))


def _balance(curvature: float, slope_squared: float, constant: float, size: float) -> float:
    """A guess of the size that ½xᵀPx has where ½xᵀPx + ⟨q, x⟩ + r = 0 matters.

    That is ½λ‖x‖² for a point of that size, but no less than |r| (the boundary near 0, unless r is the rounding
    noise of a cancellation) and no more than 2‖q‖²/λ (its far end).
    """
    far = max(constant, 2.0 * slope_squared / curvature)
    near = constant if constant > 1e-14 * far else far
    most = 0.5 * curvature * size**2
    return min(max(most, near), far) or most

"""Ellipsoids."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np

from cocopt.arrays import Array, ArrayLike, as_floats, frozen, require_finite
from cocopt.cones import Cones
from cocopt.errors import InvalidInput, SolverFailure
from cocopt.registry import register
from cocopt.sets.base import ConvexSet, as_center, largest, rounding, unit_vectors
from cocopt.sparse import SparseMatrix
from cocopt.threads import matmul, one_blas_thread
from cocopt.tolerances import TINY

__all__ = ["Ellipsoid"]


@register
class Ellipsoid(ConvexSet):
    """The ellipsoid {x : (x − c)ᵀ P⁻¹ (x − c) ≤ 1}.

    With P = U diag(σ²) Uᵀ and z = Uᵀ(x − c), the projection has z-coordinates σᵢ²zᵢ/(σᵢ² + μ), where μ ≥ 0 is 0 inside
    and else the root of the secular equation Σ (σᵢzᵢ/(σᵢ² + μ))² = 1. The diameter 2·max σ is exact; the violation is
    the distance.

    Parameters
    ----------
    center : array (n,), or a number for the same entry in each coordinate
    P : array (n, n), symmetric positive definite

    Examples
    --------
    >>> from cocopt import Ellipsoid
    >>> K = Ellipsoid(0, [[4.0, 0.0], [0.0, 1.0]])
    >>> K.project([[5.0, 0.0], [0.0, -3.0], [1.0, 0.5]])
    array([[ 2. ,  0. ],
           [ 0. , -1. ],
           [ 1. ,  0.5]])
    >>> K.diameter
    4.0
    """

    def __init__(self, center: ArrayLike, P: ArrayLike) -> None:
        matrix = require_finite("P", as_floats("P", P))
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise InvalidInput(f"P: expected shape (n, n), got {matrix.shape}")
        self.P = frozen(matrix)
        self.dim = self.P.shape[0]
        self.center = as_center(center, self.dim)
        #: P = axes diag(sigma²) axesᵀ, sigma falling
        self.axes, self.sigma = _axes(self.P)

    def project_unchecked(self, point: Array) -> Array:
        nearest, removed = self._split(point)
        size = np.abs(point).max(axis=-1, keepdims=True) + np.abs(self.center).max()
        outside = np.linalg.norm(removed, axis=-1, keepdims=True) > rounding(self.dim, 1.0) * size
        return np.where(outside, self.center + matmul(nearest, self.axes.T), point)

    def violation_unchecked(self, point: Array) -> Array:
        distance: Array = np.linalg.norm(self._split(point)[1], axis=-1)
        return distance

    def _split(self, point: Array) -> tuple[Array, Array]:
        """z = σ²z/(σ² + μ) + μz/(σ² + μ), the projection and what it removes, in the frame of the axes."""
        z = matmul(point - self.center, self.axes)
        squares, weights = self.sigma**2, self.sigma * np.abs(z)
        tolerance = rounding(self.dim, 1.0)
        # Each term alone bounds μ from below. φ(μ)^(−1/2) is concave (a power mean of affine functions), so Newton's
        # method on it climbs from there to the root and never passes it.
        mu = np.maximum((weights - squares).max(axis=-1, keepdims=True), 0.0)
        for _ in range(100):
            inverse = 1.0 / (squares + mu)
            terms = (weights * inverse) ** 2
            phi = terms.sum(axis=-1, keepdims=True)
            excess = np.sqrt(phi) - 1.0
            active = excess > tolerance
            if not active.any():
                return z * (squares * inverse), z * (mu * inverse)
            slope = np.where(active, (terms * inverse).sum(axis=-1, keepdims=True), 1.0)
            mu = mu + np.where(active, excess * phi / slope, 0.0)
        raise SolverFailure("Ellipsoid: the secular equation was not solved to rounding in 100 Newton steps")

    def minimise_linear_unchecked(self, direction: Array) -> Array:
        # P d/√(dᵀP d) = U diag(σ) w/‖w‖, w = diag(σ) Uᵀ d
        along = unit_vectors(matmul(direction, self.axes) * self.sigma)
        return self.center - matmul(self.sigma * along, self.axes.T)

    def separate_unchecked(self, point: Array) -> Array:
        z = matmul(point - self.center, self.axes) / self.sigma
        gauge = np.linalg.norm(z, axis=-1, keepdims=True)
        normal = z / self.sigma
        # The plane with this normal through c + (point − c)/gauge touches K; the point is this far beyond it.
        distance = gauge * (gauge - 1.0) / np.maximum(np.linalg.norm(normal, axis=-1, keepdims=True), TINY)
        size = np.abs(point).max(axis=-1, keepdims=True) + np.abs(self.center).max()
        return np.where(distance > rounding(self.dim, 1.0) * size, matmul(normal, self.axes.T), 0.0)

    @cached_property
    def full_dimensional(self) -> bool:
        return True

    def project_direction_unchecked(self, vector: Array) -> Array:
        return vector

    @cached_property
    def inner_radius(self) -> float:
        return float(self.sigma[-1])

    @cached_property
    def outer_radius(self) -> float:
        return float(self.sigma[0])

    @property
    def diameter(self) -> float:
        return 2 * float(self.sigma[0])

    @cached_property
    def scale(self) -> float:
        return largest(self.center, self.sigma)

    @property
    def conic(self) -> bool:
        return True

    def cones(self) -> Cones:
        # ‖diag(1/σ) Uᵀ(x − c)‖ ≤ 1 times max σ: a slack in these units is at least the distance it stands for
        rows = self.axes.T * (self.sigma[0] / self.sigma)[:, None]
        A = SparseMatrix.of(np.concatenate([np.zeros((1, self.dim)), -rows]))
        b = np.concatenate([self.sigma[:1], -rows @ self.center])
        return Cones(A, b, np.zeros((self.dim + 1, 0)), (("soc", self.dim + 1),))

    def parameters(self) -> dict[str, Any]:
        return {"center": self.center, "P": self.P}

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]])]


@one_blas_thread
def _axes(P: Array) -> tuple[Array, Array]:
    """(U, σ) with P = U diag(σ²) Uᵀ, σ falling.

    From the singular values of a Cholesky factor of P (taken at unit diagonal): they err by eps·max σ, while the roots
    of computed eigenvalues would err by √eps·max σ.
    """
    deviations = np.sqrt(np.maximum(np.diag(P), 0.0))
    if not (deviations > 0).all():
        i = int(np.argmin(deviations))
        raise InvalidInput(f"P: expected a positive definite matrix, got {P[i, i]} at index ({i}, {i})")
    unit = P / deviations[:, None] / deviations
    if np.abs(unit - unit.T).max() > 1e-12:
        i, j = (int(k) for k in np.unravel_index(np.argmax(np.abs(unit - unit.T)), P.shape))
        raise InvalidInput(f"P: expected a symmetric matrix, got {P[i, j]} at ({i}, {j}) but {P[j, i]} at ({j}, {i})")
    try:
        factor = deviations[:, None] * np.linalg.cholesky((unit + unit.T) / 2)
    except np.linalg.LinAlgError:
        least = float(np.linalg.eigvalsh((P + P.T) / 2)[0])
        raise InvalidInput(f"P: expected a positive definite matrix, got smallest eigenvalue {least:.6g}") from None
    axes, sigma, _ = np.linalg.svd(factor)
    return frozen(axes), frozen(sigma)

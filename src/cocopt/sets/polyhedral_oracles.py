"""Linear minimiser, separating hyperplane, centre, radii and affine hull of a set that is known by bounds and rows."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cocopt.arrays import Array, frozen
from cocopt.errors import InvalidInput, SolverFailure
from cocopt.kernels.status import CONVERGED
from cocopt.solvers.highs import solve_lp
from cocopt.solvers.solution import UNBOUNDED, Solution
from cocopt.threads import matmul, one_blas_thread
from cocopt.tolerances import OPTIMALITY, ROUNDING, SATISFIED

if TYPE_CHECKING:
    from cocopt.sets.base import ConvexSet

__all__ = ["PolyhedralOracles"]

PARALLEL = 1e-9  # a unit normal whose part along a subspace is shorter is orthogonal to it
BINDING = 1e-7  # a multiplier that is less, relative to the largest, counts as zero


class AffineHull(NamedTuple):
    """{x : Q x = q} with orthonormal rows Q; the rows of ``basis`` span the directions orthogonal to those of Q."""

    Q: Array
    q: Array
    basis: Array

    def along(self, vectors: Array) -> Array:
        """The part of vectors (..., n) along the hull, by the smaller of the two matrices; exactly 0 if it is a point.

        A product of matrices rounds a row differently in different batches, by the last digit.
        """
        if len(self.Q) == 0:
            return vectors
        if len(self.Q) <= len(self.basis):
            return vectors - matmul(matmul(vectors, self.Q.T), self.Q)
        return matmul(matmul(vectors, self.basis.T), self.basis)

    def project(self, point: Array) -> Array:
        """The nearest point of the hull."""
        return self.along(point) + self.q @ self.Q


class PolyhedralOracles:
    """What a set K with ``polyhedral()`` offers to projection-free algorithms.

    The affine hull is found with the centre, by at most n + 1 linear programs. In the dual of the program for the
    largest inscribed ball, a positive multiplier of a ball of radius 0 belongs to an inequality that holds with
    equality on all of K.

    Parameters
    ----------
    K : ConvexSet

    Examples
    --------
    >>> from cocopt import Polyhedron
    >>> from cocopt.sets.polyhedral_oracles import PolyhedralOracles
    >>> square = PolyhedralOracles(Polyhedron([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [1.0, 0.0, 1.0, 0.0]))
    >>> square.center, round(square.inner_radius, 12)
    (array([0.5, 0.5]), 0.5)
    """

    def __init__(self, K: ConvexSet) -> None:
        form = K.polyhedral()
        if form is None:
            raise InvalidInput(f"K: expected a set with polyhedral(), got {K!r}")
        self.K, self._form = K, form
        lower, upper, A, b, equalities = form
        used = b < np.inf
        used[:equalities] = True
        norm = np.linalg.norm(A, axis=1)
        used &= norm > 0.0
        eye, high, low = np.eye(K.dim), upper < np.inf, lower > -np.inf
        equal = np.arange(b.size) < equalities
        A, b = A / np.where(used, norm, 1.0)[:, None], b / np.where(used, norm, 1.0)
        # K = {E x = e, G x ≤ h}, all rows of length 1
        fixed = lower == upper
        self._E = np.concatenate([A[equal & used], eye[fixed]])
        self._e = np.concatenate([b[equal & used], upper[fixed]])
        self._G = np.concatenate([A[~equal & used], eye[high & ~fixed], -eye[low & ~fixed]])
        self._h = np.concatenate([b[~equal & used], upper[high & ~fixed], -lower[low & ~fixed]])
        # HiGHS has absolute tolerances: the smallest number that matters becomes the unit.
        sizes = np.abs(np.concatenate([self._e, self._h]))
        sizes = sizes[sizes > 1e-12 * sizes.max(initial=0.0)]
        self._unit = float(sizes.min()) if sizes.size else 1.0

    def minimise_linear(self, direction: Array) -> Array:
        """argmin over x in K of ⟨direction, x⟩, one linear program per trial; the centre for a zero direction."""
        flat = direction.reshape(-1, self.K.dim)
        points = np.stack([self._vertex(one) if one.any() else self.center for one in flat])
        return points.reshape(direction.shape)

    def separate(self, point: Array) -> Array:
        """The normal of the most violated row, 0 where none is violated by more than rounding."""
        rows, rhs = self._all_rows
        if len(rhs) == 0:
            return np.zeros_like(point)
        excess = matmul(point, rows.T) - rhs
        noise = 4 * ROUNDING * np.sqrt(self.K.dim) * (matmul(np.abs(point), np.abs(rows).T) + np.abs(rhs))
        worst = np.where(excess > noise, excess, 0.0)
        outside = worst.max(axis=-1, keepdims=True) > 0.0
        return np.where(outside, rows[worst.argmax(axis=-1)], 0.0)

    @property
    def center(self) -> Array:
        """The centre of a largest ball in K, within the affine hull."""
        return self._inscribed[0]

    @property
    def inner_radius(self) -> float:
        """The radius of that ball; a finite one if there are balls of any size."""
        return self._inscribed[1]

    @property
    def hull(self) -> AffineHull:
        """The affine hull of K."""
        return self._inscribed[2]

    @cached_property
    def bounding_box(self) -> tuple[Array, Array]:
        """The least and the largest value of each coordinate over K, from 2n linear programs.

        All are infinite if one of them is.
        """
        ends = np.empty((2, self.K.dim))
        for i, unit in enumerate(np.eye(self.K.dim)):
            for side, sign in enumerate((1.0, -1.0)):
                solution = self._solve_lp(sign * unit)
                if solution.status != CONVERGED:  # K is not empty, so it has no bound this way
                    everything = np.full(self.K.dim, np.inf)
                    return -everything, everything
                ends[side, i] = solution.point[i]
        return frozen(ends[0]), frozen(ends[1])

    @cached_property
    def outer_radius(self) -> float:
        """The distance of the centre from the farthest corner of the bounding box; ``inf`` if K is unbounded."""
        if len(self.hull.basis) == 0:
            return 0.0
        lower, upper = self.bounding_box
        return float(np.linalg.norm(np.maximum(np.maximum(upper - self.center, self.center - lower), 0.0)))

    @cached_property
    def _all_rows(self) -> tuple[Array, Array]:
        """K as inequalities alone, {x : rows·x ≤ rhs}."""
        return np.concatenate([self._G, self._E, -self._E]), np.concatenate([self._h, self._e, -self._e])

    def _vertex(self, direction: Array) -> Array:
        """A minimiser whose optimality was checked."""
        cost = direction / np.abs(direction).max()
        solution = self._solve_lp(cost)
        if solution.status == UNBOUNDED:
            raise InvalidInput(
                f"direction: expected one in which K has a linear minimiser, got {direction}, "
                f"along which {self.K!r} is unbounded"
            )
        if solution.status == CONVERGED:
            x, nu, rhs = solution.point, solution.multipliers, np.concatenate([self._e, self._h])
            dual = cost + nu @ np.concatenate([self._E, self._G])
            size = 1.0 + float(np.abs(nu) @ np.abs(rhs)) + float(np.abs(cost) @ np.abs(x))
            gap = float(cost @ x + nu @ rhs)
            if np.abs(dual).max() <= OPTIMALITY * (1.0 + np.abs(nu).sum()) and abs(gap) <= OPTIMALITY * size:
                return x
        raise SolverFailure(f"HiGHS found no linear minimiser of {self.K!r} that passes its optimality check")

    def _solve_lp(self, cost: Array) -> Solution:
        """argmin over K of ⟨cost, x⟩; the multipliers are those of the equalities, then of the inequalities."""
        free = np.full(self.K.dim, np.inf)
        A, b = np.concatenate([self._E, self._G]), np.concatenate([self._e, self._h])
        return solve_lp(
            cost, self._form._replace(lower=-free, upper=free, A=A, b=b, equalities=len(self._e)), self._unit
        )

    @cached_property
    def _inscribed(self) -> tuple[Array, float, AffineHull]:
        """(centre, radius, affine hull)."""
        E, e = self._E, self._e
        hull = _affine_hull(E, e, self.K.dim)
        while len(hull.basis):
            length = np.linalg.norm(hull.along(self._G), axis=1)
            rows = np.flatnonzero(length > PARALLEL)  # the others are constant on the hull
            G, h, length = self._G[rows], self._h[rows], length[rows]
            solution = self._largest_ball(hull, G, h, length)
            center, nu = hull.project(solution.point[:-1]), solution.multipliers[len(hull.q) :]
            # the rows may be relaxed by rounding: recomputed at the centre
            radius = float(((h - G @ center) / length).min(initial=float(solution.point[-1])))
            if radius > SATISFIED * max(float(nu @ np.abs(h)), self._unit):
                return frozen(center), radius, hull
            implied = nu > BINDING * nu.max(initial=0.0)
            E, e = np.concatenate([E, G[implied]]), np.concatenate([e, h[implied]])
            dimension, hull = len(hull.basis), _affine_hull(E, e, self.K.dim)
            if len(hull.basis) == dimension:
                raise SolverFailure(f"HiGHS could not determine the affine hull of {self.K!r}")
        return frozen(hull.project(np.zeros(self.K.dim))), 0.0, hull

    def _largest_ball(self, hull: AffineHull, G: Array, h: Array, length: Array) -> Solution:
        """(x, r) with the largest r for which G x + r·length ≤ h, x in the hull; r = ``scale`` if there is none."""
        free = np.full(self.K.dim, np.inf)
        A = np.block([[hull.Q, np.zeros((len(hull.q), 1))], [G, length[:, None]]])
        cost, b = np.append(np.zeros(self.K.dim), -1.0), np.concatenate([hull.q, h])
        for largest in (np.inf, self.K.scale):
            lower, upper = np.append(-free, -np.inf), np.append(free, largest)
            form = self._form._replace(lower=lower, upper=upper, A=A, b=b, equalities=len(hull.q))
            solution = solve_lp(cost, form, self._unit)
            if solution.status == CONVERGED:
                return solution
        raise SolverFailure(f"HiGHS could not find the largest ball in {self.K!r}")


@one_blas_thread
def _affine_hull(E: Array, e: Array, dim: int) -> AffineHull:
    """{x : E x = e}, for rows of length 1 that may depend on one another."""
    left, sizes, axes = np.linalg.svd(E) if len(e) else (np.zeros((0, 0)), np.zeros(0), np.eye(dim))
    rank = int((sizes > PARALLEL).sum())
    return AffineHull(axes[:rank], (e @ left[:, :rank]) / sizes[:rank], axes[rank:])

"""HiGHS (through scipy), for linear programs: whether a polyhedron is empty, and its bounding box."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cocopt.arrays import Array
from cocopt.errors import SolverFailure
from cocopt.kernels.status import CONVERGED, INFEASIBLE, UNCONVERGED
from cocopt.solvers.solution import UNBOUNDED, Solution
from cocopt.tolerances import FEASIBILITY

if TYPE_CHECKING:
    from cocopt.sets.base import Polyhedral

__all__ = ["least_violation", "solve_lp"]

SAME_UNITS = 1e3  # numbers that differ by less than this factor may share a unit
TOLERANCE = 1e-10  # the least that HiGHS accepts, absolute
_STATUS = {0: CONVERGED, 2: INFEASIBLE, 3: UNBOUNDED}  # of scipy's `linprog`


def solve_lp(cost: Array, feasible: Polyhedral, unit: float = 1.0) -> Solution:
    """argmin of ⟨cost, x⟩ over the polyhedron; the multipliers are those of its rows.

    HiGHS has absolute tolerances: ``unit`` is the length that it takes for 1.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt.sets.base import Polyhedral
    >>> from cocopt.solvers.highs import solve_lp
    >>> triangle = Polyhedral(np.zeros(2), np.full(2, np.inf), np.ones((1, 2)), np.ones(1))
    >>> solve_lp(np.array([-2.0, -1.0]), triangle)
    Solution(point=array([1., 0.]), multipliers=array([2.]), status=0, cuts=0)
    """
    from scipy.optimize import linprog

    lower, upper, A, b, equalities = feasible
    bounded = b < np.inf
    bounded[:equalities] = False
    for presolve in (True, False):  # presolve fails now and then
        result = linprog(
            cost,
            A_ub=A[bounded],
            b_ub=b[bounded] / unit,
            A_eq=A[:equalities] if equalities else None,
            b_eq=b[:equalities] / unit if equalities else None,
            bounds=list(zip(lower / unit, upper / unit, strict=True)),
            method="highs",
            options={
                "presolve": presolve,
                "primal_feasibility_tolerance": TOLERANCE,
                "dual_feasibility_tolerance": TOLERANCE,
            },
        )
        if result.status in (0, 3):
            break
    status, multipliers = _STATUS.get(result.status, UNCONVERGED), np.full(b.size, np.nan)
    if result.x is None:
        return Solution(np.full(cost.size, np.nan), multipliers, status)
    if status == CONVERGED:
        multipliers = np.zeros(b.size)
        multipliers[bounded] = np.maximum(-np.asarray(result.ineqlin.marginals), 0.0)
        multipliers[:equalities] = -np.asarray(result.eqlin.marginals)
    return Solution(unit * np.asarray(result.x), multipliers, status)


def least_violation(poly: Polyhedral, rows: Any, rhs: Array, scale: Array) -> tuple[float, Array]:
    """The least t for which some x in the polyhedron has rows·x ≤ rhs + t·scale, and such an x.

    The rows may be a ``csr_array`` of SciPy's, which stays sparse.
    """
    lower, upper, A, b, equalities = poly
    finite = rhs < np.inf
    some_point = np.clip(np.zeros(lower.size), lower, upper)
    if not finite.any():
        return -np.inf, some_point
    stacked = _Stacked.of(rows)
    A = stacked.like(A)
    factor, own_factor = _normalising(rows)[finite], _normalising(A)
    rows, rhs, scale = stacked.times(factor, rows[finite]), factor * rhs[finite], factor * scale[finite]
    A, b = stacked.times(own_factor, A), own_factor * b
    # HiGHS has absolute tolerances: lengths in units of the largest, or of the median should that be much less; t in
    # units of the flattest row, or of the steepest. Of the points in the polyhedron the best is taken.
    sizes = np.abs(np.concatenate([lower, upper, b, rhs]))
    sizes = sizes[(sizes > 0.0) & (sizes < 1e20)]
    lengths = _units(float(sizes.max()), float(np.median(sizes))) if sizes.size else (1.0,)
    free, cost, own_rows = (
        np.array([np.inf]),
        np.append(np.zeros(lower.size), 1.0),
        stacked.append_column(A, np.zeros((b.size, 1))),
    )
    best, point, reported = (np.inf, np.inf), None, UNCONVERGED
    for length, unit in product(lengths, _units(float(scale.max()), float(scale.min()))):
        size = np.maximum(scale / unit, 1.0)
        relaxed = stacked.append_column(stacked.times(1.0 / size, rows), -(scale / unit / size)[:, None])
        lifted = poly._replace(  # in x and t
            lower=np.concatenate([lower, -free]),
            upper=np.concatenate([upper, free]),
            A=stacked.concatenate(own_rows[:equalities], relaxed, own_rows[equalities:]),
            b=np.concatenate([b[:equalities], rhs / size, b[equalities:]]),
        )
        solution = solve_lp(cost, lifted, length)
        if solution.status == UNBOUNDED:  # the rows can be satisfied with any margin
            return -np.inf, some_point
        reported = solution.status
        if np.isfinite(solution.point).all():
            x = np.clip(solution.point[:-1], lower, upper)
            found = _relative_violation(A, b, equalities, x), float(((rows @ x - rhs) / scale).max())
            if found < best:
                best, point = found, x
    if point is None:
        reason = "it reports an empty set" if reported == INFEASIBLE else "it did not converge"
        raise SolverFailure(f"HiGHS could not find the least violation: {reason}")
    return best[1], point


def _relative_violation(A: Any, b: Array, equalities: int, x: Array) -> float:
    """The largest violation of A x ≤ b in units of its row's terms; 0 if it is within the promise."""
    used = b < np.inf
    equal = np.flatnonzero(used) < equalities
    A, b = A[used], b[used]
    excess, terms = A @ x - b, np.abs(A) @ np.abs(x) + np.abs(b)
    excess[equal] = np.abs(excess[equal])
    worst = float(np.max(excess / np.maximum(terms, 1e-300), initial=0.0))
    return worst if worst > FEASIBILITY else 0.0


def _units(largest: float, other: float) -> tuple[float, ...]:
    """The largest, and the other one if it is much less."""
    return (largest,) if largest <= SAME_UNITS * other else (largest, other)


class _Stacked(NamedTuple):
    """How matrices are put together: as arrays, or as sparse ones."""

    sparse: bool

    @classmethod
    def of(cls, rows: Any) -> _Stacked:
        return cls(not isinstance(rows, np.ndarray))

    def like(self, A: Any) -> Any:
        """A dense matrix in this form."""
        from scipy.sparse import csr_array

        return csr_array(A) if self.sparse else A

    def times(self, factor: Array, A: Any) -> Any:
        """Each row multiplied by its factor."""
        return A.multiply(factor[:, None]).tocsr() if self.sparse else factor[:, None] * A

    def append_column(self, A: Any, column: Array) -> Any:
        """One more column."""
        from scipy.sparse import hstack

        return hstack([A, self.like(column)], format="csr") if self.sparse else np.hstack([A, column])

    def concatenate(self, *pieces: Any) -> Any:
        """One matrix above the other."""
        from scipy.sparse import vstack

        return vstack(pieces, format="csr") if self.sparse else np.concatenate(pieces)


def _normalising(rows: Any) -> Array:
    """The factor that makes the largest entry of each row 1; 1 for a row of zeros."""
    if isinstance(rows, np.ndarray):
        largest = np.abs(rows).max(axis=1, initial=0.0)
    else:
        largest = abs(rows).max(axis=1).toarray().ravel() if rows.shape[0] else np.zeros(0)
    return 1.0 / np.where(largest > 0.0, largest, 1.0)

"""The multipliers of sparse rows by Clarabel, from which Newton's method can start."""

from __future__ import annotations

import numpy as np

from cocopt.arrays import Array
from cocopt.sparse_rows import SparseRows

__all__ = ["interior_multipliers"]

TOLERANCE = 1e-12  # tighter than it may reach: nothing here is relied on
NEGLIGIBLE = 1e-7  # a multiplier below this share of the largest, or of its row's slack, counts as 0


# As many parameters as there are parts of a set and of its rows.
def interior_multipliers(
    lower: Array, upper: Array, center: Array, radius: float, rows: SparseRows, equalities: int, point: Array
) -> tuple[Array, bool]:
    """The rows' multipliers at argmin ‖x − point‖ over the box or ball, and whether Clarabel reports an empty set.

    Rows are in units of their lengths, x in units of the largest number. Multipliers that are small beside the slack of
    their row are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt.solvers.sparse_qp import interior_multipliers
    >>> from cocopt.sparse_rows import SparseRows
    >>> rows = SparseRows.of_dense(np.ones((1, 2)), np.ones(1))
    >>> nu, empty = interior_multipliers(np.zeros(2), np.ones(2), np.zeros(2), np.inf, rows, 0, np.array([1.0, 1.0]))
    >>> nu.round(6), empty
    (array([0.5]), False)
    """
    import clarabel
    from scipy import sparse

    used, norms, values, places, start, *_, rhs = rows.unit_rows
    n, equal = point.size, int((used < equalities).sum())
    unit = max(float(np.abs(point).max()), float(np.abs(rhs).max(initial=0.0)), 1e-300)
    A, eye = sparse.csr_array((values, places, start), shape=(used.size, n)), sparse.eye_array(n, format="csr")
    high, low = np.flatnonzero(upper < np.inf), np.flatnonzero(lower > -np.inf)
    pieces, sides = [A, eye[high], -eye[low]], [rhs, upper[high], -lower[low]]
    cones = [clarabel.ZeroConeT(equal)] if equal else []
    cones.append(clarabel.NonnegativeConeT(used.size - equal + high.size + low.size))
    if np.isfinite(radius):
        pieces += [sparse.csr_array((1, n)), -eye]
        sides += [np.array([radius]), -center]
        cones.append(clarabel.SecondOrderConeT(n + 1))
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
    matrix, b = sparse.vstack(pieces, format="csc"), np.concatenate(sides) / unit
    square = sparse.eye_array(n, format="csc")
    result = clarabel.DefaultSolver(square, -point / unit, matrix, b, cones, settings).solve()
    nu, slack = (np.array(part)[: used.size] for part in (result.z, result.s))
    small = np.abs(nu) <= NEGLIGIBLE * np.maximum(np.abs(slack), np.abs(nu).max(initial=0.0))
    small[:equal] = False
    multipliers = np.zeros(rows.row_count)
    multipliers[used] = np.where(small | ~np.isfinite(nu), 0.0, nu) * unit / norms
    return multipliers, "PrimalInfeasible" in str(result.status)

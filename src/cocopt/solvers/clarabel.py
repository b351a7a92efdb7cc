"""Clarabel, an interior-point solver for cone programs (Goulart & Chen 2024)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt import kernels
from cocopt.arrays import Array
from cocopt.cones import ConeList, Cones
from cocopt.sparse import SparseMatrix

__all__ = ["ATTEMPTS", "ConeSolution", "minimise"]


class ConeSolution(NamedTuple):
    """The minimiser, the dual of b − A x in cones, whether Clarabel reports infeasibility, and with a certificate.

    Nothing here is checked: the caller computes the residuals.
    """

    x: Array
    z: Array
    infeasible: bool
    certified: bool  #: then x is not near any solution


class _ByColumns(NamedTuple):
    """A sparse matrix column by column, with the attributes of SciPy's that Clarabel reads."""

    data: Array
    indices: NDArray[np.int64]
    indptr: NDArray[np.int64]
    shape: tuple[int, int]
    has_sorted_indices: bool = True
    has_canonical_format: bool = True


class _Attempt(NamedTuple):
    """Settings of one attempt."""

    tolerance: float
    fraction: float  #: the largest share of the way to the boundary
    regularisation: float
    refinements: int
    equilibrate: bool


# The first is rough and fast, enough where Newton's method follows. Shorter steps than the default 0.99 end closer to
# the optimum, with tolerances that are tighter than what can be reached; none of the others is best everywhere.
ATTEMPTS = (
    _Attempt(1e-5, 0.99, 1e-8, 10, False),
    _Attempt(1e-13, 0.9, 1e-8, 30, True),
    _Attempt(1e-11, 0.95, 1e-11, 30, True),
    _Attempt(1e-10, 0.8, 1e-9, 30, True),
)


def minimise(P: Array, q: Array, cones: Cones, attempt: int = 1) -> ConeSolution:
    """argmin of ½ xᵀ diag(P) x + qᵀx subject to b − A x in cones (E is not used); see ATTEMPTS."""
    import clarabel

    objects = _objects(cones.cones)
    n = P.size
    diagonal = _ByColumns(P, *_diagonal(n), (n, n))
    solver = clarabel.DefaultSolver(diagonal, q, _by_columns(cones.matrix), cones.b, objects, _settings(attempt))
    result = solver.solve()
    certified = result.status == clarabel.SolverStatus.PrimalInfeasible
    infeasible = certified or result.status == clarabel.SolverStatus.AlmostPrimalInfeasible
    return ConeSolution(np.array(result.x), np.array(result.z), infeasible, certified)


@lru_cache(maxsize=len(ATTEMPTS))
def _settings(attempt: int) -> Any:
    """Clarabel's settings. The caller computes residuals, and does not rely on the status."""
    import clarabel

    tolerance, fraction, regularisation, refinements, equilibrate = ATTEMPTS[attempt]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.max_iter = 200
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    settings.max_step_fraction = fraction
    settings.static_regularization_constant = regularisation
    settings.iterative_refinement_max_iter = refinements
    settings.equilibrate_enable = equilibrate
    return settings


def _by_columns(matrix: SparseMatrix) -> _ByColumns:
    values, columns, starts, width = matrix
    new_values, rows = np.empty(values.size), np.empty(values.size, dtype=np.int64)
    column_starts = np.empty(width + 1, dtype=np.int64)
    kernels.transpose(values, columns, starts, column_starts, new_values, rows)
    return _ByColumns(new_values, rows, column_starts, (matrix.rows, width))


@lru_cache(maxsize=64)
def _diagonal(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows of the entries of a diagonal matrix, and where its columns begin."""
    return np.arange(n), np.arange(n + 1)


@lru_cache(maxsize=256)
def _objects(cones: ConeList) -> list[Any]:
    """Clarabel's objects for the cones of `cocopt.cones.Cones`."""
    import clarabel

    return [_cone(clarabel, kind, size) for kind, size in cones]


def _cone(clarabel: Any, kind: str | tuple[str, float], size: int) -> Any:
    if isinstance(kind, tuple):
        return clarabel.PowerConeT(kind[1])
    if kind == "exp":
        return clarabel.ExponentialConeT()
    return {
        "zero": clarabel.ZeroConeT,
        "nonneg": clarabel.NonnegativeConeT,
        "soc": clarabel.SecondOrderConeT,
        "psd": clarabel.PSDTriangleConeT,
    }[kind](size)

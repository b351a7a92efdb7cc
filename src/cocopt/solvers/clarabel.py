"""Clarabel, an interior-point solver for cone programs (Goulart & Chen 2024)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.arrays import Array
from cocopt.cones import Cones

__all__ = ["ATTEMPTS", "ConeSolution", "minimise"]


class ConeSolution(NamedTuple):
    """The minimiser, the dual of b − A x in cones, and whether Clarabel reports infeasibility.

    Nothing here is checked: the caller computes the residuals.
    """

    x: Array
    z: Array
    infeasible: bool


# (tolerance, largest share of the way to the boundary, regularisation). Shorter steps than the default 0.99 end closer
# to the optimum; none of these is best everywhere.
ATTEMPTS = ((1e-13, 0.9, 1e-8), (1e-11, 0.95, 1e-11), (1e-10, 0.8, 1e-9))


def minimise(P: Array, q: Array, cones: Cones, attempt: int = 0) -> ConeSolution:
    """argmin of ½ xᵀ diag(P) x + qᵀx subject to b − A x in cones (E is not used); see ATTEMPTS."""
    import clarabel
    from scipy import sparse

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.max_iter = 200
    # tighter than it can reach: the caller computes the residuals, and does not rely on the status
    tolerance, fraction, regularisation = ATTEMPTS[attempt]
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    settings.max_step_fraction = fraction
    settings.static_regularization_constant = regularisation
    settings.iterative_refinement_max_iter = 30
    A = sparse.csc_matrix(cones.A)
    solver = clarabel.DefaultSolver(
        sparse.diags_array(P, format="csc"),
        q,
        A,
        cones.b,
        [_cone(clarabel, kind, size) for kind, size in cones.cones],
        settings,
    )
    result = solver.solve()
    return ConeSolution(np.array(result.x), np.array(result.z), "PrimalInfeasible" in str(result.status))


def _cone(clarabel: Any, kind: str | tuple[str, float], size: int) -> Any:
    """Clarabel's object for a cone of `cocopt.cones.Cones`."""
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

"""The small quadratic or conic program of an iteration, in the coordinates in which its Hessian is the identity.

The steps are those of the solvers: DAQP, whose result is checked there, then Clarabel and Newton's method on the active
surfaces (`polish`). `solvers.qp.solve_qp` would repeat what follows DAQP: here a program that DAQP does not solve is
most often infeasible, and the multipliers that prove it are needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cocopt.arrays import Array, ignore_fp_warnings
from cocopt.cones import Cones, stack
from cocopt.errors import SolverFailure
from cocopt.hindsight.working_set import WorkingSet
from cocopt.kernels.status import CONVERGED
from cocopt.losses.second_order import Kink
from cocopt.solvers import clarabel, daqp
from cocopt.solvers.polish import polish
from cocopt.tolerances import FEASIBILITY, TINY

__all__ = ["Optimum", "Program", "solve_program", "solve_triangular"]

NEGLIGIBLE_VIOLATION = (
    1e-12  # a refined candidate that violates by less is taken, even if the other violates less still
)


class Program(NamedTuple):
    """argmin of ½‖Lᵀz − target‖² + kink_weight · Σ ‖H x − y‖ over the working set.

    z is x, or (x, τ) if there is an epigraph variable.
    """

    L: Array
    target: Array
    kinks: tuple[Kink, ...]
    kink_weight: float


class Optimum(NamedTuple):
    """A minimiser z, with multipliers λ."""

    z: Array
    multipliers: Array  # of the rows of the working set
    cone_gradient: Array  # Aᵀλ of cones and kinks
    cone_slack: float  # λᵀ(b − A x) of cones and kinks


class _ConicProgram(NamedTuple):
    """All rows, cones and epigraphs of kinks b − A x − (columns of τ and of heights) in cones, rows first."""

    cones: Cones
    row_count: int
    of_working_set: slice  # all but the epigraphs of kinks
    tau: Array  # (m, 1), or (m, 0) without an epigraph variable
    relaxation: Array  # by which each row of a round may be relaxed to decide whether S_T is empty
    n: int

    @property
    def A(self) -> Array:
        return self.cones.A[:, : self.n]

    @property
    def heights(self) -> Array:
        """The columns of the variables that bound the norms of kinks from above."""
        return self.cones.A[:, self.n :]


def solve_triangular(matrix: Array, rhs: Array) -> Array:
    """The solution of a system whose matrix is triangular."""
    return np.asarray(np.linalg.solve(matrix, rhs), dtype=np.float64)


def solve_program(program: Program, working_set: WorkingSet) -> Optimum | None:
    """The minimiser; None if there is a proof that no point satisfies the working set."""
    if not working_set.cones and not program.kinks:
        optimum = _solve_by_active_set(program, working_set)
        if optimum is not None:
            return optimum
    return _solve_by_interior_point(program, working_set)


def _solve_by_active_set(program: Program, working_set: WorkingSet) -> Optimum | None:
    """The quadratic program as a projection; None if it does not converge or is infeasible."""
    L, target, equalities = program.L, program.target, working_set.equalities
    A = solve_triangular(L, _rows_with_tau(program, working_set).T).T
    unbounded = np.full(target.size, np.inf)
    u, multipliers, status, _ = daqp.solve(-unbounded, unbounded, A, working_set.rows.b, equalities, target)
    if status != CONVERGED:
        return None
    if equalities:  # whose multipliers may have either sign
        remainder = target - u - multipliers[equalities:] @ A[equalities:]
        multipliers[:equalities] = np.linalg.lstsq(A[:equalities].T, remainder, rcond=None)[0]
    return Optimum(solve_triangular(L.T, u), multipliers, np.zeros(working_set.K.dim), 0.0)


def _solve_by_interior_point(program: Program, working_set: WorkingSet) -> Optimum | None:
    """The conic program; relaxed by what rounding may do if S_T seems to be empty."""
    conic = _stack(program, working_set)
    L, target, kink_count = program.L, program.target, len(program.kinks)
    A = np.hstack([solve_triangular(L, np.hstack([conic.A, conic.tau]).T).T, conic.heights])
    P = np.append(np.ones(target.size), np.zeros(kink_count))
    q = np.append(-target, np.full(kink_count, program.kink_weight))
    for b in (conic.cones.b, conic.cones.b + conic.relaxation):
        cones = conic.cones.replace(A=A, b=b, aux=0)
        with ignore_fp_warnings():  # the multipliers of an infeasible program may be of any length
            found = clarabel.minimise(P, q, cones)
            if not found.infeasible:
                refined = polish(P, q, cones, found.x, found.z)
                pairs = [(found.x, found.z)] if refined is None else [(refined.x, refined.z), (found.x, found.z)]
                return _choose(program, working_set, conic, b, pairs)
            if _proves_emptiness(conic, working_set, found.z):
                return None
    raise SolverFailure("the best fixed action was not found, nor a proof that there is none")


def _stack(program: Program, working_set: WorkingSet) -> _ConicProgram:
    rows, equalities, n = working_set.rows, working_set.equalities, working_set.K.dim
    m = len(rows.b)
    signs: tuple[tuple[str, int], ...] = (("zero", equalities), ("nonneg", m - equalities))
    of_rows = Cones(rows.A, rows.b, np.zeros((m, 0)), tuple(cone for cone in signs if cone[1]))
    epigraphs = [_epigraph(kink) for kink in program.kinks]
    cones = stack([of_rows, *(own for own, _ in working_set.cones.values()), *epigraphs], n)
    size = len(cones.b)
    relaxation = np.zeros(size)
    limits = np.flatnonzero(rows.of_rounds)
    relaxation[limits] = FEASIBILITY * working_set.K.scale * np.linalg.norm(rows.A[limits], axis=1)
    tau = np.append(rows.tau, np.zeros(size - m))[:, None][:, : program.target.size - n]
    of_working_set = slice(0, size - sum(len(piece.b) for piece in epigraphs))
    return _ConicProgram(cones, m, of_working_set, tau, relaxation, n)


def _choose(
    program: Program, working_set: WorkingSet, conic: _ConicProgram, b: Array, candidates: list[tuple[Array, Array]]
) -> Optimum:
    """The first of the (primal, dual) pairs, which is refined, unless the last one violates the working set less."""
    n, m = conic.n, conic.row_count
    points = [solve_triangular(program.L.T, v[: program.target.size]) for v, _ in candidates]
    rows = _rows_with_tau(program, working_set)
    violations = [max(working_set.cone_violation(z[:n]), float(np.max(rows @ z - b[:m]))) for z in points]
    chosen = 0 if violations[0] <= max(violations[-1], NEGLIGIBLE_VIOLATION) else -1
    z, dual = points[chosen], candidates[chosen][1]
    # stationarity in the height of a kink's epigraph: its multiplier is the weight
    dual = np.where(conic.heights.any(axis=1), program.kink_weight, dual)
    dual = _project_onto_dual_cones(conic.cones, dual)
    cone_gradient = dual[m:] @ conic.A[m:]
    cone_slack = float(dual[m:] @ conic.cones.b[m:] - cone_gradient @ z[:n])
    return Optimum(z, dual[:m], cone_gradient, cone_slack)


def _proves_emptiness(conic: _ConicProgram, working_set: WorkingSet, dual: Array) -> bool:
    """Farkas' lemma: multipliers with ⟨λ, b − A x⟩ < 0 for all x in a ball that contains K prove that S_T is empty."""
    m, part, tau = conic.row_count, conic.of_working_set, working_set.rows.tau
    dual = np.append(np.where(tau < 0, 0.0, dual[:m]), dual[m:])[part]
    gradient, rhs = dual @ conic.A[part], dual @ (conic.cones.b + conic.relaxation)[part]
    center, radius = working_set.center, working_set.K.diameter
    return bool(rhs - gradient @ center + np.linalg.norm(gradient) * radius < 0)


def _rows_with_tau(program: Program, working_set: WorkingSet) -> Array:
    rows = working_set.rows
    return rows.A if program.target.size == working_set.K.dim else np.column_stack([rows.A, rows.tau])


def _epigraph(kink: Kink) -> Cones:
    """‖H x − y‖ ≤ h with one auxiliary variable h."""
    p, n = kink.H.shape
    A = np.zeros((p + 1, n + 1))
    A[0, n], A[1:, :n] = -1.0, -kink.H
    return Cones(A, np.append(0.0, -kink.y), np.zeros((p + 1, 0)), (("soc", p + 1),), 1)


def _project_onto_dual_cones(cones: Cones, dual: Array) -> Array:
    """Multipliers that rounding put outside their cones are moved back; the lower bound accounts for the change."""
    dual, start = dual.copy(), 0
    for kind, size in cones.cones:
        block = dual[start : start + size]
        if kind == "nonneg":
            block[:] = np.maximum(block, 0.0)
        elif kind == "soc":
            block[0] = max(block[0], 0.0)
            block[1:] *= min(1.0, block[0] / (float(np.linalg.norm(block[1:])) + TINY))
        start += size * (size + 1) // 2 if kind == "psd" else size
    return dual

"""The peers: the same projection by the solvers that one would call instead, one call per problem.

Everything that can be prepared is prepared outside the timed loop: arrays are contiguous, sparse matrices built,
workspaces allocated. What depends on the numbers of the round (set-up, factorisation) counts. DAQP, PIQP and Clarabel
keep their default tolerances; OSQP (1e-3 by default) and ProxQP (1e-5) get those with which they come close to the
accuracy that is asked of all contestants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import conic_forms
import daqp
import numpy as np
import scipy.sparse as sp
from conic_forms import Array, Program

Call = Callable[[], Array]


class QP(NamedTuple):
    """Problems min ½‖x − y_i‖² over lower ≤ x ≤ upper, E x = e, A_i x ≤ b_i."""

    lower: Array
    upper: Array
    E: Array
    e: Array
    A: Array  #: (trials, M, n)
    b: Array
    y: Array

    def only(self, which: Sequence[int]) -> QP:
        return self._replace(A=self.A[which], b=self.b[which], y=self.y[which])


def by_daqp(qp: QP) -> Call:
    trials, n = qp.y.shape
    M, m = qp.b.shape[1], len(qp.e)
    H, f, x = np.eye(n), np.ascontiguousarray(-qp.y), np.empty((trials, n))
    rows = np.ascontiguousarray(np.concatenate([np.broadcast_to(qp.E, (trials, m, n)), qp.A], axis=1))
    above = np.concatenate([np.broadcast_to(np.concatenate([qp.upper, qp.e]), (trials, n + m)), qp.b], axis=1)
    below = np.concatenate([qp.lower, qp.e, np.full(M, -np.inf)])
    sense = np.concatenate([np.zeros(n), np.full(m, 5), np.zeros(M)]).astype(np.int32)  # 5: an equation
    above = np.ascontiguousarray(above)

    def run() -> Array:
        for i in range(trials):
            x[i], _, flag, _ = daqp.solve(H, f[i], rows[i], above[i], below, sense)
            if flag != 1:
                raise RuntimeError(f"DAQP stopped with flag {flag}")
        return x

    return run


def by_piqp(qp: QP) -> Call:
    import piqp

    trials, n = qp.y.shape
    solver = piqp.DenseSolver()
    rows = [np.asfortranarray(A) for A in qp.A]
    f, x = -qp.y, np.empty((trials, n))
    E, e = (np.asfortranarray(qp.E), qp.e) if qp.e.size else (None, None)
    low = np.full(qp.b.shape[1], -np.inf)
    solver.setup(np.asfortranarray(np.eye(n)), f[0], E, e, rows[0], low, qp.b[0], qp.lower, qp.upper)

    def run() -> Array:
        for i in range(trials):
            solver.update(c=f[i], A=E, b=e, G=rows[i], h_u=qp.b[i])  # equations, too: else they keep an old scaling
            status = solver.solve()
            if status != piqp.PIQP_SOLVED:
                raise RuntimeError(f"PIQP stopped with {status}")
            x[i] = solver.result.x
        return x

    return run


def by_osqp(qp: QP) -> Call:
    import osqp

    trials, n = qp.y.shape
    bounded = sp.vstack([sp.identity(n), sp.csc_matrix(qp.E)])
    matrices = [sp.vstack([bounded, sp.csc_matrix(A)], format="csc") for A in qp.A]
    low = np.concatenate([qp.lower, qp.e, np.full(qp.b.shape[1], -np.inf)])
    above = [np.concatenate([qp.upper, qp.e, b]) for b in qp.b]
    f, x = -qp.y, np.empty((trials, n))
    solver = osqp.OSQP()
    settings = {"eps_abs": 1e-6, "eps_rel": 1e-6, "polishing": True, "max_iter": 20_000, "verbose": False}
    settings["warm_starting"] = False  # the problems have nothing in common
    solver.setup(sp.identity(n, format="csc"), f[0], matrices[0], low, above[0], **settings)

    def run() -> Array:
        for i in range(trials):
            solver.update(q=f[i], u=above[i], Ax=matrices[i].data)
            found = solver.solve()
            if found.info.status_val != 1:
                raise RuntimeError(f"OSQP stopped: {found.info.status}")
            x[i] = found.x
        return x

    return run


def by_proxqp(qp: QP) -> Call:
    from proxsuite import proxqp

    trials, n = qp.y.shape
    m, M = qp.e.size, qp.b.shape[1]
    f, x = -qp.y, np.empty((trials, n))
    large = 1e20  # ProxQP's infinity
    solver = proxqp.dense.QP(n, m, M, True)
    solver.settings.eps_abs = 1e-8
    solver.settings.eps_primal_inf = 1e-8  # with 1e-4, the default, it calls some feasible problems infeasible,
    solver.settings.check_duality_gap = True  # and without the gap some vertices solved that are none
    solver.settings.eps_duality_gap_abs = 1e-8
    low, inside = np.full(M, -large), (np.maximum(qp.lower, -large), np.minimum(qp.upper, large))
    E, e = (qp.E, qp.e) if m else (None, None)
    rows = np.ascontiguousarray(qp.A)
    solver.init(np.eye(n), f[0], E, e, rows[0], low, qp.b[0], *inside)

    def run() -> Array:
        for i in range(trials):
            solver.update(g=f[i], C=rows[i], u=qp.b[i], update_preconditioner=True)
            solver.solve()
            if solver.results.info.status != proxqp.QPSolverOutput.PROXQP_SOLVED:
                raise RuntimeError(f"ProxQP stopped with {solver.results.info.status}")
            x[i] = solver.results.x
        return x

    return run


def by_clarabel(programs: list[Program], exactness: tuple[float, float] | None = None) -> Call:
    x = np.empty((len(programs), programs[0].n))

    def run() -> Array:
        for i, arguments in enumerate(programs):
            x[i] = conic_forms.solve(arguments, exactness)
        return x

    return run


QP_PEERS = {"DAQP": by_daqp, "PIQP": by_piqp, "OSQP": by_osqp, "ProxQP": by_proxqp}

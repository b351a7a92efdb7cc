"""Sets and constraints as cones, written by hand for a direct call of Clarabel: no modelling layer, none of cocopt.

A form is b − A x − U u + e s in a product of cones: u are auxiliary variables, s ≥ 0 relaxes the row to g(x) ≤ s.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import clarabel
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]
CONES = {
    "zero": clarabel.ZeroConeT,
    "nonneg": clarabel.NonnegativeConeT,
    "soc": clarabel.SecondOrderConeT,
    "exp": lambda size: clarabel.ExponentialConeT(),
}


class Form(NamedTuple):
    """b − A x − U u + e s in cones."""

    A: Any
    b: Array
    cones: list[tuple[str, int]]
    U: Any = None
    e: Array | None = None


def box(lower: Array, upper: Array) -> Form:
    eye = sp.identity(lower.size)
    return Form(sp.vstack([eye, -eye]), np.concatenate([upper, -lower]), [("nonneg", 2 * lower.size)])


def simplex(n: int) -> Form:
    rows = sp.vstack([sp.csc_matrix(np.ones((1, n))), -sp.identity(n)])
    return Form(rows, np.append(1.0, np.zeros(n)), [("zero", 1), ("nonneg", n)])


def norm_ball(center: Array, radius: float) -> Form:
    """‖x − center‖ ≤ radius + s; also the set Ball."""
    n = center.size
    rows = sp.vstack([sp.csc_matrix((1, n)), -sp.identity(n)])
    return Form(rows, np.append(radius, -center), [("soc", n + 1)], e=np.eye(n + 1, 1)[:, 0])


def ellipsoid(center: Array, root: Array) -> Form:
    """‖L⁻¹(x − center)‖ ≤ 1 for P = L Lᵀ."""
    inverse = np.linalg.inv(root)
    rows = sp.vstack([sp.csc_matrix((1, center.size)), -sp.csc_matrix(inverse)])
    return Form(rows, np.append(1.0, -inverse @ center), [("soc", center.size + 1)])


def norm1(center: Array, radius: float) -> Form:
    """|x − center| ≤ u, Σ u ≤ radius + s; also the set L1Ball."""
    n, eye = center.size, sp.identity(center.size)
    rows = sp.vstack([sp.csc_matrix((1, n)), eye, -eye])
    aux = sp.vstack([sp.csc_matrix(np.ones((1, n))), -eye, -eye])
    b = np.concatenate([[radius], center, -center])
    return Form(rows, b, [("nonneg", 2 * n + 1)], aux, np.eye(2 * n + 1, 1)[:, 0])


def norm_inf(center: Array, radius: float) -> Form:
    n, eye = center.size, sp.identity(center.size)
    b = np.concatenate([center + radius, radius - center])
    return Form(sp.vstack([eye, -eye]), b, [("nonneg", 2 * n)], e=np.ones(2 * n))


def affine(A: Any, b: Array) -> Form:
    return Form(sp.csc_matrix(A), b, [("nonneg", b.size)], e=np.ones(b.size))


def quadratic(root: Array, q: Array, r: float) -> Form:
    """½‖Lᵀx‖² ≤ t with t = s − ⟨q, x⟩ − r, as ‖(2 Lᵀx, 2t − 1)‖ ≤ 2t + 1."""
    n = q.size
    tall = sp.vstack([sp.csc_matrix(2.0 * q), -2.0 * sp.csc_matrix(root.T), sp.csc_matrix(2.0 * q)])
    b = np.concatenate([[1.0 - 2.0 * r], np.zeros(n), [-1.0 - 2.0 * r]])
    e = np.concatenate([[2.0], np.zeros(n), [2.0]])
    return Form(tall, b, [("soc", n + 2)], e=e)


def second_order(A: Array, b: Array, c: Array, d: float) -> Form:
    """‖A x + b‖ ≤ ⟨c, x⟩ + d + s."""
    rows = sp.vstack([-sp.csc_matrix(c), -sp.csc_matrix(A)])
    return Form(rows, np.append(d, b), [("soc", b.size + 1)], e=np.eye(b.size + 1, 1)[:, 0])


def cvar(scenarios: Array, level: float, limit: float) -> Form:
    """η + Σ v_j / k ≤ limit + s, v_j ≥ −⟨s_j, x⟩ − η, v ≥ 0, with u = (η, v)."""
    N, n = scenarios.shape
    k = (1.0 - level) * N
    eye = sp.identity(N)
    rows = sp.vstack([sp.csc_matrix((1, n)), -sp.csc_matrix(scenarios), sp.csc_matrix((N, n))])
    first = sp.csc_matrix(np.append(1.0, np.full(N, 1.0 / k)))
    aux = sp.vstack(
        [first, sp.hstack([sp.csc_matrix(-np.ones((N, 1))), -eye]), sp.hstack([sp.csc_matrix((N, 1)), -eye])]
    )
    b = np.append(limit, np.zeros(2 * N))
    return Form(rows, b, [("nonneg", 2 * N + 1)], aux, np.eye(2 * N + 1, 1)[:, 0])


def log_sum_exp(A: Array, b: Array) -> Form:
    """exp(⟨a_i, x⟩ − b_i) ≤ u_i and Σ u_i ≤ 1, each an exponential cone {(p, 1, u) : exp(p) ≤ u}; no relaxation."""
    M, n = A.shape
    rows, aux, rhs = sp.lil_matrix((3 * M + 1, n)), sp.lil_matrix((3 * M + 1, M)), np.zeros(3 * M + 1)
    aux[0, :], rhs[0] = 1.0, 1.0
    for i in range(M):
        rows[1 + 3 * i] = -A[i]
        rhs[1 + 3 * i : 3 + 3 * i] = -b[i], 1.0
        aux[3 + 3 * i, i] = -1.0
    return Form(rows.tocsc(), rhs, [("nonneg", 1), *[("exp", 3)] * M], aux.tocsc())


def blocks(forms: list[Form]) -> Form:
    """The product of forms, each for its own coordinates."""
    A = sp.block_diag([form.A for form in forms])
    return Form(A, np.concatenate([form.b for form in forms]), [cone for form in forms for cone in form.cones])


class Program(NamedTuple):
    """The arguments of Clarabel: min ½ zᵀPz + ⟨q, z⟩ over b − A z in cones, and how many entries of z are x."""

    P: Any
    q: Array
    A: Any
    b: Array
    cones: list[Any]
    n: int


def program(forms: list[Form], y: Array, weight: float | None = None) -> Program:
    """Half the squared distance from y; with a weight, the forms that can be relaxed are, each at that cost."""
    n, relaxed = y.size, [form for form in forms[1:] if form.e is not None] if weight is not None else []
    aux = [0 if form.U is None else form.U.shape[1] for form in forms]
    total = n + sum(aux) + len(relaxed)
    parts, start, slack = [], n, total - len(relaxed)
    for form, extra in zip(forms, aux, strict=True):
        m = form.b.size
        columns = [form.A, sp.csc_matrix((m, start - n))]
        columns += [form.U] if extra else []
        columns.append(sp.csc_matrix((m, total - start - extra)))
        part = sp.hstack(columns, format="lil")
        if any(form is other for other in relaxed):
            assert form.e is not None
            part[:, slack] = -form.e[:, None]
            slack += 1
        parts.append(part)
        start += extra
    A = sp.vstack(parts, format="csc")
    b = np.concatenate([form.b for form in forms])
    cones = [CONES[kind](size) for form in forms for kind, size in form.cones]
    q = np.concatenate([-y, np.zeros(total - n)])
    if relaxed:
        assert weight is not None
        q[-len(relaxed) :] = weight
        A = sp.vstack([A, -sp.eye_array(len(relaxed), total, k=total - len(relaxed))], format="csc")
        b = np.concatenate([b, np.zeros(len(relaxed))])
        cones.append(clarabel.NonnegativeConeT(len(relaxed)))
    P = sp.diags_array(np.append(np.ones(n), np.zeros(total - n))).tocsc()
    A.eliminate_zeros()
    A.sort_indices()
    return Program(sp.csc_matrix(P), q, sp.csc_matrix(A), b, cones, n)


def solve(arguments: Program, exactness: tuple[float, float] | None = None) -> Array:
    """One call with Clarabel's own settings; set-up counts, since the numbers are those of the round.

    "Almost solved" will do: whether the point is good enough is found by comparison. ``exactness`` is another tolerance
    and the largest share of the way to the boundary that a step may take; shorter ones end closer to the optimum.
    """
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    accepted = [clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved]
    if exactness is not None:
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = exactness[0]
        settings.max_step_fraction = exactness[1]
        settings.iterative_refinement_max_iter = 30
        accepted += [clarabel.SolverStatus.InsufficientProgress, clarabel.SolverStatus.MaxIterations]
    solution = clarabel.DefaultSolver(*arguments[:5], settings).solve()
    if solution.status not in accepted:
        raise RuntimeError(f"Clarabel stopped with {solution.status}")
    return np.array(solution.x)[: arguments.n]

"""Random problems of every cell of the table: a set K, constraints of all trials, targets, and the same for the peers.

Targets are y ~ U(−1, 2)^n. Affine rows are those of the paper's regression, A ~ U(0, 2) and b ~ U(0, 1) above a common
point of K; crowded ones have directions of all kinds close to a point inside K, so that nearly as many rows bind as
there are dimensions. A curved row is satisfied at a point c of K and violated at P_K(y): by itself it is always active.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import conic_forms
import numpy as np
import scipy.sparse as sp
from conic_forms import Array, Form, Program
from peers import QP

from cocopt import Ball, Box, Ellipsoid, L1Ball, Polyhedron, Product, Simplex, constraints

SINGLES = 8  # problems of a cell of batch 1, one call each
SCENARIOS, LEVEL, STACKED, TERMS = 50, 0.9, 8, 8
WEIGHT = 0.2  # of the hinge prox: it binds in some problems and not in others


class Row(NamedTuple):
    """A constraint of every trial: its class, its arguments with a leading axis, and its conic form for one trial."""

    kind: Any
    arguments: dict[str, Any]
    form: Callable[[int], Form]

    def maker(self, index: Any) -> Callable[[], Any]:
        """What makes the constraint of some trials; their arguments are prepared."""
        chosen = {key: part[index] if isinstance(part, np.ndarray) else part for key, part in self.arguments.items()}
        return partial(self.kind, **chosen)


class Problems(NamedTuple):
    """The problems of a cell: project y_i onto K and the rows of trial i; with a weight, their hinge prox."""

    K: Any
    set_form: Form
    rows: list[Row]
    y: Array
    weight: float | None = None
    qp: QP | None = None
    black_box: Callable[[int], Any] | None = None  #: the constraint of one trial, in place of the rows

    def maker(self, index: Any) -> Callable[[], Any]:
        """What makes the constraint of some trials, and does nothing else; the index is that of an array."""
        if self.black_box is not None:
            return partial(self.black_box, index)
        makers = [row.maker(index) for row in self.rows]
        return makers[0] if len(makers) == 1 else lambda: constraints.Stack([make() for make in makers])

    def build(self, index: Any) -> Any:
        """The constraint of one trial, or of several."""
        return self.maker(index)()

    def program(self, i: int) -> Program:
        """What Clarabel is called with, for one trial."""
        return conic_forms.program([self.set_form, *(row.form(i) for row in self.rows)], self.y[i], self.weight)


class Setting(NamedTuple):
    """A set, its conic form, a common point of its affine rows, how to draw points of it, and its parts of a QP."""

    K: Any
    form: Form
    common: Array
    inside: Callable[[np.random.Generator, int], Array]
    polyhedral: tuple[Array, ...] | None = None  #: lower, upper, E, e, rows, right-hand sides


def setting(name: str, n: int) -> Setting:
    """The sets of the table by their names."""
    rng, none, free = np.random.default_rng(1), np.zeros((0, n)), np.full(n, np.inf)
    zero, one, empty = np.zeros(n), np.ones(n), np.zeros(0)

    def uniform(rng: np.random.Generator, count: int) -> Array:
        return rng.uniform(size=(count, n))

    def around_zero(rng: np.random.Generator, count: int) -> Array:
        points = rng.normal(size=(count, n))
        return 0.5 * points / np.linalg.norm(points, axis=-1, keepdims=True)

    if name == "box":
        bounds = (zero, one, none, empty, none, empty)
        return Setting(Box(0.0, 1.0, dim=n), conic_forms.box(zero, one), zero, uniform, bounds)
    if name == "simplex":
        parts = (zero, free, np.ones((1, n)), np.ones(1), none, empty)
        spread_out = np.full(n, 1.0 / n)
        draw = lambda rng, count: rng.dirichlet(np.full(n, 5.0), count)  # noqa: E731
        return Setting(Simplex(n), conic_forms.simplex(n), spread_out, draw, parts)
    if name == "ball":
        return Setting(Ball(0.0, 1.0, dim=n), conic_forms.norm_ball(zero, 1.0), zero, around_zero)
    if name == "l1ball":
        draw = lambda rng, count: around_zero(rng, count) / np.sqrt(n)  # noqa: E731
        return Setting(L1Ball(0.0, 1.0, dim=n), conic_forms.norm1(zero, 1.0), zero, draw)
    if name == "ellipsoid":
        root = np.tril(0.3 * rng.normal(size=(n, n)) / np.sqrt(n), -1) + np.diag(rng.uniform(0.5, 1.5, n))
        shrink = 0.9 / np.linalg.norm(np.linalg.inv(root), 2)
        draw = lambda rng, count: shrink * around_zero(rng, count)  # noqa: E731
        return Setting(Ellipsoid(zero, root @ root.T), conic_forms.ellipsoid(zero, root), zero, draw)
    if name == "polyhedron":
        return _polyhedron(rng, n)
    return _product(name, n)


def _polyhedron(rng: np.random.Generator, n: int) -> Setting:
    """The unit box as rows with one entry, and five rows that touch the corners of [1/4, 3/4]^n."""
    rows = rng.normal(size=(5, n))
    rhs = 0.5 * rows.sum(axis=1) + 0.25 * np.abs(rows).sum(axis=1)
    zero, one, eye = np.zeros(n), np.ones(n), np.eye(n)
    K = Polyhedron(np.concatenate([eye, -eye, rows]), np.concatenate([one, zero, rhs]))
    bounds = conic_forms.box(zero, one)
    form = Form(sp.vstack([bounds.A, sp.csc_matrix(rows)]), np.append(bounds.b, rhs), [("nonneg", 2 * n + 5)])
    draw = lambda rng, count: rng.uniform(0.25, 0.75, (count, n))  # noqa: E731
    return Setting(K, form, np.full(n, 0.25), draw, (zero, one, np.zeros((0, n)), np.zeros(0), rows, rhs))


def _product(name: str, n: int) -> Setting:
    """Half of the coordinates in a box, the others in a simplex (n = 2: a box) or in a ball."""
    half = n // 2
    other = "ball" if name == "product with ball" else ("simplex" if n > 2 else "box")
    one, two = setting("box", half), setting(other, n - half)
    parts = None
    if one.polyhedral is not None and two.polyhedral is not None:
        lower, upper, e = (np.concatenate([one.polyhedral[k], two.polyhedral[k]]) for k in (0, 1, 3))
        E = np.concatenate([np.zeros((len(e), half)), two.polyhedral[2]], axis=1)
        parts = (lower, upper, E, e, np.zeros((0, n)), np.zeros(0))
    return Setting(
        Product([one.K, two.K]),
        conic_forms.blocks([one.form, two.form]),
        np.concatenate([one.common, two.common]),
        lambda rng, count: np.concatenate([one.inside(rng, count), two.inside(rng, count)], axis=1),
        parts,
    )


def affine(name: str, n: int, rows: int, trials: int, crowded: bool = False) -> Problems:
    """K and affine rows, own ones in each trial."""
    place, rng = setting(name, n), np.random.default_rng(0)
    y = rng.uniform(-1, 2, (trials, n))
    if crowded:
        A = rng.normal(size=(trials, rows, n))
        b = np.matvec(A, place.inside(rng, trials)) + 0.02 * rng.uniform(size=(trials, rows))
    else:
        A, share = rng.uniform(0, 2, (trials, rows, n)), rng.uniform(size=(trials, rows))
        b = A @ place.common + share
        if name in ("simplex", "product"):  # a smaller set: the rows come closer
            b = A @ place.common + 0.1 * share
        if name == "simplex" and rows == 1:
            least = A.min(axis=-1)
            b = least + share * (np.matvec(A, place.K.project(y)) - least)
    qp = None
    if place.polyhedral is not None:
        lower, upper, E, e, own, rhs = place.polyhedral
        full = np.concatenate([np.broadcast_to(own, (trials, *own.shape)), A], axis=1)
        qp = QP(lower, upper, E, e, full, np.concatenate([np.broadcast_to(rhs, (trials, rhs.size)), b], axis=1), y)
    row = Row(constraints.Affine, {"A": A, "b": b}, lambda i: conic_forms.affine(A[i], b[i]))
    return Problems(place.K, place.form, [row], y, qp=qp)


Draw = Callable[[np.random.Generator, Array, Array], Row]  # (generator, c in K, P_K(y)) → a row


def _share(rng: np.random.Generator, c: Array) -> Array:
    return rng.uniform(0.4, 0.8, len(c))


def norm_ball(rng: np.random.Generator, c: Array, z: Array) -> Row:
    radius = _share(rng, c) * np.linalg.norm(z - c, axis=-1)
    form = lambda i: conic_forms.norm_ball(c[i], radius[i])  # noqa: E731
    return Row(constraints.NormBall, {"center": c, "radius": radius}, form)


def norm1(rng: np.random.Generator, c: Array, z: Array) -> Row:
    radius = _share(rng, c) * np.abs(z - c).sum(axis=-1)
    return Row(constraints.Norm1, {"center": c, "radius": radius}, lambda i: conic_forms.norm1(c[i], radius[i]))


def norm_inf(rng: np.random.Generator, c: Array, z: Array) -> Row:
    radius = _share(rng, c) * np.abs(z - c).max(axis=-1)
    return Row(constraints.NormInf, {"center": c, "radius": radius}, lambda i: conic_forms.norm_inf(c[i], radius[i]))


def _quadratic(rng: np.random.Generator, c: Array, z: Array, root: Array) -> Row:
    """½(x − c)ᵀP(x − c) ≤ its value at P_K(y), times a share."""
    P = root @ root.swapaxes(-1, -2)
    P = (P + P.swapaxes(-1, -2)) / 2
    moved = np.vecmat(z - c, root)
    limit = 0.5 * _share(rng, c) ** 2 * (moved**2).sum(axis=-1)
    q = -np.matvec(P, c)
    r = -0.5 * np.vecdot(q, c) - limit
    return Row(constraints.Quadratic, {"P": P, "q": q, "r": r}, lambda i: conic_forms.quadratic(root[i], q[i], r[i]))


def quadratic(rng: np.random.Generator, c: Array, z: Array) -> Row:
    n = c.shape[-1]
    return _quadratic(rng, c, z, rng.normal(size=(len(c), n, n)) / np.sqrt(n) + 0.3 * np.eye(n))


def diagonal(rng: np.random.Generator, c: Array, z: Array) -> Row:
    return _quadratic(rng, c, z, np.sqrt(rng.uniform(0.5, 2.0, c.shape))[..., None] * np.eye(c.shape[-1]))


def second_order(rng: np.random.Generator, c: Array, z: Array) -> Row:
    trials, n = c.shape
    A = rng.normal(size=(trials, n, n)) / np.sqrt(n) + 0.3 * np.eye(n)
    b, slope = -np.matvec(A, c), 0.1 * rng.normal(size=(trials, n)) / np.sqrt(n)
    low, high = -np.vecdot(slope, c), np.linalg.norm(np.matvec(A, z - c), axis=-1) - np.vecdot(slope, z)
    d = low + _share(rng, c) * (high - low)
    arguments = {"A": A, "b": b, "c": slope, "d": d}
    return Row(constraints.SecondOrder, arguments, lambda i: conic_forms.second_order(A[i], b[i], slope[i], d[i]))


def cvar(rng: np.random.Generator, c: Array, z: Array) -> Row:
    """Between the values at c and at P_K(y); where that at c is the larger one, the row is not active."""
    S = 0.05 + 0.2 * rng.normal(size=(len(c), SCENARIOS, c.shape[-1]))
    at_c, at_z = _cvar(S, c), _cvar(S, z)
    limit = at_c + _share(rng, c) * np.abs(at_z - at_c)
    arguments = {"scenarios": S, "level": LEVEL, "limit": limit}
    return Row(constraints.CVaR, arguments, lambda i: conic_forms.cvar(S[i], LEVEL, limit[i]))


def _cvar(S: Array, x: Array) -> Array:
    """The mean of the largest 1 − LEVEL of the losses −Sx."""
    worst: Array = np.sort(-np.matvec(S, x), axis=-1)[..., -round((1 - LEVEL) * S.shape[-2]) :]
    return worst.mean(axis=-1)


def few_rows(rng: np.random.Generator, c: Array, z: Array) -> Row:
    """Affine rows of which about half are violated at P_K(y)."""
    A = rng.normal(size=(len(c), STACKED, c.shape[-1]))
    b = np.matvec(A, c) + 0.3 * np.abs(np.matvec(A, z - c))
    return Row(constraints.Affine, {"A": A, "b": b}, lambda i: conic_forms.affine(A[i], b[i]))


DRAWS: dict[str, list[Draw]] = {
    "NormBall": [norm_ball],
    "diagonal Quadratic": [diagonal],
    "Quadratic": [quadratic],
    "SecondOrder": [second_order],
    "Norm1": [norm1],
    "NormInf": [norm_inf],
    "NormBall + 8 rows": [norm_ball, few_rows],
    "Quadratic + 8 rows": [quadratic, few_rows],
    "SecondOrder + 8 rows": [second_order, few_rows],
    "diagonal Quadratic + 8 rows": [diagonal, few_rows],
    "3 curved rows": [norm_ball, quadratic, second_order],
    "Quadratic + Norm1": [quadratic, norm1],
    "Quadratic + Norm1 + CVaR": [quadratic, norm1, cvar],
}


def curved(name: str, kind: str, n: int, trials: int, weight: float | None = None) -> Problems:
    """K and a constraint that is not affine, own numbers in each trial."""
    if kind in ("CVaR", "LogSumExp"):
        return _scenarios(name, kind, n, trials)
    place, rng = setting(name, n), np.random.default_rng(0)
    y = rng.uniform(-1, 2, (trials, n))
    c, z = place.inside(rng, trials), place.K.project(y)
    rows = [draw(rng, c, z) for draw in DRAWS[kind]]
    return Problems(place.K, place.form, rows, y, weight)


def _scenarios(name: str, kind: str, n: int, trials: int) -> Problems:
    """Of 16 targets per trial the one whose projection has the largest value; the least value is that at c."""
    place, rng = setting(name, n), np.random.default_rng(0)
    y = rng.uniform(-1, 2, (trials, 16, n))
    z = place.K.project(y)
    if kind == "CVaR":
        data = 0.05 + 0.2 * rng.normal(size=(trials, SCENARIOS, n))
        values = _cvar(data[:, None], z)
    else:
        data = rng.normal(size=(trials, TERMS, n))
        values = np.log(np.exp(np.matvec(data[:, None], z)).sum(axis=-1))
    level = 0.5 * (values.max(axis=-1) + values.min(axis=-1))
    y = y[np.arange(trials), values.argmax(axis=-1)]
    if kind == "CVaR":
        arguments = {"scenarios": data, "level": LEVEL, "limit": level}
        row = Row(constraints.CVaR, arguments, lambda i: conic_forms.cvar(data[i], LEVEL, level[i]))
    else:
        b = np.repeat(level[:, None], TERMS, axis=1)
        row = Row(constraints.LogSumExp, {"A": data, "b": b}, lambda i: conic_forms.log_sum_exp(data[i], b[i]))
    return Problems(place.K, place.form, [row], y)


def sparse(n: int, rows: int, density: float, trials: int) -> Problems:
    """A box and sparse rows, one matrix for all trials."""
    place, rng = setting("box", n), np.random.default_rng(0)
    A = sp.random_array(
        (rows, n), density=density, rng=rng, format="csr", data_sampler=lambda size: rng.uniform(0, 2, size)
    )
    b, y = rng.uniform(size=(trials, rows)), rng.uniform(-1, 2, (trials, n))
    row = Row(constraints.Affine, {"A": A, "b": b}, lambda i: conic_forms.affine(A, b[i]))
    return Problems(place.K, place.form, [row], y)

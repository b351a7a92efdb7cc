"""Constraints read off their conic form: which of our classes a row is, and its value, without a solver.

A modelling language writes g_i(x) ≤ t_i as one row ⟨a, x⟩ + ⟨c, u⟩ − t_i ≤ b with c ≥ 0, and bounds each auxiliary
variable from below by a cone: u ≥ f(x). So g_i(x) = ⟨a, x⟩ − b + Σ c_k f_k(x). Read here are f that are the largest of
affine functions, a norm, or the square of one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cocopt.arrays import Array
from cocopt.cones import Cones
from cocopt.constraints.affine import Affine
from cocopt.constraints.base import Constraint
from cocopt.constraints.norm1 import Norm1
from cocopt.constraints.norm_ball import NormBall
from cocopt.constraints.norm_inf import NormInf
from cocopt.constraints.quadratic import Quadratic
from cocopt.constraints.second_order import SecondOrder

__all__ = ["Row", "Term", "constraint_of", "read_rows"]


class Term(NamedTuple):
    """f(x) = max_k (F x + f)_k, ‖F x + f‖ or ‖F x + f‖², each times a factor, plus ⟨slope, x⟩ + constant."""

    kind: str  #: "max", "norm" or "square"
    F: Array
    f: Array
    factor: float = 1.0
    slope: Array | float = 0.0
    constant: float = 0.0

    def value(self, x: Array) -> Array:
        """At points (..., n)."""
        inner = x @ self.F.T + self.f
        if self.kind == "max":
            of_inner = inner.max(axis=-1)
        else:
            square = np.vecdot(inner, inner)
            of_inner = square if self.kind == "square" else np.sqrt(square)
        value: Array = self.factor * of_inner + np.vecdot(x, np.broadcast_to(self.slope, x.shape)) + self.constant
        return value

    def gradient(self, x: Array) -> Array:
        """A subgradient at points (..., n)."""
        inner = x @ self.F.T + self.f
        if self.kind == "max":
            chosen = self.F[inner.argmax(axis=-1)]
        elif self.kind == "square":
            chosen = 2.0 * inner @ self.F
        else:
            length = np.sqrt(np.vecdot(inner, inner))[..., None]
            chosen = np.divide(inner, length, out=np.zeros_like(inner), where=length > 0.0) @ self.F
        gradient: Array = self.factor * chosen + self.slope
        return gradient

    def magnitude(self, x: Array) -> Array:
        """The size of its terms."""
        size = np.linalg.norm(x, axis=-1)
        inner = np.linalg.norm(self.F) * size + np.linalg.norm(self.f)
        own = inner**2 if self.kind == "square" else inner
        magnitude: Array = abs(self.factor) * own + np.linalg.norm(self.slope) * size + abs(self.constant)
        return magnitude


class Row(NamedTuple):
    """g(x) = ⟨a, x⟩ − b + Σ c_k f_k(x)."""

    a: Array
    b: float
    terms: tuple[tuple[float, Term], ...]


def read_rows(cones: Cones) -> list[Row] | None:
    """The rows of a conic form; None if there is one that is not written as above."""
    form = _Form(cones)
    if not form.readable:
        return None
    n, rows = form.n, []
    for i in range(cones.E.shape[1]):
        at = int(form.relaxed_at[i])
        unit = float(cones.E[at, i])
        terms = []
        for k in np.flatnonzero(cones.A[at, n:]).tolist():
            weight, term = float(cones.A[at, n + k]) / unit, form.term(k)
            if weight < 0.0 or term is None:
                return None
            terms.append((weight, term))
        rows.append(Row(cones.A[at, :n] / unit, float(cones.b[at]) / unit, tuple(terms)))
    return rows


class _Form:
    """A conic form, and where its relaxations and auxiliary variables are."""

    def __init__(self, cones: Cones) -> None:
        self.cones, self.n = cones, cones.A.shape[1] - cones.aux
        self.linear, self.blocks = np.zeros(cones.b.size, dtype=bool), []
        relaxes, uses = cones.E != 0.0, cones.A[:, self.n :] != 0.0
        self.relaxed_at = relaxes.argmax(axis=0)
        at, known = 0, True
        for kind, size in cones.cones:
            self.linear[at : at + size] = kind == "nonneg"
            self.blocks += [slice(at, at + size)] if kind == "soc" else []
            known &= kind in ("nonneg", "soc")
            at += size
        #: whether each relaxation is of one inequality
        self.readable = bool(
            known
            and (relaxes.sum(axis=0) == 1).all()
            and (relaxes.sum(axis=1) <= 1).all()
            and self.linear[self.relaxed_at].all()
            and (cones.E >= 0.0).all()
        )
        defines = uses & ~relaxes.any(axis=1)[:, None]
        self.alone = uses.sum(axis=1) <= 1  #: rows with no more than one auxiliary variable
        columns, rows = np.nonzero(defines.T)
        starts = np.searchsorted(columns, np.arange(cones.aux + 1))
        self.rows_of = [rows[starts[k] : starts[k + 1]] for k in range(cones.aux)]  #: that bound each of them
        self._terms: dict[int, Term | None] = {}

    def term(self, k: int) -> Term | None:
        """The lower bound f(x) of the auxiliary variable number k; None if its cones are of another form."""
        if k not in self._terms:
            self._terms[k] = self._read_term(k)
        return self._terms[k]

    def _read_term(self, k: int) -> Term | None:
        cones, n, rows = self.cones, self.n, self.rows_of[k]
        column, A, b = cones.A[:, n + k], cones.A[:, :n], cones.b
        if not rows.size or not self.alone[rows].all():
            return None
        if self.linear[rows].all():  # column·u ≤ b − A x, with a negative column
            if (column[rows] > 0.0).any():
                return None
            return Term("max", -A[rows] / column[rows, None], b[rows] / column[rows])
        block = next((block for block in self.blocks if block.start == rows[0]), None)
        if block is None or rows[-1] >= block.stop or column[block.start] >= 0.0:
            return None
        top, gamma = block.start, -float(column[block.start])
        tail, rest = slice(top + 1, block.stop), slice(top + 2, block.stop)
        if rows.size == 1 and not cones.A[tail, n:].any():  # ‖b − A x‖ ≤ b₀ − ⟨a₀, x⟩ + γ u
            return Term("norm", -A[tail], b[tail], 1.0 / gamma, A[top] / gamma, -float(b[top]) / gamma)
        if rows.size != 2 or rows[1] != top + 1 or abs(column[top + 1]) != gamma:
            return None
        # ‖(b₁ − γ u, b − A x)‖ ≤ b₀ + γ u, that is 2 γ u (b₀ + b₁) ≥ ‖b − A x‖² − b₀² + b₁²; or with −b₁ + γ u
        first, second = float(b[top]), float(b[top + 1] * np.sign(column[top + 1]))
        if first + second <= 0.0 or A[top : top + 2].any() or cones.A[rest, n:].any():
            return None
        return Term("square", -A[rest], b[rest], 0.5 / (gamma * (first + second)), 0.0, 0.5 * (second - first) / gamma)


def constraint_of(row: Row) -> Constraint | None:
    """The same row as a constraint of ours; None if there is none."""
    terms = [(weight, term) for weight, term in row.terms if weight > 0.0]
    if not terms:
        return Affine(row.a[None], [row.b])
    kinds = {term.kind for _, term in terms}
    if kinds == {"square"}:
        return _quadratic(row, terms)
    if kinds == {"norm"} and len(terms) == 1:
        return _second_order(row, *terms[0])
    return _polyhedral_norm(row, terms) if kinds == {"max"} and not row.a.any() else None


def _quadratic(row: Row, terms: list[tuple[float, Term]]) -> Quadratic:
    P, q, r = np.zeros((row.a.size, row.a.size)), row.a.copy(), -row.b
    for weight, term in terms:
        scale = weight * term.factor
        P += 2.0 * scale * (term.F.T @ term.F)
        q += 2.0 * scale * (term.f @ term.F)
        r += scale * float(term.f @ term.f) + weight * term.constant
    return Quadratic(0.5 * (P + P.T), q, r)


def _second_order(row: Row, weight: float, term: Term) -> Constraint:
    scale = weight * term.factor
    A, b = scale * term.F, scale * term.f
    c, d = -(row.a + weight * np.asarray(term.slope)), row.b - weight * term.constant
    n = row.a.size
    if (
        A.shape == (n, n)
        and not c.any()
        and np.array_equal(np.abs(A), np.eye(n))
        and not (A - np.diag(np.diag(A))).any()
    ):
        return NormBall(-np.diag(A) * b, d)
    return SecondOrder(A, b, c, d)


def _polyhedral_norm(row: Row, terms: list[tuple[float, Term]]) -> Constraint | None:
    """Σ |x_j − center_j| or max_j |x_j − center_j|, if that is what the terms are."""
    n = row.a.size
    one = len(terms) == 1 and n > 1
    if any(term.f.size != (2 * n if one else 2) for _, term in terms) or (not one and len(terms) != n):
        return None
    F = np.concatenate([weight * term.F for weight, term in terms])
    f = np.concatenate([weight * term.f for weight, term in terms])
    j = np.abs(F).argmax(axis=1)
    sign = F[np.arange(j.size), j]
    up, down = np.flatnonzero(sign == 1.0), np.flatnonzero(sign == -1.0)
    up, down = up[np.argsort(j[up])], down[np.argsort(j[down])]
    every, owner = np.arange(n), np.arange(j.size) // 2
    if np.count_nonzero(F) != 2 * n or not (np.array_equal(j[up], every) and np.array_equal(j[down], every)):
        return None
    if not np.array_equal(f[up], -f[down]) or not (one or np.array_equal(owner[up], owner[down])):
        return None
    return NormInf(-f[up], row.b) if one else Norm1(-f[up], row.b)

"""Random projections over the whole table of sets and constraints, and a judge that shares no code with the package.

    python tests/fuzzing.py --seed 0 --count 100000 --jobs 2 --kept parts.jsonl

prints for each failure the call that reproduces it and, at the end, how many projections of which kind were judged.
After an interruption the same command continues.

A case is made from its seed alone. Whether K ∩ {g ≤ 0} is empty is known by construction: a point z of both, or a
hyperplane between them. A returned x is judged by its optimality conditions: it is feasible, and point − x is a
combination, with multipliers ≥ 0, of the gradients of what binds at x. Multipliers come from non-negative least
squares; values and the residual are computed in double-double arithmetic (Dekker 1971). What does not pass is compared
with the solution to 40 digits.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import multiprocessing
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from reference import optimum
from scipy.optimize import lsq_linear, nnls
from scipy.sparse import csr_array

import cocopt
from cocopt import constraints
from cocopt.errors import CocoptError, InfeasibleRound

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Description = tuple[Any, ...]

FEASIBILITY, POSITION = 1e-9, 1e-7  # as docs/design.md promises
ROUNDING = 4e-16  # of its distance, by what rounding changes a target
MAX_NORMALS = 30  # how often normals of an apex are made
BEYOND = 1e8  # sizes away from which targets may be refused, where surfaces are curved
BESIDE_OTHERS = 1e-6  # of the largest length in the data of rows, the least that counts
VANISHING = 1e-4  # of its terms at the scale of K: below that a row is judged in these
BINDS = 2e-9  # a slack below this share of its unit binds
EPS = float(np.finfo(np.float64).eps)

# ------------------------------------------------------------------------------------- double-double arithmetic


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """a + b, and its rounding error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """a·b, and its rounding error."""
    p = a * b
    c, d = 134217729.0 * a, 134217729.0 * b
    a1, b1 = c - (c - a), d - (d - b)
    a2, b2 = a - a1, b - b1
    return p, a2 * b2 - (((p - a1 * b1) - a2 * b1) - a1 * b2)


def total(high: Array, low: Array | float = 0.0) -> tuple[Any, Any]:
    """The sum along the last axis, as a double-double."""
    s, c = np.zeros(high.shape[:-1]), np.sum(np.broadcast_to(low, high.shape), axis=-1)
    for j in range(high.shape[-1]):
        s, e = two_sum(s, high[..., j])
        c = c + e
    return two_sum(s, c)


def dot(A: Array, x: Array, low: Array | float = 0.0) -> tuple[Any, Any]:
    """A @ (x + low), as a double-double."""
    p, e = two_product(A, x)
    return total(p, e + A * low)


def length(v: Array, low: Array | float = 0.0) -> float:
    """‖v + low‖."""
    unit = float(np.abs(v).max(initial=0.0))
    if unit == 0.0:
        return 0.0
    v, low = v / unit, low / unit
    square, rest = dot(v, v, 2.0 * np.asarray(low))
    root = float(np.sqrt(square))
    p, e = two_product(root, root)
    return unit * (root + float((square - p) - e + rest) / (2.0 * root))


# ----------------------------------------------------------------------------------------- what K and g are made of


class Block(NamedTuple):
    """Inequalities h(x, u) ≤ 0 at x: values, their units, gradients in x and in the auxiliary u, and whose rows.

    A curved one has a Hessian in x. Where a norm ‖Ax + b‖ vanishes, its gradients are Aᵀw with ‖w‖ ≤ 1: of such an
    apex the block lists some, and A, c from which the judge makes others, Aᵀw − c.
    """

    value: Array  # (m,)
    unit: Array  # (m,)
    gx: Array  # (m, n)
    gu: Array  # (m, k)
    row: Array  # (m,): the row of g whose multiplier this is, −1 for none
    hessian: dict[int, Array]  # (n, n) each, by the number of the inequality
    apex: dict[int, tuple[Array, Array]]  # A and c, by the number of the first inequality


def block(
    value: Any, unit: Any, gx: Any, gu: Any = None, row: Any = -1, hessian: Any = None, apex: Any = None
) -> Block:
    values = np.atleast_1d(np.asarray(value, dtype=float))
    m = values.size
    gradients = np.atleast_2d(np.asarray(gx, dtype=float))
    own = np.zeros((m, 0)) if gu is None else np.atleast_2d(np.asarray(gu, dtype=float))
    units, rows = np.broadcast_to(unit, m).astype(float), np.broadcast_to(row, m).astype(int)
    curved = {} if hessian is None else {0: hessian}
    return Block(values, units, gradients, own, rows, curved, {} if apex is None else {0: apex})


def across(direction: Array) -> Array:
    """The projection onto what is orthogonal to a unit vector."""
    return np.eye(direction.size) - np.outer(direction, direction)


def norm_block(tail: Array, low: Array, A: Array, c: Array, rest: Any, unit: float, row: int) -> Block:
    """‖tail + low‖ − rest ≤ 0 with tail = Ax + b and the slope c of rest; an apex within POSITION of it."""
    r = length(tail, low)
    value = (r - rest[0]) - rest[1]
    if r > POSITION * unit:
        w = tail / r
        return block(value, unit, w @ A - c, row=row, hessian=A.T @ across(w) @ A / r)
    return block(np.full(2 * len(A), value), unit, np.vstack([A - c, -A - c]), row=row, apex=(A, c))


def set_scale(K: Description) -> float:
    """The typical length of a set's own data; that of a cone is added to its description by `with_scale`."""
    match K[0]:
        case "Space" | "Orthant":
            return float(K[2]) if len(K) > 2 else 1.0
        case "Box":
            data = np.concatenate([K[1], K[2]])
            return float(np.abs(data[np.isfinite(data)]).max(initial=0.0)) or 1.0
        case "Ball" | "L1Ball":
            return max(float(np.abs(K[1]).max()), K[2]) or 1.0
        case "Ellipsoid":
            return max(float(np.abs(K[1]).max()), float(np.sqrt(np.linalg.eigvalsh(K[2])[-1])))
        case "Simplex":
            return float(K[2])
        case "CappedSimplex":
            return float(K[3])
        case "Halfspace":
            return abs(K[2]) / float(np.linalg.norm(K[1])) or 1.0
        case "Polyhedron":
            sizes = np.abs(K[2]) / np.maximum(np.linalg.norm(K[1], axis=1), 1e-300)
            sizes = sizes[(sizes > 0) & np.isfinite(sizes)]
            return float(np.median(sizes)) if sizes.size else 1.0
        case "Product" | "Intersection":
            return max(set_scale(part) for part in K[1])
    return 1.0


def with_scale(K: Description, g: Description, y: Array) -> Description:
    """A cone with the typical length of g's data, or of the target if all of them are 0; another set as it is.

    Of several rows the least length counts, but no less than BESIDE_OTHERS of the largest.
    """
    if K[0] not in ("Space", "Orthant"):
        return K
    found = [v for v in constraint_lengths(g) if 0.0 < v < np.inf]
    return (*K[:2], max(min(found), BESIDE_OTHERS * max(found)) if found else float(np.abs(y).max()) or 1.0)


def constraint_lengths(g: Description) -> list[float]:
    """Of each row how long x is where its terms of the lowest degree are as large as those of the highest."""
    match g[0]:
        case "Stack":
            return [v for part in g[1] for v in constraint_lengths(part)]
        case "Soft":
            return constraint_lengths(g[1])
        case "Affine" | "SparseAffine" | "Equality":
            return list(np.abs(g[2]) / np.maximum(np.linalg.norm(g[1], axis=1), 1e-300))
        case "NormBall" | "Norm1" | "NormInf":
            return [max(float(np.linalg.norm(g[1])), abs(g[2]))]
        case "Quadratic":
            steepness = 0.5 * max(float(np.linalg.norm(g[1])), 1e-300)
            return [np.sqrt(abs(g[3]) / steepness) if g[3] else float(np.linalg.norm(g[2])) / steepness]
        case "SecondOrder":
            return [max(length(g[2]), abs(g[4])) / max(float(np.linalg.norm(g[1])), length(g[3]))]
        case "LogSumExp":
            return [max(float(np.abs(g[2]).max()), 1.0) / float(np.linalg.norm(g[1], axis=1).max())]
        case "CVaR":
            return [abs(g[3]) / float(np.linalg.norm(g[1], axis=1).max())]
    raise ValueError(g[0])


def linear_rows(A: Array, b: Array, x: Array, row: Any = -1) -> Block:
    """A x ≤ b; rows that never bind are left out."""
    norms = np.linalg.norm(A, axis=1)
    used = (norms > 0) & (b < np.inf)
    index = np.broadcast_to(row, b.shape)[used]
    high, low = dot(A[used], x)
    s, e = two_sum(high, -b[used])
    unit = np.maximum(norms[used] * length(x), np.abs(b[used]))
    return block(s + (e + low), unit, A[used], row=index)


def absolute_values(x: Array, center: Array) -> tuple[Array, Array, Array, Array]:
    """|x − c| ≤ u as rows: u, values (both sides), gradients in x and in u."""
    n = x.size
    d = np.abs(x - center)
    eye = np.eye(n)
    return d, np.concatenate([(x - center) - d, (center - x) - d]), np.vstack([eye, -eye]), np.vstack([-eye, -eye])


def set_blocks(K: Description, x: Array, size: float = 0.0) -> list[Block]:
    """The inequalities of K. Gradients are the data themselves: to divide them by their length would round them.

    ``size`` is that of a product, or its data, of which K is a factor.
    """
    n, unit = x.size, max(float(np.abs(x).max()), set_scale(K), size)
    eye = np.eye(n)
    match K[0]:
        case "Space":
            return []
        case "Orthant":
            return [block(-x, unit, -eye)]
        case "Box":
            low, high = np.isfinite(K[1]), np.isfinite(K[2])
            return [block((K[1] - x)[low], unit, -eye[low]), block((x - K[2])[high], unit, eye[high])]
        case "Ball":
            return [norm_block(*two_sum(x, -K[1]), eye, np.zeros(n), (K[2], 0.0), unit, -1)]
        case "Simplex" | "CappedSimplex":
            whole = K[2] if K[0] == "Simplex" else K[3]
            s, e = total(x)
            off, ones = float((s - whole) + e), np.ones((1, n))
            sides = [block(sign * off, np.sqrt(n) * unit, sign * ones) for sign in (1.0, -1.0)]
            blocks = [block(-x, unit, -eye), *sides]
            if K[0] == "CappedSimplex":
                caps = np.broadcast_to(K[2], (n,))
                high = np.isfinite(caps)
                blocks.append(block((x - caps)[high], unit, eye[high]))
            return blocks
        case "Halfspace":
            rows = linear_rows(K[1][None], np.array([K[2]]), x)
            return [rows._replace(unit=np.full(1, np.linalg.norm(K[1]) * unit))]
        case "Polyhedron":
            rows = linear_rows(K[1], K[2], x)
            return [rows._replace(unit=np.maximum(rows.unit, np.linalg.norm(rows.gx, axis=1) * unit))]
        case "L1Ball":
            u, values, gx, gu = absolute_values(x, K[1])
            s, e = total(u)
            values = np.append(values, float((s - K[2]) + e))
            gx, gu = np.vstack([gx, np.zeros(n)]), np.vstack([gu, np.ones(n)])
            return [block(values, np.append(np.full(2 * n, unit), np.sqrt(n) * unit), gx, gu)]
        case "Ellipsoid":
            d, e = two_sum(x, -K[1])
            if np.sqrt(np.linalg.eigvalsh(K[2])[-1]) <= FEASIBILITY * unit:  # it is a point
                return [block(np.append(d, -d), unit, np.vstack([eye, -eye]))]
            w = np.linalg.solve(K[2], d)
            for _ in range(2):  # refined with a residual in double-double
                high, low = dot(K[2], w)
                w = w + np.linalg.solve(K[2], (d - high) + (e - low))
            gauge = float(np.sqrt(max(float(sum(dot(d, w, 0.0))), 0.0)))
            slope = max(float(np.linalg.norm(w)), 1e-100)
            bend = (np.linalg.inv(K[2]) - np.outer(w, w) / max(gauge, 1e-100) ** 2) / slope
            return [block((gauge - 1.0) * gauge / slope, unit, w / slope, hessian=bend)]
        case "Product":
            blocks, start = [], 0
            for part, size in zip(K[1], K[2], strict=True):
                own = eye[start : start + size]
                for inner in set_blocks(part, x[start : start + size], unit):
                    bends = {i: own.T @ bend @ own for i, bend in inner.hessian.items()}
                    points = {i: (A @ own, c @ own) for i, (A, c) in inner.apex.items()}
                    blocks.append(inner._replace(gx=inner.gx @ own, hessian=bends, apex=points))
                start += size
            return blocks
        case "Intersection":
            return [inner for part in K[1] for inner in set_blocks(part, x, unit)]
    raise ValueError(K[0])


def constraint_blocks(g: Description, x: Array, first: int = 0) -> list[Block]:
    """The inequalities of g in its own units; ``first`` is the number of its first row."""
    n, size = x.size, length(x)
    eye = np.eye(n)
    match g[0]:
        case "Affine" | "SparseAffine":
            return [linear_rows(g[1], g[2], x, first + np.arange(len(g[2])))]
        case "Soft":
            return constraint_blocks(g[1], x, first)
        case "Equality":
            rows = first + np.arange(len(g[2]))
            return [linear_rows(g[1], g[2], x, rows), linear_rows(-g[1], -g[2], x, rows)]
        case "NormBall":
            unit = max(size, length(g[1]), abs(g[2]))
            return [norm_block(*two_sum(x, -g[1]), eye, np.zeros(n), (g[2], 0.0), unit, first)]
        case "Quadratic":
            P, q, r = g[1:]
            Px, low = dot(P, x)
            curved, linear = dot(x, Px, low), dot(q, x)
            value = (0.5 * curved[0] + linear[0] + r) + (0.5 * curved[1] + linear[1])
            unit = (0.5 * float(np.linalg.norm(P)) * size + length(q)) * size + abs(r)
            return [block(value, unit, Px + low + q, row=first, hessian=P)]
        case "SecondOrder":
            A, b, c, d = g[1:]
            high, low = dot(A, x)
            v, e = two_sum(high, b)
            if len(A) == 1:  # two affine pieces
                s, tail = np.add(*dot(c, x)) + d, v + (e + low)
                unit = (float(np.linalg.norm(A)) + length(c)) * size + length(b) + abs(d)
                return [block(np.append(tail - s, -tail - s), unit, np.vstack([A - c, -A - c]), row=first)]
            s = dot(c, x)
            unit = (float(np.linalg.norm(A)) + length(c)) * size + length(b) + abs(d)
            return [norm_block(v, e + low, A, c, (s[0] + d, s[1]), unit, first)]
        case "Norm1":
            u, values, gx, gu = absolute_values(x, g[1])
            unit = max(float(np.maximum(np.abs(x), np.abs(g[1])).sum()), abs(g[2]))
            s, e = total(u)
            gx, gu = np.vstack([gx, np.zeros(n)]), np.vstack([gu, np.ones(n)])
            whose = np.append(np.full(2 * n, -1), first)
            return [block(np.append(values, float((s - g[2]) + e)), unit, gx, gu, whose)]
        case "NormInf":
            d, _ = two_sum(x, -g[1])
            unit = max(float(np.maximum(np.abs(x), np.abs(g[1])).max()), abs(g[2]))
            return [block(np.concatenate([d, -d]) - g[2], unit, np.vstack([eye, -eye]), row=first)]
        case "LogSumExp":
            A, b = g[1:]
            high, low = dot(A, x)
            t, e = two_sum(high, -b)
            t = t + (e + low)
            top = float(t.max())
            weights = np.exp(t - top)
            unit = max(float((np.linalg.norm(A, axis=1) * size + np.abs(b)).max()), 1.0)
            share = weights / weights.sum()
            bend = A.T @ (np.diag(share) - np.outer(share, share)) @ A
            # it exceeds each of its pieces: where x is known to less than what separates these, they may bind
            smooth = block(top + np.log(weights.sum()), unit, share @ A, row=first, hessian=bend)
            return [smooth, block(t, unit, A, row=first)]
        case "CVaR":
            S, level, limit = g[1:]
            N = len(S)
            k = max((1.0 - level) * N, 1.0)
            losses = -np.add(*dot(S, x))
            eta = float(np.sort(losses)[::-1][min(int(np.ceil(k - 1e-9)), N) - 1])
            above = np.maximum(losses - eta, 0.0)
            unit = max(float(np.linalg.norm(S, axis=1).max()) * size, abs(limit))
            value = np.concatenate([losses - eta - above, -above, [eta + above.sum() / k - limit]])
            gx = np.vstack([-S, np.zeros((N + 1, n))])
            scenarios = np.eye(N)
            gu = np.vstack(
                [np.hstack([-np.ones((N, 1)), -scenarios]), np.hstack([np.zeros((N, 1)), -scenarios]),
                 np.append(1.0, np.full(N, 1.0 / k))]
            )  # fmt: skip
            return [block(value, unit, gx, gu, np.append(np.full(2 * N, -1), first))]
        case "Stack":
            blocks = []
            for part in g[1]:
                blocks += constraint_blocks(part, x, first)
                first += row_count(part)
            return blocks
    raise ValueError(g[0])


def row_count(g: Description) -> int:
    if g[0] == "Stack":
        return sum(row_count(part) for part in g[1])
    if g[0] == "Soft":
        return row_count(g[1])
    return len(g[2]) if g[0] in ("Affine", "SparseAffine", "Equality") else 1


# ------------------------------------------------------------------------------------------------------- the judge


def stack_blocks(blocks: list[Block], n: int) -> Block:
    """All of them, each with auxiliary variables of its own."""
    aux = sum(part.gu.shape[1] for part in blocks)
    gu, start, at = np.zeros((sum(part.value.size for part in blocks), aux)), 0, 0
    hessian, apex = {}, {}
    for part in blocks:
        m, k = part.gu.shape
        gu[at : at + m, start : start + k] = part.gu
        hessian |= {at + i: bend for i, bend in part.hessian.items()}
        apex |= {at + i: data for i, data in part.apex.items()}
        start, at = start + k, at + m
    if not blocks:
        return Block(np.zeros(0), np.zeros(0), np.zeros((0, n)), gu, np.zeros(0, dtype=int), {}, {})
    return Block(
        np.concatenate([part.value for part in blocks]), np.concatenate([part.unit for part in blocks]),
        np.concatenate([part.gx for part in blocks]), gu, np.concatenate([part.row for part in blocks]), hessian, apex,
    )  # fmt: skip


class Caps(NamedTuple):
    """Bounds of multipliers: of each row's, or of the sum of all."""

    of: Array  # (rows,), or one number
    shared: bool

    def groups(self, all_of: Block, share: float) -> tuple[Flags, list[tuple[Flags, float, bool]]]:
        """What binds, and the groups with a bound: whose they are, the bound, and whether it is attained.

        It is where a row is positive. Of the pieces of such rows those bind that are the largest.
        """
        value, unit, row = all_of.value, all_of.unit, all_of.row
        binds, groups = (row < 0) & (value >= -share * unit), []
        for i in [-1] if self.shared else np.unique(row[row >= 0]):
            own = row >= 0 if self.shared else row == i
            if not own.any():
                continue
            top = np.flatnonzero(own)[np.argmax(value[own])]
            beyond = bool(value[top] > share * unit[top])
            apart = share * np.maximum(unit, unit[top])  # no difference of two rows is known better
            active = own & (value >= value[top] - apart if beyond else value >= -share * unit)
            binds |= active
            groups.append((active, float(self.of if self.shared else self.of[i]), beyond))
        return binds, groups


def judge(
    K: Description, g: Description, y: Array, x: Array, caps: Caps | None = None, relaxation: Array | None = None
) -> str | None:
    """What is wrong with x as the projection of y, or with bounds of the rows' multipliers as its hinge prox; or None.

    With a relaxation, one number per row, it is the projection onto K ∩ {g ≤ relaxation}.

    The tolerances are those of docs/design.md:

    - violation: FEASIBILITY of the row's terms at x, or of the larger of x and K's data; the hundredth above it is for
      the package's own arithmetic, which measures the violation in doubles. Where the terms of a row vanish, as at the
      apex of a cone, they are taken as VANISHING of those at K's scale: 1e-13 of these is rounding.
    - position: POSITION of the larger of x and K's data. The normals of what binds, with multipliers ≥ 0, leave a
      residual of y − x; Newton's step from it is by how much x is wrong. (The step solves (I + Σ λ_i ∇²h_i) step =
      residual along the surfaces. On flat ones it is the residual, and bounds the error, since projections do not
      expand. On curved ones it is as much less as the target is farther away than their radius.)
    - from afar, the rounding of the target, ROUNDING of its distance, in each coordinate; and what the rounding of x
      and of the data does to the normals of curved surfaces, `newton_step`.
    - what binds is known up to BINDS of its terms.

    What does not pass is judged once more, by `judge_by_solution`: by its distance from the solution itself.
    """
    if not np.isfinite(x).all():
        return "x is not finite"
    K = with_scale(K, g, y)
    all_of = inequalities(K, g, x)
    if relaxation is not None:
        own = all_of.row >= 0
        all_of.value[own] -= relaxation[all_of.row[own]]
    value, unit, row = all_of.value, all_of.unit, all_of.row
    required = np.ones(value.size, dtype=bool) if caps is None else row < 0
    worst = float(np.max(value[required] / unit[required], initial=0.0))
    if worst > 1.01 * FEASIBILITY:
        where = "K" if row[required][np.argmax(value[required] / unit[required])] < 0 else "g"
        return f"infeasible: {where} is violated by {worst:.3g} of its unit"
    distance = float(np.abs(y - x).max())
    size = max(float(np.abs(x).max()), set_scale(K))
    allowed = POSITION * size + np.sqrt(x.size) * ROUNDING * distance
    error = position_error(y, x, all_of, caps, allowed)
    if error <= allowed:
        return None
    beside = judge_by_gap(y, x, all_of, size) if relaxation is not None else judge_by_solution(K, g, y, x, caps, size)
    if beside is None:
        return None
    return f"{beside}; Newton's step is {error:.3g} where {allowed:.3g} is allowed (distance {distance:.3g})"


def judge_nearest(K: Description, g: Description, y: Array, x: Array, nearest: Nearest) -> str | None:
    """As `judge`, of x as the point nearest to y of those that violate g least.

    It may violate the rows that yield by the least violation and FEASIBILITY of their terms. With each of these relaxed
    by the least violation, or by its own at x if that is more, it is to be the projection; where K and the rows touch
    in a single point, so that its position is ill-posed, it is to be as near to y as that, but for `allowed_gap`.
    """
    if not np.isfinite(x).all():
        return "x is not finite"
    K = with_scale(K, g, y)
    all_of = inequalities(K, g, x)
    own = all_of.row >= 0
    limit = np.zeros(own.size)
    limit[own] = np.where(nearest.yields, nearest.least, 0.0)[all_of.row[own]]
    worst = float(np.max((all_of.value - limit) / all_of.unit))
    if worst > 1.01 * FEASIBILITY:
        return f"infeasible: a least violation of {nearest.least:.3g} is exceeded by {worst:.3g} of its unit"
    if nearest.only is not None:
        size, away, least = max(float(np.abs(x).max()), set_scale(K)), y - x, y - nearest.only
        gap = 0.5 * float((nearest.only - x) @ (away + least))  # ½‖y − x‖² − ½‖y − p‖², without cancellation
        allowed = allowed_gap(size, float(np.linalg.norm(least)), x.size, 0.0)
        return None if gap <= allowed else f"not optimal: its objective exceeds the least by {gap:.3g}"
    violated = np.where(nearest.yields, nearest.least, -np.inf)
    np.maximum.at(violated, all_of.row[own], all_of.value[own])
    return judge(K, g, y, x, relaxation=np.where(nearest.yields, violated, 0.0))


def inequalities(K: Description, g: Description, x: Array) -> Block:
    """All of them at x, in units that do not vanish with x."""
    here, there = ([*set_blocks(K, at), *constraint_blocks(g, at)] for at in (x, np.full(x.size, set_scale(K))))
    for i, (part, other) in enumerate(zip(here, there, strict=True)):
        elsewhere = other.unit if other.unit.shape == part.unit.shape else other.unit[:1]  # (an apex, or none)
        here[i] = part._replace(unit=np.maximum(part.unit, VANISHING * elsewhere))
    return stack_blocks(here, x.size)


def judge_by_solution(K: Description, g: Description, y: Array, x: Array, caps: Caps | None, size: float) -> str | None:
    """As `judge`, by the solution to 40 digits; where Newton's method does not find that, by the objective alone.

    Multipliers of what binds at x are not those of the solution where a curved surface turns within the error of x,
    and then Newton's step from x is no error of its position. From the solution x* it is allowed

    - POSITION·size, the rounding of the target, and what a relative change by ROUNDING of each row and its gradient
      does to x*, to first order: a program that evaluates rows in doubles knows no more;
    - an objective ½‖x − y‖² that exceeds the least by no more than `allowed_gap`.
    """
    found = optimum.solve(K, g, y, x) if caps is None else optimum.solve(K, g, y, x, caps.of, caps.shared)
    if found is None:
        return judge_by_gap(y, x, inequalities(K, g, x), size) if caps is None else "not optimal"
    distance = float(np.linalg.norm(y - x))
    error = float(optimum.norm(optimum.exact(x) - found.x))
    allowed = POSITION * size + ROUNDING * (np.sqrt(x.size) * distance + found.moves)
    if error > allowed:
        return f"not optimal: its position is wrong by {error:.3g} where {allowed:.3g} is allowed"
    if caps is not None:  # (the penalty at x is not known so well as the violation)
        return None
    away = optimum.exact(x) - optimum.exact(y)
    gap, gap_allowed = float(away @ away / 2 - found.value), allowed_gap(size, distance, x.size, found.value_moves)
    return None if gap <= gap_allowed else f"not optimal: its objective exceeds the least by {gap:.3g}"


def allowed_gap(size: float, distance: float, n: int, value_moves: float) -> float:
    """By how much ½‖x − y‖² may exceed the least where the position is ill-conditioned.

    By what a distance longer by FEASIBILITY·size makes of it: as much as a single row that yields by what it may be
    violated. And by what rounding changes: the target, and the rows, Σ λ_i of whose terms is ``value_moves``.
    """
    return distance * FEASIBILITY * size + ROUNDING * (np.sqrt(n) * distance**2 + value_moves)


def judge_by_gap(y: Array, x: Array, all_of: Block, size: float) -> str | None:
    """As `judge`, by the objective alone, which weak duality bounds from below: for surfaces that touch.

    For all multipliers λ ≥ 0, with r = y − x − Σ λ_i ∇h_i(x), every z of K ∩ {g ≤ 0} has, since the h_i are convex,
    ½‖z − y‖² ≥ ½‖x − y‖² + Σ λ_i h_i(x) + ½‖z − x‖² − ⟨r, z − x⟩ ≥ ½‖x − y‖² + Σ λ_i h_i(x) − ½‖r‖². Where rows are
    violated at x, {h ≤ h(x)} takes the place of {h ≤ 0}. Auxiliary variables are no farther off than their rows' units.
    """
    n, distance = x.size, float(np.linalg.norm(y - x))
    value, unit, gx, gu = all_of.value, all_of.unit, all_of.gx, all_of.gu
    weight = power_of_two(1e8)  # what is left of their equations is to be as good as nothing
    target, low = np.zeros(n + gu.shape[1]), np.zeros(n + gu.shape[1])
    target[:n], low[:n] = y - x, two_sum(y, -x)[1]
    gap, allowed = np.inf, 0.0
    for share in (BINDS, POSITION):
        binds = value >= -share * unit
        if not binds.any():
            continue
        multipliers, left = best_multipliers(np.hstack([gx, weight * gu])[binds], target, low)
        outside = float(np.abs(left[n:]).sum()) / weight * float(unit.max())
        slack = float(multipliers @ np.maximum(-value[binds], 0.0))
        gap = 0.5 * float(left[:n] @ left[:n]) + outside + slack
        allowed = allowed_gap(size, distance, n, float(multipliers @ unit[binds]))
        if gap <= allowed:
            return None
    return f"not optimal: its objective may exceed the least by {gap:.3g} where {allowed:.3g} is allowed"


def position_error(y: Array, x: Array, all_of: Block, caps: Caps | None, allowed: float) -> float:
    """How far Newton's method would move x along the surfaces that bind, with the multipliers ≥ 0 that suit best."""
    away, rounding = y - x, two_sum(y, -x)[1]
    value, unit, gx, gu, _, hessian, apex = all_of
    binds, groups = (value >= -BINDS * unit, []) if caps is None else caps.groups(all_of, BINDS)
    n, size = away.size, away.size + gu.shape[1]
    # one more equation for each bounded sum of multipliers, with a slack where the bound is not attained
    full = np.zeros((value.size, size + len(groups)))
    full[:, :n], full[:, n:size] = gx, gu
    target, low, slacks = np.zeros(full.shape[1]), np.zeros(full.shape[1]), []
    target[:n], low[:n] = away, rounding
    for k, (members, bound, attained) in enumerate(groups):
        steepness = power_of_two(np.linalg.norm(full[members, :size], axis=1).max(initial=1e-300))
        full[members, size + k], target[size + k] = steepness, steepness * bound
        if not attained:
            slacks.append(np.eye(full.shape[1])[size + k])
    order = np.flatnonzero(binds)
    columns = np.vstack([full[order], *slacks])
    cones = [(at, *data) for at, data in apex.items() if binds[at]]
    owner = np.append(order, np.full(len(slacks), -1))
    for _ in range(MAX_NORMALS):
        multipliers, left = best_multipliers(columns, target, low)
        step = newton_step(columns, multipliers, left, [hessian.get(i) for i in order], x)
        if step <= allowed or not cones:
            return step
        made = []
        for at, A, c in cones:  # of all normals Aᵀw − c, ‖w‖ = 1, those nearest to what is left, and to what is borne
            own = (owner >= at) & (owner < at + 2 * len(A))
            borne = (left + multipliers[own] @ columns[own])[:n]
            for w in (A @ left[:n], np.linalg.lstsq(np.vstack([A, -c]).T, borne, rcond=1e-12)[0][: len(A)]):
                normal = full[at].copy()
                normal[:n] = (w / max(float(np.linalg.norm(w)), 1e-300)) @ A - c
                made.append((at, normal))
        if max(float(normal @ left) for _, normal in made) <= EPS * float(np.linalg.norm(target)):
            return step
        columns = np.vstack([columns, [normal for _, normal in made]])
        owner = np.append(owner, [at for at, _ in made])
    return step


def power_of_two(v: Any) -> Any:
    """That next to v, by which one multiplies without rounding."""
    return np.exp2(np.round(np.log2(v)))


def best_multipliers(columns: Array, target: Array, low: Array) -> tuple[Array, Array]:
    """λ ≥ 0 with Σ λ_i column_i nearest to target + low, and what is left, in double-double."""
    norms = np.linalg.norm(columns, axis=1)
    largest = float(np.abs(target).max())
    multipliers = np.zeros(len(columns))
    if largest == 0.0 or not norms.any():
        return multipliers, target + low
    scale, units = power_of_two(largest), power_of_two(np.where(norms > 0, norms, 1.0))
    columns = columns / units[:, None]
    try:
        multipliers = nnls(columns.T, target / scale, maxiter=50 * columns.shape[0] + 100)[0] * scale
    except RuntimeError:
        multipliers = lsq_linear(columns.T, target / scale, (0.0, np.inf)).x * scale
    support, tail = multipliers > 0, np.zeros(len(columns))
    best, found, transposed = np.inf, multipliers, np.ascontiguousarray(columns.T)
    for _ in range(4):  # refined with a residual in double-double, as long as no multiplier becomes negative
        high, rest = dot(transposed, multipliers, tail)
        s, e = two_sum(target, -high)
        residual = s + ((e - rest) + low)
        if not float(np.linalg.norm(residual)) < best:
            break
        best, found, left = float(np.linalg.norm(residual)), multipliers, residual
        step = np.zeros_like(multipliers)
        if support.any():
            step[support] = np.linalg.lstsq(columns[support].T, left, rcond=1e-12)[0]
        multipliers, tail = two_sum(multipliers, step + tail)
        tail = np.where(multipliers > 0, tail, 0.0)
        multipliers = np.maximum(multipliers, 0.0)
    return found / units, left


def newton_step(columns: Array, multipliers: Array, left: Array, hessians: list[Array | None], x: Array) -> float:
    """‖(I + Σ λ_i ∇²h_i)⁻¹ left‖ within what is orthogonal to the columns that have multipliers.

    The rounding of x, or of the data, turns the normals: Σ λ_i ‖∇²h_i‖‖x‖ times ROUNDING are not counted.
    """
    n, metric, turned = x.size, np.eye(left.size), 0.0
    for multiplier, bend in zip(multipliers, hessians, strict=False):
        if bend is not None and multiplier > 0:
            metric[:n, :n] += multiplier * bend
            turned += ROUNDING * multiplier * float(np.linalg.norm(bend)) * length(x)
    if np.array_equal(metric, np.eye(left.size)):
        return float(np.linalg.norm(left))
    left = left * max(1.0 - turned / max(float(np.linalg.norm(left)), 1e-300), 0.0)
    used = columns[multipliers > 0]
    used = used / np.linalg.norm(used, axis=1, keepdims=True)
    _, singular, rows = np.linalg.svd(used, full_matrices=True)
    along = rows[int((singular > 1e-10).sum()) :]
    inner = along @ left
    # what is left across the surfaces no multiplier removes
    rest = left - along.T @ inner
    curvatures, axes = np.linalg.eigh(along @ metric @ along.T)
    step = (axes.T @ inner) / np.maximum(curvatures, 1.0)  # (none is less, but for rounding)
    return float(np.linalg.norm(step) + np.linalg.norm(rest))


# ---------------------------------------------------------------------------------------------------- random cases


class Nearest(NamedTuple):
    """Of an empty round: the least violation that the rows have in common, and which of them may have it."""

    least: float
    yields: Flags  # (rows,)
    only: Array | None  # the one point that violates them so little, where it is known to be the only one


class Case(NamedTuple):
    """One call: K, one g and target per trial, bounds of the multipliers, and whether K ∩ {g ≤ 0} has a point.

    A single g is that of all trials.
    """

    K: Description
    g: list[Description]
    y: Array  # (trials, n)
    caps: Caps | None
    feasible: bool
    unchanged: bool  # whether the targets are feasible, strictly
    label: str
    traits: tuple[str, ...] = ()
    nearest: Nearest | None = None


SETS = (
    "Box", "Ball", "Simplex", "CappedSimplex", "Halfspace", "Polyhedron", "L1Ball", "Ellipsoid", "Product", "Space",
    "Orthant", "Intersection",
)  # fmt: skip
CURVED = ("NormBall", "Diagonal", "Quadratic", "SecondOrder", "LogSumExp")
PIECEWISE = ("Equality", "Norm1", "NormInf", "CVaR")
KINDS = ("Affine", "SparseAffine", *CURVED, *PIECEWISE)
ROWS = (1, 2, 4, 8, 20, 60, 150, 300)


def random_set(kind: str, n: int, s: float, rng: np.random.Generator) -> tuple[Description, Array]:
    """A set of about the size s, and a point of it."""
    z = s * rng.normal(size=n) * (1.0 if rng.random() < 0.8 else 100.0)
    direction = rng.normal(size=n)
    direction /= np.linalg.norm(direction)
    match kind:
        case "Space":
            return ("Space", n), z
        case "Orthant":
            return ("Orthant", n), np.abs(z) * (rng.random(n) < 0.8)
        case "Box":
            low, high = z - s * rng.random(n), z + s * rng.random(n)
            low[rng.random(n) < 0.1], high[rng.random(n) < 0.1] = -np.inf, np.inf
            fixed = rng.random(n) < 0.1
            low[fixed], high[fixed] = z[fixed], z[fixed]
            return ("Box", low, high), z
        case "Ball":
            r = 0.0 if rng.random() < 0.02 else s * rng.uniform(0.5, 1.5)
            return ("Ball", z + r * rng.choice([0.0, 0.5, 0.99]) * direction, r), z
        case "Simplex":
            p = rng.dirichlet(np.ones(n)) * (rng.random(n) < 0.8) + 1e-12
            return ("Simplex", n, s), _adding_up(s * p / p.sum(), s)
        case "CappedSimplex":
            caps = s * rng.uniform(1.1, 3.0, n) / n
            return ("CappedSimplex", n, caps, s), _adding_up(np.full(n, s / n), s)
        case "Halfspace":
            a = direction * 10.0 ** rng.integers(-3, 4)
            return ("Halfspace", a, float(a @ z + np.linalg.norm(a) * s * rng.choice([0.1, 1.0]))), z
        case "Polyhedron":
            A = np.vstack([rng.normal(size=(rng.integers(0, n + 3), n)), np.eye(n), -np.eye(n)])
            return ("Polyhedron", A, A @ z + s * rng.uniform(0.01, 2.0, len(A)) * (1.0 + np.abs(A).sum(axis=1))), z
        case "L1Ball":
            r = s * rng.uniform(0.5, 1.5)
            return ("L1Ball", z + r / np.sqrt(n) * rng.choice([0.0, 0.5, 0.99]) * direction, r), z
        case "Ellipsoid":
            Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
            half = s * Q * 10.0 ** rng.uniform(-1.0, 0.5, n)
            P = half @ half.T
            return ("Ellipsoid", z - half @ direction * rng.choice([0.0, 0.5, 0.99]), (P + P.T) / 2), z
        case "Product":
            sizes = [n] if n == 1 else [n // 2, n - n // 2]
            kinds = rng.choice(["Box", "Ball", "Simplex", "L1Ball", "Ellipsoid", "Polyhedron"], size=len(sizes))
            parts = [random_set(str(part), m, s, rng) for part, m in zip(kinds, sizes, strict=True)]
            return ("Product", [part for part, _ in parts], sizes), np.concatenate([inner for _, inner in parts])
        case "Intersection":
            box = ("Box", z - s * rng.uniform(0.2, 1.0, n), z + s * rng.uniform(0.2, 1.0, n))
            if rng.random() < 0.5:
                return ("Intersection", [box, ("Ball", z + 0.3 * s * direction, 0.8 * s)]), z
            return ("Intersection", [box, ("Halfspace", direction, float(direction @ z + 0.1 * s))]), z
    raise ValueError(kind)


def _adding_up(p: Array, whole: float) -> Array:
    """p with its largest entry changed by the rounding of its sum."""
    i = int(np.argmax(p))
    p[i] += whole - p.sum()
    return p


def random_constraint(
    kind: str, z: Array, s: float, slack: float, rng: np.random.Generator, rounded: bool = False
) -> Description:
    """A constraint with g(z) = −slack·s times its slope, about.

    The matrix of a Quadratic is semidefinite as it stands: its factor has few digits, unless it is to be rounded.
    """
    n = z.size
    match kind:
        case "Affine":
            return random_rows(z, s, slack, int(rng.choice(ROWS[:6])), rng)
        case "NormBall":
            c = z + s * rng.normal(size=n)
            return ("NormBall", c, float(np.linalg.norm(z - c) + slack * s))
        case "Diagonal" | "Quadratic":
            F = (
                np.diag(rng.uniform(0.1, 2.0, n))
                if kind == "Diagonal"
                else rng.normal(size=(rng.integers(1, n + 1), n))
            )
            if rounded:
                P, q = F.T @ F / s**2, rng.normal(size=n) / s
            else:
                F = np.round(1024.0 * F) / 1024.0
                P, q = F.T @ F / power_of_two(s) ** 2, rng.normal(size=n) / s
            return ("Quadratic", (P + P.T) / 2, q, float(-(0.5 * z @ P @ z + q @ z) - slack))
        case "SecondOrder":
            A, b, c = rng.normal(size=(rng.integers(1, n + 2), n)), s * rng.normal(), 0.3 * rng.normal(size=n)
            b = s * rng.normal(size=len(A))
            return ("SecondOrder", A, b, c, float(np.linalg.norm(A @ z + b) - c @ z + slack * s))
        case "LogSumExp":
            A = rng.normal(size=(rng.integers(1, 8), n)) / s
            t = A @ z
            offset = t + np.log(len(A)) + slack + rng.uniform(0.0, 2.0, len(A))
            return ("LogSumExp", A, offset)
        case "Equality":
            A = rng.normal(size=(rng.integers(1, max(2, n // 2)), n))
            return ("Equality", A, A @ z)
        case "Norm1" | "NormInf":
            c = z + s * rng.normal(size=n) * (rng.random(n) < 0.7)
            return (kind, c, float(np.linalg.norm(z - c, 1 if kind == "Norm1" else np.inf) + slack * s))
        case "CVaR":
            S, level = rng.normal(size=(rng.integers(1, 30), n)), float(rng.choice([0.0, 0.5, 0.9, 0.95]))
            k = max((1.0 - level) * len(S), 1.0)
            losses = np.sort(-S @ z)[::-1]
            share = np.clip(k - np.arange(len(S)), 0.0, 1.0)
            return ("CVaR", S, level, float(losses @ share / k + slack * s))
    raise ValueError(kind)


def random_rows(z: Array, s: float, slack: float, count: int, rng: np.random.Generator) -> Description:
    """Affine rows with slack at z, some of them degenerate: through z, repeated, nearly parallel, never binding."""
    A = rng.normal(size=(count, z.size))
    gaps = slack * s * rng.uniform(0.2, 2.0, count) * np.linalg.norm(A, axis=1)
    if rng.random() < 0.2:
        gaps[rng.random(count) < 0.5] = 0.0
    if count > 1 and rng.random() < 0.2:
        copies = rng.integers(0, count, size=max(1, count // 3))
        A[: copies.size] = A[copies] * rng.choice([1.0, 2.0, 1.0 + 1e-9], size=(copies.size, 1))
    A *= 10.0 ** rng.integers(-3, 4, size=(count, 1)) if rng.random() < 0.3 else 1.0
    b = A @ z + gaps
    if rng.random() < 0.1:
        b[rng.integers(count)] = np.inf
    return ("Affine", A, b)


def support(K: Description, a: Array) -> float:
    """An upper bound of max ⟨a, x⟩ over K; inf if none is known."""
    match K[0]:
        case "Box":
            with np.errstate(invalid="ignore"):
                ends = np.where(a > 0, a * K[2], np.where(a < 0, a * K[1], 0.0))
            return float(ends.sum())
        case "Ball":
            return float(a @ K[1] + K[2] * np.linalg.norm(a))
        case "L1Ball":
            return float(a @ K[1] + K[2] * np.abs(a).max())
        case "Ellipsoid":
            return float(a @ K[1] + np.sqrt(max(a @ K[2] @ a, 0.0)))
        case "Simplex":
            return float(K[2] * a.max())
        case "CappedSimplex":
            return float(K[3] * a.max())
        case "Product":
            starts = np.cumsum([0, *K[2]])
            return sum(support(part, a[i:j]) for part, i, j in zip(K[1], starts[:-1], starts[1:], strict=True))
        case "Intersection":
            return min(support(part, a) for part in K[1])
        case "Polyhedron":
            n = a.size  # its last rows bound each coordinate
            return float(np.where(a > 0, a * K[2][-2 * n : -n], -a * K[2][-n:]).sum())
    return np.inf


def random_case(seed: int, ordinary: bool = False, varied: bool = True) -> Case:
    """The case of this number; ordinary ones are smaller, nearer, and more often affine: they take a tenth as long.

    Cases that are not varied are those that were drawn before there were `Variations`.
    """
    rng = np.random.default_rng(seed)
    variations = Variations(np.random.default_rng([seed, 1]), varied)
    kind = str(rng.choice(SETS))
    dims = [1, 2, 3, 5, 10, 10, 10] if ordinary else [1, 2, 3, 5, 10, 30, 100]
    n = int(rng.choice(dims, p=[0.1, 0.2, 0.2, 0.2, 0.2, 0.08, 0.02]))
    s = variations.size(10.0 ** int(rng.choice([0, 0, 0, -6, -3, 3, 6])))
    K, z = random_set(kind, n, s, rng)
    slack = float(rng.choice([0.1, 0.1, 0.01, 1.0, 0.0]))
    affine = rng.random() < (0.75 if ordinary else 0.45)
    piecewise = not affine and rng.random() < 0.4
    rows = int(rng.choice(ROWS, p=[0.3, 0.15, 0.2, 0.1, 0.1, 0.08, 0.04, 0.03]))
    trials = int(rng.choice([1, 7, 40])) if affine and rows * n <= 300 else 1
    name = "Affine" if affine else str(rng.choice(PIECEWISE if piecewise else CURVED))
    stacked = not affine and rng.random() < 0.3

    def one() -> Description:
        if affine:
            return random_rows(z, s, slack, rows, rng)
        part = random_constraint(name, z, s, slack, rng, rounded=not varied)
        if not stacked:
            return part
        other = random_constraint(
            str(rng.choice(["Affine", *CURVED, *PIECEWISE])), z, s, slack, rng, rounded=not varied
        )
        return ("Stack", [part, other])

    g = [one() for _ in range(trials)]
    feasible = True
    if rng.random() < 0.08:  # beyond a hyperplane that K is behind
        apart = separated(K, g, s, affine, rng)
        feasible, g = apart is None, apart or g
    distances = [-3, -1, 0, 0, 0, 1, 2, 3, 6, 9, 12, 15, 18]
    power = int(rng.choice(distances[:8] if ordinary and not affine else distances))
    distance = s * 10.0**power
    y = z + distance * rng.normal(size=(trials, n))
    unchanged = False
    inside = all((part.value < -1e-6 * part.unit)[part.row >= 0].all() for h in g for part in constraint_blocks(h, z))
    if feasible and inside and rng.random() < 0.05:
        y, unchanged = np.tile(z, (trials, 1)), True
    caps = None
    if feasible and not unchanged and trials == 1 and distance <= 1e3 * s and rng.random() < 0.15:
        caps = Caps(s * 10.0 ** rng.uniform(-3.0, 1.0, size=row_count(g[0])), False)
        if rng.random() < 0.5:
            caps = Caps(caps.of[0], True)
    nearest = None
    if feasible and not unchanged and caps is None:
        K, g, y, nearest = variations.of(K, g, y, z, s, distance)
    label = f"{kind} ∩ {name}{'+' if stacked else ''}{'' if feasible else ' (empty)'}"
    label += "" if caps is None else " (prox of the sum)" if caps.shared else " (prox)"
    case = Case(K, g, y, caps, feasible, unchanged, label, nearest=nearest)
    return case._replace(traits=traits_of(case, s, power))


def separated(
    K: Description, g: list[Description], s: float, affine: bool, rng: np.random.Generator
) -> list[Description] | None:
    """Constraints beyond a hyperplane that K is behind; None if none is known."""
    n = len(g[0][1][0]) if affine else dimension(K)
    a = rng.normal(size=n)
    a /= np.linalg.norm(a)
    level = support(K, a)
    if not np.isfinite(level):
        return None
    gap = s * 10.0 ** rng.uniform(-4.0, 1.0) + 1e-5 * abs(level)
    if affine:
        return [("Affine", np.vstack([part[1], -a]), np.append(part[2], -(level + gap))) for part in g]
    radius = s * rng.uniform(0.1, 2.0)
    return [("NormBall", a * (level + gap + radius), radius)]


def dimension(K: Description) -> int:
    """The number of its coordinates."""
    match K[0]:
        case "Space" | "Orthant" | "Simplex" | "CappedSimplex":
            return int(K[1])
        case "Polyhedron":
            return int(K[1].shape[1])
        case "Product":
            return sum(K[2])
        case "Intersection":
            return dimension(K[1][0])
    return int(K[1].size)


class Variations:
    """What is drawn after a case, by random numbers of its own: scales, sparse and soft rows, batches, empty rounds."""

    def __init__(self, rng: np.random.Generator, used: bool) -> None:
        self.rng, self.used = rng, used

    def size(self, s: float) -> float:
        """This one, or the twentieth power of 2 or of 1/2."""
        return float(2.0 ** self.rng.choice([-20, 20])) if self.used and self.rng.random() < 0.15 else s

    def of(
        self, K: Description, g: list[Description], y: Array, z: Array, s: float, distance: float
    ) -> tuple[Description, list[Description], Array, Nearest | None]:
        """K, g, the targets, and the least violation where the round is made empty; z is a feasible point."""
        if not self.used:
            return K, g, y, None
        rng, drawn = self.rng, self.rng.random()
        affine = g[0][0] == "Affine"
        if drawn < 0.12:
            found = nearest_round(K, z, s, rng)
            if found is not None:
                target = found[1] + distance * rng.normal(size=(1, z.size))
                return K, [found[0]], target, found[2]
        elif drawn < 0.3 and affine:
            A, b = g[0][1:]
            kept = np.where(rng.random(A.shape) < 0.4, A, 0.0)
            with np.errstate(invalid="ignore"):
                g = [("SparseAffine", kept, b - (A - kept) @ z)]
        elif drawn < 0.45 and g[0][0] == "Stack":
            part = int(rng.integers(2))
            parts = [("Soft", h) if i == part else h for i, h in enumerate(g[0][1])]
            g = [("Stack", parts)]
        elif drawn < 0.6 and not affine:
            y = np.vstack([y, z + distance * rng.normal(size=(4, z.size))])
        return K, g, y, None


def nearest_round(
    K: Description, z: Array, s: float, rng: np.random.Generator
) -> tuple[Description, Array, Nearest] | None:
    """A constraint that misses K by a known gap, the point of K next to it, and which rows yield; or None.

    The gap is beyond a hyperplane that touches K at that point p: a halfspace, or a ball whose nearest point is p.
    Other rows, satisfied at p, may stand beside it; where it is soft, these are hard.
    """
    n = z.size
    a = rng.normal(size=n)
    if rng.random() < 0.3 and K[0] != "Product":  # it touches a face
        a = rng.choice([-1.0, 1.0]) * np.eye(n)[rng.integers(n)]
    a /= np.linalg.norm(a)
    p = touching(K, a)
    if p is None:
        return None
    gap = s * 10.0 ** rng.uniform(-3.0, 1.0)
    if rng.random() < 0.5:
        apart: Description = ("Affine", -a[None], np.array([-(float(a @ p) + gap)]))
    else:
        radius = s * rng.uniform(0.1, 2.0)
        apart = ("NormBall", p + (gap + radius) * a, radius)
    drawn = rng.random()
    round_parts = {part[0] for part in (K[1] if K[0] == "Product" else [K])} & {"Ball", "Ellipsoid"}
    only = p if apart[0] == "NormBall" or round_parts else None
    if drawn < 0.4:
        return apart, p, Nearest(gap, np.ones(1, dtype=bool), only)
    kind = str(rng.choice(["Affine", "NormBall", "Quadratic", "NormInf"]))
    beside = random_constraint(kind, p, s, float(rng.choice([0.1, 1.0])), rng)
    soft = drawn < 0.7
    rows = np.append(np.full(row_count(beside), not soft), True)
    return ("Stack", [beside, ("Soft", apart) if soft else apart]), p, Nearest(gap, rows, only)


def touching(K: Description, a: Array) -> Array | None:
    """A point of K where ⟨a, x⟩ is largest; None if there is none, or none is known."""
    match K[0]:
        case "Box":
            p = np.where(a > 0, K[2], np.where(a < 0, K[1], np.clip(0.0, K[1], K[2])))
            return p if np.isfinite(p).all() else None
        case "Ball":
            return K[1] + K[2] * a / max(float(np.linalg.norm(a)), 1e-300)
        case "L1Ball":
            i = int(np.argmax(np.abs(a)))
            return K[1] + K[2] * np.sign(a[i]) * np.eye(a.size)[i]
        case "Ellipsoid":
            return K[1] + K[2] @ a / max(float(np.sqrt(a @ K[2] @ a)), 1e-300)
        case "Simplex":
            return K[2] * np.eye(a.size)[int(np.argmax(a))]
        case "Orthant":
            return np.zeros(a.size) if (a <= 0).all() else None
        case "Product":
            starts = np.cumsum([0, *K[2]])
            parts = [touching(part, a[i:j]) for part, i, j in zip(K[1], starts[:-1], starts[1:], strict=True)]
            return None if any(p is None for p in parts) else np.concatenate(parts)
    return None


def traits_of(case: Case, s: float, power: int) -> tuple[str, ...]:
    """What is counted of a case besides K and the constraint."""
    return (
        f"{case.y.shape[1]} dimensions",
        f"size 2^{np.log2(s):+.0f}" if abs(np.log2(s)) == 20 else f"size {s:.0e}",
        f"distance 1e{power:+d} sizes",
        "a batch" if len(case.y) > 1 else "one point",
        "hinge prox" if case.caps is not None else "nearest point of an empty round" if case.nearest is not None
        else "empty round" if not case.feasible else "feasible target" if case.unchanged else "projection",
    )  # fmt: skip


def members(g: Description) -> list[str]:
    """The kinds of a constraint and, of a Stack, of its parts."""
    if g[0] == "Stack":
        return ["Stack", *(kind for part in g[1] for kind in members(part))]
    if g[0] == "Soft":
        return ["Soft", *members(g[1])]
    if g[0] == "Quadratic" and not np.any(g[1] - np.diag(np.diag(g[1]))):
        return ["Diagonal"]
    return [g[0]]


# -------------------------------------------------------------------------------------------------------- the calls


def build_set(K: Description) -> Any:
    """cocopt's object."""
    match K[0]:
        case "Product" | "Intersection":
            return getattr(cocopt, K[0])([build_set(part) for part in K[1]])
        case _:
            return getattr(cocopt, K[0])(*K[1:])


def build_constraint(g: list[Description]) -> Any:
    """cocopt's object for one trial, or for several affine ones with a leading axis."""
    if len(g) > 1:
        return constraints.Affine(np.stack([part[1] for part in g]), np.stack([part[2] for part in g]))
    kind, *arguments = g[0]
    if kind == "Stack":
        return constraints.Stack([build_constraint([part]) for part in arguments[0]])
    if kind == "Soft":
        return constraints.Soft(build_constraint(arguments))
    if kind == "SparseAffine":
        return constraints.Affine(csr_array(arguments[0]), arguments[1])
    return getattr(constraints, kind)(*arguments)


def failures(case: Case) -> list[str]:
    """What is wrong with the package's answer, trial by trial."""
    try:
        x = answer(case)
    except InfeasibleRound as error:
        return [f"a feasible round was called empty: {error}"] if case.feasible else []
    except CocoptError as error:
        if "too far away" in str(error) and np.abs(case.y).max() > BEYOND * set_scale(case.K):
            return []  # beyond what can be computed an error is right
        return [f"{type(error).__name__}: {error}"]
    if not case.feasible:
        return ["an empty round was projected onto"]
    if case.unchanged and not np.array_equal(x, case.y):
        return [f"a feasible target was moved by {np.abs(x - case.y).max():.3g}"]
    if case.unchanged:
        return []
    g = case.g * len(case.y) if len(case.g) == 1 else case.g
    found = [
        judge(case.K, part, target, point, case.caps)
        if case.nearest is None
        else judge_nearest(case.K, part, target, point, case.nearest)
        for part, target, point in zip(g, case.y, x, strict=True)
    ]
    return [text for text in found if text is not None]


def answer(case: Case) -> Array:
    """What the package finds, (trials, n)."""
    K, g = build_set(case.K), build_constraint(case.g)
    y = case.y if len(case.y) > 1 else case.y[0]
    if case.caps is not None:
        cap: Any = "sum" if case.caps.shared else "each"
        return np.atleast_2d(cocopt.hinge_prox(K, g, y, weight=2.0 * case.caps.of, rho=1.0, cap=cap))
    return np.atleast_2d(cocopt.project(K, g, y, infeasible="raise" if case.nearest is None else "nearest"))


class Summary(NamedTuple):
    """How many projections were judged, of which kinds, and what failed: (seed, label, text)."""

    count: int
    kinds: collections.Counter[str]
    failed: list[tuple[int, str, str]]
    calls: collections.Counter[tuple[str, str]]  # of each set with each kind of constraint, ("", trait) for traits


def run(first: int, count: int, ordinary: bool = False, cases: int = sys.maxsize) -> Summary:
    """Judges cases from a seed on until so many projections, or so many cases, were made."""
    made, kinds, failed, seed = 0, collections.Counter[str](), [], first
    calls: collections.Counter[tuple[str, str]] = collections.Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        while made < count and seed < first + cases:
            case = random_case(seed, ordinary)
            try:
                failed += [(seed, case.label, text) for text in failures(case)[:1]]
            except Exception:  # a crash is a finding, too
                failed.append((seed, case.label, traceback.format_exc(limit=-2)))
            made += len(case.y)
            kinds[case.label] += len(case.y)
            calls.update((case.K[0], kind) for kind in set(members(case.g[0])))
            calls.update(("", trait) for trait in case.traits)
            seed += 1
    return Summary(made, kinds, failed, calls)


PART = 100  # cases that are judged, and kept on disk, together


def judge_part(first: int, ordinary: bool) -> Summary:
    return run(first, sys.maxsize, ordinary, PART)


def in_parts(first: int, count: int, ordinary: bool, jobs: int, kept: Path | None) -> Iterator[tuple[int, Summary]]:
    """The parts from a seed on until so many projections were judged, in order; what is kept is not made again."""
    done: dict[int, Summary] = {}
    if kept is not None and kept.exists():
        for line in kept.read_text().splitlines():
            start, made, kinds, failed, calls = json.loads(line)
            pairs = {(K, kind): number for K, kind, number in calls}
            failures_of = [(int(seed), str(label), str(text)) for seed, label, text in failed]
            done[start] = Summary(made, collections.Counter(kinds), failures_of, collections.Counter(pairs))
    spawn = multiprocessing.get_context("spawn")  # a process with threads cannot be forked safely
    with concurrent.futures.ProcessPoolExecutor(jobs, spawn) as executor:
        ahead: dict[int, concurrent.futures.Future[Summary]] = {}
        made, start = 0, first
        while made < count:
            for later in range(start, start + PART * jobs, PART):
                if later not in done and later not in ahead:
                    ahead[later] = executor.submit(judge_part, later, ordinary)
            if start not in done:
                done[start] = found = ahead.pop(start).result()
                if kept is not None:
                    calls = [(K, kind, number) for (K, kind), number in found.calls.items()]
                    with kept.open("a") as file:
                        file.write(json.dumps([start, found.count, found.kinds, found.failed, calls]) + "\n")
            made += done[start].count
            yield start, done[start]
            start += PART
        for future in ahead.values():
            future.cancel()


def coverage(calls: collections.Counter[tuple[str, str]]) -> str:
    """How many calls there were of each set with each kind of constraint, and of the other traits of a case."""
    kinds = [*KINDS, "Stack", "Soft"]
    lines = [" " * 13 + " ".join(f"{kind[:8]:>8}" for kind in kinds)]
    lines += [f"{K:13}" + " ".join(f"{calls[K, kind]:8d}" for kind in kinds) for K in SETS]
    traits = sorted((trait, number) for (K, trait), number in calls.items() if not K)
    return "\n".join([*lines, *(f"{number:8d} {trait}" for trait, number in traits)])


def main() -> int:
    """Runs from the command line."""
    parser = argparse.ArgumentParser(description="random projections, judged by their optimality conditions")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first case")
    parser.add_argument("--count", type=int, default=3000, help="how many projections to make")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--kept", type=Path, help="a file of what was judged: the same command continues from it")
    parser.add_argument("--kinds", action="store_true", help="also list how many of each kind were made")
    parser.add_argument("--ordinary", action="store_true", help="smaller and nearer cases, as in the fast tests")
    arguments = parser.parse_args()
    start, made, failed = time.monotonic(), 0, 0
    kinds, calls = collections.Counter[str](), collections.Counter[tuple[str, str]]()
    for first, part in in_parts(arguments.seed, arguments.count, arguments.ordinary, arguments.jobs, arguments.kept):
        for seed, label, text in part.failed:
            print(f"seed {seed}: {label}: {text}")
            call = f"fuzzing.random_case({seed}, {arguments.ordinary})"
            print(f"    PYTHONPATH=tests python -c 'import fuzzing; print(fuzzing.failures({call}))'", flush=True)
        made, failed = made + part.count, failed + len(part.failed)
        kinds += part.kinds
        calls += part.calls
        print(f"{made} projections, seeds to {first + PART}, {time.monotonic() - start:.0f} s", file=sys.stderr)
    if arguments.kinds:
        for label, number in kinds.most_common():
            print(f"{number:8d} {label}")
    print(coverage(calls))
    print(
        f"{made} projections of {len(kinds)} kinds in {time.monotonic() - start:.0f} s, {failed} failures: "
        f"in {sum(calls['', trait] for trait in ('a batch', 'one point'))} calls"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

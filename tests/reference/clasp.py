"""CLASP as a naive loop around CVXPY; nothing here imports cocopt. Descriptions are those of reference.py."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from reference import projections as reference
from reference.projections import Array, Description


class Seen(NamedTuple):
    """One round as the loop saw it."""

    x: Array  # x_t
    loss: float
    rows: Array  # g_{t,i}(x_t)
    past: float  # Σ (g_τ^+(x_t))² over the earlier constraints that are remembered
    step: float
    target: Array  # x_t − η_t ∇f_t(x_t)
    next: Array  # x_{t+1}


def loss(f: Description, x: Array) -> tuple[float, Array]:
    """f(x) and a subgradient."""
    match f:
        case ("Norm", H, y):
            residual = H @ x - y
            size = float(np.linalg.norm(residual))
            return size, H.T @ residual / size
        case ("LeastSquares", H, y):
            residual = H @ x - y
            return float(residual @ residual) / 2, H.T @ residual
        case ("Linear", c):
            return float(c @ x), c
        case ("Distance", center):
            return float((x - center) @ (x - center)) / 2, x - center
        case ("Hinge", u, v):
            margin = 1 - v * float(u @ x)
            return max(0.0, margin), -v * u if margin > 0 else np.zeros(len(x))
        case ("Logistic", u, v):
            margin = v * float(u @ x)
            return math.log(1 + math.exp(-margin)), -v * u / (1 + math.exp(margin))
    raise ValueError(f)


def step(rule: Description, t: int, squares: float) -> float:
    """η_t; ``squares`` is Σ_{s≤t} ‖∇f_s(x_s)‖²."""
    match rule:
        case ("Power", beta, scale):
            return float(scale / t**beta)
        case ("StronglyConvex", m):
            return 1 / (m * t)
        case ("Constant", c):
            return float(c)
        case ("Adaptive", D, scale):
            return float(scale * D / math.sqrt(squares))
        case ("callable",):
            return 1 / (3 + t)
    raise ValueError(rule)


def single_row(g: Description, i: int, x: Array) -> Description:
    """The i-th row of g alone; x is any point."""
    match g:
        case ("Affine", A, b):
            return ("Affine", A[i : i + 1], b[i : i + 1])
        case ("Stack", parts):
            for part in parts:
                count = len(rows(part, x))
                if i < count:
                    return single_row(part, i, x)
                i -= count
        case ("from_cvxpy", inner):
            return single_row(inner, i, x)
    return g


def rows(g: Description, x: Array) -> Array:
    """The rows as the learner sees them: a black box has one."""
    values = reference.rows(g, x)
    return values.max(keepdims=True) if g[0] == "Function" else values


def project(K: Description, demanded: Sequence[Description], y: Array) -> Array:
    """argmin of ‖x − y‖ over K and all of the constraints.

    Constraints join as they are found violated: a solution without some of them that satisfies these too is the
    solution. CVXPY's point alone is good to about 1e-4 where boundaries are curved; it is polished by Newton's method
    on the KKT conditions, unless these are badly conditioned there, as at the apex of a cone.
    """
    waiting, joined = merged(demanded), []
    x = solve(K, [], y) if reference.outside(K, y) > 0.0 else y
    while violated := [g for g in waiting if (reference.rows(g, x) > 1e-10).any()]:
        joined += violated
        waiting = [g for g in waiting if not any(g is other for other in violated)]
        x = solve(K, joined, y)
    return x


def solve(K: Description, demanded: list[Description], y: Array) -> Array:
    g = ("Stack", demanded)
    x = reference.by_cvxpy(K, g, y)
    try:
        return reference.polish(reference.pieces(K) + reference.pieces(g), np.eye(len(y)), -y, x)
    except reference.BadlyConditioned:
        return x


def merged(demanded: Sequence[Description]) -> list[Description]:
    """The same constraints, affine rows in one piece: CVXPY's time goes with the number of pieces."""
    flat = [part for g in demanded for part in flattened(g)]
    affine = [g for g in flat if g[0] == "Affine"]
    rest = [g for g in flat if g[0] != "Affine"]
    if affine:
        rest.append(("Affine", np.vstack([A for _, A, _ in affine]), np.concatenate([b for _, _, b in affine])))
    return rest


def flattened(g: Description) -> list[Description]:
    match g:
        case ("Stack", parts):
            return [piece for part in parts for piece in flattened(part)]
        case ("Function" | "from_cvxpy", inner):
            return flattened(inner)
    return [g]


def along(K: Description, vector: Array) -> Array:
    """The part of a vector along the affine hull of K: of a simplex, less the mean."""
    if K[0] == "Simplex":
        return vector - vector.mean()
    if K[0] == "Product":
        parts, at = [], 0
        for part in K[1]:
            size = part[1] if part[0] == "Simplex" else len(np.atleast_1d(part[1]))
            parts.append(along(part, vector[at : at + size]))
            at += size
        return np.concatenate(parts)
    return vector


def run(
    K: Description,
    start: Array,
    stream: Sequence[tuple[Description, Description]],
    rule: Description,
    mode: str,
    window: int | None,
) -> Iterator[Seen]:
    """CLASP's rounds."""
    x, squares = start, 0.0
    kept: list[tuple[Description, Description]] = []  # each constraint, and what of it is demanded
    for t, (f, g) in enumerate(stream, start=1):
        value, gradient = loss(f, x)
        gradient = along(K, gradient)
        squares += float(gradient @ gradient)
        eta = step(rule, t, squares)
        seen = rows(g, x)
        past = sum(max(0.0, rows(old, x).max()) ** 2 for old, _ in kept)
        kept.append((g, single_row(g, int(np.argmax(seen)), x) if mode == "worst" else g))
        target = x - eta * gradient
        following = project(K, [demanded for _, demanded in kept], target)
        if window is not None:
            kept = kept[1:] if len(kept) == window else kept
        yield Seen(x, value, seen, past, eta, target, following)
        x = following

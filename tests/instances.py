"""Random instances of K ∩ {g ≤ 0}, feasible by construction: descriptions as in reference/, and cocopt's objects."""

from __future__ import annotations

from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from reference import projections as reference
from reference.projections import Array, Description

import cocopt
from cocopt import constraints

SETS = ("Box", "Ball", "Simplex", "Halfspace", "Polyhedron", "L1Ball", "Ellipsoid", "Product")
CURVED = ("NormBall", "Quadratic", "SecondOrder", "Stack")
CONSTRAINTS = ("row", "rows", *CURVED, "Function", "from_cvxpy")
POSITION = 1e-7  # the promised accuracy of positions, where the active set is well conditioned


class Instance(NamedTuple):
    """K, g, and a point z of K with g(z) ≤ −slack."""

    K: Description
    g: Description
    z: Array


def build_set(K: Description) -> Any:
    """cocopt's object for a description."""
    if K[0] == "Product":
        return cocopt.Product([build_set(part) for part in K[1]])
    return getattr(cocopt, K[0])(*K[1:])


def build(g: Description) -> Any:
    """cocopt's object for a description."""
    kind, *arguments = g
    if kind == "Stack":
        return constraints.Stack([build(part) for part in arguments[0]])
    if kind == "Function":
        inner = arguments[0]
        return constraints.Function(
            lambda x: float(reference.rows(inner, x).max()), lambda x: reference.subgradient(inner, x)
        )
    if kind == "from_cvxpy":
        x = cp.Variable(width(arguments[0]))
        return constraints.from_cvxpy(cp.hstack(reference.expressions(arguments[0], x)), x)
    return getattr(constraints, kind)(*arguments)


def width(g: Description) -> int:
    """The dimension of the points that g takes."""
    kind, first, *_ = g
    if kind == "Stack":
        return width(first[0])
    return int(np.shape(first)[-1])


def stacked(descriptions: list[Description]) -> Description:
    """Constraints of one kind and shape as one, with a leading axis."""
    kind = descriptions[0][0]
    if kind == "Stack":
        return ("Stack", [stacked(list(parts)) for parts in zip(*(g[1] for g in descriptions), strict=True)])
    return (kind, *(np.stack(arguments) for arguments in zip(*(g[1:] for g in descriptions), strict=True)))


def instance(kind: str, constraint: str, n: int, seed: int, *, slack: float = 0.1) -> Instance:
    """A random set of one kind and a random constraint of another."""
    rng = np.random.default_rng(seed)
    K, z = random_set(kind, n, rng)
    return Instance(K, random_constraint(constraint, z, rng, slack=slack), z)


def random_set(kind: str, n: int, rng: np.random.Generator) -> tuple[Description, Array]:
    """A random set and a random point in it."""
    z = rng.normal(size=n)
    direction = rng.normal(size=n)
    away = direction / np.linalg.norm(direction) * rng.uniform(0.0, 0.9)
    match kind:
        case "Box":
            return ("Box", z - rng.uniform(0.1, 1.0, n), z + rng.uniform(0.1, 1.0, n)), z
        case "Ball":
            radius = rng.uniform(0.5, 1.5)
            return ("Ball", z + radius * away, radius), z
        case "Simplex":
            total = rng.uniform(0.5, 2.0)
            return ("Simplex", n, total), total * rng.dirichlet(np.ones(n))
        case "Halfspace":
            return ("Halfspace", direction, direction @ z + rng.uniform(0.0, 0.5)), z
        case "Polyhedron":
            A = np.vstack([rng.normal(size=(n + 3, n)), np.eye(n), -np.eye(n)])  # the last rows bound it
            return ("Polyhedron", A, A @ z + np.append(rng.uniform(0.1, 1.0, n + 3), np.full(2 * n, 4.0))), z
        case "L1Ball":
            radius = rng.uniform(0.5, 1.5)
            return ("L1Ball", z + radius * away / np.sqrt(n), radius), z
        case "Ellipsoid":
            Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
            half = Q * rng.uniform(0.4, 1.5, n)  # P = half halfᵀ
            return ("Ellipsoid", z + half @ away, half @ half.T), z
        case "Product":
            sizes = [n] if n == 1 else [n // 2, n - n // 2]
            kinds = rng.choice(["Box", "Ball", "Simplex", "L1Ball"], size=len(sizes))
            parts = [random_set(str(part), m, rng) for part, m in zip(kinds, sizes, strict=True)]
            return ("Product", [part for part, _ in parts]), np.concatenate([inner for _, inner in parts])
    raise ValueError(kind)


def random_constraint(kind: str, z: Array, rng: np.random.Generator, *, slack: float) -> Description:
    """A random constraint with g(z) = −slack (its rows ≤ −slack)."""
    n = len(z)
    match kind:
        case "row":
            A = rng.normal(size=(1, n))
            return ("Affine", A, A @ z + slack)
        case "rows":
            A = rng.normal(size=(4, n))
            return ("Affine", A, A @ z + slack * rng.uniform(1.0, 4.0, 4))
        case "NormBall":
            center = z + rng.normal(size=n)
            return ("NormBall", center, float(np.linalg.norm(z - center)) + slack)
        case "Quadratic":
            F, q = rng.normal(size=(rng.integers(1, n + 1), n)), rng.normal(size=n)
            P = F.T @ F
            return ("Quadratic", P, q, float(-(0.5 * z @ P @ z + q @ z) - slack))
        case "SecondOrder":
            A, b, c = rng.normal(size=(2, n)), rng.normal(size=2), 0.3 * rng.normal(size=n)
            return ("SecondOrder", A, b, c, float(np.linalg.norm(A @ z + b) - c @ z) + slack)
        case "Stack":
            kinds = ("rows", "NormBall", "Quadratic", "SecondOrder")
            return ("Stack", [random_constraint(part, z, rng, slack=slack) for part in kinds])
        case "Function" | "from_cvxpy":
            inner = str(rng.choice(["rows", "NormBall", "Quadratic", "SecondOrder"]))
            return (kind, random_constraint(inner, z, rng, slack=slack))
    raise ValueError(kind)


def affine_case(kind: str, n: int, count: int, seed: int) -> tuple[Description, Array, Array, Array]:
    """A set, feasible rows A, b and a target."""
    rng = np.random.default_rng(seed)
    K, z = random_set(kind, n, rng)
    A = rng.normal(size=(count, n))
    return K, A, A @ z + rng.uniform(0.05, 0.3, count), z + 2 * rng.normal(size=n)

"""Projections do not depend on the units of lengths and constraints."""

from __future__ import annotations

import numpy as np
import pytest
from instances import CONSTRAINTS, POSITION, SETS, affine_case, build, build_set, instance
from reference import projections as reference
from reference.projections import Description

import cocopt
from cocopt import constraints


def scaled_set(K: Description, s: float) -> Description:
    """{s·x : x in K}."""
    match K:
        case ("Simplex", n, total):
            return ("Simplex", n, s * total)
        case ("Halfspace" | "Polyhedron" as kind, A, b):
            return (kind, A, s * b)
        case ("Ellipsoid", center, P):
            return ("Ellipsoid", s * center, s * s * P)
        case ("Product", parts):
            return ("Product", [scaled_set(part, s) for part in parts])
    return (K[0], s * K[1], s * K[2])


def scaled_constraint(g: Description, s: float) -> Description:
    """s·g(x/s): the same constraint in another unit of length."""
    match g:
        case ("Affine", A, b):
            return ("Affine", A, s * b)
        case ("NormBall", center, radius):
            return ("NormBall", s * center, s * radius)
        case ("Quadratic", P, q, r):
            return ("Quadratic", P / s, q, s * r)
        case ("SecondOrder", A, b, c, d):
            return ("SecondOrder", A, s * b, c, s * d)
        case (kind, parts) if kind == "Stack":
            return ("Stack", [scaled_constraint(part, s) for part in parts])
        case (kind, inner):
            return (kind, scaled_constraint(inner, s))
    raise ValueError(g)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
@pytest.mark.parametrize("constraint", [kind for kind in CONSTRAINTS if kind != "Function"])
@pytest.mark.parametrize("kind", SETS)
def test_units_of_length_do_not_matter(kind: str, constraint: str, unit: float) -> None:
    case = instance(kind, constraint, 4, 7)
    y = case.z + 2 * np.random.default_rng(7).normal(size=4)
    expected = reference.project(case.K, case.g, y)
    K, g = build_set(scaled_set(case.K, unit)), build(scaled_constraint(case.g, unit))
    x = cocopt.project(K, g, y * unit)
    np.testing.assert_allclose(x / unit, expected, rtol=0, atol=POSITION * (1 + np.linalg.norm(y)))


@pytest.mark.parametrize("factor", [1e-6, 1e6])
@pytest.mark.parametrize("constraint", [kind for kind in CONSTRAINTS if kind != "Function"])
@pytest.mark.parametrize("kind", SETS)
def test_units_of_the_constraint_do_not_matter(kind: str, constraint: str, factor: float) -> None:
    """{factor·g ≤ 0} is {g ≤ 0}."""

    def times(g: Description) -> Description:
        match g:
            case ("NormBall", center, radius):
                n = len(center)
                return ("SecondOrder", factor * np.eye(n), -factor * center, np.zeros(n), factor * radius)
            case (name, list(parts)):
                return (name, [times(part) for part in parts])
            case ("from_cvxpy", inner):
                return ("from_cvxpy", times(inner))
        return (g[0], *(factor * argument for argument in g[1:]))

    case = instance(kind, constraint, 4, 8)
    y = case.z + 2 * np.random.default_rng(8).normal(size=4)
    x = cocopt.project(build_set(case.K), build(times(case.g)), y)
    expected = reference.project(case.K, case.g, y)
    np.testing.assert_allclose(x, expected, rtol=0, atol=POSITION * (1 + np.linalg.norm(y)))


@pytest.mark.parametrize("count", [2, 4, 13, 40])
@pytest.mark.parametrize("kind", SETS)
def test_row_norms_from_1e_minus_6_to_1e6(kind: str, count: int) -> None:
    described, A, b, y = affine_case(kind, 5, count, count)
    factors = np.logspace(-6, 6, count)
    x = cocopt.project(build_set(described), constraints.Affine(A * factors[:, None], b * factors), y)
    expected = reference.project(described, ("Affine", A, b), y)
    np.testing.assert_allclose(x, expected, rtol=0, atol=POSITION * (1 + np.linalg.norm(y)))

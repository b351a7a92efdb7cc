"""Units of length and of rows scale projections and change nothing else.

Each is judged in units of 1 (`fuzzing.judge`). A description is that of `fuzzing`: a class and its arguments.
"""

from __future__ import annotations

from typing import Any

import fuzzing
import numpy as np
import pytest

import cocopt
from cocopt import (
    Ball,
    Box,
    CappedSimplex,
    Halfspace,
    Intersection,
    Orthant,
    Polyhedron,
    Product,
    Simplex,
    Space,
    constraints,
)
from cocopt.errors import EmptySet, InfeasibleRound

SMALL, LARGE = 2.0**-20, 2.0**20  # exact in binary: data in these units are rounded as in units of 1
Description = tuple[Any, ...]


def scaled_set(K: Description, s: float) -> Description:
    """{s x : x in K}."""
    kind, *data = K
    match kind:
        case "Space" | "Orthant":
            return K
        case "Box" | "Ball":
            return (kind, s * data[0], s * data[1])
        case "Simplex" | "Halfspace" | "Polyhedron":
            return (kind, data[0], s * data[1])
        case "Product":
            return (kind, [scaled_set(part, s) for part in data[0]], data[1])
        case "Intersection":
            return (kind, [scaled_set(part, s) for part in data[0]])
    raise ValueError(kind)


def scaled_constraint(g: Description, s: float, t: float) -> Description:
    """t·g(x/s), where g has units: of a norm or an exponential form they are those of x, or none."""
    kind, *data = g
    match kind:
        case "Affine":
            return (kind, t / s * data[0], t * data[1])
        case "NormBall" | "Norm1" | "NormInf":
            return (kind, s * data[0], s * data[1])
        case "Quadratic":
            return (kind, t / s**2 * data[0], t / s * data[1], t * data[2])
        case "SecondOrder":
            return (kind, t / s * data[0], t * data[1], t / s * data[2], t * data[3])
        case "LogSumExp":
            return (kind, data[0] / s, data[1])
        case "CVaR":
            return (kind, t / s * data[0], data[1], t * data[2])
        case "Stack":
            return (kind, [scaled_constraint(part, s, t) for part in data[0]])
    raise ValueError(kind)


def assert_same_in_other_units(K: Description, g: Description, y: np.ndarray) -> None:
    """The projections at all units are optimal, seen in units of 1, and the same."""
    reference: np.ndarray | None = None
    for s in (1.0, SMALL, LARGE):
        for t in (1.0, SMALL, LARGE):
            built = fuzzing.build_constraint([scaled_constraint(g, s, t)])
            x = cocopt.project(fuzzing.build_set(scaled_set(K, s)), built, s * y) / s
            wrong = fuzzing.judge(K, g, y, x)
            assert wrong is None, f"at units of {s:.0e} for x and {t:.0e} for g: {wrong}"
            reference = x if reference is None else reference
            rounding = 4e-16 * float(np.abs(y).max())
            np.testing.assert_allclose(x, reference, rtol=1e-7, atol=1e-7 * np.abs(reference).max() + rounding)


#: wrong positions, violated rows or solver failures once, at lengths of about 1e-6
FOUND: dict[str, tuple[Description, Description, list[float]]] = {
    "a line": (
        ("Space", 1),
        (
            "Stack",
            [("Quadratic", np.array([[0.4304]]), np.array([-1.147]), -1.672), ("Norm1", np.array([-1.185]), 0.01)],
        ),
        [50540.0],
    ),
    "the orthant": (
        ("Orthant", 3),
        (
            "Stack",
            [
                ("Quadratic", np.diag([0.0832, 0.779, 0.0192]), np.array([0.896, 0.295, 0.0334]), -2.54),
                (
                    "Affine",
                    np.array(
                        [[0.335, 1.54, 2.44], [0.46, -1.17, 0.203], [0.175, 0.248, 0.116], [0.305, -0.228, -0.605]]
                    ),
                    np.array([5.46, 0.511, 0.703, -0.315]),
                ),
                ("Norm1", np.array([1.9, 0.4, 0.635]), 1.31),
            ],
        ),
        [839000.0, -882000.0, 337000.0],
    ),
    "a halfspace through 0": (
        ("Halfspace", np.array([-1.5, 1.81]), 0.0),
        (
            "Stack",
            [
                (
                    "LogSumExp",
                    np.array([[-0.626, 0.358], [-0.433, 0.618], [0.156, 0.87], [0.391, 0.653]]),
                    np.array([1.47, 1.33, 0.473, 2.22]),
                ),
                ("Quadratic", np.diag([1.23, 0.0166]), np.array([0.88, -0.211]), -0.123),
            ],
        ),
        [138000.0, 423000.0],
    ),
    "bounds that are 0 or infinite": (
        ("Box", np.array([0.0, -np.inf]), np.array([np.inf, np.inf])),
        (
            "Stack",
            [
                ("Quadratic", np.array([[2.15, 0.562], [0.562, 1.77]]), np.array([-0.317, -0.685]), -1.92),
                ("LogSumExp", np.array([[0.275, 0.411]]), np.array([0.797])),
            ],
        ),
        [270000.0, 3170.0],
    ),
    "a polyhedral cone": (
        ("Polyhedron", np.array([[0.182, -0.506], [1.09, -0.106]]), np.zeros(2)),
        (
            "Stack",
            [
                ("LogSumExp", np.array([[-0.244, 0.948], [0.92, 0.416], [1.88, -1.18]]), np.array([3.4, 3.07, 0.918])),
                ("CVaR", np.array([[0.0388, -3.79], [0.51, -1.48], [0.0064, 1.63], [-1.63, -0.527]]), 0.5, 0.948),
                ("Quadratic", np.diag([0.0664, 1.65]), np.array([1.19, -0.13]), 0.842),
            ],
        ),
        [330000.0, 876000.0],
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_projections_that_were_wrong_in_small_units(name: str) -> None:
    K, g, y = FOUND[name]
    assert_same_in_other_units(K, g, np.array(y))


def random_problem(seed: int) -> tuple[Description, Description, np.ndarray]:
    """Scenarios and another constraint through or near a point of K, and a target up to 1e6 sizes away."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    z = np.abs(rng.normal(size=n)) + 0.1
    z /= z.sum()
    box = ("Box", z - 0.5, z + 0.5)
    K: Description = [
        ("Space", n),
        ("Orthant", n),
        ("Simplex", n, float(z.sum())),
        ("Halfspace", np.arange(n) - n * z, 0.0) if n > 1 else ("Orthant", n),
        ("Product", [("Orthant", n), box], [n, n]),
        ("Intersection", [("Orthant", n), ("Ball", z + 0.2 / np.sqrt(n), 0.5)]),
        ("Intersection", [box, ("Halfspace", np.ones(n), 1.1)]),
    ][seed % 7]
    if K[0] == "Halfspace":
        K = ("Halfspace", K[1] * -np.sign(K[1] @ z), 0.0)
    z = np.concatenate([z, z]) if K[0] == "Product" else z
    n, slack = z.size, float(rng.choice([0.01, 0.1, 1.0]))
    S = rng.normal(size=(rng.integers(2, 20), n))
    level = float(rng.choice([0.0, 0.5, 0.9]))
    limit = float(constraints.CVaR(S, level, 0.0).value(z)) + slack
    c = z + rng.normal(size=n)
    other = [
        ("NormBall", c, float(np.linalg.norm(z - c)) + slack),
        ("Norm1", c, float(np.abs(z - c).sum()) + slack),
        ("Quadratic", np.eye(n), c, float(-(0.5 * z @ z + c @ z)) - slack),
    ][int(rng.integers(3))]
    reach = 10.0 ** float(rng.choice([-1, 0, 1, 3, 6]))
    return K, ("Stack", [("CVaR", S, level, limit), other]), z + reach * rng.normal(size=n)


@pytest.mark.parametrize("part", range(7))
def test_units_do_not_matter_under_scenarios_and_curved_rows(part: int) -> None:
    for k in range(8):
        assert_same_in_other_units(*random_problem(7 * k + part))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_units_do_not_matter_in_many_problems(part: int) -> None:
    for seed in range(1000 + 100 * part, 1100 + 100 * part):
        assert_same_in_other_units(*random_problem(seed))


@pytest.mark.parametrize("s", [SMALL, 1.0, LARGE])
def test_a_part_without_a_size_of_its_own_does_not_count_in_the_scale(s: float) -> None:
    ball = Ball(s * np.ones(2), s)
    for cone in (Space(2), Orthant(2), Halfspace([1.0, 2.0], 0.0), Polyhedron(-np.eye(2), np.zeros(2))):
        assert not cone.sized
        assert Product([cone, ball]).scale == s
        assert Intersection([Orthant(2), ball]).scale == s
        assert not Product([cone, Simplex(2, s)]).contains([0.5 * s, 0.5 * s, 0.5 * s, 0.6 * s])
    assert not Box(0.0, np.inf, dim=2).sized
    for K in (
        ball,
        Simplex(2, s),
        CappedSimplex(2, np.full(2, s), s),
        Halfspace([0.0, 2.0], 2.0 * s),
        Box(0.0, s, dim=2),
    ):
        assert K.sized
        assert K.scale == s
    with pytest.raises(EmptySet):
        Intersection([Orthant(2), Ball(-s * np.ones(2), s)])


@pytest.mark.parametrize("s", [SMALL, 1.0, LARGE])
@pytest.mark.parametrize("K", [Space(2), Orthant(2), Product([Space(1), Orthant(1)])], ids=repr)
def test_an_empty_round_has_a_least_violation_in_any_units(K: Any, s: float) -> None:
    """‖x‖ ≤ s and x₁ ≥ 2s miss each other; at x = 1.5s each is violated by 0.5s."""
    g = constraints.Stack([constraints.NormBall(np.zeros(2), s), constraints.Affine([-1.0, 0.0], -2.0 * s)])
    with pytest.raises(InfeasibleRound) as raised:
        cocopt.project(K, g, s * np.array([3.0, 1e3]))
    assert raised.value.least_violation == pytest.approx(0.5 * s, rel=1e-6)


def test_the_unit_of_length_is_that_of_each_trial() -> None:
    """Where K has no size the rows of a batch give one to every trial; targets are so far away that it matters."""
    units = np.array([SMALL, 1.0, LARGE])
    P = np.array([[2.0, 0.5], [0.5, 1.0]]) / units[:, None, None] ** 2
    rows = constraints.Quadratic(P, np.ones((3, 2)) / units[:, None], -np.ones(3))
    x = cocopt.project(Space(2), rows, 1e9 * units[:, None] * np.ones(2)) / units[:, None]
    np.testing.assert_allclose(x, np.broadcast_to(x[1], (3, 2)), rtol=1e-7)
    assert (rows.value(x * units[:, None]) <= 1e-9).all()

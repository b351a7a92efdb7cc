"""Units and representation do not matter: gradients along K's hull, scaled problems; and what is warned of."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from cocopt import CLASP, CLASPF, Box, CappedSimplex, Polyhedron, Product, Simplex, constraints, losses, registry, steps
from cocopt.errors import InvalidInput, SuspiciousInput

# sets in a proper affine subspace, with a vector normal to it and its inner product with every point of K
THIN: dict[str, tuple[Any, np.ndarray]] = {
    "simplex": (Simplex(4), np.ones(4)),
    "box with equal bounds": (Box([0.0, 0.5, 0.0, 0.0], [1.0, 0.5, 1.0, 1.0]), np.array([0.0, 1.0, 0.0, 0.0])),
    "polyhedron with an equation": (
        Polyhedron(
            np.vstack([np.eye(4), -np.eye(4), [[1.0, 1.0, 0.0, -1.0], [-1.0, -1.0, 0.0, 1.0]]]),
            np.concatenate([np.ones(4), np.zeros(4), [0.2, -0.2]]),
        ),
        np.array([1.0, 1.0, 0.0, -1.0]),
    ),
    "capped simplex": (CappedSimplex(4, np.full(4, 0.6)), np.ones(4)),
    "product": (Product([Simplex(2), Box(0.0, 1.0, dim=2)]), np.array([1.0, 1.0, 0.0, 0.0])),
}


def play(K: Any, normal: np.ndarray, learner: Any, shift: float, static: bool, rounds: int = 40) -> list[Any]:
    """Actions and metrics with gradients that are shifted along the normal; the values on K are the same."""
    rng = np.random.default_rng(7)
    level = float(normal @ learner.ask())  # the same at every point of K
    shown = []
    for t in range(rounds):
        c, a = rng.normal(size=4), rng.normal(size=4)
        b = float(a @ learner.start) + 0.05
        if static:
            a, b = np.array([1.0, -0.5, 0.3, 0.2]), float(np.array([1.0, -0.5, 0.3, 0.2]) @ learner.start) + 0.5
        mu, nu = (0.0, 0.0) if not shift else (shift * (1 + t % 3), shift * (t % 5))
        if static:
            nu = shift
        f = losses.Function(
            lambda x, c=c: float(c @ x),
            lambda x, c=c, mu=mu: c + mu * normal,  # the same values on K
        )
        record = learner.tell(f, constraints.Affine(a + nu * normal, b + nu * level))
        shown.append(np.concatenate([learner.ask(), [record.loss, record.violation]]))
    ledger = learner.ledger
    certificate = learner.certificate().value if hasattr(learner, "certificate") else 0.0
    return [np.array(shown), [ledger.loss, ledger.ccv1, ledger.ccv2], certificate]


@pytest.mark.parametrize("set_name", THIN)
@pytest.mark.parametrize("name", registry.classes("algorithm"))
@pytest.mark.filterwarnings("ignore::cocopt.errors.SuspiciousInput")  # some make steps that are tiny
def test_only_the_part_of_a_gradient_along_the_hull_counts(name: str, set_name: str) -> None:
    K, normal = THIN[set_name]
    cls = registry.classes("algorithm")[name]
    options = cls.example_options()[0]
    start = K.center
    for extra in ({}, {"steps": steps.Adaptive()}) if cls in (CLASP, CLASPF) else ({},):
        results = []
        for shift in (0.0, 3.0):
            learner = cls(K, start=start, **options, **extra)
            results.append(play(K, normal, learner, shift, static=learner.static))
        for plain, shifted in zip(*results, strict=True):
            np.testing.assert_allclose(shifted, plain, rtol=0, atol=1e-9)


def test_log_wealth_does_not_depend_on_the_mean_of_the_gradient() -> None:
    """On the simplex −log⟨r, x⟩ has a gradient of which nearly all is normal to the hull."""
    rng = np.random.default_rng(0)
    returns = 1.0 + 0.01 * rng.normal(size=(300, 5)) + np.array([0.002, 0.0, 0.0, 0.0, -0.002])
    learner = CLASP(Simplex(5), start=np.full(5, 0.2))
    for r in returns:
        learner.tell(losses.NegativeLog(r))
    wealth, uniform = -learner.ledger.loss, np.log(returns.mean(axis=1)).sum()
    assert wealth > uniform
    raw = np.sqrt(2.0) * np.sqrt(2.0) * np.sqrt(sum(float((r / r.mean()) @ (r / r.mean())) for r in returns))
    assert learner.certificate().value < 0.05 * raw  # the bound with whole gradients


@pytest.mark.parametrize("what", ["f", "g", "x"])
@pytest.mark.parametrize("factor", [1e-6, 1e6])
@pytest.mark.parametrize("options", [{}, {"rows": "worst"}, {"window": 3}, {"window": None}])
@pytest.mark.parametrize("algorithm", [CLASP, CLASPF])
def test_scaling_scales_the_trajectory_and_nothing_else(algorithm: Any, options: Any, factor: float, what: str) -> None:
    if algorithm is CLASPF and options:
        options = {"gradient_at": "xb"}
    in_f, in_g, in_x = (factor if what == name else 1.0 for name in "fgx")
    rng = np.random.default_rng(3)
    plain = algorithm(Box(0.0, 1.0, dim=3), start=np.full(3, 0.5), **options)
    scaled = algorithm(Box(0.0, in_x, dim=3), start=np.full(3, 0.5 * in_x), **options)
    for _ in range(50):
        c, A = rng.normal(size=3), rng.uniform(0, 1, (2, 3))
        b = rng.uniform(0.5, 1.0, 2)
        one = plain.tell(losses.Linear(c), constraints.Affine(A, b))
        other = scaled.tell(losses.Linear(in_f * c / in_x), constraints.Affine(in_g * A / in_x, in_g * b))
        np.testing.assert_allclose(scaled.ask(), in_x * plain.ask(), rtol=1e-8, atol=1e-9 * in_x)
        np.testing.assert_allclose(other.loss, in_f * one.loss, rtol=1e-7, atol=1e-9 * in_f)
    np.testing.assert_allclose(scaled.ledger.ccv1, in_g * plain.ledger.ccv1, rtol=1e-7)
    np.testing.assert_allclose(scaled.ledger.ccv2, in_g**2 * plain.ledger.ccv2, rtol=1e-7)
    if algorithm is CLASP:
        np.testing.assert_allclose(scaled.certificate().value, in_f * plain.certificate().value, rtol=1e-9)


def test_the_bound_of_adaptive_steps_holds_with_its_constants() -> None:
    """Regret ≤ √2·D·√Σ and CCV₂ ≤ L_g²(D² + 2cD²√(T'(1 + ln(Σ_T/n_1²)))), c = 1/√2."""
    rng = np.random.default_rng(0)
    K, D, c = Box(0.0, 1.0, dim=3), np.sqrt(3.0), 2**-0.5
    learner, squares, first, total = CLASP(K, start=np.full(3, 0.2)), 0.0, None, np.zeros(3)
    for _ in range(400):
        gradient, a = rng.normal(loc=[0.3, 0.0, -0.3]), rng.uniform(0, 1, 3)
        a /= np.linalg.norm(a)
        learner.tell(losses.Linear(gradient), constraints.Affine(a, 0.4))
        squares += gradient @ gradient
        first = first or gradient @ gradient
        total += gradient
    bound = np.sqrt(2.0) * D * np.sqrt(squares)
    assert learner.certificate().value <= bound * (1 + 1e-12)
    best = min(0.0, *(0.4 * total))  # over a subset of the actions that satisfy every constraint
    assert learner.ledger.loss - best <= learner.certificate().value
    assert learner.ledger.ccv2 <= D**2 + 2 * c * D**2 * np.sqrt(400 * (1 + np.log(squares / first)))
    promised = learner.bounds(400, lipschitz_f=np.sqrt(squares / 400), lipschitz_g=1.0)
    assert promised.regret == pytest.approx(bound)


def test_the_bounds_of_clasp_f_hold_with_adaptive_steps() -> None:
    rng = np.random.default_rng(2)
    learner, total, largest = CLASPF(Box(0.0, 1.0, dim=3), start=np.full(3, 0.2)), np.zeros(3), 0.0
    for _ in range(300):
        gradient, a = rng.normal(loc=[0.3, 0.0, -0.3]), rng.uniform(0, 1, 3)
        learner.tell(losses.Linear(gradient), constraints.Affine(a / np.linalg.norm(a), 0.4))
        total, largest = total + gradient, max(largest, float(np.linalg.norm(gradient)))
    promised = learner.bounds(300, lipschitz_f=largest, lipschitz_g=1.0)
    assert learner.ledger.loss - min(0.0, *(0.4 * total)) <= promised.regret
    assert learner.ledger.ccv2 <= promised.ccv2


# ---------------------------------------------------------------------------------------- what can hardly be meant


def test_a_learner_that_does_not_move_says_so_once() -> None:
    learner = CLASP(Box(0.0, 1000.0, dim=2), start=[500.0, 500.0], beta=0.5)
    tiny = losses.Linear([1e-6, 0.0])

    def rounds(count: int) -> None:
        for _ in range(count):
            learner.tell(tiny)

    rounds(99)
    with pytest.warns(SuspiciousInput, match=r"moved by less than 0\.1% .* suits any units"):
        rounds(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rounds(150)


@pytest.mark.parametrize(
    "case",
    {
        "adaptive": (CLASP(Box(0.0, 1000.0, dim=1), start=[500.0]), lambda t: 1e-6, None),
        "at a vertex": (CLASP(Box(0.0, 1000.0, dim=1), start=[0.0], beta=0.5), lambda t: 1e-6, None),
        "gradients cancel": (CLASP(Box(0.0, 1e6, dim=1), start=[5e5], beta=0.5), lambda t: (-1.0) ** t, None),
        "a constraint holds it": (
            CLASP(Box(0.0, 1000.0, dim=1), start=[500.0], beta=0.5),
            lambda t: -1e-6,
            constraints.Affine([1.0], 500.0),
        ),
    }.values(),
    ids=["adaptive", "vertex", "cancel", "constraint"],
)
def test_a_learner_that_has_reason_to_rest_does_not(case: Any) -> None:
    learner, slope, constraint = case
    for t in range(150):
        learner.tell(losses.Linear([slope(t)]), constraint)


def test_a_loss_with_the_wrong_sign_is_warned_of_once() -> None:
    learner = CLASP(Box(-1.0, 1.0, dim=2), start=[0.5, -0.5])
    wrong = losses.Function(lambda x: float(x @ x), lambda x: -2.0 * x)
    learner.tell(wrong)
    with pytest.warns(SuspiciousInput, match=r"loss: expected a convex function and its subgradients.*wrong sign"):
        learner.tell(wrong)
    for _ in range(5):
        learner.tell(wrong)
    correct = CLASP(Box(-1.0, 1.0, dim=2), start=[0.5, -0.5])
    for _ in range(120):
        correct.tell(losses.Function(lambda x: float(x @ x), lambda x: 2.0 * x))


def test_a_constraint_with_the_wrong_sign_is_named() -> None:
    learner = CLASP(Box(-1.0, 1.0, dim=2), start=[0.9, -0.5])
    wrong = constraints.Function(lambda x: float(x @ x) - 0.5, lambda x: -2.0 * x)
    before = learner.dumps()
    with pytest.raises(InvalidInput, match=r"constraint: expected a convex function.*check_constraint"):
        learner.tell(losses.Linear([1.0, 0.0]), wrong)
    assert learner.dumps() == before

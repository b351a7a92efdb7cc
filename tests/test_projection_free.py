"""OFW, SCOFW, Sarkar, Garber-Kretzu and Lu: the points of their formulas, no projection anywhere, and their errors."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from reference import projection_free as naive
from test_rivals import Stream, T, build, positive_definite

import cocopt
from cocopt import (
    OFW,
    SCOFW,
    AdaGrad,
    Ball,
    Box,
    ConvexSet,
    Ellipsoid,
    GarberKretzu,
    Halfspace,
    L1Ball,
    Lu,
    Polyhedron,
    Product,
    Sarkar,
    Simplex,
    constraints,
    losses,
)
from cocopt.errors import InvalidInput

ORACLES: dict[str, Any] = {
    "box": naive.box,
    "ball": lambda n: naive.ball(np.full(n, 0.3), 2.0),
    "simplex": lambda n: naive.simplex(n, 1.5),
    "ellipsoid": lambda n: naive.ellipsoid(np.full(n, 0.2), positive_definite(n)),
}
every_set = pytest.mark.parametrize("name", ORACLES)
every_kind = pytest.mark.parametrize("kind", ["regression", "svm"])  # with 4 rows and with 1
SEEDS = (0, 1)


@cache
def data(kind: str, strongly_convex: bool) -> Stream:
    return Stream(kind, strongly_convex, SEEDS)


def compare(stream: Stream, name: str, make: Any, reference: Any) -> tuple[Any, list[Any]]:
    """The learner after T rounds, and what else the references returned; all points agree."""
    K, oracles, others = build(name, stream.n)[0], ORACLES[name](stream.n), []
    learner = make(K, stream.start(K))
    points = stream.play(learner)
    for k, start in enumerate(stream.start(K)):
        expected = reference(oracles, start, stream.single(k), K.diameter)
        expected, other = expected if isinstance(expected, tuple) else (expected, None)
        np.testing.assert_allclose(points[k], expected, rtol=0, atol=1e-6)
        others.append(other)
    return learner, others


@pytest.mark.parametrize("options", [{}, {"G": 0.01, "V": 0.05}, {"G": 2e-3, "V": 0.3, "guess": 1e-3}])
@every_kind
@every_set
def test_ofw_is_its_formula(kind: str, name: str, options: dict[str, float]) -> None:
    options = {"G": 5.0, "V": 1.0, **options}
    G, V, guess = options["G"], options["V"], options.get("guess")
    learner, restarts = compare(
        data(kind, False),
        name,
        lambda K, start: OFW(K, T, G, start=start, weight=V, initial_guess=guess),
        lambda K, x, rounds, D: naive.ofw(K, x, rounds, T, G, D, V, guess),
    )
    last = [T + 1 - max(rounds, default=1) for rounds in restarts]
    np.testing.assert_array_equal(learner.memory.age, last)
    if guess is not None:
        assert all(restarts)  # this configuration is here for its restarts


def test_trials_restart_one_by_one() -> None:
    """A trial that violates restarts; one that does not goes on."""
    learner = OFW(Box(0.0, 1.0, dim=2), 10, 1e-3, start=np.zeros((2, 2)))
    for _ in range(5):
        learner.tell(losses.Linear([1.0, 1.0]), constraints.Affine(np.ones((2, 1, 2)), [[-5.0], [5.0]]))
    np.testing.assert_array_equal(learner.memory.age == 5, [False, True])


@pytest.mark.parametrize(("G", "V"), [(5.0, 1.0), (0.01, 0.05)])
@every_kind
@every_set
def test_sarkar_is_its_formula(kind: str, name: str, G: float, V: float) -> None:
    compare(
        data(kind, False),
        name,
        lambda K, start: Sarkar(K, T, G, start=start, weight=V),
        lambda K, x, rounds, D: naive.sarkar(K, x, rounds, T, G, D, V),
    )


@pytest.mark.parametrize("G", [5.0, 0.3])
@every_kind
@every_set
def test_scofw_is_its_formula(kind: str, name: str, G: float) -> None:
    stream = data(kind, True)
    compare(
        stream,
        name,
        lambda K, start: SCOFW(K, T, G, stream.m, start=start),
        lambda K, x, rounds, D: naive.scofw(K, x, rounds, T, G, D, stream.m),
    )


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.05, "block": 4}, {"epsilon": 0.2, "block": 1}])
@pytest.mark.parametrize("strongly_convex", [False, True])
@every_kind
@every_set
def test_garber_kretzu_is_its_formula(kind: str, name: str, strongly_convex: bool, options: dict[str, Any]) -> None:
    compare(
        data(kind, strongly_convex),
        name,
        lambda K, start: GarberKretzu(K, T, 2.0, start=start, **options),
        lambda K, x, rounds, D: naive.garber_kretzu(K, x, rounds, T, 2.0, options.get("epsilon"), options.get("block")),
    )


@pytest.mark.parametrize(("G", "V", "c"), [(2.0, 1.0, 1.0), (0.5, T**-0.5, 3.0)])
@pytest.mark.parametrize("strongly_convex", [False, True])
@every_kind
@every_set
def test_lu_is_its_formula(kind: str, name: str, strongly_convex: bool, G: float, V: float, c: float) -> None:
    stream = data(kind, strongly_convex)
    V = 1.0 if strongly_convex else V
    compare(
        stream,
        name,
        lambda K, start: Lu(K, T, G, start=start, strong_convexity=stream.m, weight=V, delta_scale=c),
        lambda K, x, rounds, D: naive.lu(K, x, rounds, T, G, D, stream.m, V, c),
    )


# --------------------------------------------------------------------------------------------------------- identities


@pytest.mark.parametrize("m", [None, 0.5])
def test_lu_on_a_ball_is_adagrad(m: float | None) -> None:
    """The first step of the infeasible projection is the projection onto the ball around K, here K itself."""
    stream = data("regression", m is not None)
    K = build("ball", stream.n)[0]
    one, two = (cls(K, T, 2.0, start=stream.start(K), strong_convexity=m) for cls in (Lu, AdaGrad))
    np.testing.assert_allclose(stream.play(one), stream.play(two), rtol=0, atol=1e-9)


def test_garber_kretzu_plays_one_point_per_block() -> None:
    stream = data("regression", False)
    K = build("box", stream.n)[0]
    points = stream.play(GarberKretzu(K, T, 2.0, start=stream.start(K), epsilon=0.05, block=7))
    moved = (points[:, 1:] != points[:, :-1]).any(axis=(0, 2))
    rounds = np.flatnonzero(moved) + 1
    assert rounds.size > 2
    assert (rounds % 7 == 0).all()


def test_a_large_epsilon_keeps_garber_and_kretzu_where_they_are() -> None:
    learner = GarberKretzu(Box(0.0, 1.0, dim=2), 100, 1.0, start=[0.2, 0.3])
    for _ in range(100):
        learner.tell(losses.Linear([1.0, 0.0]))
    np.testing.assert_array_equal(learner.ask(), [0.2, 0.3])


def test_without_gradients_sarkar_stays_at_the_start() -> None:
    """On a ball the linear minimiser of 0 is the centre."""
    learner = Sarkar(Ball([1.0, 2.0], 1.0), 10, 1.0)
    for _ in range(3):
        assert learner.tell(losses.Linear([0.0, 0.0])).step == 0.0
    np.testing.assert_array_equal(learner.ask(), [1.0, 2.0])


def test_sarkar_does_not_see_what_is_orthogonal_to_the_simplex() -> None:
    K, c = Simplex(3), np.array([0.5, -0.2, 0.3])
    one, two = (Sarkar(K, 50, 1.0, start=[1.0, 0.0, 0.0]) for _ in range(2))
    for _ in range(20):
        one.tell(losses.Linear(c))
        two.tell(losses.Linear(c + 7.0))
    np.testing.assert_allclose(one.ask(), two.ask(), rtol=0, atol=1e-12)


# ------------------------------------------------------------------------------------------------------ no projection

METHODS: dict[str, Any] = {
    "OFW": lambda K, **options: OFW(K, 50, 0.01, weight=0.05, **options),
    "SCOFW": lambda K, **options: SCOFW(K, 50, 3.0, 1.0, **options),
    "Sarkar": lambda K, **options: Sarkar(K, 50, 3.0, **options),
    "GarberKretzu": lambda K, **options: GarberKretzu(K, 50, 3.0, epsilon=0.1, block=2, **options),
    "Lu": lambda K, **options: Lu(K, 50, 3.0, **options),
    "Lu, strongly convex": lambda K, **options: Lu(K, 50, 3.0, strong_convexity=1.0, **options),
}
every_method = pytest.mark.parametrize("make", METHODS.values(), ids=METHODS)
BOUNDED: list[ConvexSet] = [
    Box(0.0, 1.0, dim=3),
    Ball([0.2, 0.0, 0.1], 1.5),
    Simplex(3),
    L1Ball(0.0, 2.0, dim=3),
    Ellipsoid([0.1, 0.2, 0.0], np.diag([1.0, 2.0, 0.5])),
    Polyhedron(np.concatenate([-np.eye(3), np.ones((1, 3))]), [0.0, 0.0, 0.0, 1.0]),
    Product([Box(0.0, 1.0, dim=1), Simplex(2)]),
]


@pytest.mark.parametrize("given", [False, True], ids=["default start", "given start"])
@pytest.mark.parametrize("K", BOUNDED, ids=lambda K: type(K).__name__)
@every_method
def test_nothing_is_projected(make: Any, K: ConvexSet, given: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    start = np.repeat(K.project(rng.normal(size=3))[None], 2, axis=0)

    def refuse(*_: Any) -> Any:
        raise AssertionError("a projection-free method projects")

    for cls in type(K), Box, Simplex, ConvexSet:
        for method in "project", "project_unchecked":
            monkeypatch.setattr(cls, method, refuse)
    learner = make(K, start=start) if given else make(K)
    for _ in range(8):
        g = constraints.Affine(rng.normal(size=(1, 3)), [0.0])
        learner.tell(losses.Distance(rng.normal(size=3)), g)
        assert K.contains(learner.ask()).all()


def test_other_methods_do_project(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the test above can fail."""
    learner = AdaGrad(Box(0.0, 1.0, dim=2), 10, 1.0)

    def refuse(*_: Any) -> Any:
        raise AssertionError("a projection")

    monkeypatch.setattr(Box, "project_unchecked", refuse)
    for call in (lambda: AdaGrad(Box(0.0, 1.0, dim=2), 10, 1.0), lambda: learner.tell(losses.Linear([1.0, 0.0]))):
        with pytest.raises(AssertionError, match="a projection"):
            call()


@pytest.mark.parametrize("K", BOUNDED, ids=lambda K: type(K).__name__)
@every_method
def test_default_starts_are_in_K(make: Any, K: ConvexSet) -> None:
    learner = make(K)
    expected = K.center if isinstance(learner, GarberKretzu | Lu) else K.minimise_linear(np.zeros(K.dim))
    np.testing.assert_array_equal(learner.ask(), expected)
    assert K.contains(learner.ask())
    assert not learner.ask().flags.writeable


@every_method
def test_an_action_played_outside_of_K_does_not_lead_out_of_K(make: Any) -> None:
    K = Box(0.0, 1.0, dim=2)
    learner = make(K, start=[0.5, 0.5])
    for t in range(6):
        played = [5.0, -3.0] if t % 2 else None
        learner.tell(losses.Distance([2.0, -1.0]), constraints.Affine([1.0, 0.0], 0.5), played=played)
        assert K.contains(learner.ask())


# ------------------------------------------------------------------------------------------------------------- errors


class Disk(ConvexSet):
    """The unit disk, with a projection alone."""

    dim = 2

    def project_unchecked(self, point: Any) -> Any:
        return point / np.maximum(1.0, np.linalg.norm(point, axis=-1, keepdims=True))

    def violation_unchecked(self, point: Any) -> Any:
        return np.maximum(np.linalg.norm(point, axis=-1) - 1.0, 0.0)


class DiskWithMinimiser(Disk):
    """The same with a linear minimiser, but without radii and diameter."""

    def minimise_linear_unchecked(self, direction: Any) -> Any:
        norm = np.linalg.norm(direction, axis=-1, keepdims=True)
        return -direction / np.where(norm > 0.0, norm, 1.0)


class BoundedDisk(Disk):
    """The same with a diameter, but no oracle."""

    diameter = 2.0


LINEAR = [name for name in METHODS if not name.startswith("Lu")]


@pytest.mark.parametrize("K", [Disk(), BoundedDisk(), Halfspace([1.0, 2.0], 1.0), Box([0.0, 0.0], [1.0, np.inf])])
@pytest.mark.parametrize("name", LINEAR)
def test_a_set_without_a_linear_minimiser_is_refused(name: str, K: ConvexSet) -> None:
    options: dict[str, Any] = {} if name == "GarberKretzu" else {"diameter": 2.0}
    with pytest.raises(InvalidInput, match=r"^K: expected a bounded set with a linear minimiser, got"):
        METHODS[name](K, start=[0.0, 0.0], **options)


@pytest.mark.parametrize("name", [name for name in LINEAR if name != "GarberKretzu"])
def test_a_set_of_unknown_diameter_needs_one(name: str) -> None:
    learner = METHODS[name](DiskWithMinimiser(), diameter=2.0)
    learner.tell(losses.Linear([1.0, 0.0]), constraints.Affine([0.0, 1.0], 0.5))
    with pytest.raises(InvalidInput, match=r"^diameter: expected a positive number, since that of K is inf, got None"):
        METHODS[name](DiskWithMinimiser())


@every_method
def test_a_set_without_oracles_is_refused_without_a_start_too(make: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^K: expected a set that defines"):
        make(Disk())


def test_a_set_without_radii_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^K: expected a set that defines outer_radius, got DiskWithMinimiser"):
        GarberKretzu(DiskWithMinimiser(), 10, 1.0, start=[0.0, 0.0])
    with pytest.raises(InvalidInput, match=r"^K: expected a set that defines inner_radius, got BoundedDisk"):
        Lu(BoundedDisk(), 10, 1.0, start=[0.0, 0.0])
    with pytest.raises(InvalidInput, match=r"^K: expected a bounded set, got Halfspace.*, whose outer radius is inf"):
        Lu(Halfspace([1.0, 0.0], 1.0), 10, 1.0, strong_convexity=1.0)


@pytest.mark.parametrize("cls", [OFW, Sarkar, Lu])
def test_a_single_point_needs_a_diameter(cls: Any) -> None:
    K = Ball([1.0, 2.0], 0.0)
    with pytest.raises(InvalidInput, match=r"^diameter: expected a positive number, since that of K is 0"):
        cls(K, 10, 1.0)
    learner = cls(K, 10, 1.0, diameter=1.0)
    learner.tell(losses.Linear([1.0, 0.0]), constraints.Affine([0.0, 1.0], 0.5))
    np.testing.assert_array_equal(learner.ask(), [1.0, 2.0])


K2 = Box(0.0, 1.0, dim=2)
BAD: list[Any] = [
    (lambda: OFW(K2, 0, 1.0), "horizon"),
    (lambda: OFW(K2, 10, 0.0), "lipschitz"),
    (lambda: OFW(K2, 10, 1.0, initial_guess=0.0), "initial_guess"),
    (lambda: OFW(K2, 10, 1.0, weight=-1.0), "weight"),
    (lambda: OFW(K2, 10, 1.0, diameter=np.inf), "diameter"),
    (lambda: SCOFW(K2, 10, 1.0, 0.0), "strong_convexity"),
    (lambda: Sarkar(K2, 10, np.nan), "lipschitz"),
    (lambda: GarberKretzu(K2, 10, 1.0, epsilon=0.0), "epsilon"),
    (lambda: GarberKretzu(K2, 10, 1.0, block=0), "block"),
    (lambda: GarberKretzu(Ball([0.0, 1.0], 0.0), 10, 1.0), "K"),
    (lambda: Lu(K2, 10, 1.0, delta_scale=0.0), "delta_scale"),
    (lambda: Lu(K2, 10, 1.0, strong_convexity=1.0, weight=0.5), "weight"),
    (lambda: OFW("box", 10, 1.0), "K"),
    (lambda: Lu(K2, 10, 1.0, start=[2.0, 0.0]), "start"),
]


@pytest.mark.parametrize(("call", "argument"), BAD)
def test_bad_arguments_are_named(call: Any, argument: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{argument}: expected"):
        call()


@every_method
def test_sums_that_overflow_are_refused(make: Any) -> None:
    learner = make(K2, start=[0.0, 0.0])

    def play() -> None:
        for _ in range(200):
            learner.tell(losses.Linear([1.7e308, 1.7e308]))

    with pytest.raises(InvalidInput, match="tell: expected gradients"):
        play()
    assert np.isfinite(learner.ask()).all()


def test_rates() -> None:
    assert str(OFW(K2, 10, 1.0).rates) == "regret T^(3/4), CCV₁ T^(3/4) log T, CCV₂ T^(3/4) log T"
    assert str(SCOFW(K2, 10, 1.0, 1.0).rates) == "regret T^(2/3), CCV₁ T^(5/6), CCV₂ T^(5/6)"
    assert str(Lu(K2, 10, 1.0, strong_convexity=1.0).rates) == "regret log T, CCV₁ √(T log T), CCV₂ √(T log T)"


def test_a_first_guess_that_no_run_has_is_refused(tmp_path: Any) -> None:
    """A guess of 0 could be doubled for ever."""
    learner = OFW(K2, 10, 1.0)
    learner._state = learner._state._replace(memory=learner.memory._replace(guess=np.float64(0.0)))
    learner.save(tmp_path / "state.npz")
    with pytest.raises(cocopt.errors.StateError, match="guess: expected numbers from"):
        cocopt.load(tmp_path / "state.npz")

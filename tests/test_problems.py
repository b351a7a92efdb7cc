"""Problems: data as in the paper, constants that hold, rounds that depend on seed and trial alone."""

from __future__ import annotations

import gzip
import hashlib
from importlib.resources import files
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocopt import CLASP, Box, constraints, hindsight, losses, problems, steps, theory
from cocopt.errors import InvalidInput
from cocopt.problems.svm import wine

ALL = [("olr", {}), ("olr", {"loss": "squared", "noise": "truncated"}), ("olr-long", {}), ("svm", {}), ("tracking", {})]
WINE = {
    "red": "4a402cf041b025d4566d954c3b9ba8635a3a8a01e039005d97d6a710278cf05e",
    "white": "76c3f809815c17c07212622f776311faeb31e87610d52c26d87d6e361b169836",
}


class Mixed(problems.Problem):
    """The classes of losses and constraints change from round to round and from trial to trial."""

    K = Box(0.0, 1.0, dim=3)
    rounds = 300

    def initial(self, rng: np.random.Generator) -> Any:
        return rng.uniform(size=3)

    def round(self, rng: np.random.Generator, t: int) -> Any:
        kind = t % 4 if t < 200 else int(rng.integers(4))
        a, b = rng.normal(size=3), float(rng.uniform())
        loss = (
            losses.Distance(a),
            losses.Norm(a[None], [b]),
            losses.Function(lambda x: float(a @ x), lambda x: a),
            losses.Quadratic(np.eye(3), a),
        )[kind]
        limit = (
            constraints.Affine(a, b),
            constraints.NormBall(a, 1.0 + b),
            constraints.Function(lambda x: float(a @ x) - b, lambda x: a),
            constraints.Stack([constraints.Affine(a, b)]),
        )[kind]
        return loss, limit


def own(name: str, options: dict[str, Any]) -> problems.Problem:
    return Mixed() if name == "mixed" else problems.get(name, **options)


def evaluate(problem: problems.Problem, trials: list[int], rounds: int, at: int) -> list[np.ndarray]:
    """Losses, gradients and rows of round ``at`` at fixed points."""
    x = problem.K.project(np.random.default_rng(7).uniform(0, 1, (9, problem.K.dim)))[trials]
    for first, count, reveal in problem.blocks(3, trials, rounds):
        if first <= at < first + count:
            loss, constraint = reveal(at - first)
            assert loss is not None
            assert constraint is not None
            return [*loss.value_and_gradient(x), constraint.rows(x), constraint.jacobian(x)]
    raise AssertionError(f"round {at} was not revealed")


@pytest.mark.parametrize(("name", "options"), [*ALL, ("mixed", {})])
@pytest.mark.parametrize("at", [1, 100, 256, 257, 300])
def test_the_rounds_of_a_trial_do_not_depend_on_other_trials(name: str, options: dict[str, Any], at: int) -> None:
    problem = own(name, options)
    together = evaluate(problem, [0, 4, 8, 2], 300, at)
    for i, trial in enumerate([0, 4, 8, 2]):
        for one, many in zip(evaluate(problem, [trial], at, at), together, strict=True):
            assert np.array_equal(one[0], many[i] if many.ndim == one.ndim else many)
    start = problem.start(3, [0, 4, 8, 2])
    assert np.array_equal(start[2], problem.start(3, [8])[0])
    assert np.all(problem.K.contains(start))


@pytest.mark.parametrize("name", ["olr", "svm", "tracking"])
def test_seeds_and_trials_and_blocks_differ(name: str) -> None:
    problem = problems.get(name)
    data = [evaluate(problem, [trial], at, at)[-1] for trial in (0, 1) for at in (1, 300)]
    data.append(next(problem.blocks(4, [0], 1))[2](0)[1].jacobian(np.zeros((1, problem.K.dim))))
    if name != "tracking":
        assert len({array.tobytes() for array in data}) == len(data)
    assert not np.array_equal(problem.start(0, [0]), problem.start(1, [0]))


def test_blocks_cover_the_rounds_once() -> None:
    blocks = [(first, count) for first, count, _ in problems.get("olr-long").blocks(0, [0], 600)]
    assert blocks == [(1, 256), (257, 256), (513, 88)]
    assert sum(count for _, count, _ in problems.get("svm").blocks(0, [0], 7000)) == 7000


@pytest.mark.parametrize("name", problems.names())
def test_a_block_of_a_hundred_trials_takes_little_memory(name: str) -> None:
    problem = problems.get(name)
    _, data = next(problem.data_blocks(0, range(100), problem.rounds))
    assert sum(array.nbytes for array in data) < 50e6


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), name=st.sampled_from(range(len(ALL))), corner=st.booleans())
def test_lipschitz_constants_and_moduli_hold(seed: int, name: int, corner: bool) -> None:
    problem = problems.get(ALL[name][0], **ALL[name][1])
    rng = np.random.default_rng(seed)
    reach = 1e3 if corner else 1.0
    x = problem.K.project(reach * rng.normal(size=(5, problem.K.dim)))
    _, _, reveal = next(problem.blocks(seed, range(5), 20))
    for k in range(20):
        loss, constraint = reveal(k)
        assert loss is not None
        assert constraint is not None
        assert problem.lipschitz_f is not None
        assert problem.lipschitz_g is not None
        assert np.linalg.norm(loss.gradient(x), axis=-1).max() <= problem.lipschitz_f * (1 + 1e-12)
        assert np.linalg.norm(constraint.jacobian(x), axis=-1).max() <= problem.lipschitz_g * (1 + 1e-12)
        assert np.min(loss.strong_convexity) >= problem.strong_convexity


def test_lipschitz_constants_are_attained() -> None:
    """The extreme data that a round may have attain them."""
    zero, ones, twos = np.zeros(10), np.ones((4, 10)), np.full((4, 10), 2.0)
    for loss, y in (("norm", 10.0), ("squared", 11.0)):
        problem = problems.get("olr", loss=loss, noise="truncated")
        f, g = problem.reveal(ones, np.full(4, y), twos, np.zeros(4))
        assert np.linalg.norm(f.gradient(zero)) == pytest.approx(problem.lipschitz_f)
        assert np.linalg.norm(g.gradient(zero)) == pytest.approx(problem.lipschitz_g)
    problem = problems.get("tracking")
    f, g = problem.reveal(np.full(10, 1.3), np.eye(10)[None, 0] + np.eye(10)[None, 1], np.array([0.4]))
    assert np.linalg.norm(f.gradient(np.full(10, -1.0))) == pytest.approx(problem.lipschitz_f)
    assert np.linalg.norm(g.gradient(zero)) == pytest.approx(problem.lipschitz_g)


@pytest.mark.parametrize("name", ["olr", "tracking"])
def test_zero_satisfies_every_constraint(name: str) -> None:
    problem = problems.get(name)
    assert problem.feasible
    for _, count, reveal in problem.blocks(0, range(20), 300):
        for k in range(count):
            assert (reveal(k)[1].rows(np.zeros(10)) <= 0).all()


def test_regression_is_drawn_as_the_paper_says() -> None:
    for noise, deviation in (("normal", 1.0), ("truncated", 0.5396)):  # √(1 − 2φ(1)/(2Φ(1) − 1)) = 0.5396
        problem = problems.get("olr", noise=noise)
        _, (H, y, A, b) = next(problem.data_blocks(0, range(100), 100))
        for data, low, high in ((H, -1, 1), (A, 0, 2), (b, 0, 1)):
            assert low < data.min() < low + 0.01
            assert high - 0.01 < data.max() < high
            assert data.mean() == pytest.approx((low + high) / 2, abs=0.01)
        left = y - H @ np.ones(10)
        assert left.std() == pytest.approx(deviation, abs=0.01)
        assert (np.abs(left).max() <= 1) == (noise == "truncated")


def test_constants_handed_to_algorithms() -> None:
    true = problems.get("olr").algorithm_defaults
    assert true == {"lipschitz": pytest.approx(sqrt(40)), "diameter": pytest.approx(sqrt(10)), "bound": 20.0}
    authors = problems.get("olr", constants="authors").algorithm_defaults
    assert authors == {"lipschitz": 100.0, "diameter": sqrt(2), "bound": 20.0}
    assert Mixed().algorithm_defaults == {"diameter": pytest.approx(sqrt(3))}


@pytest.mark.parametrize("colour", WINE)
def test_the_wine_files_are_the_originals(colour: str) -> None:
    content = gzip.decompress(files("cocopt").joinpath("data", f"winequality-{colour}.csv.gz").read_bytes())
    assert hashlib.sha256(content).hexdigest() == WINE[colour]


def test_wines_are_prepared_as_the_paper_says() -> None:
    features, labels = wine()
    assert features.shape == (6497, 11)
    assert features.min() >= 0
    assert 65 < features.max() <= 70
    assert (labels == 1).sum() == 1277
    assert (labels == -1).sum() == 5220
    assert features[0] == pytest.approx([7.4, 0.7, 0.0, 1.9, 0.076, 0.011, 0.034, 0.9978, 3.51, 0.56, 9.4])


def test_a_trial_of_the_svm_is_a_pass_over_all_wines() -> None:
    problem = problems.get("svm")
    features, labels = wine()
    x = np.random.default_rng(0).normal(size=12)
    margins = 1 - labels * (features @ x[:11] - x[11])
    values = [next(problem.blocks(0, [trial], 6497))[2] for trial in (0, 1)]
    passes = [np.array([reveal(k)[1].value(x)[0] for k in range(6497)]) for reveal in values]
    for each in passes:
        assert np.sort(each) == pytest.approx(np.sort(margins))
    assert not np.allclose(*passes)
    assert problem.lipschitz_g == pytest.approx(np.sqrt((features**2).sum(axis=1) + 1).max())


def test_tracking_obeys_the_bounds_and_its_regret_grows_like_log_T() -> None:
    """Regret grows like log T, under certificate and bound; limits are violated for ever; CCV₂ obeys its bound."""
    problem, trials, marks = problems.get("tracking"), np.arange(12), np.array([20, 60, 200, 600, 2000])
    learner = CLASP(problem.K, start=problem.start(0, trials), steps=steps.StronglyConvex(1.0))
    best = hindsight.best_fixed(problem, 0, trials, marks).value.T
    regret, ccv2, violated = [], [], 0.0
    for _, count, reveal in problem.blocks(0, trials, 2000):
        for k in range(count):
            violated += float((learner.tell(*reveal(k)).violation > 1e-9).mean())
            if learner.t in marks:
                regret.append(learner.ledger.loss - best[len(regret)])
                ccv2.append(learner.ledger.ccv2)
                assert (regret[-1] <= learner.certificate().value + 1e-9).all()
    promised = theory.bounds(
        steps.StronglyConvex(1.0),
        marks,
        diameter=problem.K.diameter,
        lipschitz_f=problem.lipschitz_f,
        lipschitz_g=problem.lipschitz_g,
    )
    assert (promised.regret >= np.transpose(regret)).all()
    assert (promised.ccv2 >= np.transpose(ccv2)).all()
    mean, slope = np.mean(regret, axis=1), np.polyfit(np.log(marks), np.mean(regret, axis=1), 1)
    assert slope[0] > 0.3
    assert np.corrcoef(mean, np.log(marks))[0, 1] > 0.99
    assert 0.25 < violated / 2000 < 0.6


def test_tracking_with_rare_limits_has_a_logarithmic_ccv2() -> None:
    growth = {}
    for limits in ("always", "rarely"):
        problem, trials, ccv2 = problems.get("tracking", limits=limits), np.arange(40), []
        learner = CLASP(problem.K, start=problem.start(0, trials), steps=steps.StronglyConvex(1.0))
        for _, count, reveal in problem.blocks(0, trials, 2700):
            for k in range(count):
                learner.tell(*reveal(k))
                if learner.t in (100, 300, 900, 2700):
                    ccv2.append(float(np.mean(learner.ledger.ccv2)))
        growth[limits] = np.diff(ccv2)
    assert growth["rarely"].max() < 1.7 * growth["rarely"].min()
    assert growth["always"][-1] < 0.3 * growth["always"][0]


def test_a_batch_of_mixed_rounds_equals_its_trials_one_by_one() -> None:
    problem = Mixed()
    x = np.random.default_rng(0).uniform(size=(4, 3))
    for first, count, reveal in problem.blocks(0, [5, 1, 0, 7]):
        for k in range(count):
            loss, constraint = reveal(k)
            for i, trial in enumerate([5, 1, 0, 7]):
                rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(trial, (first - 1) // 256 + 1)))
                for t in range(first, first + k + 1):
                    own_loss, own_limit = problem.round(rng, t)
                assert loss.value(x)[i] == pytest.approx(float(own_loss.value(x[i])))
                assert loss.gradient(x)[i] == pytest.approx(own_loss.gradient(x[i]))
                assert np.broadcast_to(loss.strong_convexity, 4)[i] == pytest.approx(own_loss.strong_convexity)
                assert constraint.rows(x)[i] == pytest.approx(own_limit.rows(x[i]))
                assert constraint.jacobian(x)[i] == pytest.approx(own_limit.jacobian(x[i]))
            if k == 20:
                break


def test_clasp_runs_on_mixed_classes_of_losses_and_constraints() -> None:
    problem = Mixed()
    learner = CLASP(problem.K, start=problem.start(0, [0, 1, 2]), infeasible="nearest")
    for _, count, reveal in problem.blocks(0, [0, 1, 2], 230):
        for k in range(count):
            learner.tell(*reveal(k))
    assert learner.t == 230
    assert np.all(problem.K.contains(learner.ask()))


def test_rounds_without_a_loss_are_allowed_and_bad_rounds_are_errors() -> None:
    class Half(problems.Problem):
        K = Box(0.0, 1.0, dim=1)
        rounds = 3

        def round(self, rng: np.random.Generator, t: int) -> Any:
            return (None, constraints.Affine([1.0], 1.0)) if t < 3 else "nothing"

    _, _, reveal = next(Half().blocks(0, [0, 1], 2))
    assert reveal(0)[0] is None
    with pytest.raises(
        InvalidInput, match=r"Half: round 3 of trial 1: expected \(loss, constraint\), got str 'nothing'"
    ):
        next(Half().blocks(0, [1], 3))

    class Torn(Half):
        def round(self, rng: np.random.Generator, t: int) -> Any:
            return (losses.Distance([0.0]) if rng.uniform() < 0.5 else None), None

    with pytest.raises(InvalidInput, match="in every trial or in none"):
        [reveal(k) for _, count, reveal in Torn().blocks(0, range(9)) for k in range(count)]

    class Ragged(Half):
        def round(self, rng: np.random.Generator, t: int) -> Any:
            return None, constraints.Affine(np.ones((int(rng.integers(1, 5)), 1)), np.ones(1))

    with pytest.raises(InvalidInput, match="b: expected shape"):
        next(Ragged().blocks(0, range(9)))


def test_all_trials_must_have_the_same_number_of_rows() -> None:
    class Ragged(problems.Problem):
        K = Box(0.0, 1.0, dim=1)
        rounds = 1

        def round(self, rng: np.random.Generator, t: int) -> Any:
            M = int(rng.integers(1, 5))
            return None, constraints.Affine(np.ones((M, 1)), np.ones(M))

    with pytest.raises(InvalidInput, match="expected as many rows in every trial"):
        next(Ragged().blocks(0, range(9)))[2](0)


def test_repr_shows_the_options() -> None:
    assert repr(problems.get("tracking", limits="rarely")) == "Tracking(limits='rarely')"


def test_missing_methods_are_named() -> None:
    class Empty(problems.Problem):
        K = Box(0.0, 1.0, dim=1)
        rounds = 1

    class EmptyBlock(problems.BlockProblem):
        K = Box(0.0, 1.0, dim=1)
        rounds = 1

    with pytest.raises(NotImplementedError, match=r"Empty: define round\(self, rng, t\)"):
        next(Empty().blocks(0, [0]))
    with pytest.raises(NotImplementedError, match="EmptyBlock: define draw"):
        next(EmptyBlock().blocks(0, [0]))
    with pytest.raises(NotImplementedError, match="EmptyBlock: define reveal"):
        EmptyBlock().reveal()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: problems.get("olr-lnog"), "did you mean olr-long"),
        (lambda: problems.get("olr", los="norm"), r"olr: expected one of the options loss, .*'los'; did you mean loss"),
        (lambda: problems.get("svm", loss="norm"), "svm: expected no options, got 'loss'"),
        (lambda: problems.get("olr", loss="l1"), 'loss: expected "norm" or "squared", got str \'l1\''),
        (lambda: problems.get("olr").start(0, [-1]), "trials: expected trial numbers from 0 on"),
        (lambda: problems.get("olr").start(np.eye(2), [0]), "seed: expected a non-negative integer, got an array"),
        (lambda: next(problems.get("olr").blocks(-1, [0])), "seed: expected a non-negative integer, got int -1"),
        (lambda: problems.get("olr").start(0, [[0], [1, 2]]), "trials: expected trial numbers from 0 on"),
        (lambda: problems.get("olr").start(0, np.ma.array([0, 1], mask=[0, 1])), "trials: expected trial numbers"),
        (lambda: problems.get("olr", loss=np.ones(2)), 'loss: expected "norm" or "squared", got an array'),
        (lambda: next(problems.get("olr").blocks(0, [], 5)), "trials: expected trial numbers from 0 on"),
        (lambda: next(problems.get("olr").blocks(0, [0], 0)), "rounds: expected a positive integer"),
        (lambda: problems.get("nowhere/file.py:Name"), "no file"),
    ],
)
def test_wrong_arguments_are_explained(call: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call()


SOURCE = """
from dataclasses import dataclass
from cocopt import Box, losses, problems

@dataclass
class Mine(problems.Problem):
    size: float = 1.0
    rounds = 5

    def __post_init__(self):
        self.K = Box(0.0, self.size, dim=2)

    def round(self, rng, t):
        return losses.Distance(rng.normal(size=2)), None

class NoSet(problems.Problem):
    rounds = 5

class NoRounds(problems.Problem):
    K = Box(0.0, 1.0, dim=2)

class Stranger:
    pass
"""


def test_a_problem_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(SOURCE)
    problem = problems.get(f"{file}:Mine", size=2.0)
    assert problem.name == "Mine"
    assert problem.options == {"size": 2.0}
    assert problem.K.diameter == pytest.approx(sqrt(8))
    assert next(problem.blocks(0, [0, 1]))[:2] == (1, 5)
    for name, message in (
        ("Mien", "did you mean Mine"),
        ("NoSet", "K: expected a set such as cocopt.Box, got NoneType None"),
        ("NoRounds", "rounds: expected a positive integer"),
        ("Stranger", "expected a class derived from cocopt.problems.Problem"),
    ):
        with pytest.raises(InvalidInput, match=message):
            problems.get(f"{file}:{name}")
    file.write_text("import not_a_module_at_all")
    with pytest.raises(InvalidInput, match="expected a file that can be imported, got ModuleNotFoundError"):
        problems.get(f"{file}:Mine")

"""Comparators of experiments: their regrets in results, tables and figures, and what is stored of them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import matplotlib.axes
import numpy as np
import pytest

import cocopt
from cocopt import constraints, hindsight, losses, problems
from cocopt.errors import InvalidInput
from cocopt.experiments import compute, execute
from cocopt.experiments.comparators import resolve_comparators
from cocopt.experiments.results import write_tables

ALL = ["static", "dynamic", "piecewise:blocks=3", "expectation"]
METRICS = ["regret", "regret_dynamic", "regret_piecewise", "regret_expectation"]
TRIALS, ROUNDS = 3, 24


@pytest.fixture(scope="module")
def result() -> Any:
    return cocopt.run("olr", ["clasp", "recoo", "adagrad"], TRIALS, ROUNDS, jobs=1, comparators=ALL, chunk=2)


def test_each_regret_is_the_loss_less_that_of_its_comparator(result: Any) -> None:
    problem, marks, trials = result.problem, result.checkpoints, range(TRIALS)
    loss = result.curves("clasp")["loss"][:, np.searchsorted(result.points, marks)]
    expected = {
        "static": hindsight.best_fixed(problem, 0, trials, marks).value,
        "dynamic": hindsight.best_dynamic(problem, 0, trials, ROUNDS).running_value[:, marks - 1],
        "piecewise": hindsight.best_piecewise(problem, 0, trials, marks, breakpoints=[8, 16]).value,
        "expectation": hindsight.best_in_expectation(problem, 0, trials, marks).value,
    }
    assert result.comparators == list(expected)
    for (name, value), metric in zip(expected.items(), METRICS, strict=True):
        assert result.regret("clasp", name) == pytest.approx(loss - value, rel=1e-9, abs=1e-9)
        np.testing.assert_array_equal(result.finals("clasp")[metric], result.regret("clasp", name)[:, -1])
    np.testing.assert_array_equal(result.regret("clasp"), result.regret("clasp", "static"))


def test_a_comparator_gives_points_and_values(result: Any) -> None:
    dynamic = result.comparator("dynamic", trial=1)
    own = hindsight.best_dynamic(result.problem, 0, [1], ROUNDS)
    assert isinstance(dynamic, hindsight.DynamicHindsight)
    assert dynamic.point.shape == (ROUNDS, 10)
    for part, expected in zip(dynamic, own, strict=True):
        np.testing.assert_array_equal(part, expected[0])
    assert result.path_length()[1, -1] == pytest.approx(dynamic.path_length)
    static = result.comparator()
    assert static.point.shape == (3, len(result.checkpoints), 10)
    np.testing.assert_array_equal(result.comparator("static", trial=2).point, static.point[2])
    assert static.value == pytest.approx(hindsight.best_fixed(result.problem, 0, [0, 1, 2], result.checkpoints).value)
    assert result.comparator("piecewise", trial=2).end[-1].tolist() == [8, 16, 24]
    with pytest.raises(InvalidInput, match="trial: expected a number from 0 to 2, got int 3"):
        result.comparator("dynamic", trial=3)
    with pytest.raises(InvalidInput, match="comparator: expected a known name, got 'dynamik'; did you mean dynamic"):
        result.comparator("dynamik")


def test_tables_show_what_was_asked_for(result: Any, tmp_path: Path) -> None:
    head, row, *others = result.summary().splitlines()[1:]
    columns = ["regret", "dynamic regret", "piecewise regret", "regret in expectation", "CCV₁"]
    assert [head.index(f"  {name}") for name in columns] == sorted(head.index(f"  {name}") for name in columns)
    assert row.startswith("clasp")
    assert others[-1].startswith("Path length of the dynamic comparator: ")
    write_tables([result], tmp_path)
    rows = list(csv.DictReader((tmp_path / "summary.csv").read_text().splitlines()))
    assert [own["metric"] for own in rows if own["algorithm"] == "recoo" and "regret" in own["metric"]] == METRICS
    (path,) = [own for own in rows if own["metric"] == "path_length"]
    assert path["algorithm"] == "dynamic comparator"
    assert float(path["mean"]) == pytest.approx(result.path_length()[:, -1].mean())
    curves = list(csv.DictReader((tmp_path / "curves.csv").read_text().splitlines()))
    for metric in METRICS:
        rounds = [int(own["round"]) for own in curves if (own["algorithm"], own["metric"]) == ("clasp", metric)]
        assert rounds == result.checkpoints.tolist()
    only = cocopt.run("tracking", "clasp", 1, 5, jobs=1, comparators="dynamic")
    assert "regret" not in only.finals("clasp")
    assert "dynamic regret" in only.summary()
    with pytest.raises(InvalidInput, match="comparator: expected a known name, got 'static'"):
        only.regret("clasp")


def test_the_bound_on_dynamic_regret_is_drawn(result: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for label in ("clasp", "recoo"):
        bound = result.dynamic_bounds(label)
        assert bound.shape == (TRIALS, len(result.checkpoints))
        assert (result.regret(label, "dynamic") <= bound).all()
    assert result.dynamic_bounds("adagrad") is None
    drawn = []
    plot = matplotlib.axes.Axes.plot

    def spy(self: Any, x: Any, y: Any, *arguments: Any, **options: Any) -> Any:
        drawn.append(np.asarray(y))
        return plot(self, x, y, *arguments, **options)

    monkeypatch.setattr(matplotlib.axes.Axes, "plot", spy)
    result.plot(kind="regret")
    mean = result.dynamic_bounds("recoo").mean(axis=0)
    assert any(own.shape == mean.shape and np.allclose(own, mean) for own in drawn)


class Gaps(problems.Problem):
    """In every third round no action satisfies the constraint."""

    K = cocopt.Box(0.0, 1.0, dim=2)
    rounds = 9
    lipschitz_f = 2.0

    def round(self, rng: np.random.Generator, t: int) -> Any:
        return losses.Distance(rng.uniform(size=2)), constraints.Affine([1.0, 1.0], -1.0 if t % 3 == 0 else 0.5)


def test_rounds_that_are_left_out_do_not_count() -> None:
    result = cocopt.run(Gaps(), "clasp:infeasible=nearest", 2, jobs=1, comparators=["static", "dynamic"])
    (label,) = result.algorithms
    learner = cocopt.CLASP(Gaps.K, start=Gaps().start(0, [0, 1]), beta=0.5, infeasible="nearest")
    paid = np.zeros((2, 9))
    for _, count, reveal in Gaps().blocks(0, [0, 1], 9):
        for k in range(count):
            paid[:, k] = learner.tell(*reveal(k)).loss
    best = hindsight.best_dynamic(Gaps(), 0, [0, 1])
    kept = best.feasible.all(axis=0)
    assert kept.tolist() == [(t + 1) % 3 != 0 for t in range(9)]
    expected = np.cumsum(np.where(kept, paid - best.value, 0.0), axis=-1)[:, result.checkpoints - 1]
    assert result.regret(label, "dynamic") == pytest.approx(expected, abs=1e-12)
    assert "The dynamic regret leaves out 6 of 18 rounds, in which no action satisfies" in result.summary()
    assert "The regret is undefined: in 2 of 2 trials" in result.summary()
    assert result.dynamic_bounds(label) is None


class Hopeless(Gaps):
    rounds = 4

    def round(self, rng: np.random.Generator, t: int) -> Any:
        return losses.Distance(rng.uniform(size=2)), constraints.Affine([1.0, 1.0], -1.0)


def test_comparators_that_do_not_exist_are_explained() -> None:
    compared = ["piecewise:breakpoints=2", "expectation:rows=max", "dynamic"]
    result = cocopt.run(Hopeless(), "recoo", 2, jobs=1, comparators=compared)
    text = result.summary()
    assert (
        "The piecewise regret is undefined: in 2 of 2 trials no action satisfies the constraints of some block." in text
    )
    assert "The regret in expectation is undefined: in 2 of 2 trials no action satisfies the average" in text
    assert np.isnan(result.finals("recoo")["regret_piecewise"]).all()
    assert (result.finals("recoo")["regret_dynamic"] == 0.0).all()
    result.plot(kind="regret")


def test_stored_chunks_know_their_comparators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[str] = []

    def counting(chunk: Any) -> Any:
        computed.append(chunk.task)
        return compute.compute(chunk)

    monkeypatch.setattr(execute, "compute", counting)

    def run(*comparators: str) -> Any:
        computed.clear()
        return cocopt.run("olr", "clasp", 2, 6, jobs=1, out=tmp_path, comparators=comparators, tables=False)

    run("static")
    assert computed == ["best action in hindsight", "clasp"]
    first = run("static", "dynamic")
    assert computed == ["dynamic comparator", "clasp"]  # the loss of every round was not recorded before
    again = run("static", "dynamic")
    assert computed == []
    for part, expected in zip(again.comparator("dynamic"), first.comparator("dynamic"), strict=True):
        np.testing.assert_array_equal(part, expected)
    run("piecewise:blocks=2")
    assert computed == ["piecewise comparator"]
    run("piecewise:blocks=3")
    assert computed == ["piecewise comparator"]
    run("expectation")
    run("expectation:rows=max")
    assert computed == ["expectation comparator"]
    assert again.config["comparators"] == {"static": {}, "dynamic": {}}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "name": ({"comparators": ["dynamics"]}, "comparator: expected a known name, got 'dynamics'; did you mean dynamic"),
    "number": ({"comparators": 3}, "comparators: expected names such as"),
    "number in a list": ({"comparators": [3]}, "description: expected a string, got int 3"),
    "twice": ({"comparators": ["static", "static"]}, "comparators: expected each once, got static again"),
    "sweep": ({"comparators": ["piecewise:blocks=2|3"]}, "comparators: expected one comparator, got a sweep over 2"),
    "option": ({"comparators": ["dynamic:rows=max"]}, "option of the comparator dynamic: expected a known name, got"),
    "rows": ({"comparators": ["expectation:rows=all"]}, 'expectation: rows: expected "each" or "max", got str'),
    "no blocks": ({"comparators": ["piecewise"]}, "piecewise: expected one of blocks and breakpoints"),
    "zero blocks": ({"comparators": ["piecewise:blocks=0"]}, "piecewise: blocks: expected a positive integer"),
    "many blocks": ({"comparators": ["piecewise:blocks=9"]}, "piecewise: blocks: expected at most 5, the number of"),
    "breakpoints": (
        {"comparators": ["piecewise:breakpoints=3+2"]},
        "piecewise: breakpoints: expected increasing rounds",
    ),
    "late": ({"comparators": ["piecewise:breakpoints=5"]}, "before the last, 5, such as"),
    "words": ({"comparators": ["piecewise:breakpoints=a+b"]}, "piecewise: breakpoints: expected increasing rounds"),
    "switches": ({"comparators": ["piecewise:blocks=2,switches=-1"]}, "piecewise: switches: expected a non-negative"),
    "without regret": ({"comparators": ["static"], "regret": False}, "regret: expected True with the comparators"),
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_comparators_are_explained_before_any_work(case: str) -> None:
    settings, message = BAD[case]
    with pytest.raises(InvalidInput, match=message):
        cocopt.run("olr", "clasp", 1, 5, jobs=1, **settings)


def test_breakpoints_can_be_joined_on_the_command_line() -> None:
    (one,) = resolve_comparators("piecewise:breakpoints=2+3,switches=1")
    found = one.find(problems.get("olr"), 0, np.arange(1), 5, [5])
    expected = hindsight.best_piecewise(problems.get("olr"), 0, [0], [5], breakpoints=[2, 3], switches=1)
    np.testing.assert_array_equal(found["value"], expected.value)


def test_the_command_takes_comparators() -> None:
    from typer.testing import CliRunner

    from cocopt.cli import app

    line = "run tracking --trials 2 --rounds 8 --jobs 1 --comparator static --comparator dynamic --quiet"
    assert CliRunner().invoke(app, line.split()).exit_code == 0
    done = CliRunner().invoke(app, [*line.split()[:-1], "--comparator", "expectation"])
    assert "dynamic regret" in done.stdout
    assert "regret in expectation" in done.stdout

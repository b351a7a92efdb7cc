"""The comparison of the whole field: who runs where, measured growth, tables and figures; and sweeps."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import cocopt
from cocopt import problems, registry
from cocopt.cli import app
from cocopt.errors import InvalidInput
from cocopt.experiments import field as fields
from cocopt.experiments.field import HORIZONS, METRICS, Growth, applicable, run_field
from cocopt.experiments.labels import spaced
from cocopt.experiments.plots import pareto_front
from cocopt.experiments.report.folder import read_folder

TITLES = {cls.title for cls in registry.classes("algorithm").values() if cls.__module__.startswith("cocopt.")}


@pytest.mark.parametrize("name", HORIZONS)
def test_every_algorithm_runs_or_has_a_reason_not_to(name: str) -> None:
    assert len(HORIZONS[name]) >= 4
    chosen, skipped = applicable(problems.get(name), max(HORIZONS[name]))
    assert {title.removesuffix(" (hard)") for title in (*chosen, *skipped)} == TITLES
    assert not {*chosen} & {*skipped}
    assert all(skipped.values())
    assert {"CLASP", "RECOO", "AdaGrad", "CLASP-F"} <= {*chosen}


def test_static_methods_run_on_the_static_problem_alone() -> None:
    static, _ = applicable(problems.get("static"), 100)
    assert {"Mahdavi et al.", "Yu and Neely", "Polyak steps"} <= {*static}
    assert static["Jenatton et al."] == "jenatton:strong_convexity=problem"
    dynamic, skipped = applicable(problems.get("olr"), 100)
    assert skipped["Mahdavi et al."] == "it is for constraints that do not change"
    assert skipped["Polyak steps"] == "it is for constraints that do not change"
    assert dynamic["Jenatton et al. (hard)"] == "jenatton:hard=true"
    assert applicable(problems.get("svm"), 100)[1]["Switch"] == "no action satisfies all constraints"


def test_strongly_convex_losses_are_used() -> None:
    chosen, _ = applicable(problems.get("tracking"), 100)
    assert chosen["CLASP"] == "clasp:steps=strongly-convex"
    assert chosen["RECOO"] == "recoo:strong_convexity=problem"


@pytest.mark.parametrize(
    ("means", "text"),
    [
        ([3.0, 6.0, 12.0, 24.0], "1.00"),
        ([5.0, 5.0, 5.0, 5.0], "0.00"),
        ([1.0, 2**0.5, 2.0, 2**1.5], "0.50"),
        ([1.0, 2.0, -1.0, -3.0], "negative"),
        ([-1.0, 2.0, 3.0, 4.0], "changes sign"),
        ([0.0, 0.0, 0.0, 0.0], "zero"),
        ([0.0, 1e-14, 3e-14, 9e-14], "zero"),
        ([1.0, np.nan, 2.0, 3.0], "undefined"),
        ([1.0], "undefined"),
    ],
)
def test_growth_is_a_slope_or_says_why_there_is_none(means: list[float], text: str) -> None:
    growth = Growth.fit([100, 200, 400, 800][: len(means)], means)
    assert growth.text == text
    assert (growth.exponent is None) == (not text[0].isdigit())


@pytest.mark.long
def test_the_field_of_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HORIZONS, "drone", (10, 20, 40, 80))
    few = {"CLASP": "clasp:steps=strongly-convex", "AdaGrad": "adagrad:strong_convexity=problem"}
    monkeypatch.setattr(fields, "applicable", lambda problem, rounds: (few, {"Other": "a reason"}))
    done = CliRunner().invoke(app, ["field", "drone", "--trials", "4", "--jobs", "1", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "Not run on drone: Other (a reason)" in done.output
    with open(tmp_path / "field.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * len(METRICS) * 4
    assert (tmp_path / "drone-field.pdf").stat().st_size > 0
    assert (tmp_path / "drone-field.png").stat().st_size > 0
    # the same numbers as those of `run`, where the algorithm knows each horizon
    for T in (10, 80):
        again = cocopt.run("drone", few, trials=4, rounds=T, jobs=1)
        for label in few:
            (row,) = [r for r in rows if (r["algorithm"], r["metric"], r["rounds"]) == (label, "ccv1", str(T))]
            assert float(row["mean"]) == pytest.approx(again.finals(label)["ccv1"].mean(), rel=1e-12)
    means = [float(r["mean"]) for r in rows if (r["algorithm"], r["metric"]) == ("AdaGrad", "ccv2")]
    slope = np.polyfit(np.log([10, 20, 40, 80]), np.log(means), 1)[0]
    known = {(r["algorithm"], r["metric"]): (r["growth_exponent"], r["promised"]) for r in rows}
    assert known["AdaGrad", "ccv2"] == (f"{slope:.2f}", "√(T log T)")
    assert known["CLASP", "regret"][1] == "log T"
    # the report has the largest horizon, and the growth over all of them
    ((name, experiment),) = [(own.name, own) for own in read_folder(tmp_path)[0]]
    assert (name, experiment.rounds, experiment.skipped) == ("drone", 80, {"Other": "a reason"})
    assert experiment.growth["AdaGrad"]["ccv2"] == known["AdaGrad", "ccv2"][0]
    assert experiment.growth_over == "horizons T = 10, 20, 40, 80, each a run of its own"
    assert experiment.rerun == "cocopt field drone --trials 4 --seed 0 --out DIR"
    assert (tmp_path / "report.html").stat().st_size > 0


def test_tables_are_sorted_by_their_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HORIZONS, "svm", (4, 8, 16, 32))
    few = {"CLASP": "clasp", "AdaGrad": "adagrad", "RECOO": "recoo"}
    monkeypatch.setattr(fields, "applicable", lambda problem, rounds: (few, {}))
    (found,) = run_field(["svm"], trials=2, jobs=1, progress=False)
    for metric in ("ccv1", "ccv2"):
        rows = found.table(metric).rows
        assert {row[0] for row in rows} == {*few}
        means = [found.final(row[0], metric).mean for row in rows]
        assert means == sorted(means)
    assert {row[1] for row in found.table("regret").rows} == {"undefined"}  # no action satisfies all constraints


def test_an_unknown_problem_is_named() -> None:
    with pytest.raises(InvalidInput, match="problem: expected a known name, got 'dron'; did you mean drone"):
        next(run_field(["dron"]))


# ------------------------------------------------------------------------------------------------------------- sweeps


@pytest.fixture(scope="module")
def sweep() -> cocopt.experiments.Result:
    return cocopt.run("olr", ["recoo", "clasp:scale=0.5|1|2,rows=all|worst"], trials=3, rounds=8, jobs=1)


def test_a_sweep_shows_its_options_as_columns(sweep) -> None:
    assert sweep.swept == {
        "scale": {f"clasp:scale={c:g},rows={rows}": c for c in (0.5, 1, 2) for rows in ("all", "worst")},
        "rows": {f"clasp:scale={c:g},rows={rows}": rows for c in (0.5, 1, 2) for rows in ("all", "worst")},
    }
    frame = sweep.to_frame()
    assert list(frame.columns[:5]) == ["problem", "algorithm", "scale", "rows", "trial"]
    assert frame[frame.algorithm == "recoo"]["scale"].isna().all()
    own = frame[frame.algorithm == "clasp:scale=2,rows=worst"]
    assert (own.scale == 2).all()
    assert (own.rows == "worst").all()
    assert sweep.to_frame("summary").groupby("scale")["mean"].count().index.tolist() == [0.5, 1.0, 2.0]
    assert "scale" not in sweep.to_frame("paired").columns


def test_a_single_algorithm_is_no_sweep() -> None:
    result = cocopt.run("olr", ["clasp:scale=2", "recoo"], trials=2, rounds=4, jobs=1)
    assert result.swept == {}
    assert "scale" not in result.to_frame().columns
    with pytest.raises(InvalidInput, match="sweep: expected an option with several numbers"):
        result.plot(kind="sweep")


def test_a_sweep_has_two_figures_of_its_own(sweep, tmp_path: Path) -> None:
    sweep.save(tmp_path)
    assert {"olr-sweep.png", "olr-trade-off.png", "olr-sweep.pdf", "olr-trade-off.pdf"} <= {
        path.name for path in tmp_path.iterdir()
    }
    panels = sweep.plot(kind="sweep").axes
    assert [panel.get_xlabel() for panel in panels] == ["scale"] * 3
    (all_rows, worst) = panels[1].get_lines()
    assert all_rows.get_xdata().tolist() == [0.5, 1.0, 2.0]
    expected = [sweep.finals(f"clasp:scale={c:g},rows=worst")["ccv1"].mean() for c in (0.5, 1, 2)]
    np.testing.assert_allclose(worst.get_ydata(), expected)
    for panel in sweep.plot(kind="trade-off").axes:
        names = {text.get_text() for text in panel.texts}
        assert names == {sweep.title(label) for label in sweep.algorithms}


def test_the_pareto_front_has_the_points_that_no_other_beats() -> None:
    rng = np.random.default_rng(0)
    points = [tuple(point) for point in rng.uniform(size=(50, 2))]
    front = pareto_front(points)
    for i, (x, y) in enumerate(points):
        beaten = any(a <= x and b <= y and (a, b) != (x, y) for a, b in points)
        assert (i in front) == (not beaten)


def test_labels_keep_their_distance_and_order() -> None:
    rng = np.random.default_rng(0)
    for count in (1, 5, 20):
        heights = rng.uniform(size=count) ** 3
        places = spaced(heights, 1.0 / 20)
        assert (np.argsort(places) == np.argsort(heights)).all()
        assert (np.diff(np.sort(places)) >= 1.0 / 20 - 1e-12).all()
        assert places.max() <= 1.0

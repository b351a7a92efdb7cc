"""`cocopt.run`: its numbers, which do not depend on how they are computed, its files, figures and messages."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

import cocopt
from cocopt import CLASP, Box, constraints, hindsight, losses, problems, steps
from cocopt.errors import InvalidInput, SolverFailure
from cocopt.experiments import EngineFailed, Result, TrialFailed, figure, figures, plan, plots
from cocopt.experiments.algorithms import resolve
from cocopt.experiments.plan import recorded_rounds
from cocopt.experiments.plots import line_style
from cocopt.experiments.results import interval
from cocopt.experiments.specs import Spec, parse

HORIZON = 12


class Targets(problems.Problem):
    """½‖x − c_t‖² over a box, below a line that passes above 0: loss and regret can be computed by hand."""

    K = Box(-1.0, 1.0, dim=2)
    rounds = HORIZON

    def round(self, rng: np.random.Generator, t: int) -> tuple[losses.Distance, constraints.Affine]:
        return losses.Distance(rng.uniform(-0.5, 0.5, size=2)), constraints.Affine([1.0, 1.0], 1.5)

    def centers(self, seed: int, trial: int) -> np.ndarray:
        found = [reveal(k)[0].center[0] for _, n, reveal in self.blocks(seed, [trial], HORIZON) for k in range(n)]
        return np.array(found)


class Contradiction(Targets):
    """From round 5 on no action satisfies all constraints."""

    def round(self, rng: np.random.Generator, t: int) -> tuple[losses.Distance, constraints.Affine]:
        loss, _ = super().round(rng, t)
        return loss, constraints.Affine([1.0, 0.0], 0.5) if t < 5 else constraints.Affine([-1.0, 0.0], -0.75)


class Poisoned(Targets):
    """The loss is NaN in round 7 of one trial, which is recognised by its data."""

    bad = 12

    def round(self, rng: np.random.Generator, t: int) -> tuple[losses.Distance, constraints.Affine]:
        loss, constraint = super().round(rng, t)
        if t == 7 and np.array_equal(loss.center, Targets().centers(0, self.bad)[6]):
            loss = losses.Distance([np.nan, 0.0])
        return loss, constraint


def constant_action(K: Any, start: Any) -> CLASP:
    """Plays (0.5, 0.5) in every round."""
    return CLASP(K, start=np.full(np.shape(start), 0.5), steps=steps.Constant(1e-300))


def small(**settings: Any) -> Result:
    return cocopt.run("olr", ["clasp", "recoo", "adagrad"], **{"trials": 7, "rounds": 30, "chunk": 3, **settings})


def assert_same(one: Result, other: Result, tolerance: float = 0.0) -> None:
    assert one.algorithms == other.algorithms
    for label in one.algorithms:
        first, second = one.curves(label), other.curves(label)
        assert first.keys() == second.keys()
        for metric in first:
            np.testing.assert_allclose(first[metric], second[metric], rtol=tolerance, atol=tolerance, err_msg=metric)
        np.testing.assert_allclose(one.regret(label), other.regret(label), rtol=tolerance, atol=tolerance)


# ---------------------------------------------------------------- numbers


def test_metrics_and_regret_equal_values_computed_by_hand() -> None:
    trials = 5
    result = cocopt.run(Targets(), {"constant": constant_action}, trials=trials, seed=3, chunk=2)
    finals = result.finals("constant")
    for trial in range(trials):
        centers = Targets().centers(3, trial)
        loss = 0.5 * np.sum((0.5 - centers) ** 2)
        best = 0.5 * np.sum((centers.mean(axis=0) - centers) ** 2)  # the mean is feasible
        assert finals["loss"][trial] == pytest.approx(loss, rel=1e-12)
        assert finals["regret"][trial] == pytest.approx(loss - best, rel=1e-6)
        assert finals["ccv_soft"][trial] == pytest.approx(HORIZON * (1.0 - 1.5), rel=1e-12)
        assert finals["ccv1"][trial] == finals["ccv2"][trial] == 0.0


def test_every_trial_equals_the_run_of_a_single_learner() -> None:
    result = small(regret=False)
    problem = problems.get("olr")
    for trial in (0, 3, 6):
        learner = CLASP(problem.K, start=problem.start(0, [trial])[0], beta=0.5)
        history = []
        for _, count, reveal in problem.blocks(0, [trial], 30):
            for k in range(count):
                loss, constraint = reveal(k)
                learner.tell(losses.Norm(loss.H[0], loss.y[0]), constraints.Affine(constraint.A[0], constraint.b[0]))
                history.append((learner.ledger.loss, learner.ledger.ccv1, learner.ledger.ccv2))
        curves = result.curves("clasp")
        for metric, values in zip(("loss", "ccv1", "ccv2"), np.transpose(history), strict=True):
            np.testing.assert_allclose(curves[metric][trial], values[result.points - 1], rtol=1e-10)


@given(st.integers(1, 10**6))
def test_recorded_rounds_are_few_and_include_the_last_and_the_checkpoints(rounds: int) -> None:
    points, checkpoints = recorded_rounds(rounds)
    assert len(points) <= 202
    assert set(checkpoints) <= set(points) <= set(range(1, rounds + 1))
    assert points[0] == checkpoints[0] == 1
    assert points[-1] == checkpoints[-1] == rounds
    assert list(points) == sorted(set(points))
    if rounds <= 60:
        assert len(points) == rounds


def test_intervals_are_by_students_t() -> None:
    values = np.random.default_rng(0).normal(size=(10, 3))
    mean, low, high = interval(values)
    half = 2.2621571628 * values.std(axis=0, ddof=1) / np.sqrt(10)  # the 97.5% quantile for 9 degrees of freedom
    np.testing.assert_allclose(mean, values.mean(axis=0))
    np.testing.assert_allclose(low, values.mean(axis=0) - half, rtol=1e-9)
    np.testing.assert_allclose(high, values.mean(axis=0) + half, rtol=1e-9)
    assert np.isnan(interval(np.ones(1)).ci_low)


@pytest.mark.parametrize("trials", [1, 4])
def test_the_summary_has_means_and_half_of_their_intervals(trials: int) -> None:
    result = cocopt.run(Targets(), {"constant": constant_action}, trials=trials)
    head, names, row = result.summary().splitlines()
    assert head.startswith(f"Targets: 12 rounds, {trials} trial{'s' * (trials > 1)}, seed 0; mean")
    cells = dict(zip(re.split(r"\s{2,}", names), re.split(r"\s{2,}", row), strict=True))
    mean, low, high = interval(result.finals("constant")["loss"])
    assert cells["loss"] == (f"{mean:.4g} ± {(high - low) / 2:.2g}" if trials > 1 else f"{mean:.4g}")


def test_paired_differences_compare_the_same_trials() -> None:
    result = small()
    difference = result.paired("clasp", "adagrad")
    for metric in ("loss", "ccv1", "regret"):
        assert difference[metric] == interval(result.finals("clasp")[metric] - result.finals("adagrad")[metric])
    assert difference["regret"].mean == pytest.approx(difference["loss"].mean, rel=1e-9)  # the comparator is the same


# ---------------------------------------------------------------- independence of jobs, chunks and trials


def test_results_are_bit_equal_for_any_number_of_jobs() -> None:
    alone = small(jobs=1)
    assert_same(alone, small(jobs=2))
    assert_same(alone, small())


def test_results_do_not_depend_on_the_chunk_size() -> None:
    assert_same(small(), small(chunk=100), tolerance=1e-10)


def test_the_first_trials_do_not_depend_on_the_number_of_trials() -> None:
    few, many = small(regret=False), small(trials=9, regret=False)
    for metric, values in few.curves("clasp").items():
        np.testing.assert_array_equal(values[:6], many.curves("clasp")[metric][:6])


def test_different_seeds_give_different_results() -> None:
    assert (small(regret=False).finals("clasp")["loss"] != small(regret=False, seed=1).finals("clasp")["loss"]).all()


# ---------------------------------------------------------------- descriptions


NAMES = st.from_regex(r"[a-z][a-z-]{0,8}", fullmatch=True)
VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-1000, 1000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.from_regex(r"[a-z]{1,8}", fullmatch=True).filter(
        lambda word: word not in ("none", "true", "false", "inf", "nan")
    )
)


@given(NAMES, st.dictionaries(NAMES, VALUES, max_size=3))
def test_descriptions_survive_formatting_and_parsing(name: str, options: dict[str, Any]) -> None:
    (spec,) = parse(str(Spec(name, options)))
    assert spec == Spec(name, options)


def test_a_sweep_gives_every_combination() -> None:
    found = [str(spec) for spec in parse("clasp:scale=0.25|1,rows=all|worst")]
    assert found == [
        "clasp:scale=0.25,rows=all",
        "clasp:scale=0.25,rows=worst",
        "clasp:scale=1,rows=all",
        "clasp:scale=1,rows=worst",
    ]


def test_objects_in_files_may_have_options() -> None:
    (spec,) = parse("some/folder/file.py:Name:weight=2")
    assert spec == ("some/folder/file.py:Name", {"weight": 2})
    assert spec.in_file


def build(description: Any, problem: str = "olr", rounds: int = 100) -> Any:
    found = problems.get(problem)
    return resolve(description)[0].build(found, rounds, found.start(0, [0]))


def test_options_reach_the_algorithm() -> None:
    learner = build("clasp:beta=0.7,scale=2,rows=worst,window=3")
    assert (learner.steps, learner.rows, learner.window) == (steps.Power(0.7, 2.0), "worst", 3)
    assert build("clasp").steps == steps.Power(0.5)
    assert build("clasp:window=none").window is None
    assert build("clasp:steps=constant,c=0.1").steps == steps.Constant(0.1)
    assert build("clasp:steps=strongly-convex", "tracking").steps == steps.StronglyConvex(1.0)
    assert build("clasp:steps=adaptive").steps == steps.Adaptive(np.sqrt(10))
    assert build("recoo:strong_convexity=problem", "tracking").strong_convexity == 1.0
    assert build("recoo", "tracking").strong_convexity is None


def test_horizon_and_constants_come_from_run_and_problem() -> None:
    olr = problems.get("olr")
    learner = build("adagrad", rounds=77)
    assert (learner.horizon, learner.lipschitz) == (77, max(olr.lipschitz_f, olr.lipschitz_g))
    assert build("adagrad:lipschitz=3,horizon=9", rounds=77).lipschitz == 3.0
    authors = problems.get("olr", constants="authors")
    learner = resolve("adagrad")[0].build(authors, 100, authors.start(0, [0]))
    assert (learner.lipschitz, learner.diameter) == (100.0, np.sqrt(2))


def test_a_configured_learner_is_copied_for_the_problem() -> None:
    configured = CLASP(Box(0.0, 1.0, dim=10), steps=steps.Power(0.7, scale=2.0))
    result = cocopt.run("olr", [configured, "clasp:beta=0.7,scale=2"], trials=2, rounds=10, regret=False)
    np.testing.assert_array_equal(result.finals("CLASP")["loss"], result.finals("clasp:beta=0.7,scale=2")["loss"])
    with pytest.raises(InvalidInput, match="expected the problem's own K"):
        cocopt.run("olr", CLASP(Box(0.0, 2.0, dim=10)), trials=2, rounds=10)


OWN_LEARNERS = """
from cocopt import CLASP, Box, steps

class Mine(CLASP):
    title = "mine"

learner = CLASP(Box(0.0, 1.0, dim=10), steps=steps.Power(0.7))
mine = Mine(Box(0.0, 1.0, dim=10))
number = 3
"""


def test_only_what_cannot_change_unseen_identifies_an_algorithm(tmp_path: Path) -> None:
    """Finished chunks are used again only for an algorithm with the same identity."""
    (tmp_path / "own.py").write_text(OWN_LEARNERS)
    box = Box(0.0, 1.0, dim=10)

    def identity(given: Any) -> Any:
        (algorithm,) = resolve(given)
        return algorithm.identity

    assert identity("clasp:beta=0.7") == {"algorithm": "clasp", "options": {"beta": 0.7}}
    first, second = (identity(CLASP(box, steps=steps.Power(beta))) for beta in (0.7, 0.6))
    assert first["class"] == "CLASP"
    assert first != second
    assert first == identity(CLASP(box, steps=steps.Power(0.7)))
    assert identity(type("Own", (CLASP,), {})(box)) is None  # a class of the user's
    assert identity(constant_action) is None
    found = identity(f"{tmp_path}/own.py:learner")
    assert (found["name"], set(found)) == ("learner", {"file", "name"})
    (tmp_path / "own.py").write_text(OWN_LEARNERS + "\n")
    assert identity(f"{tmp_path}/own.py:learner") != found
    with pytest.raises(
        InvalidInput, match=r"own.py:number: expected a Learner or a function that makes one, got int 3"
    ):
        resolve(f"{tmp_path}/own.py:number")
    with pytest.raises(InvalidInput, match=r"own.py:learner: expected a Learner or a function that makes one, got"):
        resolve(f"{tmp_path}/own.py:learner:beta=0.5")  # a learner that is already made takes no options


def test_a_mapping_gives_algorithms_their_names() -> None:
    result = cocopt.run(
        "olr", {"ours": CLASP(Box(0.0, 1.0, dim=10)), "theirs": "recoo"}, trials=2, rounds=5, regret=False
    )
    assert result.algorithms == ["ours", "theirs"]


# ---------------------------------------------------------------- tables and figures


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    folder = tmp_path_factory.mktemp("results")
    return small(out=folder), folder


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_summary_csv_has_the_documented_columns(saved: tuple[Result, Path]) -> None:
    result, folder = saved
    rows = read(folder / "summary.csv")
    assert list(rows[0]) == ["problem", "algorithm", "metric", "rounds", "trials", "mean", "ci_low", "ci_high"]
    assert {row["algorithm"] for row in rows} == {"clasp", "recoo", "adagrad"}
    metrics = {row["metric"] for row in rows if row["algorithm"] == "recoo"}
    assert metrics >= {"loss", "regret", "ccv_soft", "ccv1", "ccv2", "ccv2_sum"}
    for row in rows:
        assert (row["problem"], row["rounds"], row["trials"]) == ("olr", "30", "7")
        found = interval(result.finals(row["algorithm"])[row["metric"]])
        assert tuple(float(row[name]) for name in ("mean", "ci_low", "ci_high")) == found


def test_other_tables_equal_the_result(saved: tuple[Result, Path]) -> None:
    result, folder = saved
    finals = read(folder / "finals.csv")
    assert len(finals) == 3 * 7
    for row in finals:
        for metric, values in result.finals(row["algorithm"]).items():
            assert float(row[metric]) == values[int(row["trial"])]
    curves = [row for row in read(folder / "curves.csv") if (row["algorithm"], row["metric"]) == ("clasp", "ccv2")]
    assert [int(row["round"]) for row in curves] == result.points.tolist()
    assert [float(row["mean"]) for row in curves] == result.curves("clasp")["ccv2"].mean(axis=0).tolist()
    paired = [row for row in read(folder / "paired.csv") if row["metric"] == "ccv1"]
    assert [(row["first"], row["second"]) for row in paired] == [
        ("clasp", "recoo"),
        ("clasp", "adagrad"),
        ("recoo", "adagrad"),
    ]
    assert float(paired[0]["ci_low"]) == result.paired("clasp", "recoo")["ccv1"].ci_low


def test_the_configuration_is_written(saved: tuple[Result, Path]) -> None:
    _, folder = saved
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["versions"].keys() >= {"cocopt", "numpy", "numba", "python"}
    experiment = config["experiments"]["olr"]
    assert (experiment["seed"], experiment["trials"], experiment["rounds"], experiment["chunk"]) == (0, 7, 30, 3)
    assert experiment["problem"]["options"]["loss"] == "norm"


def test_figures_are_written_with_the_same_bytes_each_time(saved: tuple[Result, Path], tmp_path: Path) -> None:
    result, folder = saved
    result.save(tmp_path)
    for name in ("olr.pdf", "olr.png", "olr-regret.pdf", "olr-regret.png"):
        content = (folder / name).read_bytes()
        assert content.startswith(b"%PDF" if name.endswith("pdf") else b"\x89PNG")
        assert content == (tmp_path / name).read_bytes()
    with pytest.raises(InvalidInput, match=r"expected a file name that ends in .pdf, .png or .svg, got 'olr.doc'"):
        result.plot(tmp_path / "olr.doc")


def texts(drawn: Any) -> str:
    from matplotlib.text import Text

    return " ".join(text.get_text() for text in drawn.findobj(Text)).replace("\n", " ")


def test_figures_label_everything(saved: tuple[Result, Path]) -> None:
    result, _ = saved
    drawn = figures.draw(result, "regret")
    shown = texts(drawn)
    for part in ("CLASP", "RECOO", "AdaGrad", "95% confidence interval of the mean", "bounds of the theory", "Regret"):
        assert part in shown
    drawn.draw_without_rendering()
    legend = drawn.legends[0].get_window_extent()
    assert all(axes.get_window_extent().y0 >= legend.y1 for axes in drawn.axes)  # it hides nothing


@pytest.mark.parametrize("kind", ["metrics", "regret"])
def test_the_legend_of_a_long_sweep_fits(kind: Any) -> None:
    sweep = "clasp:beta=0.3|0.5|0.7,scale=0.25|0.5|1|2,rows=worst"
    drawn = figures.draw(cocopt.run("olr", sweep, trials=2, rounds=5, regret=False), kind)
    drawn.draw_without_rendering()
    legend = drawn.legends[0].get_window_extent()
    assert drawn.bbox.x0 <= legend.x0 < legend.x1 <= drawn.bbox.x1
    assert drawn.bbox.y0 <= legend.y0
    assert all(legend.y1 <= axes.get_window_extent().y0 for axes in drawn.axes)


def test_algorithms_differ_in_colour_and_in_line_style() -> None:
    styles = [line_style(i) for i in range(6)]
    assert len({style["color"] for style in styles}) == len({str(style["linestyle"]) for style in styles}) == 6


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The register of figures; what a test adds to it is removed afterwards."""
    copy = dict(figures.FIGURES)
    monkeypatch.setattr(figures, "FIGURES", copy)
    return copy


def test_a_figure_of_the_users_own_is_one_function(
    saved: tuple[Result, Path], tmp_path: Path, registered: dict[str, Any]
) -> None:
    @figure("final-loss")
    def final_loss(result: Result, drawn: Figure) -> None:
        axes = drawn.subplots()
        axes.bar(result.algorithms, [result.finals(label)["loss"].mean() for label in result.algorithms])
        axes.set_title("drawn by a user")

    result, _ = saved
    result.save(tmp_path)
    names = {f"olr{kind}.{suffix}" for kind in ("", "-regret", "-final-loss") for suffix in ("pdf", "png")}
    assert {path.name for path in tmp_path.iterdir() if path.suffix in (".pdf", ".png")} == names
    for name in names:
        assert (tmp_path / name).read_bytes().startswith(b"%PDF" if name.endswith("pdf") else b"\x89PNG")
    drawn = result.plot(tmp_path / "own.svg", "final-loss")
    assert "drawn by a user" in texts(drawn)
    assert "drawn by a user" in (tmp_path / "own.svg").read_text(encoding="utf-8")
    assert "drawn by a user" in texts(result.plot(kind=final_loss))
    heights = [bar.get_height() for bar in drawn.axes[0].patches]
    assert heights == [result.finals(label)["loss"].mean() for label in result.algorithms]


def test_run_writes_registered_figures(tmp_path: Path, registered: dict[str, Any]) -> None:
    figure("empty")(lambda result, drawn: None)
    cocopt.run("olr", "clasp", trials=2, rounds=5, regret=False, out=tmp_path)
    assert (tmp_path / "olr-empty.pdf").exists()
    assert (tmp_path / "olr-empty.png").exists()


def test_built_in_figures_are_registered_in_the_same_way() -> None:
    own = {
        "metrics": plots.draw_metrics,
        "names": plots.draw_names,
        "regret": plots.draw_regret,
        "sweep": plots.draw_sweep,
        "trade-off": plots.draw_trade_off,
    }
    assert own == figures.FIGURES


def test_a_figure_may_be_defined_again_but_not_replaced(registered: dict[str, Any]) -> None:
    def define() -> Any:
        @figure("own")
        def own(result: Result, drawn: Figure) -> None: ...

        return own

    assert define() is not define()  # as in a notebook, or in a file that is loaded twice
    with pytest.raises(InvalidInput, match=r"expected a name that is not in use, got 'regret' of cocopt\.experiments"):
        figure("regret")(define())
    with pytest.raises(InvalidInput, match="figure: expected a name of letters"):
        figure("../elsewhere")
    with pytest.raises(InvalidInput, match=r"figure own: expected a function of \(result, figure\), got int 3"):
        figure("own")(3)  # type: ignore[arg-type]


def test_errors_in_figures_are_explained(saved: tuple[Result, Path]) -> None:
    def divides(result: Result, drawn: Figure) -> None:
        drawn.set_figheight(1 / 0)

    result, _ = saved
    with pytest.raises(InvalidInput, match=r"figure .*divides: expected .*, got ZeroDivisionError.*test_run.py, line"):
        result.plot(kind=divides)
    with pytest.raises(
        InvalidInput,
        match=r"kind: expected the name of a figure or of a metric, or a function of \(result, figure\), got int 3",
    ):
        result.plot(kind=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="path: expected a file name, got int 3"):
        result.plot(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"path: expected a file that can be written, got nowhere/olr\.pdf: No such"):
        result.plot("nowhere/olr.pdf")
    with pytest.raises(InvalidInput, match="algorithm: expected a known name, got 3; known: adagrad, clasp, recoo"):
        result.curves(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="kind: expected a known name, got 'regrets'; did you mean regret"):
        result.plot(kind="regrets")
    with pytest.raises(InvalidInput, match="algorithm: expected a known name, got 'clsp'; did you mean clasp"):
        result.plot(kind=lambda result, drawn: result.curves("clsp"))


def test_without_a_feasible_action_the_regret_is_reported_as_undefined(tmp_path: Path) -> None:
    result = cocopt.run(Contradiction(), "clasp", trials=3, out=tmp_path)
    assert result.feasible is not None
    assert result.feasible[:, result.checkpoints < 5].all()
    assert not result.feasible[:, result.checkpoints >= 5].any()
    assert np.isnan(result.finals("clasp")["regret"]).all()
    sentence = "The regret is undefined: in 3 of 3 trials no action satisfies the constraints of all 12 rounds"
    assert sentence in result.summary()
    assert re.search(r"clasp.*undefined", result.summary(), re.IGNORECASE)
    assert sentence in texts(figures.draw(result, "regret"))
    assert result.bounds("clasp") is None  # theory promises nothing here
    (row,) = [row for row in read(tmp_path / "summary.csv") if row["metric"] == "regret"]
    assert (row["mean"], row["ci_low"], row["ci_high"]) == ("", "", "")
    (row,) = [row for row in read(tmp_path / "summary.csv") if row["metric"] == "ccv1"]
    assert float(row["mean"]) == result.finals("clasp")["ccv1"].mean()


def test_data_frames_need_pandas(saved: tuple[Result, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"Result\.to_frame needs pandas"):
        saved[0].to_frame()


def test_data_frames_equal_the_tables(saved: tuple[Result, Path]) -> None:
    result, folder = saved
    for which in ("summary", "finals", "curves", "paired"):
        pd.testing.assert_frame_equal(result.to_frame(which), pd.read_csv(folder / f"{which}.csv"))


def test_bounds_hold(saved: tuple[Result, Path]) -> None:
    result, _ = saved
    for label in result.algorithms:
        bounds = result.bounds(label)
        assert bounds is not None
        at = np.searchsorted(result.points, result.checkpoints)
        assert (result.regret(label) <= bounds.regret[at]).all()
        assert (result.curves(label)["ccv1"] <= bounds.ccv1).all()
        assert (result.curves(label)["ccv2"] <= bounds.ccv2).all()
    assert (result.regret("clasp")[:, -1] <= result.finals("clasp")["certificate"]).all()


WRONG_CONSTANTS = {
    "a Lipschitz constant": ("olr", "adagrad:lipschitz=1"),
    "a diameter": ("olr:constants=authors", "adagrad"),
    "strong convexity": ("olr", "recoo:strong_convexity=1"),
    "steps for strong convexity": ("olr", "clasp:steps=strongly-convex,m=1"),
    "more strong convexity than there is": ("tracking", "recoo:strong_convexity=1.5"),
}


@pytest.mark.parametrize("case", WRONG_CONSTANTS)
def test_there_are_no_bounds_for_an_algorithm_with_wrong_constants(case: str) -> None:
    problem, algorithm = WRONG_CONSTANTS[case]
    assert cocopt.run(problem, algorithm, trials=2, rounds=5).bounds(algorithm) is None


@pytest.mark.parametrize("algorithm", ["clasp:steps=strongly-convex", "recoo:strong_convexity=problem"])
def test_bounds_for_strongly_convex_losses_hold(algorithm: str) -> None:
    result = cocopt.run("tracking", algorithm, trials=4, rounds=500)
    bounds = result.bounds(algorithm)
    assert bounds is not None
    assert bounds.regret[-1] < 2 * bounds.regret[np.searchsorted(result.points, 22)]  # logarithmic
    assert (result.regret(algorithm)[:, -1] <= bounds.regret[-1]).all()
    assert (result.curves(algorithm)["ccv2"] <= bounds.ccv2).all()


def test_results_explain_what_they_do_not_have() -> None:
    result = cocopt.run("olr", "clasp", trials=2, rounds=5, regret=False)
    assert repr(result) == "Result('olr', ['clasp'], trials=2, rounds=5)"
    with pytest.raises(InvalidInput, match="regret: expected a run that looked for the best action"):
        result.regret("clasp")
    with pytest.raises(
        InvalidInput, match='table: expected "summary", "finals", "curves" or "paired", got str \'all\''
    ):
        result.table("all")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (3, "description: expected a string, got int 3"),
        (":beta=1", "expected a name, name:option=value,... or file.py"),
    ],
)
def test_wrong_descriptions_are_explained(text: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        parse(text)


# ---------------------------------------------------------------- failures


def test_a_problem_with_too_few_rounds_is_reported() -> None:
    class Short(Targets):
        def blocks(self, seed: int, trials: Any, rounds: int | None = None) -> Any:
            return super().blocks(seed, trials, 5)

    with pytest.raises(TrialFailed, match="Short, clasp, trial 0, round 5: expected 12 rounds from the problem, got 5"):
        cocopt.run(Short(), "clasp", trials=1, regret=False)


def test_a_failure_names_problem_algorithm_trial_and_round() -> None:
    with pytest.raises(TrialFailed, match=r"losses\.Distance: center: expected finite numbers, got nan") as caught:
        cocopt.run(Poisoned(), {"mine": "clasp"}, trials=20, chunk=20)
    error = caught.value
    assert (error.problem, error.algorithm, error.trial, error.round) == ("Poisoned", "mine", 12, 7)
    assert re.match("Poisoned, mine, trial 12, round 7: ", str(error))


def test_a_failure_in_hindsight_names_its_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    best_fixed = hindsight.best_fixed

    def fails(problem: problems.Problem, seed: int, trials: Any, checkpoints: Any) -> Any:
        if 12 in trials:
            raise SolverFailure("too thin")
        return best_fixed(problem, seed, trials, checkpoints)

    monkeypatch.setattr(hindsight, "best_fixed", fails)
    with pytest.raises(TrialFailed, match="Targets, best action in hindsight, trial 12, round 5: too thin"):
        cocopt.run(Targets(), "clasp", trials=20, rounds=5, chunk=10)


def test_failures_in_other_processes_are_reported() -> None:
    with pytest.raises(TrialFailed, match="Poisoned, clasp, trial 12, round 7: "):
        cocopt.run(Poisoned(), "clasp", trials=20, chunk=5, jobs=2, regret=False)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there are no such signals")
def test_a_killed_process_is_reported(tmp_path: Path) -> None:
    class KillsItsProcess(Targets):
        def round(self, rng: np.random.Generator, t: int) -> Any:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(EngineFailed, match=r"a worker process ended before its work was done \(out of memory\?\)"):
        cocopt.run(KillsItsProcess(), "clasp", trials=2, chunk=1, jobs=2, regret=False)


def test_an_error_in_the_code_of_a_user_is_located() -> None:
    class Broken(Targets):
        def round(self, rng: np.random.Generator, t: int) -> Any:
            return super().round(rng, 1 // (t - 9))

    with pytest.raises(
        TrialFailed, match=r"Broken, clasp, trial 0, round 9: ZeroDivisionError: .*test_run.py, line \d+"
    ):
        cocopt.run(Broken(), "clasp", trials=2, regret=False)


BAD = {
    "zero trials": ({"trials": 0}, "trials: expected a positive integer, got int 0"),
    "negative trials": ({"trials": -3}, "trials: expected a positive integer, got int -3"),
    "half a trial": ({"trials": 2.5}, "trials: expected a positive integer"),
    "zero rounds": ({"rounds": 0}, "rounds: expected a positive integer"),
    "zero jobs": ({"jobs": 0}, "jobs: expected a positive integer"),
    "negative seed": ({"seed": -1}, "seed: expected a non-negative integer"),
    "engine": ({"engine": "spark"}, 'engine: expected "local" or "dask"'),
    "too many trials": ({"trials": 10**12}, "trials: expected at most 100000000 in chunks of 100, got int 10+"),
    "too many rounds": ({"rounds": 10**400}, f"rounds: expected at most {2**53}, got int 10+"),
    "array of rounds": ({"rounds": np.ones(2)}, "rounds: expected a positive integer, got an array"),
    "matrix as seed": ({"seed": np.eye(2)}, "seed: expected a non-negative integer, got an array"),
    "array as regret": ({"regret": np.ones(2)}, "regret: expected True or False, got an array"),
    "word as tables": ({"tables": "yes"}, "tables: expected True or False, got str 'yes'"),
    "number as progress": ({"progress": 1}, "progress: expected True or False, got int 1"),
    "list as engine": ({"engine": []}, 'engine: expected "local" or "dask", got list'),
    "number as out": ({"out": 3}, "out: expected a path, got int 3"),
    "null character in out": ({"out": "a\0b"}, "out: expected a folder that can be written"),
    "problem": ({"problem": "orl"}, r"got 'orl'; did you mean olr"),
    "problem's option": ({"problem": "olr:los=norm"}, "got 'los'; did you mean loss"),
    "problem's value": ({"problem": "olr:loss=cubic"}, 'loss: expected "norm" or "squared"'),
    "problem's type": ({"problem": 3}, "problem: expected a name or a Problem, got int 3"),
    "a sweep of problems": ({"problem": "olr:loss=norm|squared"}, "expected one problem, got a sweep over 2"),
    "algorithm": ({"algorithms": "clapsp"}, "algorithm: expected a known name, got 'clapsp'; did you mean clasp"),
    "algorithm's option": ({"algorithms": "clasp:bta=1"}, "got 'bta'; did you mean beta"),
    "algorithm's value": ({"algorithms": "clasp:beta=7"}, r"beta: expected a number in \(0, 1\), got 7"),
    "option without value": ({"algorithms": "clasp:beta"}, "expected option=value, got 'beta'"),
    "option twice": ({"algorithms": "clasp:beta=0.5,beta=0.6"}, "expected each option once, got beta again"),
    "unfitting option": (
        {"algorithms": "clasp:steps=constant,beta=0.5"},
        "beta: expected an argument of the algorithm, or an option of",
    ),
    "schedule": ({"algorithms": "clasp:steps=powr"}, "steps: expected a known name, got 'powr'; did you mean power"),
    "same name twice": ({"algorithms": ["clasp", "clasp"]}, "expected different names, got 'clasp' 2 times"),
    "no algorithm": ({"algorithms": []}, "algorithms: expected at least one, got none"),
    "algorithm's type": ({"algorithms": [3]}, "algorithms: expected names, learners or functions"),
    "lacking modulus": ({"algorithms": "clasp:steps=strongly-convex"}, "expected m, got none: the problem 'olr' does"),
    "lacking modulus too": ({"algorithms": "recoo:strong_convexity=problem"}, "expected strong_convexity, got none"),
    "lacking constant": ({"problem": Targets(), "algorithms": "adagrad"}, "adagrad: expected lipschitz, got none"),
    "no learner": ({"algorithms": [lambda K, start: 3]}, "expected a cocopt.algorithms.Learner, got int 3"),
    "no such file": ({"problem": "nowhere/file.py:Name"}, "nowhere/file.py:Name: expected"),
    "no such file either": ({"algorithms": "nowhere/file.py:Name"}, "nowhere/file.py:Name: expected"),
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_arguments_are_reported_before_anything_runs(case: str) -> None:
    arguments, message = BAD[case]
    with pytest.raises(InvalidInput, match=message):
        cocopt.run(**{"problem": "olr", "algorithms": "clasp", "trials": 2, "rounds": 5, **arguments})


def test_as_many_rounds_and_trials_as_can_be_counted_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MAX_CHUNKS", 3)
    most = {"trials": 15, "rounds": plan.MAX_ROUNDS}
    made = plan.make_plan(Targets(), "clasp", **most, seed=0, chunk=5, comparators=())
    assert (made.rounds, made.points[-1], made.trials, len(made.chunks)) == (plan.MAX_ROUNDS, plan.MAX_ROUNDS, 15, 3)
    for name in most:
        with pytest.raises(InvalidInput, match=f"{name}: expected at most"):
            plan.make_plan(Targets(), "clasp", **most | {name: most[name] + 1}, seed=0, chunk=5, comparators=())


def test_an_unbounded_set_has_no_best_action() -> None:
    class Endless(Targets):
        K = Box(0.0, np.inf, dim=2)

    with pytest.raises(
        InvalidInput, match="regret: expected False, since the set of the problem 'Endless' is unbounded"
    ):
        cocopt.run(Endless(), "clasp", trials=2)
    assert cocopt.run(Endless(), "clasp", trials=2, regret=False).summary()

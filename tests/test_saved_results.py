"""Results that were saved: the same numbers again, trajectories, LaTeX, axes of one's own, bars in a notebook."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

import cocopt
from cocopt import state
from cocopt.errors import InvalidInput, MissingFile, StateError
from cocopt.experiments import Result, latex, progress
from cocopt.experiments.results import interval

ROUNDS = 12


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    folder = tmp_path_factory.mktemp("saved")
    result = cocopt.run(
        "olr",
        ["clasp", "clasp:scale=0.5|2", "adagrad"],
        trials=3,
        rounds=ROUNDS,
        jobs=1,
        comparators=["static", "dynamic", "piecewise:blocks=3", "expectation"],
        keep="trajectories",
    )
    result.write(folder)
    return result, folder


def test_a_loaded_result_has_the_same_numbers(saved: tuple[Result, Path]) -> None:
    result, folder = saved
    again = Result.load(folder)
    assert again.summary() == result.summary()
    assert Result.load(folder / "olr.result.npz").summary() == result.summary()  # the file itself
    assert repr(again) == repr(result)
    assert again.swept == result.swept
    for which in ("summary", "finals", "curves", "paired"):
        assert repr(again.table(which)) == repr(result.table(which))
    for label in result.algorithms:
        np.testing.assert_array_equal(again.trajectory(label), result.trajectory(label))
        assert repr(again.bounds(label)) == repr(result.bounds(label))
        np.testing.assert_array_equal(again.dynamic_bounds(label), result.dynamic_bounds(label))
        assert again.title(label) == result.title(label)
    for name in result.comparators:
        assert type(again.comparator(name)) is type(result.comparator(name))
        for one, other in zip(again.comparator(name), result.comparator(name), strict=True):
            np.testing.assert_array_equal(one, other)
    assert again._repr_html_() == result._repr_html_()


def test_a_loaded_result_draws_the_same_figure(saved: tuple[Result, Path]) -> None:
    """Regret, violations and bounds; the numbers, since drawing takes time."""
    drawn = [result.plot(kind="regret") for result in (saved[0], Result.load(saved[1]))]
    lines = [[line.get_xydata() for axes in figure.axes for line in axes.lines] for figure in drawn]
    assert len(lines[0]) > 20
    for one, other in zip(*lines, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_loaded_result_has_no_problem(saved: tuple[Result, Path]) -> None:
    again = Result.load(saved[1])
    for attempt in (lambda: again.problem, lambda: again.learner("clasp")):
        with pytest.raises(InvalidInput, match=r"expected a result of cocopt\.run, got one that was loaded"):
            attempt()


def test_several_results_in_one_folder(saved: tuple[Result, Path], tmp_path: Path) -> None:
    for problem in ("olr:loss=squared", "tracking"):
        cocopt.run(problem, trials=1, rounds=2, jobs=1, regret=False).write(tmp_path)
    assert Result.load(tmp_path, "olr:loss=squared").name == "olr:loss=squared"
    assert Result.load(str(tmp_path), name="tracking").name == "tracking"
    for name in (None, "svm", 3):
        with pytest.raises(InvalidInput, match=r"name: expected one of the results in .*olr-loss-squared, tracking"):
            Result.load(tmp_path, name)


@pytest.mark.parametrize("folder", ["nowhere", "empty"])
def test_a_folder_without_a_result(folder: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingFile, match=r"folder: expected one that Result\.save wrote"):
        Result.load(tmp_path / folder)
    with pytest.raises(InvalidInput, match="folder: expected a path, got int 3"):
        Result.load(3)  # type: ignore[arg-type]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all parts of a value of JSON."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(leaf for key, item in items for leaf in leaves(item, (*path, key)))]


def forged(header: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The header with another value at one place."""
    copy = json.loads(json.dumps(header))
    if not path:
        return value
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return copy


def test_forged_files_are_state_errors_or_results(saved: tuple[Result, Path], tmp_path: Path) -> None:
    """Every part of the description is replaced by other values; what is accepted must still be a whole result."""
    header, arrays = state.read(saved[1] / "olr.result.npz")
    path = tmp_path / "olr.result.npz"
    rng, refused = np.random.default_rng(0), 0
    places = leaves(header)
    for place in [places[i] for i in rng.choice(len(places), size=40, replace=False)]:
        for value in (None, "x", {"array": "result.points"}):
            changed = forged(header, place, value)
            if not isinstance(changed, dict):
                continue
            path.write_bytes(state.pack(changed, arrays))
            try:
                result = Result.load(tmp_path)
            except StateError:
                refused += 1
            else:
                result.table("curves")
    assert refused > 70


FORGERIES: dict[str, tuple[tuple[Any, ...], Any, str]] = {
    "a number as name": (("name",), 3, "name, config: expected a text and a mapping"),
    "no trials": (
        ("config", "fields", "trials"),
        0,
        "checkpoints: expected some of the points, and at least one trial",
    ),
    "more rounds": (("config", "fields", "rounds"), 99, "points: expected increasing numbers up to 99"),
    "no algorithms": (("algorithms",), [], "algorithms: expected at least one"),
    "a label twice": (("algorithms", 1, 0), "clasp", "algorithms.1: expected another label"),
    "half an algorithm": (("algorithms", 0), ["clasp"], "algorithms.0: expected its description, arrays and bounds"),
    "a number as label": (("algorithms", 0, 0), 3, "algorithms.0: expected a label, a title and options"),
    "fewer names": (("algorithms", 0, 3), ["loss"], "algorithms.0: expected as many names as arrays"),
    "another name": (("algorithms", 0, 3, 0), "lost", "algorithms.0: expected different names, among them ccv1"),
    "bounds": (("algorithms", 0, 5), [None], "algorithms.0.bounds: expected regret, ccv1, ccv2, ccv_soft"),
    "a comparator": (("compared", 0, 0), "best", "compared: expected pairs of a name among static"),
    "a comparator twice": (("compared", 1, 0), "static", "compared: expected each comparator once"),
    "arrays of a comparator": (("compared", 0, 1), [], "compared.static: expected the arrays value, feasible, point"),
}


@pytest.mark.parametrize("kind", FORGERIES)
def test_a_forged_part_is_named(kind: str, saved: tuple[Result, Path], tmp_path: Path) -> None:
    place, value, message = FORGERIES[kind]
    header, arrays = state.read(saved[1] / "olr.result.npz")
    changed = forged(header, ("result", "fields", *place), value)
    used = json.dumps(changed)
    kept = {name: array for name, array in arrays.items() if f'"{name}"' in used}
    (tmp_path / "olr.result.npz").write_bytes(state.pack(changed, kept))
    with pytest.raises(StateError, match=message):
        Result.load(tmp_path)


def test_arrays_that_do_not_fit_are_refused(saved: tuple[Result, Path], tmp_path: Path) -> None:
    header, arrays = state.read(saved[1] / "olr.result.npz")
    path = tmp_path / "olr.result.npz"
    wrong = (np.zeros(1), np.zeros((2, 3, 4, 5, 6)), np.array(["a"]), np.zeros(0), np.zeros((3, 1), dtype=int))
    for i, name in enumerate(arrays):
        for value in wrong[i % 2 :: 2]:
            path.write_bytes(state.pack(header, {**arrays, name: value}))
            with pytest.raises(StateError, match=r"olr\.result\.npz|expected"):
                Result.load(tmp_path)
    with (saved[1] / "olr.result.npz").open("rb") as whole:
        path.write_bytes(whole.read(1000))
    with pytest.raises(StateError):
        Result.load(tmp_path)


# ------------------------------------------------------------------------------------------------------- trajectories


def test_trajectories_are_the_points_that_a_learner_plays(saved: tuple[Result, Path]) -> None:
    result, _ = saved
    for label in result.algorithms:
        played = result.trajectory(label)
        assert played.shape == (3, ROUNDS, 10)
        learner = result.learner(label)
        for _, count, reveal in result.problem.blocks(0, [0], ROUNDS):
            for k in range(count):
                np.testing.assert_allclose(played[0, k], learner.ask()[0], rtol=0, atol=1e-12)
                learner.tell(*reveal(k))
    with pytest.raises(ValueError, match="read-only"):
        result.trajectory("clasp")[0] = 0.0


def test_chunks_without_trajectories_are_not_taken_for_such_with_them(tmp_path: Path) -> None:
    plain = cocopt.run("olr", trials=2, rounds=3, jobs=1, out=tmp_path, tables=False)
    with pytest.raises(InvalidInput, match='trajectory: expected a run with keep="trajectories", got one without'):
        plain.trajectory("clasp")
    kept = [cocopt.run("olr", trials=2, rounds=3, jobs=1, out=tmp_path, tables=False, keep="trajectories", chunk=1)
            for _ in range(2)]  # fmt: skip
    np.testing.assert_array_equal(kept[0].trajectory("clasp"), kept[1].trajectory("clasp"))
    np.testing.assert_array_equal(kept[0].finals("clasp")["loss"], plain.finals("clasp")["loss"])
    assert "trajectories" not in kept[0].curves("clasp")


def test_agents_have_trajectories_too() -> None:
    result = cocopt.run("network", ["yi2023"], trials=2, rounds=3, jobs=1, regret=False, keep="trajectories")
    assert result.trajectory("yi2023").shape[:2] == (2, 3)
    assert result.trajectory("yi2023").ndim == 4


def test_too_many_points_are_refused_before_any_work() -> None:
    expected = (
        r"keep: expected trajectories of at most 2 GiB, got 745 GiB \(1 algorithms × 100 trials × 100000000 rounds"
    )
    with pytest.raises(InvalidInput, match=expected):
        cocopt.run("olr", rounds=10**8, keep="trajectories")
    with pytest.raises(InvalidInput, match='keep: expected "trajectories", got str'):
        cocopt.run("olr", rounds=2, keep="everything")  # type: ignore[arg-type]


# -------------------------------------------------------------------------------------------------------------- LaTeX


def test_latex_has_the_numbers_of_the_result(saved: tuple[Result, Path]) -> None:
    result, _ = saved
    text = result.to_latex()
    assert text.count("{") == text.count("}")
    rows = re.findall(r"^(.*) \\\\$", text, flags=re.MULTILINE)[1:]
    assert len(rows) == len(result.algorithms)
    for label, row in zip(result.algorithms, rows, strict=True):
        cells = row.split(" & ")
        mean, low, high = interval(result.finals(label)["ccv1"])
        found = [float(part) for part in re.findall(r"[-\d.]+", cells[-2])]
        assert found == pytest.approx([mean, (high - low) / 2], rel=0.1)
        assert cells[0].partition(" ")[0] == result.title(label).partition(" ")[0]
    assert result.to_latex(["loss"]).count("&") == len(result.algorithms) + 1


def test_latex_escapes_names_and_refuses_unknown_metrics() -> None:
    result = cocopt.run("olr", {r"a_b & \end{tabular} 50%": "clasp"}, trials=1, rounds=3, jobs=1)
    text = result.to_latex(["ccv1", "ccv2_sum"])
    assert r"a\_b \& \textbackslash{}end\{tabular\} 50\% & $" in text
    assert r"ccv2\_sum" in text
    assert r"\pm" not in text  # one trial has no interval
    with pytest.raises(InvalidInput, match="metric: expected a known name, got 'ccv3'"):
        result.to_latex(["ccv3"])
    for wrong in ("loss", [], 3):
        with pytest.raises(InvalidInput, match="metrics: expected names such as"):
            result.to_latex(wrong)  # type: ignore[arg-type]


def test_numbers_in_latex() -> None:
    assert latex.number(np.nan, np.nan) == "--"
    assert latex.number(-0.123456, 0.00123) == r"$-0.1235 \pm 0.0012$"
    assert latex.number(98765.4, 321.0) == r"$98765 \pm 321$"
    assert latex.number(1.5e-8, 2e-9) == r"$(1.50 \pm 0.20) \cdot 10^{-8}$"
    assert latex.number(2.0, 0.0) == r"$2 \pm 0$"
    assert latex.number(1.5e9, np.nan) == r"$1.5 \cdot 10^{9}$"


# ------------------------------------------------------------------------------------------------------------ figures


def test_a_metric_is_drawn_into_axes_of_ones_own(saved: tuple[Result, Path], tmp_path: Path) -> None:
    result, _ = saved
    figure = Figure()
    first, second = figure.subplots(1, 2)
    assert result.plot(tmp_path / "two.png", ax=first) is figure
    assert result.plot(kind="regret_dynamic", ax=second) is figure
    assert (tmp_path / "two.png").stat().st_size > 1000
    means = result.curves("clasp")["loss"].mean(axis=0)
    np.testing.assert_allclose(first.lines[0].get_ydata(), means)
    assert [text.get_text() for text in first.get_legend().get_texts()] == list(map(result.title, result.algorithms))
    with pytest.raises(InvalidInput, match="kind: with ax, a metric: expected a known name, got 'metrics'"):
        result.plot(kind="metrics", ax=first)
    with pytest.raises(InvalidInput, match="ax: expected the axes of a figure of matplotlib, got int 3"):
        result.plot(ax=3)  # type: ignore[arg-type]
    part = Figure().subfigures(1, 2)[1]
    assert result.plot(ax=part.subplots()) is part.figure


def test_a_metric_is_drawn_alone(saved: tuple[Result, Path], tmp_path: Path) -> None:
    result, _ = saved
    drawn = result.plot(tmp_path / "one.png", kind="ccv1")
    (axes,) = drawn.axes
    np.testing.assert_allclose(axes.lines[0].get_ydata(), result.curves("clasp")["ccv1"].mean(axis=0))
    assert (tmp_path / "one.png").stat().st_size > 1000
    with pytest.raises(InvalidInput, match=r"kind: expected a known name, got 'ccv9'.*ccv1"):
        result.plot(kind="ccv9")


def test_a_notebook_shows_a_figure_as_a_picture(saved: tuple[Result, Path]) -> None:
    backend = matplotlib.get_backend()
    content, size = saved[0].plot()._repr_png_()  # type: ignore[attr-defined]
    assert content.startswith(b"\x89PNG")
    assert size["width"] == 720
    assert matplotlib.get_backend() == backend


# ----------------------------------------------------------------------------------------------------------- progress


class Shell:
    """What a kernel's shell offers, as far as it is used: `publish` of a display."""

    kernel = object()

    def __init__(self) -> None:
        self.display_pub = self
        self.shown: list[dict[str, Any]] = []

    def publish(self, **message: Any) -> None:
        self.shown.append(message)


def test_bars_in_a_notebook(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    cocopt.run("olr", {"<b>": "clasp"}, trials=2, rounds=3, jobs=1)
    assert [message["update"] for message in shell.shown] == [False, *[True] * (len(shell.shown) - 1)]
    assert len({message["transient"]["display_id"] for message in shell.shown}) == 1
    last = shell.shown[-1]["data"]
    assert "&lt;b&gt;" in last["text/html"]
    assert '<progress value="2" max="2"' in last["text/html"]
    assert last["text/plain"].startswith("olr: 4/4 trials, ")
    shell.shown.clear()
    cocopt.run("olr", trials=2, rounds=3, jobs=1, progress=False)
    assert shell.shown == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("shell", [None, SimpleNamespace()])
def test_no_bars_in_logs(shell: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """IPython on a terminal has a shell without a kernel; here standard error is no terminal."""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    cocopt.run("olr", trials=2, rounds=3, jobs=1)
    assert capsys.readouterr() == ("", "")
    assert type(progress.show("a", {"b": 1}, None)) is progress.Progress


def test_bars_say_how_long_it_will_take(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = Shell()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    with progress.show("a", {"b": 4}, None) as display:  # left before all is done
        display.began -= 10.0
        display.advance("b", 2)
    assert re.search(r"a: 2/4 trials, 10\.\d s, about 10 s left", shell.shown[-1]["data"]["text/plain"])

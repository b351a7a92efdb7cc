"""What the built-in figures show: which numbers, on which axes."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fontTools import subset
from matplotlib import rc_context
from matplotlib.figure import Figure
from PIL import Image

import cocopt
from cocopt import CLASP, Box, constraints, losses, problems, steps
from cocopt.errors import InvalidInput
from cocopt.experiments import Result, figures, ticks
from cocopt.experiments.results import interval

PANELS = {"metrics": ["loss", "ccv1", "ccv2"], "regret": ["regret", "ccv1", "ccv2"]}


class Fixed(problems.Problem):
    """The losses are least at a point that the constraint excludes."""

    K = Box(-1.0, 1.0, dim=2)
    rounds = 6
    tight = 1.0  #: the constraint is x_1 + x_2 ≤ 1 − tight

    def round(self, rng: np.random.Generator, t: int) -> Any:
        return losses.Distance(np.full(2, 0.5)), constraints.Affine([1.0, 1.0], 1.0 - self.tight)


class Satisfied(Fixed):
    """The constraint excludes nothing that is played."""

    tight = -1.0


def plays(value: float) -> Any:
    """A learner that plays the same point in every round."""
    return lambda K, start: CLASP(K, start=np.full(np.shape(start), value), steps=steps.Constant(1e-300))


@pytest.fixture(scope="module")
def result() -> Result:
    return cocopt.run("olr", ["clasp", "recoo"], trials=3, rounds=40)


@pytest.mark.parametrize("name", PANELS)
def test_lines_are_means_bands_intervals_and_thin_lines_bounds(result: Result, name: str) -> None:
    for axes, metric in zip(figures.draw(result, name).axes, PANELS[name], strict=True):
        lines = [line for line in axes.get_lines() if len(line.get_xdata()) > 2]  # the others mark zero
        for label, band in zip(result.algorithms, axes.collections, strict=True):
            t, values = result.points, result.curves(label).get(metric)
            if metric == "regret":
                t, values = result.checkpoints, result.regret(label)
            mean, low, high = interval(values)
            line = lines.pop(0)
            np.testing.assert_array_equal(line.get_xydata(), np.column_stack([t, mean]))
            corners = band.get_paths()[0].vertices
            for edge in (low, high):
                for corner in np.column_stack([t, edge]):
                    assert np.isclose(corners, corner, rtol=1e-12).all(axis=1).any()
            if name == "regret":
                thin, bound = lines.pop(0), getattr(result.bounds(label), metric)
                np.testing.assert_array_equal(thin.get_xydata(), np.column_stack([result.points, bound]))
                assert (thin.get_color(), thin.get_linestyle()) == (line.get_color(), line.get_linestyle())
                assert thin.get_linewidth() < line.get_linewidth()
        assert lines == []


def test_metrics_are_drawn_on_linear_axes_from_zero(result: Result) -> None:
    for axes in figures.draw(result, "metrics").axes:
        assert (axes.get_xscale(), axes.get_xlim()) == ("linear", (0.0, 40.0))
    assert figures.draw(result, "metrics").axes[0].get_yscale() == "linear"


def test_rates_are_drawn_on_logarithmic_axes(result: Result) -> None:
    for axes in figures.draw(result, "regret").axes:
        assert (axes.get_xscale(), axes.get_xlim()) == ("log", (1.0, 40.0))
    assert [axes.get_yscale() for axes in figures.draw(result, "regret").axes[1:]] == ["log", "log"]


def test_a_negative_regret_is_drawn_on_an_axis_with_both_signs() -> None:
    """Who plays the minimiser of the losses, against the constraint, does better than the best feasible action."""
    result = cocopt.run(Fixed(), {"infeasible": plays(0.5)}, trials=2)
    assert (result.regret("infeasible") < 0.0).all()
    axes = figures.draw(result, "regret").axes[0]
    assert axes.get_yscale() == "symlog"
    (zero,) = [line for line in axes.get_lines() if len(line.get_xdata()) == 2]
    np.testing.assert_array_equal(zero.get_ydata(), [0.0, 0.0])


def test_a_positive_regret_is_drawn_on_a_logarithmic_axis() -> None:
    result = cocopt.run(Satisfied(), {"feasible": plays(0.0)}, trials=2)
    assert (result.regret("feasible") > 0.0).all()
    assert figures.draw(result, "regret").axes[0].get_yscale() == "log"


@pytest.mark.parametrize(("far", "scale"), [(0.3, "linear"), (-1.0, "log")])
def test_losses_of_different_sizes_get_a_logarithmic_axis(far: float, scale: str) -> None:
    """They are as 1 to 4 or as 1 to 225: the distances from 0.5 are 0.1 and 0.2, or 0.1 and 1.5."""
    result = cocopt.run(Satisfied(), {"near": plays(0.4), "far": plays(far)}, trials=2, regret=False)
    loss, _, ccv2 = figures.draw(result, "metrics").axes
    assert loss.get_yscale() == scale
    assert ccv2.get_yscale() == "linear"  # all are 0
    if scale == "log":
        smallest = min(result.curves(label)["loss"].mean(axis=0).min() for label in result.algorithms)
        assert loss.get_ylim()[0] == pytest.approx(smallest / 2)


class Late(Fixed):
    """The losses of 0.4 and 0.3 are the same at first, and in the end as 1 to 57."""

    rounds, tight = 30, -1.0

    def round(self, rng: np.random.Generator, t: int) -> Any:
        return losses.Distance(np.full(2, 0.35 if t <= 2 else 0.4)), None


def test_the_last_values_decide_on_the_axis() -> None:
    result = cocopt.run(Late(), {"near": plays(0.4), "far": plays(0.3)}, trials=2, regret=False)
    assert figures.draw(result, "metrics").axes[0].get_yscale() == "log"


def test_beside_a_curve_of_zeros_the_axis_is_linear() -> None:
    result = cocopt.run(Satisfied(), {"best": plays(0.5), "far": plays(-1.0)}, trials=2, regret=False)
    assert (result.finals("best")["loss"] == 0.0).all()
    assert figures.draw(result, "metrics").axes[0].get_yscale() == "linear"


@pytest.mark.parametrize(
    ("trials", "title"),
    [(1, "One trial"), (2, "Lines: mean over 2 trials; bands: 95% confidence interval of the mean")],
)
def test_the_legend_says_what_lines_and_bands_are(trials: int, title: str) -> None:
    result = cocopt.run(Fixed(), {"mine": plays(0.0)}, trials=trials, regret=False)
    for name in PANELS:  # there are no bounds for an algorithm that is not known
        (legend,) = figures.draw(result, name).legends
        assert " ".join(legend.get_title().get_text().split()) == title
        assert [text.get_text() for text in legend.get_texts()] == ["mine"]


@pytest.mark.parametrize("name", PANELS)
def test_files_show_what_matplotlib_draws_by_itself(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To leave out what is not seen, and to share a parser, changes no pixel."""
    result = cocopt.run("olr", ["clasp", "recoo"], trials=3, rounds=150)
    figures.save(figures.draw(result, name), [tmp_path / "ours.png"])
    figures.save(figures.draw(result, name), [tmp_path / "again.pdf", tmp_path / "again.png"])
    monkeypatch.setattr(ticks, "keep_visible", lambda axes: None)
    plain = figures.draw(result, name)
    assert type(plain.axes[1].xaxis.get_major_locator()).__module__ == "matplotlib.ticker"
    with rc_context(figures._STYLE):
        plain.savefig(tmp_path / "plain.png")
    pixels = {path.stem: np.asarray(Image.open(path)) for path in tmp_path.glob("*.png")}
    assert len(np.unique(pixels["plain"].reshape(-1, 4), axis=0)) > 100
    np.testing.assert_array_equal(pixels["ours"], pixels["plain"])
    np.testing.assert_array_equal(pixels["again"], pixels["plain"])


@pytest.mark.parametrize("limits", [(1.0, 100.0), (0.3, 7e4), (2.0, 5.0), (1e-7, 1e9), (0.999, 1e20)])
def test_ticks_are_those_of_matplotlib_between_the_limits(limits: tuple[float, float]) -> None:
    axes = Figure().subplots()
    axes.set_yscale("log")
    axes.set_ylim(limits)
    usual = [axes.yaxis.get_majorticklocs(), axes.yaxis.get_minorticklocs()]
    ticks.keep_visible(axes)
    for ours, theirs in zip([axes.yaxis.get_majorticklocs(), axes.yaxis.get_minorticklocs()], usual, strict=True):
        np.testing.assert_array_equal(ours, [tick for tick in theirs if limits[0] <= tick <= limits[1]])
    assert any(len(ticks) for ticks in usual)


def test_fonts_in_a_pdf_have_no_tables_for_layout(
    result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables: list[set[str]] = []
    cut = subset.Subsetter.subset

    def watched(self: Any, font: Any) -> None:
        tables.append(set(font.keys()))
        cut(self, font)
        tables.append(set(font.keys()))

    monkeypatch.setattr(subset.Subsetter, "subset", watched)
    before = list(subset.Options._drop_tables_default)
    figures.save(figures.draw(result), [tmp_path / "olr.pdf"])
    assert "GSUB" in tables[0]
    assert "glyf" in tables[1]
    assert not tables[1] & {"GSUB", "GPOS", "GDEF", "kern"}
    assert subset.Options._drop_tables_default == before


@pytest.mark.parametrize("running", [True, False])
def test_the_garbage_collector_runs_after_a_figure_as_before(running: bool, result: Result, tmp_path: Path) -> None:
    drawn = figures.draw(result)
    try:
        gc.enable() if running else gc.disable()
        figures.save(drawn, [tmp_path / "olr.png"])
        assert gc.isenabled() is running
        with pytest.raises(InvalidInput, match="No such file"):
            figures.save(drawn, [tmp_path / "nowhere" / "olr.pdf"])
        assert gc.isenabled() is running
    finally:
        gc.enable()

"""The built-in figures: one line and one band per algorithm, distinguished by colour and by line style."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cocopt.arrays import Array
from cocopt.experiments.figures import COLOURS, figure
from cocopt.experiments.results import Result, interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_metrics", "draw_regret", "line_style"]

_DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1, 1)),
    (0, (6, 1.5, 1, 1.5)),
    (0, (3, 1, 1, 1, 1, 1)),
    (0, (8, 3)),
)
_LABELS = {
    "loss": r"cumulative loss $\Sigma_{s\leq t}\, f_s(x_s)$",
    "regret": r"$\mathrm{Regret}_t$",
    "ccv1": r"$\mathrm{CCV}_{t,1} = \Sigma_{s\leq t}\, g_s^+(x_s)$",
    "ccv2": r"$\mathrm{CCV}_{t,2} = \Sigma_{s\leq t}\, g_s^+(x_s)^2$",
}
_MAX_LINEAR_RATIO = 30.0  # curves whose last values differ by a larger factor get a logarithmic axis


@figure("metrics")
def draw_metrics(result: Result, drawn: Figure) -> None:
    """The paper's figure: loss, CCV₁ and CCV₂ against t."""
    _draw_panels(result, drawn, ["loss", "ccv1", "ccv2"], bounds=False)


@figure("regret")
def draw_regret(result: Result, drawn: Figure) -> None:
    """Regret (if it was computed), CCV₁ and CCV₂ on logarithmic axes, beside the bounds of the theory."""
    panels = ["ccv1", "ccv2"] if result.feasible is None else ["regret", "ccv1", "ccv2"]
    _draw_panels(result, drawn, panels, bounds=True)


def line_style(i: int) -> dict[str, Any]:
    """Colour and dashes of the i-th algorithm."""
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": _DASHES[i % len(_DASHES)]}


def _draw_panels(result: Result, drawn: Figure, metrics: Sequence[str], *, bounds: bool) -> None:
    """One panel per metric, and the legend below them."""
    drawn.set_size_inches(2.5 * len(metrics), 2.9)
    for axes, metric in zip(drawn.subplots(1, len(metrics)), metrics, strict=True):
        _panel(axes, result, metric, bounds=bounds)
    _legend(drawn, result, bounds=bounds)


def _panel(axes: Axes, result: Result, metric: str, *, bounds: bool) -> None:
    """One metric of all algorithms; with ``bounds`` on logarithmic axes, beside the bounds of the theory."""
    axes.set_title(_LABELS[metric])
    note = result.infeasibility_note() if metric == "regret" else None
    if note:
        axes.text(0.5, 0.5, textwrap.fill(note, 30), transform=axes.transAxes, ha="center", va="center", fontsize=8)
        axes.set_axis_off()
        return
    means = []
    for i, label in enumerate(result.algorithms):
        t, values = result.points, result.curves(label).get(metric)
        if metric == "regret":
            t, values = result.checkpoints, result.regret(label)
        assert values is not None  # every ledger has loss, CCV₁ and CCV₂
        mean, low, high = (np.array(part) for part in interval(values))
        axes.plot(t, mean, **line_style(i))
        axes.fill_between(t, low, high, color=line_style(i)["color"], alpha=0.2, linewidth=0)
        means.append(mean)
        bound = getattr(result.bounds(label), metric, None) if bounds else None
        if bound is not None:
            axes.plot(result.points, bound, **line_style(i), linewidth=0.7, alpha=0.8)
    axes.set_xlabel("round $t$")
    _set_scales(axes, result.rounds, means, signed=metric == "regret", logarithmic=bounds)


def _set_scales(axes: Axes, rounds: int, means: Sequence[Array], *, signed: bool, logarithmic: bool) -> None:
    """Limits and scales of both axes, for these curves; a signed metric may be negative."""
    if logarithmic:
        axes.set_xscale("log")
    axes.set_xlim(1 if logarithmic else 0, max(rounds, 2))
    least, last = min(mean.min() for mean in means), [mean[-1] for mean in means]
    if signed and least <= 0.0:
        axes.set_yscale("symlog", linthresh=1.0)
        axes.axhline(0.0, color="#808080", linewidth=0.6)
    elif max(last) > 0.0 and (logarithmic or (min(last) > 0.0 and max(last) / min(last) > _MAX_LINEAR_RATIO)):
        axes.set_yscale("log", nonpositive="clip")
        positive = np.concatenate([mean[mean > 0.0] for mean in means])
        axes.set_ylim(bottom=positive.min() / 2)  # a band may reach 0, an axis cannot


def _legend(drawn: Figure, result: Result, *, bounds: bool) -> None:
    """Draws the legend below the panels, so that it hides nothing."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=result.title(label), **line_style(i)) for i, label in enumerate(result.algorithms)]
    notes = [f"Lines: mean over {result.trials} trials" if result.trials > 1 else "One trial"]
    if result.trials > 1:
        notes.append("bands: 95% confidence interval of the mean")
    if bounds and any(result.bounds(label) is not None for label in result.algorithms):
        notes.append("thin lines: bounds of the theory")
    width, height = drawn.get_size_inches()
    longest = 0.7 + 0.075 * max(len(result.title(label)) for label in result.algorithms)  # inches, about
    columns = max(1, min(len(handles), int(width / longest)))
    drawn.set_figheight(height + 0.18 * ((len(handles) - 1) // columns))
    legend = drawn.legend(
        handles=handles,
        title=textwrap.fill("; ".join(notes), int(17 * width)),
        title_fontsize=7.5,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
    )
    legend.get_title().set_multialignment("center")

"""The built-in figures: one line and one band per algorithm, distinguished by colour and by line style."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cocopt.arrays import Array, describe
from cocopt.errors import InvalidInput
from cocopt.experiments.figures import COLOURS, DrawFunction, figure
from cocopt.experiments.labels import Label, label_at_the_side
from cocopt.experiments.results import Result, interval
from cocopt.experiments.specs import unknown_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "draw_metric",
    "draw_metrics",
    "draw_names",
    "draw_regret",
    "draw_sweep",
    "draw_trade_off",
    "line_style",
    "metric_alone",
    "metrics_of",
    "pareto_front",
]

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
    "regret_dynamic": r"dynamic $\mathrm{Regret}_t$",
    "regret_piecewise": r"piecewise $\mathrm{Regret}_t$",
    "regret_expectation": r"$\mathrm{Regret}_t$ in expectation",
    "ccv1": r"$\mathrm{CCV}_{t,1} = \Sigma_{s\leq t}\, g_s^+(x_s)$",
    "ccv2": r"$\mathrm{CCV}_{t,2} = \Sigma_{s\leq t}\, g_s^+(x_s)^2$",
}
MAX_NAMES = 6  # of limits in one figure
_MAX_LINEAR_RATIO = 30.0  # curves whose last values differ by a larger factor get a logarithmic axis


@figure("metrics")
def draw_metrics(result: Result, drawn: Figure) -> None:
    """The paper's figure: loss, CCV₁ and CCV₂ against t."""
    _draw_panels(result, drawn, ["loss", "ccv1", "ccv2"], bounds=False)


@figure("regret")
def draw_regret(result: Result, drawn: Figure) -> None:
    """Regret (as far as it was computed), CCV₁ and CCV₂ on logarithmic axes, beside the bounds of the theory."""
    _draw_panels(result, drawn, [*result.regret_metrics, "ccv1", "ccv2"], bounds=True)


def metrics_of(result: Result) -> set[str]:
    """What can be drawn against t."""
    return {name for label in result.algorithms for name in result.curves(label)} | {*result.regret_metrics}


def draw_metric(result: Result, axes: Axes, metric: Any) -> Figure:
    """One metric of all algorithms against t, with a legend, in axes of the user's; returns their figure."""
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    if not isinstance(axes, Axes):
        raise InvalidInput(f"ax: expected the axes of a figure of matplotlib, got {describe(axes)}")
    if not isinstance(metric, str) or metric not in metrics_of(result):
        raise unknown_name("kind: with ax, a metric", metric, metrics_of(result))
    _panel(axes, result, metric, bounds=False)
    axes.legend(handles=_handles(result), frameon=False)
    drawn = axes.figure
    while not isinstance(drawn, Figure):  # a part of a figure
        drawn = drawn.figure
    return drawn


def metric_alone(metric: str) -> DrawFunction:
    """The function that draws a figure of this metric and nothing else."""

    def draw(result: Result, drawn: Figure) -> None:
        draw_metric(result, drawn.subplots(), metric)

    return draw


def _handles(result: Result) -> list[Any]:
    """The entries of a legend."""
    from matplotlib.lines import Line2D

    return [Line2D([], [], label=result.title(label), **line_style(i)) for i, label in enumerate(result.algorithms)]


def _named_metrics(result: Result) -> list[str]:
    """CCV₁ of each name under which rows are reported, up to as many as a figure can show."""
    names = dict.fromkeys(
        metric for label in result.algorithms for metric in result.curves(label) if metric.startswith("ccv1[")
    )
    return list(names)[:MAX_NAMES]


@figure("names", applies=lambda result: bool(_named_metrics(result)))
def draw_names(result: Result, drawn: Figure) -> None:
    """CCV₁ of each limit that has a name, against t."""
    metrics = _named_metrics(result)
    if not metrics:
        raise InvalidInput("names: expected a problem whose constraints have names, as in Stack({'risk': g}), got none")
    _draw_panels(result, drawn, metrics, bounds=False)


def _label(metric: str) -> str:
    """What the axis of a metric is called; a name is the user's, and no formula."""
    if metric in _LABELS:
        return _LABELS[metric]
    name = metric.partition("[")[2].removesuffix("]").replace("$", r"\$")
    return rf"$\mathrm{{CCV}}_{{t,1}}$ of “{name}”"


def _has_sweep(result: Result) -> bool:
    """Whether some option takes several numbers."""
    return bool(_numeric_options(result))


def _numeric_options(result: Result) -> dict[str, dict[str, float]]:
    return {
        option: {label: float(value) for label, value in values.items()}
        for option, values in result.swept.items()
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values.values())
    }


def _final_metrics(result: Result) -> list[str]:
    defined = [metric for metric, name in result.regret_metrics.items() if result.infeasibility_note(name) is None]
    return [*(defined or ["loss"]), "ccv1", "ccv2"]


@figure("sweep", applies=_has_sweep)
def draw_sweep(result: Result, drawn: Figure) -> None:
    """Final metrics against the values of each option that has several, one row of panels per option."""
    swept = _numeric_options(result)
    if not swept:
        raise InvalidInput("sweep: expected an option with several numbers, such as clasp:scale=0.5|1|2, got none")
    metrics = _final_metrics(result)
    drawn.set_size_inches(2.5 * len(metrics), 2.4 * len(swept))
    panels = drawn.subplots(len(swept), len(metrics), squeeze=False)
    for row, (option, values) in zip(panels, swept.items(), strict=True):
        groups = _groups(result, option, values)
        for axes, metric in zip(row, metrics, strict=True):
            for i, (name, labels) in enumerate(groups.items()):
                at = sorted(labels, key=lambda label: values[label])
                mean, low, high = np.transpose([interval(result.finals(label)[metric]) for label in at])
                x = [values[label] for label in at]
                axes.plot(x, mean, marker="o", markersize=3, label=name, **line_style(i))
                axes.fill_between(x, low, high, color=line_style(i)["color"], alpha=0.2, linewidth=0)
            numbers = sorted(set(values.values()))
            if numbers[0] > 0.0 and numbers[-1] / numbers[0] >= 8.0:
                axes.set_xscale("log")
                axes.set_xticks(numbers, [f"{number:g}" for number in numbers])
                axes.set_xticks([], minor=True)
            axes.set_xlabel(option)
            axes.set_title(_label(metric).replace("_t", "_T").replace("{t,", "{T,").replace("leq t", "leq T"))
        if len(groups) > 1:
            row[0].legend(frameon=False, fontsize=7)
    drawn.supxlabel(f"Mean over {result.trials} trials after {result.rounds} rounds; bands: 95% interval", fontsize=7.5)


def _groups(result: Result, option: str, values: dict[str, float]) -> dict[str, list[str]]:
    """The algorithms that have the option, by all that distinguishes them but this option."""
    groups: dict[str, list[str]] = {}
    for label in values:
        name, others = result.title(label).partition(" (")[0], result.options(label)
        shown = ", ".join(f"{key}={value}" for key, value in others.items() if key != option)
        groups.setdefault(f"{name} ({shown})" if shown else name, []).append(label)
    return groups


def pareto_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """The indices of the points that no other point beats in both coordinates, by the first coordinate.

    Examples
    --------
    >>> from cocopt.experiments.plots import pareto_front
    >>> pareto_front([(1.0, 5.0), (2.0, 3.0), (2.5, 4.0), (4.0, 1.0)])
    [0, 1, 3]
    """
    front, least = [], np.inf
    for i in sorted(range(len(points)), key=lambda i: points[i]):
        if points[i][1] < least:
            front.append(i)
            least = points[i][1]
    return front


@figure("trade-off", applies=_has_sweep)
def draw_trade_off(result: Result, drawn: Figure) -> None:
    """Regret (or loss, where it is undefined) against CCV₁ and CCV₂ of all algorithms, with the Pareto front."""
    first, *others = _final_metrics(result)
    others = [metric for metric in others if metric.startswith("ccv")]
    drawn.set_size_inches(4.2 * len(others), max(3.0, 0.19 * len(result.algorithms) + 1.0))
    means = {
        label: {m: interval(result.finals(label)[m]).mean for m in (first, *others)} for label in result.algorithms
    }
    for axes, metric in zip(drawn.subplots(1, len(others)), others, strict=True):
        points = [(own[first], own[metric]) for own in means.values()]
        front = pareto_front(points)
        axes.plot(*np.transpose([points[i] for i in front]), color="#8A8A8A", linewidth=0.8, drawstyle="steps-post")
        for i, point in enumerate(points):
            axes.plot(*point, marker="o", markersize=4, **line_style(i))
        violations = [violation for _, violation in points]
        if min(violations) > 0.0 and max(violations) / min(violations) > _MAX_LINEAR_RATIO:
            axes.set_yscale("log")
        names = [(result.title(label), *points[i], line_style(i)["color"]) for i, label in enumerate(result.algorithms)]
        label_at_the_side(axes, [Label(*name) for name in names])
        axes.set_xlabel(_LABELS[first].replace("_t", "_T").replace("leq t", "leq T"))
        axes.set_ylabel(_label(metric).split(" = ")[0].replace("{t,", "{T,") + "$")
    note = f"Means over {result.trials} trials after {result.rounds} rounds; grey line: Pareto front"
    drawn.supxlabel(note, fontsize=7.5)


def line_style(i: int) -> dict[str, Any]:
    """Colour and dashes of the i-th algorithm."""
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": _DASHES[i % len(_DASHES)]}


def _draw_panels(result: Result, drawn: Figure, metrics: Sequence[str], *, bounds: bool) -> None:
    """One panel per metric, and the legend below them."""
    drawn.set_size_inches(2.5 * len(metrics), 2.9)
    for axes, metric in zip(drawn.subplots(1, len(metrics), squeeze=False)[0], metrics, strict=True):
        _panel(axes, result, metric, bounds=bounds)
    _legend(drawn, result, bounds=bounds)


def _panel(axes: Axes, result: Result, metric: str, *, bounds: bool) -> None:
    """One metric of all algorithms; with ``bounds`` on logarithmic axes, beside the bounds of the theory."""
    from cocopt.experiments.ticks import keep_visible

    axes.set_title(_label(metric))
    comparator = result.regret_metrics.get(metric)
    note = result.infeasibility_note(comparator) if comparator else None
    if note and comparator != "dynamic":  # which only leaves out rounds
        axes.text(0.5, 0.5, textwrap.fill(note, 30), transform=axes.transAxes, ha="center", va="center", fontsize=8)
        axes.set_axis_off()
        return
    means = []
    for i, label in enumerate(result.algorithms):
        t, values = result.points, result.curves(label).get(metric)
        if comparator:
            t, values = result.checkpoints, result.regret(label, comparator)
        if values is None:  # the algorithm met no row of this name
            values = np.zeros((result.trials, t.size))
        mean, low, high = (np.array(part) for part in interval(values))
        axes.plot(t, mean, **line_style(i))
        axes.fill_between(t, low, high, color=line_style(i)["color"], alpha=0.2, linewidth=0)
        means.append(mean)
        bound = _bound(result, label, metric) if bounds else None
        if bound is not None:
            at = result.checkpoints if metric == "regret_dynamic" else result.points
            axes.plot(at, bound, **line_style(i), linewidth=0.7, alpha=0.8)
    axes.set_xlabel("round $t$")
    _set_scales(axes, result.rounds, means, signed=comparator is not None, logarithmic=bounds)
    keep_visible(axes)


def _bound(result: Result, label: str, metric: str) -> Array | None:
    """The bound of the theory on a metric; the mean over trials of one that depends on the comparator's path."""
    if metric == "regret_dynamic":
        dynamic = result.dynamic_bounds(label)
        return None if dynamic is None else dynamic.mean(axis=0)
    bound: Array | None = getattr(result.bounds(label), metric, None)
    return bound


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
    handles = _handles(result)
    notes = [f"Lines: mean over {result.trials} trials" if result.trials > 1 else "One trial"]
    if result.trials > 1:
        notes.append("bands: 95% confidence interval of the mean")
    metrics = [*result.regret_metrics, "ccv1", "ccv2"] if bounds else []
    if any(_bound(result, label, metric) is not None for label in result.algorithms for metric in metrics):
        notes.append("thin lines: bounds of the theory")
    width, height = drawn.get_size_inches()
    longest = 0.7 + 0.065 * max(len(result.title(label)) for label in result.algorithms)  # inches, about
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

"""The figure of the whole field: a panel per metric, every curve labelled at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cocopt.experiments.field import METRICS, Field
from cocopt.experiments.figures import COLOURS
from cocopt.experiments.labels import Label, label_at_the_side
from cocopt.experiments.results import interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_field"]

#: the work per round, by the words of `Facts.oracle`, and the colour of such algorithms
_FAMILIES = {
    "projection onto the constraint": (("{g_t", "all constraints"), COLOURS[0]),
    "hinge prox": (("hinge",), COLOURS[1]),
    "linear minimiser or separation": (("linear", "separat"), COLOURS[2]),
    "projection onto K alone": (("projection",), COLOURS[3]),
}


_LEAST = 1e-7  # of the largest value: smaller ones do not stretch a logarithmic axis


def draw_field(field: Field, drawn: Figure) -> None:
    """Mean regret, CCV₁ and CCV₂ of all algorithms against t, each curve labelled at its end."""
    from matplotlib.lines import Line2D

    result = field.last
    metrics = [metric for metric in METRICS if metric != "regret" or result.feasible is not None]
    drawn.set_size_inches(4.2 * len(metrics), max(3.2, 0.19 * len(result.algorithms) + 1.2))
    for axes, metric in zip(np.atleast_1d(drawn.subplots(1, len(metrics))), metrics, strict=True):
        _panel(axes, field, metric)
    handles = [Line2D([], [], color=colour, label=name) for name, (_, colour) in _FAMILIES.items()]
    drawn.legend(
        handles=handles,
        title=f"{field.name}: means over {result.trials} trials; CLASP is the thick line; colours: work per round",
        title_fontsize=8,
        loc="outside lower center",
        ncols=len(handles),
        frameon=False,
    )


def _panel(axes: Axes, field: Field, metric: str) -> None:
    from cocopt.experiments.ticks import keep_visible

    result = field.last
    signed = metric == "regret"
    axes.set_title(METRICS[metric])
    axes.set_xlabel("round $t$")
    axes.set_xscale("log")
    ends: dict[str, float] = {}
    for label in result.algorithms:
        t = result.checkpoints if signed else result.points
        mean = np.array(interval(result.regret(label) if signed else result.curves(label)[metric]).mean)
        colour = _colour(field, label)
        own = label == "CLASP"
        axes.plot(t, mean, color=colour, linewidth=2.4 if own else 0.9, zorder=3 if own else 2, alpha=0.9)
        ends[label] = float(mean[-1])
    if signed and min(ends.values()) <= 0.0:
        axes.set_yscale("symlog", linthresh=1.0)
    else:
        axes.set_yscale("log", nonpositive="mask")
        largest = max((end for end in ends.values() if np.isfinite(end)), default=1.0)
        axes.set_ylim(bottom=max(axes.get_ylim()[0], _LEAST * largest))  # what is below is zero to rounding
    axes.set_xlim(1, result.rounds)
    keep_visible(axes)
    names = [(label, result.rounds, end, _colour(field, label), label == "CLASP") for label, end in ends.items()]
    label_at_the_side(axes, [Label(*name) for name in names])


def _colour(field: Field, label: str) -> str:
    facts = field.last.learner(label).facts
    oracle = "" if facts is None else facts.oracle
    return next((colour for words, colour in _FAMILIES.values() if _mentions(oracle, words)), COLOURS[-1])


def _mentions(text: str, words: Sequence[str]) -> bool:
    return any(word in text for word in words)

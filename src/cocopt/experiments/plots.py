"""Figures for a paper: one line and one band an algorithm, told apart by colour and by line style."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cocopt.errors import InvalidInput
from cocopt.experiments.results import Result, interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "figure"]

# Okabe and Ito (2008): distinct for every common kind of colour blindness.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1, 1)),
    (0, (6, 1.5, 1, 1.5)),
    (0, (3, 1, 1, 1, 1, 1)),
    (0, (8, 3)),
)
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "legend.fontsize": 8.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E5E5E5",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.5,
    "pdf.fonttype": 42,  # text stays text
    "svg.fonttype": "none",
    "savefig.dpi": 200,
}
_LABELS = {
    "loss": r"cumulative loss $\Sigma_{s\leq t}\, f_s(x_s)$",
    "regret": r"$\mathrm{Regret}_t$",
    "ccv1": r"$\mathrm{CCV}_{t,1} = \Sigma_{s\leq t}\, g_s^+(x_s)$",
    "ccv2": r"$\mathrm{CCV}_{t,2} = \Sigma_{s\leq t}\, g_s^+(x_s)^2$",
}
_WIDE = 30.0  # one axis shows curves whose ends differ by more than this factor only on a logarithmic scale

_UNDATED: dict[str, dict[str, Any]] = {".pdf": {"CreationDate": None}, ".png": {}, ".svg": {"Date": None}}

Kind = Literal["metrics", "regret"]


def draw(result: Result, paths: Sequence[str | os.PathLike[str]], kind: Kind = "metrics") -> None:
    """Draws a figure into files, whose suffixes say the formats; the same result gives the same bytes."""
    from matplotlib import rc_context

    for path in paths:
        if Path(path).suffix.lower() not in _UNDATED:
            raise InvalidInput(f"path: expected a file name that ends in .pdf, .png or .svg, got {Path(path).name!r}")
    with rc_context(_STYLE):
        drawn = figure(result, kind)
        drawn.draw_without_rendering()
        drawn.set_layout_engine("none")  # it is laid out: once for all formats
        for path in paths:
            drawn.savefig(path, metadata=_UNDATED[Path(path).suffix.lower()])


def figure(result: Result, kind: Kind = "metrics") -> Figure:
    """The figure itself: a panel a metric, and the legend below them."""
    from matplotlib.figure import Figure

    if kind not in ("metrics", "regret"):
        raise InvalidInput(f'kind: expected "metrics" or "regret", got {kind!r}')
    first = ["loss"] if kind == "metrics" else ["regret"] if result.feasible is not None else []
    panels = [*first, "ccv1", "ccv2"]
    drawn = Figure(figsize=(2.5 * len(panels), 2.9), layout="constrained")
    for axes, metric in zip(drawn.subplots(1, len(panels)), panels, strict=True):
        _panel(axes, result, metric, bounds=kind == "regret")
    _legend(drawn, result, bounds=kind == "regret")
    return drawn


def _evaluate_round(i: int) -> dict[str, Any]:
    return {"color": _COLOURS[i % len(_COLOURS)], "linestyle": _DASHES[i % len(_DASHES)]}


def _panel(axes: Axes, result: Result, metric: str, *, bounds: bool) -> None:
    """One metric of all algorithms; with ``bounds`` on logarithmic axes, beside what theory promised."""
    axes.set_title(_LABELS[metric])
    verdict = result.verdict() if metric == "regret" else None
    if verdict:
        axes.text(0.5, 0.5, textwrap.fill(verdict, 30), transform=axes.transAxes, ha="center", va="center", fontsize=8)
        axes.set_axis_off()
        return
    means = []
    for i, label in enumerate(result.algorithms):
        t, values = result.points, result.curves(label).get(metric)
        if metric == "regret":
            t, values = result.checkpoints, result.regret(label)
        assert values is not None  # every ledger has loss, CCV₁ and CCV₂
        mean, low, high = (np.array(part) for part in interval(values))
        axes.plot(t, mean, **_evaluate_round(i))
        axes.fill_between(t, low, high, color=_evaluate_round(i)["color"], alpha=0.2, linewidth=0)
        means.append(mean)
        promised = result.bounds(label) if bounds else None
        if promised is not None:
            axes.plot(result.points, getattr(promised, metric), **_evaluate_round(i), linewidth=0.7, alpha=0.8)
    axes.set_xlabel("round $t$")
    if bounds:
        axes.set_xscale("log")
    axes.set_xlim(1 if bounds else 0, max(result.rounds, 2))
    least, ends = min(mean.min() for mean in means), [mean[-1] for mean in means]
    if metric == "regret" and least <= 0.0:
        axes.set_yscale("symlog", linthresh=1.0)
        axes.axhline(0.0, color="#808080", linewidth=0.6)
    elif max(ends) > 0.0 and (bounds or (min(ends) > 0.0 and max(ends) / min(ends) > _WIDE)):
        axes.set_yscale("log", nonpositive="clip")
        positive = np.concatenate([mean[mean > 0.0] for mean in means])
        axes.set_ylim(bottom=positive.min() / 2)  # a band may reach 0, an axis cannot


def _legend(drawn: Figure, result: Result, *, bounds: bool) -> None:
    """Below the panels, so that it hides nothing."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], label=result.title(label), **_evaluate_round(i)) for i, label in enumerate(result.algorithms)
    ]
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

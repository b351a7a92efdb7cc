"""The table as a heat map: colour is the ratio to the best peer, on a logarithmic scale around 1."""

from __future__ import annotations

import io
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import cells as table
import matplotlib as mpl
import numpy as np
import targets
from cells import Cell
from measure import Result
from PIL import Image

mpl.use("agg")
from matplotlib import pyplot as plt

COLOURS, DECADES = "PuOr", 2  # purple: cocopt is faster; orange: the peer is; safe for all kinds of colour blindness
UNMEASURED = "#e8e8e8"

Grid = dict[tuple[Hashable, Hashable], tuple[str, Result]]  # (line, column) → name and figures of a cell


class Panel:
    """One matrix of the heat map."""

    def __init__(self, title: str, lines: list[Hashable], columns: list[Hashable], label: str) -> None:
        self.title, self.lines, self.columns, self.label = title, lines, columns, label
        self.column_names = [str(column) for column in columns]
        self.grid: Grid = {}

    def paint(self, axes: Any, entries: list[dict[str, Any]]) -> Any:
        values = np.full((len(self.lines), len(self.columns)), np.nan)
        for i, at in enumerate(self.lines):
            for j, column in enumerate(self.columns):
                if (at, column) in self.grid:
                    name, result = self.grid[at, column]
                    values[i, j] = _annotate(axes, j, i, name, result, entries)
        colours = mpl.colormaps[COLOURS].with_extremes(bad=UNMEASURED)
        image = axes.imshow(values, cmap=colours, vmin=-DECADES, vmax=DECADES, aspect="auto")
        axes.set_title(self.title, fontsize=9)
        axes.set_xticks(range(len(self.columns)), self.column_names, fontsize=7)
        axes.set_yticks(range(len(self.lines)), [_text(at) for at in self.lines], fontsize=7)
        axes.set_xlabel(self.label, fontsize=7)
        axes.tick_params(length=0)
        axes.set_xticks(np.arange(len(self.columns) + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(len(self.lines) + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=1)
        axes.tick_params(which="minor", length=0)
        return image


def _text(part: Hashable) -> str:
    return " ".join(str(piece) for piece in part) if isinstance(part, tuple) else str(part)


def _annotate(axes: Any, x: float, y: float, name: str, result: Result, entries: list[dict[str, Any]]) -> float:
    """Write the ratio into its place, frame it if it misses its target; returns its logarithm."""
    ratio = result.get("ratio")
    if ratio is None:
        axes.text(x, y, "–", ha="center", va="center", fontsize=6, color="#555555")
        return float("nan")
    value = float(np.log10(ratio))
    slow = not result["met"]
    found = targets.reason(name, entries) if slow else None
    note = f"$^{{{found[0]}}}$" if found is not None else ""
    colour = "white" if abs(value) > 0.65 * DECADES else "black"
    weight = "bold" if slow else "normal"
    axes.text(x, y, number(ratio) + note, ha="center", va="center", fontsize=6, color=colour, fontweight=weight)
    if slow:
        axes.add_patch(plt.Rectangle((x - 0.48, y - 0.44), 0.96, 0.88, fill=False, edgecolor="black", linewidth=1.1))
    return value


def number(ratio: float) -> str:
    """Two digits, without an exponent."""
    if ratio >= 10:
        return f"{ratio:,.0f}".replace(",", " ")
    return f"{ratio:.1f}" if ratio >= 1 else f"{ratio:.2g}"


def panels(bench: dict[str, Any]) -> list[Panel]:
    """The affine cells by batch, then the others; lines and columns are those of the whole table."""
    every = list(table.all_cells())
    lines: list[Hashable] = [(name, f"n={n}") for name in table.AFFINE_SETS for n in table.DIMENSIONS]
    columns: list[Hashable] = [*table.ROWS, *(f"{rows}c" for rows in table.CROWDED_ROWS)]
    rows_label = "rows (c: nearly all of them bind)"
    affine = {
        b: Panel(f"affine rows, batch of {b}" if b > 1 else "affine rows, one point", lines, columns, rows_label)
        for b in table.BATCHES
    }
    others = [cell for cell in every if cell.group in ("curved", "hinge prox", "conic")]
    kinds: list[Hashable] = list(dict.fromkeys(_kind(cell) for cell in others))
    sizes: list[Hashable] = [(b, n) for b in table.BATCHES for n in table.LARGE]
    curved = Panel("other constraints, beside Clarabel", kinds, sizes, "n")
    middle = table.LARGE[len(table.LARGE) // 2]
    names = {(b, middle): "one point" if b == 1 else f"batch of {b}" for b in table.BATCHES}
    curved.column_names = [f"{size[1]}\n{names.get(size, '')}" for size in sizes if isinstance(size, tuple)]
    rare = [cell for cell in every if cell.group in ("large", "sparse", "black box", "stream")]
    single = Panel("single cells", [_single(cell) for cell in rare], ["ratio"], "")
    for cell in every:
        result = bench["cells"].get(cell.id)
        if result is None:
            continue
        entry = (cell.id, result)
        if cell.group in ("affine", "crowded"):
            column = cell.rows if cell.group == "affine" else f"{cell.rows}c"
            affine[cell.batch].grid[(cell.set, f"n={cell.n}"), column] = entry
        elif cell in rare:
            single.grid[_single(cell), "ratio"] = entry
        else:
            curved.grid[_kind(cell), (cell.batch, cell.n)] = entry
    return [*affine.values(), curved, single]


def _kind(cell: Cell) -> str:
    prefix = "prox: " if cell.group == "hinge prox" else ""
    return f"{prefix}{cell.set} ∩ {cell.constraint}"


def _single(cell: Cell) -> str:
    if cell.group == "stream":
        return f"{cell.constraint}, {'one stream' if cell.batch == 1 else f'batch of {cell.batch}'}"
    if cell.group == "sparse":
        return f"box ∩ {cell.rows} sparse rows, n={cell.n}"
    return f"{cell.set} ∩ {cell.constraint}, n={cell.n}"


def draw(bench: dict[str, Any], path: Path) -> None:
    """Write the heat map as PNG."""
    left_one, left_two, middle, single = panels(bench)
    entries = targets.reasons()
    figure = plt.figure(figsize=(15, 11), layout="constrained")
    grid = figure.add_gridspec(2, 3, width_ratios=[0.85, 0.85, 1.3], height_ratios=[2.3, 1])
    figure_axes = [grid[:, 0], grid[:, 1], grid[0, 2], grid[1, 2]]
    image = None
    for place, panel in zip(figure_axes, (left_one, left_two, middle, single), strict=True):
        image = panel.paint(figure.add_subplot(place), entries)
    bar = figure.colorbar(image, ax=figure.axes, location="bottom", shrink=0.4, aspect=50, extend="both", pad=0.01)
    bar.set_ticks(range(-DECADES, DECADES + 1), labels=[f"{10.0**k:g}" for k in range(-DECADES, DECADES + 1)])
    bar.set_label(
        "time of the best peer / time of cocopt. Bold and framed: misses its target (a small number refers to the "
        "reason). Grey: not measured; –: no figure.",
        fontsize=8,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn, temporary = io.BytesIO(), path.with_name(f"{path.stem}.tmp.png")
    figure.savefig(drawn, dpi=105)
    plt.close(figure)
    with Image.open(drawn) as picture:  # a palette of 128 colours takes a third of the space
        picture.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(temporary, optimize=True)
    temporary.replace(path)

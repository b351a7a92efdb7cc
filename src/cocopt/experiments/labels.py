"""Names beside the axes of a figure, joined to their points by thin lines: for more curves than a legend can hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cocopt.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Label", "label_at_the_side", "spaced"]


class Label(NamedTuple):
    """A name, the point that it belongs to, and how it is written."""

    text: str
    x: float
    y: float
    colour: str
    bold: bool = False


def label_at_the_side(axes: Axes, labels: Sequence[Label]) -> None:
    """Writes each name right of the axes at the height of its point, moved where names would overlap.

    The scales and limits of the axes must be final. Names of points that are no numbers are left out.
    """
    low, high = axes.get_ylim()
    transform = axes.transScale.transform
    bottom, top = (transform((1.0, y))[1] for y in (low, high))
    known = [label._replace(y=min(max(label.y, low), high)) for label in labels if np.isfinite(label.y)]
    heights = np.array([(transform((1.0, label.y))[1] - bottom) / (top - bottom) for label in known])
    places = spaced(heights, 1.0 / max(len(known) - 1, 12))
    for label, place in zip(known, places, strict=True):
        axes.annotate(
            label.text,
            xy=(label.x, label.y),
            xytext=(1.07, place),
            textcoords="axes fraction",
            fontsize=7,
            fontweight="bold" if label.bold else "normal",
            color=label.colour,
            va="center",
            annotation_clip=False,
            arrowprops={
                **{"arrowstyle": "-", "color": label.colour, "linewidth": 0.4},
                **{"shrinkA": 0, "shrinkB": 0, "relpos": (0.0, 0.5)},
            },
        )


def spaced(heights: Array, gap: float) -> Array:
    """Heights between 0 and 1, moved as little as a simple rule allows so that neighbours are ``gap`` apart.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt.experiments.labels import spaced
    >>> spaced(np.array([0.5, 0.52, 0.0]), 0.1)
    array([0.5, 0.6, 0. ])
    """
    order = np.argsort(heights, kind="stable")
    placed = np.clip(heights[order], 0.0, 1.0)
    for i in range(1, len(placed)):
        placed[i] = max(placed[i], placed[i - 1] + gap)
    for i in range(len(placed) - 1, -1, -1):
        ceiling = 1.0 if i == len(placed) - 1 else placed[i + 1] - gap
        placed[i] = min(placed[i], ceiling)
    result = np.empty(len(placed))
    result[order] = placed
    return result

"""Ticks of logarithmic axes, without those beyond the limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import LogLocator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["VisibleLogLocator", "keep_visible"]


class VisibleLogLocator(LogLocator):
    """A `LogLocator` without the ticks beyond the limits, which it returns for a decade on each side."""

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """The ticks between the limits; matplotlib would make, place and name the others before it leaves them out."""
        ticks = np.asarray(super().tick_values(vmin, vmax))
        low, high = min(vmin, vmax), max(vmin, vmax)
        return ticks[(ticks >= low * (1.0 - 1e-9)) & (ticks <= high * (1.0 + 1e-9))]


def keep_visible(axes: Axes) -> None:
    """Gives logarithmic axes their usual ticks, but for those that are not drawn; their limits may change later."""
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_locator(VisibleLogLocator())
            axis.set_minor_locator(VisibleLogLocator(subs="auto"))
    if axes.get_yscale() != "linear":  # a linear axis may have its power of ten above it, where the title evades it
        axes.set_title(axes.get_title(), y=1.0)

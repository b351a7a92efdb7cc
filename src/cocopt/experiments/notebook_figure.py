"""A figure that a notebook shows, whether or not pyplot is in use."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

__all__ = ["NotebookFigure"]

#: dots per inch: four for three pixels of a usual screen
_DPI = 128


class NotebookFigure(Figure):
    """A figure that is the value of a notebook's cell; pyplot does not know it, so it is shown once and then freed."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """The picture, and its size on the screen in pixels."""
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=_DPI)
        width, height = (round(96 * inches) for inches in self.get_size_inches())
        return buffer.getvalue(), {"width": width, "height": height}

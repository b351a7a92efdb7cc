"""How objects look in a notebook: a heading and a small table, in the notebook's own colours.

Everything that comes from outside is escaped. Nothing has a colour of its own, so that a dark notebook stays readable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from cocopt.arrays import Array

__all__ = ["bar", "card", "markup", "note", "paragraph", "shorten", "sparkline", "table"]

#: entries of an array that are shown before and after the dots
_SHOWN = 3
#: entries of an array that is shown as a whole
_SHORT = 2 * _SHOWN + 1
#: characters of any other value
_LONGEST = 120

_CARD = (
    "display:inline-block;border:1px solid;border-color:color-mix(in srgb, currentColor 25%, transparent);"
    "border-radius:6px;padding:.5em .8em;margin:.2em 0;font-size:.95em;max-width:100%;overflow-x:auto"
)
_CELL = "padding:.1em .8em .1em 0;text-align:{side};vertical-align:top;white-space:nowrap;background:none"
_PALE = "opacity:.7"
_TABLE = "border:none;margin:.3em 0 0 0;color:inherit;font-size:inherit"  # where a page lets tables begin anew


class markup(str):
    """Text that is HTML already, and is not escaped again."""

    __slots__ = ()


def shorten(value: Any) -> str:
    """A value in a few words: six digits of numbers, the ends of long arrays, the shape of large ones.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt.html import shorten
    >>> shorten(1 / 3), shorten(np.arange(9.0)), shorten(np.ones((3, 2)))
    ('0.333333', '[0, 1, 2, …, 6, 7, 8]', '3 × 2 entries from 1 to 1')
    """
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | float | np.integer | np.floating):
        return str(value) if isinstance(value, int | np.integer) else f"{value:.6g}"
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return _shorten_array(value)
    if isinstance(value, list | tuple):
        return _between_brackets(value)
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _between_brackets(values: Any) -> str:
    """The values, or the first and the last of them."""
    if len(values) <= _SHORT:
        return f"[{', '.join(map(shorten, values))}]"
    return f"[{', '.join([*map(shorten, values[:_SHOWN]), '…', *map(shorten, values[-_SHOWN:])])}]"


def _shorten_array(array: Array) -> str:
    if array.ndim == 0:
        return f"{array.item():.6g}"
    shape = " × ".join(map(str, array.shape))
    if array.size > _SHORT and bool((array == array.flat[0]).all()):
        return f"{array.flat[0]:.6g} in all {shape} entries"
    if array.ndim > 1:
        ends = "" if array.size == 0 else f" from {array.min():.4g} to {array.max():.4g}"
        return f"{shape} entries{ends}"
    return _between_brackets(array)


def note(kind: str, dim: int | None, batch: tuple[int, ...], *others: str) -> str:
    """What kind of thing it is, of what dimension, and for how many trials."""
    parts = [kind if dim is None else f"{kind} in dimension {dim}", *others]
    return ", ".join([*parts, f"trials of shape {batch}"] if batch else parts)


def card(title: str, about: str, items: Mapping[str, Any], *, more: Iterable[str] = ()) -> str:
    """A heading, a pale note beside it, and names with their values; ``more`` is HTML that follows.

    Examples
    --------
    >>> from cocopt.html import card
    >>> "<b>Box</b>" in card("Box", "a set", {"dimension": 2}), "&lt;i&gt;" in card("<i>", "", {})
    (True, True)
    """
    beside = f' <span style="{_PALE}">{_text(about)}</span>' if about else ""
    rows = "".join(
        f'<tr style="background:none"><td style="{_CELL.format(side="left")};{_PALE}">{_text(name)}</td>'
        f'<td style="{_CELL.format(side="left")}">{_text(value)}</td></tr>'
        for name, value in items.items()
    )
    body = f'<table style="{_TABLE}">{rows}</table>' if rows else ""
    return f'<div style="{_CARD}"><b>{_text(title)}</b>{beside}{body}{"".join(more)}</div>'


def table(header: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """A table with a heading, unless that is empty: the first column is text, the others are numbers."""

    def line(cells: Sequence[Any], tag: str) -> str:
        shown = (
            f'<{tag} style="{_CELL.format(side="right" if i else "left")}">{_text(cell)}</{tag}>'
            for i, cell in enumerate(cells)
        )
        return f'<tr style="background:none">{"".join(shown)}</tr>'

    head = line(header, "th") if any(header) else ""
    body = "".join(line(row, "td") for row in rows)
    return f'<table style="{_TABLE}">{head}{body}</table>'


def paragraph(text: str) -> markup:
    """A line of text below a table."""
    return markup(f'<div style="{_PALE};max-width:60em">{escape(text)}</div>')


def bar(done: int, every: int) -> markup:
    """How much is done, as a bar of the notebook's own kind.

    Examples
    --------
    >>> from cocopt.html import bar
    >>> bar(3, 10)
    '<progress value="3" max="10" style="width:12em"></progress>'
    """
    return markup(f'<progress value="{int(done)}" max="{int(every)}" style="width:12em"></progress>')


def sparkline(values: Sequence[float] | Array, title: str = "") -> markup:
    """A curve of the size of a word; empty if there are no two numbers to join.

    Examples
    --------
    >>> from cocopt.html import sparkline
    >>> sparkline([0.0, 1.0]).count("<polyline"), sparkline([1.0])
    (1, '')
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.size < 2 or not np.isfinite(numbers).all():
        return markup("")
    low, high = float(min(numbers.min(), 0.0)), float(numbers.max())
    x = np.linspace(1.0, 89.0, numbers.size)
    y = 17.0 - 16.0 * (numbers - low) / ((high - low) or 1.0)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return markup(
        '<svg width="90" height="18" viewBox="0 0 90 18" role="img">'
        f"<title>{escape(title)}</title>"
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.3"/></svg>'
    )


def _text(value: Any) -> str:
    return str(value) if isinstance(value, markup) else escape(shorten(value))

"""Colour and marker of every algorithm: the same in all charts of a page, and different for up to 40 algorithms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from cocopt.experiments.figures import COLOURS
from cocopt.experiments.report.folder import Experiment
from cocopt.experiments.report.html import Html, element

__all__ = ["DARK_COLOURS", "SYMBOLS", "Appearance", "appearances", "swatch"]

#: the colours of the figures, lighter where the page is dark; black becomes white
DARK_COLOURS = ("#4BA3E3", "#F58A4B", "#2FC79A", "#E8A3CC", "#F5B93A", "#A6D8F7", "#F4F4F4", "#A3A3A3")

#: Plotly's symbols; with 8 colours they give 40 combinations
SYMBOLS = (
    *("circle", "square", "diamond", "triangle-up", "x"),
    *("star", "triangle-down", "cross", "pentagon", "hexagram"),
)


class Appearance(NamedTuple):
    """How an algorithm is drawn."""

    label: str
    title: str
    light: str
    dark: str
    symbol: str


def appearances(experiments: Sequence[Experiment]) -> dict[str, Appearance]:
    """The appearances of all algorithms of a page, by label."""
    titles = {label: own.title(label) for own in experiments for label in own.algorithms}
    shared = {title for title in titles.values() if list(titles.values()).count(title) > 1}
    return {
        label: Appearance(
            label,
            label if title in shared else title,  # titles may coincide, labels cannot
            COLOURS[i % len(COLOURS)],
            DARK_COLOURS[i % len(DARK_COLOURS)],
            SYMBOLS[i % len(SYMBOLS)],
        )
        for i, (label, title) in enumerate(titles.items())
    }


def swatch(own: Appearance) -> Html:
    """A short line with the marker, which takes the colours of the page's theme."""
    colours = f"--light:{own.light};--dark:{own.dark}"
    line = element("path", d="M1 7H31", fill="none", stroke_width="2.2")
    marker = element("path", d=_path(own.symbol), stroke="none")
    return element("svg", line, marker, class_="swatch", style=colours, viewBox="0 0 32 14", aria_hidden="true")


def _path(symbol: str) -> str:
    """The outline of a symbol around (16, 7)."""
    if symbol == "circle":
        return "M11 7a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z"
    if symbol in ("cross", "x"):
        plus = [
            (-5, -2),
            (-2, -2),
            (-2, -5),
            (2, -5),
            (2, -2),
            (5, -2),
            (5, 2),
            (2, 2),
            (2, 5),
            (-2, 5),
            (-2, 2),
            (-5, 2),
        ]
        turn = math.pi / 4 if symbol == "x" else 0.0
        corners = [(x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn)) for x, y in plus]
    else:
        count, radii, start = {
            "square": (4, (6.0,), math.pi / 4),
            "diamond": (4, (6.2,), 0.0),
            "triangle-up": (3, (6.2,), -math.pi / 2),
            "triangle-down": (3, (6.2,), math.pi / 2),
            "pentagon": (5, (5.8,), -math.pi / 2),
            "star": (10, (6.6, 2.8), -math.pi / 2),
            "hexagram": (12, (6.4, 3.7), -math.pi / 2),
        }[symbol]
        angles = [start + 2.0 * math.pi * k / count for k in range(count)]
        corners = [
            (radii[k % len(radii)] * math.cos(a), radii[k % len(radii)] * math.sin(a)) for k, a in enumerate(angles)
        ]
    return "M" + "L".join(f"{16 + x:.1f} {7 + y:.1f}" for x, y in corners) + "Z"

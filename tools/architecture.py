"""Draw docs/architecture.svg: the layers, from the contracts in pyproject.toml, and how the data of a round pass them.

python tools/architecture.py
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "architecture.svg"
STUDIES, ROUNDS, RESULTS, MATHEMATICS, TOOLS = "#dbe9f6", "#fde3c8", "#e6e0f2", "#d5eddb", "#ececec"
INK, SOFT, DOWN, UP = "#1a1a1a", "#4a4a4a", "#b04a00", "#1f5fa8"
LEFT, WIDTH, HEIGHT, GAP, TOP, TOTAL = 56, 450, 44, 6, 92, 1000
DOWN_X, UP_X = 560, 768


class Layer(NamedTuple):
    """What is written about a layer beside the names of its modules."""

    text: str
    colour: str
    down: str = ""  # what passes down to it in a round
    up: str = ""  # what it gives back


#: by a module of the layer
TEXTS = {
    "cli": Layer(
        "parses, calls, prints; adapters for scikit-learn and River", STUDIES, "a command, a request", "answers, tables"
    ),
    "stream": Layer("lines of JSON in and out", STUDIES),
    "pool": Layer("many learners by key, in a database", STUDIES),
    "experiments": Layer("plan, execute, collect: many trials; tables, figures", STUDIES),
    "problems": Layer(
        "where rounds come from; the best action in hindsight", STUDIES, "loss f_t, constraint g_t", "regret"
    ),
    "algorithms": Layer(
        "ask and tell, one file per algorithm; contract checks",
        ROUNDS,
        "gradient step: target y",
        "action x_{t+1}, record",
    ),
    "metrics": Layer(
        "what it cost, what is proved, how it is stored", RESULTS, "losses, violations", "ledger, certificate"
    ),
    "geometry": Layer(
        "P_{K ∩ {g ≤ 0}}(y) by one ladder of methods", MATHEMATICS, "K, g_t, y", "checked point, multipliers"
    ),
    "losses": Layer(
        "K, f_t, g_t, η_t: objects that do not change", MATHEMATICS, "points", "values, gradients, rows, cones"
    ),
    "solvers": Layer("DAQP, Clarabel, HiGHS; Newton's method", TOOLS, "scaled programs", "candidates"),
    "kernels": Layer(
        "compiled loops over trials; the conic form; sparse rows", TOOLS, "float64 arrays", "points, status per trial"
    ),
    "sparse": Layer("sparse products; BLAS on one thread; objects in notebooks", TOOLS),
    "arrays": Layer("arguments become arrays, or errors that name them", TOOLS),
    "registry": Layer("classes declare themselves", TOOLS),
    "errors": Layer("everything raised on purpose", TOOLS),
    "tolerances": Layer("the promised accuracies, once", TOOLS),
}


def layers() -> list[tuple[list[str], Layer]]:
    """The modules of every layer, from the top, and what is written about it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]
    found = []
    for line in contract["layers"]:
        modules = [name for name in re.findall(r"\w+", line) if name != "__main__"]
        known = [TEXTS[name] for name in modules if name in TEXTS]
        if len(known) != 1:
            raise SystemExit(f"tools/architecture.py: expected a text for one module of the layer {line!r} in TEXTS")
        found.append((modules, known[0]))
    return found


def _text(x: float, y: float, text: str, *, size: float = 12.5, fill: str = SOFT, extra: str = "") -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{fill}"{extra}>{escape(text)}</text>'


def _arrow(x: float, start: float, end: float, colour: str) -> str:
    tip = f"M{x} {end} l-6 {-11 if end > start else 11} h12 z"
    line = f'<line x1="{x}" y1="{start}" x2="{x}" y2="{end}" stroke="{colour}" stroke-width="2"/>'
    return f'{line}<path d="{tip}" fill="{colour}"/>'


def picture() -> str:
    """The whole picture. It has its own background, and so is read in light and in dark pages alike."""
    rows = layers()
    bottom = TOP + len(rows) * (HEIGHT + GAP)
    middle = (TOP + bottom) / 2
    passed = [TOP + i * (HEIGHT + GAP) for i, (_, layer) in enumerate(rows) if layer.down]
    mono = ' font-weight="600" font-family="ui-monospace, monospace"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {TOTAL} {bottom + 40}" '
        'font-family="system-ui, sans-serif" role="img" '
        'aria-label="The layers of cocopt, from the command line down to tolerances; a module uses only modules below '
        'it. Losses, constraints and targets pass down, points, records and certificates come back up.">',
        f'<rect width="{TOTAL}" height="{bottom + 40}" rx="10" fill="#ffffff"/>',
        _text(LEFT, 34, "The layers of cocopt", size=20, fill=INK, extra=' font-weight="600"'),
        _text(LEFT, 56, "a module uses only modules below it (make lint checks it)", size=13.5),
        _text(DOWN_X - 14, 34, "The data of a round", size=20, fill=INK, extra=' font-weight="600"'),
        _text(DOWN_X - 14, 74, "passes down", size=13.5, fill=DOWN, extra=' font-weight="600"'),
        _text(UP_X - 14, 74, "comes back", size=13.5, fill=UP, extra=' font-weight="600"'),
        _arrow(32, TOP, bottom - GAP, SOFT),
        _text(24, middle, "uses", extra=f' text-anchor="middle" transform="rotate(-90 24 {middle})"'),
        _arrow(DOWN_X, passed[0], passed[-1] + HEIGHT, DOWN),
        _arrow(UP_X, passed[-1] + HEIGHT, passed[0], UP),
    ]
    for i, (modules, layer) in enumerate(rows):
        y = TOP + i * (HEIGHT + GAP)
        parts.append(
            f'<rect x="{LEFT}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="{layer.colour}" '
            'stroke="#8a8a8a" stroke-width="0.8"/>'
        )
        parts.append(_text(LEFT + 14, y + 18, " · ".join(modules), size=14, fill=INK, extra=mono))
        parts.append(_text(LEFT + 14, y + 36, layer.text))
        for x, text, colour in ((DOWN_X, layer.down, DOWN), (UP_X, layer.up, UP)):
            if text:
                parts.append(f'<circle cx="{x}" cy="{y + HEIGHT / 2}" r="4" fill="{colour}"/>')
                parts.append(_text(x + 12, y + HEIGHT / 2 + 4.5, text, size=13, fill=INK))
    parts.append(
        _text(
            LEFT,
            bottom + 20,
            "orange: what a user calls every round · green: the mathematics · violet: what a run leaves · "
            "blue: studies and services · grey: tools",
        )
    )
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()

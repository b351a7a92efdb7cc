"""Figures of a result: a register of functions that draw one, and the files that they become.

A figure is one function of a `Result` and an empty matplotlib figure, into which it draws. Once it is registered,
`cocopt.run` (with ``out``), `cocopt reproduce` and `Result.save` write it as PDF and PNG beside the built-in ones,
which are registered in the same way, and `Result.plot` draws it by its name:

    import cocopt
    from cocopt.experiments import figure

    @figure("final-loss")
    def final_loss(result, drawn):
        axes = drawn.subplots()
        axes.boxplot([result.finals(label)["loss"] for label in result.algorithms], tick_labels=result.algorithms)
        axes.set_ylabel("cumulative loss after the last round")

    cocopt.run("olr", ["clasp", "recoo"], out="results/olr")        # writes results/olr/olr-final-loss.pdf and .png

On the command line a file needs no registration: ``cocopt run olr --out results --figure path/to/file.py:final_loss``.
"""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from cocopt import problems
from cocopt.arrays import describe
from cocopt.errors import CocoptError, InvalidInput
from cocopt.experiments.chunks import open_folder
from cocopt.experiments.compute import describe_error
from cocopt.experiments.specs import parse, unknown_name

if TYPE_CHECKING:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from cocopt.experiments.results import Result

__all__ = ["COLOURS", "FIGURES", "DrawFunction", "add_from_file", "draw", "figure", "render", "save", "write_all"]

DrawFunction: TypeAlias = "Callable[[Result, Figure], None]"
Subject = TypeVar("Subject")

#: the registered figures by name, in the order in which they are drawn
FIGURES: dict[str, DrawFunction] = {}
_APPLIES: dict[str, Callable[[Result], bool]] = {}

#: the figure whose files bear the problem's name alone
_MAIN = "metrics"

#: Okabe and Ito (2008), distinct for every common kind of colour blindness; grey for their yellow, pale on white
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A8A8A")
_STYLE: dict[Any, Any] = {
    "figure.figsize": (4.5, 3.2),
    "axes.prop_cycle": f"cycler(color={list(COLOURS)})",
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
#: what text needs before it is laid out, and a PDF does not: to cut these tables takes most of the time of a font
_LAYOUT_TABLES = ("GDEF", "GPOS", "GSUB", "kern")
#: the parser of formulas that all PNG files share: each is then parsed once, and not once per file
_PARSERS: dict[type[Any], Any] = {}
#: the formats, and the metadata without which the same figure would not give the same bytes
_METADATA: dict[str, dict[str, Any]] = {".pdf": {"CreationDate": None}, ".png": {}, ".svg": {"Date": None}}


def figure(name: str, applies: Callable[[Result], bool] | None = None) -> Callable[[DrawFunction], DrawFunction]:
    """Registers a function that draws a figure of a result; to be used as a decorator.

    Parameters
    ----------
    name : str
        Letters, digits, "-", "_" and "."; the files are ``<problem>-<name>.pdf`` and ``.png``.
    applies : function of a result, optional
        Whether the figure belongs to the result's files; by default it always does.

    Examples
    --------
    >>> from cocopt.experiments import figure, figures
    >>> @figure("final-loss")
    ... def final_loss(result, drawn):
    ...     axes = drawn.subplots()
    ...     axes.boxplot([result.finals(label)["loss"] for label in result.algorithms], tick_labels=result.algorithms)
    >>> del figures.FIGURES["final-loss"]
    """
    if not (isinstance(name, str) and re.fullmatch(r"[\w.-]+", name)):
        raise InvalidInput(f'figure: expected a name of letters, digits, "-", "_" and ".", got {describe(name)}')

    def register(function: DrawFunction) -> DrawFunction:
        if not callable(function):
            raise InvalidInput(f"figure {name}: expected a function of (result, figure), got {describe(function)}")
        present = FIGURES.get(name)
        # the same definition again is a file that is loaded twice, or a cell of a notebook
        if present is not None and _origin(present) != _origin(function):
            raise InvalidInput(f"figure: expected a name that is not in use, got {name!r} of {_origin(present)} again")
        FIGURES[name] = function
        if applies is not None:
            _APPLIES[name] = applies
        return function

    return register


def _origin(function: DrawFunction) -> str:
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', repr(function))}"


def add_from_file(spec: str) -> None:
    """Registers the function of ``path/to/file.py:function`` under its own name, unless the file has registered it."""
    (parsed, *others) = parse(spec)
    if not parsed.in_file or parsed.options or others:
        raise InvalidInput(f"figure: expected path/to/file.py:function, got {spec!r}")
    function = problems.from_file(parsed.target)
    if not callable(function):
        raise InvalidInput(f"{spec}: expected a function of (result, figure), got {describe(function)}")
    if function not in FIGURES.values():
        figure(parsed.target.rpartition(":")[2])(function)


def draw(result: Result, which: str | DrawFunction = _MAIN) -> Figure:
    """The figure of that name, or the one that a function draws."""
    if isinstance(which, str) and which not in FIGURES:
        raise unknown_name("figure", which, FIGURES)
    if not isinstance(which, str) and not callable(which):
        raise InvalidInput(f"figure: expected a name or a function of (result, figure), got {describe(which)}")
    function = FIGURES[which] if isinstance(which, str) else which
    return render(function, result, which if isinstance(which, str) else _origin(which))


def render(function: Callable[[Subject, Figure], None], subject: Subject, name: str) -> Figure:
    """A figure in the common style, into which the function draws; an error names the figure."""
    from matplotlib import rc_context

    from cocopt.experiments.notebook_figure import NotebookFigure

    with rc_context(_STYLE):
        drawn = NotebookFigure(layout="constrained")
        try:
            function(subject, drawn)
        except CocoptError:
            raise
        except Exception as error:
            raise InvalidInput(f"figure {name}: expected a function that draws, got {describe_error(error)}") from error
    return drawn


def save(drawn: Figure, paths: Sequence[str | os.PathLike[str]]) -> None:
    """Writes a figure into files, whose suffixes say the formats; the same figure gives the same bytes."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    for path in paths:
        if not isinstance(path, str | os.PathLike):
            raise InvalidInput(f"path: expected a file name, got {describe(path)}")
        if Path(path).suffix.lower() not in _METADATA:
            raise InvalidInput(f"path: expected a file name that ends in .pdf, .png or .svg, got {Path(path).name!r}")
    with rc_context(_STYLE), _without_collector():
        layout, dpi, canvas = drawn.get_layout_engine(), drawn.dpi, drawn.canvas
        try:
            agg = FigureCanvasAgg(drawn)
            drawn.dpi = _STYLE["savefig.dpi"]
            renderer: Any = agg.get_renderer()  # type: ignore[no-untyped-call]
            renderer.mathtext_parser = _PARSERS.setdefault(type(renderer), renderer.mathtext_parser)
            if layout is not None and drawn.axes:
                layout.execute(drawn)  # found once for all formats; what it measures of texts the PNG uses again
            drawn.set_layout_engine("none")
            for path in paths:
                _write(drawn, agg, Path(path))
        finally:
            drawn.dpi = dpi
            drawn.set_canvas(canvas)
            drawn.set_layout_engine(layout)


@contextmanager
def _without_layout_tables() -> Iterator[None]:
    """Fonts in a PDF lose the tables of text layout: matplotlib itself has placed every glyph."""
    from fontTools.subset import Options

    dropped = Options._drop_tables_default  # matplotlib, which chooses the options, has no setting for it
    Options._drop_tables_default = [*dropped, *_LAYOUT_TABLES]
    try:
        yield
    finally:
        Options._drop_tables_default = dropped


@contextmanager
def _without_collector() -> Iterator[None]:
    """Stops the collector of cyclic garbage, which would look at the objects of a figure again and again."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _write(drawn: Figure, agg: FigureCanvasAgg, path: Path) -> None:
    """Writes one file by its backend's own method: `savefig` would draw everything twice."""
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    suffix = path.suffix.lower()
    metadata = _METADATA[suffix]
    try:
        if suffix == ".png":
            drawn.dpi = _STYLE["savefig.dpi"]  # (the others set their own)
            drawn.set_canvas(agg)
            agg.print_png(path, metadata=metadata)  # type: ignore[no-untyped-call]
        elif suffix == ".pdf":
            with _without_layout_tables():
                FigureCanvasPdf(drawn).print_pdf(path, metadata=metadata)  # type: ignore[no-untyped-call]
        else:
            FigureCanvasSVG(drawn).print_svg(path, metadata=metadata)  # type: ignore[no-untyped-call]
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        raise InvalidInput(f"path: expected a file that can be written, got {path}: {error.strerror}") from error


def write_all(result: Result, folder: str | os.PathLike[str]) -> None:
    """Writes every registered figure of a result into a folder, as PDF and as PNG."""
    out = open_folder(folder)
    problem = re.sub(r"[^\w.-]+", "-", result.name)
    for name in [own for own in FIGURES if own not in _APPLIES or _APPLIES[own](result)]:
        stem = problem if name == _MAIN else f"{problem}-{name}"
        save(draw(result, name), [out / f"{stem}.png", out / f"{stem}.pdf"])

"""The command line: it parses, calls, prints."""

from __future__ import annotations

import errno
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_Trials = Annotated[int, typer.Option(help="Independent trials; trial k sees the same data in every run of a seed.")]
_Rounds = Annotated[int | None, typer.Option(help="Rounds a trial; without it the problem's own number.")]
_Seed = Annotated[int, typer.Option(help="The seed of all data.")]
_Jobs = Annotated[int | None, typer.Option(help="Processes; without it one a core. The numbers do not depend on it.")]
_Engine = Annotated[str, typer.Option(help="local, or dask for a Dask cluster (needs cocopt\\[dask]).")]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no tables, only errors.")]


def _version(wanted: bool) -> None:
    if wanted:
        from cocopt import __version__

        typer.echo(f"cocopt {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Constrained online convex optimization: experiments with true regret, confidence intervals and bounds."""


@app.command()
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help="olr, olr-long, svm; without names all three.")] = None,
    trials: _Trials = 100,
    rounds: _Rounds = None,
    seed: _Seed = 0,
    jobs: _Jobs = None,
    engine: _Engine = "local",
    out: Annotated[str, typer.Option(help="The folder for tables and figures.")] = "results",
    quiet: _Quiet = False,
) -> None:
    """Run the paper's experiments; leaves tables and figures in a folder. Interrupted, the same command goes on."""
    with _told(out):
        from cocopt.experiments.paper import reproduce as results

        began = time.monotonic()
        settings: dict[str, Any] = {"trials": trials, "rounds": rounds, "seed": seed, "jobs": jobs, "engine": engine}
        for result in results(names or [], out, progress=not quiet, **settings):
            _say(quiet, f"{result.summary()}\n")
        _say(quiet, f"Tables and figures are in {out}. Wall time: {time.monotonic() - began:.1f} s.")


@app.command()
def run(
    problem: Annotated[
        str, typer.Argument(help="A name, with options such as olr:loss=squared, or path/to/file.py:Name.")
    ],
    algorithms: Annotated[
        list[str],
        typer.Option(
            "--algorithm",
            "-a",
            help="A name, with options such as clasp:beta=0.7,rows=worst, a sweep such as 'clasp:scale=0.5|1|2', "
            "or path/to/file.py:Name; may be given several times.",
        ),
    ] = ["clasp"],  # noqa: B006 - typer copies it
    trials: _Trials = 100,
    rounds: _Rounds = None,
    seed: _Seed = 0,
    jobs: _Jobs = None,
    engine: _Engine = "local",
    out: Annotated[
        str | None, typer.Option(help="A folder for tables and figures, and for what a later run needs.")
    ] = None,
    regret: Annotated[bool, typer.Option(help="Look for the best fixed action in hindsight.")] = True,
    quiet: _Quiet = False,
) -> None:
    """Run algorithms on a problem, built in or your own. With --out an interrupted run goes on by the same command."""
    with _told(out):
        import cocopt

        settings: dict[str, Any] = {"regret": regret, "engine": engine}
        result = cocopt.run(problem, algorithms, trials, rounds, seed, jobs, out, not quiet, **settings)
        _say(quiet, result.summary())
        if out is not None:
            _say(quiet, f"Tables and figures are in {out}.")


@app.command("list")
def list_() -> None:
    """List all registered algorithms (what they need and promise), problems, sets, losses, constraints and steps."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from cocopt import registry
    from cocopt.experiments.algorithms import needs, options

    def doc(cls: type) -> str:
        line = (cls.__doc__ or " ").strip().partition("\n")[0].rstrip(".:")
        return re.sub(r"\[`([^`]*)`\]\[[^\]]*\]", r"\1", line)  # cross-references by their text

    console = Console()

    def show(title: str, header: list[str], rows: list[list[str]]) -> None:
        table = Table(title=title, title_justify="left")
        for name in header:
            table.add_column(name, overflow="fold")
        for row in rows:
            table.add_row(*map(escape, row))
        console.print(table)

    rows = []
    for name, cls in registry.classes("algorithm").items():
        needed = needs(cls)
        chosen = [option for option in options(cls) if option not in needed]
        rows.append([name, ", ".join(needed) or "nothing", ", ".join(chosen), cls.promise])
    show("Algorithms", ["algorithm", "needs", "options", "promises"], rows)
    rows = []
    for name, cls in registry.classes("problem").items():
        problem = cls()
        chosen = [f"{key}={value}" for key, value in problem.options.items()]
        rows.append([name, str(problem.rounds), ", ".join(chosen), doc(cls)])
    show("Problems", ["problem", "rounds", "options", "what it is"], rows)
    for kind, title in _KINDS.items():
        show(title, [kind, "what it is"], [[name, doc(cls)] for name, cls in registry.classes(kind).items()])


_KINDS = {"set": "Sets", "loss": "Losses", "constraint": "Constraints", "schedule": "Steps"}


@app.command()
def bench(
    trials: Annotated[int, typer.Option(help="Trials in the batch.")] = 100,
    rounds: Annotated[int, typer.Option(help="Rounds a trial.")] = 200,
) -> None:
    """Time CLASP on the paper's regression, side by side with what one would write instead."""
    with _told(None):
        from cocopt.arrays import positive_int
        from cocopt.experiments.bench import compare

        table = compare(positive_int("trials", trials), positive_int("rounds", rounds))
        typer.echo(f"CLASP on olr, n = 10, 4 rows, {trials} trials of {rounds} rounds, metrics included")
        for name, microseconds in table:
            typer.echo(f"{name:<34} {microseconds:8.2f} µs a round  {microseconds / table[0].microseconds:6.1f}×")


@app.command("compile")
def compile_() -> None:
    """Compile all kernels now, which else happens at their first use; the results are kept."""
    with _told(None):
        from cocopt.kernels import compile_all

        began = time.monotonic()
        for module, seconds in compile_all():
            typer.echo(f"{module:<12} {seconds:5.1f} s")
        typer.echo(f"All kernels are compiled. Wall time: {time.monotonic() - began:.1f} s.")


def _say(quiet: bool, text: str) -> None:
    if not quiet:
        typer.echo(text)


@contextmanager
def _told(out: str | None) -> Iterator[None]:
    """Errors that are the user's to mend as one line, not as a traceback."""
    from cocopt.errors import CocoptError, InvalidInput

    kept = f"; what was finished is kept in {out}, the same command goes on" if out else ""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"cocopt: interrupted{kept}", err=True)
        raise typer.Exit(130) from None
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        typer.echo(f"cocopt: cannot write: {error.strerror}{kept}", err=True)
        raise typer.Exit(1) from error
    except (CocoptError, ImportError) as error:
        typer.echo(f"cocopt: {error}", err=True)
        raise typer.Exit(2 if isinstance(error, InvalidInput) else 1) from error

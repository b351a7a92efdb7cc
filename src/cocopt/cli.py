"""The command line: parses arguments, calls the library, prints results."""

from __future__ import annotations

import errno
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

_Trials = Annotated[
    int, typer.Option(help="Number of independent trials. Trial k of a seed has the same data in every run.")
]
_Rounds = Annotated[int | None, typer.Option(help="Rounds per trial. Default: the problem's own number.")]
_Seed = Annotated[int, typer.Option(help="Seed of the random data.")]
_Jobs = Annotated[
    int | None, typer.Option(help="Number of processes. Default: one per core. Does not change the results.")
]
_Engine = Annotated[
    str,
    typer.Option(help="local: processes of this machine; dask: a Dask cluster (needs cocopt\\[dask])."),
]
_Scheduler = Annotated[
    str | None,
    typer.Option(
        help="With --engine dask: the scheduler's address, such as tcp://host:8786, or the file that it wrote."
    ),
]
_Figures = Annotated[
    list[str] | None,
    typer.Option(
        "--figure",
        help="One more figure: path/to/file.py:function, where function(result, figure) draws into a matplotlib "
        "figure. May be given several times.",
    ),
]
_Silent = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only: no progress, no tables.")]


def _version(wanted: bool) -> None:
    if wanted:
        from cocopt import __version__

        typer.echo(f"cocopt {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Constrained online convex optimization: experiments with true regret, confidence intervals and bounds."""


# Commands exceed the guide of 8 parameters: typer makes each parameter an option.
@app.command()
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help="Experiments: olr, olr-long, svm, drone. Default: all.")
    ] = None,
    trials: _Trials = 100,
    rounds: _Rounds = None,
    seed: _Seed = 0,
    jobs: _Jobs = None,
    engine: _Engine = "local",
    scheduler: _Scheduler = None,
    out: Annotated[str, typer.Option(help="Folder for tables, figures and finished chunks.")] = "results",
    figures: _Figures = None,
    silent: _Silent = False,
) -> None:
    """Run the paper's experiments and write tables and figures. After an interruption, the same command continues."""
    with report_errors(out):
        from cocopt.experiments.paper import reproduce as results

        _add_figures(figures, out)
        began = time.monotonic()
        settings: dict[str, Any] = {"trials": trials, "rounds": rounds, "seed": seed, "jobs": jobs}
        settings |= {"engine": engine, "scheduler": scheduler, "progress": not silent}
        for result in results(names or [], out, **settings):
            _echo(silent, f"{result.summary()}\n")
        _echo(silent, f"{_written_to(out)} Wall time: {time.monotonic() - began:.1f} s.")


# Exceeds the guide of 8 parameters for the same reason.
@app.command()
def run(
    problem: Annotated[
        str, typer.Argument(help="A problem: its name, with options such as olr:loss=squared, or path/to/file.py:Name.")
    ],
    algorithms: Annotated[
        list[str],
        typer.Option(
            "--algorithm",
            "-a",
            help="An algorithm: its name, with options such as clasp:beta=0.7,rows=worst, a sweep such as "
            "'clasp:scale=0.5|1|2', or path/to/file.py:Name. May be given several times.",
        ),
    ] = ["clasp"],  # noqa: B006 - typer copies it
    trials: _Trials = 100,
    rounds: _Rounds = None,
    seed: _Seed = 0,
    jobs: _Jobs = None,
    engine: _Engine = "local",
    scheduler: _Scheduler = None,
    out: Annotated[
        str | None, typer.Option(help="Folder for tables, figures and finished chunks. Default: none are written.")
    ] = None,
    regret: Annotated[bool, typer.Option(help="Compute the regret against a comparator in hindsight.")] = True,
    comparators: Annotated[
        list[str] | None,
        typer.Option(
            "--comparator",
            help="Against what: static (the best fixed action; the default), dynamic (the best action of every round), "
            "piecewise:blocks=4 or piecewise:breakpoints=25+50,switches=1, expectation. May be given several times.",
        ),
    ] = None,
    figures: _Figures = None,
    silent: _Silent = False,
) -> None:
    """Run algorithms on a problem. With --out, the same command continues an interrupted run."""
    with report_errors(out):
        import cocopt

        _add_figures(figures, out)
        settings: dict[str, Any] = {"regret": regret, "comparators": comparators}
        settings |= {"engine": engine, "scheduler": scheduler}
        result = cocopt.run(problem, algorithms, trials, rounds, seed, jobs, out, not silent, **settings)
        _echo(silent, result.summary())
        if out is not None:
            _echo(silent, _written_to(out))


@app.command()
def field(
    names: Annotated[
        list[str] | None, typer.Argument(help="Problems: olr, tracking, drone, svm, static. Default: all.")
    ] = None,
    trials: _Trials = 100,
    seed: _Seed = 0,
    jobs: _Jobs = None,
    engine: _Engine = "local",
    scheduler: _Scheduler = None,
    out: Annotated[str, typer.Option(help="Folder for tables, figures and finished chunks.")] = "results/field",
    silent: _Silent = False,
) -> None:
    """Compare all algorithms: final metrics, and measured growth with the horizon beside the promised one."""
    with report_errors(out):
        from rich.console import Console

        from cocopt.experiments.field import METRICS, run_field

        began, console = time.monotonic(), Console()
        settings: dict[str, Any] = {"jobs": jobs, "engine": engine, "scheduler": scheduler, "progress": not silent}
        for found in run_field(names or [], trials=trials, seed=seed, out=out, **settings):
            if not silent:
                for metric in METRICS:
                    console.print(found.table(metric).rich())
                for name, reason in found.skipped.items():
                    console.print(f"Not run on {found.name}: {name} ({reason})", markup=False)
        _echo(silent, f"{_written_to(out)} Wall time: {time.monotonic() - began:.1f} s.")


@app.command()
def report(
    folder: Annotated[
        str,
        typer.Argument(
            help="A folder that run, reproduce or field has written (needs cocopt\\[report]).", metavar="DIR"
        ),
    ],
    silent: _Silent = False,
) -> None:
    """Make report.html of a folder of results: one interactive page that needs no network."""
    with report_errors(None):
        from cocopt.experiments.report import write_report

        _echo(silent, str(write_report(folder)))


@app.command()
def show(
    problem: Annotated[
        str, typer.Option(help="A problem in the plane: its name, such as drone, or path/to/file.py:Name.")
    ] = "turning",
    algorithms: Annotated[
        list[str],
        typer.Option("--algorithm", "-a", help="An algorithm, as for run. May be given up to three times."),
    ] = ["clasp", "adagrad"],  # noqa: B006 - typer copies it
    rounds: Annotated[int | None, typer.Option(help="Rounds. Default: 22, or the problem's own number.")] = None,
    seed: _Seed = 0,
    out: Annotated[str, typer.Option(help="The file: .gif, .webp, or .png and .apng for animated PNG.")] = "show.gif",
    seconds: Annotated[float, typer.Option(help="The length of the animation, about.")] = 11.0,
) -> None:
    """Draw an animation: the constraint that is revealed, the gradient step, the projection, the violations."""
    with report_errors(None):
        from cocopt.experiments.show import show as write

        typer.echo(f"The animation is in {write(problem, algorithms, rounds, seed, out, seconds=seconds)}.")


# Exceeds the guide of 8 parameters for the same reason.
@app.command()
def verdicts(
    trials: _Trials = 100,
    seeds: Annotated[int, typer.Option(help="How many seeds; a verdict is settled if all of them give it.")] = 5,
    rounds: Annotated[
        int | None, typer.Option(help="Rounds of every problem. Default: the problem's own number.")
    ] = None,
    jobs: _Jobs = None,
    engine: _Engine = "local",
    scheduler: _Scheduler = None,
    out: Annotated[str, typer.Option(help="The page to write, in Markdown.")] = "docs/reproduction.md",
    folder: Annotated[str, typer.Option(help="Folder for finished chunks.")] = "results/verdicts",
    silent: _Silent = False,
) -> None:
    """Check the paper's claims one by one, and write a page of verdicts. The same command continues."""
    with report_errors(folder):
        from cocopt.experiments.verdicts import write_verdicts

        began = time.monotonic()
        settings: dict[str, Any] = {"jobs": jobs, "engine": engine, "scheduler": scheduler, "progress": not silent}
        found = write_verdicts(out, trials=trials, seeds=seeds, rounds=rounds, folder=folder, **settings)
        for judged in (*found.claims, *found.costs):
            _echo(silent, f"{judged.name}: {judged.summary}")
        _echo(silent, f"The page is {out}. Wall time: {time.monotonic() - began:.1f} s.")


@app.command("list")
def list_(
    kind: Annotated[
        str | None,
        typer.Argument(help="algorithms, problems, sets, losses, constraints or steps. Default: all of them."),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print tables in Markdown.")] = False,
) -> None:
    """List all registered algorithms (rates, needs, provenance), problems, sets, losses, constraints and steps."""
    with report_errors(None):
        from rich.console import Console

        from cocopt.experiments.listing import tables

        console = Console()
        for table in tables(kind):
            console.print(table.rich()) if not markdown else typer.echo(table.markdown())


@app.command()
def bench(
    trials: Annotated[int, typer.Option(help="Number of trials in the batch.")] = 100,
    rounds: Annotated[int, typer.Option(help="Rounds per trial.")] = 200,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small table, within a minute: CLASP, and projections beside solvers.")
    ] = False,
) -> None:
    """Measure the speed of CLASP on the paper's regression, beside a loop around a QP solver."""
    with report_errors(None):
        from cocopt.arrays import positive_int
        from cocopt.experiments.bench import compare
        from cocopt.experiments.bench import quick as quick_table

        if quick:
            typer.echo(f"{'n = 10, times in µs':<32} {'cocopt':>9} {'peer':>9} {'ratio':>8}")
            for row in quick_table(positive_int("trials", trials), positive_int("rounds", rounds)):
                times = f"{row.microseconds:9.3g} {row.peer_microseconds:9.3g} {row.ratio:8.3g}"
                typer.echo(f"{row.what:<32} {times}  {row.peer}")
            return
        table = compare(positive_int("trials", trials), positive_int("rounds", rounds))
        typer.echo(f"CLASP on olr, n = 10, 4 rows, {trials} trials of {rounds} rounds, metrics included")
        for name, microseconds in table:
            typer.echo(f"{name:<34} {microseconds:8.2f} µs per round  {microseconds / table[0].microseconds:6.1f}×")


@app.command("compile")
def compile_() -> None:
    """Compile all kernels now instead of at their first use; the results are cached."""
    with report_errors(None):
        from cocopt.kernels import compile_all

        began = time.monotonic()
        typer.echo("Compiling all kernels, one process per core; that takes a minute or two.", err=True)
        for module, seconds in compile_all():
            typer.echo(f"{module:<18} {seconds:5.1f} s")
        typer.echo(f"All kernels are compiled. Wall time: {time.monotonic() - began:.1f} s.")


# Exceeds the guide of 8 parameters for the same reason.
@app.command()
def stream(
    state: Annotated[
        str | None, typer.Option(help="Where the learners are kept: a file, or postgresql://user@host/database.")
    ] = None,
    config: Annotated[
        str | None, typer.Option(help="A TOML file that describes the learners in a table called learner.")
    ] = None,
    learner: Annotated[
        str | None,
        typer.Option(
            help='The same on the command line, such as \'algorithm = "clasp", set = {type = "Simplex", dim = 3}\'.'
        ),
    ] = None,
    longest_line: Annotated[int, typer.Option(help="The largest number of bytes of a line.")] = 1 << 20,
    memory: Annotated[int, typer.Option(help="Bytes of learners that stay in memory, roughly.")] = 1 << 28,
    validate: Annotated[
        bool, typer.Option("--validate", help="Check all lines against the JSON Schema, too (needs cocopt\\[stream]).")
    ] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of all lines and exit.")] = False,
) -> None:
    """Answer lines of JSON: what to play, and what rounds have revealed. What is answered is stored."""
    with report_errors(None):
        if schema:
            import json

            from cocopt.stream import schema as described

            typer.echo(json.dumps(described(), indent=2))
            return
        from cocopt.arrays import positive_int
        from cocopt.errors import InvalidInput
        from cocopt.pool import Pool
        from cocopt.stream import learner_maker, serve

        if state is None:
            raise InvalidInput("state: expected --state, a file or postgresql://..., got none")
        make = learner_maker(_learner_table(config, learner))
        with Pool(state, make, memory=memory) as pool:
            try:
                serve(pool, 0, 1, longest_line=positive_int("longest_line", longest_line), validate=validate)
            except BrokenPipeError as error:
                typer.echo("cocopt: nobody reads the answers any more; what was answered is stored", err=True)
                raise typer.Exit(1) from error


def _learner_table(config: str | None, learner: str | None) -> Any:
    """The description of learners, from a TOML file or from the command line."""
    import tomllib
    from pathlib import Path

    from cocopt.errors import InvalidInput, MissingFile

    if (config is None) == (learner is None):
        raise InvalidInput("config: expected either --config or --learner, got both or neither")
    try:
        text = f"learner = {{{learner}}}" if config is None else Path(config).read_text(encoding="utf-8")
        return tomllib.loads(text).get("learner")
    except FileNotFoundError:
        raise MissingFile(errno.ENOENT, "no such file", config) from None
    except (ValueError, OSError) as error:
        raise InvalidInput(f"{config or 'learner'}: expected TOML, got something else ({error})") from None


def _add_figures(specs: list[str] | None, out: str | None) -> None:
    from cocopt.errors import InvalidInput
    from cocopt.experiments.figures import add_from_file

    if specs and out is None:
        raise InvalidInput("figure: expected --out, the folder to write it to, got none")
    for spec in specs or []:
        add_from_file(spec)


def _written_to(out: str) -> str:
    """What a folder has now; if the report is missing, what it needs."""
    from cocopt.experiments.report import INSTALL, available

    return (
        f"Tables, figures and report.html are in {out}."
        if available()
        else f"{INSTALL}\nTables and figures are in {out}."
    )


def _echo(silent: bool, text: str) -> None:
    if not silent:
        typer.echo(text)


@contextmanager
def report_errors(out: str | None) -> Iterator[None]:
    """Prints errors that the user can fix as one line instead of a traceback, and sets the exit status.

    The status is 2 for wrong arguments, 130 for an interruption, and 1 for everything else.
    """
    from cocopt.errors import CocoptError, EngineFailed, InvalidInput, MissingFile

    kept = f"; finished chunks are kept in {out}, the same command continues" if out else ""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"cocopt: interrupted{kept}", err=True)
        raise typer.Exit(130) from None
    except MissingFile as error:
        typer.echo(f"cocopt: {error.strerror}: {error.filename}", err=True)
        raise typer.Exit(2) from error
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        typer.echo(f"cocopt: cannot write: {error.strerror}{kept}", err=True)
        raise typer.Exit(1) from error
    except EngineFailed as error:
        typer.echo(f"cocopt: {error}{kept}", err=True)
        raise typer.Exit(1) from error
    except (CocoptError, ImportError) as error:
        typer.echo(f"cocopt: {error}", err=True)
        raise typer.Exit(2 if isinstance(error, InvalidInput) else 1) from error

"""The whole field: every algorithm on every problem that it can solve, with measured and promised growth.

For each problem all algorithms that apply run over several horizons, and those that need the horizon are given each of
them. The growth exponent of a metric is the slope of log(mean) against log(T), by least squares.
"""

from __future__ import annotations

import csv
import inspect
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cocopt import registry
from cocopt.algorithms.facts import Rate
from cocopt.errors import InvalidInput
from cocopt.experiments import figures, report
from cocopt.experiments.algorithms import resolve
from cocopt.experiments.chunks import open_folder
from cocopt.experiments.growth import Growth
from cocopt.experiments.listing import Listing
from cocopt.experiments.notes import write_notes
from cocopt.experiments.results import Interval, Result, interval, write_atomically, write_tables
from cocopt.experiments.runner import run
from cocopt.experiments.specs import Spec, unknown_name
from cocopt.problems import Problem, get

__all__ = ["HORIZONS", "METRICS", "Field", "Growth", "applicable", "run_field", "write_field"]

#: each problem of the comparison, and its horizons
HORIZONS: dict[str, tuple[int, ...]] = {
    "olr": (250, 500, 1000, 2000),
    "tracking": (500, 1000, 2000, 4000),
    "drone": (125, 250, 500, 1000),
    "svm": (812, 1624, 3248, 6496),
    "static": (500, 1000, 2000, 4000),
}
METRICS = {"regret": "Regret", "ccv1": "CCV₁", "ccv2": "CCV₂"}

#: why an algorithm that could be built cannot run
_IMPOSSIBLE = {("svm", "switch"): "no action satisfies all constraints"}
_CHUNK = 50  # trials at once: with the usual 100, one chunk per core of a small machine


class Field(NamedTuple):
    """All algorithms on one problem, at several horizons."""

    name: str  #: the problem
    results: dict[int, Result]  #: by horizon
    skipped: dict[str, str]  #: the algorithms that did not run, and why
    promised: dict[str, dict[str, Rate | None]]  #: by algorithm and metric

    @property
    def last(self) -> Result:
        """The result at the largest horizon."""
        return self.results[max(self.results)]

    def final(self, algorithm: str, metric: str, horizon: int | None = None) -> Interval:
        """The mean of a metric after the last round, and its interval; NaN where it is undefined."""
        result = self.last if horizon is None else self.results[horizon]
        values = result.finals(algorithm).get(metric)
        return Interval(np.nan, np.nan, np.nan) if values is None else interval(values)

    def growth(self, algorithm: str, metric: str) -> Growth:
        """How the mean of a metric grows with the horizon."""
        return Growth.fit(list(self.results), [self.final(algorithm, metric, T).mean for T in self.results])

    def table(self, metric: str) -> Listing:
        """All algorithms, the smallest mean of the metric first, with measured and promised growth."""
        finals = {label: self.final(label, metric) for label in self.last.algorithms}
        order = sorted(finals, key=lambda label: (np.isnan(finals[label].mean), finals[label].mean))
        rows = []
        for label in order:
            mean, low, high = finals[label]
            value = "undefined" if np.isnan(mean) else f"{mean:.4g}"
            half = "" if np.isnan(low) else f"{(high - low) / 2:.2g}"
            promised = self.promised[label].get(metric)
            growth = self.growth(label, metric).text
            rows.append([label, value, half, growth, "none" if promised is None else str(promised)])
        title = f"{self.name}: {METRICS[metric]} after {max(self.results)} rounds, {self.last.trials} trials"
        return Listing(title, ["algorithm", "mean", "±", "growth exponent", "promised"], rows)


def applicable(problem: Problem, rounds: int) -> tuple[dict[str, str], dict[str, str]]:
    """The algorithms of the package for a problem, as title → description; and those that do not apply, with reasons.

    Where the losses are strongly convex, algorithms take their form for that; algorithms whose constraint must not
    change take their form for changing ones, where they have one and the problem needs it.
    """
    chosen, skipped = {}, {}
    for name, cls in registry.classes("algorithm").items():
        if not cls.__module__.startswith("cocopt."):
            continue
        others = {} if problem.static else cls.dynamic_options
        title = (cls.title or cls.__name__) + (f" ({', '.join(others)})" if others else "")
        spec = Spec(name, {**_regime(cls, problem), **others})
        if (problem.name, name) in _IMPOSSIBLE:
            skipped[title] = _IMPOSSIBLE[problem.name, name]
            continue
        if cls.facts.constraints == "static" and not problem.static and not others:
            skipped[title] = "it is for constraints that do not change"
            continue
        try:
            (algorithm,) = resolve(str(spec))
            algorithm.build(problem, rounds, problem.start(0, np.arange(1)))
        except InvalidInput as error:
            skipped[title] = str(error).partition(": the problem")[0]
            continue
        chosen[title] = str(spec)
    return chosen, skipped


def _regime(cls: type[Any], problem: Problem) -> dict[str, Any]:
    """The options by which an algorithm uses strong convexity, if the losses have it."""
    if not problem.strong_convexity > 0.0:
        return {}
    asked = inspect.signature(cls).parameters
    if "strong_convexity" in asked:
        return {"strong_convexity": "problem"}
    return {"steps": "strongly-convex"} if "steps" in asked else {}


def run_field(
    names: Sequence[str] = (),
    *,
    trials: int = 100,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> Iterator[Field]:
    """Compares the whole field on these problems (all of HORIZONS if there are none), one after the other.

    Parameters
    ----------
    names : sequence of str
    trials, seed : int
    out : path, optional
        A folder for finished chunks, tables and figures.
    **settings
        As for `cocopt.run`.

    Yields
    ------
    Field
        After each problem.
    """
    for name in names:
        if name not in HORIZONS:
            raise unknown_name("problem", name, HORIZONS)
    finished: list[Field] = []
    for name in dict.fromkeys(names) or HORIZONS:
        problem, horizons = get(name), HORIZONS[name]
        chosen, skipped = applicable(problem, max(horizons))
        settings = {"chunk": _CHUNK, **settings, "regret": problem.feasible is not False}
        results = {T: run(name, chosen, trials, T, seed, out=out, tables=False, **settings) for T in horizons}
        promised = {label: _promised(results[max(horizons)], label) for label in chosen}
        finished.append(Field(name, results, skipped, promised))
        if out is not None:
            write_field(finished, out)
        yield finished[-1]
    if out is not None and report.available():
        report.write_report(out)


def _promised(result: Result, label: str) -> dict[str, Rate | None]:
    rates = result.learner(label).rates
    return {} if rates is None else rates._asdict()


def write_field(fields: Sequence[Field], folder: str | os.PathLike[str]) -> None:
    """Writes ``field.csv``, ``field.md`` (a table per metric, sorted by it) and the last problem's figure.

    The tables and notes of the report are those of the largest horizons.
    """
    from cocopt.experiments.field_plots import draw_field

    out = open_folder(folder)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["problem", "algorithm", "metric", "rounds", "trials", "mean", "ci_low", "ci_high", *_GROWTH])
    for field in fields:
        for label in field.last.algorithms:
            for metric in METRICS:
                growth, promised = field.growth(label, metric), field.promised[label].get(metric)
                known = [growth.text, "" if promised is None else str(promised)]
                for T, result in field.results.items():
                    numbers = ["" if np.isnan(number) else number for number in field.final(label, metric, T)]
                    writer.writerow([field.name, label, metric, T, result.trials, *numbers, *known])
    write_atomically(out / "field.csv", buffer.getvalue())
    write_atomically(out / "field.md", "\n".join(map(_markdown, fields)))
    write_tables([field.last for field in fields], out)
    write_notes([field.last for field in fields], out, {field.name: _notes(field, fields) for field in fields})
    stem = Path(out, f"{fields[-1].name}-field")
    figures.save(figures.render(draw_field, fields[-1], "field"), [f"{stem}.pdf", f"{stem}.png"])


def _notes(field: Field, fields: Sequence[Field]) -> dict[str, Any]:
    """What the report says of the field beside its tables."""
    names = [] if [own.name for own in fields] == list(HORIZONS) else [own.name for own in fields]
    config = field.last.config
    return {
        "skipped": field.skipped,
        "growth_over": f"horizons T = {', '.join(map(str, field.results))}, each a run of its own",
        "growth": {
            label: {metric: field.growth(label, metric).text for metric in METRICS} for label in field.last.algorithms
        },
        "rerun": " ".join(["cocopt field", *names, f"--trials {config['trials']} --seed {config['seed']} --out DIR"]),
    }


_GROWTH = ("growth_exponent", "promised")


def _markdown(field: Field) -> str:
    tables = [field.table(metric).markdown() for metric in METRICS]
    skipped = "\n".join(f"- {name}: {reason}" for name, reason in field.skipped.items())
    return "\n".join([*tables, f"Not run on {field.name}:\n\n{skipped}\n" if skipped else ""])

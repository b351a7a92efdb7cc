"""The experiments of the paper: three of the first version, and the drone of the published one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cocopt.experiments import figures, report
from cocopt.experiments.notes import write_notes
from cocopt.experiments.results import Result, write_tables
from cocopt.experiments.runner import run
from cocopt.experiments.specs import unknown_name

__all__ = ["EXPERIMENTS", "reproduce"]

#: each problem and its algorithms; Switch needs a point that satisfies all constraints, which svm does not have.
#: In drone, G = 8, and RECOO and Switch take the largest row alone, as in the authors' code; CLASP has both steps, and
#: both choices of rows.
EXPERIMENTS = {
    "olr": ("clasp", "recoo", "adagrad", "switch"),
    "olr-long": ("clasp", "recoo", "adagrad", "switch"),
    "svm": ("clasp", "recoo", "adagrad"),
    "drone": (
        "clasp",
        "clasp:rows=worst",
        "clasp:steps=strongly-convex",
        "clasp:steps=strongly-convex,rows=worst",
        "clasp-f",
        "recoo:rows=worst",
        "adagrad:lipschitz=8",
        "switch:lipschitz=8,rows=worst",
    ),
}


def reproduce(names: Sequence[str], out: str | os.PathLike[str], **settings: Any) -> Iterator[Result]:
    """Runs the experiments of these names (all if there are none); one folder holds the tables of all of them.

    Parameters
    ----------
    names : sequence of str
    out : path
    **settings
        As for `cocopt.run`.

    Yields
    ------
    Result
        After each experiment, once its tables and figures are written; the report follows the last one.
    """
    for name in names:
        if name not in EXPERIMENTS:
            raise unknown_name("experiment", name, EXPERIMENTS)
    results: list[Result] = []
    for name in dict.fromkeys(names) or EXPERIMENTS:
        results.append(run(name, EXPERIMENTS[name], out=out, tables=False, **settings))
        write_tables(results, out)
        command = _command([result.name for result in results], settings)
        write_notes(results, out, {result.name: {"rerun": command} for result in results})
        figures.write_all(results[-1], out)
        yield results[-1]
    if report.available():
        report.write_report(out)


def _command(names: Sequence[str], settings: Mapping[str, Any]) -> str:
    """What to type for the same experiments."""
    chosen = {key: settings[key] for key in ("trials", "rounds", "seed") if settings.get(key) is not None}
    words = [] if list(names) == list(EXPERIMENTS) else list(names)
    return " ".join(["cocopt reproduce", *words, *(f"--{key} {value}" for key, value in chosen.items()), "--out DIR"])

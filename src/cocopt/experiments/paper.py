"""The experiments of the paper: three of the first version, and the drone of the published one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from cocopt.experiments import figures
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
        After each experiment, once its tables and figures are written.
    """
    for name in names:
        if name not in EXPERIMENTS:
            raise unknown_name("experiment", name, EXPERIMENTS)
    results: list[Result] = []
    for name in dict.fromkeys(names) or EXPERIMENTS:
        results.append(run(name, EXPERIMENTS[name], out=out, tables=False, **settings))
        write_tables(results, out)
        figures.write_all(results[-1], out)
        yield results[-1]

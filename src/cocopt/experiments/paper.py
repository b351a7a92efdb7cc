"""The three experiments of the paper."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from cocopt.experiments import figures
from cocopt.experiments.results import Result, write_tables
from cocopt.experiments.runner import run
from cocopt.experiments.specs import unknown_name

__all__ = ["EXPERIMENTS", "reproduce"]

#: each problem and its algorithms; Switch needs a point that satisfies all constraints, which svm does not have
EXPERIMENTS = {
    "olr": ("clasp", "recoo", "adagrad", "switch"),
    "olr-long": ("clasp", "recoo", "adagrad", "switch"),
    "svm": ("clasp", "recoo", "adagrad"),
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

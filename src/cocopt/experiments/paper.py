"""The three experiments of the paper."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from cocopt.experiments.results import Result, write_figures, write_tables
from cocopt.experiments.runner import run
from cocopt.experiments.specs import nearest

__all__ = ["EXPERIMENTS", "reproduce"]

#: each problem and its algorithms; Switch cannot play the last one, whose constraints have no point in common
EXPERIMENTS = {
    "olr": ("clasp", "recoo", "adagrad", "switch"),
    "olr-long": ("clasp", "recoo", "adagrad", "switch"),
    "svm": ("clasp", "recoo", "adagrad"),
}


def reproduce(names: Sequence[str], out: str | os.PathLike[str], **settings: Any) -> Iterator[Result]:
    """Runs the experiments of these names (none: all), and keeps their results together in one folder.

    Parameters
    ----------
    names : sequence of str
    out : path
    **settings
        As for `cocopt.run`.

    Yields
    ------
    Result
        After each experiment, when tables and figures are up to date.
    """
    for name in names:
        if name not in EXPERIMENTS:
            raise nearest("experiment", name, EXPERIMENTS)
    results: list[Result] = []
    for name in dict.fromkeys(names) or EXPERIMENTS:
        results.append(run(name, EXPERIMENTS[name], out=out, tables=False, **settings))
        write_tables(results, out)
        write_figures(results[-1], out)
        yield results[-1]

"""The paper's claims, run and judged one by one: ``cocopt verdicts`` writes a page with a verdict for each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from cocopt.experiments.chunks import open_folder
from cocopt.experiments.results import write_atomically
from cocopt.experiments.verdicts.evaluate import Findings, Runs, judge_all
from cocopt.experiments.verdicts.page import page_text

__all__ = ["write_verdicts"]


def write_verdicts(
    path: str | os.PathLike[str],
    *,
    trials: int = 100,
    seeds: int = 5,
    rounds: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Findings:
    """Runs what the claims of the paper need, and writes the page of verdicts.

    Parameters
    ----------
    path : path
        The page, in Markdown; replaced atomically.
    trials, seeds : int
        Trials with each of the seeds 0, 1, ....
    rounds : int, optional
        Rounds of every problem. Default: its own.
    folder : path, optional
        Where finished chunks are kept, so that an interrupted run continues.
    **options
        As for `cocopt.run`: jobs, engine, scheduler, progress.
    """
    target = Path(path).expanduser()
    runs = Runs(trials, seeds, rounds, {"out": folder, **options})
    open_folder(target.parent)
    findings = judge_all(runs)
    given = {"trials": trials, "seeds": seeds, "rounds": rounds}
    usual = {"trials": 100, "seeds": 5, "rounds": None}
    chosen = [f" --{name} {value}" for name, value in given.items() if value != usual[name]]
    write_atomically(target, page_text(findings, "cocopt verdicts" + "".join(chosen)))
    return findings

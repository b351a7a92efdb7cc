"""`run`: many trials of several algorithms on one problem, as plan, execution and collection."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from cocopt.arrays import describe, positive_int
from cocopt.errors import InvalidInput
from cocopt.experiments.algorithms import Given
from cocopt.experiments.chunks import ChunkStore
from cocopt.experiments.collect import collect
from cocopt.experiments.dask_cluster import check_address
from cocopt.experiments.engines import ENGINES
from cocopt.experiments.execute import execute
from cocopt.experiments.plan import make_plan
from cocopt.experiments.progress import show
from cocopt.experiments.results import Result
from cocopt.problems import Problem

__all__ = ["run"]

#: more processes than any machine has cores
MAX_JOBS = 10_000


# Exceeds the guide of 8 parameters as the one public entry to experiments; all but the first two have defaults.
def run(
    problem: str | Problem | type[Problem],
    algorithms: Given | Sequence[Given] | Mapping[str, Given] = ("clasp",),
    trials: int = 100,
    rounds: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    *,
    regret: bool = True,
    comparators: str | Sequence[str] | None = None,
    engine: Literal["local", "dask"] = "local",
    scheduler: str | None = None,
    chunk: int | None = None,
    tables: bool = True,
    keep: Literal["trajectories"] | None = None,
) -> Result:
    """Plays every algorithm on the same trials of a problem, and measures it against comparators in hindsight.

    With the same seed, the result is the same to the last bit for any number of jobs and either engine, on one kind of
    CPU; other kinds agree to 1e-10.

    Parameters
    ----------
    problem : str, Problem, or a class of problems
        A name, with options if any (``"olr:loss=squared"``), a class in a user's file (``"path/to/file.py:Name"``), or
        a problem.
    algorithms : one, a sequence, or a mapping from names
        Descriptions (``"clasp"``, ``"clasp:beta=0.7,rows=worst"``, ``"clasp:scale=0.5|1|2"`` for three algorithms,
        ``"path/to/file.py:Name"``), configured learners, or functions of (K, start) that return a learner.
    trials : int
    rounds : int, optional
        Default: the problem's own number.
    seed : int
        Trial k of a seed sees the same data whatever else is run.
    jobs : int, optional
        Processes; with Dask, chunks at a time. Default: one process per core, or this process alone if there is little
        to do; with Dask, two chunks per thread of the cluster.
    out : path, optional
        A folder for the results. Each finished chunk of trials is stored there at once, so that an interrupted run
        continues from where it stopped. Functions, and objects of a user's own classes, have no description by which
        their chunks could be recognised, so these are not stored (pass them as ``"file.py:Name"``).
    progress : bool, optional
        True: a display on standard error; False: none; None: bars on a terminal and in a notebook, nothing elsewhere.
    regret : bool
        Whether to compute the regret; False for no comparator at all.
    comparators : sequence of str, optional
        Against what: "static" (the default, the best fixed action that satisfies all constraints), "dynamic" (the best
        action of every round, a program per round), "piecewise:blocks=4" (constant on blocks of equal length; or
        ``breakpoints=25+50+75``, rounds after which the action changes; with ``switches=2`` at the best two of them),
        "expectation" (constraints on average; with ``rows=max`` of their largest rows). See `cocopt.hindsight`.
    engine : "local" or "dask"
        Processes of this machine, or a Dask cluster: that of ``scheduler``, else that of the current client, else the
        one that Dask's setting ``scheduler-address`` (DASK_SCHEDULER_ADDRESS) names, else a new one on this machine.
    scheduler : str, optional
        With Dask: the address of the scheduler, such as ``"tcp://host:8786"``, or the file that ``dask scheduler
        --scheduler-file`` wrote.
    chunk : int, optional
        Trials played at once by one learner, and stored together. Default: 100 (25 for a comparator), fewer where their
        data would take more than half a gigabyte. Smaller chunks keep more cores busy where there are few algorithms
        and trials; the numbers agree to 1e-10.
    tables : bool
        Whether to write tables and figures into ``out``, beside the chunks.
    keep : "trajectories", optional
        Keeps every point that was played, for `Result.trajectory`: 8 bytes per algorithm, trial, round and dimension,
        at most 2 GiB.

    Raises
    ------
    TrialFailed
        If some trial failed; after all other chunks were computed and stored.
    EngineFailed
        If the cluster cannot be reached, or processes were killed. Finished chunks stay stored.

    Examples
    --------
    >>> import cocopt
    >>> result = cocopt.run("olr", ["clasp", "recoo"], trials=5, rounds=20)
    >>> sorted(result.finals("clasp"))
    ['ccv1', 'ccv2', 'ccv2_sum', 'ccv_soft', 'certificate', 'infeasible_rounds', 'loss', 'regret']
    >>> difference = result.paired("clasp", "recoo")["ccv2"]
    >>> difference.ci_low <= difference.mean <= difference.ci_high
    True
    """
    for name, value in {"regret": regret, "tables": tables, "progress": progress}.items():
        if not isinstance(value, bool | np.bool_) and not (name == "progress" and value is None):
            raise InvalidInput(f"{name}: expected True or False, got {describe(value)}")
    if not isinstance(engine, str) or engine not in ENGINES:
        raise InvalidInput(f"engine: expected {' or '.join(map(_quoted, ENGINES))}, got {describe(engine)}")
    if scheduler is not None:
        if engine != "dask":
            raise InvalidInput(f'scheduler: expected engine="dask" with it, got engine={_quoted(engine)}')
        scheduler = check_address(scheduler)
    workers = None if jobs is None else positive_int("jobs", jobs, at_most=MAX_JOBS)
    if not regret and comparators:
        raise InvalidInput(f"regret: expected True with the comparators {comparators}, got False")
    compared = comparators if comparators is not None else ["static"] if regret else []
    plan = make_plan(
        problem, algorithms, trials=trials, rounds=rounds, seed=seed, chunk=chunk, comparators=compared, keep=keep
    )
    store = None if out is None else ChunkStore(out)
    display = show(plan.name, dict.fromkeys(plan.tasks, plan.trials), progress)
    done = execute(plan, ENGINES[engine], jobs=workers, store=store, display=display, scheduler=scheduler)
    result = collect(plan, done.arrays)
    result.config["cpu"] = done.cpus
    if out is not None and tables:
        result.save(out)
    return result


def _quoted(name: str) -> str:
    return f'"{name}"'

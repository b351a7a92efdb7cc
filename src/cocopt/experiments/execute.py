"""Computes the chunks of a plan that are not on disk yet, and keeps each as soon as it is finished."""

from __future__ import annotations

from collections.abc import Sequence, Set
from contextlib import closing
from typing import NamedTuple

from cocopt.errors import TrialFailed
from cocopt.experiments.chunks import ChunkStore
from cocopt.experiments.compute import compute
from cocopt.experiments.engines import Engine
from cocopt.experiments.plan import Arrays, Plan
from cocopt.experiments.progress import Progress

__all__ = ["Executed", "execute"]


class Executed(NamedTuple):
    """The arrays of the plan's chunks, in their order, and the kinds of CPU that computed them."""

    arrays: list[Arrays]
    cpus: list[str]


def execute(
    plan: Plan,
    engine: Engine,
    *,
    jobs: int | None,
    store: ChunkStore | None,
    display: Progress,
    scheduler: str | None = None,
) -> Executed:
    """The arrays of the plan's chunks.

    A failing trial costs its own chunk alone: the failure is raised when all other chunks are finished and kept. A
    chunk on disk is used if a CPU of the kind of one of the engine's workers computed it.

    Parameters
    ----------
    plan : Plan
    engine : function
        One of `cocopt.experiments.engines`.
    jobs : int or None
        How many chunks at a time; None leaves it to the engine.
    store : ChunkStore or None
        Where finished chunks are kept.
    display : Progress
    scheduler : str or None
        The address of the engine's cluster.

    Raises
    ------
    TrialFailed, EngineFailed
    """
    keys = [None if store is None else plan.key(chunk) for chunk in plan.chunks]
    finished: dict[int, Arrays] = {}
    failures: list[TrialFailed] = []
    cpus: set[str] = set()
    with display, engine(jobs, scheduler) as workers:
        for i, (chunk, key) in enumerate(zip(plan.chunks, keys, strict=True)):
            kept = None if store is None or key is None else store.get(key, workers.cpus)
            if kept is not None:
                finished[i] = kept.arrays
                cpus.add(kept.cpu)
                display.advance(chunk.task, chunk.count, kept=True)
        missing = {i: chunk for i, chunk in enumerate(plan.chunks) if i not in finished}
        if missing:
            with closing(workers.compute(compute, missing)) as outcomes:
                for i, outcome, cpu in outcomes:
                    if isinstance(outcome, TrialFailed):
                        failures.append(outcome)
                        continue
                    key = keys[i]
                    if store is not None and key is not None:
                        store.put(key, outcome, cpu)
                    finished[i] = outcome
                    cpus.add(cpu)
                    display.advance(missing[i].task, missing[i].count)
    if failures:
        raise _first_cause(failures, {own.task for own in plan.comparators})
    return Executed([finished[i] for i in range(len(plan.chunks))], sorted(cpus))


def _first_cause(failures: Sequence[TrialFailed], comparators: Set[str]) -> TrialFailed:
    """The earliest failure; that of an algorithm before that of a comparator, which often fails on the same data."""
    return min(failures, key=lambda failure: (failure.algorithm in comparators, failure.trial, failure.round))

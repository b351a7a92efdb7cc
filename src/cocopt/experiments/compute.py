"""What one chunk computes: the metrics of an algorithm, or a comparator; or which trial failed, and where."""

from __future__ import annotations

from dataclasses import replace
from traceback import extract_tb
from typing import TypeAlias

import numpy as np

from cocopt.algorithms import Learner
from cocopt.arrays import Array
from cocopt.errors import CocoptError, InvalidInput, TrialFailed
from cocopt.experiments.algorithms import Algorithm
from cocopt.experiments.comparators import Comparator
from cocopt.experiments.plan import Arrays, Chunk

__all__ = ["Outcome", "compute", "describe_error"]

#: a failure is returned, not raised: the other chunks go on, and it travels between processes like any result
Outcome: TypeAlias = Arrays | TrialFailed


class _ChunkFailed(Exception):
    """Some trial failed in ``round``; if ``drawing``, in that one or a later one, while rounds were drawn ahead."""

    def __init__(self, round: int, cause: Exception, drawing: bool = False) -> None:
        self.round, self.cause, self.drawing = round, cause, drawing


def compute(chunk: Chunk) -> Outcome:
    """The arrays of a chunk, or the failure, which names trial and round."""
    try:
        return _compute(chunk)
    except _ChunkFailed as failure:
        return _locate_failure(chunk, failure)


def _compute(chunk: Chunk) -> Arrays:
    task = chunk.algorithm
    return _compare(chunk, task) if isinstance(task, Comparator) else _play(chunk, task)


def _play(chunk: Chunk, algorithm: Algorithm) -> Arrays:
    """The metrics, (trials, points), of one learner that plays all trials of the chunk.

    ``round_losses``, if recorded, are (trials, rounds).
    """
    recorded: dict[str, list[Array]] = {}
    losses: list[Array] = []
    points, t, drawing = frozenset(chunk.points), 0, False
    try:
        learner = algorithm.build(chunk.problem, chunk.rounds, chunk.problem.start(chunk.seed, chunk.trials))
        drawing = True
        for _, count, reveal in chunk.problem.blocks(chunk.seed, chunk.trials, chunk.rounds):
            drawing = False
            for k in range(count):
                record = learner.tell(*reveal(k))
                t += 1
                if chunk.round_losses:
                    losses.append(np.broadcast_to(record.loss, (chunk.count,)))
                if t in points:
                    _record(recorded, learner)
            drawing = True
    except Exception as error:
        raise _ChunkFailed(t + 1, error, drawing) from error
    if t != chunk.rounds:
        raise _ChunkFailed(t, InvalidInput(f"expected {chunk.rounds} rounds from the problem, got {t}"))
    if chunk.round_losses:
        recorded["round_losses"] = losses
    return {name: np.stack(values, axis=-1) for name, values in recorded.items()}


def _record(recorded: dict[str, list[Array]], learner: Learner) -> None:
    """Appends the learner's metrics so far."""
    metrics = learner.ledger.as_dict()
    del metrics["rounds"]
    if hasattr(learner, "certificate"):
        metrics["certificate"] = learner.certificate().value
    for name, value in metrics.items():
        recorded.setdefault(name, []).append(np.array(value, dtype=np.float64))


def _compare(chunk: Chunk, comparator: Comparator) -> Arrays:
    """The comparator's values, points and whether they exist."""
    try:
        found = comparator.find(chunk.problem, chunk.seed, chunk.trials, chunk.rounds, chunk.points)
    except Exception as error:
        raise _ChunkFailed(chunk.rounds, error) from error
    return {name: np.asarray(value) for name, value in found.items()}


def _locate_failure(chunk: Chunk, failure: _ChunkFailed) -> TrialFailed:
    """Which trial failed, found by computing halves of the chunk."""
    half = chunk.count // 2
    if half > 0:
        for part in (replace(chunk, count=half), replace(chunk, first=chunk.first + half, count=chunk.count - half)):
            try:
                _compute(part)
            except _ChunkFailed as found:
                if found.round == failure.round:
                    return _locate_failure(part, found)
    round = _first_undrawable_round(chunk, failure.round) if failure.drawing else failure.round
    return TrialFailed(chunk.problem.name, chunk.task, chunk.first, round, describe_error(failure.cause))


def _first_undrawable_round(chunk: Chunk, first: int) -> int:
    """The least number of rounds, from ``first`` on, that cannot be drawn; by bisection."""
    last = chunk.rounds
    while first < last:
        middle = (first + last) // 2
        try:
            for _ in chunk.problem.blocks(chunk.seed, chunk.trials, middle):
                pass
        except Exception:
            last = middle
        else:
            first = middle + 1
    return first


def describe_error(error: BaseException) -> str:
    """The message of an error of ours; type, message and line of code of any other."""
    if isinstance(error, CocoptError):
        return str(error)
    where = "".join(f" ({frame.filename}, line {frame.lineno})" for frame in extract_tb(error.__traceback__)[-1:])
    return f"{type(error).__name__}: {error}{where}"

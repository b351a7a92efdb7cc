"""What one chunk computes: the metrics of an algorithm, or a comparator; or which trial failed, and where."""

from __future__ import annotations

from dataclasses import replace
from traceback import extract_tb
from typing import TypeAlias

import numpy as np

from cocopt.algorithms import Learner
from cocopt.arrays import Array
from cocopt.constraints import Constraint
from cocopt.errors import CocoptError, InvalidInput, TrialFailed
from cocopt.experiments.algorithms import Algorithm
from cocopt.experiments.comparators import Comparator
from cocopt.experiments.plan import Arrays, Chunk, joined
from cocopt.losses import Loss
from cocopt.metrics import Ledger

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
    if isinstance(task, Comparator):
        return _compare(chunk, task)
    if chunk.problem.one_by_one and chunk.count > 1:
        return joined([_play(replace(chunk, first=int(trial), count=1), task) for trial in chunk.trials])
    return _play(chunk, task)


def _play(chunk: Chunk, algorithm: Algorithm) -> Arrays:
    """The metrics, (trials, points), of one learner that plays all trials of the chunk.

    ``round_losses``, if recorded, are (trials, rounds); ``trajectories`` (trials, rounds, ..., n).
    """
    recorded: dict[str, list[Array]] = {}
    losses: list[Array] = []
    played: list[Array] = []
    points, t, drawing = frozenset(chunk.points), 0, False
    alone = chunk.problem.one_by_one  # one trial, without an axis for it
    try:
        start = chunk.problem.start(chunk.seed, chunk.trials)
        learner = algorithm.build(chunk.problem, chunk.rounds, start[0] if alone else start)
        network = None if chunk.problem.agents is None else Ledger.zero(learner.batch)
        drawing = True
        for _, count, reveal in chunk.problem.blocks(chunk.seed, chunk.trials, chunk.rounds):
            drawing = False
            for k in range(count):
                loss, constraint = reveal(k)
                if chunk.trajectories:
                    played.append(learner.ask())
                if network is not None:
                    network = _after_round(network, learner.ask(), loss, constraint)
                learner.tell(loss, constraint)
                t += 1
                if chunk.round_losses:
                    losses.append(_loss(learner, network))
                if t in points:
                    _record(recorded, learner, network)
            drawing = True
    except Exception as error:
        raise _ChunkFailed(t + 1, error, drawing) from error
    if t != chunk.rounds:
        raise _ChunkFailed(t, InvalidInput(f"expected {chunk.rounds} rounds from the problem, got {t}"))
    arrays = {name: np.stack(values, axis=-1) for name, values in recorded.items()}
    if chunk.round_losses:
        arrays["round_losses"] = np.diff(np.stack(losses, axis=-1), axis=-1, prepend=0.0)
    if chunk.trajectories:
        arrays["trajectories"] = np.stack(played, axis=0 if alone else 1)
    return {name: array[None] for name, array in arrays.items()} if alone else arrays


def _loss(learner: Learner, network: Ledger | None) -> Array:
    """The loss so far, (trials,); with agents, that of the network."""
    return np.asarray(learner.ledger.loss if network is None else np.mean(network.loss, axis=-1))


def _record(recorded: dict[str, list[Array]], learner: Learner, network: Ledger | None) -> None:
    """Appends the learner's metrics so far; with agents those of the network, and as ``local_…`` the agents' own."""
    metrics = learner.ledger.as_dict()
    del metrics["rounds"]
    if hasattr(learner, "certificate"):
        metrics["certificate"] = learner.certificate().value
    if network is not None:
        own = {f"local_{name}": value for name, value in metrics.items()}
        metrics = {**network.as_dict(), **own}
        del metrics["rounds"], metrics["infeasible_rounds"]  # an agent projects onto its own rows alone
        metrics = {name: np.mean(value, axis=-1) for name, value in metrics.items()}
    seen = max(map(len, recorded.values()), default=0)  # points so far: a name may come up later
    for name, value in metrics.items():
        values = np.array(value, dtype=np.float64)
        recorded.setdefault(name, [np.zeros_like(values)] * seen).append(values)


def _after_round(network: Ledger, x: Array, loss: Loss | None, constraint: Constraint | None) -> Ledger:
    """The ledger (trials, agents) in which each agent's action meets the mean of all losses, and all agents' rows.

    The agents' own losses and rows have leading axes (trials, agents). So the actions, with an axis for the agent that
    plays before these two, meet the losses and rows of all agents in one evaluation.
    """
    played = np.moveaxis(x, -2, 0)[..., None, :]  # (agents, trials, 1, n)
    played = np.broadcast_to(played, (x.shape[-2], *x.shape))
    value = rows = None
    if loss is not None:
        value = np.moveaxis(loss.value(played).mean(axis=-1), 0, -1)
    if constraint is not None:
        each = np.moveaxis(constraint.rows(played), 0, -3)
        rows = each.reshape(*each.shape[:-2], -1)
    return network.after(value, rows)


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

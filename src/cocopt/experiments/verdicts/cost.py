"""What a round of Switch costs: time and memory beside those of CLASP, on one stream of the regression.

Times are measured in turn in one process, and compared as ratios; they are the only figures of the page that differ
from run to run.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

import cocopt
from cocopt import state
from cocopt.arrays import Array
from cocopt.constraints import Affine
from cocopt.experiments.verdicts.checks import FAR, Finding
from cocopt.experiments.verdicts.estimates import Estimate, mean_ratio
from cocopt.experiments.verdicts.rules import Answer, above, below
from cocopt.problems import BlockProblem, LongRegression, Problem, Regression

__all__ = ["Cost", "find_costs", "measure"]

_REPETITIONS = 5
_PROJECTIONS = 7
_PARTS = 5  # the rounds are divided into fifths


class Cost(NamedTuple):
    """Times of one seed in seconds, the median over the rounds, one per repetition; and sizes in bytes."""

    clasp: Array  #: CLASP, the rounds of the paper's experiment
    switch: Array  #: Switch, the same rounds
    first: Array  #: Switch, the first fifth of many rounds
    last: Array  #: Switch, the last fifth
    few_rows: Array  #: one projection onto all rows of the first 1/50 of the rounds
    many_rows: Array  #: onto all rows of nine times as many
    clasp_bytes: Array  #: of the state after the last round, one number
    switch_bytes: Array


def measure(seed: int, rounds: int | None = None) -> Cost:
    """Plays one trial of both methods, several times in turn.

    Parameters
    ----------
    seed : int
    rounds : int, optional
        Default: those of the paper's experiment with many rounds.
    """
    problem = LongRegression()
    many = problem.rounds if rounds is None else rounds
    few = min(Regression.rounds, many)
    pairs = _pairs(problem, seed, many)
    start = problem.start(seed, [0])[0]
    lipschitz = problem.algorithm_defaults["lipschitz"]
    times: list[tuple[float, ...]] = []
    for repetition in range(_REPETITIONS + 1):
        clasp = cocopt.CLASP(problem.K, start=start, steps="power")
        switch = cocopt.Switch(problem.K, many, lipschitz, start=start)
        clasp_times, switch_times = _play(clasp, pairs), _play(switch, pairs)
        rows = [_projection_time(problem, pairs[: max(1, many * parts // 50)]) for parts in (1, 9)]
        fifth = max(1, many // _PARTS)
        parts = (clasp_times[:few], switch_times[:few], switch_times[:fifth], switch_times[-fifth:])
        one = [float(np.median(part)) for part in parts]  # other processes disturb some rounds
        if repetition:  # the first one loads compiled code
            times.append((*one, *rows))
    sizes = [sum(array.nbytes for array in state.unpack(own.dumps())[1].values()) for own in (clasp, switch)]
    return Cost(*np.array(times).T, *(np.array([size]) for size in sizes))


def _pairs(problem: BlockProblem, seed: int, rounds: int) -> list[tuple[Any, Any]]:
    """Losses and constraints of one trial, made before the clock starts."""
    return [
        problem.reveal(*(array[k, 0] for array in data))
        for _, data in problem.data_blocks(seed, [0], rounds)
        for k in range(len(data[0]))
    ]


def _play(learner: Any, pairs: list[tuple[Any, Any]]) -> Array:
    """Seconds of every round."""
    marks = [time.perf_counter()]
    for loss, constraint in pairs:
        learner.tell(loss, constraint)
        marks.append(time.perf_counter())
    return np.diff(marks)


def _projection_time(problem: Problem, pairs: list[tuple[Any, Any]]) -> float:
    """Seconds of a projection onto K and all rows of these rounds, none of which is left out."""
    rows = Affine(np.concatenate([g.A for _, g in pairs]), np.concatenate([g.b for _, g in pairs]))
    target, times = np.ones(problem.K.dim), []
    for _ in range(_PROJECTIONS):
        began = time.perf_counter()
        cocopt.project(problem.K, rows, target)
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def find_costs(cost: Cost) -> list[Finding]:
    """Per round Switch takes longer than CLASP; ever longer; and it remembers more. Then the reason for the second."""
    beside, growth = mean_ratio(cost.switch, cost.clasp), mean_ratio(cost.last, cost.first)
    size, rows = cost.switch_bytes.mean() / cost.clasp_bytes.mean(), mean_ratio(cost.many_rows, cost.few_rows)
    answer: Answer = "agrees" if size > 1.0 else "disagrees"
    return [
        Finding("time per round, Switch / CLASP", beside, above(beside, 1.0)),
        Finding("time per round of Switch, last fifth / first fifth", growth, above(growth, FAR)),
        Finding("bytes of the state after the last round, Switch / CLASP", Estimate(size, np.nan, np.nan), answer),
        Finding("time of a projection onto all rows, 9/50 / 1/50 of the rounds", rows, below(rows, FAR)),
    ]

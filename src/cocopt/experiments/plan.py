"""What an experiment consists of: a problem, algorithms, chunks of trials, and the rounds whose metrics are recorded.

A plan computes nothing. `cocopt.experiments.execute` computes its chunks, in any order and on any machine, and
`cocopt.experiments.collect` puts their arrays together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cocopt import problems
from cocopt.arrays import Array, describe, one_of, positive_int
from cocopt.errors import InvalidInput
from cocopt.experiments.algorithms import Algorithm, Given, resolve
from cocopt.experiments.comparators import Comparator, resolve_comparators
from cocopt.experiments.specs import Spec, file_hash, make_picklable, parse
from cocopt.problems import Problem
from cocopt.problems.base import check_seed

__all__ = [
    "CHUNK",
    "MAX_CHUNKS",
    "MAX_ROUNDS",
    "MAX_TRAJECTORIES",
    "Arrays",
    "Chunk",
    "Plan",
    "default_chunk",
    "get_problem",
    "joined",
    "make_plan",
    "recorded_rounds",
]

#: the numbers of rounds at which the regret is computed, which takes an optimisation each
_CHECKPOINTS = 12
#: further rounds whose metrics are recorded, for figures with a linear and with a logarithmic axis
_LINEAR, _LOGARITHMIC = 95, 95

#: a plan lists its chunks, and each becomes a file
MAX_CHUNKS = 10**6
#: more would take days
MAX_ROUNDS = 10**10

#: trials that one learner plays at once, unless they need too much memory: with more of them a round costs less per
#: trial, up to about so many. Neither machine nor jobs enter, since a run is to be the same to the last bit on all
CHUNK = 100
#: trials of one search for a comparator, which goes through them one by one: larger chunks would only take longer
_COMPARATOR_CHUNK = 25
#: bytes that the data of a chunk may take
_MEMORY = 2**29
#: bytes that all trajectories of a run may take
MAX_TRAJECTORIES = 2**31
#: vectors that a round has, and that a learner keeps of it if its memory grows with the rounds; about
_VECTORS, _VECTORS_KEPT = 8, 8

#: what a chunk yields: arrays whose first axis is the trials
Arrays: TypeAlias = dict[str, Array]


@dataclass(frozen=True)
class Chunk:
    """Consecutive trials of one algorithm, or of the search for a comparator; depends on no other chunk.

    Attributes
    ----------
    problem : Problem
    algorithm : Algorithm or Comparator
    seed : int
    first, count : int
        The number of the first trial, and how many there are.
    rounds : int
    points : tuple of int
        The rounds whose metrics are recorded; for a comparator, the checkpoints.
    round_losses : bool
        Whether the loss of every single round is recorded too.
    trajectories : bool
        Whether the points played are recorded too.
    """

    problem: Problem
    algorithm: Algorithm | Comparator
    seed: int
    first: int
    count: int
    rounds: int
    points: tuple[int, ...]
    round_losses: bool = False
    trajectories: bool = False

    @property
    def task(self) -> str:
        """The label of the algorithm, or what the search for the comparator is called."""
        return self.algorithm.task if isinstance(self.algorithm, Comparator) else self.algorithm.label

    @property
    def trials(self) -> NDArray[np.int64]:
        """The numbers of the trials."""
        return np.arange(self.first, self.first + self.count)


@dataclass(frozen=True)
class Plan:
    """Everything that determines the numbers of an experiment.

    Attributes
    ----------
    problem : Problem
    name : str
        The problem's name in tables and files.
    description : JSON-able, or None
        What the problem is; None if that is unknown (an object of a user's own class).
    algorithms : sequence of Algorithm
    comparators : sequence of Comparator
    trials, rounds, seed, chunk_size : int
        The last is that of an algorithm whose memory does not grow.
    points, checkpoints : tuple of int
        The rounds whose metrics are recorded, and among them those at which the regret is computed.
    chunks : sequence of Chunk
        The work, task by task and in the order of the trials.
    """

    problem: Problem
    name: str
    description: Any
    algorithms: Sequence[Algorithm]
    comparators: Sequence[Comparator]
    trials: int
    rounds: int
    seed: int
    chunk_size: int
    points: tuple[int, ...]
    checkpoints: tuple[int, ...]
    chunks: Sequence[Chunk]

    @property
    def tasks(self) -> list[str]:
        """What is done with every trial: the searches for comparators, and the labels of the algorithms."""
        return list(dict.fromkeys(chunk.task for chunk in self.chunks))

    def key(self, chunk: Chunk) -> dict[str, Any] | None:
        """All that determines the chunk's numbers, as JSON; None if problem or algorithm cannot be described."""
        algorithm = chunk.algorithm.identity
        if self.description is None or algorithm is None:
            return None
        return {
            "problem": self.description,
            "algorithm": algorithm,
            **({"round_losses": True} if chunk.round_losses else {}),
            **({"trajectories": True} if chunk.trajectories else {}),
            "seed": chunk.seed,
            "trials": [chunk.first, chunk.count],
            "rounds": chunk.rounds,
            "points": list(chunk.points),
        }

    def config(self) -> dict[str, Any]:
        """The plan as JSON, for a reader of the results."""
        config = {
            "problem": self.description or {"problem": self.name, "options": self.problem.options},
            "algorithms": {own.label: own.identity or "configured in Python" for own in self.algorithms},
            "comparators": {own.name: dict(own.options) for own in self.comparators},
            "trials": self.trials,
            "rounds": self.rounds,
            "seed": self.seed,
            "chunk": self.chunk_size,
        }
        plain: dict[str, Any] = json.loads(json.dumps(config))
        return plain


def make_plan(
    problem: str | Problem | type[Problem],
    algorithms: Given | Sequence[Given] | Mapping[str, Given],
    *,
    trials: int,
    rounds: int | None,
    seed: int,
    chunk: int | None,
    comparators: str | Sequence[str],
    keep: str | None = None,
) -> Plan:
    """Checks the arguments of `cocopt.run`, and cuts the work into chunks.

    Every algorithm is built once for one trial, so that an algorithm that cannot be built is reported before any work.
    """
    trials, given = positive_int("trials", trials), None if chunk is None else positive_int("chunk", chunk)
    seed = check_seed(seed)
    source, name, description = get_problem(problem)
    horizon = positive_int("rounds", source.rounds if rounds is None else rounds)
    if horizon > MAX_ROUNDS:
        raise InvalidInput(f"rounds: expected at most {MAX_ROUNDS}, got {describe(horizon)}")
    source.check_size(trials, horizon)
    compared = resolve_comparators(comparators)
    for comparator in compared:
        comparator.check(horizon)
    if compared and not source.K.bounded:
        raise InvalidInput(f"regret: expected False, since the set of the problem {name!r} is unbounded, got True")
    resolved = resolve(algorithms)
    growing = [algorithm.build(source, horizon, source.start(seed, np.arange(1))).grows for algorithm in resolved]
    chunk = given or default_chunk(source, horizon)
    if trials > MAX_CHUNKS * chunk:
        raise InvalidInput(
            f"trials: expected at most {MAX_CHUNKS * chunk} in chunks of {chunk}, got {describe(trials)}"
        )
    if keep is not None:
        one_of("keep", keep, "trajectories")
        _require_room(source, trials, horizon, len(resolved))
    points, checkpoints = recorded_rounds(horizon)
    # rounds that the dynamic comparator leaves out are left out of the algorithms' losses
    round_losses = any(own.name == "dynamic" for own in compared)
    tasks: list[tuple[Algorithm | Comparator, tuple[int, ...], bool]] = [
        *((own, checkpoints, False) for own in compared),
        *((own, points, round_losses) for own in resolved),
    ]
    compared_size = given or min(chunk, _COMPARATOR_CHUNK)
    sizes = [compared_size] * len(compared)
    sizes += [given or default_chunk(source, horizon, grows=grows) for grows in growing]
    chunks = [
        Chunk(source, task, seed, first, min(size, trials - first), horizon, recorded, losses, _keeps(task, keep))
        for (task, recorded, losses), size in zip(tasks, sizes, strict=True)
        for first in range(0, trials, size)
    ]
    return Plan(
        source, name, description, resolved, compared, trials, horizon, seed, chunk, points, checkpoints, chunks
    )


def _keeps(task: Algorithm | Comparator, keep: str | None) -> bool:
    """Whether the trajectories of a task are kept: algorithms have them."""
    return keep == "trajectories" and isinstance(task, Algorithm)


def _require_room(problem: Problem, trials: int, rounds: int, algorithms: int) -> None:
    """Refuses to keep more points than fit into memory."""
    points = algorithms * trials * rounds * (problem.agents or 1)
    size = 8 * points * problem.K.dim
    if size > MAX_TRAJECTORIES:
        raise InvalidInput(
            f"keep: expected trajectories of at most {MAX_TRAJECTORIES / 2**30:g} GiB, got {size / 2**30:.3g} GiB "
            f"({algorithms} algorithms × {trials} trials × {rounds} rounds × {problem.K.dim} dimensions); "
            "keep those of fewer trials or rounds"
        )


def joined(parts: Sequence[Arrays]) -> Arrays:
    """The trials of all parts; of rows whose name a part never met, nothing was violated there."""
    names = list(dict.fromkeys(name for part in parts for name in part))
    return {
        name: np.concatenate([part[name] if name in part else np.zeros_like(part["loss"]) for part in parts])
        for name in names
    }


def default_chunk(problem: Problem, rounds: int, *, grows: bool = False) -> int:
    """How many trials to play at once: CHUNK, fewer where the data of a block of rounds would not fit into memory.

    ``grows``: whether a learner remembers all rounds.

    >>> from cocopt import problems
    >>> from cocopt.experiments.plan import default_chunk
    >>> default_chunk(problems.get("olr"), 1000), default_chunk(problems.get("olr"), 100_000, grows=True)
    (100, 8)
    """
    vectors = _VECTORS * min(rounds, problem.block_rounds) + (_VECTORS_KEPT * rounds if grows else 0)
    return min(CHUNK, max(1, _MEMORY // (8 * problem.K.dim * vectors)))


def recorded_rounds(rounds: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The rounds whose metrics are kept, evenly and geometrically spaced, and among them the checkpoints of the regret.

    >>> from cocopt.experiments.plan import recorded_rounds
    >>> points, checkpoints = recorded_rounds(5000)
    >>> len(points) <= 200, points[-1], checkpoints[-3:]
    (True, 5000, (1063, 2305, 5000))
    """
    checkpoints = np.unique(np.geomspace(1, rounds, _CHECKPOINTS).round().astype(int))
    even = np.linspace(1, rounds, _LINEAR).round().astype(int)
    geometric = np.geomspace(1, rounds, _LOGARITHMIC).round().astype(int)
    points = np.unique(np.concatenate([checkpoints, even, geometric]))
    return tuple(points.tolist()), tuple(checkpoints.tolist())


def get_problem(given: str | Problem | type[Problem]) -> tuple[Problem, str, Any]:
    """The problem that a user names or passes, its name in results, and its description as JSON (None if unknown)."""
    if isinstance(given, type) and issubclass(given, Problem):
        given = given()
    if isinstance(given, Problem):
        return given, given.name, given.identity
    if not isinstance(given, str):
        raise InvalidInput(f"problem: expected a name or a Problem, got {describe(given)}")
    specs = parse(given)
    if len(specs) != 1:
        raise InvalidInput(f"problem: expected one problem, got a sweep over {len(specs)}")
    (spec,) = specs
    found = problems.get(spec.target, **spec.options)
    if not spec.in_file:
        return found, str(spec), get_problem(found)[2]
    make_picklable(found)
    name = spec.target.rpartition(":")[2]
    description = {"file": file_hash(spec.target), "name": name, "options": spec.options}
    return found, str(Spec(name, spec.options)), description

"""Many trials of several algorithms on one problem: in chunks, across cores, resumable, the same for any jobs."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from traceback import extract_tb
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cocopt import hindsight, problems
from cocopt.arrays import Array, describe, positive_int
from cocopt.errors import CocoptError, InvalidInput, TrialFailed
from cocopt.experiments.algorithms import Algorithm, Given, resolve
from cocopt.experiments.chunks import Chunks
from cocopt.experiments.progress import show
from cocopt.experiments.results import Result
from cocopt.experiments.specs import Spec, by_value, fingerprint, parse
from cocopt.problems import Problem

__all__ = ["CHUNK", "get_problem", "recorded", "run"]

#: trials that one learner plays at once; part of what makes a run the same to the last bit
CHUNK = 25

_CHECKPOINTS, _LINEAR, _LOGARITHMIC = 12, 95, 95
_HINDSIGHT = "best action in hindsight"
_SMALL = 20_000  # rounds of chunks: below this other processes would take longer to start than the work takes

Arrays = dict[str, Array]


class _Stopped(Exception):
    """Some trial of a chunk failed in this round, or in a later one while a block of rounds was ``drawn`` ahead."""

    def __init__(self, round: int, cause: Exception, drawn: bool = False) -> None:
        self.round, self.cause, self.drawn = round, cause, drawn


@dataclass(frozen=True)
class _Unit:
    """A piece of work that depends on no other: one chunk of trials, for one algorithm or for the best fixed action."""

    problem: Problem
    algorithm: Algorithm | None
    seed: int
    first: int
    count: int
    rounds: int
    points: tuple[int, ...]

    @property
    def task(self) -> str:
        return _HINDSIGHT if self.algorithm is None else self.algorithm.label

    @property
    def trials(self) -> NDArray[np.int64]:
        return np.arange(self.first, self.first + self.count)

    def identity(self, problem: Any) -> dict[str, Any] | None:
        """What the work is; None if problem or algorithm cannot say what they are."""
        algorithm = _HINDSIGHT if self.algorithm is None else self.algorithm.identity
        if problem is None or algorithm is None:
            return None
        return {
            "problem": problem,
            "algorithm": algorithm,
            "seed": self.seed,
            "trials": [self.first, self.count],
            "rounds": self.rounds,
            "points": list(self.points),
        }


def recorded(rounds: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The rounds whose metrics are kept, evenly and geometrically spaced, and among them the checkpoints of the regret.

    >>> from cocopt.experiments.runner import recorded
    >>> points, checkpoints = recorded(5000)
    >>> len(points) <= 200, points[-1], checkpoints[-3:]
    (True, 5000, (1063, 2305, 5000))
    """
    checkpoints = np.unique(np.geomspace(1, rounds, _CHECKPOINTS).round().astype(int))
    even = np.linspace(1, rounds, _LINEAR).round().astype(int)
    geometric = np.geomspace(1, rounds, _LOGARITHMIC).round().astype(int)
    points = np.unique(np.concatenate([checkpoints, even, geometric]))
    return tuple(points.tolist()), tuple(checkpoints.tolist())


def run(
    problem: str | Problem,
    algorithms: Given | Sequence[Given] | Mapping[str, Given] = ("clasp",),
    trials: int = 100,
    rounds: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    *,
    regret: bool = True,
    engine: Literal["local", "dask"] = "local",
    chunk: int = CHUNK,
    tables: bool = True,
) -> Result:
    """Plays every algorithm on the same trials of a problem, and judges it by the best fixed action in hindsight.

    With the same seed, the result is the same to the last bit for any number of jobs and either engine.

    Parameters
    ----------
    problem : str or Problem
        A name, with options if need be (``"olr:loss=squared"``), a class in a file of one's own
        (``"path/to/file.py:Name"``), or a problem.
    algorithms : one or several, or a mapping from names to them
        Descriptions (``"clasp"``, ``"clasp:beta=0.7,rows=worst"``, ``"clasp:scale=0.5|1|2"`` for three of them,
        ``"path/to/file.py:Name"``), configured learners, or functions of (K, start) that return a learner.
    trials : int
    rounds : int, optional
        Default: the problem's own number.
    seed : int
        Trial k of a seed sees the same data whatever else is run.
    jobs : int, optional
        Processes. Default: one a core, or none beside this one if there is little to do.
    out : path, optional
        A folder for the results. Finished chunks of work are kept there as they come, so that an interrupted run
        goes on where it was. Problems and learners passed as objects of one's own classes, and functions, cannot say
        what they are; their chunks are not kept (name them as ``file.py:Name``).
    progress : bool, optional
        True: a display on standard error; False: none; None: only on a terminal.
    regret : bool
        Whether to find the best fixed action in hindsight.
    engine : "local" or "dask"
        Processes of this machine, or a Dask cluster (the one that Dask's own settings name, else a new local one).
    chunk : int
        Trials played at once.
    tables : bool
        Whether ``out`` is to get tables and figures beside the chunks.

    Raises
    ------
    TrialFailed
        After everything else is done, if some trial failed.

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
    trials, chunk = positive_int("trials", trials), positive_int("chunk", chunk)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InvalidInput(f"seed: expected a non-negative integer, got {describe(seed)}")
    if engine not in ("local", "dask"):
        raise InvalidInput(f'engine: expected "local" or "dask", got {describe(engine)}')
    workers = None if jobs is None else positive_int("jobs", jobs)
    source, name, described = get_problem(problem)
    horizon = positive_int("rounds", source.rounds if rounds is None else rounds)
    if regret and not source.K.bounded:
        raise InvalidInput(f"regret: expected False, since the set of the problem {name!r} is unbounded, got True")
    players = resolve(algorithms)
    for player in players:  # what cannot be built is told before anything runs
        player.build(source, horizon, source.start(seed, np.arange(1)))
    chunks = None if out is None else Chunks(out)
    points, checkpoints = recorded(horizon)
    tasks: list[Algorithm | None] = [*([None] if regret else []), *players]
    units = [
        _Unit(source, task, int(seed), first, min(chunk, trials - first), horizon, points if task else checkpoints)
        for task in tasks
        for first in range(0, trials, chunk)
    ]
    done: dict[int, Arrays] = {}
    failures: list[TrialFailed] = []
    with show(name, {unit.task: trials for unit in units}, progress) as display:
        identities = [unit.identity(described) for unit in units]
        for i, identity in enumerate(identities):
            kept = None if chunks is None or identity is None else chunks.get(identity)
            if kept is not None:
                done[i] = kept
                display.advance(units[i].task, units[i].count, kept=True)
        todo = {i: unit for i, unit in enumerate(units) if i not in done}
        with closing(_execute(todo, workers, engine)) as outcomes:
            for i, outcome in outcomes:
                if isinstance(outcome, TrialFailed):
                    failures.append(outcome)
                    continue
                identity = identities[i]
                if chunks is not None and identity is not None:
                    chunks.put(identity, outcome)
                done[i] = outcome
                display.advance(units[i].task, units[i].count)
    if failures:  # an algorithm's failure says more than that of the comparator on the same data
        raise min(failures, key=lambda f: (f.algorithm == _HINDSIGHT, f.trial, f.round))
    found = {
        task: _joined([done[i] for i, unit in enumerate(units) if unit.task == task])
        for task in dict.fromkeys(unit.task for unit in units)
    }
    best = found.pop(_HINDSIGHT) if regret else None
    config = {
        "problem": described or {"problem": name, "options": source.options},
        "algorithms": {player.label: player.identity or "configured in Python" for player in players},
        "trials": trials,
        "rounds": horizon,
        "seed": int(seed),
        "chunk": chunk,
    }
    result = Result(source, name, players, found, points, checkpoints, best, json.loads(json.dumps(config)))
    if out is not None and tables:
        result.save(out)
    return result


def get_problem(given: str | Problem) -> tuple[Problem, str, Any]:
    """The problem that a user names or passes, what to call it, and what it is in JSON (None if it cannot say)."""
    if isinstance(given, Problem):
        own = type(given).__module__.startswith("cocopt.")
        return given, given.name, {"problem": given.name, "options": given.options} if own else None
    if not isinstance(given, str):
        raise InvalidInput(f"problem: expected a name or a Problem, got {describe(given)}")
    specs = parse(given)
    if len(specs) != 1:
        raise InvalidInput(f"problem: expected one problem, got a sweep over {len(specs)}")
    (spec,) = specs
    found = problems.get(spec.target, **spec.options)
    if not spec.in_file:
        return found, str(spec), get_problem(found)[2]
    by_value(found)
    name = spec.target.rpartition(":")[2]
    described = {"file": fingerprint(spec.target), "name": name, "options": spec.options}
    return found, str(Spec(name, spec.options)), described


def _execute(
    units: Mapping[int, _Unit], jobs: int | None, engine: str
) -> Generator[tuple[int, Arrays | TrialFailed], None, None]:
    """The outcome of each unit as it comes, in any order."""
    if not units:
        return
    if jobs is None:
        little = sum(unit.rounds for unit in units.values()) < _SMALL
        jobs = 1 if little and engine == "local" else _cores()
    if jobs == 1 and engine == "local":
        for i, unit in units.items():
            yield i, _work(unit)
        return
    from joblib import Parallel, delayed, parallel_config

    if engine == "dask":
        _require_cluster()
    # max_nbytes: no memory-mapped copies in temporary files
    with parallel_config(backend="loky" if engine == "local" else "dask", n_jobs=jobs):
        outcomes = Parallel(return_as="generator_unordered", batch_size=1, max_nbytes=None)(
            delayed(_numbered)(i, unit) for i, unit in units.items()
        )
        try:
            for i, outcome in outcomes:  # "yield from" would close it before the warning is silenced
                yield i, outcome
        finally:
            with warnings.catch_warnings(action="ignore", category=UserWarning):
                outcomes.close()  # work that nobody waits for any more is given up: joblib would warn of that


def _cores() -> int:
    """How many this process may use, which the scheduler or a container may have limited."""
    from joblib import cpu_count

    cores: int = cpu_count()
    return cores


def _require_cluster() -> None:
    try:
        from distributed import Client, get_client
    except ModuleNotFoundError as error:
        raise ImportError("engine='dask' needs Dask: pip install 'cocopt[dask]'") from error
    try:
        get_client()
    except ValueError:  # none yet
        Client()


def _numbered(i: int, unit: _Unit) -> tuple[int, Arrays | TrialFailed]:
    return i, _work(unit)


def _work(unit: _Unit) -> Arrays | TrialFailed:
    """The unit's arrays, or the failure that names trial and round."""
    try:
        return _results(unit)
    except _Stopped as stop:
        return _culprit(unit, stop)


def _results(unit: _Unit) -> Arrays:
    return _compare(unit) if unit.algorithm is None else _play(unit, unit.algorithm)


def _play(unit: _Unit, algorithm: Algorithm) -> Arrays:
    """The metrics (trials, points) of one learner that plays all trials of the chunk."""
    kept: dict[str, list[Array]] = {}
    points, t, drawing = frozenset(unit.points), 0, False
    try:
        learner = algorithm.build(unit.problem, unit.rounds, unit.problem.start(unit.seed, unit.trials))
        drawing = True
        for _, count, reveal in unit.problem.blocks(unit.seed, unit.trials, unit.rounds):
            drawing = False
            for k in range(count):
                learner.tell(*reveal(k))
                t += 1
                if t in points:
                    metrics = learner.ledger.as_dict()
                    del metrics["rounds"]
                    if hasattr(learner, "certificate"):
                        metrics["certificate"] = learner.certificate().value
                    for name, value in metrics.items():
                        kept.setdefault(name, []).append(np.array(value, dtype=np.float64))
            drawing = True
    except Exception as error:
        raise _Stopped(t + 1, error, drawing) from error
    if t != unit.rounds:
        raise _Stopped(t, InvalidInput(f"expected {unit.rounds} rounds from the problem, got {t}"))
    return {name: np.stack(values, axis=-1) for name, values in kept.items()}


def _compare(unit: _Unit) -> Arrays:
    """The best fixed action in hindsight: its loss and whether there is one, (trials, checkpoints)."""
    try:
        found = hindsight.best_fixed(unit.problem, unit.seed, unit.trials, unit.points)
    except Exception as error:
        raise _Stopped(unit.rounds, error) from error
    return {"value": np.asarray(found[0]), "feasible": np.asarray(found[1])}


def _culprit(unit: _Unit, stop: _Stopped) -> TrialFailed:
    """Which trial it was, by playing ever fewer of them."""
    half = unit.count // 2
    if half > 0:
        for part in (replace(unit, count=half), replace(unit, first=unit.first + half, count=unit.count - half)):
            try:
                _results(part)
            except _Stopped as found:
                if found.round == stop.round:
                    return _culprit(part, found)
    round = _drawn_round(unit, stop.round) if stop.drawn else stop.round
    return TrialFailed(unit.problem.name, unit.task, unit.first, round, _reason(stop.cause))


def _drawn_round(unit: _Unit, first: int) -> int:
    """The least number of rounds, from ``first`` on, that cannot be drawn."""
    last = unit.rounds
    while first < last:
        middle = (first + last) // 2
        try:
            for _ in unit.problem.blocks(unit.seed, unit.trials, middle):
                pass
        except Exception:
            last = middle
        else:
            first = middle + 1
    return first


def _reason(cause: BaseException) -> str:
    """What went wrong; with the line of code, unless the message is one of ours."""
    if isinstance(cause, CocoptError):
        return str(cause)
    where = "".join(f" ({frame.filename}, line {frame.lineno})" for frame in extract_tb(cause.__traceback__)[-1:])
    return f"{type(cause).__name__}: {cause}{where}"


def _joined(parts: list[Arrays]) -> Arrays:
    """The chunks of one task as one, in the order of the trials."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

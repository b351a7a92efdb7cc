"""Measuring a cell: contestants must agree, then take turns; the best call of each counts."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from cells import Cell, Contest, Solver, contest
from conic_forms import Array
from peers import Call
from targets import target

from cocopt.errors import CocoptError

EXACT, CLOSE = 1e-6, 1e-4  # how far contestants may be apart; a peer between the two is marked
ROUGH = 1e-3  # how far a peer may be from an answer of ours that the referee confirms to EXACT
REFEREED = 5  # problems that the referee solves
TURN = 0.03  # seconds, long enough for caches to be warm
SLOW = 30  # times the budget: then a single problem must do, and its first call is not repeated
LEAST_PROBLEMS = 3  # of a peer, whatever they cost
BESIDE = "cocopt beside "  # a contestant: our call for the problems that a peer solves

Result = dict[str, Any]


class Found(NamedTuple):
    """What a peer found: its call, which problems it solves, and their solutions; what it could not solve."""

    call: Call
    solved: Sequence[int]
    points: Array
    failed: int = 0  #: of the problems that were tried
    failure: str = ""  #: what it said of the first of these


def measure(cell: Cell, budget: float, prepare: Callable[[Cell], Contest] = contest) -> Result:
    """The figures of a cell; ``budget`` is how many seconds the timing may take, roughly."""
    result: Result = {**cell._asdict(), "target": str(target(cell))}
    try:
        race = prepare(cell)
        ours, points, trials = _ours(race, budget)
    except (CocoptError, TypeError, ValueError) as error:
        # sparse rows are refused where they are not supported
        return result | {"status": "not available" if cell.group == "sparse" else "failed", "note": _first_line(error)}
    calls, differences, notes, founds = {"cocopt": (ours, trials)}, {}, {}, {}
    for name, make in race.peers.items():
        try:
            founds[name] = _peer(make, race, trials, budget / (2 * len(race.peers)))
        except ImportError as error:
            notes[name] = f"not installed: {_first_line(error)}"
            continue
        except (RuntimeError, ValueError) as error:
            notes[name] = _first_line(error)
            continue
        differences[name] = float(np.abs(founds[name].points - points[founds[name].solved]).max())
    confirmed = _confirmed(race, points, differences)
    for name, difference in differences.items():
        if difference <= (ROUGH if confirmed is not None and confirmed <= EXACT else CLOSE):
            calls[name] = founds[name].call, len(founds[name].solved)
            if founds[name].failed:  # our time for the same problems
                calls[BESIDE + name] = race.ours(founds[name].solved), len(founds[name].solved)
        else:
            notes[name] = f"differs by {difference:.1e}"
    result["referee"] = confirmed
    gc.collect()
    seconds, stopped = best_times({name: call for name, (call, _) in calls.items()}, budget)
    if "cocopt" in stopped:
        return result | {"status": "failed", "note": stopped["cocopt"]}
    notes |= stopped
    per = {name: seconds[name] / (calls[name][1] * race.per_call) * 1e6 for name in seconds}
    result = _judged(
        cell, result | {"method": race.method, "unit": race.unit, "trials": trials}, per, differences, notes
    )
    for name, peer in result["peers"].items():
        found = founds[name]
        if found.failed:
            peer |= {"failed": found.failed, "tried": len(found.solved) + found.failed, "failure": found.failure}
    return result


def _judged(cell: Cell, result: Result, per: dict[str, float], differences: dict[str, float], notes: Any) -> Result:
    """The verdict; the time of a peer that fails at some problems is compared with ours for those that it solves."""
    own = per.pop("cocopt")
    beside = {name: per.pop(BESIDE + name, own) for name in list(per) if not name.startswith(BESIDE)}
    per = {name: per[name] for name in beside}
    best = min(per, key=lambda name: per[name] / beside[name]) if per else None
    ratio = per[best] / beside[best] if best is not None else None
    # where no peer agrees, one of us is wrong; that is no figure of speed
    disagree = best is None and any("differs" in note for note in notes.values())
    compared = best is not None or target(cell).microseconds is not None
    status = "disagreement" if disagree else "measured" if compared else "no peer"
    return result | {
        "status": status,
        "microseconds": own,
        "peers": {
            name: {"microseconds": per[name], "ours": beside[name], "difference": differences[name]} for name in per
        },
        "left_out": notes,
        "best": best,
        "ratio": ratio,
        "agreement": differences[best] if best is not None else None,
        "exact": best is not None and differences[best] <= EXACT,
        "met": target(cell).met(ratio, own),
    }


def _confirmed(race: Contest, points: Array, differences: dict[str, float]) -> float | None:
    """How far we are from the closest referee; they are asked where no peer agrees to EXACT.

    That one of them agrees in all digits is no accident, so the closest counts in each problem.
    """
    if not race.referees or min(differences.values(), default=0.0) <= EXACT:
        return None
    count, apart = min(REFEREED, len(points)), []
    for referee in race.referees:
        try:
            apart.append(np.abs(referee(range(count))() - points[:count]).max(axis=-1))
        except RuntimeError:  # one that finds nothing confirms nothing
            continue
    return float(np.min(apart, axis=0).max()) if apart else None


def _ours(race: Contest, budget: float) -> tuple[Call, Array, int]:
    """Our call with its result, for as many problems as the budget allows; a batch is not cut unless it must be."""
    if not race.divisible:
        call = race.ours(range(race.trials))
        return call, call().copy(), race.trials
    one = race.ours(range(1))
    start = time.perf_counter()
    point = np.array(one())  # loads and compiles what is needed
    if time.perf_counter() - start > SLOW * budget:
        return one, point, 1
    seconds = _once(one)
    trials = race.trials if seconds * race.trials <= 4 * budget else max(1, int(budget / seconds))
    trials = min(trials, race.trials)
    call = race.ours(range(trials))
    return call, np.array(call()), trials


def _peer(make: Solver, race: Contest, trials: int, budget: float) -> Found:
    """What a peer finds for as many problems as the budget allows; of these only the ones count that it solves."""
    if not race.divisible:
        call = make(range(trials))
        return Found(call, range(trials), call().copy())
    first = _first_solved(make, trials, budget)
    count = min(trials, max(LEAST_PROBLEMS, first + 1, int(budget / _once(make([first])))))
    which: Sequence[int] = range(count)
    if first == 0:
        with contextlib.suppress(RuntimeError):
            call = make(which)
            return Found(call, which, np.array(call()))
    calls = {i: make([i]) for i in which}  # a workspace for each, since some fail only after other problems
    said = {i: _said(call) for i, call in calls.items()}
    solved, failures = [i for i in which if not said[i]], [text for text in said.values() if text]

    def one_by_one() -> Array:
        return np.concatenate([calls[i]() for i in solved])

    return Found(one_by_one, solved, one_by_one(), len(failures), failures[0] if failures else "")


def _first_solved(make: Solver, trials: int, budget: float) -> int:
    """The first problem that a peer solves; LEAST_PROBLEMS are tried, more of them for SLOW times the budget."""
    end, said = time.perf_counter() + SLOW * budget, ""
    for i in range(trials):
        text = _said(make([i]))
        if not text:
            return i
        said = said or text
        if i + 1 >= LEAST_PROBLEMS and time.perf_counter() > end:
            break
    raise RuntimeError(said)


def _said(call: Call) -> str:
    """What a peer says of a problem that it cannot solve, and nothing of others."""
    try:
        call()
    except RuntimeError as error:
        return _first_line(error)
    return ""


def _once(call: Call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160]


def best_times(contestants: dict[str, Call], budget: float) -> tuple[dict[str, float], dict[str, str]]:
    """The best time of each in seconds; turns of at least TURN seconds and one call, at least two turns each.

    A slow moment of the machine slows all contestants alike, since they take turns. Those that fail in their turn are
    returned with what they said: solvers that keep a workspace can fail at the second call.
    """
    best, end, turns = dict.fromkeys(contestants, float("inf")), time.perf_counter() + budget, 0
    stopped: dict[str, str] = {}
    while turns < 2 or time.perf_counter() < end:
        for name in list(best):
            try:
                best[name] = min(best[name], _turn(contestants[name]))
            except (CocoptError, RuntimeError) as error:
                stopped[name] = _first_line(error)
                del best[name]
        turns += 1
        if turns == 1 and time.perf_counter() > end + 3 * budget:  # a slow cell: one turn must do
            break
    return best, stopped


def _turn(call: Call) -> float:
    """The best time of a call in one turn."""
    best, stop = float("inf"), time.perf_counter() + TURN
    while True:
        best = min(best, _once(call))
        if time.perf_counter() >= stop:
            return best

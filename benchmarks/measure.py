"""Measuring a cell: contestants must agree, then take turns; the best call of each counts."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from cells import Cell, Contest, contest
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

Result = dict[str, Any]


def measure(cell: Cell, budget: float, prepare: Callable[[Cell], Contest] = contest) -> Result:
    """The figures of a cell; ``budget`` is how many seconds the timing may take, roughly."""
    result: Result = {**cell._asdict(), "target": str(target(cell))}
    try:
        race = prepare(cell)
        ours, points, trials = _ours(race, budget)
    except (CocoptError, TypeError, ValueError) as error:
        # sparse rows are refused where they are not supported
        return result | {"status": "not available" if cell.group == "sparse" else "failed", "note": _first_line(error)}
    calls, differences, notes, founds, failures = {"cocopt": (ours, trials)}, {}, {}, {}, {}
    for name, make in race.peers.items():
        try:
            call, count, found, failures[name] = _peer(make, race, trials, budget / (2 * len(race.peers)))
        except ImportError as error:
            notes[name] = f"not installed: {_first_line(error)}"
            continue
        except (RuntimeError, ValueError) as error:
            notes[name] = _first_line(error)
            continue
        differences[name], founds[name] = float(np.abs(found - points[: len(found)]).max()), (call, count)
    confirmed = _confirmed(race, points, differences)
    for name, difference in differences.items():
        if difference <= (ROUGH if confirmed is not None and confirmed <= EXACT else CLOSE):
            calls[name] = founds[name]
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
        peer["failure"] = failures[name]
    return result


def _judged(cell: Cell, result: Result, per: dict[str, float], differences: dict[str, float], notes: Any) -> Result:
    own = per.pop("cocopt")
    best = min(per, key=lambda name: per[name]) if per else None
    ratio = per[best] / own if best is not None else None
    # where no peer agrees, one of us is wrong; that is no figure of speed
    status = "measured" if best is not None or not any("differs" in note for note in notes.values()) else "disagreement"
    return result | {
        "status": status,
        "microseconds": own,
        "peers": {name: {"microseconds": per[name], "difference": differences[name]} for name in per},
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
            apart.append(np.abs(referee(count)() - points[:count]).max(axis=-1))
        except RuntimeError:  # one that finds nothing confirms nothing
            continue
    return float(np.min(apart, axis=0).max()) if apart else None


def _ours(race: Contest, budget: float) -> tuple[Call, Array, int]:
    """Our call with its result, for as many problems as the budget allows; a batch is not cut unless it must be."""
    if not race.divisible:
        call = race.ours(race.trials)
        return call, call().copy(), race.trials
    one = race.ours(1)
    start = time.perf_counter()
    point = np.array(one())  # loads and compiles what is needed
    if time.perf_counter() - start > SLOW * budget:
        return one, point, 1
    seconds = _once(one)
    trials = race.trials if seconds * race.trials <= 4 * budget else max(1, int(budget / seconds))
    call = race.ours(min(trials, race.trials))
    return call, np.array(call()), min(trials, race.trials)


def _peer(make: Callable[[int], Call], race: Contest, trials: int, budget: float) -> tuple[Call, int, Array, str]:
    """Its call, for how many problems, and their solutions; the last is what it said of a problem that it cannot solve.

    It is timed on the problems before that one then.
    """
    if not race.divisible:
        call = make(trials)
        return call, trials, call().copy(), ""
    one = make(1)
    one()
    count, failure = min(trials, max(LEAST_PROBLEMS, int(budget / _once(one)))), ""
    while True:
        call = make(count)
        try:
            return call, count, np.array(call()), failure
        except RuntimeError as error:
            if count <= LEAST_PROBLEMS:
                raise
            count, failure = max(LEAST_PROBLEMS, count // 2), _first_line(error)


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

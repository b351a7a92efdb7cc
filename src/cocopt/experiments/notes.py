"""What a report says beside the tables: bounds, growth, titles, verdicts, and the command that runs it all again.

``bounds.csv`` has the bounds of the theory along the rounds, ``notes.json`` everything else, by problem.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cocopt import problems
from cocopt.errors import InvalidInput
from cocopt.experiments.chunks import open_folder
from cocopt.experiments.growth import along
from cocopt.experiments.results import Result, interval, write_atomically
from cocopt.experiments.specs import Spec, parse
from cocopt.problems import Problem

__all__ = ["bound_rows", "notes", "rerun", "verdicts", "write_notes"]

_BOUNDS = ("problem", "algorithm", "metric", "round", "bound")
#: the metrics whose growth is measured
GROWING = ("regret", "regret_dynamic", "ccv1", "ccv2")


def write_notes(
    results: Sequence[Result], folder: str | os.PathLike[str], more: Mapping[str, Mapping[str, Any]] | None = None
) -> None:
    """Writes ``bounds.csv`` and ``notes.json`` of several experiments; ``more`` are notes by problem, used instead."""
    out = open_folder(folder)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(_BOUNDS)
    for result in results:
        writer.writerows(bound_rows(result))
    write_atomically(out / "bounds.csv", buffer.getvalue())
    every = {result.name: {**notes(result), **(more or {}).get(result.name, {})} for result in results}
    write_atomically(out / "notes.json", json.dumps({"experiments": every}, indent=1, ensure_ascii=False) + "\n")


def bound_rows(result: Result) -> Iterator[tuple[str, str, str, int, float]]:
    """The rows of ``bounds.csv``: each bound that a theorem gives; a dynamic one is the mean over the trials."""
    for label in result.algorithms:
        known = result.bounds(label)
        found = {} if known is None else {name: own for name, own in known._asdict().items() if own is not None}
        for metric, values in found.items():
            for t, bound in zip(result.points.tolist(), np.broadcast_to(values, result.points.shape), strict=True):
                yield result.name, label, metric, t, float(bound)
        dynamic = result.dynamic_bounds(label) if "dynamic" in result.comparators else None
        if dynamic is not None:
            for t, bound in zip(result.checkpoints.tolist(), dynamic.mean(axis=0).tolist(), strict=True):
                yield result.name, label, "regret_dynamic", t, bound


def notes(result: Result) -> dict[str, Any]:
    """All notes of one experiment, as JSON."""
    first = max(1, -(-result.rounds // 10))
    return {
        "titles": {label: result.title(label) for label in result.algorithms},
        "verdicts": [{"holds": holds, "text": text} for holds, text in verdicts(result)],
        "promised": {label: dict(_promised(result, label)) for label in result.algorithms},
        "growth_over": f"rounds {first} to {result.rounds}",
        "growth": {label: dict(_growth(result, label)) for label in result.algorithms},
        "skipped": {},
        "rerun": rerun(result),
    }


def _problem(result: Result) -> Problem | None:
    """The problem; None of a loaded result."""
    try:
        return result.problem
    except InvalidInput:
        return None


def _promised(result: Result, label: str) -> Iterable[tuple[str, str]]:
    rates = None if _problem(result) is None else result.learner(label).rates
    for metric, rate in {} if rates is None else rates._asdict().items():
        if rate is not None:
            yield metric, str(rate)


def _growth(result: Result, label: str) -> Iterable[tuple[str, str]]:
    curves = {metric: (result.points, values) for metric, values in result.curves(label).items()}
    for metric, name in result.regret_metrics.items():
        curves[metric] = (result.checkpoints, result.regret(label, name))
    for metric in GROWING:
        if metric in curves:
            rounds, values = curves[metric]
            yield metric, along(rounds, np.array(interval(values).mean)).text


def verdicts(result: Result) -> list[tuple[bool | None, str]]:
    """Whether actions exist that satisfy the constraints, as sentences; None where that was not examined."""
    found: list[tuple[bool | None, str]] = []
    for name in result.comparators:
        note = result.infeasibility_note(name)
        found.append((note is None, note or _exists(result, name)))
    problem = _problem(result)
    if not found and problem is not None and problem.feasible is False:
        return [(False, "It is known of this problem that no action satisfies the constraints of all rounds.")]
    if not found:
        return [(None, "Not examined: the run did not look for the best action, so that its regret is unknown.")]
    return found


def _exists(result: Result, comparator: str) -> str:
    trials = f"all {result.trials} trials" if result.trials > 1 else "the one trial"
    whose = {
        "dynamic": "in every single round some action satisfies the constraint of that round",
        "piecewise": "some action satisfies the constraints of each block of rounds",
        "expectation": "some action satisfies the average of the constraints",
    }
    usual = f"some action satisfies the constraints of all {result.rounds} rounds"
    return f"In {trials} {whose.get(comparator, usual)}."


def rerun(result: Result) -> str | None:
    """The command that runs the experiment again; None for what was configured in Python.

    >>> import cocopt
    >>> from cocopt.experiments.notes import rerun
    >>> rerun(cocopt.run("olr:loss=squared", ["clasp", "clasp:rows=worst"], trials=2, rounds=5))
    'cocopt run olr:loss=squared -a clasp -a clasp:rows=worst --trials 2 --rounds 5 --seed 0 --out DIR'
    """
    config = result.config
    problem = _problem_spec(config["problem"])
    algorithms = [_algorithm_spec(config["algorithms"][label]) for label in result.algorithms]
    if problem is None or None in algorithms:
        return None
    words = ["cocopt", "run", problem, *(word for own in algorithms for word in ("-a", str(own)))]
    for key in ("trials", "rounds", "seed"):
        words += [f"--{key}", str(config[key])]
    compared = [str(Spec(name, options)) for name, options in config["comparators"].items()]
    words += [word for own in compared for word in ("--comparator", own)] if compared != ["static"] else []
    words += [] if compared else ["--no-regret"]
    return " ".join(map(shlex.quote, [*words, "--out", "DIR"]))


def _algorithm_spec(identity: Any) -> str | None:
    """What to type for an algorithm; None if that is not known."""
    if not isinstance(identity, dict) or "class" in identity:
        return None
    options = identity.get("options", {})
    target = f"FILE.py:{identity['name']}" if "file" in identity else identity["algorithm"]
    return _typed(target, options)


def _problem_spec(description: dict[str, Any]) -> str | None:
    """What to type for a problem: its name, and the options that differ from the usual ones."""
    options = description["options"]
    if "file" in description:
        return _typed(f"FILE.py:{description['name']}", options)
    if description["problem"] not in problems.names():  # an object of a user's own class
        return None
    usual = problems.get(description["problem"]).options
    return _typed(description["problem"], {name: own for name, own in options.items() if usual.get(name) != own})


def _typed(target: str, options: Mapping[str, Any]) -> str | None:
    """The description of these options, if it means them when it is read again."""
    text = str(Spec(target, dict(options)))
    return text if [Spec(target, dict(options))] == parse(text) else None

"""The numbers that the page's script draws: curves with few points and few digits, finals, paired differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cocopt.experiments.report.appearance import Appearance
from cocopt.experiments.report.findings import zero_violation
from cocopt.experiments.report.folder import Curve, Experiment, Mean
from cocopt.experiments.report.words import MAIN, in_order, metric, named

__all__ = ["MAX_REFERENCES", "chart_data", "chosen_points", "further_metrics", "main_metrics", "named_metrics"]

_NUMBERS = 100_000  # of all curves together, so that the page of the whole field stays below 6 MB, too
_FEWEST, _MOST = 24, 100  # points of a curve
_DIGITS = 5
#: the algorithms with which all others can be compared
MAX_REFERENCES = 30


def main_metrics(experiment: Experiment) -> list[str]:
    """The metrics that have a chart of their own."""
    return [key for key in MAIN if key in experiment.metrics]


def named_metrics(experiment: Experiment) -> list[str]:
    """The metrics of rows that have names."""
    return [key for key in experiment.metrics if named(key)]


def further_metrics(experiment: Experiment) -> list[str]:
    """All others."""
    return in_order(key for key in experiment.metrics if key not in MAIN and not named(key))


def chart_data(experiments: Sequence[Experiment], known: Mapping[str, Appearance]) -> dict[str, Any]:
    """Everything that the charts show, as JSON; algorithms are numbers in the list of all of them."""
    curves = sum(len(own) for experiment in experiments for own in experiment.curves.values())
    points = min(_MOST, max(_FEWEST, _NUMBERS // (3 * max(curves, 1))))
    at = {label: i for i, label in enumerate(known)}
    return {
        "algorithms": [own._asdict() for own in known.values()],
        "problems": [_problem(experiment, at, points) for experiment in experiments],
    }


def _problem(experiment: Experiment, at: Mapping[str, int], points: int) -> dict[str, Any]:
    rounds: list[list[int]] = []
    compared = {key: _paired(experiment, at, key) for key in _compared_metrics(experiment)}
    return {
        "name": experiment.name,
        "rounds": experiment.rounds,
        "trials": experiment.trials,
        "algorithms": [at[label] for label in experiment.algorithms],
        "metrics": {key: metric(key)._asdict() for key in experiment.metrics},
        "t": rounds,
        "curves": _curves(experiment.curves, at, points, rounds),
        "bounds": _curves(experiment.bounds, at, points, rounds),
        "finals": {
            key: {at[label]: _short(own[key]) for label, own in experiment.finals.items() if key in own}
            for key in main_metrics(experiment)
        },
        "paired": {key: own for key, own in compared.items() if own},
        "references": [at[label] for label in experiment.algorithms[:MAX_REFERENCES]],
        "zero": zero_violation(experiment),
        "reference": at[_reference(experiment)],
    }


def _reference(experiment: Experiment) -> str:
    """The algorithm that the others are compared with at first: CLASP if it ran, else the first."""
    first = experiment.algorithms[:MAX_REFERENCES]
    return next((label for label in first if experiment.title(label) == "CLASP"), first[0])


def _compared_metrics(experiment: Experiment) -> list[str]:
    """Those of which paired differences are shown: all that have a chart of their own or belong to names."""
    return [*main_metrics(experiment), *named_metrics(experiment)]


def _paired(experiment: Experiment, at: Mapping[str, int], key: str) -> list[list[Any]]:
    """[first, second, mean, low, high] of each pair."""
    references = set(experiment.algorithms[:MAX_REFERENCES])
    return [
        [at[first], at[second], *_short(own[key])]
        for (first, second), own in experiment.paired.items()
        if key in own and not math.isnan(own[key].mean) and {first, second} & references
    ]


def _curves(
    given: Mapping[str, Mapping[str, Curve]], at: Mapping[str, int], points: int, rounds: list[list[int]]
) -> dict[str, dict[int, list[Any]]]:
    """By metric and algorithm: the number of its list of rounds, and the numbers at these rounds."""
    found: dict[str, dict[int, list[Any]]] = {}
    places: dict[tuple[int, ...], tuple[int, list[int]]] = {}
    for label, own in given.items():
        for key, curve in own.items():
            whole = tuple(curve.rounds)
            if whole not in places:
                chosen = chosen_points(whole, points)
                rounds.append([whole[i] for i in chosen])
                places[whole] = len(rounds) - 1, chosen
            place, chosen = places[whole]
            columns = [values for values in (curve.mean, curve.low, curve.high) if values]
            shortened = [[_rounded(values[i]) for i in chosen] for values in columns]
            if all(number is None for values in shortened[1:] for number in values):  # one trial has no interval
                shortened = shortened[:1]
            found.setdefault(key, {})[at[label]] = [place, *shortened]
    return found


def chosen_points(rounds: Sequence[int], count: int) -> list[int]:
    """Which rounds to keep: the first and the last, half of the others evenly and half geometrically spaced.

    Examples
    --------
    >>> from cocopt.experiments.report.charts import chosen_points
    >>> [1 + i for i in chosen_points(range(1, 1001), 9)]
    [1, 6, 32, 178, 251, 500, 750, 1000]
    """
    if len(rounds) <= count:
        return list(range(len(rounds)))
    given, half = np.asarray(rounds, dtype=float), (count + 1) // 2
    wanted = np.concatenate([np.linspace(given[0], given[-1], half), np.geomspace(given[0], given[-1], half)])
    chosen: list[int] = np.unique(np.abs(given[:, None] - wanted).argmin(axis=0)).tolist()
    return chosen


def _rounded(value: float) -> float | None:
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None


def _short(value: Mean) -> list[float | None]:
    return [_rounded(own) for own in value]

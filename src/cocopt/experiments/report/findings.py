"""What a reader wants to know first: who has the lowest of each metric, who comes close, and whether bounds hold."""

from __future__ import annotations

import math
from typing import NamedTuple

from cocopt.experiments.report.folder import Experiment, Mean, Verdict
from cocopt.experiments.report.words import MAIN
from cocopt.tolerances import FEASIBILITY

__all__ = ["Lowest", "bound_share", "bound_verdict", "difference", "lowest", "zero_violation"]


class Lowest(NamedTuple):
    """The algorithm with the smallest mean of a metric, and those that the paired intervals do not separate from it."""

    metric: str
    algorithm: str
    value: Mean
    close: list[str]


def difference(experiment: Experiment, first: str, second: str, metric: str) -> Mean | None:
    """The mean of first − second on the same data, with its interval; None if it is not known."""
    known = experiment.paired.get((first, second), {}).get(metric)
    if known is not None:
        return known
    known = experiment.paired.get((second, first), {}).get(metric)
    return None if known is None else Mean(-known.mean, -known.high, -known.low)


def lowest(experiment: Experiment) -> list[Lowest]:
    """For each main metric that is defined."""
    found = []
    for metric in MAIN:
        means = {label: own[metric] for label, own in experiment.finals.items() if metric in own}
        means = {label: own for label, own in means.items() if math.isfinite(own.mean)}
        if means:
            best = min(means, key=lambda label: means[label].mean)
            others = [label for label in means if label != best and not _separated(experiment, label, best, metric)]
            found.append(Lowest(metric, best, means[best], others))
    return found


def _separated(experiment: Experiment, other: str, best: str, metric: str) -> bool:
    """Whether the interval of the difference lies above 0, or above what counts as no violation."""
    paired = difference(experiment, other, best, metric)
    return paired is not None and paired.low > (zero_violation(experiment) if metric.startswith("ccv") else 0.0)


def zero_violation(experiment: Experiment) -> float:
    """A sum of violations up to which there are none: what projections are accurate to, in every round."""
    return FEASIBILITY * experiment.rounds


def bound_share(experiment: Experiment, algorithm: str, metric: str) -> float | None:
    """The largest share of its bound that the mean reaches in any recorded round; None if no bound is known.

    A regret below zero, far from any bound, gives a share below zero.
    """
    curve = experiment.curves.get(algorithm, {}).get(metric)
    bound = experiment.bounds.get(algorithm, {}).get(metric)
    if curve is None or bound is None:
        return None
    at = dict(zip(bound.rounds, bound.mean, strict=True))
    shares = [mean / at[t] for t, mean in zip(curve.rounds, curve.mean, strict=True) if at.get(t, 0.0) > 0.0]
    known = [share for share in shares if not math.isnan(share)]
    return max(known) if known else None


def bound_verdict(experiment: Experiment) -> Verdict:
    """Whether every mean stays below its bound, in a sentence."""
    shares = {
        (label, metric): share
        for label in experiment.algorithms
        for metric in MAIN
        if (share := bound_share(experiment, label, metric)) is not None
    }
    if not shares:
        return Verdict(None, "No theorem with known constants applies, so there are no bounds to compare with.")
    broken = [label for (label, _), share in shares.items() if share > 1.0]
    if broken:
        names = ", ".join(dict.fromkeys(map(experiment.title, broken)))
        return Verdict(False, f"{len(broken)} of {len(shares)} means exceed their bounds: {names}.")
    largest = max(0.0, *shares.values())
    return Verdict(True, f"All {len(shares)} means with a bound stay below it: at most {100 * largest:.3g} % of it.")

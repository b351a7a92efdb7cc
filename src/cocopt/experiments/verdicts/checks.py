"""The kinds of claims: how each is measured on the trials of one seed, and when the measurement agrees with it.

The paper's words have no numbers. "Comparable", "similar" and "competitive" are read as *within a quarter* (a ratio of
at most 5/4), "much larger" as *at least twice*; everything else is a sign, which an interval shows or does not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import log
from typing import Literal, NamedTuple

import numpy as np

from cocopt.algorithms.facts import Rate
from cocopt.errors import InvalidInput
from cocopt.experiments.verdicts.estimates import (
    Estimate,
    gap_ratio,
    growth_exponent,
    mean_ratio,
    paired_difference,
    promised_exponent,
    spread_ratio,
)
from cocopt.experiments.verdicts.rules import Answer, above, all_of, below, within
from cocopt.experiments.verdicts.settings import Sample

__all__ = [
    "Check",
    "Competitive",
    "Empty",
    "Finding",
    "GrowsAtMost",
    "LessSpread",
    "Lower",
    "Lowest",
    "MuchLarger",
    "SameMetric",
    "Similar",
    "WiderGap",
    "WithinBound",
]

CLOSE, FAR = 1.25, 2.0  # a quarter; twice
_FITTED = 3  # checkpoints of a growth exponent, the last ones: with 5000 rounds 1063, 2305 and 5000
_ROUNDING = 1e-9
NAMES = {
    "loss": "loss",
    "regret": "regret",
    "ccv1": "CCV₁",
    "ccv2": "CCV₂",
    "ccv2_sum": "CCV₂ summed over the rows",
    "later_ccv2": "CCV₂ after round 1",
}


class Finding(NamedTuple):
    """What a check found.

    Attributes
    ----------
    what : str
        What the figure is, in words.
    estimate : Estimate
        The figure; of several comparisons the one that decides.
    answer : Answer
    distance : float
        How far the figure is from agreeing, 0 if it does.
    text : str
        Instead of the figure where there is none.
    """

    what: str
    estimate: Estimate
    answer: Answer
    distance: float = 0.0
    text: str = ""

    @property
    def figure(self) -> str:
        """The figure and its interval as text."""
        return self.text or format_estimate(self.estimate)


def format_estimate(estimate: Estimate) -> str:
    """The figure to four digits, and its interval.

    >>> from cocopt.experiments.verdicts.checks import format_estimate
    >>> from cocopt.experiments.verdicts.estimates import Estimate
    >>> format_estimate(Estimate(1.23456, 1.1, 1.4)), format_estimate(Estimate(-2.0, float("nan"), float("nan")))
    ('1.235 (1.1 to 1.4)', '−2')
    """
    value, low, high = (f"{number:.4g}".replace("-", "−") for number in estimate)
    return value if np.isnan(estimate.low) else f"{value} ({low} to {high})"


@dataclass(frozen=True)
class Check(ABC):
    """One way to measure a claim."""

    @abstractmethod
    def find(self, sample: Sample) -> Finding:
        """The figure, and whether it agrees with the claim."""

    @property
    @abstractmethod
    def reading(self) -> str:
        """When the claim counts as agreeing, in words."""


@dataclass(frozen=True)
class Lower(Check):
    """One part has a lower mean than another."""

    metric: str
    part: str
    other: str

    @property
    def reading(self) -> str:
        return f"the mean of {self.part} − {self.other} in {NAMES[self.metric]}, trial by trial, is below 0"

    def find(self, sample: Sample) -> Finding:
        one, other = sample.final(self.part, self.metric), sample.final(self.other, self.metric)
        found = paired_difference(one, other)
        what = f"{NAMES[self.metric]}, {self.part} − {self.other}"
        if (np.abs(one - other) <= _ROUNDING * np.abs(other)).all():
            return Finding(what, Estimate(0.0, 0.0, 0.0), "undecided", text="0 in every trial")
        return Finding(what, found, below(found, 0.0), max(found.value, 0.0))


@dataclass(frozen=True)
class Lowest(Check):
    """One part has the lowest mean of all."""

    metric: str
    part: str

    @property
    def reading(self) -> str:
        return (
            f"the mean difference of {self.part} to each other method in {NAMES[self.metric]}, trial by trial, is "
            "below 0 (shown: to the best of the others)"
        )

    def find(self, sample: Sample) -> Finding:
        others = sample.others(self.part)
        answer = all_of([Lower(self.metric, self.part, other).find(sample).answer for other in others])
        best = min(others, key=lambda other: sample.final(other, self.metric).mean())
        return Lower(self.metric, self.part, best).find(sample)._replace(answer=answer)


@dataclass(frozen=True)
class MuchLarger(Check):
    """One part has at least twice the mean of every other."""

    metric: str
    part: str

    @property
    def reading(self) -> str:
        return f"the mean {NAMES[self.metric]} of {self.part} is at least twice that of each other method"

    def find(self, sample: Sample) -> Finding:
        largest = max(sample.others(self.part), key=lambda other: sample.final(other, self.metric).mean())
        found = mean_ratio(sample.final(self.part, self.metric), sample.final(largest, self.metric))
        what = f"{NAMES[self.metric]}, {self.part} / {largest}"
        return Finding(what, found, above(found, FAR), max(log(FAR / found.value), 0.0))


@dataclass(frozen=True)
class Similar(Check):
    """The means of two parts are within a quarter of each other."""

    metric: str
    part: str
    other: str

    @property
    def reading(self) -> str:
        return (
            f"the ratio of the mean {NAMES[self.metric]} of {self.part} to that of {self.other} is between 4/5 and 5/4"
        )

    def find(self, sample: Sample) -> Finding:
        found = mean_ratio(sample.final(self.part, self.metric), sample.final(self.other, self.metric))
        what = f"{NAMES[self.metric]}, {self.part} / {self.other}"
        return Finding(what, found, within(found, CLOSE), max(abs(log(found.value)) - log(CLOSE), 0.0))


@dataclass(frozen=True)
class Competitive(Check):
    """One part's mean is at most a quarter above the lowest of the others."""

    metric: str
    part: str

    @property
    def reading(self) -> str:
        return f"the mean {NAMES[self.metric]} of {self.part} is at most 5/4 of the lowest of the others"

    def find(self, sample: Sample) -> Finding:
        best = min(sample.others(self.part), key=lambda other: sample.final(other, self.metric).mean())
        found = mean_ratio(sample.final(self.part, self.metric), sample.final(best, self.metric))
        what = f"{NAMES[self.metric]}, {self.part} / {best}"
        return Finding(what, found, below(found, CLOSE), max(log(found.value / CLOSE), 0.0))


@dataclass(frozen=True)
class LessSpread(Check):
    """One part's standard deviation over the trials is smaller than that of each other."""

    metric: str
    part: str

    @property
    def reading(self) -> str:
        return (
            f"the standard deviation of {NAMES[self.metric]} over the trials is smaller for {self.part} than for each "
            "other method: the ratio is below 1 (shown: to the one with the smallest)"
        )

    def find(self, sample: Sample) -> Finding:
        own, others = sample.final(self.part, self.metric), sample.others(self.part)
        ratios = {other: spread_ratio(own, sample.final(other, self.metric)) for other in others}
        least = max(ratios, key=lambda other: ratios[other].value)
        what = f"standard deviation of {NAMES[self.metric]}, {self.part} / {least}"
        answer = all_of([below(ratio, 1.0) for ratio in ratios.values()])
        return Finding(what, ratios[least], answer, max(log(ratios[least].value), 0.0))


@dataclass(frozen=True)
class WiderGap(Check):
    """One part's advantage over each other is larger, as a ratio, in CCV₂ than in CCV₁."""

    part: str

    @property
    def reading(self) -> str:
        return (
            f"the ratio of {self.part} to each other method is smaller in CCV₂ than in CCV₁: their quotient is below 1 "
            "(shown: the largest)"
        )

    def find(self, sample: Sample) -> Finding:
        ratios = {}
        for other in sample.others(self.part):
            squared = sample.final(self.part, "ccv2"), sample.final(other, "ccv2")
            ratios[other] = gap_ratio(squared, (sample.final(self.part, "ccv1"), sample.final(other, "ccv1")))
        least = max(ratios, key=lambda other: ratios[other].value)
        what = f"ratio in CCV₂ / ratio in CCV₁, {self.part} / {least}"
        answer = all_of([below(ratio, 1.0) for ratio in ratios.values()])
        return Finding(what, ratios[least], answer, max(log(ratios[least].value), 0.0))


@dataclass(frozen=True)
class GrowsAtMost(Check):
    """A metric grows no faster than was promised.

    The exponent is fitted to the means at the last checkpoints, and the same fit to the promised T^p (1 + ln T)^q gives
    the limit: a logarithm, too, has a positive slope at finite T.
    """

    metric: str
    part: str
    rate: Rate | None = None  # None: that of the algorithm's theorem

    @property
    def reading(self) -> str:
        promise = "the rate of its theorem" if self.rate is None else f"{self.rate}"
        negative = "; a regret below 0 agrees, too" if self.metric == "regret" else ""
        return (
            f"the growth exponent of the mean {NAMES[self.metric]}, fitted from about T/5 to T, is below that of the "
            f"same fit to {promise}{negative}"
        )

    def find(self, sample: Sample) -> Finding:
        checkpoints, values = sample.curve(self.part, self.metric)
        fitted = slice(max(len(checkpoints) - _FITTED, 0), None)
        T, values = checkpoints[fitted], values[:, fitted]
        rate = self._promised(sample)
        what = f"exponent of {NAMES[self.metric]}, at most that of {rate}"
        final = paired_difference(values[:, -1], np.zeros(len(values)))
        if (values.mean(axis=0) <= 0.0).any():
            answer = below(final, 0.0)
            shown = (
                f"mean {format_estimate(final)} at T: no growth" if answer == "agrees" else "the mean changes its sign"
            )
            return Finding(what, final, "agrees" if answer == "agrees" else "undecided", text=shown)
        limit = promised_exponent(T, rate)
        found = growth_exponent(T, values)
        text = f"{_two_digits(found)}; limit {limit:.2f}"
        return Finding(what, found, below(found, limit), max(found.value - limit, 0.0), text)

    def _promised(self, sample: Sample) -> Rate:
        if self.rate is not None:
            return self.rate
        rates = sample.results[0].learner(sample.label(self.part)).rates
        rate = None if rates is None else getattr(rates, "ccv2" if self.metric == "ccv2_sum" else self.metric)
        if rate is None:
            raise InvalidInput(
                f"{sample.label(self.part)}: expected an algorithm with a theorem, but no rate is proved"
            )
        return rate  # type: ignore[no-any-return]


def _two_digits(estimate: Estimate) -> str:
    value, low, high = (f"{round(number, 3) + 0.0:.3f}".replace("-", "−") for number in estimate)
    return value if np.isnan(estimate.low) else f"{value} ({low} to {high})"


@dataclass(frozen=True)
class WithinBound(Check):
    """A metric stays below the theorem's bound, constants included, in every trial and at every recorded round."""

    metric: Literal["regret", "ccv2"]
    part: str

    @property
    def reading(self) -> str:
        return (
            f"{NAMES[self.metric]} over its bound is at most 1 at every checkpoint of every trial (shown: the largest "
            "of a trial, its mean over the trials; and the largest of all)"
        )

    def find(self, sample: Sample) -> Finding:
        checkpoints, values = sample.curve(self.part, self.metric)
        first = sample.results[0]
        bounds = first.bounds(sample.label(self.part))
        if bounds is None:
            raise InvalidInput(f"{sample.label(self.part)}: no bound is proved on {sample.setting.problem}")
        bound = np.asarray(getattr(bounds, self.metric))[np.searchsorted(first.points, checkpoints)]
        largest = (values / bound).max(axis=1)
        found = paired_difference(largest, np.zeros(len(largest)))
        answer: Answer = "agrees" if largest.max() <= 1.0 else "disagrees"
        text = f"{_two_digits(found)}, at most {largest.max():.3f}".replace("-", "−")
        return Finding(f"{NAMES[self.metric]} / bound", found, answer, max(largest.max() - 1.0, 0.0), text)


@dataclass(frozen=True)
class SameMetric(Check):
    """Two metrics of one part are equal in every trial, up to rounding."""

    metric: str
    other: str
    part: str

    @property
    def reading(self) -> str:
        return "CCV₂^hist − CCV₂ is 0 in every trial, up to 10⁻⁹ of CCV₂"

    def find(self, sample: Sample) -> Finding:
        one, other = sample.final(self.part, self.metric), sample.final(self.part, self.other)
        found = paired_difference(one, other)
        equal = bool((np.abs(one - other) <= _ROUNDING * np.maximum(np.abs(other), 1.0)).all())
        text = "0 in every trial" if equal else ""
        return Finding("CCV₂^hist − CCV₂", found, "agrees" if equal else "disagrees", abs(found.value), text)


@dataclass(frozen=True)
class Empty(Check):
    """No action satisfies the constraints of all rounds."""

    @property
    def reading(self) -> str:
        return "in every trial the search for the best fixed action proves that none satisfies all constraints"

    def find(self, sample: Sample) -> Finding:
        known = [result.feasible for result in sample.results if result.feasible is not None]
        empty = ~np.concatenate(known).astype(bool)  # (trials, checkpoints)
        everywhere = sample.results[0].checkpoints[empty.all(axis=0)]
        empty = empty[:, -1]
        text = f"{int(empty.sum())} of {len(empty)} trials"
        if len(everywhere):
            text += f", in all of them by round {everywhere[0]}"
        share = float(empty.mean())
        answer: Answer = "agrees" if empty.all() else "disagrees"
        return Finding("trials without such an action", Estimate(share, np.nan, np.nan), answer, 1.0 - share, text)

"""What was found with one seed, and the verdict over all seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from cocopt.experiments.verdicts.estimates import Estimate

__all__ = ["Verdict", "above", "all_of", "below", "within"]

Answer: TypeAlias = Literal["agrees", "disagrees", "undecided"]

DEPENDS = "depends on the seed"


def below(estimate: Estimate, limit: float) -> Answer:
    """Whether the figure is below the limit: its whole interval is, or is above it; else that is undecided.

    An interval that ends at the limit decides nothing.

    >>> from cocopt.experiments.verdicts.estimates import Estimate
    >>> from cocopt.experiments.verdicts.rules import below
    >>> [below(Estimate(1.0, 0.5, 1.5), limit) for limit in (2.0, 1.2, 0.5, 0.2)]
    ['agrees', 'undecided', 'undecided', 'disagrees']
    """
    if estimate.high < limit:
        return "agrees"
    return "disagrees" if estimate.low > limit else "undecided"


def above(estimate: Estimate, limit: float) -> Answer:
    """Whether the figure is above the limit."""
    return below(Estimate(-estimate.value, -estimate.high, -estimate.low), -limit)


def within(estimate: Estimate, factor: float) -> Answer:
    """Whether a ratio lies between 1/factor and factor."""
    return all_of([below(estimate, factor), above(estimate, 1.0 / factor)])


def all_of(answers: Sequence[Answer]) -> Answer:
    """Of several statements that are all claimed: one that is wrong refutes the claim.

    >>> from cocopt.experiments.verdicts.rules import all_of
    >>> all_of(["agrees", "undecided"]), all_of(["agrees", "disagrees", "undecided"])
    ('undecided', 'disagrees')
    """
    if "disagrees" in answers:
        return "disagrees"
    return "undecided" if "undecided" in answers else "agrees"


class Verdict(NamedTuple):
    """The answers of all seeds; the same one on every seed is settled.

    Examples
    --------
    >>> from cocopt.experiments.verdicts.rules import Verdict
    >>> print(Verdict(("agrees", "agrees")))
    agrees
    >>> print(Verdict(("agrees", "disagrees", "agrees")))
    depends on the seed (agrees on 2 of 3, disagrees on 1)
    """

    answers: tuple[Answer, ...]

    @property
    def short(self) -> str:
        """The answer if all seeds give the same, else "depends on the seed"."""
        return self.answers[0] if len(set(self.answers)) == 1 else DEPENDS

    @property
    def agrees(self) -> bool:
        """Whether the claim holds on every seed."""
        return self.short == "agrees"

    def __str__(self) -> str:
        if self.short != DEPENDS:
            return self.short
        counts = Counter(self.answers)
        order: tuple[Answer, ...] = ("agrees", "disagrees", "undecided")
        parts = [f"{answer} on {counts[answer]}" for answer in order if counts[answer]]
        parts[0] += f" of {len(self.answers)}"
        return f"{DEPENDS} ({', '.join(parts)})"

"""Runs what the claims need, with several seeds, and finds a verdict for every claim and setting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Any, NamedTuple

import numpy as np

from cocopt.arrays import describe, positive_int
from cocopt.errors import InvalidInput
from cocopt.experiments.results import Result
from cocopt.experiments.runner import run
from cocopt.experiments.verdicts.checks import NAMES, Check, Finding, format_estimate
from cocopt.experiments.verdicts.claims import CLAIMS, STEP_MATCHED, Claim, Note
from cocopt.experiments.verdicts.cost import Cost, find_costs, measure
from cocopt.experiments.verdicts.estimates import Estimate, mean_ratio
from cocopt.experiments.verdicts.rules import DEPENDS, Verdict
from cocopt.experiments.verdicts.settings import Sample, Setting, half_step, other_gamma, other_queue
from cocopt.problems import get

__all__ = ["Judged", "Outcome", "Runs", "StepMatched", "judge", "judge_all", "judge_costs", "match_steps"]

_ROUNDS = {"drone": 5000}  # more than its own 1000, since rates are about many rounds
_CHUNK = 50  # trials at once: with the usual 100, one chunk per core of a small machine


@dataclass
class Runs:
    """Results of many runs, each algorithm on each problem with each seed once.

    Attributes
    ----------
    trials : int
    seeds : int
        How many; they are 0, 1, ....
    rounds : int, optional
        Default: each problem's own.
    options : dict
        Further arguments of `cocopt.run`.
    """

    trials: int = 100
    seeds: int = 5
    rounds: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    results: dict[tuple[str, int, int], Result] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.trials = positive_int("trials", self.trials)
        self.seeds = positive_int("seeds", self.seeds)
        if self.trials < 3:
            raise InvalidInput(f"trials: expected at least 3, for intervals, got {describe(self.trials)}")
        if self.rounds is not None and positive_int("rounds", self.rounds) < 20:
            raise InvalidInput(f"rounds: expected at least 20, for growth exponents, got {describe(self.rounds)}")

    def rounds_of(self, problem: str) -> int:
        """The number of rounds on a problem."""
        name = problem.partition(":")[0]
        return self.rounds or _ROUNDS.get(name) or get(name).rounds

    def prepare(self, settings: Iterable[Setting]) -> None:
        """Runs all algorithms of these settings, problem by problem."""
        needed: dict[tuple[str, int], dict[str, Setting]] = {}
        for setting in settings:
            for spec in setting.parts.values():
                needed.setdefault((setting.problem, setting.factor), {})[str(spec)] = setting
        for (problem, factor), labels in needed.items():
            regret = next(iter(labels.values())).needs_regret
            trials = self.trials if factor == 1 else max(3, self.trials // 5)
            rounds = factor * self.rounds_of(problem)
            more: dict[str, Any] = {"regret": regret, "tables": False, "chunk": _CHUNK, **self.options}
            for seed in range(self.seeds):
                self.results[problem, factor, seed] = run(problem, sorted(labels), trials, rounds, seed, **more)

    def sample(self, setting: Setting, seed: int | None = None) -> Sample:
        """What the setting's algorithms did with one seed, or with all; they are run if they have not been."""
        known = self.results.get((setting.problem, setting.factor, 0))
        if known is None or not {str(spec) for spec in setting.parts.values()} <= {*known.algorithms}:
            self.prepare([setting])
        seeds = range(self.seeds) if seed is None else [seed]
        return Sample(setting, [self.results[setting.problem, setting.factor, own] for own in seeds])


class Outcome(NamedTuple):
    """A claim in one setting: the figure over all seeds, the verdict, and what single changes do to them."""

    label: str
    finding: Finding
    verdict: Verdict
    changed: tuple[Outcome, ...] = ()

    @property
    def verdict_text(self) -> str:
        """The verdict; where it depends on the seed, also what all trials say together."""
        together = f"; all together: {self.finding.answer}" if self.verdict.short == DEPENDS else ""
        return f"{self.verdict}{together}"


class Judged(NamedTuple):
    """A claim and what was found about it."""

    name: str
    source: str
    words: str
    reading: str
    outcomes: tuple[Outcome, ...]
    note: str = ""  #: a sentence about the reason, beside what single changes show

    @property
    def summary(self) -> str:
        """The verdict over all settings."""
        verdicts = [outcome.verdict for outcome in self.outcomes]
        kinds = [verdict.short for verdict in verdicts]
        together = self.agreeing_together
        note = f" (all together: agrees in {together} of these)" if together else ""
        if len(set(kinds)) == 1:
            return self.outcomes[0].verdict_text if len(verdicts) == 1 else f"{kinds[0]}{note}"
        order = ("agrees", "disagrees", "undecided", DEPENDS)
        counts = [(kind, kinds.count(kind)) for kind in order if kind in kinds]
        first, *others = [f"{kind} in {count}" for kind, count in counts]
        return ", ".join([f"{first} of {len(kinds)} settings", *others]) + note

    @property
    def agreeing_together(self) -> int:
        """In how many of the settings whose verdict depends on the seed the trials of all seeds together agree."""
        open_ones = [own for own in self.outcomes if own.verdict.short == DEPENDS]
        return sum(own.finding.answer == "agrees" for own in open_ones)


class StepMatched(NamedTuple):
    """CLASP against RECOO in one metric, as a product of what the step and what the algorithm does."""

    label: str
    metric: str
    total: Estimate  #: CLASP / RECOO
    step: Estimate  #: CLASP / CLASP with half the step, which is RECOO's
    algorithm: Estimate  #: CLASP with half the step / RECOO
    queue: Estimate  #: RECOO with the other queue / RECOO
    gamma: Estimate  #: RECOO with the other γ / RECOO
    cause: str  #: what accounts for the difference, in words


def judge(claim: Claim, runs: Runs) -> Judged:
    """The verdict on a claim; where it does not agree, and in its first setting, also after single changes."""
    outcomes = []
    for at, setting in enumerate(claim.settings):
        outcome = _outcome(claim.check, setting, runs)
        if at == 0 or not outcome.verdict.agrees:
            longer = not outcome.verdict.agrees
            outcome = outcome._replace(changed=tuple(_changed_outcomes(claim, setting, runs, longer=longer)))
        outcomes.append(outcome)
    return Judged(claim.name, claim.source, claim.words, claim.check.reading, tuple(outcomes), _note(claim.note, runs))


def _outcome(check: Check, setting: Setting, runs: Runs) -> Outcome:
    answers = [check.find(runs.sample(setting, seed)).answer for seed in range(runs.seeds)]
    return Outcome(setting.label, check.find(runs.sample(setting)), Verdict(tuple(answers)))


def _note(note: Note | None, runs: Runs) -> str:
    if note is None:
        return ""
    outcome = _outcome(note.check, note.setting, runs)
    size = Estimate(*(-number for number in outcome.finding.estimate))
    figure = format_estimate(Estimate(size.value, size.high, size.low))
    return note.words.format(figure=figure) if outcome.verdict.agrees else ""


def _changed_outcomes(claim: Claim, setting: Setting, runs: Runs, *, longer: bool) -> Iterable[Outcome]:
    """Of each change; of those with more rounds only if ``longer``."""
    for change in claim.changes:
        changed = change(setting, runs.rounds_of(setting.problem))
        if changed is not None and (longer or changed.factor == 1):
            yield _outcome(claim.check, changed, runs)


def match_steps(label: str, setting: Setting, metric: str, runs: Runs) -> StepMatched:
    """How much of the difference between CLASP and RECOO is due to CLASP's step, which is twice as long."""
    causes = {_cause(*_factors(setting, metric, runs, seed)) for seed in range(runs.seeds)}
    factors = _factors(setting, metric, runs)
    plain = runs.sample(setting).final("RECOO", metric)
    queue, gamma = (
        mean_ratio(runs.sample(change(setting)).final("RECOO", metric), plain) for change in (other_queue, other_gamma)
    )
    return StepMatched(label, NAMES[metric], *factors, queue, gamma, causes.pop() if len(causes) == 1 else DEPENDS)


def _factors(setting: Setting, metric: str, runs: Runs, seed: int | None = None) -> tuple[Estimate, Estimate, Estimate]:
    sample, half = runs.sample(setting, seed), runs.sample(half_step(setting), seed)
    clasp, recoo, slower = sample.final("CLASP", metric), sample.final("RECOO", metric), half.final("CLASP", metric)
    return mean_ratio(clasp, recoo), mean_ratio(clasp, slower), mean_ratio(slower, recoo)


def _cause(total: Estimate, step: Estimate, algorithm: Estimate) -> str:
    """In words: which factor is farther from 1."""
    if total.low <= 1.0 <= total.high:
        return "no difference is seen"
    sizes = {"the step": log(step.value), "the algorithm": log(algorithm.value)}
    larger = max(sizes, key=lambda name: abs(sizes[name]))
    if abs(min(sizes.values(), key=abs)) <= 0.1 * abs(sizes[larger]):
        return f"{larger}, nearly all of it"
    if sizes["the step"] * sizes["the algorithm"] < 0.0:
        return f"they oppose each other, {larger} outweighs"
    return f"both, {larger} more"


def judge_costs(costs: Sequence[Cost], rounds: tuple[int, int]) -> list[Judged]:
    """The verdicts on what Switch costs.

    Parameters
    ----------
    costs : sequence of Cost
        One per seed.
    rounds : tuple of int
        Those of the paper's experiment, and those of the one with many rounds.
    """
    together = find_costs(Cost(*(np.concatenate(own) for own in zip(*costs, strict=True))))
    each = [find_costs(cost) for cost in costs]
    outcomes = [
        Outcome("one stream", finding, Verdict(tuple(found[i].answer for found in each)))
        for i, finding in enumerate(together)
    ]
    few, many = rounds
    *claimed, rows = outcomes
    kept = {
        "agrees": "Keeping all rows is not what makes it so",
        "disagrees": "Keeping all rows would make it so",
    }.get(rows.verdict.short, "Whether keeping all rows would make it so is not settled")
    note = (
        f"{kept}: one projection onto all rows so far, none left out, takes {rows.finding.figure} times as long after "
        f"{9 * many // 50} rounds as after {many // 50}. Our Switch evaluates only rows that can bind near its "
        "point, and its projections are exact all the same "
        "([decision 6](decisions/0006-persistent-constraints-by-nearby-rows.md))."
    )
    texts = (
        (
            "Switch: a round costs more",
            "section 7.1, figure 1",
            "A round of Switch costs more than a round of CLASP.",
            f"the median of its times of {few} rounds, divided by that of CLASP, is above 1",
            "",
        ),
        (
            "Switch: ever more expensive",
            "appendix A.4.1",
            "With every round Switch's projections become more expensive, too much so for many rounds.",
            f"the median time of a round in the last fifth of {many} rounds is at least twice that in the first fifth",
            note,
        ),
        (
            "Switch: more memory",
            "sections 1.2 and 7.1",
            "CLASP needs less memory than Switch, since it keeps no earlier constraints.",
            f"the arrays of Switch's state after {many} rounds take more bytes than those of CLASP's",
            "",
        ),
    )
    return [
        Judged(name, source, words, reading, (outcome,), note)
        for (name, source, words, reading, note), outcome in zip(texts, claimed, strict=True)
    ]


class Findings(NamedTuple):
    """All verdicts, and the comparison of CLASP and RECOO with the same step."""

    claims: tuple[Judged, ...]
    costs: tuple[Judged, ...]
    step_matched: tuple[StepMatched, ...]
    runs: Runs


def judge_all(runs: Runs, claims: Sequence[Claim] | None = None) -> Findings:
    """Runs whatever is needed, and judges every claim (by default those of CLAIMS)."""
    claims = CLAIMS if claims is None else claims
    settings = [setting for claim in claims for setting in claim.settings]
    settings += [claim.note.setting for claim in claims if claim.note is not None]
    for claim in claims:
        for setting in claim.settings:
            rounds = runs.rounds_of(setting.problem)
            changed = [change(setting, rounds) for change in claim.changes]
            settings += [own for own in changed if own is not None and own.factor == 1]  # longer ones only where needed
    matched = [(label, setting) for label, setting in STEP_MATCHED if _is_needed(setting, settings)]
    for _, setting in matched:
        settings += [change(setting) for change in (half_step, other_queue, other_gamma)]
    runs.prepare(settings)
    many = runs.rounds_of("olr-long")
    costs = [measure(seed, many) for seed in range(runs.seeds)]
    return Findings(
        tuple(judge(claim, runs) for claim in claims),
        tuple(judge_costs(costs, (min(runs.rounds_of("olr"), many), many))),
        tuple(match_steps(label, setting, metric, runs) for label, setting in matched for metric in ("ccv1", "ccv2")),
        runs,
    )


def _is_needed(setting: Setting, others: Sequence[Setting]) -> bool:
    return any(setting.problem == other.problem for other in others)

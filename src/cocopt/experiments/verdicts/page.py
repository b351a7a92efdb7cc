"""The page of verdicts in Markdown. Every sentence about a result is chosen by the result."""

from __future__ import annotations

from collections.abc import Sequence

from cocopt.experiments.listing import Listing
from cocopt.experiments.verdicts.checks import format_estimate
from cocopt.experiments.verdicts.evaluate import Findings, Judged, Outcome, Runs, StepMatched

__all__ = ["page_text", "reason", "summary_table"]

_HEAD = """<!-- Written by `cocopt verdicts`; changes by hand are lost. -->

# The paper's claims, checked

What the paper says about its experiments and by its theorems, in our words, and what we find when we run them. The
paper is Ferreira, Xavier and Soares, "CLASP: An online learning algorithm for Convex Losses And Squared Penalties";
sections, figures and theorems are numbered as in its first version.

## How to read it

- A **figure** is over all trials of all seeds, with its 95 % interval. Methods are compared on the same data, and the
  intervals are **paired**: differences trial by trial (Student's t); ratios of means, ratios of standard deviations and
  growth exponents by leaving out one trial at a time (jackknife).
- A **verdict** is found with every seed by itself. *Agrees*: the whole interval lies on the claim's side of the limit.
  *Disagrees*: the whole interval lies on the other side. *Undecided*: the limit lies in it, or is one of its ends.
  Where the seeds do not all give the same answer, the verdict *depends on the seed*, and what the trials of all seeds
  give *all together*, with a narrower interval, is said beside it; a claim counts as agreeing in a setting only if it
  does with every seed. There are many comparisons, each at 95 %: now and then a seed is undecided by chance.
- The paper's words have no numbers. "Comparable", "similar" and "competitive" are read as within a quarter (a ratio of
  at most 5/4), "much larger" as at least twice.
- Where a claim does not agree, and once where it does, one thing is changed at a time to see what the verdict depends
  on: the step, the row mode, the constants that AdaGrad and Switch are given, RECOO's γ and queue. Where no change
  makes a claim agree, it *comes nearest* with the change after which the figure of all trials is least beyond the
  limit: by its ratio to the limit where the figure is a ratio, else by the difference.
- CCV₁ and CCV₂ include the violation of round 1, which is that of the common start point.
"""

_SETTINGS = """## Settings of the regression

| setting | loss | noise | rows | G and D | RECOO |
|---|---|---|---|---|---|
| text, all rows | ‖Hx − y‖ | normal | all | true | γ_t = t^0.6, queue after the argmin |
| text, largest row | ‖Hx − y‖ | normal | the largest at x_t | true | the same |
| squared loss, all rows | ½‖Hx − y‖² | normal | all | true | the same |
| squared loss, largest row | ½‖Hx − y‖² | normal | the largest at x_t | true | the same |
| the authors' code | ½‖Hx − y‖² | truncated to [−1, 1] | the largest at x_t | 100, √2 | γ_t = t^0.0005, queue before |

*Rows* are those that CLASP, RECOO and Switch use; *G and D* bound gradients and diameter, for AdaGrad and Switch. The
paper's text and its authors' public code differ in the loss, the noise, these constants and RECOO's γ, so both are run,
with two settings in between. About rows the text can be read either way: the experiment speaks of the maximum of four
rows, section 6 of projecting onto the largest one. CLASP's step is 1/√t in all of them, RECOO's is 1/(2√t). The time of
RECOO's queue in the last setting, and the exponent of its γ, are those of the authors' code for the drone.

On the wines a round has one row, and text and code have the same loss. There the second setting has RECOO's γ and queue
as in the authors' code of the regression. Not reproduced: in their notebook of the wines RECOO penalises another
function than the constraint.
"""


def page_text(findings: Findings, command: str) -> str:
    """The whole page.

    Parameters
    ----------
    findings : Findings
    command : str
        What writes it.
    """
    judged = [*findings.claims, *findings.costs]
    parts = [
        _HEAD,
        _configuration(findings.runs, command),
        "## Summary\n",
        _counts(judged),
        summary_table(judged),
        _SETTINGS,
    ]
    if findings.step_matched:
        parts += [_STEPS, _step_table(findings.step_matched), _step_words(findings.step_matched)]
    parts.append("## Claim by claim\n")
    parts += [_detail(own) for own in judged]
    return "\n".join(parts)


def _configuration(runs: Runs, command: str) -> str:
    seeds = "seed 0" if runs.seeds == 1 else f"each of the seeds 0 to {runs.seeds - 1}"
    rounds = ", ".join(f"`{name}` {runs.rounds_of(name)}" for name in ("olr", "olr-long", "svm", "tracking", "drone"))
    return (
        f"To run it again: `{command}`. That is {runs.trials} trials with {seeds}; rounds: {rounds}.\n"
        "All figures but the times of Switch are the same on every run; these were measured in turn in one process, "
        "and only their ratios are shown.\nFinished chunks are kept, so that an interrupted run continues.\n"
    )


def _counts(judged: Sequence[Judged]) -> str:
    """How many claims agree in all settings, in some, in none."""
    agreeing = [sum(outcome.verdict.agrees for outcome in own.outcomes) for own in judged]
    every = sum(count == len(own.outcomes) for count, own in zip(agreeing, judged, strict=True))
    none = sum(count == 0 for count in agreeing)
    counted = (
        f"Of {len(judged)} claims {every} agree in every setting, {len(judged) - every - none} in some settings and "
        f"{none} in none."
    )
    settled = [own for own, count in zip(judged, agreeing, strict=True) if not count and own.agreeing_together]
    if settled:
        names = " and ".join(f"*{own.name}*" for own in settled)
        verb = "does" if len(settled) == 1 else "do"
        counted += f" Of the latter, {names} {verb} in some settings once the trials of all seeds are taken together."
    return f"{counted}\n"


def summary_table(judged: Sequence[Judged]) -> str:
    """A row per claim, with its figure in the first setting."""
    rows = []
    for own in judged:
        first = own.outcomes[0]
        rows.append([own.name, own.source, f"{first.finding.what}: {first.finding.figure}", own.summary])
    return _table(["claim", "source", "our figure, in the first setting", "verdict"], rows)


_STEPS = """## CLASP and RECOO with the same step

CLASP's step is twice RECOO's. The ratio CLASP / RECOO is the product of what the *step* does, CLASP / CLASP(½), and
what the *algorithm* does, CLASP(½) / RECOO, where CLASP(½) is CLASP with `scale=0.5`. *RECOO's queue* and *RECOO's γ*
compare RECOO with itself: with the queue updated at the other time, and with the other γ (about 1 for t^0.6, or the
reverse). The two factors are compared by their logarithms. The difference is *due to* the larger one, to *nearly all of
it* if the other is at most a tenth as large.
"""


def _step_table(matched: Sequence[StepMatched]) -> str:
    header = ["setting", "metric", "CLASP / RECOO", "step", "algorithm", "RECOO's queue", "RECOO's γ", "due to"]
    rows = []
    for own in matched:
        factors = (own.total, own.step, own.algorithm, own.queue, own.gamma)
        rows.append([own.label, own.metric, *map(format_estimate, factors), own.cause])
    return _table(header, rows)


def _step_words(matched: Sequence[StepMatched]) -> str:
    """How often the step accounts for the difference."""
    step = sum(own.cause == "the step, nearly all of it" for own in matched)
    mostly = sum(own.cause in ("both, the step more", "they oppose each other, the step outweighs") for own in matched)
    algorithm = sum("the algorithm" in own.cause for own in matched)
    others = len(matched) - step - mostly - algorithm
    parts = [
        f"the step accounts for nearly all of the difference in {step}",
        f"for the larger part in {mostly}",
        f"the algorithm for the larger part or nearly all in {algorithm}",
        f"in {others} there is no difference, or it depends on the seed",
    ]
    return f"Of these {len(matched)} comparisons " + "; ".join(parts) + ".\n"


def _detail(judged: Judged) -> str:
    lines = [f"### {judged.name}\n", f"{judged.words} ({_capitalised(judged.source)}.)\n"]
    lines.append(f"Agrees if {judged.reading}.\n")
    rows = [
        [outcome.label, outcome.finding.what, outcome.finding.figure, outcome.verdict_text]
        for outcome in judged.outcomes
    ]
    lines.append(_table(["setting", "figure", "value (95 % interval)", "verdict"], rows))
    shown = [outcome for outcome in judged.outcomes if outcome.changed]
    sentences: dict[str, list[str]] = {}
    for outcome in shown:
        sentences.setdefault(reason(outcome), []).append(outcome.label)
    lines += [f"**{_capitalised('; '.join(labels))}**: {sentence}\n" for sentence, labels in sentences.items()]
    if shown:
        changed = [
            [outcome.label, own.label, own.finding.what, own.finding.figure, own.verdict_text]
            for outcome in shown
            for own in outcome.changed
        ]
        lines.append(_table(["setting", "one change", "figure", "value (95 % interval)", "verdict"], changed))
    if judged.note:
        lines.append(judged.note + "\n")
    return "\n".join(lines)


def reason(outcome: Outcome) -> str:
    """What the verdict of one setting depends on, as far as single changes show it."""
    agreeing = [own.label for own in outcome.changed if own.verdict.agrees]
    others = [own.label for own in outcome.changed if not own.verdict.agrees]
    verdict = outcome.verdict.short
    if outcome.verdict.agrees:
        if not others:
            return f"{verdict}, and also after each of the changes below."
        return f"{verdict}, but no longer with every seed once {_either(others)}."
    if agreeing:
        return f"{verdict}. The reason: it agrees once {_either(agreeing)}."
    closest = min(outcome.changed, key=lambda own: own.finding.distance)
    if closest.finding.distance < outcome.finding.distance:
        return f"{verdict}. None of the changes below makes it agree; it comes nearest once {closest.label}."
    return f"{verdict}. None of the changes below makes it agree with every seed."


def _either(labels: Sequence[str]) -> str:
    return "; or once ".join(labels)


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return Listing("", list(header), [list(row) for row in rows]).markdown().partition("\n\n")[2]

"""The verdicts on the paper's claims: statistics, rules, reasons, and the page that is written."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import cocopt
from cocopt import problems
from cocopt.algorithms.facts import Rate
from cocopt.cli import app
from cocopt.errors import InvalidInput
from cocopt.experiments.algorithms import resolve
from cocopt.experiments.plan import recorded_rounds
from cocopt.experiments.specs import Spec, parse
from cocopt.experiments.verdicts import cost, evaluate, page
from cocopt.experiments.verdicts.checks import (
    Competitive,
    Empty,
    GrowsAtMost,
    LessSpread,
    Lower,
    Lowest,
    MuchLarger,
    SameMetric,
    Similar,
    WiderGap,
    WithinBound,
)
from cocopt.experiments.verdicts.claims import CLAIMS, STEP_MATCHED, Claim, Note
from cocopt.experiments.verdicts.cost import Cost, find_costs
from cocopt.experiments.verdicts.estimates import (
    Estimate,
    gap_ratio,
    growth_exponent,
    mean_ratio,
    paired_difference,
    promised_exponent,
    spread_ratio,
)
from cocopt.experiments.verdicts.evaluate import Runs, judge, judge_costs, match_steps
from cocopt.experiments.verdicts.rules import Verdict, above, all_of, below, within
from cocopt.experiments.verdicts.settings import (
    Sample,
    Setting,
    adagrad_constants,
    half_step,
    more_rounds,
    other_gamma,
    other_queue,
    other_rows,
)

PAGE = Path(__file__).parents[1] / "docs" / "reproduction.md"

# ---------------------------------------------------------------------------------------------------------- statistics


def naive_jackknife(figure: Any, *arrays: np.ndarray) -> tuple[float, float, float]:
    """The figure of all trials, and its interval from those of all but one, by a loop."""
    count = len(arrays[0])
    whole = figure(*arrays)
    without = [figure(*(np.delete(array, k, axis=0) for array in arrays)) for k in range(count)]
    error = np.sqrt((count - 1) / count * sum((one - np.mean(without)) ** 2 for one in without))
    half = stats.t.ppf(0.975, count - 1) * error
    return whole, whole - half, whole + half


@pytest.fixture
def pairs() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    common = rng.gamma(3.0, size=(25, 1))
    return common + rng.uniform(size=(25, 4)), common + 2.0 * rng.uniform(size=(25, 4))


def test_paired_differences_have_the_interval_of_the_t_test(pairs) -> None:
    one, other = pairs[0][:, 0], pairs[1][:, 0]
    expected = stats.ttest_rel(one, other).confidence_interval(0.95)
    found = paired_difference(one, other)
    assert found.value == pytest.approx(np.mean([a - b for a, b in zip(one, other, strict=True)]), rel=1e-12)
    assert found[1:] == pytest.approx((expected.low, expected.high), rel=1e-12)


def test_ratios_of_means_and_of_deviations(pairs) -> None:
    one, other = pairs[0][:, 0], pairs[1][:, 0]
    expected = naive_jackknife(lambda a, b: np.log(a.mean() / b.mean()), one, other)
    assert mean_ratio(one, other) == pytest.approx(np.exp(expected), rel=1e-12)
    expected = naive_jackknife(lambda a, b: np.log(np.std(a, ddof=1) / np.std(b, ddof=1)), one, other)
    assert spread_ratio(one, other) == pytest.approx(np.exp(expected), rel=1e-10)


def test_ratio_of_ratios(pairs) -> None:
    one, other = pairs
    four = one[:, 0], other[:, 0], one[:, 1], other[:, 1]
    expected = naive_jackknife(lambda a, b, c, d: np.log(a.mean() / b.mean() / (c.mean() / d.mean())), *four)
    assert gap_ratio(four[:2], four[2:]) == pytest.approx(np.exp(expected), rel=1e-12)


def test_growth_is_the_slope_of_logarithms(pairs) -> None:
    T = np.array([10, 30, 90, 400])
    values = pairs[0] * T**0.7
    expected = naive_jackknife(lambda v: np.polyfit(np.log(T), np.log(v.mean(axis=0)), 1)[0], values)
    assert growth_exponent(T, values) == pytest.approx(expected, rel=1e-10)


def test_promised_exponents() -> None:
    T = np.array([200, 400, 900, 2000])
    assert promised_exponent(T, Rate(0.75)) == pytest.approx(0.75, rel=1e-12)
    expected = np.polyfit(np.log(T), np.log(1.0 + np.log(T)), 1)[0]
    assert promised_exponent(T, Rate(0.0, 1.0)) == pytest.approx(expected, rel=1e-10)
    assert 1.0 / (1.0 + np.log(2000)) < expected < 1.0 / (1.0 + np.log(200))  # the slope of a logarithm at both ends


@pytest.mark.parametrize(("figure", "truth"), [(mean_ratio, 1.5), (spread_ratio, 0.5)])
def test_intervals_cover_the_truth_about_as_often_as_they_say(figure, truth: float) -> None:
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(400):
        common = rng.normal(size=60)
        one, other = 6.0 + common + rng.normal(size=60), 4.0 + 2.0 * common + 2.0 * rng.normal(size=60)
        found = figure(one, other)
        hits += found.low <= truth <= found.high
    assert 0.92 <= hits / 400 <= 0.98


def test_too_few_trials_have_no_interval() -> None:
    assert np.isnan(spread_ratio(np.array([1.0, 2.0]), np.array([1.0, 3.0]))).all()
    one = growth_exponent(np.array([1, 2, 4]), np.array([[1.0, 2.0, 4.0]]))
    assert one.value == pytest.approx(1.0)
    assert np.isnan(one[1:]).all()


# --------------------------------------------------------------------------------------------------------------- rules


def test_rules_ask_for_the_whole_interval() -> None:
    estimate = Estimate(1.0, 0.9, 1.1)
    assert [below(estimate, limit) for limit in (1.2, 1.0, 0.8)] == ["agrees", "undecided", "disagrees"]
    assert [above(estimate, limit) for limit in (1.2, 1.0, 0.8)] == ["disagrees", "undecided", "agrees"]
    assert [within(estimate, factor) for factor in (1.25, 1.05)] == ["agrees", "undecided"]
    assert [within(Estimate(v, v - 0.1, v + 0.1), 1.25) for v in (0.5, 2.0)] == ["disagrees", "disagrees"]
    assert [below(estimate, limit) for limit in (0.9, 1.1)] == ["undecided", "undecided"]  # it ends at the limit
    assert [above(estimate, limit) for limit in (0.9, 1.1)] == ["undecided", "undecided"]
    assert below(Estimate(1.0, np.nan, np.nan), 2.0) == "undecided"
    assert all_of(["agrees", "agrees"]) == "agrees"


def test_a_verdict_is_settled_by_all_seeds() -> None:
    assert str(Verdict(("undecided", "undecided"))) == "undecided"
    assert Verdict(("agrees",) * 3).agrees
    mixed = Verdict(("agrees", "undecided", "agrees", "disagrees"))
    assert not mixed.agrees
    assert str(mixed) == "depends on the seed (agrees on 2 of 4, disagrees on 1, undecided on 1)"


# -------------------------------------------------------------------------------------------------------------- checks


class Given(Sample):
    """Values of metrics that a test has made up: {part: {metric: (trials,) or (trials, checkpoints)}}."""

    def __init__(self, values: dict[str, dict[str, Any]], checkpoints: Any = (1, 2, 4)) -> None:
        super().__init__(Setting("given", "olr", {name: Spec("clasp", {}) for name in values}), [])
        self.values, self.checkpoints = values, np.asarray(checkpoints)

    def final(self, part: str, metric: str) -> Any:
        return np.asarray(self.values[part][metric])

    def curve(self, part: str, metric: str) -> Any:
        return self.checkpoints, np.asarray(self.values[part][metric])


NOISE = np.random.default_rng(2).normal(size=40)


def near(mean: float, deviation: float = 0.1) -> np.ndarray:
    """Trials whose mean and deviation are exactly these, all with the same noise."""
    return mean + deviation * (NOISE - NOISE.mean()) / NOISE.std(ddof=1)


def test_lowest_needs_to_be_below_each_other_one() -> None:
    found = Lowest("loss", "A").find(Given({n: {"loss": near(v)} for n, v in (("A", 1.0), ("B", 3.0), ("C", 2.0))}))
    assert (found.answer, found.what) == ("agrees", "loss, A − C")
    assert found.estimate.value == pytest.approx(-1.0)
    values = {"A": near(1.0), "B": near(0.5), "C": near(2.0)}
    found = Lowest("loss", "A").find(Given({n: {"loss": v} for n, v in values.items()}))
    assert (found.answer, found.what) == ("disagrees", "loss, A − B")
    assert found.distance == pytest.approx(0.5)
    wide = Given({"A": {"loss": near(1.0)}, "B": {"loss": near(1.01, 3.0)}})
    assert Lowest("loss", "A").find(wide).answer == "undecided"


@pytest.mark.parametrize(
    ("check", "value", "answer"),
    [
        (MuchLarger("ccv1", "A"), 5.0, "agrees"),
        (MuchLarger("ccv1", "A"), 3.0, "disagrees"),
        (MuchLarger("ccv1", "A"), 4.0, "undecided"),
        (Similar("ccv1", "A", "B"), 2.2, "agrees"),
        (Similar("ccv1", "A", "B"), 3.0, "disagrees"),
        (Similar("ccv1", "A", "B"), 1.2, "disagrees"),
        (Competitive("ccv1", "A"), 0.1, "agrees"),
        (Competitive("ccv1", "A"), 2.4, "agrees"),
        (Competitive("ccv1", "A"), 2.6, "disagrees"),
        (Lower("ccv1", "A", "B"), 1.9, "agrees"),
        (Lower("ccv1", "A", "B"), 2.1, "disagrees"),
    ],
)
def test_words_of_the_paper_as_numbers(check: Any, value: float, answer: str) -> None:
    found = check.find(Given({"A": {"ccv1": near(value)}, "B": {"ccv1": near(2.0, 0.2)}}))
    assert found.answer == answer
    assert (found.distance == 0.0) == (answer == "agrees") or answer == "undecided"
    assert check.reading


def test_less_spread_and_wider_gap() -> None:
    rng = np.random.default_rng(3)
    noise = {name: width * rng.normal(size=60) for name, width in (("A", 1.0), ("B", 2.0), ("C", 4.0))}
    sample = Given({name: {"ccv2": 10.0 + own} for name, own in noise.items()})
    found = LessSpread("ccv2", "A").find(sample)
    assert (found.answer, found.what) == ("agrees", "standard deviation of CCV₂, A / B")
    assert LessSpread("ccv2", "B").find(sample).answer == "disagrees"
    gaps = Given({"A": {"ccv1": near(1.0), "ccv2": near(1.0)}, "B": {"ccv1": near(2.0), "ccv2": near(5.0)}})
    found = WiderGap("A").find(gaps)
    assert found.answer == "agrees"
    assert found.estimate.value == pytest.approx((1.0 / 5.0) / (1.0 / 2.0))
    assert WiderGap("B").find(gaps).answer == "disagrees"


@pytest.mark.parametrize(
    ("power", "rate", "answer"),
    [
        (0.4, Rate(0.5), "agrees"),
        (0.6, Rate(0.5), "disagrees"),
        (0.05, Rate(0.0, 1.0), "agrees"),
        (0.3, Rate(0.0, 1.0), "disagrees"),
    ],
)
def test_growth_is_compared_with_the_same_fit_to_the_promise(power: float, rate: Rate, answer: str) -> None:
    T = np.array([1, 10, 100, 200, 400, 800, 1600])
    factor = near(1.0, 0.01)[:, None]
    found = GrowsAtMost("ccv2", "A", rate).find(Given({"A": {"ccv2": factor * T**power}}, T))
    assert found.answer == answer
    assert found.estimate.value == pytest.approx(power)
    assert f"limit {promised_exponent(T[-3:], rate):.2f}" in found.figure


def test_a_negative_regret_does_not_grow() -> None:
    T = np.array([10, 100, 1000])
    falling = Given({"A": {"regret": -near(1.0, 0.01)[:, None] * T}}, T)
    found = GrowsAtMost("regret", "A", Rate(0.5)).find(falling)
    assert (found.answer, found.figure.endswith("at T: no growth")) == ("agrees", True)
    changing = Given({"A": {"regret": near(1.0, 0.01)[:, None] * [-1.0, 1.0, 9.0]}}, T)
    found = GrowsAtMost("regret", "A", Rate(0.5)).find(changing)
    assert (found.answer, found.figure) == ("undecided", "the mean changes its sign")


def test_equal_metrics() -> None:
    check = SameMetric("ccv2_hist", "ccv2", "A")
    assert check.find(Given({"A": {"ccv2_hist": near(1.0), "ccv2": near(1.0)}})).figure == "0 in every trial"
    found = check.find(Given({"A": {"ccv2_hist": near(1.5), "ccv2": near(1.0)}}))
    assert (found.answer, found.figure) == ("disagrees", "0.5 (0.5 to 0.5)")


# ------------------------------------------------------------------------------------------- seeds, reasons, the page


class Fixed(Runs):
    """Runs of which a test has made up the results: a function of the setting and the seed."""

    def __init__(self, values: Any, seeds: int = 3) -> None:
        super().__init__(trials=40, seeds=seeds)
        self.values = values

    def sample(self, setting: Setting, seed: int | None = None) -> Sample:
        every = [self.values(setting, own) for own in (range(self.seeds) if seed is None else [seed])]
        joined = {
            part: {metric: np.concatenate([own[part][metric] for own in every]) for metric in every[0][part]}
            for part in every[0]
        }
        return Given(joined)


PAIR = Setting("plain", "olr", {"CLASP": Spec("clasp", {}), "RECOO": Spec("recoo", {})})


def test_a_claim_that_flips_between_seeds_says_so() -> None:
    def values(setting: Setting, seed: int) -> Any:
        return {"CLASP": {"ccv1": near(3.0 if seed == 1 else 1.0)}, "RECOO": {"ccv1": near(2.0)}}

    claim = Claim("lower", "section 0", "CLASP is lower.", Lower("ccv1", "CLASP", "RECOO"), (PAIR,))
    judged = judge(claim, Fixed(values))
    assert judged.summary == "depends on the seed (agrees on 2 of 3, disagrees on 1); all together: agrees"
    assert judged.summary in page.summary_table([judged])
    settled = judge(claim, Fixed(lambda setting, seed: values(setting, 0)))
    assert settled.summary == "agrees"


def step_or_queue(factor: float) -> Any:
    """CLASP's CCV₁ is proportional to its step; the other queue multiplies RECOO's by a factor."""

    def values(setting: Setting, seed: int) -> Any:
        clasp = 4.0 * setting.parts["CLASP"].options.get("scale", 1.0)
        recoo = 2.0 * (factor if "queue" in setting.parts["RECOO"].options else 1.0)
        return {"CLASP": {"ccv1": near(clasp)}, "RECOO": {"ccv1": near(recoo)}}

    return values


def test_a_disagreeing_claim_has_a_reason_that_was_measured() -> None:
    claim = Claim(
        "similar", "section 0", "Similar.", Similar("ccv1", "CLASP", "RECOO"), (PAIR,), (half_step, other_queue)
    )
    (outcome,) = judge(claim, Fixed(step_or_queue(1.0))).outcomes
    assert outcome.verdict.short == "disagrees"
    assert [own.verdict.short for own in outcome.changed] == ["agrees", "disagrees"]
    assert page.reason(outcome) == "disagrees. The reason: it agrees once CLASP takes half its step, which is RECOO's."
    # nothing helps, but one change helps more than the other
    claim = Claim("similar", "section 0", "Similar.", Similar("ccv1", "CLASP", "RECOO"), (PAIR,), (other_queue,))
    (outcome,) = judge(claim, Fixed(step_or_queue(1.3))).outcomes
    assert page.reason(outcome).endswith(
        "makes it agree; it comes nearest once RECOO updates its queue before the argmin."
    )
    (outcome,) = judge(claim, Fixed(step_or_queue(0.5))).outcomes
    assert page.reason(outcome).endswith("makes it agree with every seed.")


def test_an_agreeing_claim_says_what_it_depends_on() -> None:
    claim = Claim("larger", "section 0", "Larger.", MuchLarger("ccv1", "CLASP"), (PAIR,), (half_step, other_queue))
    (outcome,) = judge(claim, Fixed(step_or_queue(0.5), seeds=1)).outcomes
    assert outcome.verdict.short == "undecided"  # exactly twice
    (outcome,) = judge(claim, Fixed(lambda s, k: step_or_queue(0.5)(s, k) | {"RECOO": {"ccv1": near(1.9)}})).outcomes
    assert page.reason(outcome) == (
        "agrees, but no longer with every seed once CLASP takes half its step, which is RECOO's."
    )
    (outcome,) = judge(claim, Fixed(lambda s, k: step_or_queue(0.5)(s, k) | {"RECOO": {"ccv1": near(0.5)}})).outcomes
    assert page.reason(outcome) == "agrees, and also after each of the changes below."


def test_verdicts_over_settings_are_counted() -> None:
    def values(setting: Setting, seed: int) -> Any:
        return {"CLASP": {"ccv1": near(1.0 if setting.label == "plain" else 3.0)}, "RECOO": {"ccv1": near(2.0)}}

    other = Setting("other", "olr", PAIR.parts)
    claim = Claim("lower", "section 0", "Lower.", Lower("ccv1", "CLASP", "RECOO"), (PAIR, other))
    assert judge(claim, Fixed(values)).summary == "agrees in 1 of 2 settings, disagrees in 1"


def test_a_claim_on_which_seeds_differ_says_what_all_trials_say() -> None:
    """In one setting a seed of three disagrees, and the mean over all agrees; in the other every seed disagrees."""

    def values(setting: Setting, seed: int) -> Any:
        high = setting.label == "other" or seed == 1
        return {"CLASP": {"ccv1": near(3.0 if high else 1.0)}, "RECOO": {"ccv1": near(2.0)}}

    other = Setting("other", "olr", PAIR.parts)
    claim = Claim("lower", "section 0", "Lower.", Lower("ccv1", "CLASP", "RECOO"), (PAIR, other))
    runs = Fixed(values)
    judged = judge(claim, runs)
    assert judged.summary == (
        "disagrees in 1 of 2 settings, depends on the seed in 1 (all together: agrees in 1 of these)"
    )
    text = page.page_text(evaluate.Findings((judged,), (), (), runs), "cocopt verdicts")
    assert (
        "Of 1 claims 0 agree in every setting, 0 in some settings and 1 in none. Of the latter, *lower* does in some "
        "settings once the trials of all seeds are taken together."
    ) in text
    assert "taken together" not in page.page_text(
        evaluate.Findings((judge(replace(claim, settings=(other,)), runs),), (), (), runs), "cocopt verdicts"
    )


def test_the_scheduler_reaches_the_runs(tmp_path: Path) -> None:
    asked = ["verdicts", "--scheduler", "tcp://127.0.0.1:1", "--out", str(tmp_path / "page.md")]
    done = CliRunner().invoke(app, [*asked, "--folder", str(tmp_path)])
    assert done.exit_code == 2
    assert 'scheduler: expected engine="dask" with it, got engine="local"' in done.stderr


@pytest.mark.parametrize(
    ("clasp", "half", "recoo", "cause"),
    [
        (4.0, 2.0, 2.0, "the step, nearly all of it"),
        (2.0, 2.0, 1.0, "the algorithm, nearly all of it"),
        (6.0, 2.0, 1.5, "both, the step more"),
        (3.0, 2.0, 1.0, "both, the algorithm more"),
        (4.0, 1.0, 2.0, "they oppose each other, the step outweighs"),
        (2.0, 1.0, 2.0, "no difference is seen"),
    ],
)
def test_what_the_step_and_the_algorithm_do(clasp: float, half: float, recoo: float, cause: str) -> None:
    def values(setting: Setting, seed: int) -> Any:
        own = half if "scale" in setting.parts["CLASP"].options else clasp
        other = recoo * (3.0 if "queue" in setting.parts["RECOO"].options else 1.0)
        other *= 5.0 if "epsilon" in setting.parts["RECOO"].options else 1.0
        return {"CLASP": {"ccv1": near(own)}, "RECOO": {"ccv1": near(other)}}

    found = match_steps("plain", PAIR, "ccv1", Fixed(values))
    assert found.cause == cause
    assert found.total.value == pytest.approx(found.step.value * found.algorithm.value)
    assert (found.queue.value, found.gamma.value) == pytest.approx((3.0, 5.0))


def test_a_cause_that_differs_between_seeds_says_so() -> None:
    def values(setting: Setting, seed: int) -> Any:
        clasp = 4.0 if "scale" not in setting.parts["CLASP"].options or seed else 2.0
        return {"CLASP": {"ccv1": near(clasp)}, "RECOO": {"ccv1": near(2.0)}}

    assert match_steps("plain", PAIR, "ccv1", Fixed(values)).cause == "depends on the seed"


def costs(rows: float) -> list[Cost]:
    """Switch takes thrice as long as CLASP and does not slow down; projections onto all rows do, by a factor."""
    one, noise = np.ones(5), 1.0 + 0.01 * np.arange(5)
    own = Cost(one, 3.0 * noise, noise, 1.1 * one, noise, rows * one, np.array([10]), np.array([40]))
    return [own, own]


def test_costs_are_ratios_and_their_reason_is_measured() -> None:
    beside, growth, memory, _ = find_costs(costs(9.0)[0])
    assert beside.estimate == pytest.approx(naive_exp_jackknife(3.0 * (1.0 + 0.01 * np.arange(5)), np.ones(5)))
    assert (beside.answer, growth.answer, memory.answer) == ("agrees", "disagrees", "agrees")
    assert memory.figure == "4"
    verdicts = judge_costs(costs(9.0), (100, 5000))
    assert [own.summary for own in verdicts] == ["agrees", "disagrees", "agrees"]
    assert verdicts[1].note.startswith("Keeping all rows would make it so: ")
    assert judge_costs(costs(1.0), (100, 5000))[1].note.startswith("Keeping all rows is not what makes it so: ")


def naive_exp_jackknife(one: np.ndarray, other: np.ndarray) -> tuple[float, ...]:
    return tuple(np.exp(naive_jackknife(lambda a, b: np.log(a.mean() / b.mean()), one, other)))


# ---------------------------------------------------------------------------------------------------- the claims' runs


def test_all_claims_can_be_run() -> None:
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)
    assert all(claim.words and claim.source and claim.check.reading for claim in CLAIMS)
    settings = [(setting, claim.changes) for claim in CLAIMS for setting in claim.settings]
    settings += [(setting, (half_step, other_queue, other_gamma)) for _, setting in STEP_MATCHED]
    needed = set()
    for setting, changes in settings:
        for own in (setting, *(change(setting, 100) for change in changes)):
            if own is not None:
                needed |= {(own.problem, str(spec)) for spec in own.parts.values()}
    known = {}
    for name in {problem for problem, _ in needed}:
        (spec,) = parse(name)
        known[name] = problems.get(spec.target, **spec.options)
    for problem, label in needed:
        (algorithm,) = resolve(label)
        assert algorithm.label == label  # by which its results are found
        algorithm.build(known[problem], 100, known[problem].start(0, np.arange(1)))
    rows = {label for problem, label in needed if problem.startswith("olr")}
    assert {"clasp", "clasp:rows=worst", "recoo", "recoo:rows=worst", "switch", "switch:rows=worst"} <= rows
    assert {"olr", "olr:loss=squared", "olr-long", "svm", "tracking", "drone"} <= {problem for problem, _ in needed}


def test_changes_change_one_thing() -> None:
    worst = PAIR.with_options({"RECOO": {"rows": "worst"}, "CLASP": {"rows": "worst"}})
    labels = {name: str(spec) for name, spec in worst.parts.items()}
    assert labels == {"CLASP": "clasp:rows=worst", "RECOO": "recoo:rows=worst"}
    back = other_rows(worst, 10)
    assert back is not None
    assert (back.parts, back.label) == (PAIR.parts, "CLASP and RECOO use all rows")
    for change, expected in ((other_queue, "recoo:queue=before"), (other_gamma, "recoo:epsilon=-0.4995")):
        changed = change(PAIR)
        assert (str(changed.parts["CLASP"]), str(changed.parts["RECOO"])) == ("clasp", expected)
        assert change(changed).parts == PAIR.parts
    assert getattr(other_rows(PAIR.only("CLASP")), "label", None) == "CLASP uses the largest row"
    wine = Setting("wine", "svm", {"CLASP": Spec("clasp", {}), "AdaGrad": Spec("adagrad", {})})
    assert other_rows(wine) is None  # one row
    assert adagrad_constants(wine) is None  # text and code have the same
    assert other_gamma(PAIR).label == "RECOO has γ_t = t^0.0005"
    assert other_gamma(other_gamma(PAIR)).label == "RECOO has γ_t = t^0.6"


STEPS = {"Half": Spec("clasp", {"scale": 0.5}), "Whole": Spec("clasp", {})}
SMALL = (
    Claim(
        "like RECOO",
        "section 0",
        "CLASP is like RECOO.",
        Similar("ccv1", "CLASP", "RECOO"),
        (PAIR,),
        (half_step, lambda setting, rounds: None),
    ),
    Claim(
        "rate",
        "theorem 0",
        "CCV₂ grows slowly.",
        GrowsAtMost("ccv2", "CLASP"),
        (Setting("drone", "drone", {"CLASP": Spec("clasp", {"steps": "strongly-convex"})}),),
    ),
    Claim(
        "rate of RECOO",
        "theorem 0",
        "CCV₂ shrinks.",
        GrowsAtMost("ccv2", "RECOO", Rate(-1.0)),
        (Setting("olr", "olr", {"RECOO": Spec("recoo", {})}),),
        (more_rounds,),
        Note(
            Lower("ccv1", "Half", "Whole"), Setting("steps", "olr", STEPS), "Half a step has a CCV₁ lower by {figure}."
        ),
    ),
    Claim(
        "bound",
        "theorem 0",
        "The regret is bounded.",
        WithinBound("regret", "CLASP"),
        (Setting("drone", "drone", {"CLASP": Spec("clasp", {"steps": "strongly-convex"})}),),
    ),
    Claim("empty", "section 0", "Infeasible.", Empty(), (Setting("wine", "svm", {"CLASP": Spec("clasp", {})}),)),
)


def test_the_command_writes_a_page_of_what_it_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "CLAIMS", SMALL)
    monkeypatch.setattr(evaluate, "STEP_MATCHED", (("regression", PAIR),))
    monkeypatch.setattr(cost, "_REPETITIONS", 2)
    out, folder = tmp_path / "docs" / "page.md", tmp_path / "chunks"
    arguments = ["verdicts", "--trials", "6", "--seeds", "2", "--rounds", "20", "--jobs", "1", "--out", str(out)]
    done = CliRunner().invoke(app, [*arguments, "--folder", str(folder)])
    assert done.exit_code == 0, done.output
    assert "like RECOO: " in done.stdout
    assert "olr: clasp 6/6 trials" in done.stderr
    text = out.read_text(encoding="utf-8")
    assert "`cocopt verdicts --trials 6 --seeds 2 --rounds 20`" in text
    # the figures again, from `run` and by loops
    results = [cocopt.run("olr", ["clasp", "clasp:scale=0.5", "recoo"], 6, 20, seed, jobs=1) for seed in (0, 1)]
    finals = {
        label: np.concatenate([result.finals(label)["ccv1"] for result in results]) for label in results[0].algorithms
    }
    for one, other in (("clasp", "recoo"), ("clasp:scale=0.5", "recoo"), ("clasp", "clasp:scale=0.5")):
        value, low, high = naive_exp_jackknife(finals[one], finals[other])
        assert f"{value:.4g} ({low:.4g} to {high:.4g})" in text
    half = stats.ttest_rel(finals["clasp"], finals["clasp:scale=0.5"])
    low, high = half.confidence_interval(0.95)
    mean = np.mean(finals["clasp"] - finals["clasp:scale=0.5"])
    assert f"Half a step has a CCV₁ lower by {mean:.4g} ({low:.4g} to {high:.4g})." in text
    longer = np.concatenate([cocopt.run("olr", "recoo", 3, 400, k, jobs=1).curves("recoo")["ccv2"] for k in (0, 1)])
    at = np.searchsorted(recorded_rounds(400)[0], T := recorded_rounds(400)[1][-3:])
    slope = np.polyfit(np.log(T), np.log(longer.mean(axis=0)[at]), 1)[0]
    changed = "the run has 20 times the rounds (and a fifth of the trials)"
    assert f"| {changed} | exponent of CCV₂, at most that of T^(-1) | {slope:.3f} (" in text
    drone = [cocopt.run("drone", "clasp:steps=strongly-convex", 6, 20, seed, jobs=1) for seed in (0, 1)]
    T, label = drone[0].checkpoints, "clasp:steps=strongly-convex"
    curves = np.concatenate([r.curves(label)["ccv2"][:, np.searchsorted(r.points, T)] for r in drone])[:, -3:]
    slope = np.polyfit(np.log(T[-3:]), np.log(curves.mean(axis=0)), 1)[0]
    assert f"{slope:.3f} (" in text
    bound = 6.0**2 / 2.0 * (1.0 + np.log(T))  # (L_f²/2m)(1 + ln T), L_f = 6, m = 1
    largest = max((r.regret(label) / bound).max() for r in drone)
    assert f"at most {largest:.3f}".replace("-", "−") in text
    # an interruption costs nothing: the second run finds all chunks, and the page differs in times alone
    stored = {path: path.stat().st_mtime_ns for path in folder.rglob("*.npz")}
    again = CliRunner().invoke(app, [*arguments, "--folder", str(folder), "--quiet"])
    assert (again.exit_code, again.output) == (0, "")
    assert stored == {path: path.stat().st_mtime_ns for path in folder.rglob("*.npz")}
    assert without_costs(out.read_text(encoding="utf-8")) == without_costs(text)


def without_costs(text: str) -> list[str]:
    """The lines of a page, without those about what Switch costs."""
    return [line for line in text.partition("### Switch: a round costs more")[0].splitlines() if "time per" not in line]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--trials", "2"], "trials: expected at least 3"),
        (["--seeds", "0"], "seeds: expected a positive integer"),
        (["--rounds", "10"], "rounds: expected at least 20"),
    ],
)
def test_wrong_arguments_are_named(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["verdicts", *arguments, "--out", str(tmp_path / "page.md")])
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (tmp_path / "page.md").exists()


def test_runs_without_a_theorem_and_without_round_1() -> None:
    sample = Setting("no theorem", "svm", {"CLASP": Spec("clasp", {}), "RECOO": Spec("recoo", {"epsilon": -0.4995})})
    runs = Runs(3, 1, 20, {"jobs": 1, "progress": False})
    runs.prepare([sample])
    curve = cocopt.run("svm", "clasp", 3, 20, 0, jobs=1, regret=False).curves("clasp")["ccv2"]
    later = runs.sample(sample).final("CLASP", "later_ccv2")
    np.testing.assert_allclose(later, [trial[-1] - trial[0] for trial in curve], rtol=1e-12)
    with pytest.raises(InvalidInput, match="no bound is proved"):
        WithinBound("ccv2", "CLASP").find(runs.sample(sample))
    with pytest.raises(InvalidInput, match="no rate is proved"):
        GrowsAtMost("ccv2", "RECOO").find(runs.sample(sample))


def test_the_page_in_the_docs_is_about_these_claims() -> None:
    text = PAGE.read_text(encoding="utf-8")
    headings = re.findall(r"^### (.*)$", text, re.M)
    costs_of_switch = [own.name for own in judge_costs(costs(1.0), (1, 1))]
    assert headings == [*(claim.name for claim in CLAIMS), *costs_of_switch]
    for claim in CLAIMS:
        assert claim.words in text
        assert all(f"| {setting.label} |" in text for setting in claim.settings)

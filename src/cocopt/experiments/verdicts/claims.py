"""The claims that the paper makes about its experiments and by its theorems, in our words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cocopt.algorithms.facts import Rate
from cocopt.experiments.specs import Spec
from cocopt.experiments.verdicts.checks import (
    Check,
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
from cocopt.experiments.verdicts.settings import (
    CODE_GAMMA,
    Change,
    Setting,
    adagrad_constants,
    adagrad_weight,
    half_step,
    more_rounds,
    other_gamma,
    other_queue,
    other_rows,
    persistent,
    switch_constants,
)

__all__ = ["CLAIMS", "STEP_MATCHED", "Claim", "Note"]


@dataclass(frozen=True)
class Note:
    """A measured fact that explains a verdict; it is shown only if its check agrees with every seed.

    Attributes
    ----------
    check : Check
    setting : Setting
    words : str
        With {figure} where the figure stands.
    """

    check: Check
    setting: Setting
    words: str


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, and how it is tested.

    Attributes
    ----------
    name : str
        A few words for the table.
    source : str
        Where the paper says so.
    words : str
        The claim, in our words.
    check : Check
    settings : sequence of Setting
        Where it is tested; the first is the paper's text.
    changes : sequence of Change
        What may be the reason if it does not agree.
    note : Note, optional
    """

    name: str
    source: str
    words: str
    check: Check
    settings: Sequence[Setting]
    changes: Sequence[Change] = ()
    note: Note | None = None


_SQUARED, _CODE = "loss=squared", "loss=squared,noise=truncated,constants=authors"


def _regression(problem: str) -> tuple[Setting, ...]:
    """Text and code; both losses; both row modes."""
    plain = {"CLASP": Spec("clasp", {}), "RECOO": Spec("recoo", {})}
    text = Setting("text, all rows", problem, {**plain, "AdaGrad": Spec("adagrad", {}), "Switch": Spec("switch", {})})
    worst: dict[str, dict[str, str | float]] = {name: {"rows": "worst"} for name in ("CLASP", "RECOO", "Switch")}
    code: dict[str, dict[str, str | float]] = {
        **worst,
        "RECOO": {"rows": "worst", "queue": "before", "epsilon": CODE_GAMMA},
    }
    of = text.with_options
    return (
        text,
        Setting("text, largest row", problem, of(worst).parts),
        Setting("squared loss, all rows", f"{problem}:{_SQUARED}", text.parts),
        Setting("squared loss, largest row", f"{problem}:{_SQUARED}", of(worst).parts),
        Setting("the authors' code", f"{problem}:{_CODE}", of(code).parts),
    )


def _only(settings: Sequence[Setting], *names: str) -> tuple[Setting, ...]:
    return tuple(setting.only(*names) for setting in settings)


def _clasp(label: str, problem: str, **options: float | str) -> Setting:
    return Setting(label, problem, {"CLASP": Spec("clasp", dict(sorted(options.items())))})


_SHORT, _LONG = _regression("olr"), _regression("olr-long")
_SVM = Setting("text", "svm", {"CLASP": Spec("clasp", {}), "RECOO": Spec("recoo", {}), "AdaGrad": Spec("adagrad", {})})
_SVM_CODE = Setting(
    "RECOO as in the authors' regression",
    "svm",
    _SVM.with_options({"RECOO": {"queue": "before", "epsilon": CODE_GAMMA}}).parts,
)
_WINES = (_SVM, _SVM_CODE)

_PROBLEMS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("tracking", "tracking", {}),
    ("drone, all rows", "drone", {}),
    ("drone, largest row", "drone", {"rows": "worst"}),
)
_CONVEX = tuple(
    _clasp(f"{label}, β = {beta}", problem, beta=beta, **options)
    for label, problem, options in _PROBLEMS
    for beta in (0.25, 0.5, 0.75)
)
_STRONG = tuple(
    _clasp(label, problem, steps="strongly-convex", **options)
    for label, problem, options in (*_PROBLEMS, ("tracking, limits shown rarely", "tracking:limits=rarely", {}))
)
_BETAS = tuple(
    Setting(
        label,
        problem,
        {f"β = {beta}": Spec("clasp", {"beta": beta, **options}) for beta in (0.5, 0.75)},
    )
    for label, problem, options in (
        ("olr, all rows", "olr", {}),
        ("olr, largest row", "olr", {"rows": "worst"}),
        *_PROBLEMS,
    )
)
_PERSISTENT = tuple(
    Setting(label, "olr", {"CLASP": Spec("clasp", {"window": None, **options})})
    for label, options in (("all rows", {}), ("largest row", {"rows": "worst"}))
)
_PAIR = ("CLASP", "RECOO")
_AGAINST_RECOO = (half_step, other_queue, other_gamma, other_rows)
_ADAGRAD = (adagrad_constants, adagrad_weight)

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "AdaGrad: lowest loss",
        "section 7.1, figure 1",
        "Of the four methods AdaGrad has the lowest cumulative loss on the regression.",
        Lowest("loss", "AdaGrad"),
        _SHORT,
        _ADAGRAD,
    ),
    Claim(
        "AdaGrad: far larger CCV₁",
        "section 7.1, figure 1",
        "AdaGrad pays for its loss with violations far larger than those of the others, in CCV₁ …",
        MuchLarger("ccv1", "AdaGrad"),
        _SHORT,
        _ADAGRAD,
    ),
    Claim(
        "AdaGrad: far larger CCV₂",
        "section 7.1, figure 1",
        "… and in CCV₂.",
        MuchLarger("ccv2", "AdaGrad"),
        _SHORT,
        _ADAGRAD,
    ),
    Claim(
        "Switch: lowest CCV₁",
        "section 7.1, figure 1",
        "Switch has the smallest violations of all, in CCV₁ …",
        Lowest("ccv1", "Switch"),
        _SHORT,
        (switch_constants, persistent, other_rows),
    ),
    Claim(
        "Switch: lowest CCV₂",
        "section 7.1, figure 1",
        "… and in CCV₂.",
        Lowest("ccv2", "Switch"),
        _SHORT,
        (switch_constants, persistent, other_rows),
    ),
    Claim(
        "CLASP like RECOO in CCV₁",
        "section 7.1, figure 1",
        "CLASP keeps CCV₁ about where RECOO keeps it.",
        Similar("ccv1", *_PAIR),
        _SHORT,
        _AGAINST_RECOO,
    ),
    Claim(
        "CLASP like RECOO in CCV₂",
        "section 7.1, figure 1",
        "CLASP keeps CCV₂ about where RECOO keeps it.",
        Similar("ccv2", *_PAIR),
        _SHORT,
        _AGAINST_RECOO,
    ),
    Claim(
        "CLASP: CCV₂ near the best",
        "section 7.1",
        "In CCV₂, CLASP can compete with the best of the other methods.",
        Competitive("ccv2", "CLASP"),
        _SHORT,
        (half_step, other_rows, persistent),
    ),
    Claim(
        "CLASP: CCV₂ below T",
        "section 7.1",
        "In practice, too, CLASP's squared violation grows more slowly than the number of rounds …",
        GrowsAtMost("ccv2", "CLASP", Rate(1.0)),
        _LONG,
    ),
    Claim(
        "CLASP: regret below T",
        "section 7.1",
        "… while its regret stays reasonable, which we read as: grows more slowly than the number of rounds.",
        GrowsAtMost("regret", "CLASP", Rate(1.0)),
        _SHORT,
    ),
    Claim(
        "many rounds, AdaGrad: lowest loss",
        "appendix A.4.1, figure 2",
        "Over many rounds the picture stays the same: AdaGrad has the lowest loss …",
        Lowest("loss", "AdaGrad"),
        _LONG,
        _ADAGRAD,
    ),
    Claim(
        "many rounds, AdaGrad: far larger CCV₁",
        "appendix A.4.1, figure 2",
        "… and far larger violations, in CCV₁ …",
        MuchLarger("ccv1", "AdaGrad"),
        _LONG,
        _ADAGRAD,
    ),
    Claim(
        "many rounds, AdaGrad: far larger CCV₂",
        "appendix A.4.1, figure 2",
        "… and in CCV₂.",
        MuchLarger("ccv2", "AdaGrad"),
        _LONG,
        _ADAGRAD,
    ),
    Claim(
        "many rounds, CLASP like RECOO in CCV₁",
        "appendix A.4.1, figure 2",
        "Over many rounds CLASP and RECOO are very similar in CCV₁ …",
        Similar("ccv1", *_PAIR),
        _LONG,
        _AGAINST_RECOO,
    ),
    Claim(
        "many rounds, CLASP like RECOO in CCV₂",
        "appendix A.4.1, figure 2",
        "… and in CCV₂.",
        Similar("ccv2", *_PAIR),
        _LONG,
        _AGAINST_RECOO,
    ),
    Claim(
        "many rounds, CLASP varies less",
        "appendix A.4.1, figure 2",
        "Over many rounds CLASP's CCV₂ varies less from trial to trial than RECOO's.",
        LessSpread("ccv2", "CLASP"),
        _only(_LONG, *_PAIR),
        _AGAINST_RECOO,
    ),
    Claim(
        "many rounds, CLASP varies less after round 1",
        "appendix A.4.1, figure 2",
        "The same without the violation of round 1, which is that of the common start point and of no method.",
        LessSpread("later_ccv2", "CLASP"),
        _only(_LONG, *_PAIR),
        _AGAINST_RECOO,
    ),
    Claim(
        "wine: no action satisfies all",
        "appendix A.4.2, remark",
        "On the wines no action satisfies all constraints, so that Switch cannot run.",
        Empty(),
        (_SVM,),
    ),
    Claim(
        "wine, CLASP: lowest CCV₁",
        "appendix A.4.2, figure 3",
        "On the support vector machine CLASP has the lowest CCV₁ …",
        Lowest("ccv1", "CLASP"),
        _WINES,
        (half_step, adagrad_weight),
    ),
    Claim(
        "wine, CLASP: lowest CCV₂",
        "appendix A.4.2, figure 3",
        "… and the lowest CCV₂.",
        Lowest("ccv2", "CLASP"),
        _WINES,
        (half_step, adagrad_weight),
    ),
    Claim(
        "wine, CLASP: CCV₁ varies least",
        "appendix A.4.2, figure 3",
        "CLASP also varies least from trial to trial, in CCV₁ …",
        LessSpread("ccv1", "CLASP"),
        _WINES,
        (half_step, adagrad_weight),
    ),
    Claim(
        "wine, CLASP: CCV₂ varies least",
        "appendix A.4.2, figure 3",
        "… and in CCV₂.",
        LessSpread("ccv2", "CLASP"),
        _WINES,
        (half_step, adagrad_weight),
    ),
    Claim(
        "wine, CLASP: wider gap in CCV₂",
        "appendix A.4.2, figure 3",
        "CLASP's advantage is more marked in CCV₂ than in CCV₁.",
        WiderGap("CLASP"),
        _WINES,
        (half_step, adagrad_weight),
    ),
    Claim(
        "theorem 1: rate of the regret",
        "theorem 1",
        "With steps t^(−β) and convex losses CLASP's regret is O(T^max(β, 1−β)).",
        GrowsAtMost("regret", "CLASP"),
        _CONVEX,
    ),
    Claim(
        "theorem 1: rate of CCV₂",
        "theorem 1",
        "With these steps its CCV₂ is O(T^(1−β)).",
        GrowsAtMost("ccv2", "CLASP"),
        _CONVEX,
        (more_rounds,),
    ),
    Claim(
        "theorem 1: bound on the regret",
        "theorem 1",
        "The regret stays below the theorem's bound; the constants are those that its proof gives.",
        WithinBound("regret", "CLASP"),
        _CONVEX,
    ),
    Claim(
        "theorem 1: bound on CCV₂",
        "theorem 1",
        "CCV₂ stays below the theorem's bound; the constants are derived here.",
        WithinBound("ccv2", "CLASP"),
        _CONVEX,
    ),
    Claim(
        "theorem 2: rate of the regret",
        "theorem 2",
        "With steps 1/(m t) and strongly convex losses CLASP's regret is O(log T).",
        GrowsAtMost("regret", "CLASP"),
        _STRONG,
    ),
    Claim(
        "theorem 2: rate of CCV₂",
        "theorem 2",
        "With these steps its CCV₂ is O(log T).",
        GrowsAtMost("ccv2", "CLASP"),
        _STRONG,
        (more_rounds,),
    ),
    Claim(
        "theorem 2: bound on the regret",
        "theorem 2",
        "The regret stays below the theorem's bound; the constants are those that its proof gives.",
        WithinBound("regret", "CLASP"),
        _STRONG,
    ),
    Claim(
        "theorem 2: bound on CCV₂",
        "theorem 2",
        "CCV₂ stays below the theorem's bound; the constants are derived here.",
        WithinBound("ccv2", "CLASP"),
        _STRONG,
    ),
    Claim(
        "several rows: CCV₂ of all rows",
        "section 6",
        "Where a round has several rows, projecting onto the largest one keeps the rates, also of CCV₂ summed over all "
        "rows.",
        GrowsAtMost("ccv2_sum", "CLASP"),
        tuple(setting for setting in (*_CONVEX, *_STRONG) if "largest row" in setting.label),
        (more_rounds,),
    ),
    Claim(
        "persistent constraints: CCV₂^hist is CCV₂",
        "section 6",
        "If CLASP projects onto all constraints so far, the violation of all of them is that of the last one: "
        "CCV₂^hist = CCV₂.",
        SameMetric("ccv2_hist", "ccv2", "CLASP"),
        _PERSISTENT,
        (other_rows,),
    ),
    Claim(
        "β: smaller steps violate less",
        "section 8",
        "β tunes a trade-off: with a larger β, from ½ on, CCV₂ is smaller …",
        Lower("ccv2", "β = 0.75", "β = 0.5"),
        _BETAS,
    ),
    Claim(
        "β: and cost regret",
        "section 8",
        "… and the regret larger.",
        Lower("regret", "β = 0.5", "β = 0.75"),
        _BETAS,
        note=Note(
            Lower("regret", "1/(m t)", "β = 0.75"),
            Setting(
                "tracking",
                "tracking",
                {"1/(m t)": Spec("clasp", {"steps": "strongly-convex"}), "β = 0.75": Spec("clasp", {"beta": 0.75})},
            ),
            "On `tracking` smaller steps cost no regret: its losses are strongly convex, and with the steps 1/(m t) of "
            "theorem 2, which are smaller still, the regret is lower than with β = 0.75 by {figure}.",
        ),
    ),
)


#: where CLASP and RECOO are compared with the same step
STEP_MATCHED: tuple[tuple[str, Setting], ...] = (
    *((f"regression, {setting.label}", setting.only(*_PAIR)) for setting in _SHORT),
    *((f"many rounds, {setting.label}", setting.only(*_PAIR)) for setting in _LONG),
    *((f"wine, {setting.label}", setting.only(*_PAIR)) for setting in _WINES),
)

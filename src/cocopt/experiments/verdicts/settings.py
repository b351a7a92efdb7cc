"""What is run: a problem, and which configured algorithm plays each part in a claim; and single changes of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, TypeAlias

import numpy as np

from cocopt.arrays import Array
from cocopt.experiments.results import Result
from cocopt.experiments.specs import Spec, parse
from cocopt.problems import get

__all__ = [
    "CODE_GAMMA",
    "MANY",
    "Sample",
    "Setting",
    "adagrad_constants",
    "adagrad_weight",
    "half_step",
    "more_rounds",
    "other_gamma",
    "other_queue",
    "other_rows",
    "persistent",
    "switch_constants",
]

#: RECOO's ε with γ_t = t^(½+ε) = t^(ε'/2), ε' = 10⁻³: the weight in the authors' code, which hardly grows
CODE_GAMMA = -0.4995
MANY = 20
_DEFAULTS = {"rows": "all", "queue": "after", "epsilon": 0.1}


@dataclass(frozen=True)
class Setting:
    """A problem and the algorithms in their parts.

    Attributes
    ----------
    label : str
        Its name on the page.
    problem : str
        A description, as on the command line.
    parts : mapping
        From the names that the paper uses (CLASP, RECOO, ...) to descriptions.
    factor : int
        How many times the usual rounds.
    """

    label: str
    problem: str
    parts: Mapping[str, Spec]
    factor: int = 1

    @property
    def needs_regret(self) -> bool:
        """Whether the best fixed action is looked for; over many rounds no claim needs it, and it takes long."""
        return self.factor == 1 and not self.problem.startswith("olr-long")

    def with_options(self, changes: Mapping[str, Mapping[str, Any]]) -> Setting:
        """With other options for some parts."""
        parts = {}
        for name, spec in self.parts.items():
            options = {**spec.options, **changes.get(name, {})}
            # in one order and without defaults, so that the same algorithm has one description and runs once
            kept = {key: options[key] for key in sorted(options) if options[key] != _DEFAULTS.get(key, ...)}
            parts[name] = spec._replace(options=kept)
        return replace(self, parts=parts)

    def only(self, *names: str) -> Setting:
        """With these parts alone."""
        return replace(self, parts={name: self.parts[name] for name in names})


#: one thing that is done differently, to see whether a verdict depends on it: from a setting and the number of rounds
#: to the changed setting, whose label says in a clause what was changed; None where there is nothing to change
Change: TypeAlias = Callable[[Setting, int], Setting | None]


def half_step(setting: Setting, rounds: int = 0) -> Setting:
    """CLASP with the step of RECOO."""
    return replace(setting.with_options({"CLASP": {"scale": 0.5}}), label="CLASP takes half its step, which is RECOO's")


def persistent(setting: Setting, rounds: int = 0) -> Setting:
    """CLASP with all constraints so far."""
    changed = setting.with_options({"CLASP": {"window": None}})
    return replace(changed, label="CLASP keeps all earlier constraints (`window=none`)")


def other_queue(setting: Setting, rounds: int = 0) -> Setting:
    """RECOO with its queue updated at the other time."""
    now = setting.parts["RECOO"].options.get("queue", "after")
    then = "before" if now == "after" else "after"
    changed = setting.with_options({"RECOO": {"queue": then}})
    return replace(changed, label=f"RECOO updates its queue {then} the argmin")


def other_gamma(setting: Setting, rounds: int = 0) -> Setting:
    """RECOO with the weight of the theory for that of the authors' code, or the reverse."""
    slow = setting.parts["RECOO"].options.get("epsilon") == CODE_GAMMA
    changed = setting.with_options({"RECOO": {"epsilon": 0.1 if slow else CODE_GAMMA}})
    return replace(changed, label=f"RECOO has γ_t = t^{0.6 if slow else 0.0005}")


def other_rows(setting: Setting, rounds: int = 0) -> Setting | None:
    """All rows for the largest one, or the reverse."""
    if setting.problem == "svm":  # one row
        return None
    parts = {name: spec for name, spec in setting.parts.items() if name != "AdaGrad"}  # all it sees is the largest
    now = next(iter(parts.values())).options.get("rows", "all")
    changed = setting.with_options({name: {"rows": "worst" if now == "all" else "all"} for name in parts})
    *first, last = parts
    who = f"{', '.join(first)} and {last} use" if first else f"{last} uses"
    return replace(changed, label=f"{who} {'the largest row' if now == 'all' else 'all rows'}")


def adagrad_constants(setting: Setting, rounds: int = 0) -> Setting | None:
    """AdaGrad with the authors' G and D, or with true ones where it has the authors'."""
    return _other_constants("AdaGrad", setting)


def switch_constants(setting: Setting, rounds: int = 0) -> Setting | None:
    """Switch with the authors' G and D, or with true ones where it has the authors'."""
    return _other_constants("Switch", setting)


def _other_constants(part: str, setting: Setting) -> Setting | None:
    if setting.problem == "svm":
        return None
    given, words = {"lipschitz": 100.0, "diameter": sqrt(2.0)}, "G = 100 and D = √2"
    if "constants=authors" in setting.problem:
        (true,) = parse(setting.problem.replace(",constants=authors", ""))
        known = get(true.target, **true.options).algorithm_defaults
        given, words = {name: known[name] for name in given}, "true G and D"
    return replace(setting.with_options({part: given}), label=f"{part} is given {words}")


def adagrad_weight(setting: Setting, rounds: int) -> Setting:
    """AdaGrad with violations that count from the start."""
    changed = setting.with_options({"AdaGrad": {"weight": rounds**-0.5}})
    return replace(changed, label="AdaGrad has V = T^(−½), with which violations count from the start")


def more_rounds(setting: Setting, rounds: int = 0) -> Setting:
    """Many times the rounds, with fewer trials."""
    label = f"the run has {MANY} times the rounds (and a fifth of the trials)"
    return replace(setting, factor=MANY, label=label)


class Sample:
    """What the parts of a setting did, with one seed or with several.

    Parameters
    ----------
    setting : Setting
    results : sequence of Result
        One per seed; the trials of all of them are taken together.
    """

    def __init__(self, setting: Setting, results: list[Result]) -> None:
        self.setting, self.results = setting, results

    def label(self, part: str) -> str:
        """The algorithm's label in the results."""
        return str(self.setting.parts[part])

    def others(self, part: str) -> list[str]:
        """All other parts."""
        return [name for name in self.setting.parts if name != part]

    def final(self, part: str, metric: str) -> Array:
        """A metric after the last round, (trials,); "later_ccv2" leaves out the violation of round 1."""
        label = self.label(part)
        if metric == "later_ccv2":
            curves = [result.curves(label)["ccv2"] for result in self.results]
            return np.concatenate([curve[:, -1] - curve[:, 0] for curve in curves])
        return np.concatenate([result.finals(label)[metric] for result in self.results])

    def curve(self, part: str, metric: str) -> tuple[Array, Array]:
        """The checkpoints, and a metric there, (trials, checkpoints)."""
        label, first = self.label(part), self.results[0]
        if metric == "regret":
            values = [result.regret(label) for result in self.results]
        else:
            at = np.searchsorted(first.points, first.checkpoints)
            values = [result.curves(label)[metric][:, at] for result in self.results]
        return first.checkpoints, np.concatenate(values)

"""What is run: a problem, and which configured algorithm plays each part in a claim; and single changes of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from cocopt.arrays import Array
from cocopt.experiments.results import Result
from cocopt.experiments.specs import Spec

__all__ = ["CODE_GAMMA", "Change", "Sample", "Setting"]

#: RECOO's ε with γ_t = t^(½+ε) = t^(ε'/2), ε' = 10⁻³: the weight in the authors' code, which hardly grows
CODE_GAMMA = -0.4995
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
    """

    label: str
    problem: str
    parts: Mapping[str, Spec]

    @property
    def needs_regret(self) -> bool:
        """Whether the best fixed action is looked for; over 5000 rounds no claim needs it, and it takes long."""
        return not self.problem.startswith("olr-long")

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


@dataclass(frozen=True)
class Change:
    """One thing that is done differently, to see whether a verdict depends on it.

    Attributes
    ----------
    label : str
        In words.
    apply : callable
        From a setting and the number of rounds to the changed setting; None where there is nothing to change.
    """

    label: str
    apply: Callable[[Setting, int], Setting | None]


def _of_clasp(label: str, **options: Any) -> Change:
    return Change(label, lambda setting, rounds: setting.with_options({"CLASP": options}))


def _change_queue(setting: Setting, rounds: int) -> Setting:
    now = setting.parts["RECOO"].options.get("queue", "after")
    return setting.with_options({"RECOO": {"queue": "before" if now == "after" else "after"}})


def _change_gamma(setting: Setting, rounds: int) -> Setting:
    now = setting.parts["RECOO"].options.get("epsilon")
    return setting.with_options({"RECOO": {"epsilon": 0.1 if now == CODE_GAMMA else CODE_GAMMA}})


def _change_rows(setting: Setting, rounds: int) -> Setting | None:
    if setting.problem == "svm":  # one row
        return None
    parts = {name: spec for name, spec in setting.parts.items() if name != "AdaGrad"}  # all it sees is the largest
    now = next(iter(parts.values())).options.get("rows", "all")
    return setting.with_options({name: {"rows": "worst" if now == "all" else "all"} for name in parts})


def _change_constants(setting: Setting, rounds: int) -> Setting | None:
    """The constants that AdaGrad and Switch are given: the authors' ones, or true ones."""
    if setting.problem == "svm":
        return None
    if "constants=authors" in setting.problem:
        return replace(setting, problem=setting.problem.replace(",constants=authors", ""))
    given = {"lipschitz": 100.0, "diameter": sqrt(2.0)}
    return setting.with_options(dict.fromkeys(("AdaGrad", "Switch"), given))


def _change_weight(setting: Setting, rounds: int) -> Setting:
    return setting.with_options({"AdaGrad": {"weight": rounds**-0.5}})


HALF_STEP = _of_clasp("CLASP takes half its step, which is RECOO's", scale=0.5)
PERSISTENT = _of_clasp("CLASP keeps all earlier constraints (`window=none`)", window=None)
QUEUE = Change("RECOO updates its queue at the other time", _change_queue)
GAMMA = Change("RECOO has the other γ (1 for t^0.6, or the reverse)", _change_gamma)
ROWS = Change("the other row mode", _change_rows)
CONSTANTS = Change("AdaGrad and Switch get the other G and D", _change_constants)
WEIGHT = Change("AdaGrad has V = T^(−½), so that violations count from the start", _change_weight)


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

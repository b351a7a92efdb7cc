"""The comparators of an experiment: what the losses of the algorithms are compared with, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cocopt import hindsight
from cocopt.arrays import describe, positive_int
from cocopt.errors import InvalidInput
from cocopt.experiments.specs import parse, unknown_name
from cocopt.problems import Problem

__all__ = ["COMPARATORS", "HINDSIGHT", "Comparator", "resolve_comparators"]

#: what the search for the best fixed action is called where algorithms go by their labels
HINDSIGHT = "best action in hindsight"


@dataclass(frozen=True)
class Comparator:
    """A comparator of `cocopt.hindsight`, with the options that the user chose.

    Attributes
    ----------
    name : str
        "static", "dynamic", "piecewise" or "expectation".
    options : dict
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def task(self) -> str:
        """What the search is called where algorithms go by their labels."""
        return HINDSIGHT if self.name == "static" else f"{self.name} comparator"

    @property
    def metric(self) -> str:
        """The name of the regret against it."""
        return "regret" if self.name == "static" else f"regret_{self.name}"

    @property
    def identity(self) -> Any:
        """What distinguishes it from every other one, as JSON."""
        return self.task if not self.options else {"comparator": self.name, "options": dict(self.options)}

    def check(self, rounds: int) -> None:
        """Raises an error that names the option at fault, if one is wrong for this number of rounds."""
        if self.name == "piecewise":
            _breakpoints(rounds, **self.options)
        elif self.options.get("rows", "each") not in ("each", "max"):
            raise InvalidInput(f'{self.name}: rows: expected "each" or "max", got {describe(self.options["rows"])}')

    def find(self, problem: Problem, seed: int, trials: Any, rounds: int, checkpoints: Sequence[int]) -> Any:
        """What `cocopt.hindsight` finds for these trials, as arrays by name; the first axis is the trials."""
        return _FIND[self.name](problem, seed, trials, rounds, checkpoints, **self.options)


def _static(problem: Problem, seed: int, trials: Any, rounds: int, checkpoints: Any) -> Any:
    return hindsight.best_fixed(problem, seed, trials, checkpoints)._asdict()


def _dynamic(problem: Problem, seed: int, trials: Any, rounds: int, checkpoints: Any) -> Any:
    return hindsight.best_dynamic(problem, seed, trials, rounds)._asdict()


def _expectation(problem: Problem, seed: int, trials: Any, rounds: int, checkpoints: Any, *, rows: Any = "each") -> Any:
    return hindsight.best_in_expectation(problem, seed, trials, checkpoints, rows=rows)._asdict()


def _piecewise(
    problem: Problem,
    seed: int,
    trials: Any,
    rounds: int,
    checkpoints: Any,
    **options: Any,
) -> Any:
    ends, switches = _breakpoints(rounds, **options)
    found = hindsight.best_piecewise(problem, seed, trials, checkpoints, breakpoints=ends, switches=switches)
    return found._asdict()


def _breakpoints(
    rounds: int, *, blocks: Any = None, breakpoints: Any = None, switches: Any = None
) -> tuple[list[int], int | None]:
    """The breakpoints, those between blocks of equal length or those given ("25+50+75"), and the switches."""
    if switches is not None and not (type(switches) is int and switches >= 0):
        raise InvalidInput(f"piecewise: switches: expected a non-negative integer, got {describe(switches)}")
    if (blocks is None) == (breakpoints is None):
        raise InvalidInput("piecewise: expected one of blocks and breakpoints (piecewise:blocks=4), got both or none")
    if breakpoints is None:
        count = positive_int("piecewise: blocks", blocks)
        if count > rounds:
            raise InvalidInput(f"piecewise: blocks: expected at most {rounds}, the number of rounds, got {count}")
        return [rounds * j // count for j in range(1, count)], switches
    parts = str(breakpoints).split("+")
    ends = [int(part) for part in parts if part.strip().isdecimal()]
    if len(ends) < len(parts) or ends != sorted({*ends}) or not 1 <= ends[0] <= ends[-1] < rounds:
        raise InvalidInput(
            f"piecewise: breakpoints: expected increasing rounds before the last, {rounds}, such as 25+50+75, "
            f"got {describe(breakpoints)}"
        )
    return ends, switches


_FIND: dict[str, Callable[..., Any]] = {
    "static": _static,
    "dynamic": _dynamic,
    "piecewise": _piecewise,
    "expectation": _expectation,
}
#: the names of all comparators
COMPARATORS = tuple(_FIND)
_OPTIONS: dict[str, tuple[str, ...]] = {
    "piecewise": ("blocks", "breakpoints", "switches"),
    "expectation": ("rows",),
}


def resolve_comparators(given: Any) -> list[Comparator]:
    """The comparators that a user names, each at most once.

    >>> from cocopt.experiments.comparators import resolve_comparators
    >>> [own.metric for own in resolve_comparators(["static", "piecewise:blocks=4"])]
    ['regret', 'regret_piecewise']
    """
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, Sequence):
        raise InvalidInput(f"comparators: expected names such as {COMPARATORS}, got {describe(given)}")
    found: list[Comparator] = []
    for text in given:
        specs = parse(text)
        if len(specs) != 1:
            raise InvalidInput(f"comparators: expected one comparator, got a sweep over {len(specs)}: {text}")
        name, options = specs[0]
        if name not in _FIND:
            raise unknown_name("comparator", name, _FIND)
        for option in options:
            if option not in _OPTIONS.get(name, ()):
                raise unknown_name(f"option of the comparator {name}", option, _OPTIONS.get(name, ()))
        if any(own.name == name for own in found):
            raise InvalidInput(f"comparators: expected each once, got {name} again")
        found.append(Comparator(name, options))
    return found

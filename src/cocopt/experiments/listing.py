"""Tables of everything that is registered, for ``cocopt list`` and the docs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from cocopt import registry
from cocopt.algorithms.facts import Facts
from cocopt.errors import InvalidInput
from cocopt.experiments.algorithms import needs, options

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Listing", "tables"]


class Listing(NamedTuple):
    """A table of texts.

    Examples
    --------
    >>> from cocopt.experiments.listing import Listing
    >>> print(Listing("Sets", ["set", "what it is"], [["Box", "an interval per coordinate"]]).markdown())
    ## Sets
    <BLANKLINE>
    | set | what it is |
    |---|---|
    | Box | an interval per coordinate |
    <BLANKLINE>
    """

    title: str
    header: list[str]
    rows: list[list[str]]

    def rich(self) -> Table:
        """For a terminal."""
        from rich.markup import escape
        from rich.table import Table

        table = Table(title=self.title, title_justify="left")
        for i, name in enumerate(self.header):
            table.add_column(name, overflow="fold", no_wrap=i == 0)
        for row in self.rows:
            table.add_row(*map(escape, row))
        return table

    def markdown(self) -> str:
        """For the docs."""
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        escaped = (" | ".join(cell.replace("|", "\\|") for cell in line) for line in lines)
        body = "\n".join(f"| {line} |" for line in escaped).replace("| --- ", "|---").replace("--- |", "---|")
        return f"## {self.title}\n\n{body}\n"


def tables(kind: str | None = None) -> Iterator[Listing]:
    """One table per kind, or that of one kind: algorithms, problems, sets, losses, constraints, steps."""
    if kind is not None and kind not in _TABLES:
        raise InvalidInput(f"kind: expected one of {', '.join(_TABLES)}, got {kind!r}")
    for name, makers in _TABLES.items():
        if kind in (None, name):
            yield from (make() for make in makers)


def _rates() -> Listing:
    rows = []
    for name, cls in registry.classes("algorithm").items():
        facts = cls.facts or _UNKNOWN
        proved = [str(rates or "none proved") for rates in (facts.convex, facts.strongly_convex)]
        rows.append([name, str(facts.year or ""), facts.constraints, *proved])
    header = ["algorithm", "year", "constraints", "rates for convex losses", "for strongly convex losses"]
    return Listing("Algorithms: what is proved", header, rows)


def _needs() -> Listing:
    rows = []
    for name, cls in registry.classes("algorithm").items():
        facts = cls.facts or _UNKNOWN
        needed = [*needs(cls), facts.assumes] if facts.assumes else needs(cls)
        rows.append([name, ", ".join(needed) or "nothing", facts.oracle])
    return Listing("Algorithms: what they need and do", ["algorithm", "needs", "work per round"], rows)


def _origins() -> Listing:
    rows = []
    for name, cls in registry.classes("algorithm").items():
        needed, facts = needs(cls), cls.facts or _UNKNOWN
        rows.append([name, ", ".join(own for own in options(cls) if own not in needed), facts.provenance])
    return Listing("Algorithms: options and provenance", ["algorithm", "options", "provenance"], rows)


_UNKNOWN = Facts(0, "", "")  # of an algorithm that says nothing about itself


def _problems() -> Listing:
    rows = []
    for name, cls in registry.classes("problem").items():
        problem = cls()
        chosen = [f"{key}={value}" for key, value in problem.options.items()]
        rows.append([name, str(problem.rounds), ", ".join(chosen), _first_line(cls)])
    return Listing("Problems", ["problem", "rounds", "options", "what it is"], rows)


def _classes(kind: str, title: str) -> Callable[[], Listing]:
    def make() -> Listing:
        rows = [[name, _first_line(cls)] for name, cls in registry.classes(kind).items()]
        return Listing(title, [kind, "what it is"], rows)

    return make


def _first_line(cls: type[Any]) -> str:
    line = (cls.__doc__ or " ").strip().partition("\n")[0].rstrip(".:")
    return re.sub(r"\[`([^`]*)`\]\[[^\]]*\]", r"\1", line)  # cross-references by their text


_TABLES: dict[str, tuple[Callable[[], Listing], ...]] = {
    "algorithms": (_rates, _needs, _origins),
    "problems": (_problems,),
    "sets": (_classes("set", "Sets"),),
    "losses": (_classes("loss", "Losses"),),
    "constraints": (_classes("constraint", "Constraints"),),
    "steps": (_classes("schedule", "Steps"),),
}

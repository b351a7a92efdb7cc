"""The speed that is aimed at in each cell, and the reasons for those that miss it (reasons.toml)."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from cells import Cell

REASONS = Path(__file__).with_name("reasons.toml")


class Target(NamedTuple):
    """At least so many times as fast as the best peer, or at most so many microseconds."""

    ratio: float | None = None
    microseconds: float | None = None

    def met(self, ratio: float | None, microseconds: float) -> bool:
        if self.microseconds is not None:
            return microseconds <= self.microseconds
        return self.ratio is None or (ratio is not None and ratio >= self.ratio)

    def share(self, ratio: float | None, microseconds: float) -> float:
        """How much of the target is reached; infinite where there is nothing to compare with."""
        if self.microseconds is not None:
            return self.microseconds / microseconds
        return float("inf") if ratio is None or self.ratio is None else ratio / self.ratio

    def __str__(self) -> str:
        return f"≤ {self.microseconds:g} µs" if self.microseconds is not None else f"≥ {self.ratio:g}"


#: groups, sets, constraints; the ratio of a batch of 100 in dimensions 10 to 100; that of one point at n = 10
RATIOS: list[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], float, float]] = [
    (("curved", "hinge prox"), ("box", "ball"), ("NormBall", "diagonal Quadratic"), 200, 4),
    (("curved", "hinge prox"), ("simplex",), ("NormBall",), 50, 3),
    (("curved", "hinge prox"), ("box", "simplex", "ball"), ("Quadratic", "SecondOrder"), 20, 2),
    (("curved",), ("l1ball", "ellipsoid"), ("affine", "NormBall"), 30, 3),
    (("curved",), ("box", "simplex"), ("NormBall + 8 rows", "Quadratic + 8 rows", "SecondOrder + 8 rows"), 10, 2),
    (("curved",), ("box",), ("diagonal Quadratic + 8 rows",), 10, 2),
]
#: single cells: by set and constraint or number of rows
SINGLE = {
    ("large", "ball", "NormBall"): Target(microseconds=25),  # 100, 1000 and 50 times the first version's speed
    ("large", "box", "NormBall"): Target(microseconds=35),
    ("large", "simplex", "NormBall"): Target(microseconds=1640),
    ("sparse", "box", "affine"): Target(ratio=1 / 1.5),
    ("black box", "box", "smooth Function"): Target(ratio=1 / 5),
    ("black box", "box", "ℓ1 Function"): Target(microseconds=50_000),
    ("black box", "simplex", "ℓ1 Function"): Target(microseconds=50_000),
    ("black box", "box", "from_cvxpy"): Target(ratio=1),
}
STREAM = {(1, "CLASP, all rows"): 2.0, (100, "CLASP, all rows"): 6.0, (100, "CLASP, worst row"): 10.0}
LEAST_BATCH, LEAST_SINGLE = 0.7, 0.5  # where nothing else is said
CONIC_SMALL, CONIC_SINGLE = 0.3, 0.25  # other conic cells: exact, where Clarabel's default errs by 1e-5


def target(cell: Cell) -> Target:
    """The target of a cell."""
    single = SINGLE.get((cell.group, cell.set, cell.constraint.partition(",")[0]))
    if single is not None:
        return single
    if cell.group == "stream":
        return Target(STREAM[cell.batch, cell.constraint])
    for groups, sets, kinds, batch, one in RATIOS:
        if cell.group in groups and cell.set in sets and cell.constraint in kinds:
            if cell.batch > 1 and 10 <= cell.n <= 100:
                return Target(batch)
            if cell.batch == 1 and cell.n == 10:
                return Target(one)
    if cell.group == "conic" and cell.batch == 1:
        return Target(CONIC_SINGLE)
    if cell.group == "conic" and cell.n <= 30:
        return Target(CONIC_SMALL)
    return Target(LEAST_BATCH if cell.batch > 1 else LEAST_SINGLE)


def reasons(path: Path = REASONS) -> list[dict[str, Any]]:
    """Entries with ``cells``, patterns of cell names, and ``reason``."""
    entries: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8")).get("reason", [])
    return entries


def reason(name: str, entries: list[dict[str, Any]]) -> tuple[int, str] | None:
    """The number and the text of the first entry that concerns a cell."""
    for number, entry in enumerate(entries, 1):
        if any(fnmatchcase(name, pattern) for pattern in entry["cells"]):
            return number, entry["text"]
    return None

"""The cells of the table: which problems are measured, at which sizes, and what is timed in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import table_problems
from conic_forms import Array
from peers import QP_PEERS, Call, by_clarabel
from table_problems import SINGLES, WEIGHT, Problems

import cocopt

AFFINE_SETS = ("box", "ball", "simplex", "polyhedron", "product")
DIMENSIONS, ROWS, CROWDED_ROWS, BATCHES = (2, 10, 30, 100, 300), (1, 4, 20, 100, 300), (20, 100, 300), (1, 100)
SPARSE_DIM, SPARSE_DENSITY, SPARSE_ROWS = 10_000, 0.001, (50, 100, 200, 500)
SMALL, USUAL, LARGE, HUGE = (10, 100), (10, 30, 100, 300), (10, 30, 100, 300, 1000), 10_000

#: set, constraint and dimensions of each group with rows that are not affine
CURVED = [
    ("curved", ("box", "ball", "simplex"), ("NormBall",), LARGE),
    ("curved", ("box",), ("diagonal Quadratic",), LARGE),
    ("curved", ("box", "simplex", "ball"), ("Quadratic", "SecondOrder"), LARGE),
    ("curved", ("l1ball", "ellipsoid"), ("affine", "NormBall"), USUAL),
    ("curved", ("box", "simplex"), ("NormBall + 8 rows", "Quadratic + 8 rows", "SecondOrder + 8 rows"), USUAL),
    ("curved", ("box",), ("diagonal Quadratic + 8 rows",), USUAL),
    ("hinge prox", ("box", "ball", "simplex"), ("NormBall", "Quadratic"), SMALL),
    ("hinge prox", ("box",), ("diagonal Quadratic", "SecondOrder"), SMALL),
    ("conic", ("box", "simplex"), ("3 curved rows",), USUAL),
    ("conic", ("product with ball",), ("NormBall", "Quadratic"), USUAL),
    ("conic", ("box", "simplex"), ("Norm1", "NormInf", "CVaR", "LogSumExp"), USUAL),
    ("conic", ("simplex",), ("Quadratic + Norm1", "Quadratic + Norm1 + CVaR"), USUAL),  # limits of a portfolio
]
#: constraints written in CVXPY: expression ≤ 0 of the variable x, a center and a radius
CVXPY_KINDS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "from_cvxpy": lambda cp, x, center, radius: cp.norm(x - center) - radius,
    "from_cvxpy, log-sum-exp": lambda cp, x, center, radius: cp.log_sum_exp(4 * (x - center)) - np.log(x.size),
    "from_cvxpy, sum of the largest": lambda cp, x, center, radius: cp.sum_largest(x - center, 3) - radius,
    "from_cvxpy, entropy": lambda cp, x, center, radius: cp.sum(cp.kl_div(x + 0.1, center + 0.1)) - 0.1 * radius,
}
REFEREES = ((1e-16, 0.9), (1e-16, 0.8), (1e-13, 0.9))  # tolerances and step lengths with which Clarabel comes closest
LARGEST_BATCH = 300  # in larger dimensions dense matrices of 100 trials take a gigabyte


class Cell(NamedTuple):
    """One entry of the table."""

    group: str
    set: str
    constraint: str
    n: int
    rows: int
    batch: int

    @property
    def id(self) -> str:
        return f"{self.group}/{self.set}/{self.constraint}/n={self.n}/rows={self.rows}/batch={self.batch}"


Solver = Callable[[Sequence[int]], Call]  # from the numbers of problems to the call that solves these


class Contest(NamedTuple):
    """What is timed: cocopt and the peers."""

    trials: int
    ours: Solver
    peers: dict[str, Solver]
    method: str
    together: bool  #: whether our call takes all problems at once
    unit: str = "problem"
    per_call: int = 1  #: by how much the time of a problem is divided, such as rounds
    divisible: bool = True  #: whether some of the problems can be solved without the others
    referees: tuple[Solver, ...] = ()  #: the same by Clarabel, as exactly as it can; not timed


def all_cells() -> Iterator[Cell]:
    """The whole table, in a fixed order."""
    for group, sizes in (("affine", ROWS), ("crowded", CROWDED_ROWS)):
        for name in AFFINE_SETS:
            for n in DIMENSIONS:
                for rows in sizes:
                    for batch in BATCHES:
                        yield Cell(group, name, "affine", n, rows, batch)
    for group, sets, kinds, dimensions in CURVED:
        for name in sets:
            for kind in kinds:
                for n in dimensions:
                    for batch in BATCHES:
                        if batch == 1 or n <= LARGEST_BATCH or kind == "NormBall":
                            yield Cell(group, name, kind, n, _row_count(kind), batch)
    for name in ("ball", "box", "simplex"):
        yield Cell("large", name, "NormBall", HUGE, 1, 1)
    for rows in SPARSE_ROWS:
        yield Cell("sparse", "box", "affine", SPARSE_DIM, rows, 1)
    yield Cell("black box", "box", "smooth Function", 20, 1, 1)
    yield Cell("black box", "box", "smooth Function", 100, 1, 1)
    yield Cell("black box", "box", "ℓ1 Function", 100, 1, 1)
    yield Cell("black box", "simplex", "ℓ1 Function", 100, 1, 1)
    for kind in CVXPY_KINDS:
        yield Cell("black box", "box", kind, 10, 1, 1)
    yield Cell("stream", "box", "CLASP, all rows", 10, 4, 1)
    yield Cell("stream", "box", "CLASP, all rows", 10, 4, 100)
    yield Cell("stream", "box", "CLASP, worst row", 10, 4, 100)


def _row_count(kind: str) -> int:
    return 3 if kind == "3 curved rows" else 9 if "8 rows" in kind else 1 + kind.count(" + ")


def sampled(cells: list[Cell]) -> list[Cell]:
    """About a sixth of the table: cells with a target of their own, and corners of the affine part."""

    def chosen(cell: Cell) -> bool:
        if cell.group == "affine":
            return (cell.n, cell.rows) in {
                (2, 4),
                (10, 1),
                (10, 20),
                (30, 4),
                (30, 300),
                (100, 20),
                (300, 1),
                (300, 100),
            }
        if cell.group == "crowded":
            return cell.set in ("box", "simplex") and (cell.n, cell.rows) in {(10, 100), (30, 100), (100, 20)}
        if cell.group in ("curved", "hinge prox"):
            return cell.n == 10 or (cell.n == 100 and cell.batch == 100)
        if cell.group == "conic":
            return cell.n == 30
        return cell.group != "sparse" or cell.rows in (50, 500)

    return _interleaved([cell for cell in cells if chosen(cell)])


def _interleaved(cells: list[Cell]) -> list[Cell]:
    """The groups in turn, each in a random order that is always the same: a limit on the time cuts all alike."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.group, []).append(cell)
    place, rng = [], np.random.default_rng(0)
    for members in groups.values():
        share = (rng.permutation(len(members)) + 0.5) / len(members)
        place += list(zip(share, members, strict=True))
    return [cell for _, cell in sorted(place, key=lambda pair: pair[0])]


def contest(cell: Cell) -> Contest:
    """What is timed in a cell."""
    if cell.group == "stream":
        return _stream(cell)
    if cell.constraint in CVXPY_KINDS:
        return _from_cvxpy(cell)
    trials = cell.batch if cell.batch > 1 else (SINGLES if cell.n <= 300 else 3)
    return _projections(_problems(cell, trials), cell.batch > 1)


def _problems(cell: Cell, trials: int) -> Problems:
    if cell.group == "sparse":
        return table_problems.sparse(cell.n, cell.rows, SPARSE_DENSITY, 3)
    if cell.group == "black box":
        return _black_box(cell, 3)
    if cell.constraint == "affine":
        return table_problems.affine(cell.set, cell.n, cell.rows, trials, cell.group == "crowded")
    weight = WEIGHT if cell.group == "hinge prox" else None
    return table_problems.curved(cell.set, cell.constraint, cell.n, trials, weight)


def _projections(problems: Problems, together: bool) -> Contest:
    """One call for all trials, or one per trial; the constraint is built in the call, as in every round."""

    def prepared(index: Any) -> Call:
        K, make, y, weight = problems.K, problems.maker(index), problems.y[index], problems.weight
        if weight is not None:
            return lambda: cocopt.hinge_prox(K, make(), y, weight=weight)
        return lambda: cocopt.project(K, make(), y)

    def ours(which: Sequence[int]) -> Call:
        if together:
            return prepared(slice(which.start, which.stop) if isinstance(which, range) else list(which))
        calls = [prepared(i) for i in which]
        return lambda: np.array([call() for call in calls])

    def clarabel(which: Sequence[int], exactness: tuple[float, float] | None = None) -> Call:
        return by_clarabel([problems.program(i) for i in which], exactness)

    peers: dict[str, Solver] = {}
    if problems.qp is not None:
        qp = problems.qp
        peers |= {name: lambda which, peer=peer: peer(qp.only(which)) for name, peer in QP_PEERS.items()}
    peers["Clarabel"] = clarabel
    referees = tuple(lambda which, exactness=exactness: clarabel(which, exactness) for exactness in REFEREES)
    method = cocopt.explain(problems.K, problems.build(0)).partition(":")[0]
    return Contest(len(problems.y), ours, peers, method, together, referees=referees)


def _black_box(cell: Cell, trials: int) -> Problems:
    """The quadratic, or the turnover, of a structured problem, known by value and subgradient alone."""
    structured = table_problems.curved(
        cell.set, "Norm1" if cell.constraint == "ℓ1 Function" else "Quadratic", cell.n, trials
    )

    def build(i: int) -> Any:
        known = structured.build(i)
        if cell.constraint == "ℓ1 Function":
            center, radius = known.center, float(known.radius)
            return cocopt.constraints.Function(
                lambda x: float(np.abs(x - center).sum()) - radius, lambda x: np.sign(x - center)
            )
        P, q, r = known.P, known.q, float(known.r)
        return cocopt.constraints.Function(lambda x: float(0.5 * x @ P @ x + q @ x) + r, lambda x: P @ x + q)

    return structured._replace(black_box=build)


def _from_cvxpy(cell: Cell) -> Contest:
    """A CVXPY expression whose parameters are those of the round, beside a parametrised problem of CVXPY's own."""
    import cvxpy as cp

    problems = table_problems.curved("box", "NormBall", cell.n, SINGLES)
    known = problems.build(slice(None))
    center, radius, x = cp.Parameter(cell.n), cp.Parameter(nonneg=True), cp.Variable(cell.n)
    expression, target = CVXPY_KINDS[cell.constraint](cp, x, center, radius), cp.Parameter(cell.n)
    whole = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(x - target)), [x >= 0, x <= 1, expression <= 0])

    def ours(which: Sequence[int]) -> Call:
        def run() -> Array:
            points = []
            for i in which:
                center.value, radius.value = known.center[i], known.radius[i]
                points.append(cocopt.project(problems.K, cocopt.constraints.from_cvxpy(expression, x), problems.y[i]))
            return np.array(points)

        return run

    def theirs(which: Sequence[int]) -> Call:
        def run() -> Array:
            points = []
            for i in which:
                center.value, radius.value, target.value = known.center[i], known.radius[i], problems.y[i]
                whole.solve(solver=cp.CLARABEL)
                points.append(x.value)
            return np.array(points)

        return run

    center.value, radius.value = known.center[0], known.radius[0]
    method = cocopt.explain(problems.K, cocopt.constraints.from_cvxpy(expression, x)).partition(":")[0]
    return Contest(SINGLES, ours, {"CVXPY": theirs}, method, False)


def _stream(cell: Cell) -> Contest:
    """Rounds of CLASP on the paper's regression, beside a NumPy loop around ``daqp.solve``; see clasp.py."""
    import clasp

    rounds = 100 if cell.batch > 1 else 1000
    data, rows = clasp.data(cell.batch, rounds), "worst" if "worst" in cell.constraint else "all"
    return Contest(
        cell.batch,
        lambda _: clasp.by_cocopt(*data, rows),
        {"daqp loop": lambda _: clasp.by_daqp(*data, rows)},
        "kernel",
        True,
        "trial and round",
        rounds,
        divisible=False,
    )

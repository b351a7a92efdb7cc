"""Data of one's own as a problem: the rows of a table are replayed as rounds.

A trial is a part of the table that is drawn at random, so that means over trials have intervals: a *window*, or
*blocks* of consecutive rows one after the other (the circular block bootstrap).

References
----------
Künsch, "The jackknife and the bootstrap for general stationary observations", Annals of Statistics 17, 1989.
Politis and Romano, "A circular block-resampling procedure for stationary data", in Exploring the Limits of Bootstrap,
1992: blocks wrap around, so that every row is drawn equally often.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocopt import state
from cocopt.arrays import Array, as_points, describe, one_of, positive_int, require_finite, scalar
from cocopt.constraints import Constraint
from cocopt.errors import InvalidInput
from cocopt.losses import Loss
from cocopt.problems.base import (
    Block,
    Data,
    MixedConstraint,
    MixedLoss,
    Pair,
    Problem,
    Section,
    check_seed,
    sections_of,
    stack,
    trial_numbers,
)
from cocopt.problems.tables import MissingValue, Row, Table, read_csv
from cocopt.sets.base import ConvexSet

__all__ = ["Replay", "from_csv", "from_frame"]

#: what a row becomes: a function of the row, or the same in every round; None for nothing
LossOf: TypeAlias = Callable[[Row], Loss | None] | Loss | None
ConstraintOf: TypeAlias = Callable[[Row], Constraint | None] | Constraint | None

_MIXED: dict[type, Any] = {Loss: MixedLoss, Constraint: MixedConstraint}
_CONSTANTS = ("lipschitz_f", "lipschitz_g", "bound", "slack", "strong_convexity")
#: rounds of a regular grid, missing ones included
MAX_GRID = 10**7
#: rounds that hindsight looks at in one piece
_SECTION = 4096
#: starts of blocks that are drawn at once, so that they do not depend on the number of rounds
_STARTS = 1024


class _Series:
    """The losses, or the constraints, of all rounds of the table; some rounds may lack theirs."""

    def __init__(self, members: list[Any], kind: type) -> None:
        present = [member for member in members if member is not None]
        missing = np.array([member is None for member in members], dtype=bool)
        #: the place of each round's among those that are there; −1 for a gap
        self.place = np.where(missing, -1, np.cumsum(~missing) - 1)
        self.members = np.empty(len(present), dtype=object)
        self.members[:] = present
        self._mixed = _MIXED[kind]
        #: all of them as one object, unless their numbers of rows differ
        self.stacked: Any = None
        self.uniform = len({getattr(member, "row_count", 1) for member in present}) <= 1
        if present and all(member is present[0] for member in present):
            self.stacked = present[0]
        elif present and self.uniform:
            self.stacked = stack(self.members, self._mixed)
        if self.stacked is not None and not isinstance(self.stacked, self._mixed):
            self.members = self.members[:0]  # they are in the one object

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Whether a round lacks it."""
        return self.place < 0

    def at(self, rounds: NDArray[Any]) -> Any:
        """Those of some rounds of the table as one object with their axes; None if all are missing."""
        place = self.place[rounds]
        if (place < 0).all():
            return None
        if (place < 0).any():
            raise InvalidInput("round: expected a loss (or a constraint) in every trial or in none, got both")
        if self.stacked is not None:
            return self.stacked.trials(place)
        return stack(self.members[place], self._mixed) if place.ndim else self.members[place]


class Replay(Problem):
    """The rows of a table as rounds; made by `from_frame` and `from_csv`."""

    name: ClassVar[str] = "table"  # type: ignore[misc]

    def __init__(
        self,
        K: ConvexSet,
        series: tuple[_Series, _Series],
        *,
        rounds: int,
        block: int | None,
        start: Array | None,
    ) -> None:
        self.K, self.rounds, self._block, self._start = K, rounds, block, start
        self._losses, self._constraints = series
        self.table_rounds = len(self._losses.place)
        self._permuted: tuple[int, NDArray[np.int64]] | None = None
        uniform = self._losses.uniform and self._constraints.uniform
        gaps = any(own.missing.any() and not own.missing.all() for own in series)
        self.one_by_one = gaps or not uniform
        self.options = {"table_rounds": self.table_rounds, "rounds": rounds, "block": block}

    @property
    def windows(self) -> int | None:
        """How many different windows there are; None if trials are made of blocks."""
        return self.table_rounds - self.rounds + 1 if self._block is None else None

    @property
    def gaps(self) -> tuple[int, int]:
        """How many rounds of the table lack their loss, and how many their constraint."""
        return int(self._losses.missing.sum()), int(self._constraints.missing.sum())

    @property
    def identity(self) -> Any:
        digest = hashlib.sha256()
        try:
            for part in (self.K, self._losses.stacked, self._constraints.stacked):
                spec, arrays = state.encode(part, "data")
                digest.update(repr(spec).encode())
                for array in arrays.values():
                    digest.update(np.ascontiguousarray(array).tobytes())
        except TypeError:  # a black box
            return None
        for own in (self._losses, self._constraints):
            if own.stacked is None and len(own.members):
                return None
            digest.update(own.place.tobytes())
        digest.update(repr(None if self._start is None else self._start.tolist()).encode())
        return {"problem": self.name, "options": dict(self.options), "data": digest.hexdigest()}

    def check_size(self, trials: int, rounds: int) -> None:
        if self.windows is None:
            return
        if rounds > self.rounds:
            raise InvalidInput(
                f"rounds: expected at most {self.rounds}, the length of the windows, got {rounds}; "
                "choose it in from_frame(..., rounds=...)"
            )
        if trials > self.windows:
            raise InvalidInput(
                f"trials: expected at most {self.windows}, since a table of {self.table_rounds} rounds has no more "
                f"different windows of {self.rounds}, got {trials}; choose shorter ones, rounds=..., or "
                'sampling="blocks"'
            )

    def initial(self, rng: np.random.Generator) -> ArrayLike:
        return super().initial(rng) if self._start is None else self._start

    def path(self, seed: int, trial: int, rounds: int) -> NDArray[np.int64]:
        """Which rounds of the table a trial replays, from 0 on."""
        self.check_size(trial + 1, rounds)
        if self._block is None:
            return np.arange(rounds) + int(self._window_starts(seed)[trial])
        rng = np.random.default_rng(np.random.SeedSequence(check_seed(seed), spawn_key=(trial, 1)))
        count = -(-rounds // self._block)
        starts = np.concatenate([rng.integers(self.table_rounds, size=_STARTS) for _ in range(0, count, _STARTS)])
        rows: NDArray[np.int64] = (starts[:count, None] + np.arange(self._block)) % self.table_rounds
        return rows.reshape(-1)[:rounds]

    def _window_starts(self, seed: int) -> NDArray[np.int64]:
        """The first rounds of all windows in random order: trial k has the k-th."""
        if self._permuted is None or self._permuted[0] != seed:
            rng = np.random.default_rng(np.random.SeedSequence(check_seed(seed)))
            self._permuted = seed, rng.permutation(self.table_rounds - self.rounds + 1)
        return self._permuted[1]

    def data_blocks(self, seed: int, trials: ArrayLike, rounds: int | None = None) -> Iterator[tuple[int, Data]]:
        chosen = trial_numbers(trials)
        horizon = positive_int("rounds", self.rounds if rounds is None else rounds)
        paths = np.stack([self.path(seed, trial, horizon) for trial in chosen], axis=-1)
        for before in range(0, horizon, self.block_rounds):
            yield before + 1, (paths[before : before + self.block_rounds],)

    def blocks(self, seed: int, trials: ArrayLike, rounds: int | None = None) -> Iterator[Block]:
        if not self.one_by_one or len(trial_numbers(trials)) > 1:
            yield from super().blocks(seed, trials, rounds)
            return
        for first, (rows,) in self.data_blocks(seed, trials, rounds):

            def reveal(k: int, rows: NDArray[Any] = rows) -> Pair:
                return self.reveal(rows[k, 0])

            yield first, len(rows), reveal

    def reveal(self, *data: NDArray[Any]) -> Pair:
        return self._losses.at(data[0]), self._constraints.at(data[0])

    def sections(self, seed: int, trial: int, rounds: int | None = None) -> Iterator[Section]:
        (number,) = trial_numbers([trial])
        path = self.path(seed, number, positive_int("rounds", self.rounds if rounds is None else rounds))
        if not (self._losses.uniform and self._constraints.uniform):
            yield from sections_of((self._losses.at(t), self._constraints.at(t)) for t in path)
            return
        revealed = 2 * self._losses.missing[path] + self._constraints.missing[path]
        ends = [*(np.flatnonzero(np.diff(revealed)) + 1).tolist(), len(path)]
        first = 0
        for end in ends:  # in a section all rounds reveal the same kinds of things
            while first < end:
                rows = path[first : min(end, first + _SECTION)]

                def reveal(part: slice, rows: NDArray[np.int64] = rows) -> Pair:
                    return self.reveal(rows[part])

                yield len(rows), reveal
                first += len(rows)

    def __repr__(self) -> str:
        sampling = f"windows of {self.rounds}" if self._block is None else f"blocks of {self._block}"
        without_loss, without_constraint = self.gaps
        return (
            f"<{self.name}: a table of {self.table_rounds} rounds ({without_loss} without a loss, "
            f"{without_constraint} without a constraint) in {sampling}>"
        )


# Exceeds the guide of 8 parameters as the one entry for data of one's own; all but K have defaults.
def from_frame(
    df: Any,
    K: ConvexSet,
    *,
    loss: LossOf = None,
    constraint: ConstraintOf = None,
    rounds: int | None = None,
    sampling: Literal["blocks", "windows"] = "blocks",
    block: int | None = None,
    time: Any = None,
    every: Any = None,
    start: ArrayLike | None = None,
    name: str = "table",
    **constants: float,
) -> Replay:
    """A problem that replays the rows of a table as rounds, for `cocopt.run`.

    Parameters
    ----------
    df : frame of pandas or polars, mapping of columns, or record array
        A row per round, in the order of time.
    K : ConvexSet
    loss, constraint : function of a row, or an object
        What a row reveals: ``lambda row: losses.Absolute(row[["a", "b"]], row["y"])``. ``row["y"]`` is a value,
        ``row[["a", "b"]]`` a vector, ``row.get("y", 0.0)`` a value or its default, ``row.number`` the row's place. Each
        function is called once per row. A row for which it returns None, or in which a value that it asks for is
        missing, is a round without that feedback. A loss or a constraint itself is the same in every round.
    rounds : int, optional
        The length of a trial. Default: that of the table.
    sampling : "blocks" or "windows"
        What a trial is. "blocks": consecutive rows in blocks that start at random rows, one block after the other; it
        keeps what neighbouring rows have in common, and loses trends that are longer than a block. "windows": different
        windows of ``rounds`` consecutive rows, in random order; the only window as long as the table is the table
        itself, for one trial. Windows overlap, so that trials resemble one another and their intervals are too narrow
        the more they do.
    block : int, optional
        The length of blocks. Default: the cube root of the number of rounds, rounded, the order that is best for means
        of stationary data.
    time : name of a column, or array, optional
        The time of each row, numbers or dates, increasing. Where it jumps, the rounds between are gaps: rounds
        without feedback.
    every : number or timedelta, optional
        The time between rounds. Default: the most frequent difference.
    start : array (n,), optional
        x_1. Default: the point of K nearest to 0.
    name : str
        The problem's name in tables and files.
    **constants
        ``lipschitz_f``, ``lipschitz_g``, ``bound``, ``slack``, ``strong_convexity``, where they are known: see
        `Problem`. Some algorithms need them.

    Returns
    -------
    Replay
        A problem. With gaps, trials are played one by one, which takes longer.

    Examples
    --------
    >>> import cocopt, numpy as np
    >>> from cocopt import Box, constraints, losses, problems
    >>> rng = np.random.default_rng(0)
    >>> table = {"a": rng.normal(size=60), "b": rng.normal(size=60), "y": rng.normal(size=60), "cap": np.full(60, 0.5)}
    >>> problem = problems.from_frame(
    ...     table,
    ...     Box(-1.0, 1.0, dim=2),
    ...     loss=lambda row: losses.LeastSquares([row[["a", "b"]]], [row["y"]]),
    ...     constraint=lambda row: constraints.Affine([1.0, 1.0], row["cap"]),
    ... )
    >>> problem
    <table: a table of 60 rounds (0 without a loss, 0 without a constraint) in blocks of 4>
    >>> cocopt.run(problem, ["clasp"], trials=10).rounds
    60
    """
    table = Table.of(df)
    if not isinstance(K, ConvexSet):
        raise InvalidInput(f"K: expected a set such as cocopt.Box, got {describe(K)}")
    if loss is None and constraint is None:
        raise InvalidInput("loss, constraint: expected a function of a row for at least one of them, got none")
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"name: expected a name, got {describe(name)}")
    one_of("sampling", sampling, "blocks", "windows")
    rows = _grid(table, time, every)
    series = (_series(table, rows, loss, Loss, K), _series(table, rows, constraint, Constraint, K))
    length = len(rows) if rounds is None else positive_int("rounds", rounds)
    if sampling == "windows":
        if block is not None:
            raise InvalidInput(f'block: expected none with sampling="windows", got {describe(block)}')
        if length > len(rows):
            raise InvalidInput(f"rounds: expected at most {len(rows)}, the rounds of the table, got {length}")
        size = None
    else:
        size = round(len(rows) ** (1 / 3)) if block is None else positive_int("block", block, at_most=len(rows))
    first = None if start is None else _checked_start(start, K)
    problem = Replay(K, series, rounds=length, block=size, start=first)
    problem.name = name  # type: ignore[misc]
    problem.static = isinstance(constraint, Constraint) and not series[1].missing.any()
    for key, value in constants.items():
        if key not in _CONSTANTS:
            raise InvalidInput(f"{key}: expected no such argument; constants are {', '.join(_CONSTANTS)}")
        setattr(problem, key, scalar(key, value, nonnegative=True))
    return problem


def from_csv(
    path: str | os.PathLike[str],
    K: ConvexSet,
    *,
    loss: LossOf = None,
    constraint: ConstraintOf = None,
    delimiter: str = ",",
    **options: Any,
) -> Replay:
    r"""As `from_frame`, from a CSV file with a header.

    A column in which every field is a number or empty (or ``NA``, ``NaN``, ``null``) is one of numbers, any other is
    text. An empty field is a missing value. As ``time=`` a column of dates such as 2026-05-01T13:00 serves, too.

    Parameters
    ----------
    path : path
    K : ConvexSet
    loss, constraint : function of a row, or an object
    delimiter : str
        The character between fields.
    **options
        Others of `from_frame`; by default the problem's name is that of the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from cocopt import Box, losses, problems
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "load.csv")
    ...     _ = path.write_text("hour,load\n0,0.5\n1,\n3,0.75\n")
    ...     problems.from_csv(path, Box(0, 1, dim=1), loss=lambda row: losses.Distance([row["load"]]), time="hour")
    <load: a table of 4 rounds (2 without a loss, 4 without a constraint) in blocks of 2>
    """
    table = read_csv(path, delimiter)
    stem = os.path.splitext(os.path.basename(os.fspath(path)))[0]
    return from_frame(table, K, loss=loss, constraint=constraint, **{"name": str(stem), **options})


def _checked_start(start: ArrayLike, K: ConvexSet) -> Array:
    x = require_finite("start", as_points("start", start, K.dim))
    if x.ndim != 1 or not K.contains(x):
        raise InvalidInput(f"start: expected a point of K of shape ({K.dim},), got {describe(x)}")
    return x


def _series(table: Table, rows: NDArray[np.int64], given: Any, kind: type, K: ConvexSet) -> _Series:
    """What the rounds of the grid reveal, of one kind."""
    name = kind.__name__.lower()
    if given is None or isinstance(given, kind):
        if given is not None:
            _check_member(given, name, kind, K)
        members = [given] * table.size
    elif callable(given) and not isinstance(given, type):
        members = [_call(given, table, i, name, kind, K) for i in range(table.size)]
    else:
        raise InvalidInput(f"{name}: expected a function of a row, or a {name}, got {describe(given)}")
    return _Series([None if i < 0 else members[i] for i in rows.tolist()], kind)


def _call(function: Callable[[Row], Any], table: Table, i: int, name: str, kind: type, K: ConvexSet) -> Any:
    """What the user's function makes of row i; None where a value is missing."""
    try:
        member = function(table.row(i))
        if member is not None:
            _check_member(member, name, kind, K)
    except MissingValue:
        return None
    except InvalidInput as error:
        raise InvalidInput(f"{table.describe_row(i)}: {error}") from error
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
        raise InvalidInput(f"{table.describe_row(i)}: {name}: expected a {name} of this row, got {got}") from error
    return member


def _check_member(member: Any, name: str, kind: type, K: ConvexSet) -> None:
    if not isinstance(member, kind):
        raise InvalidInput(f"{name}: expected a {name} or None, got {describe(member)}")
    loss_or_constraint: Any = member
    if loss_or_constraint.batch or loss_or_constraint.dim not in (None, K.dim):
        raise InvalidInput(
            f"{name}: expected one {name} in dimension {K.dim}, got {loss_or_constraint!r}; a row is one round"
        )
    loss_or_constraint.require_finite_data()


def _grid(table: Table, time: Any, every: Any) -> NDArray[np.int64]:
    """The row of the table of every round; −1 for a round between two rows, which lacks its row."""
    if time is None:
        if every is not None:
            raise InvalidInput(f"every: expected none without time, got {describe(every)}")
        return np.arange(table.size)
    times = _times(table, time)
    differences = np.diff(times)
    if not (differences > 0).all():
        at = int(np.flatnonzero(~(differences > 0))[0]) + 1
        raise InvalidInput(f"time: expected increasing times, got {times[at]} in {table.describe_row(at)}")
    if len(differences) == 0:
        return np.zeros(1, dtype=np.int64)
    step = _step(differences, every)
    with np.errstate(over="ignore"):
        ratios = np.asarray(differences / step, dtype=np.float64)
    steps = np.rint(ratios)
    if not (np.abs(ratios - steps) <= 1e-6 * np.maximum(1.0, ratios)).all():
        at = int(np.argmax(np.abs(ratios - steps))) + 1
        raise InvalidInput(
            f"time: expected multiples of {step} between rows, got {differences[at - 1]} before "
            f"{table.describe_row(at)}; say every=..."
        )
    if steps.sum() >= MAX_GRID:
        raise InvalidInput(f"time: expected at most {MAX_GRID} rounds, got {steps.sum():g}; say every=...")
    places = np.concatenate([[0], np.cumsum(steps)]).astype(np.int64)
    rows = np.full(int(places[-1]) + 1, -1)
    rows[places] = np.arange(table.size)
    return rows


def _times(table: Table, time: Any) -> NDArray[Any]:
    """The times of the rows: numbers, or dates."""
    values = table.column(time) if isinstance(time, str) else Table({"time": time}).column("time")
    if len(values) != table.size:
        raise InvalidInput(f"time: expected {table.size} times, one per row, got {len(values)}")
    if values.dtype == object:
        parsed = np.empty(len(values), dtype="datetime64[us]")
        for i, value in enumerate(values):
            try:
                parsed[i] = np.datetime64(value, "us")
            except (TypeError, ValueError):
                got = f"{describe(value)} in {table.describe_row(i)}"
                raise InvalidInput(f"time: expected numbers or dates such as 2026-05-01T13:00, got {got}") from None
        values = parsed
    bad = np.isnat(values) if values.dtype.kind in "mM" else ~np.isfinite(values)
    if bad.any():
        raise InvalidInput(f"time: expected a time in every row, got none in {table.describe_row(int(np.argmax(bad)))}")
    return values


def _step(differences: NDArray[Any], every: Any) -> Any:
    """The time between rounds: what the user says, or the most frequent difference, the least of several."""
    if every is None:
        values, counts = np.unique(differences, return_counts=True)
        return values[np.argmax(counts)]
    if differences.dtype.kind != "m":
        return scalar("every", every, positive=True)
    try:
        step = np.timedelta64(every)
    except (TypeError, ValueError):
        step = np.timedelta64("NaT")
    if np.isnat(step) or not step > np.timedelta64(0):
        raise InvalidInput(f"every: expected a positive timedelta, as the times are dates, got {describe(every)}")
    return step

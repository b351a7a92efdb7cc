"""Projection onto the intersection of K and all constraints so far, a stack that grows every round.

Of the rows so far few can bind, and fewer do. Each trial keeps

- a working set: the rows that bound in the last projection, or nearly, from which the next projection starts;
- lists of the rows *near* its last point, each with a ball around an anchor in which no other row can be violated (a
  normalised row is satisfied wherever ‖x − anchor‖ is at most its slack at the anchor): a short one, one of four times
  its capacity from which it is made, and so on. While the point stays in the balls, only the short list is searched;
  when it leaves, the next list is searched, once, and seldom all rows;
- an outer box of the intersection: a row that is slack all over it is implied by the others and can be dropped.

Nothing of this approximates: a point is accepted when no row at all is violated by more than rounding.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, describe, make_tuple
from cocopt.constraints import Affine, Constraint, Stack
from cocopt.errors import InfeasibleRound, StateError
from cocopt.geometry.curved_history import CurvedHistory
from cocopt.geometry.ladder import Request, solve
from cocopt.geometry.problem import Projection, trial_constraint
from cocopt.sets.base import ConvexSet
from cocopt.threads import matvec
from cocopt.tolerances import ROUNDING_PERSISTENT, SATISFIED, TINY

__all__ = ["Archive", "NearbyRows", "PersistentIntersection", "PolyhedronRows", "RowStore"]

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

BINDING_SLACK = 1e-9  # rows with less slack than this share of their terms are in the next working set
CURVED_BINDING_SLACK = 1e-6  # the same for curved constraints
SMALL_STORE = 64  # a store with fewer rows than twice this is not trimmed
MAX_ONE_BLOCK_DIM = 16  # up to this dimension the first list has one block; two from there on
MIN_LISTS = 2  # there are more if the last has not room for a quarter of the rows
MAX_WORKING_SET = 256  # rows in a working set of the kernel at most; if more are needed the ladder takes over
ADDED_BY_LADDER = 4  # rows that are added to a working set of the ladder at a time
MAX_COUNTED = 32  # violated rows up to which `squares` needs only these
MAX_COUNT = 2**53  # of rounds and rows in a stored state: beyond it floating-point numbers skip integers
_EVERY, _NONE = np.ones(1, dtype=bool), np.zeros(1, dtype=bool)  # of the trials


@cache
def kernels() -> Any:
    """The compiled kernels, loaded when first used; looked up once, since a round takes microseconds."""
    from cocopt.kernels import persistent

    return persistent


def _resized(array: NDArray[Any], axis: int, size: int) -> NDArray[Any]:
    """A copy with another number of entries along an axis, 0 where there were none."""
    shape, same = list(array.shape), min(size, array.shape[axis])
    shape[axis] = size
    buffer = np.zeros(shape, array.dtype)
    part = (slice(None),) * axis + (slice(same),)
    buffer[part] = array[part]
    return buffer


def _as_trials(array: Array, shape: tuple[int, ...], flat: tuple[int, ...]) -> Array:
    """The array broadcast to one shape, as another of the same size whose first axis are the trials."""
    if array.shape != shape:  # (broadcasting to the same shape takes time, too)
        array = np.broadcast_to(array, shape)
    return np.ascontiguousarray(array.reshape(flat))


def _first(array: NDArray[Any], size: Integers) -> NDArray[Any]:
    """The first ``size`` entries of each trial, 0 for the others."""
    first = np.arange(array.shape[1]) < size[:, None]
    return np.where(first.reshape(*first.shape, *(1,) * (array.ndim - 2)), array, array.dtype.type(0))


def _require(condition: Any, name: str, expected: str, value: Any) -> None:
    """Raises `StateError` unless what was stored can have come from a run."""
    if not condition:
        raise StateError(f"{name}: expected {expected}, got {describe(value)}")


def _stored_array(fields: Mapping[str, Any], name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
    """A field of a stored state that is an array of this shape; ranges are checked by the caller."""
    array = fields[name]
    fits = type(array) is np.ndarray and array.dtype == dtype and array.shape == shape
    _require(fits, name, f"an array of {np.dtype(dtype)} with shape {shape}", array)
    return array


class RowStore(NamedTuple):
    """Normalised rows ⟨unit, x⟩ ≤ rhs of each of B trials, in buffers that later versions share.

    A version has the first ``size`` rows of each trial. The newest one appends in place, any other (after a round that
    failed, say) to a copy.
    """

    unit: Array  # (B, capacity, n)
    rhs: Array  # (B, capacity)
    norm: Array  # (B, capacity), the length that the row had
    size: Integers  # (B,)
    largest_size: int
    version: int
    newest: list[int]  # one number that all versions share: the newest of them

    @classmethod
    def of(cls, unit: Array, rhs: Array, norm: Array, size: Integers) -> RowStore:
        """The rows given."""
        return cls(unit, rhs, norm, size, int(size.max(initial=0)), 0, [0])

    @classmethod
    def empty(cls, trials: int, dim: int) -> RowStore:
        """No rows yet."""
        unit, rhs, norm = np.zeros((trials, 1, dim)), np.zeros((trials, 1)), np.zeros((trials, 1))
        return cls.of(unit, rhs, norm, np.zeros(trials, dtype=np.int64))

    def plus(self, A: Array, b: Array) -> RowStore | None:
        """With the rows A (B, M, n), b (B, M), but for those with b = +inf; None if some length overflows."""
        unit, rhs, norm, size, largest, version, newest = self
        needed = largest + b.shape[1]
        if version != newest[0] or needed > rhs.shape[1]:
            unit, rhs, norm = (_resized(part, 1, 2 * needed) for part in (unit, rhs, norm))
            newest = newest if version == newest[0] else [0]
        newest[0] += 1
        size = kernels().append_rows(A, b, size, unit, rhs, norm)
        if np.minimum.reduce(size, initial=0) < 0:
            return None
        return RowStore(unit, rhs, norm, size, int(np.maximum.reduce(size, initial=0)), newest[0], newest)

    def select(self, trials: Integers, index: Integers) -> tuple[Array, Array]:
        """(A, b) of some rows of some trials as they were given, index (trials, k); −1 for a row with b = +inf."""
        trials, at = trials[:, None], np.maximum(index, 0)
        norm = self.norm[trials, at]
        b = np.where(index < 0, np.inf, self.rhs[trials, at] * norm)
        return self.unit[trials, at] * norm[..., None], b

    def stored(self) -> dict[str, Any]:
        """The rows of this version, zeros behind them."""
        most = max(self.largest_size, 1)
        unit, rhs, norm = (_first(part[:, :most], self.size) for part in (self.unit, self.rhs, self.norm))
        return {"unit": unit, "rhs": rhs, "norm": norm, "size": self.size}

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any], trials: int, dim: int) -> RowStore:
        """What `stored` returned, checked."""
        size = _stored_array(stored, "size", (trials,), np.int64)
        _require(((size >= 0) & (size < MAX_COUNT)).all(), "size", "non-negative numbers of rows", size)
        most = max(int(size.max(initial=0)), 1)
        unit = _stored_array(stored, "unit", (trials, most, dim))
        rhs, norm = _stored_array(stored, "rhs", (trials, most)), _stored_array(stored, "norm", (trials, most))
        for name, part in (("unit", unit), ("rhs", rhs), ("norm", norm)):
            _require(np.isfinite(part).all(), name, "finite numbers", part)
            _require((_first(part, size) == part).all(), name, "zeros behind the last row", part)
        _require((_first(norm, size) >= 0.0).all() and (norm > 0.0).sum() == size.sum(), "norm", "lengths", norm)
        length = np.sqrt(np.vecdot(unit, unit))
        # rows whose squares underflow are stored as they are, or with a length of few digits
        tiny = (norm <= TINY) | ((norm == 1.0) & (length <= TINY))
        normalised = (np.abs(length - 1.0) <= 1e-9) | (tiny & (length <= 2.0))
        _require(normalised[np.arange(most) < size[:, None]].all(), "unit", "rows of length 1", unit)
        return cls.of(unit, rhs, norm, size)


class NearbyRows(NamedTuple):
    """Lists of each trial's rows that matter around some anchors (see `cocopt.kernels.persistent.lists`).

    A cache: changed in place, and not stored, since no result depends on it to the last bit. A version of
    `PersistentIntersection` with another store begins a new one.
    """

    blocks: Array  # (B, blocks of all lists, n + 2, BLOCK)
    balls: Array  # (B, n + 2, MAX_LISTS): a column is a list's anchor, its radius, and the radius that it had last
    counts: Integers  # (B, 3, lists): rows in each list, rows of the store that it knows, rows evaluated so far
    memory: Array  # for one trial
    newest: list[int]  # the lists belong to versions of the store that share this
    version: list[int]  # one number: the version that used them last; they may have rows that came with it
    max_rows: int  # rows in the store up to which there are lists enough

    @classmethod
    def begin(cls, store: RowStore) -> NearbyRows:
        """Empty lists, with a radius only if the store is empty."""
        trials, _, n = store.unit.shape
        block, max_lists = kernels().BLOCK, kernels().MAX_LISTS
        last, lists = 1 if n <= MAX_ONE_BLOCK_DIM else 2, 1
        total = last
        while lists < MIN_LISTS or (4 * block * last < store.largest_size and lists < max_lists):
            last, lists = 4 * last, lists + 1
            total += last
        blocks, balls = np.zeros((trials, total, n + 2, block)), np.zeros((trials, n + 2, max_lists))
        counts = np.zeros((trials, 3, lists), dtype=np.int64)
        balls[:, n] = np.where(store.size > 0, -np.inf, np.inf)[:, None]
        counts[:, 1] = store.size[:, None]
        memory = np.empty((2, block * last))
        max_rows = 4 * block * last if lists < max_lists else sys.maxsize
        return cls(blocks, balls, counts, memory, store.newest, [store.version], max_rows)

    @property
    def list_sizes(self) -> Integers:
        """How many rows each list has, (B, lists)."""
        return self.counts[:, 0]

    @property
    def radii(self) -> Array:
        """How far each list reaches from its anchor, (B, lists); negative for a list that is void."""
        return self.balls[:, -2, : self.counts.shape[-1]]

    def rows_evaluated(self) -> Integers:
        """How many rows each trial evaluated since the lists were begun, to search them or to make them anew."""
        total: Integers = self.counts[:, 2].sum(axis=-1)
        return total


class Archive(NamedTuple):
    """All rows of all trials as they came, by which `PersistentIntersection` judges `squares` and emptiness.

    The rows are the first axis, so that those of a round stand together. Buffers are shared as in `RowStore`.
    """

    A: Array  # (capacity, B, n)
    b: Array  # (capacity, B)
    round: Integers  # (capacity,)
    size: int
    newest: list[int]  # one number that all versions share: the size of the newest

    @classmethod
    def of(cls, A: Array, b: Array, round: Integers) -> Archive:
        """The rows given."""
        return cls(A, b, round, round.size, [round.size])

    @classmethod
    def empty(cls, trials: int, dim: int) -> Archive:
        """No rows yet."""
        return cls.of(np.zeros((0, trials, dim)), np.zeros((0, trials)), np.zeros(0, dtype=np.int64))

    def plus(self, A: Array, b: Array, t: int) -> Archive:
        """With the rows A (B, M, n), b (B, M) of round t."""
        archive, old, size = self, self.size, self.size + b.shape[1]
        if old != self.newest[0] or size > self.round.size:
            archive = Archive.of(*(_resized(part, 0, 2 * size) for part in (self.A, self.b, self.round)))
        archive.A[old:size], archive.b[old:size], archive.round[old:size] = A.swapaxes(0, 1), b.T, t
        archive.newest[0] = size
        return archive._replace(size=size)

    def of_trial(self, i: int) -> tuple[Array, Array]:
        """(A, b) of one trial."""
        return self.A[: self.size, i], self.b[: self.size, i]

    def squares(self, i: int, x: Array) -> float:
        """Σ over the rounds of (max over the round's rows of ⟨a, x⟩ − b)_+²."""
        A, b = self.of_trial(i)
        first = np.flatnonzero(np.diff(self.round[: self.size], prepend=-1))
        return float(np.square(np.maximum(np.maximum.reduceat(matvec(A, x) - b, first), 0.0)).sum())

    def squares_of(self, trials: Integers, index: Integers, x: Array) -> Array:
        """The same for some trials that violate these rows alone: index (trials, k), −1 for none."""
        at = np.maximum(index, 0)
        excess = np.vecdot(self.A[at, trials[:, None]], x[:, None]) - self.b[at, trials[:, None]]
        excess = np.where(index < 0, 0.0, np.maximum(excess, 0.0))
        round, place = self.round[at], np.arange(index.shape[1])
        # a row counts unless another one of its round is larger, or as large and before it
        larger = (excess[:, None] > excess[..., None]) | (
            (excess[:, None] == excess[..., None]) & (place < place[:, None])
        )
        counts = ~(larger & (round[:, None] == round[..., None])).any(axis=-1)
        squares: Array = (np.square(excess) * counts).sum(axis=-1)
        return squares

    def stored(self) -> dict[str, Any]:
        """The rows of this version."""
        return {"A": self.A[: self.size], "b": self.b[: self.size], "round": self.round[: self.size]}

    @classmethod
    def from_stored(cls, stored: Any, trials: int, dim: int, t: int) -> Archive:
        """What `stored` returned after t rounds, checked."""
        known = isinstance(stored, Mapping) and stored.keys() == {"A", "b", "round"}
        _require(known and isinstance(stored["round"], np.ndarray), "archive", "A, b and round", stored)
        size = stored["round"].size
        round = _stored_array(stored, "round", (size,), np.int64)
        A, b = _stored_array(stored, "A", (size, trials, dim)), _stored_array(stored, "b", (size, trials))
        _require(((round >= 1) & (round <= t)).all(), "round", f"rounds from 1 to {t}", round)
        _require((np.diff(round) >= 0).all(), "round", "rounds that do not decrease", round)
        _require(np.isfinite(A).all(), "A", "finite numbers", A)
        _require((b > -np.inf).all(), "b", "finite numbers or +inf", b)
        return cls.of(A, b, round)


class PolyhedronRows(NamedTuple):
    """A polyhedral K as the kernel takes it: rows of length 1, of which the first are equations."""

    lower: Array
    upper: Array
    rows: Array
    rhs: Array
    equalities: int

    @classmethod
    def of(cls, K: ConvexSet) -> PolyhedronRows | None:
        """None if K is curved."""
        poly = K.polyhedral()
        if poly is None:
            return None
        length = np.sqrt(np.vecdot(poly.A, poly.A))
        return cls(poly.lower, poly.upper, poly.A / length[:, None], poly.b / length, poly.equalities)


def _outer_box(K: ConvexSet) -> tuple[Array, Array]:
    """A box that contains K, from its bounds and its diameter."""
    polyhedral, point = K.polyhedral(), K.project_unchecked(np.zeros(K.dim))
    lower, upper = point - K.diameter, point + K.diameter
    if polyhedral is not None:
        lower, upper = np.maximum(lower, polyhedral.lower), np.minimum(upper, polyhedral.upper)
    return lower, upper


def _indices(stored: Any, count: int) -> tuple[int, ...]:
    """Distinct indices below ``count``, of a stored state."""
    known = isinstance(stored, list | tuple) and len(stored) <= count
    known = known and all(type(i) is int and 0 <= i < count for i in stored) and len(set(stored)) == len(stored)
    _require(known, "binding", f"distinct indices of {count} constraints", stored)
    return tuple(stored)


def _check_curved(constraint: Any, batch: tuple[int, ...], dim: int) -> None:
    """Refuses, of a stored state, what is no curved constraint of these trials, or has data that are not finite."""
    _require(isinstance(constraint, Constraint), "curved", "constraints", constraint)
    fits = constraint.dim in (None, dim) and constraint.affine() is None
    try:
        constraint.require_finite_data()
        fits = fits and np.broadcast_shapes(constraint.batch, batch) == batch
    except ValueError as error:  # (also `InvalidInput`)
        raise StateError(f"curved: {error}") from error
    _require(fits, "curved", f"curved constraints of trials {batch} in dimension {dim}", constraint)


class PersistentIntersection(NamedTuple):
    """S_t = K ∩ {g_1 ≤ 0} ∩ … ∩ {g_t ≤ 0} of each trial, and exact projections onto it.

    Immutable: `plus` and `project` return the next version. Affine constraints are kept as rows; those of other kinds
    as they are: all are checked in every projection, which starts with those that bound last time.

    Parameters of `begin`: K, the leading axes of the trials, whether rows that can no longer bind may be dropped (not
    only those that repeat another), and whether an archive of all rows is kept nevertheless, which `squares` needs.
    Without one the least violation of an *empty* intersection is that of the rows that are left.

    Examples
    --------
    >>> from cocopt import Box, constraints
    >>> from cocopt.geometry.persistent import PersistentIntersection
    >>> import numpy as np
    >>> S = PersistentIntersection.begin(Box(0.0, 1.0, dim=2), ())
    >>> for b in (1.5, 1.0, 1.2):
    ...     S = S.plus(constraints.Affine([1.0, 1.0], b))
    >>> S, found = S.project(np.array([1.0, 0.8]))
    >>> found.point
    array([0.6, 0.4])
    """

    K: ConvexSet
    batch: tuple[int, ...]
    t: int  # how many constraints came
    store: RowStore
    nearby: NearbyRows
    archive: Archive | None
    outer_box: tuple[Array, Array]  # (B, n) each; infinite if no row may be dropped for it
    trim_at: int  # the number of rows above which the store is trimmed next
    working_set: Integers  # (B, w), w = 2n + 8 or MAX_WORKING_SET: what the next projection starts with, then −1
    curved: tuple[Constraint, ...]  # constraints that are not affine
    binding: tuple[tuple[int, ...], ...]  # which of these each trial starts with
    polyhedron: PolyhedronRows | None  # K itself, if it is a polyhedron
    history: CurvedHistory  # the curved constraints once more, for passes over all of them; a cache, not stored

    @classmethod
    def begin(
        cls, K: ConvexSet, batch: tuple[int, ...], *, forget: bool = False, archive: bool = True
    ) -> PersistentIntersection:
        """K itself."""
        B, n = prod(batch), K.dim
        lower, upper = _outer_box(K) if forget else (np.full(n, -np.inf), np.full(n, np.inf))
        store = RowStore.empty(B, n)
        return cls(
            K=K,
            batch=batch,
            t=0,
            store=store,
            nearby=NearbyRows.begin(store),
            archive=Archive.empty(B, n) if archive else None,
            outer_box=(np.broadcast_to(lower, (B, n)), np.broadcast_to(upper, (B, n))),
            trim_at=2 * SMALL_STORE,
            working_set=np.full((B, min(2 * n + 8, MAX_WORKING_SET)), -1),
            curved=(),
            binding=((),) * B,
            polyhedron=PolyhedronRows.of(K),
            history=CurvedHistory(batch),
        )

    def plus(self, constraint: Constraint, active: Any = None) -> PersistentIntersection:
        """With one more constraint, in the trials that are ``active`` (all if None, or if it is not affine).

        The arrays of an affine constraint are copied; a constraint of another kind must not change later.
        """
        affine = None if constraint.has_priorities else constraint.affine()  # (rows of the store are all alike)
        t = self.t + 1
        if affine is None:
            binding = tuple((*bound, len(self.curved)) for bound in self.binding)
            curved = (*self.curved, constraint)
            return self._replace(t=t, curved=curved, binding=binding, history=self.history.holding(curved))
        B, M, n = prod(self.batch), constraint.row_count, self.K.dim
        A = _as_trials(affine[0], (*self.batch, M, n), (B, M, n))
        b = _as_trials(affine[1], (*self.batch, M), (B, M))
        if active is not None:
            b = np.where(np.reshape(active, (B, 1)), b, np.inf)
        archive = None if self.archive is None else self.archive.plus(A, b, t)
        store = self.store.plus(A, b)
        if store is None:
            constraint.raise_nonfinite(np.zeros((*self.batch, n)))
        return self._next(t, store, self.nearby, archive, self.working_set)

    def _next(
        self, t: int, store: RowStore, nearby: NearbyRows, archive: Archive | None, working_set: Integers
    ) -> PersistentIntersection:
        """With what changes in every round; `_replace` takes three times as long."""
        fields = (self.K, self.batch, t, store, nearby, archive, self.outer_box, self.trim_at, working_set)
        return make_tuple(PersistentIntersection, (*fields, self.curved, self.binding, self.polyhedron, self.history))

    def project(
        self, point: Array, infeasible: str = "raise", active: Any = None
    ) -> tuple[PersistentIntersection, Projection]:
        """P_{S_t}(point) for each point of shape batch + (n,), as `cocopt.geometry.solve_projection`.

        Trials that are not ``active`` get the point back. An empty S_t is searched for the least violation as a whole:
        then (and with "nearest" in every later round) all rows are solved at once.
        """
        B, n, shape = prod(self.batch), self.K.dim, self.batch
        y = np.ascontiguousarray(point).reshape(B, n)
        todo: Flags = _EVERY if active is None else np.reshape(active, B)
        if self.t == 0:
            x = np.where(todo[:, None], self.K.project_unchecked(y), y)
            return self, Projection(x.reshape(*shape, n), "set", np.True_, np.zeros(shape)[()])
        after, x, left = self._project_by_kernel(y, todo)
        method, all_feasible = "kernel", True
        if left is not None:  # rarely, unless K or a constraint is curved
            feasible, least = np.ones(B, dtype=bool), np.zeros(B)
            x[left], feasible[left], method, working_set, binding = after._project_by_ladder(y, left)
            for i in np.flatnonzero(~feasible).tolist():
                whole = solve(Request(self.K, self._whole(i), y[i], infeasible="nearest"))
                x[i], feasible[i], least[i], method = whole.point, whole.feasible, whole.least_violation, whole.method
            all_feasible = bool(feasible.all())
            if infeasible == "raise" and not all_feasible:
                trials = np.flatnonzero(~feasible)
                raise InfeasibleRound(trials.tolist(), least[trials])
            after = after._replace(working_set=working_set, binding=binding)._recentered(x)
        x = x.reshape(*shape, n)
        if all_feasible:
            return after._trimmed(todo), Projection(x, method, np.True_, np.zeros(shape)[()])
        return after._trimmed(_NONE), Projection(x, method, feasible.reshape(shape)[()], least.reshape(shape)[()])

    def squares(self, point: Array) -> tuple[PersistentIntersection, Array]:
        """Σ_τ (g_τ^+(x))² over the constraints so far, for each point of shape batch + (n,); needs the archive.

        Rows that are violated by at most SATISFIED of their terms count as satisfied: that is 1e-20 of their squares.
        The lists have all others, unless rows were dropped from the store; then all are evaluated.
        """
        assert self.archive is not None
        x = np.ascontiguousarray(point).reshape(-1, self.K.dim)
        after, total = self, np.zeros(x.shape[0])
        if self.archive.size:
            after = self._recentered(x)
            found = after._find_violated(x, _EVERY, MAX_COUNTED, SATISFIED)
            violated, complete = found[:, 0] >= 0, self.store.size == self.archive.size
            # a point of K that violates no row of the store violates none that was dropped
            every = np.where(complete, found[:, -1] >= 0, violated | ~np.asarray(self.K.contains(x)))
            few = np.flatnonzero(violated & ~every)
            if few.size:
                total[few] = self.archive.squares_of(few, found[few], x[few])
            for i in np.flatnonzero(every).tolist():
                total[i] = self.archive.squares(i, x[i])
        if self.curved:
            total += self.history.holding(self.curved).violations(x, len(self.curved))[1]
        return after._trimmed(_NONE), total.reshape(self.batch)[()]

    def stored(self) -> dict[str, Any]:
        """All but K, the leading axes and caches: plain values, arrays, tuples and constraints by name."""
        return {
            "t": self.t,
            "trim_at": self.trim_at,
            "working_set": self.working_set,
            "outer_lower": self.outer_box[0],
            "outer_upper": self.outer_box[1],
            **self.store.stored(),
            "archive": None if self.archive is None else self.archive.stored(),
            "curved": self.curved,
            "binding": self.binding,
        }

    @classmethod
    def from_stored(cls, K: ConvexSet, batch: tuple[int, ...], stored: Any) -> PersistentIntersection:
        """What `stored` returned; a `StateError` if types, shapes or ranges are not those that a run can reach.

        Sequences may be lists. Nothing is allocated before the sizes are known to be those of the arrays given.
        """
        empty = cls.begin(K, (0,))
        _require(isinstance(stored, Mapping), "state", "the fields of an intersection", stored)
        names = list(empty.stored())
        _require(set(stored) == set(names), "state", f"the fields {', '.join(names)}", list(stored))
        B, n, t, trim_at = prod(batch), K.dim, stored["t"], stored["trim_at"]
        _require(type(t) is int and 0 <= t < MAX_COUNT, "t", "a number of rounds", t)
        least = 2 * SMALL_STORE
        _require(type(trim_at) is int and least <= trim_at < MAX_COUNT, "trim_at", f"{least} rows or more", trim_at)
        store = RowStore.from_stored(stored, B, n)
        _require(t > 0 or store.largest_size == 0, "size", "no rows before the first round", store.size)
        lower, upper = (_stored_array(stored, name, (B, n)) for name in ("outer_lower", "outer_upper"))
        _require(not (np.isnan(lower).any() or np.isnan(upper).any()), "outer_lower", "a box without NaN", lower)
        working_set = _stored_array(stored, "working_set", (B, empty.working_set.shape[1]), np.int64)
        ordered = np.sort(working_set, axis=1)
        valid = ((ordered >= -1) & (ordered < store.size[:, None])).all()
        valid &= ((ordered[:, 1:] > ordered[:, :-1]) | (ordered[:, 1:] < 0)).all()  # no row twice
        valid &= ((working_set[:, 1:] < 0) | (working_set[:, :-1] >= 0)).all()  # −1 behind all others
        _require(valid, "working_set", "distinct indices of rows, then −1", working_set)
        archive, curved, binding = stored["archive"], stored["curved"], stored["binding"]
        _require(isinstance(curved, list | tuple) and len(curved) <= t, "curved", f"at most {t} constraints", curved)
        for constraint in curved:
            _check_curved(constraint, batch, n)
        _require(isinstance(binding, list | tuple) and len(binding) == B, "binding", f"{B} sequences", binding)
        return cls(
            K=K,
            batch=batch,
            t=t,
            store=store,
            nearby=NearbyRows.begin(store),
            archive=None if archive is None else Archive.from_stored(archive, B, n, t),
            outer_box=(lower, upper),
            trim_at=trim_at,
            working_set=working_set,
            curved=tuple(curved),
            binding=tuple(_indices(bound, len(curved)) for bound in binding),
            polyhedron=empty.polyhedron,
            history=CurvedHistory(batch),
        )

    def restored(self, stored: Any, batch: tuple[int, ...]) -> PersistentIntersection:
        """`from_stored` in place of this one: with the same K, and with an archive if this has one."""
        found = self.from_stored(self.K, batch, stored)
        kept, wanted = (part.archive is not None for part in (found, self))
        _require(kept == wanted, "archive", "rows" if wanted else "none", stored["archive"])
        return found

    def _row_arguments(self) -> tuple[Any, ...]:
        """Store and lists as the kernels take them."""
        unit, rhs, _, size, _, _, _ = self.store
        nearby = self.nearby
        return unit, rhs, size, nearby.blocks, nearby.balls, nearby.counts

    def _find_violated(self, x: Array, active: Flags, count: int, share: float = ROUNDING_PERSISTENT) -> Integers:
        """The rows that x violates most in each trial, by more than this share of their terms, (B, count); −1: none."""
        like = np.zeros(count, dtype=np.int64)
        found: Integers = kernels().find_violated(x, active, share, *self._row_arguments(), self.nearby.memory, like)
        return found

    def _with_lists(self) -> PersistentIntersection:
        """With lists that belong to this store."""
        nearby, store = self.nearby, self.store
        usable = nearby.newest is store.newest and nearby.version[0] <= store.version
        if usable and store.largest_size <= nearby.max_rows:
            nearby.version[0] = store.version
            return self
        return self._replace(nearby=NearbyRows.begin(store))

    def _project_by_kernel(self, y: Array, active: Flags) -> tuple[PersistentIntersection, Array, Integers | None]:
        """The projections that the compiled kernel finds; which trials it did not do, None if it did all."""
        polyhedron, after = self.polyhedron, self._with_lists()
        if self.curved or polyhedron is None:
            return after, y.copy(), np.flatnonzero(np.broadcast_to(active, y.shape[:1]))
        n, kernel, warm_start = self.K.dim, kernels(), self.working_set
        x, working_set, status = kernel.project_many_rows(
            y,
            active,
            *polyhedron,
            *after._row_arguments(),
            warm_start,
            *kernel.workspace_memory(polyhedron.rhs.size + warm_start.shape[1], n),
            after.nearby.memory,
            kernel.lane_memory(kernel.LANE_ROWS, n),
        )
        left = None
        if np.count_nonzero(status):
            left = np.flatnonzero(status)
            working_set[left] = warm_start[left]
        return after._next(self.t, self.store, after.nearby, self.archive, working_set), x, left

    def _recentered(self, x: Array) -> PersistentIntersection:
        """With lists around x where the old ones do not cover it."""
        after = self._with_lists()
        kernels().recenter_lists(x, *after._row_arguments(), after.nearby.memory)
        return after

    def _trimmed(self, proven: Flags) -> PersistentIntersection:
        """Once there are many rows, without those that are slack all over the outer box, or repeat another.

        In trials of which it is ``proven`` that the intersection has a point, the former are implied by the others: on
        the way from that point to one that violates only such a row, it would have to bind inside the box. In others
        none may go; where the box is infinite, none does.
        """
        if self.store.largest_size <= self.trim_at or not (proven.any() or np.isinf(self.outer_box[0]).all()):
            return self
        unit, rhs, norm, size, _, _, _ = self.store
        sure, box = proven[:, None], self.outer_box
        outer = np.where(sure, box[0], -np.inf), np.where(sure, box[1], np.inf)
        *tight, place = kernels().find_redundant(unit, rhs, size, *outer)
        lower, upper = (np.where(sure, new, old) for new, old in zip(tight, box, strict=True))
        most = max(int(place.max(initial=-1)) + 1, SMALL_STORE)
        like = np.zeros(2 * most, dtype=np.int64)
        store = RowStore.of(*kernels().keep_rows(unit, rhs, norm, place, like))
        kept = np.take_along_axis(place, np.maximum(self.working_set, 0), axis=1)
        working_set = np.where(self.working_set < 0, -1, kept)
        order = np.argsort(working_set < 0, axis=1, kind="stable")
        working_set = np.take_along_axis(working_set, order, axis=1)
        after = self._replace(store=store, outer_box=(lower, upper), trim_at=4 * most, working_set=working_set)
        return after._with_lists()

    def _project_by_ladder(
        self, y: Array, trials: Integers
    ) -> tuple[Array, Flags, str, Integers, tuple[tuple[int, ...], ...]]:
        """The projections by the ladder of methods on a working set, to which the most violated rows are added.

        (points, whether there is one, the method, all working sets and binding curved constraints)
        """
        rows, binding, history = self.working_set[trials], list(self.binding), self.history.holding(self.curved)
        x, feasible, method = y.copy(), np.ones(y.shape[0], dtype=bool), "set"
        todo = np.arange(trials.size)
        while todo.size:
            own = trials[todo]
            x[own], feasible[own], method = self._project_onto(rows[todo], [binding[i] for i in own], y, own, history)
            active = np.zeros(y.shape[0], dtype=bool)
            active[own] = feasible[own]
            added = self._find_violated(x, active, ADDED_BY_LADDER)[trials]
            # none twice, because the solver and this check round differently
            added = np.where((added[:, :, None] == rows[:, None]).any(axis=-1), -1, added)
            more: Flags = np.asarray((added >= 0).any(axis=1))
            rows = np.concatenate([rows, added], axis=1)
            worst = self._worst_curved(x, active, binding, history)
            for j in np.flatnonzero(worst[trials] >= 0):
                i = int(trials[j])
                binding[i], more[j] = (*binding[i], int(worst[i])), True
            todo = todo[more[todo]]
        working_set = self.working_set.copy()
        working_set[trials] = self._binding_rows(rows, x, trials)
        if self.curved:
            self._keep_binding(binding, trials, x, history)
        return x[trials], feasible[trials], method, working_set, tuple(binding)

    def _binding_rows(self, rows: Integers, x: Array, trials: Integers) -> Integers:
        """Those of the rows that bind at x, as many as a working set takes, −1 for none."""
        at, own = np.maximum(rows, 0), trials[:, None]
        rhs = self.store.rhs[own, at]
        slack = rhs - np.vecdot(self.store.unit[own, at], x[trials][:, None])
        size = np.sqrt(np.vecdot(x, x))[own]
        binds = (rows >= 0) & (slack <= BINDING_SLACK * (np.abs(rhs) + size))
        order = np.argsort(np.where(binds, slack, np.inf), axis=1, kind="stable")[:, : self.working_set.shape[1]]
        return np.where(np.take_along_axis(binds, order, axis=1), np.take_along_axis(rows, order, axis=1), -1)

    def _project_onto(
        self, rows: Integers, curved: list[tuple[int, ...]], y: Array, trials: Integers, history: CurvedHistory
    ) -> tuple[Array, Any, str]:
        """The projections onto K, these rows and these curved constraints."""
        most = int((rows >= 0).sum(axis=1).max(initial=0))
        affine = Affine(*self.store.select(trials, -np.sort(-rows, axis=1)[:, :most])) if most else None
        if not self.curved:
            if affine is None:
                return self.K.project_unchecked(y[trials]), True, "set"
            found = solve(Request(self.K, affine, y[trials], infeasible="nearest"))
            return found.point, found.feasible, found.method
        x, feasible, method = np.empty((trials.size, self.K.dim)), np.ones(trials.size, dtype=bool), "set"
        alike: dict[
            tuple[Any, ...], list[int]
        ] = {}  # trials with curved constraints of the same kinds: solved together
        ordered = [sorted(own, key=lambda c: (str(history.kind(c)), c)) for own in curved]
        for j, own in enumerate(ordered):
            alike.setdefault(tuple(map(history.kind, own)), []).append(j)
        for kinds, places in alike.items():
            at, index = trials[places], np.array(places)
            members: list[Constraint] = [] if affine is None else [affine.trials(index)]
            members += [history.take([ordered[j][k] for j in places], at) for k in range(len(kinds))]
            if not members:
                x[places] = self.K.project_unchecked(y[at])
                continue
            found = solve(Request(self.K, Stack(members), y[at], infeasible="nearest"))
            x[places], feasible[places], method = found.point, found.feasible, found.method
        return x, feasible, method

    def _worst_curved(self, x: Array, active: Flags, known: list[tuple[int, ...]], history: CurvedHistory) -> Integers:
        """The curved constraint that each active trial violates most, in units of its terms, but for those known.

        Entries of −1 stand for none.
        """
        B = x.shape[0]
        worst, found = np.full(B, SATISFIED), np.full(B, -1)
        points = x.reshape(*self.batch, self.K.dim)
        for c in history.violations(x, len(self.curved))[0] if self.curved else ():
            constraint = self.curved[c]
            relative = constraint.rows_unchecked(points) / np.maximum(constraint.magnitude(points), 1e-300)
            excess = np.broadcast_to(relative.max(axis=-1), self.batch).reshape(B)
            fresh = active & (excess > worst)
            for i in np.flatnonzero(fresh):
                if c not in known[i]:
                    worst[i], found[i] = excess[i], c
        return found

    def _keep_binding(self, binding: list[tuple[int, ...]], trials: Integers, x: Array, history: CurvedHistory) -> None:
        """Leaves in ``binding``, of these trials, the curved constraints that have next to no slack at x."""
        pairs: dict[Any, list[tuple[int, int]]] = {}  # by kind, constraint and trial
        for i in trials.tolist():
            for c in binding[i]:
                pairs.setdefault(history.kind(c), []).append((c, i))
            binding[i] = ()
        for same in pairs.values():
            at = np.array([i for _, i in same])
            own = history.take([c for c, _ in same], at)
            binds = (own.rows_unchecked(x[at]) >= -CURVED_BINDING_SLACK * own.magnitude(x[at])).any(axis=-1)
            for (c, i), keep in zip(same, np.broadcast_to(binds, at.shape), strict=True):
                binding[i] = (*binding[i], c) if keep else binding[i]

    def _curved(self, c: int, i: Any) -> Constraint:
        """A curved constraint in one trial, or in several."""
        index = tuple(np.unravel_index(i, self.batch)) if self.batch else ()
        return trial_constraint(self.curved[c], self.batch, index)

    def _whole(self, i: int) -> Constraint:
        """Everything that a trial has to satisfy."""
        if self.archive is not None:
            A, b = self.archive.of_trial(i)
        else:
            A, b = (part[0] for part in self.store.select(np.array([i]), np.arange(self.store.size[i])[None]))
        affine: list[Constraint] = [Affine(A, b)] if b.size else []
        return Stack([*affine, *(self._curved(c, i) for c in range(len(self.curved)))])

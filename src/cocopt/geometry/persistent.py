"""Projection onto everything seen so far: K and a stack of constraints that grows every round.

Of the rows seen few can bind, and fewer do. Each trial keeps

- a working set: the rows that bound last time, or nearly, where the next projection starts;
- lists of the rows that matter *near* its point, each with a ball around an anchor in which no other row can be
  violated (a normalised row is met wherever ‖x − anchor‖ is at most its slack at the anchor): a short one, one with
  four times its room out of which it is made, and so on. While the point stays in the balls, only the short list is
  looked through; when it leaves, those of the next list are, once, and seldom all;
- an outer box of the intersection: a row that is slack all over it is implied by the others and can be forgotten.

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

from cocopt.arrays import Array
from cocopt.constraints import Affine, Constraint, Stack
from cocopt.errors import InfeasibleRound
from cocopt.geometry.ladder import Request, solve
from cocopt.geometry.problem import SATISFIED
from cocopt.geometry.project import Projection, _trial
from cocopt.sets.base import ConvexSet

__all__ = ["PersistentIntersection"]

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Arrays = dict[str, NDArray[Any]]

ROUNDING = 1e-13  # a row violated by less than this share of its terms counts as satisfied
TIGHT = 1e-9  # a row with less slack than this share of its terms counts as binding, and starts the next working set
ROOM = 64  # with fewer rows than twice this none are forgotten
FEW = 16  # dimensions for which the first list has one block; for more it has two
LEVELS = 2  # lists at least; there are more if the last has not room for a quarter of the rows
HELD = 256  # rows that a working set of the kernel has room for at most; if more have to be held the ladder takes over
JOIN = 4  # rows that join a working set of the ladder at a time
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


def _spread(array: Array, shape: tuple[int, ...], flat: tuple[int, ...]) -> Array:
    """The array broadcast to one shape, laid out in another of the same size."""
    if array.shape != shape:  # which is not for nothing
        array = np.broadcast_to(array, shape)
    return np.ascontiguousarray(array.reshape(flat))


def _seen(array: NDArray[Any], size: Integers) -> NDArray[Any]:
    """The first ``size`` entries of each trial, 0 for the others."""
    seen = np.arange(array.shape[1]) < size[:, None]
    return np.where(seen.reshape(*seen.shape, *(1,) * (array.ndim - 2)), array, array.dtype.type(0))


class Store(NamedTuple):
    """Normalised rows ⟨unit, x⟩ ≤ right of each of B trials, in buffers that later versions share.

    A version sees the first ``size`` rows of each trial. The newest one appends in place, any other (after a round
    that failed, say) to a copy.
    """

    unit: Array  # (B, capacity, n)
    right: Array  # (B, capacity)
    norm: Array  # (B, capacity), the length that the row had
    size: Integers  # (B,)
    most: int  # the largest of these
    version: int
    newest: list[int]  # one number that all versions share

    @classmethod
    def of(cls, unit: Array, right: Array, norm: Array, size: Integers) -> Store:
        """The rows given."""
        return cls(unit, right, norm, size, int(size.max(initial=0)), 0, [0])

    @classmethod
    def empty(cls, trials: int, dim: int) -> Store:
        """No rows yet."""
        unit, right, norm = np.zeros((trials, 1, dim)), np.zeros((trials, 1)), np.zeros((trials, 1))
        return cls.of(unit, right, norm, np.zeros(trials, dtype=np.int64))

    def plus(self, A: Array, b: Array) -> Store | None:
        """With the rows A (B, M, n), b (B, M), but for those with b = +inf; None if some length overflows."""
        store, most, newest = self, self.most + b.shape[1], self.version == self.newest[0]
        if not newest or most > self.right.shape[1]:
            unit, right, norm = (_resized(part, 1, 2 * most) for part in self[:3])
            store = (
                self._replace(unit=unit, right=right, norm=norm) if newest else Store.of(unit, right, norm, self.size)
            )
        store.newest[0] += 1
        size = kernels().append(A, b, store.size, store.unit, store.right, store.norm)
        if np.minimum.reduce(size, initial=0) < 0:
            return None
        most = int(np.maximum.reduce(size, initial=0))
        return Store(store.unit, store.right, store.norm, size, most, store.newest[0], store.newest)

    def take(self, trials: Integers, index: Integers) -> tuple[Array, Array]:
        """(A, b) of some rows of some trials as they were told, index (trials, k); −1 for a row with b = +inf."""
        trials, at = trials[:, None], np.maximum(index, 0)
        norm = self.norm[trials, at]
        b = np.where(index < 0, np.inf, self.right[trials, at] * norm)
        return self.unit[trials, at] * norm[..., None], b

    def arrays(self) -> Arrays:
        """What this version sees, zeros elsewhere."""
        most = max(self.most, 1)
        unit, right, norm = (_seen(part[:, :most], self.size) for part in self[:3])
        return {"unit": unit, "right": right, "norm": norm, "size": self.size}


class NearbyRows(NamedTuple):
    """The rows of each trial that matter around some anchors: the lists that `cocopt.kernels.persistent` describes.

    Changed in place, and not stored, since no result depends on them to the last bit: a version of
    `PersistentIntersection` whose store they do not serve begins anew.
    """

    blocks: Array  # (B, blocks of all lists, n + 2, BLOCK)
    around: Array  # (B, n + 2, WIDTH): a column a list
    counts: Integers  # (B, 2, lists)
    work: Array  # memory for one trial
    newest: list[int]  # they serve versions of the store that share this
    version: list[int]  # one number: the version that they served last; they may know rows that came with it
    enough: int  # rows of the store that these lists are enough for

    @classmethod
    def begin(cls, store: Store) -> NearbyRows:
        """Lists of none, with a radius only if the store is empty."""
        trials, _, n = store.unit.shape
        block, most = kernels().BLOCK, kernels().WIDTH
        last, levels = 1 if n <= FEW else 2, 1
        total = last
        while levels < LEVELS or (4 * block * last < store.most and levels < most):
            last, levels = 4 * last, levels + 1
            total += last
        blocks, around = np.zeros((trials, total, n + 2, block)), np.zeros((trials, n + 2, most))
        counts = np.zeros((trials, 2, levels), dtype=np.int64)
        around[:, n] = np.where(store.size > 0, -np.inf, np.inf)[:, None]
        counts[:, 1] = store.size[:, None]
        work = np.empty((2, block * last))
        enough = 4 * block * last if levels < most else sys.maxsize
        return cls(blocks, around, counts, work, store.newest, [store.version], enough)


class Archive(NamedTuple):
    """All rows of all trials as they came, by which `PersistentIntersection` judges `squares` and emptiness.

    The rows are the first axis, so that those of a round stand together. Buffers are shared as in `Store`.
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

    def plus(self, A: Array, b: Array, t: int) -> Archive:
        """With the rows A (B, M, n), b (B, M) of round t."""
        told, old, size = self, self.size, self.size + b.shape[1]
        if old != self.newest[0] or size > self.round.size:
            told = Archive.of(*(_resized(part, 0, 2 * size) for part in self[:3]))
        told.A[old:size], told.b[old:size], told.round[old:size] = A.swapaxes(0, 1), b.T, t
        told.newest[0] = size
        return told._replace(size=size)

    def of_trial(self, i: int) -> tuple[Array, Array]:
        """(A, b) of one trial."""
        return self.A[: self.size, i], self.b[: self.size, i]

    def squares(self, i: int, x: Array) -> float:
        """Σ over the rounds of (max over the round's rows of ⟨a, x⟩ − b)_+²."""
        A, b = self.of_trial(i)
        first = np.flatnonzero(np.diff(self.round[: self.size], prepend=-1))
        return float(np.square(np.maximum(np.maximum.reduceat(A @ x - b, first), 0.0)).sum())


class PolyhedronRows(NamedTuple):
    """A polyhedral K as the kernel takes it: rows of length 1, of which the first are equations."""

    lower: Array
    upper: Array
    rows: Array
    right: Array
    equalities: int

    @classmethod
    def of(cls, K: ConvexSet) -> PolyhedronRows | None:
        """None if K is curved."""
        poly = K.polyhedral()
        if poly is None:
            return None
        length = np.sqrt(np.vecdot(poly.A, poly.A))
        return cls(poly.lower, poly.upper, poly.A / length[:, None], poly.b / length, poly.equalities)


class PersistentIntersection(NamedTuple):
    """S_t = K ∩ {g_1 ≤ 0} ∩ … ∩ {g_t ≤ 0} of each trial, and exact projections onto it.

    Immutable: `plus` and `project` return the next version. Affine constraints are kept as rows; those of other kinds
    as they are: all are checked in every projection, which starts with those that bound last time.

    Parameters of `begin`: K, the leading axes of the trials, whether rows that can no longer bind may be forgotten (not
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
    store: Store
    near: NearbyRows
    told: Archive | None
    box: tuple[Array, Array]  # (B, n) each, an outer box; infinite if none may be forgotten for it
    due: int  # the number of rows at which forgetting is tried next
    working: Integers  # (B, w), w = 2n + 8 or HELD: the rows that the next projection starts with, then −1
    curved: tuple[Constraint, ...]  # constraints that are not affine
    binding: tuple[tuple[int, ...], ...]  # which of these each trial starts with
    own: PolyhedronRows | None  # K itself, if it is a polyhedron

    @classmethod
    def begin(
        cls, K: ConvexSet, batch: tuple[int, ...], *, forget: bool = False, archive: bool = True
    ) -> PersistentIntersection:
        """K itself."""
        B, n = prod(batch), K.dim
        lower, upper = np.full(n, -np.inf), np.full(n, np.inf)
        if forget:
            poly, middle = K.polyhedral(), K.project_unchecked(np.zeros(n))
            lower, upper = middle - K.diameter, middle + K.diameter
            if poly is not None:
                lower, upper = np.maximum(lower, poly.lower), np.minimum(upper, poly.upper)
        box = np.broadcast_to(lower, (B, n)), np.broadcast_to(upper, (B, n))
        told = Archive.of(np.zeros((0, B, n)), np.zeros((0, B)), np.zeros(0, dtype=np.int64)) if archive else None
        working = np.full((B, min(2 * n + 8, HELD)), -1)
        store = Store.empty(B, n)
        return cls(
            K,
            batch,
            0,
            store,
            NearbyRows.begin(store),
            told,
            box,
            2 * ROOM,
            working,
            (),
            ((),) * B,
            PolyhedronRows.of(K),
        )

    def plus(self, constraint: Constraint, active: Any = None) -> PersistentIntersection:
        """With one more constraint, in the trials that are ``active`` (all if None, or if it is not affine).

        The arrays of an affine constraint are copied; a constraint of another kind must not change later.
        """
        affine = constraint.affine()
        t = self.t + 1
        if affine is None:
            trials = tuple((*own, len(self.curved)) for own in self.binding)
            return self._replace(t=t, curved=(*self.curved, constraint), binding=trials)
        B, M, n = prod(self.batch), constraint.row_count, self.K.dim
        A, b = _spread(affine[0], (*self.batch, M, n), (B, M, n)), _spread(affine[1], (*self.batch, M), (B, M))
        if active is not None:
            b = np.where(np.reshape(active, (B, 1)), b, np.inf)
        told = None if self.told is None else self.told.plus(A, b, t)
        store = self.store.plus(A, b)
        if store is None:
            constraint.raise_nonfinite(np.zeros((*self.batch, n)))
        return PersistentIntersection(
            self.K, self.batch, t, store, self.near, told, *self[6:]
        )  # (`_replace` takes thrice as long)

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
        after, x, left = self._kernel(y, todo)
        method, every = "kernel", True
        if left is not None:  # rarely, unless K or a constraint is curved
            feasible, least = np.ones(B, dtype=bool), np.zeros(B)
            x[left], feasible[left], method, working, binding = after._ladder(y, left)
            for i in np.flatnonzero(~feasible).tolist():
                whole = solve(Request(self.K, self._whole(i), y[i], infeasible="nearest"))
                x[i], feasible[i], least[i], method = whole.point, whole.feasible, whole.least_violation, whole.method
            every = bool(feasible.all())
            if infeasible == "raise" and not every:
                trials = np.flatnonzero(~feasible)
                raise InfeasibleRound(trials.tolist(), least[trials])
            after = after._replace(working=working, binding=binding)._moved(x)
        x = x.reshape(*shape, n)
        if every:
            return after._trimmed(todo), Projection(x, method, np.True_, np.zeros(shape)[()])
        return after._trimmed(_NONE), Projection(x, method, feasible.reshape(shape)[()], least.reshape(shape)[()])

    def squares(self, point: Array) -> tuple[PersistentIntersection, Array]:
        """Σ_τ (g_τ^+(x))² over the constraints seen, for each point of shape batch + (n,); needs the archive."""
        assert self.told is not None
        x = np.ascontiguousarray(point).reshape(-1, self.K.dim)
        after, total = self, np.zeros(x.shape[0])
        if self.told.size:
            after = self._renewed()
            # a point of K that violates no row kept violates none that was forgotten
            worst = kernels().violated(x, True, ROUNDING, *after._rows(), after.near.work, np.zeros(1, dtype=np.int64))[
                :, 0
            ]
            for i in np.flatnonzero((worst >= 0) | ~np.asarray(self.K.contains(x))).tolist():
                total[i] = self.told.squares(i, x[i])
        total = total.reshape(self.batch)
        for constraint in self.curved:
            total = total + np.square(constraint.violation_unchecked(point))
        return after._trimmed(_NONE), total[()]

    def arrays(self) -> tuple[dict[str, Any], Arrays]:
        """All but K, the leading axes and the curved constraints, as plain values and a few arrays."""
        arrays: Arrays = {"working": self.working, "lower": self.box[0], "upper": self.box[1]}
        arrays.update({f"store.{name}": array for name, array in self.store.arrays().items()})
        if self.told is not None:
            parts = zip(Archive._fields, self.told[:3], strict=False)
            arrays.update({f"told.{name}": array[: self.told.size] for name, array in parts})
        plain = {name: getattr(self, name) for name in ("t", "due", "binding")}
        return plain, arrays

    @classmethod
    def from_arrays(
        cls,
        K: ConvexSet,
        batch: tuple[int, ...],
        curved: tuple[Constraint, ...],
        plain: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
    ) -> PersistentIntersection:
        """What `arrays` described."""

        def part(home: str, fields: tuple[str, ...]) -> list[NDArray[Any]]:
            return [arrays[f"{home}.{name}"] for name in fields]

        store = Store.of(*part("store", Store._fields[:4]))
        told = Archive.of(*part("told", Archive._fields[:3])) if "told.A" in arrays else None
        box, binding = (arrays["lower"], arrays["upper"]), tuple(map(tuple, plain["binding"]))
        t, due, near = plain["t"], plain["due"], NearbyRows.begin(store)
        return cls(K, batch, t, store, near, told, box, due, arrays["working"], curved, binding, PolyhedronRows.of(K))

    def _rows(self) -> tuple[Any, ...]:
        """Store and list as `kernels.persistent.violated` takes them."""
        return *self.store[:2], self.store.size, *self.near[:3]

    def _renewed(self) -> PersistentIntersection:
        """With lists that serve this store."""
        near, store = self.near, self.store
        if near.newest is store.newest and near.version[0] <= store.version and store.most <= near.enough:
            near.version[0] = store.version
            return self
        return self._replace(near=NearbyRows.begin(store))

    def _kernel(self, y: Array, active: Flags) -> tuple[PersistentIntersection, Array, Integers | None]:
        """The projections that the compiled kernel finds; which trials it did not do, None if it did all."""
        own, after = self.own, self._renewed()
        if self.curved or own is None:
            return after, y.copy(), np.flatnonzero(np.broadcast_to(active, y.shape[:1]))
        n, kernel = self.K.dim, kernels()
        memory = (
            *kernel.workspace_memory(own.right.size + self.working.shape[1], n),
            after.near.work,
            kernel.lane_memory(kernel.ROWS, n),
        )
        x, working, status = kernel.box_many_rows(y, active, *own, *after._rows(), self.working, *memory)
        left = None
        if np.count_nonzero(status):
            left = np.flatnonzero(status)
            working[left] = self.working[left]
        return PersistentIntersection(*after[:8], working, *after[9:]), x, left

    def _moved(self, x: Array) -> PersistentIntersection:
        """With lists around x where the old ones do not reach."""
        after = self._renewed()
        kernels().relist(x, *after._rows(), after.near.work)
        return after

    def _trimmed(self, proven: Flags) -> PersistentIntersection:
        """Once there are many rows, without those that are slack all over the outer box, or repeat another.

        In trials of which it is ``proven`` that the intersection has a point, the former are implied by the others: on
        the way from that point to one that violates only such a row, it would have to bind inside the box. In others
        none may go; where the box is infinite, none does.
        """
        if self.store.most <= self.due or not (proven.any() or np.isinf(self.box[0]).all()):
            return self
        unit, right, norm, size = self.store[:4]
        sure, box = proven[:, None], self.box
        outer = np.where(sure, box[0], -np.inf), np.where(sure, box[1], np.inf)
        *tight, place = kernels().tighten(unit, right, size, *outer)
        lower, upper = (np.where(sure, new, old) for new, old in zip(tight, box, strict=True))
        most = int(place.max(initial=-1)) + 1
        like = np.zeros(2 * max(most, ROOM), dtype=np.int64)
        store = Store.of(*kernels().compact(unit, right, norm, place, like))
        working = np.where(self.working < 0, -1, np.take_along_axis(place, np.maximum(self.working, 0), axis=1))
        working = np.take_along_axis(working, np.argsort(working < 0, axis=1, kind="stable"), axis=1)
        due = 4 * max(most, ROOM)
        return self._replace(store=store, box=(lower, upper), due=due, working=working)._renewed()

    def _ladder(self, y: Array, trials: Integers) -> tuple[Array, Flags, str, Integers, tuple[tuple[int, ...], ...]]:
        """The same by the ladder of `cocopt.project` on a working set, which the most violated others join.

        (points, whether there is one, the method, all working sets and binding curved constraints)
        """
        held, binding = self.working[trials], list(self.binding)
        x, feasible, method = y.copy(), np.ones(y.shape[0], dtype=bool), "set"
        like = np.zeros(JOIN, dtype=np.int64)
        todo = np.arange(trials.size)
        while todo.size:
            own = trials[todo]
            x[own], feasible[own], method = self._solve(held[todo], [binding[i] for i in own], y, own)
            active = np.zeros(y.shape[0], dtype=bool)
            active[own] = feasible[own]
            joins = kernels().violated(x, active, ROUNDING, *self._rows(), self.near.work, like)[trials]
            # none twice, because the solver and this check round differently
            joins = np.where((joins[:, :, None] == held[:, None]).any(axis=-1), -1, joins)
            more: Flags = np.asarray((joins >= 0).any(axis=1))
            held = np.concatenate([held, joins], axis=1)
            for j in todo[feasible[own]] if self.curved else ():
                i = trials[j]
                found = self._worst_curved(i, x[i], binding[i])
                if found is not None:
                    binding[i], more[j] = (*binding[i], found), True
            todo = todo[more[todo]]
        working = self.working.copy()
        working[trials] = self._tight(held, x, trials)
        for i in trials.tolist():
            binding[i] = tuple(c for c in binding[i] if self._binds(c, i, x[i]))
        return x[trials], feasible[trials], method, working, tuple(binding)

    def _tight(self, held: Integers, x: Array, trials: Integers) -> Integers:
        """Those of the rows held that bind at x, as many as a working set takes, −1 for none."""
        at, own = np.maximum(held, 0), trials[:, None]
        right = self.store.right[own, at]
        slack = right - np.vecdot(self.store.unit[own, at], x[trials][:, None])
        size = np.sqrt(np.vecdot(x, x))[own]
        tight = (held >= 0) & (slack <= TIGHT * (np.abs(right) + size))
        order = np.argsort(np.where(tight, slack, np.inf), axis=1, kind="stable")[:, : self.working.shape[1]]
        return np.where(np.take_along_axis(tight, order, axis=1), np.take_along_axis(held, order, axis=1), -1)

    def _solve(
        self, held: Integers, curved: list[tuple[int, ...]], y: Array, trials: Integers
    ) -> tuple[Array, Any, str]:
        """The projections onto K, these rows and these curved constraints."""
        used = int((held >= 0).sum(axis=1).max(initial=0))
        affine = Affine(*self.store.take(trials, -np.sort(-held, axis=1)[:, :used])) if used else None
        if not self.curved:
            if affine is None:
                return self.K.project_unchecked(y[trials]), True, "set"
            found = solve(Request(self.K, affine, y[trials], infeasible="nearest"))
            return found.point, found.feasible, found.method
        x, feasible, method = np.empty((trials.size, self.K.dim)), np.ones(trials.size, dtype=bool), "set"
        for j, i in enumerate(trials):
            members: list[Constraint] = [] if affine is None else [affine.trials(j)]
            members += [self._curved(c, i) for c in curved[j]]
            if not members:
                x[j] = self.K.project_unchecked(y[i])
                continue
            found = solve(Request(self.K, Stack(members), y[i], infeasible="nearest"))
            x[j], feasible[j], method = found.point, found.feasible, found.method
        return x, feasible, method

    def _worst_curved(self, i: int, x: Array, held: tuple[int, ...]) -> int | None:
        """The curved constraint that x violates most in units of its terms; None if only those held are violated."""
        worst, found = SATISFIED, None
        for c in range(len(self.curved)):
            if c not in held:
                own = self._curved(c, i)
                excess = float(np.max(own.rows_unchecked(x) / np.maximum(own.magnitude(x), 1e-300)))
                if excess > worst:
                    worst, found = excess, c
        return found

    def _binds(self, c: int, i: int, x: Array) -> bool:
        """Whether a curved constraint has next to no slack at x."""
        own = self._curved(c, i)
        return bool((own.rows_unchecked(x) >= -1e-6 * own.magnitude(x)).any())

    def _curved(self, c: int, i: int) -> Constraint:
        """A curved constraint in one trial."""
        return _trial(self.curved[c], self.batch, tuple(np.unravel_index(i, self.batch)) if self.batch else ())

    def _whole(self, i: int) -> Constraint:
        """Everything that a trial has to satisfy."""
        if self.told is not None:
            A, b = self.told.of_trial(i)
        else:
            A, b = (part[0] for part in self.store.take(np.array([i]), np.arange(self.store.size[i])[None]))
        affine: list[Constraint] = [Affine(A, b)] if b.size else []
        return Stack([*affine, *(self._curved(c, i) for c in range(len(self.curved)))])

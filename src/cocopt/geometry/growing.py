"""Projection onto everything seen so far: K and a stack of constraints that grows every round.

Of the rows seen few can bind, and fewer do. Each trial keeps

- a working set: the rows that bound last time, where the next projection starts;
- the rows *near* its point: a ball around an anchor in which no other row can be violated (a normalised row is met
  wherever ‖x − anchor‖ is at most its slack at the anchor). While the point stays in that ball the others need not be
  looked at; when it leaves, all are, once, and the ball moves;
- an outer box of the intersection: a row that is slack all over it is implied by the others and can be forgotten.

Nothing of this approximates: a point is accepted when no row at all is violated by more than rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt._arrays import Array
from cocopt.constraints import Affine, Constraint, Stack
from cocopt.errors import InfeasibleRound
from cocopt.geometry.problem import SATISFIED
from cocopt.geometry.project import Projection, _trial, descend
from cocopt.kernels.status import CONVERGED
from cocopt.sets.base import ConvexSet

__all__ = ["Growing", "Pile"]

Integers = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

ROUNDING = 1e-13  # a row violated by less than this share of its terms counts as satisfied
TIGHT = 1e-9  # a row with less slack than this share of its terms counts as binding, and starts the next working set
NEAR = 32  # the least number of rows that are kept near
JOIN = 4  # rows that join a working set at a time
LOOK = 2000  # what looking at all rows of a trial costs besides, in rows
HELD = 64  # a working set with more rows is not for the kernel


class Rows(NamedTuple):
    """Normalised rows ⟨unit, x⟩ ≤ right of each trial (B, size), in buffers that later versions share.

    A version sees the first ``size`` rows of its buffers. The newest one appends in place, any other (after a round
    that failed, say) to a copy.
    """

    unit: Array  # (B, capacity, n)
    right: Array  # (B, capacity); +inf for an idle row
    norm: Array  # (B, capacity), the length that the row had
    round: Integers  # (B, capacity), when it came
    size: int
    used: list[int]  # one number that all versions share: how much of the buffers is taken

    @classmethod
    def of(cls, unit: Array, right: Array, norm: Array, round: Integers) -> Rows:
        """The rows given, none to spare."""
        return cls(unit, right, norm, round, right.shape[1], [right.shape[1]])

    @classmethod
    def none(cls, trials: int, dim: int) -> Rows:
        """No rows yet."""
        nothing = np.zeros((trials, 0))
        return cls.of(np.zeros((trials, 0, dim)), nothing, nothing, nothing.astype(np.int64))

    @property
    def arrays(self) -> tuple[Array, Array, Array, Integers]:
        """What this version sees of unit, right, norm and round."""
        k = self.size
        return self.unit[:, :k], self.right[:, :k], self.norm[:, :k], self.round[:, :k]

    def plus(self, other: Rows) -> Rows:
        """These rows and those of the other."""
        old, size, self_ = self.size, self.size + other.size, self
        if self.used[0] != old or size > self.right.shape[1]:
            self_ = self._copy(2 * size)
        for buffer, new in zip(self_[:4], other.arrays, strict=True):
            buffer[:, old:size] = new
        self_.used[0] = size
        return self_._replace(size=size)

    def _copy(self, capacity: int) -> Rows:
        def wider(array: NDArray[Any]) -> NDArray[Any]:
            buffer = np.empty((array.shape[0], capacity, *array.shape[2:]), array.dtype)
            buffer[:, : self.size] = array[:, : self.size]
            return buffer

        unit, right, norm, round, size, _ = self
        return Rows(wider(unit), wider(right), wider(norm), wider(round), size, [size])

    def take(self, index: Integers) -> Rows:
        """Some rows of each trial, index (B, k); −1 for an idle row."""
        unit, right, norm, round = self.arrays
        at = np.maximum(index, 0)
        right = np.where(index < 0, np.inf, np.take_along_axis(right, at, axis=1))
        return Rows.of(
            np.take_along_axis(unit, at[..., None], axis=1),
            right,
            np.take_along_axis(norm, at, axis=1),
            np.take_along_axis(round, at, axis=1),
        )

    def of_trials(self, trials: Integers) -> Rows:
        """All rows of some trials."""
        unit, right, norm, round = self.arrays
        return Rows.of(unit[trials], right[trials], norm[trials], round[trials])

    def slack(self, x: Array) -> Array:
        """right − ⟨unit, x⟩ (B, size), in units of length; negative where violated."""
        unit, right, _, _ = self.arrays
        slack: Array = right - np.matvec(unit, x)
        return slack

    def slack_of(self, i: int, x: Array) -> Array:
        """The slacks of one trial, for its point."""
        slack: Array = self.right[i, : self.size] - self.unit[i, : self.size] @ x
        return slack

    def noise(self, x: Array) -> Array:
        """The size of the terms of the slack (B, size), infinite for idle rows."""
        size: Array = np.sqrt(np.vecdot(x, x))
        return np.abs(self.right[:, : self.size]) + size[:, None]

    def original(self) -> tuple[Array, Array]:
        """(A, b) as they were before they were normalised."""
        unit, right, norm, _ = self.arrays
        return unit * norm[..., None], right * norm


def normalised(A: Array, b: Array, t: int) -> Rows:
    """The rows of round t; a row of zeros stays as it is."""
    norm = np.sqrt(np.vecdot(A, A))
    norm = np.where(norm > 0.0, norm, 1.0)
    return Rows.of(A / norm[..., None], b / norm, norm, np.full(b.shape, t))


class Pile(NamedTuple):
    """Affine rows of each of B trials, and those near an anchor: within ``radius`` of it the others are satisfied."""

    all: Rows
    near: Rows
    anchor: Array  # (B, n)
    radius: Array  # (B,)
    keep: int = NEAR  # how many rows to keep near when they have become twice as many
    looks: int = 0  # how often all rows of a trial were looked at since then
    merged: bool = False  # whether a row was not put near because its twin was there
    box: tuple[Array, Array] | None = None  # an outer box (B, n) if rows may be forgotten
    due: int = 4 * NEAR  # the number of rows at which this is tried next
    told: Rows | None = None  # if rows may be forgotten but `squares` is wanted: those too

    @classmethod
    def empty(cls, trials: int, dim: int, box: tuple[Array, Array] | None = None, archive: bool = False) -> Pile:
        """No rows yet."""
        rows = Rows.none(trials, dim)
        told = Rows.none(trials, dim) if archive else None
        return cls(rows, rows, np.zeros((trials, dim)), np.full(trials, np.inf), box=box, told=told)

    def plus(self, A: Array, b: Array, t: int) -> Pile:
        """With the rows of round t, A (B, M, n) and b (B, M); one that repeats a near row does not come near again."""
        new, pile, M = normalised(A, b, t), self, b.shape[1]
        if self.box is not None and self.all.size + M > self.due:
            pile = self._forget()
        near, merged = new, pile.merged
        if pile.near.size:
            from cocopt.kernels.growing import repeats

            unit, right, _, _ = pile.near.arrays
            repeated = repeats(unit[:, None], right[:, None], new.unit, new.right)
            if repeated.any():
                near, merged = new._replace(right=np.where(repeated, np.inf, new.right)), True
        told = None if pile.told is None else pile.told.plus(new)
        return pile._replace(
            all=pile.all.plus(new),
            near=pile.near if merged and not (near.right < np.inf).any() else pile.near.plus(near),
            keep=max(pile.keep, 4 * M),
            merged=merged,
            told=told,
        )

    def outside(self, x: Array, trials: Any = slice(None)) -> NDArray[np.bool_]:
        """Where x has left the ball in which only near rows matter."""
        way = x - self.anchor[trials]
        radius = self.radius[trials]
        left: NDArray[np.bool_] = (np.vecdot(way, way) > np.square(radius)) | (radius < 0.0)
        return left

    def moved(self, x: Array, trials: Integers, slack: list[Array]) -> Pile:
        """With new anchors for some trials, given the slacks of all their rows there: the tightest rows come near."""
        if trials.size == 0:
            return self
        near = self.near._copy(self.near.right.shape[1])
        anchor, radius = self.anchor.copy(), self.radius.copy()
        k = near.size
        for i, own in zip(trials, slack, strict=True):
            anchor[i] = x[i]
            radius[i] = np.inf
            near.right[i] = np.inf
            order = np.arange(own.size)
            if own.size > k:
                order = np.argpartition(own, k)
                radius[i] = own[order[k]]
                order = order[:k]
            for buffer, source in zip(near[:4], self.all[:4], strict=True):
                buffer[i, : order.size] = source[i, order]
        return self._replace(near=near, anchor=anchor, radius=radius, looks=self.looks + trials.size)

    def thinned(self, x: Array) -> Pile:
        """With fewer rows near the points x once they have become many; how many depends on how often x leaves them."""
        if self.near.size < 2 * self.keep:
            return self
        trials, keep = x.shape[0], self.keep
        # more rows near mean fewer looks at all: the two should cost about the same until the next thinning
        looking, checking = self.looks * (self.all.size + LOOK), trials * keep * keep
        if looking > checking:
            return self._replace(keep=2 * keep, looks=0)
        keep = max(NEAR, keep // 2) if 8 * looking < checking else keep
        slack, way = self.near.slack(x), x - self.anchor
        order = np.argpartition(slack, keep, axis=1)
        limit = np.take_along_axis(slack, order[:, keep : keep + 1], axis=1)[:, 0]
        radius = np.minimum(limit, self.radius - np.sqrt(np.vecdot(way, way)))
        near = self.near.take(order[:, :keep])
        return self._replace(near=near, anchor=x, radius=radius, keep=keep, looks=0)

    def squares(self, x: Array, inside: NDArray[np.bool_]) -> tuple[Pile, Array]:
        """Σ over the rounds of (max over the round's rows of ⟨a, x⟩ − b)_+², (B,), and whether x is ``inside`` K.

        A point of K that violates no row kept violates none that was forgotten.
        """
        total = np.zeros(x.shape[0])
        if self.all.size == 0:
            return self, total
        trials = np.flatnonzero(self.outside(x))
        pile = self.moved(x, trials, [self._slack(i, x[i]) for i in trials.tolist()]).thinned(x)
        slack = pile.near.slack(x)
        violated = (slack < -ROUNDING * pile.near.noise(x)).any(axis=1)
        every = self.all if self.told is None else self.told
        # rows beyond those near may be violated too: outside the ball, or as twins or forgotten ones of those near
        beyond = pile.radius < 0.0
        if self.told is not None:
            beyond |= violated | ~inside
        elif self.merged:
            beyond |= violated
        for i in np.flatnonzero(violated | beyond).tolist():
            rows, own = (every, every.slack_of(i, x[i])) if beyond[i] else (pile.near, slack[i])
            total[i] = _squares(-own * rows.norm[i, : rows.size], rows.round[i, : rows.size])
        return pile, total

    def _slack(self, i: int, x: Array) -> Array:
        """The slacks of all rows of a trial."""
        return self.all.slack_of(i, x)

    def _forget(self) -> Pile:
        """Without the rows that are slack all over the outer box.

        While the intersection has a point, such a row is implied by the others: on the way from that point to one that
        violates only this row, it would have to bind inside the box.
        """
        assert self.box is not None
        from cocopt.kernels.growing import tighten

        unit, right, _, _ = self.all.arrays
        lower, upper, useful = tighten(unit, right, *self.box)
        width = int(useful.sum(axis=1).max(initial=0))
        order = np.argsort(~useful, axis=1, kind="stable")[:, :width]
        index = np.where(np.take_along_axis(useful, order, axis=1), order, -1)
        return self._replace(all=self.all.take(index), box=(lower, upper), due=4 * max(width, NEAR))


def _squares(value: Array, round: Integers) -> float:
    """Σ over the rounds of (the largest of the round's values)_+²; a value that appears twice counts once."""
    positive = value > 0.0
    value, round = value[positive], round[positive]
    order = np.lexsort((-value, round))
    value, round = value[order], round[order]
    first = np.concatenate([[True], round[1:] != round[:-1]])[: value.size]
    return float(np.square(value[first]).sum())


class Growing(NamedTuple):
    """S_t = K ∩ {g_1 ≤ 0} ∩ … ∩ {g_t ≤ 0} of each trial, and exact projections onto it.

    Immutable: `plus` and `project` return the next version. Affine constraints are kept as rows; those of other kinds
    as they are: all are checked in every projection, which starts with those that bound last time.

    Parameters of `begin`: K, the leading axes of the trials, whether rows that can no longer bind may be forgotten, and
    whether an archive of all rows is kept nevertheless, which `squares` needs. Without one the least violation of an
    *empty* intersection is that of the rows that are left.

    Examples
    --------
    >>> from cocopt import Box, constraints
    >>> from cocopt.geometry.growing import Growing
    >>> import numpy as np
    >>> S = Growing.begin(Box(0.0, 1.0, dim=2), ())
    >>> for b in (1.5, 1.0, 1.2):
    ...     S = S.plus(constraints.Affine([1.0, 1.0], b))
    >>> S, found = S.project(np.array([1.0, 0.8]))
    >>> found.point
    array([0.6, 0.4])
    """

    K: ConvexSet
    batch: tuple[int, ...]
    t: int  # how many constraints came
    pile: Pile
    working: Integers  # (B, w): which near rows the next projection starts with, −1 for none
    curved: tuple[Constraint, ...]  # constraints that are not affine
    binding: tuple[tuple[int, ...], ...]  # which of these each trial starts with

    @classmethod
    def begin(cls, K: ConvexSet, batch: tuple[int, ...], *, forget: bool = False, archive: bool = True) -> Growing:
        """K itself."""
        trials = prod(batch)
        box = None
        if forget:
            poly, middle = K.polyhedral(), K._project(np.zeros(K.dim))
            lower, upper = middle - K.diameter, middle + K.diameter
            if poly is not None:
                lower, upper = np.maximum(lower, poly.lower), np.minimum(upper, poly.upper)
            box = np.broadcast_to(lower, (trials, K.dim)), np.broadcast_to(upper, (trials, K.dim))
        pile = Pile.empty(trials, K.dim, box, forget and archive)
        return cls(K, batch, 0, pile, np.zeros((trials, 0), dtype=np.int64), (), ((),) * trials)

    def plus(self, constraint: Constraint, active: Any = None) -> Growing:
        """With one more constraint, in the trials that are ``active`` (all if None).

        The arrays of an affine constraint are copied; a constraint of another kind must not change later.
        """
        affine = constraint.affine()
        t = self.t + 1
        if affine is None:
            trials = tuple((*own, len(self.curved)) for own in self.binding)
            return self._replace(t=t, curved=(*self.curved, constraint), binding=trials)
        B, M, n = self.pile.radius.size, constraint.row_count, self.K.dim
        A = np.broadcast_to(affine[0], (*self.batch, M, n)).reshape(B, M, n)
        b = np.broadcast_to(affine[1], (*self.batch, M)).reshape(B, M)
        if active is not None:
            b = np.where(np.reshape(active, (B, 1)), b, np.inf)
        old = self.pile.near.size
        pile = self.pile.plus(A, b, t)
        working = self.working
        if M <= JOIN * JOIN and pile.near.size > old:
            fresh = np.broadcast_to(np.arange(old, pile.near.size), (B, pile.near.size - old))
            working = np.concatenate([working, fresh], axis=1)
        return self._replace(t=t, pile=pile, working=working)

    def project(self, point: Array, infeasible: str = "raise", active: Any = None) -> tuple[Growing, Projection]:
        """P_{S_t}(point) for each point of shape batch + (n,), as `cocopt.geometry.solve_projection`.

        Trials that are not ``active`` get the point back. An empty S_t is searched for the least violation as a whole:
        then (and with "nearest" in every later round) all rows are solved at once.
        """
        B, n = self.pile.radius.size, self.K.dim
        y = np.ascontiguousarray(point).reshape(B, n)
        todo = np.arange(B) if active is None else np.flatnonzero(active)
        pile, working, binding = self.pile, self.working, list(self.binding)
        if pile.all.size == 0 and not self.curved:
            x = y.copy()
            x[todo] = self.K._project(y[todo])
            return self, Projection(x.reshape(*self.batch, n), "set", np.True_, np.zeros(self.batch)[()])
        x, verdict, rung, bound = self._near(pile, working, binding, y, todo)
        left = pile.outside(x, todo)
        least = np.zeros(B)
        bound = bound if todo.size == B else None
        again = todo[left & verdict]
        if bound is not None and again.size == 0:  # nearly always
            feasible = verdict
        else:
            points, feasible = y.copy(), np.ones(B, dtype=bool)
            points[todo], feasible[todo] = x, verdict
            x = points
            joined: dict[int, list[int]] = {}
            todo = again
            while todo.size:
                pile, working, todo = _look(pile, working, x, todo, joined)
                x[todo], feasible[todo], rung, _ = self._near(pile, working, binding, y, todo)
                todo = todo[feasible[todo] & pile.outside(x[todo], todo)]
            for i in np.flatnonzero(~feasible).tolist():
                whole = descend(self.K, self._whole(i), y[i], None, None, "nearest", 500, 1e-7)
                x[i], feasible[i], least[i], rung = whole.point, whole.feasible, whole.least_violation, whole.rung
            if infeasible == "raise" and not feasible.all():
                trials = np.flatnonzero(~feasible)
                raise InfeasibleRound(trials.tolist(), least[trials])
        thinned = pile.thinned(x)
        if bound is None or thinned is not pile or not feasible.all():
            working = _tight(thinned.near, x)
        else:
            working = _replaced(bound, again, _tight(pile.near.of_trials(again), x[again])) if again.size else bound
        if self.curved:
            binding = [tuple(c for c in own if self._binds(c, i, x[i])) for i, own in enumerate(binding)]
        after = self._replace(pile=thinned, working=working, binding=tuple(binding))
        shape = self.batch
        every = np.True_ if feasible.all() else feasible.reshape(shape)[()]
        return after, Projection(x.reshape(*shape, n), rung, every, least.reshape(shape)[()])

    def squares(self, point: Array) -> tuple[Growing, Array]:
        """Σ_τ (g_τ^+(x))² over the constraints seen, for each point of shape batch + (n,)."""
        x = np.ascontiguousarray(point).reshape(-1, self.K.dim)
        pile, total = self.pile.squares(x, np.asarray(self.K.contains(x)))
        total = total.reshape(self.batch)
        for constraint in self.curved:
            total = total + np.square(np.maximum(constraint._rows(point).max(axis=-1), 0.0))
        return self._replace(pile=pile), total[()]

    def arrays(self) -> tuple[dict[str, Any], Arrays]:
        """All but K, the leading axes and the curved constraints, as plain values and a few arrays."""
        pile = self.pile
        arrays: Arrays = {"anchor": pile.anchor, "radius": pile.radius, "working": self.working}
        for home, rows in (("all", pile.all), ("near", pile.near), ("told", pile.told)):
            if rows is None:
                continue
            for name, array in zip(Rows._fields, rows.arrays, strict=False):
                arrays[f"{home}.{name}"] = array
        if pile.box is not None:
            arrays["lower"], arrays["upper"] = pile.box
        plain: dict[str, Any] = {
            "t": self.t,
            "keep": pile.keep,
            "looks": pile.looks,
            "merged": pile.merged,
            "due": pile.due,
        }
        plain["binding"] = self.binding
        return plain, arrays

    @classmethod
    def from_arrays(
        cls,
        K: ConvexSet,
        batch: tuple[int, ...],
        curved: tuple[Constraint, ...],
        plain: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
    ) -> Growing:
        """What `arrays` described."""

        def rows(home: str) -> Rows:
            return Rows.of(*(arrays[f"{home}.{name}"] for name in ("unit", "right", "norm", "round")))

        box = (arrays["lower"], arrays["upper"]) if "lower" in arrays else None
        flags = plain["keep"], plain["looks"], plain["merged"]
        told = rows("told") if "told.unit" in arrays else None
        pile = Pile(rows("all"), rows("near"), arrays["anchor"], arrays["radius"], *flags, box, plain["due"], told)
        return cls(K, batch, plain["t"], pile, arrays["working"], curved, tuple(map(tuple, plain["binding"])))

    def _near(
        self, pile: Pile, working: Integers, binding: list[tuple[int, ...]], y: Array, trials: Integers
    ) -> tuple[Array, NDArray[np.bool_], str, Integers | None]:
        """The projections of some trials onto K, all near rows and all curved constraints; whether there is one.

        The rung, and which near rows bind if the kernel found them all.
        """
        feasible = np.ones(trials.size, dtype=bool)
        solved = None if self.curved else self._kernel(pile.near, working, y, trials)
        if solved is None:
            x, feasible, rung = self._ladder(pile.near, working, binding, y, trials)
            return x, feasible, rung, None
        x, bound, status = solved
        if not status.any():
            return x, feasible, "kernel", bound[:, : int((bound >= 0).any(axis=0).sum())]
        left = np.flatnonzero(status != CONVERGED)
        x[left], feasible[left], rung = self._ladder(pile.near, working, binding, y, trials[left])
        return x, feasible, rung, None

    def _kernel(
        self, near: Rows, working: Integers, y: Array, trials: Integers
    ) -> tuple[Array, Integers, Integers] | None:
        """(points, binding rows, statuses) of the compiled kernel for polyhedra; None if there is none for K."""
        poly = self.K.polyhedral()
        if poly is None or working.shape[1] > HELD:
            return None
        from cocopt.kernels.growing import box_many_rows
        from cocopt.kernels.rows import scratch

        length = np.sqrt(np.vecdot(poly.A, poly.A))
        unit, right, _, _ = near.arrays
        width = working.shape[1]
        held = max(width, self.K.dim) + self.K.dim  # rarely do more than n rows bind; the less memory, the faster
        warm = np.full((trials.size, held), -1)
        warm[:, :width] = working[trials]
        if trials.size < y.shape[0]:
            y, unit, right = y[trials], unit[trials], right[trials]
        return box_many_rows(  # type: ignore[no-any-return]
            y, poly.lower, poly.upper, poly.A / length[:, None], poly.b / length, poly.equalities, unit, right, warm,
            *scratch(poly.b.size + held, self.K.dim),
        )  # fmt: skip

    def _ladder(
        self, near: Rows, working: Integers, binding: list[tuple[int, ...]], y: Array, trials: Integers
    ) -> tuple[Array, NDArray[np.bool_], str]:
        """The same by the ladder of `cocopt.project` on a working set, which the most violated others join."""
        near, held = near.of_trials(trials), working[trials]
        x, feasible, rung = np.zeros((trials.size, self.K.dim)), np.ones(trials.size, dtype=bool), "set"
        todo = np.arange(trials.size)
        while todo.size:
            rows = near.of_trials(todo).take(held[todo])
            x[todo], feasible[todo], rung = self._solve(rows, [binding[i] for i in trials[todo]], y, trials[todo])
            excess = -near.slack(x) - ROUNDING * near.noise(x)
            trial, column = np.nonzero(held >= 0)
            excess[trial, held[trial, column]] = -np.inf
            joins = np.argsort(-excess, axis=1)[:, :JOIN]
            joins = np.where((np.take_along_axis(excess, joins, axis=1) > 0.0) & feasible[:, None], joins, -1)
            more: NDArray[np.bool_] = np.asarray((joins >= 0).any(axis=1))
            held = np.concatenate([held, joins], axis=1)
            for j in todo[feasible[todo]] if self.curved else ():
                i = trials[j]
                found = self._worst_curved(i, x[j], binding[i])
                if found is not None:
                    binding[i], more[j] = (*binding[i], found), True
            todo = todo[more[todo]]
        return x, feasible, rung

    def _solve(self, rows: Rows, curved: list[tuple[int, ...]], y: Array, trials: Integers) -> tuple[Array, Any, str]:
        """The projections onto K, these rows and these curved constraints."""
        affine = Affine(*rows.original()) if rows.size else None
        if not self.curved:
            if affine is None:
                return self.K._project(y[trials]), True, "set"
            found = descend(self.K, affine, y[trials], None, None, "nearest", 500, 1e-7)
            return found.point, found.feasible, found.rung
        x, feasible, rung = np.empty((trials.size, self.K.dim)), np.ones(trials.size, dtype=bool), "set"
        for j, i in enumerate(trials):
            members: list[Constraint] = [] if affine is None else [affine.trials(j)]
            members += [self._curved(c, i) for c in curved[j]]
            if not members:
                x[j] = self.K._project(y[i])
                continue
            found = descend(self.K, Stack(members), y[i], None, None, "nearest", 500, 1e-7)
            x[j], feasible[j], rung = found.point, found.feasible, found.rung
        return x, feasible, rung

    def _worst_curved(self, i: int, x: Array, held: tuple[int, ...]) -> int | None:
        """The curved constraint that x violates most in units of its terms; None if only those held are violated."""
        worst, found = SATISFIED, None
        for c in range(len(self.curved)):
            if c not in held:
                own = self._curved(c, i)
                excess = float(np.max(own._rows(x) / np.maximum(own.magnitude(x), 1e-300)))
                if excess > worst:
                    worst, found = excess, c
        return found

    def _binds(self, c: int, i: int, x: Array) -> bool:
        """Whether a curved constraint has next to no slack at x."""
        own = self._curved(c, i)
        return bool((own._rows(x) >= -1e-6 * own.magnitude(x)).any())

    def _curved(self, c: int, i: int) -> Constraint:
        """A curved constraint in one trial."""
        return _trial(self.curved[c], self.batch, tuple(np.unravel_index(i, self.batch)) if self.batch else ())

    def _whole(self, i: int) -> Constraint:
        """Everything that a trial has to satisfy."""
        rows = (self.pile.all if self.pile.told is None else self.pile.told).of_trials(np.array([i]))
        A, b = rows.original()
        affine: list[Constraint] = [Affine(A[0], b[0])] if rows.size else []
        return Stack([*affine, *(self._curved(c, i) for c in range(len(self.curved)))])


def _look(
    pile: Pile, working: Integers, x: Array, trials: Integers, joined: dict[int, list[int]]
) -> tuple[Pile, Integers, Integers]:
    """Looks at all rows of some trials: the most violated ones come near and join the working set.

    Where none is, the anchor moves to x. Returns the trials where some are; ``joined`` notes which, so that none joins
    twice because the solver and this check round differently.
    """
    size = np.sqrt(np.vecdot(x, x))
    joins, slack, settled = np.full((x.shape[0], JOIN), -1), [], []
    for i in trials.tolist():
        own = pile._slack(i, x[i])
        excess = -own - ROUNDING * (size[i] + np.abs(pile.all.right[i, : pile.all.size]))
        before = joined.setdefault(i, [])
        excess[before] = -np.inf
        worst = np.flatnonzero(excess > 0.0)
        if worst.size > JOIN:
            worst = worst[np.argpartition(-excess[worst], JOIN)[:JOIN]]
        joins[i, : worst.size] = worst
        before += worst.tolist()
        if worst.size == 0:
            settled.append(i)
            slack.append(own)
    left = trials[(joins[trials] >= 0).any(axis=1)]
    if left.size:
        fresh = np.where(joins < 0, -1, pile.near.size + np.arange(JOIN))
        working = np.concatenate([working, fresh], axis=1)
        pile = pile._replace(near=pile.near.plus(pile.all.take(joins)), looks=pile.looks + left.size)
    return pile.moved(x, np.array(settled, dtype=np.int64), slack), working, left


def _replaced(working: Integers, trials: Integers, own: Integers) -> Integers:
    """With other working sets for some trials."""
    result = np.full((working.shape[0], max(working.shape[1], own.shape[1])), -1)
    result[:, : working.shape[1]] = working
    result[trials] = -1
    result[trials, : own.shape[1]] = own
    return result


def _tight(near: Rows, x: Array) -> Integers:
    """The near rows that bind at x, at most 2n of them a trial, −1 for none."""
    slack = near.slack(x)
    tight = (slack <= TIGHT * near.noise(x)) & (slack < np.inf)
    width = min(int(tight.sum(axis=1).max(initial=0)), 2 * x.shape[1])
    order = np.argsort(np.where(tight, slack, np.inf), axis=1, kind="stable")[:, :width]
    return np.where(np.take_along_axis(tight, order, axis=1), order, -1)

"""Piecewise linear rows beside curved and affine ones, for all trials at once: Newton's method on their pieces.

Within a cell, where no coordinate crosses a kink x_j = c_j, a `Norm1` is one affine row ⟨s, x − c⟩ ≤ r with s_j = ±1. A
`NormInf` is a box everywhere, a `CVaR` the largest of many affine rows. So each trial is a problem of the kernel
`newton_rows` over a cell, which is a box, and a few affine rows; cell and rows change until its solution x is that of
the whole:

- Where x_j is at a kink and the Lagrangian falls beyond it, the coordinate crosses. x stays feasible, so between two
  new rows the distance to the target does not grow; `MAX_ROUNDS` ends what does not settle.
- Where x violates a CVaR, the affine row that is equal to it at x is added; nowhere does it exceed the CVaR.
- Where a cell has no feasible point, multipliers are bounded for a while, so that violations are penalised only: the
  penalty is exact once its weight exceeds the multipliers (see, for instance, Nocedal & Wright 2006, theorem 17.3).

If nothing of this happens and no multiplier is at its bound, x satisfies the optimality conditions of the whole: within
the cell the kernel has checked them.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cocopt import kernels
from cocopt.arrays import Array, ignore_fp_warnings
from cocopt.constraints import Affine, Constraint, CVaR, Norm1, NormInf
from cocopt.constraints.base import member_trials, row_norms
from cocopt.geometry.batch import Batch
from cocopt.geometry.dense import (
    KINDS,
    MAX_CURVED_ROWS,
    MAX_NEWTON_DIM,
    MAX_NEWTON_ROWS,
    UNBOUNDED,
    OwnRows,
    flattened,
    no_bounds,
    own_rows,
    row_data,
)
from cocopt.geometry.problem import Request, trial_shape
from cocopt.kernels import contiguous
from cocopt.kernels.status import CONVERGED, NONFINITE, UNCONVERGED
from cocopt.sets.l1ball import L1Ball
from cocopt.sets.space import Space
from cocopt.threads import matvec, one_blas_thread, vecmat
from cocopt.tolerances import FEASIBILITY, SATISFIED

__all__ = ["describe_pieces", "pieces_apply", "solve_pieces"]

MAX_ROUNDS = 60  # changes of a trial's cell and rows
NEW_ROW = 1e-11  # what a CVaR must exceed its rows by, relative to its terms, for another one
DOWNHILL = 1e-14  # a slope counts as downhill beyond this share of the terms that make it up
FAR = 1e6  # distances to the target, in sizes, from which slopes have too few digits: the conic form answers
FIRST_BOUND, NEXT_BOUND, LAST_BOUND = 1e2, 1e2, 1e6  # bounds of multipliers, in units of the distance
AT_BOUND = 0.99  # a multiplier beyond this share of its bound is at it

Numbers = NDArray[np.int64]  # of trials
Mask = NDArray[np.bool_]
Kind = TypeVar("Kind", bound=Constraint)

_PIECEWISE = (Norm1, NormInf, CVaR)
_ALL_KINDS: tuple[type[Constraint], ...] = (*KINDS, *_PIECEWISE)
#: how many axes of each of the kernel's arrays are not trials
_AXES = (2, 1, 2, 1, 3, 2, 1, 1, 3, 2, 2, 1)


class Parts(NamedTuple):
    """K's own rows, and the parts of the constraint by what becomes of them."""

    own: OwnRows  #: of K; of an `L1Ball` there are none
    members: list[Constraint]
    smooth: list[Constraint]  #: rows of the kernel as they are
    sums: list[Norm1]  #: of an `L1Ball`, K itself comes first
    boxes: list[NormInf]
    tails: list[CVaR]


class Found(NamedTuple):
    """Solutions of some trials over their cells."""

    trials: Numbers
    x: Array
    bounds: tuple[Array, Array]
    most: Array | None  #: bounds of the multipliers of all rows, None if none has one
    smooth: Array  #: multipliers of K's rows and of the smooth ones, in the kernel's order
    sums: Array
    tails: Array  #: of the rows of the tails


def pieces_apply(request: Request) -> bool:
    """Whether `solve_pieces` is for this request."""
    return _parts_of(request) is not None


def describe_pieces(request: Request) -> str:
    """For `cocopt.explain`."""
    M = request.constraint.row_count
    of = "K and " if type(request.K) is L1Ball else ""
    return f"compiled, Newton's method on the pieces of {of}{'one row' if M == 1 else f'{M} rows'}"


def solve_pieces(request: Request) -> Batch | None:
    """The answer for all trials; None if nothing is piecewise linear, or K or another row is of other kinds."""
    parts = _parts_of(request)
    if parts is None:
        return None
    K, constraint, point = request.K, request.constraint, contiguous(request.point)
    shape = trial_shape(constraint, point)
    with ignore_fp_warnings(), one_blas_thread:  # a trial that overflows is not converged
        start = np.broadcast_to(K.project_unchecked(point), (*shape, K.dim))
        search = _Search(parts, constraint, point, shape, start, K.scale if K.sized else 0.0)
        search.run(np.flatnonzero(~_satisfied(constraint, start)))
        x = search.x.reshape(*shape, K.dim)
        inside = K.violation_unchecked(x) <= FEASIBILITY * np.maximum(np.abs(x).max(axis=-1), search.scale)
        good = (inside & _satisfied(constraint, x)).reshape(-1)
        search.status[~good & (search.status == CONVERGED)] = UNCONVERGED
    return x, search.nu.reshape(*shape, -1), search.status.reshape(shape), "pieces"


def _satisfied(constraint: Constraint, x: Array) -> Mask:
    """Of which trials all rows are satisfied."""
    rows = constraint.rows_unchecked(x)
    satisfied = ((rows <= SATISFIED * constraint.magnitude(x)) & (rows < np.inf)).all(axis=-1)
    return np.broadcast_to(satisfied, x.shape[:-1])


def _parts_of(request: Request) -> Parts | None:
    """The parts of a projection; None if the kernel or the search along the pieces are not for them."""
    K, members = request.K, flattened(request.constraint, _ALL_KINDS) if request.projects else None
    ball = [Norm1(K.center, K.radius)] if type(K) is L1Ball else []
    smooth = [member for member in members or [] if not isinstance(member, _PIECEWISE)]
    if members is None or K.dim > MAX_NEWTON_DIM or not (ball or len(smooth) < len(members)):
        return None
    own = own_rows(Space(K.dim) if ball else K)
    if own is None:
        return None
    sums, tails = [*ball, *_of_class(Norm1, members)], _of_class(CVaR, members)
    curved = own.curved_count + len(smooth) - len(_of_class(Affine, smooth))
    rows = own.affine_count + own.curved_count + sum(member.row_count for member in (*smooth, *sums, *tails))
    if curved > MAX_CURVED_ROWS or rows > MAX_NEWTON_ROWS:
        return None
    return Parts(own, members, smooth, sums, _of_class(NormInf, members), tails)


def _of_class(kind: type[Kind], members: list[Constraint]) -> list[Kind]:
    """The members of a class."""
    return [member for member in members if isinstance(member, kind)]


class _Search:
    """The search for all trials, which are numbered along the first axis of its arrays: T of them."""

    def __init__(
        self, parts: Parts, constraint: Constraint, point: Array, shape: tuple[int, ...], start: Array, scale: float
    ) -> None:
        self.parts, self.constraint, self.shape, self.start, self.scale = parts, constraint, shape, start, scale
        self.count, self.n = math.prod(shape), start.shape[-1]
        self.point = self._of_each(point, 1)
        self.x = self._of_each(start, 1).copy()
        self.status = np.full(self.count, CONVERGED)
        self.nu = np.zeros((self.count, sum(member.row_count for member in parts.members)))
        self.own_sums = len(parts.sums) - sum(isinstance(member, Norm1) for member in parts.members)

    def _of_each(self, array: Array, axes: int) -> Array:
        """An array with ``axes`` axes per trial, with the trials along its first axis."""
        if not self.shape:
            return array[None]
        own = array.ndim - axes
        return np.broadcast_to(array, (*self.shape, *array.shape[own:])).reshape(self.count, *array.shape[own:])

    def _shared(self, array: Array, axes: int) -> Array:
        """The same, but as it is if all trials have the same."""
        return array if array.ndim == axes else self._of_each(array, axes)

    def run(self, todo: Numbers) -> None:
        """Solves the trials with these numbers; ``x``, ``nu`` and ``status`` have what is found."""
        if not todo.size:
            return
        self.status[todo] = UNCONVERGED
        self._prepare()
        todo = todo[(self.lower[todo] <= self.upper[todo]).all(axis=-1)]
        todo = todo[~self._add_rows(todo, self.x[todo])[1]]
        for _ in range(MAX_ROUNDS):
            if not todo.size:
                break
            todo = self._round(todo)

    def _prepare(self) -> None:
        """The cells of P_K(point) (where that is at a kink, on the point's side), and no rows of the tails."""
        parts, T, n, m = self.parts, self.count, self.n, len(self.parts.sums)
        arrays, _, self.order, _ = row_data(parts.own, parts.smooth, True)
        self.arrays = [self._shared(array, axes) for array, axes in zip(arrays, _AXES, strict=True)]
        lower, upper = (np.broadcast_to(bound, (T, n)) for bound in (parts.own.lower, parts.own.upper))
        for box in parts.boxes:
            center, radius = self._of_each(box.center, 1), self._of_each(box.radius, 0)[:, None]
            lower, upper = np.maximum(lower, center - radius), np.minimum(upper, center + radius)
        self.lower, self.upper = lower, upper  #: what no crossing changes
        self.centers, self.radii = np.empty((T, m, n)), np.empty((T, m))
        for i, part in enumerate(parts.sums):
            self.centers[:, i], self.radii[:, i] = self._of_each(part.center, 1), self._of_each(part.radius, 0)
        inside = np.clip(self.x, lower, upper)[:, None]
        beyond = np.where(inside == self.centers, self.point[:, None], inside) > self.centers
        above = (beyond | (self.centers <= lower[:, None])) & (self.centers < upper[:, None])
        self.signs = np.where(above, 1.0, -1.0)
        self.rows, self.rhs = np.zeros((T, 0, n)), np.zeros((T, 0))  #: of the tails; those not used yet are 0 ≤ inf
        self.owner, self.used = np.zeros((T, 0), dtype=np.int64), np.zeros(T, dtype=np.int64)
        self.weight = np.full(T, np.inf)  #: the bound of multipliers times the lengths of their rows' gradients

    def _round(self, todo: Numbers) -> Numbers:
        """Solves trials over their cells, and changes cells and rows; the numbers of those that are not finished."""
        found, empty = self._solve_over_cells(todo)
        if not found.trials.size:
            return empty
        going = self._cross(found)
        limited, failed = self._add_rows(found.trials, found.x)
        going |= limited
        raised = ~(going | failed) & self._raise_bounds(found)
        finished = ~(going | failed | raised)
        self._accept(found, finished)
        return np.concatenate([empty, found.trials[going & ~failed | raised]])

    def _solve_over_cells(self, todo: Numbers) -> tuple[Found, Numbers]:
        """The solutions over the cells; the numbers of trials whose cell has no feasible point."""
        m, c = len(self.parts.sums), int(self.used[todo].max())
        above = self.signs[todo] > 0.0
        centers, lower, upper = self.centers[todo], self.lower[todo], self.upper[todo]
        if m:
            lower = np.maximum(lower, np.where(above, centers, -np.inf).max(axis=1))
            upper = np.minimum(upper, np.where(above, np.inf, centers).min(axis=1))
        arrays = [a if a.ndim == axes else a[todo] for a, axes in zip(self.arrays, _AXES, strict=True)]
        t, a0 = todo.size, arrays[1].shape[-1]
        rows = np.concatenate([self.signs[todo], self.rows[todo, :c]], axis=1)
        rhs = np.concatenate([self.radii[todo] + np.vecdot(self.signs[todo], centers), self.rhs[todo, :c]], axis=1)
        A = np.concatenate([np.broadcast_to(arrays[0], (t, a0, self.n)), rows], axis=1)
        b = np.concatenate([np.broadcast_to(arrays[1], (t, a0)), rhs], axis=1)
        R = a0 + m + c + sum(arrays[i].shape[-1] for i in (3, 7, 11))
        most = self._most(todo, rows, a0, R)
        memory = kernels.newton_memory(self.n, R, arrays[11].shape[-1], arrays[8].shape[-2])
        data = map(contiguous, (self.point[todo], lower, upper, A, b))
        x, nu, status = kernels.newton_rows(
            *data, self.parts.own.equalities, *map(contiguous, arrays[2:]),
            no_bounds(R)[0] if most is None else most, UNBOUNDED, no_bounds(R)[1], *memory,
        )  # fmt: skip
        self.status[todo[status == NONFINITE]] = NONFINITE
        empty = todo[(status == UNCONVERGED) & np.isinf(self.weight[todo])]
        if empty.size:
            self.weight[empty] = FIRST_BOUND * self._distances()[empty]
        good = status == CONVERGED
        first, last = a0 + m, a0 + m + c
        smooth = np.concatenate([nu[good, :a0], nu[good, last:]], axis=1)
        return (
            Found(
                todo[good], x[good], (lower[good], upper[good]), None if most is None else most[good],
                smooth, nu[good, a0:first], nu[good, first:last],
            ),
            empty,
        )  # fmt: skip

    def _distances(self) -> Array:
        """How far the points of K ∩ {g ≤ 0} are from the target at least, if rows were affine."""
        rows, jacobian = self.constraint.rows_unchecked(self.start), self.constraint.jacobian_unchecked(self.start)
        beyond = (np.maximum(rows, 0.0) / _lengths(jacobian)).max(axis=-1)
        return self._of_each(beyond, 0) + row_norms(self.x - self.point)

    def _most(self, todo: Numbers, rows: Array, a0: int, R: int) -> Array | None:
        """The bounds of multipliers, infinite for those of K; None if no trial has any."""
        weight = self.weight[todo, None]
        if np.isinf(weight).all():
            return None
        more = rows.shape[1]
        most = np.full((todo.size, R), np.inf)
        most[:, a0 : a0 + more] = weight / _lengths(rows)
        most[:, a0 : a0 + self.own_sums] = np.inf
        steep = self._gradients(todo, self.x[todo])[:, self.order]
        places = np.array(self.order, dtype=np.int64)
        most[:, places + more * (places >= a0)] = weight / _lengths(steep)
        return most

    def _gradients(self, trials: Numbers, x: Array) -> Array:
        """The gradients of K's rows and of the smooth ones, in the kernel's order."""
        A, _, centers, radii, P, q, _, _, C, e, f, _ = (
            a if a.ndim == axes else a[trials] for a, axes in zip(self.arrays, _AXES, strict=True)
        )
        x = x[:, None]
        image = matvec(C, x) + e
        length = np.maximum(np.linalg.norm(image, axis=-1, keepdims=True), 1e-300)
        kinds = A, (x - centers) / radii[..., None], matvec(P, x) + q, vecmat(image / length, C) - f
        return np.concatenate([np.broadcast_to(J, (x.shape[0], *J.shape[-2:])) for J in kinds], axis=1)

    def _slope(self, found: Found) -> tuple[Array, Array]:
        """The gradient of the Lagrangian without the sums, and what rounding may make of it."""
        trials, x, y = found.trials, found.x, self.point[found.trials]
        rows = np.concatenate([self._gradients(trials, x), self.rows[trials, : found.tails.shape[1]]], axis=1)
        nu = np.concatenate([found.smooth, found.tails], axis=1)
        terms = row_norms(x) + row_norms(y) + np.vecdot(np.abs(nu), row_norms(rows))
        terms += found.sums.sum(axis=1) * math.sqrt(self.n)
        return x - y + vecmat(nu, rows), DOWNHILL * terms[:, None]

    def _cross(self, found: Found) -> Mask:
        """Lets coordinates at kinks cross where that is downhill; in which trials some do."""
        trials, x, (lower, upper) = found.trials, found.x, found.bounds
        if not self.parts.sums:
            return np.zeros(trials.size, dtype=bool)
        slope, noise = self._slope(found)
        signs, centers = self.signs[trials], self.centers[trials]
        below = np.where((centers == lower[:, None]) & (signs > 0.0), -1.0, signs)
        above = np.where((centers == upper[:, None]) & (signs < 0.0), 1.0, signs)
        down = (x <= lower) & (lower > self.lower[trials]) & (slope + vecmat(found.sums, below) > noise)
        up = (x >= upper) & (upper < self.upper[trials]) & (slope + vecmat(found.sums, above) < -noise)
        self.signs[trials] = np.where(down[:, None], below, np.where(up[:, None], above, signs))
        crossing: Mask = np.any(down | up, axis=1)
        return crossing

    def _add_rows(self, trials: Numbers, x: Array) -> tuple[Mask, Mask]:
        """Adds the rows of tails that x violates by more than the present ones; which trials have one, which fail."""
        more, failed = np.zeros((2, trials.size), dtype=bool)
        c = self.rhs.shape[1]
        values = matvec(self.rows[trials], x) - self.rhs[trials]
        for i, tail in enumerate(self.parts.tails):
            part = member_trials(tail, self.shape, np.unravel_index(trials, self.shape)) if tail.batch else tail
            value, terms = part.rows_unchecked(x)[:, 0], part.magnitude(x)[..., 0]
            model = np.where(self.owner[trials, :c] == i, values, -np.inf).max(axis=1, initial=-np.inf)
            failed |= np.isnan(value)
            self.status[trials[np.isnan(value)]] = NONFINITE
            wanted = (value > NEW_ROW * terms) & (value - model > NEW_ROW * terms)
            if not wanted.any():
                continue
            more |= wanted
            gradient = part.jacobian_unchecked(x)[wanted, 0]
            at, slot = trials[wanted], self.used[trials[wanted]]
            if slot.max() == self.rhs.shape[1]:
                self._make_room()
            self.rows[at, slot], self.owner[at, slot] = gradient, i
            self.rhs[at, slot] = np.vecdot(gradient, x[wanted]) - value[wanted]
            self.used[at] += 1
        present = self.parts.own.affine_count + self.parts.own.curved_count + len(self.order) + len(self.parts.sums)
        return more, failed | (present + self.used[trials] > MAX_NEWTON_ROWS)

    def _make_room(self) -> None:
        """For one more row of each trial."""
        T = self.count
        self.rows = np.concatenate([self.rows, np.zeros((T, 1, self.n))], axis=1)
        self.rhs = np.concatenate([self.rhs, np.full((T, 1), np.inf)], axis=1)
        self.owner = np.concatenate([self.owner, np.zeros((T, 1), dtype=np.int64)], axis=1)

    def _raise_bounds(self, found: Found) -> Mask:
        """Raises the bounds of multipliers where one is reached; in which trials."""
        if found.most is None:
            return np.zeros(found.trials.size, dtype=bool)
        a0 = self.arrays[1].shape[-1]
        nu = np.concatenate([found.smooth[:, :a0], found.sums, found.tails, found.smooth[:, a0:]], axis=1)
        weight = self.weight[found.trials]
        bound = (nu >= AT_BOUND * found.most).any(axis=1)
        distance = row_norms(found.x - self.point[found.trials])
        raised = bound & (weight < LAST_BOUND * distance)
        self.weight[found.trials[raised]] *= NEXT_BOUND
        return raised

    def _accept(self, found: Found, finished: Mask) -> None:
        """Takes over finished solutions, but those whose target is so far away that slopes have too few digits."""
        x, y = found.x[finished], self.point[found.trials[finished]]
        near = np.abs(x - y).max(axis=1, initial=0.0) <= FAR * np.maximum(np.abs(x).max(axis=1), self.scale)
        finished = finished.copy()
        finished[finished] = near
        trials, x = found.trials[finished], found.x[finished]
        self.x[trials], self.status[trials] = x, CONVERGED
        self.nu[trials] = self._public(found, finished)

    def _public(self, found: Found, finished: Mask) -> Array:
        """The multipliers of the constraint's rows, in their order."""
        trials, x = found.trials[finished], found.x[finished]
        smooth, sums = iter(found.smooth[finished][:, self.order].T), iter(found.sums[finished, self.own_sums :].T)
        tails = iter(range(len(self.parts.tails)))
        columns: list[Array] = []
        slope = np.zeros(0)  # what is left of it for the boxes
        if self.parts.boxes:
            slope = (self._slope(found)[0] + vecmat(found.sums, self.signs[found.trials]))[finished]
        for member in self.parts.members:
            if isinstance(member, Norm1):
                columns.append(next(sums))
            elif isinstance(member, CVaR):
                own = self.owner[trials, : found.tails.shape[1]] == next(tails)
                columns.append(np.where(own, found.tails[finished], 0.0).sum(axis=1))
            elif isinstance(member, NormInf):
                center, radius = self._of_each(member.center, 1)[trials], self._of_each(member.radius, 0)[trials, None]
                low = (x == center - radius) & (x > self.parts.own.lower) & (slope > 0.0)
                high = (x == center + radius) & (x < self.parts.own.upper) & (slope < 0.0)
                columns.append(np.where(low | high, np.abs(slope), 0.0).sum(axis=1))
                slope = np.where(low | high, 0.0, slope)
            else:
                columns += [next(smooth) for _ in range(member.row_count)]
        return np.stack(columns, axis=1)


def _lengths(rows: Array) -> Array:
    """The lengths of gradients, 1 for one that vanishes."""
    lengths = row_norms(rows)
    return np.where(lengths > 0.0, lengths, 1.0)

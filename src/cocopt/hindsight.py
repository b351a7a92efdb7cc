"""The best fixed action in hindsight, against which regret is measured:

    x*_T = argmin of Σ_{t≤T} f_t(x) over x in S_T = K ∩ {g_1 ≤ 0} ∩ … ∩ {g_T ≤ 0}.

The dimension is small and T large, so a step should cost one pass over the rounds and a small quadratic program. That is
Newton's method: a quadratic model of the sum, minimised over a few of the constraints; those that the minimiser violates
are added until there are none (as linearisations, at the minimiser, if they are curved). Losses that are quadratic are
summed up once. Kinks (of norms and hinges) are rounded off, less and less.

Nothing depends on the rounding, nor on the solver: every accepted value comes with a lower bound of the optimum. For
multipliers λ ≥ 0 of rows A x ≤ b that hold on S_T, and any affine h ≤ Σ f_t with slope G,

    Σ f_t(z) ≥ h(x) + ⟨G + Aᵀλ, z − x⟩ − λᵀ(b − A x) ≥ h(x) − ‖G + Aᵀλ‖ D − λᵀ(b − A x)    for all z in S_T.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocopt._arrays import Array, _describe
from cocopt.cones import Cones
from cocopt.constraints import Constraint
from cocopt.errors import InvalidInput, SolverFailure
from cocopt.kernels.status import CONVERGED, INFEASIBLE
from cocopt.losses import Distance, Hinge, LeastSquares, Linear, Logistic, Loss, Norm, Quadratic
from cocopt.problems.base import EachLoss, Problem, numbers
from cocopt.sets.base import ConvexSet, Polyhedral
from cocopt.solvers import clarabel, daqp, highs

__all__ = ["Hindsight", "best_fixed"]

_GAP = 1e-7  # of the value: what the lower bound may miss
_EMPTY = 1e-9  # a least violation beyond this, in units of the rows' own size, proves S_T empty
_HELD = 20_000  # rounds of one trial that are kept in memory; of longer runs the data are drawn anew for every pass
_STEPS, _CUTS = 200, 500
_PROX = 1.0


class Hindsight(NamedTuple):
    """The best fixed actions of B trials at C numbers of rounds.

    Attributes
    ----------
    value : ndarray (B, C)
        min over S_T of Σ f_t, NaN where S_T is empty; at most 1e-6 of it (or of a typical loss of one round, if that
        is more) above the optimum.
    feasible : ndarray (B, C) of bool
        Whether S_T has a point.
    point : ndarray (B, C, n)
        x*_T, NaN where there is none.
    """

    value: Array
    feasible: NDArray[np.bool_]
    point: Array


def best_fixed(problem: Problem, seed: int, trials: ArrayLike, checkpoints: ArrayLike) -> Hindsight:
    """The best fixed action of each trial, after each of these numbers of rounds.

    Examples
    --------
    >>> from cocopt import hindsight, problems
    >>> best = hindsight.best_fixed(problems.get("olr"), seed=0, trials=[0, 1], checkpoints=[10, 100])
    >>> best.value.shape, best.feasible.all()
    ((2, 2), np.True_)
    """
    marks = np.asarray(checkpoints)
    if marks.ndim != 1 or marks.size == 0 or marks.dtype.kind not in "iu" or marks.min() < 1:
        raise InvalidInput(f"checkpoints: expected numbers of rounds from 1 on, got {_describe(checkpoints)}")
    if not problem.K.bounded:
        raise InvalidInput(f"K: expected a set of finite diameter, got {problem.K!r}")
    chosen = numbers(trials)
    shape = (len(chosen), marks.size)
    result = Hindsight(np.full(shape, np.nan), np.zeros(shape, dtype=bool), np.full((*shape, problem.K.dim), np.nan))
    for i, trial in enumerate(chosen):
        search = _Search(problem.K, _Rounds(problem, seed, trial, int(marks.max())))
        for c in np.argsort(marks):  # S_T only shrinks: what was found before helps, and once empty it stays so
            found = search.minimise(int(marks[c]))
            if found is None:
                break
            result.value[i, c], result.point[i, c] = found
            result.feasible[i, c] = True
    return result


class _Rounds:
    """One trial's rounds, to be passed over many times."""

    def __init__(self, problem: Problem, seed: int, trial: int, horizon: int) -> None:
        self._pass: Callable[[], Any] = lambda: problem.whole_blocks(seed, trial, horizon)
        if horizon <= _HELD:
            held = list(self._pass())
            self._pass = lambda: held

    def __call__(self, T: int) -> Iterator[tuple[int, Loss | None, Constraint | None]]:
        """(number of rounds that count, loss, constraint), block by block, up to round T."""
        for count, (loss, constraint) in self._pass():
            if T <= 0:
                return
            yield min(count, T), loss, constraint
            T -= count


class _Sum(NamedTuple):
    """Σ f_t at a point, with what a step needs."""

    value: float
    below: float  # the value there of an affine minorant with slope `gradient`
    rounded: float  # the sum with kinks rounded off, whose derivatives follow
    gradient: Array
    hessian: Array

    def plus(self, other: _Sum) -> _Sum:
        """The sum of both."""
        return _Sum(*(mine + yours for mine, yours in zip(self, other, strict=True)))


class _Objective:
    """Σ_{t≤T} f_t: quadratic losses are summed up, others visited at each call, black boxes kept apart."""

    def __init__(self, rounds: _Rounds, T: int, dim: int) -> None:
        self.rounds, self.T, self.dim = rounds, T, dim
        self.P, self.q, self.r = np.zeros((dim, dim)), np.zeros(dim), 0.0
        self.kinds: set[type[Loss]] = set()
        self.curved_limits = any(g is not None and g.affine() is None for _, _, g in rounds(T))
        for count, loss in self._losses():
            self.kinds.add(type(loss))
            if type(loss) in _QUADRATIC:
                P, q, r = _quadratic(loss, count, dim)
                self.P, self.q, self.r = self.P + P, self.q + q, self.r + r
        self.black_boxes = not self.kinds <= {*_QUADRATIC, *_CURVED}

    def __call__(self, x: Array, rounding: float) -> _Sum:
        Px = self.P @ x
        value = float(0.5 * x @ Px + self.q @ x + self.r)
        total = _Sum(value, value, value, Px + self.q, self.P)
        if not self.kinds.isdisjoint(_CURVED):
            for count, loss in self._losses():
                if type(loss) in _CURVED:
                    total = total.plus(_CURVED[type(loss)](loss, count, x, rounding))
        return total

    def black(self, x: Array) -> tuple[float, Array]:
        """The sum of the black boxes, and a subgradient."""
        value, gradient = 0.0, np.zeros(self.dim)
        if self.black_boxes:
            for count, loss in self._losses():
                if type(loss) not in _QUADRATIC and type(loss) not in _CURVED:
                    values, gradients = loss.value_and_gradient(x)
                    weight = 1 if loss.batch else count
                    value += weight * float(np.atleast_1d(values)[:count].sum())
                    gradient = gradient + weight * np.atleast_2d(gradients)[:count].sum(axis=0)
        return value, gradient

    def _losses(self) -> Iterator[tuple[int, Loss]]:
        for count, loss, _ in self.rounds(self.T):
            if isinstance(loss, EachLoss):
                yield from ((1, member) for member in loss.members[:count])
            elif loss is not None:
                yield count, loss


class _Search:
    """The minimisation for one trial, at growing T.

    The rows of the quadratic program are those of K (all of them, if it is a polyhedron) and the cuts found so far.
    Black boxes enter by one more variable τ: their sum is a curved constraint, Σ f_t(x) ≤ unit · τ.
    """

    def __init__(self, K: ConvexSet, rounds: _Rounds) -> None:
        self.K, self.rounds = K, rounds
        self.x, self.typical = K._project(np.zeros(K.dim)), 0.0
        poly = K.polyhedral()
        self.curved_K = poly is None
        if poly is None:  # a box around K to start with
            poly = Polyhedral(self.x - K.diameter, self.x + K.diameter, np.zeros((0, K.dim)), np.zeros(0))
        eye, high, low = np.eye(K.dim), np.isfinite(poly.upper), np.isfinite(poly.lower)
        A = np.concatenate([poly.A, eye[high], -eye[low]])
        b = np.concatenate([poly.b, poly.upper[high], -poly.lower[low]])
        self.equalities = poly.equalities
        self.rows = _Rows(A, b, np.zeros(len(b)), [_OF_K] * len(b))

    def minimise(self, T: int) -> tuple[float, Array] | None:
        """The least value over S_T and where it is taken; None if S_T is empty."""
        objective = _Objective(self.rounds, T, self.K.dim)
        D = self.K.diameter
        x, inside = self.x, False
        here = objective(x, 0.0)
        black, slope = objective.black(x)
        slope_here = float(np.linalg.norm(here.gradient + slope))
        typical = self.typical = max(self.typical, abs(here.value + black) / T) or 1e-3 * slope_here * D / T
        unit = (float(np.linalg.norm(slope)) * D or 1.0) if objective.black_boxes else 0.0
        rounding = 1e-3 * typical
        if not objective.kinds.isdisjoint(_CURVED):
            here = objective(x, rounding)
        best, lower = (np.inf, x), -np.inf
        for step in range(_STEPS):
            found = self._step(objective, x, black, here, unit)
            if found is None:
                return None
            y, prices = found
            there = objective(y, rounding)
            black_there, _ = objective.black(y)
            value = there.value + black_there
            A, b = self.rows.A, self.rows.b
            residual = float(np.linalg.norm(there.gradient + prices @ A))
            lower = max(lower, there.below - float(prices @ (b - A @ y)) - residual * D)
            best = min(best, (value, y), key=lambda pair: pair[0])
            noise = 1e-14 * D * (float(np.linalg.norm(there.gradient)) + D * float(np.trace(there.hessian)))
            gap = best[0] - lower
            if gap <= (_GAP if step < 30 else 10 * _GAP) * max(abs(best[0]), typical) + noise:
                self.x = best[1]
                self.rows = self.rows.keep([k == _OF_K or (k >= 0 and p > 0) for k, p in zip(self.rows.keys, prices, strict=True)])
                return best
            share = 1.0
            if inside and not objective.black_boxes:  # an exact proximal step needs no line search
                slope_down = float(here.gradient @ (y - x))
                while there.rounded > here.rounded + 1e-4 * share * slope_down + noise and share > 1e-9:
                    share *= 0.5
                    there = objective(x + share * (y - x), rounding)
            x, black, inside = x + share * (y - x) if share < 1.0 else y, black_there, True
            if there.value - there.below > 0.1 * gap:
                rounding *= 0.1
                there = objective(x, rounding)
            here = there
        raise SolverFailure(
            f"the best fixed action of {T} rounds was found only to a relative error of {gap / max(abs(best[0]), typical):.2g}"
        )

    def _step(
        self, objective: _Objective, x: Array, black: float, here: _Sum, unit: float
    ) -> tuple[Array, Array] | None:
        """The minimiser over S_T of the quadratic model at x, and the prices of the rows; None if S_T is empty."""
        n = x.size
        size = n + (unit > 0)
        gradient, hessian, centre = np.full(size, unit), np.zeros((size, size)), np.full(size, black / (unit or 1.0))
        gradient[:n], hessian[:n, :n], centre[:n] = here.gradient, here.hessian, x
        # a proximal term: a weak one for flat directions, a stronger one where cuts must approach something curved
        share = _PROX if unit or self.curved_K or objective.curved_limits else 1e-4
        weight = 1e-7 * np.trace(hessian) / n + share * np.linalg.norm(gradient) / self.K.diameter
        L = np.linalg.cholesky(hessian + (weight or 1.0) * np.eye(size))
        target = L.T @ centre - np.linalg.solve(L, gradient)
        for _ in range(_CUTS):
            solved = self._nearest(L, target)
            if solved is None:
                return None
            z, prices = solved
            if not self._cut(objective, z, unit):
                if unit:  # the model's slope in τ must vanish, for there is no bound on τ
                    prices = np.where(self.rows.tau < 0, prices / -(prices @ self.rows.tau / unit or -1.0), prices)
                return z[:n], prices
        raise SolverFailure(f"the best fixed action of {objective.T} rounds needs more than {_CUTS} passes of cuts")

    def _nearest(self, L: Array, target: Array) -> tuple[Array, Array] | None:
        """argmin of ‖Lᵀz − target‖ over the rows, and their prices; None if no point satisfies them."""
        size, equal = len(target), self.equalities
        rows = np.linalg.solve(L, self.rows.matrix(size).T).T
        free = np.full(size, np.inf)
        (u,), (prices,), (status,) = daqp.project(-free, free, rows[None], self.rows.b[None], equal, target[None])
        if status == INFEASIBLE and not self._relax():
            return None
        if status != CONVERGED:  # Clarabel's errors will show in the lower bound
            kinds = tuple(c for c in (("zero", equal), ("nonneg", len(rows) - equal)) if c[1])
            found = clarabel.minimise(np.ones(size), -target, Cones(rows, self.rows.b, np.zeros((len(rows), 0)), kinds))
            if found.infeasible:
                raise SolverFailure("the best fixed action was not found: the solvers do not agree whether there is one")
            u, prices = found.x, np.maximum(found.z, 0.0)
        if equal:  # the sign of these prices is free
            rest = target - u - prices[equal:] @ rows[equal:]
            prices[:equal] = np.linalg.lstsq(rows[:equal].T, rest, rcond=None)[0]
        return np.linalg.solve(L.T, u), prices

    def _relax(self) -> bool:
        """Whether the rows can be satisfied by moving them so little that it does not count; if so, moves them."""
        own = np.array([key == _OF_K for key in self.rows.keys])
        cuts = np.array([key >= 0 or key == _CURVED_ROUND for key in self.rows.keys])
        norms = np.linalg.norm(self.rows.A, axis=1)
        unit = np.where(norms > 0, norms, 1.0)
        free = np.full(self.K.dim, np.inf)
        least, _ = highs.least_violation(
            -free, free, self.rows.A[own], self.rows.b[own], self.equalities, self.rows.A[cuts], self.rows.b[cuts], unit[cuts]
        )
        if least > _EMPTY * self.K.scale:
            return False
        self.rows.b[cuts] += (max(least, 0.0) + 0.1 * _EMPTY * self.K.scale) * unit[cuts]
        return True

    def _cut(self, objective: _Objective, z: Array, unit: float) -> int:
        """Adds rows that z violates, the deepest first; returns their number."""
        x = z[: self.K.dim]
        found: list[tuple[float, Array, float, float, int]] = []  # depth, row, right side, coefficient of τ, key
        if self.curved_K and self.K._violation(x) > 1e-10 * self.K.scale:
            nearest = self.K._project(x)
            depth = float(np.linalg.norm(x - nearest))
            found.append((np.inf, (x - nearest) / depth, float((x - nearest) @ nearest) / depth, 0.0, _OF_K))
        if unit:
            value, slope = objective.black(x)
            if value - unit * z[-1] > 0.3 * _GAP * max(abs(value), self.typical):
                found.append((np.inf, slope, float(slope @ x) - value, -unit, _EPIGRAPH))
        known = set(self.rows.keys)
        first = 0
        for count, _, constraint in self.rounds(objective.T):
            if constraint is None:
                continue
            rows = np.atleast_2d(constraint._rows(x))[:count]
            t, i = np.nonzero(rows > 0)
            if t.size:
                slopes = constraint._jacobian(x)
                slopes = (slopes if slopes.ndim == 3 else slopes[None])[t, i]
                depths = rows[t, i]
                right = np.vecdot(slopes, x) - depths
                norms = np.linalg.norm(slopes, axis=1)
                reach = max(float(np.linalg.norm(x)), 1e-3 * self.K.scale)
                keys = (first + t) * rows.shape[1] + i if constraint.affine() is not None else np.full(t.size, _CURVED_ROUND)
                deep = depths > 1e-9 * np.maximum(norms * reach, np.abs(right))
                for k in np.flatnonzero(deep):
                    if int(keys[k]) not in known or keys[k] < 0:
                        found.append((depths[k] / (norms[k] or 1e-300), slopes[k], float(right[k]), 0.0, int(keys[k])))
            first += count
        found.sort(key=lambda row: -row[0])
        found = found[: 2 * self.K.dim]
        if found:
            _, A, b, tau, new = zip(*found, strict=True)
            self.rows = _Rows(
                np.concatenate([self.rows.A, A]),
                np.concatenate([self.rows.b, b]),
                np.concatenate([self.rows.tau, tau]),
                [*self.rows.keys, *new],
            )
        return len(found)


_OF_K, _EPIGRAPH, _CURVED_ROUND = -1, -2, -3  # keys of rows that are not rows of an affine constraint


class _Rows(NamedTuple):
    """Rows ⟨A_i, x⟩ + tau_i τ ≤ b_i, and what each of them comes from."""

    A: Array
    b: Array
    tau: Array
    keys: list[int]

    def matrix(self, size: int) -> Array:
        """The rows with a column for τ, if there is one."""
        return self.A if size == self.A.shape[1] else np.column_stack([self.A, self.tau])

    def keep(self, which: list[bool]) -> _Rows:
        """Some of the rows."""
        keys = [key for key, kept in zip(self.keys, which, strict=True) if kept]
        return _Rows(self.A[which], self.b[which], self.tau[which], keys)


def _part(loss: Loss, count: int, array: Array, inner: int) -> tuple[float, Array]:
    """The data of the first rounds with an axis for the rounds, and their weight: all have the same if there is none."""
    if not loss.batch:
        return float(count), array[None]
    if array.ndim == inner:  # shared by all rounds, unlike other data of the loss
        array = np.broadcast_to(array, (*loss.batch, *array.shape))
    return 1.0, array[:count]


def _quadratic(loss: Loss, count: int, dim: int) -> tuple[Array, Array, float]:
    """(P, q, r) with Σ f_t = ½xᵀPx + qᵀx + r over the first rounds."""
    if isinstance(loss, LeastSquares):
        weight, H = _part(loss, count, loss.H, 2)
        flat, y = H.reshape(-1, dim), _part(loss, count, loss.y, 1)[1].ravel()
        return weight * flat.T @ flat, -weight * y @ flat, 0.5 * weight * float(y @ y)
    if isinstance(loss, Distance):
        weight, c = _part(loss, count, loss.center, 1)
        return count * np.eye(dim), -weight * c.sum(axis=0), 0.5 * weight * float(np.vecdot(c, c).sum())
    if isinstance(loss, Linear):
        weight, c = _part(loss, count, loss.c, 1)
        return np.zeros((dim, dim)), weight * c.sum(axis=0), 0.0
    assert isinstance(loss, Quadratic)
    weight, P = _part(loss, count, loss.P, 2)
    q, r = _part(loss, count, loss.q, 1)[1], _part(loss, count, loss.r, 0)[1]
    return weight * P.sum(axis=0), weight * q.sum(axis=0), weight * float(r.sum())


def _norm(loss: Any, count: int, x: Array, rounding: float) -> _Sum:
    """‖r‖ ≥ ⟨u, r⟩ if ‖u‖ ≤ 1; rounded off: √(‖r‖² + μ²), whose gradient has u = r/√(‖r‖² + μ²)."""
    weight, H = _part(loss, count, loss.H, 2)
    residual = np.matvec(H, x) - _part(loss, count, loss.y, 1)[1]
    square = np.vecdot(residual, residual)
    root = np.sqrt(square + rounding**2) + _TINY
    u = residual / root[:, None]
    pull = np.vecmat(u, H)
    flat = (H / np.sqrt(root)[:, None, None]).reshape(-1, x.size)
    across = pull / np.sqrt(root)[:, None]
    return _Sum(
        weight * float(np.sqrt(square).sum()),
        weight * float((square / root).sum()),
        weight * float(root.sum()),
        weight * pull.sum(axis=0),
        weight * (flat.T @ flat - across.T @ across),
    )


def _hinge(loss: Any, count: int, x: Array, rounding: float) -> _Sum:
    """max(0, s) ≥ p s if 0 ≤ p ≤ 1; rounded off: (s + √(s² + μ²))/2."""
    weight, u = _part(loss, count, loss.u, 1)
    v = _part(loss, count, loss.v, 0)[1]
    s = 1.0 - v * np.vecdot(u, x)
    root = np.sqrt(s**2 + rounding**2) + _TINY
    p = 0.5 * (1.0 + s / root)
    bend = v**2 * 0.5 * rounding**2 / root**3
    return _Sum(
        weight * float(np.maximum(s, 0.0).sum()),
        weight * float((p * s).sum()),
        weight * float(0.5 * (s + root).sum()),
        -weight * (p * v) @ u,
        weight * (u.T * bend) @ u,
    )


def _logistic(loss: Any, count: int, x: Array, rounding: float) -> _Sum:
    """log(1 + exp(−s)), smooth as it is."""
    weight, u = _part(loss, count, loss.u, 1)
    v = _part(loss, count, loss.v, 0)[1]
    margin = v * np.vecdot(u, x)
    p = np.exp(-np.logaddexp(0.0, margin))
    value = weight * float(np.logaddexp(0.0, -margin).sum())
    return _Sum(value, value, value, -weight * (p * v) @ u, weight * (u.T * (v**2 * p * (1.0 - p))) @ u)


_TINY = 1e-150
_QUADRATIC = (LeastSquares, Distance, Linear, Quadratic)
_CURVED = {Norm: _norm, Hinge: _hinge, Logistic: _logistic}

"""The best fixed action in hindsight, against which regret is measured.

    x*_T = argmin of Σ_{t≤T} f_t(x) over x in S_T = K ∩ {g_1 ≤ 0} ∩ … ∩ {g_T ≤ 0}

The dimension is small and T large, so a step should cost one pass over the rounds and a small program. That is Newton's
method: a quadratic model of the sum is minimised over a few of the constraints; those that the minimiser violates are
added, until there are none. Quadratic losses are summed up once; the kinks of norms and hinges are rounded off, first
more, then less. The optimum often lies in a few of these kinks: once they are near, steps are tried that round nothing
off and have the norms of those kinks in the model as they are, by second-order cones, whose duals are the subgradients.

Nothing depends on the rounding, nor on a solver's word: a value is accepted only with a lower bound of the optimum. For
multipliers λ ≥ 0 of rows A x ≤ b that hold on S_T, and any affine h ≤ Σ f_t with slope G, all z in S_T have

    Σ f_t(z) ≥ h(x) + ⟨G + Aᵀλ, z − x⟩ − λᵀ(b − A x) ≥ h(x) − ‖G + Aᵀλ‖ D − λᵀ(b − A x).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocopt.arrays import Array, all_finite, describe
from cocopt.cones import Cones, stack
from cocopt.constraints import Affine, Constraint, Function, Stack
from cocopt.errors import InfeasibleRound, InvalidInput, SolverFailure
from cocopt.geometry.polish import polish
from cocopt.geometry.project import project
from cocopt.kernels.status import CONVERGED
from cocopt.losses import Distance, Hinge, LeastSquares, Linear, Logistic, Loss, Norm, Quadratic
from cocopt.problems.base import MixedConstraint, MixedLoss, Problem, trial_numbers
from cocopt.sets.base import ConvexSet, Polyhedral
from cocopt.solvers import clarabel, daqp

__all__ = ["Hindsight", "best_fixed"]

_GAP, _PATIENCE = 1e-7, 30  # of the value: what the lower bound may miss; ten times as much after so many steps
_FLOOR = 1e-3  # of a typical loss of one round: takes the place of a value below it
_NEAR, _KINKS = 30.0, 10  # kinks are near within so many times the rounding; at most so many rows of them per dimension
_STEPS, _CUTS, _CUTS_AT_ONCE = 200, 500, 50  # at most: steps, programs in one step, and with one proximal term
_SHARP = 8  # steps without rounding, from each point of the others
_EMPTY = 1e-9  # rows that can be satisfied when moved by this, in units of K, do not prove S_T empty
_MISSED = 1e-8  # a violation of curved constraints, in units of their size, beyond which S_T may be empty
_HELD = 20_000  # rounds of one trial that are kept in memory; the data of longer runs are drawn anew for every pass


class Hindsight(NamedTuple):
    """The best fixed actions of B trials at C numbers of rounds.

    Attributes
    ----------
    value : ndarray (B, C)
        min over S_T of Σ f_t, NaN where S_T is empty. It is proven to be above the optimum by at most 1e-6 of it
        (1e-7 unless that takes many steps), rounding of the sums apart; or by 1e-9 of a round's loss if that is more,
        for the optimum may be 0: of the mean up to the least checkpoint, at the point of K nearest to 0.
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
        raise InvalidInput(f"checkpoints: expected numbers of rounds from 1 on, got {describe(checkpoints)}")
    if not problem.K.bounded:
        raise InvalidInput(f"K: expected a set of finite diameter, got {problem.K!r}")
    chosen = trial_numbers(trials)
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
        self._pass: Callable[[], Any] = lambda: problem.stacked_rounds(seed, trial, horizon)
        if horizon <= _HELD:
            held = list(self._pass())
            self._pass = lambda: held

    def __call__(self, T: int) -> Iterator[tuple[int, int, Loss | None, Constraint | None]]:
        """(rounds in the block, how many of them count, loss, constraint), block by block, up to round T."""
        for total, (loss, constraint) in self._pass():
            if T <= 0:
                return
            yield total, min(total, T), loss, constraint
            T -= total


_Kinks: TypeAlias = tuple[tuple[Array, Array], ...]


class _Sum(NamedTuple):
    """Σ f_t at a point, with what a step needs."""

    value: float
    below: float  # the value there of an affine minorant with slope `gradient`
    rounded: float  # the sum with kinks rounded off, whose derivatives follow
    gradient: Array
    hessian: Array
    kinks: _Kinks = ()  # (H, y) of norms ‖Hx − y‖ that only `value` has in it

    def plus(self, other: _Sum) -> _Sum:
        """The sum of both."""
        return _Sum(
            self.value + other.value,
            self.below + other.below,
            self.rounded + other.rounded,
            self.gradient + other.gradient,
            self.hessian + other.hessian,
            self.kinks + other.kinks,
        )


class _Objective:
    """Σ_{t≤T} f_t: quadratic losses are summed up, others visited at each call, black boxes kept apart.

    The quadratic ones are expanded about a point near the minimiser, where their terms do not cancel.
    """

    def __init__(self, rounds: _Rounds, T: int, centre: Array) -> None:
        self.rounds, self.T, self.centre = rounds, T, centre
        dim = self.dim = centre.size
        self.P, self.q, self.r = np.zeros((dim, dim)), np.zeros(dim), 0.0
        self.kinds: set[type[Loss]] = set()
        for _, count, loss in self._losses():
            self.kinds.add(type(loss))
            if type(loss) in _QUADRATIC:
                P, q, r = _quadratic(loss, count, centre)
                self.P, self.q, self.r = self.P + P, self.q + q, self.r + r
        self.black_boxes = not self.kinds <= {*_QUADRATIC, *_CURVED}

    def __call__(self, x: Array, rounding: float, near: tuple[Array, float] | None = None) -> _Sum:
        """The sum at x, whose kinks are rounded off; those within a distance of a point may be kept apart instead."""
        d = x - self.centre
        Pd = self.P @ d
        value = float(0.5 * d @ Pd + self.q @ d + self.r)
        total = _Sum(value, value, value, Pd + self.q, self.P)
        if not self.kinds.isdisjoint(_CURVED):
            for _, count, loss in self._losses():
                if type(loss) in _CURVED:
                    total = total.plus(_CURVED[type(loss)](loss, count, x, rounding, near))
        return total

    def noise(self, x: Array, gradient: Array) -> float:
        """What rounding may do to the gradient at x."""
        steepness = np.linalg.norm(self.P) * np.linalg.norm(x - self.centre) + np.linalg.norm(self.q)
        return float(1e-14 * (np.linalg.norm(gradient) + steepness))

    def black(self, x: Array) -> tuple[float, Array]:
        """The sum of the black boxes, and a subgradient."""
        value, gradient = 0.0, np.zeros(self.dim)
        if self.black_boxes:
            for total, count, loss in self._losses():
                if type(loss) not in _QUADRATIC and type(loss) not in _CURVED:
                    values, gradients = loss.value_and_gradient(np.broadcast_to(x, (total, self.dim)))
                    value, gradient = value + float(values[:count].sum()), gradient + gradients[:count].sum(axis=0)
        return value, gradient

    def blame(self, x: Array) -> None:
        """Raises the error that names what is not finite."""
        for total, _, loss in self._losses():
            loss.value(np.broadcast_to(x, (total, self.dim)))

    def _losses(self) -> Iterator[tuple[int, int, Loss]]:
        for total, count, loss, _ in self.rounds(self.T):
            if isinstance(loss, MixedLoss):
                yield from ((1, 1, member) for member in loss.members[:count])
            elif loss is not None:
                yield total, count, loss


class _Rows(NamedTuple):
    """Rows ⟨A_i, x⟩ + tau_i τ ≤ b_i, and where each of them comes from: (round, row), or one of the kinds below."""

    A: Array
    b: Array
    tau: Array
    keys: list[tuple[int, int]]


_OF_K, _EPIGRAPH, _LINEARISED = (-1, 0), (-1, 1), (-1, 2)


class _Step(NamedTuple):
    """The minimiser of a model over S_T, and its multipliers."""

    x: Array
    prices: Array  # of the rows
    pull: Array  # Aᵀλ of the cones
    slack: float  # λᵀ(b − A x) of the cones
    proximity: float  # the weight of the proximal term for the next step


class _Search:
    """The minimisation for one trial, at growing T.

    The quadratic program has the rows of K (or of a box around it) and those that were violated on the way; constraints
    (and a K) that know their cones enter whole, others by linearisations. Black boxes among the losses have a
    variable τ: their sum is one more constraint, Σ f_t(x) ≤ unit · τ.
    """

    def __init__(self, K: ConvexSet, rounds: _Rounds) -> None:
        self.K, self.rounds = K, rounds
        self.x, self.typical = K.project_unchecked(np.zeros(K.dim)), 0.0
        self.tolerance = 0.0  # how far the black boxes may be above their linearisations
        poly = K.polyhedral()
        self.curved = poly is None
        if poly is None:
            poly = Polyhedral(self.x - K.diameter, self.x + K.diameter, np.zeros((0, K.dim)), np.zeros(0))
        eye, high, low = np.eye(K.dim), np.isfinite(poly.upper), np.isfinite(poly.lower)
        shut = poly.b < np.inf
        A = np.concatenate([poly.A[shut], eye[high], -eye[low]])
        b = np.concatenate([poly.b[shut], poly.upper[high], -poly.lower[low]])
        self.equalities = poly.equalities
        self.rows = _Rows(A, b, np.zeros(len(b)), [_OF_K] * len(b))
        self.cones: dict[tuple[int, int], tuple[Cones, Constraint | None]] = {}

    def minimise(self, T: int) -> tuple[float, Array] | None:
        """The least value over S_T and where it is taken; None if S_T is empty."""
        D, x, inside = self.K.diameter, self.x, False
        objective = _Objective(self.rounds, T, x)
        here = objective(x, 0.0)
        if not all_finite(here.gradient):
            objective.blame(x)
        black, slope = objective.black(x)
        unit = (float(np.linalg.norm(slope)) * D or 1.0) if objective.black_boxes else 0.0
        value, change = here.value + black, D * float(np.linalg.norm(here.gradient + slope))
        if not self.typical:  # at least the change within 1e-6 of the diameter
            self.typical = max(abs(value), 1e-6 * change, 1e-12 * D**2 * float(np.linalg.norm(objective.P))) / T
        floor, size = _FLOOR * self.typical, max(self.typical, abs(value) / T, 1e-3 * change / T)
        rounding, coarse = 1e-3 * size, 0.1 * size
        here = objective(x, rounding)
        nothing = 0.0 if objective.kinds <= _NONNEGATIVE else -np.inf
        best, lower = (np.inf, x), nothing
        # a proximal term, for flat directions; strong where linearisations must approach something curved
        linearises = bool(unit) or self._linearises(T)
        proximity = 1.0 if linearises else 1e-4
        for step in range(_STEPS):
            self.tolerance = 0.3 * _GAP * max(abs(value), floor)
            found = self._step(objective, x, black, here, unit, proximity)
            if found is None:
                return None
            y = found.x
            there, (black, slope) = objective(y, rounding), objective.black(y)
            lower = max(lower, self._below(found, there))
            best = min(best, (there.value + black, y), key=lambda pair: pair[0])
            noise = D * objective.noise(y, there.gradient)
            allowed = _GAP if step < _PATIENCE else 10 * _GAP
            gap, scale = best[0] - lower, max(abs(best[0]), floor)
            blunt = there.value - there.below > 0.1 * gap
            if blunt and step > 1:
                before, sharp = best[0], self._sharp(objective, y, black, rounding, unit, proximity)
                while gap > allowed * scale + noise and (tried := next(sharp, None)) is not None:
                    value, bound, found = tried
                    lower, best = max(lower, bound), min(best, (value, found.x), key=lambda pair: pair[0])
                    gap, scale = best[0] - lower, max(abs(best[0]), floor)
                if best[0] < before:
                    y, there, (black, slope) = best[1], objective(best[1], rounding), objective.black(best[1])
            value = best[0]
            if gap <= allowed * scale + noise:
                if noise > 0.1 * allowed * scale and objective.P.any() and objective.centre is self.x:
                    objective = _Objective(self.rounds, T, y)  # again, with less noise
                    x, here, best, lower = y, objective(y, rounding), (np.inf, y), nothing
                    continue
                if self._missed(best[1]) > _MISSED:
                    if self._empty():
                        return None
                    raise SolverFailure(f"the best fixed action of {T} rounds was not found: S_T is too thin")
                self._forget(found.prices)
                self.x = best[1]
                return best
            share = 1.0
            if inside and not unit:  # (a proximal step on black boxes is exact, and needs no line search)
                descent = float(here.gradient @ (y - x))
                while there.rounded > here.rounded + 1e-4 * share * descent + noise and share > 1e-9:
                    share *= 0.5
                    there = objective(x + share * (y - x), rounding)
            x, inside = x + share * (y - x) if share < 1.0 else y, True
            if blunt or (share < 0.5 and coarse > 0):  # a model that is good for short ways only is rounded more, once
                rounding, coarse = 0.1 * rounding if blunt else max(rounding, coarse), 0.0
                there = objective(x, rounding)
            if unit:  # the flatter, the finer
                unit = float(np.linalg.norm(slope)) * D or unit
                self.rows = self.rows._replace(tau=np.where(self.rows.tau < 0, -unit, 0.0))
            here, proximity = there, found.proximity if linearises else proximity
        raise SolverFailure(f"the best fixed action of {T} rounds was found only to {gap / scale:.2g} of its value")

    def _sharp(
        self, objective: _Objective, x: Array, black: float, rounding: float, unit: float, proximity: float
    ) -> Iterator[tuple[float, float, _Step]]:
        """(value, lower bound, step) of a few steps from x that round nothing off: kinks near x are cones instead."""
        near = x, _NEAR * rounding
        for _ in range(_SHARP):
            here = objective(x, 0.0, near)
            if sum(len(y) for _, y in here.kinks) > _KINKS * self.K.dim:
                return
            try:
                found = self._step(objective, x, black, here, unit, proximity)
            except SolverFailure:  # nothing is lost: these steps are extra
                return
            if found is None:
                return
            x = found.x
            there, (black, _) = objective(x, 0.0, near), objective.black(x)
            yield there.value + black, self._below(found, there), found

    def _below(self, found: _Step, there: _Sum) -> float:
        """The lower bound of the module's head, at the minimiser of a model."""
        residual = there.gradient + found.prices @ self.rows.A + found.pull
        slack = float(found.prices @ (self.rows.b - self.rows.A @ found.x)) + found.slack
        return there.below - slack - float(np.linalg.norm(residual)) * self.K.diameter

    def _step(
        self, objective: _Objective, x: Array, black: float, here: _Sum, unit: float, proximity: float
    ) -> _Step | None:
        """The minimiser over S_T of the quadratic model at x; None if S_T is empty."""
        n = x.size
        size = n + (unit > 0)
        kinks = [_epigraph(H, y) for H, y in here.kinks]
        gradient, hessian, centre = np.full(size, unit), np.zeros((size, size)), np.full(size, black / (unit or 1.0))
        gradient[:n], hessian[:n, :n], centre[:n] = here.gradient, here.hessian, x
        slope = float(np.linalg.norm(gradient)) + max((float(np.linalg.norm(H)) for H, _ in here.kinks), default=0.0)
        for programs in range(_CUTS):
            if programs % _CUTS_AT_ONCE == 0:
                proximity *= 1.0 if programs == 0 else 4.0  # nearer to x fewer cuts are needed
                weight = 1e-7 * np.trace(hessian) / n + proximity * slope / self.K.diameter
                model = hessian + (weight or 1.0) * np.eye(size)
                scale = float(np.trace(model))  # the solvers see a curvature of about 1
                L = np.asarray(np.linalg.cholesky(model / scale), dtype=np.float64)
                target = L.T @ centre - _solve(L, gradient / scale)
            solved = self._nearest(L, target, kinks, 1.0 / scale)
            if solved is None:
                return None
            z, prices, pull, slack = solved
            if self._cut(objective, z, unit):
                continue
            prices, pull, slack = scale * prices, scale * pull, scale * slack
            if unit:  # there is no bound on τ: the slope in its direction must vanish
                prices = np.where(self.rows.tau < 0, prices / -(prices @ self.rows.tau / unit or -1.0), prices)
            tight = programs < 2  # the cuts are good where they are needed
            return _Step(z[:n], prices, pull, slack, 0.5 * proximity if proximity > 0.1 or tight else proximity)
        raise SolverFailure(f"the best fixed action of {objective.T} rounds needs more than {_CUTS} cuts in a step")

    def _nearest(
        self, L: Array, target: Array, norms: list[Cones], weight: float
    ) -> tuple[Array, Array, Array, float] | None:
        """argmin of ½‖Lᵀz − target‖² + weight · Σ norms over rows and cones; None if no point satisfies them.

        With it come the prices of the rows, and of cones and norms Aᵀλ and λᵀ(b − A z).
        """
        size, n, equal, m = len(target), self.K.dim, self.equalities, len(self.rows.b)
        rows = self.rows.A if size == n else np.column_stack([self.rows.A, self.rows.tau])
        if not self.cones and not norms:
            A = _solve(L, rows.T).T
            free = np.full(size, np.inf)
            (u,), (prices,), (status,) = daqp.project(-free, free, A[None], self.rows.b[None], equal, target[None])
            if status == CONVERGED:
                if equal:  # the sign of these multipliers is free
                    rest = target - u - prices[equal:] @ A[equal:]
                    prices[:equal] = np.linalg.lstsq(A[:equal].T, rest, rcond=None)[0]
                return _solve(L.T, u), prices, np.zeros(n), 0.0
        signs: tuple[tuple[str, int], ...] = (("zero", equal), ("nonneg", m - equal))
        of_rows = Cones(self.rows.A, self.rows.b, np.zeros((m, 0)), tuple(cone for cone in signs if cone[1]))
        whole = stack([of_rows, *(cones for cones, _ in self.cones.values()), *norms], n)
        A, heights, own = whole.A[:, :n], whole.A[:, n:], slice(0, len(whole.b) - sum(len(p.b) for p in norms))
        relaxation = np.zeros(len(A))
        limits = [i for i, key in enumerate(self.rows.keys) if key not in (_OF_K, _EPIGRAPH)]
        relaxation[limits] = _EMPTY * self.K.scale * np.linalg.norm(self.rows.A[limits], axis=1)
        tau = np.append(self.rows.tau, np.zeros(len(A) - m))[:, None][:, : size - n]
        P, q = np.append(np.ones(size), np.zeros(len(norms))), np.append(-target, np.full(len(norms), weight))
        for b in (whole.b, whole.b + relaxation):  # the latter if S_T is within rounding of being empty
            cones = Cones(np.hstack([_solve(L, np.hstack([A, tau]).T).T, heights]), b, whole.E, whole.cones)
            found = clarabel.minimise(P, q, cones)
            if not found.infeasible:
                better = polish(P, q, cones, found.x, found.z)
                pairs = [(found.x, found.z)] if better is None else [(found.x, found.z), (better.x, better.z)]
                points = [_solve(L.T, v[:size]) for v, _ in pairs]
                missed = [max(self._missed(z[:n]), float(np.max(rows @ z - b[:m]))) for z in points]
                pick = -1 if missed[-1] <= max(missed[0], 1e-12) else 0
                z, dual = points[pick], pairs[pick][1]
                dual = _in_dual_cones(whole.cones, np.where(heights.any(axis=1), weight, dual))
                pull = dual[m:] @ A[m:]
                return z, dual[:m], pull, float(dual[m:] @ whole.b[m:] - pull @ z[:n])
            # Farkas: multipliers with ⟨λ, b − A z⟩ < 0 for all z in K prove that there is no point
            dual = np.append(np.where(self.rows.tau < 0, 0.0, found.z[:m]), found.z[m:])[own]
            pull = dual @ A[own]
            if dual @ (whole.b + relaxation)[own] - pull @ self.x + np.linalg.norm(pull) * self.K.diameter < 0:
                return None
        raise SolverFailure("the best fixed action was not found, nor a proof that there is none")

    def _missed(self, x: Array) -> float:
        """The violation of the cones at x, which Clarabel has in its hands alone, in units of their size."""
        missed = 0.0
        for _, constraint in self.cones.values():
            if constraint is None:
                missed = max(missed, float(self.K.violation_unchecked(x)) / self.K.scale)
            else:
                missed = max(missed, float((constraint.rows_unchecked(x) / constraint.magnitude(x)).max()))
        return missed

    def _empty(self) -> bool:
        """Whether K has no point in common with the constraints that were seen to matter."""
        limits = [constraint for _, constraint in self.cones.values() if constraint is not None]
        rows = [key not in (_OF_K, _EPIGRAPH) for key in self.rows.keys]
        if any(rows):
            limits.append(Affine(self.rows.A[rows], self.rows.b[rows]))
        try:
            project(self.K, Stack(limits), self.x)
        except InfeasibleRound:
            return True
        return False

    def _cut(self, objective: _Objective, z: Array, unit: float) -> bool:
        """Adds what z violates most, as rows or cones; whether there was anything."""
        x = z[: self.K.dim]
        rows: list[tuple[tuple[int, int], Array, float, float]] = []  # key, row, right side, coefficient of τ
        added = False
        if self.curved and _OF_K not in self.cones and self.K.violation_unchecked(x) > 1e-10 * self.K.scale:
            cones, added = _usable(self.K.cones()), True
            if cones is None:
                nearest = self.K.project_unchecked(x)
                normal = (x - nearest) / np.linalg.norm(x - nearest)
                rows.append((_OF_K, normal, float(normal @ nearest), 0.0))
            else:
                self.cones[_OF_K] = cones, None
        if unit:
            value, slope = objective.black(x)
            if value - unit * z[-1] > self.tolerance:
                rows.append((_EPIGRAPH, slope, float(slope @ x) - value, -unit))
        for _, key, slope, right, constraint in self._violated(objective.T, x)[: 2 * self.K.dim]:
            added = True
            cones = None if constraint is None else _usable(constraint.cones())
            if cones is None:
                rows.append((key if constraint is None else _LINEARISED, slope, right, 0.0))
            else:
                self.cones[key] = cones, constraint
        if rows:
            keys, A, b, tau = zip(*rows, strict=True)
            self.rows = _Rows(
                np.concatenate([self.rows.A, A]),
                np.concatenate([self.rows.b, b]),
                np.concatenate([self.rows.tau, tau]),
                [*self.rows.keys, *keys],
            )
        return added or bool(rows)

    def _violated(self, T: int, x: Array) -> list[tuple[float, tuple[int, int], Array, float, Constraint | None]]:
        """(depth, key, row, right side, constraint if curved) of the violated rows not seen yet, deepest first."""
        found = []
        known = {*self.rows.keys, *self.cones}
        reach = max(float(np.linalg.norm(x)), 1e-3 * self.K.scale)
        first = 0
        for total, count, _, constraint in self.rounds(T):
            first, before = first + total, first
            if constraint is None:
                continue
            # a vectorised function may hold the data of all rounds, and must see as many points
            points = np.broadcast_to(x, (total, x.size)) if isinstance(constraint, Function) else x
            values = np.atleast_2d(constraint.rows_unchecked(points))[:count]
            if not all_finite(values):
                constraint.rows(points)  # says what is not, unless rows are idle
            t, i = np.nonzero(values > 0)
            if t.size == 0:
                continue
            slopes = constraint.jacobian_unchecked(points)
            slopes, depth = (slopes if slopes.ndim == 3 else slopes[None])[t, i], values[t, i]
            right, norms = np.vecdot(slopes, x) - depth, np.linalg.norm(slopes, axis=1)
            affine = constraint.affine() is not None
            for k in np.flatnonzero(depth > 1e-9 * np.maximum(norms * reach, np.abs(right))):
                key = (before + int(t[k]), int(i[k]) if affine else -1)
                if key not in known:
                    own = None if affine else constraint.trials(int(t[k]))
                    found.append((float(depth[k] / (norms[k] + _TINY)), key, slopes[k], float(right[k]), own))
        return sorted(found, key=lambda cut: -cut[0])

    def _linearises(self, T: int) -> bool:
        """Whether something curved among K and the constraints does not know its cones."""
        if self.curved and _usable(self.K.cones()) is None:
            return True
        for _, _, _, constraint in self.rounds(T):
            if constraint is not None and constraint.affine() is None:
                each = constraint.members.flat if isinstance(constraint, MixedConstraint) else [constraint.trials(0)]
                if any(_usable(member.cones()) is None for member in each):
                    return True
        return False

    def _forget(self, prices: Array) -> None:
        """Drops the rows of rounds without a price (or a negligible one): if they matter again, they will be found."""
        least = 1e-6 * prices.max(initial=0.0)
        pairs = zip(self.rows.keys, prices, strict=True)
        kept = [key == _OF_K or (key != _EPIGRAPH and price > least) for key, price in pairs]
        keys = [key for key, keep in zip(self.rows.keys, kept, strict=True) if keep]
        self.rows = _Rows(self.rows.A[kept], self.rows.b[kept], self.rows.tau[kept], keys)


def _solve(matrix: Array, right: Array) -> Array:
    return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)


def _usable(cones: Cones | None) -> Cones | None:
    """Auxiliary variables have no bounds, which the lower bound would need."""
    return None if cones is None or cones.aux else cones


def _part(loss: Loss, count: int, array: Array, inner: int) -> tuple[float, Array]:
    """The weight and the data, with an axis for the rounds: one entry of weight ``count`` if all share them."""
    if not loss.batch:
        return float(count), array[None]
    if array.ndim == inner:  # shared by all rounds, unlike other data of the loss
        array = np.broadcast_to(array, (*loss.batch, *array.shape))
    return 1.0, array[:count]


def _quadratic(loss: Loss, count: int, centre: Array) -> tuple[Array, Array, float]:
    """(P, q, r) with Σ f_t = ½dᵀPd + qᵀd + r over the first rounds, d = x − centre."""
    dim = centre.size
    if isinstance(loss, LeastSquares):
        weight, H = _part(loss, count, loss.H, 2)
        flat, residual = H.reshape(-1, dim), (np.matvec(H, centre) - _part(loss, count, loss.y, 1)[1]).ravel()
        return weight * flat.T @ flat, weight * residual @ flat, 0.5 * weight * float(residual @ residual)
    if isinstance(loss, Distance):
        weight, c = _part(loss, count, loss.center, 1)
        offset = centre - c
        return count * np.eye(dim), weight * offset.sum(axis=0), 0.5 * weight * float(np.vecdot(offset, offset).sum())
    if isinstance(loss, Linear):
        weight, c = _part(loss, count, loss.c, 1)
        slope = weight * c.sum(axis=0)
        return np.zeros((dim, dim)), slope, float(slope @ centre)
    assert isinstance(loss, Quadratic)
    weight, P = _part(loss, count, loss.P, 2)
    q, r = weight * _part(loss, count, loss.q, 1)[1].sum(axis=0), weight * float(_part(loss, count, loss.r, 0)[1].sum())
    P = weight * P.sum(axis=0)
    return P, P @ centre + q, float(0.5 * centre @ P @ centre + q @ centre) + r


def _norm(loss: Any, count: int, x: Array, rounding: float, near: tuple[Array, float] | None) -> _Sum:
    """‖r‖ ≥ ⟨u, r⟩ if ‖u‖ ≤ 1; rounded off: √(‖r‖² + μ²), whose gradient has u = r/√(‖r‖² + μ²)."""
    weight, H = _part(loss, count, loss.H, 2)
    y = _part(loss, count, loss.y, 1)[1]
    kinks: _Kinks = ()
    residual = np.matvec(H, x) - y
    square = np.vecdot(residual, residual)
    value = weight * float(np.sqrt(square).sum())
    if near is not None:
        close = np.linalg.norm(np.matvec(H, near[0]) - y, axis=-1) <= near[1]
        kinks = _distinct(weight * H[close], weight * y[close])
        H, residual, square = H[~close], residual[~close], square[~close]
    root = np.sqrt(square + rounding**2) + _TINY
    u = residual / root[:, None]
    pull = np.vecmat(u, H)
    flat = (H / np.sqrt(root)[:, None, None]).reshape(-1, x.size)
    across = pull / np.sqrt(root)[:, None]
    return _Sum(
        value,
        weight * float((square / root).sum()),
        weight * float(root.sum()),
        weight * pull.sum(axis=0),
        weight * (flat.T @ flat - across.T @ across),
        kinks,
    )


def _hinge(loss: Any, count: int, x: Array, rounding: float, near: tuple[Array, float] | None) -> _Sum:
    """max(0, s) ≥ p s if 0 ≤ p ≤ 1; rounded off: (s + √(s² + μ²))/2; with the kink kept apart: s/2 + |s|/2."""
    weight, u = _part(loss, count, loss.u, 1)
    v = _part(loss, count, loss.v, 0)[1]
    s = 1.0 - v * np.vecdot(u, x)
    root = np.sqrt(s**2 + rounding**2) + _TINY
    p = 0.5 * (1.0 + s / root)
    bend = 0.5 * (v * rounding / root) ** 2 / root
    kinks: _Kinks = ()
    if near is not None:
        slope = np.broadcast_to(v[:, None] * u, (len(s), x.size))
        close = np.abs(1.0 - slope @ near[0]) <= near[1]
        kinks = _distinct(0.5 * weight * slope[close][:, None, :], np.full((close.sum(), 1), 0.5 * weight))
        p, bend = np.where(close, 0.5, p), np.where(close, 0.0, bend)
    return _Sum(
        weight * float(np.maximum(s, 0.0).sum()),
        weight * float((p * s).sum()),
        weight * float(0.5 * (s + root).sum()),
        -weight * (p * v) @ u,
        weight * (u.T * bend) @ u,
        kinks,
    )


def _distinct(H: Array, y: Array) -> _Kinks:
    """Norms whose sum is Σ ‖H_k x − y_k‖, equal ones being drawn together."""
    if not len(H):
        return ()
    each, times = np.unique(np.concatenate([H, y[..., None]], axis=-1), axis=0, return_counts=True)
    return tuple((k * one[:, :-1], k * one[:, -1]) for one, k in zip(each, times, strict=True))


def _epigraph(H: Array, y: Array) -> Cones:
    """‖Hx − y‖ ≤ t with one auxiliary variable t."""
    p, n = H.shape
    A = np.zeros((p + 1, n + 1))
    A[0, n], A[1:, :n] = -1.0, -H
    return Cones(A, np.append(0.0, -y), np.zeros((p + 1, 0)), (("soc", p + 1),), 1)


def _in_dual_cones(cones: tuple[tuple[Any, int], ...], dual: Array) -> Array:
    """Multipliers beyond their cones by rounding are moved there; this, as other errors, will show in the bound."""
    dual, at = dual.copy(), 0
    for kind, size in cones:
        block = dual[at : at + size]
        if kind == "nonneg":
            block[:] = np.maximum(block, 0.0)
        elif kind == "soc":
            block[0] = max(block[0], 0.0)
            block[1:] *= min(1.0, block[0] / (float(np.linalg.norm(block[1:])) + _TINY))
        at += size * (size + 1) // 2 if kind == "psd" else size
    return dual


def _logistic(loss: Any, count: int, x: Array, rounding: float, near: tuple[Array, float] | None) -> _Sum:
    """log(1 + exp(−s)), smooth as it is."""
    weight, u = _part(loss, count, loss.u, 1)
    v = _part(loss, count, loss.v, 0)[1]
    margin = v * np.vecdot(u, x)
    p = np.exp(-np.logaddexp(0.0, margin))
    value = weight * float(np.logaddexp(0.0, -margin).sum())
    return _Sum(value, value, value, -weight * (p * v) @ u, weight * (u.T * (v**2 * p * (1.0 - p))) @ u)


_TINY = 1e-150
_QUADRATIC = (LeastSquares, Distance, Linear, Quadratic)
_NONNEGATIVE = {LeastSquares, Distance, Norm, Hinge, Logistic}
_CURVED = {Norm: _norm, Hinge: _hinge, Logistic: _logistic}

"""A projection or hinge prox to 40 digits: Newton's method on its optimality conditions, in decimal arithmetic.

The problem is min ½‖x − y‖² + ⟨cost, t⟩ subject to inequalities h_i(v) ≤ 0, v = (x, u, t): u are auxiliary variables of
1-norms and CVaR, t those of rows with bounded multipliers. From a point near the solution, `solve` finds v and
multipliers of an active set and changes the set until the conditions hold for all inequalities. These are sufficient,
since all h_i are convex: what is returned is the solution. Decimal floats are exact: 0.1 is the double next to 1/10.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

Vector = Any  # an array of Decimals
Description = tuple[Any, ...]

DIGITS = 60  # with which it is computed
ACCURACY = Decimal(10) ** -40  # to which the conditions hold, in units of their terms
ROUNDING = Decimal("1e-15")  # a violation below this share of the terms is what rounding does to the data
MAX_STEPS, MAX_SETS, MAX_POWER = 40, 60, 15
NEAR = 1e-7  # a slack below this share of its unit may bind at the start
ZERO, ONE, TINY = Decimal(0), Decimal(1), Decimal("1e-300")
CURVATURE = Decimal("1e-20")  # ½CURVATURE‖u − u₀‖² is added, so that auxiliary variables are unique


def exact(values: Any) -> Vector:
    """Doubles as Decimals."""
    values = np.asarray(values, dtype=float)
    found = np.empty(values.shape, dtype=object)
    found.flat = [Decimal(float(v)) for v in values.flat]
    return found


class Inequality(NamedTuple):
    """h(v) ≤ 0, by its value, gradient and Hessian at v, the size of its terms there, and the row of g it is of, or −1.

    ``of`` gives (value, gradient, Hessian or None, unit) on the coordinates ``where`` of v.
    """

    where: Any
    of: Callable[[Vector], tuple[Decimal, Vector, Vector | None, Decimal]]
    row: int = -1


def norm(v: Vector) -> Decimal:
    return (v @ v).sqrt()


def linear(a: Vector, b: Any, where: Any, row: int = -1) -> Inequality:
    """⟨a, v⟩ ≤ b."""

    def of(v: Vector) -> Any:
        return a @ v - b, a, None, abs(b) + abs(a) @ abs(v)

    return Inequality(where, of, row)


def cone(A: Vector, b: Vector, c: Vector, d: Any, where: Any, row: int = -1) -> Inequality:
    """‖Av + b‖ ≤ ⟨c, v⟩ + d; where the norm vanishes there is no gradient."""

    def of(v: Vector) -> Any:
        w = A @ v + b
        r = norm(w)
        w = w / r
        turned = A.T @ w
        unit = abs(A).sum() * abs(v).max() + norm(b) + abs(d)
        return r - c @ v - d, turned - c, (A.T @ A - np.outer(turned, turned)) / r, unit

    return Inequality(where, of, row)


def quadratic(P: Vector, q: Vector, r: Any, where: Any, row: int = -1) -> Inequality:
    """½⟨v, Pv⟩ + ⟨q, v⟩ + r ≤ 0."""

    def of(v: Vector) -> Any:
        Pv = P @ v
        return v @ Pv / 2 + q @ v + r, Pv + q, P, abs(v) @ (abs(P) @ abs(v)) / 2 + abs(q) @ abs(v) + abs(r)

    return Inequality(where, of, row)


def log_sum_exp(A: Vector, b: Vector, where: Any, row: int = -1) -> Inequality:
    """log Σ exp(⟨a_k, v⟩ − b_k) ≤ 0."""

    def of(v: Vector) -> Any:
        t = A @ v - b
        top = max(t)
        weights = np.array([(part - top).exp() for part in t], dtype=object)
        share = weights / weights.sum()
        mean = share @ A
        bend = A.T @ (share[:, None] * A) - np.outer(mean, mean)
        return top + weights.sum().ln(), mean, bend, (abs(A) @ abs(v) + abs(b)).max() + 1

    return Inequality(where, of, row)


class Program:
    """The inequalities of K and g, the auxiliary variables, and where they start."""

    def __init__(self, K: Description, g: Description, y: Any, x: Any, caps: Any, shared: bool) -> None:
        self.n, self.start, self.inequalities = len(y), list(exact(x)), list[Inequality]()
        self.target, self.cost = exact(y), {}  # (of auxiliary variables)
        self.add_set(K, np.arange(self.n))
        first = len(self.inequalities)
        self.rows = self.add_constraint(g, 0)
        if caps is not None:
            self._bound_multipliers(first, caps, shared)

    def _bound_multipliers(self, first: int, caps: Any, shared: bool) -> None:
        """Rows are relaxed by t ≥ 0, whose cost is the bound of their multipliers."""
        point = np.array(self.start, dtype=object)
        for i in [0] if shared else range(self.rows):
            members = [
                k
                for k in range(first, len(self.inequalities))
                if self.inequalities[k].row >= 0 and (shared or self.inequalities[k].row == i)
            ]
            values = [self.inequalities[k].of(point[self.inequalities[k].where])[0] for k in members]
            t = self.auxiliary([max([ZERO, *values])])
            self.cost[int(t[0])] = Decimal(float(caps if shared else caps[i]))
            for k in members:
                self.inequalities[k] = relaxed(self.inequalities[k], int(t[0]))
            self.inequalities.append(linear(-exact(np.ones(1)), ZERO, t))

    def auxiliary(self, values: Any) -> Any:
        """New variables with these values to start from: their numbers."""
        start = len(self.start)
        self.start += list(values)
        return np.arange(start, len(self.start))

    def rows_of(self, A: Vector, b: Vector, where: Any, rows: Any) -> None:
        for a, limit, row in zip(A, b, np.broadcast_to(rows, len(b)), strict=True):
            if any(a) and limit.is_finite():
                used = np.flatnonzero(a != 0)
                self.inequalities.append(linear(a[used], limit, np.asarray(where)[used], int(row)))

    def bounds(self, sign: int, bound: Any, where: Any, row: int = -1) -> None:
        """sign·v ≤ sign·bound, where it is finite."""
        for limit, i in zip(np.broadcast_to(bound, len(where)), where, strict=True):
            if np.isfinite(limit):
                at = Decimal(float(limit))
                self.inequalities.append(linear(exact([sign]), sign * at, np.array([i]), row))

    def norm1(self, center: Any, radius: Any, where: Any, row: int = -1) -> None:
        """Σ u ≤ radius, |v − center| ≤ u."""
        center = exact(center)
        u = self.auxiliary([abs(self.start[i] - c) for i, c in zip(where, center, strict=True)])
        for i, j, c in zip(where, u, center, strict=True):
            self.inequalities.append(linear(exact([1, -1]), c, np.array([i, j])))
            self.inequalities.append(linear(exact([-1, -1]), -c, np.array([i, j])))
        self.inequalities.append(linear(exact(np.ones(len(u))), Decimal(float(radius)), u, row))

    def ball(self, center: Any, radius: Any, where: Any, row: int = -1) -> None:
        n = len(where)
        self.inequalities.append(
            cone(exact(np.eye(n)), -exact(center), exact(np.zeros(n)), Decimal(float(radius)), where, row)
        )

    def add_set(self, K: Description, where: Any) -> None:
        n = len(where)
        match K[0]:
            case "Space":
                pass
            case "Orthant":
                self.bounds(-1, 0.0, where)
            case "Box":
                self.bounds(-1, K[1], where)
                self.bounds(1, K[2], where)
            case "Ball":
                self.ball(K[1], K[2], where)
            case "Simplex" | "CappedSimplex":
                whole = exact([K[-1], -K[-1]])
                self.bounds(-1, 0.0, where)
                self.rows_of(exact([np.ones(n), -np.ones(n)]), whole, where, -1)
                if K[0] == "CappedSimplex":
                    self.bounds(1, K[2], where)
            case "Halfspace":
                self.rows_of(exact(K[1])[None], exact([K[2]]), where, -1)
            case "Polyhedron":
                self.rows_of(exact(K[1]), exact(K[2]), where, -1)
            case "L1Ball":
                self.norm1(K[1], K[2], where)
            case "Ellipsoid":  # ½⟨x − c, P⁻¹(x − c)⟩ ≤ ½
                inverse, center = eliminate(exact(K[2]), exact(np.eye(n))), exact(K[1])
                inverse = (inverse + inverse.T) / 2
                q = -inverse @ center
                self.inequalities.append(quadratic(inverse, q, (-q @ center - 1) / 2, where))
            case "Product":
                starts = np.cumsum([0, *K[2]])
                for part, i, j in zip(K[1], starts[:-1], starts[1:], strict=True):
                    self.add_set(part, where[i:j])
            case "Intersection":
                for part in K[1]:
                    self.add_set(part, where)
            case _:
                raise ValueError(K[0])

    def add_constraint(self, g: Description, first: int) -> int:
        """Adds a constraint whose first row has this number; the number of the next."""
        where = np.arange(self.n)
        match g[0]:
            case "Affine" | "SparseAffine":
                self.rows_of(exact(g[1]), exact(g[2]), where, first + np.arange(len(g[2])))
                return first + len(g[2])
            case "Equality":
                for sign in (1, -1):
                    self.rows_of(sign * exact(g[1]), sign * exact(g[2]), where, first + np.arange(len(g[2])))
                return first + len(g[2])
            case "NormBall":
                self.ball(g[1], g[2], where, first)
            case "Quadratic":
                self.inequalities.append(quadratic(exact(g[1]), exact(g[2]), Decimal(float(g[3])), where, first))
            case "SecondOrder":
                A, b, c, d = exact(g[1]), exact(g[2]), exact(g[3]), Decimal(float(g[4]))
                if len(A) == 1:
                    self.rows_of(np.vstack([A - c, -A - c]), np.array([d - b[0], d + b[0]]), where, first)
                else:
                    self.inequalities.append(cone(A, b, c, d, where, first))
            case "Norm1":
                self.norm1(g[1], g[2], where, first)
            case "NormInf":
                center, radius, eye = exact(g[1]), Decimal(float(g[2])), exact(np.eye(self.n))
                self.rows_of(np.vstack([eye, -eye]), np.append(radius + center, radius - center), where, first)
            case "LogSumExp":
                self.inequalities.append(log_sum_exp(exact(g[1]), exact(g[2]), where, first))
            case "CVaR":
                self.cvar(g, first)
            case "Stack":
                for part in g[1]:
                    first = self.add_constraint(part, first)
                return first
            case "Soft":
                return self.add_constraint(g[1], first)
            case _:
                raise ValueError(g[0])
        return first + 1

    def cvar(self, g: Description, row: int) -> None:
        """eta + Σ w / k ≤ limit, w ≥ 0, w ≥ −Sx − eta."""
        S, limit, k = exact(g[1]), Decimal(float(g[3])), Decimal(max(float((1.0 - g[2]) * len(g[1])), 1.0))
        losses = -S @ np.array(self.start[: self.n], dtype=object)
        level = sorted(losses, reverse=True)[min(int(np.ceil(float(k) - 1e-9)), len(S)) - 1]
        eta = self.auxiliary([level])
        w = self.auxiliary([max(loss - level, ZERO) for loss in losses])
        for scenario, j in zip(S, w, strict=True):
            where = np.concatenate([np.arange(self.n), eta, [j]])
            self.inequalities.append(linear(np.append(-scenario, exact([-1, -1])), ZERO, where))
            self.inequalities.append(linear(exact([-1]), ZERO, np.array([j])))
        self.inequalities.append(
            linear(np.append(exact([1]), np.full(len(S), 1 / k, dtype=object)), limit, np.append(eta, w), row)
        )


def relaxed(inequality: Inequality, t: int) -> Inequality:
    """h(v) ≤ t."""

    def of(v: Vector) -> Any:
        value, gradient, bend, unit = inequality.of(v[:-1])
        if bend is not None:
            wider = np.full((len(v), len(v)), ZERO, dtype=object)
            wider[:-1, :-1] = bend
            bend = wider
        return value - v[-1], np.append(gradient, -ONE), bend, unit + abs(v[-1])

    return Inequality(np.append(inequality.where, t), of, inequality.row)


def eliminate(M: Vector, rhs: Vector) -> Vector:
    """Z with M Z = rhs, by Gaussian elimination with scaled pivots; 0 for unknowns that the equations leave open."""
    M, Z, size = M.copy(), rhs.copy(), len(M)
    scale = abs(M).max(axis=1)
    scale[scale == 0] = ONE
    M, Z = M / scale[:, None], Z / (scale[:, None] if Z.ndim > 1 else scale)
    order, column = [], 0
    pivots, row = [], 0
    for column in range(size):
        best = row + int(np.argmax(abs(M[row:, column]))) if row < size else size
        if best == size or abs(M[best, column]) < ACCURACY:
            continue
        if best != row:
            M[[row, best]], Z[[row, best]] = M[[best, row]], Z[[best, row]]
        below = row + 1 + np.flatnonzero(M[row + 1 :, column] != 0)
        if below.size:
            factor = M[below, column] / M[row, column]
            used = column + np.flatnonzero(M[row, column:] != 0)
            M[np.ix_(below, used)] -= np.outer(factor, M[row, used])
            Z[below] -= np.multiply.outer(factor, Z[row]) if Z.ndim > 1 else factor * Z[row]
        order.append(row)
        pivots.append(column)
        row += 1
    found = np.full(Z.shape, ZERO, dtype=object)
    for r, c in zip(reversed(order), reversed(pivots), strict=True):
        found[c] = (Z[r] - M[r, c + 1 :] @ found[c + 1 :]) / M[r, c]
    return found


class Optimum(NamedTuple):
    """The solution x and the least objective; how far they move, to first order, per relative change of all rows.

    A row h_i changes by its terms, and its gradient by ‖∇²h_i‖‖x‖.
    """

    x: Vector
    value: Decimal
    moves: float
    value_moves: float


def solve(K: Description, g: Description, y: Any, near: Any, caps: Any = None, shared: bool = False) -> Optimum | None:
    """The solution, from a point near it; None if Newton's method does not find it."""
    with localcontext() as context:
        context.prec = DIGITS
        try:
            program = Program(K, g, y, near, caps, shared)
            v = np.array(program.start, dtype=object)
            found = find(program, v, *first_set(program, v))
            return from_nearer_targets(program) if found is None else optimum_of(program, *found)
        except ArithmeticError:  # as where a norm vanishes
            return None


def from_nearer_targets(program: Program) -> Optimum | None:
    """As `solve`, with targets on the way from 0 to y, each ten times as far away as the last."""
    start, target, n, found = np.array(program.start, dtype=object), program.target, program.n, None
    for power in range(-MAX_POWER, 1):
        program.target = target * Decimal(10) ** power
        if found is None:
            v = np.append(start[:n] * Decimal(10) ** power, start[n:])
            found = find(program, v, *first_set(program, v))
        else:
            v, active, multipliers = found
            found = find(program, 10 * v, active, 10 * multipliers) or find(program, v, active, multipliers)
    return None if found is None else optimum_of(program, *found)


def optimum_of(program: Program, v: Vector, active: list[int], multipliers: Vector) -> Optimum:
    x = v[: program.n]
    value = (x - program.target) @ (x - program.target) / 2 + sum(c * v[i] for i, c in program.cost.items())
    return Optimum(x, value, *sensitivity(program, v, active, multipliers))


def find(
    program: Program, v: Vector, active: list[int], multipliers: Vector
) -> tuple[Vector, list[int], Vector] | None:
    """v, what binds there, and the multipliers, by Newton's method for one active set after another."""
    seen, least = set(), False
    for _ in range(MAX_SETS):
        key = tuple(sorted(active))
        least = least or key in seen  # the sets repeat: by the least index there is no cycle
        seen.add(key)
        found = newton(program, v, active, multipliers)
        if found is None:
            return None
        v, multipliers = found
        changed = next_set(program, v, active, multipliers, least)
        if changed is None:
            return v, active, multipliers
        active, multipliers = changed
    return None


def first_set(program: Program, v: Vector) -> tuple[list[int], Vector]:
    """Of what binds at v, nearly, what has a multiplier by non-negative least squares in doubles."""
    near, columns = [], []
    for i, h in enumerate(program.inequalities):
        value, gradient, _, unit = h.of(v[h.where])
        if value >= -Decimal(NEAR) * max(unit, TINY):
            column = np.zeros(len(v))
            column[h.where] = gradient.astype(float)
            near.append(i)
            columns.append(column)
    if not near:
        return [], exact([])
    target = np.zeros(len(v))
    target[: program.n] = (program.target - v[: program.n]).astype(float)
    for i, cost in program.cost.items():
        target[i] = -float(cost)
    lengths, size = np.linalg.norm(columns, axis=1), max(float(np.abs(target).max()), 1e-300)
    found = nnls((np.array(columns) / lengths[:, None]).T, target / size, maxiter=100 * len(near) + 100)[0]
    used = found > 0
    return [i for i, u in zip(near, used, strict=True) if u], exact((found * size / lengths)[used])


def newton(program: Program, v: Vector, active: list[int], multipliers: Vector) -> tuple[Vector, Vector] | None:
    """v and multipliers for which these inequalities are equations and the Lagrangian is stationary."""
    size = len(v)
    for _ in range(MAX_STEPS):
        M, rhs, _ = newton_system(program, v, active, multipliers)
        step = eliminate(M, rhs)
        v, multipliers = v + step[:size], step[size:]
        if abs(step[:size]).max() <= ACCURACY * max(abs(v).max(), TINY):
            return v, multipliers
    return None


def newton_system(
    program: Program, v: Vector, active: list[int], multipliers: Vector
) -> tuple[Vector, Vector, list[tuple[Decimal, Decimal]]]:
    """Matrix and right-hand side of Newton's step, and the next multipliers; the units of rows and of gradients."""
    n, size, count = program.n, len(v), len(active)
    M = np.full((size + count, size + count), ZERO, dtype=object)
    rhs = np.full(size + count, ZERO, dtype=object)
    target, curvature = np.array(program.start, dtype=object), np.full(size, CURVATURE, dtype=object)
    target[:n], curvature[:n] = program.target, ONE
    M[np.arange(size), np.arange(size)] = curvature
    rhs[:size] = curvature * (target - v)
    for i, cost in program.cost.items():
        rhs[i] -= cost
    units = []
    for k, (i, multiplier) in enumerate(zip(active, multipliers, strict=True)):
        h = program.inequalities[i]
        value, gradient, bend, unit = h.of(v[h.where])
        turned = ZERO
        if bend is not None:
            M[np.ix_(h.where, h.where)] += multiplier * bend
            turned = multiplier * (bend * bend).sum().sqrt() * norm(v[:n])
        M[h.where, size + k] = M[size + k, h.where] = gradient
        rhs[size + k] = -value
        units.append((unit, turned))
    return M, rhs, units


def sensitivity(program: Program, v: Vector, active: list[int], multipliers: Vector) -> tuple[float, float]:
    """The last two fields of `Optimum`."""
    n, size = program.n, len(v)
    M, _, units = newton_system(program, v, active, multipliers)
    if not active:
        return 0.0, 0.0
    inverse = eliminate(M, exact(np.eye(len(M))))[:n].astype(float)
    moves = sum(float(unit) * np.linalg.norm(inverse[:, size + k]) for k, (unit, _) in enumerate(units))
    moves += np.linalg.norm(inverse[:, :n], 2) * float(sum(turned for _, turned in units))
    return float(moves), float(sum(m * unit for m, (unit, _) in zip(multipliers, units, strict=True)))


def next_set(
    program: Program, v: Vector, active: list[int], multipliers: Vector, least: bool
) -> tuple[list[int], Vector] | None:
    """Without the inequality of the least multiplier, if that is negative, or with the one violated most; else None.

    Or, of all that are to leave or enter, that of the least index (Murty 1974).
    """
    largest = max([abs(m) for m in multipliers], default=ZERO)
    wrong = {i: -m / largest for i, m in zip(active, multipliers, strict=True) if m < -ACCURACY * largest}
    if not wrong or least:
        for i, h in enumerate(program.inequalities):
            value, _, _, unit = h.of(v[h.where])
            if i not in active and value > ROUNDING * unit:
                wrong[i] = value / unit
    if not wrong:
        return None
    worst = min(wrong) if least else max(wrong, key=lambda i: wrong[i])
    if worst not in active:
        at = replaced(program, v, active, multipliers, worst)
        if at is None:
            return [*active, worst], np.append(multipliers, ZERO)
        return [*active[:at], *active[at + 1 :], worst], np.append(np.delete(multipliers, at), multipliers[at])
    at = active.index(worst)
    return active[:at] + active[at + 1 :], np.delete(multipliers, at)


def replaced(program: Program, v: Vector, active: list[int], multipliers: Vector, new: int) -> int | None:
    """Which inequality leaves as another enters: none unless gradients would be dependent (Goldfarb & Idnani 1983)."""

    def gradient(i: int) -> Any:
        column, h = np.zeros(len(v)), program.inequalities[i]
        column[h.where] = h.of(v[h.where])[1].astype(float)
        return column

    if not active:
        return None
    columns, added = np.array([gradient(i) for i in active]), gradient(new)
    lengths = np.linalg.norm(columns, axis=1)
    shares = np.linalg.lstsq((columns / lengths[:, None]).T, added, rcond=None)[0] / lengths
    rest = added - shares @ columns
    if np.linalg.norm(rest) > 1e-10 * np.linalg.norm(added):
        return None
    ratios = np.where(shares > 1e-12, multipliers.astype(float) / np.where(shares > 1e-12, shares, 1.0), np.inf)
    return int(np.argmin(ratios)) if np.isfinite(ratios).any() else None

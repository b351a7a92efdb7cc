"""A norm ball together with affine rows over a polyhedron.

The points of the path (`cocopt.kernels.curved.path`) are projected onto the polyhedron and the rows by the dual
active-set method, each from the active set of the one before. Where the row's multipliers are bounded, the bounds of a
point of the path are t times as large.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing, guvectorize
from cocopt.kernels.active_set import (
    DualProblem,
    maximise_dual,
    normalise,
    set_row_states,
    store_columns,
)
from cocopt.kernels.curved.path import (
    MAX_STEPS,
    Interval,
    Row,
    advance,
    between,
    judge,
    multiplier_at,
    resolves,
    row_of,
    t_at_max_multiplier,
)
from cocopt.kernels.far_targets import move_target_closer
from cocopt.kernels.ldl import factorise, solve_factored
from cocopt.kernels.rounding import rounding
from cocopt.kernels.status import CONVERGED, NONFINITE, UNCONVERGED
from cocopt.kernels.vectors import distance, dot, norm
from cocopt.kernels.workspace import ACTIVE, AT_BOUND, workspace_views
from cocopt.tolerances import FAR_TARGET, SATISFIED

__all__ = ["polyhedron_norm_ball"]


class Polyhedron(NamedTuple):
    """Bounds, and ``count`` rows of a workspace, the first ``equalities`` of which hold with equality."""

    lower: Any
    upper: Any
    count: Any
    equalities: Any
    eager: Any  # see `DualProblem`


@borrowing
def _project(target, K, work, x):
    """The projection of the target onto the polyhedron in x, from the multipliers and states in the workspace."""
    lower, upper, count, equalities, eager = K
    problem = DualProblem(target, norm(target), lower, upper, count, equalities, eager)
    return maximise_dual(problem, work, work.multiplier, x)


@borrowing
def _scale(work, count, factor, t):
    """Multipliers are multiplied by the factor, and their bounds become t times the given ones."""
    for i in range(count):
        work.max_multiplier[i] = work.unscaled_max_multiplier[i] * t if t > 0.0 else np.inf
        at_bound = work.row_state[i] == AT_BOUND
        work.multiplier[i] = work.max_multiplier[i] if at_bound else work.multiplier[i] * factor


@borrowing
def _moving(y, c, work, count):
    """The slope of d² in t²: the square of y − c's component along the face that x is on."""
    active_count, z = 0, work.z
    for j in range(y.shape[0]):
        z[j] = (y[j] - c[j]) * work.free[j]
    for i in range(count):
        if work.row_state[i] == ACTIVE:
            work.active[active_count] = i
            work.residual[i] = dot(work.rows[i], z)
            active_count += 1
    if active_count > 0:
        factorise(work, np.int64(0), active_count)
        solve_factored(work, np.int64(0), active_count)
        for p in range(active_count):
            row = work.rows[work.active[p]]
            for j in range(y.shape[0]):
                z[j] -= work.newton_step[p] * row[j] * work.free[j]
    return dot(z, z)


@borrowing
def _load(own, constraint, equalities, work):
    """Loads K's own rows and those of the constraint; returns a status."""
    own_A, own_b = own
    count = own_b.shape[0] + constraint[1].shape[0]
    for i in range(own_b.shape[0]):
        work.max_multiplier[i] = np.inf
    if not normalise((own_A, own_b, work.max_multiplier), np.int64(0), work):
        return NONFINITE
    if not normalise(constraint, own_b.shape[0], work):
        return NONFINITE
    if not set_row_states(work, own_b.shape[0], equalities, constraint):
        return UNCONVERGED
    store_columns(work, count)
    for i in range(count):
        work.multiplier[i] = 0.0
        work.unscaled_max_multiplier[i] = work.max_multiplier[i]
    return CONVERGED


@borrowing
def _bring_closer(K, work, memory, x):
    """A target in memory[1] of which x is the projection, too, and which is near; multipliers and bounds fit it."""
    tau = move_target_closer(memory[0], x, norm(x), memory[1])
    for i in range(K.count):
        work.multiplier[i] *= tau
        work.max_multiplier[i] *= tau if work.max_multiplier[i] < np.inf else 1.0
    return tau


# Its complexity exceeds the guide: the active-set method, which takes long to compile, has to be called at one place.
@borrowing
def _prox_of_trial(y, K, work, ball, memory, x):
    """One trial; returns (ν of the norm ball, how many times as large as the rows' the multipliers are, status)."""
    c, radius, max_multiplier = ball
    reach, size = distance(y, c), norm(c)
    if not (reach < np.inf and radius > -np.inf and max_multiplier >= 0.0):
        return 0.0, 1.0, NONFINITE
    off = radius == np.inf or max_multiplier == 0.0
    exact = row_of(x.shape[0], 0.0 if radius == np.inf else radius, max_multiplier, size)
    row = exact
    least = row.radius / max(reach, 1e-300)  # t is no less if the center satisfies the rows
    interval, t, d, tau, last = Interval(0.0, 1.0, 0), 1.0, 0.0, 1.0, False
    between(c, y, t, memory[0])
    for _ in range(MAX_STEPS):
        if _project(memory[0] if tau == 1.0 else memory[1], K, work, x) != CONVERGED:
            return 0.0, t, UNCONVERGED
        d = distance(x, c)
        if tau == 1.0:  # the projection of a far point has fewer digits
            row = Row(exact.radius, exact.missed, max_multiplier, exact.tol + rounding(x.shape[0]) * norm(memory[0]))
        satisfied = t == 1.0 and (off or d <= radius + exact.tol)
        if satisfied or last:
            if tau == 1.0 and norm(memory[0]) > FAR_TARGET * norm(x) > 0.0:
                if not resolves(norm(memory[0]), norm(x)):
                    return 0.0, t, UNCONVERGED
                tau, last = _bring_closer(K, work, memory, x), True
                continue
            if satisfied:
                return 0.0, t * tau, CONVERGED
            break
        following, interval, last = advance(row, interval, t, d * d, _moving(y, c, work, K.count))
        if interval.low == 0.0 and not last:
            following = max(following, least if t > least else 0.1 * t)
            if not following > 1e-9 * least:
                return 0.0, t, UNCONVERGED  # x tends to the projection of the center
        _scale(work, K.count, following / t, following)
        t = following
        between(c, y, t, memory[0])
    status = judge(exact, t, d)
    if status != CONVERGED and max_multiplier < np.inf and d >= exact.radius - exact.tol:
        # the multiplier is at its bound but for the digits that the far target cost: what do they do to x?
        moving = _moving(y, c, work, K.count)
        shift = abs(t - t_at_max_multiplier(exact, max(d * d - t * t * moving, 0.0), moving)) * np.sqrt(moving)
        status = CONVERGED if shift <= SATISFIED * max(size, d) else UNCONVERGED
    return multiplier_at(row, t, d), t * tau, status


@guvectorize(
    [
        "float64[::1], float64[::1], float64[::1], float64[:,::1], float64[::1], int64, float64[:,::1], float64[::1], "
        "float64[::1], float64[::1], float64, float64, float64[:,::1], float64[:,::1], "
        "float64[::1], float64[::1], float64[::1], int64[::1]"
    ],
    "(n),(n),(n),(p,n),(p),(),(m,n),(m),(m),(n),(),(),(w,n),(t,r)->(n),(m),(),()",
)
def polyhedron_norm_ball(
    y, lower, upper, own_A, own_b, equalities, A, b, row_bounds, c, radius, max_multiplier, dim_memory, row_memory,
    x, nu, ball_nu, status,
):  # fmt: skip
    """K = {lower ≤ x ≤ upper, own_A x ≤ own_b}, as for `polyhedron_rows`, the rows A x ≤ b, and ‖x − c‖ ≤ radius."""
    work = workspace_views(dim_memory, row_memory)
    own = own_b.shape[0]
    K = Polyhedron(lower, upper, own + b.shape[0], equalities, own > 0)
    ball_nu[0] = 0.0
    for i in range(b.shape[0]):
        nu[i] = 0.0
    status[0] = _load((own_A, own_b), (A, b, row_bounds), equalities, work)
    if status[0] != CONVERGED:
        return
    ball_nu[0], scale, status[0] = _prox_of_trial(y, K, work, (c, radius, max_multiplier), np.empty((2, y.shape[0])), x)
    for i in range(b.shape[0]):
        length, given = work.norms[own + i], row_bounds[i] if b[i] < 0.0 else 0.0
        nu[i] = work.multiplier[own + i] / (scale * max(length, 1e-170)) if length > 0.0 else given

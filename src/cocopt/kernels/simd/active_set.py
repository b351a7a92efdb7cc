"""The active-set method of `cocopt.kernels.active_set` for a box and rows, eight trials at once.

Each iteration does the same for all lanes: it computes x(ν), evaluates the rows, makes the most violated one active
where the active ones bind already, and moves along Newton's direction on the active rows as far as the dual grows. No
trial depends on its neighbours, to the bit, because no sum is reordered (`in_order`).
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from cocopt.kernels._jit import in_order
from cocopt.kernels.simd.lanes import SLOTS, clear_slot
from cocopt.kernels.simd.vector import (
    WIDTH,
    absolute,
    all_lanes,
    any_lane,
    broadcast,
    load,
    maximum,
    minimum,
    sqrt,
    store,
    where,
)
from cocopt.tolerances import FEASIBILITY, NEVER_BINDS, TINY

__all__ = ["MAX_ITERATIONS", "iterate", "line_search", "slots_in_use"]

MAX_ITERATIONS = 16  # after so many a trial is left to the method for one
MAX_LENGTHS = 6  # trial lengths in a line search; what is missing to its end is left to the next iteration
SMALL_PIVOT, REPLACED_PIVOT = 1e-9, 0.1  # of dependent rows: any ascent direction serves, and this one is short


@in_order
def row_residual(w, rows, i, rhs):
    """⟨rows[i], x⟩ − rhs."""
    residual = broadcast(0.0) - rhs
    for j in range(w.dim):
        residual = residual + load(rows, i, j) * load(w.x, j)
    return residual


@in_order
def respond(w, k, box):
    """z = y − Σ ν_i row_i over the first k slots, x = clip(z) and which coordinates are free; (‖x‖², Σ ν_i)."""
    lower, upper = box
    zero, one, multiplier_sum, square = broadcast(0.0), broadcast(1.0), broadcast(0.0), broadcast(0.0)
    for s in range(k):
        multiplier_sum = multiplier_sum + load(w.nu, s)
    for j in range(w.dim):
        z = load(w.target, j)
        for s in range(k):
            z = z - load(w.nu, s) * load(w.active_rows, s, j)
        x = minimum(maximum(z, broadcast(lower[j])), broadcast(upper[j]))
        store(z, w.z, j)
        store(x, w.x, j)
        store(where(x == z, one, zero), w.free, j)
        square = square + x * x
    return square, multiplier_sum


@in_order
def evaluate(w, M, k, eps, box):
    """x(ν), which lanes are done, and which of the first M rows enters where one is violated and the active ones bind.

    A lane is done if no row is violated and the active rows bind, up to rounding, and if rounding is small enough.
    """
    square, multiplier_sum = respond(w, k, box)
    x_norm = sqrt(square)
    terms = load(w.target_norm) + x_norm
    noise = (x_norm + multiplier_sum) * (2.0 * eps)
    worst, entering = noise, broadcast(-1.0)
    for i in range(M):
        rhs = load(w.rhs, i)
        residual = row_residual(w, w.rows, i, rhs)
        store(residual, w.residual, i)
        excess = residual - absolute(rhs) * eps
        worse = excess > worst
        worst, entering = where(worse, excess, worst), where(worse, broadcast(float(i)), entering)
    binding = square == square
    for s in range(k):
        rhs = load(w.active_rhs, s)
        residual = row_residual(w, w.active_rows, s, rhs)
        store(residual, w.active_residual, s)
        binding = binding & (absolute(residual) <= noise + absolute(rhs) * eps)
    done = binding & (entering < 0.0) & (noise <= terms * (0.25 * FEASIBILITY)) & (terms < NEVER_BINDS)
    store(where(done, broadcast(1.0), broadcast(0.0)), w.done)
    store(where(binding, entering, broadcast(-1.0)), w.entering)
    store(x_norm, w.x_norm)
    store(noise, w.noise)


@in_order
def add_rows(w, k):
    """Puts each entering row in a slot, if one is empty; returns how many slots are in use."""
    for lane in range(WIDTH):
        i = int(w.entering[lane])
        slot = SLOTS if i < 0 else 0
        while slot < SLOTS and w.active_index[slot, lane] >= 0.0:
            slot += 1
        if slot < SLOTS:
            if slot == k:
                store(broadcast(0.0), w.active_residual, slot)
                k += 1
            w.active_index[slot, lane] = i
            w.active_rhs[slot, lane] = w.rhs[i, lane]
            w.active_residual[slot, lane] = w.residual[i, lane]
            for j in range(w.dim):
                w.active_rows[slot, j, lane] = w.rows[i, j, lane]
    return k


@in_order
def newton_direction(w, k):
    """The direction d on the active rows: (A_F A_Fᵀ) d = residuals, F the free coordinates; by L D Lᵀ."""
    for p in range(k):
        d = load(w.active_residual, p)
        for q in range(p + 1):
            entry = broadcast(0.0)
            for j in range(w.dim):
                entry = entry + load(w.active_rows, p, j) * load(w.free, j) * load(w.active_rows, q, j)
            store(entry, w.factor, p, q)
        pivot = load(w.factor, p, p)
        for q in range(p):
            entry = load(w.factor, p, q)
            for t in range(q):
                entry = entry - load(w.factor, p, t) * load(w.factor, q, t) * load(w.factor, t, t)
            multiple = entry / load(w.factor, q, q)
            store(multiple, w.factor, p, q)
            pivot = pivot - multiple * entry
            d = d - multiple * load(w.nu_step, q)
        pivot = where(pivot > SMALL_PIVOT, pivot, broadcast(REPLACED_PIVOT))  # (that of an empty slot is 0)
        store(pivot, w.factor, p, p)
        store(d, w.nu_step, p)
    for t in range(k):
        p = k - 1 - t
        d = load(w.nu_step, p) / load(w.factor, p, p)
        for q in range(p + 1, k):
            d = d - load(w.factor, q, p) * load(w.nu_step, q)
        store(d, w.nu_step, p)


@in_order
def line_search(w, box, h_0, tol, longest, guess, done, lengths):
    """(α, whether |h(α)| ≤ tol): the root of h(α) = ⟨a, clip(z − α a)⟩ − b in [0, longest], or its end.

    a is ``z_step``, and h never increases; h_0 = h(0). Newton's method from a guess, inside a bracket, at most as many
    ``lengths``. Lanes that are done count as found.
    """
    lower, upper = box
    zero = broadcast(0.0)
    low, high, alpha = zero, longest, guess
    found = done
    for _ in range(lengths):
        h, slope = h_0, zero
        for j in range(w.dim):
            a = load(w.z_step, j)
            z = load(w.z, j) - alpha * a
            x = minimum(maximum(z, broadcast(lower[j])), broadcast(upper[j]))
            h = h + a * (x - load(w.x, j))
            free = where(x == z, a, zero)
            slope = slope + free * free
        above = h > 0.0
        found = (absolute(h) <= tol) | (above & (alpha >= longest)) | done
        if all_lanes(found):
            break
        low, high = where(above, alpha, low), where(above, high, alpha)
        newton = minimum(alpha + h / maximum(slope, broadcast(TINY)), alpha * 4.0)  # (h may be flat for a while)
        # (without a bracket Newton's length counts: if it is alpha itself, h is rounding)
        other = where(high < NEVER_BINDS, (low + high) * 0.5, newton)
        other = where(above & (newton >= longest), longest, other)
        alpha = where(found, alpha, where((newton > low) & (newton < high), newton, other))
    return alpha, found


@in_order
def length_to_zero(nu, d):
    """The step length at which a multiplier that decreases is 0."""
    return nu / minimum(d, broadcast(-TINY)) * -1.0


@in_order
def take_step(w, k, box):
    """Moves along d to where the dual grows no more or a multiplier is 0; rows with that multiplier become inactive."""
    zero, one, never = broadcast(0.0), broadcast(1.0), broadcast(NEVER_BINDS)
    done = load(w.done) > 0.0
    longest, h_0, length = never, zero, zero
    for s in range(k):
        d = load(w.nu_step, s)
        h_0, length = h_0 + d * load(w.active_residual, s), length + absolute(d)
        longest = minimum(longest, where(d < 0.0, length_to_zero(load(w.nu, s), d), never))
    for j in range(w.dim):
        a = zero
        for s in range(k):
            a = a + load(w.nu_step, s) * load(w.active_rows, s, j)
        store(a, w.z_step, j)
    tol = length * load(w.noise) * 0.25
    alpha, _ = line_search(w, box, h_0, tol, longest, minimum(one, longest), done, MAX_LENGTHS)
    alpha = where(done, zero, alpha)
    for s in range(k):
        d, nu = load(w.nu_step, s), load(w.nu, s)
        leaves = (d < 0.0) & (alpha >= length_to_zero(nu, d)) & (load(w.done) < 1.0)
        store(maximum(nu + alpha * d, zero), w.nu, s)
        if any_lane(leaves):
            store(where(leaves, one, zero), w.leaving)
            for lane in range(WIDTH):
                if w.leaving[lane] > 0.0:
                    clear_slot(w, s, lane)


@in_order
def iterate(w, M, k, eps, box):
    """One iteration of all lanes on the first M rows, with k slots in use; returns how many are afterwards."""
    evaluate(w, M, k, eps, box)
    k = add_rows(w, k)
    newton_direction(w, k)
    take_step(w, k, box)
    return k


@in_order
def slots_in_use(w, k):
    """How many of the first k slots are in use, not counting empty ones at the end."""
    while k > 0 and not any_lane(load(w.active_index, k - 1) >= 0.0):
        k -= 1
    return k

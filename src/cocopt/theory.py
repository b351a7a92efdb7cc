"""What the theorems promise: bounds before a run, and the certificate that a run itself proves.

D is the diameter of K, L_f and L_g are Lipschitz constants of the losses and constraints over K (G of both), and some
point of K satisfies every constraint. `bounds` and the certificate are for CLASP with steps that never increase,

    x_{t+1} = P_{K ∩ {g_t ≤ 0}}( x_t − η_t ∇f_t(x_t) );

the other functions are for its rivals.

Which violation to bound? With T rounds and |g_t| ≤ B over K,

    CCV₁ ≤ √(T · CCV₂)    and    CCV₂ ≤ B · CCV₁,

so a bound on either gives one on the other. CCV₂ = O(log T) is the stronger statement about each round: at most CCV₂/ε²
rounds violate by more than ε, and CCV₁ = O(√(T log T)) follows. CCV₁ = O(√T) is the stronger one about the total, but
from it CCV₂ = O(√T) at best: it allows rare large violations as well as many small ones. Where a violation's
cost grows with its size (heat, debt, overload), CCV₂ is the measure; where it is paid by the unit, CCV₁ is. Both depend
on the scale of g (g → c g makes them |c| CCV₁ and c² CCV₂): put constraints in units in which 1 is a violation that
matters. The violation of round 1 belongs to the start point, not to the method, and can dominate CCV₂.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, ArrayLike, describe, positive_int, scalar
from cocopt.errors import InvalidInput, StateError
from cocopt.metrics import CompensatedSum, Value
from cocopt.state import as_array, as_fields, as_numbers
from cocopt.steps import Adaptive, Constant, Power, Schedule, Step, StronglyConvex, as_schedule, checked_step

__all__ = ["Bounds", "Certificate", "bounds", "bounds_adagrad", "bounds_clasp_f", "bounds_recoo"]

_CHUNK = 1 << 18  # terms of a long sum held in memory at once


class Bounds(NamedTuple):
    """Upper bounds, numbers or arrays in the shape of T."""

    regret: Value
    ccv1: Value
    ccv2: Value


def bounds(
    steps: Schedule | Callable[[int], float],
    T: ArrayLike,
    *,
    diameter: float,
    lipschitz_f: float,
    lipschitz_g: float,
    first_gradient: float | None = None,
) -> Bounds:
    """What CLASP promises for T rounds, with constants; CCV₁ always through √(T · CCV₂).

    ================ ======================================== ===========================================
    steps            Regret_T ≤                               CCV₂ ≤
    ================ ======================================== ===========================================
    any η_t          D²/(2η_T) + (L_f²/2) Σ_t η_t             L_g² (D² + 2 L_f D Σ_t η_t)
    StronglyConvex   (L_f²/(2m)) (1 + ln T)                   L_g² (D² + (2 L_f D/m) (1 + ln T))
    Adaptive         (D²/(2c) + c) L_f √T                     L_g² (D² + 2 c D S)
    ================ ======================================== ===========================================

    The first row is meant for convex losses: Power, Constant and any callable that never increases. In the last one
    c is the schedule's own scale · D. With n_t = ‖∇f_t(x_t)‖ and G_t = Σ_{s≤t} n_s², its regret follows from
    D²/(2η_T) + Σ_t η_t n_t²/2 with η_t = c/√G_t and Σ_t n_t²/√G_t ≤ 2√G_T ≤ 2 L_f √T; its CCV₂ from
    L_g² (D² + 2 D Σ_t η_t n_t) and Σ_t n_t/√G_t ≤ S. Without knowledge of the gradients S = T (they may grow
    geometrically, and each step is then as long as K); given the first of them that is not 0,
    S = √(T (1 + ln(T L_f²/n_1²))), from Cauchy's inequality and Σ_t n_t²/G_t ≤ 1 + ln(G_T/n_1²).

    Parameters
    ----------
    steps : Schedule or callable of t
    T : int or array of int
        The numbers of rounds; sums over t are computed term by term up to the largest.
    diameter, lipschitz_f, lipschitz_g : float
        D, L_f and L_g.
    first_gradient : float, optional
        For Adaptive: the norm of the first gradient that is not 0, or a lower bound of it.

    Examples
    --------
    >>> from cocopt import steps, theory
    >>> theory.bounds(steps.Power(0.5), [100, 10_000], diameter=1.0, lipschitz_f=1.0, lipschitz_g=1.0).regret
    array([ 14.29, 149.27])
    >>> theory.bounds(steps.StronglyConvex(1.0), 100, diameter=1.0, lipschitz_f=2.0, lipschitz_g=1.0)
    Bounds(regret=np.float64(11.21), ccv1=np.float64(48.40), ccv2=np.float64(23.42))
    """
    schedule = as_schedule(steps)
    D, L_f, L_g = _constants(diameter, lipschitz_f, lipschitz_g)
    rounds = _rounds(T)
    n = rounds.astype(np.float64)
    if isinstance(schedule, StronglyConvex):
        total = (1.0 + np.log(n)) / schedule.m
        regret = L_f**2 / 2 * total
        path = L_f * total
    elif isinstance(schedule, Adaptive):
        c = schedule.scale * schedule.D
        regret = (D**2 / (2 * c) + c) * L_f * np.sqrt(n)
        if first_gradient is None:
            path = c * n
        else:
            first = scalar("first_gradient", first_gradient, positive=True)
            path = c * np.minimum(n, np.sqrt(n * (1.0 + np.log(np.maximum(n * (L_f / first) ** 2, 1.0)))))
    else:
        total, _, last = _sums(schedule, rounds)
        regret = D**2 / (2 * last) + L_f**2 / 2 * total
        path = L_f * total
    ccv2 = L_g**2 * (D**2 + 2 * D * path)
    return Bounds(regret, np.sqrt(n * ccv2), ccv2)


def bounds_clasp_f(
    steps: Schedule | Callable[[int], float],
    T: ArrayLike,
    *,
    diameter: float,
    lipschitz_f: float,
    lipschitz_g: float,
    gradient_at: Literal["x", "xb"] = "x",
) -> Bounds:
    """What CLASP-F promises for T rounds; CCV₁ through √(T · CCV₂).

    ================ ======================================== ===========================================
    steps            Regret_T ≤                               CCV₂ ≤
    ================ ======================================== ===========================================
    any η_t          D²/(2η_T) + L_f² Σ_t η_t                 L_g² (D² + 2 L_f D Σ_t η_t + L_f² Σ_t η_t²)
    StronglyConvex   (L_f²/m) (1 + ln T)                      the same
    ================ ======================================== ===========================================

    As derived here: with δ = v_t/‖s_t‖, the cutter gives ‖x̄ − x*‖² ≤ ‖x_t − x*‖² − δ², the gradient step ‖x_{t+1} −
    x*‖² ≤ ‖x̄ − x*‖² − 2η_t⟨∇f_t, x̄ − x*⟩ + η_t² L_f², and ‖x̄ − x_t‖ ≤ δ. The inner product is at least −L_f D,
    which sums to CCV₂, and at least f_t(x_t) − f_t(x*) − L_f δ; 2η_t L_f δ − δ² ≤ η_t² L_f² does away with δ. With
    the gradient at x̄ and 1/(m t), round 1 lacks the −δ² and adds L_f D to the regret. Adaptive steps are not
    covered.

    Parameters
    ----------
    steps, T, diameter, lipschitz_f, lipschitz_g
        As for `bounds`.
    gradient_at : "x" or "xb"
        As for [`cocopt.CLASPF`][].

    Examples
    --------
    >>> from cocopt import steps, theory
    >>> theory.bounds_clasp_f(steps.Power(0.5), 100, diameter=1.0, lipschitz_f=1.0, lipschitz_g=1.0)
    Bounds(regret=np.float64(23.59), ccv1=np.float64(65.85), ccv2=np.float64(43.37))
    """
    schedule = as_schedule(steps)
    D, L_f, L_g = _constants(diameter, lipschitz_f, lipschitz_g)
    rounds = _rounds(T)
    if isinstance(schedule, Adaptive):
        raise InvalidInput(f"steps: expected a schedule of t alone, got {schedule!r}")
    total, squares, last = _sums(schedule, rounds)
    if isinstance(schedule, StronglyConvex):
        regret = L_f**2 / schedule.m * (1.0 + np.log(rounds)) + (L_f * D if gradient_at == "xb" else 0.0)
    else:
        regret = D**2 / (2 * last) + L_f**2 * total
    ccv2 = L_g**2 * (D**2 + 2 * L_f * D * total + L_f**2 * squares)
    return Bounds(regret, np.sqrt(rounds * ccv2), ccv2)


def bounds_recoo(
    T: ArrayLike,
    *,
    diameter: float,
    lipschitz_f: float,
    lipschitz_g: float,
    strong_convexity: float | None = None,
    epsilon: float = 0.1,
) -> Bounds:
    """What RECOO promises for T rounds; CCV₁ through √(T · CCV₂).

    ================ ===============================================
    Regret_T ≤       (L_f²/4) Σ_t 1/α_t + D² α_T, α_t = √t; or (L_f²/2m)(1 + ln T), α_t = m t/2
    CCV₂ ≤           2 L_g² (D² + L_f D Σ_t 1/α_t) + 2 min(L_g D, L_f D + α_1 D²) R_T
    ================ ===============================================

    As derived here: the update minimises a 2α_t-strongly convex function over K, so for x* with g_t(x*) ≤ 0

        α_t‖x_{t+1} − x_t‖² + Q_t γ_t h_t ≤ L_f D + α_t(‖x* − x_t‖² − ‖x* − x_{t+1}‖²),    h_t = g_t^+(x_{t+1}).

    Divided by α_t it sums to Σ‖x_{t+1} − x_t‖² ≤ D² + L_f D Σ 1/α_t, and g_t^+(x_t) ≤ h_t + L_g‖x_{t+1} − x_t‖. Since
    Q_{t+1} = Q_t + γ_t h_t wherever it exceeds √(t+1), and γ_t h_t ≤ c_t = L_f D + D² max_{s≤t} α_s/√s, the same
    inequality gives Q_t² ≤ t + 2 L_f D t + 2 α_t D² + c_t Q_t, hence Σ_{s≤t} γ_s h_s ≤ Q_{t+1} ≤ C_{t+1} with C_t =
    c_t + √(t + 2 L_f D t + 2 α_t D²), and summation by parts Σ_t h_t ≤ R_T = C_{T+1}/γ_T + Σ_{t<T} C_{t+1}(1/γ_t −
    1/γ_{t+1}), which is O(1/ε). Every h_t is at most L_g D, and at most L_f D + α_1 D².

    Parameters
    ----------
    T, diameter, lipschitz_f, lipschitz_g
        As for `bounds`.
    strong_convexity, epsilon
        As for [`cocopt.RECOO`][].

    Examples
    --------
    >>> from cocopt import theory
    >>> theory.bounds_recoo([100, 10_000], diameter=1.0, lipschitz_f=1.0, lipschitz_g=1.0).regret
    array([ 14.65, 149.64])
    """
    D, L_f, L_g = _constants(diameter, lipschitz_f, lipschitz_g)
    rounds = _rounds(T)
    t = np.arange(1, int(rounds.max()) + 2, dtype=np.float64)
    if strong_convexity is None:
        alpha, c = np.sqrt(t), np.full(t.shape, L_f * D + D**2)
    else:
        m = scalar("strong_convexity", strong_convexity, positive=True)
        alpha, c = m * t / 2, L_f * D + D**2 * m * np.sqrt(t) / 2
    inverse = t ** -(0.5 + scalar("epsilon", epsilon, positive=True))  # 1/γ_t
    at = rounds - 1
    total = np.cumsum(1.0 / alpha)[at]
    queue = c + np.sqrt(t + 2 * L_f * D * t + 2 * alpha * D**2)
    parts = np.concatenate([[0.0], np.cumsum(queue[1:-1] * (inverse[:-2] - inverse[1:-1]))])
    after = queue[at + 1] * inverse[at] + parts[at]
    regret = (
        L_f**2 / 4 * total + D**2 * alpha[at] if strong_convexity is None else L_f**2 / (2 * m) * (1 + np.log(rounds))
    )
    ccv2 = 2 * L_g**2 * (D**2 + L_f * D * total) + 2 * min(L_g * D, L_f * D + alpha[0] * D**2) * after
    return Bounds(regret, np.sqrt(rounds * ccv2), ccv2)


def bounds_adagrad(
    T: ArrayLike,
    *,
    horizon: int,
    diameter: float,
    lipschitz: float,
    strong_convexity: float | None = None,
    weight: float = 1.0,
) -> Bounds:
    """What AdaGrad promises for T rounds, T up to the horizon N; CCV₂ through G D · CCV₁.

    ================ ============================ =====================================================
    losses           Regret_T ≤                   CCV₁ ≤
    ================ ============================ =====================================================
    convex           2GD(√T + 1/V)                4GD√N ln(2(1 + 2VT))
    strongly convex  (G²/m)(1 + ln T)             4G√(GDT ln(eN)/m) + 4G² ln(eN)/m
    ================ ============================ =====================================================

    The convex row is Sinha and Vaze's (2024) for V = 1. For any V their inequality reads
    b V Regret_T + Φ(Q_T) ≤ √T (V + Φ'(Q_T)) with Φ' = λ(Φ + 1) and λ√T ≤ ½; it gives the regret, and, as
    b V Regret_T ≥ −V T/2, exp(λ Q_T) ≤ 2(1 + V√T + V T/2).

    Parameters
    ----------
    T, diameter
        As for `bounds`.
    horizon, lipschitz, strong_convexity, weight
        As for [`cocopt.AdaGrad`][]; both the losses and the constraints have the Lipschitz constant G.

    Examples
    --------
    >>> from cocopt import theory
    >>> theory.bounds_adagrad(100, horizon=100, diameter=1.0, lipschitz=1.0)
    Bounds(regret=np.float64(22.0), ccv1=np.float64(239.86), ccv2=np.float64(239.86))
    """
    D, G, _ = _constants(diameter, lipschitz, lipschitz)
    N, V = positive_int("horizon", horizon), scalar("weight", weight, positive=True)
    rounds = _rounds(T)
    if rounds.max() > N:
        raise InvalidInput(f"T: expected at most the horizon {N}, got {rounds.max()}")
    if strong_convexity is None:
        regret = 2 * G * D * (np.sqrt(rounds) + 1 / V)
        ccv1 = 4 * G * D * np.sqrt(N) * np.log(2 * (1 + 2 * V * rounds))
    else:
        m = scalar("strong_convexity", strong_convexity, positive=True)
        regret = G**2 / m * (1 + np.log(rounds))
        share = (1 + np.log(N)) / m
        ccv1 = 4 * G * np.sqrt(G * D * share * rounds) + 4 * G**2 * share
    return Bounds(regret, ccv1, G * D * ccv1)


def _constants(diameter: float, lipschitz_f: float, lipschitz_g: float) -> tuple[float, float, float]:
    """(D, L_f, L_g), checked."""
    return (
        scalar("diameter", diameter, nonnegative=True),
        scalar("lipschitz_f", lipschitz_f, nonnegative=True),
        scalar("lipschitz_g", lipschitz_g, nonnegative=True),
    )


def _rounds(T: ArrayLike) -> NDArray[np.integer[Any]]:
    rounds = np.asarray(T)
    if rounds.dtype.kind not in "iu" or rounds.size == 0 or rounds.min() < 1:
        raise InvalidInput(f"T: expected positive integers, got {T!r}")
    return rounds


def _sums(schedule: Schedule, rounds: NDArray[np.integer[Any]]) -> tuple[Array, Array, Array]:
    """(Σ_{t≤T} η_t, Σ_{t≤T} η_t², η_T) for each T."""
    total, squares, last = (np.empty(rounds.shape) for _ in range(3))
    running, running_squares, previous = CompensatedSum(), CompensatedSum(), np.inf
    end = int(rounds.max())
    for start in range(1, end + 1, _CHUNK):
        t = np.arange(start, min(start + _CHUNK, end + 1))
        if isinstance(schedule, Power):
            steps = schedule.scale * t.astype(np.float64) ** -schedule.beta
        elif isinstance(schedule, Constant):
            steps = np.full(t.shape, schedule.c)
        elif isinstance(schedule, StronglyConvex):
            steps = 1.0 / (schedule.m * t.astype(np.float64))
        else:
            steps = np.empty(t.shape)
            for i, now in enumerate(t.tolist()):  # without gradients: a schedule that needs them is refused
                steps[i] = previous = float(checked_step(schedule, now, np.nan, previous))
        here = (rounds >= start) & (rounds <= t[-1])
        total[here] = np.cumsum(steps)[rounds[here] - start] + running.value
        squares[here] = np.cumsum(steps**2)[rounds[here] - start] + running_squares.value
        last[here] = steps[rounds[here] - start]
        running, running_squares = running.plus(steps.sum()), running_squares.plus((steps**2).sum())
    return total[()], squares[()], last[()]


_INFEASIBLE, _WEAK, _MOVED, _FAST, _GREW = 1, 2, 4, 8, 16
_REASONS = {
    _INFEASIBLE: "in some round no point of K satisfied the constraint",
    _WEAK: "a loss was less strongly convex than the steps assume",
    _MOVED: "the action played differed from the one asked for",
    _FAST: "the steps fell faster than 1/(m t)",
    _GREW: "a step was larger than the one before",
}
_UNBOUNDED = "K is unbounded, or its diameter unknown"


class Certificate:
    """The regret bound that a run itself proves, from the steps and gradients that it saw; immutable.

    Against every fixed x in K that satisfies all constraints of the run,

        Regret_T ≤ D²/(2η_T) + ½ Σ_t η_t ‖∇f_t(x_t)‖²     (convex losses, steps that never increase)
        Regret_T ≤ ½ Σ_t η_t ‖∇f_t(x_t)‖²                 (m-strongly convex losses, η_t = 1/(m t))

    No Lipschitz constant enters. Rounds that reveal no loss count for nothing; a step of 0 is none, and η_T is the last
    step taken. The certificate is void once an assumption was seen to fail; `reasons` says which. The sum is
    compensated; the bound is exact up to rounding.

    Examples
    --------
    >>> from cocopt.theory import Certificate
    >>> proof = Certificate.zero(diameter=2.0)
    >>> proof = proof.after(1.0, 4.0).after(0.5, 4.0)
    >>> proof.value
    np.float64(7.0)
    >>> proof.after(0.5, 1.0, infeasible=True)
    Certificate(void: in some round no point of K satisfied the constraint)
    """

    __slots__ = ("_assumed", "_last", "_seen", "_sum")

    _assumed: tuple[tuple[int, ...], float, float]  # the batch, D and m
    _last: Step
    _seen: int | NDArray[np.int64]
    _sum: CompensatedSum

    @classmethod
    def zero(cls, batch: tuple[int, ...] = (), *, diameter: float, modulus: float = 0.0) -> Certificate:
        """The certificate before round 1.

        Parameters
        ----------
        batch : tuple of int
            The shape of the trials; () for one stream.
        diameter : float
            D, or an upper bound; may be infinite, which is fatal only to the convex form.
        modulus : float
            m of the steps 1/(m t) for the strongly convex form, 0 for the convex one (a schedule's `modulus`).
        """
        m = scalar("modulus", modulus, nonnegative=True)
        if not diameter >= 0.0:
            raise InvalidInput(f"diameter: expected a non-negative number or inf, got {diameter}")
        return cls._make((batch, float(diameter), m), np.inf, 0, CompensatedSum())

    @classmethod
    def _make(
        cls,
        assumed: tuple[tuple[int, ...], float, float],
        last: Step,
        seen: int | NDArray[np.int64],
        total: CompensatedSum,
    ) -> Certificate:
        # What all trials share stays a number: arithmetic on it costs next to nothing.
        proof = object.__new__(cls)
        proof._assumed, proof._last, proof._seen, proof._sum = assumed, last, seen, total
        return proof

    def after(
        self,
        step: Step | None,
        gradient_sq: Step | None,
        *,
        modulus: Step | None = None,
        infeasible: Any = None,
        moved: Any = None,
    ) -> Certificate:
        """The certificate after one more round; arguments are numbers or one a trial.

        Parameters
        ----------
        step, gradient_sq : float or array, or None in a round without a loss
            η_t and ‖∇f_t(x_t)‖².
        modulus : float or array
            The strong convexity of f_t, needed by the strongly convex form only.
        infeasible, moved : bool or array of bool
            Whether no point of K satisfied the constraint; whether another action than the one asked for was played.
        """
        seen, last, total = self._seen, self._last, self._sum
        if step is not None and gradient_sq is not None:
            m = self._assumed[2]
            if m > 0.0:
                # 1/η_t − 1/η_{t−1} ≤ m ≤ modulus of f_t is what the proof uses; the slack is for rounding alone
                weak = (0.0 if modulus is None else modulus) < m * (1.0 - 1e-12)
                fast = step * (1.0 / last + m) < 1.0 - 1e-12
                seen = seen | weak * _WEAK | fast * _FAST
            elif not (type(step) is float and type(last) is float and step <= last):  # the usual case
                seen = seen | (step > last) * _GREW
            total = total.plus(step * gradient_sq)
            last = (step or last) if isinstance(step, float) else np.where(step > 0.0, step, last)
        if infeasible is not None:
            seen = seen | np.multiply(infeasible, _INFEASIBLE)
        if moved is not None:
            seen = seen | np.multiply(moved, _MOVED)
        return self._make(self._assumed, last, seen, total)

    @property
    def value(self) -> Value:
        """The bound on the regret, ``inf`` where it is void; one number, or one a trial."""
        valid, bound = self.valid, np.asarray(self._sum.value) / 2.0
        _, diameter, modulus = self._assumed
        if modulus == 0.0 and not self._unbounded:
            bound = bound + diameter**2 / (2.0 * np.asarray(self._last))
        value: Value = np.where(valid, bound, np.inf)[()]
        return value

    @property
    def valid(self) -> np.bool_ | NDArray[np.bool_]:
        """Whether no assumption was seen to fail, one answer a trial."""
        valid: np.bool_ | NDArray[np.bool_] = np.broadcast_to(self._seen, self._assumed[0]) == 0
        return valid & (not self._unbounded)

    @property
    def _unbounded(self) -> bool:
        _, diameter, modulus = self._assumed
        return modulus == 0.0 and not np.isfinite(diameter)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Which assumptions were seen to fail, in any trial."""
        found = int(np.bitwise_or.reduce(np.asarray(self._seen), axis=None))
        failed = tuple(text for bit, text in _REASONS.items() if found & bit)
        return (*failed, _UNBOUNDED) if self._unbounded else failed

    def stored(self) -> dict[str, Any]:
        """What the run added to the assumptions, as plain values and arrays."""
        return {"last": self._last, "seen": self._seen, "sum": self._sum}

    def restored(self, stored: Any, batch: tuple[int, ...]) -> Certificate:
        """The certificate that `stored` describes, under the assumptions of this one."""
        last, seen, total = as_fields(stored, "last", "seen", "sum")
        last, total = as_numbers(last, "last", batch), CompensatedSum().restored(total, batch)
        if isinstance(seen, np.ndarray):
            seen = as_array(seen, "seen", batch if seen.ndim else (), np.int64)[()]
        elif type(seen) is not int:
            raise StateError(f"seen: expected an integer or one per trial, got {describe(seen)}")
        if not np.all(np.asarray(last) > 0.0) or np.any(np.asarray(seen) & ~sum(_REASONS)):
            raise StateError("last, seen: expected a step and the failures of assumptions, got other numbers")
        return self._make(self._assumed, last, seen, total)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Certificate):
            return NotImplemented
        mine, theirs = (*self._sum, self._last, self._seen), (*other._sum, other._last, other._seen)
        return self._assumed == other._assumed and all(map(np.array_equal, mine, theirs))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if self.reasons and not np.any(self.valid):
            return f"Certificate(void: {'; '.join(self.reasons)})"
        value, valid = np.asarray(self.value), self.valid
        if value.ndim == 0:
            return f"Certificate(regret ≤ {float(value):.6g})"
        shown = f"regret ≤ {value[valid].max():.6g} in each of "
        if np.all(valid):
            return f"Certificate({shown}{value.size} trials)"
        return f"Certificate({shown}{valid.sum()} trials; void in {np.sum(~valid)}: {'; '.join(self.reasons)})"

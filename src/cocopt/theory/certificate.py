"""The certificate: the regret bound that a run proves from the steps and gradients it used."""

from __future__ import annotations

from enum import IntFlag
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocopt import html
from cocopt.arrays import as_floats, as_plain, as_shape, describe, ignore_fp_warnings, scalar
from cocopt.errors import InvalidInput, StateError
from cocopt.metrics import CompensatedSum, Value
from cocopt.state import as_array, as_fields, as_numbers
from cocopt.steps import Step

__all__ = ["Certificate", "Failure"]


class Failure(IntFlag):
    """The assumptions of the theorems that a run violated, as bits."""

    INFEASIBLE = 1
    WEAKLY_CONVEX = 2
    OTHER_ACTION = 4
    FAST_DECREASE = 8
    INCREASE = 16


_REASONS = {
    Failure.INFEASIBLE: "in some round no point of K satisfied the constraint",
    Failure.WEAKLY_CONVEX: "a loss was less strongly convex than the steps assume",
    Failure.OTHER_ACTION: "the action played differed from the one asked for",  # in states of earlier versions
    Failure.FAST_DECREASE: "the steps fell faster than 1/(m t)",
    Failure.INCREASE: "a step was larger than the one before",
}
_UNBOUNDED = "K is unbounded, or its diameter unknown"

# As plain integers: `after` is part of every round, and arithmetic on members of an enumeration is slow.
_INFEASIBLE, _WEAKLY_CONVEX, _, _FAST_DECREASE, _INCREASE = (int(failure) for failure in Failure)


def _as_integers(value: Any, name: str, batch: tuple[int, ...]) -> int | NDArray[np.int64]:
    """A stored integer, or one per trial."""
    if isinstance(value, np.ndarray):
        stored: NDArray[np.int64] = as_array(value, name, batch if value.ndim else (), np.int64)[()]
        return stored
    if type(value) is not int:
        raise StateError(f"{name}: expected an integer or one per trial, got {describe(value)}")
    return value


class Certificate:
    """The regret bound that a run itself proves, from its steps and gradients; immutable.

    Against every fixed x in K that satisfies all constraints of the run,

        Regret_T ≤ D²/(2η_T) + ½ Σ_t η_t ‖∇f_t(x_t)‖²     (convex losses, steps that never increase)
        Regret_T ≤ ½ Σ_t η_t ‖∇f_t(x_t)‖²                 (m-strongly convex losses, η_t = 1/(m t))

    Where the gradient was taken at another point p_t than the iterate x_t from which the step went (feedback that came
    late, or another action that was executed), the drift Σ_t ⟨∇f_t(p_t), p_t − x_t⟩ is added, and to the second form
    Σ_t (m D d_t − m d_t²/2) with d_t = ‖p_t − x_t‖ as well. With feedback that comes late, T counts the rounds whose
    loss has come, and x must satisfy the constraints that have come and what was known before acting.

    ∇f_t is its part along the affine hull of K, and no Lipschitz constant enters. Rounds that reveal no loss add
    nothing; a step of 0 does not count, and η_T is the last other one. The certificate is void once an assumption is
    violated; `reasons` says which. Infeasible rounds whose constraint was left out (`skipped`) do not void it: then x
    must satisfy the other rounds. The sum is compensated; the bound is exact up to rounding.

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

    __slots__ = ("_assumed", "_last", "_seen", "_skipped", "_sum")

    _assumed: tuple[tuple[int, ...], float, float]  # the batch, D and m
    _last: Step
    _seen: int | NDArray[np.int64]
    _skipped: int | NDArray[np.int64]
    _sum: CompensatedSum

    @classmethod
    def zero(cls, batch: tuple[int, ...] = (), *, diameter: float, modulus: float = 0.0) -> Certificate:
        """The certificate before round 1.

        Parameters
        ----------
        batch : tuple of int
            The shape of the trials; () for one stream.
        diameter : float
            D, or an upper bound; may be infinite, which voids the convex form only.
        modulus : float
            m of the steps 1/(m t) for the strongly convex form, 0 for the convex one (a schedule's `modulus`).
        """
        m = scalar("modulus", modulus, nonnegative=True)
        D = as_floats("diameter", diameter)
        if D.ndim > 0 or not D >= 0.0:
            raise InvalidInput(f"diameter: expected a non-negative number or inf, got {describe(diameter)}")
        return cls._make((as_shape("batch", batch), float(D), m), np.inf, 0, 0, CompensatedSum())

    @classmethod
    def _make(
        cls,
        assumed: tuple[tuple[int, ...], float, float],
        last: Step,
        seen: int | NDArray[np.int64],
        skipped: int | NDArray[np.int64],
        total: CompensatedSum,
    ) -> Certificate:
        # What all trials share stays a number, for speed.
        proof = object.__new__(cls)
        proof._assumed, proof._last, proof._seen, proof._skipped, proof._sum = assumed, last, seen, skipped, total
        return proof

    def after(
        self,
        step: Step | None,
        gradient_sq: Step | None,
        *,
        modulus: Step | None = None,
        infeasible: Any = None,
        skipped: Any = None,
        drift: Step | None = None,
        distance: Step | None = None,
    ) -> Certificate:
        """The certificate after one more round; arguments are numbers, or one per trial.

        Parameters
        ----------
        step, gradient_sq : float or array, or None in a round without a loss
            η_t and ‖∇f_t(x_t)‖².
        modulus : float or array
            The strong convexity of f_t, needed by the strongly convex form only.
        infeasible, skipped : bool or array of bool
            Whether no point of K satisfied the constraint, so that the nearest one was taken, or it was left out.
        drift, distance : float or array, or None where the gradient was taken at the iterate
            ⟨∇f_t(p_t), p_t − x_t⟩ and ‖p_t − x_t‖; the latter counts in the strongly convex form only.
        """
        given = {"step": step, "gradient_sq": gradient_sq, "modulus": modulus, "infeasible": infeasible}
        given |= {"skipped": skipped, "drift": drift, "distance": distance}
        batch = self._assumed[0]
        for name, value in given.items():
            if value is not None:
                array = as_floats(name, value)
                if array.shape not in ((), batch) or np.isnan(array).any():
                    raise InvalidInput(f"{name}: expected a number, or numbers of shape {batch}, got {describe(value)}")
                plain = array.astype(bool) if name in ("infeasible", "skipped") else array
                given[name] = plain if plain.ndim else plain.item()
        with ignore_fp_warnings():  # an infinite bound is a bound
            return self.after_unchecked(**given)

    def after_unchecked(
        self,
        step: Step | None,
        gradient_sq: Step | None,
        *,
        modulus: Step | None = None,
        infeasible: Any = None,
        skipped: Any = None,
        drift: Step | None = None,
        distance: Step | None = None,
    ) -> Certificate:
        """As `after`, on checked arguments: a part of every round."""
        seen, last, total = self._seen, self._last, self._sum
        if step is not None and gradient_sq is not None:
            m = self._assumed[2]
            if m > 0.0:
                # 1/η_t − 1/η_{t−1} ≤ m ≤ modulus of f_t is what the proof uses; the slack is for rounding alone
                weak = (0.0 if modulus is None else modulus) < m * (1.0 - 1e-12)
                fast = step * (1.0 / last + m) < 1.0 - 1e-12
                seen = seen | weak * _WEAKLY_CONVEX | fast * _FAST_DECREASE
            elif not (type(step) is float and type(last) is float and step <= last):  # the usual case
                seen = seen | (step > last) * _INCREASE
            total = total.plus(step * gradient_sq)
            if drift is not None:
                total = total.plus(2.0 * drift)
                if m > 0.0:
                    d = 0.0 if distance is None else distance
                    total = total.plus(2.0 * m * self._assumed[1] * d - m * d * d)
            last = (step or last) if isinstance(step, float) else np.where(step > 0.0, step, last)
        if infeasible is not None:
            seen = seen | np.multiply(infeasible, _INFEASIBLE)
        left_out = self._skipped if skipped is None else self._skipped + np.multiply(skipped, 1)
        return self._make(self._assumed, last, seen, left_out, total)

    @property
    def value(self) -> Value:
        """The bound on the regret, ``inf`` where it is void; one number, or one per trial."""
        valid, bound = self.valid, np.asarray(self._sum.value) / 2.0
        _, diameter, modulus = self._assumed
        if modulus == 0.0 and not self._unbounded:
            bound = bound + diameter**2 / (2.0 * np.asarray(self._last))
        value: Value = np.where(valid, bound, np.inf)[()]
        return value

    @property
    def valid(self) -> np.bool_ | NDArray[np.bool_]:
        """Whether no assumption is violated, per trial."""
        valid: np.bool_ | NDArray[np.bool_] = np.broadcast_to(self._seen, self._assumed[0]) == 0
        return valid & (not self._unbounded)

    @property
    def skipped(self) -> np.int64 | NDArray[np.int64]:
        """How many infeasible rounds were left out, per trial: the bound holds against actions that meet the others."""
        count: np.int64 | NDArray[np.int64] = np.array(np.broadcast_to(self._skipped, self._assumed[0]))[()]
        return count

    @property
    def _unbounded(self) -> bool:
        _, diameter, modulus = self._assumed
        return modulus == 0.0 and not np.isfinite(diameter)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Which assumptions are violated, in any trial."""
        found = int(np.bitwise_or.reduce(np.asarray(self._seen), axis=None))
        failed = tuple(text for bit, text in _REASONS.items() if found & bit)
        return (*failed, _UNBOUNDED) if self._unbounded else failed

    def to_dict(self) -> dict[str, Any]:
        """The bound, whether it is valid, and why not, in plain values, which JSON has but for an infinite bound.

        Examples
        --------
        >>> from cocopt.theory import Certificate
        >>> Certificate.zero(diameter=2.0).after(1.0, 4.0).to_dict()
        {'value': 4.0, 'valid': True, 'reasons': [], 'skipped': 0}
        """
        plain: dict[str, Any] = as_plain(
            {"value": self.value, "valid": self.valid, "reasons": self.reasons, "skipped": self.skipped}
        )
        return plain

    def stored(self) -> dict[str, Any]:
        """What the run added to the assumptions, as plain values and arrays."""
        return {"last": self._last, "seen": self._seen, "skipped": self._skipped, "sum": self._sum}

    def restored(self, stored: Any, batch: tuple[int, ...]) -> Certificate:
        """The certificate that `stored` describes, under the assumptions of this one."""
        if isinstance(stored, dict) and "skipped" not in stored:  # as in format 2
            stored = {**stored, "skipped": 0}
        last, seen, skipped, total = as_fields(stored, "last", "seen", "skipped", "sum")
        last, total = as_numbers(last, "last", batch), CompensatedSum().restored(total, batch)
        seen, skipped = _as_integers(seen, "seen", batch), _as_integers(skipped, "skipped", batch)
        if np.any(np.asarray(skipped) < 0):
            raise StateError("skipped: expected numbers of rounds, got negative ones")
        if not np.all(np.asarray(last) > 0.0) or np.any(np.asarray(seen) & ~sum(_REASONS)):
            raise StateError("last, seen: expected a step and the failures of assumptions, got other numbers")
        return self._make(self._assumed, last, seen, skipped, total)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Certificate):
            return NotImplemented
        mine, theirs = ((*one._sum, one._last, one._seen, one._skipped) for one in (self, other))
        return self._assumed == other._assumed and all(map(np.array_equal, mine, theirs))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if self.reasons and not np.any(self.valid):
            return f"Certificate(void: {'; '.join(self.reasons)})"
        value, valid = np.asarray(self.value), self.valid
        if value.ndim == 0:
            others = f" against actions that satisfy all but {self.skipped} rounds" if self.skipped else ""
            return f"Certificate(regret ≤ {float(value):.6g}{others})"
        skipped = np.asarray(self.skipped)
        others = (
            f", against actions that satisfy all but up to {skipped.max()} rounds of a trial" if skipped.any() else ""
        )
        shown = f"regret ≤ {value[valid].max():.6g}{others} in each of "
        if np.all(valid):
            return f"Certificate({shown}{value.size} trials)"
        return f"Certificate({shown}{valid.sum()} trials; void in {np.sum(~valid)}: {'; '.join(self.reasons)})"

    def _repr_html_(self) -> str:
        statement = repr(self).removeprefix("Certificate(").removesuffix(")")
        _, diameter, modulus = self._assumed
        convexity = {"modulus of strong convexity": modulus} if modulus else {}
        return html.card("Certificate", statement, {"diameter of K": diameter, **convexity})

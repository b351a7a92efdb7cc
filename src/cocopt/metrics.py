"""The metrics of a run: sums of loss and of constraint violation, kept in a ledger.

With the rows g_{t,i} of round t, g_t = max_i g_{t,i} and v_t = max(0, g_t(x_t)):

============== ======================================================= =================================
loss           Σ_t f_t(x_t)
ccv_soft       Σ_t g_t(x_t)                                            slack offsets violation
ccv1           Σ_t v_t                                                 the paper's CCV₁
ccv2           Σ_t v_t²                                                the paper's CCV₂ (its CCV^∞)
ccv2_sum       Σ_t Σ_i max(0, g_{t,i}(x_t))²                           every row counts (its CCV^1)
ccv2_hist      Σ_t Σ_{τ≤t} max(0, g_τ(x_t))²                           earlier constraints persist
ccv2_window    the same over the constraints in a window
============== ======================================================= =================================

Regret is the loss minus that of the best fixed action, which is known in hindsight only: see `cocopt.hindsight`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cocopt import html, kernels
from cocopt.arrays import Array, ArrayLike, as_floats, as_plain, as_shape, describe, ignore_fp_warnings, make_tuple
from cocopt.errors import InvalidInput, StateError
from cocopt.state import as_array, as_count, as_fields, as_numbers

__all__ = ["CompensatedSum", "Ledger", "of"]

History: TypeAlias = Literal["hist", "window"] | None
Value: TypeAlias = np.float64 | Array

_NAMES = ("loss", "ccv_soft", "ccv1", "ccv2", "ccv2_sum")
_NO_ROWS = np.array([-np.inf])
_ZERO = np.array(0.0)


class _Sum(IntEnum):
    """The sums of a ledger, in the order of `cocopt.kernels.ledger_terms`.

    Sum i takes two entries of the ledger's array: 2i for the sum and 2i + 1 for its accumulated rounding error.
    """

    LOSS = 0
    CCV_SOFT = 1
    CCV1 = 2
    CCV2 = 3
    CCV2_SUM = 4
    CCV2_HISTORY = 5  # ccv2_hist or ccv2_window
    INFEASIBLE_ROUNDS = 6


_SUMS = len(_Sum)
_NAMED = 5  # numbers that are kept for each name


class CompensatedSum(NamedTuple):
    """A running sum that carries its rounding errors along (Neumaier 1974), one number or an array of them.

    The error of n additions is that of a single rounding, plus n²ε² of Σ|terms|: negligible after 10^7 of them.

    Examples
    --------
    >>> from cocopt.metrics import CompensatedSum
    >>> total = CompensatedSum()
    >>> for term in (1e16, 1.0, 1.0, -1e16):
    ...     total = total.plus(term)
    >>> total.value
    2.0
    """

    total: float | Array = 0.0
    carry: float | Array = 0.0

    def plus(self, term: float | Array) -> CompensatedSum:
        """The sum with one more term."""
        old, carry = self
        try:
            total = old + term
            part = total - old
            return make_tuple(CompensatedSum, (total, carry + ((old - (total - part)) + (term - part))))
        except RuntimeWarning:  # where warnings are errors: a sum may overflow to an infinity
            with ignore_fp_warnings():
                return self.plus(term)
        except (TypeError, ValueError, OverflowError):
            expected = f"a number or numbers of shape {np.shape(old)}"
            raise InvalidInput(f"term: expected {expected}, got {describe(term)}") from None

    @property
    def value(self) -> float | Array:
        """The sum, rounded once."""
        return self.total + self.carry

    def stored(self) -> dict[str, Any]:
        """Both numbers."""
        return self._asdict()

    def restored(self, stored: Any, batch: tuple[int, ...]) -> CompensatedSum:
        """The sum that `stored` describes: a number, or one per trial."""
        total, carry = as_fields(stored, "total", "carry")
        total, carry = as_numbers(total, "total", batch), as_numbers(carry, "carry", batch, nan=True)
        if np.any(np.isnan(carry) & np.isfinite(total)):  # a sum may overflow to an infinity; then the carry is NaN
            raise StateError("carry: expected numbers, got NaN")
        return CompensatedSum(total, carry)


class Ledger:
    """The running metrics of one stream or of a batch of trials; immutable, of constant size.

    Values are numbers for one stream and arrays of the batch's shape for many. All sums are compensated.

    Examples
    --------
    >>> from cocopt.metrics import Ledger
    >>> ledger = Ledger.zero()
    >>> for loss, rows in [(1.0, [0.5, -2.0]), (2.0, [-1.0, -3.0]), (4.0, [2.0, 1.0])]:
    ...     ledger = ledger.after(loss, rows)
    >>> ledger
    Ledger(rounds=3, loss=7, ccv_soft=1.5, ccv1=2.5, ccv2=4.25, ccv2_sum=5.25)
    >>> ledger.ccv1
    np.float64(2.5)
    >>> ledger.after(None, [0.5, 1.0], names=("cap", "risk")).by_name["risk"]
    {'ccv1': np.float64(1.0), 'ccv2': np.float64(1.0), 'worst': np.float64(1.0)}
    """

    __slots__ = ("_history", "_named", "_rounds", "_sums")

    _history: History
    _named: dict[str, Array]  # by name: CCV₁ and CCV₂ with their rounding errors, the worst violation; (..., 5)
    _rounds: int
    _sums: Array

    @classmethod
    def zero(cls, batch: tuple[int, ...] = (), history: History = None) -> Ledger:
        """The ledger before round 1.

        Parameters
        ----------
        batch : tuple of int
            The shape of the trials; () for one stream.
        history : None, "hist" or "window"
            Whether earlier constraints are counted too: not, all of them, or those in a window.
        """
        if history is not None and not (isinstance(history, str) and history in ("hist", "window")):
            raise InvalidInput(f'history: expected None, "hist" or "window", got {describe(history)}')
        return cls._make(0, history, np.zeros((*as_shape("batch", batch), 2 * _SUMS)), {})

    @classmethod
    def _make(cls, rounds: int, history: History, sums: Array, named: dict[str, Array]) -> Ledger:
        ledger = object.__new__(cls)
        ledger._rounds, ledger._history, ledger._sums, ledger._named = rounds, history, sums, named
        return ledger

    def after(
        self,
        loss: ArrayLike | None,
        rows: ArrayLike | None,
        past: ArrayLike | None = None,
        infeasible: ArrayLike | None = None,
        names: Sequence[str | None] | None = None,
    ) -> Ledger:
        """The ledger after one more round; arguments broadcast over the batch; None if nothing was revealed.

        Parameters
        ----------
        loss : array (...)
            f_t(x_t).
        rows : array (..., M)
            g_{t,i}(x_t), −inf for a row that is switched off; a round in which all are adds nothing.
        past : array (...)
            Σ_τ max(0, g_τ(x_t))² over the earlier constraints, all of them or those in the window.
        infeasible : array of bool (...)
            Whether no point of K satisfied the constraint.
        names : sequence of M names or None
            Under which the rows' violations are reported, too; several rows may share one.
        """
        given = {"loss": loss, "rows": rows, "past": past, "infeasible": infeasible}
        loss, rows, past, infeasible = (
            None if value is None else as_floats(name, value) for name, value in given.items()
        )
        if names is not None and not (
            isinstance(names, list | tuple)
            and all(name is None or isinstance(name, str) for name in names)
            and rows is not None
            and rows.ndim > 0
            and len(names) == rows.shape[-1]
        ):
            raise InvalidInput(f"names: expected a name or None for each row, got {describe(names)}")
        return self.with_round(loss, rows, past, infeasible, names=None if names is None else tuple(names))[0]

    def with_round(
        self,
        loss: ArrayLike | None,
        rows: ArrayLike | None,
        past: ArrayLike | None,
        infeasible: ArrayLike | None,
        rounds: int = 1,
        names: tuple[str | None, ...] | None = None,
    ) -> tuple[Ledger, Value]:
        """What `after` returns, and the violation max(0, max_i g_{t,i}(x_t)) of the round.

        ``rounds`` is 0 for the second half of a round that has been counted.
        """
        if past is not None:
            _require_history(self._history)
        ledger, violation = self._plus(
            kernels.add_round,
            rounds,
            _ZERO if loss is None else loss,
            _NO_ROWS if rows is None else rows,
            _ZERO if past is None else past,
            _ZERO if infeasible is None else infeasible,
        )
        if names is not None and rows is not None:
            ledger._named = self._named_after(np.asarray(rows), names)
        return ledger, violation

    def _named_after(self, rows: Array, names: tuple[str | None, ...]) -> dict[str, Array]:
        """The sums by name after one more round."""
        named = dict(self._named)
        for name, index in _rows_by_name(names).items():
            v = np.maximum(rows[..., index].max(axis=-1), 0.0)
            old = named.get(name, np.zeros((*self.batch, _NAMED)))
            new = np.empty_like(old)
            for at, term in ((0, v), (2, v * v)):
                total = CompensatedSum(old[..., at], old[..., at + 1]).plus(term)
                new[..., at], new[..., at + 1] = total
            new[..., 4] = np.maximum(old[..., 4], v)
            named[name] = new
        return named

    @property
    def sums(self) -> Array:
        """The sums as the kernels have them, in pairs (sum, carry), of shape (..., 14); not to be changed."""
        return self._sums

    def with_sums(self, sums: Array) -> Ledger:
        """The ledger after one more round, whose sums a kernel has found."""
        ledger = object.__new__(Ledger)
        ledger._rounds, ledger._history, ledger._sums = self._rounds + 1, self._history, sums
        ledger._named = self._named
        return ledger

    def _plus(
        self, kernel: Any, rounds: int, loss: ArrayLike, rows: ArrayLike, past: ArrayLike, infeasible: ArrayLike
    ) -> tuple[Ledger, Value]:
        try:
            sums, violation = kernel(rows, loss, past, infeasible, self._sums)
        except RuntimeWarning:  # where warnings are errors: an infinite sum is a sum
            with ignore_fp_warnings():
                sums, violation = kernel(rows, loss, past, infeasible, self._sums)
        except (TypeError, ValueError):
            sums = None
        if sums is None or sums.shape != self._sums.shape:
            shapes = ", ".join(str(np.shape(array)) for array in (loss, rows, past, infeasible))
            raise InvalidInput(
                f"Ledger: expected numbers that broadcast to the batch {self.batch} (rows: with an axis of rows), got "
                f"loss, rows, past, infeasible of shapes {shapes}"
            )
        ledger = object.__new__(Ledger)
        ledger._rounds, ledger._history, ledger._sums = self._rounds + rounds, self._history, sums
        ledger._named = self._named
        return ledger, violation

    def _sum(self, which: _Sum) -> Value:
        value: Value = self._sums[..., 2 * which] + self._sums[..., 2 * which + 1]
        return value

    def _sum_with_history(self, history: str) -> Value:
        if self._history != history:
            raise AttributeError(f"ccv2_{history} is kept only by a ledger with history={history!r}")
        return self._sum(_Sum.CCV2_HISTORY)

    @property
    def batch(self) -> tuple[int, ...]:
        """The shape of the trials; () for one stream."""
        return self._sums.shape[:-1]

    @property
    def history(self) -> History:
        """Which earlier constraints are counted: None, "hist" (all) or "window"."""
        return self._history

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return self._rounds

    @property
    def loss(self) -> Value:
        """Σ_t f_t(x_t)."""
        return self._sum(_Sum.LOSS)

    @property
    def ccv_soft(self) -> Value:
        """Σ_t g_t(x_t), in which slack offsets violation."""
        return self._sum(_Sum.CCV_SOFT)

    @property
    def ccv1(self) -> Value:
        """CCV₁ = Σ_t max(0, g_t(x_t))."""
        return self._sum(_Sum.CCV1)

    @property
    def ccv2(self) -> Value:
        """CCV₂ = Σ_t max(0, g_t(x_t))², of the largest row."""
        return self._sum(_Sum.CCV2)

    @property
    def ccv2_sum(self) -> Value:
        """Σ_t Σ_i max(0, g_{t,i}(x_t))², of all rows."""
        return self._sum(_Sum.CCV2_SUM)

    @property
    def ccv2_hist(self) -> Value:
        """Σ_t Σ_{τ≤t} max(0, g_τ(x_t))², over all earlier constraints."""
        return self._sum_with_history("hist")

    @property
    def ccv2_window(self) -> Value:
        """Σ_t Σ_τ max(0, g_τ(x_t))² over the constraints τ ≤ t in the window."""
        return self._sum_with_history("window")

    @property
    def infeasible_rounds(self) -> np.int64 | NDArray[np.int64]:
        """In how many rounds no point of K satisfied the constraint."""
        count: np.int64 | NDArray[np.int64] = self._sums[..., 2 * _Sum.INFEASIBLE_ROUNDS].astype(np.int64)[()]
        return count

    @property
    def by_name(self) -> dict[str, dict[str, Value]]:
        """CCV₁, CCV₂ and the worst violation of the rows of each name (see `cocopt.constraints.Stack`)."""
        return {
            name: {"ccv1": own[..., 0] + own[..., 1], "ccv2": own[..., 2] + own[..., 3], "worst": own[..., 4][()]}
            for name, own in self._named.items()
        }

    def as_dict(self) -> dict[str, Any]:
        """Every metric that this ledger keeps, by name; those of named rows as ``ccv1[name]`` and so on."""
        names = [*_NAMES] if self._history is None else [*_NAMES, f"ccv2_{self._history}"]
        metrics = {name: getattr(self, name) for name in ("rounds", *names, "infeasible_rounds")}
        for name, own in self.by_name.items():
            metrics |= {f"{metric}[{name}]": value for metric, value in own.items()}
        return metrics

    def to_dict(self) -> dict[str, Any]:
        """As `as_dict`, in plain numbers and lists, which JSON has.

        Examples
        --------
        >>> from cocopt.metrics import Ledger
        >>> Ledger.zero().after(1.0, [0.5]).to_dict()["ccv1"]
        0.5
        """
        plain: dict[str, Any] = as_plain(self.as_dict())
        return plain

    def stored(self) -> dict[str, Any]:
        """All there is to it, as plain values and arrays."""
        named = np.stack(list(self._named.values()), axis=-2) if self._named else None
        own = {"rounds": self._rounds, "history": self._history, "sums": self._sums.copy()}
        return {**own, "names": list(self._named), "named": named}

    def restored(self, stored: Any, batch: tuple[int, ...]) -> Ledger:
        """The ledger that `stored` describes, if it counts the same history as this one."""
        if isinstance(stored, dict) and not {"names", "named"} & stored.keys():  # format 2 had no names
            stored = {**stored, "names": [], "named": None}
        rounds, history, sums, names, named = as_fields(stored, "rounds", "history", "sums", "names", "named")
        rounds, sums = as_count(rounds, "rounds"), as_array(sums, "sums", (*batch, 2 * _SUMS), nan=True)
        totals, carries = sums[..., ::2], sums[..., 1::2]
        # sums may overflow to an infinity, and the carry is NaN then
        if np.isnan(totals).any() or (np.isnan(carries) & np.isfinite(totals)).any():
            raise StateError("sums: expected numbers, got NaN")
        infeasible = totals[..., _Sum.INFEASIBLE_ROUNDS]
        if (totals[..., 2:] < 0.0).any() or (infeasible > rounds).any() or (infeasible % 1.0 != 0.0).any():
            raise StateError("sums: expected sums and counts that this number of rounds can have, got others")
        if history != self._history:
            raise StateError(f"history: expected {self._history!r}, got {describe(history)}")
        return self._make(rounds, self._history, sums, _restored_names(names, named, batch))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ledger):
            return NotImplemented
        same = self._rounds == other._rounds and self._history == other._history
        same = same and list(self._named) == list(other._named) and self.batch == other.batch
        same = same and all(np.array_equal(own, other._named[name]) for name, own in self._named.items())
        return same and np.array_equal(self._sums, other._sums, equal_nan=True)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        items = self.as_dict()
        if not np.any(items["infeasible_rounds"]):
            del items["infeasible_rounds"]
        if self.batch == ():
            return f"Ledger({', '.join(f'{name}={float(value):.6g}' for name, value in items.items())})"
        shown = (f"{name}={np.mean(value):.6g}" for name, value in items.items() if name != "rounds")
        return f"Ledger(rounds={self._rounds}, batch={self.batch}, means over trials: {', '.join(shown)})"

    def html_items(self) -> dict[str, Any]:
        """The metrics as a notebook shows them: of several trials, their means."""
        titles = {"ccv1": "CCV₁", "ccv2": "CCV₂", "infeasible_rounds": "infeasible rounds"}
        metrics = {name: value for name, value in self.as_dict().items() if name != "rounds"}
        if not np.any(metrics["infeasible_rounds"]):
            del metrics["infeasible_rounds"]
        return {titles.get(name, name): float(np.mean(value)) for name, value in metrics.items()}

    def _repr_html_(self) -> str:
        trials = f", means over trials of shape {self.batch}" if self.batch else ""
        return html.card("Ledger", f"{self._rounds} rounds{trials}", self.html_items())


def of(
    rows: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    past: ArrayLike | None = None,
    infeasible: ArrayLike | None = None,
    *,
    history: History = None,
) -> Ledger:
    """The ledger of T rounds at once, equal to that of [`Ledger.after`][cocopt.metrics.Ledger.after] round by round.

    Parameters
    ----------
    rows : array (..., T, M)
        g_{t,i}(x_t), −inf for a row that is switched off; leading axes are trials.
    loss, past, infeasible : arrays (..., T)
        As in `Ledger.after`.
    history : None, "hist" or "window"
        What ``past`` counts.

    Examples
    --------
    >>> from cocopt import metrics
    >>> metrics.of([[0.5, -2.0], [-1.0, -3.0], [2.0, 1.0]], [1.0, 2.0, 4.0])
    Ledger(rounds=3, loss=7, ccv_soft=1.5, ccv1=2.5, ccv2=4.25, ccv2_sum=5.25)
    """
    if past is not None:
        _require_history(history)
    given = {
        name: as_floats(name, value)
        for name, value in (("rows", rows), ("loss", loss), ("past", past), ("infeasible", infeasible))
        if value is not None
    }
    batch, T = _batch_and_rounds(given)
    nothing = np.zeros(T)
    return Ledger.zero(batch, history)._plus(
        kernels.fold,
        T,
        given.get("loss", nothing),
        given.get("rows", np.full((T, 1), -np.inf)),
        given.get("past", nothing),
        given.get("infeasible", nothing),
    )[0]


def _batch_and_rounds(given: Mapping[str, Array]) -> tuple[tuple[int, ...], int]:
    """The leading axes of the trials and the number of rounds that the arguments of `of` have in common."""
    batches: list[tuple[int, ...]] = []
    rounds: dict[str, int] = {}
    for name, array in given.items():
        axes = 2 if name == "rows" else 1
        if array.ndim < axes:
            raise InvalidInput(f"{name}: expected shape (..., T{', M' * (axes - 1)}), got {array.shape}")
        batches.append(array.shape[: array.ndim - axes])
        rounds[name] = array.shape[array.ndim - axes]
    if len(set(rounds.values())) != 1:
        raise InvalidInput(f"of: expected arguments with the same number of rounds, got {rounds or 'none'}")
    try:
        return np.broadcast_shapes(*batches), rounds.popitem()[1]
    except ValueError:
        raise InvalidInput(f"of: expected leading axes that broadcast, got {batches}") from None


@cache
def _rows_by_name(names: tuple[str | None, ...]) -> dict[str, list[int]]:
    """The rows of each name."""
    found: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        if name is not None:
            found.setdefault(name, []).append(row)
    return found


def _restored_names(names: Any, named: Any, batch: tuple[int, ...]) -> dict[str, Array]:
    """The sums by name that were stored, if a run can have led to them."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or len({*names}) < len(names):
        raise StateError(f"names: expected different names, got {describe(names)}")
    if not names:
        if named is not None:
            raise StateError("named: expected None, since there are no names, got others")
        return {}
    sums = as_array(named, "named", (*batch, len(names), _NAMED))
    if (sums[..., [0, 2, 4]] < 0.0).any():
        raise StateError("named: expected sums of violations, got negative ones")
    return {name: sums[..., i, :].copy() for i, name in enumerate(names)}


def _require_history(history: History) -> None:
    if history is None:
        raise InvalidInput("past: expected None, since this ledger keeps no history, got numbers")

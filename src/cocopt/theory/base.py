"""What the bounds of all algorithms share: their type, the checks of constants, and sums of steps."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import MAX_INTEGER, Array, ArrayLike, as_integers, describe, ignore_fp_warnings, scalar
from cocopt.errors import InvalidInput
from cocopt.metrics import CompensatedSum, Value
from cocopt.steps import Schedule, checked_step

__all__ = ["MAX_ROWS", "Bounds", "check_constants", "check_rounds", "computed", "step_sums"]

CHUNK = 1 << 18  # terms of a long sum held in memory at once
MAX_TERMS = 10**9  # of a sum: some seconds
MAX_CALLS = 10**7  # of a user's schedule
MAX_ROWS = 10**7  # of a table with a row per round

P = ParamSpec("P")
Result = TypeVar("Result")


class Bounds(NamedTuple):
    """Upper bounds, numbers or arrays in the shape of T; None where no constant is known."""

    regret: Value | None = None
    ccv1: Value | None = None
    ccv2: Value | None = None
    ccv_soft: Value | None = None

    def __repr__(self) -> str:
        return (
            f"Bounds({', '.join(f'{name}={value!r}' for name, value in self._asdict().items() if value is not None)})"
        )


def check_constants(diameter: float, lipschitz_f: float, lipschitz_g: float) -> tuple[float, float, float]:
    """(D, L_f, L_g), checked."""
    return (
        scalar("diameter", diameter, nonnegative=True),
        scalar("lipschitz_f", lipschitz_f, nonnegative=True),
        scalar("lipschitz_g", lipschitz_g, nonnegative=True),
    )


def check_rounds(T: ArrayLike, at_most: int = MAX_INTEGER) -> NDArray[np.int64]:
    """The numbers of rounds, checked."""
    expected = f"positive integers up to {at_most}"
    rounds = as_integers("T", T, expected)
    if rounds.min() < 1 or rounds.max() > at_most:
        raise InvalidInput(f"T: expected {expected}, got {describe(T)}")
    return rounds.astype(np.int64)


def computed(function: Callable[P, Result]) -> Callable[P, Result]:
    """A decorator: bounds may be infinite, without a warning, but not NaN."""

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Result:
        try:
            with ignore_fp_warnings():
                bounds = function(*args, **kwargs)
        except OverflowError as error:
            raise InvalidInput(f"{function.__name__}: expected constants of moderate size, got {error}") from error
        parts: tuple[Any, ...] = bounds if isinstance(bounds, tuple) else (bounds,)
        if any(part is not None and np.isnan(part).any() for part in parts):
            raise InvalidInput(f"{function.__name__}: expected constants of moderate size, got some that overflow")
        return bounds

    return checked


def step_sums(schedule: Schedule, rounds: NDArray[np.integer[Any]]) -> tuple[Array, Array, Array]:
    """(Σ_{t≤T} η_t, Σ_{t≤T} η_t², η_T) for each T."""
    total, squares, last = (np.empty(rounds.shape) for _ in range(3))
    running, running_squares, previous = CompensatedSum(), CompensatedSum(), np.inf
    end = int(rounds.max())
    most = MAX_CALLS if schedule.steps_at(np.arange(1, 2)) is None else MAX_TERMS
    if end > most:
        raise InvalidInput(f"T: expected at most {most}, since the steps are added up one by one, got {end}")
    for start in range(1, end + 1, CHUNK):
        t = np.arange(start, min(start + CHUNK, end + 1))
        steps = schedule.steps_at(t)
        if steps is None:
            steps = np.empty(t.shape)
            for i, now in enumerate(t.tolist()):  # without gradients: a schedule that needs them is refused
                steps[i] = previous = float(checked_step(schedule, now, np.nan, previous))
        here = (rounds >= start) & (rounds <= t[-1])
        total[here] = np.cumsum(steps)[rounds[here] - start] + running.value
        squares[here] = np.cumsum(steps**2)[rounds[here] - start] + running_squares.value
        last[here] = steps[rounds[here] - start]
        running, running_squares = running.plus(steps.sum()), running_squares.plus((steps**2).sum())
    return total[()], squares[()], last[()]

"""What the bounds of all algorithms share: their type, the checks of constants, and sums of steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, ArrayLike, scalar
from cocopt.errors import InvalidInput
from cocopt.metrics import CompensatedSum, Value
from cocopt.steps import Schedule, checked_step

__all__ = ["Bounds", "check_constants", "check_rounds", "step_sums"]

CHUNK = 1 << 18  # terms of a long sum held in memory at once


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


def check_rounds(T: ArrayLike) -> NDArray[np.integer[Any]]:
    """The numbers of rounds, checked."""
    rounds = np.asarray(T)
    if rounds.dtype.kind not in "iu" or rounds.size == 0 or rounds.min() < 1:
        raise InvalidInput(f"T: expected positive integers, got {T!r}")
    return rounds


def step_sums(schedule: Schedule, rounds: NDArray[np.integer[Any]]) -> tuple[Array, Array, Array]:
    """(Σ_{t≤T} η_t, Σ_{t≤T} η_t², η_T) for each T."""
    total, squares, last = (np.empty(rounds.shape) for _ in range(3))
    running, running_squares, previous = CompensatedSum(), CompensatedSum(), np.inf
    end = int(rounds.max())
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

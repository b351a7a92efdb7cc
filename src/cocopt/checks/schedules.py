"""The contract of step-size schedules."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cocopt.arrays import positive_int
from cocopt.checks.base import require
from cocopt.errors import InvalidInput
from cocopt.steps import Schedule, Step, as_schedule, checked_step

__all__ = ["check_schedule"]

_MAX_ROUNDS = 10**6


def check_schedule(steps: Schedule | Callable[[int], Step], *, rounds: int = 200) -> None:
    """Checks that a schedule keeps the contract of [`Schedule`][cocopt.steps.Schedule].

    Steps are positive (or 0, if the schedule may rest), finite, and never increase while the sum of squared gradients
    grows; many trials have as many steps, equal to those of each; `steps_at` agrees with `step`.

    Parameters
    ----------
    steps : Schedule or callable of t
    rounds : int, default 200

    Raises
    ------
    AssertionError
        Naming the property that failed.

    Examples
    --------
    >>> from cocopt import steps
    >>> from cocopt.checks import check_schedule
    >>> check_schedule(steps.Power(0.5))
    >>> check_schedule(steps.Function(abs))
    Traceback (most recent call last):
    ...
    AssertionError: Function(<built-in function abs>): steps: expected a positive step of at most ..., got 2.0
    """
    schedule = as_schedule(steps)
    rounds = positive_int("rounds", rounds, at_most=_MAX_ROUNDS)
    gradients, taken = 0.0, []
    last: Step = np.inf
    for t in range(1, rounds + 1):
        gradients += 1.0 + 1.0 / t
        last = _checked(schedule, t, gradients, last)
        taken.append(float(last))
    several = np.array([gradients, 2.0 * gradients])
    each = _checked(schedule, rounds, several)
    alone = [float(_checked(schedule, rounds, float(one))) for one in several]
    require(schedule, bool(np.allclose(each, alone, rtol=1e-12)), "the steps of many trials differ from those of each")
    at = schedule.steps_at(np.arange(1, rounds + 1))
    if at is not None:
        require(schedule, np.shape(at) == (rounds,), "steps_at() has a wrong shape")
        require(schedule, bool(np.allclose(at, taken, rtol=1e-12, atol=0.0)), "steps_at() differs from step()")


def _checked(schedule: Schedule, t: int, gradients: Step, previous: Step = np.inf) -> Step:
    try:
        return checked_step(schedule, t, gradients, previous)
    except InvalidInput as error:
        raise AssertionError(f"{schedule!r}: {error}") from error

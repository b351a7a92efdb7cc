"""Ends what takes too long, so that a slow machine has fewer figures and not a longer run."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["OutOfTime", "until"]


class OutOfTime(BaseException):
    """The time is over; no `Exception`, since measurements catch those of solvers."""


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """Raises `OutOfTime` inside the block once `time.monotonic()` is past the deadline, after the call that runs then.

    Only for the main thread; for an infinite deadline it does nothing.
    """
    if deadline == float("inf"):
        yield
        return

    def stop(*_: Any) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(deadline - time.monotonic(), 1e-6))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)

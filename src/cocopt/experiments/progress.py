"""What the user sees while work goes on: bars on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

__all__ = ["Progress", "show"]

_EVERY = 5.0  # seconds between plain lines


class Progress:
    """Counts the trials done of each task; this one is silent.

    Parameters
    ----------
    title : str
        The experiment.
    tasks : mapping
        How many trials each task has (an algorithm, or the best action in hindsight).
    """

    def __init__(self, title: str, tasks: Mapping[str, int]) -> None:
        self.title, self.tasks = title, dict(tasks)
        self.done = dict.fromkeys(tasks, 0)
        self.kept = 0  # trials that were found finished
        self.began = time.monotonic()

    def advance(self, task: str, trials: int, *, kept: bool = False) -> None:
        """So many more trials of the task are done; ``kept`` if an earlier run had done them."""
        self.done[task] += trials
        self.kept += trials if kept else 0

    def left(self) -> float | None:
        """An estimate of the seconds left, from the pace so far; None while nothing is known."""
        done = sum(self.done.values())
        fresh = done - self.kept
        return (time.monotonic() - self.began) * (sum(self.tasks.values()) - done) / fresh if fresh else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class _Lines(Progress):
    """A line when a task is complete, and every few seconds in between."""

    def __enter__(self) -> Self:
        self._said = self.began
        return self

    def advance(self, task: str, trials: int, *, kept: bool = False) -> None:
        super().advance(task, trials, kept=kept)
        now = time.monotonic()
        complete = self.done[task] == self.tasks[task]
        if complete or now - self._said >= _EVERY:
            self._said = now
            left = self.left()
            rest = f", about {left:.0f} s left" if left else ""
            print(
                f"{self.title}: {task} {self.done[task]}/{self.tasks[task]} trials, {now - self.began:.0f} s{rest}",
                file=sys.stderr,
                flush=True,
            )


class _Bars(Progress):
    """A bar a task, with the time left."""

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Live

        self._live = Live(
            TextColumn(self.title, style="bold"),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("trials"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=Console(stderr=True),
            speed_estimate_period=600,
        )
        self._bars: dict[str, Any] = {name: self._live.add_task(name, total=n) for name, n in self.tasks.items()}
        self._all = self._live.add_task("all", total=sum(self.tasks.values()))
        self._live.start()
        return self

    def advance(self, task: str, trials: int, *, kept: bool = False) -> None:
        super().advance(task, trials, kept=kept)
        self._live.advance(self._bars[task], trials)
        self._live.advance(self._all, trials)

    def __exit__(self, *_: object) -> None:
        self._live.stop()


def show(title: str, tasks: Mapping[str, int], wanted: bool | None) -> Progress:
    """The display that suits where standard error goes.

    Parameters
    ----------
    title, tasks
        See `Progress`.
    wanted : bool or None
        False: silent. True: bars on a terminal, plain lines elsewhere. None: bars on a terminal only.
    """
    if wanted is not False and sys.stderr.isatty():
        return _Bars(title, tasks)
    return _Lines(title, tasks) if wanted else Progress(title, tasks)

"""What the user sees during a run: bars on a terminal or in a notebook, plain lines elsewhere, or nothing."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from cocopt import html

__all__ = ["Progress", "show"]

_LINE_INTERVAL = 5.0  # seconds between plain lines
_UPDATE_INTERVAL = 0.2  # seconds between updates of a notebook


class Progress:
    """Counts the finished trials of each task; shows nothing.

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
        self.kept = 0  # trials that an earlier run had finished
        self.began = time.monotonic()

    def advance(self, task: str, trials: int, *, kept: bool = False) -> None:
        """Counts further trials of the task as finished; ``kept`` if an earlier run had finished them."""
        self.done[task] += trials
        self.kept += trials if kept else 0

    def seconds_left(self) -> float | None:
        """An estimate from the speed so far; None before the first trial that this run finished."""
        done = sum(self.done.values())
        computed = done - self.kept
        return (time.monotonic() - self.began) * (sum(self.tasks.values()) - done) / computed if computed else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class _Lines(Progress):
    """Prints a line when a task is complete, and every few seconds in between."""

    def __enter__(self) -> Self:
        self._last_line = self.began
        return self

    def advance(self, task: str, trials: int, *, kept: bool = False) -> None:
        super().advance(task, trials, kept=kept)
        now = time.monotonic()
        complete = self.done[task] == self.tasks[task]
        if complete or now - self._last_line >= _LINE_INTERVAL:
            self._last_line = now
            left = self.seconds_left()
            estimate = f", about {left:.0f} s left" if left else ""
            print(
                f"{self.title}: {task} {self.done[task]}/{self.tasks[task]} trials, {now - self.began:.0f} s{estimate}",
                file=sys.stderr,
                flush=True,
            )


class _Bars(Progress):
    """One bar per task, with the time left."""

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


class _NotebookBars(Progress):
    """One bar per task in the output of a notebook's cell, updated in place; the last state stays.

    Parameters
    ----------
    shell : the running IPython shell
    title, tasks
        See `Progress`.
    """

    def __init__(self, shell: Any, title: str, tasks: Mapping[str, int]) -> None:
        super().__init__(title, tasks)
        self._publish = shell.display_pub.publish
        self._id = f"cocopt-{secrets.token_hex(8)}"
        self._last = -_UPDATE_INTERVAL

    def __enter__(self) -> Self:
        self._show(update=False)
        return self

    def advance(self, task: str, trials: int, *, kept: bool = False) -> None:
        super().advance(task, trials, kept=kept)
        if time.monotonic() - self._last >= _UPDATE_INTERVAL:
            self._show(update=True)

    def __exit__(self, *_: object) -> None:
        self._show(update=True)

    def _show(self, *, update: bool) -> None:
        self._last = time.monotonic()
        done, every = sum(self.done.values()), sum(self.tasks.values())
        seconds, left = f"{self._last - self.began:.1f} s", self.seconds_left()
        state = seconds if done == every or left is None else f"{seconds}, about {left:.0f} s left"
        rows = [[name, html.bar(self.done[name], n), f"{self.done[name]}/{n} trials"] for name, n in self.tasks.items()]
        data = {
            "text/html": html.card(self.title, state, {}, more=[html.table(["", "", ""], rows)]),
            "text/plain": f"{self.title}: {done}/{every} trials, {state}",
        }
        self._publish(data=data, metadata={}, transient={"display_id": self._id}, update=update)


def _notebook() -> Any:
    """The running shell of a notebook; None where there is none. IPython is not imported for this."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return shell if getattr(shell, "kernel", None) is not None else None


def show(title: str, tasks: Mapping[str, int], wanted: bool | None) -> Progress:
    """The display for a notebook, or for the kind of device that standard error goes to.

    Parameters
    ----------
    title, tasks
        See `Progress`.
    wanted : bool or None
        False: silent. True: bars on a terminal or in a notebook, plain lines elsewhere. None: the same without lines.
    """
    shell = None if wanted is False else _notebook()
    if shell is not None:
        return _NotebookBars(shell, title, tasks)
    if wanted is not False and sys.stderr.isatty():
        return _Bars(title, tasks)
    return _Lines(title, tasks) if wanted else Progress(title, tasks)

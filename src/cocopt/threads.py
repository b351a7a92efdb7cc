"""BLAS on one thread for the time of a call.

Small dense linear algebra gains nothing from several threads, and on a busy machine it waits for them: an
eigendecomposition of 200 rows took 2.4 ms on one thread and 1.2 s on two.
"""

from __future__ import annotations

import os
import sys
from threading import Lock
from types import TracebackType
from typing import Any

__all__ = ["one_blas_thread"]


class _OneBlasThread:
    """A context in which the BLAS libraries of this process use one thread; afterwards as many as before.

    The number belongs to the process. So calls are counted: the first one sets it, and the last one to end, in whatever
    thread, sets it back.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._calls = 0
        self._libraries: list[Any] = []
        self._known: tuple[bool, bool] | None = None  # which modules that bring a BLAS were loaded when we looked
        self._before: list[int] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_child)

    def __enter__(self) -> None:
        with self._lock:
            self._calls += 1
            if self._calls == 1:
                self._find_libraries()
                self._before = [library.get_num_threads() for library in self._libraries]
                self._set(self._before, [1] * len(self._before))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._calls -= 1
            if self._calls == 0:
                now = [library.get_num_threads() for library in self._libraries]
                # a number that someone else has set in the meantime stays
                self._set(now, [before if n == 1 else n for n, before in zip(now, self._before, strict=True)])

    def _set(self, now: list[int], wanted: list[int]) -> None:
        for library, old, new in zip(self._libraries, now, wanted, strict=True):
            if old != new:
                library.set_num_threads(new)

    def _find_libraries(self) -> None:
        """NumPy's BLAS and, once it is loaded, SciPy's own, in which decompositions run too."""
        loaded = ("numpy" in sys.modules, "scipy.linalg" in sys.modules)
        if self._known != loaded:
            from threadpoolctl import ThreadpoolController

            self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
            self._known = loaded

    def _begin_child(self) -> None:
        """A child process has none of the other threads, whose calls would never end."""
        if self._calls:
            self._set([1] * len(self._before), self._before)
        self._lock, self._calls = Lock(), 0


#: ``with one_blas_thread: …``; it may be entered again inside, and in several threads at once
one_blas_thread = _OneBlasThread()

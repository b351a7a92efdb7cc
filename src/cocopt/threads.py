"""Linear algebra on one thread.

Small dense linear algebra gains nothing from several BLAS threads, and on a busy machine it waits for them: with two
threads the eigenvalues of 200 rows took 1.2 s in place of 2.4 ms. So whatever may be small runs inside
``with one_blas_thread:``. `matvec`, `vecmat` and `matmul` are NumPy's, on one thread; below the sizes from which BLAS
libraries use several they do nothing else.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import ContextDecorator
from threading import Lock, local
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from cocopt.arrays import Array

__all__ = ["matmul", "matvec", "one_blas_thread", "vecmat"]

SMALL_MATRIX = 9000  # entries of a matrix that is multiplied by vectors; OpenBLAS uses threads from 9216 on
SMALL_PRODUCT = 200_000  # multiplications of a product of matrices; OpenBLAS uses threads beyond 262,144


class _Library(NamedTuple):
    """A BLAS library that is loaded."""

    get: Callable[[], int]
    set: Callable[[int], None]
    per_thread: bool  #: whether each thread has a number of its own, or the process has one

    @classmethod
    def of(cls, library: Any) -> _Library:
        """From threadpoolctl's description.

        Of OpenBLAS its own function is taken: threadpoolctl lets only one thread of a process set the number.
        """
        openblas = library.internal_api == "openblas"
        per_thread = openblas and library.threading_layer == "openmp"
        set_number = library.set_num_threads
        if openblas and not per_thread:
            loaded = ctypes.CDLL(library.filepath)
            names = [f"{prefix}openblas_set_num_threads{suffix}" for prefix in ("scipy_", "") for suffix in ("64_", "")]
            set_number = next((getattr(loaded, name) for name in names if hasattr(loaded, name)), set_number)
        return cls(library.get_num_threads, set_number, per_thread)


class _Setting(NamedTuple):
    """The libraries that were set to one thread, and their numbers of before."""

    changed: list[tuple[_Library, int]]

    @classmethod
    def one(cls, libraries: list[_Library]) -> _Setting:
        """Sets all of them to one thread."""
        changed = [(library, before) for library in libraries if (before := library.get()) != 1]
        for library, _ in changed:
            library.set(1)
        return cls(changed)

    def undo(self) -> None:
        """Sets the numbers of before, but for one that someone else has set in the meantime."""
        for library, before in self.changed:
            if library.get() == 1:
                library.set(before)


class _OneBlasThread(ContextDecorator):
    """A context in which the BLAS libraries of this process use one thread; afterwards as many as before.

    Most have one number for the process. So calls are counted: the first one sets it, and the last one to end, in
    whatever thread, sets it back. Where each thread has a number of its own, each thread's calls are counted.
    """

    def __init__(self) -> None:
        self.__name__ = "one_blas_thread"  # as functions have, since it is a decorator
        self._lock = Lock()
        self._libraries: list[_Library] | None = None
        self._calls = 0
        self._of_process = _Setting([])
        self._of_thread = local()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_child)

    def __enter__(self) -> None:
        with self._lock:
            if self._libraries is None:
                self._libraries = _blas_libraries()
            self._calls += 1
            if self._calls == 1:
                self._of_process = _Setting.one([library for library in self._libraries if not library.per_thread])
        own = self._of_thread
        own.calls = getattr(own, "calls", 0) + 1
        if own.calls == 1:
            own.setting = _Setting.one([library for library in self._libraries if library.per_thread])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        own = self._of_thread
        own.calls -= 1
        if own.calls == 0:
            own.setting.undo()
        with self._lock:
            self._calls -= 1
            if self._calls == 0:
                self._of_process.undo()

    def _begin_child(self) -> None:
        """A forked process has none of the other threads, whose calls would never end."""
        own = getattr(self._of_thread, "calls", 0)
        if self._calls and not own:
            self._of_process.undo()
        self._lock, self._calls = Lock(), own


def _blas_libraries() -> list[_Library]:
    """NumPy's BLAS and SciPy's own, which is loaded now lest it be missed."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return [_Library.of(library) for library in ThreadpoolController().select(user_api="blas").lib_controllers]


#: may be entered again inside, and in several threads at once; also a decorator
one_blas_thread = _OneBlasThread()


def matvec(matrix: Array, vector: Array) -> Array:
    """Matrices (..., m, n) times vectors (..., n)."""
    if matrix.shape[-1] * matrix.shape[-2] < SMALL_MATRIX:
        product: Array = np.matvec(matrix, vector)
        return product
    with one_blas_thread:
        product = np.matvec(matrix, vector)
    return product


def vecmat(vector: Array, matrix: Array) -> Array:
    """Vectors (..., m) times matrices (..., m, n)."""
    if matrix.shape[-1] * matrix.shape[-2] < SMALL_MATRIX:
        product: Array = np.vecmat(vector, matrix)
        return product
    with one_blas_thread:
        product = np.vecmat(vector, matrix)
    return product


def matmul(one: Array, other: Array) -> Array:
    """Arrays (..., m, k) or (k,) times matrices (..., k, n)."""
    if one.size < SMALL_MATRIX and other.size < SMALL_MATRIX and one.size * other.shape[-1] < SMALL_PRODUCT:
        product: Array = one @ other
        return product
    with one_blas_thread:
        product = one @ other
    return product

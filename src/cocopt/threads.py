"""Linear algebra on one thread.

Small dense linear algebra gains nothing from several BLAS threads, and on a busy machine it waits for them: with two
threads the eigenvalues of 200 rows took 1.2 s in place of 2.4 ms. So whatever may be small runs inside
``with one_blas_thread:``. `matvec`, `vecmat` and `matmul` are NumPy's, on one thread; below the sizes from which BLAS
libraries use several they do nothing else.
"""

from __future__ import annotations

import os
from contextlib import ContextDecorator
from threading import Lock
from types import TracebackType
from typing import Any

import numpy as np

from cocopt.arrays import Array

__all__ = ["matmul", "matvec", "one_blas_thread", "vecmat"]

SMALL_MATRIX = 9000  # entries of a matrix that is multiplied by vectors; OpenBLAS uses threads from 9216 on
SMALL_PRODUCT = 200_000  # multiplications of a product of matrices; OpenBLAS uses threads beyond 262,144


class _OneBlasThread(ContextDecorator):
    """A context in which the BLAS libraries of this process use one thread; afterwards as many as before.

    The number belongs to the process. So calls are counted: the first one sets it, and the last one to end, in whatever
    thread, sets it back.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._calls = 0
        self._libraries: list[Any] | None = None
        self._before: list[int] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_child)

    def __enter__(self) -> None:
        with self._lock:
            self._calls += 1
            if self._calls > 1:
                return
            if self._libraries is None:
                self._libraries = _blas_libraries()
            self._before = [library.get_num_threads() for library in self._libraries]
            for library, before in zip(self._libraries, self._before, strict=True):
                if before != 1:
                    library.set_num_threads(1)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._calls -= 1
            if self._calls == 0:
                self._restore()

    def _restore(self) -> None:
        """The numbers of before, but for one that someone else has set in the meantime."""
        for library, before in zip(self._libraries or [], self._before, strict=True):
            if before != 1 and library.get_num_threads() == 1:
                library.set_num_threads(before)

    def _begin_child(self) -> None:
        """A forked process has none of the other threads, whose calls would never end."""
        if self._calls:
            self._restore()
        self._lock, self._calls = Lock(), 0


def _blas_libraries() -> list[Any]:
    """NumPy's BLAS and SciPy's own, which is loaded now lest it be missed."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    libraries: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return libraries


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

"""BLAS runs on one thread inside a call, and on as many as before after it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (its BLAS is one of those that are counted)
from threadpoolctl import ThreadpoolController

import cocopt
from cocopt import Box, constraints, hindsight, losses
from cocopt.threads import matmul, matvec, one_blas_thread, vecmat

# numpy's and scipy's; what other libraries bring along may refuse to have more threads than at their start
LIBRARIES = [
    library
    for library in ThreadpoolController().select(user_api="blas").lib_controllers
    if {"numpy.libs", "scipy.libs"} & {*Path(library.filepath).parts}
]


def thread_counts() -> list[int]:
    return [library.get_num_threads() for library in LIBRARIES]


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Two threads in every BLAS, whatever the machine has."""
    before = thread_counts()
    for library in LIBRARIES:
        library.set_num_threads(2)
    assert set(thread_counts()) == {2}
    yield
    for library, count in zip(LIBRARIES, before, strict=True):
        library.set_num_threads(count)


def black_box(seen: list[list[int]]) -> constraints.Function:
    """‖x‖ ≤ 1 by value and gradient; notes the numbers of threads with which it is called."""

    def value(x: np.ndarray) -> float:
        seen.append(thread_counts())
        return float(x @ x) - 1.0

    return constraints.Function(value, lambda x: 2.0 * x)


@pytest.mark.usefixtures("two_threads")
def test_a_projection_runs_on_one_thread_and_leaves_the_number_as_it_was() -> None:
    seen: list[list[int]] = []
    cocopt.project(Box(-1.0, 1.0, dim=3), black_box(seen), [2.0, 2.0, 2.0])
    assert len(seen) > 2
    assert {count for counts in seen[1:] for count in counts} == {1}
    assert set(thread_counts()) == {2}


@pytest.mark.usefixtures("two_threads")
def test_hindsight_runs_on_one_thread() -> None:
    seen: list[list[int]] = []
    hindsight.best_fixed(Box(-1.0, 1.0, dim=2), [losses.Distance([2.0, 2.0])], [black_box(seen)])
    assert seen
    assert {count for counts in seen for count in counts} == {1}
    assert set(thread_counts()) == {2}


@pytest.mark.usefixtures("two_threads")
def test_an_exception_leaves_the_number_as_it_was() -> None:
    def broken(x: np.ndarray) -> float:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cocopt.project(Box(-1.0, 1.0, dim=3), constraints.Function(broken, lambda x: x), [2.0, 2.0, 2.0])
    assert set(thread_counts()) == {2}


@pytest.mark.usefixtures("two_threads")
def test_calls_in_several_threads_that_overlap_share_one_setting() -> None:
    """The first to end must not give the others several threads, nor the last to end leave one thread behind."""
    inside, may_end = threading.Event(), threading.Event()
    seen: list[list[int]] = []

    def long_call() -> None:
        with one_blas_thread:
            inside.set()
            may_end.wait(timeout=60)
            seen.append(thread_counts())

    worker = threading.Thread(target=long_call)
    worker.start()
    assert inside.wait(timeout=60)
    with one_blas_thread:
        assert set(thread_counts()) == {1}
    assert set(thread_counts()) == {1}  # the other call goes on
    may_end.set()
    worker.join(timeout=60)
    assert {count for counts in seen for count in counts} == {1}
    assert set(thread_counts()) == {2}


@pytest.mark.usefixtures("two_threads")
def test_a_number_that_is_set_inside_a_call_stays() -> None:
    with one_blas_thread:
        for library in LIBRARIES:
            library.set_num_threads(3)
    assert set(thread_counts()) == {3}


def test_a_process_that_is_forked_during_the_call_of_another_thread_has_the_number_of_before() -> None:
    """In a process of its own, since a fork of one with many threads is not safe."""
    code = """
import os, threading
from threadpoolctl import ThreadpoolController
from cocopt.threads import one_blas_thread
with one_blas_thread:
    pass
libraries = ThreadpoolController().select(user_api="blas").lib_controllers
for library in libraries:
    library.set_num_threads(2)
counts = lambda: {library.get_num_threads() for library in libraries}
inside, may_end = threading.Event(), threading.Event()
def long_call():
    with one_blas_thread:
        inside.set()
        may_end.wait(60)
worker = threading.Thread(target=long_call)
worker.start()
inside.wait(60)
child = os.fork()
if child == 0:
    before = counts()
    with one_blas_thread:
        during = counts()
    os._exit(0 if (before, during, counts()) == ({2}, {1}, {2}) else 1)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
may_end.set()
worker.join()
assert status == 0
assert counts() == {2}
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize("n", [3, 120])
def test_products_are_those_of_numpy(n: int) -> None:
    rng = np.random.default_rng(n)
    A, x = rng.normal(size=(n, n)), rng.normal(size=(4, n))
    np.testing.assert_allclose(matvec(A, x), np.einsum("ij,kj->ki", A, x), rtol=1e-12)
    np.testing.assert_allclose(vecmat(x, A), np.einsum("ki,ij->kj", x, A), rtol=1e-12)
    np.testing.assert_allclose(matmul(x, A), np.einsum("ki,ij->kj", x, A), rtol=1e-12)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("product", ["matvec", "vecmat", "matmul"])
def test_large_products_use_one_thread(product: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[int]] = []

    class Watched(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, **options):  # type: ignore[no-untyped-def]
            seen.append(thread_counts())
            return getattr(ufunc, method)(*(np.asarray(part) for part in inputs), **options)

    A, x = np.ones((100, 100)).view(Watched), np.ones((100, 100))
    result = {"matvec": lambda: matvec(A, x), "vecmat": lambda: vecmat(x, A), "matmul": lambda: matmul(x, A)}[product]()
    np.testing.assert_array_equal(result, 100.0)
    assert {count for counts in seen for count in counts} == {1}
    assert set(thread_counts()) == {2}

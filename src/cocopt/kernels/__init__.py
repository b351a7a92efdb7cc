"""Compiled kernels (numba gufuncs): leading axes come free, each module compiles on first use and is cached on disk.

A kernel returns, beside its result, one status a trial (see `cocopt.kernels.status`); a caller takes only the trials
that converged and hands the others to the next method. The last axes of every array must be without gaps (`core`).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

from cocopt.arrays import Array

__all__ = ["compile_all", "core"]

_HOMES = {
    "add_round": "ledger",
    "affine_rows": "values",
    "affine_violation": "values",
    "ball_halfspace": "halfspace",
    "ball_rows": "ball",
    "ball_rows_sum": "sumcap",
    "box_halfspace": "halfspace",
    "box_halfspace_simd": "simd.box_halfspace",
    "box_rows": "rows",
    "box_rows_simd": "simd.box_rows",
    "box_rows_sum": "sumcap",
    "fold": "ledger",
    "lane_memory": "simd.lanes",
    "norm_loss": "values",
    "polyhedron_rows": "polyhedron",
    "simplex_halfspace": "simplex",
    "workspace_memory": "workspace",
}


def core(array: Array) -> Array:
    """The array with memory as the kernels want it; itself where that is so already."""
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def compile_all() -> Iterator[tuple[str, float]]:
    """Compiles every kernel that is not compiled yet, one process a core; yields modules and seconds as they end."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    # the longest first
    modules = [
        "persistent",
        "simd.box_rows",
        "simd.box_halfspace",
        "sumcap",
        "ball",
        "rows",
        "polyhedron",
        "halfspace",
        "simplex",
        "ledger",
        "values",
    ]
    # an interrupt ends the workers at once, and what is waiting is not begun
    pool = ProcessPoolExecutor(os.cpu_count(), get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_DFL))
    try:
        for done in as_completed([pool.submit(_compile, module) for module in modules]):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _compile(module: str) -> tuple[str, float]:
    began = time.perf_counter()
    import_module(f"{__name__}.{module}")
    return module, time.perf_counter() - began


def __getattr__(name: str) -> Any:
    """Kernels by name; a name that was used once is an ordinary attribute from then on."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value

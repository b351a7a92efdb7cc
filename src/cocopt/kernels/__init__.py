"""Compiled kernels (numba gufuncs): leading axes come free, each module compiles on first use and is cached on disk.

A kernel returns, beside its result, one status per trial (see `cocopt.kernels.status`); a caller takes only the trials
that converged and hands the others to the next method. The last axes of every array must be contiguous (`contiguous`).
The arguments of a gufunc are arrays and numbers, results and workspace among them: that is why kernels have more
parameters than the functions that they call, which pass tuples.

Two things keep compilation short. A literal such as 0 has a type of its own, for which a function would be compiled
once more: where it matters, ``np.int64(0)`` is passed instead. And arrays are copied in loops, because a slice
assignment brings the text of its error message, which takes a second to compile.
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

__all__ = ["compile_all", "contiguous"]

# The modules of kernels and what each defines; those that take longest to compile come first.
_KERNELS = {
    "persistent": (),  # its users import the package
    "dense.project": ("newton_rows",),
    "simd.box_rows": ("box_rows_simd",),
    "rows_sum": ("ball_rows_sum", "box_rows_sum"),
    "sparse": ("sparse_project",),
    "polyhedron": ("polyhedron_rows",),
    "ball": ("ball_rows",),
    "rows": ("box_rows",),
    "halfspace": ("ball_halfspace", "box_halfspace"),
    "simd.box_halfspace": ("box_halfspace_simd",),
    "stream.simplex": ("simplex_round",),
    "stream.box": ("box_round",),
    "stream.ball": ("ball_round",),
    "simplex": ("simplex_halfspace",),
    "newton": ("newton_matrix", "newton_residuals"),
    "cone_rows": ("cone_residuals", "scale_rows", "transpose"),
    "surfaces": ("active_surfaces", "correct_surfaces", "number_unknowns"),
    "curved.polyhedron": ("polyhedron_norm_ball",),
    "curved.l1_ball": ("l1_ball_halfspace", "l1_ball_norm_ball"),
    "curved.ellipsoid": ("ellipsoid_halfspace", "ellipsoid_norm_ball"),
    "curved.norm1": ("bounds_norm1",),
    "curved.simplex": ("simplex_norm_ball",),
    "curved.box_quadratic": ("box_quadratic",),
    "curved.ball": ("ball_norm_ball",),
    "curved.box": ("box_norm_ball",),
    "ledger": ("add_round",),
    "ledger_fold": ("fold",),
    "sparse_values": ("sparse_rows",),
    "values": ("affine_rows", "norm_loss"),
    "violation": ("affine_violation",),
}
_MEMORY = {
    "dense.problem": ("newton_memory",),
    "simd.lanes": ("lane_memory",),
    "workspace": ("workspace_memory",),
}
_MODULE_OF = {name: module for module, names in (_KERNELS | _MEMORY).items() for name in names}


def contiguous(array: Array) -> Array:
    """The array with contiguous memory; itself where that is so already."""
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def compile_all() -> Iterator[tuple[str, float]]:
    """Compiles every kernel that is not compiled yet, one process per core; yields modules and seconds as they end."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(os.cpu_count(), get_context("spawn"), _begin_worker)
    try:
        for done in as_completed([pool.submit(_compile, module) for module in _KERNELS]):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _begin_worker() -> None:
    """An interrupt ends the workers at once, and what is waiting is not begun; only the caller reports progress."""
    from cocopt.kernels._jit import silence

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    silence()


def _compile(module: str) -> tuple[str, float]:
    began = time.perf_counter()
    import_module(f"{__name__}.{module}")
    return module, time.perf_counter() - began


def __getattr__(name: str) -> Any:
    """Kernels by name; a name that was used once is an ordinary attribute from then on."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return value

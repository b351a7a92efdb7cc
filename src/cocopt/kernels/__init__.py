"""Compiled kernels (numba gufuncs): leading axes come free, each module compiles on first use and is cached on disk.

A kernel returns, beside its result, one status a trial (see `cocopt.kernels.status`); a caller takes only the trials
that converged and hands the others to the next rung. The last axes of every array must be without gaps (`core`).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from cocopt._arrays import Array

__all__ = ["core"]

_HOMES = {
    "add_round": "ledger",
    "affine_rows": "values",
    "ball_halfspace": "halfspace",
    "ball_rows": "rows",
    "ball_rows_sum": "sumcap",
    "box_halfspace": "halfspace",
    "box_rows": "rows",
    "box_rows_sum": "sumcap",
    "fold": "ledger",
    "norm_loss": "values",
    "polyhedron_rows": "polyhedron",
    "scratch": "rows",
    "simplex_halfspace": "simplex",
}


def core(array: Array) -> Array:
    """The array with memory as the kernels want it; itself where that is so already."""
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def __getattr__(name: str) -> Any:
    """Kernels by name; a name that was used once is an ordinary attribute from then on."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value

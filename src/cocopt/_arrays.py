"""Turning what a user passes into float arrays, with errors that name the argument."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocopt.errors import InvalidInput

Array: TypeAlias = NDArray[np.float64]
_FLOAT = np.dtype(np.float64)

__all__ = ["Array", "ArrayLike", "as_floats", "as_points", "frozen", "positive_int", "require_finite", "scalar"]


def as_floats(name: str, value: ArrayLike) -> Array:
    """A float64 array of any shape that is not empty; not copied where that can be helped, not searched for NaN."""
    if type(value) is np.ndarray and (value.dtype is _FLOAT or value.dtype == _FLOAT):
        array: Array = value
    else:
        try:
            raw = np.asarray(value)
        except ValueError as error:  # ragged nested lists
            raise InvalidInput(f"{name}: expected an array of numbers, got {_describe(value)} ({error})") from None
        if raw.dtype.kind not in "biuf":
            raise InvalidInput(f"{name}: expected an array of real numbers, got {_describe(value)}")
        array = raw.astype(np.float64)
    if array.size == 0:
        raise InvalidInput(f"{name}: expected at least one number, got an empty array of shape {array.shape}")
    return array


def as_points(name: str, value: ArrayLike, dim: int) -> Array:
    """A float64 array (..., dim)."""
    array = as_floats(name, value)
    if array.ndim == 0 or array.shape[-1] != dim:
        raise InvalidInput(f"{name}: expected shape (..., {dim}), got {array.shape}")
    return array


def require_finite(name: str, array: Array, *, infinities: bool = False) -> Array:
    """The array itself if every entry is finite (or, with ``infinities``, merely no NaN)."""
    good = ~np.isnan(array) if infinities else np.isfinite(array)
    if not good.all():
        index = tuple(int(i) for i in np.argwhere(~good)[0])
        expected = "finite numbers or infinities" if infinities else "finite numbers"
        where = f" at index {index}" if index else ""
        raise InvalidInput(f"{name}: expected {expected}, got {array[index]}{where}")
    return array


def frozen(array: Array) -> Array:
    """A read-only copy, so that sets can share it without fear."""
    copy = np.array(array, dtype=np.float64, order="C")
    copy.flags.writeable = False
    return copy


def scalar(name: str, value: Any, *, positive: bool = False, nonnegative: bool = False) -> float:
    """A finite float, positive or non-negative where asked."""
    expected = "a positive" if positive else "a non-negative" if nonnegative else "a finite"
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name}: expected {expected} number, got {_describe(value)}") from None
    if not np.isfinite(number) or (positive and number <= 0) or (nonnegative and number < 0):
        raise InvalidInput(f"{name}: expected {expected} number, got {number}")
    return number


def positive_int(name: str, value: Any) -> int:
    """An integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidInput(f"{name}: expected a positive integer, got {_describe(value)}")
    return int(value)


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with shape {value.shape}"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 40 else text[:37] + '...'}"

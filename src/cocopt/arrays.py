"""Turning what a user passes into float arrays, with errors that name the argument; cheap checks, and views."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike as ArrayLike
from numpy.typing import NDArray

from cocopt.errors import InvalidInput

Array: TypeAlias = NDArray[np.float64]
_FLOAT = np.dtype(np.float64)

#: the largest integer that floating-point numbers tell from its neighbours
MAX_INTEGER = 2**53
#: the largest constant, such as a radius or a step: products of two of them are numbers
MAX_SCALAR = 1e150
#: the largest dimension that may be given as a number, where a vector of that length is made of a few characters
MAX_DIMENSION = 10**8

__all__ = [
    "MAX_DIMENSION",
    "MAX_INTEGER",
    "MAX_SCALAR",
    "Array",
    "all_finite",
    "as_dimension",
    "as_flag",
    "as_floats",
    "as_integers",
    "as_plain",
    "as_points",
    "as_shape",
    "batch_shape",
    "broadcast",
    "check_points",
    "describe",
    "equal_values",
    "frozen",
    "ignore_fp_warnings",
    "make_tuple",
    "nonnegative_int",
    "one_of",
    "plain_system",
    "positive_int",
    "read_only_view",
    "require_finite",
    "require_moderate",
    "scalar",
    "squared_norm",
]


def as_floats(name: str, value: ArrayLike) -> Array:
    """A float64 array of any shape that is not empty; not copied where that can be helped, not searched for NaN."""
    if type(value) is np.ndarray and (value.dtype is _FLOAT or value.dtype == _FLOAT):
        array: Array = value
    else:
        array = _as_numbers(name, value, "biuf", "an array of real numbers").astype(np.float64)
    if array.size == 0:
        raise InvalidInput(f"{name}: expected at least one number, got an empty array of shape {array.shape}")
    return array


def plain_system(A: Any, b: Any) -> tuple[Array, Array] | None:
    """A (M, n) and b (M) if they are contiguous float64 arrays that fit: the usual case, found by few comparisons."""
    if (
        type(A) is np.ndarray
        and type(b) is np.ndarray
        and A.dtype is _FLOAT
        and b.dtype is _FLOAT
        and A.ndim == 2
        and b.ndim == 1
        and len(A) == len(b)
        and A.size > 0
        and A.flags.c_contiguous
        and b.flags.c_contiguous
    ):
        return A, b
    return None


def as_integers(name: str, value: ArrayLike, expected: str = "integers") -> NDArray[np.integer[Any]]:
    """An array of integers of any shape that is not empty."""
    array = _as_numbers(name, value, "iu", expected)
    if array.size == 0:
        raise InvalidInput(f"{name}: expected {expected}, got an empty array of shape {array.shape}")
    return array


def _as_numbers(name: str, value: Any, kinds: str, expected: str) -> NDArray[Any]:
    """A plain array whose dtype is of one of these kinds. A mask would be lost, so a masked array is refused."""
    if isinstance(value, np.ma.MaskedArray) or (
        isinstance(value, list | tuple) and any(isinstance(part, np.ma.MaskedArray) for part in value)
    ):
        raise InvalidInput(f"{name}: expected {expected}, got a masked array; fill its gaps first")
    if type(value).__module__.startswith("scipy.sparse") and hasattr(value, "toarray"):
        value = value.toarray()
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError) as error:  # such as ragged nested lists
        raise InvalidInput(f"{name}: expected {expected}, got {describe(value)} ({error})") from None
    if array.dtype.kind not in kinds:
        raise InvalidInput(f"{name}: expected {expected}, got {describe(value)}")
    return array


def as_points(name: str, value: ArrayLike, dim: int) -> Array:
    """A float64 array (..., dim)."""
    array = as_floats(name, value)
    if array.ndim == 0 or array.shape[-1] != dim:
        raise InvalidInput(f"{name}: expected shape (..., {dim}), got {array.shape}")
    return array


def require_moderate(name: str, array: Array) -> Array:
    """The array itself if its entries are finite and so small that lengths can be computed: below about 1e154."""
    flat = array if array.ndim == 1 else array.ravel()
    try:
        square = flat.dot(flat)
    except RuntimeWarning:  # an overflow, where warnings are errors
        square = np.inf
    if not math.isfinite(square):
        require_finite(name, array)
        largest = float(np.abs(array).max())
        raise InvalidInput(
            f"{name}: expected numbers whose squares can be added up, got {largest:g}, which is too large"
        )
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
    """A read-only copy, which several objects can share."""
    copy = np.array(array, dtype=np.float64, order="C")
    copy.flags.writeable = False
    return copy


def scalar(name: str, value: Any, *, positive: bool = False, nonnegative: bool = False) -> float:
    """A finite float, positive or non-negative where asked. Text is no number, even if it reads like one."""
    if type(value) is not float:
        value = _as_float(name, value, "a positive" if positive else "a non-negative" if nonnegative else "a finite")
    number: float = value
    if not abs(number) <= MAX_SCALAR or (positive and number <= 0) or (nonnegative and number < 0):
        expected = "a positive" if positive else "a non-negative" if nonnegative else "a finite"
        limit = f" up to {MAX_SCALAR:g}" if MAX_SCALAR < abs(number) < math.inf else ""
        raise InvalidInput(f"{name}: expected {expected} number{limit}, got {number}")
    return number


def _as_float(name: str, value: Any, expected: str) -> float:
    try:
        if isinstance(value, str | bytes | bytearray | np.ma.MaskedArray) or (
            isinstance(value, np.ndarray | np.generic) and (value.ndim > 0 or value.dtype.kind not in "biuf")
        ):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name}: expected {expected} number, got {describe(value)}") from None


def positive_int(name: str, value: Any, *, at_most: int = MAX_INTEGER) -> int:
    """An integer of at least 1, and not so large that it is no number of things."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidInput(f"{name}: expected a positive integer, got {describe(value)}")
    if value > at_most:
        raise InvalidInput(f"{name}: expected at most {at_most}, got {describe(value)}")
    return int(value)


def nonnegative_int(name: str, value: Any) -> int:
    """An integer of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InvalidInput(f"{name}: expected a non-negative integer, got {describe(value)}")
    return int(value)


def as_dimension(name: str, value: Any) -> int:
    """A dimension n that is given as a number: larger ones than `MAX_DIMENSION` are taken for mistakes."""
    return positive_int(name, value, at_most=MAX_DIMENSION)


def as_shape(name: str, value: Any) -> tuple[int, ...]:
    """A tuple of lengths, as the shape of a batch of trials."""
    fits = isinstance(value, tuple | list) and all(
        isinstance(size, int | np.integer) and not isinstance(size, bool) and size >= 0 for size in value
    )
    if not fits or math.prod(int(size) for size in value) > MAX_DIMENSION or len(value) > 32:
        raise InvalidInput(f"{name}: expected a shape such as (2, 3), got {describe(value)}")
    return tuple(int(size) for size in value)


def as_flag(name: str, value: Any) -> bool:
    """True or False, and nothing that merely counts as one of them."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(f"{name}: expected True or False, got {describe(value)}")
    return bool(value)


def one_of(name: str, value: Any, *known: str) -> Any:
    """The value of an option, checked to be one of the known strings."""
    if not isinstance(value, str) or value not in known:
        shown = [f'"{option}"' for option in known]
        expected = " or ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
        raise InvalidInput(f"{name}: expected {expected}, got {describe(value)}")
    return value


def describe(value: Any) -> str:
    """What was passed, in a few words, for error messages."""
    if isinstance(value, np.ndarray):
        kind = "a masked array" if isinstance(value, np.ma.MaskedArray) else "an array"
        return f"{kind} of {value.dtype} with shape {value.shape}"
    try:
        text = repr(value)
    except Exception:  # such as an integer of more digits than Python prints
        return f"{type(value).__name__} that cannot be shown"
    return f"{type(value).__name__} {text if len(text) <= 40 else text[:37] + '...'}"


def all_finite(array: Array) -> bool:
    """Whether every entry is finite. The product decides nearly always, and costs a third of the search."""
    if array.ndim == 0:
        return math.isfinite(array)
    flat = array if array.ndim == 1 else array.ravel()
    return math.isfinite(flat.dot(flat)) or bool(np.isfinite(flat).all())


#: A NamedTuple from all its fields, in half the time of its constructor: for what every round makes.
make_tuple = tuple.__new__


def squared_norm(vectors: Array) -> float | Array:
    """‖v‖², a plain number for a single vector: arithmetic on it costs next to nothing."""
    return float(vectors.dot(vectors)) if vectors.ndim == 1 else np.vecdot(vectors, vectors)


def ignore_fp_warnings() -> np.errstate:
    """A context without numpy's floating-point warnings, for code whose results are checked to be finite."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


def broadcast(array: Array, shape: tuple[int, ...]) -> Array:
    """The array with as many leading axes as the shape has; itself where nothing is to be done."""
    return array if array.shape == shape else np.broadcast_to(array, shape)


def read_only_view(array: Array, shape: tuple[int, ...]) -> Array:
    """The same, always read-only: for handing out data that are the user's own."""
    same = broadcast(array, shape).view()
    same.flags.writeable = False
    return same


def batch_shape(*parts: tuple[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The leading axes that arguments have in common, by broadcasting; an error names the one that does not fit."""
    batch: tuple[int, ...] = ()
    for name, shape in parts:
        if shape in (batch, ()):
            continue
        try:
            batch = np.broadcast_shapes(batch, shape) if batch else shape
        except ValueError:
            raise InvalidInput(f"{name}: expected leading axes that broadcast with {batch}, got {shape}") from None
    return batch


def check_points(x: ArrayLike, dim: int | None, batch: tuple[int, ...]) -> Array:
    """Points (..., n) whose leading axes fit those of the data."""
    array = as_floats("x", x) if dim is None else as_points("x", x, dim)
    if array.ndim == 0:
        raise InvalidInput("x: expected shape (..., n), got ()")
    if array.ndim > 1 and batch:
        batch_shape(("data", batch), ("x", array.shape[:-1]))
    return array


def equal_values(one: Any, other: Any) -> bool:
    """Whether arguments of sets or constraints are the same: arrays, numbers, objects, and what is made of these.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt.arrays import equal_values
    >>> equal_values({"b": [np.ones(2), 1.0]}, {"b": [np.ones(2), 1.0]}), equal_values([1.0], [1.0, 2.0])
    (True, False)
    """
    if isinstance(one, Mapping):
        same = isinstance(other, Mapping) and list(one) == list(other)
        return same and all(equal_values(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple):
        return isinstance(other, list | tuple) and len(one) == len(other) and all(map(equal_values, one, other))
    if hasattr(one, "equals"):
        return bool(one.equals(other))
    return bool(np.array_equal(one, other)) if isinstance(one, np.ndarray) else bool(one == other)


def as_plain(value: Any) -> Any:
    """Numbers, flags, arrays and what is made of them as Python's own: what JSON has, but for infinities and NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt.arrays import as_plain
    >>> as_plain({"x": np.array([1.0, 2.0]), "t": np.int64(3), "seen": (np.True_, None)})
    {'x': [1.0, 2.0], 't': 3, 'seen': [True, None]}
    """
    if isinstance(value, Mapping):
        return {str(key): as_plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [as_plain(item) for item in value] if isinstance(value, list | tuple) else value

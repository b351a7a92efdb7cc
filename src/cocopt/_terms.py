"""What losses and constraints have in common: cheap checks, and calls of a user's functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cocopt._arrays import Array, ArrayLike, _describe, as_floats, as_points
from cocopt.errors import InvalidInput

__all__ = [
    "TINY",
    "BlackBox",
    "as_quadratic",
    "curvature",
    "finite",
    "lead",
    "points",
    "quiet",
    "spectrum",
    "spread",
    "squared_norm",
    "view",
]

#: added to a norm that divides: too small to change any but those whose squares underflow
TINY = 1e-150


def finite(array: Array) -> bool:
    """Whether every entry is finite. The product decides nearly always, and costs a third of the search."""
    if array.ndim == 0:
        return math.isfinite(array)
    flat = array if array.ndim == 1 else array.ravel()
    return math.isfinite(flat.dot(flat)) or bool(np.isfinite(flat).all())


#: A NamedTuple from all its fields, in half the time of its constructor: for what every round makes.
new = tuple.__new__


def squared_norm(vectors: Array) -> float | Array:
    """‖v‖², a plain number for a single vector: arithmetic on it costs next to nothing."""
    return float(vectors.dot(vectors)) if vectors.ndim == 1 else np.vecdot(vectors, vectors)


def quiet() -> np.errstate:
    """Silence for numpy's warnings where a check for finite results follows anyway."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


def spread(array: Array, shape: tuple[int, ...]) -> Array:
    """The array with as many leading axes as the shape has; itself where nothing is to be done."""
    return array if array.shape == shape else np.broadcast_to(array, shape)


def view(array: Array, shape: tuple[int, ...]) -> Array:
    """The same, always read-only: for handing out data that are the user's own."""
    same = spread(array, shape).view()
    same.flags.writeable = False
    return same


def lead(*parts: tuple[str, tuple[int, ...]]) -> tuple[int, ...]:
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


def points(x: ArrayLike, dim: int | None, batch: tuple[int, ...]) -> Array:
    """Points (..., n) whose leading axes fit those of the data."""
    array = as_floats("x", x) if dim is None else as_points("x", x, dim)
    if array.ndim == 0:
        raise InvalidInput("x: expected shape (..., n), got ()")
    if array.ndim > 1 and batch:
        lead(("data", batch), ("x", array.shape[:-1]))
    return array


def as_quadratic(P: ArrayLike, q: ArrayLike, r: ArrayLike) -> tuple[Array, Array, Array, tuple[int, ...]]:
    """The data of ½xᵀPx + qᵀx + r and their leading axes; P is symmetric up to 1e-9 of its largest entry."""
    matrix, linear, constant = as_floats("P", P), as_floats("q", q), as_floats("r", r)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise InvalidInput(f"P: expected shape (..., n, n), got {matrix.shape}")
    if linear.ndim == 0 or linear.shape[-1] != matrix.shape[-1]:
        raise InvalidInput(f"q: expected shape (..., {matrix.shape[-1]}) to match P, got {linear.shape}")
    batch = lead(("P", matrix.shape[:-2]), ("q", linear.shape[:-1]), ("r", constant.shape))
    transposed = matrix.swapaxes(-1, -2)
    if not (matrix == transposed).all():
        gap = np.abs(matrix - transposed)
        if (gap > 1e-9 * np.abs(matrix).max(axis=(-1, -2), keepdims=True)).any():
            raise InvalidInput(
                f"P: expected a symmetric matrix, got one that differs from its transpose by {gap.max():g}"
            )
    return matrix, linear, constant, batch


def curvature(name: str, P: Array, x: Array, Px: Array) -> Array:
    """xᵀPx, and an error where it shows that P is not positive semidefinite."""
    value: Array = np.vecdot(x, Px)
    if (value < 0).any():
        size = x.shape[-1] * np.abs(P).max(axis=(-1, -2)) * np.vecdot(x, x)
        if (value < -1e-9 * size).any():
            raise InvalidInput(
                f"{name}: P: expected a positive semidefinite matrix, got xᵀPx = {value.min():g} at some x"
            )
    return value


def spectrum(name: str, P: Array) -> tuple[Array, Array]:
    """Eigenvalues (ascending, those below rounding set to 0) and eigenvectors of a positive semidefinite P."""
    values, vectors = np.linalg.eigh(P)
    largest = np.abs(values).max(axis=-1, keepdims=True)
    if (values < -1e-9 * largest).any():
        raise InvalidInput(f"{name}: P: expected a positive semidefinite matrix, got the eigenvalue {values.min():g}")
    noise = P.shape[-1] * np.finfo(np.float64).eps * largest
    return np.where(values > noise, values, 0.0), vectors


class BlackBox:
    """A user's function, called trial by trial or on all trials at once, its answers checked.

    It sees read-only copies. An exception of its own passes through unchanged, with a note that names the trial.
    """

    __slots__ = ("call", "label", "vectorized", "what")

    def __init__(self, what: str, label: str, call: Callable[[Array], Any], vectorized: bool) -> None:
        if not callable(call):
            raise InvalidInput(f"{label}: expected a callable, got {_describe(call)}")
        self.what, self.label, self.call, self.vectorized = what, label, call, vectorized

    def __call__(self, x: Array, shape: tuple[int, ...]) -> Array:
        """One answer of the given shape for each point (..., n)."""
        batch = x.shape[:-1]
        if self.vectorized:
            return self._one(x, (*batch, *shape), "")
        answers = np.empty((*batch, *shape))
        for index in np.ndindex(batch):
            where = f" in trial {index[0] if len(index) == 1 else index}" if index else ""
            answers[index] = self._one(x[index], shape, where)
        return answers[()]

    def _one(self, x: Array, shape: tuple[int, ...], where: str) -> Array:
        copy = x.copy()
        copy.flags.writeable = False
        try:
            answer = self.call(copy)
        except BaseException as error:
            error.add_note(f"raised by `{self.label}` of {self.what}{where}")
            raise
        name = f"{self.what}: {self.label}"
        expected = f"finite numbers of shape {shape}" if shape else "a finite number"
        try:
            raw = np.asarray(answer)
        except ValueError:  # ragged nested lists
            raise InvalidInput(f"{name}: expected {expected}, got {_describe(answer)}{where}") from None
        if raw.dtype.kind not in "biuf":
            raise InvalidInput(f"{name}: expected {expected}, got {_describe(answer)}{where}")
        if raw.shape != shape:
            raise InvalidInput(f"{name}: expected {expected}, got shape {raw.shape}{where}")
        if not finite(raw):
            culprit = raw[~np.isfinite(raw)][0]
            raise InvalidInput(f"{name}: expected {expected}, got {culprit}{where}")
        return raw.astype(np.float64)[()]

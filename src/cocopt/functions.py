"""What losses and constraints share: quadratic forms, and calls of a user's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cocopt.arrays import Array, ArrayLike, all_finite, as_flag, as_floats, batch_shape, describe
from cocopt.errors import InvalidInput
from cocopt.threads import one_blas_thread
from cocopt.tolerances import SEMIDEFINITE, SYMMETRY

__all__ = ["BlackBox", "as_quadratic", "curvature", "spectrum", "square_root"]


class QuadraticData(NamedTuple):
    """P, q and r of ½xᵀPx + qᵀx + r, their leading axes, and the diagonal of P if its other entries are 0."""

    P: Array
    q: Array
    r: Array
    batch: tuple[int, ...]
    diagonal: Array | None


def as_quadratic(P: ArrayLike, q: ArrayLike, r: ArrayLike) -> QuadraticData:
    """The data of ½xᵀPx + qᵀx + r; P is symmetric up to SYMMETRY."""
    matrix, linear, constant = as_floats("P", P), as_floats("q", q), as_floats("r", r)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise InvalidInput(f"P: expected shape (..., n, n), got {matrix.shape}")
    if linear.ndim == 0 or linear.shape[-1] != matrix.shape[-1]:
        raise InvalidInput(f"q: expected shape (..., {matrix.shape[-1]}) to match P, got {linear.shape}")
    batch = batch_shape(("P", matrix.shape[:-2]), ("q", linear.shape[:-1]), ("r", constant.shape))
    diagonal, transposed = _diagonal(matrix), matrix.swapaxes(-1, -2)
    if diagonal is None and not (matrix == transposed).all():
        gap = np.abs(matrix - transposed)
        if (gap > SYMMETRY * np.abs(matrix).max(axis=(-1, -2), keepdims=True)).any():
            raise InvalidInput(
                f"P: expected a symmetric matrix, got one that differs from its transpose by {gap.max():g}"
            )
    return QuadraticData(matrix, linear, constant, batch, diagonal)


def _diagonal(P: Array) -> Array | None:
    """The diagonal of P, (..., n), if all its other entries are 0; of dense ones only the first row is read."""
    diagonal = P.diagonal(axis1=-2, axis2=-1)
    if P[..., :1, 1:].any() or not (_is_diagonal(P) or np.count_nonzero(P) == np.count_nonzero(diagonal)):
        return None
    return np.ascontiguousarray(diagonal)


def _is_diagonal(P: Array) -> bool:
    """Whether all entries between those of the diagonal are +0; False is no proof (it may be −0, or memory has gaps).

    Integers are counted in a third of the time of floats.
    """
    *batch, n, _ = P.shape
    if not P.flags.c_contiguous:
        return False
    between = P.reshape(*batch, n * n)[..., :-1].reshape(*batch, n - 1, n + 1)[..., 1:]
    return not np.count_nonzero(between.view(np.uint64))


def curvature(name: str, P: Array, x: Array, Px: Array) -> Array:
    """xᵀPx, and an error where it shows that P is not positive semidefinite."""
    value: Array = np.vecdot(x, Px)
    if (value < 0).any():
        size = x.shape[-1] * np.abs(P).max(axis=(-1, -2)) * np.vecdot(x, x)
        if (value < -SEMIDEFINITE * size).any():
            raise InvalidInput(
                f"{name}: P: expected a positive semidefinite matrix, got xᵀPx = {value.min():g} at some x"
            )
    return value


@one_blas_thread
def spectrum(name: str, P: Array) -> tuple[Array, Array]:
    """Eigenvalues (ascending, those below rounding set to 0) and eigenvectors of a positive semidefinite P."""
    values, vectors = np.linalg.eigh(P)
    largest = np.abs(values).max(axis=-1, keepdims=True)
    if (values < -SEMIDEFINITE * largest).any():
        raise InvalidInput(f"{name}: P: expected a positive semidefinite matrix, got the eigenvalue {values.min():g}")
    noise = P.shape[-1] * np.finfo(np.float64).eps * largest
    return np.where(values > noise, values, 0.0), vectors


@one_blas_thread
def square_root(name: str, P: Array) -> Array:
    """A matrix F with FᵀF = P, as many rows as P has rank; upper triangular if P is positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(P), dtype=np.float64).T
    except np.linalg.LinAlgError:
        values, vectors = spectrum(name, P)
        positive = values > 0
        F: Array = np.sqrt(values[positive])[:, None] * vectors[:, positive].T
        return F


class BlackBox:
    """A user's function, called trial by trial or on all trials at once, its results checked.

    It sees read-only copies. An exception of its own passes through unchanged, with a note that names the trial.
    """

    __slots__ = ("call", "label", "vectorized", "what")

    def __init__(self, what: str, label: str, call: Callable[[Array], Any], vectorized: bool) -> None:
        if not callable(call):
            raise InvalidInput(f"{label}: expected a callable, got {describe(call)}")
        self.what, self.label, self.call = what, label, call
        self.vectorized = as_flag("vectorized", vectorized)

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
        except (TypeError, ValueError, OverflowError):  # such as ragged nested lists
            raise InvalidInput(f"{name}: expected {expected}, got {describe(answer)}{where}") from None
        if raw.dtype.kind not in "biuf" or isinstance(answer, np.ma.MaskedArray):
            raise InvalidInput(f"{name}: expected {expected}, got {describe(answer)}{where}")
        if raw.shape != shape:
            raise InvalidInput(f"{name}: expected {expected}, got shape {raw.shape}{where}")
        if not all_finite(raw):
            offending = raw[~np.isfinite(raw)][0]
            raise InvalidInput(f"{name}: expected {expected}, got {offending}{where}")
        return raw.astype(np.float64)[()]

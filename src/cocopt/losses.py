"""Losses f_t, as small immutable objects.

Arrays may carry leading axes, one entry a trial; they broadcast against the leading axes of the point. Contents are
not searched for NaN at construction: a result that is not finite is traced to the argument that caused it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Never

import numpy as np

from cocopt import _terms, kernels
from cocopt._arrays import Array, ArrayLike, as_floats, require_finite, scalar
from cocopt.errors import InvalidInput
from cocopt.kernels import core

__all__ = ["Distance", "Function", "Hinge", "LeastSquares", "Linear", "Logistic", "Loss", "Norm", "Quadratic"]


class Loss(ABC):
    """A convex loss f. A new loss needs `dim`, `batch` and `_value_and_gradient`."""

    __slots__ = ()

    #: the dimension n, or None if any will do
    dim: int | None
    #: the leading axes of the data; () for a single loss
    batch: tuple[int, ...] = ()

    def value(self, x: ArrayLike) -> Array:
        """f(x), shape (...)."""
        return self.value_and_gradient(x)[0]

    def gradient(self, x: ArrayLike) -> Array:
        """A subgradient of f at x, shape (..., n)."""
        return self.value_and_gradient(x)[1]

    def value_and_gradient(self, x: ArrayLike) -> tuple[Array, Array]:
        """f(x) and a subgradient, sharing their common work."""
        points = self._points(x)
        with _terms.quiet():
            value, gradient = self._value_and_gradient(points)
        if not (_terms.finite(value) and _terms.finite(gradient) and _terms.finite(points)):
            self._blame(points)
        return value, gradient

    @property
    def strong_convexity(self) -> float | Array:
        """The largest known m with f − (m/2)‖x‖² convex; one number, or one a trial."""
        return 0.0

    @abstractmethod
    def _value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        """Both, on checked points."""

    def _points(self, x: ArrayLike) -> Array:
        return _terms.points(x, self.dim, self.batch)

    def _blame(self, x: Array) -> Never:
        """Finds the argument that made a result infinite or NaN, and says so."""
        self._require_finite_data()
        require_finite("x", x)
        name = f"losses.{type(self).__name__}"
        raise InvalidInput(f"{name}: the value or gradient is not finite at a finite point; the data may overflow")

    def _require_finite_data(self) -> None:
        for argument, array in self._data():
            require_finite(f"losses.{type(self).__name__}: {argument}", array)

    def _data(self) -> list[tuple[str, Array]]:
        """(argument name, array), for error messages."""
        return []

    def __repr__(self) -> str:
        inner = ", ".join(f"{name} of shape {array.shape}" for name, array in self._data())
        return f"{type(self).__name__}({inner})"


class Norm(Loss):
    """f(x) = ‖H x − y‖, the loss of the paper's regression; not strongly convex.

    The subgradient is Hᵀ(Hx − y)/‖Hx − y‖, and 0 where the residual vanishes.

    Parameters
    ----------
    H : array (..., p, n)
    y : array (..., p)

    Examples
    --------
    >>> from cocopt import losses
    >>> f = losses.Norm([[3.0, 0.0], [0.0, 4.0]], [0.0, 0.0])
    >>> f.value([1.0, 1.0])
    np.float64(5.0)
    >>> f.gradient([1.0, 1.0])
    array([1.8, 3.2])
    """

    __slots__ = ("H", "batch", "dim", "y")

    def __init__(self, H: ArrayLike, y: ArrayLike) -> None:
        rows, right = _regression(H, y)
        self.H, self.y = core(rows), core(right)
        self.batch: tuple[int, ...] = rows.shape[:-2]
        self.dim: int = rows.shape[-1]

    def _value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        value, gradient = kernels.norm_loss(self.H, self.y, core(x))
        return value, gradient

    def _data(self) -> list[tuple[str, Array]]:
        return [("H", self.H), ("y", self.y)]


class LeastSquares(Loss):
    """f(x) = ½‖H x − y‖², with gradient Hᵀ(Hx − y).

    The modulus of strong convexity is λ_min(HᵀH), exact up to rounding (0 if H has dependent columns); it is computed
    when first asked for.

    Parameters
    ----------
    H : array (..., p, n)
    y : array (..., p)

    Examples
    --------
    >>> from cocopt import losses
    >>> f = losses.LeastSquares([[1.0, 0.0], [0.0, 2.0]], [1.0, 0.0])
    >>> f.value([0.0, 1.0])
    np.float64(2.5)
    >>> f.gradient([0.0, 1.0])
    array([-1.,  4.])
    >>> f.strong_convexity
    1.0
    """

    __slots__ = ("H", "_modulus", "batch", "dim", "y")

    def __init__(self, H: ArrayLike, y: ArrayLike) -> None:
        self.H, self.y = _regression(H, y)
        self.batch: tuple[int, ...] = self.H.shape[:-2]
        self.dim: int = self.H.shape[-1]
        self._modulus: float | Array | None = None

    def _value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        residual = np.matvec(self.H, x) - self.y
        return 0.5 * np.vecdot(residual, residual), np.vecmat(residual, self.H)

    @property
    def strong_convexity(self) -> float | Array:
        if self._modulus is None:
            self._require_finite_data()
            p, n = self.H.shape[-2:]
            if p < n:
                least = np.zeros(self.batch)
            else:  # singular values keep the digits that forming HᵀH would lose
                sizes = np.linalg.svd(self.H, compute_uv=False)
                noise = p * np.finfo(np.float64).eps * sizes[..., 0]
                least = np.where(sizes[..., -1] > noise, sizes[..., -1] ** 2, 0.0)
            self._modulus = _one_or_many(least)
        return self._modulus

    def _data(self) -> list[tuple[str, Array]]:
        return [("H", self.H), ("y", self.y)]


class Linear(Loss):
    """f(x) = ⟨c, x⟩, with gradient c.

    Parameters
    ----------
    c : array (..., n)

    Examples
    --------
    >>> from cocopt import losses
    >>> f = losses.Linear([1.0, -2.0])
    >>> f.value([3.0, 1.0])
    np.float64(1.0)
    >>> f.gradient([3.0, 1.0])
    array([ 1., -2.])
    """

    __slots__ = ("batch", "c", "dim")

    def __init__(self, c: ArrayLike) -> None:
        self.c = _vector("c", c)
        self.batch: tuple[int, ...] = self.c.shape[:-1]
        self.dim: int = self.c.shape[-1]

    def _value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        value = np.vecdot(x, self.c)
        return value, _terms.view(self.c, (*value.shape, self.dim))

    def _data(self) -> list[tuple[str, Array]]:
        return [("c", self.c)]


class Quadratic(Loss):
    """f(x) = ½ xᵀP x + ⟨q, x⟩ + r, with gradient P x + q and modulus of strong convexity λ_min(P).

    P must be symmetric, which is checked at construction, and positive semidefinite. Eigenvalues would cost more than
    a round, so they are computed only for `strong_convexity`, at its first use; until then an indefinite P is reported
    when it shows, that is at the first x with xᵀP x < 0.

    Parameters
    ----------
    P : array (..., n, n)
    q : array (..., n)
    r : float or array (...)

    Examples
    --------
    >>> from cocopt import losses
    >>> f = losses.Quadratic([[2.0, 0.0], [0.0, 4.0]], [1.0, 0.0])
    >>> f.value([1.0, 1.0])
    np.float64(4.0)
    >>> f.gradient([1.0, 1.0])
    array([3., 4.])
    >>> f.strong_convexity
    2.0
    """

    __slots__ = ("P", "_modulus", "batch", "dim", "q", "r")

    def __init__(self, P: ArrayLike, q: ArrayLike, r: ArrayLike = 0.0) -> None:
        self.P, self.q, self.r, self.batch = _terms.as_quadratic(P, q, r)
        self.dim: int = self.P.shape[-1]
        self._modulus: float | Array | None = None

    def _value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        Px = np.matvec(self.P, x)
        value = 0.5 * _terms.curvature("losses.Quadratic", self.P, x, Px) + np.vecdot(x, self.q) + self.r
        return value, _terms.spread(Px + self.q, (*value.shape, self.dim))

    @property
    def strong_convexity(self) -> float | Array:
        if self._modulus is None:
            self._require_finite_data()
            self._modulus = _one_or_many(_terms.spectrum("losses.Quadratic", self.P)[0][..., 0])
        return self._modulus

    def _data(self) -> list[tuple[str, Array]]:
        return [("P", self.P), ("q", self.q), ("r", self.r)]


class Distance(Loss):
    """f(x) = ½‖x − center‖², with gradient x − center; strongly convex with modulus 1, exactly.

    Parameters
    ----------
    center : array (..., n)

    Examples
    --------
    >>> from cocopt import losses
    >>> f = losses.Distance([1.0, 0.0])
    >>> f.value([4.0, 4.0])
    np.float64(12.5)
    >>> f.gradient([4.0, 4.0])
    array([3., 4.])
    """

    __slots__ = ("batch", "center", "dim")

    def __init__(self, center: ArrayLike) -> None:
        self.center = _vector("center", center)
        self.batch: tuple[int, ...] = self.center.shape[:-1]
        self.dim: int = self.center.shape[-1]

    def _value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        offset = x - self.center
        return 0.5 * np.vecdot(offset, offset), offset

    @property
    def strong_convexity(self) -> float | Array:
        return 1.0

    def _data(self) -> list[tuple[str, Array]]:
        return [("center", self.center)]


class Hinge(Loss):
    """f(x) = max(0, 1 − v⟨u, x⟩), the loss of the support vector machine.

    The subgradient is −v u where the margin v⟨u, x⟩ is below 1, and 0 elsewhere, the kink included.

    Parameters
    ----------
    u : array (..., n)
        Features.
    v : float or array (...)
        Labels, ±1 or any real numbers.

    Examples
    --------
    >>> from cocopt import losses
    >>> f = losses.Hinge([1.0, 2.0], -1.0)
    >>> f.value([1.0, 0.5])
    np.float64(3.0)
    >>> f.gradient([1.0, 0.5])
    array([1., 2.])
    """

    __slots__ = ("batch", "dim", "u", "v")

    def __init__(self, u: ArrayLike, v: ArrayLike) -> None:
        self.u, self.v, self.batch = _labelled(u, v)
        self.dim: int = self.u.shape[-1]

    def _value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        loss = 1.0 - self.v * np.vecdot(x, self.u)
        slope: Array = -self.v * (loss > 0)
        return np.maximum(loss, 0.0), slope[..., None] * self.u

    def _data(self) -> list[tuple[str, Array]]:
        return [("u", self.u), ("v", self.v)]


class Logistic(Loss):
    """f(x) = log(1 + exp(−v⟨u, x⟩)), with gradient −v u / (1 + exp(v⟨u, x⟩)); neither overflows.

    Parameters
    ----------
    u : array (..., n)
        Features.
    v : float or array (...)
        Labels, ±1 or any real numbers.

    Examples
    --------
    >>> from cocopt import losses
    >>> f = losses.Logistic([1.0, 2.0], 1.0)
    >>> f.value([-1000.0, 0.0])
    np.float64(1000.0)
    >>> f.gradient([0.0, 0.0])
    array([-0.5, -1. ])
    """

    __slots__ = ("batch", "dim", "u", "v")

    def __init__(self, u: ArrayLike, v: ArrayLike) -> None:
        self.u, self.v, self.batch = _labelled(u, v)
        self.dim: int = self.u.shape[-1]

    def _value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        margin = self.v * np.vecdot(x, self.u)
        slope = -self.v * np.exp(-np.logaddexp(0.0, margin))
        return np.logaddexp(0.0, -margin), slope[..., None] * self.u

    def _data(self) -> list[tuple[str, Array]]:
        return [("u", self.u), ("v", self.v)]


class Function(Loss):
    """A loss known by its value and a subgradient alone; the caller vouches for convexity and the modulus.

    Both callables see read-only copies. An exception that they raise passes through, with a note that names the trial.

    Parameters
    ----------
    value, gradient : callable
        x of shape (n,) to a number, and to an array (n,); called trial by trial. With ``vectorized`` they get all
        points (..., n) at once and return shapes (...) and (..., n).
    strong_convexity : float
    vectorized : bool

    Examples
    --------
    >>> from cocopt import losses
    >>> f = losses.Function(lambda x: float(x @ x), lambda x: 2 * x, strong_convexity=2.0)
    >>> f.value([[1.0, 0.0], [3.0, 4.0]])
    array([ 1., 25.])
    >>> f.gradient([3.0, 4.0])
    array([6., 8.])
    """

    __slots__ = ("_gradient", "_modulus", "_value", "dim")

    def __init__(
        self,
        value: Callable[[Array], Any],
        gradient: Callable[[Array], Any],
        strong_convexity: float = 0.0,
        vectorized: bool = False,
    ) -> None:
        self._value = _terms.BlackBox("losses.Function", "value", value, vectorized)
        self._gradient = _terms.BlackBox("losses.Function", "gradient", gradient, vectorized)
        self._modulus = scalar("strong_convexity", strong_convexity, nonnegative=True)
        self.dim = None

    def value(self, x: ArrayLike) -> Array:
        return self._value(self._points(x), ())

    def gradient(self, x: ArrayLike) -> Array:
        points = self._points(x)
        return self._gradient(points, points.shape[-1:])

    def _value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        return self._value(x, ()), self._gradient(x, x.shape[-1:])

    def _points(self, x: ArrayLike) -> Array:
        return require_finite("x", super()._points(x))  # else the callables would be blamed

    @property
    def strong_convexity(self) -> float | Array:
        return self._modulus

    def __repr__(self) -> str:
        return f"Function(value={self._value.call!r}, gradient={self._gradient.call!r})"


def _vector(name: str, value: ArrayLike) -> Array:
    array = as_floats(name, value)
    if array.ndim == 0:
        raise InvalidInput(f"{name}: expected shape (..., n), got ()")
    return array


def _labelled(u: ArrayLike, v: ArrayLike) -> tuple[Array, Array, tuple[int, ...]]:
    features, labels = _vector("u", u), as_floats("v", v)
    return features, labels, _terms.lead(("u", features.shape[:-1]), ("v", labels.shape))


def _regression(H: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    rows, right = as_floats("H", H), as_floats("y", y)
    if rows.ndim < 2:
        raise InvalidInput(f"H: expected shape (..., p, n), got {rows.shape}")
    if right.shape != rows.shape[:-1]:
        raise InvalidInput(f"y: expected shape {rows.shape[:-1]} to match H of shape {rows.shape}, got {right.shape}")
    return rows, right


def _one_or_many(moduli: Array) -> float | Array:
    if moduli.ndim == 0:
        return float(moduli)
    moduli.flags.writeable = False
    return moduli

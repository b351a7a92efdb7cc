"""What every loss f_t offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Never, Self

import numpy as np

from cocopt import html
from cocopt.arrays import (
    Array,
    ArrayLike,
    all_finite,
    as_floats,
    batch_shape,
    check_points,
    describe,
    ignore_fp_warnings,
    require_finite,
)
from cocopt.errors import InvalidInput, NotStorable
from cocopt.losses.second_order import Neighborhood, QuadraticForm, SecondOrder

__all__ = ["Loss", "as_labelled", "as_regression", "as_residual", "as_vector", "one_or_many"]


class Loss(ABC):
    """A convex loss f. A new loss needs `dim`, `batch` and `value_and_gradient_unchecked`."""

    __slots__ = ()

    kind: ClassVar[str] = "loss"
    #: the dimension n, or None if any will do
    dim: int | None
    #: the leading axes of the data; () for a single loss
    batch: tuple[int, ...] = ()
    #: how many axes each of `data_arrays` has beside the leading ones; `trials` needs to know
    data_axes: ClassVar[tuple[int, ...]] = ()

    def value(self, x: ArrayLike) -> Array:
        """f(x), shape (...)."""
        return self.value_and_gradient(x)[0]

    def gradient(self, x: ArrayLike) -> Array:
        """A subgradient of f at x, shape (..., n)."""
        return self.value_and_gradient(x)[1]

    def value_and_gradient(self, x: ArrayLike) -> tuple[Array, Array]:
        """f(x) and a subgradient, sharing their common work."""
        points = self.check_points(x)
        with ignore_fp_warnings():
            value, gradient = self.value_and_gradient_unchecked(points)
            finite = all_finite(value) and all_finite(gradient) and all_finite(points)
        if not finite:
            self.raise_nonfinite(points)
        return value, gradient

    @property
    def strong_convexity(self) -> float | Array:
        """The largest known m with f − (m/2)‖x‖² convex; one number, or one per trial."""
        return 0.0

    @abstractmethod
    def value_and_gradient_unchecked(self, x: Array) -> tuple[Array, Array]:
        """Both, on checked points."""

    def check_points(self, x: ArrayLike) -> Array:
        """Points (..., n) whose leading axes fit those of the data."""
        return check_points(x, self.dim, self.batch)

    def in_domain(self, x: ArrayLike) -> np.bool_ | np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether f(x) is finite, for each point of shape (..., n); True but for losses such as `NegativeLog`.

        Examples
        --------
        >>> from cocopt import losses
        >>> losses.NegativeLog([1.0, 1.0]).in_domain([[0.5, 0.5], [0.0, -1.0]])
        array([ True, False])
        """
        points = self.check_points(x)
        return np.ones(batch_shape(("data", self.batch), ("x", points.shape[:-1])), dtype=bool)[()]

    def raise_nonfinite(self, x: Array) -> Never:
        """Finds the argument that made a result infinite or NaN, and says so."""
        self.require_finite_data()
        require_finite("x", x)
        name = f"losses.{type(self).__name__}"
        raise InvalidInput(f"{name}: the value or gradient is not finite at a finite point; the data may overflow")

    def require_finite_data(self) -> None:
        """Raises an error that names the first argument that is not finite."""
        for argument, array in self.data_arrays():
            require_finite(f"losses.{type(self).__name__}: {argument}", array)

    def data_arrays(self) -> list[tuple[str, Array]]:
        """(argument name, array), for error messages."""
        return []

    def trials(self, index: Any) -> Loss:
        """The loss of some trials only (an index into the leading axes); itself if all trials share it."""
        if self.batch == ():
            return self
        try:
            return self.trials_unchecked(index)
        except InvalidInput:
            raise
        except (IndexError, TypeError, ValueError, OverflowError):
            expected = f"an index into the leading axes {self.batch}"
            raise InvalidInput(f"index: expected {expected}, got {describe(index)}") from None

    def trials_unchecked(self, index: Any) -> Loss:
        """Some trials, of a loss that has leading axes."""
        arrays = dict(self.data_arrays())
        if len(arrays) != len(self.data_axes):
            raise InvalidInput(f"{type(self).__name__} does not say the axes of its data (data_axes)")
        for (name, array), axes in zip(arrays.items(), self.data_axes, strict=True):
            if array.ndim > axes:  # else all trials share it
                own = array.shape[array.ndim - axes :]
                arrays[name] = np.broadcast_to(array, (*self.batch, *own))[index]
        return type(self)(**arrays)

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments: ``type(f)(**f.parameters())`` is f again. A black box has none to store."""
        arrays = dict(self.data_arrays())
        if not arrays:
            raise NotStorable(f"{type(self).__name__} does not say its parameters")
        return arrays

    @classmethod
    def examples(cls) -> list[Self]:
        """Some losses of this class, on which the contract tests are run."""
        return []

    def __repr__(self) -> str:
        inner = ", ".join(f"{name} of shape {array.shape}" for name, array in self.data_arrays())
        return f"{type(self).__name__}({inner})"

    def _repr_html_(self) -> str:
        return html.card(
            type(self).__name__, html.note("a loss", self.dim, self.batch), dict(self.data_arrays()) or {"": repr(self)}
        )

    #: whether f ≥ 0 everywhere
    nonnegative: ClassVar[bool] = False

    def quadratic_form(self, center: Array, count: int) -> QuadraticForm | None:
        """The sum of the first ``count`` rounds as a quadratic function of x − center, exactly; None if it is none.

        See `cocopt.losses.second_order` for the protocol.
        """
        return None

    def second_order(
        self, x: Array, count: int, smoothing: float, exact_kinks: Neighborhood | None = None
    ) -> SecondOrder | None:
        """The sum of the first ``count`` rounds at x, its derivatives and an affine minorant; None if unknown.

        Parameters
        ----------
        x : ndarray (n,)
        count : int
        smoothing : float
            Kinks are smoothed within about this distance, in units of the loss; 0 for not at all.
        exact_kinks : Neighborhood, optional
            Kinks that are to be returned as they are, not smoothed and not part of the derivatives.
        """
        return None

    def __init_subclass__(cls) -> None:
        """A subclass that computes its value anew does not inherit what its parent says about curvature."""
        super().__init_subclass__()
        if "value_and_gradient_unchecked" in vars(cls):
            for name in ("nonnegative", "quadratic_form", "second_order"):
                if name not in vars(cls):
                    setattr(cls, name, getattr(Loss, name))


def as_vector(name: str, value: ArrayLike) -> Array:
    """Vectors (..., n)."""
    array = as_floats(name, value)
    if array.ndim == 0:
        raise InvalidInput(f"{name}: expected shape (..., n), got ()")
    return array


def as_labelled(u: ArrayLike, v: ArrayLike) -> tuple[Array, Array, tuple[int, ...]]:
    """Features, labels, and their leading axes."""
    features, labels = as_vector("u", u), as_floats("v", v)
    return features, labels, batch_shape(("u", features.shape[:-1]), ("v", labels.shape))


def as_residual(
    u: ArrayLike, y: ArrayLike, name: str | None = None, parameter: ArrayLike = 0.0
) -> tuple[Array, Array, Array, tuple[int, ...]]:
    """The data of the residual ⟨u, x⟩ − y, a further parameter of that name, and their leading axes."""
    features, target, further = as_vector("u", u), as_floats("y", y), as_floats(name or "parameter", parameter)
    parts = ("u", features.shape[:-1]), ("y", target.shape), (name or "parameter", further.shape)
    return features, target, further, batch_shape(*parts)


def as_regression(H: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """The data of the residuals H x − y."""
    rows, targets = as_floats("H", H), as_floats("y", y)
    if rows.ndim < 2:
        raise InvalidInput(f"H: expected shape (..., p, n), got {rows.shape}")
    if targets.shape != rows.shape[:-1]:
        raise InvalidInput(f"y: expected shape {rows.shape[:-1]} to match H of shape {rows.shape}, got {targets.shape}")
    return rows, targets


def one_or_many(moduli: Array) -> float | Array:
    """One modulus as a number, several as a read-only array."""
    if moduli.ndim == 0:
        return float(moduli)
    moduli.flags.writeable = False
    return moduli

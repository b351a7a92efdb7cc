"""What every set K offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from cocopt.arrays import Array, ArrayLike, as_floats, as_points, frozen, positive_int, require_finite
from cocopt.cones import Cones
from cocopt.errors import InvalidInput

__all__ = ["ConvexSet", "Polyhedral"]


class Polyhedral(NamedTuple):
    """{x : lower ≤ x ≤ upper, A x ≤ b, the first ``equalities`` rows with equality}; A may have no rows."""

    lower: Array
    upper: Array
    A: Array
    b: Array
    equalities: int = 0


class ConvexSet(ABC):
    """A non-empty closed convex set K in R^n.

    A new set needs `dim`, `project_unchecked` and `violation_unchecked`; `diameter`, `polyhedral` and (where K is
    curved) `cones` make faster methods and more algorithms applicable. Sets are immutable. Points are (..., n): leading
    axes are trials.

    Examples
    --------
    The non-negative orthant, as a set of one's own:

    >>> import cocopt, numpy as np
    >>> from cocopt import constraints
    >>> class Orthant(cocopt.ConvexSet):
    ...     def __init__(self, dim):
    ...         self.dim = dim
    ...
    ...     def project_unchecked(self, point):
    ...         return np.maximum(point, 0.0)
    ...
    ...     def violation_unchecked(self, point):
    ...         return np.maximum(-point, 0.0).max(axis=-1)
    >>> cocopt.project(Orthant(2), constraints.Affine([1.0, 1.0], 1.0), [2.0, 0.5]).round(9)
    array([1., 0.])
    """

    kind: ClassVar[str] = "set"
    #: the dimension n
    dim: int

    def project(self, point: ArrayLike) -> Array:
        """P_K(point) = argmin over x in K of ‖x − point‖, for each point of shape (..., n)."""
        return self.project_unchecked(require_finite("point", as_points("point", point, self.dim)))

    def violation(self, point: ArrayLike) -> Array:
        """How far the worst of the inequalities that define K is violated, as a length; 0 inside. Shape (...)."""
        return self.violation_unchecked(require_finite("point", as_points("point", point, self.dim)))

    def contains(self, point: ArrayLike, tol: float = 1e-9) -> np.bool_ | np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether the violation is at most ``tol`` times the larger of ‖point‖_∞ and the set's own scale."""
        points = require_finite("point", as_points("point", point, self.dim))
        scale = np.maximum(np.abs(points).max(axis=-1), self.scale)
        inside: np.bool_ | np.ndarray[Any, np.dtype[np.bool_]] = self.violation_unchecked(points) <= tol * scale
        return inside

    @abstractmethod
    def project_unchecked(self, point: Array) -> Array:
        """The projection, on checked input; returns points of K bit for bit."""

    @abstractmethod
    def violation_unchecked(self, point: Array) -> Array:
        """The violation, on checked input."""

    @property
    def diameter(self) -> float:
        """max ‖x − y‖ over x, y in K, or an upper bound where the class says so; ``inf`` if unbounded or unknown."""
        return float("inf")

    @property
    def bounded(self) -> bool:
        """Whether the diameter is known to be finite."""
        return bool(np.isfinite(self.diameter))

    @property
    def scale(self) -> float:
        """A typical length of the set's own data, the unit of relative tolerances."""
        return 1.0

    @property
    def conic(self) -> bool:
        """Whether K has a conic form; to know that, its dense matrix (n × n or more) need not be built."""
        return self.polyhedral() is not None or self.cones() is not None

    def cones(self) -> Cones | None:
        """K in conic form, that of a polyhedron made from its rows; None if K is known by its projection alone."""
        polyhedral = self.polyhedral()
        if polyhedral is None:
            return None
        lower, upper, A, b, equalities = polyhedral
        high, low = np.flatnonzero(upper < np.inf), np.flatnonzero(lower > -np.inf)
        bounds = np.zeros((high.size + low.size, self.dim))
        bounds[np.arange(high.size), high] = 1.0
        bounds[np.arange(high.size, len(bounds)), low] = -1.0
        A, b = np.concatenate([A, bounds]), np.concatenate([b, upper[high], -lower[low]])
        kinds = (("zero", equalities), ("nonneg", b.size - equalities))
        return Cones(A, b, np.zeros((b.size, 0)), tuple((kind, size) for kind, size in kinds if size))

    def polyhedral(self) -> Polyhedral | None:
        """K as bounds and rows, or None if it is not a polyhedron (or has too many facets to list)."""
        return None

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments, so that ``type(K)(**K.parameters())`` is K again."""
        raise TypeError(f"{type(self).__name__} does not say its parameters")

    @classmethod
    def examples(cls) -> list[Self]:
        """Some sets of this class, on which the contract tests are run."""
        return []

    def __repr__(self) -> str:
        try:
            inner = ", ".join(f"{k}={_short(v)}" for k, v in self.parameters().items())
        except TypeError:
            inner = f"dim={self.dim}"
        return f"{type(self).__name__}({inner})"


def as_center(center: ArrayLike, dim: int | None) -> Array:
    """The centre as a frozen array (n,), from such an array or from a number and the dimension."""
    middle = require_finite("center", as_floats("center", center))
    if dim is None:
        if middle.ndim == 0:
            raise InvalidInput("dim: expected the dimension, since the centre is a number, got None")
        dim = middle.shape[-1]
    dim = positive_int("dim", dim)
    if middle.shape not in ((), (dim,)):
        raise InvalidInput(f"center: expected a number or shape ({dim},), got shape {middle.shape}")
    return frozen(np.broadcast_to(middle, (dim,)))


def largest(*data: ArrayLike) -> float:
    """The largest magnitude among the data of a set: its scale; 1 if all are zero."""
    return max(float(np.abs(d).max()) for d in data) or 1.0


def rounding(dim: int, size: float) -> float:
    """What rounding alone may add to a violation, for data of this size; less does not count as outside."""
    return float(4 * np.finfo(np.float64).eps * np.sqrt(dim) * size)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 1:
        if (value == value.flat[0]).all():
            return f"{value.flat[0]:g} (shape {value.shape})"
        return f"array of shape {value.shape}"
    return f"{float(value):g}" if isinstance(value, float | np.ndarray) else repr(value)

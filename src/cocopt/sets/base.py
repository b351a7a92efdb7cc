"""What every set K offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from cocopt import html
from cocopt.arrays import (
    Array,
    ArrayLike,
    as_dimension,
    as_floats,
    as_points,
    equal_values,
    frozen,
    require_finite,
    require_moderate,
    scalar,
)
from cocopt.cones import Cones
from cocopt.errors import InvalidInput, NotStorable, ReadOnly
from cocopt.sparse import SparseMatrix

if TYPE_CHECKING:
    from cocopt.sets.polyhedral_oracles import PolyhedralOracles

_LARGE = float(np.finfo(np.float64).max)

__all__ = ["ConvexSet", "Polyhedral"]


class Polyhedral(NamedTuple):
    """{x : lower ≤ x ≤ upper, A x ≤ b, the first ``equalities`` rows with equality}; A may have no rows."""

    lower: Array
    upper: Array
    A: Array
    b: Array
    equalities: int = 0

    def frozen(self) -> Polyhedral:
        """The same with read-only arrays, so that a set can hand it out again and again."""
        return Polyhedral(frozen(self.lower), frozen(self.upper), frozen(self.A), frozen(self.b), self.equalities)


class ConvexSet(ABC):
    """A non-empty closed convex set K in R^n.

    A new set needs `dim`, `project_unchecked` and `violation_unchecked`; `diameter`, `polyhedral` and (where K is
    curved) `cones` make faster methods applicable. Projection-free algorithms need some of
    `minimise_linear_unchecked`, `separate_unchecked`, `center`, `inner_radius` and `outer_radius`; a set with
    `polyhedral` has all of them, by linear programs unless it defines faster ones. A set in a proper affine subspace
    defines `project_direction_unchecked` and `full_dimensional`. Sets are immutable. Points are (..., n): leading axes
    are trials.

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

    def __setattr__(self, name: str, value: Any) -> None:
        if name[0] != "_" and name in self.__dict__:
            raise ReadOnly(self, name)
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        """Whether the other is of the same class with the same arguments; a set that cannot say them equals itself."""
        if self is other or type(self) is not type(other):
            return self is other if isinstance(other, ConvexSet) else NotImplemented
        try:
            return equal_values(self.parameters(), other.parameters())
        except TypeError:  # it cannot say its arguments
            return False

    def __hash__(self) -> int:
        return hash((type(self), self.dim))

    def project(self, point: ArrayLike) -> Array:
        """P_K(point) = argmin over x in K of ‖x − point‖, for each point of shape (..., n)."""
        return self.project_unchecked(require_moderate("point", as_points("point", point, self.dim)))

    def violation(self, point: ArrayLike) -> Array:
        """How far the worst of the inequalities that define K is violated, as a length; 0 inside. Shape (...)."""
        return self.violation_unchecked(require_moderate("point", as_points("point", point, self.dim)))

    def contains(self, point: ArrayLike, tol: float = 1e-9) -> np.bool_ | np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether the violation is at most ``tol`` times the larger of ‖point‖_∞ and the set's own scale."""
        points = require_moderate("point", as_points("point", point, self.dim))
        scale = np.maximum(np.abs(points).max(axis=-1), self.scale)
        tolerance = np.minimum(scalar("tol", tol, nonnegative=True), _LARGE / np.maximum(scale, 1.0)) * scale
        inside: np.bool_ | np.ndarray[Any, np.dtype[np.bool_]] = self.violation_unchecked(points) <= tolerance
        return inside

    def minimise_linear(self, direction: ArrayLike) -> Array:
        """argmin over x in K of ⟨direction, x⟩, for each direction of shape (..., n): the linear minimiser.

        Of several minimisers always the same one is returned; a zero direction has some point of K.

        Raises
        ------
        InvalidInput
            If K is unbounded in such a direction, or has no linear minimiser.

        Examples
        --------
        >>> from cocopt import Ball, Simplex
        >>> Simplex(3).minimise_linear([[3.0, 1.0, 2.0], [0.0, 0.0, -1.0]])
        array([[0., 1., 0.],
               [0., 0., 1.]])
        >>> Ball(0, 2.0, dim=2).minimise_linear([3.0, -4.0])
        array([-1.2,  1.6])
        """
        given = require_finite("direction", as_points("direction", direction, self.dim))
        size = np.abs(given).max(axis=-1, keepdims=True)
        extreme = (size > 1e100) | ((size > 0.0) & (size < 1e-100))  # whose squares overflow or underflow
        return self.minimise_linear_unchecked(given / np.where(extreme, size, 1.0) if extreme.any() else given)

    def separate(self, point: ArrayLike) -> Array:
        """Normals n with ⟨n, point − z⟩ > 0 for all z in K, of shape (..., n); 0 for points of K.

        The hyperplane {x : ⟨n, x − point⟩ = 0} separates the point from K. A violation within rounding counts as none.
        No projection is computed. The length of a normal has no meaning. For a point of the affine hull of K,
        ``project_direction(n)`` separates too, and is orthogonal to no direction of the hull.

        Examples
        --------
        >>> from cocopt import Ball, Simplex
        >>> Ball(0, 1.0, dim=2).separate([[3.0, 4.0], [0.0, 0.5]])
        array([[3., 4.],
               [0., 0.]])
        >>> Simplex(2).separate([1.5, -0.5])
        array([ 0., -1.])
        """
        return self.separate_unchecked(require_moderate("point", as_points("point", point, self.dim)))

    def project_direction(self, vector: ArrayLike) -> Array:
        """P_V vector, where V is the direction space of the affine hull of K, {λ(x − y) : x, y in K}.

        For x, y in K and any c, ⟨c, x − y⟩ = ⟨P_V c, x − y⟩: only this part of a gradient matters on K. A set that does
        not define it returns the vector itself, for which this is true as well.

        Examples
        --------
        >>> from cocopt import Box, Simplex
        >>> Simplex(3).project_direction([1.0, 2.0, 6.0])
        array([-2., -1.,  3.])
        >>> Box([0.0, 1.0], [1.0, 1.0]).project_direction([5.0, 5.0])
        array([5., 0.])
        """
        return self.project_direction_unchecked(require_moderate("vector", as_points("vector", vector, self.dim)))

    def project_affine_hull(self, point: ArrayLike) -> Array:
        """The point of the affine hull of K nearest to ``point``: c + P_V(point − c), c the centre.

        This is linear algebra, no projection onto K; ``point`` itself where K is full-dimensional.

        Examples
        --------
        >>> from cocopt import Simplex
        >>> Simplex(2).project_affine_hull([3.0, 0.0])
        array([ 2., -1.])
        """
        return self.project_affine_hull_unchecked(require_moderate("point", as_points("point", point, self.dim)))

    @abstractmethod
    def project_unchecked(self, point: Array) -> Array:
        """The projection, on checked input; returns points of K bit for bit."""

    @abstractmethod
    def violation_unchecked(self, point: Array) -> Array:
        """The violation, on checked input."""

    def minimise_linear_unchecked(self, direction: Array) -> Array:
        """The linear minimiser, on checked input."""
        return self._require_oracles("minimise_linear_unchecked").minimise_linear(direction)

    def separate_unchecked(self, point: Array) -> Array:
        """The separating normals, on checked input."""
        return self._require_oracles("separate_unchecked").separate(point)

    def project_direction_unchecked(self, vector: Array) -> Array:
        """P_V vector, on checked input; may return the same array."""
        return vector if self.polyhedral_oracles is None else self.polyhedral_oracles.hull.along(vector)

    def project_affine_hull_unchecked(self, point: Array) -> Array:
        """The nearest point of the affine hull, on checked input; may return the same array."""
        if self.full_dimensional:
            return point
        return self.center + self.project_direction_unchecked(point - self.center)

    @cached_property
    def full_dimensional(self) -> bool:
        """Whether P_V is the identity, so that `project_direction` may be left out; True if nothing is known."""
        return self.polyhedral_oracles is None or len(self.polyhedral_oracles.hull.Q) == 0

    @cached_property
    def center(self) -> Array:
        """The point c to which `inner_radius` and `outer_radius` refer; of a polyhedron the Chebyshev centre.

        Examples
        --------
        >>> from cocopt import Simplex
        >>> K = Simplex(4)
        >>> K.center, round(K.inner_radius, 6), round(K.outer_radius, 6)
        (array([0.25, 0.25, 0.25, 0.25]), 0.288675, 0.866025)
        """
        return self._require_oracles("center").center

    @cached_property
    def inner_radius(self) -> float:
        """r with {x in the affine hull of K : ‖x − c‖ ≤ r} ⊂ K, c the `center`; 0 if K is a single point.

        It is finite, even if K contains balls of any size.
        """
        return self._require_oracles("inner_radius").inner_radius

    @cached_property
    def outer_radius(self) -> float:
        """R with ‖x − c‖ ≤ R for all x in K, c the `center`; ``inf`` if K is unbounded.

        The least one, except for polyhedra, where it refers to the bounding box.
        """
        return self._require_oracles("outer_radius").outer_radius

    @cached_property
    def polyhedral_oracles(self) -> PolyhedralOracles | None:
        """What follows from `polyhedral` by linear programs, each solved on first use; None without it."""
        if self.polyhedral() is None:
            return None
        from cocopt.sets.polyhedral_oracles import PolyhedralOracles

        return PolyhedralOracles(self)

    def _require_oracles(self, name: str) -> PolyhedralOracles:
        if self.polyhedral_oracles is None:
            raise InvalidInput(f"K: expected a set that defines {name}, got {self!r}, whose class does not")
        return self.polyhedral_oracles

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
        """A typical length of the set's own data, the unit of relative tolerances; 1 if there is none."""
        return 1.0

    @property
    def sized(self) -> bool:
        """Whether the data have a length, the scale. A cone has none, nor has a class that does not define `scale`."""
        return type(self).scale is not ConvexSet.scale

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
        signs, columns = np.repeat([1.0, -1.0], [high.size, low.size]), np.concatenate([high, low])
        bounds = SparseMatrix(signs, columns, np.arange(signs.size + 1), self.dim)
        rows, b = SparseMatrix.stacked([SparseMatrix.of(A), bounds]), np.concatenate([b, upper[high], -lower[low]])
        kinds = (("zero", equalities), ("nonneg", b.size - equalities))
        return Cones(rows, b, np.zeros((b.size, 0)), tuple((kind, size) for kind, size in kinds if size))

    @cached_property
    def conic_form(self) -> Cones | None:
        """`cones`, made once: sets are immutable."""
        return self.cones()

    def polyhedral(self) -> Polyhedral | None:
        """K as bounds and rows, or None if it is not a polyhedron (or has too many facets to list)."""
        return None

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments, so that ``type(K)(**K.parameters())`` is K again."""
        raise NotStorable(f"{type(self).__name__} does not say its parameters")

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

    def _repr_html_(self) -> str:
        try:
            arguments = {name: value for name, value in self.parameters().items() if name != "dim"}
        except TypeError:  # it does not say
            arguments = {}
        return html.card(type(self).__name__, f"a set of dimension {self.dim}, diameter {self.diameter:.6g}", arguments)


def as_center(center: ArrayLike, dim: int | None) -> Array:
    """The centre as a frozen array (n,), from such an array or from a number and the dimension."""
    middle = require_finite("center", as_floats("center", center))
    if dim is None:
        if middle.ndim == 0:
            raise InvalidInput("dim: expected the dimension, since the centre is a number, got None")
        dim = middle.shape[-1]
    dim = as_dimension("dim", dim)
    if middle.shape not in ((), (dim,)):
        raise InvalidInput(f"center: expected a number or shape ({dim},), got shape {middle.shape}")
    return frozen(np.broadcast_to(middle, (dim,)))


def largest(*data: ArrayLike) -> float:
    """The largest magnitude among the data of a set: its scale; 1 if all are zero."""
    return max(float(np.abs(d).max()) for d in data) or 1.0


def rounding(dim: int, size: float) -> float:
    """What rounding alone may add to a violation, for data of this size; less does not count as outside."""
    return float(4 * np.finfo(np.float64).eps * np.sqrt(dim) * size)


def unit_vectors(vectors: Array) -> Array:
    """v/‖v‖ for each vector (..., n), of any size; 0 for a zero vector."""
    size = np.abs(vectors).max(axis=-1, keepdims=True)  # first, lest squares overflow or vanish
    scaled = vectors / np.where(size > 0.0, size, 1.0)
    units: Array = scaled / np.maximum(np.linalg.norm(scaled, axis=-1, keepdims=True), 1.0)
    return units


def exceeds_rounding(K: ConvexSet, violation: Array, point: Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether points are outside of a bounded K by more than rounding, of shape (..., 1)."""
    size = np.maximum(np.abs(point).max(axis=-1), K.scale)
    outside: np.ndarray[Any, np.dtype[np.bool_]] = np.asarray(violation > rounding(K.dim, 1.0) * size)[..., None]
    return outside


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 1:
        if (value == value.flat[0]).all():
            return f"{value.flat[0]:g} (shape {value.shape})"
        return f"array of shape {value.shape}"
    return f"{float(value):g}" if isinstance(value, float | np.ndarray) else repr(value)

"""Constraints g_t(x) ≤ 0, as small immutable objects.

A constraint has one or several *rows* g_i; g = max_i g_i. Arrays may carry leading axes, one entry a trial;
they broadcast against the leading axes of the point. Contents are not searched for NaN at construction (that would cost
more than a round): a result that is not finite is traced to the argument that caused it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from cocopt import _terms, kernels
from cocopt._arrays import Array, ArrayLike, _describe, as_floats, require_finite
from cocopt.cones import Cones, stack
from cocopt.errors import InvalidInput
from cocopt.kernels import core

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["Affine", "Constraint", "Function", "NormBall", "Quadratic", "SecondOrder", "Stack", "from_cvxpy"]


class Constraint(ABC):
    """A convex constraint g(x) = max_i g_i(x) ≤ 0.

    A new constraint needs `dim`, `batch`, `row_count`, `_rows` and `_jacobian`; `cones` opens the exact rungs of
    [`cocopt.project`][], without it cutting planes are used.
    """

    __slots__ = ()

    #: the dimension n, or None if any will do
    dim: int | None
    #: the leading axes of the data; () for a single constraint
    batch: tuple[int, ...] = ()
    #: the number of rows M
    row_count: int = 1

    def rows(self, x: ArrayLike) -> Array:
        """(g_1(x), …, g_M(x)), shape (..., M); −inf for a row that is switched off by b = +inf."""
        points = self._points(x)
        with _terms.quiet():
            values = self._rows(points)
        if not _terms.finite(values):
            self._require_finite_data()  # −inf must come from an idle row, not from A or x
            require_finite("x", points)
            if not (values < np.inf).all():
                self._blame(points)
        return values

    def value(self, x: ArrayLike) -> Array:
        """g(x) = max_i g_i(x), shape (...)."""
        worst: Array = self.rows(x).max(axis=-1)
        return worst

    def jacobian(self, x: ArrayLike) -> Array:
        """A subgradient of each row, shape (..., M, n)."""
        points = self._points(x)
        with _terms.quiet():
            jacobian = self._jacobian(points)
        if not (_terms.finite(jacobian) and _terms.finite(points)):
            self._blame(points)
        return jacobian

    def gradient(self, x: ArrayLike) -> Array:
        """A subgradient of g: that of the largest row, the first one on ties. Shape (..., n)."""
        points = self._points(x)
        jacobian = self.jacobian(points)
        if self.row_count == 1:
            return jacobian[..., 0, :]
        worst = self.rows(points).argmax(axis=-1)
        if worst.ndim == 0:
            gradient: Array = jacobian[worst]
            return gradient
        jacobian = np.broadcast_to(jacobian, (*worst.shape, *jacobian.shape[-2:]))
        return np.take_along_axis(jacobian, worst[..., None, None], axis=-2)[..., 0, :]

    @abstractmethod
    def _rows(self, x: Array) -> Array:
        """The rows, on checked points."""

    def _violation(self, x: Array) -> Array:
        """max(0, max_i g_i(x))."""
        violation: Array = np.maximum(self._rows(x).max(axis=-1), 0.0)
        return violation

    @abstractmethod
    def _jacobian(self, x: Array) -> Array:
        """The rows' subgradients, on checked points."""

    def magnitude(self, x: Array) -> Array:
        """The size of the terms that make up each row at x, shape (..., M): the unit of relative violations."""
        return np.ones((*x.shape[:-1], self.row_count))

    def affine(self) -> tuple[Array, Array] | None:
        """(A, b) with shapes (..., M, n) and (..., M) if every row is affine, else None."""
        return None

    @property
    def conic(self) -> bool:
        """Whether there is a conic form; to know that, its dense matrix (n × n or more) need not be built."""
        return self.cones() is not None

    def cones(self) -> Cones | None:
        """The constraint in conic form, or None for a black box. Only for a single constraint (``batch == ()``)."""
        return None

    def cones_near(self, center: Array, size: float) -> Cones | None:
        """As `cones`, in the numbers that keep most digits where x is of that size and near the center."""
        return self.cones()

    def trials(self, index: Any) -> Constraint:
        """The constraint of some trials only (an index into the leading axes); itself if all trials share it."""
        if self.batch == ():
            return self
        return self._trials(index)

    def _trials(self, index: Any) -> Constraint:
        raise TypeError(f"{type(self).__name__} has no leading axes")

    def select(self, row: ArrayLike) -> Constraint:
        """One row of the constraint alone: row is an index, or one index a trial (shape ``batch``)."""
        if self.row_count == 1:
            return self
        return self._select(np.asarray(row))

    def _select(self, row: Any) -> Constraint:
        return _Row(self, row)

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments: ``type(g)(**g.parameters())`` is g again. A black box cannot say them."""
        raise TypeError(f"{type(self).__name__} does not say its parameters")

    def _points(self, x: ArrayLike) -> Array:
        return _terms.points(x, self.dim, self.batch)

    def _blame(self, x: Array) -> Never:
        """Finds the argument that made a result infinite or NaN, and says so."""
        self._require_finite_data()
        require_finite("x", x)
        name = f"constraints.{type(self).__name__}"
        raise InvalidInput(f"{name}: the value or gradient is not finite at a finite point; the data may overflow")

    def _require_finite_data(self) -> None:
        for argument, array, infinities in self._data():
            require_finite(f"constraints.{type(self).__name__}: {argument}", array, infinities=infinities)

    def _require_single(self) -> None:
        if self.batch:
            name = f"constraints.{type(self).__name__}"
            raise InvalidInput(f"{name}: cones: expected a single constraint, got leading axes {self.batch}")

    def _data(self) -> list[tuple[str, Array, bool]]:
        """(argument name, array, whether it may be infinite), for error messages."""
        return []

    def __repr__(self) -> str:
        inner = ", ".join(f"{name} of shape {array.shape}" for name, array, _ in self._data())
        return f"{type(self).__name__}({inner})"


class Affine(Constraint):
    """The rows g_i(x) = ⟨a_i, x⟩ − b_i, in short A x ≤ b.

    Parameters
    ----------
    A : array (..., M, n), or (n,) for a single row
    b : array (..., M), or a number for a single row
        b_i = +inf switches row i off.

    Examples
    --------
    >>> from cocopt import constraints
    >>> g = constraints.Affine([[1.0, 1.0], [1.0, -1.0]], [1.0, 0.5])
    >>> g.rows([1.0, 0.25])
    array([0.25, 0.25])
    >>> g.gradient([1.0, 0.0])
    array([ 1., -1.])
    """

    __slots__ = ("A", "b", "batch", "dim", "row_count")

    def __init__(self, A: ArrayLike, b: ArrayLike) -> None:
        rows, right = as_floats("A", A), as_floats("b", b)
        if rows.ndim < 2:
            if rows.ndim == 0:
                raise InvalidInput("A: expected shape (..., M, n) or (n,), got ()")
            if right.shape not in ((), (1,)):
                raise InvalidInput(f"b: expected a number, since A is a single row, got shape {right.shape}")
            rows, right = rows[None, :], right.reshape(1)
        if right.shape != rows.shape[:-1]:
            raise InvalidInput(f"b: expected shape {rows.shape[:-1]} to match A {rows.shape}, got {right.shape}")
        self.A, self.b = rows, right
        self.batch: tuple[int, ...] = rows.shape[:-2]
        self.row_count: int = rows.shape[-2]
        self.dim: int = rows.shape[-1]

    def _rows(self, x: Array) -> Array:
        rows: Array = kernels.affine_rows(core(self.A), core(self.b), core(x))
        return rows

    def _violation(self, x: Array) -> Array:
        worst: Array = kernels.affine_violation(core(self.A), core(self.b), core(x))
        return worst

    def _jacobian(self, x: Array) -> Array:
        return _terms.view(self.A, (*_lead(self, x), *self.A.shape[-2:]))

    def magnitude(self, x: Array) -> Array:
        return np.maximum(_norm(self.A) * _norm(x)[..., None], np.abs(_finite_part(self.b, np.inf)))

    def affine(self) -> tuple[Array, Array]:
        return self.A, self.b

    @property
    def conic(self) -> bool:
        return True

    def cones(self) -> Cones:
        self._require_single()
        self._require_finite_data()
        active = self.b < np.inf
        m = int(active.sum())
        return Cones(self.A[active], self.b[active], np.eye(self.row_count)[active], (("nonneg", m),) if m else ())

    def parameters(self) -> dict[str, Any]:
        return {"A": self.A, "b": self.b}

    def _trials(self, index: Any) -> Affine:
        return Affine(self.A[index], self.b[index])

    def _select(self, row: Any) -> Affine:
        if row.ndim == 0:
            return Affine(self.A[..., row, :][..., None, :], self.b[..., row][..., None])
        A = np.broadcast_to(self.A, (*row.shape, *self.A.shape[-2:]))
        b = np.broadcast_to(self.b, (*row.shape, self.row_count))
        return Affine(
            np.take_along_axis(A, row[..., None, None], axis=-2),
            np.take_along_axis(b, row[..., None], axis=-1),
        )

    def _data(self) -> list[tuple[str, Array, bool]]:
        return [("A", self.A, False), ("b", _finite_part(self.b, np.inf), False)]


class NormBall(Constraint):
    """g(x) = ‖x − center‖ − radius, with subgradient (x − center)/‖x − center‖, and 0 at the center.

    A negative radius is legal: then no x satisfies the constraint.

    Parameters
    ----------
    center : array (..., n)
    radius : float or array (...)
        +inf switches the constraint off.

    Examples
    --------
    >>> from cocopt import constraints
    >>> g = constraints.NormBall([1.0, 0.0], 2.0)
    >>> g.value([4.0, 4.0])
    np.float64(3.0)
    >>> g.gradient([4.0, 4.0])
    array([0.6, 0.8])
    """

    __slots__ = ("batch", "center", "dim", "radius")

    def __init__(self, center: ArrayLike, radius: ArrayLike) -> None:
        self.center, self.radius = as_floats("center", center), as_floats("radius", radius)
        if self.center.ndim == 0:
            raise InvalidInput("center: expected shape (..., n), got ()")
        self.batch: tuple[int, ...] = _terms.lead(("center", self.center.shape[:-1]), ("radius", self.radius.shape))
        self.dim: int = self.center.shape[-1]

    def _rows(self, x: Array) -> Array:
        return (_norm(x - self.center) - self.radius)[..., None]

    def _jacobian(self, x: Array) -> Array:
        unit = _unit(x - self.center)
        return _terms.spread(unit, (*_lead(self, x), self.dim))[..., None, :]

    def magnitude(self, x: Array) -> Array:
        radius = np.abs(_finite_part(self.radius, np.inf))
        return np.maximum(np.maximum(_norm(x), _norm(self.center)), radius)[..., None]

    @property
    def conic(self) -> bool:
        return True

    def cones(self) -> Cones:
        """(radius + t, x − center) in the second-order cone."""
        self._require_single()
        self._require_finite_data()
        if self.radius == np.inf:
            return _idle(self.dim)
        A = np.concatenate([np.zeros((1, self.dim)), -np.eye(self.dim)])
        return Cones(A, np.append(self.radius, -self.center), _first(self.dim + 1), (("soc", self.dim + 1),))

    def parameters(self) -> dict[str, Any]:
        return {"center": self.center, "radius": self.radius}

    def _trials(self, index: Any) -> NormBall:
        return NormBall(*_pick(self.batch, index, (self.center, 1), (self.radius, 0)))

    def _data(self) -> list[tuple[str, Array, bool]]:
        return [("center", self.center, False), ("radius", _finite_part(self.radius, np.inf), False)]


class Quadratic(Constraint):
    """g(x) = ½ xᵀP x + ⟨q, x⟩ + r, with gradient P x + q.

    P must be symmetric, which is checked at construction, and positive semidefinite, which is checked by its
    eigenvalues in `cones`, and until then reported when it shows, that is at the first x with xᵀP x < 0.

    Parameters
    ----------
    P : array (..., n, n)
    q : array (..., n)
    r : float or array (...)
        −inf switches the constraint off.

    Examples
    --------
    >>> from cocopt import constraints
    >>> g = constraints.Quadratic([[2.0, 0.0], [0.0, 4.0]], [1.0, 0.0], -1.0)
    >>> g.value([1.0, 1.0])
    np.float64(3.0)
    >>> g.gradient([1.0, 1.0])
    array([3., 4.])
    """

    __slots__ = ("P", "batch", "dim", "q", "r")

    def __init__(self, P: ArrayLike, q: ArrayLike, r: ArrayLike) -> None:
        self.P, self.q, self.r, self.batch = _terms.as_quadratic(P, q, r)
        self.dim: int = self.P.shape[-1]

    def _rows(self, x: Array) -> Array:
        curvature = _terms.curvature("constraints.Quadratic", self.P, x, np.matvec(self.P, x))
        value: Array = 0.5 * curvature + np.vecdot(x, self.q) + self.r
        return value[..., None]

    def _jacobian(self, x: Array) -> Array:
        gradient = np.matvec(self.P, x) + self.q
        return _terms.spread(gradient, (*_lead(self, x), self.dim))[..., None, :]

    def magnitude(self, x: Array) -> Array:
        size = _norm(x)
        P: Array = np.linalg.norm(self.P, axis=(-2, -1))
        return ((0.5 * P * size + _norm(self.q)) * size + np.abs(_finite_part(self.r, -np.inf)))[..., None]

    @property
    def conic(self) -> bool:
        return True

    def cones(self) -> Cones:
        return self.cones_near(np.zeros(self.dim), 1.0)

    def cones_near(self, center: Array, size: float) -> Cones:
        """½‖F(x − c)‖² ≤ s with P = FᵀF, s = t − ⟨Pc + q, x − c⟩ − g(c), c the center.

        That is (s/κ + 1, s/κ − 1, √(2/κ) F(x − c)) in the second-order cone. Any κ > 0 gives the same set; rounding
        spoils it by a factor max(s/κ, κ/s).
        """
        self._require_single()
        self._require_finite_data()
        if self.r == -np.inf:
            return _idle(self.dim)
        eigenvalues, vectors = _terms.spectrum("constraints.Quadratic", self.P)
        positive = eigenvalues > 0
        if not positive.any():
            return Cones(self.q[None, :], -self.r.reshape(1), np.ones((1, 1)), (("nonneg", 1),))
        F = np.sqrt(eigenvalues[positive])[:, None] * vectors[:, positive].T
        q, r = self.P @ center + self.q, float(self._rows(center)[0])
        kappa = _balance(float(eigenvalues[-1]), float(q @ q), abs(r), size)
        A = np.vstack([q / kappa, q / kappa, -np.sqrt(2.0 / kappa) * F])
        b = np.concatenate([[1.0 - r / kappa, -1.0 - r / kappa], np.zeros(len(F))]) + A @ center
        E = np.zeros((len(A), 1))
        E[:2] = 1.0 / kappa
        return Cones(A, b, E, (("soc", len(A)),))

    def parameters(self) -> dict[str, Any]:
        return {"P": self.P, "q": self.q, "r": self.r}

    def _trials(self, index: Any) -> Quadratic:
        return Quadratic(*_pick(self.batch, index, (self.P, 2), (self.q, 1), (self.r, 0)))

    def _data(self) -> list[tuple[str, Array, bool]]:
        return [("P", self.P, False), ("q", self.q, False), ("r", _finite_part(self.r, -np.inf), False)]


class SecondOrder(Constraint):
    """g(x) = ‖A x + b‖ − ⟨c, x⟩ − d, with subgradient Aᵀ(Ax + b)/‖Ax + b‖ − c, and −c where A x + b vanishes.

    Parameters
    ----------
    A : array (..., p, n)
    b : array (..., p)
    c : array (..., n)
    d : float or array (...)
        +inf switches the constraint off.

    Examples
    --------
    >>> from cocopt import constraints
    >>> g = constraints.SecondOrder([[3.0, 0.0], [0.0, 4.0]], [0.0, 0.0], [1.0, 1.0], 1.0)
    >>> g.value([1.0, 1.0])
    np.float64(2.0)
    >>> g.gradient([1.0, 1.0])
    array([0.8, 2.2])
    """

    __slots__ = ("A", "b", "batch", "c", "d", "dim")

    def __init__(self, A: ArrayLike, b: ArrayLike, c: ArrayLike, d: ArrayLike) -> None:
        self.A, self.b = as_floats("A", A), as_floats("b", b)
        self.c, self.d = as_floats("c", c), as_floats("d", d)
        if self.A.ndim < 2:
            raise InvalidInput(f"A: expected shape (..., p, n), got {self.A.shape}")
        p, n = self.A.shape[-2:]
        for name, array, size in (("b", self.b, p), ("c", self.c, n)):
            if array.ndim == 0 or array.shape[-1] != size:
                raise InvalidInput(f"{name}: expected shape (..., {size}) to match A {self.A.shape}, got {array.shape}")
        parts = ("A", self.A.shape[:-2]), ("b", self.b.shape[:-1]), ("c", self.c.shape[:-1]), ("d", self.d.shape)
        self.batch: tuple[int, ...] = _terms.lead(*parts)
        self.dim: int = n

    def _rows(self, x: Array) -> Array:
        value: Array = _norm(np.matvec(self.A, x) + self.b) - np.vecdot(x, self.c) - self.d
        return value[..., None]

    def _jacobian(self, x: Array) -> Array:
        gradient = np.vecmat(_unit(np.matvec(self.A, x) + self.b), self.A) - self.c
        return _terms.spread(gradient, (*_lead(self, x), self.dim))[..., None, :]

    def magnitude(self, x: Array) -> Array:
        A: Array = np.linalg.norm(self.A, axis=(-2, -1))
        return ((A + _norm(self.c)) * _norm(x) + _norm(self.b) + np.abs(_finite_part(self.d, np.inf)))[..., None]

    @property
    def conic(self) -> bool:
        return True

    def cones(self) -> Cones:
        """(⟨c, x⟩ + d + t, A x + b) in the second-order cone."""
        self._require_single()
        self._require_finite_data()
        if self.d == np.inf:
            return _idle(self.dim)
        size = len(self.b) + 1
        return Cones(-np.vstack([self.c, self.A]), np.append(self.d, self.b), _first(size), (("soc", size),))

    def parameters(self) -> dict[str, Any]:
        return {"A": self.A, "b": self.b, "c": self.c, "d": self.d}

    def _trials(self, index: Any) -> SecondOrder:
        return SecondOrder(*_pick(self.batch, index, (self.A, 2), (self.b, 1), (self.c, 1), (self.d, 0)))

    def _data(self) -> list[tuple[str, Array, bool]]:
        d = _finite_part(self.d, np.inf)
        return [("A", self.A, False), ("b", self.b, False), ("c", self.c, False), ("d", d, False)]


class Function(Constraint):
    """A constraint known by its value and a subgradient alone; the caller vouches for convexity.

    Both callables see read-only copies. An exception that they raise passes through, with a note that names the trial.

    Parameters
    ----------
    value, gradient : callable
        x of shape (n,) to a number, and to an array (n,); called trial by trial. With ``vectorized`` they get all
        points (..., n) at once and return shapes (...) and (..., n).
    vectorized : bool

    Examples
    --------
    >>> from cocopt import constraints
    >>> g = constraints.Function(lambda x: float(x @ x) - 1.0, lambda x: 2 * x)
    >>> g.value([[1.0, 0.0], [3.0, 4.0]])
    array([ 0., 24.])
    >>> g.gradient([3.0, 4.0])
    array([6., 8.])
    """

    __slots__ = ("_gradient", "_value", "dim")

    def __init__(
        self, value: Callable[[Array], Any], gradient: Callable[[Array], Any], vectorized: bool = False
    ) -> None:
        self._value = _terms.BlackBox("constraints.Function", "value", value, vectorized)
        self._gradient = _terms.BlackBox("constraints.Function", "gradient", gradient, vectorized)
        self.dim = None

    def _rows(self, x: Array) -> Array:
        return self._value(x, ())[..., None]

    def _jacobian(self, x: Array) -> Array:
        return self._gradient(x, x.shape[-1:])[..., None, :]

    def _points(self, x: ArrayLike) -> Array:
        return require_finite("x", super()._points(x))  # else the callables would be blamed

    def __repr__(self) -> str:
        return f"Function(value={self._value.call!r}, gradient={self._gradient.call!r})"


class Stack(Constraint):
    """The rows of several constraints, one after the other; they may be of mixed kinds, their leading axes broadcast.

    It is affine, or has `cones`, if all its members are or have.

    Parameters
    ----------
    members : sequence of Constraint

    Examples
    --------
    >>> from cocopt import constraints
    >>> g = constraints.Stack([constraints.Affine([1.0, 0.0], 2.0), constraints.NormBall([0.0, 0.0], 1.0)])
    >>> g.rows([3.0, 4.0])
    array([1., 4.])
    >>> g.gradient([3.0, 4.0])
    array([0.6, 0.8])
    """

    __slots__ = ("batch", "dim", "members", "row_count")

    def __init__(self, members: Sequence[Constraint]) -> None:
        self.members = tuple(members)
        if not self.members:
            raise InvalidInput("members: expected at least one constraint, got none")
        for i, member in enumerate(self.members):
            if not isinstance(member, Constraint):
                raise InvalidInput(f"members: expected constraints, got {_describe(member)} at index {i}")
        dims = [member.dim for member in self.members if member.dim is not None]
        if len(set(dims)) > 1:
            raise InvalidInput(f"members: expected the same dimension, got {', '.join(map(str, dims))}")
        self.dim: int | None = dims[0] if dims else None
        self.batch: tuple[int, ...] = _terms.lead(*((f"members[{i}]", m.batch) for i, m in enumerate(self.members)))
        self.row_count: int = sum(member.row_count for member in self.members)

    def _rows(self, x: Array) -> Array:
        lead = _lead(self, x)
        parts = [_terms.spread(m._rows(x), (*lead, m.row_count)) for m in self.members]
        return np.concatenate(parts, axis=-1)

    def _jacobian(self, x: Array) -> Array:
        lead = _lead(self, x)
        parts = [_terms.spread(m._jacobian(x), (*lead, m.row_count, x.shape[-1])) for m in self.members]
        return np.concatenate(parts, axis=-2)

    def magnitude(self, x: Array) -> Array:
        lead = _lead(self, x)
        parts = [_terms.spread(m.magnitude(x), (*lead, m.row_count)) for m in self.members]
        return np.concatenate(parts, axis=-1)

    def affine(self) -> tuple[Array, Array] | None:
        A, b = [], []
        for member in self.members:
            rows = member.affine()
            if rows is None:
                return None
            A.append(_terms.spread(rows[0], (*self.batch, *rows[0].shape[-2:])))
            b.append(_terms.spread(rows[1], (*self.batch, rows[1].shape[-1])))
        return np.concatenate(A, axis=-2), np.concatenate(b, axis=-1)

    @property
    def conic(self) -> bool:
        return all(member.conic for member in self.members)

    def cones(self) -> Cones | None:
        return self._stacked([member.cones() for member in self.members])

    def cones_near(self, center: Array, size: float) -> Cones | None:
        return self._stacked([member.cones_near(center, size) for member in self.members])

    def _stacked(self, cones: list[Cones | None]) -> Cones | None:
        """The members' cones together, if they all have some."""
        self._require_single()
        pieces = [piece for piece in cones if piece is not None]
        return stack(pieces, pieces[0].A.shape[1] - pieces[0].aux) if len(pieces) == len(cones) else None

    def parameters(self) -> dict[str, Any]:
        return {"members": list(self.members)}

    def _trials(self, index: Any) -> Stack:
        return Stack([_of_trials(member, self.batch, index) for member in self.members])

    def _select(self, row: Any) -> Constraint:
        rows = self.affine()
        if rows is not None:
            return Affine(*rows).select(row)
        if row.ndim > 0:
            return _Row(self, row)
        left = int(row)
        for member in self.members:
            if 0 <= left < member.row_count:
                return member.select(left)
            left -= member.row_count
        raise IndexError(f"row {int(row)} of a constraint with {self.row_count} rows")

    def _points(self, x: ArrayLike) -> Array:
        points = super()._points(x)
        return points if _terms.finite(points) else require_finite("x", points)

    def _require_finite_data(self) -> None:
        for member in self.members:
            member._require_finite_data()

    def _blame(self, x: Array) -> Never:
        for member in self.members:  # the guilty one speaks for itself
            member.rows(x)
            member.jacobian(x)
        super()._blame(x)

    def __repr__(self) -> str:
        return f"Stack([{', '.join(map(repr, self.members))}])"


class _Row(Constraint):
    """One row of a constraint, perhaps another one in each trial."""

    __slots__ = ("batch", "dim", "of", "row")

    def __init__(self, of: Constraint, row: Any) -> None:
        if not ((row >= 0) & (row < of.row_count)).all():
            raise IndexError(f"rows {row.min()} to {row.max()} of a constraint with {of.row_count} rows")
        self.of, self.row = of, row
        self.batch: tuple[int, ...] = _terms.lead(("constraint", of.batch), ("row", row.shape))
        self.dim: int | None = of.dim

    def _rows(self, x: Array) -> Array:
        return self._pick(self.of._rows(x), _lead(self, x), 1)

    def _jacobian(self, x: Array) -> Array:
        return self._pick(self.of._jacobian(x), _lead(self, x), 2)

    def magnitude(self, x: Array) -> Array:
        return self._pick(self.of.magnitude(x), _lead(self, x), 1)

    def _pick(self, values: Array, lead: tuple[int, ...], inner: int) -> Array:
        values = np.broadcast_to(values, (*lead, *values.shape[values.ndim - inner :]))
        row = np.broadcast_to(self.row, lead).reshape(*lead, *(1,) * inner)
        return np.take_along_axis(values, row, axis=-inner)

    @property
    def conic(self) -> bool:
        return self.of.conic

    def cones(self) -> Cones | None:
        return self._row_of(self.of.cones())

    def cones_near(self, center: Array, size: float) -> Cones | None:
        return self._row_of(self.of.cones_near(center, size))

    def _row_of(self, whole: Cones | None) -> Cones | None:
        """The row's part of all cones."""
        self._require_single()
        if whole is None:
            return None
        others = np.delete(whole.E, self.row, axis=1)  # the other rows may be relaxed at will
        A = np.concatenate([whole.A, -others], axis=1)
        return Cones(A, whole.b, whole.E[:, [int(self.row)]], whole.cones, whole.aux + others.shape[1])

    def _trials(self, index: Any) -> Constraint:
        return _of_trials(self.of, self.batch, index).select(np.broadcast_to(self.row, self.batch)[index])

    def _require_finite_data(self) -> None:
        self.of._require_finite_data()

    def _blame(self, x: Array) -> Never:
        self.of._blame(x)

    def __repr__(self) -> str:
        return f"row {self.row} of {self.of!r}"


def from_cvxpy(expression: cp.Expression, variable: cp.Variable) -> Constraint:
    """The rows of a convex CVXPY expression, g(x) = expression with variable = x; needs ``pip install cocopt[cvxpy]``.

    Values and subgradients are CVXPY's own, the conic form is the one that it hands to Clarabel. Parameters keep the
    values that they have now. The expression is compiled at the first `cones`, once: a later call with the same
    expression object only fills in the new values of its parameters (so they must enter as CVXPY's DPP rules ask).
    All trials share the constraint.

    Parameters
    ----------
    expression : cvxpy.Expression
        Convex by CVXPY's rules, a scalar or a vector (one row each).
    variable : cvxpy.Variable
        Of shape (n,), without attributes, and the only variable of the expression.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cocopt import constraints
    >>> x, radius = cp.Variable(2), cp.Parameter(value=1.0)
    >>> g = constraints.from_cvxpy(cp.norm(x) - radius, x)
    >>> g.value([3.0, 4.0])
    np.float64(4.0)
    >>> g.gradient([3.0, 4.0])
    array([0.6, 0.8])
    """
    try:
        from cocopt._cvxpy import CvxpyConstraint
    except ModuleNotFoundError as error:
        if error.name != "cvxpy":
            raise
        raise ImportError("constraints.from_cvxpy needs CVXPY: pip install 'cocopt[cvxpy]'") from error
    return CvxpyConstraint(expression, variable)


def _lead(constraint: Constraint, x: Array) -> tuple[int, ...]:
    return _terms.lead(("data", constraint.batch), ("x", x.shape[:-1]))


def _norm(array: Array) -> Array:
    length: Array = np.sqrt(np.vecdot(array, array))
    return length


def _unit(array: Array) -> Array:
    return array / (_norm(array) + _terms.TINY)[..., None]


def _finite_part(array: Array, idle: float) -> Array:
    """The array without the infinity that switches a row off."""
    return np.where(array == idle, 0.0, array)


def _idle(dim: int) -> Cones:
    """A single row that is switched off."""
    return Cones(np.zeros((0, dim)), np.zeros(0), np.zeros((0, 1)), ())


def _first(size: int) -> Array:
    return np.eye(size, 1)


def _balance(curvature: float, slope_squared: float, constant: float, size: float) -> float:
    """A guess of the size that ½xᵀPx has where ½xᵀPx + ⟨q, x⟩ + r = 0 matters.

    That is ½λ‖x‖² for a point of that size, but no less than |r| (the boundary near 0, unless r is the rounding
    noise of a cancellation) and no more than 2‖q‖²/λ (its far end).
    """
    far = max(constant, 2.0 * slope_squared / curvature)
    near = constant if constant > 1e-14 * far else far
    most = 0.5 * curvature * size**2
    return min(max(most, near), far) or most


def _pick(batch: tuple[int, ...], index: Any, *parts: tuple[Array, int]) -> list[Array]:
    """Some trials of each array, whose last so many axes are not trials; what all trials share stays as it is."""
    picked = []
    for array, inner in parts:
        at = array.ndim - inner
        picked.append(np.broadcast_to(array, (*batch, *array.shape[at:]))[index] if at else array)
    return picked


def _of_trials(member: Constraint, batch: tuple[int, ...], index: Any) -> Constraint:
    """Some trials of a member whose leading axes may be fewer than those of the batch, or of length 1."""
    if member.batch == batch:
        return member.trials(index)
    at = np.unravel_index(np.arange(math.prod(batch)).reshape(batch)[index], batch)
    own = zip(at[len(batch) - len(member.batch) :], member.batch, strict=True)
    return member.trials(tuple(np.zeros_like(i) if size == 1 else i for i, size in own))

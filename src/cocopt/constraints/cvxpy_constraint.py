"""Constraints that are CVXPY expressions; loaded by [`cocopt.constraints.from_cvxpy`][] alone."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Never

import cvxpy as cp
import numpy as np

from cocopt.arrays import Array, describe, require_finite
from cocopt.cones import Cones
from cocopt.constraints.base import Constraint
from cocopt.errors import InvalidInput

__all__ = ["CvxpyConstraint"]

# CVXPY's variables and parameters hold one value each, whoever uses an expression: they are set for the time of a call.
_lock = threading.RLock()


class CvxpyConstraint(Constraint):
    """The rows of a convex expression; see [`cocopt.constraints.from_cvxpy`][]."""

    __slots__ = ("_cones", "_parameters", "dim", "expression", "row_count", "variable")

    def __init__(self, expression: cp.Expression, variable: cp.Variable) -> None:
        _check_variable(variable)
        _check_expression(expression, variable)
        self.expression, self.variable = expression, variable
        self.dim: int = variable.size
        self.row_count: int = expression.size
        self._parameters = [(parameter, _snapshot(parameter)) for parameter in expression.parameters()]
        self._cones: tuple[Cones | None] | None = None

    def rows_unchecked(self, x: Array) -> Array:
        rows = np.empty((*x.shape[:-1], self.row_count))
        with self._values_set():
            for index in np.ndindex(x.shape[:-1]):
                self.variable.save_value(x[index].copy())
                value = self.expression.value
                rows[index] = np.nan if value is None else value
        return rows

    def jacobian_unchecked(self, x: Array) -> Array:
        jacobian = np.empty((*x.shape[:-1], self.row_count, self.dim))
        with self._values_set():
            for index in np.ndindex(x.shape[:-1]):
                self.variable.save_value(x[index].copy())
                gradient = self.expression.grad.get(self.variable, 0.0)  # (n, M), sparse or a number
                if gradient is None:  # outside the domain
                    jacobian[index] = np.nan
                else:
                    dense = gradient.toarray() if hasattr(gradient, "toarray") else np.asarray(gradient)
                    jacobian[index] = np.broadcast_to(dense, (self.dim, self.row_count)).T
        return jacobian

    def magnitude(self, x: Array) -> Array:
        """The terms are not known, but they are no smaller than the value and the slope across ‖x‖."""
        reach = np.linalg.norm(self.jacobian_unchecked(x), axis=-1) * np.linalg.norm(x, axis=-1)[..., None]
        magnitude: Array = np.maximum(np.abs(self.rows_unchecked(x)), reach)
        return magnitude

    def cones(self) -> Cones | None:
        """CVXPY's conic form of expression ≤ t; None if it needs a cone that [`Cones`][cocopt.cones.Cones] lacks."""
        if self._cones is None:
            with self._values_set():
                self._cones = (_conic(self.expression, self.variable),)
        return self._cones[0]

    def affine(self) -> tuple[Array, Array] | None:
        cones = self.cones() if self.expression.is_affine() else None
        if cones is None or cones.aux or not np.array_equal(cones.E, np.eye(self.row_count)):
            return None
        return cones.A, cones.b

    @contextmanager
    def _values_set(self) -> Iterator[None]:
        """Sets the parameters to our values, and puts everything back at the end."""
        with _lock:
            before = [(leaf, leaf.value) for leaf in [self.variable, *(p for p, _ in self._parameters)]]
            try:
                for parameter, value in self._parameters:
                    parameter.save_value(value)
                yield
            finally:
                for leaf, value in before:
                    leaf.save_value(value)

    def raise_nonfinite(self, x: Array) -> Never:
        require_finite("x", x)
        raise InvalidInput(
            "constraints.from_cvxpy: the value or gradient is not finite; x may lie outside the expression's domain"
        )

    def __repr__(self) -> str:
        return f"from_cvxpy({self.expression}, {self.variable})"


@functools.lru_cache(maxsize=64)
def _relaxed(expression: cp.Expression) -> tuple[cp.Problem, cp.Variable]:
    """The problem expression ≤ t, which CVXPY itself reduces only once, and its t."""
    t = cp.Variable(expression.size)
    return cp.Problem(cp.Minimize(0), [cp.vec(expression, order="F") <= t]), t


def _conic(expression: cp.Expression, variable: cp.Variable) -> Cones | None:
    """expression ≤ t, with the present values of the parameters. Clarabel's form is b − A z in cones, as ours."""
    problem, t = _relaxed(expression)
    data, *_ = problem.get_problem_data(cp.CLARABEL, enforce_dpp=True)
    dims = data["dims"]
    if dims.pnd:
        return None
    cones: list[tuple[str | tuple[str, float], int]] = []  # in the order in which CVXPY stacks them for Clarabel
    cones += [("zero", dims.zero)] if dims.zero else []
    cones += [("nonneg", dims.nonneg)] if dims.nonneg else []
    cones += [("soc", size) for size in dims.soc]
    cones += [("psd", side) for side in dims.psd]
    cones += [("exp", 3)] * dims.exp
    cones += [(("power", float(alpha)), 3) for alpha in dims.p3d]
    A: Array = data["A"].toarray()
    start = data["param_prob"].var_id_to_col
    of_x, of_t = (np.arange(start[leaf.id], start[leaf.id] + leaf.size) for leaf in (variable, t))
    of_u = np.setdiff1d(np.arange(A.shape[1]), np.concatenate([of_x, of_t]))
    b = np.array(data["b"], dtype=np.float64)
    return Cones(A[:, np.concatenate([of_x, of_u])], b, -A[:, of_t], tuple(cones), of_u.size)


def _check_variable(variable: Any) -> None:
    if not isinstance(variable, cp.Variable):
        raise InvalidInput(f"variable: expected a cvxpy.Variable, got {describe(variable)}")
    if variable.ndim != 1:
        raise InvalidInput(f"variable: expected shape (n,), got {variable.shape}")
    named = [name for name, value in variable.attributes.items() if value]
    if named:
        raise InvalidInput(f"variable: expected no attributes, since K defines the domain of x, got {', '.join(named)}")


def _check_expression(expression: Any, variable: cp.Variable) -> None:
    if not isinstance(expression, cp.Expression):
        raise InvalidInput(f"expression: expected a cvxpy.Expression, got {describe(expression)}")
    if expression.ndim > 1:
        raise InvalidInput(f"expression: expected a scalar or a vector, got shape {expression.shape}")
    others = [other for other in expression.variables() if other.id != variable.id]
    if others or not expression.variables():
        got = ", ".join(str(other) for other in expression.variables()) or "none"
        raise InvalidInput(f"expression: expected {variable} as its only variable, got {got}")
    if not expression.is_convex():
        raise InvalidInput(f"expression: expected one that is convex by the DCP rules, got {expression.curvature}")
    with cp.utilities.scopes.dpp_scope():
        if not expression.is_convex():
            raise InvalidInput(
                "expression: expected parameters to enter by the DPP rules, got one that must be recompiled"
            )


def _snapshot(parameter: cp.Parameter) -> Any:
    if type(parameter) is not cp.Parameter:
        raise InvalidInput(f"expression: expected parameters of type cvxpy.Parameter, got {type(parameter).__name__}")
    if parameter.value is None:
        raise InvalidInput(f"expression: expected a value for the parameter {parameter}, got None")
    return parameter.value.copy() if hasattr(parameter.value, "copy") else parameter.value

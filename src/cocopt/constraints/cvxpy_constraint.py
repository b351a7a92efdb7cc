"""Constraints that are written in CVXPY; loaded by [`cocopt.constraints.from_cvxpy`][] alone."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, Never

import cvxpy as cp
import numpy as np

from cocopt.arrays import Array, all_finite, describe, ignore_fp_warnings, require_finite
from cocopt.cones import Cones
from cocopt.constraints.affine import Affine
from cocopt.constraints.base import Constraint
from cocopt.constraints.cvxpy_values import ExpressionValues
from cocopt.constraints.epigraph import Row, constraint_of, read_rows
from cocopt.constraints.equality import Equality
from cocopt.constraints.stack import Stack
from cocopt.errors import InvalidInput

__all__ = ["CvxpyConstraint", "read"]

MAX_PROGRAMS = 256  # compiled programs that are kept, the latest ones

# CVXPY's variables and parameters hold one value each, whoever uses an expression: they are set for the time of a call.
_lock = threading.RLock()
_programs: OrderedDict[tuple[int, int], _Program] = OrderedDict()


def read(expression: Any, variable: Any) -> Constraint:
    """The constraint for an expression, a CVXPY constraint, or a list of them; see `from_cvxpy`."""
    items = expression if isinstance(expression, list | tuple) else [expression]
    if not items:
        raise InvalidInput("expression: expected at least one constraint, got an empty list")
    members = [_program(item, variable).constraint() for item in items]
    return members[0] if len(members) == 1 else Stack(members)


def _program(item: Any, variable: Any) -> _Program:
    """The program of an expression or constraint, compiled only once."""
    key = (id(item), id(variable))
    with _lock:
        program = _programs.get(key)
        if program is None:
            _check_variable(variable)
            program = _programs[key] = _Program(item, variable)
            if len(_programs) > MAX_PROGRAMS:
                _programs.popitem(last=False)
        else:
            _programs.move_to_end(key)
        return program


class _Program:
    """expression ≤ t in conic form, whose numbers are affine in the parameters' values."""

    def __init__(self, item: Any, variable: cp.Variable) -> None:
        self.item, self.variable = item, variable  # kept alive, so that their ids remain theirs
        self.expression, self.is_equation = _as_expression(item)
        _check_expression(self.expression, variable, item, self.is_equation)
        self.parameters: list[cp.Parameter] = self.expression.parameters()
        values = self._values()
        t = cp.Variable(self.expression.size)
        self._problem = cp.Problem(cp.Minimize(0), [cp.vec(self.expression, order="F") <= t])
        data, *_ = self._problem.get_problem_data(cp.CLARABEL, enforce_dpp=True)
        dims, start, width = data["dims"], data["param_prob"].var_id_to_col, data["A"].shape[1]
        of_x, of_t = (np.arange(start[leaf.id], start[leaf.id] + leaf.size) for leaf in (variable, t))
        of_u = np.setdiff1d(np.arange(width), np.concatenate([of_x, of_t]))
        self._order, self._aux = np.concatenate([of_x, of_u, of_t]), of_u.size
        self._cones: tuple[tuple[str | tuple[str, float], int], ...] | None = None if dims.pnd else _cones(dims)
        self._map = _parameter_map(data, self.parameters, values)
        self._expression_values: ExpressionValues | None = None
        self._constant: Constraint | None = None  # without parameters there is only one

    def constraint(self) -> Constraint:
        """With the present values of the parameters."""
        if self._constant is not None:
            return self._constant
        with _lock:
            values = self._values()
            found = self._read(values, self._numbers(values))
        if not self.parameters:
            self._constant = found
        return found

    def _read(self, values: list[Any], cones: Cones | None) -> Constraint:
        """One of our classes where the conic form is that of one."""
        if cones is not None and self.expression.is_affine() and not cones.aux:
            rows = cones.E.argmax(axis=0)  # the row of each entry of the expression
            A, b = cones.A[rows], cones.b[rows]
            return Equality(A, b) if self.is_equation else Affine(A, b)
        read = None if cones is None else read_rows(cones)
        members = [None] if read is None else [constraint_of(row) for row in read]
        if all(member is not None for member in members):
            return _joined([member for member in members if member is not None])
        if self._expression_values is None:
            self._expression_values = ExpressionValues(self.expression)
        snapshot = list(zip(self.parameters, values, strict=True))
        return CvxpyConstraint(self.expression, self.variable, snapshot, cones, read, self._expression_values)

    def _values(self) -> list[Any]:
        """Copies of the parameters' values."""
        values = []
        for parameter in self.parameters:
            value = parameter.value
            if value is None:
                raise InvalidInput(f"expression: expected a value for the parameter {parameter}, got None")
            values.append(value.copy() if hasattr(value, "copy") else value)
        return values

    def _numbers(self, values: list[Any]) -> Cones | None:
        """The conic form for these values; None if it needs a cone that [`Cones`][cocopt.cones.Cones] lacks."""
        if self._cones is None:
            return None
        if self._map is None:
            data, *_ = self._problem.get_problem_data(cp.CLARABEL, enforce_dpp=True)
            whole, b = data["A"].toarray(), np.array(data["b"], dtype=np.float64)
        else:
            whole, b = self._map(values)
        whole = whole[:, self._order]
        if not (all_finite(whole) and all_finite(b)):
            raise InvalidInput("expression: expected finite numbers, got some that are not, in a parameter or constant")
        wide = self._order.size - self.expression.size
        return Cones(whole[:, :wide], b, -whole[:, wide:], self._cones, self._aux)


class _ParameterMap:
    """The numbers A, b of a cone program as an affine function of its parameters."""

    def __init__(self, matrix: Any, rows: Any, columns: Any, shape: tuple[int, int], places: list[slice]) -> None:
        self.matrix, self.rows, self.columns, self.shape, self.places = matrix, rows, columns, shape, places

    def __call__(self, values: list[Any]) -> tuple[Array, Array]:
        vector = np.zeros(self.matrix.shape[1])
        vector[-1] = 1.0
        for place, value in zip(self.places, values, strict=True):
            vector[place] = np.asarray(value.toarray() if hasattr(value, "toarray") else value).flatten(order="F")
        numbers = np.zeros(self.shape)
        numbers[self.rows, self.columns] = self.matrix @ vector
        return -numbers[:, :-1], numbers[:, -1]


def _parameter_map(data: Any, parameters: list[cp.Parameter], values: list[Any]) -> _ParameterMap | None:
    """CVXPY's own map from parameters to numbers, without the rest of its work; None where it is not as expected."""
    program = data["param_prob"]
    reduced, columns = program.reduced_A, program.param_id_to_col
    if (
        not parameters
        or {p.id for p in parameters} != {p.id for p in program.parameters}
        or reduced.reduced_mat is None
    ):
        return None
    indices, starts, shape = reduced.problem_data_index
    places = [slice(columns[p.id], columns[p.id] + p.size) for p in parameters]
    of_entries = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    found = _ParameterMap(reduced.reduced_mat, np.asarray(indices), of_entries, tuple(shape), places)
    A, b = found(values)
    same = A.shape == data["A"].shape and np.allclose(A, data["A"].toarray()) and np.allclose(b, data["b"])
    return found if same else None


def _cones(dims: Any) -> tuple[tuple[str | tuple[str, float], int], ...]:
    """In the order in which CVXPY stacks them for Clarabel, whose form is b − A z in cones, as ours."""
    cones: list[tuple[str | tuple[str, float], int]] = []
    cones += [("zero", dims.zero)] if dims.zero else []
    cones += [("nonneg", dims.nonneg)] if dims.nonneg else []
    cones += [("soc", size) for size in dims.soc]
    cones += [("psd", side) for side in dims.psd]
    cones += [("exp", 3)] * dims.exp
    cones += [(("power", float(alpha)), 3) for alpha in dims.p3d]
    return tuple(cones)


def _joined(members: list[Constraint]) -> Constraint:
    """One constraint with the rows of all, affine neighbours together."""
    parts: list[Constraint] = []
    for member in members:
        last = parts[-1] if parts else None
        if isinstance(member, Affine) and isinstance(last, Affine):
            parts[-1] = Affine(np.concatenate([last.A, member.A]), np.concatenate([last.b, member.b]))
        else:
            parts.append(member)
    return parts[0] if len(parts) == 1 else Stack(parts)


class CvxpyConstraint(Constraint):
    """The rows of a convex expression that is none of our classes; see [`cocopt.constraints.from_cvxpy`][].

    Values and subgradients are read off the conic form where that shows them, and else are those of its atoms.
    """

    __slots__ = ("_cones", "_constants", "_rows", "_values", "dim", "expression", "row_count", "variable")

    def __init__(
        self,
        expression: cp.Expression,
        variable: cp.Variable,
        parameters: list[tuple[cp.Parameter, Any]],
        cones: Cones | None,
        rows: list[Row] | None,
        values: ExpressionValues,
    ) -> None:
        self.expression, self.variable = expression, variable
        self._values, self._constants = values, values.constants(parameters)
        self.dim: int = variable.size
        self.row_count: int = expression.size
        self._cones, self._rows = cones, rows

    def rows_unchecked(self, x: Array) -> Array:
        rows = np.empty((*x.shape[:-1], self.row_count))
        if self._rows is not None:
            for i, row in enumerate(self._rows):
                rows[..., i] = x @ row.a - row.b + sum(weight * term.value(x) for weight, term in row.terms)
            return rows
        with ignore_fp_warnings():  # outside the domain
            for index in np.ndindex(x.shape[:-1]):
                rows[index] = self._values.value(self._constants, x[index])
        return rows

    def jacobian_unchecked(self, x: Array) -> Array:
        jacobian = np.empty((*x.shape[:-1], self.row_count, self.dim))
        if self._rows is not None:
            for i, row in enumerate(self._rows):
                jacobian[..., i, :] = row.a + sum(weight * term.gradient(x) for weight, term in row.terms)
            return jacobian
        with ignore_fp_warnings():
            for index in np.ndindex(x.shape[:-1]):
                jacobian[index] = self._values.jacobian(self._constants, x[index])
        return jacobian

    def magnitude(self, x: Array) -> Array:
        """Where the terms are not known: they are no smaller than the value and the slope across ‖x‖."""
        size = np.linalg.norm(x, axis=-1)
        if self._rows is not None:
            magnitude = np.empty((*x.shape[:-1], self.row_count))
            for i, row in enumerate(self._rows):
                terms = sum(weight * term.magnitude(x) for weight, term in row.terms)
                magnitude[..., i] = np.linalg.norm(row.a) * size + abs(row.b) + terms
            return magnitude
        reach = np.linalg.norm(self.jacobian_unchecked(x), axis=-1) * size[..., None]
        slope_known = np.isfinite(reach)  # at the end of a domain there may be none
        seen: Array = np.fmax(np.abs(self.rows_unchecked(x)), np.where(slope_known, reach, 0.0))
        return seen

    @property
    def has_domain(self) -> bool:
        return self._rows is None

    @property
    def conic(self) -> bool:
        return self._cones is not None

    def cones(self) -> Cones | None:
        """CVXPY's conic form of expression ≤ t; None if it needs a cone that [`Cones`][cocopt.cones.Cones] lacks."""
        return self._cones

    def raise_nonfinite(self, x: Array) -> Never:
        require_finite("x", x)
        raise InvalidInput(
            "constraints.from_cvxpy: the value or gradient is not finite; x may lie outside the expression's domain"
        )

    def __repr__(self) -> str:
        return f"from_cvxpy({self.expression}, {self.variable})"


def _check_variable(variable: Any) -> None:
    if not isinstance(variable, cp.Variable):
        raise InvalidInput(f"variable: expected a cvxpy.Variable, got {describe(variable)}")
    if variable.ndim != 1:
        raise InvalidInput(f"variable: expected shape (n,), got {variable.shape}")
    named = [name for name, value in variable.attributes.items() if value]
    if named:
        raise InvalidInput(f"variable: expected no attributes, since K defines the domain of x, got {', '.join(named)}")


def _as_expression(item: Any) -> tuple[cp.Expression, bool]:
    """The expression that is to be ≤ 0, or = 0 if the flag is set."""
    if isinstance(item, cp.Expression):
        if item.ndim > 1:
            raise InvalidInput(f"expression: expected a scalar or a vector, got shape {item.shape}")
        return item, False
    if isinstance(item, cp.constraints.SOC):
        bound, inner = item.args
        return cp.norm(inner, 2, axis=item.axis) - bound if inner.ndim > 1 else cp.norm(inner, 2) - bound, False
    if isinstance(item, cp.constraints.NonNeg):
        return -_flat(item.args[0]), False
    if isinstance(item, cp.constraints.Inequality | cp.constraints.NonPos):
        return _flat(item.expr), False
    if isinstance(item, cp.constraints.Equality | cp.constraints.Zero):
        return _flat(item.expr), True
    expected = "a cvxpy.Expression, a constraint with <= or == such as cp.sum(x) <= 2, or a list of them"
    raise InvalidInput(f"expression: expected {expected}, got {describe(item)}")


def _flat(expression: cp.Expression) -> cp.Expression:
    return cp.vec(expression, order="F") if expression.ndim > 1 else expression


def _check_expression(expression: cp.Expression, variable: cp.Variable, item: Any, is_equation: bool) -> None:
    others = [other for other in expression.variables() if other.id != variable.id]
    if others or not expression.variables():
        got = ", ".join(str(other) for other in expression.variables()) or "none"
        raise InvalidInput(f"expression: expected {variable} as its only variable, got {got}")
    for parameter in expression.parameters():
        if type(parameter) is not cp.Parameter:
            name = type(parameter).__name__
            raise InvalidInput(f"expression: expected parameters of type cvxpy.Parameter, got {name}")
    if is_equation and not expression.is_affine():
        raise InvalidInput(
            f"expression: expected affine expressions on both sides of ==, got {item}, {expression.curvature.lower()}; "
            "a convex expression can only be bounded above, with <="
        )
    if not expression.is_convex():
        raise InvalidInput(_not_convex(expression, item))
    with cp.utilities.scopes.dpp_scope():
        if not expression.is_convex():
            raise InvalidInput(
                "expression: expected parameters to enter by the DPP rules, got one that must be recompiled"
            )


def _not_convex(expression: cp.Expression, item: Any) -> str:
    curvature = expression.curvature
    if item is expression:
        return f"expression: expected one that is convex by the DCP rules, got {curvature}"
    hint = (
        "the inequality may be the wrong way round: a convex expression can only be bounded above"
        if curvature == "CONCAVE"
        else "CVXPY's rules do not show that the feasible set is convex"
    )
    return (
        f"expression: expected convex <= concave by the DCP rules, got {item}, a difference that is {curvature}; {hint}"
    )

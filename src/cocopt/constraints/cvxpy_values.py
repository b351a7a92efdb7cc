"""Values and Jacobians of CVXPY expressions by forward differentiation, for [`cocopt.constraints.from_cvxpy`][].

CVXPY's own ``grad`` builds sparse matrices in every node of an expression, and takes milliseconds. Here an expression
is a list of nodes, each behind its arguments; a node's Jacobian follows from those of its arguments: by a rule for
frequent atoms, by the atom itself for linear ones, and else by the derivative that the atom declares.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.affine_atom import AffAtom
from cvxpy.atoms.affine.binary_operators import DivExpression, MulExpression, multiply
from cvxpy.atoms.affine.promote import Promote
from cvxpy.atoms.affine.sum import Sum
from cvxpy.atoms.affine.unary_operators import NegExpression
from cvxpy.atoms.elementwise.power import Power

from cocopt.arrays import Array

__all__ = ["ExpressionValues"]

OUTSIDE = 1e-9  # of the largest entry: an argument that is negative by less counts as 0

#: (atom, values of its arguments, its value, Jacobians of its arguments, None for constants) → its Jacobian.
#: The last axis of a Jacobian is that of the variable, those before it are the node's own.
Rule = Callable[[Any, list[Any], Any, list[Any]], Array]


class _Node(NamedTuple):
    """A node, the places of its arguments, how it is computed from theirs, and its rule; a leaf has neither."""

    expression: Any
    arguments: tuple[int, ...]
    constant: bool
    value: Callable[[list[Any]], Any] | None
    rule: Rule | None


class ExpressionValues:
    """Computes an expression of one variable of shape (n,), as a vector, and its Jacobian."""

    def __init__(self, expression: Any) -> None:
        self._nodes = list[_Node]()
        self._places: dict[int, int] = {}
        self._add(expression)

    def _add(self, expression: Any) -> int:
        """The place of a node, behind its arguments."""
        known = self._places.get(id(expression))
        if known is not None:
            return known
        arguments = tuple(self._add(argument) for argument in expression.args)
        constant = not expression.variables()
        value, rule = (_value(expression), _rule(expression)) if arguments else (None, None)
        self._nodes.append(_Node(expression, arguments, constant, value, rule))
        place = self._places[id(expression)] = len(self._nodes) - 1
        return place

    def constants(self, parameters: Sequence[tuple[cp.Parameter, Any]]) -> list[Any]:
        """The values of all nodes without the variable, for these values of the parameters; None for the others."""
        given = {parameter.id: value for parameter, value in parameters}
        values: list[Any] = []
        for node in self._nodes:
            if not node.constant:
                values.append(None)
            elif node.value is not None:
                values.append(_dense(node.value([values[place] for place in node.arguments])))
            else:
                leaf = node.expression
                values.append(_dense(given[leaf.id] if isinstance(leaf, cp.Parameter) else leaf.value))
        return values

    def value(self, constants: list[Any], x: Array) -> Array:
        """The expression at x (n,)."""
        return self._values(constants, x)[-1].reshape(-1, order="F")  # type: ignore[no-any-return]

    def jacobian(self, constants: list[Any], x: Array) -> Array:
        """Its Jacobian at x (n,); NaN where the expression has none."""
        values = self._values(constants, x)
        jacobians: list[Any] = []
        for node, value in zip(self._nodes, values, strict=True):
            if node.constant:
                jacobians.append(None)
            elif node.rule is None:
                jacobians.append(np.eye(x.size))
            else:
                of_arguments = [jacobians[place] for place in node.arguments]
                jacobians.append(node.rule(node.expression, [values[k] for k in node.arguments], value, of_arguments))
        jacobian: Array = np.array(jacobians[-1].reshape(-1, x.size))
        jacobian[~np.isfinite(values[-1].reshape(-1))] = np.nan
        return jacobian

    def _values(self, constants: list[Any], x: Array) -> list[Any]:
        values = list(constants)
        for place, node in enumerate(self._nodes):
            if not node.constant:
                of_arguments = [values[argument] for argument in node.arguments]
                values[place] = x if node.value is None else _dense(node.value(of_arguments))
        return values


def _dense(value: Any) -> Any:
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value, dtype=np.float64)


def _only_positive(atom: Any) -> bool:
    """Whether CVXPY defines a power for arguments ≥ 0 alone; its values do not say so."""
    p = float(atom.p.value)
    return p != 1.0 and not (p > 1.0 and p % 2.0 == 0.0)


def _value(atom: Any) -> Callable[[list[Any]], Any]:
    """How an atom is computed from the values of its arguments."""
    if isinstance(atom, cp.entr | cp.rel_entr | cp.kl_div) or (isinstance(atom, Power) and _only_positive(atom)):
        return lambda values: atom.numeric([_without_rounding_below(values[0]), *values[1:]])
    if isinstance(atom, cp.log_sum_exp) and _takes_all(atom):
        return lambda values: _log_of_sum(values[0])  # CVXPY's own, SciPy's, takes 0.1 ms
    return atom.numeric  # type: ignore[no-any-return]


def _without_rounding_below(base: Any) -> Any:
    """What is negative by no more than rounding as 0, and NaN for what is outside the domain."""
    least = -OUTSIDE * np.abs(base).max(initial=0.0)
    return np.where(base >= 0.0, base, np.where(base >= least, 0.0, np.nan))


def _log_of_sum(v: Any) -> Any:
    largest = v.max()
    return largest + np.log(np.exp(v - largest).sum())


def _takes_all(atom: Any) -> bool:
    """Whether an atom makes one number of its argument."""
    return getattr(atom, "axis", None) is None and not getattr(atom, "keepdims", False)


def _rule(atom: Any) -> Rule:
    """The rule of an atom."""
    if _takes_all(atom):
        for kind in type(atom).__mro__:
            if kind in _RULES:
                return _RULES[kind]
    return _linear if isinstance(atom, AffAtom) else _Declared(atom)


# ------------------------------------------------------------------------------------------------- any atom


def _linear(atom: Any, values: list[Any], value: Any, jacobians: list[Any]) -> Array:
    """An atom that is linear in its arguments with the variable: its values at the columns of their Jacobians."""
    n = next(jacobian.shape[-1] for jacobian in jacobians if jacobian is not None)
    result = np.empty((*atom.shape, n))
    at_zero = _dense(
        atom.numeric([v if j is None else np.zeros_like(v) for v, j in zip(values, jacobians, strict=True)])
    )
    for k in range(n):
        columns = [v if j is None else j[..., k] for v, j in zip(values, jacobians, strict=True)]
        result[..., k] = _dense(atom.numeric(columns)).reshape(atom.shape) - at_zero.reshape(atom.shape)
    return result


class _Declared:
    """By the derivative that CVXPY declares for an atom, found from a copy of it with arguments of its own."""

    def __init__(self, atom: Any) -> None:
        self._lock = threading.Lock()  # the copy holds one value at a time
        self._arguments = [
            cp.Variable(argument.shape)
            if argument.variables()
            else cp.Parameter(argument.shape)
            if argument.parameters()
            else argument
            for argument in atom.args
        ]
        self._copy = atom.copy(self._arguments)

    def __call__(self, atom: Any, values: list[Any], value: Any, jacobians: list[Any]) -> Array:
        n = next(jacobian.shape[-1] for jacobian in jacobians if jacobian is not None)
        with self._lock:
            for argument, given in zip(self._arguments, values, strict=True):
                if isinstance(argument, cp.Variable | cp.Parameter):
                    argument.save_value(given)
            declared = self._copy.grad
        total = np.zeros((atom.size, n))
        for argument, jacobian in zip(self._arguments, jacobians, strict=True):
            if jacobian is None:
                continue
            derivative = declared[argument]  # of the shape (size of the argument, size of the atom)
            if derivative is None:  # outside the domain
                return np.full((*atom.shape, n), np.nan)
            inner = jacobian.reshape(-1, n, order="F") if jacobian.ndim > 2 else jacobian.reshape(-1, n)
            total += _dense(derivative).reshape(len(inner), atom.size).T @ inner
        return total.reshape((*atom.shape, n), order="F") if len(atom.shape) > 1 else total.reshape((*atom.shape, n))


# ------------------------------------------------------------------------------------------- frequent atoms


def _sum_of_all(atom: Any, values: list[Any], value: Any, jacobians: list[Any]) -> Array:
    present = [jacobian for jacobian in jacobians if jacobian is not None]
    total = sum(present[1:], present[0])
    return np.broadcast_to(total, (*atom.shape, total.shape[-1]))


def _product(atom: Any, values: list[Any], value: Any, jacobians: list[Any]) -> Array:
    """A matrix times a vector or the other way round, one of them constant."""
    (first, second), (of_first, of_second) = values, jacobians
    if of_first is None and second.ndim == 1 and first.ndim in (1, 2):
        return first @ of_second  # type: ignore[no-any-return]
    if of_second is None and first.ndim == 1 and second.ndim in (1, 2):
        return second.T @ of_first  # type: ignore[no-any-return]
    return _linear(atom, values, value, jacobians)


def _multiple(atom: Any, values: list[Any], value: Any, jacobians: list[Any]) -> Array:
    (first, second), (of_first, of_second) = values, jacobians
    if of_first is None:
        return first[..., None] * of_second  # type: ignore[no-any-return]
    return of_first * second[..., None]  # type: ignore[no-any-return]


def _sum(atom: Any, values: list[Any], value: Any, jacobians: list[Any]) -> Array:
    (jacobian,) = jacobians
    return jacobian.reshape(-1, jacobian.shape[-1]).sum(axis=0)  # type: ignore[no-any-return]


def _elementwise(derivative: Callable[[Any, Any, Any], Any]) -> Rule:
    """From f'(v), given the atom, v and f(v)."""

    def rule(atom: Any, values: list[Any], value: Any, jacobians: list[Any]) -> Array:
        return derivative(atom, values[0], value)[..., None] * jacobians[0]  # type: ignore[no-any-return]

    return rule


def _power(atom: Any, base: Any, value: Any) -> Any:
    p = float(atom.p.value)
    if _only_positive(atom):
        base = np.maximum(base, 0.0)
    return p * np.power(base, p - 1.0)


def _largest(atom: Any, values: list[Any], value: Any, jacobians: list[Any]) -> Array:
    (jacobian,) = jacobians
    return jacobian.reshape(-1, jacobian.shape[-1])[values[0].argmax()]  # type: ignore[no-any-return]


def _log_sum_exp(atom: Any, values: list[Any], value: Any, jacobians: list[Any]) -> Array:
    (jacobian,) = jacobians
    return np.exp(values[0] - value).reshape(-1) @ jacobian.reshape(-1, jacobian.shape[-1])  # type: ignore[no-any-return]


def _maximum(atom: Any, values: list[Any], value: Any, jacobians: list[Any]) -> Array:
    """Of several arguments, the first of the largest."""
    n = next(jacobian.shape[-1] for jacobian in jacobians if jacobian is not None)
    result, done = np.zeros((*atom.shape, n)), np.zeros(atom.shape, dtype=bool)
    for argument, jacobian in zip(values, jacobians, strict=True):
        chosen = (np.broadcast_to(argument, atom.shape) == value) & ~done
        if jacobian is not None:
            result = np.where(chosen[..., None], jacobian, result)
        done |= chosen
    return result


def _sum_largest(atom: Any, values: list[Any], value: Any, jacobians: list[Any]) -> Array:
    """Of the k largest entries, and of the next one with the fraction of k."""
    rows, whole = jacobians[0].reshape(-1, jacobians[0].shape[-1]), int(atom.k)
    order = np.argsort(-values[0].reshape(-1), kind="stable")
    result = rows[order[:whole]].sum(axis=0)
    if whole < order.size:
        result = result + (float(atom.k) - whole) * rows[order[whole]]
    return result  # type: ignore[no-any-return]


def _relative_entropy(of_x: float) -> Rule:
    """x log(x/y), and kl_div, which adds y − x; ``of_x`` is the derivative of x log x − kx at 1."""

    def rule(atom: Any, values: list[Any], value: Any, jacobians: list[Any]) -> Array:
        (x, y), (in_x, in_y) = values, jacobians
        total: Any = 0.0
        if in_x is not None:
            total = (np.log(x / y) + of_x)[..., None] * in_x
        if in_y is not None:
            total = total + (1.0 - of_x - x / y)[..., None] * in_y
        return np.broadcast_to(total, (*atom.shape, total.shape[-1]))

    return rule


_RULES: dict[type, Rule] = {
    AddExpression: _sum_of_all,
    Promote: _sum_of_all,
    NegExpression: lambda atom, values, value, jacobians: -jacobians[0],
    MulExpression: _product,
    multiply: _multiple,
    DivExpression: lambda atom, values, value, jacobians: jacobians[0] / values[1][..., None],
    Sum: _sum,
    cp.exp: _elementwise(lambda atom, v, value: value),
    cp.log: _elementwise(lambda atom, v, value: 1.0 / v),
    cp.entr: _elementwise(lambda atom, v, value: -np.log(v) - 1.0),
    cp.logistic: _elementwise(lambda atom, v, value: np.exp(v - value)),
    cp.abs: _elementwise(lambda atom, v, value: np.sign(v)),
    Power: _elementwise(_power),
    cp.maximum: _maximum,
    cp.max: _largest,
    cp.log_sum_exp: _log_sum_exp,
    cp.sum_largest: _sum_largest,
    cp.rel_entr: _relative_entropy(1.0),
    cp.kl_div: _relative_entropy(0.0),
}

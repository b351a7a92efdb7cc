"""Bad input to project, explain and hinge_prox: the error names the argument, what was expected and what came."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cocopt
from cocopt import Ball, Box, Simplex, constraints, explain, hinge_prox, project
from cocopt.errors import CocoptError, InvalidInput

K = Box(0.0, 1.0, dim=3)
g = constraints.Affine(np.ones((2, 3)), np.ones(2))
y = np.array([2.0, 1.0, 0.5])
nan, inf = np.nan, np.inf


def affine(value: float, where: str = "A") -> constraints.Affine:
    """Two rows with one bad entry, in either array."""
    A, b = np.ones((2, 3)), np.ones(2)
    {"A": A, "b": b}[where].flat[1] = value
    return constraints.Affine(A, b)


def function(value: Any, gradient: Any = lambda x: np.ones(3)) -> constraints.Function:
    return constraints.Function(value, gradient)


BAD_POINTS = [
    ([nan, 0.0, 0.0], ("point", "nan", "(0,)")),
    ([[0.0, 0.0, 0.0], [0.0, inf, 0.0]], ("point", "inf", "(1, 1)")),
    ([0.0, -inf, 0.0], ("point", "-inf", "(1,)")),
    ([0.0, 0.0], ("point", "(..., 3)", "(2,)")),
    (0.0, ("point", "(..., 3)", "()")),
    ([], ("point", "empty")),
    (np.zeros((0, 3)), ("point", "empty", "(0, 3)")),
    (["a", "b", "c"], ("point", "real numbers", "list")),
    (np.ones(3, dtype=complex), ("point", "real numbers", "complex")),
    (np.array([object()] * 3), ("point", "real numbers", "object")),
    (None, ("point", "real numbers", "None")),
    ([[0.0, 0.0, 0.0], [0.0]], ("point", "array of real numbers")),
]
BAD_PAIRS = [
    ({"K": "box"}, ("K", "'box'")),
    ({"K": Box}, ("K", "Box")),
    ({"K": None}, ("K", "None")),
    ({"K": np.eye(3)}, ("K", "array")),
    ({"constraint": "row"}, ("constraint", "'row'")),
    ({"constraint": (np.ones((2, 3)), np.ones(2))}, ("constraint", "tuple")),
    ({"constraint": cocopt.losses.Norm(np.eye(3), np.ones(3))}, ("constraint", "Norm")),
    ({"constraint": constraints.Affine}, ("constraint", "Affine")),
    ({"constraint": constraints.Affine([1.0, 1.0], 1.0)}, ("constraint", "3", "2")),
    ({"constraint": constraints.NormBall(np.zeros(4), 1.0)}, ("constraint", "3", "4")),
    ({"constraint": constraints.Quadratic(np.eye(2), np.ones(2), 0.0)}, ("constraint", "3", "2")),
    ({"constraint": constraints.SecondOrder(np.eye(2), np.ones(2), np.ones(2), 0.0)}, ("constraint", "3", "2")),
    ({"K": Ball(0.0, 1.0, dim=2)}, ("constraint", "2", "3")),
    ({"K": Simplex(5)}, ("constraint", "5", "3")),
]
BAD_CONTENTS = [
    (affine(nan), ("A", "nan", "(0, 1)")),
    (affine(inf), ("A", "inf", "(0, 1)")),
    (affine(-inf), ("A", "-inf", "(0, 1)")),
    (affine(nan, "b"), ("b", "nan", "(1,)")),
    (affine(-inf, "b"), ("b", "(1,)")),
    (constraints.NormBall([0.0, nan, 0.0], 1.0), ("center", "nan", "(1,)")),
    (constraints.NormBall([0.0, 0.0, inf], 1.0), ("center", "inf", "(2,)")),
    (constraints.NormBall(np.zeros(3), nan), ("radius", "nan")),
    (constraints.Quadratic(np.eye(3), [0.0, nan, 0.0], 0.0), ("q", "nan", "(1,)")),
    (constraints.Quadratic(np.eye(3), np.zeros(3), nan), ("r", "nan")),
    (constraints.SecondOrder(np.eye(3), np.zeros(3), np.zeros(3), nan), ("d", "nan")),
    (constraints.SecondOrder(np.full((3, 3), inf), np.zeros(3), np.zeros(3), 1.0), ("A", "inf")),
    (function(lambda x: nan), ("value", "nan")),
    (function(lambda x: x), ("value", "(3,)")),
    (function(lambda x: "high"), ("value", "'high'")),
    (function(lambda x: None), ("value", "None")),
    (function(lambda x: 1.0, lambda x: np.ones(2)), ("gradient", "(3,)", "(2,)")),
    (function(lambda x: 1.0, lambda x: 1.0), ("gradient", "(3,)", "()")),
    (function(lambda x: 1.0, lambda x: np.array([1.0, nan, 0.0])), ("gradient", "nan")),
    (function(lambda x: 1.0, lambda x: None), ("gradient", "None")),
]
BAD_BATCHES = [
    (
        {"constraint": constraints.Affine(np.ones((4, 2, 3)), np.ones((4, 2))), "point": np.zeros((5, 3))},
        ("point", "(4,)", "(5,)"),
    ),
]
BAD_PROJECTION_OPTIONS = [
    ({"infeasible": "foo"}, ("infeasible", "raise", "nearest", "'foo'")),
    ({"infeasible": None}, ("infeasible", "None")),
    ({"infeasible": np.array(["skip", "raise"])}, ("infeasible", "array")),
    ({"infeasible": "skip"}, ("infeasible", "nearest", "for learners alone")),
    ({"cuts": 0}, ("cuts", "positive integer", "0")),
    ({"cuts": 1.5}, ("cuts", "positive integer", "1.5")),
    ({"tol": 0.0}, ("tol", "positive", "0")),
    ({"tol": nan}, ("tol", "positive", "nan")),
    ({"tol": "small"}, ("tol", "positive", "'small'")),
]
BAD_PROX_OPTIONS = [
    ({"rho": 0.0}, ("rho", "positive", "0")),
    ({"rho": -1.0}, ("rho", "positive", "-1")),
    ({"rho": nan}, ("rho", "positive", "nan")),
    ({"rho": inf}, ("rho", "inf")),
    ({"rho": "half"}, ("rho", "'half'")),
    ({"cap": "row"}, ("cap", "each", "sum", "'row'")),
    ({"weight": -1.0}, ("weight", "-1")),
    ({"weight": [1.0, -2.0]}, ("weight", "-2")),
    ({"weight": nan}, ("weight", "nan")),
    ({"weight": [1.0, 2.0, 3.0]}, ("weight", "(3,)")),
    ({"weight": []}, ("weight", "empty")),
    ({"weight": "much"}, ("weight", "'much'")),
    ({"weight": [1.0, 2.0], "cap": "sum"}, ("weight", "(2,)")),
    ({"linear": [1.0, 2.0]}, ("linear", "(..., 3)", "(2,)")),
    ({"linear": [1.0, nan, 0.0]}, ("linear", "nan", "(1,)")),
    ({"linear": [1.0, inf, 0.0]}, ("linear", "inf", "(1,)")),
    ({"linear": "abc"}, ("linear", "'abc'")),
    ({"linear": np.ones(3) * 1j}, ("linear", "complex")),
    ({"linear": []}, ("linear", "empty")),
]


def refused(function: Any, arguments: dict[str, Any], fragments: tuple[str, ...]) -> None:
    """The call raises InvalidInput; the message names the argument at fault and holds every fragment."""
    with pytest.raises(InvalidInput) as caught:
        function(**arguments)
    message = str(caught.value)
    argument, *rest = fragments
    assert f"{argument}: " in message
    for fragment in rest:
        assert fragment in message, message


DOORS = [
    pytest.param(project, {}, id="project"),
    pytest.param(hinge_prox, {"weight": 1.0}, id="hinge_prox"),
]


@pytest.mark.parametrize(("function", "more"), DOORS)
@pytest.mark.parametrize(("point", "fragments"), BAD_POINTS)
def test_bad_points(function: Any, more: dict[str, Any], point: Any, fragments: tuple[str, ...]) -> None:
    refused(function, {"K": K, "constraint": g, "point": point, **more}, fragments)
    refused(project, {"K": K, "constraint": None, "point": point}, fragments)


@pytest.mark.parametrize(("function", "more"), [*DOORS, pytest.param(explain, None, id="explain")])
@pytest.mark.parametrize(("changed", "fragments"), BAD_PAIRS)
def test_bad_sets_and_constraints(
    function: Any, more: Any, changed: dict[str, Any], fragments: tuple[str, ...]
) -> None:
    call = {"K": K, "constraint": g, **changed}
    if more is not None:
        dim = getattr(call["K"], "dim", 3)
        call |= {"point": np.zeros(dim if isinstance(dim, int) else 3), **more}
    refused(function, call, fragments)


@pytest.mark.parametrize(("function", "more"), DOORS)
@pytest.mark.parametrize(("constraint", "fragments"), BAD_CONTENTS)
def test_bad_contents(function: Any, more: dict[str, Any], constraint: Any, fragments: tuple[str, ...]) -> None:
    refused(function, {"K": K, "constraint": constraint, "point": y, **more}, fragments)


@pytest.mark.parametrize("many", [1, 60])
@pytest.mark.parametrize("where", ["A", "b"])
def test_a_bad_trial_is_found_in_a_batch(where: str, many: int) -> None:
    """The index in the message says which trial it was."""
    A, b = np.ones((4, many, 3)), np.ones((4, many))
    index = (2, 0, 1) if where == "A" else (2, 0)
    {"A": A, "b": b}[where][index] = nan
    refused(project, {"K": K, "constraint": constraints.Affine(A, b), "point": y}, (where, "nan", str(index)))


@pytest.mark.parametrize(("function", "more"), DOORS)
@pytest.mark.parametrize(("changed", "fragments"), BAD_BATCHES)
def test_batches_that_do_not_fit(
    function: Any, more: dict[str, Any], changed: dict[str, Any], fragments: tuple[str, ...]
) -> None:
    refused(function, {"K": K, **changed, **more}, fragments)


@pytest.mark.parametrize(("changed", "fragments"), BAD_PROJECTION_OPTIONS)
def test_bad_options_of_project(changed: dict[str, Any], fragments: tuple[str, ...]) -> None:
    refused(project, {"K": K, "constraint": g, "point": y, **changed}, fragments)


@pytest.mark.parametrize(("changed", "fragments"), BAD_PROX_OPTIONS)
def test_bad_options_of_hinge_prox(changed: dict[str, Any], fragments: tuple[str, ...]) -> None:
    refused(hinge_prox, {"K": K, "constraint": g, "point": y, "weight": 1.0, **changed}, fragments)


def test_a_weight_is_asked_for() -> None:
    with pytest.raises(TypeError, match="weight"):
        hinge_prox(K, g, y)  # type: ignore[call-arg]


@pytest.mark.parametrize(("function", "more"), DOORS)
@pytest.mark.parametrize("which", ["value", "gradient"])
def test_a_callable_that_raises_is_heard(function: Any, more: dict[str, Any], which: str) -> None:
    """The user's own exception comes through unchanged, with a note that says where."""

    class Mishap(Exception):
        pass

    def broken(x: Any) -> Any:
        raise Mishap("the sensor is off")

    bad = constraints.Function(broken, broken) if which == "value" else constraints.Function(lambda x: 1.0, broken)
    with pytest.raises(Mishap, match="the sensor is off"):
        function(K, bad, y, **more)


def test_bad_input_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="point: expected shape"):
        project(K, g, [1.0])
    with pytest.raises(CocoptError):
        project(K, g, [1.0])


def test_integers_and_lists_are_fine() -> None:
    x = project(K, constraints.Affine([1, 1, 1], 1), [1, 1, 0])
    np.testing.assert_allclose(x, [0.5, 0.5, 0.0], atol=1e-12)
    assert x.dtype == np.float64

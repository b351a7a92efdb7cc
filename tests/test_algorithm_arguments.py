"""What a constructor asks for comes from the problem and the run, unless an option says otherwise."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from cocopt import CLASP, Box, problems, run
from cocopt.errors import InvalidInput
from cocopt.experiments.algorithms import Algorithm


def recorded(make: Any, problem: problems.Problem, **options: Any) -> dict[str, Any]:
    """The arguments that a constructor of this signature gets, beside K and start."""
    seen: dict[str, Any] = {}

    def construct(**arguments: Any) -> CLASP:
        seen.update(arguments)
        return CLASP(arguments["K"], start=arguments["start"])

    construct.__signature__ = inspect.signature(make)  # type: ignore[attr-defined]
    Algorithm("own", "Own", construct, options).build(problem, 77, problem.start(0, np.arange(2)))
    assert seen.pop("K") is problem.K
    assert seen.pop("start").shape[0] == 2
    return seen


def test_constants_are_passed_to_whoever_asks() -> None:
    static = problems.get("static")

    def make(
        K, start, horizon, lipschitz, *, diameter=None, bound=None, slack=None, strong_convexity=None, other=3
    ): ...

    assert recorded(make, static) == {
        "horizon": 77,
        "lipschitz": static.lipschitz_f,
        "diameter": static.K.diameter,
        "bound": 12.0,
        "slack": 0.5,
    }
    given = {"horizon": None, "bound": 5.0, "slack": "problem", "strong_convexity": "problem", "other": 4}
    assert recorded(make, static, **given) == {
        "horizon": None,
        "lipschitz": static.lipschitz_f,
        "diameter": static.K.diameter,
        "bound": 5.0,
        "slack": 0.5,
        "strong_convexity": 1.0,
        "other": 4,
    }


def test_a_required_modulus_is_passed() -> None:
    def make(K, start, strong_convexity): ...

    assert recorded(make, problems.get("drone")) == {"strong_convexity": 1.0}
    with pytest.raises(InvalidInput, match="own: expected strong_convexity, got none: the problem 'logistic' does not"):
        recorded(make, problems.get("logistic"))


def test_a_problem_may_add_constants_of_its_own() -> None:
    class WithEpsilon(problems.Problem):
        K = Box(0.0, 1.0, dim=2)
        rounds = 3

        @property
        def algorithm_defaults(self) -> dict[str, float]:
            return {**super().algorithm_defaults, "epsilon": 0.25}

    def make(K, start, epsilon=1.0, bound=2.0, **others): ...

    assert recorded(make, WithEpsilon()) == {"epsilon": 0.25}


@pytest.mark.parametrize("name", ["slack", "bound", "lipschitz", "own"])
def test_a_missing_constant_is_named(name: str) -> None:
    class Bare(problems.Problem):
        K = Box(0.0, 1.0, dim=2)
        rounds = 3

    makes = {
        "slack": lambda K, start, slack: None,
        "bound": lambda K, start, bound: None,
        "lipschitz": lambda K, start, lipschitz: None,
        "own": lambda K, start, own: None,
    }
    with pytest.raises(InvalidInput, match=f"own: expected {name}, got none: .* by the option {name}="):
        recorded(makes[name], Bare())


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        ("polyak", "polyak: expected a problem whose constraint never changes, got 'drone', whose constraint does$"),
        ("jenatton", "jenatton: expected .* does; jenatton:hard=true is for constraints that change$"),
    ],
)
def test_methods_for_fixed_constraints_are_refused_before_anything_runs(algorithm: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        run("drone", algorithm, trials=1, rounds=2)
    assert run("drone", "jenatton:hard=true", trials=1, rounds=2, jobs=1).trials == 1

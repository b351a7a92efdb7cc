"""The checks of losses, constraints, schedules and problems find what breaks a contract in one way at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cocopt import Box, checks, constraints, losses, problems, steps
from cocopt.errors import InvalidInput


class Loss(losses.Distance):
    """½‖x − c‖², with one thing changed."""

    def __init__(self, change: str) -> None:
        super().__init__([1.0, -2.0])
        self.change, self.calls = change, 0

    __slots__ = ("calls", "change")

    def value_and_gradient_unchecked(self, x: Any) -> Any:
        value, gradient = super().value_and_gradient_unchecked(x)
        self.calls += 1
        match self.change:
            case "shape":
                value = value[..., None]
            case "concave":
                value, gradient = -value, -gradient
            case "flat":
                gradient = 0.5 * gradient  # still a minorant if the value is large enough
                value = value + 100.0 * (1.0 + 0.0 * value)
            case "argument":
                x[...] = 0.0
            case "chance":
                value = value + 1e-6 * self.calls
            case "batch" if x.ndim > 1:
                value = value * (1.0 + 1e-6)
        return value, gradient

    @property
    def strong_convexity(self) -> Any:
        return {"modulus": 2.0, "negative": -1.0}.get(self.change, 1.0)


@pytest.mark.parametrize(
    ("change", "failure"),
    [
        ("shape", "the value has a wrong shape"),
        ("concave", "the subgradient inequality fails"),
        ("flat", "the subgradient inequality fails|the gradient is not the slope"),
        ("argument", "changes its argument"),
        ("chance", "value_and_gradient differs|subgradient|slope|differ from those of each"),
        ("batch", "differ from those of each"),
        ("modulus", "less strongly convex than it says"),
        ("negative", "strong_convexity has a wrong form"),
    ],
)
def test_broken_losses(change: str, failure: str) -> None:
    checks.check_loss(Loss(""))
    with pytest.raises(AssertionError, match=failure):
        checks.check_loss(Loss(change))


class Rows(constraints.Affine):
    """Two rows, with one thing changed."""

    __slots__ = ("change",)

    def __init__(self, change: str) -> None:
        super().__init__([[1.0, 2.0], [-1.0, 0.5]], [0.5, 1.0])
        self.change = change

    def rows_unchecked(self, x: Any) -> Any:
        rows = super().rows_unchecked(x)
        return rows[..., :1] if self.change == "rows" else rows

    def jacobian_unchecked(self, x: Any) -> Any:
        jacobian = super().jacobian_unchecked(x)
        return {"jacobian": jacobian[..., :1, :], "sign": -jacobian}.get(self.change, jacobian)

    def value(self, x: Any) -> Any:
        rows = self.rows(x)
        return {"mean": rows.mean(axis=-1)}.get(self.change, rows.max(axis=-1))

    def affine(self) -> Any:
        return self.A, self.b + (self.change == "affine")

    def select_unchecked(self, row: Any) -> Any:
        return super().select_unchecked(1 - row if self.change == "select" else row)


@pytest.mark.parametrize(
    ("change", "failure"),
    [
        ("rows", r"rows\(\) has a wrong shape"),
        ("jacobian", r"jacobian\(\) has a wrong shape"),
        ("sign", "the subgradient inequality fails"),
        ("mean", r"the subgradient inequality|the slope|value\(\) is not the largest row"),
        ("affine", r"affine\(\) describes other rows"),
        ("select", r"select\(0\) is another row"),
    ],
)
def test_broken_constraints(change: str, failure: str) -> None:
    checks.check_constraint(Rows(""))
    with pytest.raises(AssertionError, match=failure):
        checks.check_constraint(Rows(change))


class Steps(steps.Power):
    def __init__(self, change: str) -> None:
        super().__init__(0.5)
        self.change = change

    def step(self, t: int, gradients: Any) -> Any:
        step = super().step(t, gradients)
        match self.change:
            case "zero":
                return 0.0
            case "increase":
                return 1.0 / step
            case "shape":
                return np.full(3, step)
            case "trials" if np.ndim(gradients):
                return np.array([step, 2.0 * step])
        return step

    def steps_at(self, t: Any) -> Any:
        found = super().steps_at(t)
        return found[:-1] if self.change == "at shape" else found * (2.0 if self.change == "at" else 1.0)


@pytest.mark.parametrize(
    ("change", "failure"),
    [
        ("zero", "expected a positive"),
        ("increase", "at most the last one"),
        ("shape", "expected a number or shape"),
        ("trials", "differ from those of each"),
        ("at", r"steps_at\(\) differs"),
        ("at shape", r"steps_at\(\) has a wrong shape"),
    ],
)
def test_broken_schedules(change: str, failure: str) -> None:
    checks.check_schedule(Steps(""))
    with pytest.raises(AssertionError, match=failure):
        checks.check_schedule(Steps(change))


class Noise(problems.Problem):
    """Targets in the unit square, with one thing changed."""

    K = Box(0.0, 1.0, dim=2)
    rounds = 10
    strong_convexity = 1.0
    lipschitz_f = 5.0
    lipschitz_g = 2.0

    def __init__(self, change: str) -> None:
        self.change = change
        if change in ("lipschitz_f", "lipschitz_g"):
            setattr(self, change, 0.001)
        if change == "modulus":
            self.strong_convexity = 2.0

    def initial(self, rng: Any) -> Any:
        return [2.0, 0.0] if self.change == "start" else rng.uniform(size=2)

    def start(self, seed: int, trials: Any) -> Any:
        start = super().start(seed, trials)
        match self.change:
            case "start shape":
                return start[:, :1]
            case "start trials":
                return start * 0.5 ** len(start)
        return start

    def round(self, rng: Any, t: int) -> Any:
        target = np.random.default_rng().uniform(size=2) if self.change == "chance" else rng.uniform(size=2)
        return losses.Distance(target), constraints.Affine(rng.uniform(size=2), 1.0)

    def stacked_rounds(self, seed: int, trial: int, rounds: int | None = None) -> Any:
        yield from super().stacked_rounds(seed + (self.change == "stacked"), trial, rounds)


@pytest.mark.parametrize(
    ("change", "failure"),
    [
        ("start", "a start does not lie in K"),
        ("start shape", r"start\(\) has a wrong shape"),
        ("start trials", "the start of a trial depends on other trials"),
        ("chance", "the rounds of a trial depend on"),
        ("stacked", r"stacked_rounds\(\) has other rounds"),
        ("lipschitz_f", "a loss has a subgradient of norm"),
        ("lipschitz_g", "a constraint has a subgradient of norm"),
        ("modulus", "a loss has the modulus 1, below 2"),
    ],
)
def test_broken_problems(change: str, failure: str) -> None:
    checks.check_problem(Noise(""))
    with pytest.raises(AssertionError, match=failure):
        checks.check_problem(Noise(change))


def test_points_of_one_s_own() -> None:
    loss = losses.Function(lambda x: -np.log(x[0]), lambda x: -1.0 / x)
    points = np.linspace(0.5, 2.0, 8)[:, None]
    with pytest.raises(InvalidInput, match=r"points: expected shape \(\.\.\., 2\)"):
        checks.check_loss(loss, points=points)  # a loss for any dimension is checked in two
    checks.check_loss(losses.Norm(np.eye(1), [0.25]), points=points)
    with pytest.raises(InvalidInput, match=r"points: expected shape \(P, 1\), got \(1, 1\)"):
        checks.check_loss(losses.Norm(np.eye(1), [0.25]), points=points[:1])


@pytest.mark.parametrize("name", ["set", "loss", "constraint", "schedule", "problem", "algorithm"])
@pytest.mark.parametrize("subject", [None, "text", 3.0])
def test_what_is_no_such_object_is_refused(name: str, subject: Any) -> None:
    with pytest.raises(InvalidInput, match="expected"):
        getattr(checks, f"check_{name}")(subject)


def test_a_class_is_no_object() -> None:
    with pytest.raises(InvalidInput, match=r"K: expected an object such as cocopt\.Box, got"):
        checks.check_set(Box)  # type: ignore[arg-type]

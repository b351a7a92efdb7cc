"""Every registered class keeps the contract of its kind. A new class is covered without a line here."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import cocopt
from cocopt import Box, constraints, losses, problems, registry, state, steps
from cocopt.algorithms import Learner
from cocopt.algorithms.base import Update
from cocopt.algorithms.facts import Facts
from cocopt.checks import check_algorithm, check_constraint, check_loss, check_problem, check_schedule, check_set
from cocopt.cli import app
from cocopt.errors import InvalidInput, NotStorable, StateError

KINDS = [kind for kind in registry.PACKAGES if kind != "algorithm"]
CASES = [(kind, name) for kind in KINDS for name in registry.classes(kind)]
ALGORITHMS = [
    (name, options) for name, cls in registry.classes("algorithm").items() for options in cls.example_options()
]


def check_class(cls):
    """The contract of the class's kind, on all its examples."""
    examples = cls.examples()
    assert examples, f"{cls.__name__}.examples() must show some objects, so that they can be checked"
    for example in examples:
        assert type(example) is cls
        CHECKS[cls.kind](example)
        check_storable(example)


def check_storable(thing):
    try:
        parameters = thing.parameters()
    except TypeError:  # a black box
        with pytest.raises(TypeError, match="cannot be stored"):
            state.encode(thing, "thing")
        return
    spec, arrays = state.encode(thing, "thing")
    again = state.Decoder(arrays).decode(spec)
    assert type(again) is type(thing)
    assert repr(again) == repr(thing)
    assert state.encode(again, "thing")[0] == spec
    assert again.parameters().keys() == parameters.keys()


def check_registered_problem(problem):
    check_problem(problem)
    assert type(problems.get(type(problem).name)) is type(problem)


CHECKS = {
    "set": check_set,
    "loss": check_loss,
    "constraint": check_constraint,
    "schedule": check_schedule,
    "problem": check_registered_problem,
}


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_the_contract_of_its_kind_is_kept(kind, name):
    check_class(registry.classes(kind)[name])


@pytest.mark.parametrize("rounds", [16, pytest.param(24, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "options"), ALGORITHMS)
def test_the_contract_of_a_learner_is_kept(name, options, rounds):
    check_registered_algorithm(registry.classes("algorithm")[name], options, rounds=rounds)


def test_a_learner_that_forgets_its_arguments_cannot_be_stored(tmp_path):
    class Forgetful(Learner):
        """Does not keep its scale."""

        def __init__(self, K, *, start=None, scale=1.0):
            super().__init__(K, start)

        def initial_memory(self, batch):
            return 0.0

        def update(self, memory, feedback):
            return Update(feedback.x, memory)

    learner = Forgetful(Box(0.0, 1.0, dim=2))
    with pytest.raises(
        NotStorable, match=r"named as the constructor's arguments, or a method parameters\(\), got .*scale"
    ):
        learner.parameters()


def check_registered_algorithm(cls, options, **arguments):
    learner = cls(Box(0.0, 1.0, dim=2), **options)
    check_algorithm(
        lambda K, start: cls(K, start=start, **options),
        remembers=learner.grows,
        static=learner.static,
        agents=learner.agents,
        **arguments,
    )


# ---------------------------------------------------------------- one of each, from outside the package


def define():
    """A class of each kind, as a user would write it."""

    @cocopt.register
    class Cube(Box):
        def __init__(self, side):
            super().__init__(0.0, side, dim=3)
            self.side = side

        def parameters(self):
            return {"side": self.side}

        @classmethod
        def examples(cls):
            return [cls(2.0)]

    @cocopt.register
    class Squares(losses.Loss):
        def __init__(self, weight):
            self.weight, self.dim, self.batch = np.asarray(weight), 2, ()

        def value_and_gradient_unchecked(self, x):
            return self.weight * np.vecdot(x, x), 2.0 * self.weight * x

        def data_arrays(self):
            return [("weight", self.weight)]

        @classmethod
        def examples(cls):
            return [cls(3.0)]

    @cocopt.register
    class Below(constraints.Affine):
        @classmethod
        def examples(cls):
            return [cls([1.0, 2.0], 0.5)]

    @cocopt.register
    class Harmonic(steps.Schedule):
        name = "harmonic"

        def step(self, t, gradients):
            return 1.0 / t

        def parameters(self):
            return {}

        @classmethod
        def examples(cls):
            return [cls()]

    @cocopt.register
    class Noise(problems.Problem):
        """Targets that jump about."""

        name = "noise"
        K = Box(0.0, 1.0, dim=2)
        rounds = 10

        def round(self, rng, t):
            return losses.Distance(rng.normal(size=2)), constraints.Affine(rng.uniform(size=2), 1.0)

    @cocopt.register
    class Descent(Learner):
        """Projected gradient descent."""

        name, title = "descent", "Descent"
        facts = Facts(1847, "projection onto K", "nothing is reconstructed")

        def __init__(self, K, *, start=None, scale=1.0):
            super().__init__(K, start)
            self.scale = scale

        def parameters(self):
            return {"K": self.K, "scale": self.scale}

        def initial_memory(self, batch):
            return {"momentum": self.scale * np.zeros((*batch, self.K.dim)), "name": "descent"}

        def update(self, memory, feedback):
            gradient = np.zeros(feedback.x.shape) if feedback.gradient is None else feedback.gradient
            momentum = 0.5 * memory["momentum"] + gradient
            x = self.K.project(feedback.x - self.scale / np.sqrt(feedback.t) * momentum)
            return Update(x, {"momentum": momentum, "name": "descent"})

    return [Cube, Squares, Below, Harmonic, Noise, Descent]


def test_a_class_of_each_kind_from_outside():
    Cube, Squares, Below, Harmonic, Noise, Descent = classes = define()
    assert [cls.kind for cls in classes] == ["set", "loss", "constraint", "schedule", "problem", "algorithm"]
    for cls in classes[:-1]:
        check_class(cls)
        assert (cls.kind, registry.name_of(cls)) in {
            (kind, name) for kind in KINDS for name in registry.classes(kind)
        }  # as the tests above find it
    check_registered_algorithm(Descent, *Descent.example_options(), rounds=16)
    assert (cocopt.Cube, cocopt.Descent) == (Cube, Descent)
    assert (losses.Squares, constraints.Below, steps.Harmonic, problems.Noise) == (Squares, Below, Harmonic, Noise)
    assert {"Cube", "Descent"} <= {*cocopt.__all__} & {*dir(cocopt)}
    assert "Squares" in dir(losses)
    assert type(problems.get("noise")) is Noise
    listed = CliRunner().invoke(app, ["list"], env={"COLUMNS": "300"}).stdout
    for name in ("Cube", "Squares", "Below", "harmonic", "noise", "descent"):
        assert name in listed
    assert "nothing is reconstructed" in listed
    result = cocopt.run("noise", ["descent:scale=2", "clasp:steps=harmonic"], trials=2, rounds=4, jobs=1)
    assert "descent:scale=2" in str(result.summary())
    define()  # the same notebook cell again


def test_a_class_without_examples_is_noticed():
    @cocopt.register
    class Bare(cocopt.ConvexSet):
        pass

    with pytest.raises(AssertionError, match=r"Bare\.examples\(\) must show some objects"):
        check_class(Bare)


def test_a_broken_class_is_noticed():
    @cocopt.register
    class Steep(losses.Linear):
        def value_and_gradient_unchecked(self, x):
            value, gradient = super().value_and_gradient_unchecked(x)
            return value, 2.0 * gradient

    with pytest.raises(AssertionError, match="subgradient inequality"):
        check_class(Steep)


NEW_ALGORITHM = """
from typing import Any

from cocopt.algorithms.base import Feedback, Learner, Update
from cocopt.registry import register


@register
class NewOne(Learner):
    \"\"\"Stays where it is.\"\"\"

    name = "new-one"

    def __init__(self, K: Any, *, start: Any = None) -> None:
        super().__init__(K, start)

    def initial_memory(self, batch: tuple[int, ...]) -> float:
        return 1.0

    def update(self, memory: float, feedback: Feedback) -> Update:
        return Update(self.K.project(feedback.x), memory / 2)
"""


@pytest.mark.long
def test_a_new_algorithm_is_one_file(tmp_path):
    """In a copy of the package, to which one file is added."""
    package = tmp_path / "cocopt"
    shutil.copytree(Path(cocopt.__file__).parent, package)
    (package / "algorithms" / "new_one.py").write_text(NEW_ALGORITHM)
    program = """
        import sys
        import cocopt
        from cocopt import Box, losses, registry
        from cocopt.cli import app
        from cocopt.checks import check_algorithm
        from typer.testing import CliRunner

        assert cocopt.__file__.startswith(sys.argv[1])
        learner = cocopt.NewOne(Box(0.0, 1.0, dim=2))
        assert "NewOne" in cocopt.__all__ and cocopt.NewOne is cocopt.algorithms.NewOne
        learner.tell(losses.Linear([1.0, 0.0]))
        learner.save("state.npz")
        assert cocopt.load("state.npz")._state.memory == 0.5
        assert "new-one" in CliRunner().invoke(app, ["list"], env={"COLUMNS": "300"}).stdout
        check_algorithm(lambda K, start: cocopt.NewOne(K, start=start), K=Box(0.0, 1.0, dim=2), rounds=16)
        print(cocopt.run("olr", ["new-one"], trials=2, rounds=3, jobs=1).summary())
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "new-one" in done.stdout


class Scaled(Learner):
    """What it remembers depends on what its constructors set, after that of the base class."""

    def __init__(self, K, *, start=None, scale=2.0):
        super().__init__(K, start)
        self.scale = scale

    def parameters(self):
        return {"K": self.K, "scale": self.scale}

    def initial_memory(self, batch):
        return np.full((*batch, self.K.dim), self.scale)

    def update(self, memory, feedback):
        return Update(self.K.project(feedback.x - memory), memory / 2)


class TwiceScaled(Scaled):
    def __init__(self, K, *, start=None, scale=2.0, more=3.0):
        super().__init__(K, start=start, scale=scale)
        self.more = more

    def parameters(self):
        return {**super().parameters(), "more": self.more}

    def initial_memory(self, batch):
        return (super().initial_memory(batch), self.more)

    def update(self, memory, feedback):
        inner, more = memory
        update = super().update(inner, feedback)
        return update._replace(memory=(update.memory, more + 1.0))


@pytest.mark.parametrize("cls", [Scaled, TwiceScaled])
def test_the_memory_begins_when_all_constructors_are_done(cls, tmp_path):
    cocopt.register(cls)
    learner = cls(Box(0.0, 1.0, dim=2), scale=0.125)
    early = pickle.loads(pickle.dumps(learner))  # as on its way to another process
    for one in (learner, early):
        one.tell(losses.Linear([1.0, 0.0]))
    late = pickle.loads(pickle.dumps(learner))
    learner.save(tmp_path / "state.npz")
    stored = cocopt.load(tmp_path / "state.npz")
    expected = state.encode(learner._state, "state")[0]
    for one in (early, late, stored):
        assert state.encode(one._state, "state")[0] == expected
        np.testing.assert_array_equal(one.ask(), learner.ask())


@pytest.mark.parametrize("memory", [None, np.zeros(3), 1, "text", [np.zeros((2, 3))], {}])
def test_a_memory_of_another_kind_is_refused(memory, tmp_path):
    cocopt.register(Scaled)
    learner = Scaled(Box(0.0, 1.0, dim=2))
    learner._state = learner._state._replace(memory=memory)
    learner.save(tmp_path / "state.npz")
    with pytest.raises(StateError, match="memory: expected an array of float64"):
        cocopt.load(tmp_path / "state.npz")


def test_adagrad_takes_no_step_and_no_warning_without_a_gradient():
    for batch in ((), (2,)):
        learner = cocopt.AdaGrad(Box(0.0, 1.0, dim=2), 100, 1.0, start=np.full((*batch, 2), 0.5))
        with np.errstate(all="raise"):
            record = learner.tell(losses.Linear([0.0, 0.0]), constraints.Affine([1.0, 1.0], 5.0))
        np.testing.assert_array_equal(record.step, np.zeros(batch))
        np.testing.assert_array_equal(learner.ask(), np.full((*batch, 2), 0.5))


def test_unknown_names_of_packages_are_attribute_errors():
    for package in registry.PACKAGES.values():
        with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Nothing'"):
            _ = sys.modules[package].Nothing
    with pytest.raises(InvalidInput, match="problem: expected one of drift, "):
        problems.get("Nothing")

"""From what a user names or configures to learners: names from the registry, one rule for what a constructor needs."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from cocopt import problems, registry, state, steps
from cocopt.algorithms import Learner
from cocopt.arrays import Array, describe
from cocopt.errors import InvalidInput
from cocopt.experiments.specs import Spec, file_hash, make_picklable, parse, unknown_name

if TYPE_CHECKING:
    from cocopt.problems import Problem

__all__ = ["Algorithm", "Given", "needs", "options", "resolve"]

#: what `resolve` understands: a description, a configured learner, or a function of (K, start)
Given: TypeAlias = str | Learner | Callable[..., Learner]


_SYMBOLS = {"beta": "β", "epsilon": "ε", "scale": "c"}
_PROBLEM = "problem"  # as an option's value: the problem's own
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True)
class Algorithm:
    """An algorithm ready to be built for a problem.

    Attributes
    ----------
    label : str
        Its name in tables and files.
    title : str
        Its name in figures.
    make : callable
        The class, or a function that takes K, start and what else its signature names.
    options : dict
        What the user chose.
    identity : JSON-able, or None
        What distinguishes it from every other one; None for a function, which cannot say.
    """

    label: str
    title: str
    make: Callable[..., Learner]
    options: Mapping[str, Any] = field(default_factory=dict)
    identity: Any = None

    def _require_fit(self, problem: Problem) -> None:
        """Refuses a method for constraints that never change where they do, unless options make it one for others."""
        facts, others = getattr(self.make, "facts", None), getattr(self.make, "dynamic_options", {})
        changed = bool(others) and all(self.options.get(name) == value for name, value in others.items())
        if facts is None or facts.constraints != "static" or problem.static is not False or changed:
            return
        hint = f"; {Spec(self.label.partition(':')[0], others)} is for constraints that change" if others else ""
        raise InvalidInput(
            f"{self.label}: expected a problem whose constraint never changes, got {problem.name!r}, whose constraint "
            f"does{hint}"
        )

    def build(self, problem: Problem, rounds: int, start: Array) -> Learner:
        """A learner at the start points of some trials.

        ``K`` and ``start``, the horizon, and the constants of `Problem.algorithm_defaults` come from the run and the
        problem where the constructor asks for them and no option says otherwise. A modulus of strong convexity chooses
        another form of most methods; so it is passed only where it is required, or where the option's value is
        ``problem``, which stands for the problem's own.
        """
        self._require_fit(problem)
        supplied = {"horizon": rounds, **problem.algorithm_defaults}
        known = {"strong_convexity": problem.strong_convexity or None, **supplied}
        asked = inspect.signature(self.make).parameters
        chosen = dict(self.options)
        if "steps" in asked and not isinstance(chosen.get("steps"), steps.Schedule):
            schedule = _schedule(chosen, getattr(self.make, "run_options", {}).get("steps"), known, problem)
            if schedule is not None:
                chosen["steps"] = schedule
        arguments: dict[str, Any] = {}
        for name, parameter in asked.items():
            value = chosen.get(name)
            required = parameter.default is parameter.empty and parameter.kind not in _VARIADIC
            if name in ("K", "start"):
                value = problem.K if name == "K" else start
            elif value == _PROBLEM or (name not in chosen and (required or name in supplied)):
                value = known.get(name)
                if value is None:
                    raise _lacking(self.label, name, problem)
            if value is not None or name in chosen:
                arguments[name] = value
        learner = self.make(**arguments)
        if not isinstance(learner, Learner):
            raise InvalidInput(f"{self.label}: expected a cocopt.algorithms.Learner, got {describe(learner)}")
        if learner.agents is not None and problem.agents is None:  # it would take trials for agents
            raise InvalidInput(
                f"{self.label}: expected a problem with agents, such as network, got {problem.name!r}, which has none"
            )
        return learner


def resolve(given: Given | Sequence[Given] | Mapping[str, Given]) -> list[Algorithm]:
    """The algorithms that a user asks for; sweeps become several, and every label is used once."""
    if isinstance(given, Mapping):
        found = [_renamed(name, _resolve(one)) for name, one in given.items()]
    else:
        several = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
        found = [algorithm for one in several for algorithm in _resolve(one)]
    if not found:
        raise InvalidInput("algorithms: expected at least one, got none")
    labels = [algorithm.label for algorithm in found]
    for label in labels:
        if labels.count(label) > 1:
            raise InvalidInput(
                f"algorithms: expected different names, got {label!r} {labels.count(label)} times: "
                "tell them apart by their options (clasp:beta=0.7), or in Python by a mapping {name: algorithm, ...}"
            )
    return found


def _renamed(name: str, found: list[Algorithm]) -> Algorithm:
    if len(found) != 1:
        raise InvalidInput(f"{name}: expected one algorithm, got {len(found)}")
    return replace(found[0], label=name, title=name)


def _resolve(given: Given) -> list[Algorithm]:
    if isinstance(given, str):
        return [_from_file(spec) if spec.in_file else _from_registry(spec) for spec in parse(given)]
    if isinstance(given, Learner):
        return [_from_learner(given, type(given).__name__)]
    if callable(given):
        name = getattr(given, "__name__", type(given).__name__)
        return [Algorithm(name, name, given)]
    raise InvalidInput(f"algorithms: expected names, learners or functions of (K, start), got {describe(given)}")


def _from_registry(spec: Spec) -> Algorithm:
    known = registry.classes("algorithm")
    if spec.target not in known:
        raise unknown_name("algorithm", spec.target, known)
    cls = known[spec.target]
    _check_options(spec.target, cls, spec.options)
    identity = {"algorithm": spec.target, "options": spec.options} if _is_own(cls) else None
    return Algorithm(str(spec), _title(cls.title or cls.__name__, spec.options), cls, spec.options, identity)


def _is_own(cls: type) -> bool:
    """Whether cocopt defines it; a user's class may change without a trace, so its name does not identify it."""
    return cls.__module__.startswith("cocopt.")


def _from_file(spec: Spec) -> Algorithm:
    found = problems.from_file(spec.target)
    make_picklable(found)
    file, name = file_hash(spec.target), spec.target.rpartition(":")[2]
    if isinstance(found, Learner) and not spec.options:
        return replace(_from_learner(found, name), identity={"file": file, "name": name})
    if not callable(found):
        raise InvalidInput(f"{spec.target}: expected a Learner or a function that makes one, got {describe(found)}")
    _check_options(name, found, spec.options)
    identity = {"file": file, "name": name, "options": spec.options}
    return Algorithm(str(Spec(name, spec.options)), _title(name, spec.options), found, spec.options, identity)


def _from_learner(learner: Learner, name: str) -> Algorithm:
    """A configured learner as a pattern: its class and parameters; the point where it stands does not matter."""
    parameters = learner.parameters()
    described: dict[str, Any] = {}
    for key, value in parameters.items():
        try:
            spec, arrays = state.encode(value, key)
        except TypeError:  # it cannot be described
            described = {}
            break
        described[key] = [spec, {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in arrays.items()}]
    cls = type(learner)
    identity = {"class": cls.__qualname__, "parameters": described} if _is_own(cls) and described else None
    return Algorithm(name, name, _Rebuilt(cls, parameters), {}, identity)


class _Rebuilt:
    """Makes learners like a given one, on the problem's own K, which must be the same."""

    def __init__(self, cls: type[Learner], parameters: dict[str, Any]) -> None:
        self.cls, self.parameters = cls, parameters

    def __call__(self, K: Any, start: Array) -> Learner:
        own = self.parameters["K"]
        if own is not K and not _same(own, K):
            raise InvalidInput(f"{self.cls.__name__}: expected the problem's own K = {K!r}, got {own!r}")
        return self.cls(**{**self.parameters, "start": start})


def _same(one: Any, other: Any) -> bool:
    try:
        (spec, arrays), (other_spec, other_arrays) = state.encode(one, "K"), state.encode(other, "K")
    except TypeError:
        return False
    return bool(spec == other_spec and all((array == other_arrays[name]).all() for name, array in arrays.items()))


def needs(make: Callable[..., Learner]) -> list[str]:
    """The arguments that the constructor requires beside K and start."""
    asked = inspect.signature(make).parameters.values()
    return [p.name for p in asked if p.default is p.empty and p.name not in ("K", "start") and p.kind != p.VAR_KEYWORD]


def options(make: Callable[..., Learner]) -> list[str]:
    """The options that a description may set."""
    asked = inspect.signature(make).parameters.items()
    names = [name for name, parameter in asked if name not in ("K", "start") and parameter.kind not in _VARIADIC]
    return [*names, "beta", "scale", "m", "c", "D"] if "steps" in names else names


def _check_options(name: str, make: Callable[..., Learner], chosen: Mapping[str, Any]) -> None:
    known = options(make)
    for key in chosen:
        if key not in known:
            raise unknown_name(f"{name}: option", key, known)


def _schedule(
    chosen: dict[str, Any], usual: str | None, known: Mapping[str, Any], problem: Problem
) -> steps.Schedule | None:
    """The schedule that the options describe, else the ``usual`` one; takes them out. None if there is neither."""
    own = {key: chosen.pop(key) for key in ("beta", "scale", "m", "c", "D") if key in chosen}
    name = chosen.pop("steps", None)
    if name is None and own.keys() <= {"scale"}:  # which every schedule has, so that it chooses none
        name = usual
        if name is None and not own:
            return None
    strongly_convex = name == "strongly-convex" or (name is None and "m" in own)
    if strongly_convex and own.get("m", _PROBLEM) == _PROBLEM:
        own["m"] = known["strong_convexity"]
        if own["m"] is None:
            raise _lacking(f"steps={name}", "m", problem)
    if own.get("D") == _PROBLEM:
        del own["D"]
    return steps.as_schedule(name, **own).for_diameter(known.get("diameter") or problem.K.diameter)


def _lacking(label: str, name: str, problem: Problem) -> InvalidInput:
    return InvalidInput(
        f"{label}: expected {name}, got none: the problem {problem.name!r} does not give it; "
        f"say it yourself by the option {name}=..."
    )


def _title(title: str, chosen: Mapping[str, Any]) -> str:
    inner = Spec("", {_SYMBOLS.get(key, key): value for key, value in chosen.items()})
    return f"{title} ({str(inner)[1:].replace(',', ', ')})" if chosen else title

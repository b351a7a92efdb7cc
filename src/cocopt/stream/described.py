"""Objects from descriptions: ``{"type": "Linear", "c": [1, 2]}`` is ``losses.Linear(c=[1, 2])``.

Only registered classes are made; nothing is imported by a name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from cocopt import registry
from cocopt.algorithms import Learner
from cocopt.arrays import describe
from cocopt.errors import CocoptError, InvalidInput

__all__ = ["build", "learner_maker", "type_names"]

_DEEPEST = 8  # objects within objects
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@cache
def type_names(kind: str) -> dict[str, type]:
    """The classes of a kind that a description may name; a black box is code, and has no description."""
    return {name: cls for name, cls in registry.classes(kind).items() if name != "Function"}


def build(kind: str, given: Any, where: str, depth: int = 0) -> Any:
    """The object of this kind that a mapping describes: its class by ``type``, the constructor's arguments by name.

    Examples
    --------
    >>> from cocopt.stream.described import build
    >>> build("set", {"type": "Box", "lower": 0, "upper": 1, "dim": 2}, "set")
    Box(lower=0 (shape (2,)), upper=1 (shape (2,)), dim=2)
    """
    if not isinstance(given, Mapping) or not isinstance(given.get("type"), str):
        raise InvalidInput(f'{where}: expected {{"type": name, arguments by name}}, got {describe(given)}')
    if depth > _DEEPEST:
        raise InvalidInput(f"{where}: expected objects nested at most {_DEEPEST} deep, got more")
    known, name = type_names(kind), given["type"]
    if name == "Function":
        raise InvalidInput(f"{where}: type: expected a {kind} that data describe, got a Function, which is code")
    if name not in known:
        raise registry.unknown_name(f"{where}: type", name, known)
    arguments = {
        key: _argument(kind, value, f"{where}.{key}", depth + 1) for key, value in given.items() if key != "type"
    }
    return _call(known[name], arguments, where)


def _argument(kind: str, value: Any, where: str, depth: int) -> Any:
    """A value of JSON; a mapping is an object, or has objects or numbers by name."""
    if isinstance(value, Mapping):
        if "type" in value:
            return build(kind, value, where, depth)
        return {name: _argument(kind, one, f"{where}.{name}", depth + 1) for name, one in value.items()}
    if isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        return [build(kind, one, f"{where}[{i}]", depth) for i, one in enumerate(value)]
    return value


def _call(cls: type, arguments: dict[str, Any], where: str) -> Any:
    """cls(**arguments); errors say where the description is."""
    needed, optional, open_ended = _signature(cls)
    for name in arguments:
        if name not in needed and name not in optional and not open_ended:
            raise registry.unknown_name(f"{where}: argument of {cls.__name__}", name, [*needed, *optional])
    lacking = [name for name in needed if name not in arguments]
    if lacking:
        raise InvalidInput(f"{where}: expected {', '.join(lacking)} for {cls.__name__}, got none")
    try:
        return cls(**arguments)
    except CocoptError as error:
        raise InvalidInput(f"{where}: {error}") from error


@cache
def _signature(cls: type) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """The arguments that the constructor needs, those it may have, and whether it takes any others."""
    parameters = inspect.signature(cls).parameters.values()
    plain = [one for one in parameters if one.kind not in _VARIADIC]
    needed = tuple(one.name for one in plain if one.default is one.empty)
    return needed, tuple(one.name for one in plain if one.name not in needed), len(plain) < len(parameters)


def learner_maker(description: Any) -> Callable[[str], Learner]:
    """The function ``make(key)`` of a `Pool`, from the description of its learners.

    Parameters
    ----------
    description : mapping
        ``algorithm``, a name of ``cocopt list algorithms``; ``set``, an object; and the algorithm's other arguments.
        ``steps`` is a name or an object.

    Examples
    --------
    >>> from cocopt.stream import learner_maker
    >>> make = learner_maker({"algorithm": "clasp", "beta": 0.7, "set": {"type": "Simplex", "dim": 2}})
    >>> make("north").steps
    Power(beta=0.7, scale=1.0)
    """
    if not isinstance(description, Mapping) or not {"algorithm", "set"} <= {*description}:
        raise InvalidInput(f"learner: expected a table with algorithm and set, got {_outline(description)}")
    known, name = registry.classes("algorithm"), description["algorithm"]
    if not isinstance(name, str) or name not in known:
        raise registry.unknown_name("learner: algorithm", name, known)
    arguments = {key: value for key, value in description.items() if key not in ("algorithm", "set")}
    arguments["K"] = build("set", description["set"], "learner.set")
    if isinstance(arguments.get("steps"), Mapping):
        arguments["steps"] = build("schedule", arguments["steps"], "learner.steps")

    def make(key: str) -> Learner:
        learner: Learner = _call(known[name], arguments, "learner")
        return learner

    make("")  # a wrong description is an error now, not with the first line
    return make


def _outline(value: Any) -> str:
    return f"one with {', '.join(map(str, value)) or 'nothing'}" if isinstance(value, Mapping) else describe(value)

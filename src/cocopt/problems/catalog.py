"""Problems by name, and from a user's own file."""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import sys
from pathlib import Path
from typing import Any

from cocopt import registry
from cocopt.arrays import describe, positive_int
from cocopt.errors import InvalidInput
from cocopt.problems.base import Problem
from cocopt.sets.base import ConvexSet

__all__ = ["from_file", "get", "names"]


def names() -> list[str]:
    """The names of all registered problems."""
    return list(registry.classes("problem"))


def get(name: str, **options: Any) -> Problem:
    """The problem of that name, or the class ``Name`` of ``path/to/file.py:Name``, made with these options.

    Examples
    --------
    >>> from cocopt import problems
    >>> problems.get("olr", loss="squared").options
    {'loss': 'squared', 'noise': 'normal', 'constants': 'true'}
    >>> problems.get("orl")
    Traceback (most recent call last):
    ...
    cocopt.errors.InvalidInput: problem: expected one of ..., got 'orl'; did you mean olr?
    """
    known = registry.classes("problem")
    if not isinstance(name, str):
        raise InvalidInput(f"problem: expected a name or path/to/file.py:Name, got {describe(name)}")
    if name in known:
        kind = known[name]
    elif ".py:" in name:
        kind = from_file(name)
        if not (inspect.isclass(kind) and issubclass(kind, Problem)):
            raise InvalidInput(f"{name}: expected a class derived from cocopt.problems.Problem, got {describe(kind)}")
    else:
        raise InvalidInput(
            f"problem: expected one of {', '.join(known)} or path/to/file.py:Name, got {name!r}"
            f"{_nearest(name, list(known))}"
        )
    accepted = [key for key in inspect.signature(kind).parameters if key != "kwargs"]
    for key in options:
        if key not in accepted:
            expected = f"one of the options {', '.join(accepted)}" if accepted else "no options"
            raise InvalidInput(f"{name}: expected {expected}, got {key!r}{_nearest(key, accepted)}")
    problem: Problem = kind(**options)
    if not problem.options:
        problem.options = options
    if not isinstance(getattr(problem, "K", None), ConvexSet):
        raise InvalidInput(f"{name}: K: expected a set such as cocopt.Box, got {describe(getattr(problem, 'K', None))}")
    positive_int(f"{name}: rounds", getattr(problem, "rounds", None))
    return problem


def from_file(spec: str) -> Any:
    """The object ``Name`` that the Python file of ``path/to/file.py:Name`` defines; the file is run."""
    if not isinstance(spec, str):
        raise InvalidInput(f"spec: expected path/to/file.py:Name, got {describe(spec)}")
    file, _, name = spec.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise InvalidInput(f"{spec}: expected path/to/file.py:Name, got a path that is no file")
    module_name = f"_cocopt_file_{path.stem}"
    described = importlib.util.spec_from_file_location(module_name, path)
    if described is None or described.loader is None:
        raise InvalidInput(f"{spec}: expected a Python file, got {path.name}")
    module = importlib.util.module_from_spec(described)
    sys.modules[module_name] = module  # dataclasses look their module up while it is being run
    try:
        described.loader.exec_module(module)
    except Exception as error:
        raise InvalidInput(
            f"{spec}: expected a file that can be imported, got {type(error).__name__}: {error}"
        ) from error
    if not hasattr(module, name):
        known = [key for key in vars(module) if not key.startswith("_")]
        raise InvalidInput(f"{spec}: expected a name that {path.name} defines, got {name!r}{_nearest(name, known)}")
    return getattr(module, name)


def _nearest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known)
    return f"; did you mean {' or '.join(close)}?" if close else ""

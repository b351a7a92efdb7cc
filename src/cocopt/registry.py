"""Where classes declare themselves, once, by kind and name.

``@register`` on a class makes it exported by its package, storable in state files, listed by ``cocopt list`` and
covered by the contract tests. Its kind is that of its base class; its name is the attribute ``name`` if the class
defines one itself, else the name of the class. Two kinds may use the same name.
"""

from __future__ import annotations

import difflib
import pkgutil
from collections.abc import Iterable
from importlib import import_module
from typing import Any, TypeVar

from cocopt.errors import InvalidInput

__all__ = ["PACKAGES", "attribute", "classes", "exported", "import_package", "name_of", "register"]

#: kind → the package that defines cocopt's own classes of this kind, and exports all of them
PACKAGES = {
    "set": "cocopt.sets",
    "loss": "cocopt.losses",
    "constraint": "cocopt.constraints",
    "schedule": "cocopt.steps",
    "algorithm": "cocopt.algorithms",
    "problem": "cocopt.problems",
}

_classes: dict[str, dict[str, type]] = {kind: {} for kind in PACKAGES}

Class = TypeVar("Class", bound=type)


def register(cls: Class) -> Class:
    """Declares a set, loss, constraint, schedule, algorithm or problem; a class decorator.

    The class is known by its kind and name from then on: state files may hold its objects, if it has ``parameters()``,
    and ``cocopt.run`` finds it. The same class defined again (a notebook cell that runs twice) replaces the first.

    Raises
    ------
    InvalidInput
        If another class of this kind has the same name.

    Examples
    --------
    >>> import cocopt
    >>> from cocopt import state, steps
    >>> @cocopt.register
    ... class Halving(steps.Schedule):
    ...     def step(self, t, gradients):
    ...         return 0.5**t
    ...
    ...     def parameters(self):
    ...         return {}
    >>> state.encode(Halving(), "steps")
    ({'schedule': 'Halving', 'parameters': {}}, {})
    """
    kind = getattr(cls, "kind", None)
    if not isinstance(cls, type) or kind not in PACKAGES:
        raise InvalidInput(
            f"register: expected a class derived from ConvexSet, Loss, Constraint, Schedule, Learner or Problem, "
            f"got {cls!r}"
        )
    name = vars(cls).get("name", cls.__name__)
    for taken, other in _classes[kind].items():
        if _origin(other) != _origin(cls) and (taken == name or other.__name__ == cls.__name__):
            raise InvalidInput(
                f"register: expected a name that no other {kind} has, got {name!r} for "
                f"{'.'.join(_origin(cls))}: {'.'.join(_origin(other))} is registered as {taken!r} already"
            )
    _classes[kind][name] = cls
    return cls


def _origin(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__


def classes(kind: str) -> dict[str, type[Any]]:
    """All registered classes of a kind, by name, in alphabetical order.

    Examples
    --------
    >>> from cocopt import registry
    >>> registry.classes("set")["Box"]
    <class 'cocopt.sets.box.Box'>
    """
    _require_kind(kind)
    import_module(PACKAGES[kind])
    return dict(sorted(_classes[kind].items(), key=lambda item: item[0].lower()))


def _require_kind(kind: Any) -> None:
    if not isinstance(kind, str) or kind not in PACKAGES:
        raise InvalidInput(f"kind: expected one of {', '.join(PACKAGES)}, got {kind!r}")


def name_of(cls: type) -> str | None:
    """The name under which this very class is registered; None if it is not, even if a base class is.

    Examples
    --------
    >>> from cocopt import CLASP, registry
    >>> registry.name_of(CLASP), registry.name_of(int)
    ('clasp', None)
    """
    for name, registered in _classes.get(getattr(cls, "kind", ""), {}).items():
        if registered is cls:
            return name
    return None


def unknown_name(kind: str, name: object, known: Iterable[str]) -> InvalidInput:
    """The error for an unknown name, with the known names most like it, or all of them if none is alike.

    >>> from cocopt.registry import unknown_name
    >>> unknown_name("algorithm", "clapsp", ["clasp", "recoo"])
    InvalidInput("algorithm: expected a known name, got 'clapsp'; did you mean clasp?")
    """
    names = sorted(known)
    alike = difflib.get_close_matches(str(name).lower(), names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(alike)}?" if alike else f"known: {', '.join(names) or 'none'}"
    return InvalidInput(f"{kind}: expected a known name, got {name!r}; {hint}")


def exported(kind: str) -> dict[str, type[Any]]:
    """The registered classes of a kind by the names of the classes, under which packages export them."""
    _require_kind(kind)
    return {cls.__name__: cls for cls in _classes[kind].values()}


def import_package(kind: str, path: Iterable[str], *, skip: tuple[str, ...] = ()) -> dict[str, type[Any]]:
    """Imports all modules of the package of a kind, so that their classes declare themselves; returns `exported`.

    ``skip`` names modules that are imported only when they are needed, because they need an optional dependency.
    """
    for module in pkgutil.iter_modules(path):
        if module.name not in skip:
            import_module(f"{PACKAGES[kind]}.{module.name}")
    return exported(kind)


def attribute(kind: str, name: str) -> type[Any]:
    """What the module-level ``__getattr__`` of a package returns: a class that was registered from outside."""
    found = exported(kind).get(name)
    if found is None:
        raise AttributeError(f"module {PACKAGES[kind]!r} has no attribute {name!r}")
    return found

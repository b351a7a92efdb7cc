"""The sets K from which actions are taken, one file per set."""

from typing import Any

from cocopt import registry
from cocopt.sets.base import ConvexSet, Polyhedral

_OWN = registry.import_package("set", __path__)
globals().update(_OWN)

__all__ = ["ConvexSet", "Polyhedral", *_OWN]


def __getattr__(name: str) -> Any:
    return registry.attribute("set", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *registry.exported("set")})

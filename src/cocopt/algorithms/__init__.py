"""The algorithms, one file each; a new file with a registered `Learner` is all that one more needs."""

from typing import Any

from cocopt import registry
from cocopt.algorithms.base import Learner, Round

_OWN = registry.import_package("algorithm", __path__)
globals().update(_OWN)

__all__ = ["Learner", "Round", *_OWN]


def __getattr__(name: str) -> Any:
    return registry.attribute("algorithm", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *registry.exported("algorithm")})

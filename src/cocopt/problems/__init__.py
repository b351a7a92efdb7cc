"""The problems that experiments run on, one file per problem, and the way to bring one's own."""

from typing import Any

from cocopt import registry
from cocopt.problems.base import BlockProblem, Problem
from cocopt.problems.catalog import from_file, get, names
from cocopt.problems.replay import from_csv, from_frame

_OWN = registry.import_package("problem", __path__)
globals().update(_OWN)

__all__ = ["BlockProblem", "Problem", "from_csv", "from_file", "from_frame", "get", "names", *_OWN]


def __getattr__(name: str) -> Any:
    return registry.attribute("problem", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *registry.exported("problem")})

"""Step sizes η_t of the gradient steps, one file per rule.

Rounds count from 1. The theorems want positive steps that never increase; [`checked_step`][cocopt.steps.checked_step]
holds every schedule to that as it is used.
"""

from typing import Any

from cocopt import registry
from cocopt.steps.base import Schedule, Step, checked_step  # noqa: F401
from cocopt.steps.function import Function, as_schedule

_OWN = registry.import_package("schedule", __path__)
globals().update(_OWN)

__all__ = ["Function", "Schedule", "as_schedule", "checked_step", *_OWN]


def __getattr__(name: str) -> Any:
    return registry.attribute("schedule", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *registry.exported("schedule")})

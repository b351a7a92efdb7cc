"""Losses f_t, as small immutable objects, one class per file.

Arrays may carry leading axes, one entry per trial; they broadcast against the leading axes of the point. Contents are
not searched for NaN at construction: a result that is not finite is traced to the argument that caused it.
"""

from typing import Any

from cocopt import registry
from cocopt.losses.base import Loss

_OWN = registry.import_package("loss", __path__)
globals().update(_OWN)

__all__ = ["Loss", *_OWN]


def __getattr__(name: str) -> Any:
    return registry.attribute("loss", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *registry.exported("loss")})

"""What all checks share: tolerances, the form of a failure, and the check of their own arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from cocopt.arrays import describe, nonnegative_int
from cocopt.errors import InvalidInput

__all__ = ["TOL", "as_generator", "close", "require", "require_kind"]

TOL = 1e-9  # relative to the size of the points and of the object that is checked


def require(subject: object, holds: bool, failure: str) -> None:
    """Raises an `AssertionError` that names the object and the property, unless this holds."""
    if not holds:
        raise AssertionError(f"{subject!r}: {failure}")


def close(value: Any, expected: Any) -> bool:
    """Whether numbers agree, to `TOL` of their size or of 1."""
    return bool(np.allclose(value, expected, rtol=TOL, atol=TOL))


def require_kind(name: str, subject: Any, kind: str, example: str) -> None:
    """Refuses an argument that is no object of the kind, as `cocopt.registry` names kinds.

    Kinds and not classes are compared, because problems belong to a layer above this one.
    """
    if isinstance(subject, type) or getattr(subject, "kind", None) != kind:
        raise InvalidInput(f"{name}: expected an object such as {example}, got {describe(subject)}")


def as_generator(seed: int) -> np.random.Generator:
    """Random numbers from a seed, a non-negative integer."""
    return np.random.default_rng(nonnegative_int("seed", seed))

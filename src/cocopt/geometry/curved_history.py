"""Curved constraints of all rounds so far, those of one kind in common arrays: one pass evaluates them all.

A constraint has a number, its place in the sequence of curved constraints, and is of a kind: its class and the sizes of
its arrays. Kinds that are not known here have one member each, and are evaluated one by one.
"""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array
from cocopt.constraints import Constraint, Norm1, NormBall, NormInf, Quadratic, SecondOrder
from cocopt.geometry.problem import trial_constraint

__all__ = ["CurvedHistory"]

Integers = NDArray[np.int64]

#: the arguments of each class, and how many axes each has behind those of the trials
_ARGUMENTS: dict[type[Constraint], dict[str, int]] = {
    Norm1: {"center": 1, "radius": 0},
    NormBall: {"center": 1, "radius": 0},
    NormInf: {"center": 1, "radius": 0},
    Quadratic: {"P": 2, "q": 1, "r": 0},
    SecondOrder: {"A": 2, "b": 1, "c": 1, "d": 0},
}


class _Kind:
    """Constraints of one kind: arrays (capacity, B, ...), of which the first entries are in use."""

    def __init__(self, kind: type[Constraint], shapes: dict[str, tuple[int, ...]], trials: int) -> None:
        self.kind, self.numbers = kind, list[int]()
        self.arrays = {name: np.empty((4, trials, *shape)) for name, shape in shapes.items()}

    def add(self, number: int, arguments: dict[str, Array], batch: tuple[int, ...]) -> None:
        """One more, its arrays broadcast against the trials."""
        at = len(self.numbers)
        for name, array in arguments.items():
            buffer = self.arrays[name]
            if at == len(buffer):
                buffer = self.arrays[name] = np.concatenate([buffer, np.empty_like(buffer)])
            core = buffer.shape[2:]
            buffer[at] = np.broadcast_to(array, (*batch, *core)).reshape(buffer.shape[1:])
        self.numbers.append(number)

    def first(self, count: int) -> Constraint:
        """The first ones together, their leading axes (count, B)."""
        return self.kind(**{name: array[:count] for name, array in self.arrays.items()})

    def take(self, places: Integers, trials: Integers) -> Constraint:
        """One of each trial."""
        return self.kind(**{name: array[places, trials] for name, array in self.arrays.items()})


class CurvedHistory:
    """The constraints with leading axes ``batch``, in the order in which they came. A cache, shared by versions."""

    def __init__(self, batch: tuple[int, ...]) -> None:
        self._batch, self._known = batch, list[Constraint]()
        self._kinds: dict[Any, _Kind] = {}
        self._place: list[tuple[Any, int]] = []  # the kind of each constraint, and its place there

    def holding(self, curved: Sequence[Constraint]) -> CurvedHistory:
        """Itself, with the last of these constraints added; another one if it began with others."""
        known = len(self._known)
        if not all(map(operator.is_, self._known, curved)):
            return CurvedHistory(self._batch).holding(curved)
        for number in range(known, len(curved)):
            self._add(number, curved[number])
        return self

    def _add(self, number: int, constraint: Constraint) -> None:
        arguments = _ARGUMENTS.get(type(constraint))
        key: Any = number
        if arguments is not None:
            arrays = {name: getattr(constraint, name) for name in arguments}
            shapes = {name: arrays[name].shape[arrays[name].ndim - axes :] for name, axes in arguments.items()}
            key = (type(constraint), *shapes.values())
            if key not in self._kinds:
                self._kinds[key] = _Kind(type(constraint), shapes, prod(self._batch))
            self._place.append((key, len(self._kinds[key].numbers)))
            self._kinds[key].add(number, arrays, self._batch)
        else:
            self._place.append((key, 0))
        self._known.append(constraint)

    def kind(self, number: int) -> Any:
        """Constraints with the same kind can be taken together."""
        return self._place[number][0]

    def take(self, numbers: Sequence[int], trials: Integers) -> Constraint:
        """One constraint of each of these trials, all of one kind."""
        key = self.kind(numbers[0])
        if key in self._kinds:
            return self._kinds[key].take(np.array([self._place[number][1] for number in numbers]), trials)
        index = tuple(np.unravel_index(trials, self._batch)) if self._batch else ()
        return trial_constraint(self._known[numbers[0]], self._batch, index)

    def violations(self, x: Array, count: int) -> tuple[list[int], Array]:
        """Of the first ``count`` constraints, at x (B, n): those that some trial violates; Σ (max_i g_i^+(x))², (B)."""
        found, total = list[int](), np.zeros(x.shape[0])
        for kind in self._kinds.values():
            size = bisect_left(kind.numbers, count)
            if size:
                positive = np.maximum(kind.first(size).rows_unchecked(x).max(axis=-1), 0.0)
                found += [kind.numbers[k] for k in np.flatnonzero(positive.any(axis=-1))]
                total += np.square(positive).sum(axis=0)
        points = x.reshape(*self._batch, x.shape[-1])
        for number, (key, _) in enumerate(self._place[:count]):
            if key not in self._kinds:
                own = np.broadcast_to(self._known[number].violation_unchecked(points), self._batch).reshape(-1)
                total += np.square(own)
                if (own > 0.0).any():
                    found.append(number)
        return sorted(found), total

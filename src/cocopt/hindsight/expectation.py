"""The constraint Σ_t g_t(x) ≤ 0, as one constraint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from cocopt.arrays import Array
from cocopt.constraints import Affine, Constraint
from cocopt.errors import InvalidInput
from cocopt.hindsight.rounds import Block, Rounds
from cocopt.problems.base import MixedConstraint

__all__ = ["sum_constraints"]

SumMode = Literal["each", "max"]


def sum_constraints(rounds: Rounds, T: int, dim: int, rows: SumMode) -> Constraint | None:
    """Σ_{t≤T} g_{t,i}(x) ≤ 0 for each row i, or Σ_{t≤T} max_i g_{t,i}(x) ≤ 0; None if no round has a constraint.

    Rounds without a constraint, and rows that are switched off, add nothing.
    """
    counts = {constraint.row_count for _, _, _, constraint in rounds.blocks(T) if constraint is not None}
    if not counts:
        return None
    if rows == "each" and len(counts) > 1:
        raise InvalidInput(
            f'rows: expected "max", since the rounds have different numbers of rows ({sorted(counts)}), got "each"'
        )
    row_count = counts.pop()
    if rows == "each" or (row_count == 1 and not counts):
        total = _sum_affine(rounds, T, row_count, dim)
        if total is not None:
            return total
    return _Sum(rounds, T, dim, 1 if rows == "max" else row_count, rows)


def _sum_affine(rounds: Rounds, T: int, row_count: int, dim: int) -> Affine | None:
    """The sum of affine rows; None if some are not affine."""
    A, b = np.zeros((row_count, dim)), np.zeros(row_count)
    for block in rounds.blocks(T):
        for weight, used, constraint in _members(block):
            affine = constraint.affine()
            if affine is None:
                return None
            normals, rhs = (part if constraint.batch else part[None] for part in affine)
            active = rhs[:used] < np.inf
            A += weight * np.where(active[..., None], normals[:used], 0.0).sum(axis=0)
            b += weight * np.where(active, rhs[:used], 0.0).sum(axis=0)
    return Affine(A, b)


def _members(block: Block) -> Iterator[tuple[int, int, Constraint]]:
    """(weight, used, constraint): the constraints of a block, each counted ``weight`` times."""
    _, used, _, constraint = block
    if isinstance(constraint, MixedConstraint):
        yield from ((1, 1, member) for member in constraint.members[:used])
    elif constraint is not None:
        yield (1, used, constraint) if constraint.batch else (used, 1, constraint)


class _Sum(Constraint):
    """The sum of constraints that are not affine, evaluated at one point (n,) at a time."""

    __slots__ = ("_T", "_mode", "_rounds", "dim", "row_count")

    def __init__(self, rounds: Rounds, T: int, dim: int, row_count: int, mode: SumMode) -> None:
        self._rounds, self._T, self._mode = rounds, T, mode
        self.dim: int = dim
        self.row_count: int = row_count

    def rows_unchecked(self, x: Array) -> Array:
        total = np.zeros(self.row_count)
        for values, _ in self._evaluate(x, jacobian=False):
            total += values
        return total

    def jacobian_unchecked(self, x: Array) -> Array:
        total = np.zeros((self.row_count, x.size))
        for _, jacobian in self._evaluate(x, jacobian=True):
            total += jacobian
        return total

    def magnitude(self, x: Array) -> Array:
        total = np.zeros(self.row_count)
        for size, used, _, constraint in self._rounds.blocks(self._T):
            if constraint is not None:
                units = np.broadcast_to(constraint.magnitude(_repeat(x, size)), (size, constraint.row_count))[:used]
                total += units.sum(axis=0) if self._mode == "each" else units.max(axis=1).sum()
        return total

    def _evaluate(self, x: Array, *, jacobian: bool) -> Iterator[tuple[Array, Array]]:
        """The sums of values, and of subgradients if they are asked for, of each block."""
        for size, used, _, constraint in self._rounds.blocks(self._T):
            if constraint is None:
                continue
            points = _repeat(x, size)
            values = constraint.rows(points)[:used]
            active = values > -np.inf
            slopes = np.zeros((used, self.row_count, x.size))
            if jacobian:
                slopes = np.where(active[..., None], constraint.jacobian(points)[:used], 0.0)
            values = np.where(active, values, 0.0) if self._mode == "each" else values
            if self._mode == "max":
                worst = values.argmax(axis=1)[:, None]
                values = np.take_along_axis(values, worst, axis=1)
                values = np.where(values > -np.inf, values, 0.0)
                slopes = np.take_along_axis(slopes, worst[..., None], axis=1) if jacobian else slopes
            yield values.sum(axis=0), slopes.sum(axis=0)


def _repeat(x: Array, count: int) -> Array:
    """The point once for every round, as a vectorised function that holds the data of all rounds needs it."""
    return np.array(np.broadcast_to(x, (count, x.size)))

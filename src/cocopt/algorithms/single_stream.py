"""A round of a gradient step and a projection for one stream, by one compiled call.

It serves what is usual: a box, ball or simplex, affine rows, the losses of `cocopt.losses` that are no black boxes. The
call finds what the ordinary way finds, up to rounding, and changes nothing. Whatever is unusual (other classes, data
that do not fit or are not finite, an infeasible round, a step that is refused) is left to the ordinary way, which
decides about errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cocopt import kernels
from cocopt.algorithms.step_state import StepState
from cocopt.arrays import Array, make_tuple
from cocopt.constraints import Constraint
from cocopt.constraints.affine import Affine
from cocopt.kernels import contiguous
from cocopt.kernels.stream import layout
from cocopt.kernels.stream.layout import CARRY, GRADIENT_SQ, GRADIENTS, KIND, PARAMETER, STATUS, STEP, VALUE, VIOLATION
from cocopt.losses import Loss
from cocopt.losses.absolute import Absolute
from cocopt.losses.distance import Distance
from cocopt.losses.hinge import Hinge
from cocopt.losses.huber import Huber
from cocopt.losses.least_squares import LeastSquares
from cocopt.losses.linear import Linear
from cocopt.losses.logistic import Logistic
from cocopt.losses.negative_log import NegativeLog
from cocopt.losses.norm import Norm
from cocopt.losses.quadratic import Quadratic
from cocopt.losses.quantile import Quantile
from cocopt.sets.ball import Ball
from cocopt.sets.base import ConvexSet
from cocopt.sets.box import Box
from cocopt.sets.simplex import Simplex
from cocopt.steps import Function, Schedule
from cocopt.steps.adaptive import Adaptive

__all__ = ["SingleStream"]

MAX_ROWS, MAX_DIM = 64, 500  # beyond them a few microseconds more or less do not matter

_NOTHING = np.zeros(1)
_Data = tuple[Array, Array, Any]  # H, y and the parameter of `cocopt.kernels.stream.layout`


def _one_vector(vector: Array) -> _Data:
    return contiguous(vector)[None], _NOTHING, 0.0


def _one_residual(u: Array, y: Array, parameter: Any = 0.0) -> _Data:
    return contiguous(u)[None], y[None], parameter


#: the losses that the kernels know: kind and data
_LOSSES: dict[type, tuple[int, Callable[[Any], _Data]]] = {
    Norm: (layout.NORM, lambda f: (f.H, f.y, 0.0)),
    LeastSquares: (layout.LEAST_SQUARES, lambda f: (contiguous(f.H), contiguous(f.y), 0.0)),
    Quadratic: (layout.QUADRATIC, lambda f: (contiguous(f.P), contiguous(f.q), f.r)),
    Distance: (layout.DISTANCE, lambda f: _one_vector(f.center)),
    Linear: (layout.LINEAR, lambda f: _one_vector(f.c)),
    NegativeLog: (layout.NEGATIVE_LOG, lambda f: _one_vector(f.r)),
    Hinge: (layout.HINGE, lambda f: _one_residual(f.u, f.v)),
    Logistic: (layout.LOGISTIC, lambda f: _one_residual(f.u, f.v)),
    Absolute: (layout.ABSOLUTE, lambda f: _one_residual(f.u, f.y)),
    Huber: (layout.HUBER, lambda f: _one_residual(f.u, f.y, f.delta)),
    Quantile: (layout.QUANTILE, lambda f: _one_residual(f.u, f.y, f.level)),
}


class SingleStream:
    """The compiled rounds of one learner. It keeps memory to work in, and nothing of a round."""

    def __init__(self, K: Box | Ball | Simplex, schedule: Schedule, one_row: bool) -> None:
        self.K, self.schedule, self.one_row = K, schedule, one_row
        self._adaptive, self._needs_gradients = isinstance(schedule, Adaptive), schedule.needs_gradients
        self._strongly_convex = schedule.modulus > 0.0
        self._rows = 0  # of the constraint that the memory is made for
        self._memory = _NOTHING
        self._numbers = _NOTHING.data  # of which one entry is read or written in half the time

    @classmethod
    def begin(cls, K: ConvexSet, schedule: Schedule, *, one_row: bool) -> SingleStream | None:
        """None if K is of another kind, or the steps depend on the gradients in a way that the kernels do not know."""
        if type(K) not in (Box, Ball, Simplex) or K.dim > MAX_DIM or not (K.full_dimensional or type(K) is Simplex):
            return None
        if schedule.needs_gradients and type(schedule) not in (Adaptive, Function):
            return None
        return cls(K, schedule, one_row)  # type: ignore[arg-type]

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy has memory of its own; kernels cannot be pickled."""
        return type(self), (self.K, self.schedule, self.one_row)

    def play(self, before: Any, loss: Loss | None, constraint: Constraint | None) -> tuple[Any, ...] | None:
        """One round: (losses, x, ledger, memory, record), the last with the fields of `Round` after t; None if unusual.

        ``before`` has t, losses, x, ledger and memory so far; memory is (steps, certificate, constraint memory).
        """
        known = _LOSSES.get(type(loss))
        if known is None or type(constraint) is not Affine or loss.batch or constraint.batch:  # type: ignore[union-attr]
            return None
        x, ledger, memory, losses = before.x, before.ledger, before.memory, before.losses + 1
        if constraint.row_count != self._rows and not self._prepare(constraint.row_count):
            return None
        if not x.flags.c_contiguous:
            return None
        steps, proof, constraints = memory
        last, gradients = steps
        numbers = self._numbers
        if self._adaptive:
            numbers[GRADIENTS], numbers[CARRY] = gradients
            step = last
        else:
            step = self.schedule.step(losses, gradients.value)
            if not (type(step) is float and type(last) is float and 0.0 < step <= last and step < np.inf):
                return None
        kind, data = known
        H, y, numbers[PARAMETER] = data(loss)
        numbers[KIND], numbers[STEP] = kind, step
        try:
            x_next, rows, sums = self._kernel(x, H, y, constraint.A, constraint.b, self._memory, ledger.sums)
        except (ValueError, RuntimeWarning):  # shapes that do not fit; an overflow, where warnings are errors
            return None
        if numbers[STATUS]:  # 0 is CONVERGED
            return None
        x_next.setflags(write=False)
        gradient_sq = numbers[GRADIENT_SQ]
        if self._needs_gradients:
            gradients, step = gradients.plus(gradient_sq), numbers[STEP]
        modulus = loss.strong_convexity if self._strongly_convex else None  # type: ignore[union-attr]
        proof = proof.after_unchecked(step, gradient_sq, modulus=modulus)
        memory = make_tuple(type(memory), (make_tuple(StepState, (step, gradients)), proof, constraints))
        value, violation = np.float64(numbers[VALUE]), np.float64(numbers[VIOLATION])
        record = (value, rows, violation, step, "kernel", np.True_, None)
        return losses, x_next, ledger.with_sums(sums), memory, record

    def _prepare(self, rows: int) -> bool:
        """Makes the memory for constraints of so many rows; False if they are too many."""
        if rows > MAX_ROWS:
            return False
        K, n = self.K, self.K.dim
        memory = np.zeros(layout.memory_size(rows, n))
        numbers = memory[: layout.NUMBERS]
        vectors = memory[layout.NUMBERS :][: layout.SET_VECTORS * n].reshape(layout.SET_VECTORS, n)
        vectors[1], vectors[2] = np.inf, 1.0
        if isinstance(K, Box):
            vectors[0], vectors[1], self._kernel = K.lower, K.upper, kernels.box_round
        elif isinstance(K, Ball):
            vectors[0], numbers[layout.SIZE], self._kernel = K.center, K.radius, kernels.ball_round
        else:
            numbers[layout.SIZE], self._kernel = K.total, kernels.simplex_round
        numbers[layout.ONE_ROW] = self.one_row
        if isinstance(self.schedule, Adaptive):
            assert self.schedule.D is not None  # the learner has filled it in
            numbers[layout.ADAPTIVE] = self.schedule.scale * self.schedule.D
        self._rows, self._memory, self._numbers = rows, memory, numbers.data
        return True

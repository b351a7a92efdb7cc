"""The sum of losses Σ_{t≤T} f_t, with what is known of its curvature."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

import numpy as np

from cocopt.arrays import Array
from cocopt.hindsight.rounds import LossBlock, Rounds
from cocopt.losses.second_order import Neighborhood, QuadraticForm, SecondOrder

__all__ = ["Objective", "ValueAndGradient"]

SUM_ROUNDING = 1e-14  # what rounding may do to the terms of a gradient, relative to their size


class _Kind(Enum):
    """How a block of losses enters the sum."""

    QUADRATIC = 0
    SECOND_ORDER = 1
    BLACK_BOX = 2


class ValueAndGradient(NamedTuple):
    """A value and a subgradient."""

    value: float
    gradient: Array


class Objective:
    """Σ_{t≤T} f_t.

    Quadratic losses are summed at construction, as one quadratic form about a center near the minimiser, where its
    terms do not cancel. Losses with second-order information are evaluated at each call. Black boxes are summed apart.
    """

    def __init__(self, rounds: Rounds, T: int, center: Array) -> None:
        self.T, self.center, self._rounds = T, center, rounds
        n = center.size
        self.quadratic = QuadraticForm(np.zeros((n, n)), np.zeros(n), 0.0)
        self.nonnegative = True
        self._kinds: list[_Kind] = []
        others: SecondOrder | None = None
        for _, count, loss in rounds.losses(T):
            self.nonnegative &= loss.nonnegative
            form = loss.quadratic_form(center, count)
            if form is not None:
                self._kinds.append(_Kind.QUADRATIC)
                P, q, r = self.quadratic
                self.quadratic = QuadraticForm(P + form.P, q + form.q, r + form.r)
                continue
            local = loss.second_order(center, count, 0.0)
            self._kinds.append(_Kind.BLACK_BOX if local is None else _Kind.SECOND_ORDER)
            if local is not None:
                others = local if others is None else others.plus(local)
        self.has_black_boxes = _Kind.BLACK_BOX in self._kinds
        #: the sum at the center, without smoothing and without black boxes
        P, q, r = self.quadratic
        at_center = SecondOrder(r, r, r, q, P)
        self.at_center = at_center if others is None else at_center.plus(others)

    def __call__(self, x: Array, smoothing: float, exact_kinks: Neighborhood | None = None) -> SecondOrder:
        """The sum at x without black boxes; see `cocopt.losses.Loss.second_order`."""
        d = x - self.center
        P, q, r = self.quadratic
        Pd = P @ d
        value = float(0.5 * d @ Pd + q @ d + r)
        total = SecondOrder(value, value, value, Pd + q, P)
        for _, count, loss in self._losses(_Kind.SECOND_ORDER):
            local = loss.second_order(x, count, smoothing, exact_kinks)
            assert local is not None  # as at construction
            total = total.plus(local)
        return total

    def black_boxes(self, x: Array) -> ValueAndGradient:
        """The sum of the black boxes at x, and a subgradient."""
        value, gradient = 0.0, np.zeros(x.size)
        for size, count, loss in self._losses(_Kind.BLACK_BOX):
            values, gradients = loss.value_and_gradient(np.broadcast_to(x, (size, x.size)))
            value, gradient = value + float(values[:count].sum()), gradient + gradients[:count].sum(axis=0)
        return ValueAndGradient(value, gradient)

    def gradient_error(self, x: Array, gradient: Array) -> float:
        """What rounding may do to the gradient at x."""
        P, q, _ = self.quadratic
        terms = np.linalg.norm(P) * np.linalg.norm(x - self.center) + np.linalg.norm(q)
        return float(SUM_ROUNDING * (np.linalg.norm(gradient) + terms))

    def raise_nonfinite(self, x: Array) -> None:
        """Raises the error that names the argument of a loss that is not finite."""
        for size, _, loss in self._rounds.losses(self.T):
            loss.value(np.broadcast_to(x, (size, x.size)))

    def _losses(self, kind: _Kind) -> Iterator[LossBlock]:
        if kind in self._kinds:
            for own, block in zip(self._kinds, self._rounds.losses(self.T), strict=True):
                if own is kind:
                    yield block

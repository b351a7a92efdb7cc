"""Quadratic losses."""

from __future__ import annotations

from typing import Self

import numpy as np

from cocopt import functions
from cocopt.arrays import (
    Array,
    ArrayLike,
    broadcast,
)
from cocopt.losses.base import Loss, one_or_many
from cocopt.losses.second_order import QuadraticForm, leading_entries
from cocopt.registry import register
from cocopt.threads import matvec

__all__ = ["Quadratic"]


@register
class Quadratic(Loss):
    """f(x) = ½ xᵀP x + ⟨q, x⟩ + r, with gradient P x + q and modulus of strong convexity λ_min(P).

    P must be symmetric, which is checked at construction, and positive semidefinite. Eigenvalues would cost more than
    a round, so they are computed only for `strong_convexity`, at its first use; until then an indefinite P is reported
    when it shows, that is at the first x with xᵀP x < 0.

    Parameters
    ----------
    P : array (..., n, n)
    q : array (..., n)
    r : float or array (...)

    Examples
    --------
    >>> from cocopt import losses
    >>> f = losses.Quadratic([[2.0, 0.0], [0.0, 4.0]], [1.0, 0.0])
    >>> f.value([1.0, 1.0])
    np.float64(4.0)
    >>> f.gradient([1.0, 1.0])
    array([3., 4.])
    >>> f.strong_convexity
    2.0
    """

    __slots__ = ("P", "_modulus", "batch", "dim", "q", "r")

    data_axes = (2, 1, 0)

    def __init__(self, P: ArrayLike, q: ArrayLike, r: ArrayLike = 0.0) -> None:
        self.P, self.q, self.r, self.batch, _ = functions.as_quadratic(P, q, r)
        self.dim: int = self.P.shape[-1]
        self._modulus: float | Array | None = None

    def value_and_gradient_unchecked(self, x: Array) -> tuple[Array, Array]:
        Px = matvec(self.P, x)
        value = 0.5 * functions.curvature("losses.Quadratic", self.P, x, Px) + np.vecdot(x, self.q) + self.r
        return value, broadcast(Px + self.q, (*value.shape, self.dim))

    @property
    def strong_convexity(self) -> float | Array:
        if self._modulus is None:
            self.require_finite_data()
            self._modulus = one_or_many(functions.spectrum("losses.Quadratic", self.P)[0][..., 0])
        return self._modulus

    def data_arrays(self) -> list[tuple[str, Array]]:
        return [("P", self.P), ("q", self.q), ("r", self.r)]

    def quadratic_form(self, center: Array, count: int) -> QuadraticForm:
        weight, matrices = leading_entries(self.batch, count, self.P, 2)
        P = weight * matrices.sum(axis=0)
        q = weight * leading_entries(self.batch, count, self.q, 1)[1].sum(axis=0)
        r = weight * float(leading_entries(self.batch, count, self.r, 0)[1].sum())
        return QuadraticForm(P, P @ center + q, float(0.5 * center @ P @ center + q @ center) + r)

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([[2.0, 0.5], [0.5, 1.0]], [1.0, 0.0], 3.0), cls(np.eye(2), [[1.0, 0.0], [0.0, 2.0]])]

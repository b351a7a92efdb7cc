"""The conditional value at risk."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from cocopt.arrays import Array, ArrayLike, as_floats, batch_shape, broadcast, scalar
from cocopt.cones import Cones
from cocopt.constraints.base import Constraint, data_batch_shape, finite_part, no_cones, row_norms, take
from cocopt.errors import InvalidInput
from cocopt.registry import register
from cocopt.sparse import SparseMatrix
from cocopt.threads import matvec, vecmat

__all__ = ["CVaR"]


@register
class CVaR(Constraint):
    """g(x) = the mean of the worst 1 − level share of the losses −⟨s_j, x⟩ over N scenarios s_j, less a limit.

    With k = (1 − level)·N, the largest ⌊k⌋ losses count fully, the next one with the fraction that is left, divided by
    k in all; k ≤ 1 gives the largest loss. By Rockafellar & Uryasev (2000) this is the least value over η of
    η + Σ_j max(0, −⟨s_j, x⟩ − η)/k, which is its conic form.

    Parameters
    ----------
    scenarios : array (..., N, n)
        One row per scenario, such as the returns of n assets.
    level : float
        In [0, 1); 0 gives the mean of all losses.
    limit : float or array (...)
        +inf switches the constraint off.

    Examples
    --------
    >>> from cocopt import constraints
    >>> returns = [[0.1, 0.0], [-0.2, 0.1], [0.0, -0.3], [0.3, 0.1]]
    >>> g = constraints.CVaR(returns, 0.5, 0.05)
    >>> g.value([1.0, 0.0]).round(9)
    np.float64(0.05)
    >>> g.gradient([1.0, 0.0])
    array([0.1, 0.1])
    """

    __slots__ = ("batch", "dim", "level", "limit", "scenarios")

    def __init__(self, scenarios: ArrayLike, level: float, limit: ArrayLike) -> None:
        self.scenarios, self.limit = as_floats("scenarios", scenarios), as_floats("limit", limit)
        self.level = scalar("level", level, nonnegative=True)
        if self.level >= 1.0:
            raise InvalidInput(f"level: expected a number in [0, 1), got {self.level}")
        if self.scenarios.ndim < 2:
            raise InvalidInput(f"scenarios: expected shape (..., N, n), got {self.scenarios.shape}")
        parts = ("scenarios", self.scenarios.shape[:-2]), ("limit", self.limit.shape)
        self.batch: tuple[int, ...] = batch_shape(*parts)
        self.dim: int = self.scenarios.shape[-1]

    @property
    def _count(self) -> float:
        """k, how many losses are averaged; at least 1, which gives the same."""
        return max((1.0 - self.level) * float(self.scenarios.shape[-2]), 1.0)

    def _weights(self, x: Array) -> tuple[Array, Array]:
        """The losses, and the share of each in the mean of the worst, both (..., N)."""
        losses = -matvec(self.scenarios, x)
        falling = np.argsort(-losses, axis=-1, kind="stable")
        shares = np.clip(self._count - np.arange(losses.shape[-1]), 0.0, 1.0) / self._count
        weights = np.empty_like(losses)
        np.put_along_axis(weights, falling, np.broadcast_to(shares, losses.shape), axis=-1)
        return losses, weights

    def rows_unchecked(self, x: Array) -> Array:
        value: Array = np.vecdot(*self._weights(x)) - self.limit
        return value[..., None]

    def jacobian_unchecked(self, x: Array) -> Array:
        gradient = -vecmat(self._weights(x)[1], self.scenarios)
        return broadcast(gradient, (*data_batch_shape(self, x), self.dim))[..., None, :]

    def magnitude(self, x: Array) -> Array:
        terms = row_norms(self.scenarios).max(axis=-1) * row_norms(x)
        size: Array = np.maximum(terms, np.abs(finite_part(self.limit, np.inf)))
        return size[..., None]

    @property
    def conic(self) -> bool:
        return True

    def cones(self) -> Cones:
        """η + Σ u_j/k ≤ limit + t, u_j ≥ −⟨s_j, x⟩ − η and u_j ≥ 0, with auxiliary variables η and u."""
        self.require_single()
        self.require_finite_data()
        if self.limit == np.inf:
            return no_cones(self.dim)
        N, n = self.scenarios.shape
        ones = np.ones((N, 1))
        own = np.concatenate([np.tile(np.arange(n + 1), (N, 1)), n + 1 + np.arange(N)[:, None]], axis=1)
        first = np.append(1.0, np.full(N, 1.0 / self._count))
        A = SparseMatrix.stacked(
            [
                SparseMatrix(first, n + np.arange(N + 1), np.array([0, N + 1]), n + N + 1),
                SparseMatrix(
                    np.hstack([-self.scenarios, -ones, -ones]).ravel(),
                    own.ravel(),
                    np.arange(N + 1) * (n + 2),
                    n + N + 1,
                ),
                SparseMatrix.diagonal(-ones[:, 0]).moved(0, n + 1, n + N + 1),
            ]
        )
        return Cones(A, np.eye(1, 2 * N + 1)[0] * self.limit, np.eye(2 * N + 1, 1), (("nonneg", 2 * N + 1),), N + 1)

    def parameters(self) -> dict[str, Any]:
        return {"scenarios": self.scenarios, "level": self.level, "limit": self.limit}

    def trials_unchecked(self, index: Any) -> CVaR:
        scenarios, limit = take(self.batch, index, (self.scenarios, 2), (self.limit, 0))
        return CVaR(scenarios, self.level, limit)

    def data_arrays(self) -> list[tuple[str, Array, bool]]:
        return [("scenarios", self.scenarios, False), ("limit", finite_part(self.limit, np.inf), False)]

    @classmethod
    def examples(cls) -> list[Self]:
        returns = [[1.0, 0.0], [-2.0, 1.0], [0.0, -1.0], [3.0, 1.0]]
        return [cls(returns, 0.4, 0.5), cls([returns, returns[::-1]], 0.75, [0.5, 1.0])]

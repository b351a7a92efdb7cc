"""What algorithms by linear minimisation share: they need argmin over K of ⟨c, x⟩, and never project."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt.algorithms.base import Learner, require_diameter
from cocopt.algorithms.surrogate import Surrogate
from cocopt.arrays import Array, ArrayLike, all_finite, positive_int, scalar
from cocopt.errors import InvalidInput
from cocopt.sets.base import ConvexSet
from cocopt.state import Finite

__all__ = ["AnchoredFrankWolfe", "LinearMinimisation", "Path", "check_sum"]


class LinearMinimisation(Learner):
    """A learner on a bounded set with a linear minimiser; x_1 is by default a minimiser of the zero function."""

    def __init__(self, K: ConvexSet, start: ArrayLike | None) -> None:
        super().__init__(K, start)
        _require_linear_minimiser(K)

    def default_start(self) -> Array:
        return self.K.minimise_linear_unchecked(np.zeros(self.K.dim))


class Path(NamedTuple):
    """What a Frank–Wolfe step depends on, since the anchor x_s was set."""

    total: Finite  #: Σ n_τ over the rounds s ≤ τ < t, (..., n)
    displacement: Finite  #: x_t − x_s, (..., n)


class AnchoredFrankWolfe(LinearMinimisation):
    """One Frank–Wolfe step per round on η Σ⟨n_τ, x⟩ + ‖x − x_s‖², with the gradients n_τ of a surrogate since round s.

    The surrogate is b(V f_t + Φ'(Q_t) g_t^+) with b = 1/(64GD) and Φ(q) = exp(q/(2T^¾)) − 1. Subclasses choose η and s.
    """

    def __init__(
        self,
        K: ConvexSet,
        start: ArrayLike | None,
        horizon: int,
        lipschitz: float,
        diameter: float | None,
        weight: float,
    ) -> None:
        super().__init__(K, start)
        self.horizon = positive_int("horizon", horizon)
        self.lipschitz = scalar("lipschitz", lipschitz, positive=True)
        self.diameter = None if diameter is None else scalar("diameter", diameter, positive=True)
        self.weight = scalar("weight", weight, positive=True)
        D = require_diameter(K, self.diameter)
        self.step_scale = D / (2.0 * self.horizon**0.75)  #: η Ĝ, where Ĝ bounds the norms of the n_τ
        self.surrogate = Surrogate(1.0 / (64.0 * self.lipschitz * D), self.weight, 0.5 / self.horizon**0.75)

    def initial_path(self, batch: tuple[int, ...]) -> Path:
        """Before round 1."""
        zeros = np.zeros((*batch, self.K.dim))
        return Path(zeros, zeros)

    def step(self, path: Path, n: Array, eta: Array, age: NDArray[np.int64] | int) -> tuple[Array, Path]:
        """x_{t+1} and the path after the round, which is the ``age``-th one since the anchor was set.

        w = argmin over K of ⟨η Σ n_τ + 2(x_t − x_s), w⟩
        x_{t+1} = x_t + min(1, 2/√age) (w − x_t)
        """
        x, total = self.ask(), path.total + n
        check_sum(total)
        direction = np.expand_dims(eta, -1) * total + 2.0 * path.displacement
        share = np.minimum(1.0, 2.0 / np.sqrt(age))
        move = np.expand_dims(share, -1) * (self.K.minimise_linear_unchecked(direction) - x)
        return x + move, Path(total, path.displacement + move)


def check_sum(total: Array) -> None:
    """An error if a sum of gradients is not finite."""
    if not all_finite(total):
        raise InvalidInput("tell: expected gradients that can be added up, got a sum that overflows")


def _require_linear_minimiser(K: ConvexSet) -> None:
    """An error unless every linear function has a minimiser over K."""
    # A closed convex set is bounded if every coordinate is bounded on it from both sides.
    unit = np.zeros((1, K.dim)) if K.bounded else np.eye(K.dim)
    try:
        K.minimise_linear_unchecked(np.concatenate([unit, -unit]))
    except InvalidInput as error:
        raise InvalidInput(f"K: expected a bounded set with a linear minimiser, got {K!r} ({error})") from error

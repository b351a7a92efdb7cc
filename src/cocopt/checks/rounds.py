"""Random rounds for learners, and what they cost, computed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cocopt import constraints, losses
from cocopt.algorithms.base import Learner, Round
from cocopt.arrays import Array
from cocopt.sets import ConvexSet

__all__ = ["Reveal", "loss_value", "random_stream", "replay", "row_values", "violation_value"]


class Reveal(NamedTuple):
    """The arrays of one round: ½‖Hx − y‖², Ax ≤ b, and the action played; any may be missing."""

    H: Array | None
    y: Array | None
    A: Array | None
    b: Array | None
    played: Array | None

    def to(self, learner: Learner) -> Round:
        """Reveals the round to a learner."""
        loss = None if self.H is None or self.y is None else losses.LeastSquares(self.H, self.y)
        constraint = None if self.A is None or self.b is None else constraints.Affine(self.A, self.b)
        return learner.tell(loss, constraint, played=self.played)

    def copy(self) -> Reveal:
        """A round with copies of the arrays."""
        return Reveal(*(None if array is None else array.copy() for array in self))

    def trial(self, index: tuple[int, ...]) -> Reveal:
        """The round of one trial."""
        return Reveal(*(None if array is None else array[index] for array in self))


# Which arrays the rounds reveal, in turn: all kinds of rounds within the first half of the shortest stream.
_KINDS = ("HyAb", "HyAb", "HyAb", "Hy", "HyAb played", "Ab", "Ab played", "", "played", "Hy played", "HyAb")


def random_stream(
    K: ConvexSet, batch: tuple[int, ...], rounds: int, rng: np.random.Generator, *, static: bool = False
) -> tuple[Array, list[Reveal]]:
    """A start and rounds whose rows leave a common point of K some room, and whose losses pull away from it.

    With ``static`` the rows are the same in all rounds, and the start is a point that satisfies them with some room.
    """
    n, unit = K.dim, min(K.scale, K.diameter) or 1.0

    def point() -> Array:
        return K.project(unit * rng.normal(size=(*batch, n)))

    start, common = point(), point()
    fixed_A = rng.normal(size=(*batch, 2, n))
    fixed_b = np.matvec(fixed_A, common) + unit * rng.uniform(0.2, 0.4, (*batch, 2))
    start = common if static else start
    stream = []
    for t in range(rounds):
        kind = _KINDS[t % len(_KINDS)]
        H = rng.normal(size=(*batch, n + 1, n)) / np.sqrt(n)
        A = rng.normal(size=(*batch, 2, n))
        y = np.matvec(H, common + 3.0 * unit * rng.normal(size=(*batch, n)))
        b = np.matvec(A, common) + unit * rng.uniform(0.0, 0.3, (*batch, 2))
        if static:
            A, b = fixed_A, fixed_b
        played = point()
        given = {"H": H, "y": y, "A": A, "b": b, "played": played}
        stream.append(Reveal(**{name: array if name in kind else None for name, array in given.items()}))
    return start, stream


def loss_value(reveal: Reveal, x: Array) -> Array:
    """f_t at the action played."""
    if reveal.H is None or reveal.y is None:
        return np.zeros(x.shape[:-1])
    x = x if reveal.played is None else reveal.played
    value: Array = 0.5 * np.square(np.einsum("...pn,...n->...p", reveal.H, x) - reveal.y).sum(axis=-1)
    return value


def row_values(reveal: Reveal, x: Array) -> Array | None:
    """g_{t,i} at the action played."""
    if reveal.A is None or reveal.b is None:
        return None
    x = x if reveal.played is None else reveal.played
    rows: Array = np.einsum("...mn,...n->...m", reveal.A, x) - reveal.b
    return rows


def violation_value(rows: Array | None) -> Any:
    """max(0, max_i g_{t,i})."""
    return 0.0 if rows is None else np.maximum(rows.max(axis=-1), 0.0)


def replay(learner: Learner, stream: Sequence[Reveal]) -> Learner:
    """The learner, after these rounds."""
    for reveal in stream:
        reveal.copy().to(learner)
    return learner

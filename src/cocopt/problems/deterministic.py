"""Problems without randomness: the rounds are the same for every seed and in every trial."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocopt.arrays import positive_int
from cocopt.errors import InvalidInput
from cocopt.problems.base import BlockProblem, Data

__all__ = ["DeterministicProblem"]


class DeterministicProblem(BlockProblem):
    """A problem whose rounds depend on their numbers alone. A subclass defines `K`, `rounds` and ``reveal(t)``.

    ``reveal`` gets an array of round numbers t = 1, 2, …; its shape is that of the leading axes. Each trial is the
    same, so that one trial is enough.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt import Box, losses
    >>> from cocopt.problems.deterministic import DeterministicProblem
    >>> class Alternating(DeterministicProblem):
    ...     K, rounds = Box(-1.0, 1.0, dim=1), 10
    ...
    ...     def reveal(self, t):
    ...         return losses.Linear(np.where(t % 2 == 0, 1.0, -1.0)[..., None]), None
    >>> first, count, reveal = next(Alternating().blocks(seed=0, trials=[0]))
    >>> [float(reveal(k)[0].value([[1.0]])[0]) for k in range(4)]
    [-1.0, 1.0, -1.0, 1.0]
    """

    #: the number of rounds that the instance was constructed for, if it depends on it; there are no more than these
    max_rounds: int | None = None

    def draw(self, rng: np.random.Generator, first: int, count: int) -> Data:
        t = np.arange(first, first + count)
        return (t if self.max_rounds is None else np.minimum(t, self.max_rounds),)

    def data_blocks(self, seed: int, trials: ArrayLike, rounds: int | None = None) -> Iterator[tuple[int, Data]]:
        chosen = positive_int("rounds", self.rounds if rounds is None else rounds)
        if self.max_rounds is not None and chosen > self.max_rounds:
            raise InvalidInput(
                f"rounds: expected at most {self.max_rounds}, for which {self.name} was constructed, got {chosen}; "
                f"construct it for more by its option rounds={chosen}"
            )
        return super().data_blocks(seed, trials, chosen)

    def reveal(self, *data: NDArray[Any]) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: define reveal(self, t)")

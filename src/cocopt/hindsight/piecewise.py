"""The best actions that are constant on blocks of rounds, with the changes at given places or at the best of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array
from cocopt.hindsight.rounds import Rounds
from cocopt.hindsight.search import Best, Search
from cocopt.sets.base import ConvexSet

__all__ = ["Blocks", "minimise_blocks"]


class Blocks(NamedTuple):
    """The best piecewise constant actions of C numbers of rounds."""

    value: Array  #: (C,), NaN where there are none
    feasible: NDArray[np.bool_]  #: (C,)
    point: Array  #: (C, blocks, n), NaN where there is none
    end: NDArray[np.int64]  #: (C, blocks), the last round of each block; 0 behind the last block


class _Path(NamedTuple):
    """The best actions of the rounds up to some end: their value, and the blocks before it."""

    value: float
    blocks: tuple[tuple[int, Best], ...]  # (last round, best action)


def minimise_blocks(
    K: ConvexSet, rounds: Rounds, breakpoints: Sequence[int], switches: int | None, checkpoints: Sequence[int]
) -> Blocks:
    """The best actions of a trial that change after breakpoints only, and at most ``switches`` times (None: always)."""
    starts = [0, *breakpoints]
    optima = {
        start: _optima_from(K, rounds, start, _ends_after(start, breakpoints, switches, checkpoints))
        for start in starts
    }
    size = len(starts) if switches is None else switches + 1
    shape = (len(checkpoints), size)
    found = Blocks(
        np.full(shape[0], np.nan),
        np.zeros(shape[0], dtype=bool),
        np.full((*shape, K.dim), np.nan),
        np.zeros(shape, dtype=np.int64),
    )
    for c, T in enumerate(checkpoints):
        inner = [end for end in breakpoints if end < T]
        path = _all_switches(optima, inner, T) if switches is None else _best_switches(optima, inner, T, switches)
        if path is None:
            continue
        found.value[c], found.feasible[c] = path.value, True
        for j, (end, best) in enumerate(path.blocks):
            found.point[c, j], found.end[c, j] = best.x, end
    return found


def _ends_after(start: int, breakpoints: Sequence[int], switches: int | None, checkpoints: Sequence[int]) -> list[int]:
    """The rounds at which a block that begins after ``start`` may end."""
    later = sorted(end for end in breakpoints if end > start)
    if switches is None and later:  # it goes on to the next breakpoint at most
        return sorted({later[0], *(T for T in checkpoints if start < T <= later[0])})
    return sorted({*later, *(T for T in checkpoints if start < T)})


def _optima_from(K: ConvexSet, rounds: Rounds, start: int, ends: Sequence[int]) -> dict[int, Best]:
    """The best fixed actions of the rounds start + 1, …, end, for ends in increasing order; absent where none is."""
    found: dict[int, Best] = {}
    if not ends:
        return found
    search = Search(K, rounds.part(start, ends[-1]))
    for end in ends:
        best = search.minimise(end - start)
        if best is None:  # no later end has one either
            break
        found[end] = best
    return found


def _all_switches(optima: dict[int, dict[int, Best]], inner: Sequence[int], T: int) -> _Path | None:
    """The best actions that change at every breakpoint."""
    value, blocks, start = 0.0, [], 0
    for end in (*inner, T):
        best = optima[start].get(end)
        if best is None:
            return None
        value, start = value + best.value, end
        blocks.append((end, best))
    return _Path(value, tuple(blocks))


def _best_switches(optima: dict[int, dict[int, Best]], inner: Sequence[int], T: int, switches: int) -> _Path | None:
    """The best actions with at most so many changes, by dynamic programming over the ends of blocks.

    best(k, end) = min over start < end of best(k − 1, start) + (the least sum of losses of start + 1, …, end).
    """
    paths: dict[int, _Path] = {0: _Path(0.0, ())}
    best: _Path | None = None
    for _ in range(switches + 1):
        longer: dict[int, _Path] = {}
        for start, path in paths.items():
            for end in (*inner, T):
                piece = optima[start].get(end)
                if piece is None:
                    continue
                value = path.value + piece.value
                if end not in longer or value < longer[end].value:
                    longer[end] = _Path(value, (*path.blocks, (end, piece)))
        if T in longer and (best is None or longer[T].value < best.value):
            best = longer[T]
        paths = {end: path for end, path in longer.items() if end != T}
    return best

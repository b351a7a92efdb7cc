"""Learners that are kept in memory between calls, those used last first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from cocopt.pool.database import Row

if TYPE_CHECKING:
    from cocopt.algorithms import Learner

__all__ = ["Live"]


def _bytes(stored: int) -> int:
    """What a learner takes in memory, from its stored size; measured: about 4500 and half as much again."""
    return 6000 + 2 * stored


class _Entry(NamedTuple):
    row: Row
    learner: Learner
    size: int


class Live:
    """Learners by key, as long as the row of the key is the one that they belong to.

    Whoever takes one has it alone until it is put back. Those used longest ago give way when all of them together are
    larger than ``memory`` bytes, estimated from their stored sizes.
    """

    def __init__(self, memory: int) -> None:
        self._memory, self._used = memory, 0
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, key: str, row: Row) -> tuple[Learner, int] | None:
        """The learner of this very row, and its stored size, if it is here; another one of this key is forgotten."""
        with self._lock:
            entry = self._entries.pop(key, None)
            if entry is None:
                return None
            self._used -= _bytes(entry.size)
        return (entry.learner, entry.size) if entry.row == row else None

    def put(self, key: str, row: Row, learner: Learner, size: int) -> None:
        """Keeps a learner whose state is that of the row."""
        with self._lock:
            old = self._entries.pop(key, None)
            if old is not None:
                self._used -= _bytes(old.size)
            self._entries[key] = _Entry(row, learner, size)
            self._used += _bytes(size)
            while self._used > self._memory:
                _, oldest = self._entries.popitem(last=False)
                self._used -= _bytes(oldest.size)

    def __len__(self) -> int:
        return len(self._entries)

"""Saving and loading, as a part of the contract of learners."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cocopt import state
from cocopt.algorithms.base import Learner
from cocopt.arrays import Array
from cocopt.checks.base import require
from cocopt.checks.rounds import Reveal, replay

__all__ = ["Store", "check_storage"]


class Store(NamedTuple):
    """Where learners are saved, if they can be."""

    path: Path
    works: bool
    supplied: dict[str, Any]

    def content(self, learner: Learner) -> dict[str, Any]:
        """All that can be known of a learner, as plain values and bytes."""
        shown = {"x": learner.ask(), "ledger": learner.ledger}
        if hasattr(learner, "certificate"):
            shown["proof"] = learner.certificate()
        spec, arrays = state.encode(shown, "shown")
        content: dict[str, Any] = {
            name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()
        }
        content["shown"] = spec
        if self.works:
            learner.save(self.path)
            content["stored"] = self.path.read_bytes()
        return {"t": learner.t, **content}


def check_storage(learner: Learner, stream: Sequence[Reveal], points: Array, store: Store) -> None:
    """Saved and loaded halfway, a run goes on bit for bit; what cannot be saved says so."""
    half = len(stream) // 2
    replay(learner, stream[:half])
    if not store.works:
        try:
            learner.save(store.path)
        except TypeError:
            return
        raise AssertionError(f"{learner!r}: save() works, although it is said not to")
    before = store.content(learner)
    resumed = state.load(store.path, **store.supplied)
    require(learner, type(resumed) is type(learner), f"what was saved is loaded as a {type(resumed).__name__}")
    require(learner, store.content(resumed) == before, "saved, loaded and saved again, the state differs")
    for t in range(half, len(stream)):
        require(learner, np.array_equal(resumed.ask(), points[t]), f"x_{t + 1} differs after saving and loading")
        stream[t].copy().to(resumed)
    replay(learner, stream[half:])
    same = store.content(resumed) == store.content(learner)
    require(learner, same, "a run that was saved and loaded ends in another state")

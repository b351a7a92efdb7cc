"""Puts the arrays of a plan's chunks together into a result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cocopt.experiments.plan import Arrays, Plan
from cocopt.experiments.results import Result

__all__ = ["collect"]


def collect(plan: Plan, arrays: Sequence[Arrays]) -> Result:
    """The result of a plan, from the arrays of its chunks in their order."""
    by_task: dict[str, list[Arrays]] = {task: [] for task in plan.tasks}
    for chunk, own in zip(plan.chunks, arrays, strict=True):
        by_task[chunk.task].append(own)
    joined = {task: _joined(parts) for task, parts in by_task.items()}
    compared = {own.name: joined.pop(own.task) for own in plan.comparators}
    return Result(
        plan.problem, plan.name, plan.algorithms, joined, plan.points, plan.checkpoints, compared, plan.config()
    )


def _joined(parts: Sequence[Arrays]) -> Arrays:
    """The trials of all chunks; of rows whose name a chunk never met, nothing was violated there."""
    names = list(dict.fromkeys(name for part in parts for name in part))
    return {
        name: np.concatenate([part[name] if name in part else np.zeros_like(part["loss"]) for part in parts])
        for name in names
    }

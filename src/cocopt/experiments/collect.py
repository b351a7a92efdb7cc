"""Puts the arrays of a plan's chunks together into a result."""

from __future__ import annotations

from collections.abc import Sequence

from cocopt.experiments.plan import Arrays, Plan, joined
from cocopt.experiments.results import Result

__all__ = ["collect"]


def collect(plan: Plan, arrays: Sequence[Arrays]) -> Result:
    """The result of a plan, from the arrays of its chunks in their order."""
    by_task: dict[str, list[Arrays]] = {task: [] for task in plan.tasks}
    for chunk, own in zip(plan.chunks, arrays, strict=True):
        by_task[chunk.task].append(own)
    by_name = {task: joined(parts) for task, parts in by_task.items()}
    compared = {own.name: by_name.pop(own.task) for own in plan.comparators}
    return Result(
        plan.problem, plan.name, plan.algorithms, by_name, plan.points, plan.checkpoints, compared, plan.config()
    )

"""What algorithms that keep constraints have in common: copies of them, and how a growing intersection is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cocopt import state
from cocopt.algorithms.base import Arrays
from cocopt.constraints import Constraint, Stack
from cocopt.constraints.selected_row import SelectedRow
from cocopt.geometry.persistent import PersistentIntersection
from cocopt.sets.base import ConvexSet

__all__ = ["decode_constraint", "encode_constraint", "own_copy", "restore_intersection", "store_intersection"]


def own_copy(constraint: Constraint) -> Constraint:
    """A copy that a user's later changes of the arrays cannot reach; a black box as it is."""
    try:
        parameters = constraint.parameters()
    except TypeError:
        return constraint
    if "members" in parameters:
        return Stack([own_copy(member) for member in parameters["members"]])
    return type(constraint)(**{name: np.array(value) for name, value in parameters.items()})


def encode_constraint(constraint: Constraint, name: str) -> tuple[dict[str, Any], Arrays]:
    """The constraint for a state file; refuses what cannot be stored."""
    if isinstance(constraint, SelectedRow):
        spec, arrays = encode_constraint(constraint.of, f"{name}.of")
        return {"of": spec, "row": f"{name}.row"}, {**arrays, f"{name}.row": np.asarray(constraint.row)}
    spec, arrays = state.encode(constraint, name)
    if "absent" in spec:
        raise TypeError(
            f"save: the window holds {constraint!r}, which cannot be stored: a black box is code, and a "
            "state file holds data alone. Describe the constraint by its structure, or use window=1"
        )
    return spec, arrays


def decode_constraint(spec: Mapping[str, Any], arrays: Arrays) -> Constraint:
    """What `encode_constraint` described."""
    if "of" in spec:
        return decode_constraint(spec["of"], arrays).select(arrays[spec["row"]])
    constraint: Constraint = state.decode(spec, arrays)
    return constraint


def store_intersection(intersection: PersistentIntersection, name: str) -> tuple[dict[str, Any], Arrays]:
    """All of it but K and the leading axes, as plain values and arrays whose names begin with ``name``."""
    plain, arrays = intersection.stored(), {}
    for key, value in [*plain.items()]:
        if isinstance(value, np.ndarray):
            arrays[f"{name}.{key}"] = plain.pop(key)
    if plain["archive"] is not None:
        arrays.update({f"{name}.archive.{key}": array for key, array in plain["archive"].items()})
    plain["archive"] = plain["archive"] is not None
    plain["curved"] = []
    for i, constraint in enumerate(intersection.curved):
        spec, own = encode_constraint(constraint, f"{name}.curved.{i}")
        plain["curved"].append(spec)
        arrays.update(own)
    return plain, arrays


def restore_intersection(
    K: ConvexSet, batch: tuple[int, ...], plain: Mapping[str, Any], arrays: Arrays, name: str
) -> PersistentIntersection:
    """What `store_intersection` described."""
    parts = {key.removeprefix(f"{name}."): array for key, array in arrays.items() if key.startswith(f"{name}.")}
    fields = {key: array for key, array in parts.items() if "." not in key}
    archive = {key.removeprefix("archive."): array for key, array in parts.items() if key.startswith("archive.")}
    curved = [decode_constraint(spec, arrays) for spec in plain["curved"]]
    return PersistentIntersection.from_stored(
        K, batch, {**plain, **fields, "archive": archive if plain["archive"] else None, "curved": curved}
    )

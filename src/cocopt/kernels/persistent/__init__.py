"""Projection onto a polyhedron and the few of very many rows that bind, for `cocopt.geometry.persistent`.

The rows of each trial are normalised and stand in a store. An active-set method works on a *working set* of them, and
whenever it has a solution, the most violated of the other rows are added. In order not to evaluate all rows each time,
a trial keeps *lists* of the rows that can be violated near its last point (see `lists`).

- `rows`: the store of a trial; `append_rows`
- `lists`: the lists of nearby rows; `recenter_lists`
- `search`: the most violated rows; `find_violated`
- `solve_one`, `solve_simd`: the projection of one trial, and of eight at once
- `project`: the kernel that uses both; `project_many_rows`
- `trim`: which rows are redundant; `find_redundant`, `keep_rows`

All kernels are in one package because they share most of what is compiled.
"""

from __future__ import annotations

from cocopt.kernels.persistent.lists import BLOCK, MAX_LISTS, recenter_lists
from cocopt.kernels.persistent.project import project_many_rows
from cocopt.kernels.persistent.rows import append_rows
from cocopt.kernels.persistent.search import find_violated
from cocopt.kernels.persistent.solve_simd import LANE_ROWS
from cocopt.kernels.persistent.trim import find_redundant, keep_rows
from cocopt.kernels.simd.lanes import lane_memory
from cocopt.kernels.workspace import workspace_memory

__all__ = [
    "BLOCK",
    "LANE_ROWS",
    "MAX_LISTS",
    "append_rows",
    "find_redundant",
    "find_violated",
    "keep_rows",
    "lane_memory",
    "project_many_rows",
    "recenter_lists",
    "workspace_memory",
]

"""A pool beside the bare transactions of its database: python benchmarks/pool.py [--postgres URL] [FOLDER].

A ``tell`` with an id, on a learner in memory, beside a transaction that reads nothing and writes a blob of the same
size to one row, with the same settings; and ``tell_many`` of 1000 keys beside one ``tell`` after the other. The figures
depend on how long the disk takes to sync: FOLDER says where the file is.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cocopt import CLASP, Box, Pool, constraints, losses

KEYS, DIM, CALLS, REPEAT = 1000, 10, 500, 7

LOSS = losses.Linear(np.linspace(-1.0, 1.0, DIM))
CONSTRAINT = constraints.Affine(np.ones((2, DIM)) + np.eye(2, DIM), np.ones(2))


def make(key: str) -> CLASP:
    return CLASP(Box(0.0, 1.0, dim=DIM))


def bare_sqlite(path: str, size: int) -> Callable[[], None]:
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = FULL"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("CREATE TABLE bare (key TEXT PRIMARY KEY, content BLOB)")
    connection.execute("INSERT INTO bare VALUES ('a', '')")

    def write() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE bare SET content = ? WHERE key = 'a'", (os.urandom(size),))
        connection.execute("COMMIT")

    return write


def bare_postgres(url: str, size: int) -> Callable[[], None]:
    import psycopg

    connection = psycopg.connect(url, autocommit=True)
    connection.execute("DROP TABLE IF EXISTS cocopt_bare")
    connection.execute("CREATE TABLE cocopt_bare (key TEXT PRIMARY KEY, content BYTEA)")
    connection.execute("INSERT INTO cocopt_bare VALUES ('a', '')")

    def write() -> None:
        connection.execute("BEGIN")
        connection.execute("UPDATE cocopt_bare SET content = %b WHERE key = 'a'", (os.urandom(size),))
        connection.execute("COMMIT")

    return write


def in_turn(contestants: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The median time of a call of each, in seconds; they take turns, since the time of a sync varies."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(CALLS):
        for name, call in contestants.items():
            began = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - began)
    return {name: float(np.median(measured)) for name, measured in times.items()}


def measure(place: str, bare: Callable[[int], Callable[[], None]]) -> dict[str, float]:
    """Ratios and times, by name."""
    numbers = itertools.count()
    with Pool(place, make) as pool:

        def tell() -> None:
            pool.tell("one", LOSS, CONSTRAINT, id=f"{next(numbers)}")

        for _ in range(110):  # until the oldest ids give way
            pool.tell_many(
                {"key": "one", "loss": LOSS, "constraint": CONSTRAINT, "id": f"{next(numbers)}"} for _ in range(10)
            )
        size = len(pool.learner("one").dumps())
        median = in_turn({"tell": tell, "bare": bare(size)})

        def items() -> list[dict[str, Any]]:
            i = next(numbers)
            return [{"key": f"{k}", "loss": LOSS, "constraint": CONSTRAINT, "id": f"{i}"} for k in range(KEYS)]

        pool.tell_many(items())
        together, alone = [], []
        for _ in range(REPEAT):
            many = items()
            began = time.perf_counter()
            pool.tell_many(many)
            together.append((time.perf_counter() - began) / KEYS)
            few = items()[:100]
            began = time.perf_counter()
            for item in few:
                pool.tell(**item)
            alone.append((time.perf_counter() - began) / len(few))
    return {
        "bytes": size,
        "bare, µs": 1e6 * median["bare"],
        "tell, µs": 1e6 * median["tell"],
        "tell / bare (target ≤ 2)": median["tell"] / median["bare"],
        "one by one, µs": 1e6 * float(np.median(alone)),
        "tell_many, µs per key": 1e6 * float(np.median(together)),
        "one by one / tell_many (target ≥ 10)": float(np.median(alone) / np.median(together)),
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", nargs="?", default=".")
    arguments.add_argument("--postgres", metavar="URL")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        file = str(Path(folder, "bare.db"))
        tables = {"SQLite": measure(str(Path(folder, "pool.db")), lambda size: bare_sqlite(file, size))}
    if given.postgres:
        tables["PostgreSQL"] = measure(given.postgres, lambda size: bare_postgres(given.postgres, size))
    for name, table in tables.items():
        print(f"| {name} | |\n|---|---|")
        for what, figure in table.items():
            print(f"| {what} | {figure:.3g} |")
        print()


if __name__ == "__main__":
    main()

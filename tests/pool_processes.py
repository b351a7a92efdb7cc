"""Processes that use one pool at the same time, and are killed; a program, so that its forks are of a small process.

python tests/pool_processes.py kill PLACE KILLS SEED     kill −9 under load
python tests/pool_processes.py share PLACE               four processes on the same keys

It prints what it has seen as JSON, for the test to judge.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from cocopt import CLASP, Box, Pool, constraints, losses

WORKERS = {"one": ("a", "b"), "two": ("c", "d")}


def make(key: str) -> CLASP:
    return CLASP(Box(0.0, 1.0, dim=3), start=[0.5, 0.5, 0.5])


def feedback(key: str, index: int) -> dict[str, Any]:
    """The same for the same key and index, whoever asks."""
    rng = np.random.default_rng([ord(key), index])
    return {"loss": losses.Linear(rng.normal(size=3)), "constraint": constraints.Affine(rng.uniform(size=3), 1.0)}


def fork(work: Callable[[Callable[[Any], None]], None]) -> tuple[int, int]:
    """A process that does the work; its number, and the pipe through which it says what it has done."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    os.close(reader)
    try:
        work(lambda done: os.write(writer, f"{json.dumps(done)}\n".encode()))
    except BaseException as error:
        os.write(writer, f"{json.dumps({'error': repr(error)})}\n".encode())
    os._exit(0)


def said(reader: int) -> list[Any]:
    with os.fdopen(reader) as pipe:
        return [json.loads(line) for line in pipe if line.endswith("\n")]


def work_until_killed(place: str, next_index: dict[str, int], seed: int, say: Callable[[Any], None]) -> None:
    """Tells one key or all of them, and says so only once the pool has acknowledged it."""
    rng = random.Random(seed)
    with Pool(place, make) as pool:
        while True:
            chosen = [*next_index] if rng.random() < 0.5 else [rng.choice([*next_index])]
            items = [{"key": key, "id": f"{next_index[key]}", **feedback(key, next_index[key])} for key in chosen]
            records = pool.tell_many(items) if len(items) > 1 else [pool.tell(**items[0])]
            say([[key, next_index[key], record.t] for key, record in zip(chosen, records, strict=True)])
            for key in chosen:
                next_index[key] += 1


def kill(place: str, kills: int, seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    acknowledged: dict[str, list[int]] = {key: [] for keys in WORKERS.values() for key in keys}
    errors, repeated = [], 0
    make("a").tell(**feedback("a", 0))  # compiled kernels are loaded before the first fork
    for life in range(kills):
        workers = []
        for keys in WORKERS.values():
            begin = {key: len(acknowledged[key]) + 1 for key in keys}
            number = seed + 1000 * life
            workers.append(fork(lambda say, b=begin, n=number: work_until_killed(place, b, n, say)))
        if rng.random() < 0.8:  # else it may be killed while it opens the pool
            select.select([reader for _, reader in workers], [], [], 30.0)
        time.sleep(rng.uniform(0.0, 0.03))
        for pid, _ in workers:
            os.kill(pid, signal.SIGKILL)
        for pid, reader in workers:
            os.waitpid(pid, 0)
            for done in said(reader):
                if isinstance(done, dict):
                    errors.append(done["error"])
                    continue
                for key, index, t in done:
                    repeated += t != index
                    acknowledged[key].append(index)
    return {"acknowledged": acknowledged, "errors": errors, "repeated": repeated}


def share_keys(place: str, worker: int, say: Callable[[Any], None]) -> None:
    """Tells all keys, one by one or together, in an order of its own."""
    keys = ["x", "y", "z"]
    rng = random.Random(worker)
    with Pool(place, make) as pool:
        for index in range(12):
            rng.shuffle(keys)
            items = [{"key": key, "id": f"{worker}-{index}", **feedback(key, index)} for key in keys]
            records = pool.tell_many(items) if index % 2 else [pool.tell(**item) for item in items]
            say([[key, record.t] for key, record in zip(keys, records, strict=True)])


def share(place: str) -> dict[str, Any]:
    make("a").tell(**feedback("a", 0))
    workers = [fork(lambda say, w=worker: share_keys(place, w, say)) for worker in range(4)]
    rounds: dict[str, list[int]] = {"x": [], "y": [], "z": []}
    errors = []
    for _, reader in workers:
        for done in said(reader):
            if isinstance(done, dict):
                errors.append(done["error"])
                continue
            for key, t in done:
                rounds[key].append(t)
    for pid, _ in workers:
        os.waitpid(pid, 0)
    return {"rounds": rounds, "errors": errors}


if __name__ == "__main__":
    what, place, *numbers = sys.argv[1:]
    print(json.dumps(kill(place, *map(int, numbers)) if what == "kill" else share(place)))

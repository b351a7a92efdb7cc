"""A sweep here and on Dask workers of this machine: python benchmarks/scaling.py [--trials N] [--repeat N].

Six step sizes of CLASP on the paper's regression, with the regret: in one process, on one worker and on two, in turn,
the best of the repetitions. All must agree to the bit. Then what travels, what one more chunk costs, and what 10^5
trials would take.
"""

from __future__ import annotations

import argparse
import os
import pickle
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import cocopt
from cocopt.experiments.compute import compute
from cocopt.experiments.machine import cpu_kind
from cocopt.experiments.plan import make_plan
from cocopt.experiments.sent import pack

SWEEP = "clasp:scale=0.25|0.5|1|2|4|8"
MANY = 100_000


def once(trials: int, **settings: Any) -> tuple[float, cocopt.experiments.Result]:
    """The wall time of the sweep, without tables and figures, and its result."""
    began = time.perf_counter()
    result = cocopt.run("olr", SWEEP, trials, progress=False, **settings)
    return time.perf_counter() - began, result


def assert_same_bits(one: cocopt.experiments.Result, other: cocopt.experiments.Result) -> None:
    for label in one.algorithms:
        for metric, values in one.curves(label).items():
            np.testing.assert_array_equal(values, other.curves(label)[metric])


def describe_travel() -> None:
    """The sizes of what is sent to a worker and back, and the time that Dask needs for one more task."""
    plan = make_plan("olr", SWEEP, trials=100, rounds=None, seed=0, chunk=None, comparators=["static"])
    for task, chunk in {chunk.task: chunk for chunk in plan.chunks}.items():
        if task not in (plan.tasks[0], plan.tasks[1]):
            continue
        back = sum(array.nbytes for array in compute(chunk).values())  # type: ignore[union-attr]
        there = len(pack(compute, chunk))
        began = time.process_time()
        compute(chunk)
        seconds = time.process_time() - began
        sizes = f"{there / 1e3:.1f} kB there, {back / 1e3:.0f} kB back"
        print(f"a chunk of {chunk.count} trials, {task}: {1e3 * seconds:.0f} ms of work, {sizes}")


def overhead(client: Client, tasks: int = 200) -> float:
    """Seconds per task that does nothing, sent and awaited one after the other."""
    payload = pickle.dumps(np.zeros(1000))
    began = time.perf_counter()
    for _ in range(tasks):
        client.submit(len, payload, pure=False).result()
    return (time.perf_counter() - began) / tasks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    asked = parser.parse_args()
    load = f", load {os.getloadavg()[0]:.1f} before the start" if hasattr(os, "getloadavg") else ""
    print(f"{cpu_kind()}, {os.cpu_count()} cores{load}; cocopt {cocopt.__version__}")
    describe_travel()
    times: dict[str, list[float]] = {}
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as one,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as two,
    ):
        with Client(one, set_as_default=False) as client:
            print(f"a task that does nothing: {1e3 * overhead(client):.1f} ms")
        cases: dict[str, dict[str, Any]] = {
            "local, 1 process": {"jobs": 1},
            "dask, 1 worker": {"engine": "dask", "scheduler": one.scheduler_address},
            "dask, 2 workers": {"engine": "dask", "scheduler": two.scheduler_address},
        }
        results = {name: once(asked.trials // 5, **settings)[1] for name, settings in cases.items()}  # warms up
        for result in results.values():
            assert_same_bits(results["local, 1 process"], result)
        for _ in range(asked.repeat):
            for name, settings in cases.items():
                times.setdefault(name, []).append(once(asked.trials, **settings)[0])
    best = {name: min(own) for name, own in times.items()}
    rounds, runs = results["local, 1 process"].rounds, len(results["local, 1 process"].algorithms)
    print(f"\nolr, {SWEEP}, {asked.trials} trials of {rounds} rounds, static regret; same bits in all cases\n")
    print(f"| engine | seconds, best of {asked.repeat} | speed-up | 10^5 trials, extrapolated |\n|---|---|---|---|")
    for name, seconds in best.items():
        hours = seconds / asked.trials * MANY / 3600
        print(f"| {name} | {seconds:.2f} | {best['dask, 1 worker'] / seconds:.2f} | {hours:.2f} h |")
    with tempfile.TemporaryDirectory() as folder:
        once(100, jobs=1, out=folder, tables=False)
        stored = [path.stat().st_size for path in Path(folder, "chunks").glob("*.npz")]
    disk = sum(stored) / 100 * MANY
    arrays = sum(
        v.nbytes
        for label in results["local, 1 process"].algorithms
        for v in results["local, 1 process"].curves(label).values()
    )
    memory = arrays / (asked.trials // 5) * MANY
    print(
        f"\n10^5 trials of {runs} algorithms: {len(stored) * MANY // 100} chunks, {disk / 1e9:.1f} GB on disk; "
        f"{memory / 1e9:.1f} GB of memory for the result on the client"
    )


if __name__ == "__main__":
    main()

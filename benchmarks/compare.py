"""A comparison of this checkout with another one: every row of the README's speed table, timed alternately.

    python benchmarks/compare.py ../old-checkout [--alternations 15] [--only TEXT]

Each checkout has a process of its own, with the interpreter of its ``.venv`` where there is one. The two take turns, so
that a slow moment of the machine slows both; a row shows the median over the turns of old time / new time. Only public
names of cocopt are used, so that any two versions that have them can be compared.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

TURN = 0.05  # seconds that a turn takes at least
FIRST_TELL = "start to first tell"
IMPORT = "import cocopt"


def projections() -> dict[str, Callable[[], Callable[[], Any]]]:
    """Each row's name, and what prepares the call that is timed."""
    from kernels import batch, by_cocopt, nearly_all_bind

    rows = {
        f"{kind} ∩ {count} rows" if count > 1 else f"{kind} ∩ halfspace": (kind, count)
        for kind, count in [
            ("box", 1),
            ("ball", 1),
            ("simplex", 1),
            ("box", 4),
            ("box", 80),
            ("simplex", 40),
            ("simplex", 100),
        ]
    }
    prepare: dict[str, Callable[[], Callable[[], Any]]] = {
        f"{name}, batch of 1000": lambda kind=kind, count=count: by_cocopt(batch(kind, 1000, 10, count))
        for name, (kind, count) in rows.items()
    }
    for kind, n in (("box", 10), ("box", 30), ("simplex", 30)):
        prepare[f"{kind} ∩ 100 rows that nearly all bind, n = {n}"] = lambda kind=kind, n=n: by_cocopt(
            nearly_all_bind(kind, 100, n, 100)
        )
    prepare["box ∩ halfspace, n = 10^6"] = lambda: by_cocopt(batch("box", 1, 10**6, 1))
    return prepare


def learners() -> dict[str, Callable[[], Callable[[], Any]]]:
    """Whole rounds of each algorithm on the paper's regression."""
    from clasp import by_cocopt, data

    from cocopt import CLASPF, RECOO, AdaGrad, Box, constraints, losses

    def rounds_of(make: Callable[..., Any]) -> Callable[[], Any]:
        start, rounds = data(100)

        def run() -> Any:
            learner = make(Box(0.0, 1.0, dim=10), start=start)
            for H, y, A, b in rounds:
                learner.tell(losses.Norm(H, y), constraints.Affine(A, b))
            return learner.ask()

        return run

    return {
        "CLASP, batch of 100, all rows": lambda: by_cocopt(*data(100), "all"),
        "CLASP, batch of 100, worst row": lambda: by_cocopt(*data(100), "worst"),
        "CLASP, single stream": lambda: by_cocopt(*data(1, 2000), "all"),
        "RECOO, batch of 100": lambda: rounds_of(RECOO),
        "CLASP-F, batch of 100": lambda: rounds_of(CLASPF),
        "AdaGrad, batch of 100": lambda: rounds_of(lambda K, start: AdaGrad(K, 100, 10.0, start=start)),
    }


def persistent_constraints() -> dict[str, Callable[[], Callable[[], Any]]]:
    """Rounds from the 2000th on, in which all earlier constraints count."""
    from persistent import STREAMS

    from cocopt import CLASP, Switch, constraints, losses

    def continued(name: str, make: Callable[..., Any]) -> Callable[[], Any]:
        K, stream = STREAMS[name]
        rng, learner = np.random.default_rng(0), make(K, np.zeros((100, 10)))
        data = [stream(rng, 100) for _ in range(2000)]

        def rounds(count: int) -> Any:
            for _ in range(count):
                H, y, A, b = data[learner.t % 2000]
                learner.tell(losses.Norm(H, y), constraints.Affine(A, b))
            return learner.ask()

        rounds(2000)
        return lambda: rounds(25)

    return {
        f"{title}, {name}, from round 2000 on": lambda name=name, make=make: continued(name, make)
        for name in STREAMS
        for title, make in {
            "all constraints (Switch)": lambda K, start: Switch(K, 10**6, 10.0, start=start, threshold=1e12),
            "all constraints (CLASP)": lambda K, start: CLASP(K, start=start, window=None),
        }.items()
    }


def work() -> None:
    """The worker's side: a row's name comes in, the seconds of its best call in one turn go out."""
    prepare = {**projections(), **learners(), **persistent_constraints()}
    print("\n".join(prepare), end="\n\n", flush=True)
    name, call = "", None
    for line in sys.stdin:
        if line.strip() != name:
            name = line.strip()
            call = prepare[name]()
            call()
        assert call is not None
        best, end = float("inf"), time.perf_counter() + TURN
        while True:
            start = time.perf_counter()
            call()
            stop = time.perf_counter()
            best = min(best, stop - start)
            if stop >= end:
                break
        print(best, flush=True)


class Checkout:
    """One version of the library, and a process that runs it."""

    def __init__(self, folder: Path) -> None:
        own = folder / ".venv" / "bin" / "python"
        self.python = str(own if own.exists() else sys.executable)
        self.environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
        self.process = subprocess.Popen(
            [self.python, __file__, "--worker"],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.rows = list(iter(lambda: self._output.readline().strip(), ""))

    @property
    def _output(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def seconds(self, row: str) -> float:
        assert self.process.stdin is not None
        print(row, file=self.process.stdin, flush=True)
        return float(self._output.readline())

    def start_seconds(self, row: str) -> float:
        """Seconds of a fresh process."""
        from clasp import FIRST_TELL as code

        if row == IMPORT:
            code = "import time; t = time.perf_counter(); import cocopt; print(time.perf_counter() - t)"
        done = subprocess.run(
            [self.python, "-c", code], env=self.environment, capture_output=True, check=True, text=True
        )
        return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, nargs="?", help="the folder of the other checkout")
    parser.add_argument("--alternations", type=int, default=15)
    parser.add_argument("--only", default="", help="rows whose name contains this text")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work()
        return
    if options.other is None:
        parser.error("expected the folder of the other checkout")
    old, new = Checkout(options.other.resolve()), Checkout(Path(__file__).resolve().parents[1])
    print("| what | old ms | new ms | old / new |\n| --- | --- | --- | --- |")
    for row in [*(name for name in old.rows if name in new.rows), IMPORT, FIRST_TELL]:
        if options.only not in row:
            continue
        pairs = []
        for turn in range(options.alternations):
            order = (old, new) if turn % 2 == 0 else (new, old)
            times = {
                side: side.start_seconds(row) if row in (IMPORT, FIRST_TELL) else side.seconds(row) for side in order
            }
            pairs.append((times[old], times[new]))
        before, after = (statistics.median(side) * 1e3 for side in zip(*pairs, strict=True))
        ratio = statistics.median(first / second for first, second in pairs)
        print(f"| {row} | {before:.4g} | {after:.4g} | {ratio:.3f} |", flush=True)


if __name__ == "__main__":
    main()

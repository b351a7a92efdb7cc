"""Speed of the projections beside what one would write instead. All ratios of a table come from one run.

python benchmarks/run.py [--json FILE] [--quick] [--minutes M]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import clasp
import field
import numpy as np
import paper_algorithms
import persistent
from deadline import OutOfTime, until
from kernels import Batch, batch, best_times, by_clarabel, by_cocopt, by_cvxpy, by_daqp, in_turn, nearly_all_bind, race

import cocopt
from cocopt import constraints

TRIALS, DIM = 1000, 10
MANY_ROWS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 50, 64, 80, 100)
SIZES = tuple(round(n) for n in np.logspace(5, 6, 6))
DATA = 4_000_000  # numbers in each array that a size goes through
CVXPY_TRIALS = 40
IMPORT = "import time; t = time.perf_counter(); import cocopt; print(time.perf_counter() - t)"

Row = dict[str, Any]


def machine() -> dict[str, Any]:
    info = Path("/proc/cpuinfo")
    models = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line]
    packages = ("cocopt", "numpy", "numba", "daqp", "clarabel", "cvxpy", "osqp")
    return {
        "cpu": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def against_daqp(repeat: int) -> list[Row]:
    """The kernels with one row; DAQP knows no ball, so there its call on the box serves as the unit."""
    box, ball, simplex = (batch(kind, TRIALS, DIM, 1) for kind in ("box", "ball", "simplex"))
    table = []
    for name, problem, peer, target in [
        ("box ∩ halfspace", box, box, 40),
        ("ball ∩ halfspace", ball, box, 50),
        ("simplex ∩ halfspace", simplex, simplex, 10),
        ("box ∩ 4 rows", *[batch("box", TRIALS, DIM, 4)] * 2, 4),
    ]:
        best = race({"cocopt": by_cocopt(problem)}, repeat) if problem is not peer else {}
        best = race({"cocopt": by_cocopt(peer), "daqp": by_daqp(peer)}, repeat) | best
        table.append(row(name, "daqp.solve", target, best["cocopt"] / TRIALS, best["daqp"] / TRIALS))
    return table


def against_cvxpy(repeat: int) -> list[Row]:
    """Box ∩ 4 rows against the fastest of CVXPY's solvers for it, on fewer problems since each takes milliseconds."""
    problem = batch("box", TRIALS, DIM, 4)
    few = Batch(problem.K, *(array[:CVXPY_TRIALS] for array in problem[1:]))
    ours = race({"cocopt": by_cocopt(problem)}, repeat)["cocopt"] / TRIALS
    theirs = {solver: race({solver: by_cvxpy(few, solver)}, 2)[solver] for solver in ("CLARABEL", "OSQP", "DAQP")}
    solver = min(theirs, key=lambda name: theirs[name])
    return [row("box ∩ 4 rows", f"DPP CVXPY ({solver})", 400, ours, theirs[solver] / CVXPY_TRIALS)]


def sweep(repeat: int) -> list[Row]:
    """M from 1 to 100: where DAQP takes over from the kernel."""
    table = []
    for kind in ("box", "simplex"):
        for rows in MANY_ROWS:
            problem = batch(kind, TRIALS, DIM, rows)
            best = race({"cocopt": by_cocopt(problem), "daqp": by_daqp(problem)}, repeat)
            method = cocopt.explain(problem.K, constraints.Affine(problem.A, problem.b)).partition(":")[0]
            name = f"{kind} ∩ {rows} rows"
            table.append(
                row(name, "daqp.solve", 1, best["cocopt"] / TRIALS, best["daqp"] / TRIALS) | {"method": method}
            )
    return table


def corners(repeat: int) -> list[Row]:
    """Problems in which nearly all rows bind, on which DAQP is fastest."""
    table = []
    for kind in ("box", "simplex"):
        for n, rows in ((10, 16), (10, 32), (10, 100), (30, 16), (30, 32), (30, 100)):
            problem = nearly_all_bind(kind, 100, n, rows)
            best = race({"cocopt": by_cocopt(problem), "daqp": by_daqp(problem)}, repeat)
            name = f"{kind} ∩ {rows} rows that nearly all bind, n = {n}"
            table.append(row(name, "daqp.solve", 1, best["cocopt"] / 100, best["daqp"] / 100))
    return table


def growth(repeat: int, largest: bool) -> list[Row]:
    """Cost against n with one row: the fitted exponent, and the time at n = 10^6 beside Clarabel's.

    Each size goes through the same amount of data, more than a cache holds, so that all sizes read from memory.
    """
    table = []
    for kind in ("box", "ball", "simplex"):
        problems = {n: [batch(kind, 1, n, 1, seed) for seed in range(DATA // n)] for n in SIZES}
        totals = best_times({str(n): in_turn([by_cocopt(p) for p in problems[n]]) for n in SIZES}, repeat)
        times = [totals[str(n)] / len(problems[n]) for n in SIZES]
        exponent = float(np.polyfit(np.log(SIZES), np.log(times), 1)[0])
        table.append(
            {"name": f"{kind} ∩ halfspace, exponent of n", "target": 1.1, "reached": exponent, "at_most": True}
        )
        if largest:
            problem = problems[SIZES[-1]][0]
            best = race({"cocopt": by_cocopt(problem), "clarabel": by_clarabel(problem)}, 1, agree=1e-3)
            table.append(
                row(f"{kind} ∩ halfspace, n = 10^6", "Clarabel", 30, min(times[-1], best["cocopt"]), best["clarabel"])
            )
    return table


def import_time() -> list[Row]:
    command = [sys.executable, "-c", IMPORT]
    times = [float(subprocess.run(command, capture_output=True, check=True, text=True).stdout) for _ in range(5)]
    return [{"name": "import cocopt, seconds", "target": 0.3, "reached": min(times), "at_most": True}]


def row(name: str, peer: str, target: float, ours: float, theirs: float) -> Row:
    return {
        "name": name,
        "peer": peer,
        "target": target,
        "reached": theirs / ours,
        "at_most": False,
        "microseconds": ours * 1e6,
        "peer_microseconds": theirs * 1e6,
    }


def show(table: list[Row]) -> None:
    """A Markdown table."""
    lines = [["what", "beside", "µs", "its µs", "target", "reached", "", "method"]]
    for r in table:
        met = r["reached"] <= r["target"] if r["at_most"] else r["reached"] >= r["target"]
        times = [f"{r[key]:.4g}" if key in r else "" for key in ("microseconds", "peer_microseconds")]
        sign, unit = ("≤", "") if r["at_most"] else ("≥", "×")
        figures = [f"{sign} {r['target']:g}{unit}", f"{r['reached']:.3g}{unit}", "met" if met else "**missed**"]
        lines.append([r["name"], r.get("peer", ""), *times, *figures, r.get("method", "")])
    lines.insert(1, ["---"] * len(lines[0]))
    for line in lines:
        print("| " + " | ".join(line) + " |")
    print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    parser.add_argument(
        "--quick", action="store_true", help="fewer repeats, and no Clarabel at n = 10^6 (a minute or two)"
    )
    parser.add_argument("--minutes", type=float, default=float("inf"), help="leave out what is not measured by then")
    options = parser.parse_args()
    deadline = time.monotonic() + 60 * options.minutes
    repeat = 3 if options.quick else 15
    described = machine()
    print(", ".join(f"{key} {value}" for key, value in described.items()), "\n")
    figures = []
    for title, present, measure in [
        (
            f"Batches of {TRIALS}, n = {DIM}, time per problem",
            show,
            lambda: against_daqp(repeat) + against_cvxpy(repeat),
        ),
        ("From 1 row to 100", show, lambda: sweep(max(2, repeat // 2))),
        ("Rows that nearly all bind", show, lambda: corners(max(2, repeat // 2))),
        ("Large n", show, lambda: growth(repeat, largest=not options.quick)),
        (
            "CLASP on the paper's regression, time per trial and round",
            show,
            lambda: clasp.table(race, row, repeat),
        ),
        ("Persistent constraints, time per trial and round", show, lambda: persistent.table(row)),
        (
            "The paper's algorithms, time per trial and round",
            show,
            lambda: paper_algorithms.table(race, row, max(2, repeat // 3)),
        ),
        ("All algorithms, time per trial and round", field.show, lambda: field.table(max(3, repeat // 2))),
        ("Start", show, import_time),
    ]:
        print(f"**{title}**\n")
        try:
            with until(deadline):
                table = measure()
        except OutOfTime:
            print(f"Left out: not measured within {options.minutes:g} minutes.\n", flush=True)
            continue
        present(table)
        figures += table
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        temporary = options.json.with_name(f"{options.json.name}.tmp")
        temporary.write_text(json.dumps({"machine": described, "figures": figures}, indent=1), encoding="utf-8")
        temporary.replace(options.json)


if __name__ == "__main__":
    main()

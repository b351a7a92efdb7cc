"""The table set × constraint × n × rows × batch: cocopt beside the fastest of its peers in every cell.

    python benchmarks/table.py                    # a sample, ten minutes at most (make bench)
    python benchmarks/table.py --full             # all of it; after an interruption the same command continues
    python benchmarks/table.py --only curved/box  # cells whose name contains a text
    python benchmarks/table.py --full --keep-older  # cells of earlier versions of the code stay, with their key
    python benchmarks/table.py --docs FILE        # tables and heat map of docs/performance.md, rows of the README

Figures go to a JSON file (``--out``) and into a heat map beside it. What is timed is said in benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from cells import Cell, all_cells, sampled
from deadline import OutOfTime, until
from measure import Result, measure

from cocopt.experiments.chunks import code_hash

FOLDER = Path(__file__).parent
PACKAGES = ("cocopt", "numpy", "scipy", "numba", "daqp", "clarabel", "piqp", "osqp", "proxsuite", "cvxpy")
DEFINITIONS = ("cells.py", "table_problems.py", "conic_forms.py", "peers.py", "measure.py", "clasp.py")
FORMAT = 1


def machine() -> dict[str, Any]:
    """What the figures depend on: the processor, the versions, the thread settings."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "threads": os.environ.get("OPENBLAS_NUM_THREADS", "default"),
        **{name: _version(name) for name in PACKAGES},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def key() -> dict[str, str]:
    """Figures are kept only for the same code, the same problems and the same machine."""
    digest = hashlib.sha256(b"".join((FOLDER / name).read_bytes() for name in DEFINITIONS))
    described = hashlib.sha256(json.dumps(machine(), sort_keys=True).encode())
    return {"code": code_hash()[:16], "problems": digest.hexdigest()[:16], "machine": described.hexdigest()[:16]}


def empty() -> dict[str, Any]:
    return {"format": FORMAT, "key": key(), "machine": machine(), "cells": {}, "start": {}, "profile": {}}


def load(path: Path, keep_older: bool = False) -> dict[str, Any]:
    """The figures so far; none if the file is missing or was made with other code or on another machine.

    On request cells of older code are kept, but not what belongs to the whole table: first use, and the parts of a
    round. Each cell has the key of its code.
    """
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        now, same = key(), found.get("format") == FORMAT
        if same and found["key"] == now:
            return found
        if same and keep_older and found["key"] | {"code": now["code"]} == now:
            return empty() | {"cells": found["cells"]}
        print(f"{path}: of other code or another machine, so all cells are measured anew", flush=True)
    return empty()


def save(bench: dict[str, Any], path: Path) -> None:
    """Whole or not at all: written under another name, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(bench, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(path)


def fill(
    bench: dict[str, Any],
    cells: list[Cell],
    path: Path,
    budget: float,
    deadline: float = float("inf"),
    run: Callable[[Cell, float], Result] = measure,
) -> int:
    """Measure the cells that are missing, each kept as soon as it is done; returns how many the deadline left out.

    A cell that the deadline interrupts is one of these.
    """
    missing = [cell for cell in cells if cell.id not in bench["cells"]]
    for number, cell in enumerate(missing):
        if time.monotonic() > deadline:
            return len(missing) - number
        try:
            with until(deadline):
                result = run(cell, budget)
        except OutOfTime:
            return len(missing) - number
        bench["cells"][cell.id] = result | {"code": bench["key"]["code"]}
        save(bench, path)
        print(line(cell.id, result), flush=True)
    return 0


def line(name: str, result: Result) -> str:
    """A cell as one line of text."""
    if result["status"] != "measured" or result["ratio"] is None:
        reached = f"{result['microseconds']:10.4g} µs" if "microseconds" in result else ""
        note = result.get("note") or "; ".join(f"{peer}: {text}" for peer, text in result.get("left_out", {}).items())
        return f"{name:<62} {reached} {result['status']} (target {result['target']}; {note})"
    best = result["best"]
    theirs = result["peers"][best]
    mark = "" if result["exact"] else f", which errs by {theirs['difference']:.0e}"
    verdict = "met" if result["met"] else "MISSED"
    return (
        f"{name:<62} {result['microseconds']:10.4g} µs {result['ratio']:8.3g}× {best} "
        f"({theirs['microseconds']:.4g} µs{mark}), target {result['target']}: {verdict}"
    )


def summary(bench: dict[str, Any]) -> str:
    results = list(bench["cells"].values())
    measured = [result for result in results if result["status"] == "measured"]
    met = sum(result["met"] for result in measured)
    others = len(results) - len(measured)
    text = f"{len(measured)} cells measured: {met} meet their target, {len(measured) - met} miss it"
    return text + (f"; {others} without a figure" if others else "")


def finish(bench: dict[str, Any], path: Path) -> None:
    """What belongs to the whole table and is not a cell: times of compilation, and the parts of a round."""
    import compile_times
    import profile_round

    for name, run in {"start": compile_times.measure, "profile": profile_round.measure}.items():
        if not bench[name]:
            bench[name] = run()
            save(bench, path)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="all cells, and the times of compilation; resumes")
    parser.add_argument("--only", metavar="TEXT", help="only cells whose name contains this text; resumes")
    parser.add_argument("--keep-older", action="store_true", help="keep cells that were measured with older code")
    parser.add_argument("--list", action="store_true", help="print the names of the cells and stop")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="default: results/bench.json, -sample.json for a sample"
    )
    parser.add_argument("--seconds", type=float, default=0.0, help="for the timing of a cell; default: 0.3, full 1")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="leave out what is not measured by then")
    parser.add_argument("--docs", type=Path, metavar="FILE", help="write the pages from these figures; measure nothing")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    if options.docs is not None:
        import pages

        pages.write(json.loads(options.docs.read_text(encoding="utf-8")))
        return
    began, cells = time.monotonic(), list(all_cells())
    whole = options.full or options.only is not None
    chosen = [cell for cell in cells if options.only in cell.id] if options.only else cells if whole else sampled(cells)
    if options.list:
        print(*(cell.id for cell in chosen), sep="\n")
        return
    path = options.out or Path("results") / ("bench.json" if whole else "bench-sample.json")
    bench = load(path, options.keep_older) if whole else empty()
    print(", ".join(f"{name} {value}" for name, value in bench["machine"].items()), flush=True)
    left = fill(bench, chosen, path, options.seconds or (1.0 if whole else 0.3), began + 60 * options.minutes)
    if options.full:
        finish(bench, path)
    for name, figure in bench["start"].items():
        verdict = "met" if figure["seconds"] <= figure["target"] else "MISSED"
        print(f"{name:<62} {figure['seconds']:10.3g} s, target ≤ {figure['target']:g} s: {verdict}")
    import heat_map

    picture = path.with_suffix(".png")
    heat_map.draw(bench, picture)
    print(f"{summary(bench)}{f'; {left} cells left out for want of time' if left else ''}.")
    print(f"Figures: {path}, heat map: {picture}. Wall time: {time.monotonic() - began:.0f} s.")


if __name__ == "__main__":
    main()

"""Interrupted runs: finished chunks are kept, never computed again, and never mixed with anything else."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import cocopt
from cocopt import state
from cocopt.cli import app
from cocopt.experiments import TrialFailed, chunks, engines, execute
from cocopt.experiments.results import write_tables

PROBLEM = """
import numpy as np
from cocopt import Box, constraints, losses, problems

class Own(problems.Problem):
    K = Box(-1.0, 1.0, dim=2)
    rounds = 40
    def __init__(self, width=1.0):
        super().__init__()
        self.width = width
    def round(self, rng, t):
        c = self.width * rng.uniform(-1, 1, size=2)
        return losses.Distance(c), constraints.Affine([1.0, 1.0], 0.5)

class Poisoned(Own):
    def round(self, rng, t):
        loss, constraint = super().round(rng, t)
        bad = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(12, 1))).bit_generator.seed_seq.state
        own = rng.bit_generator.seed_seq.state
        return (losses.Distance([np.nan, 0.0]) if t == 37 and own == bad else loss), constraint
"""

ALGORITHM = """
from cocopt import CLASP, steps

def short(K, start, scale=0.1):
    return CLASP(K, start=start, steps=steps.Power(0.5, scale=scale))
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(PROBLEM)
    (tmp_path / "ours.py").write_text(ALGORITHM)
    return tmp_path


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The pieces of work that were really done, as (task, first trial)."""
    done: list[tuple[str, int]] = []
    compute = execute.compute

    def counted(chunk: Any) -> Any:
        done.append((chunk.task, chunk.first))
        return compute(chunk)

    monkeypatch.setattr(execute, "compute", counted)
    return done


def run(files: Path, **settings: Any) -> Any:
    arguments: dict[str, Any] = {
        "problem": f"{files}/mine.py:Own",
        "algorithms": ["clasp", f"{files}/ours.py:short"],
        "trials": 6,
        "chunk": 2,
        "jobs": 1,
        "out": files / "out",
        "tables": False,
    }
    return cocopt.run(**{**arguments, **settings})


EVERYTHING = [(task, k) for task in ("best action in hindsight", "clasp", "short") for k in (0, 2, 4)]


def test_finished_work_is_never_computed_again(files: Path, worked: list[Any]) -> None:
    first = run(files)
    assert worked == EVERYTHING
    worked.clear()
    again = run(files)
    assert worked == []
    for label in first.algorithms:
        for metric, values in first.finals(label).items():
            np.testing.assert_array_equal(values, again.finals(label)[metric])


def test_no_more_processes_than_cores_that_may_be_used(
    files: Path, worked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "MIN_PARALLEL_ROUNDS", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0}, raising=False)
    run(files, jobs=None)
    assert worked == EVERYTHING  # in this process


def test_only_what_is_new_is_computed(files: Path, worked: list[Any]) -> None:
    run(files)
    worked.clear()
    run(files, trials=8, algorithms=["clasp", f"{files}/ours.py:short", "recoo"])
    assert worked == [
        ("best action in hindsight", 6),
        ("clasp", 6),
        ("short", 6),
        *(("recoo", k) for k in (0, 2, 4, 6)),
    ]


CHANGES: dict[str, Callable[[Path, pytest.MonkeyPatch], Mapping[str, Any]]] = {
    "seed": lambda files, patch: {"seed": 1},
    "rounds": lambda files, patch: {"rounds": 39},
    "chunk": lambda files, patch: {"chunk": 3},
    "problem's option": lambda files, patch: {"problem": f"{files}/mine.py:Own:width=0.5"},
    "problem's file": lambda files, patch: {"_": (files / "mine.py").write_text(PROBLEM + "\n# changed")},
    "version": lambda files, patch: {"_": patch.setattr(cocopt, "__version__", "9.9.9")},
    "code": lambda files, patch: {"_": patch.setattr(chunks, "code_hash", lambda: "other")},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_configuration_is_never_mixed(
    change: str, files: Path, worked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(files)
    kept = {path.name: path.read_bytes() for path in (files / "out" / "chunks").iterdir()}
    worked.clear()
    settings = dict(CHANGES[change](files, monkeypatch))
    settings.pop("_", None)
    chunks.versions.cache_clear()
    run(files, **settings)
    chunks.versions.cache_clear()
    assert {task for task, _ in worked} == {task for task, _ in EVERYTHING}
    assert sum(2 if settings.get("chunk") is None else 3 for _ in worked) == 18  # all trials of all tasks
    for name, content in kept.items():
        assert (files / "out" / "chunks" / name).read_bytes() == content


def test_another_algorithm_leaves_the_rest_alone(files: Path, worked: list[Any]) -> None:
    run(files)
    worked.clear()
    (files / "ours.py").write_text(ALGORITHM.replace("scale=0.1", "scale=0.2"))
    run(files, algorithms=["clasp", f"{files}/ours.py:short", "clasp:beta=0.6"])
    assert {task for task, _ in worked} == {"short", "clasp:beta=0.6"}


def test_a_damaged_chunk_is_computed_again(files: Path, worked: list[Any]) -> None:
    run(files)
    victim = sorted((files / "out" / "chunks").iterdir())[0]
    header, arrays = state.read(victim)
    worked.clear()
    victim.write_bytes(victim.read_bytes()[:1000])
    run(files)
    assert len(worked) == 1
    again, computed = state.read(victim)
    assert again == header
    assert all(np.array_equal(computed[name], array, equal_nan=True) for name, array in arrays.items())


def test_what_cannot_say_what_it_is_is_not_kept(files: Path, worked: list[Any]) -> None:
    algorithms = {"mine": lambda K, start: cocopt.CLASP(K, start=start), "clasp": "clasp"}
    run(files, algorithms=algorithms)
    worked.clear()
    run(files, algorithms=algorithms)
    assert {task for task, _ in worked} == {"mine"}


def test_a_failing_trial_costs_its_own_chunk_alone(files: Path, worked: list[Any]) -> None:
    poisoned = {
        "problem": f"{files}/mine.py:Poisoned",
        "algorithms": "clasp",
        "trials": 20,
        "chunk": 5,
        "regret": False,
    }
    with pytest.raises(TrialFailed, match=r"Poisoned, clasp, trial 12, round 37: .*got nan"):
        run(files, **poisoned)
    assert worked == [("clasp", k) for k in (0, 5, 10, 15)]
    worked.clear()
    with pytest.raises(TrialFailed, match="trial 12, round 37"):
        run(files, **poisoned)
    assert worked == [("clasp", 10)]


def test_a_full_disk_loses_nothing_finished(files: Path, worked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    write, room = state.write, 4

    def cramped(*arguments: Any) -> None:
        nonlocal room
        if room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        room -= 1
        write(*arguments)

    command = ["run", f"{files}/mine.py:Own", "-a", "clasp", "-a", "recoo", "--trials", "75", "--jobs", "1", "-q"]
    with monkeypatch.context() as patch:
        patch.setattr(state, "write", cramped)
        told = CliRunner().invoke(app, [*command, "--out", str(files / "out")])
    assert told.exit_code == 1
    assert "cannot write: No space left on device; finished chunks are kept" in told.stderr
    assert len(worked) == 5  # the fifth could not be kept
    worked.clear()
    assert CliRunner().invoke(app, [*command, "--out", str(files / "out")]).exit_code == 0
    assert len(worked) == 9 - 4


def command(out: Path, jobs: int) -> list[str]:
    return f"run olr-long -a clasp -a recoo --trials 125 --rounds 100 --jobs {jobs} --out {out}".split()


def finished(out: Path) -> dict[str, int]:
    """The chunks on disk, and when they were written."""
    return {path.name: path.stat().st_mtime_ns for path in (out / "chunks").glob("[!.]*.npz")}


def interrupt(out: Path, jobs: int, signals: int, more: int) -> tuple[int, str]:
    """Starts a run in a process of its own and stops it, with its helpers, when it has finished some more chunks."""
    before = len(finished(out))
    program = [sys.executable, "-m", "cocopt", *command(out, jobs)]
    process = subprocess.Popen(program, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        while process.poll() is None and len(finished(out)) < before + more:
            time.sleep(0.005)
        if process.poll() is None:
            os.killpg(process.pid, signals)
        _, told = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, told


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX")
@pytest.mark.parametrize(("jobs", "blows"), [pytest.param(1, 3, marks=pytest.mark.slow), (2, 2)])
def test_killed_several_times_it_ends_as_if_nothing_had_happened(jobs: int, blows: int, tmp_path: Path) -> None:
    out, quiet = tmp_path / "killed", tmp_path / "quiet"
    kept: dict[str, int] = {}
    for more, blow in ((1, signal.SIGKILL), (2, signal.SIGINT), (3, signal.SIGKILL))[:blows]:
        code, told = interrupt(out, jobs, blow, more)
        assert code == (-signal.SIGKILL if blow == signal.SIGKILL else 130)
        if blow == signal.SIGINT:
            assert f"interrupted; finished chunks are kept in {out}" in told
        now = finished(out)
        assert len(now) >= len(kept) + more
        assert kept.items() <= now.items()  # nothing was written anew
        kept = now
    assert not (out / "summary.csv").exists()
    assert CliRunner().invoke(app, command(out, jobs)).exit_code == 0
    assert kept.items() <= finished(out).items()
    result = cocopt.run("olr-long", ["clasp", "recoo"], 125, 100, jobs=3 - jobs, out=quiet, tables=False)
    write_tables([result], quiet)
    assert finished(out).keys() == finished(quiet).keys()
    for name in ("summary.csv", "finals.csv", "curves.csv", "paired.csv", "config.json"):
        assert (quiet / name).read_bytes() == (out / name).read_bytes(), name

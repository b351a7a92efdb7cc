"""Interrupted runs: finished chunks are kept, not computed again, and used only for the same configuration."""

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
def computed_chunks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The chunks that were computed, as (task, first trial)."""
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


def test_finished_chunks_are_not_computed_again(files: Path, computed_chunks: list[Any]) -> None:
    first = run(files)
    assert computed_chunks == EVERYTHING
    computed_chunks.clear()
    again = run(files)
    assert computed_chunks == []
    for label in first.algorithms:
        for metric, values in first.finals(label).items():
            np.testing.assert_array_equal(values, again.finals(label)[metric])


def test_there_are_no_more_processes_than_usable_cores(
    files: Path, computed_chunks: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "MIN_PARALLEL_ROUNDS", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0}, raising=False)
    run(files, jobs=None)
    assert computed_chunks == EVERYTHING  # in this process


def test_only_new_trials_and_algorithms_are_computed(files: Path, computed_chunks: list[Any]) -> None:
    run(files)
    computed_chunks.clear()
    run(files, trials=8, algorithms=["clasp", f"{files}/ours.py:short", "recoo"])
    assert computed_chunks == [
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
def test_chunks_of_another_configuration_are_not_used(
    change: str, files: Path, computed_chunks: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(files)
    kept = {path.name: path.read_bytes() for path in (files / "out" / "chunks").iterdir()}
    computed_chunks.clear()
    settings = dict(CHANGES[change](files, monkeypatch))
    settings.pop("_", None)
    chunks.versions.cache_clear()
    run(files, **settings)
    chunks.versions.cache_clear()
    assert {task for task, _ in computed_chunks} == {task for task, _ in EVERYTHING}
    assert sum(2 if settings.get("chunk") is None else 3 for _ in computed_chunks) == 18  # all trials of all tasks
    for name, content in kept.items():
        assert (files / "out" / "chunks" / name).read_bytes() == content


def test_a_changed_algorithm_does_not_affect_the_others(files: Path, computed_chunks: list[Any]) -> None:
    run(files)
    computed_chunks.clear()
    (files / "ours.py").write_text(ALGORITHM.replace("scale=0.1", "scale=0.2"))
    run(files, algorithms=["clasp", f"{files}/ours.py:short", "clasp:beta=0.6"])
    assert {task for task, _ in computed_chunks} == {"short", "clasp:beta=0.6"}


def test_a_damaged_chunk_is_computed_again(files: Path, computed_chunks: list[Any]) -> None:
    run(files)
    victim = sorted((files / "out" / "chunks").iterdir())[0]
    header, arrays = state.read(victim)
    computed_chunks.clear()
    victim.write_bytes(victim.read_bytes()[:1000])
    run(files)
    assert len(computed_chunks) == 1
    again, computed = state.read(victim)
    assert again == header
    assert all(np.array_equal(computed[name], array, equal_nan=True) for name, array in arrays.items())


def test_chunks_of_functions_are_not_kept(files: Path, computed_chunks: list[Any]) -> None:
    algorithms = {"mine": lambda K, start: cocopt.CLASP(K, start=start), "clasp": "clasp"}
    run(files, algorithms=algorithms)
    computed_chunks.clear()
    run(files, algorithms=algorithms)
    assert {task for task, _ in computed_chunks} == {"mine"}


def test_a_failing_trial_loses_only_its_own_chunk(files: Path, computed_chunks: list[Any]) -> None:
    poisoned = {
        "problem": f"{files}/mine.py:Poisoned",
        "algorithms": "clasp",
        "trials": 20,
        "chunk": 5,
        "regret": False,
    }
    with pytest.raises(TrialFailed, match=r"Poisoned, clasp, trial 12, round 37: .*got nan"):
        run(files, **poisoned)
    assert computed_chunks == [("clasp", k) for k in (0, 5, 10, 15)]
    computed_chunks.clear()
    with pytest.raises(TrialFailed, match="trial 12, round 37"):
        run(files, **poisoned)
    assert computed_chunks == [("clasp", 10)]


def test_a_full_disk_loses_no_finished_chunk(
    files: Path, computed_chunks: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    write, left = state.write, 4

    def write_until_full(*arguments: Any) -> None:
        nonlocal left
        if left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        left -= 1
        write(*arguments)

    command = ["run", f"{files}/mine.py:Own", "-a", "clasp", "-a", "recoo", "--trials", "75", "--jobs", "1", "-q"]
    with monkeypatch.context() as patch:
        patch.setattr(state, "write", write_until_full)
        done = CliRunner().invoke(app, [*command, "--out", str(files / "out")])
    assert done.exit_code == 1
    assert "cannot write: No space left on device; finished chunks are kept" in done.stderr
    assert len(computed_chunks) == 5  # the fifth could not be kept
    computed_chunks.clear()
    assert CliRunner().invoke(app, [*command, "--out", str(files / "out")]).exit_code == 0
    assert len(computed_chunks) == 5 - 4  # three of the comparator, one of each algorithm


def command(out: Path, jobs: int) -> list[str]:
    return f"run olr-long -a clasp -a recoo --trials 125 --rounds 100 --jobs {jobs} --out {out}".split()


def finished(out: Path) -> dict[str, int]:
    """The chunks on disk, and when they were written."""
    return {path.name: path.stat().st_mtime_ns for path in (out / "chunks").glob("[!.]*.npz")}


def interrupt(out: Path, jobs: int, signals: int, more: int) -> tuple[int, str]:
    """Starts a run in a process of its own and stops it, with its helpers, when it has finished some more chunks."""
    before = len(finished(out))
    program = [sys.executable, "-m", "cocopt", *command(out, jobs)]
    # a shell's background jobs ignore Ctrl-C, and so would this process, if the tests are one
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(program, stderr=subprocess.PIPE, text=True, start_new_session=True)
    signal.signal(signal.SIGINT, inherited)
    try:
        while process.poll() is None and len(finished(out)) < before + more:
            time.sleep(0.005)
        if process.poll() is None:
            os.killpg(process.pid, signals)
        _, errors = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, errors


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX")
@pytest.mark.parametrize(("jobs", "kills"), [pytest.param(1, 3, marks=pytest.mark.slow), (2, 2)])
def test_a_run_that_is_killed_several_times_gives_the_same_files(jobs: int, kills: int, tmp_path: Path) -> None:
    out, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    kept: dict[str, int] = {}
    for more, kill in ((1, signal.SIGKILL), (2, signal.SIGINT), (3, signal.SIGKILL))[:kills]:
        code, errors = interrupt(out, jobs, kill, more)
        assert code == (-signal.SIGKILL if kill == signal.SIGKILL else 130)
        if kill == signal.SIGINT:
            assert f"interrupted; finished chunks are kept in {out}" in errors
        now = finished(out)
        assert len(now) >= len(kept) + more
        assert kept.items() <= now.items()  # nothing was written again
        kept = now
    assert not (out / "summary.csv").exists()
    assert CliRunner().invoke(app, command(out, jobs)).exit_code == 0
    assert kept.items() <= finished(out).items()
    result = cocopt.run("olr-long", ["clasp", "recoo"], 125, 100, jobs=3 - jobs, out=undisturbed, tables=False)
    write_tables([result], undisturbed)
    assert finished(out).keys() == finished(undisturbed).keys()
    for name in ("summary.csv", "finals.csv", "curves.csv", "paired.csv", "config.json"):
        assert (undisturbed / name).read_bytes() == (out / name).read_bytes(), name


def test_the_hash_of_the_code_covers_what_determines_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cocopt, "__file__", str(tmp_path / "__init__.py"))
    (tmp_path / "experiments").mkdir()

    def hashed(**files: str) -> str:
        for name, text in files.items():
            (tmp_path / "experiments" / f"{name}.py").write_text(text)
        return chunks.code_hash.__wrapped__()

    before = hashed(metrics="x = 1", plots="y = 1")
    assert len(before) == 64
    assert hashed(plots="y = 2") == before  # what is only shown
    changed = hashed(metrics="x = 2")
    assert changed != before
    assert hashed(metrics="x = 1", other="") not in (before, changed)  # one more file

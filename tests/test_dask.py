"""The engine "dask", with a real scheduler and two worker processes: same numbers, lost workers, lost scheduler."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from distributed import CancelledError, Client
from typer.testing import CliRunner

import cocopt
from cocopt.cli import app
from cocopt.errors import EngineFailed
from cocopt.experiments import Result, engines

PROBLEM = '''
import os, signal, time
from pathlib import Path
from cocopt import Box, constraints, losses, problems

class Plain(problems.Problem):
    K = Box(-1.0, 1.0, dim=2)
    rounds = 30

    def round(self, rng, t):
        return losses.Distance(rng.uniform(-1, 1, size=2)), constraints.Affine([1.0, 1.0], 0.5)

class WaitsOnce(Plain):
    """The first process that comes to round 20 writes its number into a file, and waits to be killed."""

    name = "Plain"

    def round(self, rng, t):
        if t == 20:
            try:
                with open(Path(__file__).with_name("waiting"), "x") as file:
                    file.write(str(os.getpid()))
            except FileExistsError:
                pass
            else:
                time.sleep(60)
        return super().round(rng, t)

class KillsItsProcess(Plain):
    def round(self, rng, t):
        os.kill(os.getpid(), signal.SIGKILL)

class CannotBeSent(Plain):
    def __setstate__(self, state):
        raise RuntimeError("not here")
'''


class Cluster:
    """A scheduler and two workers on loopback, each a process of its own."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder, self.processes = folder, list[subprocess.Popen[bytes]]()
        self.settings = {f"DASK_{key}": value for key, value in settings.items()}
        file = folder / "scheduler.json"
        self.scheduler = self._start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", file)
        wait_until(lambda: file.exists() and file.stat().st_size > 0)
        self.address: str = json.loads(file.read_text())["address"]
        workers = ("--nthreads", "1", "--no-nanny", "--local-directory", folder)
        self.workers = [self._start("dask_worker", self.address, *workers) for _ in range(2)]
        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)

    def _start(self, program: str, *arguments: str | Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{program}", "--no-dashboard", *map(str, arguments)]
        with (self.folder / "log.txt").open("ab") as log:
            started = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **self.settings})
        self.processes.append(started)
        return started

    def close(self) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(PROBLEM)
    return tmp_path


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    with contextlib.ExitStack() as stack:

        def start(**settings: str) -> Cluster:
            cluster = Cluster(tmp_path, **settings)
            stack.callback(cluster.close)
            return cluster

        yield start


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


@contextlib.contextmanager
def meanwhile(action: Callable[[], None], cluster: Cluster) -> Iterator[None]:
    """Does something while the block runs; if it fails, ends the cluster, so that the block does not wait for ever."""
    errors: list[BaseException] = []

    def caught() -> None:
        try:
            action()
        except BaseException as error:
            errors.append(error)
            cluster.close()

    thread = threading.Thread(target=caught)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    assert errors == []


def run(files: Path, name: str = "Plain", **settings: Any) -> Result:
    arguments: dict[str, Any] = {"algorithms": ["clasp", "recoo"], "trials": 12, "chunk": 2, "tables": False}
    return cocopt.run(f"{files}/own.py:{name}", **{**arguments, **settings})


def stored(out: Path) -> dict[str, int]:
    """The chunks on disk, and when they were written."""
    return {path.name: path.stat().st_mtime_ns for path in (out / "chunks").glob("[!.]*.npz")}


def assert_same_bits(one: Result, other: Result) -> None:
    assert one.algorithms == other.algorithms
    for label in one.algorithms:
        assert one.curves(label).keys() == other.curves(label).keys()
        for metric, values in one.curves(label).items():
            np.testing.assert_array_equal(values, other.curves(label)[metric])
        np.testing.assert_array_equal(one.regret(label), other.regret(label))


@pytest.mark.long
def test_a_killed_worker_does_not_change_a_bit(files: Path, start: Callable[..., Cluster]) -> None:
    cluster, out, waiting = start(), files / "out", files / "waiting"

    def kill_the_waiting_worker() -> None:
        wait_until(lambda: waiting.exists() and waiting.read_text() != "" and len(stored(out)) >= 3)
        assert len(stored(out)) < 18
        process = int(waiting.read_text())
        assert process in {worker.pid for worker in cluster.workers}
        os.kill(process, signal.SIGKILL)

    with dask.config.set({"scheduler-address": cluster.address}), meanwhile(kill_the_waiting_worker, cluster):
        result = run(files, "WaitsOnce", engine="dask", out=out)
    assert sorted(worker.poll() is None for worker in cluster.workers) == [False, True]
    assert len(stored(out)) == 18  # three tasks, six chunks each
    assert_same_bits(result, run(files, "WaitsOnce", jobs=2))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*:ResourceWarning")  # connections that break are Dask's own
def test_lost_clusters_are_reported_and_finished_chunks_kept(files: Path, start: Callable[..., Cluster]) -> None:
    cluster, out, waiting = start(DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0"), files / "out", files / "waiting"
    with Client(cluster.address) as client:
        assert_same_bits(run(files, engine="dask", jobs=3), run(files, jobs=1))
        assert client.status == "running"  # whoever opened it closes it
        with pytest.raises(EngineFailed, match=r"Dask: the cluster cannot run this: RuntimeError: .*deserialization"):
            run(files, "CannotBeSent", engine="dask")
        with pytest.raises(EngineFailed, match="Dask: several workers ended while they computed the same chunk"):
            run(files, "KillsItsProcess", algorithms="clasp", engine="dask", trials=2, regret=False)

    def kill_the_scheduler() -> None:
        wait_until(lambda: len(stored(out)) >= 3)
        cluster.scheduler.kill()

    waiting.touch()  # so that no process waits
    settings = {"scheduler-address": cluster.address, "distributed.comm.timeouts.connect": "1s"}
    lost = pytest.raises(EngineFailed, match="Dask: the connection to the scheduler is lost")
    with dask.config.set(settings), meanwhile(kill_the_scheduler, cluster), lost:
        run(files, "WaitsOnce", engine="dask", trials=2000, out=out)
    kept = stored(out)
    with dask.config.set(settings), pytest.raises(EngineFailed, match="Dask: no scheduler can be reached at tcp://"):
        run(files, "WaitsOnce", engine="dask", trials=12, out=out)
    result = run(files, "WaitsOnce", jobs=1, out=out)
    assert kept.items() <= stored(out).items()  # nothing was computed again
    assert_same_bits(result, run(files, "WaitsOnce", jobs=1))


def test_the_command_line_reports_an_unreachable_scheduler(tmp_path: Path) -> None:
    settings = {"scheduler-address": "tcp://127.0.0.1:9", "distributed.comm.timeouts.connect": "0.2s"}
    out = str(tmp_path / "out")
    with dask.config.set(settings):
        done = CliRunner().invoke(app, ["run", "olr", "--trials", "2", "--engine", "dask", "-q", "--out", out])
    assert done.exit_code == 1
    assert done.stderr.startswith("cocopt: Dask: no scheduler can be reached at tcp://127.0.0.1:9: ")
    assert done.stderr.endswith(f"; finished chunks are kept in {out}, the same command continues\n")


@pytest.mark.long
def test_without_a_cluster_one_is_started_here_and_closed_again(tmp_path: Path) -> None:
    program = """
import cocopt
from distributed import get_client

if __name__ == "__main__":
    settings = {"trials": 4, "rounds": 20, "chunk": 2, "jobs": 2}
    there = cocopt.run("olr", ["clasp", "recoo"], engine="dask", **settings)
    here = cocopt.run("olr", ["clasp", "recoo"], **settings)
    print(all((there.finals(a)[m] == here.finals(a)[m]).all() for a in here.algorithms for m in here.finals(a)))
    try:
        get_client()
    except ValueError:
        print("closed")
"""
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "closed"]


def test_dask_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"engine='dask' needs Dask: pip install 'cocopt\[dask\]'"):
        cocopt.run("olr", "clasp", trials=2, rounds=5, engine="dask")


def test_a_chunk_that_the_scheduler_lost_is_reported() -> None:
    class Lost:
        def result(self) -> None:
            raise CancelledError("chunk-1")

    with pytest.raises(EngineFailed, match="Dask: the connection to the scheduler is lost"):
        engines._dask_outcome(Lost())

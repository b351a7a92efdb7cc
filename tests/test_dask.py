"""The engine "dask": same numbers, and clear errors when workers or the scheduler are lost or have other versions.

`make test` runs clusters inside this process; `make test-servers` those of a scheduler and workers as processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
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
from distributed import CancelledError, Client, LocalCluster
from typer.testing import CliRunner

import cocopt
from cocopt.cli import app
from cocopt.errors import EngineFailed, InvalidInput, TrialFailed
from cocopt.experiments import Result, dask_cluster, machine, sent
from cocopt.experiments.chunks import ChunkStore

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

class ReadsAFile(Plain):
    def round(self, rng, t):
        return open(Path(__file__).with_name("data.csv"))

class CannotBeSent(Plain):
    def __setstate__(self, state):
        raise RuntimeError("not here")
'''


class Cluster:
    """A scheduler and two workers on loopback, each a process of its own."""

    def __init__(self, folder: Path, *, preload: str = "", **settings: str) -> None:
        self.folder, self.processes = folder, list[subprocess.Popen[bytes]]()
        self.preload = folder / "preload.py"  # what the workers run before they start
        self.preload.write_text(preload)
        self.settings = {f"DASK_{key}": value for key, value in settings.items()}
        file = folder / "scheduler.json"
        self.scheduler = self._start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", file)
        wait_until(lambda: file.exists() and file.stat().st_size > 0)
        self.address: str = json.loads(file.read_text())["address"]
        self.workers = list[subprocess.Popen[bytes]]()
        self.start_workers()

    def start_workers(self, count: int = 2) -> None:
        own = ("--nthreads", "1", "--no-nanny", "--local-directory", self.folder, "--preload", self.preload)
        self.workers += [self._start("dask_worker", self.address, *own) for _ in range(count)]
        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=60)

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


@pytest.fixture(scope="module")
def here() -> Iterator[str]:
    """The address of a cluster inside this process."""
    # no nanny, no dashboard, one thread each: as quick to start as may be
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0"
    ) as own:
        yield own.scheduler_address


def test_the_scheduler_may_be_named(files: Path, here: str) -> None:
    one = run(files, engine="dask", scheduler=here, out=files / "out", trials=4)
    assert_same_bits(one, run(files, trials=4, jobs=1))
    assert one.config["cpu"] == [machine.cpu_kind()]
    (files / "scheduler.json").write_text(json.dumps({"address": here}))
    assert_same_bits(one, run(files, engine="dask", scheduler=str(files / "scheduler.json"), trials=4))


BAD_ADDRESSES = {
    "no port": ("tcp://host", "scheduler: expected an address such as tcp://host:8786, got str 'tcp://host'"),
    "a number": (8786, "scheduler: expected an address such as tcp://host:8786, got"),
    "no such file": ("nowhere.json", "scheduler: expected a file that `dask scheduler --scheduler-file` wrote, got"),
}


@pytest.mark.parametrize("case", BAD_ADDRESSES)
def test_wrong_addresses_are_reported(case: str) -> None:
    given, message = BAD_ADDRESSES[case]
    with pytest.raises(InvalidInput, match=re.escape(message)):
        cocopt.run("olr", trials=2, rounds=5, engine="dask", scheduler=given)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", ["10.0.0.1:8786", "tls://node-1.cluster:8786", "tcp://[fe80::1]:80", "inproc://a:1"])
def test_usual_addresses_are_accepted(given: str) -> None:
    assert dask_cluster.check_address(given) == given


@pytest.mark.parametrize("command", [["reproduce", "olr"], ["run", "olr"], ["field", "olr"]], ids=lambda c: c[0])
def test_a_scheduler_needs_the_engine(command: list[str], tmp_path: Path) -> None:
    options = ["--scheduler", "tcp://127.0.0.1:9", "--out", str(tmp_path), "--trials", "2", "-q"]
    done = CliRunner().invoke(app, [*command, *options])
    assert done.exit_code == 2
    assert done.stderr == 'cocopt: scheduler: expected engine="dask" with it, got engine="local"\n'


def test_a_failing_trial_names_the_worker(files: Path, here: str) -> None:
    with pytest.raises(TrialFailed, match=r"No such file .*data.*on the worker tcp://127.0.0.1:\d+ \("):
        run(files, "ReadsAFile", engine="dask", scheduler=here, trials=2, regret=False)


def test_chunks_of_another_cpu_are_not_taken_for_ones_own(
    files: Path, here: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, small = files / "out", {"trials": 4, "regret": False, "algorithms": "clasp"}
    run(files, jobs=1, out=out, **small)
    own = stored(out)
    assert len(own) == 2
    with monkeypatch.context() as patch:
        patch.setattr(sent, "cpu_kind", lambda: "Other CPU")
        there = run(files, engine="dask", scheduler=here, out=out, **small)
        assert there.config["cpu"] == ["Other CPU"]
        both = stored(out)
        assert len(both) == 4
        run(files, engine="dask", scheduler=here, out=out, **small)
        assert stored(out) == both  # found again
    assert run(files, jobs=1, out=out, **small).config["cpu"] == [machine.cpu_kind()]
    assert stored(out) == both


def test_a_chunk_is_found_by_the_kind_of_its_cpu(tmp_path: Path) -> None:
    store = ChunkStore(tmp_path)
    store.put({"seed": 0}, {"loss": np.zeros(1)}, "one")
    store.put({"seed": 0}, {"loss": np.ones(1)}, "two")
    for cpus, expected in {("one",): 0.0, ("two",): 1.0, ("three", "two"): 1.0}.items():
        kept = store.get({"seed": 0}, cpus)
        assert kept is not None
        assert kept.arrays["loss"] == [expected]
    assert store.get({"seed": 0}, ["three"]) is None


def test_the_kind_of_a_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: Xeon 9\n\nprocessor\t: 1\nmodel name\t: Xeon 9\n")
    assert machine._model(cpuinfo) == "Xeon 9"
    cpuinfo.write_text("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n")
    assert machine._model(cpuinfo) == "0x41 0xd0c"
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    monkeypatch.setattr(platform, "processor", lambda: "Intel64 Family 6")
    assert machine._model(tmp_path / "absent") == "Intel64 Family 6"
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    said = subprocess.CompletedProcess([], 0, stdout="Apple M9\n")
    monkeypatch.setattr(subprocess, "run", lambda command, **settings: said)
    assert machine._model(tmp_path / "absent") == "Apple M9"
    assert re.fullmatch(r".+ \(\w+, [\w.-]+, [0-9a-f]{8}\)", machine.cpu_kind())


def test_workers_with_other_versions_are_refused() -> None:
    own = sent.this_machine()
    sent.compare_machines(own, own._replace(cpu="another"), "w")  # which is recorded, and no reason to refuse
    changed = own._replace(versions={**own.versions, "numpy": "1.0", "python": "3.99.0"})
    message = (
        f"worker w, got python {own.versions['python']} here and 3.99.0 there, numpy .* here and 1.0 there; install"
    )
    with pytest.raises(EngineFailed, match=message):
        sent.compare_machines(own, changed, "w")
    with pytest.raises(EngineFailed, match=r"other sources of cocopt .* \(\w{8} here, 01234567 there\)"):
        sent.compare_machines(own, own._replace(code="0123456789"), "w")
    with pytest.raises(EngineFailed, match="expected the same versions here and on the worker"):
        sent.compute_packed(b"", changed)


def test_code_that_a_worker_cannot_unpack_is_reported() -> None:
    own = sent.this_machine()
    with pytest.raises(EngineFailed, match=f"the worker {platform.node()} has no module 'absent_module'"):
        sent.compute_packed(b"cabsent_module\nname\n.", own)
    with pytest.raises(EngineFailed, match="cannot unpack the user's code: UnpicklingError"):
        sent.compute_packed(b"nothing", own)


@pytest.mark.servers
def test_a_killed_worker_does_not_change_a_bit(files: Path, start: Callable[..., Cluster]) -> None:
    cluster, out, waiting = start(), files / "out", files / "waiting"

    def kill_the_waiting_worker() -> None:
        wait_until(lambda: waiting.exists() and waiting.read_text() != "" and len(stored(out)) >= 3)
        assert len(stored(out)) < 18
        process = int(waiting.read_text())
        assert process in {worker.pid for worker in cluster.workers}
        os.kill(process, signal.SIGKILL)

    with meanwhile(kill_the_waiting_worker, cluster):
        result = run(files, "WaitsOnce", engine="dask", scheduler=cluster.address, out=out)
    assert sorted(worker.poll() is None for worker in cluster.workers) == [False, True]
    assert len(stored(out)) == 18  # three tasks, six chunks each
    assert_same_bits(result, run(files, "WaitsOnce", jobs=2))


@pytest.mark.servers
def test_when_all_workers_are_lost_the_same_command_continues(files: Path, start: Callable[..., Cluster]) -> None:
    cluster, out = start(), files / "out"
    (files / "waiting").touch()  # so that no process waits
    command = ["run", f"{files}/own.py:WaitsOnce", "-a", "clasp", "-a", "recoo", "--trials", "400", "-q"]
    command += ["--engine", "dask", "--scheduler", cluster.address, "--out", str(out)]

    def kill_all_workers() -> None:
        wait_until(lambda: len(stored(out)) >= 3)
        for worker in cluster.workers:
            worker.kill()

    with dask.config.set({"cocopt.no-worker-timeout": "2s"}):
        with meanwhile(kill_all_workers, cluster):
            failed = CliRunner().invoke(app, command)
        assert failed.exit_code == 1
        assert failed.stderr == (
            f"cocopt: Dask: the scheduler {cluster.address} has had no worker for 2 s; "
            f"start some by `dask worker {cluster.address} --nthreads 1`"
            f"; finished chunks are kept in {out}, the same command continues\n"
        )
        kept = stored(out)
        assert 3 <= len(kept) < 24
        assert CliRunner().invoke(app, command).exit_code == 1  # there is still none
    cluster.start_workers()
    done = CliRunner().invoke(app, command)
    assert (done.exit_code, done.stderr) == (0, "")
    assert kept.items() <= stored(out).items()  # nothing was computed again
    assert len(stored(out)) == 24  # 400 trials by the hundred for two algorithms, by 25 for the comparator
    here = run(files, "WaitsOnce", jobs=2, trials=400, chunk=None)
    finals = np.genfromtxt(out / "finals.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    for label in here.algorithms:
        own = finals[finals["algorithm"] == label]
        np.testing.assert_array_equal(own["ccv2"], here.finals(label)["ccv2"])


@pytest.mark.servers
@pytest.mark.filterwarnings("ignore:.*:ResourceWarning")  # connections that break are Dask's own
def test_lost_clusters_are_reported_and_finished_chunks_kept(files: Path, start: Callable[..., Cluster]) -> None:
    cluster, out, waiting = start(DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0"), files / "out", files / "waiting"
    with Client(cluster.address) as client:
        assert_same_bits(run(files, engine="dask", jobs=3), run(files, jobs=1))
        assert client.status == "running"  # whoever opened it closes it
        with pytest.raises(
            EngineFailed, match=r"worker tcp://.* cannot unpack the user's code: RuntimeError: not here"
        ):
            run(files, "CannotBeSent", engine="dask")
        with pytest.raises(EngineFailed, match="Dask: several workers ended while they computed the same chunk"):
            run(files, "KillsItsProcess", algorithms="clasp", engine="dask", trials=2, regret=False)

    def kill_the_scheduler() -> None:
        wait_until(lambda: len(stored(out)) >= 3)
        cluster.scheduler.kill()

    waiting.touch()  # so that no process waits
    settings = {"scheduler-address": cluster.address, "distributed.comm.timeouts.connect": "1s"}
    lost = pytest.raises(EngineFailed, match=r"Dask: the connection to the scheduler .*is lost")
    with dask.config.set(settings), meanwhile(kill_the_scheduler, cluster), lost:
        run(files, "WaitsOnce", engine="dask", trials=2000, out=out)
    kept = stored(out)
    with dask.config.set(settings), pytest.raises(EngineFailed, match="Dask: no scheduler can be reached at tcp://"):
        run(files, "WaitsOnce", engine="dask", trials=12, out=out)
    result = run(files, "WaitsOnce", jobs=1, out=out)
    assert kept.items() <= stored(out).items()  # nothing was computed again
    assert_same_bits(result, run(files, "WaitsOnce", jobs=1))


@pytest.mark.servers
def test_what_a_users_file_imports_must_be_on_the_workers(
    files: Path, start: Callable[..., Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, beside = start(), files / "beside"
    beside.mkdir()
    (beside / "only_here.py").write_text("def half(values):\n    return 0.5 * values\n")
    source = PROBLEM.replace("import os,", "from only_here import half\nimport os,")
    (files / "own.py").write_text(source.replace("rng.uniform(-1, 1, size=2)", "half(rng.uniform(-1, 1, size=2))"))
    monkeypatch.syspath_prepend(beside)
    message = (
        r"Dask: the worker tcp://127.0.0.1:\d+ \(.*\) has no module 'only_here', which the user's code imports; install"
    )
    with pytest.raises(EngineFailed, match=message):
        run(files, engine="dask", scheduler=cluster.address, trials=2)


@pytest.mark.servers
@pytest.mark.parametrize(
    ("preload", "message"),
    [
        (
            "import cocopt\ncocopt.__version__ = '9.9.9'\n",
            "got cocopt .* here and 9.9.9 there; install the same versions",
        ),
        (
            "import sys\nsys.modules['cocopt'] = None\n",
            "cannot run cocopt: .*ModuleNotFoundError.*cocopt.*; install cocopt there",
        ),
    ],
    ids=["another version", "none"],
)
def test_a_worker_with_another_cocopt_is_refused(
    preload: str, message: str, files: Path, start: Callable[..., Cluster]
) -> None:
    cluster = start(preload=preload)
    with pytest.raises(EngineFailed, match=rf"the worker tcp://127.0.0.1:\d+.* {message}"):
        run(files, engine="dask", scheduler=cluster.address, trials=2)


def test_the_command_line_reports_an_unreachable_scheduler(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    named = ["--engine", "dask", "--scheduler", "tcp://127.0.0.1:9"]
    with dask.config.set({"distributed.comm.timeouts.connect": "0.2s"}):
        done = CliRunner().invoke(app, ["run", "olr", "--trials", "2", *named, "-q", "--out", out])
    assert done.exit_code == 1
    assert done.stderr.startswith("cocopt: Dask: no scheduler can be reached at tcp://127.0.0.1:9: ")
    assert done.stderr.endswith(f"; finished chunks are kept in {out}, the same command continues\n")


@pytest.mark.servers
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
        dask_cluster._answer(Lost())

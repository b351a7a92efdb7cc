"""Chunks on a Dask cluster: connecting to it, what is checked about its workers, and what happens when some are lost.

The client sends chunks as workers become free. Every wait ends: a scheduler that does not answer within Dask's setting
``distributed.comm.timeouts.connect`` (30 s), and a cluster without any worker for ``cocopt.no-worker-timeout`` (60 s),
are errors.
"""

from __future__ import annotations

import itertools
import json
import queue
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cocopt.arrays import describe
from cocopt.errors import EngineFailed, InvalidInput
from cocopt.experiments.engines import Done, Outcomes, Work, Workers
from cocopt.experiments.plan import Chunk
from cocopt.experiments.sent import Answer, compare_machines, compute_packed, pack, this_machine

__all__ = ["check_address", "connect"]

_ADDRESS = re.compile(r"(\w+://)?([^\s/:]+|\[[0-9a-fA-F:]+\]):\d+")
_TIMEOUT = "cocopt.no-worker-timeout"  # in Dask's configuration; DASK_COCOPT__NO_WORKER_TIMEOUT
_POLL = 0.5  # seconds between looks at a cluster that sends nothing


def check_address(given: Any) -> str:
    """The address of a scheduler, from ``tcp://host:port`` or from a file that the scheduler wrote (``….json``).

    >>> from cocopt.experiments.dask_cluster import check_address
    >>> check_address("tcp://10.0.0.1:8786")
    'tcp://10.0.0.1:8786'
    """
    if isinstance(given, str) and given.endswith(".json"):
        try:
            given = json.loads(Path(given).read_text(encoding="utf-8"))["address"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidInput(
                f"scheduler: expected a file that `dask scheduler --scheduler-file` wrote, got {given} ({error})"
            ) from None
    if not isinstance(given, str) or not _ADDRESS.fullmatch(given):
        raise InvalidInput(f"scheduler: expected an address such as tcp://host:8786, got {describe(given)}")
    return given


@contextmanager
def connect(jobs: int | None, scheduler: str | None) -> Iterator[Workers]:
    """The cluster of this address, else of the current client, else of Dask's settings, else a new one here."""
    client, is_ours = _client(jobs, scheduler)
    try:
        yield _Cluster(client, jobs)
    finally:  # the cluster drops chunks to which no future refers any more
        if is_ours:
            client.close()


@contextmanager
def _reporting_loss(client: Any) -> Iterator[None]:
    """For blocks in which only the client itself raises these errors."""
    from distributed.client import ClosedClientError

    try:
        yield
    except (OSError, ClosedClientError) as error:
        raise _lost_scheduler(client) from error


def _client(jobs: int | None, scheduler: str | None) -> tuple[Any, bool]:
    """A client, and whether it was made here, so that it is to be closed here."""
    try:
        import dask
        from distributed import Client, get_client
    except ModuleNotFoundError as error:
        raise ImportError("engine='dask' needs Dask: pip install 'cocopt[dask]'") from error
    address = scheduler
    if address is None:
        try:
            return get_client(), False
        except ValueError:  # there is none
            address = dask.config.get("scheduler-address", None)
    if address is None:
        return Client(n_workers=jobs, threads_per_worker=1, dashboard_address="127.0.0.1:0"), True
    try:
        return Client(address, set_as_default=False), True
    except (OSError, ValueError) as error:  # ValueError: a kind of address that Dask does not know
        raise EngineFailed(f"Dask: no scheduler can be reached at {address}: {error}") from error


class _Cluster:
    """The workers of a client; those that are there at first are checked at once, others with their first chunk."""

    def __init__(self, client: Any, jobs: int | None) -> None:
        import dask
        from dask.utils import parse_timedelta

        self._client, self._jobs = client, jobs
        self._patience: float = parse_timedelta(dask.config.get(_TIMEOUT, "60s"))
        self._lonely: float | None = None  # since when there has been no worker
        self._here = this_machine()
        with _reporting_loss(client):
            while not self._has_workers():
                time.sleep(_POLL / 10)
            self._cpus = self._check_workers()

    @property
    def cpus(self) -> Sequence[str]:
        return self._cpus

    def _has_workers(self) -> bool:
        """Whether there is a worker; an error if there has been none for too long, or the scheduler is gone."""
        if self._client.status not in ("running", "connecting"):
            raise _lost_scheduler(self._client)
        if self._client.nthreads():
            self._lonely = None
            return True
        now = time.monotonic()
        self._lonely = self._lonely or now
        if now - self._lonely > self._patience:
            address = self._client.scheduler.address
            raise EngineFailed(
                f"Dask: the scheduler {address} has had no worker for {self._patience:g} s; "
                f"start some by `dask worker {address} --nthreads 1`"
            )
        return False

    def _check_workers(self) -> list[str]:
        """The kinds of CPU of the workers that are there now, each once."""
        cpus = set()
        for worker, found in self._client.run(this_machine, on_error="return").items():
            if isinstance(found, OSError):  # it left meanwhile
                continue
            if isinstance(found, Exception):
                reason = f"{type(found).__name__}: {found}"
                raise EngineFailed(f"Dask: the worker {worker} cannot run cocopt: {reason}; install cocopt there")
            compare_machines(self._here, found, worker)
            cpus.add(found.cpu)
        return sorted(cpus)

    def compute(self, work: Work, chunks: Mapping[int, Chunk]) -> Outcomes:
        """Sends chunks as workers become free: by default two per thread of the cluster, so that no worker waits."""
        waiting = iter(chunks.items())
        running: dict[str, tuple[int, Any]] = {}
        finished: queue.SimpleQueue[str] = queue.SimpleQueue()

        def submit() -> None:
            limit = self._jobs or max(2, 2 * sum(self._client.nthreads().values()))
            for i, chunk in itertools.islice(waiting, max(0, limit - len(running))):
                # packed here: Dask's scheduler would unpack an object to look into it
                future = self._client.submit(compute_packed, pack(work, chunk), self._here, pure=False)
                running[future.key] = i, future
                future.add_done_callback(lambda done: finished.put(done.key))

        with _reporting_loss(self._client):
            submit()
            while running:
                try:
                    key = finished.get(timeout=_POLL)
                except queue.Empty:
                    self._has_workers()
                    continue
                i, future = running.pop(key)
                answer = _answer(future)
                yield Done(i, answer.outcome, answer.cpu)
                submit()


def _lost_scheduler(client: Any) -> EngineFailed:
    return EngineFailed(f"Dask: the connection to the scheduler {client.scheduler.address} is lost")


def _answer(future: Any) -> Answer:
    from distributed import CancelledError, KilledWorker
    from distributed.comm import CommClosedError

    try:
        answer: Answer = future.result()
    except (CancelledError, CommClosedError) as error:
        raise EngineFailed("Dask: the connection to the scheduler is lost") from error
    except KilledWorker as error:
        raise EngineFailed(f"Dask: several workers ended while they computed the same chunk: {error}") from error
    except EngineFailed:
        raise
    except Exception as error:
        message = " ".join(str(error).split())  # on one line
        raise EngineFailed(f"Dask: the cluster cannot run this: {type(error).__name__}: {message}") from error
    return answer

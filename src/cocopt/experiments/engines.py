"""Where chunks are computed: in this process, in processes of this machine, or on a Dask cluster.

An `Engine` is a function; another kind of cluster is one more such function and one more line in `ENGINES`. If a worker
is lost, the engine computes its chunk elsewhere or raises `cocopt.errors.EngineFailed`. Errors of problems and
algorithms are outcomes, see `cocopt.experiments.compute`.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import BrokenExecutor
from typing import Any, Protocol, TypeAlias

from cocopt.errors import EngineFailed
from cocopt.experiments.compute import Outcome
from cocopt.experiments.plan import Chunk

__all__ = ["ENGINES", "MIN_PARALLEL_ROUNDS", "Engine", "dask", "local"]

Work: TypeAlias = Callable[[Chunk], Outcome]
Outcomes: TypeAlias = Generator[tuple[int, Outcome], None, None]


class Engine(Protocol):
    """Applies ``work`` to chunks, at most ``jobs`` at a time (None: as many as suits).

    Yields the number and the outcome of each chunk as soon as it is finished, in any order.
    """

    def __call__(self, work: Work, chunks: Mapping[int, Chunk], jobs: int | None, /) -> Outcomes: ...


#: the sum of the chunks' rounds below which other processes would take longer to start than the work takes
MIN_PARALLEL_ROUNDS = 20_000


def local(work: Work, chunks: Mapping[int, Chunk], jobs: int | None) -> Outcomes:
    """Processes of this machine, by default one per core; this process alone if one is enough."""
    if jobs is None:
        little = sum(chunk.rounds for chunk in chunks.values()) < MIN_PARALLEL_ROUNDS
        jobs = 1 if little else _usable_cores()
    jobs = min(jobs, len(chunks))
    if jobs == 1:
        for i, chunk in chunks.items():
            yield i, work(chunk)
        return
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend="loky", n_jobs=jobs):
        # max_nbytes: no memory-mapped copies in temporary files
        outcomes = Parallel(return_as="generator_unordered", batch_size=1, max_nbytes=None)(
            delayed(_numbered)(work, i, chunk) for i, chunk in chunks.items()
        )
        try:
            for i, outcome in outcomes:  # "yield from" would close it before the warning is silenced
                yield i, outcome
        except BrokenExecutor as error:
            raise EngineFailed(f"a worker process ended before its work was done (out of memory?): {error}") from error
        finally:
            with warnings.catch_warnings(action="ignore", category=UserWarning):
                outcomes.close()  # chunks that are not finished are given up, of which joblib would warn


def _usable_cores() -> int:
    """The cores that this process may use, which the scheduler or a container may have limited."""
    from joblib import cpu_count

    cores: int = cpu_count()
    return cores


def _numbered(work: Work, i: int, chunk: Chunk) -> tuple[int, Outcome]:
    return i, work(chunk)


def dask(work: Work, chunks: Mapping[int, Chunk], jobs: int | None) -> Outcomes:
    """A Dask cluster: that of the current client, else the one that Dask's settings name, else a new one here.

    A chunk whose worker is lost is computed by another one. Chunks are sent as workers become free, since each carries
    its problem: by default two per thread of the cluster, so that no worker waits.
    """
    client, is_ours = _dask_client(jobs)
    from distributed import as_completed
    from distributed.client import ClosedClientError

    waiting = iter(chunks.items())
    running: dict[str, int] = {}
    finished = as_completed(loop=client.loop)

    def submit() -> None:
        limit = jobs or max(2, 2 * sum(client.nthreads().values()))
        for i, chunk in itertools.islice(waiting, max(0, limit - len(running))):
            future = client.submit(work, chunk, pure=False)
            running[future.key] = i
            finished.add(future)

    try:
        submit()
        for future in finished:
            outcome = _dask_outcome(future)
            yield running.pop(future.key), outcome
            submit()
    except (OSError, ClosedClientError) as error:
        raise EngineFailed(f"Dask: the connection to the scheduler is lost: {error}") from error
    finally:  # the cluster drops chunks to which no future refers any more
        if is_ours:
            client.close()


def _dask_outcome(future: Any) -> Outcome:
    from distributed import CancelledError, KilledWorker
    from distributed.comm import CommClosedError

    try:
        outcome: Outcome = future.result()
    except (CancelledError, CommClosedError) as error:
        raise EngineFailed("Dask: the connection to the scheduler is lost") from error
    except KilledWorker as error:
        raise EngineFailed(f"Dask: several workers ended while they computed the same chunk: {error}") from error
    except Exception as error:
        message = " ".join(str(error).split())  # on one line
        raise EngineFailed(f"Dask: the cluster cannot run this: {type(error).__name__}: {message}") from error
    return outcome


def _dask_client(jobs: int | None) -> tuple[Any, bool]:
    """A client, and whether it was made here, so that it is to be closed here."""
    try:
        import dask
        from distributed import Client, get_client
    except ModuleNotFoundError as error:
        raise ImportError("engine='dask' needs Dask: pip install 'cocopt[dask]'") from error
    try:
        return get_client(), False
    except ValueError:  # there is none
        address = dask.config.get("scheduler-address", None)
    if address is None:
        return Client(n_workers=jobs, threads_per_worker=1, dashboard_address=None), True
    try:
        return Client(address), True
    except OSError as error:
        raise EngineFailed(f"Dask: no scheduler can be reached at {address}: {error}") from error


#: the engines by their names on the command line
ENGINES: dict[str, Engine] = {"local": local, "dask": dask}

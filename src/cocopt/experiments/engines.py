"""Where chunks are computed: in this process, in processes of this machine, or on a Dask cluster.

An `Engine` opens `Workers`; another kind of cluster is one more such function and one more line in `ENGINES`. If a
worker is lost, its chunk is computed elsewhere, or `cocopt.errors.EngineFailed` is raised. Errors of problems and
algorithms are outcomes, see `cocopt.experiments.compute`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple, Protocol, TypeAlias

from cocopt.errors import EngineFailed
from cocopt.experiments.compute import Outcome
from cocopt.experiments.machine import cpu_kind
from cocopt.experiments.plan import Chunk

__all__ = ["ENGINES", "MIN_PARALLEL_ROUNDS", "Done", "Engine", "Workers", "dask", "local"]


class Done(NamedTuple):
    """A computed chunk: its number, what came out, and the kind of CPU that computed it."""

    number: int
    outcome: Outcome
    cpu: str


Work: TypeAlias = Callable[[Chunk], Outcome]
Outcomes: TypeAlias = Generator[Done, None, None]


class Workers(Protocol):
    """What computes chunks."""

    @property
    def cpus(self) -> Sequence[str]:
        """Their kinds of CPU: chunks on disk that one of these computed need not be computed again."""
        ...

    def compute(self, work: Work, chunks: Mapping[int, Chunk]) -> Outcomes:
        """Applies ``work`` to chunks, and yields each as soon as it is finished, in any order."""
        ...


class Engine(Protocol):
    """Opens workers for at most ``jobs`` chunks at a time (None: as many as suits).

    ``scheduler`` is the address of a cluster, for an engine that has one.
    """

    def __call__(self, jobs: int | None, scheduler: str | None, /) -> AbstractContextManager[Workers]: ...


#: the sum of the chunks' rounds below which other processes would take longer to start than the work takes
MIN_PARALLEL_ROUNDS = 20_000


@contextmanager
def local(jobs: int | None, scheduler: str | None) -> Iterator[Workers]:
    """Processes of this machine, by default one per core; this process alone if one is enough."""
    yield _Processes(jobs)


class _Processes:
    def __init__(self, jobs: int | None) -> None:
        self._jobs = jobs

    @property
    def cpus(self) -> Sequence[str]:
        return [cpu_kind()]

    def compute(self, work: Work, chunks: Mapping[int, Chunk]) -> Outcomes:
        jobs = self._jobs
        if jobs is None:
            little = sum(chunk.rounds for chunk in chunks.values()) < MIN_PARALLEL_ROUNDS
            jobs = 1 if little else _usable_cores()
        jobs = min(jobs, len(chunks))
        if jobs == 1:
            for i, chunk in chunks.items():
                yield Done(i, work(chunk), cpu_kind())
            return
        from joblib import Parallel, delayed, parallel_config

        with parallel_config(backend="loky", n_jobs=jobs):
            # max_nbytes: no memory-mapped copies in temporary files
            outcomes = Parallel(return_as="generator_unordered", batch_size=1, max_nbytes=None)(
                delayed(_numbered)(work, i, chunk) for i, chunk in chunks.items()
            )
            try:
                for i, outcome in outcomes:  # "yield from" would close it before the warning is silenced
                    yield Done(i, outcome, cpu_kind())
            except BrokenExecutor as error:
                raise EngineFailed(
                    f"a worker process ended before its work was done (out of memory?): {error}"
                ) from error
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


def dask(jobs: int | None, scheduler: str | None) -> AbstractContextManager[Workers]:
    """A Dask cluster, see `cocopt.experiments.dask_cluster`."""
    from cocopt.experiments.dask_cluster import connect

    return connect(jobs, scheduler)


#: the engines by their names on the command line
ENGINES: dict[str, Engine] = {"local": local, "dask": dask}

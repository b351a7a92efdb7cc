"""A chunk on its way to another machine: packed here, unpacked and computed there, where everything is checked.

Only what `import cocopt` offers is sent by name. A user's own file is sent as code, so that workers need no copy of it;
what that code imports must be installed on the workers.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from typing import NamedTuple

from cocopt.errors import EngineFailed, TrialFailed
from cocopt.experiments.compute import Outcome
from cocopt.experiments.machine import code_hash, cpu_kind, versions
from cocopt.experiments.plan import Chunk

__all__ = ["Answer", "Machine", "compare_machines", "compute_packed", "pack", "this_machine"]


class Machine(NamedTuple):
    """What has to be the same on every machine of a run, and the kind of CPU, which is recorded."""

    versions: Mapping[str, str]
    code: str
    cpu: str


def this_machine() -> Machine:
    """The machine that this process runs on."""
    return Machine(versions(), code_hash(), cpu_kind())


def compare_machines(here: Machine, there: Machine, worker: str) -> None:
    """Refuses a worker whose Python, cocopt or libraries differ: its numbers would not be those of this machine."""
    differ = [
        f"{name} {own} here and {there.versions.get(name, 'none')} there"
        for name, own in here.versions.items()
        if there.versions.get(name) != own
    ]
    if not differ and here.code != there.code:
        differ = [f"other sources of cocopt {here.versions['cocopt']} ({here.code[:8]} here, {there.code[:8]} there)"]
    if differ:
        raise EngineFailed(
            f"Dask: expected the same versions here and on the worker {worker}, got {', '.join(differ)}; "
            "install the same versions on both"
        )


def pack(work: Callable[[Chunk], Outcome], chunk: Chunk) -> bytes:
    """The chunk and what is done with it, as bytes that only a worker unpacks."""
    import cloudpickle

    packed: bytes = cloudpickle.dumps((work, chunk))
    return packed


class Answer(NamedTuple):
    """What a worker sends back: the outcome, and the kind of its CPU."""

    outcome: Outcome
    cpu: str


def compute_packed(packed: bytes, sender: Machine) -> Answer:
    """Computes a packed chunk on a worker, after the check that it computes what the sender would.

    Raises
    ------
    EngineFailed
        If it cannot be unpacked here, or the versions differ. The message names the worker.
    """
    worker = _name_of_worker()
    here = this_machine()
    compare_machines(sender, here, worker)
    import pickle

    try:
        work, chunk = pickle.loads(packed)
    except ModuleNotFoundError as error:
        raise EngineFailed(
            f"Dask: the worker {worker} has no module {error.name!r}, which the user's code imports; install it there, "
            "or define what it offers in the one file that is named in the command: that file travels as code"
        ) from error
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise EngineFailed(f"Dask: the worker {worker} cannot unpack the user's code: {reason}") from error
    outcome = work(chunk)
    if isinstance(outcome, TrialFailed):
        reason = f"{outcome.reason} (on the worker {worker})"
        outcome = TrialFailed(outcome.problem, outcome.algorithm, outcome.trial, outcome.round, reason)
    return Answer(outcome, here.cpu)


def _name_of_worker() -> str:
    """Address and host of the worker that runs this task; the host alone outside of a task."""
    from distributed import get_worker

    try:
        return f"{get_worker().address} ({platform.node()})"
    except ValueError:
        return platform.node()

"""Everything that cocopt raises on purpose.

All errors derive from [`CocoptError`][], so one ``except`` catches them; those caused by a bad argument
are also `ValueError`, those caused by a numerical failure also `RuntimeError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "CocoptError",
    "CutLimit",
    "EmptySet",
    "EngineFailed",
    "InfeasibleRound",
    "InvalidInput",
    "MissingFile",
    "NotStorable",
    "PoolUnavailable",
    "SolverFailure",
    "StateError",
    "SuspiciousInput",
    "TrialFailed",
    "UnknownKey",
]


class CocoptError(Exception):
    """Base class of every error that cocopt raises on purpose."""


class InvalidInput(CocoptError, ValueError):
    """An argument has the wrong type, shape or content; the message names it, what came and what was expected.

    >>> from cocopt import Box
    >>> Box(0.0, [1.0, float("nan")])
    Traceback (most recent call last):
    ...
    cocopt.errors.InvalidInput: upper: expected finite numbers or infinities, got nan at index (1,)
    """


class SuspiciousInput(UserWarning):
    """A warning: what was passed is allowed, but can hardly be meant.

    It is given once: steps so small that nothing moves, gradients that contradict values, an action of another round.
    """


class EmptySet(InvalidInput):
    """A set was described that contains no point.

    >>> from cocopt import Box
    >>> Box(1.0, 0.0, dim=2)
    Traceback (most recent call last):
    ...
    cocopt.errors.EmptySet: Box: lower exceeds upper at index (0,): 1.0 > 0.0
    """


class SolverFailure(CocoptError, RuntimeError):
    """No method of the ladder produced a point that passed the check of its own optimality conditions."""


class CutLimit(SolverFailure):
    """The bound on the number of cutting planes was reached; ``cuts`` and ``violation`` say how far they came."""

    def __init__(self, message: str, *, cuts: int, violation: float) -> None:
        super().__init__(message)
        self.cuts = cuts
        self.violation = violation


class StateError(CocoptError, ValueError):
    """A state file cannot be used: it is foreign, truncated, changed, too new, or lacks what only the user can supply.

    >>> import cocopt, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "notes.txt")
    ...     _ = path.write_text("buy milk")
    ...     cocopt.load(path)
    Traceback (most recent call last):
    ...
    cocopt.errors.StateError: .../notes.txt: expected a cocopt state file, got something else (8 bytes)
    """


class NotStorable(CocoptError, TypeError):
    """A value cannot be stored in a state file: a callable, say, or an object whose class is not registered.

    >>> from cocopt import losses
    >>> losses.Function(abs, abs).parameters()
    Traceback (most recent call last):
    ...
    cocopt.errors.NotStorable: Function does not say its parameters
    """


class MissingFile(CocoptError, FileNotFoundError):
    """A state file, or the folder that it is to be written to, does not exist."""


class PoolUnavailable(CocoptError, RuntimeError):
    """The database of a pool is busy, full, or not to be reached; the same call may be tried again.

    Unless the message says otherwise, nothing was stored. With an ``id`` a call is applied once, however often it is
    tried.
    """


class UnknownKey(InvalidInput, KeyError):
    """A pool has no learner under this key.

    >>> import cocopt, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with cocopt.Pool(pathlib.Path(folder, "pool.db"), lambda key: cocopt.CLASP(cocopt.Simplex(3))) as pool:
    ...         pool.learner("north")
    Traceback (most recent call last):
    ...
    cocopt.errors.UnknownKey: key: expected one of the 0 keys of the pool, got 'north'
    """

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would put it in quotes


class InfeasibleRound(CocoptError):
    """K and the constraint have no point in common.

    Attributes
    ----------
    trials : tuple of int
        Which trials of the (flattened) batch are infeasible; ``(0,)`` for a single point.
    least_violation : ndarray
        For each of these trials the smallest value of max_i g_i over K.

    >>> import cocopt
    >>> from cocopt import Box, constraints
    >>> try:
    ...     cocopt.project(Box(0.0, 1.0, dim=2), constraints.Affine([1.0, 1.0], -1.0), [0.5, 0.5])
    ... except cocopt.errors.InfeasibleRound as error:
    ...     print(error.trials, error.least_violation)
    (0,) [1.]
    """

    def __init__(self, trials: Sequence[int], least_violation: NDArray[np.float64]) -> None:
        self.trials = tuple(int(t) for t in trials)
        self.least_violation = least_violation
        where = "" if self.trials == (0,) else f" in trials {_some(self.trials)}"
        super().__init__(
            f"K and the constraint have no point in common{where}: "
            f"the least possible violation is {float(least_violation.max()):.6g}"
        )


class TrialFailed(CocoptError, RuntimeError):
    """An algorithm or a problem failed in some round of some trial; everything else that was finished is kept.

    Attributes
    ----------
    problem, algorithm : str
    trial, round : int
    reason : str
        What went wrong.
    """

    def __init__(self, problem: str, algorithm: str, trial: int, round: int, reason: str) -> None:
        super().__init__(problem, algorithm, trial, round, reason)
        self.problem, self.algorithm, self.trial, self.round, self.reason = problem, algorithm, trial, round, reason

    def __str__(self) -> str:
        return f"{self.problem}, {self.algorithm}, trial {self.trial}, round {self.round}: {self.reason}"


class EngineFailed(CocoptError, RuntimeError):
    """Chunks of an experiment could not be computed: no connection to the cluster, or lost worker processes.

    Finished chunks are kept. Errors in a problem or an algorithm are `TrialFailed`.
    """


def _some(trials: tuple[int, ...], limit: int = 8) -> str:
    shown = ", ".join(str(t) for t in trials[:limit])
    return shown if len(trials) <= limit else f"{shown}, … ({len(trials)} in all)"

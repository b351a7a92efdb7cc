"""Everything that cocopt raises on purpose.

All errors derive from [`CocoptError`][cocopt.errors.CocoptError], so one ``except`` catches them; those caused by a bad
argument are also `ValueError`, those caused by a numerical failure also `RuntimeError`.
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
    "ReadOnly",
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


class ReadOnly(CocoptError, AttributeError):
    """An attribute that must not change was assigned to; make a new object instead.

    >>> from cocopt import Box
    >>> Box(0.0, 1.0, dim=2).lower = 0.5
    Traceback (most recent call last):
    ...
    cocopt.errors.ReadOnly: Box.lower: expected to stay as it is, got another value; make a new Box instead
    """

    def __init__(self, owner: object, name: str) -> None:
        kind = type(owner).__name__
        super().__init__(f"{kind}.{name}: expected to stay as it is, got another value; make a new {kind} instead")


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
    rows : tuple of tuples
        For each of these trials the rows in conflict, by name or number: those that are violated as much as any where
        the largest violation is least. Empty where they are not known.

    >>> import cocopt
    >>> from cocopt import Box, constraints
    >>> cap, floor = constraints.Affine([1.0], 0.4), constraints.Affine([-1.0], -0.6)
    >>> try:
    ...     cocopt.project(Box(0.0, 1.0, dim=1), constraints.Stack({"cap": cap, "floor": floor}), [0.5])
    ... except cocopt.errors.InfeasibleRound as error:
    ...     print(error.trials, error.least_violation, error.rows)
    (0,) [0.1] (('cap', 'floor'),)
    """

    def __init__(
        self,
        trials: Sequence[int],
        least_violation: NDArray[np.float64],
        rows: Sequence[Sequence[int | str]] = (),
    ) -> None:
        self.trials = tuple(int(t) for t in trials)
        self.least_violation = least_violation
        self.rows = tuple(tuple(own) for own in rows)
        where = "" if self.trials == (0,) else f" in trials {_some(self.trials)}"
        named = sorted({row for own in self.rows for row in own}, key=str)
        conflict = f", rows in conflict: {_some(tuple(named))}" if named else ""
        super().__init__(
            f"K and the constraint have no point in common{where}: "
            f"the least possible violation is {float(least_violation.max()):.6g}{conflict}. "
            'infeasible="nearest" goes to the point of least violation instead, where constraints.Soft and weights say '
            'which rows yield first; a learner with infeasible="skip" leaves the constraint out'
        )

    def with_names(self, names: Sequence[str | None]) -> InfeasibleRound:
        """The same error with the names of the rows in place of their numbers."""
        named = [
            list(dict.fromkeys(names[row] or row if isinstance(row, int) else row for row in own)) for own in self.rows
        ]
        return InfeasibleRound(self.trials, self.least_violation, named)


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


def _some(trials: tuple[int | str, ...], limit: int = 8) -> str:
    shown = ", ".join(str(t) for t in trials[:limit])
    return shown if len(trials) <= limit else f"{shown}, … ({len(trials)} in all)"

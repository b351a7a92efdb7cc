"""The contract of problems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cocopt.arrays import Array, nonnegative_int, positive_int
from cocopt.checks.base import TOL, require, require_kind
from cocopt.sets import ConvexSet

if TYPE_CHECKING:
    from cocopt.problems import Problem

__all__ = ["check_problem"]

_TRIALS = (3, 5)
_MAX_ROUNDS = 10**4


def check_problem(problem: Problem, *, seed: int = 0, rounds: int = 3) -> None:
    """Checks that a problem keeps the contract of [`Problem`][cocopt.problems.Problem].

    Every start lies in K; the start and the rounds of a trial depend on the seed and the trial alone: not on the other
    trials, on the number of rounds, or on chance; `stacked_rounds` has the same rounds (with agents the mean of their
    losses, and all their rows); the Lipschitz constants, the modulus of strong convexity, the bound and the slack that
    the problem states hold at the points that are tried.

    Parameters
    ----------
    problem : Problem
    seed : int, default 0
    rounds : int, default 3
        How many rounds to check.

    Raises
    ------
    AssertionError
        Naming the property that failed.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt import Box, losses, problems
    >>> from cocopt.checks import check_problem
    >>> check_problem(problems.get("olr"))
    >>> class Careless(problems.Problem):
    ...     K = Box(0.0, 1.0, dim=2)
    ...     rounds = 10
    ...
    ...     def round(self, rng, t):
    ...         return losses.Distance(np.random.default_rng().normal(size=2)), None
    >>> check_problem(Careless())
    Traceback (most recent call last):
    ...
    AssertionError: Careless(): the rounds of a trial depend on other trials, on the number of rounds, or on chance
    """
    require_kind("problem", problem, "problem", 'problems.get("olr")')
    seed, rounds = nonnegative_int("seed", seed), positive_int("rounds", rounds, at_most=_MAX_ROUNDS)
    K = getattr(problem, "K", None)
    if not isinstance(K, ConvexSet):
        raise AssertionError(f"{problem!r}: K is no set")
    start = problem.start(seed, list(_TRIALS))
    batch = (len(_TRIALS),) if problem.agents is None else (len(_TRIALS), problem.agents)
    require(problem, start.shape == (*batch, K.dim), "start() has a wrong shape")
    require(problem, bool(np.all(K.contains(start))), "a start does not lie in K")
    alone = problem.start(seed, [_TRIALS[-1]])[0]
    require(problem, np.array_equal(start[-1], alone), "the start of a trial depends on other trials or on chance")
    own = start[-1] if problem.agents is None else start[-1, 0]
    x = np.stack([own, K.project(np.zeros(K.dim)), K.project(own + np.linspace(-1.0, 1.0, K.dim))])
    shown = _blocks(problem, seed, [_TRIALS[-1]], rounds, x)
    require(problem, len(shown) == rounds, "blocks() has a wrong number of rounds")
    for trials, horizon in ((list(_TRIALS), rounds), ([_TRIALS[-1]], rounds + 1)):
        same = _same(shown, _blocks(problem, seed, trials, horizon, x)[:rounds])
        require(problem, same, "the rounds of a trial depend on other trials, on the number of rounds, or on chance")
    stacked = _stacked(problem, seed, _TRIALS[-1], rounds, x)
    require(problem, _same(shown, stacked), "stacked_rounds() has other rounds than blocks()")
    for name, limit in (("loss", problem.lipschitz_f), ("constraint", problem.lipschitz_g)):
        steepest = max((part.slope for pair in shown for part in pair if part.name == name), default=0.0)
        holds = limit is None or steepest <= limit * (1.0 + TOL)
        require(problem, holds, f"a {name} has a subgradient of norm {steepest:g}, above the constant {limit}")
    modulus = min((part.modulus for pair in shown for part in pair if part.name == "loss"), default=np.inf)
    holds = modulus >= problem.strong_convexity * (1.0 - TOL)
    require(problem, holds, f"a loss has the modulus {modulus:g}, below {problem.strong_convexity}")
    _check_rows(problem, seed, start, rounds)


def _check_rows(problem: Problem, seed: int, start: Array, rounds: int) -> None:
    """Checks the bound and the slack at the starts."""
    at_once = [(list(_TRIALS), start)]
    if problem.one_by_one:
        at_once = [([trial], own) for trial, own in zip(_TRIALS, start, strict=True)]
    played = ((x, block) for trials, x in at_once for block in problem.blocks(seed, trials, rounds))
    for x, (_, count, reveal) in played:
        for k in range(count):
            constraint = reveal(k)[1]
            if constraint is None:
                continue
            rows = constraint.rows(x)
            largest, size = rows.max(), np.abs(rows[rows > -np.inf]).max(initial=0.0)
            holds = problem.bound is None or size <= problem.bound * (1.0 + TOL)
            require(problem, holds, f"a row has the absolute value {size:g}, above the bound {problem.bound}")
            holds = problem.slack is None or largest <= -problem.slack * (1.0 - TOL)
            require(problem, holds, f"a row is {largest:g} at the start, above minus the slack {problem.slack}")


class _Shown(NamedTuple):
    """What is compared of a loss or a constraint: its values and the norms of its gradients at some points."""

    name: str
    values: Array
    slope: float
    modulus: float


def _shown(pair: Any, x: Array, batch: tuple[int, ...], index: int) -> list[_Shown]:
    """Trial or round ``index`` of a pair of losses and constraints with these leading axes; agents are averaged."""
    shown = []
    for name, part in zip(("loss", "constraint"), pair, strict=True):
        if part is not None:
            points = [np.broadcast_to(point, (*batch, point.size)) for point in x]
            combine = np.mean if name == "loss" else np.max
            values = np.array([combine(part.value(point)[index]) for point in points])
            slope = max(float(np.linalg.norm(part.gradient(point)[index], axis=-1).max()) for point in points)
            modulus = np.broadcast_to(getattr(part, "strong_convexity", 0.0), batch)[index]
            shown.append(_Shown(name, values, slope, float(np.min(modulus))))
    return shown


def _blocks(problem: Problem, seed: int, trials: list[int], rounds: int, x: Array) -> list[list[_Shown]]:
    """The rounds of the last of these trials."""
    trials = trials[-1:] if problem.one_by_one else trials
    batch = (len(trials),) if problem.agents is None else (len(trials), problem.agents)
    return [
        _shown(reveal(k), x, batch, -1)
        for _, count, reveal in problem.blocks(seed, trials, rounds)
        for k in range(count)
    ]


def _stacked(problem: Problem, seed: int, trial: int, rounds: int, x: Array) -> list[list[_Shown]]:
    return [
        _shown(pair, x, (count,), k)
        for count, pair in problem.stacked_rounds(seed, trial, rounds)
        for k in range(count)
    ]


def _same(first: list[list[_Shown]], second: list[list[_Shown]]) -> bool:
    if [[part.name for part in pair] for pair in first] != [[part.name for part in pair] for pair in second]:
        return False
    parts = (
        (a.values, b.values) for one, other in zip(first, second, strict=True) for a, b in zip(one, other, strict=True)
    )
    return all(np.allclose(a, b, rtol=1e-12, atol=1e-12 * np.abs(a[np.isfinite(a)]).max(initial=0.0)) for a, b in parts)

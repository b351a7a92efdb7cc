"""The best fixed action in hindsight, against which regret is measured.

    x*_T = argmin of Σ_{t≤T} f_t(x) over x in S_T = K ∩ {g_1 ≤ 0} ∩ … ∩ {g_T ≤ 0}

The dimension is small and T is large, so an iteration should cost one pass over the rounds and a small program. That is
Newton's method: a quadratic model of the sum is minimised over a working set of the constraints; those that the
minimiser violates are added, until there are none. Quadratic losses are summed once. The kinks of norms and hinges are
smoothed, first more, then less. The optimum often lies in a few of these kinks. Once they are near, steps are tried
that smooth nothing and keep the norms of those kinks in the model, by second-order cones, whose duals are the
subgradients.

The result depends neither on the smoothing nor on a solver's own status: a value is accepted only with a lower bound of
the optimum. For multipliers λ ≥ 0 of rows A x ≤ b that hold on S_T, any affine minorant h ≤ Σ f_t with slope G, and
the diameter D of K, all z in S_T have

    Σ f_t(z) ≥ h(x) + ⟨G + Aᵀλ, z − x⟩ − λᵀ(b − A x) ≥ h(x) − ‖G + Aᵀλ‖ D − λᵀ(b − A x).

========================= =========================================================================================
`hindsight.rounds`        passes over the rounds of a trial
`hindsight.objective`     the sum of losses and its second-order information
`hindsight.working_set`   the rows and cones that the programs contain, and the search for violated ones
`hindsight.programs`      the small quadratic or conic program of an iteration
`hindsight.model`         the minimiser of a quadratic model over S_T, and the lower bound that it proves
`hindsight.search`        the minimisation
========================= =========================================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocopt.arrays import MAX_INTEGER, Array, as_integers, describe
from cocopt.errors import InvalidInput
from cocopt.hindsight.rounds import Rounds
from cocopt.hindsight.search import Search
from cocopt.problems.base import Problem, check_seed, trial_numbers

__all__ = ["Hindsight", "best_fixed"]


class Hindsight(NamedTuple):
    """The best fixed actions of B trials at C numbers of rounds.

    Attributes
    ----------
    value : ndarray (B, C)
        min over S_T of Σ f_t, NaN where S_T is empty. It is proven to be above the optimum by at most 1e-6 of it
        (1e-7 unless that takes many steps), rounding of the sums apart; or by 1e-9 of a round's loss if that is more,
        for the optimum may be 0: of the mean up to the least checkpoint, at the point of K nearest to 0.
    feasible : ndarray (B, C) of bool
        Whether S_T has a point.
    point : ndarray (B, C, n)
        x*_T, NaN where there is none.
    """

    value: Array
    feasible: NDArray[np.bool_]
    point: Array


def best_fixed(problem: Problem, seed: int, trials: ArrayLike, checkpoints: ArrayLike) -> Hindsight:
    """The best fixed action of each trial, after each of these numbers of rounds.

    Examples
    --------
    >>> from cocopt import hindsight, problems
    >>> best = hindsight.best_fixed(problems.get("olr"), seed=0, trials=[0, 1], checkpoints=[10, 100])
    >>> best.value.shape, best.feasible.all()
    ((2, 2), np.True_)
    """
    if not isinstance(problem, Problem):
        raise InvalidInput(f'problem: expected an object such as problems.get("olr"), got {describe(problem)}')
    check_seed(seed)
    expected = f"numbers of rounds from 1 to {MAX_INTEGER}"
    marks = as_integers("checkpoints", checkpoints, expected)
    if marks.ndim != 1 or marks.min() < 1 or marks.max() > MAX_INTEGER:
        raise InvalidInput(f"checkpoints: expected {expected}, got {describe(checkpoints)}")
    if not problem.K.bounded:
        raise InvalidInput(f"K: expected a set of finite diameter, got {problem.K!r}")
    chosen = trial_numbers(trials)
    shape = (len(chosen), marks.size)
    result = Hindsight(np.full(shape, np.nan), np.zeros(shape, dtype=bool), np.full((*shape, problem.K.dim), np.nan))
    for i, trial in enumerate(chosen):
        search = Search(problem.K, Rounds(problem, seed, trial, int(marks.max())))
        for c in np.argsort(
            marks
        ):  # S_T only shrinks: the last working set is a good start, and once empty it stays so
            best = search.minimise(int(marks[c]))
            if best is None:
                break
            result.value[i, c], result.point[i, c] = best
            result.feasible[i, c] = True
    return result

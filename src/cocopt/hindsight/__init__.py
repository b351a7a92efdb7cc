"""Comparators in hindsight, against which regret is measured.

=========================== =======================================================================================
`best_fixed`                x*_T = argmin of Σ_{t≤T} f_t over S_T = K ∩ {g_1 ≤ 0} ∩ … ∩ {g_T ≤ 0}
`best_dynamic`              u_t = argmin of f_t over K ∩ {g_t ≤ 0}, in each round
`best_piecewise`            constant on blocks of rounds, and feasible in the rounds of its block
`best_in_expectation`       argmin of Σ_{t≤T} f_t over K ∩ {Σ_{t≤T} g_t ≤ 0}
=========================== =======================================================================================

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
`hindsight.comparators`   the functions above
`hindsight.dynamic`       the minimisers of single rounds
`hindsight.quadratics`    the minimisers of many single rounds at once
`hindsight.piecewise`     blocks of rounds, and dynamic programming over their ends
`hindsight.expectation`   the sum of the constraints as one constraint
`hindsight.rounds`        passes over the rounds of a trial
`hindsight.objective`     the sum of losses and its second-order information
`hindsight.working_set`   the rows and cones that the programs contain, and the search for violated ones
`hindsight.programs`      the small quadratic or conic program of an iteration
`hindsight.model`         the minimiser of a quadratic model over S_T, and the lower bound that it proves
`hindsight.search`        the minimisation
========================= =========================================================================================
"""

from __future__ import annotations

from cocopt.hindsight.comparators import (
    DynamicHindsight,
    Hindsight,
    PiecewiseHindsight,
    best_dynamic,
    best_fixed,
    best_in_expectation,
    best_piecewise,
)

__all__ = [
    "DynamicHindsight",
    "Hindsight",
    "PiecewiseHindsight",
    "best_dynamic",
    "best_fixed",
    "best_in_expectation",
    "best_piecewise",
]

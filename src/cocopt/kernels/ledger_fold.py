"""The ledger's sums after many rounds at once."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from cocopt.kernels._jit import guvectorize
from cocopt.kernels.ledger_terms import add_terms

__all__ = ["fold"]


@guvectorize(
    ["void(float64[:,:], float64[:], float64[:], float64[:], float64[:], float64[:], float64[:])"],
    "(t,m),(t),(t),(t),(s)->(s),()",
)
def fold(rows, loss, past, infeasible, before, after, violation):
    """The sums after t more rounds, as `add_round` of one after another, and max(0, g_t) of the last."""
    for i in range(before.shape[0]):
        after[i] = before[i]
    violation[0] = 0.0
    for t in range(rows.shape[0]):
        violation[0] = add_terms(rows[t], loss[t], past[t], infeasible[t], after)

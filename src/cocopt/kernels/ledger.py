"""The ledger's sums: what each round adds to the metrics, with compensated summation."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from cocopt.kernels._jit import guvectorize
from cocopt.kernels.ledger_terms import add_terms

__all__ = ["add_round"]


@guvectorize(
    ["void(float64[:], float64, float64, float64, float64[:], float64[:], float64[:])"],
    "(m),(),(),(),(s)->(s),()",
)
def add_round(rows, loss, past, infeasible, before, after, violation):
    """The sums after one more round, each a pair (sum, carry) in the order of `cocopt.metrics.Ledger`; max(0, g_t)."""
    for i in range(before.shape[0]):
        after[i] = before[i]
    violation[0] = add_terms(rows, loss, past, infeasible, after)

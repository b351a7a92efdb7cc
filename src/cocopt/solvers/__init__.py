"""Thin wrappers of the solvers we trust but check: the only code that talks to DAQP, Clarabel and HiGHS.

Each takes one problem (no leading axes) and returns a `Solution`: a point, multipliers, and whether the point passed a
check of its optimality conditions made here, whatever the solver said of itself.
"""

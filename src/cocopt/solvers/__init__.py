"""Thin wrappers of the solvers we trust but check: the only code that talks to DAQP, Clarabel and HiGHS.

A point is used only if it passes a check of its optimality conditions, whatever the solver said of itself.
DAQP's is made here, Clarabel's by who calls it. DAQP takes several problems at a time, the others one.
"""

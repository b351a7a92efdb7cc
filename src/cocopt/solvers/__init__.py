"""Thin wrappers of the solvers we trust but check: the only code that talks to DAQP, Clarabel and HiGHS.

Each returns a point, multipliers, and whether the point passed a check of its optimality conditions, whatever the solver
said of itself; Clarabel's is made by who calls it. DAQP takes several problems at a time, the others one.
"""

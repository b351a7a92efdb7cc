"""Compiled kernels (numba gufuncs): leading axes come free, each module compiles on first import and is cached on disk.

A kernel returns, beside its result, one status a trial (see `cocopt.kernels.status`); a caller takes only the trials
that converged and hands the others to the next rung.
"""

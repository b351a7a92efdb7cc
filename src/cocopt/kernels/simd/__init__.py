"""SIMD kernels: a second form of the active-set method, in which each step handles eight trials at once.

The first form is `cocopt.kernels.active_set`, for one trial. This one exists for speed alone: ten coordinates are too
few to fill a vector unit, but a batch has trials enough, and small projections onto a box and rows take half to a
quarter of the time this way. It is written for a box and few rows only, and need not succeed: a trial that takes too
many iterations or rows, has a target that is far away, or has no solution is left to the first form. It accepts a point
on the same conditions as the first form. ``tests/test_simd.py`` checks it against the first form and against a
reference, and that no trial depends on its neighbours, to the bit (``tests/test_persistent.py`` does so for persistent
intersections).

- `vector`: the type of eight numbers, and arithmetic on it
- `lanes`: the workspace, in which every quantity has one number per lane; a lane is the place of one trial
- `active_set`: the iteration
- `box_rows`, `box_halfspace`: the kernels
"""

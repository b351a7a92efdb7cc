"""Everything that maps a point to a point under a constraint.

Bottom up, imports going one way only:

- `problem`: the request, the answer, and checks of arguments; `derived`: constraints made from others;
- `batch`: all trials at once, by compiled kernels or DAQP; `scaled` and `conic`: stacked cones; `dual`: one multiplier
  per row; `least_violation`: whether K ∩ {g ≤ 0} is empty;
- `structured`: these methods as a table, and the descent of one trial through it; `refine` and `cuts`: cutting planes;
- `ladder`: the whole table; `project`, `prox`: the public functions; `persistent`: all constraints revealed so far;
- `cutter`, `infeasible`: steps towards a set that are cheaper than a projection.
"""

from cocopt.geometry.project import Projection, explain, project, solve_projection
from cocopt.geometry.prox import hinge_prox, solve_hinge_prox

__all__ = ["Projection", "explain", "hinge_prox", "project", "solve_hinge_prox", "solve_projection"]

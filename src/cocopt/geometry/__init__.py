"""Everything that maps a point to a point under a constraint.

Bottom up, imports going one way only:

- `problem`: the request, the answer, and checks of arguments; `derived`: constraints made from others; `equations`: as
  pairs of inequalities;
- for all trials at once, compiled: `batch` (affine rows; for many of them DAQP), `curved` (one curved row), `dense`
  (Newton's method for a few), `sparse` (sparse rows), `curved_history` (all curved constraints so far);
- for one trial: `scaled` and `conic` (stacked cones), `dual` (one multiplier per row), `least_violation` (whether
  K ∩ {g ≤ 0} is empty);
- `structured`: these methods as a table, and the descent of one trial through it;
- black boxes: `rows` (a request taken apart), `smooth`, `separable`, `refine` and `cuts` (cutting planes);
- `priorities`: which rows yield first; `ladder`: the whole table;
- `project`, `prox`: the public functions; `persistent`: all constraints revealed so far;
- `cutter`, `infeasible`: steps towards a set that are cheaper than a projection.
"""

from cocopt.geometry.project import Projection, explain, project, solve_projection
from cocopt.geometry.prox import hinge_prox, solve_hinge_prox

__all__ = ["Projection", "explain", "hinge_prox", "project", "solve_hinge_prox", "solve_projection"]

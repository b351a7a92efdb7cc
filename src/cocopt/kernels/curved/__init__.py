"""One curved row, or one affine row over a curved set: the dual has one variable, and its root is found.

- `path`: the search for the point of a norm ball, along the projections of the points between target and center
- `multiplier`: the search for the multiplier of any other row
- `box`, `ball`, `simplex`, `l1_ball`, `ellipsoid`: the kernels over one set each
- `box_quadratic`: quadratic rows without mixed terms over a box
- `polyhedron`: a norm ball together with affine rows, over any polyhedron

A result counts as converged only if the row, computed anew from the point that is returned, and K hold to rounding, and
so does complementary slackness: stationarity holds by construction, since the point is the projection onto K of a point
of the path. A trial that misses this is left to the next method.
"""

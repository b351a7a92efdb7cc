"""Projection and hinge prox for a few affine and curved rows over a box, by Newton's method on the dual.

- `problem`: the rows of a trial, their values and gradients
- `factor`: the Hessian of the Lagrangian and its factor
- `descent`: x(u), the minimum of the Lagrangian over the box for given multipliers u
- `multipliers`: the step of the multipliers, a small quadratic program
- `newton`: the maximum of the dual
- `project`: the kernel; `newton_rows`

All linear algebra is in loops of our own: up to a few hundred coordinates that is as fast as LAPACK, and it never
starts threads.
"""

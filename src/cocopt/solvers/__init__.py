"""Thin wrappers of DAQP, Clarabel and HiGHS: the code that calls these solvers.

One solver per file (`daqp`, `clarabel`, `highs`), one function per task, and one result, `Solution`:

- `qp.solve_qp`: the projection onto a polyhedron, by DAQP, then Clarabel;
- `highs.solve_lp`: a linear program, by HiGHS;
- `cone_program.candidates`: the optimum of a cone program, by Clarabel, refined by Newton's method (`polish`);
- `polyhedral.project_polyhedral`: many points onto a polyhedron, by the compiled kernel, then `solve_qp`.

A point is used only if it passes a check of its optimality conditions, whatever the solver reported. Quadratic programs
are checked here; the candidates for the optimum of a cone program, and linear programs, by the caller.
"""

"""The statuses that a kernel returns, one per trial."""

CONVERGED = 0  #: the result satisfies its optimality conditions to rounding
UNCONVERGED = 1  #: no solution within the limit of steps, or not to the promised accuracy; ask the next method
INFEASIBLE = 2  #: proved: no point of K satisfies the rows to 1e-9 of their scale
NONFINITE = 3  #: NaN or infinity among the data (b = +inf is legal)
TOUCHING = 4  #: the least violation is within rounding of 0, so that feasibility cannot be decided; ask the next method
CROWDED = 5  #: within kernels: about as many rows bind as there are coordinates, which calls for another start

"""What a kernel says of a trial."""

CONVERGED = 0  #: the result satisfies its optimality conditions to rounding
UNCONVERGED = 1  #: the kernel gave up; ask the next method
INFEASIBLE = 2  #: proved: no point of K satisfies the rows to 1e-9 of their scale
NONFINITE = 3  #: NaN or infinity among the data (b = +inf is legal)
TOUCHING = 4  #: the rows meet at their edges at most, which for rounding cannot be decided; ask the next method

"""Contract checks that a class of one's own can be put through, as the built-in ones are.

Each takes an object, tries it on random data, and raises an `AssertionError` that names the property that failed.
"""

from cocopt.checks.algorithms import check_algorithm
from cocopt.checks.constraints import check_constraint
from cocopt.checks.losses import check_loss
from cocopt.checks.problems import check_problem
from cocopt.checks.schedules import check_schedule
from cocopt.checks.sets import check_set

__all__ = ["check_algorithm", "check_constraint", "check_loss", "check_problem", "check_schedule", "check_set"]

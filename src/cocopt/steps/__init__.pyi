# What type checkers see: one line per public name.
from cocopt.steps.adaptive import Adaptive as Adaptive
from cocopt.steps.base import Schedule as Schedule
from cocopt.steps.base import Step as Step
from cocopt.steps.base import checked_step as checked_step
from cocopt.steps.constant import Constant as Constant
from cocopt.steps.function import Function as Function
from cocopt.steps.function import as_schedule as as_schedule
from cocopt.steps.power import Power as Power
from cocopt.steps.strongly_convex import StronglyConvex as StronglyConvex

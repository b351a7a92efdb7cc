"""Experiments: many trials of many algorithms on one problem, kept on disk, summed up in tables and figures."""

from cocopt.errors import TrialFailed
from cocopt.experiments.results import Result
from cocopt.experiments.runner import run

__all__ = ["Result", "TrialFailed", "run"]

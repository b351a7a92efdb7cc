"""Experiments: many trials of many algorithms on one problem, kept on disk, summed up in tables and figures."""

from cocopt.errors import EngineFailed, TrialFailed
from cocopt.experiments import plots  # registers the built-in figures
from cocopt.experiments.figures import figure
from cocopt.experiments.results import Result
from cocopt.experiments.runner import run

__all__ = ["EngineFailed", "Result", "TrialFailed", "figure", "plots", "run"]

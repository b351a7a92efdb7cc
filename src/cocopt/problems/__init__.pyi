# What type checkers see: one line per public name.
from cocopt.problems.base import BlockProblem as BlockProblem
from cocopt.problems.base import Problem as Problem
from cocopt.problems.catalog import from_file as from_file
from cocopt.problems.catalog import get as get
from cocopt.problems.catalog import names as names
from cocopt.problems.drift import Drift as Drift
from cocopt.problems.drone import Drone as Drone
from cocopt.problems.logistic import LogisticRegression as LogisticRegression
from cocopt.problems.network import Network as Network
from cocopt.problems.olr import LongRegression as LongRegression
from cocopt.problems.olr import Regression as Regression
from cocopt.problems.spiral import Spiral as Spiral
from cocopt.problems.static import Static as Static
from cocopt.problems.svm import WineSVM as WineSVM
from cocopt.problems.tracking import Tracking as Tracking
from cocopt.problems.trap import Trap as Trap
from cocopt.problems.zigzag import Zigzag as Zigzag

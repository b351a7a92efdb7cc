"""What type checkers must refuse: they read the package's types, and take nothing for Any."""

from cocopt import CLASP, Box

CLASP(Box(0.0, 1.0, dim=3)).ask() + "text"
Box(0.0, 1.0, dimension=3)

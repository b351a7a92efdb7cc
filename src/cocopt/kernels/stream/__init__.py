"""Kernels for one stream: a whole round in one call.

- `losses`: value and gradient of the usual losses
- `play`: the round, whatever the set
- `box`, `ball`, `simplex`: the kernels
"""

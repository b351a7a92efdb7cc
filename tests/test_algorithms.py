"""Every algorithm keeps the contract of a learner. To add an algorithm, add a row."""

import pytest

from cocopt import CLASP, CLASPF, RECOO, AdaGrad, Switch, steps
from cocopt.checks import check_algorithm

# name: (the learner, what `check_algorithm` must be told)
ALGORITHMS = {
    "clasp": (lambda K, start: CLASP(K, start=start), {}),
    "clasp, worst row": (lambda K, start: CLASP(K, start=start, rows="worst"), {}),
    "clasp, persistent": (lambda K, start: CLASP(K, start=start, window=None), {"remembers": True}),
    "clasp, persistent, worst row": (
        lambda K, start: CLASP(K, start=start, window=None, rows="worst"),
        {"remembers": True},
    ),
    "clasp-f": (lambda K, start: CLASPF(K, start=start), {}),
    "clasp-f, gradient at xb": (lambda K, start: CLASPF(K, start=start, gradient_at="xb"), {}),
    "clasp-f, adaptive": (lambda K, start: CLASPF(K, start=start, steps=steps.Adaptive(1.0)), {}),
    "clasp-f, strongly convex": (lambda K, start: CLASPF(K, start=start, steps=steps.StronglyConvex(0.1)), {}),
    "recoo": (lambda K, start: RECOO(K, start=start), {}),
    "recoo, worst row": (lambda K, start: RECOO(K, start=start, rows="worst"), {}),
    "recoo, strongly convex": (lambda K, start: RECOO(K, start=start, strong_convexity=0.1, epsilon=0.3), {}),
    "adagrad": (lambda K, start: AdaGrad(K, 100, 10.0, start=start), {}),
    "adagrad, light": (lambda K, start: AdaGrad(K, 100, 1.0, start=start, weight=0.1, diameter=3.0), {}),
    "adagrad, strongly convex": (lambda K, start: AdaGrad(K, 100, 1.0, start=start, strong_convexity=0.1), {}),
    "switch": (lambda K, start: Switch(K, 100, 10.0, start=start), {"remembers": True}),
    "switch, both phases": (
        lambda K, start: Switch(K, 100, 1.0, start=start, threshold=1.0, rows="worst", on_empty="adagrad"),
        {"remembers": True},
    ),
}


@pytest.mark.parametrize("rounds", [16, pytest.param(24, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_contract_is_kept(name, rounds):
    make, told = ALGORITHMS[name]
    check_algorithm(make, rounds=rounds, **told)

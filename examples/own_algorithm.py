"""An algorithm of one's own, put through the contract checks and compared with CLASP.

Run it with ``python examples/own_algorithm.py``, or from the command line:

    cocopt run olr -a clasp -a 'examples/own_algorithm.py:Penalty:weight=1|10' --out results/penalty
"""

from typing import Any

import numpy as np

import cocopt
from cocopt.algorithms import Learner
from cocopt.algorithms.base import Feedback, Update
from cocopt.checks import check_algorithm


@cocopt.register  # so that learners can be saved and loaded
class Penalty(Learner):
    """Gradient descent on the loss plus a weighted violation: x_{t+1} = P_K(x_t − (∇f_t + weight · ∂g_t^+)/√t)."""

    def __init__(self, K: cocopt.ConvexSet, *, start: Any = None, weight: float = 1.0) -> None:
        super().__init__(K, start)
        self.weight = float(weight)

    def initial_memory(self, batch: tuple[int, ...]) -> None:
        return None  # this algorithm remembers nothing

    def update(self, memory: None, feedback: Feedback) -> Update:
        t = feedback.t
        direction = np.zeros(feedback.x.shape)
        if feedback.gradient is not None:
            direction += feedback.gradient
        if feedback.constraint is not None and feedback.rows is not None:
            violated = feedback.rows.max(axis=-1, keepdims=True) > 0.0  # one answer per trial: no loops over trials
            direction += np.where(violated, self.weight * feedback.constraint.gradient(feedback.x), 0.0)
        return Update(self.K.project(feedback.x - direction / np.sqrt(t)), None, step=1.0 / np.sqrt(t))


if __name__ == "__main__":
    check_algorithm(lambda K, start: Penalty(K, start=start, weight=2.0))
    print("Penalty keeps the contract of a learner")
    algorithms = {
        "clasp": "clasp",
        "weight 1": lambda K, start: Penalty(K, start=start, weight=1.0),
        "weight 10": lambda K, start: Penalty(K, start=start, weight=10.0),
    }
    print(cocopt.run("olr", algorithms, trials=20).summary())

"""A problem of your own: split work over machines whose costs and heat vary.

Run it with ``python examples/own_problem.py``, or from the command line, where interrupted runs are resumed:

    cocopt run examples/own_problem.py:Machines -a clasp -a recoo -a adagrad --out results/machines

A figure of your own is one function: add --figure examples/own_problem.py:tradeoff to write it beside the others.
"""

import numpy as np
from matplotlib.figure import Figure

import cocopt
import cocopt.experiments
from cocopt import Simplex, constraints, losses, problems


class Machines(problems.Problem):
    """Every round: pay the cost of each machine's share, and keep the heat of the room below its limit."""

    K = Simplex(5)  # shares of the work, which sum to 1
    rounds = 500
    # Constants for algorithms that ask for them, and for the bounds in the figures: largest ‖∇f‖ and ‖∇g‖.
    lipschitz_f = 5**0.5
    lipschitz_g = 5**0.5

    def initial(self, rng: np.random.Generator) -> np.ndarray:
        """x_1 of one trial."""
        return np.full(5, 0.2)

    def round(self, rng: np.random.Generator, t: int) -> tuple[losses.Linear, constraints.Affine]:
        """f_t and g_t of one trial: cheap machines run hot. A loss or a constraint may also be None."""
        cost = np.clip(np.linspace(0.8, 0.2, 5) + 0.2 * rng.normal(size=5), 0.0, 1.0)
        heat = np.clip(np.linspace(0.0, 0.8, 5) + 0.1 * rng.normal(size=5), 0.0, 1.0)
        # never less than an even split gives off: so one action satisfies every round
        return losses.Linear(cost), constraints.Affine(heat, max(0.4, heat.mean()))


def tradeoff(result: cocopt.experiments.Result, figure: Figure) -> None:
    """Violation against cost after the last round, a point per trial."""
    axes = figure.subplots()
    for label in result.algorithms:
        finals = result.finals(label)
        axes.plot(finals["loss"], finals["ccv1"], ".", label=result.title(label))
    axes.set(xlabel="cost of all rounds", ylabel="sum of the violations", yscale="log")
    axes.legend()


if __name__ == "__main__":
    result = cocopt.run(Machines(), ["clasp", "recoo", "adagrad"], trials=20, rounds=200)
    print(result.summary())
    difference = result.paired("clasp", "adagrad")["ccv1"]
    print(
        f"CCV₁ of CLASP less that of AdaGrad: {difference.mean:.2f} [{difference.ci_low:.2f}, {difference.ci_high:.2f}]"
    )
    result.plot("machines.png", tradeoff)

"""The distributed primal-dual method of Yi et al. (2023), for one agent or a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from cocopt.algorithms.base import Feedback, Learner, Update, optional_scalar
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.algorithms.mixing import as_mixing_matrix, complete, erdos_renyi, ring
from cocopt.algorithms.queues import row_queues
from cocopt.arrays import Array, ArrayLike, describe, nonnegative_int, one_of, positive_int, scalar
from cocopt.errors import InvalidInput
from cocopt.registry import register
from cocopt.sets.base import ConvexSet
from cocopt.state import NonNegativeRows
from cocopt.threads import matmul, matvec, vecmat

__all__ = ["Yi2023"]

Network: TypeAlias = Literal["ring", "complete", "erdos-renyi"] | ArrayLike | Callable[[int], ArrayLike] | None


class _Memory(NamedTuple):
    queues: NonNegativeRows  # q_t


@register
class Yi2023(Learner):
    """Gradient steps on loss and weighted violation from the mean of the neighbours' points, with damped queues.

        z_i = Σ_j W_ij x_{j,t}
        x_{i,t+1} = P_K( z_i − α_t(∇f_{i,t} + S_iᵀ q_{i,t}) )
        q_{i,t+1} = [ (1 − β_t γ_t) q_{i,t} + γ_t(v_i + S_i(x_{i,t+1} − x_{i,t})) ]_+,    q_{i,1} = 0

    Agent i of N knows its own loss f_{i,t} and constraint g_{i,t} alone. All is taken at its own x_{i,t}: the gradient,
    the violations v_i = g_{i,t}^+ of its rows, and their subgradients S_i, which are 0 where nothing is violated. W is
    doubly stochastic, and may change from round to round. The steps need no horizon and no constants:

    - convex losses: α_t = β_t = t^(−κ), γ_t = t^(κ−1);
    - m-strongly convex losses: α_t = 1/(m t), the others alike.

    Guarantees for compact K and some x in K that satisfies all constraints of all agents; f_t is the mean of the
    agents' losses, g_t the maximum of all their rows, and regret and Σ g_t^+ are averaged over the agents:

    - convex losses: Regret_T = O(T^max(κ, 1−κ)) and CCV₁ = O(T^(1−κ/2));
    - strongly convex losses: Regret_T = O(T^κ) and CCV₁ = O(T^(1−κ/2)).

    They need a network that is connected often enough: the union of the graphs of some fixed number of successive
    rounds is always connected, and the positive weights stay away from 0. Random graphs are so only with a probability;
    W = I, with which each agent learns alone, is not. The orders are the authors'. The update is as reconstructed here,
    from public code; the form of one agent is derived. No constants are known: [`cocopt.Jenatton`][] with ``hard`` is
    an alternative for one agent that has them.

    α_t counts rounds that revealed a loss, W_t, β_t and γ_t all rounds. A round without a constraint leaves the queues
    alone; in one that reveals nothing the agents still average. The first constraint tells the number of rows, which
    all agents share. Where another action was played, it takes the place of x_{i,t}.

    Parameters
    ----------
    K : ConvexSet
    start : array (..., n), optional
        x_1 in K; leading axes are trials, and with a network the last of them is the agents': (..., N, n). Default: the
        point of K nearest to 0, for each agent.
    kappa : float
        κ in (0, 1).
    network : None, "ring", "complete", "erdos-renyi", array (N, N) or callable
        None: one agent, which learns alone. Of ring and random graphs the weights are Metropolis's, W_ij =
        1/(1 + max(d_i, d_j)) for neighbours with d_i and d_j neighbours; the complete graph has W = 11ᵀ/N; or W itself,
        or a function of t that returns W_t. All trials have the same network.
    strong_convexity : float, optional
        m, which must hold for every loss.
    alpha, beta, gamma : float
        Scales of α_t, β_t and γ_t. The public code has 2, 0.2 and 5, with t + 1 for t.
    probability : float
        Of "erdos-renyi": with which two agents are neighbours, independently in every round.
    seed : int
        Of "erdos-renyi": the graph of round t depends on (seed, t) alone.
    agents : int, optional
        N, if neither ``start`` nor a matrix says it.

    References
    ----------
    Yi, Li, Yang, Xie, Chai and Johansson, "Regret and cumulative constraint violation analysis for distributed online
    constrained convex optimization", IEEE Transactions on Automatic Control 68(5), 2023.

    Examples
    --------
    Two agents with the targets 0.2 and 0.8 approach the mean of both, but for the limit 0.4, which only one knows:

    >>> import numpy as np
    >>> from cocopt import Box, Yi2023, constraints, losses
    >>> learner = Yi2023(Box(0.0, 1.0, dim=1), network="complete", start=[[0.0], [1.0]])
    >>> limits = constraints.Affine([[[1.0]], [[1.0]]], [[0.4], [np.inf]])
    >>> for t in range(1000):
    ...     record = learner.tell(losses.Distance([[0.2], [0.8]]), limits)
    >>> learner.ask().round(1)
    array([[0.4],
           [0.4]])
    """

    name = "yi2023"
    title = "Yi et al. (2023)"
    facts = Facts(
        2023,
        "projection onto K, subgradients of all rows; with a network one exchange of points with the neighbours",
        "orders: the authors' abstract; update: public code, as reconstructed here; form of one agent derived here",
        convex=Rates.from_sums(Rate(0.5), Rate(0.75)),
        strongly_convex=Rates.from_sums(Rate(0.5), Rate(0.75)),
        assumes="with several agents: a network that is connected over every so many rounds",
    )

    # (eleven parameters, all but K keywords, exceed the guide: three scales, and what describes a network)
    def __init__(
        self,
        K: ConvexSet,
        *,
        start: ArrayLike | None = None,
        kappa: float = 0.5,
        network: Network = None,
        strong_convexity: float | None = None,
        alpha: float = 1.0,
        beta: float = 1.0,
        gamma: float = 1.0,
        probability: float = 0.5,
        seed: int = 0,
        agents: int | None = None,
    ) -> None:
        super().__init__(K, start)
        self.kappa = scalar("kappa", kappa, positive=True)
        if self.kappa >= 1.0:
            raise InvalidInput(f"kappa: expected a number between 0 and 1, got {kappa}")
        self.strong_convexity = optional_scalar("strong_convexity", strong_convexity, positive=True)
        self.alpha = scalar("alpha", alpha, positive=True)
        self.beta = scalar("beta", beta, positive=True)
        self.gamma = scalar("gamma", gamma, positive=True)
        self.probability = scalar("probability", probability, nonnegative=True)
        if self.probability > 1.0:
            raise InvalidInput(f"probability: expected a number between 0 and 1, got {probability}")
        self.seed = nonnegative_int("seed", seed)
        self.network = _as_network(network)
        self.agents = _count_agents(self.network, None if start is None else self.batch, agents)
        if start is None and self.agents is not None:  # the same point for each agent
            super().__init__(K, np.tile(K.project_unchecked(np.zeros(K.dim)), (self.agents, 1)))
        self._fixed = _fixed_matrix(self.network, self.agents)

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        scaled = {"kappa": 0.3, "strong_convexity": 0.1, "alpha": 2.0, "beta": 0.2, "gamma": 5.0}
        return [
            {},
            {"network": "erdos-renyi", "agents": 3, "probability": 0.4, "seed": 1, **scaled},
            {"network": [[0.5, 0.25, 0.25], [0.5, 0.5, 0.0], [0.0, 0.25, 0.75]]},
        ]

    @property
    def rates(self) -> Rates:
        regret = self.kappa if self.strong_convexity else max(self.kappa, 1.0 - self.kappa)
        return Rates.from_sums(Rate(regret), Rate(1.0 - self.kappa / 2))

    def mixing_matrix(self, t: int) -> Array | None:
        """W_t, a doubly stochastic matrix (N, N); None without a network."""
        t = positive_int("t", t)
        if self.agents is None or self._fixed is not None:
            return self._fixed
        if callable(self.network):
            return as_mixing_matrix(f"network({t})", self.network(t), self.agents)
        return erdos_renyi(self.agents, self.probability, self.seed, t)

    def initial_memory(self, batch: tuple[int, ...]) -> _Memory:
        return _Memory(None)

    def update(self, memory: _Memory, feedback: Feedback) -> Update:
        x, t, losses = feedback.x, feedback.t, max(feedback.losses, 1)
        W = self.mixing_matrix(t)
        target = x if W is None else matmul(W, x)
        m = self.strong_convexity
        alpha = self.alpha * (losses**-self.kappa if m is None else 1.0 / (m * losses))
        if feedback.gradient is not None:
            target = target - alpha * feedback.gradient
        if feedback.rows is None:
            step = 0.0 if feedback.gradient is None else alpha
            return Update(self.K.project_unchecked(target), memory, step)
        queues = row_queues(memory.queues, feedback.rows)
        violated, subgradients = feedback.rows > 0.0, feedback.row_subgradients()
        weights = np.where(violated, queues, 0.0)  # in place of zeros in the rows of S
        after = self.K.project_unchecked(target - alpha * vecmat(weights, subgradients))
        model = np.where(violated, feedback.rows + matvec(subgradients, after - feedback.played), 0.0)
        beta, gamma = self.beta * t**-self.kappa, self.gamma * t ** (self.kappa - 1.0)
        queues = np.maximum((1.0 - beta * gamma) * queues + gamma * model, 0.0)
        return Update(after, _Memory(queues), alpha)


def _as_network(network: Any) -> Any:
    """None, a name, a function, or a mixing matrix that is checked."""
    if network is None or callable(network):
        return network
    if isinstance(network, str):
        return one_of("network", network, "ring", "complete", "erdos-renyi")
    return as_mixing_matrix("network", network)


def _count_agents(network: Any, batch: tuple[int, ...] | None, agents: int | None) -> int | None:
    """N, from the matrix, the leading axes of the start or the option, which must agree; None without a network."""
    if network is None:
        if agents is not None:
            raise InvalidInput(f"agents: expected None without a network, got {describe(agents)}")
        return None
    count = None if agents is None else positive_int("agents", agents, at_most=10_000)
    if isinstance(network, np.ndarray):
        if count not in (None, len(network)):
            raise InvalidInput(f"agents: expected {len(network)} as in the network, got {count}")
        count = len(network)
    if batch is None:
        if count is None:
            raise InvalidInput("start: expected points (..., agents, n) for this network, or agents=..., got None")
    elif not batch or count not in (None, batch[-1]):
        axes = f"(..., {'agents' if count is None else count})"
        raise InvalidInput(f"start: expected leading axes {axes} with a network, got {batch}")
    return count if batch is None else batch[-1]


def _fixed_matrix(network: Any, agents: int | None) -> Array | None:
    """W, if it is the same in every round."""
    if agents is None or callable(network):
        return None
    if isinstance(network, np.ndarray):
        return network
    return ring(agents) if network == "ring" else complete(agents) if network == "complete" else None

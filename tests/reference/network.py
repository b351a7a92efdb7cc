"""The method of Yi et al. (2023) as plain loops over agents and rows of one stream, and the graphs of its networks."""

import numpy as np


def yi2023(project, start, rounds, matrices, kappa=0.5, m=None, scales=(1.0, 1.0, 1.0)):
    """x_1, x_2, … of all agents.

    rounds: per round a list with (gradient of the loss, rows, jacobian) for each agent, each a function of x;
    matrices: the mixing matrix of each round.
    """
    N = len(start)
    x = [np.array(point) for point in start]
    points, q = [np.array(x)], None
    for t, (agents, W) in enumerate(zip(rounds, matrices, strict=True), start=1):
        alpha = scales[0] * (1 / t**kappa if m is None else 1 / (m * t))
        beta, gamma = scales[1] / t**kappa, scales[2] / t ** (1 - kappa)
        new_x, new_q = [], []
        for i, (gradient, rows, jacobian) in enumerate(agents):
            z = sum(W[i][j] * x[j] for j in range(N))
            g, S = rows(x[i]), jacobian(x[i])
            if q is None:
                q = [[0.0] * len(g) for _ in range(N)]
            direction = gradient(x[i])
            for r in range(len(g)):
                if g[r] > 0:
                    direction = direction + q[i][r] * S[r]
            y = project(z - alpha * direction)
            queue = []
            for r in range(len(g)):
                grows = g[r] + S[r] @ (y - x[i]) if g[r] > 0 else 0.0
                queue.append(max(0.0, (1 - beta * gamma) * q[i][r] + gamma * grows))
            new_x.append(y)
            new_q.append(queue)
        x, q = new_x, new_q
        points.append(np.array(x))
    return np.array(points)


def metropolis(N, edges):
    """The Metropolis weights of the graph with these edges (i, j)."""
    degrees = [sum(i in edge for edge in edges) for i in range(N)]
    W = np.zeros((N, N))
    for i, j in edges:
        W[i, j] = W[j, i] = 1 / (1 + max(degrees[i], degrees[j]))
    for i in range(N):
        W[i, i] = 1 - sum(W[i, j] for j in range(N) if j != i)
    return W


def ring_edges(N):
    return {tuple(sorted((i, (i + 1) % N))) for i in range(N) if N > 1}


def random_edges(N, probability, seed, t):
    """The edges whose number, drawn for the pair in row i and column j of a square, is below the probability."""
    drawn = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(t,))).random((N, N))
    return {(i, j) for i in range(N) for j in range(i + 1, N) if drawn[i, j] < probability}

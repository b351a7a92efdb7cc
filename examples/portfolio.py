"""A portfolio under limits that move: growth of wealth, a limit on volatility, a limit on turnover.

Each day the weights are fixed before returns are known. Yesterday's weights are known, and so is the limit on turnover:
it goes to `ask(known=...)` and is never exceeded. The day's covariance matrix and its limit on volatility are known
after the close. After a sudden rise of volatility a small turnover cannot satisfy the limit at once: the limit on
volatility is soft, so that turnover is kept and volatility falls as fast as it may.

The returns are made up, with the usual properties of daily returns: volatility that clusters, two crises, one factor
that all shares follow, and fat tails. Run it with ``python examples/portfolio.py``; the figure is
results/portfolio.png.
"""

from pathlib import Path

import matplotlib
import numpy as np

from cocopt import CLASP, Simplex, constraints, hindsight, losses

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Array = np.ndarray
FIGURE = Path("results", "portfolio.png")

ASSETS = ("tech", "banks", "energy", "health", "retail", "utilities", "bonds", "gold")
DAYS, YEAR = 750, 250
BETA = np.array([1.35, 1.25, 1.1, 0.75, 0.95, 0.6, -0.05, 0.0])  # how each asset follows the market
OWN = np.array([0.12, 0.12, 0.18, 0.1, 0.1, 0.09, 0.05, 0.14])  # volatility of its own, per year
DRIFT = np.array([0.24, 0.12, 0.06, 0.16, 0.10, 0.08, 0.03, 0.06])  # mean return per year
UNIFORM = np.full(len(ASSETS), 1 / len(ASSETS))
HALF_LIFE = 20  # days, of the estimate of covariances


def draw_returns(rng: np.random.Generator) -> Array:
    """Daily returns (DAYS, assets)."""
    days = np.arange(DAYS)
    crises = sum(np.where(days >= at, 0.28 * np.exp(-np.maximum(days - at, 0) / 45), 0.0) for at in (210, 540))
    volatility = 0.13 + crises + 0.02 * np.sin(days / 40)
    shocks = rng.standard_t(5, (DAYS, 1 + len(ASSETS))) * np.sqrt(3 / 5)
    market = volatility * shocks[:, 0] - 0.15 * crises  # shares fall in a crisis
    return DRIFT / YEAR + (market[:, None] * BETA + OWN * shocks[:, 1:]) / np.sqrt(YEAR)


def covariances(returns: Array) -> Array:
    """The estimate per year after each day, with weights that halve in HALF_LIFE days."""
    keep = 0.5 ** (1 / HALF_LIFE)
    estimate = 0.16**2 * np.outer(BETA, BETA) + np.diag(OWN**2)
    found = []
    for r in returns:
        estimate = keep * estimate + (1 - keep) * YEAR * np.outer(r, r)
        found.append(estimate)
    return np.array(found)


def follow(returns: Array, Sigma: Array, limit: Array, turnover: Array, *, limited: bool) -> tuple[CLASP, Array]:
    """The learner after all days, and the weights of each day; with limits, or by returns alone."""
    learner = CLASP(Simplex(len(ASSETS)), start=UNIFORM, infeasible="nearest")
    weights = [UNIFORM]
    for day, r in enumerate(returns):
        known = revealed = None
        if limited:
            known = constraints.Stack({"turnover": constraints.Norm1(weights[-1], turnover[day])})
            revealed = constraints.Stack({"volatility": constraints.Soft(risk(Sigma[day], limit[day]))})
        weights.append(learner.ask(known=known))
        learner.tell(losses.NegativeLog(1.0 + r), revealed)
    return learner, np.array(weights[1:])


def risk(Sigma: Array, limit: float) -> constraints.Quadratic:
    """The limit on volatility, xᵀΣx ≤ limit²."""
    return constraints.Quadratic(2 * Sigma, np.zeros(len(ASSETS)), -(limit**2))


def volatility_of(weights: Array, Sigma: Array) -> Array:
    """The volatility of each day, per year."""
    return np.sqrt(np.einsum("ti,tij,tj->t", weights, Sigma, weights))


def main() -> None:
    """Play all days, compare, and draw."""
    returns = draw_returns(np.random.default_rng(0))
    Sigma, days = covariances(returns), np.arange(DAYS)
    limit = np.where(days % YEAR < YEAR // 2, 0.14, 0.12)  # volatility per year, set anew twice a year
    turnover = np.where(days % 5 == 0, 0.10, 0.02)  # Σ |change of weight|: more on Mondays
    learner, weights = follow(returns, Sigma, limit, turnover, limited=True)
    free = follow(returns, Sigma, limit, turnover, limited=False)[1]
    growth = [losses.NegativeLog(1.0 + r) for r in returns]
    best = hindsight.best_fixed(Simplex(len(ASSETS)), growth, list(map(risk, Sigma, limit)))
    mixes = {
        "learner within limits": weights,
        "learner without limits": free,
        "uniform weights": np.tile(UNIFORM, (DAYS, 1)),
        "best fixed mix within limits,\nknown afterwards": np.tile(best.point, (DAYS, 1)),
    }
    wealth = {name: np.cumprod(1.0 + (x * returns).sum(axis=1)) for name, x in mixes.items()}
    volatility = {name: volatility_of(x, Sigma) for name, x in mixes.items()}
    over = {}
    for name, x in mixes.items():
        moved = np.abs(np.diff(x, axis=0, prepend=UNIFORM[None] if name.startswith("learner") else x[:1])).sum(axis=1)
        over[name] = {"volatility": volatility[name] > limit + 1e-6, "turnover": moved > turnover + 1e-6}
        shares = ", ".join(f"{limit_name} {flags.mean():.0%}" for limit_name, flags in over[name].items())
        print(f"{' '.join(name.split())}: wealth {wealth[name][-1]:.2f}; days over the limit: {shares}")
    for name, sums in learner.ledger.by_name.items():
        print(f"  {name}: violations add up to {sums['ccv1']:.2g}, the worst is {sums['worst']:.2g}")
    draw(wealth, volatility, limit, over)


def draw(
    wealth: dict[str, Array], volatility: dict[str, Array], limit: Array, over: dict[str, dict[str, Array]]
) -> None:
    """Wealth, volatility beside its limit, and days over each limit."""
    colours = dict(zip(wealth, ("#0072B2", "#D55E00", "#8A8A8A", "#009E73"), strict=True))
    figure, (top, middle, bottom) = plt.subplots(
        3, 1, figsize=(8, 8.5), height_ratios=(3, 3, 1.7), layout="constrained"
    )
    learner, free, uniform, _ = wealth
    for name, values in wealth.items():
        if name == free:
            continue
        top.plot(values, color=colours[name], linewidth=2.2 if name == learner else 1.2)
        top.annotate(
            name, (DAYS, values[-1]), xytext=(5, 0), textcoords="offset points", color=colours[name], va="center"
        )
    top.set(ylabel="wealth (start = 1)", xlim=(0, DAYS))
    for name in (free, uniform, learner):
        middle.plot(100 * volatility[name], color=colours[name], linewidth=2.2 if name == learner else 1.2)
    middle.plot(100 * limit, color="black", linestyle="--", drawstyle="steps-post")
    middle.annotate("limit", (DAYS, 100 * limit[-1]), xytext=(5, 0), textcoords="offset points", va="center")
    middle.set(ylabel="volatility (% per year)", xlabel="trading day", xlim=(0, DAYS), ylim=(0, None))
    for i, name in enumerate((learner, free, uniform)):
        shares = [100 * flags.mean() for flags in over[name].values()]
        bars = bottom.barh(np.arange(2) + 0.27 * (i - 1), shares, 0.25, color=colours[name])
        bottom.bar_label(bars, [f"{share:.0f} %  {name}" for share in shares], padding=4, fontsize=8)
    bottom.set(yticks=[0, 1], yticklabels=list(over[learner]), xlabel="days over the limit (%)", xlim=(0, 100))
    bottom.invert_yaxis()
    for axes in (top, middle, bottom):
        axes.spines[["top", "right"]].set_visible(False)
    kept = over[learner]["volatility"].mean()
    figure.suptitle(
        f"Limits that move are kept: volatility on all but {kept:.0%} of the days, turnover on every day\n"
        "(returns are made up)",
        fontsize=11,
    )
    FIGURE.parent.mkdir(exist_ok=True)
    figure.savefig(FIGURE, dpi=120)
    print(f"figure: {FIGURE}")


if __name__ == "__main__":
    main()

"""One round as a picture: an animation of a problem in the plane, a panel for each algorithm.

A round has four phases: the action is played; loss and constraint are revealed; a gradient step; the projection. The
first rounds are shown phase by phase, the later ones faster. K and K ∩ {g_t ≤ 0} are drawn by the library's own
projections of far points, so that every set and every constraint can be shown.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt import problems
from cocopt.algorithms import Learner
from cocopt.arrays import Array, ArrayLike, positive_int, scalar
from cocopt.constraints import Affine, Constraint
from cocopt.errors import InfeasibleRound, InvalidInput
from cocopt.experiments.algorithms import Given, resolve
from cocopt.experiments.figures import COLOURS, render
from cocopt.experiments.specs import parse
from cocopt.geometry import project
from cocopt.losses import Distance, Loss
from cocopt.problems import BlockProblem, Problem
from cocopt.sets import Ball, ConvexSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from PIL.Image import Image

__all__ = [
    "FORMATS",
    "Frame",
    "Move",
    "Picture",
    "Scene",
    "Turning",
    "draw",
    "frames",
    "image",
    "pictures",
    "play",
    "show",
]

#: the suffixes of animations that can be written
FORMATS = (".gif", ".png", ".apng", ".webp")
_STEP, _PROJECTION, _K = COLOURS[1], COLOURS[0], "#555555"
_ALLOWED, _FORBIDDEN, _HATCH, _PLAIN, _PAST = "#D6E9F5", "#F6E3D3", "#DDB892", "#F4F4F4", "#8A8A8A"
_SLOW = 3  # so many rounds are shown phase by phase
_WIDTH, _DPI = 7.0, 100.0
_DIRECTIONS = 240  # boundary points that are drawn
_FAR = 20.0  # diameters of K: how far away the points are that are projected onto the boundary


class Turning(BlockProblem):
    """A half-plane turns to and fro in the unit disc, while a target goes round; made for `show`.

        f_t(x) = ½‖x − 1.1 e(0.9 + t/4)‖²,   g_t(x) = ⟨e(φ_t), x⟩ − b_t,   e(φ) = (cos φ, sin φ)

    with φ_t and b_t that change slowly and a little at random; 0 satisfies all constraints. L_f = 2.1, L_g = 1 and
    B = 1.6 hold for every round.

    Examples
    --------
    >>> from cocopt.experiments.show import Turning
    >>> first, count, reveal = next(Turning().blocks(seed=0, trials=[0]))
    >>> reveal(0)
    (Distance(center of shape (1, 2)), Affine(A of shape (1, 1, 2), b of shape (1, 1)))
    """

    name = "turning"
    rounds = 22
    strong_convexity = 1.0
    feasible, static = True, False
    lipschitz_f, lipschitz_g, bound = 2.1, 1.0, 1.6
    K = Ball(0.0, 1.0, dim=2)

    def initial(self, rng: np.random.Generator) -> ArrayLike:
        return [0.1, 0.7]

    def draw(self, rng: np.random.Generator, first: int, count: int) -> tuple[Array, ...]:
        t = np.arange(first, first + count, dtype=np.float64)
        phi = 0.9 + 0.9 * np.sin(0.55 * t) + rng.uniform(-0.35, 0.35, count)
        return 0.9 + 0.25 * t, phi, 0.3 + 0.15 * np.sin(0.4 * t) + rng.uniform(-0.15, 0.15, count)

    def reveal(self, *data: NDArray[Any]) -> tuple[Distance, Affine]:
        angle, phi, b = data
        return Distance(1.1 * _unit(angle)), Affine(_unit(phi)[..., None, :], b[..., None])


def _unit(angle: Array) -> Array:
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


class Move(NamedTuple):
    """What an algorithm did in a round."""

    x: Array  #: x_t
    after: Array  #: x_{t+1}
    target: Array | None  #: x_t − η_t ∇f_t(x_t), if x_{t+1} is its projection; None for another kind of update
    violation: float  #: max(0, g_t(x_t))
    total: float  #: the sum of violations, CCV₁, with this one


class Scene(NamedTuple):
    """All that is drawn."""

    K: ConvexSet
    name: str
    rounds: list[tuple[Loss | None, Constraint | None]]
    moves: dict[str, list[Move]]  #: by the titles of the algorithms
    work: dict[str, str]  #: what an algorithm does in a round, in words


class Frame(NamedTuple):
    """One picture of the animation."""

    round: int  #: from 0 on
    phase: str  #: "play", "reveal", "step" or "project"
    part: float  #: how much of the phase's arrow is drawn, 0 to 1
    seconds: float


def play(problem: Problem, algorithms: Given | Sequence[Given], rounds: int, seed: int = 0) -> Scene:
    """One trial of these algorithms, kept round by round.

    Examples
    --------
    >>> from cocopt.experiments.show import Turning, play
    >>> scene = play(Turning(), ["clasp"], rounds=3)
    >>> [round(move.violation, 3) for move in scene.moves["CLASP"]]
    [0.213, 0.0, 0.214]
    """
    if problem.K.dim != 2 or problem.agents is not None:
        what = f"dimension {problem.K.dim}" if problem.agents is None else "several agents"
        raise InvalidInput(
            f"problem: expected one in the plane, of dimension 2, got {problem.name!r} with {what}; drone, drift and "
            "spiral can be shown, or your own by path/to/file.py:Name"
        )
    if not problem.K.bounded:
        raise InvalidInput(f"problem: expected a bounded K, got {problem.K!r}, which no picture can hold")
    revealed = [
        (_first(loss), _first(constraint))
        for _, count, reveal in problem.blocks(seed, [0], rounds)
        for loss, constraint in map(reveal, range(count))
    ]
    start = problem.start(seed, [0])[0]
    moves, work = {}, {}
    for algorithm in resolve(algorithms):
        learner = algorithm.build(problem, rounds, start)
        moves[algorithm.title] = [_move(learner, loss, constraint) for loss, constraint in revealed]
        work[algorithm.title] = "" if learner.facts is None else learner.facts.oracle
    return Scene(problem.K, problem.name, revealed, moves, work)


def _first(member: Any) -> Any:
    """The only trial of a loss or a constraint."""
    return member.trials_unchecked(0) if member is not None and member.batch else member


def _move(learner: Learner, loss: Loss | None, constraint: Constraint | None) -> Move:
    x = learner.ask()
    record = learner.tell(loss, constraint)
    after, target = learner.ask(), None
    if loss is not None and record.step > 0.0:
        target = x - record.step * loss.gradient(x)
        if not np.allclose(_nearest(learner.K, constraint, target), after, rtol=0.0, atol=1e-6 * learner.K.scale):
            target = None  # another kind of update
    return Move(x, after, target, float(record.violation), float(learner.ledger.ccv1))


def _nearest(K: ConvexSet, constraint: Constraint | None, points: Array) -> Array:
    return K.project(points) if constraint is None else project(K, constraint, points, infeasible="nearest")


def frames(rounds: int, seconds: float = 11.0) -> list[Frame]:
    """The pictures of an animation of about that length: the first rounds slowly, the others in the time that is left.

    Examples
    --------
    >>> from cocopt.experiments.show import frames
    >>> all_frames = frames(rounds=22)
    >>> len(all_frames), round(sum(frame.seconds for frame in all_frames), 1)
    (100, 11.0)
    """
    slow = [("play", 1.0, 4.0), ("reveal", 1.0, 6.0), *_arrow("step", 3, 4.0), *_arrow("project", 3, 5.0)]
    fast = [("reveal", 1.0, 1.2), ("step", 1.0, 1.0), *_arrow("project", 2, 0.6)]
    planned = [(t, *one) for t in range(rounds) for one in (slow if t < _SLOW else fast)]
    planned[-1] = (*planned[-1][:3], 8.0)
    unit = seconds / sum(length for *_, length in planned)
    return [Frame(t, phase, part, max(unit * length, 0.02)) for t, phase, part, length in planned]


def _arrow(phase: str, count: int, hold: float) -> list[tuple[str, float, float]]:
    """An arrow that grows, and stays for a while."""
    return [(phase, (k + 1) / count, 0.7 if k + 1 < count else hold) for k in range(count)]


class Picture(NamedTuple):
    """What a frame is drawn from."""

    scene: Scene
    frame: Frame
    allowed: Array | None  #: the boundary of K ∩ {g_t ≤ 0}; None if that is empty
    border: Array  #: the boundary of K
    values: tuple[Array, Array, Array] | None  #: a grid and the loss on it


def pictures(scene: Scene, chosen: Sequence[Frame]) -> Iterator[Picture]:
    """The frames, with what they show; boundaries are computed once per round."""
    far = _FAR * scene.K.diameter * _unit(np.linspace(0.0, 2.0 * np.pi, _DIRECTIONS, endpoint=False))
    center = scene.moves[next(iter(scene.moves))][0].x
    border, before = scene.K.project(center + far), -1
    low, high = _limits(border)
    allowed: Array | None = border
    values = None
    for frame in chosen:
        if frame.round != before:
            before = frame.round
            loss, constraint = scene.rounds[frame.round]
            try:
                allowed = border if constraint is None else project(scene.K, constraint, center + far)
            except InfeasibleRound:
                allowed = None
            grid = np.stack(np.meshgrid(*np.linspace(low, high, 41).T), axis=-1)
            inside = scene.K.project(grid)
            near = np.linalg.norm(inside - grid, axis=-1) <= 0.1 * scene.K.diameter
            values = None if loss is None else (grid[..., 0], grid[..., 1], np.where(near, loss.value(inside), np.nan))
        yield Picture(scene, frame, allowed, border, values)


def _limits(border: Array) -> tuple[Array, Array]:
    low, high = border.min(axis=0), border.max(axis=0)
    middle, half = (low + high) / 2.0, 0.62 * float(np.max(high - low))
    return middle - half, middle + half


def draw(picture: Picture, drawn: Figure) -> None:
    """A panel and a meter of violations for each algorithm, and a caption."""
    scene, frame, *_ = picture
    count = len(scene.moves)
    drawn.set_layout_engine("none")
    drawn.set_size_inches(_WIDTH, _WIDTH / max(count, 2) + 0.98)
    most = max(moves[-1].total for moves in scene.moves.values()) or 1.0
    for i, (title, moves) in enumerate(scene.moves.items()):
        left, width = 0.02 + 0.96 * i / count, 0.96 / count - 0.02
        move = moves[frame.round]
        axes = drawn.add_axes((left, 0.235, width, 0.64))
        _panel(axes, picture, moves)
        axes.set_title(title, fontsize=13, fontweight="bold", pad=14)
        axes.text(
            0.5,
            1.015,
            scene.work[title].replace("g_t", "gₜ"),
            transform=axes.transAxes,
            ha="center",
            va="bottom",
            fontsize=8.5,
        )
        seen = frame.phase != "play"
        before = move.total - move.violation
        meter = drawn.add_axes((left + 0.015, 0.165, width - 0.03, 0.03))
        meter.barh(0, before, color=_PAST)
        meter.barh(0, move.violation if seen else 0.0, left=before, color=_STEP)
        meter.set(xlim=(0.0, 1.05 * most), xticks=[], yticks=[], facecolor=_PLAIN)
        meter.spines[:].set_visible(False)
        now = f", now {move.violation:.2f}" if seen else ""
        text = f"violation so far {move.total if seen else before:.2f}{now}"
        meter.text(0.0, -0.35, text, transform=meter.transAxes, va="top", fontsize=9.5)
    colour = {"step": _STEP, "project": _PROJECTION}.get(frame.phase if frame.round < _SLOW else "", "black")
    drawn.text(0.5, 0.025, _caption(frame), ha="center", va="bottom", fontsize=12, color=colour)


def _caption(frame: Frame) -> str:
    t = frame.round + 1
    words = {
        "play": "the action is played (black dot)",
        "reveal": "loss (lines) and constraint (shaded: not allowed) are revealed",
        "step": "a step against the gradient",
        "project": "the projection: the next action (white dot)",
    }
    return f"Round {t}: {words[frame.phase]}" if frame.round < _SLOW else f"Round {t}"


def _panel(axes: Axes, picture: Picture, moves: Sequence[Move]) -> None:
    """K, the constraint, the trail and the arrows of one algorithm."""
    _, frame, allowed, border, values = picture
    low, high = _limits(border)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal", xticks=[], yticks=[])
    axes.grid(False)
    axes.spines[:].set_visible(False)
    move, revealed = moves[frame.round], frame.phase != "play"
    (shape,) = axes.fill(*border.T, facecolor=_FORBIDDEN if revealed else _PLAIN, edgecolor="none", zorder=1)
    if revealed:
        axes.fill(*border.T, facecolor="none", edgecolor=_HATCH, hatch="///", linewidth=0.0, zorder=1.1)
        if allowed is not None:
            axes.fill(*allowed.T, facecolor=_ALLOWED, edgecolor=_PROJECTION, linewidth=1.2, zorder=1.2)
        if values is not None:
            lines = axes.contour(*values, levels=7, colors="#9A9A9A", linewidths=0.5, zorder=1.3)
            lines.set_clip_path(shape)
    axes.plot(*np.append(border, border[:1], axis=0).T, color=_K, linewidth=1.6, zorder=1.4)
    corner = border[np.argmax(border @ [0.75, -1.0])]
    axes.annotate("K", corner, xytext=(7, -8), textcoords="offset points", fontsize=12, color=_K, fontstyle="italic")
    trail = np.array([one.x for one in moves[: frame.round + 1]])
    axes.plot(*trail[-9:].T, color="black", linewidth=1.0, alpha=0.45, marker="o", markersize=3, zorder=2)
    if revealed and move.violation > 0.0:
        axes.plot(*move.x, marker="o", markersize=15, markerfacecolor="none", markeredgecolor=_STEP, zorder=2.4)
    if frame.phase in ("step", "project"):
        _arrows(axes, frame, move)
    axes.plot(*move.x, marker="o", markersize=7.5, color="black", zorder=3)


def _arrows(axes: Axes, frame: Frame, move: Move) -> None:
    """The gradient step and the projection; one arrow for an update of another kind."""
    legs = [(move.x, move.after, _STEP)]
    if move.target is not None:
        legs = [(move.x, move.target, _STEP), (move.target, move.after, _PROJECTION)]
    shown = 1 if frame.phase == "step" else len(legs)
    for k, (tail, head, colour) in enumerate(legs[:shown]):
        moving = k == shown - 1 and (frame.phase == "step") == (k == 0)
        end = tail + (frame.part if moving else 1.0) * (head - tail)
        style = {"arrowstyle": "-|>", "color": colour, "linewidth": 2.2, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", tuple(end), tuple(tail), arrowprops={**style, "mutation_scale": 13}, zorder=2.8)
    if frame.phase == "project" and frame.part == 1.0:
        axes.plot(*move.after, marker="o", markersize=6.5, markerfacecolor="white", markeredgecolor="black", zorder=3.2)


def image(drawn: Figure, dpi: float = _DPI) -> Image:
    """A figure as a picture of RGB pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    drawn.set_dpi(dpi)
    canvas = FigureCanvasAgg(drawn)
    canvas.draw()  # type: ignore[no-untyped-call]
    pixels = np.asarray(canvas.buffer_rgba())  # type: ignore[no-untyped-call]
    return Image.fromarray(pixels).convert("RGB")


def show(
    problem: str | Problem = "turning",
    algorithms: Given | Sequence[Given] = ("clasp", "adagrad"),
    rounds: int | None = None,
    seed: int = 0,
    out: str | os.PathLike[str] = "show.gif",
    *,
    seconds: float = 11.0,
    dpi: float = _DPI,
) -> Path:
    """Writes an animation of a problem in the plane, a panel for each algorithm; returns the file.

    Parameters
    ----------
    problem : str or Problem
        ``turning``, which is made for it, or any problem of dimension 2: a name, path/to/file.py:Name, or an object.
    algorithms : descriptions as for `cocopt.run`, one to three
    rounds : int, optional
        Default: 22, or the problem's own number if that is smaller.
    seed : int
    out : path
        Its suffix says the format: .gif, .webp, or .png and .apng for animated PNG.
    seconds : float
        The length of the animation, about.
    dpi : float
        100 makes it 700 pixels wide.

    Examples
    --------
    >>> from cocopt.experiments.show import show
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     show(rounds=1, out=pathlib.Path(folder, "round.gif"), dpi=20).stat().st_size > 1000
    True
    """
    path = Path(out)
    if path.suffix.lower() not in FORMATS:
        raise InvalidInput(f"out: expected a file name that ends in {', '.join(FORMATS)}, got {path.name!r}")
    chosen = _problem(problem)
    horizon = positive_int("rounds", min(chosen.rounds, Turning.rounds) if rounds is None else rounds, at_most=200)
    scene = play(chosen, algorithms, horizon, seed)
    if len(scene.moves) > 3:
        raise InvalidInput(f"algorithms: expected one to three, which fit beside one another, got {len(scene.moves)}")
    planned = frames(horizon, scalar("seconds", seconds, positive=True))
    size = scalar("dpi", dpi, positive=True)
    images = [image(render(draw, picture, "show"), size) for picture in pictures(scene, planned)]
    _write(path, images, [round(1000 * frame.seconds) for frame in planned])
    return path


def _problem(given: str | Problem) -> Problem:
    if isinstance(given, Problem):
        return given
    spec, *others = parse(given)
    if others:
        raise InvalidInput(f"problem: expected one, got {given!r}, which stands for {1 + len(others)}")
    return Turning() if spec == (Turning.name, {}) else problems.get(spec.target, **spec.options)


def _write(path: Path, pictures: list[Image], milliseconds: list[int]) -> None:
    """Writes under a temporary name, and renames; a GIF has one palette, so that still parts take no space."""
    from PIL import Image

    suffix = path.suffix.lower()
    if suffix == ".gif":
        palette = _palette(pictures)
        pictures = [one.quantize(palette=palette, dither=Image.Dither.NONE) for one in pictures]
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    kind = {".gif": "GIF", ".webp": "WEBP"}.get(suffix, "PNG")
    settings: dict[str, Any] = {"optimize": False} if kind == "GIF" else {}
    try:
        first, *others = pictures
        first.save(temporary, kind, save_all=True, append_images=others, duration=milliseconds, loop=0, **settings)
        os.replace(temporary, path)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        raise InvalidInput(f"out: expected a file that can be written, got {path}: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _palette(pictures: Sequence[Image]) -> Image:
    """64 colours for all pictures; the few large ones are sure to be among them."""
    from PIL import Image, ImageColor

    own = (_STEP, _PROJECTION, _K, _ALLOWED, _FORBIDDEN, _HATCH, _PLAIN, _PAST, "#000000", "#FFFFFF")
    width, height = pictures[0].size
    sample = Image.new("RGB", (3 * width, height + 10 * len(own)))
    for k in range(3):
        sample.paste(pictures[k * (len(pictures) - 1) // 2], (k * width, 0))
    for k, colour in enumerate(own):
        sample.paste(ImageColor.getrgb(colour), (0, height + 10 * k, 3 * width, height + 10 * (k + 1)))
    return sample.quantize(64, dither=Image.Dither.NONE)

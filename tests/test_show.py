"""The animation of rounds in the plane: what is drawn is what was played."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from cocopt import Box, Space, constraints, losses, problems
from cocopt.cli import app
from cocopt.errors import InvalidInput
from cocopt.experiments.figures import render
from cocopt.experiments.show import Frame, Turning, draw, frames, image, pictures, play, show


@pytest.fixture(scope="module")
def scene():
    return play(Turning(), ["clasp", "adagrad"], rounds=8, seed=3)


def test_moves_are_the_rounds_of_clasp(scene) -> None:
    """x_{t+1} is the projection of the step: no allowed point makes an acute angle with what is left of it."""
    z = np.random.default_rng(0).uniform(-1.0, 1.0, (20_000, 2))
    z = z[(z**2).sum(axis=1) <= 1.0]
    total = 0.0
    for t, (move, (loss, constraint)) in enumerate(zip(scene.moves["CLASP"], scene.rounds, strict=True), start=1):
        center, normal, b = loss.parameters()["center"], constraint.A[0], constraint.b[0]
        assert np.allclose(move.target, move.x - (move.x - center) / np.sqrt(t))
        assert np.linalg.norm(move.after) <= 1.0 + 1e-9
        assert normal @ move.after <= b + 1e-9
        allowed = z[z @ normal <= b]
        assert np.max((allowed - move.after) @ (move.target - move.after)) <= 1e-9
        total += max(0.0, normal @ move.x - b)
        assert np.isclose(move.total, total)
    assert total > 0.0


def test_another_kind_of_update_has_no_target(scene) -> None:
    moves = scene.moves["AdaGrad"]
    assert any(move.target is None for move in moves)
    assert all(np.array_equal(one.after, two.x) for one, two in pairwise(moves))


def test_the_allowed_region_isdrawn(scene) -> None:
    """The polygon that is drawn has the area of the disc without its segment."""
    for picture in pictures(scene, [Frame(t, "reveal", 1.0, 1.0) for t in range(8)]):
        b = float(scene.rounds[picture.frame.round][1].b[0])
        x, y = picture.allowed.T
        area = 0.5 * abs(float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))))
        assert np.isclose(area, np.pi - np.arccos(b) + b * np.sqrt(1 - b**2), rtol=2e-3)


def test_an_empty_region_isdrawn_as_such() -> None:
    class Empty(problems.Problem):
        K = Box(0.0, 1.0, dim=2)
        rounds = 1

        def round(self, rng, t):
            return None, constraints.Affine([1.0, 0.0], -1.0)

    scene = play(Empty(), ["clasp:infeasible=nearest"], rounds=1)
    (picture,) = pictures(scene, [Frame(0, "project", 1.0, 1.0)])
    assert picture.allowed is None
    assert picture.values is None
    shown = np.asarray(image(render(draw, picture, "show"), 20.0))
    assert shown.shape == (89, 140, 3)


def test_a_round_without_a_constraint_allows_all_of_k() -> None:
    class Free(problems.Problem):
        K = Box(0.0, 1.0, dim=2)
        rounds = 1

        def round(self, rng, t):
            return losses.Linear([1.0, 1.0]), None

    scene = play(Free(), ["clasp"], rounds=1)
    (picture,) = pictures(scene, [Frame(0, "step", 1.0, 1.0)])
    assert np.array_equal(picture.allowed, picture.border)
    assert np.array_equal(scene.moves["CLASP"][0].target, [-1.0, -1.0])


def lengths(path: Path) -> list[int]:
    """The milliseconds of each picture in a file."""
    found = []
    with Image.open(path) as shown:
        for k in range(shown.n_frames):
            shown.seek(k)
            found.append(shown.info["duration"])
    return found


def test_an_animation_is_the_same_every_time(tmp_path: Path) -> None:
    one, two = (show(rounds=1, out=tmp_path / f"{k}.gif", seconds=2.0, dpi=15.0) for k in range(2))
    assert one.read_bytes() == two.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.gif", "1.gif"]
    assert abs(sum(lengths(one)) - 2000) <= 10 * len(lengths(one))  # a GIF counts hundredths


def test_an_animated_png(tmp_path: Path) -> None:
    path = show(algorithms="clasp", rounds=1, out=tmp_path / "one.png", seconds=2.0, dpi=10.0)
    assert abs(sum(lengths(path)) - 2000) <= len(lengths(path))


def test_frames_take_the_time_that_is_asked_for() -> None:
    planned = frames(rounds=30, seconds=9.0)
    assert abs(sum(frame.seconds for frame in planned) - 9.0) < 1e-9
    assert {frame.round for frame in planned} == set(range(30))


def test_errors_say_what_can_be_shown(tmp_path: Path) -> None:
    class Unbounded(problems.Problem):
        K = Space(2)
        rounds = 1

    for arguments, message in (
        ({"problem": "olr"}, "problem: expected one in the plane, of dimension 2, got 'olr' with dimension 10"),
        ({"problem": Unbounded()}, "problem: expected a bounded K"),
        ({"problem": "spiral:rounds=5|6"}, "problem: expected one, got 'spiral:rounds=5|6', which stands for 2"),
        ({"out": "x.mp4"}, r"out: expected a file name that ends in .gif, .*, got 'x.mp4'"),
        ({"out": tmp_path / "no" / "x.gif", "dpi": 10.0}, "out: expected a file that can be written"),
        ({"algorithms": "clasp:scale=1|2|3|4"}, "algorithms: expected one to three"),
        ({"rounds": 0}, "rounds: expected a positive integer"),
    ):
        with pytest.raises(InvalidInput, match=message):
            show(**{"rounds": 1, **arguments})


def test_the_command(tmp_path: Path) -> None:
    out = tmp_path / "drone.gif"
    done = CliRunner().invoke(app, ["show", "--problem", "drone", "-a", "clasp", "--rounds", "1", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert f"The animation is in {out}." in done.output.replace("\n", "")
    with Image.open(out) as shown:
        assert shown.size == (700, 448)
    assert CliRunner().invoke(app, ["show", "--problem", "olr"]).exit_code == 2

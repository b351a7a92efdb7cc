"""A CLASP that is saved and loaded goes on bit for bit, whatever its options; files that cannot be used say why."""

from __future__ import annotations

import gc
import itertools
import json
import signal
import subprocess
import sys
import textwrap
import tracemalloc
import zipfile

import cvxpy as cp
import numpy as np
import pytest
from instances import CURVED, SETS, build, build_set, random_constraint, random_set, stacked
from streams import LOSSES, RULES, build_loss, build_steps, content, random_loss

import cocopt
from cocopt import CLASP, Ball, Box, constraints, losses, state, steps
from cocopt.errors import InvalidInput, StateError

ROUNDS = 24


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.npz"


def random_rounds(K, z, constraint, batch, rng):
    """Arguments of tell: now and then only one half, another action than the one asked for, an infeasible round."""
    for t in range(ROUNDS):
        count = batch or 1
        fs = [random_loss(LOSSES[t % len(LOSSES)], z, rng) for _ in range(count)]
        gs = [random_constraint(constraint, z, rng, slack=0.02) for _ in range(count)]
        f, g = (stacked(fs), stacked(gs)) if batch else (fs[0], gs[0])
        arguments = {"loss": None if t % 7 == 3 else build_loss(f), "constraint": None if t % 7 == 5 else build(g)}
        if t % 8 == 6:
            shape = (batch, len(z)) if batch else z.shape
            arguments["played"] = K.project(z + 0.1 * rng.normal(size=shape))
        yield arguments


def check_resume(path, kind="Box", constraint="rows", batch=None, supplied=None, seed=0, **options):
    rng, options = np.random.default_rng(seed), {"steps": "power"} | options
    K, z = random_set(kind, 3, rng)
    K = build_set(K)
    start = K.project(z + 0.1 * rng.normal(size=(batch, 3))) if batch else z
    rounds = list(random_rounds(K, z, constraint, batch, rng))
    whole, first = CLASP(K, start=start, **options), CLASP(K, start=start, **options)
    for arguments in rounds[: ROUNDS // 2]:
        whole.tell(**arguments)
        first.tell(**arguments)
    first.save(path)
    resumed = cocopt.load(path, **(supplied or {}))
    assert type(resumed) is CLASP
    assert content(resumed, path) == content(first, path)
    for arguments in rounds[ROUNDS // 2 :]:
        np.testing.assert_array_equal(resumed.ask(), whole.ask())
        record, expected = resumed.tell(**arguments), whole.tell(**arguments)
        for one, other in zip(record, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    assert content(resumed, path) == content(whole, path)


# of curved constraints that are all remembered a single stream will do in the fast run
REMEMBERED = [
    pytest.param(*case, marks=pytest.mark.slow if case[:2] == ("Stack", None) and case[3] else ())
    for case in itertools.product(["rows", "Stack"], [1, 3, None], ["all", "worst"], [None, 3])
]


@pytest.mark.parametrize(("constraint", "window", "rows", "batch"), REMEMBERED)
def test_rows_and_windows(path, constraint, window, rows, batch):
    check_resume(path, constraint=constraint, window=window, rows=rows, batch=batch)


@pytest.mark.parametrize("batch", [None, 3])
@pytest.mark.parametrize("rule", RULES)
def test_steps(path, rule, batch):
    schedule = build_steps(RULES[rule])
    supplied = {"steps": schedule} if rule == "callable" else {}
    check_resume(path, steps=schedule, supplied=supplied, batch=batch)


@pytest.mark.parametrize("kind", SETS)
def test_sets(path, kind):
    check_resume(path, kind=kind, seed=4)


@pytest.mark.parametrize("kind", ["Ball", "Simplex"])
@pytest.mark.parametrize("constraint", CURVED)
def test_constraints_in_a_window(path, kind, constraint):
    check_resume(path, kind=kind, constraint=constraint, window=2, seed=2)


@pytest.mark.parametrize("constraint", ["Function", "from_cvxpy"])
def test_black_boxes_need_no_place_in_a_file_without_a_window(path, constraint):
    check_resume(path, constraint=constraint)


@pytest.mark.parametrize("window", [1, 3])
def test_infeasible_rounds(path, window):
    K = Box(0.0, 1.0, dim=2)
    rng = np.random.default_rng(0)
    whole, half = (CLASP(K, start=np.zeros((4, 2)), infeasible="nearest", window=window) for _ in range(2))
    for t in range(12):
        f = losses.Linear(rng.normal(size=(4, 2)))
        g = constraints.Affine(rng.uniform(0, 1, (4, 3, 2)), rng.uniform(-0.2, 1.0, (4, 3)))
        if t == 6:
            half.save(path)
            half = cocopt.load(path)
        whole.tell(f, g)
        half.tell(f, g)
    assert whole.ledger.infeasible_rounds.any()
    assert not whole.certificate().valid.all()
    assert content(whole, path) == content(half, path)


def test_before_the_first_round(path):
    learner = CLASP(Ball(0.0, 1.0, dim=2), start=[0.5, 0.0], window=None)
    learner.save(path)
    assert content(cocopt.load(path), path) == content(learner, path)


# ---------------------------------------------------------------- what must be passed again


class Stranger(Box):
    """A set that is not registered."""


def test_what_cannot_be_stored_is_named_and_passed_again(path):
    K, rule = Stranger(0.0, 1.0, dim=2), lambda t: 1 / t
    CLASP(K, start=[0.5, 0.5], steps=rule).save(path)
    with pytest.raises(StateError, match=r"K: expected as an argument.*cocopt\.load\(path, K=\.\.\.\)"):
        cocopt.load(path)
    with pytest.raises(StateError, match=r"steps: expected as an argument"):
        cocopt.load(path, K=K)
    learner = cocopt.load(path, K=K, steps=rule)
    assert learner.K is K
    assert learner.steps == steps.Function(rule)
    with pytest.raises(InvalidInput, match="K: expected dimension 2 as that of the stored state, got 3"):
        cocopt.load(path, K=Box(0.0, 1.0, dim=3), steps=rule)


@pytest.mark.parametrize(
    ("name", "message"),
    [("windows", "expected nothing to be passed, got an unknown name"), ("window", "got one that the file contains")],
)
def test_what_is_not_asked_for_is_refused(path, name, message):
    CLASP(Box(0.0, 1.0, dim=2)).save(path)
    with pytest.raises(InvalidInput, match=f"{name}: .*{message}"):
        cocopt.load(path, **{name: 3})


@pytest.mark.parametrize("window", [2, None])
@pytest.mark.parametrize("constraint", ["Function", "from_cvxpy"])
def test_a_window_of_black_boxes_cannot_be_saved(path, constraint, window):
    z, variable = np.full(2, 0.5), cp.Variable(2)
    learner = CLASP(Box(0.0, 1.0, dim=2), start=z, window=window)
    learner.save(path)
    before = path.read_bytes()
    if constraint == "from_cvxpy":  # an expression that is none of our classes
        g = constraints.from_cvxpy(cp.log_sum_exp(variable) <= 1.3, variable)
    else:
        g = build(random_constraint(constraint, z, np.random.default_rng(0), slack=0.1))
    learner.tell(None, g)
    with pytest.raises(TypeError, match=r"(?s)the learner remembers what cannot be stored: .*window=1"):
        learner.save(path)
    assert path.read_bytes() == before


# ---------------------------------------------------------------- files that cannot be used


@pytest.fixture
def stored(path):
    learner = CLASP(Box(0.0, 1.0, dim=2), start=[0.5, 0.5], window=2)
    learner.tell(losses.Linear([1.0, 0.0]), constraints.Affine([1.0, 1.0], 0.7))
    learner.save(path)
    return path


def rewrite(path, change):
    """The archive with one of its members changed."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def test_truncated_files(stored):
    whole = stored.read_bytes()
    for size in range(1, len(whole), 97):
        stored.write_bytes(whole[:size])
        with pytest.raises(StateError, match=r"truncated or damaged|something else"):
            cocopt.load(stored)


def test_foreign_files(path):
    path.write_text("buy milk")
    with pytest.raises(StateError, match="expected a cocopt state file"):
        cocopt.load(path)
    np.savez(path, x=np.zeros(2))
    with pytest.raises(StateError, match="expected a cocopt state file"):
        cocopt.load(path)


def test_tampered_files(stored):
    def change(members):
        members["x.npy"] = members["x.npy"][:-1] + bytes([members["x.npy"][-1] ^ 1])

    rewrite(stored, change)
    with pytest.raises(StateError, match="the file was changed since"):
        cocopt.load(stored)


def test_newer_files(stored):
    def change(members):
        envelope = json.loads(members["cocopt.json"])
        members["cocopt.json"] = json.dumps(envelope | {"version": 99, "cocopt": "9.9"}).encode()

    rewrite(stored, change)
    with pytest.raises(StateError, match=r"got format 99 of cocopt 9\.9: upgrade"):
        cocopt.load(stored)


@pytest.mark.parametrize("missing", ["x", "parameters.K.lower", "ledger.sums"])
def test_states_that_lack_something(stored, missing):
    header, arrays = state.read(stored)
    del arrays[missing]
    state.write(stored, header, arrays)
    with pytest.raises(StateError, match="expected the description of a value, got dict"):
        cocopt.load(stored)


def test_a_learner_killed_while_it_saves(path):
    """Whenever the process dies, the file holds one whole state, and never an older one than was last complete."""
    script = """
        import os, random, signal, sys, time
        import numpy as np
        import cocopt
        from cocopt import CLASP, Box, constraints, losses

        path = sys.argv[1]
        CLASP(Box(0.0, 1.0, dim=50), start=np.full((20, 50), 0.5), window=3).save(path)
        f, g = losses.Linear(np.ones(50)), constraints.Affine(np.ones(50), 10.0)
        random.seed(0)
        cocopt.load(path).tell(f, g)  # kernels are compiled before the clock runs
        last = 0
        for _ in range(15):
            child = os.fork()
            if child == 0:
                learner = cocopt.load(path)
                while True:
                    learner.tell(f, g)
                    learner.save(path)
            time.sleep(random.uniform(0.02, 0.1))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            learner = cocopt.load(path)
            assert learner.t == learner.ledger.rounds >= last
            last = learner.t
        print(last)
        """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(path)], capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 0


def test_killed_before_the_new_file_takes_its_place(stored):
    before = stored.read_bytes()
    script = """
        import os, signal, sys
        import cocopt
        from cocopt import losses

        learner = cocopt.load(sys.argv[1])
        learner.tell(losses.Linear([1.0, 0.0]))
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        learner.save(sys.argv[1])
        """
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(script), str(stored)], timeout=300)
    assert result.returncode == -signal.SIGKILL
    assert stored.read_bytes() == before
    assert cocopt.load(stored).t == 1


# ---------------------------------------------------------------- memory


@pytest.mark.parametrize("window", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_memory_does_not_grow(path, window):
    learner = CLASP(Box(0.0, 1.0, dim=2), start=[0.5, 0.5], window=window, rows="worst")
    f = [losses.Linear(c) for c in np.random.default_rng(0).normal(size=(64, 2))]
    g = [constraints.Affine([[1.0, 0.5], [0.2, 1.0]], [b, 0.8]) for b in np.linspace(0.5, 1.0, 64)]

    def play(rounds):
        for t in range(rounds):
            learner.tell(f[t % 64], g[t % 64])
        gc.collect()

    play(200)
    learner.save(path)
    size = path.stat().st_size
    blocks = sys.getallocatedblocks()
    play(100_000 if window == 1 else 20_000)
    assert sys.getallocatedblocks() - blocks < 1000  # objects: not one in twenty rounds
    tracemalloc.start()
    try:
        play(2000)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 20_000  # bytes: not ten a round
    learner.save(path)
    assert abs(path.stat().st_size - size) < 100


def test_a_stored_set_cannot_be_exchanged(tmp_path):
    """Else the certificate would go on with the diameter of another K, and prove what is false."""
    path = tmp_path / "state.npz"
    CLASP(Box(0.0, 1.0, dim=1)).save(path)
    with pytest.raises(InvalidInput, match=r"K: .*one that the file contains"):
        cocopt.load(path, K=Box(0.0, 1e4, dim=1))

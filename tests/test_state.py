"""State files: whole or refused, and never executed."""

import errno
import io
import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import textwrap
import zipfile
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import cocopt
from cocopt import CLASP, constraints, losses, register, sets, state, steps
from cocopt.errors import InvalidInput, StateError

HEADER = {"algorithm": "Dummy", "t": 3, "nested": {"list": [1, 2.5, None, "é"]}}
ARRAYS = {
    "x": np.array([0.1, -0.0, np.nan, np.inf]),
    "ledger/sums": np.arange(12.0).reshape(3, 4)[:, ::2],
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "count": np.array(7),
    "mode": np.array("hist"),
    "mask": np.array([True, False]),
    "none": np.zeros((0, 5)),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.npz"


def same(one, other):
    return one[0] == other[0] and all(
        np.array_equal(one[1][k], other[1][k], equal_nan=one[1][k].dtype.kind == "f") for k in {*one[1], *other[1]}
    )


# ---------------------------------------------------------------- files


def test_what_is_written_is_read(path):
    state.write(path, HEADER, ARRAYS)
    header, arrays = state.read(str(path))
    assert header == HEADER
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        assert arrays[name].tobytes() == array.tobytes()
    assert os.listdir(path.parent) == ["state.npz"]


def test_the_same_state_is_the_same_file_at_any_time(path, monkeypatch):
    files = []
    for year in (2001, 2026):
        monkeypatch.setattr(zipfile.time, "localtime", lambda *_, year=year: (year, 1, 2, 3, 4, 5, 0, 0, 0))
        state.write(path, HEADER, ARRAYS)
        files.append(path.read_bytes())
    assert files[0] == files[1]


def test_the_file_is_an_ordinary_npz(path):
    state.write(path, HEADER, {"x": np.arange(3.0)})
    with np.load(path, allow_pickle=False) as file:
        np.testing.assert_array_equal(file["x"], [0.0, 1.0, 2.0])


def test_headers_come_back_as_json_has_them(path):
    state.write(path, {"a": (1, 2), 2: "two", 10: "ten"}, {})
    assert state.read(path) == ({"a": [1, 2], "2": "two", "10": "ten"}, {})


def test_mode_and_symbolic_link_survive(path):
    state.write(path, HEADER, {})
    os.chmod(path, 0o600)
    link = path.with_name("link.npz")
    link.symlink_to(path)
    state.write(link, {"t": 4}, {})
    assert link.is_symlink()
    assert state.read(path)[0] == {"t": 4}
    assert path.stat().st_mode & 0o777 == 0o600


def test_missing_file_and_folder(path):
    with pytest.raises(FileNotFoundError):
        state.read(path)
    with pytest.raises(FileNotFoundError):
        state.write(path.parent / "nowhere" / "state.npz", HEADER, {})


@pytest.mark.parametrize("content", [b"buy milk", b"\x89PNG\r\n\x1a\n" + bytes(50), b"{}", b"P"])
def test_foreign_files(path, content):
    path.write_bytes(content)
    with pytest.raises(StateError, match=r"state\.npz: expected a (cocopt|whole) state file, got"):
        state.read(path)


def test_foreign_npz(path):
    np.savez(path, x=np.zeros(3))
    with pytest.raises(StateError, match="expected a cocopt state file, got something else"):
        state.read(path)
    rewrite(path, {"cocopt.json": json.dumps({"format": "other"}).encode()})
    with pytest.raises(StateError, match="expected a cocopt state file, got something else"):
        state.read(path)


def test_every_truncation_is_noticed(path):
    state.write(path, HEADER, ARRAYS)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(StateError, match="truncated or damaged"):
            state.read(path)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_every_changed_byte_is_noticed_or_harmless(tmp_path, data):
    path = tmp_path / "state.npz"
    state.write(path, HEADER, ARRAYS)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    try:
        got = state.read(path)
    except StateError:
        return
    assert same(got, (HEADER, ARRAYS))  # such as a time stamp inside the archive


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path, content):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def tampered_header(content):
    envelope = json.loads(content["cocopt.json"])
    envelope["header"]["t"] = 4
    return {**content, "cocopt.json": json.dumps(envelope).encode()}


@pytest.mark.parametrize(
    "change",
    [
        lambda content: {**content, "x.npy": npy(np.array([0.2, -0.0, np.nan, np.inf]))},
        lambda content: {**content, "x.npy": npy(np.array([0.1, 0.0, np.nan, np.inf]))},  # the sign of a zero
        lambda content: {**content, "x.npy": npy(ARRAYS["x"].reshape(2, 2))},
        lambda content: {**content, "count.npy": npy(np.array(7, dtype=np.uint64))},
        lambda content: {**content, "more.npy": npy(np.zeros(1))},
        lambda content: {name: data for name, data in content.items() if name != "x.npy"},
        tampered_header,
    ],
)
def test_tampering_with_a_valid_archive_is_noticed(path, change):
    state.write(path, HEADER, ARRAYS)
    rewrite(path, members(path))
    assert same(state.read(path), (HEADER, ARRAYS))  # packing it anew is no tampering
    rewrite(path, change(members(path)))
    with pytest.raises(StateError, match="the file was changed since"):
        state.read(path)


class Bomb:
    exploded = False

    def __reduce__(self):
        return setattr, (Bomb, "exploded", True)


def test_nothing_is_unpickled(path):
    state.write(path, HEADER, {"x": np.zeros(1)})
    buffer = io.BytesIO()
    np.save(buffer, np.array([Bomb()], dtype=object), allow_pickle=True)
    rewrite(path, {**members(path), "x.npy": buffer.getvalue()})
    with pytest.raises(StateError, match="damaged"):
        state.read(path)
    rewrite(path, {**members(path), "x.npy": pickle.dumps(Bomb())})
    with pytest.raises(StateError, match="damaged"):
        state.read(path)
    assert not Bomb.exploded
    with pytest.raises(InvalidInput, match="x: expected an array of plain numbers, got an array of object"):
        state.write(path, HEADER, {"x": np.array([Bomb()], dtype=object)})


def test_a_newer_format_asks_for_an_upgrade(path, monkeypatch):
    monkeypatch.setattr(state, "VERSION", 4)
    monkeypatch.setattr(cocopt, "__version__", "9.9")
    state.write(path, HEADER, ARRAYS)
    monkeypatch.undo()
    with pytest.raises(StateError, match=r"format 3 or older, got format 4 of cocopt 9\.9: upgrade cocopt"):
        state.read(path)


# ---------------------------------------------------------------- crashes


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(path, monkeypatch, failing):
    state.write(path, HEADER, ARRAYS)

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(OSError, match="No space left on device"):
        state.write(path, {"t": 4}, {})
    monkeypatch.undo()
    assert same(state.read(path), (HEADER, ARRAYS))
    assert os.listdir(path.parent) == ["state.npz"]


def test_a_file_that_may_not_grow_leaves_the_old_one(path):
    state.write(path, HEADER, {})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            state.write(path, HEADER, {"x": np.zeros(100_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert state.read(path) == (HEADER, {})
    assert os.listdir(path.parent) == ["state.npz"]


def run(script, *arguments):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize(
    ("call", "before", "survivor"), [("fsync", True, 3), ("replace", True, 3), ("replace", False, 4)]
)
def test_killed_at_a_certain_point(path, call, before, survivor):
    state.write(path, {"t": 3}, {"x": np.full(1000, 3.0)})
    killed = run(
        """
        import os, signal, sys
        import numpy as np
        from cocopt import state

        path, call, before = sys.argv[1], sys.argv[2], sys.argv[3] == "True"
        real = getattr(os, call)

        def dying(*arguments):
            if not before:
                real(*arguments)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(os, call, dying)
        state.write(path, {"t": 4}, {"x": np.full(1000, 4.0)})
        """,
        path,
        call,
        before,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    header, arrays = state.read(path)
    assert header == {"t": survivor}
    np.testing.assert_array_equal(arrays["x"], np.full(1000, float(survivor)))


def test_killed_at_any_time(path):
    result = run(
        """
        import itertools, os, random, signal, sys, time
        import numpy as np
        from cocopt import state

        path = sys.argv[1]
        state.write(path, {"t": 0}, {"x": np.zeros(20_000)})
        random.seed(0)
        last = 0
        for _ in range(40):
            child = os.fork()
            if child == 0:
                for t in itertools.count(last + 1):
                    state.write(path, {"t": t}, {"x": np.full(20_000, float(t))})
            time.sleep(random.uniform(0.001, 0.03))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            header, arrays = state.read(path)
            assert header["t"] >= last
            assert (arrays["x"] == header["t"]).all()
            last = header["t"]
        print(last)
        """,
        path,
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 0


# ---------------------------------------------------------------- classes

STORABLE = [
    sets.Box(0.0, np.array([1.0, np.inf])),
    sets.Ball([0.1, 0.2], 1.5),
    sets.Simplex(3, total=2.0),
    sets.Halfspace([1.0, 2.0], 3.0),
    sets.Polyhedron([[1.0, 0.0], [-1.0, 0.3]], [1.0, 0.1]),
    sets.L1Ball([0.0, 1.0], 2.0),
    sets.Ellipsoid([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]]),
    sets.Product([sets.Box(0.0, 1.0, dim=2), sets.Product([sets.Simplex(2), sets.Ball(0.0, 1.0, dim=1)])]),
    steps.Power(0.3, 2.0),
    steps.StronglyConvex(0.1),
    steps.Constant(1 / 3),
    steps.Adaptive(2.0, 0.7),
    losses.Quadratic(np.eye(2), np.ones(2), 1.0),
    constraints.Stack([constraints.Affine([1.0, 2.0], 3.0), constraints.NormBall([0.0, 1.0], 2.0)]),
    constraints.NormBall([[0.0, 1.0]], 2.0).select(0),
]


def equal(one, other):
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[k], other[k]) for k in one)
    if hasattr(one, "parameters"):
        mine, theirs = one.parameters(), other.parameters()
        return (
            type(one) is type(other) and mine.keys() == theirs.keys() and all(equal(mine[k], theirs[k]) for k in mine)
        )
    return one == other


@pytest.mark.parametrize("thing", STORABLE, ids=lambda thing: type(thing).__name__)
def test_objects_of_registered_classes_survive_a_file(path, thing):
    spec, arrays = state.encode(thing, "thing")
    assert all(name.startswith("thing.") for name in arrays)
    state.write(path, {"spec": spec}, arrays)
    header, arrays = state.read(path)
    decoder = state.Decoder(arrays)
    assert equal(decoder.decode(header["spec"]), thing)
    decoder.finish()


class Stranger(sets.Box):
    """A set that is not registered."""


@pytest.mark.parametrize(
    "thing",
    [
        steps.Function(lambda t: 1 / t),
        losses.Function(lambda x: 0.0, lambda x: x),
        Stranger(0.0, 1.0, dim=2),
        sets.Product([sets.Simplex(2), Stranger(0.0, 1.0, dim=2)]),
        lambda t: 1 / t,
        object(),
        {1: 2},
        1j,
        np.array([None]),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_what_cannot_be_stored_is_a_type_error(thing):
    with pytest.raises(TypeError, match="cannot be stored"):
        state.encode([thing], "thing")


VALUES = [
    None,
    True,
    -3,
    0.1,
    -0.0,
    float("inf"),
    "text",
    [1, [2.0, "three"], {}],
    {"a": 1, "b": {"array": "c", "fields": [None]}},
    np.arange(6.0).reshape(2, 3).T,
    np.float64(0.5),
    np.array([True, False]),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_plain_values_survive(value):
    spec, arrays = state.encode(value, "value")
    again = state.Decoder(arrays).decode(json.loads(json.dumps(spec, allow_nan=False)))
    assert equal(again, np.asarray(value) if isinstance(value, np.generic) else value)
    assert repr(again) == repr(np.asarray(value) if isinstance(value, np.generic) else value)


def test_nan_survives():
    spec, _ = state.encode(float("nan"), "value")
    assert np.isnan(state.Decoder({}).decode(spec))


def test_values_nested_too_deep_are_refused():
    K = sets.Simplex(2)
    for _ in range(30):
        K = sets.Product([K])
    spec, arrays = state.encode(K, "K")
    assert state.Decoder({"x": np.zeros(2), **arrays}).decode(spec).dim == 2
    for _ in range(30):
        K, spec = sets.Product([K]), {"set": "Product", "parameters": {"sets": [spec]}}
    with pytest.raises(TypeError, match="nested more than 64 deep"):
        state.encode(K, "K")
    with pytest.raises(StateError, match="nested at most 64 deep"):
        state.Decoder({"x": np.zeros(2)}).decode(spec)


# ---------------------------------------------------------------- the registry


def test_registered_classes(registry):
    @register
    class Cube(sets.Box):
        def __init__(self, side, tags=()):
            super().__init__(0.0, side, dim=2)
            self.side, self.tags = side, list(tags)

        def parameters(self):
            return {"side": np.float64(self.side), "tags": self.tags}

    cube = sets.Product([Cube(2.0, tags=["a", "b"]), sets.Simplex(2)])
    spec, arrays = state.encode(cube, "K")
    spec, arrays = json.loads(json.dumps(spec)), {"x": np.zeros(4), **arrays}
    assert equal(state.Decoder(arrays).decode(spec), cube)
    del registry["set"]["Cube"]
    with pytest.raises(StateError, match=r"K.* expected a registered class, got .*'set' .*'Cube'.*cocopt\.register"):
        state.Decoder(arrays).decode(spec, "K")


def test_two_kinds_may_share_a_name(path):
    both = [losses.Quadratic(np.eye(2), np.ones(2)), constraints.Quadratic(np.eye(2), np.ones(2), -1.0)]
    spec, arrays = state.encode(both, "both")
    again = state.Decoder(arrays).decode(spec)
    assert [type(one) for one in again] == [losses.Quadratic, constraints.Quadratic]


def test_names_are_taken_once(registry):
    with pytest.raises(InvalidInput, match=r"no other set has, got 'Box' for .*: cocopt\.sets\.box\.Box is registered"):
        register(type("Box", (sets.Box,), {}))
    with pytest.raises(InvalidInput, match="no other algorithm has, got 'clasp'"):
        register(type("Mine", (CLASP,), {"name": "clasp"}))
    with pytest.raises(InvalidInput, match="no other algorithm has, got 'other'"):  # cocopt.CLASP would be ambiguous
        register(type("CLASP", (CLASP,), {"name": "other"}))
    first = register(type("Mine", (sets.Box,), {}))
    assert register(type("Mine", (sets.Box,), {})) is not first  # the same cell, run again
    with pytest.raises(InvalidInput, match="got 'Mine'"):
        register(type("Mine", (sets.Box,), {"__module__": "elsewhere"}))
    register(type("Mine", (steps.Schedule,), {}))  # of another kind


@pytest.mark.parametrize("thing", [int, 3, "Box", lambda: None])
def test_only_the_six_kinds_are_registered(thing):
    with pytest.raises(InvalidInput, match="register: expected a class derived from ConvexSet"):
        register(thing)


@pytest.mark.parametrize("name", ["Dummy", "Simplex", "os.system", "subprocess.Popen", None, ["clasp"]])
def test_load_takes_registered_algorithms_only(path, name):
    state.write(path, {"algorithm": name}, {})
    with pytest.raises(StateError, match="expected the state of a registered algorithm, got"):
        cocopt.load(path)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such folder") as caught:
        state.write(tmp_path / "nowhere" / "state.npz", {}, {})
    assert caught.value.filename == str(tmp_path / "nowhere")


def test_a_target_that_is_no_regular_file_is_left_alone(tmp_path):
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    os.mkfifo(pipe)
    folder.mkdir()
    for target, what in ((pipe, "a pipe"), (folder, "a folder"), (os.devnull, "a device")):
        before = os.stat(target)
        with pytest.raises(InvalidInput, match=f"expected a regular file or a new name, got {what}"):
            state.write(target, HEADER, ARRAYS)
        with pytest.raises(StateError, match=f"expected a cocopt state file, got {what}"):
            state.read(target)
        assert os.stat(target).st_mode == before.st_mode
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]
    assert os.listdir(folder) == []


def test_arrays_are_restored_without_nan():
    for good in (np.array([1.0, np.inf]), np.array([1, 2])):
        np.testing.assert_array_equal(state.restore(good, np.zeros(2, good.dtype)), good)
    with pytest.raises(StateError, match="memory: expected numbers, got NaN"):
        state.restore(np.array([1.0, np.nan]), np.zeros(2), where="memory")
    assert np.isnan(state.as_array(np.array([np.nan]), "memory", (1,), nan=True)).all()


def test_an_object_is_restored_by_one_of_its_kind():
    other = steps.Constant(0.5)
    assert state.restore(other, steps.Power(0.5)) is other
    with pytest.raises(StateError, match="memory: expected Power, got Box"):
        state.restore(sets.Box(0.0, 1.0, dim=2), steps.Power(0.5), where="memory")
    with pytest.raises(StateError, match="memory: expected str, got int 3"):
        state.restore(3, "text", where="memory")


class Optional(NamedTuple):
    number: float | None = None
    numbers: NDArray[np.float64] | None = None


def test_a_field_that_is_empty_at_first_is_restored_as_its_annotation_allows():
    numbers = np.array([[1.0], [2.0]])
    found = state.restore({"number": 3.0, "numbers": numbers}, Optional(), (2,))
    assert found == (3.0, numbers)
    for wrong in ({"number": "text"}, {"number": numbers}, {"numbers": 3.0}, {"numbers": np.array([1.0])}):
        with pytest.raises(StateError, match=next(iter(wrong))):
            state.restore({"number": None, "numbers": None, **wrong}, Optional(), (2,))
    with pytest.raises(StateError, match="numbers: expected numbers with leading axes"):
        state.restore({"number": None, "numbers": numbers * np.nan}, Optional(), (2,))


def test_nothing_is_written_that_could_not_be_read(tmp_path):
    class Unregistered(CLASP):
        pass

    with pytest.raises(TypeError, match=r"Unregistered cannot be stored: register it with @cocopt.register"):
        Unregistered(sets.Box(0.0, 1.0, dim=2)).save(tmp_path / "state.npz")
    with pytest.raises(ValueError, match="JSON"):
        state.write(tmp_path / "state.npz", {"number": np.nan}, {})
    assert list(tmp_path.iterdir()) == []


def test_integers_of_64_bits_are_decoded():
    decoder = state.Decoder({})
    assert decoder.decode(2**63 - 1) == 2**63 - 1
    assert decoder.decode(1 - 2**63) == 1 - 2**63
    for number in (2**63, -(2**63)):
        with pytest.raises(StateError, match="expected a number of 64 bits"):
            decoder.decode(number)


def test_files_are_those_of_numpy_and_zip():
    content = state.pack(HEADER, ARRAYS)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None  # every member has the checksum that its header says
        assert {info.filename for info in archive.infolist()} == {"cocopt.json", *(f"{name}.npy" for name in ARRAYS)}
    with np.load(io.BytesIO(content)) as loaded:
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(loaded[name], array)
            assert loaded[name].dtype == array.dtype


def test_a_learner_that_was_stored_before_is_stored_like_a_new_one():
    learner = CLASP(sets.Box(0.0, 1.0, dim=2), window=2)
    first = learner.dumps()
    learner.tell(losses.Linear([-1.0, 1.0]), constraints.Affine([1.0, 1.0], 0.5))
    again = learner.dumps()
    assert again != first
    assert again == cocopt.loads(again).dumps()


def test_named_members_keep_their_order() -> None:
    """In a window, too: another order of the rows would be another order of sums, and weights are in that order."""
    limits = {"turnover": constraints.Norm1([0.5, 0.5], 1.0), "risk": constraints.NormBall([0.0, 0.0], 0.9)}
    g = constraints.Stack(limits, weights={"turnover": 3.0})
    learner = cocopt.CLASP(cocopt.Simplex(2), window=2)
    learner.tell(losses.Linear([1.0, 2.0]), g)
    again = cocopt.loads(learner.dumps())
    for each in (learner, again):
        each.tell(losses.Linear([2.0, 0.5]), g)
    assert np.array_equal(learner.ask(), again.ask())
    assert learner.dumps() == again.dumps()
    copy = constraints.Stack(**g.parameters())
    assert (copy.row_names, copy.row_weights.tolist()) == (("turnover", "risk"), [3.0, 1.0])
    for names, message in ((["a"], "one for each of 2"), (["a", "a"], "names that differ"), ("ab", "one for each")):
        with pytest.raises(InvalidInput, match=f"names: expected {message}"):
            constraints.Stack(list(limits.values()), names=names)
    with pytest.raises(InvalidInput, match="names: expected none"):
        constraints.Stack(limits, names=["a", "b"])

"""Forged state files, all with valid checksums: each is a state that a run could have reached, or a `StateError`."""

from __future__ import annotations

import copy
import io
import itertools
import json
import math
import zipfile

import numpy as np
import pytest
from forging import forge, load, npy, pack, seal

import cocopt
from cocopt import CLASP, RECOO, AdaGrad, Box, Product, Simplex, Switch, constraints, losses, state, steps
from cocopt.errors import CocoptError, StateError

K = Product([Box(0.0, 1.0, dim=2), Simplex(2)])
START = np.array([[0.5, 0.5, 0.5, 0.5], [0.1, 0.2, 0.3, 0.7]])
LEARNERS = {
    "window": lambda: CLASP(K, start=START, window=3, rows="worst"),
    "single": lambda: CLASP(K, start=START[0], steps=steps.Adaptive(2.0)),
    "persistent": lambda: CLASP(K, start=START, window=None, rows="worst"),
    "switch": lambda: Switch(K, 100, 2.0, start=START),
    "recoo": lambda: RECOO(K, start=START[0]),
    "adagrad": lambda: AdaGrad(K, 100, 2.0, start=START),
}


def play(learner, rounds=4):
    rng = np.random.default_rng(0)
    for t in range(rounds):
        g = constraints.Affine(rng.uniform(size=(2, 4)), [1.1, 1.2])
        if t == 2:
            g = constraints.Stack([g, constraints.NormBall(np.full(4, 0.4), 0.9)])
        learner.tell(losses.Linear(rng.normal(size=4)), g)
    return learner


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """(header, arrays) of each learner."""
    path = tmp_path_factory.mktemp("saved") / "state.npz"
    found = {}
    for name, make in LEARNERS.items():
        play(make()).save(path)
        found[name] = state.read(path)
    return found


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.npz"


def test_what_is_not_forged_is_loaded(path, saved):
    for name, (header, arrays) in saved.items():
        learner = load(path, forge(header, arrays))
        assert type(learner) is type(LEARNERS[name]())
        np.testing.assert_array_equal(play(learner, 1).ask(), play(cocopt.load(path), 1).ask())


# ---------------------------------------------------------------- headers and arrays


def at(*keys):
    """A change: the value at this place of the header becomes another."""

    def change(value):
        def apply(header, arrays):
            place = header
            for key in keys[:-1]:
                place = place[key]
            if value is ...:
                del place[keys[-1]]
            else:
                place[keys[-1]] = value

        return apply

    return change


def array(name, value):
    """A change: another array, or none."""

    def apply(header, arrays):
        assert name in arrays
        if value is ...:
            del arrays[name]
        else:
            arrays[name] = value(arrays[name]) if callable(value) else np.asarray(value)

    return apply


def nested(depth):
    spec = {"set": "Simplex", "parameters": {"dim": 4, "total": 1.0}}
    for _ in range(depth):
        spec = {"set": "Product", "parameters": {"sets": [spec]}}
    return spec


def nine_in_a_window_of_three(header, arrays):
    earlier = header["memory"]["fields"]["constraints"]["fields"]["earlier"]
    earlier.extend([None] * 7)


def another_batch(header, arrays):
    arrays["x"] = np.repeat(arrays["x"], 2, axis=0)


def an_array_twice(header, arrays):
    header["memory"] = {"fields": {"a": {"array": "x"}}}


def many_boxes(header, arrays):
    """Each of them asks for as much as the whole file."""
    n = 40_000
    arrays["x"] = np.zeros(n)
    parts = [{"set": "Box", "parameters": {"lower": 0.0, "upper": 1.0, "dim": n}} for _ in range(2000)]
    header["parameters"]["K"] = {"set": "Product", "parameters": {"sets": parts}}


def schedule_as_set(header, arrays):
    header["parameters"]["K"] = header["parameters"]["steps"]


def float32(array):
    return array.astype(np.float32)


def with_nan(array):
    spoiled = array.copy()
    spoiled.flat[0] = math.nan
    return spoiled


MEMORY, LEDGER, EARLIER = ("memory", "fields"), ("ledger", "fields"), "memory.constraints.earlier.1"
CONSTRAINTS = (*MEMORY, "constraints", "fields")
REQUIRED = (*CONSTRAINTS, "required", "fields")
BOX = ("parameters", "K", "parameters", "sets", 0)
ROWS = "memory.constraints.required"
FORGERIES = {
    # counts
    "t is text": ("window", at("t")("abc")),
    "t is infinite": ("window", at("t")({"float": "inf"})),
    "t is negative": ("window", at("t")(-5)),
    "t is a fraction": ("window", at("t")(2.7)),
    "t is huge": ("window", at("t")(10**30)),
    "t is too large to be counted": ("window", at("t")(2**60)),
    "t is a truth value": ("window", at("t")(True)),
    "t is an array": ("window", at("t")({"array": "x"})),
    "t is missing": ("window", at("t")(...)),
    "t is not that of the ledger": ("window", at("t")(5)),
    "more losses than rounds": ("window", at("losses")(5)),
    "losses are negative": ("single", at("losses")(-1)),
    "rounds of the ledger": ("single", at(*LEDGER, "rounds")(3)),
    "rounds are a fraction": ("single", at(*LEDGER, "rounds")(4.0)),
    # keys
    "an unknown key": ("window", at("more")(1)),
    "an unknown parameter": ("window", at("parameters", "more")(1)),
    "an unknown field": ("window", at(*MEMORY, "more")(1)),
    "no memory": ("window", at("memory")(...)),
    "memory is a list": ("window", at("memory")([1, 2])),
    "memory is null": ("recoo", at("memory")(None)),
    "no steps": ("window", at(*MEMORY, "steps")(...)),
    "parameters are a list": ("window", at("parameters")([])),
    "no K": ("window", at("parameters", "K")(...)),
    "an array that does not exist": ("window", at("x")({"array": "y"})),
    "an array that is not used": ("window", lambda header, arrays: arrays.update(y=np.zeros(3))),
    "an array that is used twice": ("window", an_array_twice),
    "an array that is missing": ("window", array("ledger.sums", ...)),
    # classes
    "another algorithm": ("window", at("algorithm")("recoo")),
    "an unknown algorithm": ("window", at("algorithm")("os.system")),
    "an algorithm that is a list": ("window", at("algorithm")(["clasp"])),
    "an unknown set": ("window", at("parameters", "K", "set")("Bux")),
    "a set that is a number": ("window", at("parameters", "K", "set")(3)),
    "an unknown kind": ("window", at("parameters", "K")({"module": "os", "parameters": {}})),
    "an algorithm as a set": ("window", at("parameters", "K")({"algorithm": "clasp", "parameters": {}})),
    "a schedule as a set": ("window", schedule_as_set),
    "a set as a schedule": ("window", at("parameters", "steps")(nested(0))),
    "parameters of a set are a list": ("window", at("parameters", "K", "parameters")([1])),
    "a parameter that the set does not have": ("window", at(*BOX, "parameters", "more")(1)),
    "a parameter of the set is missing": ("window", at("parameters", "K", "parameters")({})),
    # sizes
    "a box of dimension 1e11": ("window", at(*BOX, "parameters", "dim")(10**11)),
    "a simplex of dimension 1e11": ("window", at("parameters", "K")({"set": "Simplex", "parameters": {"dim": 10**11}})),
    "a dimension below 1": ("window", at(*BOX, "parameters", "dim")(-3)),
    "boxes as large as the file": ("single", many_boxes),
    "a product nested 40 deep": ("single", at("parameters", "K")(nested(40))),
    "a product nested 150 deep": ("single", at("parameters", "K")(nested(150))),
    "nine constraints in a window of three": ("window", nine_in_a_window_of_three),
    # arrays
    "x of another batch": ("window", another_batch),
    "x outside of K": ("window", array("x", START + 5.0)),
    "x is NaN": ("window", array("x", with_nan)),
    "x of another dtype": ("window", array("x", float32)),
    "x is a number": ("window", array("x", 0.5)),
    "x is empty": ("window", array("x", np.zeros((0, 4)))),
    "x is text": ("window", array("x", np.array(["a", "b"]))),
    "sums are NaN": ("window", array("ledger.sums", with_nan)),
    "sums of another batch": ("window", array("ledger.sums", np.zeros((3, 14)))),
    "sums of another dtype": ("window", array("ledger.sums", float32)),
    "violations are negative": ("window", array("ledger.sums", -np.ones((2, 14)))),
    "infeasible in more rounds than there were": ("window", array("ledger.sums", np.full((2, 14), 9.0))),
    "another history": ("window", at(*LEDGER, "history")("hist")),
    "the last step is negative": ("single", at(*MEMORY, "steps", "fields", "last")(-1.0)),
    "the last step is NaN": ("single", at(*MEMORY, "steps", "fields", "last")({"float": "nan"})),
    "the last step is text": ("single", at(*MEMORY, "steps", "fields", "last")("1.0")),
    "the last step is an integer": ("single", at(*MEMORY, "steps", "fields", "last")(1)),
    "the gradients are NaN": (
        "single",
        at(*MEMORY, "steps", "fields", "gradients", "fields", "total")({"float": "nan"}),
    ),
    "the proof fails for no known reason": ("window", at(*MEMORY, "proof", "fields", "seen")(64)),
    "the proof is missing": ("window", at(*MEMORY, "proof")(None)),
    "a queue of another batch": ("adagrad", array("memory.queue", np.zeros(3))),
    "a queue below zero": ("adagrad", array("memory.queue", -np.ones(2))),
    "an infinite queue": ("adagrad", array("memory.queue", np.full(2, np.inf))),
    "phases that are no truth values": ("switch", array("memory.second", np.zeros(2))),
    "no intersection where one is needed": ("persistent", at(*CONSTRAINTS, "required")(None)),
    # constraints
    "a constraint of another dimension": ("window", array(f"{EARLIER}.constraint.A", np.ones((2, 3)))),
    "a constraint of another batch": (
        "window",
        lambda header, arrays: arrays.update(
            {f"{EARLIER}.constraint.A": np.ones((5, 2, 4)), f"{EARLIER}.constraint.b": np.ones((5, 2))}
        ),
    ),
    "a constraint with NaN": ("window", array(f"{EARLIER}.constraint.A", with_nan)),
    "a row that the constraint does not have": ("window", array(f"{EARLIER}.row", np.array([0, 7]))),
    "rows of another dtype": ("window", array(f"{EARLIER}.row", np.array([0.0, 1.0]))),
    "rows of another batch": ("window", array(f"{EARLIER}.row", np.array([0, 1, 0]))),
    "a set in the window": (
        "window",
        at(*CONSTRAINTS, "earlier", 0, "fields", "constraint")(nested(0)),
    ),
    "more rows than there are": ("persistent", array(f"{ROWS}.size", np.array([9, 9]))),
    "a negative number of rows": ("persistent", array(f"{ROWS}.size", np.array([-1, 1]))),
    "rows of length NaN": ("persistent", array(f"{ROWS}.norm", with_nan)),
    "a working set of rows that do not exist": ("persistent", array(f"{ROWS}.working_set", lambda a: a + 1000)),
    "a working set with a row twice": ("persistent", array(f"{ROWS}.working_set", lambda a: np.zeros_like(a))),
    "an archive of later rounds": ("persistent", array(f"{ROWS}.archive.round", lambda a: a + 99)),
    "no archive": ("persistent", at(*REQUIRED, "archive")(None)),
    "binding constraints that do not exist": ("persistent", at(*REQUIRED, "binding")([[9], [9]])),
    "binding constraints of another batch": ("persistent", at(*REQUIRED, "binding")([[0]])),
    # descriptions
    "a number beyond 64 bits": ("window", at("parameters", "window")(10**25)),
    "a float beyond its range": ("single", at(*MEMORY, "steps", "fields", "last")(float("1e308") * 0.5 + 1e400 * 0)),
    "an unknown float": ("single", at(*MEMORY, "steps", "fields", "last")({"float": "1.0"})),
    "two tags": ("window", at("x")({"array": "x", "float": "inf"})),
    "an empty mapping": ("window", at("x")({})),
    "a window of zero": ("window", at("parameters", "window")(0)),
    "a window of text": ("window", at("parameters", "window")("three")),
    "an option that is a mapping": ("window", at("parameters", "rows")({"fields": {}})),
    "an option of another parameter": ("window", at("parameters", "steps")({"absent": "K"})),
}
FORGERIES["a float beyond its range"] = ("single", at(*MEMORY, "steps", "fields", "last")({"float": "1e999"}))


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_headers_and_arrays(path, saved, name):
    home, change = FORGERIES[name]
    header, arrays = copy.deepcopy(saved[home])
    change(header, arrays)
    found = load(path, forge(header, arrays))
    assert isinstance(found, StateError), f"accepted: {found!r}"
    assert str(found).isprintable()


# ---------------------------------------------------------------- envelopes and archives


@pytest.mark.parametrize("version", [0, -1, True, False, "2", 2.0, None, [2], 10**30, 1, 4])
def test_forged_versions(path, saved, version):
    found = load(path, forge(*saved["single"], version=version))
    assert isinstance(found, StateError)
    if type(version) is int and version == 1:
        assert "format 1, written by a version of cocopt 0.1.0" in str(found)
    elif version in (4, 10**30):
        assert "upgrade cocopt" in str(found)


def with_header(text):
    return lambda header, arrays: pack(text, {f"{name}.npy": npy(array) for name, array in arrays.items()})


def with_member(name, data):
    def make(header, arrays):
        members = {f"{key}.npy": npy(array) for key, array in arrays.items()}
        return pack(seal(header, arrays), {**members, name: data})

    return make


def claiming(shape, dtype="'<f8'"):
    """The bytes of an array whose header says more than follows."""
    text = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(16)


def compressed(header, arrays):
    arrays = {**arrays, "zeros": np.zeros(3_000_000)}
    members = {f"{name}.npy": npy(array) for name, array in arrays.items()}
    return pack(seal(header, arrays), members, zipfile.ZIP_DEFLATED)


def twice(header, arrays):
    buffer = io.BytesIO(forge(header, arrays))
    with zipfile.ZipFile(buffer, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("x.npy", npy(arrays["x"]))
    return buffer.getvalue()


def overlapping(header, arrays):
    """A thousand entries of the directory that share one member."""
    content = forge(header, {**arrays, "big": np.zeros(100_000)})
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries, start = archive.infolist(), archive.start_dir
    big = next(entry for entry in entries if entry.filename == "big.npy")
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a") as archive:
        for i in range(1000):
            shared = copy.copy(big)
            shared.filename = f"big{i}.npy"
            archive.filelist.append(shared)
        archive._didModify = True
    assert len(buffer.getvalue()) > start
    return buffer.getvalue()


def encrypted(header, arrays):
    content = bytearray(forge(header, arrays))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + offset] |= 1
    return bytes(content)


ARCHIVES = {
    "a list for a header": lambda header, arrays: forge([header], arrays),
    "no header": lambda header, arrays: forge(None, arrays),
    "a list for an envelope": with_header("[1, 2]"),
    "a number for an envelope": with_header("3"),
    "no JSON": with_header("{"),
    "no text": with_header(b"\xff\xfe\x00"),
    "deep JSON": with_header('{"format": "cocopt", "version": 2, "header": ' + "[" * 100_000 + "]" * 100_000 + "}"),
    "a number of 5000 digits": with_header('{"format": "cocopt", "version": 2, "header": {"t": ' + "9" * 5000 + "}}"),
    "NaN in JSON": with_header('{"format": "cocopt", "version": 2, "header": {"t": NaN}}'),
    "no checksum": with_header('{"format": "cocopt", "version": 2, "header": {}}'),
    "compressed members": compressed,
    "a member twice": twice,
    "members that overlap": overlapping,
    "an encrypted member": encrypted,
    "an object array": with_member("x.npy", b"\x93NUMPY\x01\x00" + claiming("(2,)", "'|O'")[8:]),
    "an array that claims 1e11 numbers": with_member("x.npy", claiming("(100000000000,)")),
    "an array that claims 10**40 numbers": with_member("x.npy", claiming(f"({10**40},)")),
    "an array of negative size": with_member("x.npy", claiming("(-1, -2)")),
    "an empty array of absurd shape": with_member("x.npy", claiming(f"(0, {10**30})")),
    "an array of records": with_member("x.npy", claiming("(2,)", "[('a', '<f8')]")),
    "an array of complex numbers": with_member("x.npy", claiming("(1,)", "'<c16'")),
    "an array of dates": with_member("x.npy", claiming("(2,)", "'<M8[s]'")),
    "an unknown dtype": with_member("x.npy", claiming("(2,)", "'nothing'")),
    "an array with a header of its own": with_member("x.npy", b"\x93NUMPY\x03\x00" + bytes(100)),
    "no array": with_member("x.npy", b"buy milk"),
    "an array by two names": with_member("x", npy(START)),
    "many small members": lambda header, arrays: pack(seal(header, arrays), {str(i): b"" for i in range(2000)}),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_forged_archives(path, saved, name):
    found = load(path, ARCHIVES[name](*copy.deepcopy(saved["window"])))
    assert isinstance(found, StateError)


def test_a_file_without_end_is_not_read():
    with pytest.raises(StateError, match="expected a cocopt state file, got a device"):
        cocopt.load("/dev/zero")


# ---------------------------------------------------------------- random changes

ODD = [None, True, -1, 0, 1, 2, 3, 10**9, 2**62, 10**30, 0.5, -0.0, 1e300, "", "abc", "all", [], [1], {}]
ODD += [{"float": "nan"}, {"float": "inf"}, {"array": "x"}, {"fields": {}}, nested(1), {"absent": "K"}]


def places(value):
    """All containers inside a JSON value, with their keys."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


def mutate(header, arrays, rng):
    for _ in range(rng.integers(1, 4)):
        spots = list(places(header))
        if rng.random() < 0.25 and arrays:
            name = sorted(arrays)[rng.integers(len(arrays))]
            old = arrays[name]
            choices = [
                old[..., None],
                old.astype(np.float32 if old.dtype.kind == "f" else np.float64),
                np.zeros_like(old),
                -old if old.dtype != bool else ~old,
                np.full(old.shape, math.nan),
                old.ravel()[:1],
                np.full(old.shape, 10**6).astype(old.dtype),
                np.concatenate([old.ravel(), old.ravel()]),
            ]
            arrays[name] = choices[rng.integers(len(choices))]
            continue
        container, key = spots[rng.integers(len(spots))]
        kind = rng.random()
        if kind < 0.5:
            container[key] = copy.deepcopy(ODD[rng.integers(len(ODD))])
        elif kind < 0.65:
            other, where = spots[rng.integers(len(spots))]
            container[key] = copy.deepcopy(other[where])
        elif kind < 0.85 and isinstance(container, dict):
            del container[key]
        elif isinstance(container, dict):
            container[f"{key}x"] = container[key]
        else:
            container.append(copy.deepcopy(ODD[rng.integers(len(ODD))]))


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_random_changes_are_refused_or_harmless(path, saved, part):
    """2000 forged files in all; a learner that is made of one works, as far as its next round is a legal one."""
    rng = np.random.default_rng(part)
    refused = 0
    for home, _ in zip(itertools.cycle(saved), range(500), strict=False):
        header, arrays = copy.deepcopy(saved[home])
        mutate(header, arrays, rng)
        found = load(path, forge(json.loads(json.dumps(header)), arrays))
        if isinstance(found, StateError):
            refused += 1
            continue
        x = found.ask()
        assert found.K.contains(x).all()
        with np.errstate(all="ignore"):
            try:
                found.tell(losses.Linear(np.ones(found.K.dim)), constraints.Affine(np.ones(found.K.dim), 1e3))
            except CocoptError:
                continue
        found.save(path)
        assert cocopt.load(path).t == found.t
    assert refused > 250

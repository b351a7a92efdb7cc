"""``cocopt stream``: every line in and out is checked against its JSON Schema, and the learners are those of a loop."""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

import cocopt
from cocopt import CLASP, Box, Pool, constraints, losses, registry
from cocopt.cli import app
from cocopt.errors import InvalidInput
from cocopt.stream import learner_maker, schema, serve
from cocopt.stream.messages import parse

EXAMPLES = Path(__file__).parents[1] / "examples"
LEARNER = {"algorithm": "clasp", "set": {"type": "Box", "lower": 0, "upper": 1, "dim": 2}}
INLINE = 'algorithm = "clasp", set = {type = "Box", lower = 0, upper = 1, dim = 2}'
REQUEST, ANSWER = (Draft202012Validator({**schema(), "$ref": f"#/$defs/{side}"}) for side in ("request", "answer"))
LINEAR = {"type": "Linear", "c": [1.0, -1.0]}
ROW = {"type": "Affine", "A": [1.0, 1.0], "b": 0.75}


def answers(place: Path, *lines: Any, **options: Any) -> list[Any]:
    """What the service answers to lines, each a JSON-able value or bytes; all of them are valid answers."""
    coded = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    source, feed = os.pipe()
    drain, target = os.pipe()

    def write() -> None:
        with os.fdopen(feed, "wb") as file:
            file.write(b"\n".join(coded))

    writer = threading.Thread(target=write)
    writer.start()
    found: list[Any] = []

    def read() -> None:
        with os.fdopen(drain, "rb") as file:
            found.extend(map(json.loads, file))

    reader = threading.Thread(target=read)
    reader.start()
    with Pool(place, learner_maker(LEARNER)) as pool:
        serve(pool, source, target, **options)
    os.close(source)
    os.close(target)
    writer.join()
    reader.join()
    for answer in found:
        ANSWER.validate(answer)
    return found


def start(state: Path, *options: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
    command = [sys.executable, "-m", "cocopt", "stream", "--state", str(state), "--learner", INLINE, *options]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def numbered(index: int) -> dict[str, Any]:
    """Feedback of its own for each index."""
    rng = np.random.default_rng(index)
    return {"key": "a", "id": f"{index}", "loss": {"type": "Linear", "c": rng.normal(size=2).tolist()}}


def test_the_learners_are_those_of_a_loop(tmp_path: Path) -> None:
    demand = {"type": "Equality", "A": [1, 1], "b": 0.5}
    lines: list[Any] = []
    for index in range(5):
        lines += [{"key": "a", "known": demand}, {**numbered(index), "constraint": ROW, "round": index + 1}]
    for line in lines:
        REQUEST.validate(line)
    found = answers(tmp_path / "pool.db", *lines)
    learner = CLASP(Box(0.0, 1.0, dim=2))
    for index, (action, record) in enumerate(zip(found[::2], found[1::2], strict=True)):
        x = learner.ask(known=constraints.Equality([1.0, 1.0], 0.5))
        assert action == {"key": "a", "round": index + 1, "action": x.tolist()}
        c = numbered(index)["loss"]["c"]
        own = learner.tell(losses.Linear(c), constraints.Affine([1.0, 1.0], 0.75))
        expected = {
            "key": "a",
            "id": f"{index}",
            "round": own.t,
            "loss": float(own.loss),
            "rows": own.rows.tolist(),
            "violation": float(own.violation),
            "step": float(own.step),
            "method": own.method,
            "feasible": True,
        }
        assert record == expected


def test_rounds_may_be_played_ahead_and_forgotten(tmp_path: Path) -> None:
    place = tmp_path / "pool.db"
    found = answers(
        place,
        {"key": "a", "play": True, "id": "p"},
        {"key": "a", "play": True, "id": "p"},  # tried again
        {"key": "a", "play": True},
        {"key": "a", "round": 2, "loss": LINEAR, "constraint": ROW},
        {"key": "a", "round": 1, "loss": LINEAR},
        {"key": "a", "forget": 1, "id": "f"},
        {"key": "a", "round": 1, "constraint": ROW},
        {"key": "a", "forget": 1, "id": "f"},  # tried again
        {"key": "a", "forget": 1},
    )
    assert [answer.get("round") for answer in found[:5]] == [1, 1, 2, 2, 1]
    assert found[0] == found[1]
    assert found[5] == found[7] == {"key": "a", "id": "f", "forgotten": 1}
    for answer in (found[6], found[8]):
        assert "whose feedback has come or was given up" in answer["message"]
    with Pool(place, learner_maker(LEARNER)) as pool:
        assert pool.learner("a").t == 2
        assert pool.learner("a").pending == ()


def test_rows_with_names_are_answered_by_name(tmp_path: Path) -> None:
    named = {"type": "Stack", "members": {"sum": ROW, "first": {"type": "Affine", "A": [1, 0], "b": 0.125}}}
    line = {"key": "a", "id": "0", "constraint": named}
    REQUEST.validate(line)
    (found, again) = answers(tmp_path / "pool.db", {**line, "played": [0.5, 0.5]}, line)
    assert found == again
    assert found["by_name"] == {"sum": 0.25, "first": 0.375}


def test_an_id_is_applied_once_and_a_wrong_round_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "pool.db"
    first = answers(place, numbered(0), numbered(0))
    again = answers(place, numbered(0), {"key": "a", "round": 1, "loss": LINEAR}, {"key": "a"})
    assert first == [again[0]] * 2
    assert again[1]["error"] == "InvalidInput"
    assert again[2]["round"] == 2


# every line, and whether it is allowed; the code and the schema must agree
LINES: dict[str, tuple[Any, bool]] = {
    "ask": ({"key": "a"}, True),
    "known": ({"key": "a", "known": ROW}, True),
    "nothing known": ({"key": "a", "known": None}, True),
    "stack": ({"key": "a", "known": {"type": "Stack", "members": [ROW, ROW]}}, True),
    "names": (
        {
            "key": "a",
            "known": {
                "type": "Stack",
                "members": {"sum": ROW, "soft": {"type": "Soft", "constraint": ROW}},
                "weights": {"sum": 2.0, "soft": 1.0},
            },
        },
        True,
    ),
    "shifted": ({"key": "a", "known": {"type": "Shifted", "of": ROW, "by": 0.1}}, True),
    "loss": ({"key": "a", "loss": LINEAR}, True),
    "no loss": ({"key": "a", "loss": None, "constraint": ROW}, True),
    "played": ({"key": "a", "loss": LINEAR, "played": [0.5, 0.5]}, True),
    "no object": ([1, 2], False),
    "null": (None, False),
    "no key": ({"loss": LINEAR}, False),
    "an empty key": ({"key": ""}, False),
    "a long key": ({"key": "x" * 501}, False),
    "a key that is a number": ({"key": 3}, False),
    "an unknown field": ({"key": "a", "knwon": ROW}, False),
    "a field of another request": ({"key": "a", "known": ROW, "loss": LINEAR}, False),
    "round 0": ({"key": "a", "loss": LINEAR, "round": 0}, False),
    "round 1.5": ({"key": "a", "loss": LINEAR, "round": 1.5}, False),
    "round true": ({"key": "a", "loss": LINEAR, "round": True}, False),
    "play 1": ({"key": "a", "play": 1}, False),
    "forget with an id": ({"key": "a", "forget": 1, "id": "f"}, True),
    "forget text": ({"key": "a", "forget": "1"}, False),
    "an unknown type": ({"key": "a", "loss": {"type": "Liner", "c": [1, 2]}}, False),
    "a type of another kind": ({"key": "a", "loss": ROW}, False),
    "a black box": ({"key": "a", "loss": {"type": "Function", "value": 1, "gradient": 1}}, False),
    "no type": ({"key": "a", "loss": {"c": [1, 2]}}, False),
    "a loss that is an array": ({"key": "a", "loss": [1, 2]}, False),
    "played text": ({"key": "a", "loss": LINEAR, "played": ["a"]}, False),
    "played nothing": ({"key": "a", "loss": LINEAR, "played": []}, False),
    "an id that is a number": ({"key": "a", "loss": LINEAR, "id": 3}, False),
}


@pytest.mark.parametrize("case", LINES)
def test_the_code_allows_what_the_schema_allows(case: str) -> None:
    line, allowed = LINES[case]
    assert REQUEST.is_valid(line) is allowed
    if allowed:
        parse(json.dumps(line).encode())
    else:
        with pytest.raises(InvalidInput, match="expected"):
            parse(json.dumps(line).encode())


BAD_LINES = {
    "garbage": (b"garbage", "line: expected one JSON object"),
    "no UTF-8": (b'{"key": "\xff"}', "line: expected one JSON object"),
    "NaN": (b'{"key": "a", "loss": {"type": "Linear", "c": [NaN, 1]}}', "NaN, which is no JSON"),
    "two keys": (b'{"key": "a", "key": "b"}', "two members of one name"),
    "depth": (b'{"key": "a", "known": ' + b"[" * 100_000, "line: expected one JSON object"),
    "a wrong dimension": (b'{"key": "a", "loss": {"type": "Linear", "c": [1, 2, 3]}}', "expected dimension 2"),
    "text for a number": (b'{"key": "a", "loss": {"type": "Linear", "c": ["1", "2"]}}', "loss: c: expected"),
    "a ragged array": (b'{"key": "a", "known": {"type": "Affine", "A": [[1, 2], [3]], "b": [1, 1]}}', "known: A: "),
    "a huge number": (b'{"key": "a", "loss": {"type": "Linear", "c": [1' + b"0" * 400 + b", 1]}}", "loss: c: "),
    "a missing argument": (b'{"key": "a", "known": {"type": "Affine", "A": [1, 2]}}', "known: expected b for Affine"),
    "a black box": (b'{"key": "a", "loss": {"type": "Function", "value": "x"}}', "a Function, which is code"),
    "an unknown argument": (b'{"key": "a", "loss": {"type": "Linear", "d": [1, 2]}}', "got 'd'; known: c"),
    "an infeasible round": (b'{"key": "a", "constraint": {"type": "Affine", "A": [1, 1], "b": -1}}', "in common"),
    "an id for a question": (b'{"key": "a", "id": "q"}', 'id: expected beside "play": true'),
    "a round that is not pending": (b'{"key": "a", "forget": 9}', "round: expected one of the pending rounds"),
    "nested too deep": (
        b'{"key": "a", "known": ' + b'{"type": "Stack", "members": [' * 12 + b'{"type": "Affine"}' + b"]}" * 12 + b"}",
        "nested at most 8 deep",
    ),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_a_bad_line_gets_an_error_line_and_the_stream_goes_on(case: str, tmp_path: Path) -> None:
    line, message = BAD_LINES[case]
    before, error, after = answers(tmp_path / "pool.db", numbered(0), line, numbered(1))
    assert (before["round"], after["round"]) == (1, 2)
    assert error["line"] == 2
    assert message in error["message"]
    assert ("key" in error) == (case not in ("garbage", "no UTF-8", "depth"))
    with Pool(tmp_path / "pool.db", learner_maker(LEARNER)) as pool:
        assert pool.learner("a").t == 2
        assert pool.learner("a").rounds == 2


def test_a_bad_line_says_its_key_and_id(tmp_path: Path) -> None:
    (error,) = answers(tmp_path / "pool.db", {"key": "a", "id": "7", "loss": {"type": "Linear", "c": "x"}})
    assert (error["key"], error["id"], error["line"], error["error"]) == ("a", "7", 1, "InvalidInput")


def test_lines_are_bounded_and_blank_ones_are_none(tmp_path: Path) -> None:
    long = b'{"key": "' + b"x" * 200_000 + b'"}'
    found = answers(tmp_path / "pool.db", b"", numbered(0), long, b"  ", numbered(1), longest_line=1000)
    assert [answer.get("round") for answer in found] == [1, None, 2]
    assert found[1]["line"] == 3  # as an editor counts
    assert "line: expected one that is not too long" in found[1]["message"]


def test_errors_name_the_line_of_the_file(tmp_path: Path) -> None:
    """Blank lines before, between, and many; and an end within a line that is too long."""
    bad = b'{"key": 3}'
    lines = [b"", bad, numbered(0), *[b""] * 400, bad, b" ", bad, b"x" * 70_000]
    found = answers(tmp_path / "pool.db", *lines, longest_line=1000)
    assert [answer["line"] for answer in found if "error" in answer] == [2, 404, 406, 407]


def test_many_lines_at_once_are_answered_in_order(tmp_path: Path) -> None:
    lines: list[Any] = [numbered(index) for index in range(600)]
    bad = sorted(random.Random(3).sample(range(600), 5))
    for index in bad:
        lines[index] = {"key": "a", "id": f"{index}", "loss": {"type": "Linear", "c": [1.0]}}
    found = answers(tmp_path / "pool.db", *lines)
    assert [answer["id"] for answer in found] == [str(index) for index in range(600)]
    assert [answer["line"] for answer in found if "error" in answer] == [index + 1 for index in bad]
    assert [answer["round"] for answer in found if "error" not in answer] == [*range(1, 596)]


def test_lines_can_be_checked_against_the_schema_as_well(tmp_path: Path) -> None:
    found = answers(tmp_path / "pool.db", numbered(0), b"garbage", {"key": "a"}, validate=True)
    assert ["error" in answer for answer in found] == [False, True, False]


def test_the_schema_is_printed_and_names_the_classes() -> None:
    printed = json.loads(CliRunner().invoke(app, ["stream", "--schema"]).stdout)
    Draft202012Validator.check_schema(printed)
    for kind in ("loss", "constraint"):
        assert {*printed["$defs"][kind]["properties"]["type"]["enum"]} == {*registry.classes(kind)} - {"Function"}


# ------------------------------------------------------------------------------------------------------------ processes


def test_sigterm_drains_and_a_restart_goes_on(tmp_path: Path) -> None:
    state = tmp_path / "pool.db"
    process = start(state)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"".join(json.dumps(numbered(index)).encode() + b"\n" for index in range(3)))
    process.stdin.flush()
    lines = [process.stdout.readline() for _ in range(3)]
    assert [json.loads(line)["round"] for line in lines] == [1, 2, 3]
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=60)
    assert (process.returncode, rest) == (0, b"")
    process = start(state)
    rest, _ = process.communicate(b"".join(json.dumps(numbered(i)).encode() + b"\n" for i in (2, 3)), timeout=60)
    assert process.returncode == 0
    assert [json.loads(line)["round"] for line in rest.splitlines()] == [3, 4]


def test_what_was_answered_survives_kill_9(tmp_path: Path) -> None:
    state, answered = tmp_path / "pool.db", 0
    for wait in (0.0, 0.05, 0.1):
        process = start(state)
        assert process.stdin is not None
        assert process.stdout is not None
        for index in range(answered, answered + 200):
            process.stdin.write(json.dumps(numbered(index)).encode() + b"\n")
        process.stdin.flush()
        select.select([process.stdout], [], [], 60)
        time.sleep(wait)
        process.kill()
        seen, _ = process.communicate()
        whole = [json.loads(line) for line in seen.splitlines(keepends=True) if line.endswith(b"\n")]
        for answer in whole:
            assert answer["round"] == int(answer["id"]) + 1  # applied once, whether or not it was tried again
        answered += len(whole)
    assert answered > 0
    with Pool(state, learner_maker(LEARNER)) as pool:
        learner = pool.learner("a")
    assert learner.t >= answered
    alone = CLASP(Box(0.0, 1.0, dim=2))
    for index in range(learner.t):
        alone.tell(losses.Linear(numbered(index)["loss"]["c"]))
    np.testing.assert_array_equal(learner.ask(), alone.ask())


def test_a_reader_that_has_gone_ends_the_stream(tmp_path: Path) -> None:
    process = start(tmp_path / "pool.db")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    process.stdin.write(json.dumps(numbered(0)).encode() + b"\n")
    process.stdin.close()
    assert process.wait(60) == 1


# ------------------------------------------------------------------------------------------------------ configurations


def test_learners_are_described_in_a_file(tmp_path: Path) -> None:
    described = {
        "algorithm": "recoo",
        "epsilon": 0.2,
        "start": [0.25, 0.75, 0.5],
        "set": {
            "type": "Product",
            "sets": [{"type": "Simplex", "dim": 2}, {"type": "Box", "lower": 0, "upper": 1, "dim": 1}],
        },
    }
    learner = learner_maker(described)("any")
    assert isinstance(learner, cocopt.RECOO)
    assert (learner.K.dim, learner.epsilon) == (3, 0.2)
    np.testing.assert_array_equal(learner.ask(), [0.25, 0.75, 0.5])
    scheduled = learner_maker({**LEARNER, "steps": {"type": "constant", "c": 0.5}})("any")
    assert repr(scheduled.parameters()["steps"]) == "Constant(c=0.5)"


BAD_OPTIONS = {
    "no state": (["--learner", INLINE], "state: expected --state"),
    "no learner": (["--state", "{folder}/pool.db"], "config: expected either --config or --learner"),
    "no file": (["--state", "{folder}/pool.db", "--config", "{folder}/none.toml"], "no such file"),
    "no TOML": (["--state", "{folder}/pool.db", "--learner", "algorithm"], "learner: expected TOML"),
    "no set": (["--state", "{folder}/pool.db", "--learner", 'algorithm = "clasp"'], "expected a table with algorithm"),
    "an unknown algorithm": (
        ["--state", "{folder}/pool.db", "--learner", INLINE.replace("clasp", "clapsp")],
        "did you mean clasp",
    ),
    "an unknown option": (
        ["--state", "{folder}/pool.db", "--learner", f"{INLINE}, windw = 3"],
        "windw",
    ),
    "an unknown set": (["--state", "{folder}/pool.db", "--learner", INLINE.replace("Box", "os.system")], "Box"),
    "a folder that does not exist": (["--state", "{folder}/none/pool.db", "--learner", INLINE], "no such folder"),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_wrong_options_give_one_line_and_status_2(case: str, tmp_path: Path) -> None:
    options, message = BAD_OPTIONS[case]
    filled = [option.replace("{folder}", str(tmp_path)) for option in options]
    done = CliRunner().invoke(app, ["stream", *filled])
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("cocopt: ")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


# ------------------------------------------------------------------------------------------------------------- examples


def run_example(*command: str, tmp_path: Path) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_behind_a_pipe_goes_on(tmp_path: Path) -> None:
    script = str(EXAMPLES / "stream_pipe.sh")
    rounds = []
    for _ in range(2):
        found = [json.loads(line) for line in run_example("sh", script, tmp_path=tmp_path).splitlines()]
        assert not [answer for answer in found if "error" in answer]
        rounds += [answer["round"] for answer in found]
    assert rounds == [t for t in range(1, 11) for _ in range(2)]


def test_the_example_in_node(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    shown = run_example(node, str(EXAMPLES / "stream_client.mjs"), tmp_path=tmp_path)
    assert shown.startswith("round 3: show them 0.")

"""Pools: what is acknowledged is stored, once, whoever is killed; and what goes wrong says so and loses nothing.

Every test runs on SQLite and, with the marker ``servers``, on a PostgreSQL server of its own.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import servers
from pool_processes import feedback, make

import cocopt
from cocopt import CLASP, Box, Pool, constraints, losses
from cocopt.errors import (
    InvalidInput,
    MissingFile,
    NotStorable,
    PoolUnavailable,
    StateError,
    UnknownKey,
)

PROGRAM = Path(__file__).with_name("pool_processes.py")
KILLS = 100


@pytest.fixture(scope="session")
def server() -> Iterator[servers.Server]:
    with servers.postgres() as running:
        yield running


@pytest.fixture
def database(server: servers.Server) -> str:
    """A new, empty schema of the server's database: what a connection finds there is the pool."""
    import psycopg

    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{server.url()}?options=-csearch_path%3D{name}"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.servers)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place without a pool."""
    return str(tmp_path / "pool.db") if request.param == "sqlite" else str(request.getfixturevalue("database"))


def change_by_hand(place: str, statement: str, *values: Any) -> None:
    """A statement with ? for values; tables as SQLite has them."""
    if not place.startswith("postgresql"):
        connection = sqlite3.connect(place)
        with connection:
            connection.execute(statement, values)
        connection.close()
        return
    import psycopg

    with psycopg.connect(place, autocommit=True) as connection:
        statement = statement.replace("learners", "cocopt_learners").replace("calls", "cocopt_calls")
        connection.execute(statement.replace("?", "%s"), values)


def same(one: Any, other: Any) -> bool:
    """Whether two records are equal, field by field."""
    return type(one) is type(other) and all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def run_program(*arguments: str) -> Any:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True, env=environment, timeout=500
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# ------------------------------------------------------------------------------------------------------- what it keeps


def test_a_pool_does_what_learners_do(place: str) -> None:
    alone = {key: make(key) for key in "ab"}
    with Pool(place, make) as pool:
        for index in range(6):
            for key, learner in alone.items():
                np.testing.assert_array_equal(pool.ask(key), learner.ask())
                assert same(pool.tell(key, **feedback(key, index)), learner.tell(**feedback(key, index)))
    with Pool(place, make) as pool:  # from the database, not from memory
        for key, learner in alone.items():
            np.testing.assert_array_equal(pool.ask(key), learner.ask())
            assert pool.learner(key).ledger == learner.ledger
            assert pool.learner(key).certificate() == learner.certificate()


def test_known_constraints_and_late_feedback_are_stored(place: str) -> None:
    demand = constraints.Equality([1.0, 1.0, 1.0], 2.0)
    alone = make("a")
    alone.ask(demand)
    with Pool(place, make) as pool:
        np.testing.assert_array_equal(pool.ask("a", demand), alone.ask())
    with Pool(place, make) as pool:
        np.testing.assert_array_equal(pool.ask("a"), alone.ask())
        assert same(pool.tell("a", **feedback("a", 0)), alone.tell(**feedback("a", 0)))
        for _ in range(3):
            (number, x), (own_number, own_x) = pool.play("a"), alone.play()
            assert number == own_number
            np.testing.assert_array_equal(x, own_x)
    with Pool(place, make) as pool:
        assert same(pool.tell("a", round=4, **feedback("a", 1)), alone.tell(round=4, **feedback("a", 1)))
        pool.forget("a", 2)
        alone.forget(2)
        assert pool.learner("a").pending == alone.pending == (3,)
        with pytest.raises(InvalidInput, match="round: expected one of the pending rounds 3"):
            pool.tell("a", **feedback("a", 2))


def test_giving_up_feedback_may_be_tried_again(place: str) -> None:
    with Pool(place, make) as pool:
        for _ in range(3):
            pool.play("a")
        pool.forget("a", 2, id="late")
    with Pool(place, make) as pool:
        pool.forget("a", 2, id="late")
        assert pool.learner("a").pending == (1, 3)
        with pytest.raises(InvalidInput, match="id: expected a new one, got 'late', which gave up round 2 of 'a'"):
            pool.forget("a", 3, id="late")
        assert pool.learner("a").pending == (1, 3)
        with pytest.raises(InvalidInput, match="got 'late', which a call of forget for 'a' had"):
            pool.play("a", id="late")
        with pytest.raises(InvalidInput, match="round"):
            pool.forget("a", 2)


def test_an_id_is_applied_once(place: str) -> None:
    with Pool(place, make) as pool:
        first = pool.tell("a", **feedback("a", 0), id="one")
        assert same(pool.tell("a", **feedback("a", 0), id="one"), first)
        pool.tell("a", **feedback("a", 1), id="two")
        assert pool.tell("b", **feedback("b", 0), id="one").t == 1  # ids are those of a key
    with Pool(place, make) as pool:
        again = pool.tell("a", **feedback("a", 0), id="one")
        assert same(again, first)
        assert isinstance(again.violation, np.floating)
        assert isinstance(again.rows, np.ndarray)
        assert pool.learner("a").t == 2
        number, x = pool.play("a", id="three")
        again_number, again_x = pool.play("a", id="three")
        assert number == again_number
        np.testing.assert_array_equal(x, again_x)
        assert pool.learner("a").pending == (3,)
        with pytest.raises(InvalidInput, match="id: expected a new one, got 'three', which a call of play for 'a' had"):
            pool.tell("a", **feedback("a", 2), round=3, id="three")


def test_a_batch_has_records_too(place: str) -> None:
    def batch(key: str) -> CLASP:
        return CLASP(Box(0.0, 1.0, dim=2), start=np.full((3, 2), 0.5), infeasible="nearest")

    revealed = {"loss": losses.Linear(np.eye(3, 2)), "constraint": constraints.Affine([[1.0, 1.0]], [-1.0])}
    with Pool(place, batch) as pool:
        first = pool.tell("a", **revealed, id="one")
        again = pool.tell("a", **revealed, id="one")
    assert same(first, again)
    assert first.feasible.dtype == again.feasible.dtype == bool
    assert same(first, batch("a").tell(**revealed))


def test_the_last_thousand_ids_of_a_key_are_remembered(place: str) -> None:
    with Pool(place, make) as pool:
        items = [{"key": "a", "id": f"{i}", "loss": losses.Linear([0.1, 0.0, -0.1])} for i in range(1000)]
        records = pool.tell_many(items)
        assert same(pool.tell(**items[0]), records[0])
        pool.tell("a", losses.Linear([0.1, 0.0, -0.1]), id="1000")
        assert same(pool.tell(**items[1]), records[1])
        assert pool.learner("a").t == 1001
        assert pool.tell(**items[0]).t == 1002  # forgotten, so it is new


def test_tell_many_is_all_or_nothing(place: str) -> None:
    items = [{"key": key, "id": "0", **feedback(key, 0)} for key in "cab"]
    with Pool(place, make) as pool:
        bad = {"key": "b", "loss": losses.Linear([np.nan, 0.0, 0.0])}
        with pytest.raises(InvalidInput, match=r"c: expected finite numbers") as caught:
            pool.tell_many([*items, bad])
        assert caught.value.__notes__ == ["tell_many: item 3, key 'b'; nothing of all items was stored"]
        assert len(pool) == 0
        records = pool.tell_many([*items, *items])
        assert [record.t for record in records] == [1] * 6
        assert all(same(one, other) for one, other in zip(records[:3], records[3:], strict=True))
        assert pool.keys() == [*pool] == ["a", "b", "c"]
        for key in "abc":
            alone = make(key)
            alone.tell(**feedback(key, 0))
            np.testing.assert_array_equal(pool.ask(key), alone.ask())
        assert pool.tell_many([]) == []


def test_what_raises_changes_nothing(place: str) -> None:
    with Pool(place, make) as pool:
        pool.tell("a", **feedback("a", 0))
        before = pool.learner("a").dumps()
        with pytest.raises(cocopt.errors.InfeasibleRound):
            pool.tell("a", constraint=constraints.Affine([1.0, 1.0, 1.0], -1.0), id="bad")
        assert pool.learner("a").dumps() == before
        assert pool.tell("a", **feedback("a", 1), id="bad").t == 2  # an id counts once it is acknowledged


def test_keys_can_be_deleted(place: str) -> None:
    with Pool(place, make) as pool:
        for index in range(3):
            pool.tell("a", **feedback("a", index), id=f"{index}")
        assert "a" in pool
        del pool["a"]
        assert "a" not in pool
        assert None not in pool
        assert pool.tell("a", **feedback("a", 0), id="0").t == 1
        del pool["a"]
        for wrong in (lambda: pool.learner("a"), lambda: pool.__delitem__("a")):
            with pytest.raises(UnknownKey, match="key: expected one of the 0 keys of the pool, got 'a'"):
                wrong()


def test_memory_is_bounded_and_never_stale(place: str) -> None:
    with Pool(place, make, memory=25_000) as small, Pool(place, make) as other:
        for key in map(str, range(10)):
            small.tell(key, **feedback("a", 0))
        assert 0 < len(small._live) < 3
        for pool in (small, other, small, other):  # each has to notice what the other has changed
            for key in ("0", "9"):
                pool.tell(key, **feedback("a", 1))
        assert small.learner("0").t == small.learner("9").t == 5
        del other["9"]
        other.tell("9", **feedback("a", 0))
        assert small.tell("9", **feedback("a", 0)).t == 2


def test_threads_share_a_pool(place: str) -> None:
    def work(worker: int) -> list[int]:
        return [pool.tell("ab"[i % 2], **feedback("a", i), id=f"{worker}-{i}").t for i in range(10)]

    with Pool(place, make) as pool:
        with ThreadPoolExecutor(4) as threads:
            rounds = sorted(t for records in threads.map(work, range(4)) for t in records)
        assert rounds == sorted([*range(1, 21), *range(1, 21)])
        assert pool.learner("a").t == pool.learner("b").t == 20


def test_commits_are_synced(tmp_path: Path) -> None:
    with Pool(tmp_path / "pool.db", make) as pool, pool._database._connections.use() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


@pytest.mark.servers
def test_commits_are_synced_by_a_server_too(database: str) -> None:
    place = f"{database}%20-csynchronous_commit%3Doff"
    with Pool(place, make) as pool, pool._database._connections.use() as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)


# ----------------------------------------------------------------------------------------------------- processes, kills


@pytest.mark.long
def test_nothing_acknowledged_is_lost_or_applied_twice_under_kill_9(place: str) -> None:
    seen = run_program("kill", place, str(KILLS), "7")
    assert seen["errors"] == []
    assert seen["repeated"] == 0  # the record of round t is that of the t-th feedback, tried again or not
    with Pool(place, make) as pool:
        for key, indices in seen["acknowledged"].items():
            assert indices == [*range(1, len(indices) + 1)]
            learner = pool.learner(key)
            assert 0 <= learner.t - len(indices) <= 1  # the last one may have been stored and not acknowledged
            alone = make(key)
            for index in range(1, learner.t + 1):
                alone.tell(**feedback(key, index))
            np.testing.assert_array_equal(pool.ask(key), alone.ask())
            assert learner.ledger == alone.ledger
        assert sum(map(len, seen["acknowledged"].values())) > KILLS


def test_four_processes_on_the_same_keys_lose_no_update(place: str) -> None:
    seen = run_program("share", place)
    assert seen["errors"] == []
    for key, rounds in seen["rounds"].items():
        assert sorted(rounds) == [*range(1, 49)], key
    with Pool(place, make) as pool:
        assert [pool.learner(key).t for key in pool] == [48, 48, 48]


@pytest.mark.servers
def test_a_server_that_crashes_loses_nothing(database: str, server: servers.Server) -> None:
    with Pool(database, make) as pool:
        for index in range(2):
            pool.tell("a", **feedback("a", index), id=f"{index}")
            server.crash()
            with pytest.raises(PoolUnavailable):
                pool.tell("a", **feedback("a", index + 1), id=f"{index + 1}")
            server.start()
        assert pool.tell("a", **feedback("a", 1), id="1").t == 2
        assert pool.learner("a").t == 2


def test_a_pool_belongs_to_its_process(place: str) -> None:
    with Pool(place, make) as pool:
        pool._process += 1  # as after a fork
        with pytest.raises(InvalidInput, match="expected to be used by the process that opened it"):
            pool.ask("a")


# ------------------------------------------------------------------------------------------------------ what goes wrong


def test_a_row_that_was_changed_by_hand_is_refused_and_kept(place: str) -> None:
    with Pool(place, make) as pool:
        for key in "abc":
            pool.tell(key, **feedback(key, 0), id="0")
        content = pool.learner("b").dumps()
    change_by_hand(place, "UPDATE learners SET content = ? WHERE key = 'a'", content)  # whole, but another's
    change_by_hand(place, "UPDATE calls SET record = ? WHERE key = 'b'", b"{}")
    with Pool(place, make) as pool:
        for call in (pool.ask, pool.learner, lambda key: pool.tell(key, **feedback(key, 1))):
            with pytest.raises(StateError, match="key 'a': expected the row that was written, got another"):
                call("a")
        with pytest.raises(StateError, match="key 'b', id '0': expected the record that was written"):
            pool.tell("b", **feedback("b", 0), id="0")
        assert pool.learner("b").t == 1
        assert pool.tell("c", **feedback("c", 1)).t == 2  # the others go on
        assert len(pool) == 3


def test_tables_of_a_later_version_are_refused(place: str) -> None:
    Pool(place, make).close()
    if place.startswith("postgresql"):
        change_by_hand(place, "UPDATE cocopt_pool SET version = 7")
    else:
        change_by_hand(place, "PRAGMA user_version = 7")
    with pytest.raises(StateError, match="expected a pool of schema 1 or older, got 7: upgrade cocopt to use it"):
        Pool(place, make)


def test_what_must_be_passed_again(place: str) -> None:
    class OwnBox(Box):
        """A set whose class is not registered."""

    K = OwnBox(0.0, 1.0, dim=3)
    with Pool(place, lambda key: CLASP(K)) as pool:
        with pytest.raises(StateError, match=r"for a pool: Pool\(..., supplied=\{'K': ...\}\)"):
            pool.ask("a")
        assert len(pool) == 0
    with Pool(place, lambda key: CLASP(K), supplied={"K": K}) as pool:
        pool.tell("a", **feedback("a", 0))
    with Pool(place, lambda key: CLASP(K), supplied={"K": K}) as pool:
        assert pool.tell("a", **feedback("a", 1)).t == 2


def test_what_cannot_be_stored_is_refused(place: str) -> None:
    black_box = constraints.Function(lambda x: float(x.sum()) - 2.0, lambda x: np.ones(3))
    with Pool(place, lambda key: CLASP(Box(0.0, 1.0, dim=3), window=3)) as pool:
        pool.tell("a", **feedback("a", 0))
        with pytest.raises(NotStorable, match="A black box is code"):
            pool.tell("a", constraint=black_box)
        assert pool.learner("a").t == 1

    class Unregistered(CLASP):
        """A learner whose class is not registered."""

    with Pool(place, lambda key: Unregistered(Box(0.0, 1.0, dim=3))) as pool:
        with pytest.raises(NotStorable, match=r"register it with @cocopt\.register"):
            pool.ask("b")
        assert pool.keys() == ["a"]


def test_wrong_arguments_are_named(place: str) -> None:
    with Pool(place, make) as pool:
        for key in ("", "a\0b", "\ud800", "x" * 501, 3, None):
            with pytest.raises(InvalidInput, match="key: expected a text of 1 to 500 characters"):
                pool.ask(key)
            if key is not None:
                with pytest.raises(InvalidInput, match="id: expected a text"):
                    pool.tell("a", **feedback("a", 0), id=key)
        for items in (None, "abc", {"key": "a"}, 3):
            with pytest.raises(InvalidInput, match="items: expected the arguments of several tells"):
                pool.tell_many(items)
        for item in (None, {}, {"key": "a", "los": None}, ["a"]):
            with pytest.raises(InvalidInput, match=r"items\[0\]: expected a mapping with key and some of loss"):
                pool.tell_many([item])
        assert len(pool) == 0
    with pytest.raises(InvalidInput, match="expected an open pool"):
        pool.ask("a")
    with Pool(place, lambda key: key) as pool, pytest.raises(InvalidInput, match=r"make\('a'\): expected a learner"):
        pool.ask("a")


def test_keys_are_any_text(place: str) -> None:
    keys = ["a", "A", " ", "é", "日本", "'; DROP TABLE learners; --", "%s", "x" * 500]
    with Pool(place, make) as pool:
        for count, key in enumerate(keys, 1):
            assert pool.tell(key, **feedback("a", 0), id=key).t == 1
            assert len(pool) == count
        assert pool.keys() == sorted(keys)


def test_a_busy_pool_says_so_and_loses_nothing(place: str) -> None:
    entered, leave = threading.Event(), threading.Event()

    class Slow(losses.Linear):
        """A loss whose evaluation lasts until the test says so."""

        def value_and_gradient_unchecked(self, x: Any) -> Any:
            entered.set()
            leave.wait(30)
            return super().value_and_gradient_unchecked(x)

    with Pool(place, make) as pool, Pool(place, make, timeout=0.05) as other, ThreadPoolExecutor(1) as thread:
        pool.ask("a")
        slow = thread.submit(pool.tell, "a", Slow([1.0, 0.0, 0.0]))
        entered.wait(30)
        try:
            with pytest.raises(PoolUnavailable, match=r"within 0.05 s, .* nothing was stored: try again"):
                other.tell("a", **feedback("a", 0), id="0")
            np.testing.assert_array_equal(other.ask("a"), [0.5, 0.5, 0.5])  # readers do not wait
        finally:
            leave.set()
        assert slow.result().t == 1
        assert other.tell("a", **feedback("a", 0), id="0").t == 2


def test_places_that_are_no_pool(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("buy milk " * 500)
    with pytest.raises(StateError, match=r"expected a pool of cocopt, got a file that is none"):
        Pool(notes, make)
    assert notes.read_text() == "buy milk " * 500
    foreign = tmp_path / "foreign.db"
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE learners (name TEXT)")
    connection.close()
    before = foreign.read_bytes()
    with pytest.raises(StateError, match="expected a pool of cocopt, got another SQLite database"):
        Pool(foreign, make)
    assert foreign.read_bytes() == before
    with pytest.raises(MissingFile, match="no such folder"):
        Pool(tmp_path / "none" / "pool.db", make)
    with pytest.raises(InvalidInput, match="expected a file or a new name, got a folder or a device"):
        Pool(tmp_path, make)
    for place in (":memory:", "mysql://host/db", "", 3, None, "a\0b"):
        with pytest.raises(InvalidInput, match="place: expected a file or postgresql://"):
            Pool(place, make)
    with pytest.raises(PoolUnavailable, match="the pool cannot be used"):
        Pool("postgresql://nobody@127.0.0.1:1/none", make, timeout=2.0)
    with pytest.raises(InvalidInput, match="expected postgresql://user@host/database"):
        Pool("postgresql://nobody@127.0.0.1/none?colour=red", make)
    for arguments in ({"make": None}, {"make": make, "supplied": 3}, {"make": make, "memory": -1}):
        with pytest.raises(InvalidInput, match=f"{[*arguments][-1]}: expected"):
            Pool(tmp_path / "pool.db", **arguments)


@pytest.mark.servers
def test_tables_that_are_no_pool(database: str) -> None:
    import psycopg

    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE cocopt_learners (name TEXT)")
    with pytest.raises(StateError, match=r"expected the tables .* of a pool, got some of them only"):
        Pool(database, make)


def test_a_file_that_loses_its_tables(tmp_path: Path) -> None:
    place = str(tmp_path / "pool.db")
    with Pool(place, make) as pool:
        pool.tell("a", **feedback("a", 0), id="0")
    change_by_hand(place, "DROP TABLE calls")
    with Pool(place, make) as pool:
        with pytest.raises(StateError, match="damaged or changed by hand"):
            pool.tell("a", **feedback("a", 1), id="1")
        assert pool.learner("a").t == 1

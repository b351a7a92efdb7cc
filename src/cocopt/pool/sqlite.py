"""A pool in one SQLite file, for the threads and processes of one machine.

The journal is a write-ahead log that is synced at every commit (``synchronous=FULL``). One process writes at a time;
the others wait for their turn.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cocopt.errors import InvalidInput, MissingFile, PoolUnavailable, StateError
from cocopt.pool.database import SCHEMA, Change, Connections, Database, Row, check_schema

__all__ = ["SQLiteDatabase"]

#: "coco" in the header of the file says whose it is
_APPLICATION = 0x636F636F
_TABLES = (
    "CREATE TABLE learners (key TEXT PRIMARY KEY, version INTEGER NOT NULL, ids INTEGER NOT NULL, "
    "checksum BLOB NOT NULL, content BLOB NOT NULL)",
    "CREATE TABLE calls (key TEXT NOT NULL, slot INTEGER NOT NULL, id TEXT NOT NULL, record BLOB NOT NULL, "
    "PRIMARY KEY (key, slot)) WITHOUT ROWID",
    "CREATE UNIQUE INDEX calls_by_id ON calls (key, id)",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {SCHEMA}",
)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_DAMAGED = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH)


class SQLiteDatabase(Database):
    """The file is made where there is none; a file of anyone else is left as it is."""

    def __init__(self, path: str | os.PathLike[str], timeout: float) -> None:
        self._path, self._timeout = os.path.abspath(path), timeout
        self._writing = threading.Lock()  # threads take turns here, in which SQLite would let them poll
        self._check_path()
        self._connections = Connections(self._connect, sqlite3.Connection.close, _usable)
        try:
            with self._translated(), self._connections.use() as connection:
                self._prepare(connection)
        except BaseException:
            self.close()
            raise

    def _check_path(self) -> None:
        if not Path(self._path).parent.is_dir():
            raise MissingFile(errno.ENOENT, "no such folder", str(Path(self._path).parent))
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(os.stat(self._path).st_mode):
                raise InvalidInput(f"{self._path}: expected a file or a new name, got a folder or a device")

    def _connect(self) -> sqlite3.Connection:
        # transactions are begun and ended by this module alone; one thread at a time uses a connection
        connection = sqlite3.connect(self._path, self._timeout, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")  # where a sync by itself does not reach the disk (macOS)
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Makes the tables in a new file, or checks that the file is a pool."""
        if self._owner(connection) is None:
            self._use_log(connection)
            connection.execute("BEGIN IMMEDIATE")
            if self._owner(connection) is None:  # nobody else was faster
                for statement in _TABLES:
                    connection.execute(statement)
            connection.execute("COMMIT")
        if self._owner(connection) != _APPLICATION:
            raise StateError(f"{self._path}: expected a pool of cocopt, got another SQLite database")
        check_schema(self._path, connection.execute("PRAGMA user_version").fetchone()[0])
        self._use_log(connection)

    def _owner(self, connection: sqlite3.Connection) -> int | None:
        """The application whose file it is; None for an empty one."""
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return None if owner == 0 and tables == 0 else int(owner)

    def _use_log(self, connection: sqlite3.Connection) -> None:
        """Sets the journal; that needs the file for a moment, and SQLite does not wait for it by itself."""
        end = time.monotonic() + self._timeout
        while True:
            try:
                (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            except sqlite3.OperationalError as error:
                if _code(error) not in _BUSY or time.monotonic() > end:
                    raise
                time.sleep(0.01)
                continue
            if mode != "wal":
                raise PoolUnavailable(f"{self._path}: expected a file system that allows a write-ahead log, got {mode}")
            return

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Errors of SQLite as errors of cocopt."""
        try:
            yield
        except sqlite3.Error as error:
            code = _code(error)
            if code in _BUSY:
                raise self._busy() from error
            if code in _DAMAGED:
                raise StateError(
                    f"{self._path}: expected a pool of cocopt, got a file that is none, or that was damaged or changed "
                    f"by hand ({error})"
                ) from error
            raise PoolUnavailable(f"{self._path}: the pool cannot be used ({error}); nothing was stored") from error

    def _busy(self) -> PoolUnavailable:
        return PoolUnavailable(
            f"{self._path}: expected to be free within {self._timeout:g} s, got a file in which others are writing; "
            "nothing was stored: try again, or pass a longer timeout"
        )

    @contextmanager
    def change(self) -> Iterator[Change]:
        if not self._writing.acquire(timeout=self._timeout):
            raise self._busy()
        try:
            with self._translated(), self._connections.use() as connection:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield _SQLiteChange(connection)
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
        finally:
            self._writing.release()

    def row(self, key: str) -> Row | None:
        found = self._select("SELECT version, ids, checksum FROM learners WHERE key = ?", key)
        return Row(*found[0]) if found else None

    def read(self, key: str) -> tuple[Row, bytes] | None:
        found = self._select("SELECT version, ids, checksum, content FROM learners WHERE key = ?", key)
        return (Row(*found[0][:3]), found[0][3]) if found else None

    def keys(self) -> list[str]:
        return [key for (key,) in self._select("SELECT key FROM learners ORDER BY key")]

    def count(self) -> int:
        return int(self._select("SELECT count(*) FROM learners")[0][0])

    def close(self) -> None:
        self._connections.close()

    def _select(self, query: str, *values: Any) -> list[Any]:
        with self._translated(), self._connections.use() as connection:
            return connection.execute(query, values).fetchall()


class _SQLiteChange(Change):
    """A transaction that holds the file's only lock for writing."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def lock(self, keys: Sequence[str]) -> dict[str, Row]:
        query = "SELECT version, ids, checksum FROM learners WHERE key = ?"
        found = ((key, self._connection.execute(query, (key,)).fetchone()) for key in keys)
        return {key: Row(*row) for key, row in found if row is not None}

    def contents(self, keys: Sequence[str]) -> dict[str, bytes]:
        query = "SELECT content FROM learners WHERE key = ?"
        return {key: self._connection.execute(query, (key,)).fetchone()[0] for key in keys}

    def recall(self, calls: Sequence[tuple[str, str]]) -> dict[tuple[str, str], bytes]:
        query = "SELECT record FROM calls WHERE key = ? AND id = ?"
        found = ((call, self._connection.execute(query, call).fetchone()) for call in calls)
        return {call: row[0] for call, row in found if row is not None}

    def store(self, rows: Mapping[str, tuple[Row, bytes]], added: frozenset[str]) -> None:
        values = [(*row, content, key) for key, (row, content) in rows.items()]
        new, old = ([one for one in values if (one[-1] in added) is wanted] for wanted in (True, False))
        self._connection.executemany(
            "UPDATE learners SET version = ?, ids = ?, checksum = ?, content = ? WHERE key = ?", old
        )
        self._connection.executemany(
            "INSERT INTO learners (version, ids, checksum, content, key) VALUES (?, ?, ?, ?, ?)", new
        )

    def remember(self, calls: Sequence[tuple[str, int, str, bytes]]) -> None:
        self._connection.executemany("INSERT OR REPLACE INTO calls (key, slot, id, record) VALUES (?, ?, ?, ?)", calls)

    def remove(self, key: str) -> None:
        self._connection.execute("DELETE FROM calls WHERE key = ?", (key,))
        self._connection.execute("DELETE FROM learners WHERE key = ?", (key,))


def _usable(connection: sqlite3.Connection) -> bool:
    return not connection.in_transaction


def _code(error: sqlite3.Error) -> int:
    """The primary code of an error of SQLite; 0 for one that Python's module itself raises."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF

"""What a pool needs of a database: rows that can be locked, and transactions that are all or nothing."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from cocopt.errors import InvalidInput, StateError

__all__ = ["REMEMBERED", "SCHEMA", "Change", "Conflict", "Connections", "Database", "Row", "check_schema", "checksum"]

#: the version of the tables
SCHEMA = 1
#: so many ids are remembered per key, with what the calls returned
REMEMBERED = 1000


class Row(NamedTuple):
    """What identifies the stored state of a learner, without the state."""

    version: int  #: how often it was stored
    ids: int  #: how many ids it has been given
    checksum: bytes  #: of the above and the state


class Conflict(Exception):
    """The database ended a transaction for the sake of others; nothing was stored, and it can be done again."""


def checksum(key: str, version: int, ids: int, content: bytes) -> bytes:
    """The SHA-256 of a row, key included, so that rows that were exchanged are noticed too."""
    return hashlib.sha256(f"{version} {ids} {key}\0".encode() + content).digest()


def check_schema(place: str, found: int) -> None:
    """Refuses tables that a later version of cocopt has made."""
    if found > SCHEMA:
        raise StateError(f"{place}: expected a pool of schema {SCHEMA} or older, got {found}: upgrade cocopt to use it")
    if found < 1:
        raise StateError(f"{place}: expected a pool of schema {SCHEMA}, got {found}: its tables were changed by hand")


class Change(ABC):
    """One transaction. What it has locked, nobody else changes until it ends."""

    @abstractmethod
    def lock(self, keys: Sequence[str]) -> dict[str, Row]:
        """Locks the rows of these keys, which are in alphabetical order; those that exist."""

    @abstractmethod
    def contents(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The stored states of locked rows."""

    @abstractmethod
    def recall(self, calls: Sequence[tuple[str, str]]) -> dict[tuple[str, str], bytes]:
        """What is remembered of calls, by key and id."""

    @abstractmethod
    def store(self, rows: Mapping[str, tuple[Row, bytes]], added: frozenset[str]) -> None:
        """Writes rows with their states; those that are added must not exist yet, else this is a `Conflict`."""

    @abstractmethod
    def remember(self, calls: Sequence[tuple[str, int, str, bytes]]) -> None:
        """Writes what calls returned: key, place among the remembered, id, record."""

    @abstractmethod
    def remove(self, key: str) -> None:
        """Deletes the row of a key, and what is remembered of its calls."""


class Database(ABC):
    """Where the rows of a pool are; used by many threads at once."""

    @abstractmethod
    def change(self) -> contextlib.AbstractContextManager[Change]:
        """A transaction, committed when the block ends, and durable then; an exception undoes it."""

    @abstractmethod
    def row(self, key: str) -> Row | None:
        """The row of a key without its state."""

    @abstractmethod
    def read(self, key: str) -> tuple[Row, bytes] | None:
        """The row of a key, and its state."""

    @abstractmethod
    def keys(self) -> list[str]:
        """All keys, in alphabetical order of their code points."""

    @abstractmethod
    def count(self) -> int:
        """How many keys there are."""

    @abstractmethod
    def close(self) -> None:
        """Ends all connections that are not in use; those in use end with their transaction."""


Connection = TypeVar("Connection")


class Connections(Generic[Connection]):
    """Connections that wait to be used again: one is used by one thread at a time.

    Parameters
    ----------
    connect, end : callable
        Make a connection, and end one.
    usable : callable
        Whether a connection can be used again after an error: it is open, and no transaction is.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        end: Callable[[Connection], None],
        usable: Callable[[Connection], bool],
    ) -> None:
        self._connect, self._end, self._usable = connect, end, usable
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._closed = False

    @contextlib.contextmanager
    def use(self, *, fresh: bool = False) -> Iterator[Connection]:
        """One that nobody else uses until the block ends. ``fresh``: a new one, since those that wait have ended."""
        with self._lock:
            if self._closed:
                raise InvalidInput("pool: expected an open pool, got one that was closed")
            if fresh:
                self._end_idle()
            waiting = self._idle.pop() if self._idle else None
        connection = self._connect() if waiting is None else waiting
        try:
            yield connection
        finally:
            self._put_back(connection)

    def _put_back(self, connection: Connection) -> None:
        with self._lock:
            if not self._closed and self._usable(connection):
                self._idle.append(connection)
            else:
                self._end(connection)

    def close(self) -> None:
        """Ends those that are idle, and each other one once it is."""
        with self._lock:
            self._closed = True
            self._end_idle()

    def _end_idle(self) -> None:
        while self._idle:
            self._end(self._idle.pop())

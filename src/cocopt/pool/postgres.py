"""A pool in PostgreSQL, for several processes and hosts: each transaction locks the rows of its keys alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from cocopt.errors import InvalidInput, PoolUnavailable, StateError
from cocopt.pool.database import SCHEMA, Change, Conflict, Connections, Database, Row, check_schema

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresDatabase"]

_TABLES = """
CREATE TABLE cocopt_learners (key TEXT COLLATE "C" PRIMARY KEY, version BIGINT NOT NULL, ids BIGINT NOT NULL,
    checksum BYTEA NOT NULL, content BYTEA NOT NULL);
CREATE TABLE cocopt_calls (key TEXT COLLATE "C" NOT NULL, slot INTEGER NOT NULL, id TEXT COLLATE "C" NOT NULL,
    record BYTEA NOT NULL, PRIMARY KEY (key, slot), UNIQUE (key, id));
CREATE TABLE cocopt_pool (version INTEGER NOT NULL)
"""
_CREATING = 0x636F636F  # the lock that processes take turns with to make the tables
_SYNCED = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"


class PostgresDatabase(Database):
    """Tables ``cocopt_…`` in the first schema of the connection's search path, made where there are none."""

    def __init__(self, url: str, timeout: float) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise ImportError("a pool in PostgreSQL needs psycopg: pip install 'cocopt[postgres]'") from error
        self._psycopg, self._url, self._timeout = psycopg, url, timeout
        self._place = "PostgreSQL"
        try:
            known = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.Error as error:
            raise InvalidInput(f"place: expected postgresql://user@host/database, got another URL ({error})") from None
        # without the password
        self._place = f"{known.get('dbname', 'PostgreSQL')} on {known.get('host', 'localhost')}"
        self._connections: Connections[psycopg.Connection[Any]] = Connections(self._connect, _end, self._usable)
        try:
            with self._transaction() as connection:
                self._prepare(connection)
        except BaseException:
            self.close()
            raise

    def _connect(self) -> psycopg.Connection[Any]:
        connection = self._psycopg.connect(
            self._url, autocommit=True, connect_timeout=max(2, round(self._timeout)), client_encoding="utf8"
        )
        connection.execute(f"SET lock_timeout = {max(1, round(1000 * self._timeout))}")
        connection.execute(_SYNCED)  # an acknowledged commit is to be on disk
        return connection

    def _usable(self, connection: psycopg.Connection[Any]) -> bool:
        idle = self._psycopg.pq.TransactionStatus.IDLE
        return not connection.closed and connection.info.transaction_status == idle

    def _prepare(self, connection: psycopg.Connection[Any]) -> None:
        """Makes the tables, or checks that they are a pool's."""
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_CREATING,))
        tables = ("cocopt_pool", "cocopt_learners", "cocopt_calls")
        found = [self._exists(connection, name) for name in tables]
        if not any(found):
            connection.execute(_TABLES)
            connection.execute("INSERT INTO cocopt_pool VALUES (%s)", (SCHEMA,))
        elif not all(found):
            raise StateError(f"{self._place}: expected the tables {', '.join(tables)} of a pool, got some of them only")
        versions = connection.execute("SELECT version FROM cocopt_pool").fetchall()
        check_schema(self._place, versions[0][0] if len(versions) == 1 else 0)

    @staticmethod
    def _exists(connection: psycopg.Connection[Any], table: str) -> bool:
        found = connection.execute("SELECT to_regclass(%s)", (table,)).fetchone()
        return found is not None and found[0] is not None

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Errors of PostgreSQL as errors of cocopt."""
        errors = self._psycopg.errors
        try:
            yield
        except (errors.DeadlockDetected, errors.SerializationFailure) as error:
            raise Conflict from error
        except (errors.LockNotAvailable, errors.QueryCanceled) as error:
            raise PoolUnavailable(
                f"{self._place}: expected the rows to be free within {self._timeout:g} s, got rows that others are "
                "changing; nothing was stored: try again, or pass a longer timeout"
            ) from error
        except (errors.UndefinedTable, errors.UndefinedColumn, errors.DatatypeMismatch) as error:
            raise StateError(f"{self._place}: expected the tables of a pool, got others ({error})") from error
        except self._psycopg.Error as error:
            raise PoolUnavailable(f"{self._place}: the pool cannot be used ({error}); nothing was stored") from error

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection[Any]]:
        with self._translated(), self._begun() as connection:
            try:
                yield connection
            except BaseException:
                if not connection.closed:
                    with suppress(self._psycopg.Error):  # the error that led here is the one to report
                        connection.execute("ROLLBACK")
                raise
            try:
                connection.execute("COMMIT")
            except self._psycopg.OperationalError as error:
                raise PoolUnavailable(
                    f"{self._place}: the connection ended while the change was being stored ({error}); it may have "
                    "been or not: call again with the same id, which applies it once"
                ) from error

    @contextmanager
    def _begun(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection within a transaction. One that has waited may have ended; then there is a new one."""
        with self._connections.use() as connection:
            alive = True
            try:
                connection.execute("BEGIN")
            except self._psycopg.OperationalError:
                alive = False
            if alive:
                yield connection
                return
        with self._connections.use(fresh=True) as connection:
            connection.execute("BEGIN")
            yield connection

    @contextmanager
    def change(self) -> Iterator[Change]:
        with self._transaction() as connection:
            yield _PostgresChange(connection)

    def row(self, key: str) -> Row | None:
        found = self._select("SELECT version, ids, checksum FROM cocopt_learners WHERE key = %s", key)
        return Row(*found[0]) if found else None

    def read(self, key: str) -> tuple[Row, bytes] | None:
        found = self._select("SELECT version, ids, checksum, content FROM cocopt_learners WHERE key = %s", key)
        return (Row(*found[0][:3]), found[0][3]) if found else None

    def keys(self) -> list[str]:
        return [key for (key,) in self._select("SELECT key FROM cocopt_learners ORDER BY key")]

    def count(self) -> int:
        return int(self._select("SELECT count(*) FROM cocopt_learners")[0][0])

    def close(self) -> None:
        self._connections.close()

    def _select(self, query: str, *values: Any) -> list[Any]:
        with self._transaction() as connection:
            return connection.execute(query, values, binary=True).fetchall()


class _PostgresChange(Change):
    """A transaction that holds the locks of its rows."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def lock(self, keys: Sequence[str]) -> dict[str, Row]:
        query = "SELECT key, version, ids, checksum FROM cocopt_learners WHERE key = ANY(%s) ORDER BY key FOR UPDATE"
        found = self._connection.execute(query, (list(keys),), binary=True)
        return {key: Row(*row) for key, *row in found}

    def contents(self, keys: Sequence[str]) -> dict[str, bytes]:
        query = "SELECT key, content FROM cocopt_learners WHERE key = ANY(%s)"
        return dict(self._connection.execute(query, (list(keys),), binary=True).fetchall())

    def recall(self, calls: Sequence[tuple[str, str]]) -> dict[tuple[str, str], bytes]:
        keys, ids = zip(*calls, strict=True)
        query = (
            "SELECT key, id, record FROM cocopt_calls "
            "JOIN unnest(%s::text[], %s::text[]) AS asked (key, id) USING (key, id)"
        )
        found = self._connection.execute(query, (list(keys), list(ids)), binary=True)
        return {(key, id): record for key, id, record in found}

    def store(self, rows: Mapping[str, tuple[Row, bytes]], added: frozenset[str]) -> None:
        values = [(*row, content, key) for key, (row, content) in rows.items()]
        new, old = ([one for one in values if (one[-1] in added) is wanted] for wanted in (True, False))
        self._all("UPDATE cocopt_learners SET version = %s, ids = %s, checksum = %b, content = %b WHERE key = %s", old)
        made = self._all(
            "INSERT INTO cocopt_learners (version, ids, checksum, content, key) VALUES (%s, %s, %b, %b, %s) "
            "ON CONFLICT DO NOTHING",
            new,
        )
        if made != len(new):  # another process has added one meanwhile
            raise Conflict

    def remember(self, calls: Sequence[tuple[str, int, str, bytes]]) -> None:
        self._all(
            "INSERT INTO cocopt_calls (key, slot, id, record) VALUES (%s, %s, %s, %b) "
            "ON CONFLICT (key, slot) DO UPDATE SET id = EXCLUDED.id, record = EXCLUDED.record",
            calls,
        )

    def remove(self, key: str) -> None:
        self._connection.execute("DELETE FROM cocopt_calls WHERE key = %s", (key,))
        self._connection.execute("DELETE FROM cocopt_learners WHERE key = %s", (key,))

    def _all(self, query: str, values: Sequence[Sequence[Any]]) -> int:
        """Runs a statement with each of the values; how many rows it changed."""
        if not values:
            return 0
        with self._connection.cursor() as cursor:
            cursor.executemany(query, values)
            return cursor.rowcount


def _end(connection: psycopg.Connection[Any]) -> None:
    connection.close()

"""`Pool`: learners by key. One routine applies calls to learners within a transaction; everything else is arguments."""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from cocopt import state
from cocopt.algorithms import Learner
from cocopt.arrays import Array, ArrayLike, describe, nonnegative_int, scalar
from cocopt.errors import InvalidInput, PoolUnavailable, StateError, UnknownKey
from cocopt.pool import records
from cocopt.pool.database import REMEMBERED, Change, Conflict, Database, Row, checksum
from cocopt.pool.live import Live
from cocopt.pool.sqlite import SQLiteDatabase

if TYPE_CHECKING:
    from cocopt.algorithms.base import Round
    from cocopt.constraints import Constraint
    from cocopt.losses import Loss

__all__ = ["Pool"]

_LONGEST = 500  # characters of a key or an id: both are indexed
_CONFLICTS = 20  # so often a transaction is tried that others have ended
_TELL = ("key", "loss", "constraint", "round", "played", "id")


class _Call(NamedTuple):
    """Something to do with a learner, which changes it."""

    key: str
    id: str | None
    name: str
    run: Callable[[Learner], Any]


class _Absent(Exception):
    """Learners have to be made first, outside of a transaction."""

    def __init__(self, keys: Sequence[str]) -> None:
        super().__init__(keys)
        self.keys = keys


class Pool:
    """Many learners, each under a key, in a database; what a call has changed is stored before the call returns.

    A learner is made by ``make(key)`` when its key is first used. `tell`, `tell_many`, `play`, `forget` and an `ask`
    with ``known`` are each one transaction: once they return, the change survives a crash, as far as the database
    promises (SQLite syncs its log at every commit). If they raise, nothing was changed.

    A pool may be used by many threads; each process opens its own. Several processes on the same keys take turns, so
    that no update is lost.

    Parameters
    ----------
    place : path or str
        A file, for SQLite, or ``postgresql://user@host/database`` (needs ``cocopt[postgres]``).
    make : callable
        The learner of a new key, of a registered class.
    supplied : mapping, optional
        What cannot be stored, by the name of the learner's own argument, as for `cocopt.loads`.
    memory : int
        Learners stay in memory between calls, up to so many bytes in all, estimated; those used longest ago give way.
    timeout : float
        How long to wait for others, in seconds; then the call raises `PoolUnavailable`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cocopt import CLASP, Pool, Simplex, losses
    >>> with tempfile.TemporaryDirectory() as folder, Pool(
    ...     pathlib.Path(folder, "pool.db"), lambda key: CLASP(Simplex(2))
    ... ) as pool:
    ...     print(pool.ask("north"))
    ...     first = pool.tell("north", losses.Linear([1.0, 0.0]), id="order 17")
    ...     again = pool.tell("north", losses.Linear([1.0, 0.0]), id="order 17")  # a client that tries again
    ...     print(first == again, pool.learner("north").t, pool.keys())
    [0.5 0.5]
    True 1 ['north']
    """

    def __init__(
        self,
        place: str | os.PathLike[str],
        make: Callable[[str], Learner],
        *,
        supplied: Mapping[str, Any] | None = None,
        memory: int = 1 << 28,
        timeout: float = 30.0,
    ) -> None:
        if not callable(make):
            raise InvalidInput(f"make: expected a function from a key to a learner, got {describe(make)}")
        if supplied is not None and not (isinstance(supplied, Mapping) and all(isinstance(k, str) for k in supplied)):
            raise InvalidInput(f"supplied: expected a mapping from names to values, got {describe(supplied)}")
        self._make, self._supplied = make, dict(supplied or {})
        self._live = Live(nonnegative_int("memory", memory))
        self._process = os.getpid()
        self._database = _open(place, min(scalar("timeout", timeout, nonnegative=True), 1e6))

    # ------------------------------------------------------------------------------------------------ one learner

    def ask(self, key: str, known: Constraint | None = None) -> Array:
        """What the learner's ``ask(known)`` returns; with ``known``, which changes the learner, it is stored."""
        return self.coming(key, known)[1]

    def coming(self, key: str, known: Constraint | None = None) -> tuple[int, Array]:
        """The number of the coming round, and the answer of `ask` for it.

        ``tell(..., round=number)`` then refuses the feedback if another round has come meanwhile.
        """
        call = _Call(_text("key", key), None, "ask", lambda learner: _coming(learner, known))
        self._require_own_process()
        found = None if known is not None else self._unchanged(call.key)
        return self._apply([call])[0] if found is None else found

    def _unchanged(self, key: str) -> tuple[int, Array] | None:
        """`coming` without a change of the learner; None if there is no learner yet."""
        row = self._database.row(key)
        taken = None if row is None else self._live.take(key, row)
        if row is None or taken is None:
            found = self._database.read(key)
            if found is None:
                return None
            row, taken = found[0], (self._loaded(key, *found), len(found[1]))
        answer = _coming(taken[0], None)
        self._live.put(key, row, *taken)
        return answer

    def play(self, key: str, known: Constraint | None = None, *, id: str | None = None) -> tuple[int, Array]:
        """What the learner's ``play(known)`` returns: a round's number and action. With an ``id``, as `tell`."""
        call = _Call(_text("key", key), _id(id), "play", lambda learner: learner.play(known))
        return self._apply([call])[0]  # type: ignore[no-any-return]

    def tell(
        self,
        key: str,
        loss: Loss | None = None,
        constraint: Constraint | None = None,
        *,
        round: int | None = None,
        played: ArrayLike | None = None,
        id: str | None = None,
    ) -> Round:
        """What the learner's ``tell`` returns, once its new state is stored.

        Parameters
        ----------
        key : str
        loss, constraint, played
            As for the learner's own ``tell``.
        round : int, optional
            The same; where no round is pending, it may also be the number of the coming one (see `coming`).
        id : str, optional
            A name for this feedback, unique among those of the key. A second call with the same id returns the record
            of the first and applies nothing, so that a client that has got no answer may call again. The last 1000 ids
            of each key are remembered.
        """
        return self.tell_many(
            [{"key": key, "loss": loss, "constraint": constraint, "round": round, "played": played, "id": id}]
        )[0]

    def tell_many(self, items: Iterable[Mapping[str, Any]]) -> list[Round]:
        """Tells many learners in one transaction: all of it is stored, or nothing.

        Parameters
        ----------
        items : iterable of mappings
            The arguments of one `tell` each, by name. Several for one key are applied in their order.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from cocopt import CLASP, Box, Pool, losses
        >>> with tempfile.TemporaryDirectory() as folder, Pool(
        ...     pathlib.Path(folder, "pool.db"), lambda key: CLASP(Box(0.0, 1.0, dim=1))
        ... ) as pool:
        ...     records = pool.tell_many({"key": f"site {i}", "loss": losses.Linear([-1.0])} for i in range(3))
        ...     len(pool), [record.t for record in records]
        (3, [1, 1, 1])
        """
        if isinstance(items, str | bytes | Mapping | np.ndarray) or not isinstance(items, Iterable):
            raise InvalidInput(f"items: expected the arguments of several tells, got {describe(items)}")
        return self._apply([_tell_call(i, item) for i, item in enumerate(items)])

    def forget(self, key: str, round: int, *, id: str | None = None) -> None:
        """Gives up the feedback that a pending round of the learner still lacks (the learner's ``forget``).

        With an ``id``, as `tell`: a second call does nothing.
        """
        call = _Call(_text("key", key), _id(id), "forget", lambda learner: _forget(learner, round))
        ((given_up,),) = self._apply([call])
        if given_up != round:
            raise InvalidInput(f"id: expected a new one, got {id!r}, which gave up round {given_up} of {key!r}")

    def learner(self, key: str) -> Learner:
        """A copy of the learner, as it is stored: for its ledger, certificate and pending rounds.

        What is done with the copy changes nothing in the pool.
        """
        key = _text("key", key)
        self._require_own_process()
        found = self._database.read(key)
        if found is None:
            raise self._unknown(key)
        return self._loaded(key, *found)

    # ------------------------------------------------------------------------------------------------ all of them

    def keys(self) -> list[str]:
        """All keys, in alphabetical order."""
        self._require_own_process()
        return self._database.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        self._require_own_process()
        return self._database.count()

    def __contains__(self, key: object) -> bool:
        self._require_own_process()
        return isinstance(key, str) and _is_text(key) and self._database.row(key) is not None

    def __delitem__(self, key: str) -> None:
        """Deletes a learner, and what is remembered of its calls."""
        key = _text("key", key)
        self._require_own_process()
        with self._database.change() as change:
            if key not in change.lock([key]):
                raise self._unknown(key)
            change.remove(key)

    def close(self) -> None:
        """Ends the connections to the database; calls that are under way in other threads finish."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Pool({self._database!r})"

    # ------------------------------------------------------------------------------------------------ the work

    def _apply(self, calls: Sequence[_Call]) -> list[Any]:
        """What the calls return, in one transaction; those whose id is remembered return what they did then."""
        self._require_own_process()
        made: dict[str, tuple[Learner, bytes]] = {}
        conflicts = 0
        while calls:
            try:
                return self._attempt(calls, made)
            except _Absent as absent:
                made |= {key: self._made(key) for key in absent.keys}
            except Conflict as error:
                made.clear()
                conflicts += 1
                if conflicts == _CONFLICTS:
                    raise PoolUnavailable(
                        f"pool: expected the rows to be free, got others' changes to them {conflicts} times; nothing "
                        "was stored: try again"
                    ) from error
                time.sleep(random.uniform(0.0, 0.002 * 2 ** min(conflicts, 6)))
        return []

    def _attempt(self, calls: Sequence[_Call], made: Mapping[str, tuple[Learner, bytes]]) -> list[Any]:
        """One transaction: all rows are locked, then read, changed and written."""
        keys = sorted({call.key for call in calls})
        with self._database.change() as change:
            rows = change.lock(keys)
            absent = [key for key in keys if key not in rows and key not in made]
            if absent:
                raise _Absent(absent)
            named = [(call.key, call.id) for call in calls if call.id is not None]
            known = change.recall(named) if named else {}
            present = self._present(change, rows, made)
            results, changed, new = _run(calls, present, known)
            stored: dict[str, tuple[Row, bytes]] = {}
            slots = []
            for key in changed:
                version, ids, _ = rows.get(key, Row(0, 0, b""))
                for id, record in new.get(key, ()):
                    slots.append((key, ids % REMEMBERED, id, record))
                    ids += 1
                content, version = present[key][0].dumps(), version + 1
                stored[key] = Row(version, ids, checksum(key, version, ids, content)), content
            if changed:
                change.store(stored, frozenset(changed) - rows.keys())
            if slots:
                change.remember(slots)
        for key, (learner, size) in present.items():  # only now: what was not stored must not be used again
            row, size = (stored[key][0], len(stored[key][1])) if key in stored else (rows[key], size)
            self._live.put(key, row, learner, size)
        return results

    def _present(
        self, change: Change, rows: Mapping[str, Row], made: Mapping[str, tuple[Learner, bytes]]
    ) -> dict[str, tuple[Learner, int]]:
        """The learners of locked rows, with their stored sizes: those in memory, else those stored, else those made."""
        present = {key: taken for key, row in rows.items() if (taken := self._live.take(key, row)) is not None}
        contents = change.contents([key for key in rows if key not in present])
        for key, content in contents.items():
            present[key] = self._loaded(key, rows[key], content), len(content)
        for key, (learner, content) in made.items():
            if key not in rows:
                present[key] = learner, len(content)
        return present

    def _made(self, key: str) -> tuple[Learner, bytes]:
        """A learner for a new key, and what will be stored of it, which can be read again."""
        learner = self._make(key)
        if not isinstance(learner, Learner):
            raise InvalidInput(f"make({key!r}): expected a learner such as cocopt.CLASP, got {describe(learner)}")
        content = learner.dumps()
        self._restored(key, content)
        return learner, content

    def _loaded(self, key: str, row: Row, content: Any) -> Learner:
        """The learner of a row, checked."""
        if not isinstance(content, bytes) or checksum(key, row.version, row.ids, content) != row.checksum:
            raise StateError(
                f"key {key!r}: expected the row that was written, got another: it was changed since, or damaged; it is "
                "left as it is: bring it back from a copy, or delete the key"
            )
        return self._restored(key, content)

    def _restored(self, key: str, content: bytes) -> Learner:
        try:
            learner: Learner = state.loads(content, **self._supplied)
        except StateError as error:
            lacking = re.search(r"cocopt\.load\(path, (\w+)=", str(error))
            hint = f"; for a pool: Pool(..., supplied={{{lacking[1]!r}: ...}})" if lacking else ""
            raise StateError(f"key {key!r}: {error}{hint}") from error
        return learner

    def _unknown(self, key: str) -> UnknownKey:
        return UnknownKey(f"key: expected one of the {self._database.count()} keys of the pool, got {key!r}")

    def _require_own_process(self) -> None:
        if os.getpid() != self._process:
            raise InvalidInput("pool: expected to be used by the process that opened it, got another: open one in each")


def _run(
    calls: Sequence[_Call], present: Mapping[str, tuple[Learner, int]], known: dict[tuple[str, str], bytes]
) -> tuple[list[Any], list[str], dict[str, list[tuple[str, bytes]]]]:
    """What the calls return; the keys of learners that were changed; per key the new ids, with their records."""
    results: list[Any] = []
    changed: dict[str, None] = {}
    new: dict[str, list[tuple[str, bytes]]] = {}
    for number, (key, id, name, run) in enumerate(calls):
        if id is not None and (key, id) in known:
            first, result = records.from_bytes(key, id, known[key, id])
            if first != name:
                raise InvalidInput(f"id: expected a new one, got {id!r}, which a call of {first} for {key!r} had")
            results.append(result)
            continue
        try:
            result = run(present[key][0])
        except Exception as error:
            if len(calls) > 1:
                error.add_note(f"tell_many: item {number}, key {key!r}; nothing of all items was stored")
            raise
        changed[key] = None
        results.append(result)
        if id is not None:
            known[key, id] = records.to_bytes(key, id, name, result)
            new.setdefault(key, []).append((id, known[key, id]))
    return results, list(changed), new


def _tell_call(number: int, item: Any) -> _Call:
    """An item of `Pool.tell_many` as a call."""
    if not isinstance(item, Mapping) or not {*item} <= {*_TELL} or "key" not in item:
        raise InvalidInput(
            f"items[{number}]: expected a mapping with key and some of {', '.join(_TELL[1:])}, got {describe(item)}"
        )
    arguments = {name: item.get(name) for name in ("loss", "constraint", "played", "round")}
    return _Call(_text("key", item["key"]), _id(item.get("id")), "tell", lambda learner: _tell(learner, **arguments))


def _tell(learner: Learner, round: Any, **arguments: Any) -> Round:
    if not learner.pending and isinstance(round, int | np.integer) and round == learner.rounds + 1:
        round = None  # a learner calls the round by its number only if it was played
    return learner.tell(**arguments, round=round)


def _forget(learner: Learner, round: int) -> tuple[int]:
    learner.forget(round)
    return (int(round),)


def _coming(learner: Learner, known: Constraint | None) -> tuple[int, Array]:
    return learner.rounds + 1, learner.ask(known)


def _id(value: Any) -> str | None:
    return None if value is None else _text("id", value)


def _text(name: str, value: Any) -> str:
    """A key or an id."""
    if not isinstance(value, str) or not _is_text(value):
        raise InvalidInput(
            f"{name}: expected a text of 1 to {_LONGEST} characters, none of them NUL, got {describe(value)}"
        )
    return str(value)


def _is_text(value: str) -> bool:
    return 0 < len(value) <= _LONGEST and re.search("[\0\ud800-\udfff]", value) is None


def _open(place: Any, timeout: float) -> Database:
    """The database at a place."""
    name = os.fspath(place) if isinstance(place, str | os.PathLike) else None
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidInput(f"place: expected a file or postgresql://..., got {describe(place)}")
    scheme = re.match(r"(\w+)://", name)
    if scheme is None and name != ":memory:":
        return SQLiteDatabase(name, timeout)
    if scheme is not None and scheme[1] in ("postgresql", "postgres"):
        from cocopt.pool.postgres import PostgresDatabase

        return PostgresDatabase(name, timeout)
    raise InvalidInput(f"place: expected a file or postgresql://..., got {name.partition('://')[0]!r}")

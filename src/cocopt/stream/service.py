"""The loop: lines in, answers out, until the input ends or the process is asked to end."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cocopt.errors import InvalidInput, PoolUnavailable
from cocopt.pool import Pool
from cocopt.stream import messages
from cocopt.stream.messages import Ask, Feedback, Forget
from cocopt.stream.schema import validator

__all__ = ["LONGEST_LINE", "serve"]

#: the default limit on the length of a line, in bytes
LONGEST_LINE = 1 << 20
_TOGETHER = 256  # so many lines that have come already are stored in one transaction
_CHUNK = 1 << 16


def serve(pool: Pool, source: int, target: int, *, longest_line: int = LONGEST_LINE, validate: bool = False) -> int:
    """Answers every line of ``source`` by one line in ``target``, in order; returns how many it answered.

    An answer is written once the pool has stored what it says. A line that fails gets a line that says why, and the
    next one is read; its number counts all lines of the source, also blank ones, which get no answer. On SIGTERM, lines
    that have been read are answered, and no others are read.

    Parameters
    ----------
    pool : Pool
    source, target : int
        File descriptors.
    longest_line : int
        The largest number of bytes of a line; a longer one is an error, and is not kept.
    validate : bool
        Whether all lines, in and out, are checked against the JSON Schema as well (needs ``cocopt[stream]``).
    """
    answers = _Answers(pool, validate)
    answered = 0
    with _until_terminated() as stopped:
        for lines in _batches(source, longest_line, stopped):
            _write(target, b"".join(answers.of(lines)))
            answered += len(lines)
    return answered


class _Answers:
    """Answers lines from a pool."""

    def __init__(self, pool: Pool, validate: bool) -> None:
        self._pool = pool
        self._check_request: Callable[[Any], None] | None = validator("request") if validate else None
        self._check_answer: Callable[[Any], None] | None = validator("answer") if validate else None

    def of(self, lines: Sequence[tuple[int, bytes | None]]) -> list[bytes]:
        """One answer per line, in order; feedback that comes in a row is stored in one transaction."""
        answers: list[bytes] = []
        waiting: list[tuple[int, bytes, Feedback]] = []
        for number, line in lines:
            if line is None:
                answers += self._feedback(waiting)
                error = InvalidInput("line: expected one that is not too long, got a longer one (see --longest-line)")
                answers.append(self._line(messages.failure(number, b"", error)))
                continue
            try:
                request = messages.parse(line)
                if self._check_request is not None:
                    self._check_request(json.loads(line))
                if isinstance(request, Feedback):
                    waiting.append((number, line, request))
                    continue
                answers += self._feedback(waiting)
                answers.append(self._line(messages.respond(request, self._result(request))))
            except Exception as error:  # it is reported, and concerns this line alone: a pool undoes what has failed
                answers += self._feedback(waiting)
                answers.append(self._line(messages.failure(number, line, error)))
        return answers + self._feedback(waiting)

    def _result(self, request: Ask | Forget) -> Any:
        if isinstance(request, Forget):
            return self._pool.forget(request.key, request.forget, id=request.id)
        if request.play:
            return self._pool.play(request.key, request.known, id=request.id)
        if request.id is not None:
            raise InvalidInput('id: expected beside "play": true or feedback, got one beside neither')
        return self._pool.coming(request.key, request.known)

    def _feedback(self, waiting: list[tuple[int, bytes, Feedback]]) -> list[bytes]:
        """Answers to feedback: together, or one by one if something is wrong with one. Empties the list."""
        waited, answers = [*waiting], []
        waiting.clear()
        if len(waited) > 1:
            try:
                records = self._pool.tell_many(request._asdict() for _, _, request in waited)
            except PoolUnavailable as error:  # perhaps it was stored: only a client that gave ids may try again
                return [self._line(messages.failure(number, line, error)) for number, line, _ in waited]
            except Exception:  # nothing was stored: one by one, those that are wrong will say so
                records = []
            if records:
                pairs = zip(waited, records, strict=True)
                return [self._line(messages.respond(request, record)) for (_, _, request), record in pairs]
        for number, line, request in waited:
            try:
                answer = messages.respond(request, self._pool.tell(**request._asdict()))
            except Exception as error:  # as above
                answer = messages.failure(number, line, error)
            answers.append(self._line(answer))
        return answers

    def _line(self, answer: dict[str, Any]) -> bytes:
        if self._check_answer is not None:
            self._check_answer(answer)
        return json.dumps(answer, allow_nan=False).encode() + b"\n"


@contextlib.contextmanager
def _until_terminated() -> Iterator[int]:
    """A file descriptor that becomes readable on SIGTERM, which does nothing else meanwhile."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    handler = signal.signal(signal.SIGTERM, lambda *_: os.write(writer, b"."))
    try:
        yield reader
    finally:
        signal.signal(signal.SIGTERM, handler)
        os.close(reader)
        os.close(writer)


def _batches(source: int, longest: int, stopped: int) -> Iterator[list[tuple[int, bytes | None]]]:
    """The lines that have come, those at once together, with their numbers; None in place of one that is too long.

    Blank lines are counted and left out.
    """
    pending, skipping, ended, number = bytearray(), False, False, 0
    while not ended:
        ready, _, _ = select.select([source, stopped], [], [])
        chunk = b"" if stopped in ready else os.read(source, _CHUNK)
        ended = not chunk
        pending += b"\n" if ended and stopped not in ready and pending else chunk  # the last line may have no end
        *whole, rest = bytes(pending).split(b"\n")
        lines: list[tuple[int, bytes | None]] = []
        for line in whole:
            number += 1
            if skipping:  # the end of one that was answered already
                skipping = False
            elif len(line) > longest:
                lines.append((number, None))
            elif line.strip():
                lines.append((number, line))
        pending = bytearray(rest)
        if len(pending) > longest:
            if not skipping:
                lines.append((number + 1, None))
            pending, skipping = bytearray(), True
        for first in range(0, len(lines), _TOGETHER):
            yield lines[first : first + _TOGETHER]


def _write(target: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(target, view) :]

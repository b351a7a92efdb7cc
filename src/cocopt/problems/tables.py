"""A table of the user's as columns: of pandas, polars, a mapping of arrays, a record array, or a CSV file."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, describe
from cocopt.errors import InvalidInput
from cocopt.registry import unknown_name

__all__ = ["MissingValue", "Row", "Table", "read_csv"]

#: what an empty field is written as
_EMPTY = frozenset({"", "na", "n/a", "nan", "null", "none"})


class MissingValue(Exception):
    """A row was asked for a value that it does not have."""


class Table:
    """Columns of equal length, by name. Numbers are float64 with NaN for gaps; dates and texts stay as they are.

    Parameters
    ----------
    columns : mapping
        Arrays of one axis.
    describe_row : function, optional
        What row i is called in error messages; by default its number, from 0 on.

    Examples
    --------
    >>> from cocopt.problems.tables import Table
    >>> table = Table({"load": [1.0, None], "site": ["north", "south"]})
    >>> table.size, table.row(0)["site"], table.row(1).get("load", 0.0)
    (2, 'north', 0.0)
    """

    def __init__(self, columns: Mapping[str, Any], describe_row: Callable[[int], str] | None = None) -> None:
        if not columns:
            raise InvalidInput("table: expected at least one column, got none")
        self._columns = {name: _as_column(f"column {name!r}", values) for name, values in columns.items()}
        sizes = {name: len(column) for name, column in self._columns.items()}
        self.size = next(iter(sizes.values()))
        for name, size in sizes.items():
            if size != self.size:
                raise InvalidInput(f"column {name!r}: expected {self.size} values as in the first column, got {size}")
        if self.size == 0:
            raise InvalidInput("table: expected at least one row, got none")
        self.describe_row = describe_row or (lambda i: f"row {i}")
        self._matrices: dict[tuple[str, ...], Array] = {}

    @classmethod
    def of(cls, given: Any) -> Table:
        """The table that a user passes: a table already, a frame, a mapping of arrays, or a record array."""
        if isinstance(given, Table):
            return given
        if isinstance(given, Mapping):
            names: Iterable[Any] = given.keys()
        elif isinstance(given, np.ndarray) and given.dtype.names:
            names = given.dtype.names
        elif hasattr(given, "columns") and hasattr(given, "__getitem__") and not isinstance(given, type):
            names = given.columns
        else:
            raise InvalidInput(
                "df: expected a frame of pandas or polars, a mapping of columns, or a record array, "
                f"got {describe(given)}"
            )
        columns: dict[str, Any] = {}
        for name in names:
            if not isinstance(name, str):
                raise InvalidInput(f"df: expected columns whose names are text, got {describe(name)}")
            if name in columns:
                raise InvalidInput(f"df: expected columns of different names, got {name!r} twice")
            columns[name] = given[name]
        return cls(columns)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self._columns)

    def column(self, name: Any) -> NDArray[Any]:
        """The column of that name."""
        if not isinstance(name, str) or name not in self._columns:
            raise unknown_name("column", name, self._columns)
        return self._columns[name]

    def matrix(self, names: Sequence[str]) -> Array:
        """Several columns of numbers, (rows, names), read-only."""
        key = tuple(names)
        if key not in self._matrices:
            matrix = np.stack([self._numbers(name) for name in key], axis=-1)
            matrix.flags.writeable = False
            self._matrices[key] = matrix
        return self._matrices[key]

    def _numbers(self, name: str) -> Array:
        column = self.column(name)
        if column.dtype != np.float64:
            at = next((i for i, value in enumerate(column) if not _reads_as_number(value)), 0)
            got = f"{describe(column[at])} in {self.describe_row(at)}"
            raise InvalidInput(f"column {name!r}: expected numbers, got {got}")
        return column

    def row(self, i: int) -> Row:
        """The row of that number."""
        return Row(self, i)


class Row:
    """One row of a table, as a function of the user's sees it.

    ``row["y"]`` is a value and ``row[["a", "b"]]`` a vector of numbers. A round whose loss, or constraint, asks for a
    value that is missing is a round without it; ``row.get("y", 0.0)`` gives a default instead.

    Attributes
    ----------
    number : int
        The row's place in the table, from 0 on.
    """

    __slots__ = ("_table", "number")

    def __init__(self, table: Table, number: int) -> None:
        self._table, self.number = table, number

    def __getitem__(self, name: str | Sequence[str]) -> Any:
        if isinstance(name, str):
            value = self._table.column(name)[self.number]
            if _is_missing(value):
                raise MissingValue(name)
            return value
        if not isinstance(name, Sequence) or not name:
            raise InvalidInput(f"row: expected the name of a column, or several in a list, got {describe(name)}")
        values = self._table.matrix(name)[self.number]
        if np.isnan(values).any():
            raise MissingValue(name)
        return values

    def get(self, name: str | Sequence[str], default: Any = None) -> Any:
        """The same, or the default where a value is missing."""
        try:
            return self[name]
        except MissingValue:
            return default

    def __repr__(self) -> str:
        inner = ", ".join(f"{name!r}: {self.get(name)!r}" for name in self._table.names)
        return f"Row({self.number}, {{{inner}}})"


def _is_missing(value: Any) -> bool:
    """Whether it is None, NaN, NaT or the NA of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, float) and value != value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating | np.bool_)


def _reads_as_number(value: Any) -> bool:
    """Whether it is missing, a number, or the text of one."""
    try:
        return _is_missing(value) or float(value) is not None
    except (TypeError, ValueError):
        return False


def _as_column(name: str, values: Any) -> NDArray[Any]:
    """An array of one axis: float64 if all values that are there are numbers, dates as they are, else objects."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name}: expected one value per row, got {describe(values)} ({error})") from None
    if array.ndim != 1:
        raise InvalidInput(f"{name}: expected one value per row, got {describe(values)}")
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    if array.dtype.kind in "mM":
        return array
    parts = [None if _is_missing(value) else value for value in array.tolist()]
    if all(value is None or _is_number(value) for value in parts):
        try:
            return np.array([np.nan if value is None else float(value) for value in parts], dtype=np.float64)
        except OverflowError as error:
            raise InvalidInput(f"{name}: expected numbers of 64 bits, got a larger one ({error})") from None
    column = np.empty(len(parts), dtype=object)
    column[:] = parts
    return column


def read_csv(path: str | os.PathLike[str], delimiter: str = ",") -> Table:
    """A CSV file with a header as a table; errors name line and column.

    A column in which every field is a number, or empty (also ``NA``, ``NaN``, ``null``), is one of numbers. Any other
    is text.
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidInput(f"path: expected a file name, got {describe(path)}")
    if not (isinstance(delimiter, str) and len(delimiter) == 1):
        raise InvalidInput(f"delimiter: expected one character, got {describe(delimiter)}")
    file = Path(path).expanduser()
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, delimiter=delimiter, strict=True)
            records = [(reader.line_num, fields) for fields in reader if fields]
    except (OSError, ValueError, csv.Error) as error:  # ValueError: no UTF-8, or a null character in the path
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"path: expected a CSV file in UTF-8, got {file}: {reason}") from error
    if not records:
        raise InvalidInput(f"path: expected a CSV file with a header, got {file}, which is empty")
    header = [name.strip() for name in records[0][1]]
    lines = [line for line, _ in records[1:]]
    for name in header:
        if not name or header.count(name) > 1:
            raise InvalidInput(f"{file.name}, line 1: expected different names of columns, got {name!r} again or empty")
    for line, fields in records[1:]:
        if len(fields) != len(header):
            raise InvalidInput(f"{file.name}, line {line}: expected {len(header)} fields, got {len(fields)}")
    columns = {name: _parse([fields[i] for _, fields in records[1:]]) for i, name in enumerate(header)}
    return Table(columns, lambda i: f"{file.name}, line {lines[i]}")


def _parse(fields: Sequence[str]) -> NDArray[Any]:
    """Numbers if all fields are, else texts, with None for empty ones."""
    values = [None if field.strip().lower() in _EMPTY else field.strip() for field in fields]
    try:
        return np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)
    except ValueError:
        column = np.empty(len(values), dtype=object)
        column[:] = values
        return column

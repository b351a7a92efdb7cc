"""Make examples/gallery/data/adult.csv.gz from the adult.data of the UCI repository, the argument."""

from __future__ import annotations

import csv
import gzip
import io
import sys
from pathlib import Path

EXTRACT = Path(__file__).parents[1] / "examples" / "gallery" / "data" / "adult.csv.gz"
PEOPLE = 8000
#: the columns that are kept, and their places in adult.data
COLUMNS = {
    "age": 0,
    "education_num": 4,
    "marital_status": 5,
    "sex": 9,
    "capital_gain": 10,
    "capital_loss": 11,
    "hours_per_week": 12,
    "income": 14,
}


def extract(text: str) -> bytes:
    """The first people of the file with some of the columns, compressed; the same bytes every time."""
    rows = [row for row in csv.reader(io.StringIO(text), skipinitialspace=True) if row]
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([row[place] for place in COLUMNS.values()] for row in rows[:PEOPLE])
    return gzip.compress(table.getvalue().encode(), compresslevel=9, mtime=0)


if __name__ == "__main__":
    EXTRACT.write_bytes(extract(Path(sys.argv[1]).read_text(encoding="utf-8")))

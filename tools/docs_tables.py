"""Write the output of `cocopt list algorithms --markdown` into docs/algorithms.md (used by `make docs-tables`)."""

from __future__ import annotations

from pathlib import Path

from cocopt.experiments.listing import tables

PAGE = Path(__file__).parents[1] / "docs" / "algorithms.md"
BEGIN, END = "<!-- begin: cocopt list algorithms --markdown -->\n", "<!-- end -->\n"


def with_tables(page: str, listing: str) -> str:
    """The page with the listing between its two markers."""
    before, begin, after = page.partition(BEGIN)
    _, end, after = after.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE.name}: expected the markers {BEGIN.strip()} and {END.strip()}")
    return f"{before}{BEGIN}\n{listing}\n{END}{after}"


def main() -> None:
    """Rewrite the page."""
    listing = "\n".join(table.markdown().rstrip("\n") + "\n" for table in tables("algorithms")).rstrip("\n") + "\n"
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), listing), encoding="utf-8")


if __name__ == "__main__":
    main()

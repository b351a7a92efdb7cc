"""The pages in docs/: tables are those of the command line, links lead somewhere, figures are small."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cocopt.cli import app

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def anchors(page: str) -> set[str]:
    """The anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """The links of a page to files or headings that do not exist."""
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if link.startswith(("https://", "http://")):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            broken.append(link)
    return broken


def test_the_page_of_algorithms_has_the_tables_of_the_command() -> None:
    listing = CliRunner().invoke(app, ["list", "algorithms", "--markdown"]).stdout
    page = (ROOT / "docs" / "algorithms.md").read_text(encoding="utf-8")
    between = page.partition("<!-- begin: cocopt list algorithms --markdown -->\n")[2].partition("<!-- end -->")[0]
    assert between.strip() == listing.strip(), "docs/algorithms.md is out of date: run `make docs-tables`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    assert broken_links(page) == []


def test_the_check_of_links_can_fail(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One thing\n[a](#one-thing) [b](page.md#two) ![c](c.png) [d](https://example.org)")
    assert broken_links(page) == ["page.md#two", "c.png"]


def code_blocks(page: Path) -> list[str]:
    """The Python code of a page, block by block."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.parent.name == "docs" and code_blocks(page)], ids=lambda page: page.name
)
def test_code_on_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of a page, one after the other, as a reader would run them."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for i, block in enumerate(code_blocks(page), start=1):
        exec(compile(block, f"{page.name}, block {i}", "exec"), namespace)


@pytest.mark.parametrize("figure", sorted((ROOT / "docs").glob("*.png")), ids=lambda figure: figure.name)
def test_figures_are_small(figure: Path) -> None:
    assert figure.stat().st_size < 300_000

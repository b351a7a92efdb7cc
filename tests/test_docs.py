"""The documentation: code and commands run, links lead somewhere, tables are current, figures are small."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import doc_commands
import pytest
from typer.testing import CliRunner

import cocopt
from cocopt.cli import app

ROOT = Path(__file__).parents[1]
BUILT = {ROOT / "docs" / name for name in ("_build", "api")}  # by `make docs`
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("benchmarks/*.md"), *ROOT.glob("src/cocopt/data/*.md")]
    + [page for page in (ROOT / "docs").rglob("*.md") if not BUILT & {*page.parents}]
)
LONG = {"experiments.md", "notebooks.md", "tutorial.md"}  # pages whose code takes more than some seconds


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


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


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    assert broken_links(page) == []


def test_the_check_of_links_can_fail(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One thing\n[a](#one-thing) [b](page.md#two) ![c](c.png) [d](https://example.org)")
    assert broken_links(page) == ["page.md#two", "c.png"]


def code_blocks(page: Path) -> list[tuple[str, str]]:
    """The Python code of a page, block by block, each with the output that the page shows below it, if it does."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", text, flags=re.MULTILINE | re.DOTALL)


def same_output(found: str, shown: str) -> bool:
    """Whether two outputs have the same words, and the same numbers to three digits."""
    one, other = found.split(), shown.split()
    return len(one) == len(other) and all(map(_same_word, one, other))


def _same_word(found: str, shown: str) -> bool:
    number = re.compile(r"[-−]?\d+(?:\.\d*)?(?:e[-+]?\d+)?")
    if number.sub("#", found) != number.sub("#", shown):
        return False
    pairs = zip(number.findall(found), number.findall(shown), strict=True)
    return all(float(a) == pytest.approx(float(b), rel=1e-3, abs=1e-9) for a, b in pairs)


def test_outputs_are_compared() -> None:
    assert same_output("array([1.0,  2.5])\n7.0001 ± 3", "array([1.0, 2.5]) 7 ± 3.0000")
    assert not same_output("7.1 ± 3", "7 ± 3")
    assert not same_output("7 ± 3", "7 + 3")
    assert not same_output("7", "7 8")


def with_code() -> list[object]:
    pages = [page for page in PAGES if code_blocks(page)]
    return [
        pytest.param(page, marks=[pytest.mark.docs] if page.name in LONG else [], id=name_of(page)) for page in pages
    ]


@pytest.mark.parametrize("page", with_code())
def test_code_on_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All blocks of a page, one after the other, as a reader would run them."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for i, (block, shown) in enumerate(code_blocks(page), start=1):
        capsys.readouterr()
        exec(compile(block, f"{page.name}, block {i}", "exec"), namespace)
        output = capsys.readouterr().out
        assert not shown or same_output(output, shown), f"block {i} prints\n{output}"


def test_blocks_of_pages_are_of_kinds_that_are_checked() -> None:
    """Python runs, its output and commands are checked; TOML and lists of pages are no code; there is nothing else."""
    kinds = {
        kind for page in PAGES for kind in re.findall(r"^```(\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert kinds <= {"python", "text", "sh", "bash", "toml", "json", "{toctree}"}


# ------------------------------------------------------------------------------------------------------------- commands


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_on_a_page_exist(page: Path) -> None:
    found = [doc_commands.error(words) for words in doc_commands.commands(page.read_text(encoding="utf-8"))]
    assert [problem for problem in found if problem] == []


def test_shell_blocks_are_valid() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    blocks = [block for text in texts for block in doc_commands.shell_blocks(text, "sh", "bash")]
    assert len(blocks) > 3
    for block in blocks:
        done = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_the_check_of_commands_can_fail() -> None:
    block = "```sh\ncocopt run olr --trails 3  # typo\ncocopt fly | cocopt list\nrm x\n```\n"
    text = f"`make lunch`\n\n{block}    python none.py\n"
    problems = [doc_commands.error(words) for words in doc_commands.commands(text)]
    assert [problem and problem.partition(" (")[0].partition(". ")[0] for problem in problems] == [
        "cocopt run: No such option: --trails",
        "cocopt has no command fly",
        None,
        "rm is not among the programs that pages may use",
        "there is no none.py",
        "make has no target lunch",
    ]


def complete_commands() -> list[list[str]]:
    texts = [page.read_text(encoding="utf-8") for page in PAGES if page.name != "CHANGELOG.md"]
    found = [tuple(words) for text in texts for words in doc_commands.commands(text) if doc_commands.is_complete(words)]
    return [list(words) for words in dict.fromkeys(found)]


@pytest.mark.docs
@pytest.mark.parametrize("words", complete_commands(), ids=" ".join)
def test_commands_run(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a small scale: few trials, few rounds."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    done = CliRunner().invoke(app, [*words[1:], *doc_commands.SMALL[words[1]]])
    assert done.exit_code == 0, done.output


# ------------------------------------------------------------------------------------------------------------- the site


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """The modules by which `make docs` builds and checks the site."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs" / "_site"), str(ROOT / "tools"), *sys.path])
    return {name: import_module(name) for name in ("api_pages", "architecture", "check_site", "docstrings", "sources")}


@pytest.mark.docs
def test_the_reference_has_every_public_name_once(site: dict[str, ModuleType]) -> None:
    sections = site["api_pages"].public_names()
    names = [name for found in sections.values() for name in found]
    assert len(names) == len(set(names))
    modules = {name for name in cocopt.__all__ if isinstance(getattr(cocopt, name), ModuleType)}
    assert {f"cocopt.{name}" for name in cocopt.__all__ if name not in modules} <= {*names}
    shown = {module for _, module in site["api_pages"].SECTIONS.values()}
    assert {f"cocopt.{name}" for name in modules} <= shown
    pages = site["api_pages"].pages()
    assert "   losses.Norm\n" in pages["02-losses.rst"]
    assert "## `cocopt run`" in pages["95-command-line.md"]


@pytest.mark.docs
def test_links_in_docstrings_lead_to_the_reference(site: dict[str, ModuleType]) -> None:
    names = {name for found in site["api_pages"].public_names().values() for name in found}
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    links = [link for text in texts for link in site["docstrings"].LINK.findall(text)]
    assert len(links) > 50
    targets = {target or text for text, target in links}
    assert {target for target in targets if not {target, target.rpartition(".")[0]} & names} == set()


def test_docstrings_become_markup(site: dict[str, ModuleType]) -> None:
    text = """|x| of [`cocopt.CLASP`][] and [`it`][cocopt.OFW], not `|x|`; coef_ ends here:

        x_{t+1} = |y|

    - a point,

      continued

    Parameters
    ----------
    a : int
        |a|

    Examples
    --------
    >>> abs(1) | 2
    3"""
    lines = site["docstrings"].converted(text.replace("\n    ", "\n").split("\n"))
    assert lines[0] == (
        ":py:obj:`CLASP <cocopt.CLASP>`".join((r"\|x\| of ", " and :py:obj:`it <cocopt.OFW>`, not `|x|`; "))
        + r"coef\_ ends here:"
    )
    assert lines[2:6] == [".. code-block:: none", "   :class: formula", "", "    x_{t+1} = |y|"]
    assert "  continued" in lines
    assert r"    \|a\|" in lines
    assert lines[-2:] == [">>> abs(1) | 2", "3"]


def test_links_are_seen_from_the_page_of_the_site(site: dict[str, ModuleType]) -> None:
    docs = ROOT / "docs"
    text = (
        "[docs/pool.md](docs/pool.md#speed) [b](CHANGELOG.md) [c](https://x.org/y) [d](#here) [e](examples/service.py)"
    )
    found = site["sources"].relinked(text, ROOT / "CONTRIBUTING.md", docs / "contributing.md", docs)
    assert found == "[](pool.md#speed) [b](changelog.md) [c](https://x.org/y) [d](#here) [e](path:../src/README.md)"


def test_pages_that_no_list_names_are_guides(site: dict[str, ModuleType]) -> None:
    start = "# Title\n```{toctree}\n:caption: Start\n\na\n```\n"
    index = start + "```{toctree}\n:caption: How-to guides\n\nb\n```\n"
    found = site["sources"].with_all_pages(index, ["index", "d", "a", "b", "c"])
    assert found == start + "```{toctree}\n:caption: How-to guides\n\nb\nc\nd\n```\n"


def test_broken_links_and_downloads_of_a_site_are_found(
    site: dict[str, ModuleType], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check = site["check_site"]
    assert check.main(tmp_path) == 1
    (tmp_path / "index.html").write_text(
        '<h1 id="top"><a href="https://example.org">fine</a><a href="#top"></a><a href="b.html#x">'
        '<a href="c.html"><img src="//host/i.png"><script src="https://host/s.js"></script>'
        '<link rel="stylesheet" href="s.css"><link rel="canonical" href="https://host">'
    )
    (tmp_path / "b.html").write_text("<p id='y'>")
    (tmp_path / "s.css").write_text("a { background: url('https://host/f.woff') } b { background: url(i.png) }")
    assert list(check.problems(tmp_path)) == [
        "index.html: downloads //host/i.png",
        "index.html: downloads https://host/s.js",
        "index.html: no anchor for b.html#x",
        "index.html: no file for c.html",
        "s.css: downloads https://host/f.woff",
    ]
    capsys.readouterr()
    assert check.main(tmp_path) == 1
    assert capsys.readouterr().out.endswith("2 pages, 5 broken links or downloads\n")


def test_the_picture_of_the_layers_is_that_of_the_contracts(site: dict[str, ModuleType]) -> None:
    found = site["architecture"].PICTURE.read_text(encoding="utf-8")
    assert found == site["architecture"].picture(), "docs/architecture.svg is out of date: run tools/architecture.py"


@pytest.mark.parametrize("figure", sorted((ROOT / "docs").glob("*.png")), ids=lambda figure: figure.name)
def test_figures_are_small(figure: Path) -> None:
    assert figure.stat().st_size < 300_000

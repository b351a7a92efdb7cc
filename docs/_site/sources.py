"""How the Markdown files of the repository become pages of the site."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
#: page of the site → file of the repository; links to the file lead to the page
OUTSIDE = {
    "benchmarks": "benchmarks/README.md",
    "changelog": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "security": "SECURITY.md",
}
#: pages below a page, which its Markdown file lists by links already
CHILDREN = {"decisions/README": "0*"}
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)((?:#[^)\s]*)?)\)")


def relinked(text: str, origin: Path, page: Path, docs: Path) -> str:
    """The text of a file with its relative links as they are seen from a page of the site.

    A link that shows the name of a page's file shows its title instead.
    """
    homes = {(ROOT / name).resolve(): docs / f"{page_name}.md" for page_name, name in OUTSIDE.items()}
    homes[(ROOT / "README.md").resolve()] = docs / "index.md"

    def link(match: re.Match[str]) -> str:
        text, address, anchor = match.groups()
        if "://" in address or address.startswith("mailto:"):
            return match[0]
        target = (origin.parent / address).resolve()
        home = homes.get(target, target)
        shown = "" if re.fullmatch(r"[\w/-]+\.md", text) and home.is_relative_to(docs) else text
        scheme = "path:" if home.suffix == ".md" and not home.is_relative_to(docs) else ""  # a file, not a page
        return f"[{shown}]({scheme}{os.path.relpath(home, page.parent)}{anchor})"

    return LINK.sub(link, text)


def with_all_pages(index: str, pages: list[str]) -> str:
    """The landing page, with every page that none of its lists names in the list of guides."""
    lists = re.findall(r"^```\{toctree\}\n(.*?)^```", index, flags=re.MULTILINE | re.DOTALL)
    named = {line.strip() for entries in lists for line in entries.splitlines()}
    missing = "".join(f"{page}\n" for page in sorted(pages) if page not in named and page != "index")
    guides = re.compile(r"(^:caption: How-to guides\n.*?)(^```)", flags=re.MULTILINE | re.DOTALL)
    return guides.sub(lambda match: match[1] + missing + match[2], index, count=1)


def _read(app: Any, name: str, source: list[str]) -> None:
    page = Path(app.env.doc2path(name))
    if page.suffix != ".md":
        return
    origin = page
    if name in OUTSIDE:
        origin = ROOT / OUTSIDE[name]
        app.env.note_dependency(str(origin))
        source[0] = origin.read_text(encoding="utf-8")
    text = relinked(source[0], origin, page, Path(app.srcdir))
    if name == "index":
        text = with_all_pages(text, [path.stem for path in Path(app.srcdir).glob("*.md")])
    if name in CHILDREN:
        text += f"\n```{{toctree}}\n:hidden:\n:glob:\n\n{CHILDREN[name]}\n```\n"
    source[0] = text


def setup(app: Any) -> None:
    """Text and links are exchanged when a page is read; the landing page always is, since pages may have come."""
    app.connect("source-read", _read)
    app.connect("env-get-outdated", lambda app, env, added, changed, removed: ["index"])

"""Check the built site (used by `make docs`): links lead to pages and anchors that exist, and nothing is downloaded.

python tools/check_site.py FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: attributes whose address a browser fetches by itself
FETCHED = {"src", "srcset", "poster", "data"}
FETCHED_LINKS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch", "modulepreload", "manifest"}


class Page(HTMLParser):
    """The anchors of a page, where its links lead, and what it fetches."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects ids and addresses."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found and tag != "meta"}
        addresses = [value for name, value in found.items() if name in FETCHED]
        if tag == "link" and FETCHED_LINKS & set(found.get("rel", "").split()):
            addresses.append(found.get("href", ""))
        self.fetched += addresses
        self.links += addresses
        if "href" in found and tag in ("a", "link"):
            self.links.append(found["href"])


def is_remote(address: str) -> bool:
    """Whether an address names a host."""
    parts = urlsplit(address)
    return parts.scheme in ("http", "https", "ftp") or bool(parts.netloc)


def remote_in_styles(text: str) -> list[str]:
    """What a style sheet fetches from a host, by url() or @import."""
    candidates = [part.partition(")")[0].strip("'\" ") for part in text.split("url(")[1:]]
    candidates += [part.partition(";")[0].strip("'\" ") for part in text.split("@import")[1:]]
    return [address for address in candidates if is_remote(address)]


def problems(folder: Path) -> Iterator[str]:
    """One line for every broken link and every download."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        yield from (f"{name}: downloads {address}" for address in page.fetched if is_remote(address))
        for link in dict.fromkeys(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not target.exists():
                yield f"{name}: no file for {link}"
            elif anchor and target in pages and anchor not in pages[target].anchors:
                yield f"{name}: no anchor for {link}"
    for style in sorted(folder.rglob("*.css")):
        found = remote_in_styles(style.read_text(encoding="utf-8"))
        yield from (f"{style.relative_to(folder)}: downloads {address}" for address in found)


def main(folder: Path) -> int:
    """Prints the problems; 1 if there are any."""
    if not (folder / "index.html").exists():
        print(f"{folder}: expected a built site, got no index.html; run `make docs`", file=sys.stderr)
        return 1
    found = list(problems(folder))
    print(*found, sep="\n", end="\n" * bool(found))
    print(f"{len(list(folder.rglob('*.html')))} pages, {len(found)} broken links or downloads")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

"""The site on a phone: no page is wider than the screen; wide tables and code scroll inside their own boxes."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs" / "_build" / "html"
PAGES = ("index", "tutorial", "algorithms", "choosing", "performance", "api/06-learners", "api/names/cocopt.CLASP")
PHONE = 375
# A window cannot be as narrow as a phone, a frame can; media queries see the frame.
FRAME = """<iframe src="{address}" style="width: {width}px; height: 800px; border: 0"></iframe>
<script>
const frame = document.querySelector("iframe");
frame.onload = () => {{ document.title = "" + frame.contentDocument.documentElement.scrollWidth; }};
</script>"""


def width_on_a_phone(page: Path, folder: Path) -> int:
    """How wide a page becomes in a frame of 375 pixels."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert browser, "expected Chromium: apt-get install chromium"
    outer = folder / "frame.html"
    outer.write_text(FRAME.format(address=page.as_uri(), width=PHONE), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--hide-scrollbars"]
    command = [browser, *options, f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=5000", "--dump-dom"]
    dom = subprocess.run([*command, outer.as_uri()], capture_output=True, text=True, timeout=60, check=True).stdout
    found = re.search(r"<title>(\d+)</title>", dom)
    assert found, "the page was not measured"
    return int(found[1])


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone(name: str, tmp_path: Path) -> None:
    page = SITE / f"{name}.html"
    assert page.exists(), "expected a built site: make docs"
    assert width_on_a_phone(page, tmp_path) <= PHONE


def test_a_page_that_is_too_wide_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "wide.html"
    page.write_text("<html><head><title></title></head><body><p style='width: 700px'>wide</p></body></html>")
    assert width_on_a_phone(page, tmp_path) > PHONE

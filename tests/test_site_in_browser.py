"""The site in a browser: pages fit a phone, load nothing from elsewhere, and report no errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import browser as chromium_tests
import pytest

pytestmark = pytest.mark.browser

SITE = Path(__file__).parents[1] / "docs" / "_build" / "html"
PAGES = (
    *("index", "tutorial", "algorithms", "choosing", "performance", "design", "glossary", "search"),
    *("api/06-learners", "api/95-command-line", "api/names/cocopt.CLASP", "api/names/cocopt.experiments.Result"),
)
PHONE = 375
WIDTH = "document.documentElement.scrollWidth"


@pytest.fixture(scope="module")
def browser() -> Iterator[chromium_tests.Browser]:
    with chromium_tests.chromium() as started:
        yield started


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone_and_is_complete_by_itself(name: str, browser: chromium_tests.Browser) -> None:
    path = SITE / f"{name}.html"
    assert path.exists(), "expected a built site: make docs"
    page = browser.open(path, width=PHONE, height=800)
    assert page.run(WIDTH) <= PHONE  # wide tables and code scroll inside their own boxes
    assert [address for address in page.loaded if not address.startswith(("file:", "data:"))] == []
    assert page.problems == []
    page.close()


def test_a_page_that_is_too_wide_is_noticed(browser: chromium_tests.Browser, tmp_path: Path) -> None:
    (tmp_path / "wide.html").write_text(
        "<!DOCTYPE html><meta name='viewport' content='width=device-width'><p style='width: 700px'>x"
    )
    page = browser.open(tmp_path / "wide.html", width=PHONE, height=800)
    assert page.run(WIDTH) > PHONE
    page.close()

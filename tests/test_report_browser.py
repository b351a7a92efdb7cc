"""The report in a real browser: buttons, tables, narrow, dark, printed, by the keyboard, and for many algorithms."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, Page, chromium
from test_report import HOSTILE, Named

import cocopt
from cocopt.experiments import figures
from cocopt.experiments.paper import EXPERIMENTS, reproduce

pytestmark = pytest.mark.browser

OLR = "section[data-problem='0']"
LOSS, REGRET, CCV1 = (f"{OLR} figure[data-kind='curve'][data-metric='{key}']" for key in ("loss", "regret", "ccv1"))
FINAL = f"{OLR} table.final"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages of the paper's experiments, of 20 algorithms, and of names that are chosen to do harm."""
    found = {name: tmp_path_factory.mktemp(name) for name in ("paper", "many", "hostile")}
    many = {f"Algorithm {i}": f"clasp:scale={1 + i}" for i in range(20)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "write_all", lambda result, folder: None)
        assert len(list(reproduce([], found["paper"], trials=3, progress=False))) == len(EXPERIMENTS)
        cocopt.run("olr", many, trials=3, rounds=50, out=found["many"], progress=False)
        cocopt.run(Named(), dict.fromkeys(HOSTILE, "clasp"), trials=2, out=found["hostile"], progress=False)
    return found


@pytest.fixture
def page(browser: Browser, folders: dict[str, Path]) -> Iterator[Page]:
    """The page of the paper's experiments; what goes wrong in it fails the test."""
    yield from opened(browser, folders["paper"])


def opened(browser: Browser, folder: Path, **settings: Any) -> Iterator[Page]:
    found = browser.open(folder / "report.html", **settings)
    found.run(f"document.querySelector({json.dumps(LOSS)}).scrollIntoView({{block: 'center', behavior: 'instant'}})")
    found.wait(f"document.querySelector({json.dumps(LOSS)} + ' .main-svg')")
    yield found
    assert found.problems == []
    assert [url for url in found.loaded if not url.startswith("data:")] == [(folder / "report.html").as_uri()]
    assert found.of("Page.javascriptDialogOpening") == []
    found.close()


def chart(page: Page, figure: str, expression: str) -> Any:
    """What an expression of a chart's element ``c`` is."""
    return page.run(f"(c => {expression})(document.querySelector({json.dumps(figure + ' .chart')}))")


def lines(page: Page, figure: str, kind: str = "mean") -> list[int]:
    """The algorithms whose curves a chart shows."""
    found: list[int] = chart(page, figure, f"c.data.filter(t => t.meta.kind === '{kind}').map(t => t.meta.index)")
    return found


def hover(page: Page) -> str:
    """What is shown at the end of the first curve of the loss."""
    chart(
        page,
        LOSS,
        "(i => Plotly.Fx.hover(c, [{curveNumber: i, pointNumber: c.data[i].x.length - 1}]))"
        "(c.data.findIndex(t => t.meta.kind === 'mean'))",
    )
    page.wait(f"document.querySelector({json.dumps(LOSS)} + ' .hoverlayer text')")
    text: str = chart(page, LOSS, "c.querySelector('.hoverlayer').textContent")
    return text


def shown_number(text: str) -> float:
    """The mean in a cell."""
    return float(text.lstrip("▼▲ ").split("±")[0].replace("−", "-"))


def column(page: Page, key: str) -> list[str]:
    found: list[str] = page.run(
        f"[...document.querySelectorAll({json.dumps(f'{FINAL} td[data-metric={key}]')})].map(c => c.textContent)"
    )
    return found


def summary(folder: Path, key: str) -> dict[str, tuple[float, float]]:
    """The mean of a metric, and half of its interval, by algorithm."""
    with open(folder / "summary.csv", encoding="utf-8", newline="") as file:
        found = [row for row in csv.DictReader(file) if (row["problem"], row["metric"]) == ("olr", key)]
    return {row["algorithm"]: mean_and_half(row) for row in found}


def mean_and_half(row: dict[str, str]) -> tuple[float, float]:
    return float(row["mean"]), (float(row["ci_high"]) - float(row["ci_low"])) / 2


def test_a_curve_is_toggled_everywhere(page: Page) -> None:
    assert lines(page, LOSS) == [0, 1, 2, 3]
    page.click(f"{OLR} .legend [data-algorithm='1']")
    page.wait(f"document.querySelector({json.dumps(CCV1)} + ' .main-svg')")
    assert lines(page, LOSS) == lines(page, CCV1) == [0, 2, 3]
    assert lines(page, CCV1, "bound") == [0, 2]
    assert page.run(f"document.querySelector({json.dumps(OLR)} + ' [data-algorithm=\"1\"]').ariaPressed") == "false"
    page.click(f"{OLR} .legend [data-every='false']")
    assert lines(page, LOSS) == []
    assert chart(page, LOSS, "c.parentElement.querySelector('.note').textContent") == "All algorithms are hidden."
    page.click(f"{OLR} .legend [data-every='true']")
    assert lines(page, LOSS) == [0, 1, 2, 3]


def test_bands_and_bounds_are_toggled(page: Page) -> None:
    assert lines(page, REGRET, "band") == [0, 1, 2, 3]
    assert lines(page, REGRET, "bound") == [0, 1, 2]
    assert chart(page, REGRET, "c.data.filter(t => t.meta.kind === 'bound').every(t => t.line.dash === 'dash')")
    page.click(f"{OLR} .legend [data-layer='bands']")
    page.click(f"{OLR} .legend [data-layer='bounds']")
    assert lines(page, REGRET, "band") == lines(page, REGRET, "bound") == []


def test_axes_are_switched(page: Page) -> None:
    kinds = "[c._fullLayout.xaxis.type, c._fullLayout.yaxis.type]"
    assert chart(page, LOSS, kinds) == ["linear", "linear"]
    page.click(f"{LOSS} [data-axis='y']")
    assert chart(page, LOSS, kinds) == ["linear", "log"]
    page.click(f"{LOSS} [data-axis='x']")
    assert chart(page, LOSS, kinds) == ["log", "log"]
    page.click(f"{LOSS} [data-axis='y']")
    assert chart(page, LOSS, kinds) == ["log", "linear"]


def test_a_table_is_sorted_and_its_cells_are_those_of_the_summary(page: Page, folders: dict[str, Path]) -> None:
    means = sorted(summary(folders["paper"], "ccv1").values())
    cells = f"[...document.querySelectorAll({json.dumps(f'{FINAL} thead th')})]"
    heads = page.run(f"{cells}.map(cell => cell.textContent)")
    at = heads.index("CCV₁")
    for direction, expected in (("ascending", means), ("descending", means[::-1])):
        page.click(f"{FINAL} thead th:nth-child({at + 1}) button")
        states = [direction if i == at else "none" for i in range(len(heads))]
        assert page.run(f"{cells}.map(cell => cell.ariaSort)") == states
        for text, (mean, half) in zip(column(page, "ccv1"), expected, strict=True):
            assert shown_number(text) == pytest.approx(mean, abs=0.06 * half)
        selector = json.dumps(f"{FINAL} td[data-metric=ccv1]")
        values = page.run(f"[...document.querySelectorAll({selector})].map(c => c.dataset.value)")
        assert [float(value) for value in values] == [mean for mean, _ in expected]


def test_a_point_says_its_numbers(page: Page, folders: dict[str, Path]) -> None:
    text = hover(page)
    mean, _ = summary(folders["paper"], "loss")["clasp"]
    assert text.startswith(f"CLASPround 100: {mean:.1f}95 % interval ")


def test_another_reference_turns_the_differences(page: Page, folders: dict[str, Path]) -> None:
    figure = f"{OLR} figure[data-kind='paired']"
    cells = "[...document.querySelectorAll('%s .paired td[data-metric=loss]')].map(c => c.textContent)"
    with open(folders["paper"] / "paired.csv", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["problem"], row["metric"]) == ("olr", "loss")]
    ((difference, half),) = (mean_and_half(row) for row in rows if (row["first"], row["second"]) == ("clasp", "recoo"))
    for reference, sign in ((0, -1.0), (1, 1.0)):
        page.run(
            f"(s => {{ s.value = {reference}; s.dispatchEvent(new Event('change', {{bubbles: true}})) }})"
            f"(document.querySelector({json.dumps(figure)} + ' [data-use=reference]'))"
        )
        first = page.run(cells % OLR.replace("'", '"'))[0]
        assert shown_number(first) == pytest.approx(sign * difference, abs=0.06 * half)


def test_the_keyboard_is_enough(page: Page) -> None:
    page.press("Tab")
    assert page.run("document.activeElement.className") == "skip"
    button = f"document.querySelector({json.dumps(f'{OLR} .legend button')})"
    page.run(f"{button}.focus()")
    assert page.run(f"getComputedStyle({button}).outlineStyle") == "solid"
    page.press(" ")
    assert lines(page, LOSS) == [1, 2, 3]
    page.press("Enter")
    assert lines(page, LOSS) == [0, 1, 2, 3]
    page.press("Tab")
    assert page.run("document.activeElement.dataset.algorithm") == "1"
    page.run(f"document.querySelector({json.dumps(f'{FINAL} thead th:nth-child(2) button')}).focus()")
    page.press("Enter")
    means = [shown_number(text) for text in column(page, "loss")]
    assert means == sorted(means)


def test_values_are_a_table_too(page: Page, folders: dict[str, Path]) -> None:
    page.click(f"{LOSS} .values summary")
    page.wait(f"document.querySelector({json.dumps(LOSS)} + ' .values table')")
    last = page.run(f"document.querySelector({json.dumps(LOSS)} + ' .values tbody tr').lastChild.textContent")
    mean, half = summary(folders["paper"], "loss")["clasp"]
    assert shown_number(last) == pytest.approx(mean, abs=0.06 * half)
    assert "Loss" in chart(page, LOSS, "c.ariaLabel")


def test_the_paper_s_page_is_small(folders: dict[str, Path]) -> None:
    assert (folders["paper"] / "report.html").stat().st_size <= 6_000_000


@pytest.mark.parametrize("name", ["paper", "many", "hostile"])
def test_a_narrow_window_scrolls_downwards_only(name: str, browser: Browser, folders: dict[str, Path]) -> None:
    for page in opened(browser, folders[name], width=375, height=800):
        page.run("window.scrollTo(0, document.body.scrollHeight)")
        assert page.run("document.documentElement.scrollWidth") <= 375
        assert chart(page, LOSS, "c.getBoundingClientRect().right") <= 375


#: of each row of a table, how many pixels of room the name of the algorithm has to the number beside it
ROOM = """[...document.querySelectorAll('table tr')].flatMap(row => {
  const cells = [...row.children].filter(cell => cell.textContent.trim() && cell.getBoundingClientRect().width > 0);
  const at = cells.findIndex(cell => cell.querySelector('.algorithm bdi'));
  if (at < 0 || at + 1 >= cells.length) return [];
  const number = document.createRange();
  number.selectNodeContents(cells[at + 1]);
  const [name, other] = [cells[at].querySelector('bdi').getBoundingClientRect(), number.getBoundingClientRect()];
  return other.top < name.bottom && name.top < other.bottom ? [other.left - name.right] : [];
})"""


def test_long_names_leave_room_for_the_numbers(browser: Browser, tmp_path: Path) -> None:
    names = {"AnAlgorithmWithALongNameAndNoBlankInIt": "clasp", "penalty_method_with_doubling_parameter": "recoo"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "write_all", lambda result, folder: None)
        cocopt.run("olr", names, trials=3, rounds=50, out=tmp_path, progress=False)
    for width in (375, 1400):
        for page in opened(browser, tmp_path, width=width, height=800):
            room = page.run(ROOM)
            assert len(room) >= 6
            assert min(room) >= 4


def test_the_page_follows_a_dark_theme(browser: Browser, folders: dict[str, Path]) -> None:
    brightness = "(getComputedStyle(document.body).backgroundColor.match(/\\d+/g).reduce((a, b) => a + Number(b), 0))"
    colours = "c.data.filter(t => t.meta.kind === 'mean').map(t => t.line.color)"
    for page in opened(browser, folders["paper"], dark=True):
        assert page.run(brightness) < 150
        dark = chart(page, LOSS, colours)
        page.emulate(dark=False)
        first = (
            f"document.querySelector({json.dumps(LOSS + ' .chart')}).data.find(t => t.meta.kind === 'mean').line.color"
        )
        page.wait(f"{first} === {json.dumps(figures.COLOURS[0])}")
        assert page.run(brightness) > 600
        light = chart(page, LOSS, colours)
        assert not {*light} & {*dark}


def test_everything_is_printed_on_white(browser: Browser, folders: dict[str, Path]) -> None:
    """Charts that were not in sight yet are drawn for it, and afterwards the page is as before."""
    for page in opened(browser, folders["paper"], dark=True):
        page.run(
            "window.addEventListener('beforeprint', () => { window.seen = [document.querySelectorAll('figure').length, "
            "document.querySelectorAll('.chart .main-svg:first-child').length, "
            "document.querySelectorAll('details:not([open]):not(.values)').length, "
            "document.querySelector('.chart')._fullLayout.font.color] })"
        )
        assert page.pdf().startswith(b"%PDF")
        figures_, drawn, closed, ink = page.run("window.seen")
        assert (drawn, closed) == (figures_, 0)
        assert ink.lower() == "#1c1f23"
        assert page.run("document.querySelectorAll('details[open]').length") == 0
        page.emulate(media="print")
        assert page.run("getComputedStyle(document.querySelector('nav')).display") == "none"
        assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_twenty_algorithms_are_told_apart(browser: Browser, folders: dict[str, Path]) -> None:
    for page in opened(browser, folders["many"]):
        looks = "c.data.filter(t => t.meta.kind === 'mean').map(t => t.line.color + t.marker.symbol)"
        assert len({*chart(page, LOSS, looks)}) == 20
        assert page.run("document.querySelectorAll('.legend [data-algorithm]').length") == 20


def test_names_are_texts(browser: Browser, folders: dict[str, Path]) -> None:
    for page in opened(browser, folders["hostile"]):
        shown = page.run("[...document.querySelectorAll('.legend bdi')].map(b => b.textContent)")
        assert shown == HOSTILE
        assert page.run("document.querySelectorAll('img, iframe, object, embed').length") == 0
        assert HOSTILE[0] in hover(page)


@pytest.mark.parametrize(
    "script", ["console.error('wrong')", "setTimeout(() => missing())", "fetch('https://example.org').catch(() => 0)"]
)
def test_the_check_for_errors_can_fail(script: str, browser: Browser, folders: dict[str, Path]) -> None:
    page = browser.open(folders["many"] / "report.html")
    assert page.problems == []
    page.run(f"void ({script})")
    for _ in range(100):
        page.run("new Promise(done => setTimeout(done, 20))")
        if page.problems:
            break
    assert page.problems
    page.close()

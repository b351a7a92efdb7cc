"""The tables of the page, as HTML."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from cocopt.experiments.report.appearance import Appearance, swatch
from cocopt.experiments.report.charts import main_metrics, named_metrics
from cocopt.experiments.report.findings import bound_share, bound_verdict, lowest
from cocopt.experiments.report.folder import Experiment, Mean, Verdict
from cocopt.experiments.report.html import Html, element, name
from cocopt.experiments.report.words import in_order, mean_text, metric, named

__all__ = [
    "algorithm_name",
    "config_table",
    "final_table",
    "findings_card",
    "growth_table",
    "names_table",
    "size_text",
    "skipped_list",
    "verdict_list",
]

Appearances = Mapping[str, Appearance]
_SIGNS = {True: ("holds", "✓"), False: ("fails", "✗"), None: ("open", "–")}
_SPOKEN = {True: "yes: ", False: "no: ", None: "not known: "}


def algorithm_name(own: Appearance) -> Html:
    """The swatch and the title of an algorithm."""
    return element("span", swatch(own), name(own.title), class_="algorithm")


def findings_card(experiment: Experiment, known: Appearances, anchor: str) -> Html:
    """The lowest of each metric, and the verdicts."""
    rows = []
    for found in lowest(experiment):
        mean, half = mean_text(found.value)
        close = [element("span", name(known[label].title), class_="close") for label in found.close]
        words = _close_text(experiment, close)
        rows.append(
            element(
                "tr",
                element("th", metric(found.metric).title, scope="row"),
                element("td", algorithm_name(known[found.algorithm])),
                element("td", element("span", mean, class_="mean"), " ", element("span", half, class_="half")),
                element("td", words, class_="words"),
            )
        )
    head = element("tr", *(element("th", text, scope="col") for text in ("Lowest", "algorithm", "mean", "the others")))
    return element(
        "article",
        element("h3", element("a", name(experiment.name), href=f"#{anchor}")),
        element("p", size_text(experiment), class_="size"),
        scrolling(element("table", element("thead", head), element("tbody", *rows), class_="findings")),
        verdict_list([*experiment.verdicts, bound_verdict(experiment)]),
        class_="card",
    )


def _close_text(experiment: Experiment, close: Sequence[Html]) -> Html:
    if len(experiment.algorithms) == 1:
        return element("span", "only one ran")
    if experiment.trials == 1:
        return element("span", "one trial separates nothing")
    if not close:
        return element("span", "all higher")
    shown = [part for own in close[:3] for part in (own, Html(", "))][:-1]
    more = f" and {len(close) - 3} more" if len(close) > 3 else ""
    return element("span", "not separated: ", *shown, more)


def size_text(experiment: Experiment) -> str:
    """How much was run."""
    many = len(experiment.algorithms)
    algorithms = f"{many} algorithms" if many > 1 else "1 algorithm"
    trials = f"{experiment.trials} trials" if experiment.trials > 1 else "1 trial"
    return f"{algorithms} · {experiment.rounds} rounds · {trials} · seed {experiment.seed}"


def verdict_list(verdicts: Sequence[Verdict]) -> Html:
    """Sentences, each with a sign whether it is good news."""
    items = []
    for verdict in verdicts:
        kind, sign = _SIGNS[verdict.holds]
        spoken = element("span", _SPOKEN[verdict.holds], class_="spoken")
        items.append(
            element("li", element("span", sign, class_="sign", aria_hidden="true"), spoken, verdict.text, class_=kind)
        )
    return element("ul", *items, class_="verdicts")


def scrolling(table: Html, label: str | None = None) -> Html:
    """A table that scrolls inside its own box where it is too wide; the keyboard can scroll it, too."""
    return element(
        "div", table, class_="scroll", tabindex=0 if label else None, role="region" if label else None, aria_label=label
    )


class _Column(NamedTuple):
    """The head of a column; what it sorts by are the values of its cells."""

    text: str
    about: str
    sorts: bool = True


def _header(columns: Sequence[_Column], groups: Sequence[str]) -> Html:
    """A header whose cells are buttons that sort; above them the names of groups of equally many columns."""
    arrow = element("span", class_="arrow", aria_hidden="true")
    cells = [
        element("th", element("button", text, arrow, type="button", title=about), scope="col", aria_sort="none")
        if sorts
        else element("th", text, scope="col", title=about, class_="plain")
        for text, about, sorts in (_Column("Algorithm", "by name"), *columns)
    ]
    span = len(columns) // max(len(groups), 1)
    above = [element("th", group, scope="colgroup", colspan=span) for group in groups]
    first = element("tr", element("td"), *above, class_="group") if above else Html("")
    return element("thead", first, element("tr", *cells))


def _sortable(
    experiment: Experiment,
    known: Appearances,
    caption: str,
    header: Html,
    cells: Callable[[str], Sequence[Html]],
    kind: str,
) -> Html:
    """One row per algorithm; the kind is the table's class."""
    rows = []
    for label in experiment.algorithms:
        head = element("th", algorithm_name(known[label]), scope="row", data_value=known[label].title)
        rows.append(element("tr", head, *cells(label)))
    table = element("table", element("caption", caption), header, element("tbody", *rows), class_=f"sortable {kind}")
    return scrolling(table, f"{caption} {experiment.name}")


def _sorted_by(value: float | None) -> str | None:
    """A number as JavaScript reads it; None where there is none."""
    if value is None or math.isnan(value):
        return None
    return repr(value).replace("inf", "Infinity")


def _mean_cell(key: str, value: Mean | None, best: float | None) -> Html:
    if value is None:
        return element("td", "–", data_metric=key)
    mean, half = mean_text(value)
    return element(
        "td",
        element("span", mean, class_="mean"),
        " ",
        element("span", half, class_="half"),
        data_metric=key,
        data_value=_sorted_by(value.mean),
        class_="best" if value.mean == best else None,
    )


def _means_table(experiment: Experiment, known: Appearances, keys: Sequence[str], caption: str, kind: str) -> Html:
    means = {key: [own[key].mean for own in experiment.finals.values() if key in own] for key in keys}
    finite = {key: [mean for mean in own if math.isfinite(mean)] for key, own in means.items()}
    best = {key: min(own) if own and min(own) < max(own) else None for key, own in finite.items()}

    def cells(label: str) -> list[Html]:
        return [_mean_cell(key, experiment.finals[label].get(key), best[key]) for key in keys]

    return _sortable(experiment, known, caption, _header([_Column(*metric(key)) for key in keys], ()), cells, kind)


def final_table(experiment: Experiment, known: Appearances) -> Html:
    """Every metric after the last round, but for those of names."""
    keys = in_order(key for key in experiment.metrics if not named(key))
    caption = f"After round {experiment.rounds}: mean ± half of its 95 % interval."
    return _means_table(experiment, known, keys, caption, "final")


def names_table(experiment: Experiment, known: Appearances) -> Html:
    """The violations of rows that have names."""
    caption = f"Violations by name after round {experiment.rounds}: mean ± half of its 95 % interval."
    return _means_table(experiment, known, named_metrics(experiment), caption, "names")


def growth_table(experiment: Experiment, known: Appearances) -> Html:
    """Measured growth, promised rate and the share of the bound, per metric."""
    keys = [key for key in main_metrics(experiment) if any(key in own for own in experiment.growth.values())]
    columns = [
        _Column("exponent", f"slope of log(mean) against log(T), {experiment.growth_over}"),
        _Column("promised", "the rate that is proved", sorts=False),
        _Column("of its bound", "the largest share of the bound that the mean reaches"),
    ] * len(keys)

    def cells(label: str) -> list[Html]:
        found = []
        for key in keys:
            text = experiment.growth.get(label, {}).get(key, "–")
            share = bound_share(experiment, label, key)
            found.append(element("td", text.replace("-", "−"), data_value=text if _is_number(text) else None))
            found.append(element("td", *_rate(experiment.promised.get(label, {}).get(key, "–"))))
            found.append(element("td", _share(share), data_value=_sorted_by(share)))
        return found

    header = _header(columns, [metric(key).title for key in keys])
    return _sortable(experiment, known, f"Growth over {experiment.growth_over}.", header, cells, "growth")


def _share(share: float | None) -> str:
    """A share in per cent."""
    if share is None:
        return "–"
    return "below 0" if share < 0.0 else "< 0.001 %" if share < 1e-5 else f"{100.0 * share:.3g} %"


def _rate(text: str) -> list[str]:
    """A rate with its exponents raised: T^(3/4) and (log T)^2."""
    parts = re.split(r"\^\(([^()]+)\)|\^([\d.]+)", text)
    return [element("sup", part) if i % 3 else part for i, part in enumerate(parts) if part]


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def skipped_list(experiment: Experiment) -> Html:
    """The algorithms that did not run, with reasons."""
    return element("ul", *(element("li", name(label), f": {why}") for label, why in experiment.skipped.items()))


def config_table(experiment: Experiment, known: Appearances) -> Html:
    """The problem, the comparators and every algorithm with its options; and all of it as JSON."""
    config = experiment.config
    lines = [
        ("Problem", element("code", _described(config.get("problem")))),
        ("Compared with", element("code", _compared(config.get("comparators")))),
        ("Rounds, trials, seed", element("span", f"{experiment.rounds}, {experiment.trials}, {experiment.seed}")),
        *((known[label].title, element("code", _described(own))) for label, own in config["algorithms"].items()),
    ]
    rows = [element("tr", element("th", text, scope="row"), element("td", value)) for text, value in lines]
    whole = json.dumps(config, indent=2, ensure_ascii=False)
    return Html(
        scrolling(element("table", element("tbody", *rows), class_="config"), f"Configuration of {experiment.name}")
        + element(
            "details", element("summary", "As JSON"), element("pre", element("code", whole), tabindex=0), class_="json"
        )
    )


def _described(value: object) -> str:
    """A problem or an algorithm in one line: its name and its options."""
    if not isinstance(value, dict):
        return str(value)
    head = next((str(value[key]) for key in ("problem", "algorithm", "name", "class") if key in value), "")
    given = value.get("options", value.get("parameters", {}))
    inner = (
        ", ".join(f"{key}={_brief(own)}" for key, own in given.items()) if isinstance(given, dict) else _brief(given)
    )
    return f"{head} ({inner})" if inner else head or _brief(value)


def _compared(value: object) -> str:
    """The comparators in one line."""
    if not isinstance(value, dict) or not value:
        return "nothing: no regret was asked for"
    return ", ".join(_described({"name": key, "options": own}) for key, own in value.items())


def _brief(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}…"

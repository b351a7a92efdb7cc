"""Puts the page together: findings first, then a section per problem, then how to run it again."""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.util
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from cocopt.experiments.report import tables
from cocopt.experiments.report.appearance import Appearance, appearances
from cocopt.experiments.report.charts import (
    MAX_REFERENCES,
    chart_data,
    further_metrics,
    main_metrics,
    named_metrics,
)
from cocopt.experiments.report.findings import bound_verdict
from cocopt.experiments.report.folder import Experiment
from cocopt.experiments.report.html import Html, element, json_script, name
from cocopt.experiments.report.words import metric

__all__ = ["make_page", "plotly_script"]


def plotly_script() -> str | None:
    """The script of Plotly's Python package, which is not imported; None if it is not installed."""
    found = importlib.util.find_spec("plotly")
    folders = [] if found is None else found.submodule_search_locations or []
    paths = [Path(folder, "package_data", "plotly.min.js") for folder in folders]
    return next((_script(path) for path in paths if path.is_file()), None)


@functools.cache
def _script(path: Path) -> str:
    return path.read_text(encoding="utf-8").replace("</script", "<\\/script")  # the same in a text of JavaScript


@functools.cache
def _hash(script: str) -> str:
    """The source expression of a policy that allows exactly this script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


@functools.cache
def _static(file: str) -> str:
    return (files(__package__) / "static" / file).read_text(encoding="utf-8")


def make_page(experiments: Sequence[Experiment], versions: Mapping[str, str], plotly: str) -> str:
    """The page as one text; it loads nothing, and its policy forbids to."""
    known = appearances(experiments)
    own = _static("report.js")
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; script-src {_hash(plotly)} {_hash(own)}"
    )
    title = f"cocopt report: {', '.join(experiment.name for experiment in experiments)}"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Html(_static("report.css"))),
    )
    body = element(
        "body",
        element("a", "Skip to the findings", href="#findings", class_="skip"),
        _top(experiments, versions),
        element(
            "main",
            _findings(experiments, known),
            *(_section(experiment, i, known) for i, experiment in enumerate(experiments)),
            _rerun(experiments, versions),
        ),
        json_script("data", chart_data(experiments, known)),
        element("script", Html(plotly)),
        element("script", Html(own)),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _top(experiments: Sequence[Experiment], versions: Mapping[str, str]) -> Html:
    names = [name(experiment.name) for experiment in experiments]
    links = [element("a", own, href=f"#problem-{i}") for i, own in enumerate(names)]
    links = [element("a", "Findings", href="#findings"), *links, element("a", "Run it again", href="#rerun")]
    trials = " or ".join(map(str, dict.fromkeys(experiment.trials for experiment in experiments)))
    several = "problems" if len(experiments) > 1 else "problem"
    labels = {label for experiment in experiments for label in experiment.algorithms}
    algorithms = f"{len(labels)} algorithms" if len(labels) > 1 else "1 algorithm"
    line = f"{len(experiments)} {several}, {algorithms}, {trials} trials each"
    inner = [part for own in names for part in (own, Html(", "))][:-1]
    return Html(
        element(
            "header",
            element("p", "cocopt · constrained online convex optimization", class_="kicker"),
            element("h1", "Results on ", *inner),
            element("p", f"{line}; cocopt {versions.get('cocopt', 'of unknown version')}.", class_="size"),
        )
        + element("nav", element("div", *links), aria_label="Sections")
    )


def _findings(experiments: Sequence[Experiment], known: Mapping[str, Appearance]) -> Html:
    cards = [tables.findings_card(experiment, known, f"problem-{i}") for i, experiment in enumerate(experiments)]
    return element(
        "section",
        element("h2", "Key findings"),
        element(
            "p",
            "Lower is better in every metric. “All higher” means: the paired difference of every other algorithm to "
            "the lowest, trial by trial on the same data, has a 95 % interval above 0. Algorithms that are “not "
            "separated” may be as good.",
            class_="lead",
        ),
        element("div", *cards, class_="cards"),
        id="findings",
    )


def _section(experiment: Experiment, i: int, known: Mapping[str, Appearance]) -> Html:
    parts = [
        element("h2", name(experiment.name)),
        element("p", tables.size_text(experiment), class_="size"),
        tables.verdict_list([*experiment.verdicts, bound_verdict(experiment)]),
        _curves(experiment, i, known),
        _part("Final metrics", _sorting_hint(), tables.final_table(experiment, known)),
        _trade_off(experiment, i),
        _paired(experiment, i),
    ]
    if experiment.growth:
        words = (
            "An exponent a means that the mean grows like T to the power a. It is the slope of log(mean) against "
            f"log(T) over {experiment.growth_over}, by least squares; “promised” is the rate that is proved for the "
            "algorithm."
        )
        parts.append(_part("Growth and bounds", element("p", words), tables.growth_table(experiment, known)))
    if named_metrics(experiment):
        chart = _figure(i, "curve", named_metrics(experiment))
        table = tables.names_table(experiment, known)
        parts.append(_part("Violations by name", element("div", chart, class_="charts"), table))
    if experiment.skipped:
        parts.append(_part("Not run", tables.skipped_list(experiment)))
    parts.append(_part("Configuration", tables.config_table(experiment, known)))
    return element("section", *parts, id=f"problem-{i}", class_="problem", data_problem=i)


def _part(title: str, *children: Html, class_: str = "part") -> Html:
    return element("div", element("h3", title), *children, class_=class_)


def _sorting_hint() -> Html:
    return element("p", "A click on a column’s head sorts by it; bold: the lowest mean.", class_="hint")


def _curves(experiment: Experiment, i: int, known: Mapping[str, Appearance]) -> Html:
    main, further = main_metrics(experiment), further_metrics(experiment)
    charts = [_figure(i, "curve", [key]) for key in main]
    rest = element(
        "details",
        element("summary", "Further metrics"),
        element("div", _figure(i, "curve", further), class_="charts"),
        class_="further",
    )
    content = element("div", element("div", *charts, class_="charts"), rest if further else Html(""), class_="content")
    return _part(
        "Curves", _bands_text(experiment), element("div", _legend(experiment, i, known), content, class_="split")
    )


def _bands_text(experiment: Experiment) -> Html:
    lines = "Solid lines are means over the trials, with a marker per algorithm. "
    if experiment.trials > 1:
        lines += (
            "Bands are 95 % confidence intervals of these means by Student’s t: if the experiment were repeated with "
            "other trials, about 95 in 100 such bands would contain the true mean at a given round. "
            f"Here are {experiment.trials} trials. "
        )
    else:
        lines = "Solid lines are the one trial that was run, which has no interval. "
    if experiment.bounds:
        lines += "Dashed lines are the bounds that theorems give before the run."
    return element("p", lines)


def _legend(experiment: Experiment, i: int, known: Mapping[str, Appearance]) -> Html:
    at = {label: k for k, label in enumerate(known)}
    buttons = [
        element(
            "li",
            element(
                "button",
                tables.algorithm_name(known[label]),
                type="button",
                aria_pressed="true",
                data_algorithm=at[label],
            ),
        )
        for label in experiment.algorithms
    ]
    every = [
        element("button", text, type="button", data_every=value, class_="small")
        for text, value in (("show all", "true"), ("hide all", "false"))
    ]
    layers = [element("button", "bands", type="button", aria_pressed="true", data_layer="bands", class_="small")]
    layers = layers if experiment.trials > 1 else []
    if experiment.bounds:
        layers.append(
            element("button", "bounds", type="button", aria_pressed="true", data_layer="bounds", class_="small")
        )
    return element(
        "div",
        element("p", "Show or hide", class_="legend-title", id=f"legend-{i}"),
        element("ul", *buttons),
        element("div", *every, *layers, class_="tools"),
        class_="legend",
        role="group",
        aria_labelledby=f"legend-{i}",
    )


def _select(label: str, use: str, options: Sequence[tuple[str, str]]) -> Html:
    inner = element("select", *(element("option", text, value=value) for value, text in options), data_use=use)
    return element("label", f"{label} ", inner)


def _figure(i: int, kind: str, metrics: Sequence[str]) -> Html:
    """A chart of one metric, or of one that is chosen; its numbers are in a table below it."""
    options = [(key, metric(key).title) for key in metrics]
    head = element("span", options[0][1], class_="title") if len(options) == 1 else _select("Metric", "metric", options)
    axes = [
        element("button", text, type="button", aria_pressed="false", data_axis=axis, class_="small")
        for text, axis in (("log t", "x"), ("log y", "y"))
    ]
    return element(
        "figure",
        element("div", head, element("span", *axes, class_="tools"), class_="figure-head"),
        element("figcaption", metric(metrics[0]).about),
        element("div", class_="chart", role="img"),
        element("p", class_="note", aria_live="polite"),
        element("details", element("summary", "Values as a table"), element("div", class_="scroll"), class_="values"),
        data_kind=kind,
        data_problem=i,
        data_metric=metrics[0],
    )


def _trade_off(experiment: Experiment, i: int) -> Html:
    keys = main_metrics(experiment)
    costs, violations = (
        [key for key in keys if not key.startswith("ccv")],
        [key for key in keys if key.startswith("ccv")],
    )
    if not costs or not violations:
        return Html("")
    costs.sort(key=lambda key: not key.startswith("regret") or not _defined(experiment, key))
    head = [
        _select("horizontal", "x", [(key, metric(key).title) for key in costs]),
        _select("vertical", "metric", [(key, metric(key).title) for key in violations]),
    ]
    axes = element("button", "log y", type="button", aria_pressed="false", data_axis="y", class_="small")
    chart = element(
        "figure",
        element("div", *head, element("span", axes, class_="tools"), class_="figure-head"),
        element("div", class_="chart tall", role="img"),
        element("p", class_="note", aria_live="polite"),
        data_kind="trade-off",
        data_problem=i,
        data_metric=violations[0],
        data_x=costs[0],
    )
    words = (
        f"Means after round {experiment.rounds}; bars are 95 % intervals. Down and to the left is better. The grey "
        "line is the Pareto front: no other algorithm is lower in both. The numbers are those of the final metrics."
    )
    return _part("Trade-off between cost and violation", element("p", words), chart)


def _defined(experiment: Experiment, key: str) -> bool:
    return any(own[key].mean == own[key].mean for own in experiment.finals.values() if key in own)


def _paired(experiment: Experiment, i: int) -> Html:
    if len(experiment.algorithms) < 2 or experiment.trials < 2:
        return Html("")
    keys = [*main_metrics(experiment), *named_metrics(experiment)]
    first = experiment.algorithms[:MAX_REFERENCES]
    chosen = element("select", data_use="reference")  # the page's script fills it
    controls = element(
        "div",
        element("label", "Reference ", chosen),
        _select("Chart of", "metric", [(key, metric(key).title) for key in keys]),
        class_="figure-head",
    )
    words = (
        "Each algorithm less the reference, trial by trial on the same data, which cancels what the trials have in "
        "common: mean ± half of its 95 % interval. ▼ lower and ▲ higher than the reference: the interval excludes 0; "
        "the others are not separated."
    )
    if len(first) < len(experiment.algorithms):
        words += f" The first {len(first)} algorithms can be the reference."
    figure = element(
        "figure",
        controls,
        element("div", class_="chart tall", role="img"),
        element("p", class_="note", aria_live="polite"),
        data_kind="paired",
        data_problem=i,
        data_metric=keys[0],
    )
    table = element(
        "div", class_="scroll paired", tabindex=0, role="region", aria_label=f"Paired differences {experiment.name}"
    )
    return _part("Paired differences", element("p", words), figure, table)


def _rerun(experiments: Sequence[Experiment], versions: Mapping[str, str]) -> Html:
    commands = list(dict.fromkeys(own.rerun for own in experiments if own.rerun))
    unknown = [own for own in experiments if not own.rerun]
    parts = [element("h2", "Run it again")]
    if commands:
        parts.append(element("pre", element("code", "\n".join(commands)), tabindex=0))
    if unknown:
        names = [part for own in unknown for part in (name(own.name), Html(", "))][:-1]
        words = (
            "Something was configured in Python, so that no command describes it; repeat the call of cocopt.run for "
        )
        parts.append(element("p", words, *names, "."))
    parts.append(
        element(
            "p",
            "Replace DIR by a folder of your choice. The same seed gives the same numbers, with any number of jobs. ",
            element("code", "cocopt report DIR"),
            " makes this page again from the tables of a folder, and ",
            element("code", "pip install 'cocopt[report]'"),
            " installs what it needs.",
        )
    )
    shown = ", ".join(f"{library} {version}" for library, version in versions.items())
    parts.append(element("p", f"Versions: {shown or 'unknown'}.", class_="size"))
    return element("section", *parts, id="rerun")

"""A table of results for a paper: LaTeX with the rules of the package ``booktabs``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

__all__ = ["escape", "number", "table"]

#: the metrics' names in mathematics; others are text
_TITLES = {
    "loss": "Loss",
    "regret": "Regret",
    "regret_dynamic": "Dynamic regret",
    "regret_piecewise": "Piecewise regret",
    "regret_expectation": "Regret in expectation",
    "ccv1": r"$\mathrm{CCV}_1$",
    "ccv2": r"$\mathrm{CCV}_2$",
    "ccv_soft": r"$\mathrm{CCV}_{\mathrm{soft}}$",
    "certificate": "Certificate",
}
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "β": r"$\beta$",
    "ε": r"$\varepsilon$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **dict.fromkeys("\n\r\t", " "),
}


def escape(text: str) -> str:
    r"""Text in which no character has a meaning to LaTeX.

    Examples
    --------
    >>> from cocopt.experiments.latex import escape
    >>> print(escape("clasp-f:rows=all_rows 50%"))
    clasp-f:rows=all\_rows 50\%
    """
    return "".join(_SPECIAL.get(character, character) for character in text)


def number(mean: float, half: float) -> str:
    r"""A mean and half of its interval, which has two digits; the mean has as many places. A single trial has none.

    Examples
    --------
    >>> from cocopt.experiments.latex import number
    >>> print(number(1234.5678, 0.1234), number(0.5, float("nan")), number(3.2e7, 4.1e5))
    $1234.57 \pm 0.12$ $0.5$ $(3.200 \pm 0.041) \cdot 10^{7}$
    """
    if not np.isfinite(mean):
        return "--"
    if not (np.isfinite(half) and half > 0.0):
        return f"${_plain(mean)}" + (r" \pm 0$" if half == 0.0 else "$")
    size = int(np.floor(np.log10(max(abs(mean), half))))
    scale = size if abs(size) >= 5 else 0
    mean, half = mean / 10.0**scale, half / 10.0**scale
    places = max(0, 1 - int(np.floor(np.log10(half))))
    inner = rf"{mean:.{places}f} \pm {half:.{places}f}"
    return rf"$({inner}) \cdot 10^{{{scale}}}$" if scale else f"${inner}$"


def _plain(value: float) -> str:
    """Four digits, with a power of ten where there are many zeros."""
    digits, _, power = f"{value:.4g}".partition("e")
    return rf"{digits} \cdot 10^{{{int(power)}}}" if power else digits


def table(
    titles: Sequence[str], columns: Mapping[str, Sequence[tuple[float, float]]], *, caption: str, notes: Sequence[str]
) -> str:
    """A table of means and halves of intervals: one row per title, one column per metric.

    ``caption`` and ``notes`` become comments, which LaTeX does not print: the caption is the author's to write.
    """
    comments = [f"% {' '.join(line.split())}" for line in (caption, *notes)]
    header = ["Algorithm", *(_TITLES.get(metric, escape(metric)) for metric in columns)]
    rows = [[escape(title), *(number(*column[i]) for column in columns.values())] for i, title in enumerate(titles)]
    return "\n".join(
        [
            *comments,
            rf"\begin{{tabular}}{{l{'r' * len(columns)}}}",
            r"\toprule",
            rf"{' & '.join(header)} \\",
            r"\midrule",
            *(rf"{' & '.join(row)} \\" for row in rows),
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )

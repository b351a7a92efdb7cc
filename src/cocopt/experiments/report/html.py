"""HTML that is safe by construction: every text is escaped, unless it is a piece of HTML that `element` has made."""

from __future__ import annotations

import html
import json
import math
from typing import Any

__all__ = ["Html", "element", "json_script", "name"]

_EMPTY = {"br", "col", "meta", "link"}


class Html(str):
    """A piece of HTML, which `element` does not escape again."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str | int | bool | None) -> Html:
    """One element; attributes that are None or False are left out, a trailing "_" is dropped, other "_" become "-".

    Examples
    --------
    >>> from cocopt.experiments.report.html import element
    >>> element("p", "1 < 2 ", element("b", "yes"), class_="note", hidden=False)
    '<p class="note">1 &lt; 2 <b>yes</b></p>'
    """
    inner = "".join(child if isinstance(child, Html) else html.escape(child, quote=False) for child in children)
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}{'' if value is True else f'={_quoted(str(value))}'}"
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{tag}{written}>" if tag in _EMPTY else f"<{tag}{written}>{inner}</{tag}>")


def _quoted(value: str) -> str:
    return f'"{html.escape(value)}"'


def name(text: str) -> Html:
    """A name that a user chose; its direction of writing does not spread to what follows."""
    return element("bdi", text)


def json_script(identifier: str, value: Any) -> Html:
    r"""Data for the page's own script; no text in it can end the element. NaN and infinities become null.

    Examples
    --------
    >>> from cocopt.experiments.report.html import json_script
    >>> json_script("data", {"name": "</script>", "mean": float("nan")})
    '<script type="application/json" id="data">{"name":"\\u003c/script\\u003e","mean":null}</script>'
    """
    text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return element("script", Html(text), type="application/json", id=identifier)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(own) for key, own in value.items()}
    return [_finite(own) for own in value] if isinstance(value, list | tuple) else value

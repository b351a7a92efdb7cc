"""The tables of docs/performance.md and of the README, and the heat map, from the figures of one run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

import cells as table
import heat_map
import profile_round
import targets
from cells import Cell
from measure import Result

ROOT = Path(__file__).parents[1]
NOTHING = "Not measured yet: `make bench-full`, then `make bench-docs`."
TABLE, PROFILE, README = "bench table", "bench profile", "bench rows"

#: rows of the README, at most twelve, by the names of cells: what is compared with the peer
SHOWN = {
    "affine/box/affine/n=10/rows=1/batch=100": "box ∩ halfspace, n = 10, batch of 100",
    "affine/simplex/affine/n=10/rows=4/batch=100": "simplex ∩ 4 rows, n = 10, batch of 100",
    "affine/box/affine/n=100/rows=100/batch=100": "box ∩ 100 rows, n = 100, batch of 100",
    "curved/box/NormBall/n=10/rows=1/batch=100": "box ∩ `NormBall`, n = 10, batch of 100",
    "curved/box/SecondOrder/n=10/rows=1/batch=100": "box ∩ `SecondOrder`, n = 10, batch of 100",
    "curved/simplex/Quadratic/n=100/rows=1/batch=100": "simplex ∩ `Quadratic` (variance limit), n = 100, batch of 100",
    "conic/simplex/Quadratic + Norm1 + CVaR/n=100/rows=3/batch=100": (
        "simplex ∩ limits on variance, turnover and `CVaR`, n = 100, batch of 100"
    ),
    "sparse/box/affine/n=10000/rows=500/batch=1": "box ∩ 500 sparse rows, n = 10 000",
    "black box/box/smooth Function/n=20/rows=1/batch=1": "a smooth `Function` (black box), n = 20",
    "black box/box/from_cvxpy/n=10/rows=1/batch=1": "`from_cvxpy`, a norm, n = 10",
    "stream/box/CLASP, all rows/n=10/rows=4/batch=100": "CLASP, a round, batch of 100",
    "stream/box/CLASP, all rows/n=10/rows=4/batch=1": "CLASP, a round, one stream, all checks",
}


def replaced(page: str, marker: str, text: str) -> str:
    """The page with a text between the two marks of a marker."""
    begin, end = f"<!-- begin: {marker} -->\n", f"<!-- end: {marker} -->"
    before, found, after = page.partition(begin)
    _, closed, after = after.partition(end)
    if not found or not closed:
        raise SystemExit(f"expected the marks {begin.strip()} and {end} in the page")
    return f"{before}{begin}\n{text}\n\n{end}{after}"


def machine_line(bench: dict[str, Any]) -> str:
    known = bench["machine"]
    solvers = ("daqp", "clarabel", "piqp", "osqp", "proxsuite", "cvxpy")
    versions = ", ".join(f"{name} {known[name]}" for name in ("numpy", "numba", *solvers))
    return (
        f"{known['cpu']}, {known['cores']} cores, {known['system']}, Python {known['python']}, {versions}; "
        f"BLAS threads: {known['threads']}."
    )


def code_line(bench: dict[str, Any]) -> str:
    """Which versions of the code the figures are of; their keys begin the hash of cocopt's sources."""
    keys = Counter(result.get("code") for result in bench["cells"].values())
    if None in keys:
        return "Which version of the code each cell was measured with is not recorded."
    total, newest = keys.total(), bench["key"]["code"]
    if list(keys) == [newest]:
        return f"All {total} cells were measured with one version of the code (key {newest})."
    older = ", ".join(f"{count} with {key}" for key, count in keys.most_common() if key != newest)
    return (
        f"{keys[newest]} of the {total} cells were measured with the last version of the code (key {newest}), "
        f"the others with older ones ({older})."
    )


def misses(result: Result) -> bool:
    """Whether a cell was compared and misses its target; what has no peer misses nothing."""
    compared = result.get("ratio") is not None or "µs" in result["target"]
    return compared and not result.get("met", True)


def figure(result: Result | None) -> str:
    """A ratio, bold where the target is missed."""
    if result is None:
        return ""
    if result.get("ratio") is None:
        return "–"
    text = heat_map.number(result["ratio"])
    return text if result["met"] else f"**{text}**"


def grid(corner: str, lines: Iterable[str], columns: Iterable[str], entries: dict[tuple[str, str], str]) -> str:
    """A Markdown table; lines without an entry are left out."""
    columns = list(columns)
    rows = [f"| {corner} | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name in lines:
        values = [entries.get((name, column), "") for column in columns]
        if any(values):
            rows.append(f"| {name} | " + " | ".join(values) + " |")
    return "\n".join(rows) if len(rows) > 2 else ""


def affine_grids(bench: dict[str, Any]) -> list[str]:
    parts = []
    for batch in table.BATCHES:
        entries = {}
        for cell in table.all_cells():
            if cell.batch == batch and cell.group in ("affine", "crowded"):
                column = f"{cell.rows}{'c' * (cell.group == 'crowded')}"
                entries[f"{cell.set}, n = {cell.n}", column] = figure(bench["cells"].get(cell.id))
        columns = [*map(str, table.ROWS), *(f"{rows}c" for rows in table.CROWDED_ROWS)]
        shown = grid("K \\ rows", dict.fromkeys(line for line, _ in entries), columns, entries)
        title = "one point" if batch == 1 else f"batch of {batch}"
        parts += [f"Affine rows, {title} (c: nearly all rows bind):\n\n{shown}"] if shown else []
    return parts


def other_grid(bench: dict[str, Any]) -> list[str]:
    entries: dict[tuple[str, str], str] = {}
    for cell in table.all_cells():
        if cell.group in ("curved", "hinge prox", "conic"):
            prefix = "prox: " if cell.group == "hinge prox" else ""
            column = f"{'one point' if cell.batch == 1 else f'batch of {cell.batch}'}, n = {cell.n}"
            entries[f"{prefix}{cell.set} ∩ {cell.constraint}", column] = figure(bench["cells"].get(cell.id))
    columns = sorted(dict.fromkeys(c for _, c in entries), key=lambda c: (c[0] != "o", int(c.rpartition(" ")[2])))
    shown = grid("K ∩ constraint", dict.fromkeys(line for line, _ in entries), columns, entries)
    return [f"Other constraints, beside Clarabel:\n\n{shown}"] if shown else []


def micro(value: float) -> str:
    """Three digits, without an exponent; thousands are apart."""
    if value >= 100:
        digits = 3 - len(str(int(value)))
        return f"{round(value, digits):,.0f}".replace(",", " ")
    return f"{value:.3g}"


def row(title: str, result: Result) -> str:
    """A line of a table with times: ours, the peer's, the ratio."""
    best = result.get("best")
    if best is None:
        ours = micro(result["microseconds"]) if "microseconds" in result else "–"
        return f"| {title} | {ours} | {result['status'] if result['status'] != 'measured' else 'no peer'} | – | – |"
    theirs = result["peers"][best]
    marks = [] if result["exact"] else [f"errs by {theirs['difference']:.0e}"]
    if theirs.get("failed"):
        marks.append(f"fails at {theirs['failed']} of {theirs['tried']}")
    mark = f" ({', '.join(marks)})" if marks else ""
    ours = micro(theirs.get("ours", result["microseconds"]))  # for the problems that the peer solves
    return f"| {title} | {ours} | {best}{mark} | {micro(theirs['microseconds'])} | {figure(result)} |"


def single_rows(bench: dict[str, Any]) -> list[str]:
    lines = []
    for cell in table.all_cells():
        result = bench["cells"].get(cell.id)
        if result is not None and cell.group in ("large", "sparse", "black box", "stream"):
            lines.append(row(title(cell), result))
    head = "| what | µs | best peer | its µs | ratio |\n|---|---|---|---|---|\n"
    return ["Single cells:\n\n" + head + "\n".join(lines)] if lines else []


def title(cell: Cell) -> str:
    size = "one point" if cell.batch == 1 else f"batch of {cell.batch}"
    rows = f"{cell.rows} row{'s' * (cell.rows > 1)}{' that nearly all bind' * (cell.group == 'crowded')}"
    kind = rows if cell.constraint == "affine" else cell.constraint
    return f"{'prox: ' * (cell.group == 'hinge prox')}{cell.set} ∩ {kind}, n = {cell.n}, {size}"


def groups(bench: dict[str, Any]) -> str:
    """How many cells of each group meet their target."""
    lines = ["| group | cells measured | target met | median ratio | least ratio |", "|---|---|---|---|---|"]
    for group in dict.fromkeys(cell.group for cell in table.all_cells()):
        found = [
            result
            for result in bench["cells"].values()
            if result["group"] == group and (result.get("met") or misses(result))
        ]
        ratios = [result["ratio"] for result in found if result["ratio"] is not None]
        if ratios:
            met = sum(result["met"] for result in found)
            numbers = f"{heat_map.number(median(ratios))} | {heat_map.number(min(ratios))}"
            lines.append(f"| {group} | {len(found)} | {met} | {numbers} |")
    return "\n".join(lines)


def slow_cells(bench: dict[str, Any], entries: list[dict[str, Any]]) -> str:
    """Every cell that misses its target or has nothing to compare with, with the reason that is known."""
    lines = ["| cell | µs | best peer | its µs | ratio | target | reason |", "|---|---|---|---|---|---|---|"]
    for cell in table.all_cells():
        result = bench["cells"].get(cell.id)
        if result is None or result.get("met"):
            continue
        found = targets.reason(cell.id, entries) if misses(result) else None
        left_out = "; ".join(f"{peer}: {text}" for peer, text in result.get("left_out", {}).items())
        reason = f"{found[0]}" if found is not None else result.get("note", left_out)
        lines.append(f"{row(title(cell), result)} {result['target']} | {reason} |")
    if len(lines) == 2:
        return "Every cell that was measured meets its target."
    notes = [f"{number}. {entry['text']}" for number, entry in enumerate(entries, 1)]
    return "\n".join(lines) + "\n\nReasons:\n\n" + "\n".join(notes)


def start_rows(bench: dict[str, Any]) -> list[str]:
    lines = ["| first use | s | target, s |", "|---|---|---|"]
    for name, reached in bench.get("start", {}).items():
        lines.append(f"| {name} | {reached['seconds']:.3g} | {reached['target']:g} |")
    return ["\n".join(lines)] if len(lines) > 2 else []


def performance(bench: dict[str, Any], entries: list[dict[str, Any]]) -> str:
    """The measured part of docs/performance.md."""
    if not bench["cells"]:
        return NOTHING
    parts = [
        machine_line(bench),
        code_line(bench),
        "![Ratio of the best peer's time to cocopt's, for every cell of the table](performance.png)",
        groups(bench),
        *start_rows(bench),
        "### Slow cells\n\n" + slow_cells(bench, entries),
        "### All ratios",
        *affine_grids(bench),
        *other_grid(bench),
        *single_rows(bench),
    ]
    return "\n\n".join(parts)


def below_target(bench: dict[str, Any], entries: list[dict[str, Any]]) -> str:
    """The cells that miss their target, by reason: how many, the one that misses it most, and why."""
    missed: dict[str, list[tuple[float, Cell, Result]]] = {}
    for cell in table.all_cells():
        result = bench["cells"].get(cell.id)
        if result is None or not misses(result):
            continue
        found = targets.reason(cell.id, entries)
        why = found[1] if found is not None else result.get("note", "Not known.")
        share = targets.target(cell).share(result.get("ratio"), result.get("microseconds", float("inf")))
        missed.setdefault(why, []).append((share, cell, result))
    alone = sum(not (result.get("met") or misses(result)) for result in bench["cells"].values())
    beside = f"; {alone} {'has' if alone == 1 else 'have'} nothing to compare with" if alone else ""
    if not missed:
        return f"Every cell of the table meets its target{beside}."
    count, total = sum(map(len, missed.values())), len(bench["cells"])
    lines = [
        f"A ratio in bold misses its target: {count} of the table's {total} cells do{beside}.",
        "",
        "| cells | the farthest from its target | µs | compared with | its µs | ratio | target | reason |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for why, found_cells in missed.items():
        _, worst, result = min(found_cells, key=lambda entry: entry[0])
        lines.append(f"| {len(found_cells)} {row(title(worst), result)} {result['target']} | {why} |")
    return "\n".join(lines)


def readme(bench: dict[str, Any], entries: list[dict[str, Any]]) -> str:
    """The rows of the README that come from the table, what misses its target, and where it was measured."""
    lines = [row(text, bench["cells"][name]) for name, text in SHOWN.items() if name in bench["cells"]]
    if not lines:
        return NOTHING
    head = ["| what | µs | compared with | its µs | ratio |", "|---|---|---|---|---|"]
    source = f"By `make bench-full` on {machine_line(bench)} {code_line(bench)}"
    return "\n\n".join(["\n".join([*head, *lines]), below_target(bench, entries), source])


def pages(bench: dict[str, Any], root: Path = ROOT) -> dict[Path, str]:
    """The pages with these figures."""
    page, front = root / "docs" / "performance.md", root / "README.md"
    entries = targets.reasons()
    text = replaced(page.read_text(encoding="utf-8"), TABLE, performance(bench, entries))
    profile = profile_round.markdown(bench["profile"]) if bench.get("profile") else NOTHING
    return {
        page: replaced(text, PROFILE, profile),
        front: replaced(front.read_text(encoding="utf-8"), README, readme(bench, entries)),
    }


def write(bench: dict[str, Any], root: Path = ROOT) -> None:
    """Pages, heat map and the figures that they come from."""
    for path, text in pages(bench, root).items():
        path.write_text(text, encoding="utf-8")
    heat_map.draw(bench, root / "docs" / "performance.png")
    kept = json.dumps(bench, ensure_ascii=False, indent=None, separators=(",", ":"))
    (root / "docs" / "bench.json").write_text(kept.replace('},"', '},\n"') + "\n", encoding="utf-8")

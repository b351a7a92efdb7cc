"""The report: one page of HTML about a folder of results, which needs no network and no other file.

`write_report` reads the tables that `Result.save`, ``cocopt reproduce`` and ``cocopt field`` have written. The charts
are drawn by Plotly's script, which becomes part of the page; it comes with the extra ``report``.
"""

from __future__ import annotations

import os
from pathlib import Path

from cocopt.experiments.chunks import open_folder
from cocopt.experiments.results import write_atomically

__all__ = ["INSTALL", "available", "write_report"]

#: what to do where Plotly is missing
INSTALL = "report.html needs plotly: pip install 'cocopt[report]'"


def available() -> bool:
    """Whether Plotly is installed."""
    from cocopt.experiments.report.page import plotly_script

    return plotly_script() is not None


def write_report(folder: str | os.PathLike[str]) -> Path:
    """Writes ``report.html`` into a folder of results, and returns its path.

    Raises
    ------
    InvalidInput
        If the folder has no results, or files that no run has written.
    ImportError
        If Plotly is not installed.

    Examples
    --------
    >>> import cocopt, tempfile
    >>> from cocopt.experiments.report import write_report
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = cocopt.run("olr", ["clasp", "recoo"], trials=3, rounds=10, out=folder)
    ...     write_report(folder).name
    'report.html'
    """
    from cocopt.experiments.report.folder import read_folder
    from cocopt.experiments.report.page import make_page, plotly_script

    experiments, versions = read_folder(folder)
    script = plotly_script()
    if script is None:
        raise ImportError(INSTALL)
    path = open_folder(folder) / "report.html"
    page = make_page(experiments, versions, script)
    write_atomically(path, page.encode("utf-8", "replace").decode("utf-8"))  # a lone surrogate has no bytes
    return path

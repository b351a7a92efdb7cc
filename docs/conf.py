"""The documentation as a site: ``make docs`` builds it in docs/_build/html, without any download."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_site"), str(HERE.parent / "src")]

import api_pages
import docstrings
import sources

import cocopt

project = "cocopt"
author = "The cocopt developers"
version = release = cocopt.__version__
html_title = f"cocopt {version}"
project_copyright = author

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "_site"]
templates_path = ["_site/templates"]

# Markdown: the pages are the same files that a code host shows, with its anchors of headings.
myst_enable_extensions = ["attrs_block", "colon_fence"]
myst_heading_anchors = 4

# Docstrings: `name` is a Python object where there is one of this name, else plain code.
default_role = "py:obj"
autosummary_generate = True
autosummary_context = docstrings.template_context(api_pages.public_names())
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_type_aliases = {
    name: name
    for name in ("Array", "ArrayLike", "Arrays", "BatchConstraint", "ConstraintOf", "LossOf", "Step", "Value")
}
add_module_names = False
python_maximum_signature_line_length = 88
numpydoc_show_class_members = False  # the pages of classes list their members themselves
numpydoc_class_members_toctree = False

html_theme = "furo"
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

api_pages.write(HERE / "api")


def setup(app: object) -> None:
    """Connects what is particular to this site."""
    docstrings.setup(app)
    sources.setup(app)

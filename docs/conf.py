"""Sphinx builds the documentation from these pages and the docstrings: `python -m sphinx -W -b html docs build/docs`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import myia_relay

project = "myia_relay"
release = version = myia_relay.__version__
copyright = "the authors of myia_relay"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["examples"]
html_theme = "furo"
html_title = "myia_relay"
html_copy_source = False
html_show_sphinx = False
html_domain_indices = False
pygments_style = "tango"

myst_heading_anchors = 3
default_role = "code"
add_module_names = False
python_display_short_literal_types = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_custom_sections = ["Cost"]

_FIELD = re.compile(r"^(\s+)(\*{0,2}\w+(?:, \*{0,2}\w+)*): ")
_SECTION = re.compile(r"^(Args|Attributes|Raises|Returns|Example|Examples):$")


def docstring_to_rst(app, what, name, obj, options, lines: list[str]) -> None:
    """Docstrings are Markdown: code is in single backticks, and an indented block behind an empty line is code."""
    found, section, fenced = [], "", False
    for number, line in enumerate(lines):
        stripped = line.strip()
        if _SECTION.match(line):
            section, fenced = stripped[:-1], False
        elif stripped and not line.startswith(" "):
            section, fenced = "", False
        elif stripped and not section and not fenced and number and not lines[number - 1].strip():
            found += [".. code-block:: python", ""]
            fenced = True
        if fenced or stripped.startswith((">>>", "...")) or section.startswith("Example"):
            found.append(line)
            continue
        field = _FIELD.match(line) if section in ("Args", "Attributes", "Raises") else None
        rest = line[field.end() :] if field else line
        head = field.group(0).replace(", *", ", \\*").replace("**", "*\\*") if field else ""
        found.append(head + _prose(rest))
    lines[:] = found


def _prose(text: str) -> str:
    parts = text.replace("``", "`").split("`")
    if len(parts) % 2 == 0:  # a code span that goes on in the next line
        return re.sub(r"([*|\\])", r"\\\1", text)
    prose = [re.sub(r"(\w)_(?!\w)", r"\1\\_", re.sub(r"([*|\\])", r"\\\1", part)) for part in parts[::2]]
    code = [f"``{part}``" for part in parts[1::2]]
    # Inline markup ends before punctuation or a space only.
    joined = prose[0]
    for span, after in zip(code, prose[1:]):
        joined += span + ("\\ " if after[:1].isalnum() else "") + after
    return joined


def setup(app) -> None:
    """Docstrings are changed before napoleon finds their sections."""
    app.connect("autodoc-process-docstring", docstring_to_rst, priority=400)

"""The documentation as a whole: every public name has an entry and an example, links lead somewhere, and the site builds.

The site is built with warnings as errors: broken references, pages that no table of contents has, docstrings that cannot be read.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.public import EXAMPLES, PUBLIC

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
REFERENCE = sorted((DOCS / "reference").glob("*.md"))
ENTRY = re.compile(
    r"^\.\. (?:auto(?:function|class)|py:(?:data|function)):: (?:myia_relay::)?([\w.]+)(.*\n(?: +.*\n)*)", re.MULTILINE
)


def entries() -> dict[str, list[Path]]:
    """Name -> the reference pages with an entry for it; the members of a class that its entry lists are entries."""
    found: dict[str, list[Path]] = {}
    for page in REFERENCE:
        for name, options in ENTRY.findall(page.read_text("utf-8")):
            members = [n for n in PUBLIC if n.startswith(f"{name}.")] if ":members:" in options else []
            for entry in (name, *members):
                found.setdefault(entry, []).append(page)
    return found


ENTRIES = entries()


def test_every_public_name_has_one_entry_in_the_reference():
    missing = [name for name in PUBLIC if name not in ENTRIES]
    assert not missing, f"not in docs/reference: {missing}"
    twice = {name: pages for name, pages in ENTRIES.items() if len(pages) > 1}
    assert not twice, f"two entries: {twice}"


def test_every_public_name_has_an_example():
    """In its docstring, or in a program of its page; `tests/docs/test_pages.py` runs both."""
    without = []
    for name in PUBLIC:
        code = "".join(re.findall(r"^```python\n(.*?)^```", ENTRIES[name][0].read_text("utf-8"), re.M | re.S))
        used = code + "".join(text for other, text in EXAMPLES.items() if ENTRIES[other] == ENTRIES[name])
        if name not in EXAMPLES and not re.search(rf"\b{name.rpartition('.')[2]}\b", used):
            without.append(name)
    assert not without, f"without an example: {without}"


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(path: Path) -> set[str]:
    """The anchors of a page."""
    text = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.M | re.S)
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


@pytest.mark.parametrize(
    "page", [p.relative_to(ROOT).as_posix() for p in (*ROOT.glob("*.md"), *sorted(DOCS.rglob("*.md")))]
)
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text("utf-8"), flags=re.M | re.S)
    text = re.sub(r"`[^`\n]*`", "", text)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target or target.startswith("mailto:"):
            continue
        file, _, anchor = target.partition("#")
        path = ((ROOT / page).parent / file).resolve() if file else ROOT / page
        assert path.exists(), f"{page}: {target}"
        assert not anchor or anchor in anchors(path), f"{page}: {target}"


def test_the_site_builds_and_its_search_finds_every_public_name(tmp_path):
    for module in ("sphinx", "myst_parser", "furo"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed; the extra 'docs' has it")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(tmp_path / "trees")]
    done = subprocess.run([*command, str(DOCS), str(tmp_path / "site")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "site" / "searchindex.js").read_text("utf-8")
    objects = json.loads(text[text.index("{") : text.rindex("}") + 1])["objects"]
    found = {f"{prefix}.{entry[-1]}" for prefix, group in objects.items() for entry in group}
    assert {f"myia_relay.{name}" for name in PUBLIC} <= found
    assert (tmp_path / "site" / "quick-start.html").exists()

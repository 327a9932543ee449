"""The architecture, checked: imports point down, between the parts of the package and between the subpackages of a part.

Also checked: no imports in a circle, tvm and astor only where they belong, no findings of ruff.

Every import counts, lazy and type-checking ones too. The tests below show that the checker itself fails on wrong input.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "myia_relay"

LAYERS = {
    "utils": 0,
    "library": 0,
    "abstract": 1,
    "ir": 2,
    "prims": 3,
    "frontend": 4,
    "infer": 4,
    "ad": 5,
    "opt": 6,
    "backend": 7,
    "debug": 8,
    "pipeline": 9,
    "cache": 10,
    "changing": 10,
    "written_lists": 10,
    "decorated": 10,
    "inspection": 10,
    "api": 11,
    "bisect": 12,
    "transforms": 12,
    "derivatives": 12,
    "functions": 12,
    "random": 13,
    "operators": 13,
    "model": 14,
    "text": 14,
    "importers": 15,
    "quantization": 15,
    "": 16,
}
"""Height of each part of the package; "" is what stands above all: `__init__`, `__main__`, `cli`."""

TOP = {"__init__", "__main__", "cli"}
PROGRAMS = {"myia_relay.model.lenet"}
"""User programs that are part of the package: they use the public names as anybody does, so they stand above all."""

INNER = {
    "ad": (
        "common",
        "reverse",
        "forward",
        "data",
        "lists",
        "batch",
        "jacobian",
        "custom",
        "divided_differences",
        "matrix_functions",
        "eigenvectors",
        "expand",
    ),
    "backend.tvm": ("tir", "plan", "kernels", "host", "program"),
    "infer": ("values", "arguments", "engine", "objects", "language", "transforms", "entry"),
    "opt": ("analysis", "rewrite", "loops", "kernels", "pipeline"),
    "prims": ("rules", "ops", "api"),
    "text": (
        *("dtypes", "naming", "comments", "pool", "span", "tree", "errors", "walk", "binders", "placement", "equality"),
        *("lexer", "syntax", "printer", "json"),
        *("terms", "operators", "check", "lower", "run", "highlight", "module", "python", "transform"),
    ),
}
"""The subpackages of parts that have some, lowest first: folders and modules."""

UPWARD: set[tuple[str, str]] = set()
"""Imports from a higher subpackage of the same part: none. One that must be is listed here, with its reason."""

APART = {"frontend": {"infer"}, "infer": {"frontend"}, "pipeline": {"debug"}}
"""Parts that must not import each other though their heights would allow it."""

CONFINED = {
    "tvm": ("myia_relay.backend.tvm",),
    "tvm_ffi": ("myia_relay.backend.tvm",),
    "astor": ("myia_relay.debug", "myia_relay.backend.python"),
}
"""Packages that only some of our modules may import."""


class Import(NamedTuple):
    """An imported module's full name, and the line of the import."""

    module: str
    line: int


def modules() -> dict[str, Path]:
    """Full name -> file of every module of the package; `a.b.__init__` is kept as such."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in sorted(PACKAGE.rglob("*.py"))
        if "__pycache__" not in path.parts
    }


def part_of(module: str) -> str:
    """The architectural part that a module of ours belongs to: a key of LAYERS, or an unknown name."""
    names = module.split(".")
    if module in PROGRAMS or len(names) == 1 or names[1] in TOP:
        return ""
    return names[1]


def imports(name: str, source: str, known: set[str]) -> Iterator[Import]:
    """Every module that a module imports, anywhere in it, by whatever means the syntax shows.

    Args:
        name: full name of the importing module.
        source: its text.
        known: names of all modules and packages of ours, to tell `from package import module` from a name.
    """
    package = name.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=aliases):
                yield from (Import(alias.name, node.lineno) for alias in aliases)
            case ast.ImportFrom(module=module, names=aliases, level=level):
                base = package[: len(package) - level + 1] if level else []
                origin = ".".join([*base, *(module.split(".") if module else [])])
                for alias in aliases:
                    inner = f"{origin}.{alias.name}"
                    yield Import(inner if inner in known else origin, node.lineno)
            case ast.Call(
                func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                origin = module.lstrip(".")
                if origin != module:
                    origin = ".".join([*package[: len(package) - (len(module) - len(origin)) + 1], origin])
                yield Import(origin, node.lineno)


def violations(name: str, source: str, known: set[str]) -> list[str]:
    """What is wrong with a module's imports, one line each; empty where nothing is."""
    found = []
    part = part_of(name)
    if part not in LAYERS:
        return [f"{name}: {part!r} is no known part of the architecture; give it a height in LAYERS"]
    for module, line in imports(name, source, known):
        where = f"{name.replace('.', '/')}.py:{line}"
        top = module.split(".")[0]
        for banned, allowed in CONFINED.items():
            if top == banned and not any(name == a or name.startswith(f"{a}.") for a in allowed):
                found.append(f"{where}: imports {module}, which only {' and '.join(allowed)} may")
        if top != "myia_relay":
            continue
        target = part_of(module)
        if target not in LAYERS:
            found.append(f"{where}: imports {module}, which is no known part of the architecture")
        elif LAYERS[target] > LAYERS[part]:
            found.append(f"{where}: {part} imports {module}, which is above it")
        elif target in APART.get(part, ()):
            found.append(f"{where}: {part} and {target} must not know each other")
    return found


def subpackage_of(module: str, part: str) -> str | None:
    """The subpackage of a module within a part; None outside of the part, and for what the part itself exports."""
    inside = f"myia_relay.{part}."
    subpackage = module.removeprefix(inside).split(".")[0]
    return subpackage if module.startswith(inside) and subpackage != "__init__" else None


def climbs(name: str, source: str, known: set[str], part: str) -> list[tuple[str, str]]:
    """The imports of a module that point to a higher subpackage of its part, as (module, imported module).

    Raises:
        KeyError: a subpackage is not in INNER.
    """
    height = {subpackage: k for k, subpackage in enumerate(INNER[part])}
    subpackage = subpackage_of(name, part)
    found = []
    for module, _ in imports(name, source, known) if subpackage is not None else ():
        target = subpackage_of(module, part)
        if target is not None and height[target] > height[subpackage]:
            found.append((name.removeprefix("myia_relay."), module.removeprefix("myia_relay.")))
    return found


def circles(edges: dict[str, set[str]]) -> set[frozenset[str]]:
    """The largest sets of modules of which each imports every other one, directly or by way of others.

    Source: R. Tarjan, "Depth-first search and linear graph algorithms" (SIAM J. Comput. 1972).
    """
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: set[frozenset[str]] = set()

    def visit(module: str) -> None:
        order[module] = low[module] = len(order)
        stack.append(module)
        for target in edges.get(module, ()):
            if target not in order:
                visit(target)
                low[module] = min(low[module], low[target])
            elif target in stack:
                low[module] = min(low[module], order[target])
        if low[module] == order[module]:
            at = stack.index(module)
            if len(stack) - at > 1:
                found.add(frozenset(stack[at:]))
            del stack[at:]

    for module in edges:
        if module not in order:
            visit(module)
    return found


def known_names() -> set[str]:
    names = set(modules())
    return names | {name.removesuffix(".__init__") for name in names}


def test_imports_point_down():
    known = known_names()
    found = [v for name, path in modules().items() for v in violations(name, path.read_text("utf-8"), known)]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("part", INNER)
def test_imports_within_a_part_point_down(part):
    known = known_names()
    found = {climb for name, path in modules().items() for climb in climbs(name, path.read_text("utf-8"), known, part)}
    expected = {climb for climb in UPWARD if climb[0].startswith(f"{part}.")}
    assert not found - expected
    assert not expected - found, "no longer there: take it out of UPWARD"


def test_modules_do_not_import_each_other_in_circles():
    known = known_names()
    edges = {
        name.removeprefix("myia_relay."): {
            module.removeprefix("myia_relay.")
            for module, _ in imports(name, path.read_text("utf-8"), known)
            if module.startswith("myia_relay.") and f"{module}.__init__" not in known
        }
        for name, path in modules().items()
    }
    assert not circles(edges)


def test_every_folder_of_modules_is_a_package():
    bare = {path.parent for path in modules().values() if not (path.parent / "__init__.py").is_file()}
    assert not bare, f"without __init__.py, so left out of a wheel: {sorted(str(p.relative_to(ROOT)) for p in bare)}"


def test_every_module_says_what_it_is():
    bare = [name for name, path in modules().items() if not ast.get_docstring(ast.parse(path.read_text("utf-8")))]
    assert not bare


def test_a_class_name_has_one_meaning():
    places: dict[str, list[str]] = {}
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{name}:{node.lineno}")
    shared = {name: found for name, found in places.items() if len(found) > 1}
    assert not shared


def test_ruff_is_content():
    pytest.importorskip("ruff", reason="ruff is not installed")
    run = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format=concise", "."],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, "\n" + run.stdout + run.stderr


def test_ruff_format_changes_nothing():
    pytest.importorskip("ruff", reason="ruff is not installed")
    run = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--no-cache", "--check", "."],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, "\n" + run.stdout + run.stderr


def test_the_top_can_be_reached_only_from_the_top():
    """Nothing that a user program shipped with us is, or `cli`, is imported by the compiler."""
    known = known_names()
    for name, path in modules().items():
        if part_of(name) == "":
            continue
        targets = {module for module, _ in imports(name, path.read_text("utf-8"), known)}
        assert not targets & (PROGRAMS | {"myia_relay.cli", "myia_relay.__main__"}), name


# The checker itself.

KNOWN = {"myia_relay", "myia_relay.api", "myia_relay.ir.node", "myia_relay.utils", "myia_relay.model.lenet"}


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("myia_relay.ir.node", "from ..opt import cse", "ir imports myia_relay.opt, which is above it"),
        ("myia_relay.ir.node", "def f():\n    from .. import api", "node.py:2: ir imports myia_relay.api"),
        ("myia_relay.ir.__init__", "from ..backend.plan import x", "ir imports myia_relay.backend.plan"),
        ("myia_relay.opt.cse", "import myia_relay", "opt imports myia_relay, which is above it"),
        ("myia_relay.opt.cse", "from myia_relay import relay", "opt imports myia_relay, which is above it"),
        ("myia_relay.model.fit", "from .lenet import lenet", "model imports myia_relay.model.lenet"),
        ("myia_relay.frontend.parse", "import myia_relay.infer.engine", "must not know each other"),
        ("myia_relay.infer.engine", "from ..frontend import parse", "must not know each other"),
        ("myia_relay.pipeline", "from .debug import source", "must not know each other"),
        ("myia_relay.backend.python", "from ..debug import source", "backend imports myia_relay.debug"),
        ("myia_relay.ad.reverse", "if TYPE_CHECKING:\n    from ..opt.rules import Rule", "which is above it"),
        ("myia_relay.ad.reverse", "m = importlib.import_module('myia_relay.opt')", "which is above it"),
        ("myia_relay.ad.reverse", "m = import_module('..opt', __package__)", "ad imports myia_relay.opt"),
        ("myia_relay.model.fit", "import tvm.runtime as rt", "only myia_relay.backend.tvm may"),
        ("myia_relay.api", "def f():\n    from tvm import te", "only myia_relay.backend.tvm may"),
        ("myia_relay.api", "__import__('tvm_ffi')", "only myia_relay.backend.tvm may"),
        ("myia_relay.backend.tvm.lower", "import astor", "only myia_relay.debug and myia_relay.backend.python may"),
        ("myia_relay.backend_extra.x", "", "no known part"),
        ("myia_relay.api", "from .helpers import x", "no known part"),
    ],
)
def test_the_checker_finds(name, source, expected):
    found = violations(name, source, KNOWN)
    assert len(found) == 1 and expected in found[0], found


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("myia_relay.ir.node", "from ..utils.source import Loc\nfrom . import walk\nimport numpy"),
        ("myia_relay.backend.tvm.lower", "import tvm\nfrom tvm import te"),
        ("myia_relay.backend.python.printer", "import astor"),
        ("myia_relay.debug.source", "import astor\nfrom ..backend.plan import Plan"),
        ("myia_relay.api", "from .debug import source\nfrom .pipeline import run"),
        ("myia_relay.model.lenet", "from myia_relay import relay"),
        ("myia_relay.cli", "from .model.lenet import lenet\nfrom . import api"),
        ("myia_relay.__init__", "from .api import relay\nfrom .model import datasets"),
        ("myia_relay.api", "import tvmlike, astor_fork"),
    ],
)
def test_the_checker_allows(name, source):
    assert violations(name, source, KNOWN) == []


SUBPACKAGES = {"myia_relay.infer.values.values", "myia_relay.infer.language.calls", "myia_relay.infer.engine.frames"}


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        (
            "infer.engine.cells",
            "from ..language.calls import call_value",
            [("infer.engine.cells", "infer.language.calls")],
        ),
        (
            "infer.engine.cells",
            "def f():\n    from ..language import calls",
            [("infer.engine.cells", "infer.language.calls")],
        ),
        ("infer.language.calls", "from ..engine.frames import Frame\nfrom .syntax import truth", []),
        ("infer.engine.cells", "from .frames import Frame\nfrom ...ir.node import Node", []),
        ("infer.__init__", "from .language.calls import call_value", []),
        ("api", "from .infer.language.calls import call_value", []),
    ],
)
def test_the_checker_of_subpackages(name, source, expected):
    assert climbs(f"myia_relay.{name}", source, SUBPACKAGES, "infer") == expected


def test_the_checker_of_subpackages_knows_all_subpackages():
    with pytest.raises(KeyError, match="attic"):
        climbs("myia_relay.infer.attic.values", "from ..values.values import Val", SUBPACKAGES, "infer")


def test_the_checker_of_circles():
    edges = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d", "f"}, "f": set()}
    assert circles(edges) == {frozenset("abc"), frozenset("de")}
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == set()


def test_pyproject_agrees_with_the_checker():
    """The same bans are in ruff's settings, where editors see them."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    banned = re.findall(r'^"(\w+)"\.msg', text, re.MULTILINE)
    assert sorted(banned) == sorted(CONFINED)

"""From a typed graph to Python source, and from there to a function.

The source is built as `ast`, printed through astor, and compiled from the printed text under a file name that
`linecache` knows: a debugger steps through it, and tracebacks show its lines.
"""

from __future__ import annotations

import ast
import itertools
import linecache
from collections.abc import Callable
from typing import Any

import astor
import numpy as np

from ...abstract.dims import run_time_symbols
from ...abstract.types import type_symbols
from ...ir.node import Graph
from ...ir.rewrite import all_graphs, recursive_components
from ...opt.rewrite.tail_calls import MESSAGE
from ...utils.raising import raise_at, raise_through
from ...utils.source import Origin, is_ours
from ..interpreter import in_native_order
from . import data, statements  # noqa: F401  register data types, control, effects and structures
from .emit import GeneratedModule, assign
from .places import calls_of
from .runtime import HELPERS, sizes_of

_counter = itertools.count()


def to_source(graph: Graph, regions: bool = False) -> str:
    """Readable Python for a typed graph, runnable on its own with this package installed.

    Args:
        graph: closed typed graph, transforms expanded.
        regions: whether groups of array operations are calls of compiled regions, instead of NumPy.
    """
    module, _ = _module(graph, regions)
    return _header(module) + _text(module)


def compile_python(graph: Graph, compile_region: Callable[[Graph], Callable] | None = None) -> Callable[..., Any]:
    """A Python function for a typed graph, from generated source (its attribute `source`).

    Args:
        graph: closed typed graph, transforms expanded.
        compile_region: compiles a straight-line graph of array operations to a function of its parameters' values;
        without it
            NumPy evaluates them.
    """
    module, entry = _module(graph, compile_region is not None)
    text = _text(module)
    filename = f"<myia_relay {entry} {next(_counter)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace: dict[str, Any] = {"np": np, **HELPERS, "objects": module.objects.given, "__name__": filename}
    namespace.update({name: value for (_, name), value in module.objects.imports.items()})
    for name, region in module.regions.items():
        assert compile_region is not None
        namespace[name] = compile_region(region.graph)
    exec(compile(text, filename, "exec"), namespace)
    function, types = namespace[entry], [p.type for p in graph.params]

    symbolic, recursive = _symbolic(graph), recursive_components(graph)
    calls = [module.calls[id(n)][1] for f in module.functions for n in ast.walk(f) if id(n) in module.calls]

    def run(*values):
        if symbolic:
            namespace["sizes"] = sizes_of(types, values)
        with np.errstate(all="ignore"):
            try:
                return function(*map(in_native_order, values))
            except Exception as error:
                if not calls:
                    raise
                raise_through(error, calls_of(error, filename, text, calls))

    if recursive:
        run = _located(run, filename, recursive[0][0].origin)

    run.__name__ = run.__qualname__ = entry
    run.source = _header(module) + text
    return run


def _located(run: Callable[..., Any], filename: str, origin: Origin) -> Callable[..., Any]:
    """A function whose RecursionErrors, where they are CPython's own, come from a place in the user's program."""

    def located(*values):
        try:
            return run(*values)
        except RecursionError as error:
            tb = error.__traceback__
            while tb is not None and tb.tb_next is not None:
                tb = tb.tb_next
            inner = tb.tb_frame.f_code.co_filename if tb is not None else filename
            if inner != filename and not is_ours(inner):
                raise
        raise_at(RecursionError, MESSAGE, origin)

    return located


def _module(graph: Graph, regions: bool) -> tuple[GeneratedModule, str]:
    module = GeneratedModule(regions)
    return module, module.function(graph)


def _symbolic(graph: Graph) -> bool:
    return any(
        type_symbols(p.type) - run_time_symbols(type_symbols(p.type)) for g in all_graphs(graph) for p in g.params
    )


def _text(module: GeneratedModule) -> str:
    constants = [assign(name, value) for name, value in module.objects.arrays.items()]
    tree = ast.Module([*constants, *module.functions], [])
    return astor.to_source(ast.fix_missing_locations(tree), pretty_source=_lines)


def _lines(source: list[str]) -> str:
    """Lines as they come: astor's own line breaking takes quadratic time on long expressions."""
    return "".join(source)


def _header(module: GeneratedModule) -> str:
    trees = [*module.functions, *module.objects.arrays.values()]
    used = {n.id for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Name)}
    helpers = ", ".join(sorted(h for h in HELPERS if h in used))
    lines = ["import numpy as np"]
    lines += [f"from {where} import {name}" for where, name in sorted(module.objects.imports)]
    if helpers:
        lines.append(f"from {__package__}.runtime import {helpers}")
    if "sizes" in used:
        lines.append("# sizes: an object with the size of each symbolic dimension, bound at each call")
    lines += [f"# objects[{key!r}]: {value!r}" for key, value in module.objects.given.items()]
    lines += [f"# {name}: a compiled region of {len(r.graph.nodes)} operations" for name, r in module.regions.items()]
    return "\n".join(lines) + "\n\n\n"

"""Checks a module: its data types, then its definitions, those first that others use.

Definitions that use each other are inferred together, with one type each (G. Kanellakis, H. Mairson, J. Mitchell, "Unification
and ML type reconstruction", 1991, has why); one whose head says its whole type can be used at any instance.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ...utils.collector import resting
from ...utils.deep import deeply
from ...utils.trampoline import Steps, run
from ..errors import Enough, raise_all
from ..terms.terms import GENERIC, Rigid, arrow, instance
from ..tree import GlobalVar, ModuleTree, TypeDef
from ..walk import walk
from . import calls, expressions  # noqa: F401  they register their steps
from .checked import Checked, Scheme
from .functions import FunctionHead, closed, declared_scheme, inferred, is_annotated
from .schemes import generalise, unsolved
from .state import Inference


def check(module: ModuleTree) -> Checked:
    """The types of a module.

    Args:
        module: its tree; graph bindings are taken to be in place (`placement.placed`).

    Returns:
        The types of all expressions.

    Raises:
        CompileError: the first of the errors, with the others as notes.
    """
    inference = Inference(module)
    with contextlib.suppress(Enough):
        try:
            with resting():
                run(_module(inference))
        except RecursionError:  # types as deep as no program has them that a person wrote
            inference = Inference(module)
            deeply(lambda: run(_module(inference)))
    if inference.errors:
        raise_all(inference.errors)
    locals_ = {k: v if isinstance(v, Scheme) else Scheme(v) for k, v in inference.locals.items()}
    return Checked(
        module,
        inference.types,
        locals_,
        {k: v if isinstance(v, Scheme) else Scheme(v) for k, v in inference.schemes.items()},
        inference.constructors,
        inference.instances,
        inference.attributes,
        {rigid: param for param, rigid in inference.annotations.params.items()},
        inference.redundant,
    )


def _module(inference: Inference) -> Steps:
    """Check the types, then the definitions; a step."""
    for definition in inference.module.types.values():
        _data_type(inference, definition)
    yield from _definitions(inference)
    for relation in inference.solver.pending[0]:
        if not relation.done:
            inference.report(unsolved(relation, None))


def _data_type(inference: Inference, definition) -> None:
    """The schemes of the constructors of a data type."""
    params = [inference.annotations.declare(p, GENERIC) for p in definition.type_params]
    if not isinstance(definition, TypeDef):
        return
    result = instance(definition.name, [p.size if p.kind == "ShapeVar" else p for p in params])
    for constructor in definition.constructors:
        fields = [inference.written(f) for f in constructor.fields]
        t = arrow(fields, result) if fields else result
        inference.constructors[constructor.name] = Scheme(t, tuple(params), [], len(params))


def _definitions(inference: Inference) -> Iterator[Steps]:
    """Infer the definitions, in the order of their dependencies."""
    definitions = inference.module.definitions
    whole = {name for name, d in definitions.items() if is_annotated(d.function)}
    uses = {
        name: [e.name for e in walk(d.function) if isinstance(e, GlobalVar) and e.name in definitions]
        for name, d in definitions.items()
    }
    signatures: dict[str, FunctionHead] = {}
    for name in whole:  # at level 1, as all definitions are
        inference.solver.enter()
        signatures[name] = FunctionHead(inference, definitions[name].function)
        inference.solver.leave()
        inference.schemes[name] = declared_scheme(signatures[name])
    for group in components(uses, whole):
        inference.solver.enter()
        for name in group:
            if name not in whole:
                signatures[name] = FunctionHead(inference, definitions[name].function)
                inference.schemes[name] = signatures[name].type
        for name in group:
            yield inferred(inference, definitions[name].function, signatures[name])
            inference.types[definitions[name].function] = signatures[name].type
        pending = inference.solver.leave()
        _generalise(inference, group, signatures, pending)


def _generalise(inference: Inference, group: list[str], signatures: dict[str, FunctionHead], pending: list) -> None:
    """The schemes of definitions that use each other."""
    functions = inference.module.definitions
    if len(group) == 1:
        name = group[0]
        scheme = closed(inference, signatures[name], pending, functions[name].function.span)
        known = inference.schemes[name]
        if isinstance(known, Scheme):  # uses of it that came first share its relations
            known.relations[:] = scheme.relations
            known.params = scheme.params
        else:
            inference.schemes[name] = scheme
        return
    own: list[Rigid] = [p for name in group for p in signatures[name].own]
    types = [signatures[name].type for name in group]
    params, relations = generalise(inference.solver, pending, types, own, functions[group[0]].function.span)
    for p in own:
        p.level = GENERIC
    for name in group:
        mine = signatures[name].own
        others = [p for p in params if p not in mine]
        declared = sum(not p.implicit for p in mine)
        scheme = Scheme(signatures[name].type, (*mine, *others), relations, declared)
        if isinstance(known := inference.schemes[name], Scheme):
            known.relations.extend(relations)
        else:
            inference.schemes[name] = scheme


def components(uses: dict[str, list[str]], whole: set[str]) -> list[list[str]]:
    """Strongly connected components of definitions, those first that others use (R. Tarjan, 1972).

    Args:
        uses: name -> the names that it uses.
        whole: names whose types are declared, so that uses of them depend on nothing.
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    on_stack: set[str] = set()
    stack: list[str] = []
    out: list[list[str]] = []
    for root in uses:
        if root in index:
            continue
        work: list[tuple[str, int]] = [(root, 0)]
        while work:
            name, at = work.pop()
            if at == 0:
                index[name] = low[name] = len(index)
                stack.append(name)
                on_stack.add(name)
            edges = uses[name]
            while at < len(edges):
                other = edges[at]
                at += 1
                if other in whole:
                    continue
                if other not in index:
                    work += [(name, at), (other, 0)]
                    break
                if other in on_stack:
                    low[name] = min(low[name], index[other])
            else:
                if low[name] == index[name]:
                    group = []
                    while True:
                        top = stack.pop()
                        on_stack.discard(top)
                        group.append(top)
                        if top == name:
                            break
                    out.append(group[::-1])
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[name])
    return out


__all__ = ["check", "components"]

"""Algebraic data types as Python: the user's own classes, their attributes, and tests of classes."""

from __future__ import annotations

import ast

from ...abstract.types import NoneT, Struct, Type
from ...ir.node import Apply
from ...prims.ops.data import leaf_path, variant_of
from . import literals as lit
from .emit import SPECIAL, FunctionWriter


def _make(f: FunctionWriter, node: Apply, body):
    variant = variant_of(node.attrs["type"], node.attrs["variant"])
    leaves = [f.read(a) for a in node.args]
    objects = f.module.objects

    def built(t: Type) -> ast.expr:
        if isinstance(t, Struct):
            return lit.structure(t, [built(e) for e in t.elems], objects)
        value = leaves.pop(0)
        return ast.Constant(None) if isinstance(t, NoneT) else value

    values = [built(t) for t in variant.types]
    return lit.call("record", objects.refer(variant.cls), **dict(zip(variant.fields, values, strict=True)))


def _is(f: FunctionWriter, node: Apply, body):
    value, family = f.read(node.args[0]), node.attrs["type"].family
    numbers = node.attrs["variants"]
    none = ast.Compare(value, [ast.Is()], [ast.Constant(None)])
    if numbers == (0,):
        return none
    if set(numbers) == {v.number for v in family.variants}:
        return ast.Compare(value, [ast.IsNot()], [ast.Constant(None)])
    classes = [f.module.objects.refer(family.variants[n - 1].cls) for n in numbers if n]
    own = lit.call("type", value)
    if len(classes) == 1:
        found = ast.Compare(own, [ast.Is()], classes)
    else:
        found = ast.Compare(own, [ast.In()], [lit.display(classes)])
    return ast.BoolOp(ast.Or(), [none, found]) if 0 in numbers else found


def _field(f: FunctionWriter, node: Apply, body):
    attrs = node.attrs
    name, steps = leaf_path(variant_of(attrs["type"], attrs["variant"]), attrs["index"])
    value: ast.expr = lit.attribute(f.read(node.args[0]), name)
    for t, k in steps:
        value = lit.part(t, value, k)
    return value


def _as(f: FunctionWriter, node: Apply, body):
    return f.value(node.args[0])


def _same(f: FunctionWriter, node: Apply, body):
    return ast.Compare(f.read(node.args[0]), [ast.Is()], [f.read(node.args[1])])


SPECIAL.update({"data_make": _make, "data_is": _is, "data_field": _field, "data_as": _as, "data_same": _same})

"""Groups of nodes that are one quantised operator.

    QuantizeLinear(Relu(Conv(DequantizeLinear(x), DequantizeLinear(w), DequantizeLinear(b))))  =>  QuantizedConv(x, w, b, ...)

This is how the format called QDQ writes a convolution or product of integers. A group is computed as the quantised operator of ONNX
that it stands for (QLinearConv, QLinearMatMul): the sum of products is exact, and rounded once, where the nodes one by one would
round each product and partial sum to float32. Without a QuantizeLinear behind it, the exact sum becomes a float.

Relu and Clip in between become limits of the integers: rounding is monotone, so round(clip(v)) = clip(round(v), round(limits)).
Which scales there are, and of what dtypes, only the rule of the made node sees (`operators/quantised/products.py`); what is no
product of integers is computed there as its nodes would.

Input: the nodes of a graph. Output: nodes, with their names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

GROUPS = "myia_relay.groups"
"""The domain of the nodes that are made here."""
PRODUCTS = {"Conv": "QuantizedConv", "Gemm": "QuantizedGemm", "MatMul": "QuantizedMatMul"}
PLAIN = ("", "ai.onnx")
OPTIONS = {"axis", "saturate"}
"""Attributes of QuantizeLinear and DequantizeLinear that a group may have."""

Named = tuple[str, Any, bool]


def grouped(nodes: Sequence[Any], outputs: Sequence[str]) -> list[Named]:
    """The nodes of a graph, with groups in place of theirs.

    Args:
        nodes: in order.
        outputs: the names of the graph's outputs.

    Returns:
        (name, node, whether it is a group), in order.
    """
    named = [(node.name or f"{node.op_type}_{index}", node, False) for index, node in enumerate(nodes)]
    if not any(n.op_type == "DequantizeLinear" for n in nodes):
        return named
    made = [o for n in nodes for o in n.output if o]
    if len(set(made)) < len(made):
        return named  # not what ONNX allows, which others say
    return _Groups(named, outputs).run()


def _names_read(node: Any) -> Iterator[str]:
    """The names that a node reads, in its subgraphs as well."""
    yield from (i for i in node.input if i)
    for a in node.attribute:
        for graph in (*a.graphs, *((a.g,) if a.HasField("g") else ())):
            for inner in graph.node:
                yield from _names_read(inner)
            yield from (o.name for o in graph.output)


def _is(node: Any, *names: str) -> bool:
    """Whether a node is one of these operators of ONNX."""
    return node is not None and node.op_type in names and node.domain in PLAIN


def _integer(node: Any, name: str, default: int) -> int:
    return next((a.i for a in node.attribute if a.name == name and a.type == 2), default)


class _Groups:
    def __init__(self, named: list[Named], outputs: Sequence[str]):
        self.named = named
        self.makers: dict[str, Any] = {o: node for _, node, _ in named for o in node.output if o}
        self.names = {id(node): name for name, node, _ in named}
        self.uses = Counter(outputs)
        self.released: set[str] = set()  # values that nodes read which are in groups now
        for _, node, _ in named:
            self.uses.update(_names_read(node))

    def run(self) -> list[Named]:
        """The nodes, with groups in place of theirs."""
        found: list[Named] = []
        for name, node, _ in self.named:
            group = self.rounded(node) if _is(node, "QuantizeLinear") else None
            found.append((name, node, False) if group is None else group)
        for index, (name, node, made) in enumerate(found):
            if not made and _is(node, *PRODUCTS) and self.uses[node.output[0]]:
                group = self.made(node, node, None, [], False)
                found[index] = (name, node, False) if group is None else group
        return [entry for entry in found if entry[2] or not self.is_unread(entry[1])]

    def is_unread(self, node: Any) -> bool:
        """Whether a node was absorbed by groups."""
        absorbed = _is(node, "DequantizeLinear", "Relu", "Clip", *PRODUCTS)
        return absorbed and all(not self.uses[o] for o in node.output) and any(o in self.released for o in node.output)

    def maker(self, value: str, alone: bool = True) -> Any:
        """The node that makes a value, if nothing else reads it."""
        return self.makers.get(value) if value and (not alone or self.uses[value] == 1) else None

    def dequantised(self, value: str) -> Any:
        """The DequantizeLinear that makes a value."""
        node = self.maker(value, alone=False)
        return node if _is(node, "DequantizeLinear") and _is_simple(node) else None

    def rounded(self, node: Any) -> Named | None:
        """The group that ends in a QuantizeLinear."""
        if not _is_simple(node):
            return None
        limits: list[str] = []
        relu = False
        chain: Any = self.maker(node.input[0])
        while _is(chain, "Relu", "Clip"):
            if chain.op_type == "Clip":
                if limits or chain.attribute or len(chain.input) < 2 or relu:
                    return None
                limits = [*chain.input[1:], ""][:2]
            relu = relu or chain.op_type == "Relu"
            chain = self.maker(chain.input[0]) if chain.input else None
        return self.made(chain, node, node, limits, relu) if _is(chain, *PRODUCTS) else None

    def made(self, product: Any, last: Any, quantise: Any, limits: list[str], relu: bool) -> Named | None:
        """The group of a product, as a node that has the outputs of its last one; None where the operands are no integers."""
        from .loading import require_onnx

        if len(product.input) < 2 or len(product.output) != 1:
            return None
        left, right = (self.dequantised(i) for i in product.input[:2])
        if left is None or right is None or any(a.name in ("alpha", "beta") and a.f != 1 for a in product.attribute):
            return None
        bias = product.input[2] if len(product.input) > 2 else ""
        known = self.dequantised(bias)
        parts = [left, right, known, quantise]
        axes = [1 if part is None else _integer(part, "axis", 1) for part in parts]
        inputs = [*_three(left), *_three(right), *(_three(known) if known else (bias, "", ""))]
        inputs += [*((_three(quantise)[1:]) if quantise else ("", "")), *limits]
        while not inputs[-1]:
            inputs.pop()
        node = require_onnx().helper.make_node(
            PRODUCTS[product.op_type], inputs, list(last.output), domain=GROUPS, axes=axes, relu=int(relu)
        )
        node.attribute.extend(product.attribute)
        self.release(product, last)
        self.uses.update(i for i in inputs if i)
        return self.names[id(product)], node, True

    def release(self, product: Any, last: Any) -> None:
        """Note that the nodes from the last one back to the product's operands are read by their group no more."""
        node = last
        while True:
            for value in node.input:
                self.uses[value] -= 1
                self.released.add(value)
            if node is product:
                break
            node = self.makers[node.input[0]]
        for value in product.input:
            part: Any = self.makers.get(value)
            if _is(part, "DequantizeLinear") and not self.uses[value]:
                for each in part.input:
                    self.uses[each] -= 1


def _is_simple(node: Any) -> bool:
    """Whether a QuantizeLinear or DequantizeLinear has one scale, or one for each index of an axis, and no other options."""
    allowed = all(a.name in OPTIONS or a.type == 2 and a.i == 0 for a in node.attribute)
    return allowed and 2 <= len(node.input) <= 3 and all(node.input[:2]) and len(node.output) == 1


def _three(node: Any) -> tuple[str, str, str]:
    """A tensor, its scale, and its zero point."""
    return node.input[0], node.input[1], node.input[2] if len(node.input) > 2 else ""


__all__ = ["GROUPS", "grouped"]

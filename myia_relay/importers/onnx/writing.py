"""From an ONNX graph to the text of a function in the language.

Every node becomes a call, `y = Conv(x, w, strides=(2, 2), node='conv1')`; If, Loop, Scan and SequenceMap become Python's `if` and
`for`, with the subgraphs' nodes in their bodies, where outer names are simply in scope; local functions are
written out where they are called, and so are operators without a rule that ONNX defines by others. Inputs with symbolic
dimensions are annotated with their names, so one compilation serves all sizes.

Input: a `ModelProto`. Output: a `ModelText`: the text, what its names mean, inputs and outputs.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...abstract import annotations as notes
from ...utils.errors import CompileError, TypeError_, ValueError_
from .control import CONTROL
from .groups import GROUPS, grouped
from .loading import CARRIERS, DEEPEST, PLAIN, array_of, dense, dtype_name, opsets, require_onnx
from .schemas import misfit
from .table import DOMAINS, OnnxOperator, find_rule
from .text import ANNOTATIONS, ModelText, Port
from .values import Fixed, copied

FOLDED = 1 << 16
"""Elements of an integer initialiser, or of a constant, that is part of the program; larger ones are arrays that it reads."""
TYPES = ("to", "dtype", "output_dtype", "output_datatype", "softmax_precision", "stash_type", "qk_matmul_output_type")
"""Attributes that are element types."""
RESERVED = {"parameter", "range", "inf", "nan", "Tensor", "Any", "Bool", *ANNOTATIONS.values()}


class NodeScope:
    """Where a graph's nodes are written.

    Attributes:
        names: name of a value -> variable; the values of enclosing graphs are there too.
        own: names that this graph defines.
        attributes: attributes of the function that the graph belongs to.
        versions: domain -> version of its operator set.
        functions: (domain, name) of the local functions that are being written out.
        where: the graph, for messages.
    """

    def __init__(self, names: dict, attributes: dict, versions: dict, functions: tuple, where: str, depth: int):
        self.names, self.attributes, self.versions = names, attributes, versions
        self.functions, self.where, self.depth = functions, where, depth
        self.own: set[str] = set()

    def inside(self, where: str) -> NodeScope:
        """The scope of a graph inside of this one.

        Raises:
            CompileError: it is too deep inside.
        """
        if self.depth >= DEEPEST:
            raise CompileError(f"{self.where}: graphs and functions are nested more than {DEEPEST} deep")
        return NodeScope(dict(self.names), self.attributes, self.versions, self.functions, where, self.depth + 1)


class ModelWriter:
    """Writes one model.

    Attributes:
        statics: the variables of inputs, and the names of parameters, whose values are part of the program, or
            the variables of all inputs where only a call tells their sizes.
        values: parameter -> its array, where that is no longer the one of the file.
    """

    def __init__(
        self,
        model: Any,
        folder: Path | None,
        name: str,
        statics: frozenset[str] = frozenset(),
        values: Mapping[str, np.ndarray] | None = None,
    ):
        self.model, self.folder, self.statics = model, folder, statics
        self.values: dict[str, np.ndarray] = dict(values or {})
        self.learned: dict[str, str] = {}  # variable -> the parameter that it stands for
        self.constants: dict[str, str] = {}  # variable of a parameter -> that of its value
        self.read: set[str] = set()  # the variables that nodes read
        self.out = ModelText(self.identifier(name, {*RESERVED, "Output"}))
        self.used: set[str] = {*RESERVED, self.out.name, "Output"}
        self.indent = 1
        self.types: dict[str, Any] | None = None
        self.functions = {(DOMAINS.get(f.domain, f.domain), f.name): f for f in model.functions}

    # Names.

    @staticmethod
    def identifier(name: str, used: set[str]) -> str:
        """A Python name like `name` that is not in use."""
        text = re.sub(r"\W", "_", name)[-60:].strip("_") or "x"
        if text[0].isdigit() or keyword.iskeyword(text):
            text = f"x_{text}"
        found, count = text, 1
        while found in used or keyword.iskeyword(found):
            count += 1
            found = f"{text}_{count}"
        used.add(found)
        return found

    def define(self, scope: NodeScope, name: str) -> str:
        """A variable for a value that a node of a graph makes; `_` for an output that is not wanted.

        Raises:
            CompileError: the graph has it already.
        """
        if not name:
            return "_"
        if name in scope.own:
            raise CompileError(f"{scope.where}: two nodes make the value '{name}'")
        scope.own.add(name)
        scope.names[name] = variable = self.identifier(name, self.used)
        return variable

    def fresh(self, name: str) -> str:
        """A variable of our own."""
        return self.identifier(name, self.used)

    def use(self, scope: NodeScope, name: str, node: str) -> str:
        """The variable of a value.

        Raises:
            CompileError: nothing makes it before.
        """
        if not name:
            return "None"
        if name not in scope.names:
            raise CompileError(
                f"{scope.where}: node '{node}' reads '{name}', which is no input, and which no node before it makes"
            )
        self.read.add(scope.names[name])
        return scope.names[name]

    def use_fixed(self, scope: NodeScope, name: str, node: str) -> str:
        """The variable of a value; of an integer parameter, one of its value, which becomes part of the program.

        Raises:
            CompileError: nothing makes it before.
        """
        variable = scope.names.get(name, "") if name else ""
        parameter = self.learned.get(variable)
        if parameter is None or self.out.parameters[parameter].dtype.kind not in "iu":
            return self.use(scope, name, node)
        if variable not in self.constants:
            value = self.out.fixed[parameter] = Fixed.of(self.out.parameters[parameter])
            self.constants[variable] = self.name_object(f"{parameter}_value", value)
        return self.constants[variable]

    def emit(self, line: str) -> None:
        """Write a line."""
        self.out.lines.append("    " * self.indent + line)

    def name_object(self, name: str, value: Any) -> str:
        """The free name of an object."""
        found = self.identifier(name, self.used)
        self.out.names[found] = value
        return found

    # The model.

    def write(self) -> ModelText:
        """The text of the model.

        Raises:
            CompileError: the model is not what ONNX allows.
        """
        graph = self.model.graph
        versions = opsets(self.model.opset_import, self.out.name)
        self.out.names |= {n: getattr(notes, n) for n in {"Tensor", *ANNOTATIONS.values()}}
        self.out.names |= {"Any": Any, "inf": float("inf"), "nan": float("nan")}
        scope = NodeScope({}, {}, versions, (), f"graph '{graph.name}'", 0)
        given = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
        dims: dict[str, str] = {}
        for info in graph.input:
            if info.name not in given:
                self.out.inputs.append(self.input(info, self.define(scope, info.name), dims))
        if any(p.kind != "tensor" for p in self.out.inputs):  # the tensors in them have sizes, not names
            self.out.inputs = [replace(p, shape=None) for p in self.out.inputs]
        head = ", ".join(p.variable + (p.annotation if p.variable not in self.statics else "") for p in self.out.inputs)
        self.out.lines.append(f"def {self.out.name}({head}):")
        self.initializers(graph, scope, top=True)
        self.nodes(graph.node, scope, [info.name for info in graph.output])
        results = [f"Output({self.use(scope, info.name, 'of the graph')})" for info in graph.output]
        if not results:
            raise CompileError(f"{scope.where}: it has no outputs")
        self.out.names.setdefault("Output", OnnxOperator("Output", "relay", 1))
        self.emit(f"return {', '.join(results)}")
        unread = {
            f"    {v} = parameter({n!r})" for v, n in self.learned.items() if v in self.constants and v not in self.read
        }
        self.out.lines = [line for line in self.out.lines if line not in unread]
        self.out.outputs = [self.port(info, scope.names[info.name], dims) for info in graph.output]
        return self.out

    def input(self, info: Any, variable: str, dims: dict[str, str]) -> Port:
        """An input.

        Raises:
            TypeError_: compiled code has no such values; the operator that reads it is named.
        """
        try:
            return self.port(info, variable, dims)
        except TypeError_ as error:
            for index, node in enumerate(self.model.graph.node):
                if info.name in node.input:
                    name = node.name or f"{node.op_type}_{index}"
                    raise TypeError_(f"{node.op_type} (node '{name}'): its input {error.message}") from None
            raise

    def port(self, info: Any, variable: str, dims: dict[str, str]) -> Port:
        """An input or output.

        Raises:
            ValueError_: a value is none that is allowed.
            TypeError_: compiled code has no such values.
        """
        kind = info.type.WhichOneof("value")
        where = f"'{info.name}'"
        if kind in ("sequence_type", "optional_type"):
            inner = getattr(info.type, kind).elem_type
            while inner.WhichOneof("value") in ("sequence_type", "optional_type"):
                inner = getattr(inner, inner.WhichOneof("value")).elem_type
            if inner.WhichOneof("value") == "tensor_type":
                dtype_name(inner.tensor_type.elem_type, where)
            return Port(info.name, variable, kind.removesuffix("_type"), None, None)
        if kind is None:
            return Port(info.name, variable, "tensor", None, None)
        if kind != "tensor_type":
            raise TypeError_(f"{where}: it is a {kind.removesuffix('_type')}, which cannot be imported")
        tensor = info.type.tensor_type
        dtype = dtype_name(tensor.elem_type, where) if tensor.elem_type else None
        if not tensor.HasField("shape"):
            return Port(info.name, variable, "tensor", dtype, None)
        sizes: list[Any] = []
        for d in tensor.shape.dim:
            if d.HasField("dim_value"):
                if d.dim_value < 0:
                    raise ValueError_(f"{where}: the size {d.dim_value} is negative")
                sizes.append(d.dim_value)
            elif d.dim_param:
                if d.dim_param not in dims:
                    dims[d.dim_param] = self.identifier(d.dim_param, set(dims.values()))
                sizes.append(dims[d.dim_param])
            else:
                sizes.append(None)
        return Port(info.name, variable, "tensor", dtype, tuple(sizes))

    def initializers(self, graph: Any, scope: NodeScope, top: bool = False) -> None:
        """Write what gives the initialisers of a graph.

        Raises:
            CompileError: the model is not what ONNX allows.
        """
        found: list[tuple[str, Any]] = [
            (t.name, lambda t=t, w=f"initializer '{t.name}'": array_of(t, self.folder, w)) for t in graph.initializer
        ]
        for s in graph.sparse_initializer:
            name = s.values.name
            found.append((name, lambda s=s, w=f"initializer '{name}'": dense(s, self.folder, w)))
        for name, read in found:
            if not name:
                raise CompileError(f"{scope.where}: an initializer has no name")
            array = self.values[name] if top and name in self.values else read()
            variable = self.define(scope, name)
            learned = array.dtype.kind == "f" or array.dtype.name in ("bfloat16", "int8", "uint8")
            if top and learned and array.dtype.name not in CARRIERS:
                self.out.parameters[name] = array = array if name in self.values else copied(array)
                if name in self.statics:
                    value = self.out.fixed[name] = Fixed.of(array)
                    self.emit(f"{variable} = {self.name_object(f'{name}_value', value)}")
                    continue
                self.learned[variable] = name
                self.emit(f"{variable} = parameter({name!r})")
            else:
                self.emit(f"{variable} = {self.constant(array, name)}")

    def constant(self, array: np.ndarray, name: str) -> str:
        """An expression for a constant array."""
        small = array.size <= FOLDED or array.dtype.name in CARRIERS
        return self.name_object(f"{name}_value", Fixed.of(array) if small else np.ascontiguousarray(array))

    # Nodes.

    def nodes(self, nodes: Any, scope: NodeScope, outputs: Sequence[str]) -> None:
        """Write nodes, in order.

        Args:
            nodes: of a graph or a function.
            scope: of it.
            outputs: the names of its outputs.
        """
        for node in nodes:
            self.out.counts[node.op_type] = self.out.counts.get(node.op_type, 0) + 1
        for name, node, made in grouped(nodes, outputs):
            if node.domain == GROUPS and not made:
                self.refuse(node, name, scope, f"the operator {node.op_type} cannot be imported")
            else:
                self.node(node, scope, name)

    def node(self, node: Any, scope: NodeScope, name: str) -> None:
        """Write a node.

        Raises:
            CompileError: it is not what ONNX allows.
        """
        domain: str = DOMAINS.get(node.domain, str(node.domain))
        attributes = self.attributes(node, scope)
        own = (domain, node.op_type) in self.functions
        wrong = None if own else misfit(node, domain, scope.versions.get(domain, 0), attributes)
        if wrong is not None:
            self.refuse(node, name, scope, wrong)
            return
        if not domain and node.op_type in CONTROL:
            CONTROL[node.op_type](self, node, scope, name, attributes)
            return
        if not domain and node.op_type == "Constant":
            self.constant_node(node, scope, name, attributes)
            return
        function = self.functions.get((domain, node.op_type))
        if function is not None:
            self.function(function, node, scope, name, attributes)
            return
        version = scope.versions.get("" if domain == GROUPS else domain)
        if version is None:
            self.refuse(
                node, name, scope, f"the model does not say which version of the operator set '{domain}' it uses"
            )
            return
        rule = find_rule(domain, node.op_type, version)
        if rule is None:
            body = self.defined(node, domain, version)
            if body is None:
                where = f"domain '{domain}'" if domain else f"version {version} of the operator set"
                self.refuse(node, name, scope, f"the operator {node.op_type} of {where} cannot be imported")
                return
            self.function(body, node, scope, name, self.defaults(node, domain, version) | attributes)
            return
        formal = rule.inputs
        inputs = [
            (self.use_fixed if formal[k : k + 1] and formal[k] in rule.fixed else self.use)(scope, value, name)
            for k, value in enumerate(node.input)
        ]
        while inputs and inputs[-1] == "None":
            inputs.pop()
        try:
            options = [f"{key}={self.literal(value, key, name)}" for key, value in attributes.items()]
        except TypeError_ as error:
            self.refuse(node, name, scope, error.message)
            return
        outputs = list(node.output)
        while len(outputs) > 1 and not outputs[-1]:
            outputs.pop()
        if len(outputs) > 1:
            options.append(f"outputs={len(outputs)}")
        called = self.operator(node.op_type, domain, version)
        arguments = ", ".join([*inputs, *options, f"node={name!r}"])
        targets = ", ".join(self.define(scope, o) for o in outputs)
        self.emit(f"{targets or '_'} = {called}({arguments})")

    def operator(self, name: str, domain: str, version: int) -> str:
        """The free name of an operator."""
        called = OnnxOperator(name, domain, version)
        for text in (name, f"{name}_{version}", f"{name}_{version}_"):
            if self.out.names.get(text) == called:
                return text
            if text not in self.used:
                self.used.add(text)
                self.out.names[text] = called
                return text
        return self.name_object(name, called)

    def refuse(self, node: Any, name: str, scope: NodeScope, reason: str) -> None:
        """Note a node that cannot be imported; its outputs stand for nothing."""
        if scope.functions:
            reason = f"{reason} ({scope.where})"
        self.out.missing.append((node.op_type, name, reason))
        for output in node.output:
            if output:
                self.emit(f"{self.define(scope, output)} = None")

    def attributes(self, node: Any, scope: NodeScope) -> dict[str, Any]:
        """The attributes of a node, by name; those that refer to attributes of a function, with their values."""
        found = {}
        for a in node.attribute:
            if a.ref_attr_name:
                if a.ref_attr_name in scope.attributes:
                    found[a.name] = scope.attributes[a.ref_attr_name]
                continue
            found[a.name] = a
        return found

    def literal(self, attribute: Any, key: str, node: str) -> str:
        """An attribute's value as an expression.

        Raises:
            TypeError_: it is of a kind that cannot be imported.
        """
        kind, where = attribute.type, f"attribute '{key}'"
        if kind == 1:
            return repr(float(np.float32(attribute.f)))
        if kind == 2:
            if key in TYPES and (attribute.i or key == "to"):
                return repr(dtype_name(attribute.i, where))
            return "None" if key in TYPES else repr(attribute.i)
        if kind == 3:
            return repr(attribute.s.decode("utf-8", "replace"))
        if kind == 4:
            return self.constant(array_of(attribute.t, self.folder, where), f"{node}_{key}")
        if kind == 11:
            return self.constant(dense(attribute.sparse_tensor, self.folder, where), f"{node}_{key}")
        if kind in (6, 7, 8):
            values = {
                6: attribute.floats,
                7: attribute.ints,
                8: [s.decode("utf-8", "replace") for s in attribute.strings],
            }[kind]
            values = [float(v) if kind == 6 else v for v in values]
            return f"({', '.join(map(repr, values))}{',' if len(values) == 1 else ''})"
        if kind == 13:
            return "None"
        raise TypeError_(f"its attribute '{key}' is of a kind that cannot be imported")

    def constant_node(self, node: Any, scope: NodeScope, name: str, attributes: dict[str, Any]) -> None:
        """Write a Constant.

        Raises:
            CompileError: the model is not what ONNX allows.
        """
        if len(attributes) != 1 or not node.output:
            raise CompileError(f"{scope.where}: the node '{name}', a Constant, has {len(attributes)} values")
        ((key, a),) = attributes.items()
        try:
            array = {
                "value": lambda: array_of(a.t, self.folder, f"node '{name}'"),
                "sparse_value": lambda: dense(a.sparse_tensor, self.folder, f"node '{name}'"),
                "value_int": lambda: np.int64(a.i),
                "value_ints": lambda: np.array(a.ints, np.int64),
                "value_float": lambda: np.float32(a.f),
                "value_floats": lambda: np.array(a.floats, np.float32),
            }[key]()
        except (KeyError, TypeError_) as error:
            reason = (
                error.message
                if isinstance(error, TypeError_)
                else f"its value is of a kind ({key}) that cannot be imported"
            )
            self.refuse(node, name, scope, reason)
            return
        expression = self.constant(np.asarray(array), node.output[0])
        self.emit(f"{self.define(scope, node.output[0])} = {expression}")

    # Functions.

    def defined(self, node: Any, domain: str, version: int) -> Any:
        """The function by which ONNX defines an operator in terms of others; None if there is none."""
        onnx = require_onnx()
        try:
            schema = onnx.defs.get_schema(node.op_type, version, domain)
        except onnx.defs.SchemaError:
            return None
        if schema.has_function:
            return schema.function_body
        if not schema.has_context_dependent_function:
            return None
        types = [self.type_of(name) for name in node.input]
        body = schema.get_context_dependent_function(node.SerializeToString(), [t.SerializeToString() for t in types])
        return onnx.FunctionProto.FromString(body) if body else None

    @staticmethod
    def defaults(node: Any, domain: str, version: int) -> dict[str, Any]:
        """The attributes that an operator has where a node does not say them."""
        schema = require_onnx().defs.get_schema(node.op_type, version, domain)
        return {k: a.default_value for k, a in schema.attributes.items() if a.default_value.name}

    def type_of(self, name: str) -> Any:
        """The type that ONNX finds for a value of the model's graph; an empty one where it finds none."""
        onnx = require_onnx()
        if self.types is None:
            try:
                graph = onnx.shape_inference.infer_shapes(self.model).graph
            except Exception:  # what is wrong with the model is said by others
                graph = self.model.graph
            self.types = {i.name: i.type for i in (*graph.value_info, *graph.input, *graph.output)}
            for t in graph.initializer:
                self.types[t.name] = onnx.helper.make_tensor_type_proto(t.data_type, list(t.dims))
        return self.types.get(name, onnx.TypeProto())

    def function(self, function: Any, node: Any, scope: NodeScope, name: str, attributes: dict[str, Any]) -> None:
        """Write the nodes of a function in place of a call of it.

        Raises:
            CompileError: it calls itself.
        """
        key = (function.domain, function.name)
        if key in scope.functions:
            raise CompileError(f"{scope.where}: the function {function.name} calls itself (node '{name}')")
        inner = scope.inside(f"function {function.name}, called by node '{name}'")
        inner.names = {}
        for formal, actual in zip(function.input, node.input):
            inner.names[formal] = self.use(scope, actual, name)
        for formal in function.input[len(node.input) :]:
            inner.names[formal] = "None"
        inner.own = set(function.input)
        inner.functions = (*scope.functions, key)
        inner.versions = opsets(function.opset_import, inner.where) or scope.versions
        inner.attributes = {a.name: a for a in function.attribute_proto} | attributes
        self.nodes(function.node, inner, function.output)
        for formal, actual in zip(function.output, node.output):
            if actual:
                target = self.define(scope, actual)
                self.emit(f"{target} = {self.use(inner, formal, name)}")


__all__ = ["PLAIN", "ModelWriter"]

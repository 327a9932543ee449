"""`relay.to_text`: the Relay text of a decorated Python function for arguments like some given ones.

The typed graph of inference becomes a module: `@main` has the parameters of the function, functions that are called are global, and
what is differentiated or batched is written as what that expands to. Sizes are those of the arguments, and arrays that the function
reads, as those of a model, are constants.

Input: a function and arguments. Output: text that `relay.parse_text` reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from ...abstract.bind import bind_symbols
from ...abstract.types import Ref, Scalar, numpy_dtype
from ...api import Relay
from ...decorated import parameter_annotations
from ...functions import Sized
from ...infer.engine.program import Program
from ...infer.values.treedef import TreeDef
from ...ir.node import Graph
from ...utils.debugging import debugging
from ...utils.deep import deeply
from ...utils.errors import CompileError, InternalError, LoweringError
from ...utils.raising import for_user
from ...utils.source import Origin
from ..module import parse_text
from ..printer import print_module
from ..tree import (
    Arm,
    ConstructorPattern,
    Definition,
    Expression,
    Function,
    Let,
    Local,
    LocalVar,
    MatchExpr,
    ModuleTree,
    Param,
    Projection,
    Statement,
    TensorType_,
    TupleExpr,
    TupleType,
    TypeExpr,
    VariablePattern,
    WildcardPattern,
    constant,
)
from .graphs import GraphWriter, Held, block_of
from .values import Values, constructed

ENTRY = "main"


def to_text(function: Any, *args: Any, **kwargs: Any) -> str:
    """The Relay text of a Python function, for arguments like these.

    `relay.parse_text(text)["main"](*args)` computes the same numbers. Loops are functions that call themselves, data types are
    type definitions, sizes are those of the arguments. What Relay has no operator for is written as `prim.NAME`, the compiler's own
    primitive. Lists and named tuples are tuples.

    Args:
        function: a function, decorated or not, a transformed one such as `grad(f)`, or a model, whose parameters become constants.
        args: its arguments.
        kwargs: arguments by name, which are parameters of `@main` behind the others.

    Returns:
        The text of a module, whose function is `@main`.

    Raises:
        CompileError: the function cannot be compiled.
        LoweringError: Relay text cannot say what it does: it prints, changes its arguments or a model, takes or returns a dict or a
            text, makes a list whose length is known at run time only.

    >>> print(relay.to_text(relay.gelu, 0.5))
    #[version = "0.0.5"]
    def @main(%x: float64) -> float64 {
      %0 = multiply(%x, 0.5f64);
      %1 = multiply(%x, 0.7071067811865476f64);
      %2 = erf(%1);
      %3 = add(1f64, %2);
      multiply(%0, %3)
    }
    <BLANKLINE>
    """  # noqa: DOC501 (for_user makes the exception)
    try:
        return _written(function, args, kwargs)
    except Exception as error:
        raise for_user(error, debugging()) from None


def _written(function: Any, args: tuple, kwargs: dict[str, Any]) -> str:
    """As `to_text`, with errors as they come.

    Raises:
        InternalError: the text is not well-typed.
    """
    model = None
    if hasattr(function, "as_function"):  # a model, whose parameters are no arguments
        model = function
        function, args = function.as_function(*args)
    exact: Any = function if isinstance(function, Relay) else Relay(function)
    if not isinstance(exact, Sized):  # a public function is the one that inference knows, and no copy
        exact = exact._anew(executor="interpreter")
        exact._listed = False  # a list of numbers is as many numbers
    writer = ProgramWriter(exact, args, kwargs, model)
    try:
        tree = writer.tree()
    except RecursionError:
        tree = deeply(writer.tree)
    text = print_module(tree)
    try:
        parse_text(text)
    except CompileError as error:
        raise InternalError("to_text", f"the text does not check: {error}\n{text}") from error
    return text


class ProgramWriter:
    """Makes the module of a function for some arguments.

    Args:
        function: the decorated function.
        args: its arguments.
        kwargs: its arguments by name.
        model: the model that its first argument is, which is none of `@main`.
    """

    def __init__(self, function: Any, args: tuple, kwargs: dict[str, Any], model: Any):
        self.function, self.args, self.kwargs, self.model = function, args, kwargs, model
        self.fields: list[tuple[Local, Expression, type, int, int]] = []  # of arguments that are records

    def tree(self) -> ModuleTree:
        """The module.

        Raises:
            CompileError: the function has none.
        """
        leaves: list = []
        self.fields.clear()
        _, treedefs, keywords = self.function._signature(self.args, self.kwargs, leaves)

        def written(program: Program) -> ModuleTree:
            return self._module(program, treedefs, keywords, list(leaves))

        try:
            return self.function._attempt(treedefs, keywords, False, written)
        except LoweringError as error:
            raise error.at(self.function._place()) from None

    def _module(self, program: Program, treedefs: list[TreeDef], keywords: tuple[str, ...], leaves: list) -> ModuleTree:
        """The module of an inferred program.

        Raises:
            LoweringError: Relay text cannot say it.
        """
        graph = expanded(program.graph)
        origin = self.function._place()
        if program.changes:
            change = program.changes[0]
            raise LoweringError(
                f"to_text: this changes the argument '{change.name}', which Relay text has no form for; change a copy "
                "and return it",
                change.origin or origin,
            )
        for hidden in program.hidden:
            leaves = [*leaves, hidden.fetch(leaves)]
        values = Values(graph, bind_symbols([p.type for p in graph.params], leaves))
        functions = GraphWriter(graph, values)
        params, given = self._parameters(treedefs, keywords, values, iter(graph.params))
        for p, value in zip(graph.params[len(given) :], leaves[len(given) :], strict=True):
            given.append(Held(value) if isinstance(p.type, Ref) else values.array(np.asarray(value), p.origin))
        first = [self._field(values, *field) for field in reversed(self.fields)]
        statements, result = functions.entry(graph, given)
        count = sum(1 for _ in program.result.leaves())
        out = iter([result]) if count == 1 else _parts(result, count)
        result_type = self._result_type(program.result, values, origin)
        shown = _result(program.result, out, values)
        main = Definition(ENTRY, Function(params, block_of([*first, *statements], shown), result_type))
        definitions = {ENTRY: main, **functions.finish()}
        return ModuleTree(values.definitions(), definitions)  # now it is known which types there are

    def _parameters(
        self, treedefs: list[TreeDef], keywords: tuple[str, ...], values: Values, nodes: Iterator
    ) -> tuple[tuple[Param, ...], list[Any]]:
        """The parameters of `@main`, and what the leaves of the arguments are.

        Raises:
            LoweringError: an argument is no value of Relay.
        """
        names = self._names(len(treedefs) - len(keywords), keywords)
        params, given = [], []
        for k, (name, treedef) in enumerate(zip(names, treedefs, strict=True)):
            place = self.function._place(name)
            if self.model is not None and k == 0:
                next(nodes)
                given.append(Held(self.model))
                continue
            local = Local(name)
            kind = self._taken(treedef, LocalVar(local), values, nodes, given, f"argument '{name}'", place)
            params.append(Param(local, kind))
        return tuple(params), given

    def _field(self, values: Values, local: Local, value: Expression, cls: type, index: int, count: int) -> Statement:
        """The statement that reads a field of a record."""
        inner = Local(local.name)
        patterns = [VariablePattern(inner) if k == index else WildcardPattern() for k in range(count)]
        pattern = ConstructorPattern(values.record(cls, ())[1], tuple(patterns))
        return Let(local, MatchExpr(value, (Arm(pattern, LocalVar(inner)),)))

    def _names(self, count: int, keywords: tuple[str, ...]) -> list[str]:
        function = self.function
        known = (
            function.positional
            if isinstance(function, Sized)
            else parameter_annotations(function.__relay_function__)[0]
        )
        return [*(known[k] if k < len(known) else f"x{k}" for k in range(count)), *keywords]

    def _taken(
        self,
        treedef: Any,
        value: Expression,
        values: Values,
        nodes: Iterator,
        given: list[Any],
        what: str,
        place: Origin | None,
    ) -> TypeExpr:
        """The type of a parameter, or of a part of one; its leaves are added to those given.

        Raises:
            LoweringError: it is no value of Relay.
        """
        if treedef.tag == "dyn":
            node = next(nodes)
            if isinstance(node.type, Ref):
                raise LoweringError(
                    f"to_text: {what} is a model, which is no value of Relay; relay.to_text(model, x) writes a model with "
                    "its parameters as constants, and so does a function that reads one as a global",
                    place,
                )
            given.append(value)
            return values.type(node.type, place)
        if treedef.tag == "const" and isinstance(treedef.info.type, Scalar):
            return TensorType_((), treedef.info.type.dtype)
        if treedef.tag == "seq" and _is_record(treedef):
            fields, cls = treedef.info[1:]
            parts = []
            for name, part in zip(fields, treedef.parts, strict=True):
                local = Local(name)
                parts.append(self._taken(part, LocalVar(local), values, nodes, given, f"{what}: field '{name}'", place))
                self.fields.append((local, value, cls, fields.index(name), len(fields)))
            return values.record(cls, tuple(parts))[0]
        if _is_tuple(treedef):
            parts = [
                self._taken(p, Projection(value, k), values, nodes, given, f"part {k} of {what}", place)
                for k, p in enumerate(treedef.parts)
            ]
            return TupleType(tuple(parts))
        raise LoweringError(f"to_text: {what} is {_called(treedef)}, which is no value of Relay text", place)

    def _result_type(self, treedef: Any, values: Values, origin: Origin | None) -> TypeExpr:
        if treedef.tag == "dyn":
            return values.type(treedef.info, origin)
        if treedef.tag == "const" and isinstance(treedef.info.type, Scalar):
            return TensorType_((), treedef.info.type.dtype)
        if _is_tuple(treedef) or _is_record(treedef):
            parts = tuple(self._result_type(p, values, origin) for p in treedef.parts)
            return values.record(treedef.info[2], parts)[0] if _is_record(treedef) else TupleType(parts)
        raise LoweringError(
            f"to_text: the function returns {_called(treedef)}, which is no value of Relay text; return a number, an "
            "array, a tuple of these, or a value of a data type",
            origin,
        )


def expanded(graph: Graph) -> Graph:
    """A typed graph without transforms: as it is, where there are none, else what the compiler makes of them.

    That is optimised as it will be again when it is run: sums of derivatives may be taken in another order then.
    """
    from ...ad.expand import expand
    from ...opt.pipeline import has_transforms, optimize
    from ...pipeline import refuse_recursion

    if not has_transforms(graph):
        return graph
    graph = optimize(graph)
    refuse_recursion(graph)
    return optimize(expand(graph))


def _is_tuple(treedef: Any) -> bool:
    """Whether a result is one that Relay has as a tuple: tuples, named ones too, and lists of known length."""
    if treedef.tag != "seq":
        return False
    kind, _, cls = treedef.info
    return kind in ("tuple", "list") or kind == "record" and isinstance(cls, type) and issubclass(cls, tuple)


def _is_record(treedef: Any) -> bool:
    """Whether a value is one of a dataclass."""
    if treedef.tag != "seq":
        return False
    kind, _, cls = treedef.info
    return kind == "record" and is_dataclass(cls)


def _called(treedef: Any) -> str:
    """A value for an error: what users call it."""
    if treedef.tag == "seq":
        kind, _, cls = treedef.info
        return f"a {kind}" if kind != "record" else f"a {getattr(cls, '__name__', 'record')}"
    if treedef.tag == "static":
        value = treedef.info.value
        return "None" if value is None else "a text" if isinstance(value, str) else f"{value!r:.60}"
    if treedef.tag == "listed":
        return "a list"
    words = {"closure": "a function", "bound": "a method", "derived": "a function", "text": "a text"}
    return words.get(treedef.tag, str(treedef))


def _parts(value: Expression, count: int) -> Iterator[Expression]:
    if isinstance(value, TupleExpr):
        return iter(value.fields)
    return iter([Projection(value, k) for k in range(count)])


def _result(treedef: Any, leaves: Iterator[Expression], values: Values) -> Expression:
    if treedef.tag == "dyn":
        return next(leaves)
    if treedef.tag == "const":
        return constant(np.asarray(treedef.info.value, numpy_dtype(treedef.info.type.dtype))[()])
    parts = tuple(_result(p, leaves, values) for p in treedef.parts)
    if _is_record(treedef):
        return constructed(values.record(treedef.info[2], ())[1], parts)
    return TupleExpr(parts)

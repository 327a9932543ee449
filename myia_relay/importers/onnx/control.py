"""Control flow of ONNX, written as Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...utils.errors import CompileError

CONTROL: dict[str, Callable] = {}


def _writes(name: str):
    """Declare what writes an operator: `(writer, node, scope, name, attributes)`."""
    return lambda function: CONTROL.setdefault(name, function)


def _graph(attributes: dict, key: str, name: str) -> Any:
    """A graph among the attributes of a node.

    Raises:
        CompileError: there is none.
    """
    if key not in attributes or attributes[key].type != 5:
        raise CompileError(f"node '{name}': its attribute '{key}' is no graph")
    return attributes[key].g


def _call(w: Any, op: str, arguments: str, name: str) -> str:
    """A call of an operator of our own."""
    return f"{w.operator(op, 'relay', 1)}({arguments}, node={name!r})"


def _body(w: Any, graph: Any, scope: Any, variables: list[str]) -> list[str]:
    """Write the nodes of a graph whose inputs are variables; the variables of its outputs.

    Raises:
        CompileError: the model is not what ONNX allows.
    """
    if len(graph.input) != len(variables):
        raise CompileError(f"{scope.where}: it has {len(graph.input)} inputs, and {len(variables)} are given")
    for info, variable in zip(graph.input, variables, strict=True):
        scope.own.add(info.name)
        scope.names[info.name] = variable
    w.initializers(graph, scope)
    w.nodes(graph.node, scope, [info.name for info in graph.output])
    return [w.use(scope, info.name, "of the graph") for info in graph.output]


@_writes("If")
def _if(w: Any, node: Any, scope: Any, name: str, attributes: dict) -> None:
    condition = w.use(scope, node.input[0] if node.input else "", name)
    results = [w.fresh(o or "unused") for o in node.output]
    w.emit(f"if {_call(w, 'Truth', condition, name)}:")
    for key in ("then_branch", "else_branch"):
        graph = _graph(attributes, key, name)
        inner = scope.inside(f"{key} of node '{name}'")
        if len(graph.output) != len(results):
            raise CompileError(f"{inner.where}: it has {len(graph.output)} outputs, and the node has {len(results)}")
        w.indent += 1
        found = _body(w, graph, inner, [])
        for target, value in zip(results, found, strict=True):
            w.emit(f"{target} = {_call(w, 'Join', value, name)}")
        w.indent -= 1
        if key == "then_branch":
            w.emit("else:")
    for output, variable in zip(node.output, results, strict=True):
        if output:
            w.emit(f"{w.define(scope, output)} = {variable}")


def _results(w: Any, node: Any, scope: Any, states: list[str], lists: list[str], options: list[str], name: str) -> None:
    """Write what gives the outputs of a loop: its states, and the values of all iterations one behind the other."""
    for output, variable in zip(node.output, states):
        if output:
            w.emit(f"{w.define(scope, output)} = {variable}")
    for output, variable, option in zip(node.output[len(states) :], lists, options):
        if output:
            w.emit(f"{w.define(scope, output)} = {_call(w, 'Stack', f'{variable}, None{option}', name)}")


def _turn(w: Any, found: list[str], states: list[str], lists: list[str], name: str) -> None:
    """Write the end of an iteration."""
    count = len(states)
    if states:
        values = ", ".join(_call(w, "Join", v, name) for v in found[:count])
        w.emit(f"{', '.join(states)} = {values}")
    for target, value in zip(lists, found[count:]):
        w.emit(f"{target}.append({_call(w, 'Join', value, name)})")


@_writes("Loop")
def _loop(w: Any, node: Any, scope: Any, name: str, attributes: dict) -> None:
    graph = _graph(attributes, "body", name)
    given = [*node.input, "", ""][: max(2, len(node.input))]
    trips, condition = w.use(scope, given[0], name), w.use(scope, given[1], name)
    states = []
    for index, value in enumerate(node.input[2:]):
        states.append(w.fresh(f"state_{index}"))
        w.emit(f"{states[-1]} = {_call(w, 'Join', w.use(scope, value, name), name)}")
    inner = scope.inside(f"body of node '{name}'")
    count = len(graph.output) - 1 - len(states)
    if count < 0 or len(graph.input) != 2 + len(states):
        raise CompileError(f"{inner.where}: its inputs and outputs do not fit the {len(states)} states of the loop")
    lists = [w.fresh("scanned") for _ in range(count)]
    for variable in lists:
        w.emit(f"{variable} = []")
    going, turn = w.fresh("going"), w.fresh("turn")
    w.emit(f"{going} = {'True' if condition == 'None' else _call(w, 'Truth', condition, name)}")
    if trips == "None":
        w.emit(f"{turn} = 0")
        w.emit(f"while {going}:")
    else:
        w.emit(f"for {turn} in range({_call(w, 'Trips', trips, name)}):")
    w.indent += 1
    if trips != "None":
        w.emit(f"if not {going}:")
        w.emit("    break")
    found = _body(w, graph, inner, [turn, going, *states])
    _turn(w, found[1:], states, lists, name)
    w.emit(f"{going} = {_call(w, 'Truth', found[0], name)}")
    if trips == "None":
        w.emit(f"{turn} = {turn} + 1")
    w.indent -= 1
    _results(w, node, scope, states, lists, [""] * count, name)


def _numbers(attributes: dict, key: str, count: int) -> list[int]:
    """An attribute with a number for each input or output; zeros by default."""
    return list(attributes[key].ints) if key in attributes else [0] * count


@_writes("Scan")
def _scan(w: Any, node: Any, scope: Any, name: str, attributes: dict) -> None:
    graph = _graph(attributes, "body", name)
    scanned = attributes["num_scan_inputs"].i if "num_scan_inputs" in attributes else 0
    batched = scope.versions.get("", 9) < 9
    inputs = [w.use(scope, i, name) for i in node.input]
    lengths = inputs.pop(0) if batched and inputs else "None"
    count = len(inputs) - scanned
    if scanned < 1 or count < 0:
        raise CompileError(f"node '{name}': {scanned} of {len(inputs)} inputs are scanned")
    outputs = len(graph.output) - count
    axes = _numbers(attributes, "scan_input_axes", scanned)
    ways = _numbers(attributes, "directions" if batched else "scan_input_directions", scanned)
    out_axes = _numbers(attributes, "scan_output_axes", outputs)
    out_ways = _numbers(attributes, "scan_output_directions", outputs)
    if not (len(axes) == len(ways) == scanned and len(out_axes) == len(out_ways) == outputs):
        raise CompileError(f"node '{name}': its axes or directions do not fit its inputs and outputs")
    inner = scope.inside(f"body of node '{name}'")
    every: list[list[str]] = [[] for _ in range(count + outputs)]
    if batched:
        batch, whole = w.fresh("example"), [w.fresh("all_examples") for _ in range(count + outputs)]
        for variable in whole:
            w.emit(f"{variable} = []")
        w.emit(f"for {batch} in range({_call(w, 'Length', inputs[0] + ', axis=0', name)}):")
        w.indent += 1
        own = []
        for value in inputs:
            own.append(w.fresh("own"))
            w.emit(f"{own[-1]} = {_call(w, 'At', f'{value}, {batch}, None, axis=0', name)}")
        inputs, every = own, [[v] for v in whole]
    states = []
    for index, value in enumerate(inputs[:count]):
        states.append(w.fresh(f"state_{index}"))
        w.emit(f"{states[-1]} = {_call(w, 'Join', value, name)}")
    lists = [w.fresh("scanned") for _ in range(outputs)]
    for variable in lists:
        w.emit(f"{variable} = []")
    turn, steps = w.fresh("turn"), w.fresh("steps")
    w.emit(f"{steps} = {_call(w, 'Length', f'{inputs[count]}, axis={axes[0]}', name)}")
    longest = "None"
    if batched and lengths != "None":  # what is scanned has room for the longest sequence
        longest = inputs[count]
        w.emit(f"{steps} = {_call(w, 'Steps', f'{lengths}, {batch}, {steps}', name)}")
    w.emit(f"for {turn} in range({steps}):")
    w.indent += 1
    parts = []
    for value, axis, way in zip(inputs[count:], axes, ways, strict=True):
        parts.append(w.fresh("part"))
        w.emit(f"{parts[-1]} = {_call(w, 'At', f'{value}, {turn}, {steps}, axis={axis}, reverse={way}', name)}")
    found = _body(w, graph, inner, [*states, *parts])
    _turn(w, found, states, lists, name)
    w.indent -= 1
    options = [f", axis={a}, reverse={r}" for a, r in zip(out_axes, out_ways, strict=True)]
    if not batched:
        _results(w, node, scope, states, lists, options, name)
        return
    for target, variable in zip(every, states):
        w.emit(f"{target[0]}.append({_call(w, 'Join', variable, name)})")
    for target, variable, option in zip(every[count:], lists, options):
        w.emit(f"{target[0]}.append({_call(w, 'Stack', f'{variable}, {longest}{option}, like={axes[0]}', name)})")
    w.indent -= 1
    _results(w, node, scope, [], [v for (v,) in every], [""] * len(every), name)


@_writes("SequenceMap")
def _sequence_map(w: Any, node: Any, scope: Any, name: str, attributes: dict) -> None:
    graph = _graph(attributes, "body", name)
    inputs = [w.use(scope, i, name) for i in node.input]
    inner = scope.inside(f"body of node '{name}'")
    lists = [w.fresh("mapped") for _ in node.output]
    for variable in lists:
        w.emit(f"{variable} = []")
    turn = w.fresh("turn")
    w.emit(f"for {turn} in range({_call(w, 'Count', inputs[0], name)}):")
    w.indent += 1
    parts = []
    for value in inputs:
        parts.append(w.fresh("part"))
        w.emit(f"{parts[-1]} = {_call(w, 'Entry', f'{value}, {turn}', name)}")
    found = _body(w, graph, inner, parts)
    for target, value in zip(lists, found):
        w.emit(f"{target}.append({_call(w, 'Join', value, name)})")
    w.indent -= 1
    for output, variable in zip(node.output, lists, strict=True):
        if output:
            w.emit(f"{w.define(scope, output)} = {variable}")

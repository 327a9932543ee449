"""What an ONNX model consists of, for the command line."""

from __future__ import annotations

from pathlib import Path

from ...model.model import show_count
from ...opt.analysis.flops import of_nodes
from .loading import load
from .model import ImportedModel, graph_name, shown
from .text import Port
from .writing import ModelWriter


def port(p: Port) -> str:
    """An input or output."""
    kind = p.kind if p.kind != "tensor" else p.dtype or "?"
    return f"{p.name}: {kind}{shown(p.shape) if p.shape is not None else ''}"


def summary(path: Path, text: bool = False) -> tuple[list[str], bool]:
    """The lines that describe a model, and whether all of it can be imported.

    Args:
        path: of the file.
        text: whether to add the function that it becomes.

    Raises:
        CompileError: the file is no model.
    """
    proto, folder, name = load(path)
    written = ModelWriter(proto, folder, graph_name(proto) or name).write()
    sets = ", ".join(f"{o.domain or 'ai.onnx'} {o.version}" for o in proto.opset_import)
    lines = [f"model {written.name}, operator sets {sets}"]
    lines += [f"  input   {port(p)}" for p in written.inputs]
    lines += [f"  output  {port(p)}" for p in written.outputs]
    total = sum(a.size for a in written.parameters.values())
    size = sum(a.nbytes for a in written.parameters.values())
    lines.append(f"{len(written.parameters)} parameters of {total:,} numbers, {size / 1e6:.1f} MB")
    counts = sorted(written.counts.items(), key=lambda item: (-item[1], item[0]))
    lines.append(f"{sum(written.counts.values())} nodes: " + ", ".join(f"{k} {n}" for k, n in counts))
    if written.missing:
        lines.append("cannot be imported:")
        lines += [f"  {operator} (node '{node}'): {reason}" for operator, node, reason in written.missing]
        return lines, False
    program = ImportedModel(proto, folder, graph_name(proto) or name)._inferred()
    if program is not None:
        lines.append(f"{show_count(of_nodes(program.graph.nodes))} floating-point operations in a call")
    return (lines + ["", written.text.rstrip()] if text else lines), True

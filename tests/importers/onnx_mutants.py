"""Damaged ONNX models: small models of many kinds, with faults in their bytes or in their fields.

Every mutant must be imported and run, or be refused by an error that a user can read. What it computes is not looked at.
"""

from __future__ import annotations

import mmap
import resource
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

from myia_relay import CompileError, relay

SOURCES = {
    "dense": (
        18,
        "f (float[n, 2] x) => (float[n, 3] y) <float[2, 3] w = {1, 2, 3, 4, 5, 6}, float[3] b = {0, 1, 2}>"
        "{ h = Gemm <alpha = 0.5> (x, w, b)  a = Relu(h)  y = Softmax <axis = -1> (a) }",
    ),
    "convolution": (
        18,
        "f (float[n, 2, 6, 6] x) => (float[n, k] y) <float[1, 2, 1, 1] w = {1, 2}, float[1] s = {1}>"
        "{ a = Conv <pads = [1, 1, 1, 1], strides = [2, 2], dilations = [1, 1], group = 1> (x, w)"
        "  b = BatchNormalization(a, s, s, s, s)"
        "  c = MaxPool <kernel_shape = [2, 2], ceil_mode = 1> (b)  d = AveragePool <kernel_shape = [2, 1]> (c)  y = Flatten(d) }",
    ),
    "shapes": (
        18,
        "f (float[a, b] x, int64[2] s) => (float[c, d] y) <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}>"
        "{ t = Transpose <perm = [1, 0]> (x)  u = Unsqueeze(t, zero)  v = Concat <axis = 1> (u, u)  w = Slice(v, zero, two, one)"
        "  z = Squeeze(w, zero)  k = Shape(z)  e = ConstantOfShape(k)  g = Add(z, e)  h = ReduceSum <keepdims = 1> (g, one)"
        "  r = Expand(h, k)  y = Reshape(r, s) }",
    ),
    "indexing": (
        18,
        "f (float[3, 4] x, int64[2] i) => (float[c, d] y) <int64[4] pads = {1, 0, 0, 1}>"
        "{ g = Gather <axis = 0> (x, i)  p = Pad (g, pads)  q, r = Split <axis = 1, num_outputs = 2> (p)  t = Tile(q, i)"
        "  e = CumSum(t, k)  y = Identity(e) }",
    ),
    "recurrent": (
        18,
        "f (float[3, 1, 2] x, float[1, 4, 2] w, float[1, 4, 1] r) => (float[3, 1, 1, 1] y, float[1, 1, 1] h)"
        "{ y, h = LSTM <hidden_size = 1> (x, w, r) }",
    ),
    "loop": (
        18,
        "f (float[2] x, int64 n) => (float[2] y, float[k, 2] all) { yes = Constant <value = bool {1}> ()"
        "  y, all = Loop (n, yes, x) <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t, float[2] u)"
        "  { on = Identity(go)  t = Add(s, x)  u = Mul(t, s) }> }",
    ),
    "branch": (
        18,
        "f (float[2] x, bool c) => (float[2] y) { y = If (c) <then_branch = a () => (float[2] p) { p = Neg(x) },"
        "  else_branch = b () => (float[2] q) { q = Exp(x) }> }",
    ),
    "quantised": (
        19,
        "f (float[3, 4] x, uint8[4, 2] w) => (int32[3, 2] y, float[3, 4] z)"
        "{ q, s, o = DynamicQuantizeLinear(x)  y = MatMulInteger(q, w, o)  z = DequantizeLinear(q, s, o) }",
    ),
    "sequences": (
        18,
        "f (float[4] x, int64 k) => (float[m] y) { s = SplitToSequence(x, two)  a = SequenceAt(s, k)  y = Relu(a) }",
    ),
    "signals": (
        20,
        "f (float[1, 8, 1] x) => (float[1, 5, 2] y, float[c] v) <int64 n = {8}, int64 step = {4}>"
        "{ y = DFT <onesided = 1> (x, n)  h = HannWindow(n)  z = STFT(x, step, h)  v = Flatten <axis = 0> (z) }",
    ),
    "values": (
        18,
        "f (float[2, 5] x) => (float[2, 2] top, int64[2, 2] at, int64[a, b] where) <int64[1] k = {2}>"
        "{ top, at = TopK(x, k)  z = Greater(x, x)  where = NonZero(x) }",
    ),
}


def models() -> list[onnx.ModelProto]:
    """The models that mutants are made of."""
    out = []
    for opset, text in SOURCES.values():
        body = text.replace("CumSum(t, k)", "CumSum(t, axis)").replace(
            "SplitToSequence(x, two)", "SplitToSequence(x, size)"
        )
        model = parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]>\n{body}')
        for name, value in (("axis", 0), ("size", 2)):
            if any(name in n.input for n in model.graph.node):
                model.graph.initializer.append(numpy_helper.from_array(np.int64(value), name))
        out.append(model)
    return out


NUMBERS = (0, 1, -1, 2, 3, 7, 16, -2, 100, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63))


def fields(message: Any) -> list[tuple[Any, Any, int | None]]:
    """All fields of a message and of those within it that hold numbers or text: (message, field, position or None)."""
    found = []
    stack = [message]
    while stack:
        part = stack.pop()
        for field, value in part.ListFields():
            many = field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
            if field.message_type is not None:
                stack.extend(value if many else [value])
            elif many:
                found += [(part, field, k) for k in range(len(value))]
            else:
                found.append((part, field, None))
    return found


def altered(rng: np.random.Generator, value: Any, every: list[Any]) -> Any:
    """Another value of a field."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return int(value + rng.integers(-2, 3)) if rng.random() < 0.5 else NUMBERS[rng.integers(len(NUMBERS))]
    if isinstance(value, float):
        return [0.0, -1.0, np.inf, np.nan, 1e30, 0.3][rng.integers(6)]
    same = [v for v in every if type(v) is type(value)]
    if isinstance(value, str) and rng.random() < 0.9:
        return same[rng.integers(len(same))]
    data = bytearray(value.encode() if isinstance(value, str) else value)
    if data:
        data[rng.integers(len(data))] = rng.integers(128)
        data = data[: rng.integers(1, len(data) + 1)] if rng.random() < 0.3 else data
    return data.decode("ascii", "replace") if isinstance(value, str) else bytes(data)


def with_other_fields(rng: np.random.Generator, model: onnx.ModelProto) -> onnx.ModelProto:
    """A model with one to three faults in its fields: numbers, names, operators, types; or a node or value too many or too few."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    for _ in range(rng.integers(1, 4)):
        graph = out.graph
        kind = rng.random()
        nodes = graph.node
        if kind < 0.08 and len(nodes):
            del nodes[rng.integers(len(nodes))]
        elif kind < 0.14 and len(nodes):
            nodes.add().CopyFrom(nodes[rng.integers(len(nodes))])
        elif kind < 0.2 and len(nodes):
            node = nodes[rng.integers(len(nodes))]
            part = [node.input, node.output, node.attribute][rng.integers(3)]
            if len(part):
                del part[rng.integers(len(part))]
        elif kind < 0.26 and len(nodes):
            operators = [n for n, s in ((s.name, s) for s in onnx.defs.get_all_schemas())]
            nodes[rng.integers(len(nodes))].op_type = operators[rng.integers(len(operators))]
        elif kind < 0.32 and len(nodes):
            values = [0, 1, -1, 1.5, [1, 2], [], "SAME_UPPER", numpy_helper.from_array(np.ones((2, 0), np.float32))]
            names = [
                "axis",
                "axes",
                "to",
                "kernel_shape",
                "pads",
                "mode",
                "value",
                "group",
                "strides",
                "num_outputs",
                "perm",
                "body",
            ]
            value: Any = values[rng.integers(len(values))]
            if value == []:
                continue
            nodes[rng.integers(len(nodes))].attribute.add().CopyFrom(
                helper.make_attribute(names[rng.integers(len(names))], value)
            )
        else:
            found = fields(out)
            part, field, k = found[rng.integers(len(found))]
            every = [getattr(p, f.name) if i is None else getattr(p, f.name)[i] for p, f, i in found]
            old = getattr(part, field.name) if k is None else getattr(part, field.name)[k]
            try:
                if k is None:
                    setattr(part, field.name, altered(rng, old, every))
                else:
                    getattr(part, field.name)[k] = altered(rng, old, every)
            except (ValueError, TypeError):  # no value that the format can hold
                pass
    return out


def with_other_bytes(rng: np.random.Generator, model: onnx.ModelProto) -> bytes:
    """The bytes of a model, some of them changed, perhaps cut off."""
    data = bytearray(model.SerializeToString())
    for _ in range(rng.integers(1, 4)):
        data[rng.integers(len(data))] = rng.integers(256)
    return bytes(data[: rng.integers(len(data))] if rng.random() < 0.2 else data)


def inputs_of(f: Any, rng: np.random.Generator) -> list[Any] | None:
    """Inputs for a model; None if it takes other things than tensors, or larger ones than a test may."""
    out: list[Any] = []
    for port in f.inputs:
        if port.kind != "tensor" or port.dtype is None or port.dtype not in sizes_of_dtypes():
            return None
        shape = [d if isinstance(d, int) else 2 for d in port.shape or ()]
        if np.prod(shape, dtype=float) > 1e5:
            return None
        out.append(rng.integers(0, 3, shape).astype(port.dtype))
    return out


def sizes_of_dtypes() -> tuple[str, ...]:
    """Dtypes that NumPy has."""
    return ("bool", "float16", "float32", "float64", *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)))


READABLE = (CompileError, TypeError, ValueError, IndexError, ZeroDivisionError, OverflowError, MemoryError)
"""What a mutant may answer with. At a call these are errors of the program, as Python and NumPy raise them."""


class TooLong(BaseException):
    """A mutant took more time than it may."""


def _stop(*_: Any) -> None:
    raise TooLong


def outcome(source: Any, rng: np.random.Generator, native: bool, seconds: int = 30) -> str:
    """What became of a mutant, in a word of `GOOD`, or what went wrong.

    It is `imported` where it cannot be called here, `failed` at the call, and `endless` where a loop without a limit ran on.
    """
    old, values = signal.signal(signal.SIGALRM, _stop), None
    signal.alarm(seconds)
    try:
        try:
            f = relay.from_onnx(source)
        except CompileError as error:
            return "refused" if error.message.strip() else "an error without words"
        except Exception as error:
            return f"import: {type(error).__name__}: {error}"
        values = inputs_of(f, rng)
        if values is None:
            return "imported"
        try:
            with np.errstate(all="ignore"):
                f(*values) if native else f.interpret(*values)
        except READABLE as error:
            return "failed" if str(error).strip() else "an error without words"
        except Exception as error:
            return f"call: {type(error).__name__}: {error}"
        return "ran"
    except TooLong:
        loops = not isinstance(source, bytes) and any(n.op_type == "Loop" for n in source.graph.node)
        return "endless" if values is not None and loops else "no answer in time"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)


GOOD = ("ran", "imported", "refused", "failed", "endless")


def address_space() -> int:
    """The address space that this process has taken, in bytes. Programs of trees reserve far more than memory has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE


def search(count: int, seed: int, native_every: int, memory: int = 8 << 30) -> tuple[Counter, list[tuple[int, str]]]:
    """Make and try mutants, with so many more bytes of address space: how often each outcome was, and the seeds of bad ones."""
    limit = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (address_space() + memory, limit[1]))
    found, bad = Counter(), []
    sources = models()
    try:
        for k in range(seed, seed + count):
            rng = np.random.default_rng(k)
            model = sources[k % len(sources)]
            mutant = with_other_bytes(rng, model) if rng.random() < 0.3 else with_other_fields(rng, model)
            result = outcome(mutant, rng, k % native_every == 0)
            found[result if result in GOOD else "bad"] += 1
            if result not in GOOD:
                bad.append((k, result))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)
    return found, bad


__all__ = ["GOOD", "SOURCES", "models", "outcome", "search"]

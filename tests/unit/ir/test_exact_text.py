"""Exact texts of typed graphs: reading one and writing it again changes nothing, and what was read computes the same, to the bit.

Damaged texts are refused at their lines, or say another graph.
"""

from __future__ import annotations

import copy
import enum
import random
import re
from dataclasses import dataclass

import numpy as np
import pytest

from myia_relay import Float, Tensor, cond, grad, relay, relay_model, vmap
from myia_relay.abstract.dims import divide, symbol
from myia_relay.abstract.types import (
    FLOAT,
    FLOATS,
    INTS,
    NONE,
    Array,
    List,
    Ref,
    Scalar,
    Str,
    Struct,
    Tape,
    numpy_dtype,
    tuple_of,
)
from myia_relay.backend.interpreter import run
from myia_relay.debug.show import GraphView
from myia_relay.ir.exact import exact_text, read_graph
from myia_relay.ir.node import Constant, Graph
from myia_relay.ir.prim import REGISTRY, Primitive
from myia_relay.ir.verify import verify
from myia_relay.pipeline import executor_of
from myia_relay.utils.errors import ParseError
from tests.golden.programs import PROGRAMS
from tests.programs import sources

CASES = [
    pytest.param(program.function, args, id=f"{program.function.__name__}-{k}")
    for program in sources.PROGRAMS
    for k, args in enumerate(program.inputs)
]
STAGES = ("inferred", "simplified", "differentiated", "optimized", "lowered")
TABLE = np.array([0.1, 0.7, -0.5, 1e-310])


def again(graph: Graph) -> Graph:
    """A graph read from its text, which is written alike."""
    text, symbols = exact_text(graph)
    found = read_graph(text, symbols)
    assert exact_text(found) == (text, symbols)
    return verify(found, "reading")


def constants(*values_and_types) -> Graph:
    """A graph that returns constants."""
    graph = Graph("constants")
    parts = [Constant(value, type) for value, type in values_and_types]
    result = tuple_of(*[p.type for p in parts])
    graph.output = graph.apply(REGISTRY["make_struct"], *parts, attrs={"type": result}, type=result)
    return graph


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("function", "args"), CASES)
def test_programs(function, args):
    f = relay(function)
    for stage in STAGES:
        again(f.ir(*copy.deepcopy(args), stage=stage).graph)


# ------------------------------------------------ what was read computes the same


@dataclass(frozen=True)
class Leaf:
    value: float


@dataclass(frozen=True)
class Fork:
    left: Leaf | Fork
    right: Leaf | Fork


def total(t: Leaf | Fork) -> Float:
    return t.value if isinstance(t, Leaf) else np.tanh(total(t.left)) + total(t.right)


def grown(n, x):
    return Leaf(x) if n == 0 else Fork(grown(n - 1, x * 0.5), Leaf(x * n))


def of_a_tree(x, n):
    return total(grown(n, x))


def cubes(x, n):
    y = x * TABLE
    for _ in range(n):
        y = y * np.tanh(x)
    return np.sum(y) + np.float32(0.1)


def closures(x, n):
    def scale(y):
        return y * x

    def shift(y):
        return y + x

    for k in range(n):
        f = scale if k % 2 == 0 else shift
        x = f(x) + cond(x > 0.5, scale, shift, x)
    return x


def rows(x, n):
    return vmap(lambda row: row / np.sum(row * n) if np.sum(row) > 0.0 else row)(np.outer(TABLE, TABLE + x))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("f", "stage"),
    [
        (relay(of_a_tree), "inferred"),
        (grad(of_a_tree), "differentiated"),
        (grad(cubes), "optimized"),
        (grad(grad(closures)), "differentiated"),
        (relay(rows), "differentiated"),
        (vmap(cubes, in_axes=(0, None)), "differentiated"),
    ],
    ids=lambda p: getattr(p, "__name__", p),
)
def test_a_graph_that_is_read_computes_the_same(f, stage):
    args = (np.array([0.3, 0.9]), 3) if "vmap" in f.__name__ else (0.3, 3)
    compiled, leaves = f._anew(executor="interpreter")._compiled(args, {})
    graph = f.ir(*args, stage=stage).graph
    values = [*leaves, *(h.fetch(leaves) for h in compiled.program.hidden)]
    assert not any(isinstance(p.type, Ref) for p in graph.params)
    wanted = run(graph, values)
    assert np.array_equal(run(again(graph), values), wanted)
    final = f.ir(*args, stage="lowered").graph
    native = executor_of(final, "native", {})(*values)
    assert np.array_equal(executor_of(again(final), "native", {})(*values), native)


# ------------------------------------------------ constants


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, "bool"])
def test_every_number_is_exact(dtype):
    np_dtype = numpy_dtype(dtype)
    drawn = np.random.default_rng(0).integers(0, 256, 200 * np_dtype.itemsize, dtype=np.uint8)
    random_ones = drawn > 127 if dtype == "bool" else drawn.view(np_dtype)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 0.1] if dtype in FLOATS else [0, 1]
    every = np.concatenate([random_ones, np.array(special).astype(np_dtype)])
    parts = [(x, Scalar(dtype)) for x in every]
    parts += [(every, Array(dtype, every.shape)), (every[:6].reshape(2, 3), Array(dtype, (2, 3)))]
    parts += [
        (every[-5:], Array(dtype, (5,))),
        (every[:0], Array(dtype, (0,))),
        (every[3].reshape(()), Array(dtype, ())),
    ]
    parts += [(every[:12].reshape(3, 4).T, Array(dtype, (4, 3)))]
    found = again(constants(*parts)).output.args
    for part, (value, type) in zip(found, parts, strict=True):
        assert part.type == type and part.value.dtype == np_dtype and np.shape(part.value) == np.shape(value)
        assert part.value.tobytes() == value.tobytes()


class Colour(enum.Enum):
    RED = 1


class Key(tuple):
    """A tuple of a class of its own."""


def test_other_constants():
    payload = np.array([0x7FF8000000000123]).view(np.float64)[0].item()
    record = Struct("record", (FLOAT, NONE), ("value", "next"), Leaf)
    size = divide(symbol("n") * symbol("m") + 3, 2) * divide(symbol("n"), 3) - 2 * symbol("m") + 1
    values = [
        (True, Scalar("bool", True)), (-3, Scalar("int64", True)), (10**30, Scalar("int64", True)),
        (-0.0, FLOAT), (float("-inf"), FLOAT), (payload, FLOAT), (1e-310, FLOAT), (2, FLOAT), (None, NONE),
        ('it\'s "so"\n\u2028\\', Str()), ("", Str()), (b"\x00'\xff", Struct("bytes", ())), (Colour.RED, Struct("enum", ())),
        (Leaf(2.0), record), (grown, Struct("closure", (FLOAT,), (), grown)), (Key((1, 2)), tuple_of()),
        ((1, [2.5, {"a": (None,), 3: ()}], np.float32(0.1), np.arange(20), TABLE[:2]), tuple_of()),
        (float, Struct("class", ())), (List(Tape(FLOAT, "f")), tuple_of()),
        ({}, Struct("dict", (FLOAT, Array("float32", (size, 3))), ("a b", "c"))),
        ([], Struct("list", (FLOAT, tuple_of(FLOAT)))), ((), Struct("record", (FLOAT,), ("not a name",), Leaf)),
        ((size,), Tape(Array("int8", ()))),
    ]  # fmt: skip
    graph = constants(*values)
    for part, (value, type) in zip(again(graph).output.args, values, strict=True):
        assert part.type == type and part.value.__class__ is value.__class__
        if isinstance(value, float):
            assert np.float64(part.value).tobytes() == np.float64(value).tobytes()
        elif not isinstance(value, tuple) or isinstance(value, Key):
            assert part.value == value
        else:
            assert repr(part.value) == repr(value)
    text, symbols = exact_text(graph)
    assert symbols["Key"] == (1, 2) and symbols["grown"] is grown and symbols["Leaf.2"] is Leaf
    assert "# $Leaf.2: <class" in text


def test_names_that_clash_or_are_no_identifiers():
    graph = Graph("f 'of' \"x\"")
    a, b, c = (graph.add_parameter(name, FLOAT) for name in ("x", "x.2", "x"))
    other = Graph("f")
    other.output = other.add_parameter("y", FLOAT)
    last = Graph("f")
    last.output = last.add_parameter("y", FLOAT)
    total = graph.apply(REGISTRY["add"], a, b, type=FLOAT, name="x")
    called = graph.apply(other, total, type=FLOAT)
    called = graph.apply(last, called, type=FLOAT)
    graph.output = graph.apply(REGISTRY["sub"], called, c, type=FLOAT)
    found = again(graph)
    assert run(found, [1.0, 2.0, 4.0]) == -1.0
    assert found.name == graph.name and [p.name for p in found.params] == ["x", "x.2", "x.3"]


def test_what_derivatives_have_made_is_told():
    graph = grad(cubes).ir(0.3, 3, stage="differentiated").graph
    for node, wanted in zip(again(graph).nodes, graph.nodes, strict=True):
        made = wanted.origin.made_by
        assert node.origin.is_adjoint == wanted.origin.is_adjoint and (made in ("jvp", "vjp")) == (
            node.origin.made_by == made
        )
        assert (node.origin.via == "vjp") == (wanted.origin.via == "vjp")


@relay_model
def layered(x: Tensor[Float, 3]):
    return relay.linear(x, 2)


def test_objects_of_the_process_are_symbols():
    def loss(model, x):
        return np.sum(model(x))

    model = relay.create_model(layered)
    view = relay(loss).ir(model, np.ones(3, np.float32), stage="inferred")
    assert any(isinstance(s, Ref) for s in view.symbols.values())
    assert str(GraphView.from_text(view.exact(), view.symbols)) == str(view)
    with pytest.raises(ParseError, match="no symbol .* was given"):
        GraphView.from_text(view.exact())


def test_a_primitive_that_is_no_longer_registered_is_a_symbol():
    prim = Primitive("gone", "struct", lambda x: x)
    del REGISTRY["gone"]
    graph = Graph("f")
    graph.output = graph.apply(prim, graph.add_parameter("x", FLOAT), type=FLOAT)
    assert again(graph).output.fn is prim


def test_views():
    view = relay(cubes).ir(0.3, 3)
    found = GraphView.from_text(view.exact(), view.symbols)
    assert str(found) == str(view) and found.exact() == view.exact()
    with pytest.raises(ValueError, match='a parsed graph has no exact text.*stage="inferred"'):
        relay(cubes).ir(0.3, 3, stage="parsed").exact()


# ------------------------------------------------ damaged texts


@pytest.mark.parametrize(
    ("text", "problem", "place"),
    [
        ("", "there is no graph here", (1, 0)),
        ("f(%x: float):\n  %0 = sinn(%x)  # float\n  return %0\n", "no primitive sinn; did you mean 'sin'", (2, 7)),
        ("f(%x: float):\n  return %y\n", "nothing above binds %y", (2, 9)),
        ("f(%x: float):\n  %0 = sin(%x)\n  return %0\n", "the type of the result", (2, 14)),
        ("f(%x: flaot):\n  return %x\n", "flaot is no type; did you mean 'float'", (1, 6)),
        ("f(%x: float):\n", "the graph f returns nothing before", (1, 0)),
        ("f(%x: data($T)):\n  return %x\n", "no symbol T was given", (1, 11)),
        (
            "f(%x: float):\n  %0 = sin(%x)  # int\n  return %0\n",
            "sin has type int where its relation says float",
            (2, 0),
        ),
        (
            "f(%x: float):\n  %0 = sin(%x, %x)  # float\n  return %0\n",
            "sin cannot be applied to (float, float)",
            (2, 0),
        ),
        ("f(%x: float):\n  %0 = g(%x)  # float\n  return %0\n", "there is no primitive g", (2, 7)),
        ("f(%x: float):\n  %0 = @g(%x)  # float\n  return %0\n", "there is no graph g", (2, 7)),
        ("f(%x: float):\n  return np.uint8(300)\n", "this is no uint8", (2, 18)),
        ("f(%x: float):\n  return np.int8(2.5)\n", "this is no int8", (2, 17)),
        ("f(%x: float):\n  return float64[2]([1.0])\n", "these are 1 elements of 2", (2, 20)),
        ('f(%x: float):\n  return float64[2]("!")\n', "this is no base64", (2, 20)),
        ("f(%x: float):\n  return array[3]\n", "there is no line array[3]", (2, 15)),
        ("f(%x: float):\n  return constant(1.0, str)\n", "no constant of its type", (2, 9)),
        ("f(%x: float):\n  return ((1.0)\n", "a tuple of one element has a comma", (2, 14)),
        ("f(%x: float):\n  return " + "(" * 5000, "more than 100 brackets are open", (2, 109)),
        ("f(%x: float[n//0]):\n  return %x\n", "float", (1, 11)),
        ("f(%x: float64[n//0]):\n  return %x\n", "divides by zero", (1, 17)),
        ("f(%x: float):\n  return 1\n  return 2\n", "belongs to no graph", (3, 0)),
        ("f(%x: float):\n  return %x\n\nf(%x: float):\n  return %x\n", "there is another graph f", (4, 0)),
        ("f(%x: float):\n  %x = sin(%x)  # float\n  return %x\n", "%x is bound above already", (2, 0)),
    ],
)
def test_what_is_no_graph(text, problem, place):
    with pytest.raises(ParseError, match=re.escape(problem)) as caught:
        read_graph(text)
    assert caught.value.loc is not None and (caught.value.loc.line, caught.value.loc.col) == place


MARKS = "()[]{}%@$#:=,.*/-+'\"\\0123xyz \n\x0cé"


def damaged(text: str, rng: random.Random) -> str:
    """A text with some characters, tokens or lines lost, doubled or exchanged."""
    parts = (
        re.findall(r"[\w.%@$]+|\s+|.", text)
        if rng.random() < 0.4
        else re.split(r"(?<=\n)", text)
        if rng.random() < 0.5
        else [*text]
    )
    for _ in range(rng.choice((1, 1, 2, 4))):
        i, j = rng.randrange(len(parts)), rng.randrange(len(parts))
        match rng.randrange(4):
            case 0:
                parts[i] = ""
            case 1:
                parts[i] = parts[j]
            case 2:
                parts[i], parts[j] = parts[j], parts[i]
            case 3:
                parts[i] += rng.choice(MARKS)
    return "".join(parts)


def search(count: int, seed: int) -> int:
    """How many damaged texts were refused; others have to be graphs that print and are read again."""
    rng = random.Random(seed)
    graphs = [relay(f).ir(*PROGRAMS[f], stage=s).graph for f in PROGRAMS for s in ("inferred", "optimized")]
    texts = list(map(exact_text, [*graphs, grad(cubes).ir(0.3, 3).graph]))
    refused = 0
    for _ in range(count):
        text, symbols = rng.choice(texts)
        text = damaged(text, rng)
        try:
            again(read_graph(text, symbols))
        except ParseError as error:
            refused += 1
            assert error.loc is not None and error.loc.line <= max(len(text.splitlines()), 1), text
    return refused


def test_damaged_texts():
    assert 400 < search(500, 0) < 500


@pytest.mark.campaign
def test_many_damaged_texts():
    assert search(20_000, 1) > 15_000

"""Long, deep and wide programs compile without running out of stack, mean what CPython says, and grow no faster than their text.

No clock is read here: what counts is how much of the program each stage makes. `python -m benchmarks compile` measures times.
"""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from benchmarks.compile_programs import FAMILIES
from myia_relay import grad, relay
from myia_relay.ir.rewrite import all_graphs, count_nodes

EXECUTORS = ["interpreter", "python", "native"]
SIZES = {"scalar": 60, "arrays": 60, "records": 60, "ifs": 30, "elifs": 80, "calls": 60, "loop": 40, "nested_loops": 6}
SIZES |= {"expression": 100, "display": 100, "closures": 40, "sharing": 20, "parameters": 80}


def load(path, source: str):
    """The module of a program."""
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def made(tmp_path, family: str, size: int):
    """A program of the benchmark."""
    return load(tmp_path / f"{family}_{size}.py", FAMILIES[family](size).source)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("family", SIZES)
@pytest.mark.sampled(5)
def test_families(tmp_path, family, executor):
    module = made(tmp_path, family, SIZES[family])
    assert relay(executor=executor)(module.program)(*module.ARGS) == pytest.approx(
        module.program(*module.ARGS), rel=1e-12
    )


@pytest.mark.parametrize("family", ["scalar", "records", "calls", "elifs", "loop", "sharing", "closures", "parameters"])
def test_graphs_grow_with_the_text(tmp_path, family):
    counts = []
    for size in (20, 40, 80):
        module = made(tmp_path, family, size)
        graph = relay(executor="interpreter")(module.program).ir(*module.ARGS, stage="optimized").graph
        counts.append(count_nodes(graph))
    assert counts[2] - counts[1] <= 2.6 * (counts[1] - counts[0]) + 10


TWICE = """
import numpy as np

def f0(x, n):
    assert n < 50, f"too deep: {n}"
    return np.tanh(x) * 0.5
"""
STEP = """
def f{i}(x, n):
    if n < {i}:
        return f{j}(x, n) * 0.5
    y = x * {i}.0 - 1.0
    z = np.minimum(y, x) + np.maximum(y, 2.0) * 0.125
    if n > {i}:
        return f{j}(z, n) - y
    return y * z + f{j}(z * 0.25, n + 1)
"""


@pytest.mark.parametrize("kind", ["number", "array"])
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.sampled(6)
def test_a_function_called_from_several_places_is_compiled_once(tmp_path, executor, kind):
    """Three calls of each function in the next: written out, that would be 3**13 functions."""
    source = TWICE + "".join(STEP.format(i=i, j=i - 1) for i in range(1, 14))
    module = load(tmp_path / "twice.py", source)
    x = 0.5 if kind == "number" else np.linspace(0.0, 1.0, 5)
    compiled = relay(executor=executor)(module.f13)
    for n in (0, 7, 14):
        got, want = compiled(x, n), module.f13(x, n)
        assert type(got) is type(want) and np.allclose(got, want, rtol=1e-12, atol=0)
    with pytest.raises(AssertionError, match="too deep: 70"):
        compiled(x, 70)


def test_native_functions_are_shared_only_where_that_is_shorter(tmp_path, unchecked):
    module = made(tmp_path, "calls", 60)
    compiled = relay(module.program)
    compiled(*module.ARGS)
    (program,) = compiled._programs.values()
    graphs = all_graphs(program.graphs["final"])
    names = [var.name_hint for var in compiled.tir(*module.ARGS).functions]
    assert 1 <= sum(name.startswith("f") for name in names) < len(graphs)
    small = made(tmp_path, "sharing", 3)
    assert [v.name_hint for v in relay(small.program).tir(*small.ARGS).functions] == ["main"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("family", "size"), [("calls", 400), ("elifs", 300), ("expression", 900), ("ifs", 95)])
def test_deep_programs_leave_the_stack_alone(tmp_path, family, size):
    """As deep as they are, they need no more of Python's stack than others."""
    module = made(tmp_path, family, size)
    want = module.program(*module.ARGS)
    assert relay(executor="interpreter")(module.program)(*module.ARGS) == pytest.approx(want, rel=1e-12)


def test_types_nested_deeper_than_pythons_recursion_limit(tmp_path):
    """A tuple in a tuple in a tuple ..., passed to a function."""
    lines = ["t = (x,)", *["t = (t,)"] * 1500, "t = same(t)", *["t = t[0]"] * 1500, "return t[0]"]
    source = "def same(t):\n    return t\n\n\ndef program(x):\n" + "".join(f"    {line}\n" for line in lines)
    program = load(tmp_path / "deep.py", source).program
    assert relay(program)(2.5) == 2.5


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
def test_a_long_chain_of_elifs(tmp_path, executor):
    branches = "".join(f"    elif n == {k}:\n        r = {k * 3 % 17}\n" for k in range(1, 420))
    source = f"def chain(n):\n    if n == 0:\n        return 0\n{branches}    else:\n        r = -1\n    return r\n"
    chain = load(tmp_path / "chain.py", source).chain
    compiled = relay(executor=executor)(chain)
    for n in (0, 1, 250, 419, 420):
        assert compiled(n) == chain(n)


KEYS = """
def program(p, x):
    for i in range({n}):
        x = x * 0.5 + p[f"w{{i}}"]
    return x
"""
LEVELS = """
def program(p, x):
    for i in range({n}):
        for j in range({n}):
            x = x * 0.5 + p[f"w{{i}}"] * p[f"w{{j}}"]
    return x
"""
MANY = """
def program(p, x):
    for i in range(1000):
        w = p[f"w{i}"]
"""


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(("source", "n"), [(KEYS, 64), (LEVELS, 9)], ids=["one", "nested"])
def test_a_loop_over_keys_made_of_its_index(tmp_path, executor, source, n):
    program = load(tmp_path / "keys.py", source.format(n=n)).program
    p = {f"w{i}": 0.25 * i for i in range(n)}
    assert relay(executor=executor)(program)(p, 1.5) == program(p, 1.5)


def test_unrolling_ends_at_a_number_of_iterations(tmp_path):
    p = {f"w{i}": 1.0 for i in range(1025)}
    program = load(tmp_path / "most.py", KEYS.format(n=1024)).program
    assert relay(executor="interpreter")(program)(p, 1.5) == program(p, 1.5)
    program = load(tmp_path / "over.py", KEYS.format(n=1025)).program
    with pytest.raises(TypeError, match="at most 1,024 iterations, and this one has 1,025;"):
        relay(executor="interpreter")(program)(p, 1.5)
    program = load(tmp_path / "inner.py", LEVELS.format(n=33)).program
    with pytest.raises(TypeError, match="this one has 33, counted with those of the loops around it"):
        relay(executor="interpreter")(program)(p, 1.5)


def test_unrolling_ends_at_a_number_of_operations(tmp_path):
    source = MANY + "        x = x + w * w - w\n" * 20 + "    return x\n"
    program = load(tmp_path / "many.py", source).program
    with pytest.raises(TypeError, match="at most 20,000 operations, which [0-9]+ of its iterations do;"):
        relay(executor="interpreter")(program)({f"w{i}": 1.0 for i in range(1000)}, 1.5)


TABLES = """
COUNTS = [k * 7 % 1001 - 500 for k in range(20_000)]
WEIGHTS = [0.5 * k for k in range(400)]
FLAGS = [k % 3 == 0 for k in range(100)]
MIXED = [1, 2.5] * 40

def count(i):
    return COUNTS[i]

def weight(i, x):
    return WEIGHTS[i] * x

def flag(i):
    return FLAGS[i], not FLAGS[-1 - i]

def mixed(i):
    return MIXED[2 * i + 1] * 2

def total(n):
    s = 0
    for i in range(n):
        s = s + COUNTS[i] * COUNTS[-1 - i]
    return s

def local(i):
    xs = [k * k for k in range(50)]
    ys = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5, 0, 2, 8]
    before = ys[i]
    ys[i] = 100
    return xs[i], before, ys[i], ys[i + 1], len(ys)
"""
CALLS = {"count": [(3,), (-1,), (19_999,), (-20_000,)], "weight": [(7, 0.5), (-2, 1.5)], "flag": [(3,), (1,)]}
CALLS |= {"mixed": [(3,)], "total": [(0,), (1000,)], "local": [(2,), (33,)]}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_long_list_of_numbers_is_an_array(tmp_path, executor):
    """Indexed at run time: one constant, not 20,000 operands."""
    module = load(tmp_path / "tables.py", TABLES)
    for name, calls in CALLS.items():
        compiled = relay(executor=executor)(getattr(module, name))
        for args in calls:
            got, want = compiled(*args), getattr(module, name)(*args)
            assert got == want and type(got) is type(want), (name, args)
    compiled = relay(executor=executor)(module.count)
    assert count_nodes(compiled.ir(3, stage="optimized").graph) < 30
    with pytest.raises(IndexError, match="list index out of range"):
        compiled(20_000)
    with pytest.raises(IndexError, match="list index out of range"):
        compiled(-20_001)
    module.COUNTS[3] = 12
    assert compiled(3) == 12
    module.COUNTS = [5] * 40
    assert compiled(39) == 5
    module.COUNTS[3] = 1.5
    assert compiled(3) == 1.5 and type(compiled(2)) is int
    slope = relay(executor=executor)(grad(module.weight, 1))
    assert slope(7, 0.5) == 3.5


def test_many_arguments(tmp_path, monkeypatch):
    """More than are passed one by one: numbers of every kind, arrays, sizes, results, errors, and programs from the cache."""
    monkeypatch.setenv("MYIA_RELAY_CACHE", str(tmp_path / "cache"))
    source = """
import numpy as np
from myia_relay import value_and_grad

def program(p, n, x, flag):
    t = x * 0.0
    for k in p:
        t = t + p[k] * x
    assert n > 0, f"n is {n}"
    return t / n, {k: p[k] * 2 for k in p}, np.sum(t) if flag else n, x[::2]

def total(p, x):
    t = 0.0
    for k in p:
        t = t + p[k] * np.sum(x)
    return t

slopes = value_and_grad(total)
"""
    module = load(tmp_path / "many.py", source)
    p = {f"k{i}": i if i % 3 else 0.25 * i for i in range(150)} | {f"a{i}": np.full(4, 0.5 * i) for i in range(20)}
    x = np.linspace(0.0, 1.0, 4)
    for _ in range(2):  # the second one is found in the cache
        compiled = relay(module.program)
        for flag, n in ((True, 3), (False, 7)):
            got, want = compiled(p, n, x, flag), module.program(p, n, x, flag)
            assert np.allclose(got[0], want[0], rtol=1e-12) and got[2] == pytest.approx(want[2])
            assert all(np.all(got[1][k] == want[1][k]) and type(got[1][k]) is type(want[1][k]) for k in p)
            assert np.array_equal(got[3], want[3])
        with pytest.raises(AssertionError, match="n is -2"):
            compiled(p, -2, x, True)
        assert np.allclose(compiled(p, 2, np.repeat(x, 2)[::2], True)[0], module.program(p, 2, x, True)[0])
    value, found = relay(module.slopes)({f"k{i}": 0.5 for i in range(200)}, x)
    assert value == pytest.approx(module.total({f"k{i}": 0.5 for i in range(200)}, x))
    assert all(s == pytest.approx(np.sum(x)) for s in found.values())


def test_many_arguments_are_words_of_the_state_area(tmp_path):
    """A function of 300 parameters takes TVM's checks of each beside each other a second; one parameter none."""
    names = [f"a{i}" for i in range(300)]
    module = load(tmp_path / "wide.py", f"def program({', '.join(names)}):\n    return {' + '.join(names)}\n")
    args = [0.5 * i for i in range(300)]
    compiled = relay(module.program)
    assert compiled(*args) == module.program(*args)
    main = next(f for var, f in compiled.tir(*args).functions.items() if var.name_hint == "main")
    assert len(main.params) == 1

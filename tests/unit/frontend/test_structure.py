"""The shape of parsed graphs: what passes after the front end rely on."""

import linecache

import pytest

from myia_relay.frontend import parse
from myia_relay.ir.node import Constant, Graph
from myia_relay.ir.syntax import FreeName
from myia_relay.ir.text import to_text
from myia_relay.ir.walk import free_variables, graphs_reachable, references, sub_graphs, uses
from myia_relay.utils.compiling import compiling
from tests.work import calls_of

from .parsed_eval import Refused, evaluate

SCALE = 2


def lines(fn):
    return [line.strip() for line in to_text(parse(fn)).splitlines()]


def from_text(text):
    file = f"<structure {abs(hash(text))}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {}
    exec(compile(text, file, "exec"), scope)
    return scope["f"]


def test_straight_line():
    def f(x, y):
        z = x * y + SCALE
        return z

    assert to_text(parse(f)) == "f(%x, %y):\n  %0 = mul(%x, %y)\n  %z = add(%0, SCALE)\n  return %z"


def test_early_return_needs_no_flag():
    def f(x):
        if x > 0:
            return 1
        elif x > -1:
            return 2
        y = x * 2
        return y

    text = to_text(parse(f))
    assert "$status" not in text and "make_tuple" not in text
    assert text.count("if_{") == 2


def test_only_live_variables_are_carried():
    def f(n):
        total = 0
        for i in range(n):
            square = i * i
            total += square
        return total

    assert any("for_{names=('total',)}" in line for line in lines(f))


def test_loop_that_breaks_stops():
    def f(n):
        for i in range(n):
            if i > 3:
                break
        return i

    assert any("for_{names=('i', '$bound.i'), stops=True}" in line for line in lines(f))


def test_raise_is_no_flow():
    def f(x):
        if x < 0:
            raise ValueError(x)
        return x

    assert to_text(parse(f)).count("$") == 0


def test_infinite_loop_returns():
    def f(n):
        while True:
            n += 1
            if n > 9:
                return n

    assert lines(f)[-1].startswith("return %$ret")
    assert "None" not in to_text(parse(f))


def test_origins_are_exact():
    def f(x, y):
        return x + (y * x)

    add = parse(f).nodes[-1]
    assert add.origin.loc.text()[add.origin.loc.col : add.origin.loc.end_col] == "x + (y * x)"
    mul = parse(f).nodes[0]
    assert mul.origin.loc.text()[mul.origin.loc.col : mul.origin.loc.end_col] == "y * x"
    assert mul.origin.loc.function == "f"
    for graph in graphs_reachable(parse(f)):
        assert all(node.origin.loc is not None for node in graph.nodes)


def test_signature():
    def f(a, /, b: int, c: "float" = 3, *rest, d, e=5, **others) -> "SCALE":
        return a

    s = parse(f).signature
    assert s.names == ("a", "b", "c", "rest", "d", "e", "others")
    assert (s.posonly, s.positional, s.vararg, s.kwonly, s.kwarg) == (1, 3, 3, (4, 5), 6)
    assert {k: v.value for k, v in s.defaults.items()} == {2: 3, 5: 5}
    assert s.annotations == {1: int, 2: float, -1: 2}
    assert s.function is f


def test_free_names():
    outside = 3

    def f(x):
        return len(x) + SCALE + outside

    found = [a.value for node in parse(f).nodes for a in (node.fn, *node.args) if isinstance(a, Constant)]
    names = [v for v in found if isinstance(v, FreeName)]
    assert [(n.name, n.read()) for n in names] == [("len", len), ("SCALE", 2), ("outside", 3)]
    assert names[2].place()[0] == "cell"


def test_free_variables_of_siblings():
    def f(x, y):
        def even(n):
            return True if n == x else odd(n - 1)

        def odd(n, k=y):
            return False if n == k else even(n - 1)

        return even(x), odd(y)

    graph = parse(f)
    x, y = graph.params
    even, odd = (g for g in references(graph) if g.name in ("even", "odd"))
    assert free_variables(even) == [x, y] or free_variables(even) == [y, x]
    assert set(free_variables(odd)) == {x, y}
    assert free_variables(graph) == []
    memo = {}
    assert set(free_variables(odd, memo)) == {x, y} and set(memo[even]) == {x, y}
    assert even.parent is graph and odd in graphs_reachable(even)
    assert y in uses(graph) and all(isinstance(g, Graph) for n in graph.nodes for g in sub_graphs(n))


def test_late_binding_in_a_loop_is_left_to_inference():
    def f(n):
        fs = []
        for i in range(n):
            fs.append(lambda: i)  # noqa: B023
        return [g() for g in fs]

    assert "recapture{name='i'" in to_text(parse(f))
    assert evaluate(f, 1) == [0]
    with pytest.raises(Refused):
        evaluate(f, 2)


def test_late_binding_in_a_comprehension_is_left_to_inference():
    def f(n):
        return [lambda: i for i in range(n)]  # noqa: B023

    with pytest.raises(Refused):
        evaluate(f, 2)


def test_shared_is_noted_on_augmented_assignment():
    def f(x, n):
        y = n * 1
        y += 1
        x += y
        return x

    attrs = [node.attrs for node in parse(f).nodes if node.fn.value.__name__ == "iadd"]
    assert all(c.confirm for c in attrs[0].get("shared", ()))  # if `n * 1` handed on what it is given
    assert "parameter 'x'" in attrs[1]["shared"][0].reason and attrs[1]["shared"][0].confirm is None


BODIES = {
    "lines": (2000, lambda n: "".join(f"    x{i} = x + {i}\n" for i in range(n))),
    "augmented": (2000, lambda n: "    x += 1\n" * n),
    "sum": (1500, lambda n: "    x = x" + " + x" * n + "\n"),
    "guards": (800, lambda n: "".join(f"    if x == {i}:\n        return {i}\n" for i in range(n))),
    "elifs": (
        500,
        lambda n: "    if x < 0:\n        y = 0\n" + "".join(f"    elif x == {i}:\n        y = 1\n" for i in range(n)),
    ),
    "nested": (
        50,
        lambda n: "".join("    " * (i + 1) + f"if x > {i}:\n" for i in range(n)) + "    " * (n + 1) + "x = 0\n",
    ),
    "nested loops": (
        15,
        lambda n: (
            "".join("    " * (i + 1) + f"for i{i} in range(x):\n" for i in range(n)) + "    " * (n + 1) + "x = x + i0\n"
        ),
    ),
    "loops": (100, lambda n: "    for i in range(3):\n        x += 1\n" * n),
    "ifs": (400, lambda n: "    if x > 1:\n        x += 1\n" * n),
    "calls": (400, lambda n: "    x = sin(x)\n    x += cos(x)\n" * n),
    "items": (400, lambda n: "    a = [1, 2]\n" + "    a[0] = x\n" * n),
    "appended": (400, lambda n: "    a = []\n" + "    a.append(x)\n" * n),
}


@pytest.mark.parametrize(("n", "body"), BODIES.values(), ids=BODIES)
@pytest.mark.sampled(6)
def test_the_work_of_parsing_is_linear(n, body):
    def read(fn):
        graph = parse(fn)
        return to_text(graph), free_variables(graph)

    half, whole = (calls_of(read, from_text(f"def f(x):\n{body(size)}    return x\n"))[0] for size in (n // 2, n))
    assert whole <= 2.6 * half


def test_the_work_of_parsing_a_chain_of_functions_is_linear(tmp_path):
    def work(n):
        lines = [f"def f{i}(x, a):\n    a[0] = x\n    return f{i - 1}(x + 1, a)\n" for i in range(1, n)]
        path = tmp_path / f"chain_{n}.py"
        path.write_text("\n".join(["def f0(x, a):\n    return x\n", *lines]))
        made: dict = {}
        exec(compile(path.read_text(), str(path), "exec"), made)

        def read(functions):
            with compiling():  # names are looked up once in a compilation
                return [parse(f).flags.get("kept") for f in functions for _ in range(2)]

        calls, kept = calls_of(read, [made[f"f{i}"] for i in reversed(range(n))])
        assert [bool(k) for k in kept] == [True] * 2 * (n - 1) + [False] * 2
        return calls

    half, whole = work(60), work(120)
    assert whole <= 2.6 * half


def test_what_a_called_function_changes_is_looked_at_anew(tmp_path):
    """A chain is analysed once, but not for ever."""
    path = tmp_path / "rebound.py"
    path.write_text(
        "def keeps(a):\n    return a\n\ndef writes(a):\n    a[0] = 1\n\ndef calls(a):\n    inner(a)\n\n"
        "def outer(a):\n    calls(a)\n\ninner = keeps\n"
    )
    made: dict = {}
    exec(compile(path.read_text(), str(path), "exec"), made)
    assert not parse(made["outer"]).flags.get("kept") and not parse(made["calls"]).flags.get("kept")
    made["inner"] = made["writes"]
    assert parse(made["calls"]).flags.get("kept") and parse(made["outer"]).flags.get("kept")
    made["inner"] = made["keeps"]
    assert not parse(made["outer"]).flags.get("kept") and not parse(made["calls"]).flags.get("kept")

"""Functions of modules are functions like decorated ones: transforms, looking inside, files, pickling, Python code, threads."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import myia_relay as relay
from myia_relay.abstract.declared import Constructed
from myia_relay.text.run.arguments import Converter
from myia_relay.utils.errors import ShapeError, TypeError_

from .program import F

ROOT = Path(__file__).resolve().parents[3]

TEXT = """
type List[A] { Cons(A, List[A]), Nil, }
def @square(%x: float32) -> float32 { %x * %x }
def @poly(%x: float32, %n: int32) -> float32 { if (%n == 0) { 1f } else { %x * @poly(%x, %n - 1) } }
def @dist(%x: Tensor[(n), float32], %w: Tensor[(n), float32]) -> float32 { %0 = %x - %w; sum(%0 * %0 * %x) }
def @scale(%x: Tensor[(n), float32], %k: float32) { (%x * %k, tanh(%x)) }
def @fixed(%x: Tensor[(3), float32]) { exp(%x) }
def @id[A](%x: A) -> A { %x }
def @twice[A](%f: fn (A) -> A, %x: A) -> A { %f(%f(%x)) }
def @total(%l: List[float32]) -> float32 { match (%l) { Cons(%h, %t) => %h * %h + @total(%t), Nil => 0f, } }
def @upto(%n: int32) -> List[int32] { if (%n == 0) { Nil } else { Cons(%n, @upto(%n - 1)) } }
def @empty() { Nil }
def @nils(%n: int32) { if (%n < 1) { Nil } else { Cons(Nil, @nils(%n - 1)) } }
def @cons[A](%x: A, %l: List[A]) -> List[A] { Cons(%x, %l) }
def @cell(%x: float32) -> float32 { let %r = ref(%x); %r := !%r * %x; !%r }
def @adder(%k: float32) { fn (%x: float32) { %x * %k } }
"""
module = relay.parse_text(TEXT)
square, poly, dist, scale = module["square"], module["poly"], module["dist"], module["scale"]
twice, identity, total, upto = module["twice"], module["id"], module["total"], module["upto"]
adder, fixed, Cons, Nil = module["adder"], module["fixed"], module["Cons"], module["Nil"]
X, W = np.array([1, 2, 3], F), np.array([0, 1, 1], F)
ROWS = np.stack([X, W])


def close(got, want):
    """Whether structures of arrays agree."""
    if isinstance(want, tuple):
        return isinstance(got, tuple) and len(got) == len(want) and all(map(close, got, want))
    return np.shape(got) == np.shape(want) and np.allclose(got, want, rtol=2e-5)


TANH = np.diag(1 - np.tanh(X) ** 2)
TRANSFORMS = {
    "grad": (lambda: relay.grad(square)(3.0), 6.0),
    "grad by keyword": (lambda: relay.grad(poly)(x=2.0, n=4), 32.0),
    "grad of grad": (lambda: relay.grad(relay.grad(poly))(2.0, 4), 48.0),
    "grad of a polymorphic function": (lambda: relay.grad(identity)(2.0), 1.0),
    "grad by the second argument, the first is a function": (lambda: relay.grad(twice, 1)(square, 3.0), 108.0),
    "grad of a reference": (lambda: relay.grad(module["cell"])(3.0), 6.0),
    "grad of a list": (lambda: relay.grad(total)(Cons(2.0, Nil())).fields[0], 4.0),
    "value_and_grad": (lambda: relay.value_and_grad(dist, (0, 1))(X, W), (15, ([3, 5, 16], [-2, -4, -12]))),
    "jvp": (lambda: relay.jvp(dist, (X, W), (X, W)), (15, 45)),
    "vjp": (lambda: relay.vjp(dist, X, W)[1](1.0), ([3, 5, 16], [-2, -4, -12])),
    "hessian": (lambda: relay.hessian(dist)(X, W), np.diag([6, 8, 14])),
    "hvp": (lambda: relay.hvp(dist, (X, W), (X, W)), ([6, 10, 32], [-4, -8, -24])),
    "jacfwd": (lambda: relay.jacfwd(scale)(X, 2.0), (2 * np.eye(3), TANH)),
    "jacrev": (lambda: relay.jacrev(scale)(X, 2.0), (2 * np.eye(3), TANH)),
    "jacobian": (lambda: relay.jacobian(fixed)(X), np.diag(np.exp(X))),
    "vmap": (lambda: relay.vmap(square)(X), X * X),
    "vmap of a recursion": (lambda: relay.vmap(poly, in_axes=(0, None))(X, 3), X**3),
    "vmap of a declared size": (lambda: relay.vmap(fixed)(ROWS), np.exp(ROWS)),
    "vmap over a named size": (lambda: relay.vmap(dist, in_axes=(0, None))(ROWS, W), [15, 0]),
    "vmap of grad": (lambda: relay.vmap(relay.grad(square))(X), 2 * X),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    run, want = TRANSFORMS[name]
    assert close(run(), want)


def test_calls_and_arguments_that_are_functions():
    assert twice(square, 3.0) == 81 and twice(lambda v: v + v, 3.0) == 12 and twice(adder(3.0), 2.0) == 18
    assert close(twice(relay.vmap(square), X), X**4)
    assert adder(3.0)(2.0) == 6
    with pytest.raises(TypeError_, match="@poly takes 2 arguments"):
        twice(relay.grad(poly), 3.0)


@pytest.mark.parametrize("head", [2.0, F(2)])
def test_a_value_of_a_data_type_is_converted_once(head, monkeypatch):
    values = Cons(head, Nil())
    assert total(values) == 4
    monkeypatch.setattr(Converter, "_fields", None)
    assert total(values) == 4


# Looking inside.


def test_repeated_calls_with_values_of_data_types_skip_signatures(monkeypatch):
    m = relay.parse_text(
        "type Tree { Leaf(float32), Node(Tree, Tree), }\n"
        "type Two[A] { Two(A, A), }\n"
        "def @sum(%t: Tree) -> float32 { match (%t) { Leaf(%x) => %x, Node(%l, %r) => @sum(%l) + @sum(%r), } }\n"
        "def @first[A](%t: Two[A]) -> A { match (%t) { Two(%a, %b) => %a, } }"
    )
    leaf, node, two = m["Leaf"], m["Node"], m["Two"]
    total, first = m["sum"], m["first"]
    assert total(leaf(F(2.0))) == 2.0 and first(two(F(1.0), F(2.0))) == 1.0
    looked = []
    signature = type(total)._signature
    monkeypatch.setattr(type(total), "_signature", lambda self, *rest: looked.append(self) or signature(self, *rest))
    assert total(leaf(F(3.0))) == 3.0
    assert not looked, "the class of a constructor says which type its value is of"
    assert total(node(leaf(F(3.0)), leaf(F(4.0)))) == 7.0  # the other constructor has a key of its own
    assert total(node(leaf(F(1.0)), leaf(F(1.0)))) == 2.0 and looked == [total]
    got = first(two(1, 2))
    assert type(got) is np.int32 and got == 1, "an instance of a type with parameters is found by its fields"


def test_looking_inside():
    assert "matmul" not in str(dist.ir(X, W)) and "reduce_sum" in str(dist.ir(X, W))
    assert "poly(%x, %n)" in str(poly.ir(stage="parsed"))
    assert str(dist.explain(X, W)).startswith("dist: compiled")
    profile = str(total.profile(Cons(2.0, Nil())))
    assert "def @total(%l: List[float32])" in profile and "source lines" in profile
    assert "backward" in str(relay.grad(poly).profile(2.0, 3))
    assert "def poly" in poly.source(2.0, 3)


def test_what_python_asks_of_a_function():
    assert str(inspect.signature(poly)) == "(x, n)" and poly.__qualname__ == poly.__name__ == "poly"
    assert module["poly"] is poly and repr(poly) == "<relay function @poly>"
    assert poly.interpret(2.0, 3) == 8 and poly.with_executor("python")(2.0, 3) == 8


def test_into():
    out, pair = np.empty(3, F), (np.empty(3, F), np.empty(3, F))
    assert fixed.into(out)(X) is out and close(out, np.exp(X))
    scale.into(pair)(X, 2.0)
    assert close(pair, (X * 2, np.tanh(X)))
    relay.grad(dist).into(out)(X, W)
    assert close(out, [3, 5, 16])
    with pytest.raises(ShapeError, match="into is given an array of shape"):
        fixed.into(np.empty(4, F))(X)


# Files, processes, threads.


def test_pickling_and_copying():
    for f in (pickle.loads(pickle.dumps(square)), copy.copy(square), copy.deepcopy(square)):
        assert f(3.0) == 9
    assert pickle.loads(pickle.dumps(relay.grad(square)))(3.0) == 6
    again = pickle.loads(pickle.dumps(module))
    assert again == module and again["square"](3.0) == 9
    values = upto(3)
    assert pickle.loads(pickle.dumps(values)) == values == copy.deepcopy(values)
    for made in (pickle.loads(pickle.dumps([Cons, Nil])), copy.deepcopy([Cons, Nil])):
        assert made == [Cons, Nil] and total(made[0](2.0, made[1]())) == 4
    assert pickle.loads(pickle.dumps(Constructed)) is Constructed
    with pytest.raises(TypeError, match="pickle the module"):
        pickle.dumps(adder(2.0))


SENT = """
import pickle, sys
make, values, total, functions = pickle.loads(bytes.fromhex(sys.argv[1]))
assert total(values) == 5 and total(make(10.0, values)) == 105, total(values)
assert functions[0](values) == 6
print(values == pickle.loads(pickle.dumps(values)))
"""


def test_cloudpickle_sends_values_of_data_types_and_their_constructors():
    cloudpickle = pytest.importorskip("cloudpickle")
    values = Cons(F(1), Cons(F(2), Nil()))
    sent = cloudpickle.dumps((Cons, values, total, [lambda v: total(v) + 1]))
    make, same, again, _ = pickle.loads(sent)
    assert make is Cons and same == values and total(make(10.0, same)) == 105 == again(Cons(10.0, values))
    done = subprocess.run([sys.executable, "-c", SENT, sent.hex()], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_libraries(tmp_path):
    dist.save(tmp_path / "dist.so", X, W)
    assert relay.load_compiled(tmp_path / "dist.so")(ROWS[0], ROWS[1]) == 15
    values = Cons(F(2), Cons(F(3), Nil()))
    relay.value_and_grad(total).save(tmp_path / "total.so", values)
    value, slope = relay.load_compiled(tmp_path / "total.so")(Cons(F(1), values))
    assert value == 14 and slope == Cons(F(2), Cons(F(4), Cons(F(6), Nil())))
    value, slope = relay.load_compiled(tmp_path / "total.so")(Cons(1, Cons(2.0, values)))  # numbers take the dtype
    assert value == 18 and slope.fields[0].dtype == F
    poly.save(tmp_path / "poly.so", 2.0, 3)
    loaded = relay.load_compiled(tmp_path / "poly.so")
    assert loaded(3, 2) == loaded(F(3), np.int32(2)) == 9
    for wrong, message in (((2.0, 3.0), "argument 1 of poly is float"), ((2.0, 2**31), "int32, which has no")):
        with pytest.raises(TypeError_, match=message):
            loaded(*wrong)
    relay.export_library(poly, tmp_path / "libpoly.so", 2.0, 3)
    assert (tmp_path / "libpoly.so").exists()
    with pytest.raises(relay.LoweringError, match="libraries for C"):
        relay.export_library(total, tmp_path / "total_c.so", values)


CACHED = f"""
import sys
import numpy as np
import myia_relay as relay
module = relay.parse_text({TEXT!r})
three = module["upto"](3)
nil = module["Nil"]()
total = relay.value_and_grad(module["total"])(module["Cons"](2.0, nil))
assert total == (4, module["Cons"](np.float32(4), nil)), total
assert three.fields[0] == 3 and module["poly"](2.0, 5) == 32

@relay.relay
def calls(x):
    return module["square"](x) + module["total"](module["Cons"](x, module["Nil"]()))

assert calls(np.float32(3)) == 18
assert "tvm" not in sys.modules or sys.argv[1] == "first"
"""


def test_program_files_across_processes(tmp_path, monkeypatch):
    monkeypatch.setenv("MYIA_RELAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MYIA_RELAY_CACHE_SIZE", "64")
    script = tmp_path / "script.py"
    script.write_text(CACHED)
    for time in ("first", "second"):  # the second one finds all programs, so it does not import the compiler
        done = subprocess.run([sys.executable, str(script), time], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_threads():
    fresh, results, errors = relay.parse_text(TEXT), [], []
    barrier = threading.Barrier(6)

    def run(k):
        try:
            barrier.wait()
            values = fresh["upto"](k)
            length = 0
            while values.constructor == "Cons":
                length, values = length + 1, values.fields[1]
            results.append((float(fresh["poly"](2.0, k)), length, float(fresh["dist"](X, W))) == (2.0**k, k, 15.0))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and results == [True] * 6


# Python code that uses modules.


@relay.relay
def calls_one(a):
    return square(a) + module["square"](a) * 2


@relay.relay
def differentiates(a, b):
    return relay.grad(dist)(a, b) + relay.vmap(square)(a)


@relay.relay
def makes_values(a):
    return total(Cons(a, Cons(a, Nil())))


@relay.relay
def hands_functions_on(a):
    return twice(square, a), twice(lambda z: z * a, a), adder(a)(a)


@relay.relay
def walks(values):
    length = 0
    total = F(0)
    while isinstance(values, Cons):
        length += 1
        total += values.fields[0]
        values = values.fields[1]
    return total, length


@relay.relay
def matches(values):
    match values:
        case Cons(head, _):
            return head, values.constructor
        case _:
            return F(0), values.constructor


@relay.relay
def returns_values(n):
    if n > 2:
        return Cons(n, upto(n))
    return Nil()


@relay.relay
def keywords(a):
    return dist(w=a, x=a + 1), identity((a, 1))


@relay.relay
def no_such(a):
    return module["sqare"](a)


def test_python_code_calls_modules(executor):
    on = {"executor": executor}
    assert relay.relay(calls_one, **on)(F(3)) == 27
    assert close(relay.relay(differentiates, **on)(X, W), [4, 9, 25])
    assert relay.relay(makes_values, **on)(F(3)) == 18
    assert relay.relay(hands_functions_on, **on)(F(3)) == (81, 27, 9)
    assert relay.relay(walks, **on)(Cons(F(2), Cons(F(3), Nil()))) == (5, 2)
    assert relay.relay(matches, **on)(Cons(F(2), Nil())) == (2, "Cons")
    assert relay.relay(matches, **on)(Nil()) == (0, "Nil")
    assert relay.relay(returns_values, **on)(np.int32(3)).fields[1] == upto(3)
    distance, (values, one) = relay.relay(keywords, **on)(X)
    assert distance == 9 and close(values, X) and one == 1 and type(one).__name__ == "int32"


@relay.relay
def prepends(a, n):
    return module["cons"](a, module["empty"]()), module["nils"](n)


def test_what_a_result_leaves_open(executor):
    ones, nils = relay.relay(prepends, executor=executor)(F(1), np.int32(2))
    assert str(ones) == "Cons(np.float32(1.0), Nil())" and str(nils) == "Cons(Nil(), Cons(Nil(), Nil()))"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", ["1", "2", "4"])
def test_what_a_result_leaves_open_in_any_order_of_sets(seed):
    """The caller of a recursion whose result grows may be looked at before it."""
    code = (
        "import numpy as np, myia_relay as relay\nfrom tests.text.running import test_module_functions as tests\n"
        "relay.relay(tests.prepends, executor='interpreter')(np.float32(1), np.int32(2))"
    )
    env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_errors_where_python_code_calls_modules():
    with pytest.raises(TypeError_, match="argument 'x' of @square is float32, and is given float64"):
        calls_one(np.float64(3))
    with pytest.raises(TypeError_, match="no definition or constructor 'sqare'; did you mean 'square'"):
        no_such(F(1))
    with pytest.raises(TypeError_, match=r"@square takes 1 argument \(%x\), and is given 2"):
        square(1.0, 2.0)
    with pytest.raises(TypeError_, match="field 0 of Cons in argument 'l' of @total is float32, and is given int32"):
        total(Cons(1.0, Cons(np.int32(3), Nil())))
    with pytest.raises(ShapeError, match="the dimension 'n' is 3"):
        dist(X, W[:2])

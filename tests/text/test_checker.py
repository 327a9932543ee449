"""Types of Relay modules: what is inferred for small definitions, and what is refused, where and in which words."""

from __future__ import annotations

import re

import pytest

from myia_relay.text.check.annotate import annotated
from myia_relay.text.check.exhaustive import examine
from myia_relay.text.check.module import check, components
from myia_relay.text.equality import equal
from myia_relay.text.placement import placed
from myia_relay.text.printer import print_module
from myia_relay.text.syntax.items import parse
from myia_relay.text.terms.show import show
from myia_relay.text.tree import MatchExpr
from myia_relay.text.walk import walk
from myia_relay.utils.errors import CompileError, NameError_, ShapeError, TypeError_

LIST = "type List[A] { Cons(A, List[A]), Nil, }\n"
OPTION = "type Option[A] { Some(A), None, }\n"
PAIR = "type Pair[A, B] { Both(A, B), }\n"


def checked(text):
    return check(placed(parse(text)))


def scheme(text, name="f"):
    """The type of a definition, with letters for what its scheme abstracts over."""
    found = checked(text).schemes[name]
    return (
        show(found.type),
        [getattr(p, "name", None) or p.kind for p in found.params],
        [r.name for r in found.relations],
    )


TYPES = [
    # Literals and their dtypes.
    ("def @f() { 1 }", "fn () -> int32"),
    ("def @f() { 1i64 }", "fn () -> int64"),
    ("def @f() { 3000000000 }", "fn () -> int64"),
    ("def @f() { 1.5 }", "fn () -> float32"),
    ("def @f() { 1f16 }", "fn () -> float16"),
    ("def @f() { True }", "fn () -> bool"),
    ("def @f() { () }", "fn () -> ()"),
    ("def @f() { (1, (2f,)) }", "fn () -> (int32, (float32,))"),
    ("def @f() { Constant(1, (3), int8) }", "fn () -> Tensor[(3), int8]"),
    # Operators determine types of parameters.
    ("def @f(%x) { %x + 1 }", "fn (Tensor[_, int32]) -> Tensor[_, int32]"),
    ("def @f(%x) { if (%x) { 1 } else { 2 } }", "fn (bool) -> int32"),
    ("def @f(%x) { if (%x > 1) { %x } else { 0 } }", "fn (int32) -> int32"),
    ("def @f(%x) { logical_not(%x) }", "fn (Tensor[_, _]) -> Tensor[_, _]"),
    ("def @f(%x: float32) { -%x * 2f }", "fn (float32) -> float32"),
    ("def @f(%x: Tensor[(2, 3), float32]) { %x * 2f }", "fn (Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32]"),
    ("def @f(%x: Tensor[(2, 1), float32], %y: Tensor[(3), float32]) { %x < %y }", "-> Tensor[(2, 3), bool]"),
    ("def @f(%x: Tensor[(?, 1), float32], %y: Tensor[(3), float32]) { %x + %y }", "-> Tensor[(?, 3), float32]"),
    ("def @f(%x: Tensor[(?), float32], %y: Tensor[(3), float32]) { %x + %y }", "-> Tensor[(3), float32]"),
    ("def @f(%x: Tensor[(?), float32], %y: Tensor[(n), float32]) { %x + %y }", "-> Tensor[(?), float32]"),
    ("def @f(%x: Tensor[(n, 3), float32], %y: Tensor[(3), float32]) { %x + %y }", "-> Tensor[(n, 3), float32]"),
    ("def @f(%x: Tensor[(n), float32], %y: Tensor[(n), float32]) { %x + %y }", "-> Tensor[(n), float32]"),
    # Sizes that follow from names.
    (
        "def @f(%x: Tensor[(n, 4), float32], %w: Tensor[(5, 4), float32]) { nn.dense(%x, %w) }",
        "-> Tensor[(n, 5), float32]",
    ),
    ("def @f(%x: Tensor[(n, 2), float32]) { concatenate((%x, %x)) }", "-> Tensor[(2*n, 2), float32]"),
    ("def @f(%x: Tensor[(n, 2), float32]) { reshape(%x, newshape=[-1]) }", "-> Tensor[(2*n), float32]"),
    ("def @f(%x: Tensor[(n, 2), float32]) { reshape(%x, newshape=[0, 1, 2]) }", "-> Tensor[(n, 1, 2), float32]"),
    ("def @f(%x: Tensor[(?, 2), float32]) { reshape(%x, newshape=[-1]) }", "-> Tensor[(?), float32]"),
    (
        "def @f(%x: Tensor[(n, 3, h, w), float32], %k: Tensor[(8, 3, 3, 3), float32]) { nn.conv2d(%x, %k) }",
        "(n, 8, h - 2, w - 2)",
    ),
    ("def @f(%x: Tensor[(n, m), float32]) { sum(%x, axis=[1]) }", "-> Tensor[(n), float32]"),
    ("def @f(%x: Tensor[(n, m), float32]) { argmax(%x, axis=0, keepdims=True) }", "-> Tensor[(1, m), int32]"),
    ("def @f(%x: Tensor[(n), float32]) { topk(%x, k=0) }", "-> (Tensor[(n), float32], Tensor[(n), int32])"),
    # Weights of which nothing is said.
    (
        "def @f(%x: Tensor[(2, 4), float32], %w) { nn.dense(%x, %w, units=5) }",
        "Tensor[(5, 4), float32]) -> Tensor[(2, 5)",
    ),
    (
        "def @f(%x: Tensor[(1, 3, 8, 8), float32], %w) { nn.conv2d(%x, %w, channels=4, kernel_size=[3, 3]) }",
        "Tensor[(4, 3, 3, 3), float32]) -> Tensor[(1, 4, 6, 6), float32]",
    ),
    # Polymorphism.
    ("def @f(%x) { %x }", "fn (_) -> _"),
    ("def @f[A](%x: A) -> A { %x }", "fn (A) -> A"),
    ("def @f() { let %id = fn (%x) { %x }; (%id(1), %id(True)) }", "fn () -> (int32, bool)"),
    ("def @f() { let %id = fn (%x) { %x }; let %j = %id; (%j(1), %j(True)) }", "fn () -> (int32, bool)"),
    ("def @f() { let %p = (fn (%x) { %x }, fn (%y) { 1 }); let %q = %p; (%q.0)(2f) }", "fn () -> float32"),
    (
        "def @g(%x, %y) { (%y, %x) }\ndef @f() { (@g(1, 2f), @g(True, 1)) }",
        "fn () -> ((float32, int32), (int32, bool))",
    ),
    ("def @f() { @g(1) }\ndef @g(%x) { (%x, %x) }", "fn () -> (int32, int32)"),
    ("def @g(%x) { %x * %x }\ndef @f() { (@g(2), @g(2f)) }", "fn () -> (int32, float32)"),
    ("def @f(%x) { let %g = fn (%y) { (%x, %y) }; (%g(1), %g(True)) }", "fn (_) -> ((_, int32), (_, bool))"),
    ("def @g<A>(%x: A) -> A { %x }\ndef @f() { @g<int32>(3) }", "fn () -> int32"),
    ("def @g<A, B>(%x: A, %y: B) { %y }\ndef @f() { @g<_, bool>(3, True) }", "fn () -> bool"),
    ("def @f(%x: int32) { let %g = fn <A>(%y: A) -> A { %y }; %g<int32>(%x) }", "fn (int32) -> int32"),
    (
        "def @g<s: Shape>(%x: Tensor[s, float32]) { %x }\ndef @f() { @g<(2, 3)>(ones(shape=[2, 3])) }",
        "-> Tensor[(2, 3), float32]",
    ),
    (
        "def @g<n: ShapeVar>(%x: Tensor[(n, n), float32]) { %x }\ndef @f() { @g<2>(ones(shape=[2, 2])) }",
        "-> Tensor[(2, 2), float32]",
    ),
    ("def @g<t: BaseType>(%x: Tensor[(2), t]) -> t { sum(%x) }\ndef @f() { @g(ones(shape=[2])) }", "fn () -> float32"),
    ("def @g<t: BaseType>(%x: t) -> t { %x + %x }\ndef @f() { (@g(1), @g<float32>(2f)) }", "fn () -> (int32, float32)"),
    ("def @f(%g: fn <A>(A) -> A) { (%g(1), %g(True)) }", "fn (fn <A>(A) -> A) -> (int32, bool)"),
    ("def @g(%h: fn <A>(A) -> A) { %h(1) }\ndef @f() { @g(fn (%x) { %x }) }", "fn () -> int32"),
    ("def @f() { let %g: fn <A>(A) -> A = fn <A>(%x: A) -> A { %x }; (%g(1), %g(2f)) }", "fn () -> (int32, float32)"),
    ("def @f() { let %p = (negative, 3f); (%p.0)(%p.1) }", "fn () -> float32"),
    ("def @f() { let %p = (fn (%x) { %x + 1 }, 3f); %p.1 }", "fn () -> float32"),
    # Recursion.
    ("def @f(%n) { if (%n == 0) { 1 } else { %n * @f(%n - 1) } }", "fn (int32) -> int32"),
    (
        "def @f() { let %g = fn (%n: int32) { if (%n == 0) { 0 } else { %g(%n - 1) } }; %g }",
        "fn () -> fn (int32) -> int32",
    ),
    ("def @f(%n) { if (%n == 0) { True } else { @g(%n - 1) } }\ndef @g(%n) { @f(%n) }", "fn (int32) -> bool"),
    (
        LIST + "def @f[A](%x: A, %n: int32) -> int32 { if (%n == 0) { 0 } else { @f((%x, %x), %n - 1) } }",
        "fn (A, int32) -> int32",
    ),
    # Functions as values.
    ("def @f(%g) { %g(1) }", "fn (fn (int32) -> _) -> _"),
    ("def @f(%g, %h) { fn (%x) { %g(%h(%x)) } }", "fn (fn (_) -> _, fn (_) -> _) -> fn (_) -> _"),
    ("def @g(%h: fn (float32) -> float32) { %h(1f) }\ndef @f() { @g(negative) }", "fn () -> float32"),
    ("def @f() { let %op = add; (%op(1, 2), %op(1f, 2f)) }", "fn () -> (int32, float32)"),
    ("def @f(%a: int32) { fn (%b: int32) { %a + %b } }", "fn (int32) -> fn (int32) -> int32"),
    # Tuples.
    ("def @f(%p: (int32, bool)) { %p.1 }", "-> bool"),
    ("def @g(%p) { %p.1 }\ndef @f() { (@g((1, 2f)), @g((1, True, 3))) }", "fn () -> (float32, bool)"),
    ("def @f(%p) { match (%p) { (%a, (%b, _)) => %a + %b } }", "-> Tensor[_, _]"),
    ("def @f(%x: Tensor[(4), float32]) { let %p = split(%x, indices_or_sections=2); %p.1 }", "-> Tensor[(2), float32]"),
    # Data types.
    (LIST + "def @f() { Cons(1, Nil) }", "fn () -> List[int32]"),
    (LIST + "def @f() { Nil }", "fn () -> List[_]"),
    (LIST + "def @f() { Nil() }", "fn () -> List[_]"),
    (LIST + "def @f() { Cons }", "fn () -> fn (_, List[_]) -> List[_]"),
    (LIST + "def @f() { let %n = Nil; (Cons(1, %n), Cons(True, %n)) }", "fn () -> (List[int32], List[bool])"),
    (LIST + "def @f(%l) { match (%l) { Cons(%h, _) => %h, Nil => 0 } }", "fn (List[int32]) -> int32"),
    (
        LIST + "def @f(%g, %l) { match (%l) { Cons(%h, %t) => Cons(%g(%h), @f(%g, %t)), Nil => Nil } }",
        "fn (fn (_) -> _, List[_]) -> List[_]",
    ),
    (LIST + "def @f(%l: List[int32]) { match? (%l) { Cons(%h, _) => %h } }", "fn (List[int32]) -> int32"),
    (PAIR + "def @f(%p) { match (%p) { Both(%a, %b) => Both(%b, %a) } }", "fn (Pair[_, _]) -> Pair[_, _]"),
    (
        LIST + OPTION + "def @f(%l) { match (%l) { Cons(Some(%x), _) => %x, _ => 0f } }",
        "fn (List[Option[float32]]) -> float32",
    ),
    (
        "type Rose[A] { Rose(A, Forest[A]), }\ntype Forest[A] { End, More(Rose[A], Forest[A]), }\ndef @f() { Rose(1, End) }",
        "Rose[int32]",
    ),
    (
        "type Vec[t: BaseType, n: ShapeVar] { Vec(Tensor[(n), t]), }\ndef @f(%v) { match (%v) { Vec(%x) => sum(%x) } }",
        "fn (Vec[_, _]) -> Tensor[(), _]",
    ),
    ("type Fn[A, B] { Fn(fn (A) -> B), }\ndef @f(%g) { match (%g) { Fn(%h) => %h(1) } }", "fn (Fn[int32, _]) -> _"),
    ("extern type Handle[A]\ndef @f(%h: Handle[int32]) { %h }", "fn (Handle[int32]) -> Handle[int32]"),
    # References.
    ("def @f() { ref(1) }", "fn () -> ref(int32)"),
    ("def @f(%r) { %r := 1; ref_read(%r) + 1 }", "fn (ref(int32)) -> int32"),
    ("def @f(%r: ref(float32)) { !%r }", "fn (ref(float32)) -> float32"),
    ("def @f(%r) { ref_write(%r, 1) }", "fn (ref(int32)) -> ()"),
    # Annotations.
    ("def @f(%x: Tensor[(?, 2), float32]) -> Tensor[(3, 2), float32] { %x }", "-> Tensor[(3, 2), float32]"),
    ("def @f(%x) -> _ { let %y: float32 = %x; %y }", "fn (float32) -> float32"),
    ("def @f(%x: fn (_) -> int32) { %x(1f) }", "fn (fn (float32) -> int32) -> int32"),
    (
        "def @f(%l) { let %g = fn (%x: Tensor[(n), float32]) { sum(%x) }; (%g(ones(shape=[2])), %g(ones(shape=[3]))) }",
        "(float32, float32)",
    ),
    (
        "def @f(%c: bool, %x: Tensor[(?), float32], %y: Tensor[(3), float32]) { if (%c) { %y } else { %x } }",
        "-> Tensor[(?), float32]",
    ),
    ("def @g() -> fn <A>(A) -> A { fn (%x) { %x } }\ndef @f() { (@g()(1), @g()(True)) }", "fn () -> (int32, bool)"),
    (
        "def @g(%x: Tensor[(n, n), float32]) { %x }\ndef @f(%x: Tensor[(?, 3), float32]) { @g(%x) }",
        "-> Tensor[(3, 3), float32]",
    ),
    # Relations.
    ("def @f(%x: Tensor[s, float32], %y: float32) { %x }", None),
    (
        "def @f<s: Shape>(%x: Tensor[s, float32], %y: float32) { %x * %y }",
        "fn (Tensor[s, float32], float32) -> Tensor[s, float32]",
    ),
    (
        "def @f<A, B, C>(%x: A, %y: B) -> C where Broadcast(A, B, C) { add(%x, %y) }",
        "fn (A, B) -> C",
    ),
    ("def @f<A, B>(%x: A) -> B where Identity(A, B) { %x }", "fn (A) -> A"),
    ("def @f(%x, %y) where Identity { exp(%x) }", "fn (Tensor[_, _], Tensor[_, _]) -> Tensor[_, _]"),
    # Scopes.
    ("def @f(%x: int32) { let %x = %x > 1; let %x = (%x, 1f); %x }", "fn (int32) -> (bool, float32)"),
    ("def @f(%x: float32) { %0 = %x + %x; %1 = (%0, %0); %1 }", "fn (float32) -> (float32, float32)"),
]


@pytest.mark.parametrize(("text", "expected"), [t for t in TYPES if t[1]], ids=range(len([t for t in TYPES if t[1]])))
def test_types(text, expected):
    shown = scheme(text)[0]
    assert expected in shown, shown


@pytest.mark.parametrize("text", [t[0] for t in TYPES if t[1]], ids=range(len([t for t in TYPES if t[1]])))
def test_annotated_modules_have_the_same_types(text):
    """What is written of a type is true, and is written again as it is."""
    found = checked(text)
    module = annotated(found)
    again = checked(print_module(module))
    for name, have in found.schemes.items():
        assert len(again.schemes[name].params) <= len(have.params) or have.declared
    assert equal(annotated(again), parse(print_module(annotated(again))))
    assert print_module(annotated(again)) == print_module(module)


def test_open_relations_are_part_of_the_scheme():
    assert scheme("def @f(%x, %y) { exp(%x) + %y }")[1:] == (["Shape", "BaseType", "Shape", "Shape"], ["exp", "add"])
    assert scheme("def @f(%x) { %x + %x }")[1:] == (["Shape", "BaseType"], ["add"])
    assert scheme("def @f(%x: Tensor[(2), float32], %y) { %x + %y }")[1] == ["Shape", "Shape"]


ERRORS = [
    # (text with « » around what the error points at, class, words of the message)
    ("def @f(%x: float32) { «%x + 1» }", TypeError_, ("float32", "int32", "cast")),
    ("def @f(%x: int32) -> bool { «%x + 1» }", TypeError_, ("bool", "int32")),
    ("def @f(%x: int32) -> bool { let %y = 1; «%y» }", TypeError_, ("bool", "int32")),
    ("def @f(%x: int32) { if («%x») { 1 } else { 2 } }", TypeError_, ("condition", "int32", "bool")),
    ("def @f(%x: bool) { if (%x) { 1 } else { «2f» } }", TypeError_, ("float32", "int32", "other branch")),
    ("def @g(%x: int32) { %x }\ndef @f() { «@g(1, 2)» }", TypeError_, ("1 argument", "2")),
    ("def @g(%x: int32) { %x }\ndef @f() { @g(«1f») }", TypeError_, ("@g", "float32", "int32")),
    ("def @f(%x: int32) { «%x(1)» }", TypeError_, ("int32", "no function")),
    ("def @f(%x: int32) { «%x.0» }", TypeError_, ("tuple", "int32")),
    ("def @f(%p: (int32, bool)) { «%p.2» }", TypeError_, (".2", "2 elements")),
    ("def @f(%x) { «%x(%x)» }", TypeError_, ("part of itself",)),
    (
        "def @f(%x: Tensor[(2, 3), float32], %y: Tensor[(4), float32]) { «%x + %y» }",
        ShapeError,
        ("(2, 3)", "(4)", "3 and 4"),
    ),
    ("def @f(%x: Tensor[(n), float32], %y: Tensor[(m), float32]) { «%x + %y» }", ShapeError, ("(n)", "(m)", "?")),
    ("def @f(%x: Tensor[(n), float32], %y: Tensor[(3), float32]) { «%x + %y» }", ShapeError, ("(n)", "(3)")),
    ("def @f(%x: Tensor[(n), float32]) -> Tensor[(3), float32] { «%x» }", ShapeError, ("n", "3")),
    ("def @f(%x: Tensor[(2), float32]) -> Tensor[(2, 1), float32] { «%x» }", ShapeError, ("1 axis", "2 axes")),
    (
        "def @f(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 5), float32]) { «nn.dense(%x, %w)» }",
        ShapeError,
        ("(2, 3)", "(4, 5)"),
    ),
    ("def @f(%x: Tensor[(2, 3), float32]) { «reshape(%x, newshape=[4, -1])» }", ShapeError, ("(2, 3)", "4")),
    ("def @f(%x: Tensor[(2, 3), float32]) { «sum(%x, axis=[2])» }", ShapeError, ("axis", "2")),
    ("def @f(%x: Tensor[(2), float32]) { «concatenate((%x, %x), axis=1)» }", ShapeError, ("axis 1",)),
    ("def @f(%x: int32) { «exp(%x)» }", TypeError_, ("exp", "floats", "int32", "cast")),
    ("def @f(%x: float32) { «logical_not(%x)» }", TypeError_, ("booleans", "float32")),
    ("def @f(%x: float32) { «exp(%x, %x)» }", TypeError_, ("1 argument", "2")),
    ("def @f(%x: Tensor[(2), float32]) { «sum(%x, axes=[0])» }", TypeError_, ("axes", "axis")),
    ('def @f(%x: Tensor[(2), float32]) { «sum(%x, axis="0")» }', TypeError_, ("axis", "ints")),
    ("def @f(%x: Tensor[(2), float32]) { «expand_dims(%x)» }", TypeError_, ("axis",)),
    # Names.
    ("def @f() { «@g»(1) }", NameError_, ("@g",)),
    ("def @f(%x: «Foo[]») { %x }", NameError_, ("Foo",)),
    ("def @f(%x: «Tensor[(2), floot32]») { %x }", CompileError, ("floot32",)),
    ("def @f(%x) { «Cons»(%x) }", NameError_, ("Cons",)),
    # Rigid parameters.
    ("def @f<A>(%x: A) -> A { «%x + 1» }", TypeError_, ("A", "every type")),
    ("def @f<A>(%x: A) -> A { «1» }", TypeError_, ("'A'", "int32")),
    ("def @f<A, B>(%x: A) -> B { «%x» }", TypeError_, ("A", "B")),
    ("def @f<s: Shape>(%x: Tensor[s, float32]) -> Tensor[(2), float32] { «%x» }", TypeError_, ("'s'", "(2)")),
    ("def @f<s: Shape>(%x: Tensor[s, float32]) { «%x + ones(shape=[3])» }", TypeError_, ("'s'", "every shape")),
    (
        "def @f<n: ShapeVar>(%x: Tensor[(n), float32]) -> Tensor[(n, 1), float32] { «%x» }",
        ShapeError,
        ("1 axis", "2 axes"),
    ),
    ("def @f(%g: fn <A>(A) -> A) { %g(1) }\ndef @h() { @f(«fn (%x) { %x + 1 }») }", TypeError_, ("'A'",)),
    (
        "def @f<t: BaseType>(%x: t) -> t { exp(%x) }\ndef @g() { «@f»(1) }",
        TypeError_,
        ("exp", "floats", "int32", "needs it here"),
    ),
    # Kinds and arity.
    ("def @f<s: Type>(%x: Tensor[«s», float32]) { %x }", TypeError_, ("Shape", "Type")),
    ("def @f<s: Shape>(%x: «s») { %x }", TypeError_, ("Shape", "Type")),
    ("def @f<s: Shape>(%x: Tensor[(«s»), float32]) { %x }", TypeError_, ("ShapeVar",)),
    ("def @f<t: Type>(%x: Tensor[(2), «t»]) { %x }", TypeError_, ("BaseType",)),
    (LIST + "def @f(%x: «List[int32, bool]») { %x }", TypeError_, ("List[A]", "1 argument", "2")),
    (LIST + "def @f(%x: «List[]») { %x }", TypeError_, ("List[A]", "1 argument")),
    ("def @g<A>(%x: A) { %x }\ndef @f() { «@g<int32, bool>(1)» }", TypeError_, ("1 type parameter", "2")),
    ("def @g<s: Shape>(%x: Tensor[s, float32]) { %x }\ndef @f() { @g<«int32»>(1f) }", TypeError_, ("Shape",)),
    ("def @g<A>(%x: A) { %x }\ndef @f() { @g<bool>(«1») }", TypeError_, ("int32", "bool")),
    ("def @f(%x, %y, %z) where «Broadcast» { %x }", TypeError_, ("Broadcast", "4")),
    ("def @f(%x) where «Equal» { %x }", NameError_, ("Equal", "Broadcast")),
    # Matches.
    (LIST + "def @f(%l: List[int32]) { «match (%l) {» Cons(%h, _) => %h } }", TypeError_, ("Nil",)),
    (
        LIST + "def @f(%l: List[int32]) { «match (%l)» { Cons(_, Nil) => 1, Nil => 0 } }",
        TypeError_,
        ("Cons(_, Cons(_, _))",),
    ),
    (
        LIST + OPTION + "def @f(%p: (Option[int32], bool)) { «match (%p)» { (Some(%x), _) => %x } }",
        TypeError_,
        ("(None, _)",),
    ),
    (
        LIST + "def @f(%l: List[int32]) { match (%l) { Cons(%h, _) => %h, Nil => «1f» } }",
        TypeError_,
        ("float32", "int32", "first arm"),
    ),
    (LIST + "def @f(%l: List[int32]) { match (%l) { «Cons(%h)» => %h, Nil => 1 } }", TypeError_, ("2 fields", "1")),
    (
        LIST + OPTION + "def @f(%l: List[int32]) { match (%l) { «Some(%h)» => %h, _ => 1 } }",
        TypeError_,
        ("Option", "List"),
    ),
    ("def @f(%x: int32) { match (%x) { «(%a, %b)» => %a } }", TypeError_, ("int32",)),
    (LIST + "def @f() { «Cons(1, 2)» }", TypeError_, ("Cons", "int32", "List")),
    (LIST + "def @f() { Cons(1, «Cons(True, Nil)») }", TypeError_, ("List[bool]", "List[int32]")),
    # References.
    ("def @f() { let %r = ref(1); %r := «2f» }", TypeError_, ("float32", "int32")),
    ("def @f(%x: int32) { ref_read(«%x») }", TypeError_, ("int32", "ref")),
    (
        LIST + "def @f() { let %r = ref(Nil); %r := Cons(1, Nil); %r := «Cons(True, Nil)» }",
        TypeError_,
        ("bool", "int32"),
    ),
    # Nothing will ever tell.
    (
        LIST + "def @f() { match (Nil) { Cons(%h, _) => { let %z = «%h + %h»; 1 }, Nil => 0 } }",
        TypeError_,
        ("annotate",),
    ),
    # Not called, but checked.
    ("def @main() { 1 }\ndef @unused() { «1 + 1f» }", TypeError_, ("int32", "float32")),
    ("def @main() { let %f = fn (%x: int32) { «%x + 1f» }; 1 }", TypeError_, ("int32", "float32")),
]


def _marked(text):
    start, end = text.index("«"), text.index("»")
    plain = text.replace("«", "").replace("»", "")
    line = plain.count("\n", 0, start)
    first = start - (plain.rfind("\n", 0, start) + 1)
    return plain, line + 1, first, first + (end - start - 1)


@pytest.mark.parametrize(("text", "kind", "words"), ERRORS, ids=range(len(ERRORS)))
def test_errors(text, kind, words):
    plain, line, first, last = _marked(text)
    with pytest.raises(kind) as caught:
        checked(plain)
    error = caught.value
    assert error.loc is not None
    assert error.loc.line == line
    assert first <= error.loc.col < last, str(error)
    shown = str(error)
    assert plain.splitlines()[line - 1].strip() in shown
    assert "^" in shown
    for word in words:
        assert word in shown, shown


def test_several_errors_are_reported_together():
    text = "def @f(%x: float32) {\n  let %a = %x + 1;\n  let %b = exp(2);\n  let %c = %a + %b;\n  %c.0\n}"
    with pytest.raises(TypeError_) as caught:
        checked(text)
    shown = str(caught.value)
    assert shown.count("also wrong") == 1  # nothing is said of %c, which follows from the others
    assert "exp takes floats" in shown


def test_an_error_shows_where_types_come_from():
    with pytest.raises(TypeError_) as caught:
        checked("def @f(%x: float32) {\n  %x + 1\n}")
    assert re.search(r"note: %x is float32; it is bound here\n\s+<text>:1:8", str(caught.value))


DEEP = 10_000


@pytest.mark.parametrize(
    "text",
    [
        "def @f(%x0) {\n" + "".join(f"let %x{i + 1} = add(%x{i}, %x{i});\n" for i in range(DEEP)) + f"%x{DEEP} }}",
        "def @f(%x0) {\n" + "".join(f"let %x{i + 1} = (%x{i},);\n" for i in range(DEEP)) + f"%x{DEEP} }}",
        "def @f(%x0) {\n" + "".join(f"let %x{i + 1} = (%x{i}, %x{i});\n" for i in range(100)) + "%x100 }",
        "def @f(%x: int32) { " + " + ".join(["%x"] * DEEP) + " }",
        "def @f(%x: int32) { " + "negative(" * 3000 + "%x" + ")" * 3000 + " }",
        "".join(f"def @g{i + 1}(%x) {{ @g{i}(%x) + 1f }}\n" for i in range(2000))
        + "def @g0(%x) { %x }\ndef @f() { @g2000(1f) }",
        "def @f(%y) { let %x0 = fn (%a) { %a }; "
        + "".join(f"let %x{i + 1} = fn (%a) {{ %x{i}(%a) }}; " for i in range(3000))
        + "%x3000(%y) }",
    ],
    ids=["lets", "nested tuples", "shared tuples", "a sum", "operands", "definitions", "functions"],
)
@pytest.mark.sampled(4)
def test_depth_is_no_depth_of_python(text):
    assert checked(text).schemes["f"] is not None


@pytest.mark.parametrize(
    ("arms", "redundant"),
    [
        ("Cons(%h, _) => 1, Nil => 2, _ => 3", [2]),
        ("_ => 1, Nil => 2", [1]),
        ("Cons(_, Nil) => 1, Cons(_, Cons(_, _)) => 2, Nil => 3, Cons(_, _) => 4", [3]),
        ("Cons(_, Nil) => 1, Cons(_, _) => 2, Nil => 3", []),
        ("Nil => 1, Nil => 2, Cons(_, _) => 3", [1]),
    ],
)
def test_arms_that_no_value_gets_to(arms, redundant):
    module = placed(parse(f"{LIST}def @f(%l: List[int32]) {{ match (%l) {{ {arms} }} }}"))
    match = next(e for e in walk(module.definitions["f"]) if isinstance(e, MatchExpr))
    assert examine(match, module).redundant == redundant
    assert [match.arms.index(a) for a in check(module).redundant] == redundant


def test_many_constructors_are_examined_in_linear_time():
    names = [f"C{k}" for k in range(2000)]
    text = f"type T {{ {', '.join(names)} }}\ndef @f(%t: T[]) {{ match (%t) {{ {', '.join(f'{n} => 1' for n in names[:-1])} }} }}"
    with pytest.raises(TypeError_, match="C1999"):
        checked(text)


def test_instances_say_what_stands_for_the_parameters():
    found = checked(LIST + "def @g[A](%x: A) -> List[A] { Cons(%x, Nil) }\ndef @f() { (@g(1), @g(True)) }")
    uses = [i for e, i in found.instances.items() if i.scheme is found.schemes["g"]]
    assert sorted(show(i.images[0]) for i in uses) == ["bool", "int32"]


def test_definitions_are_inferred_after_those_that_they_use():
    uses = {"a": ["b"], "b": ["c", "a"], "c": ["d"], "d": [], "e": ["e", "a"]}
    order = components(uses, set())
    assert [sorted(group) for group in order] == [["d"], ["c"], ["a", "b"], ["e"]]
    assert [sorted(g) for g in components(uses, {"b"})] == [["a"], ["d"], ["c"], ["b"], ["e"]]

"""Algebraic data types and matching."""
# ruff: noqa: E501  # a program is a line

import numpy as np

from .program import F, Program, Value, values

LIST = "type List[A] { Cons(A, List[A]), Nil, }\n"
OPTION = "type Option[A] { Some(A), None, }\n"
TREE = "type Tree[A] { Leaf, Node(Tree[A], A, Tree[A]), }\n"
EITHER = "type Either[A, B] { Left(A), Right(B), }\n"
MAP = "def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] { match (%l) { Cons(%h, %t) => Cons(%f(%h), @map(%f, %t)), Nil => Nil, } }\n"
FOLDR = "def @foldr[A, B](%f: fn (A, B) -> B, %z: B, %l: List[A]) -> B { match (%l) { Cons(%h, %t) => %f(%h, @foldr(%f, %z, %t)), Nil => %z, } }\n"
APPEND = "def @append[A](%a: List[A], %b: List[A]) -> List[A] { match (%a) { Cons(%h, %t) => Cons(%h, @append(%t, %b)), Nil => %b, } }\n"
SHAPE = "type Shape { Circle(float32), Square(float32), Box(float32, float32), Point, }\n"
LAMBDA = "type Term { Var(int32), Lam(Term[]), App(Term[], Term[]), }\n"


def tree(*entries):
    """A search tree of distinct numbers, by inserting them in order."""

    def insert(t, x):
        if t.constructor == "Leaf":
            return Value("Node", t, x, t)
        left, y, right = t.fields
        return Value("Node", insert(left, x), y, right) if x < y else Value("Node", left, y, insert(right, x))

    out = Value("Leaf")
    for x in entries:
        out = insert(out, x)
    return out


PROGRAMS = [
    Program(
        "a list from numbers",
        LIST
        + "def @upto(%n: int32) -> List[int32] { if (%n == 0) { Nil } else { Cons(%n, @upto(%n - 1)) } }\ndef @main(%n: int32) { @upto(%n) }",
        (3,),
        values(3, 2, 1),
    ),
    Program("an empty list", LIST + "def @main() -> List[float32] { Nil }", (), values()),
    Program(
        "length, of lists of two types",
        LIST
        + "def @length[A](%l: List[A]) -> int32 { match (%l) { Cons(_, %t) => 1 + @length(%t), Nil => 0, } }\ndef @main(%l: List[int32]) { (@length(%l), @length(Cons(True, Nil))) }",
        (values(5, 6, 7),),
        (3, 1),
    ),
    Program(
        "map and fold",
        LIST
        + MAP
        + FOLDR
        + "def @main(%l: List[int32]) { @foldr(fn (%x: int32, %s: int32) -> int32 { %x + %s * 10 }, 0, @map(fn (%x: int32) -> int32 { %x + 1 }, %l)) }",
        (values(1, 2, 3),),
        432,
    ),
    Program(
        "a map that changes the type",
        LIST + MAP + "def @main(%l: List[int32]) { @map(fn (%x: int32) -> (bool, int32) { (%x > 1, %x * %x) }, %l) }",
        (values(1, 2),),
        values((False, 1), (True, 4)),
    ),
    Program(
        "reverse with an accumulator",
        LIST
        + "def @rev[A](%l: List[A], %a: List[A]) -> List[A] { match (%l) { Cons(%h, %t) => @rev(%t, Cons(%h, %a)), Nil => %a, } }\ndef @main(%l: List[int32]) { @rev(%l, Nil) }",
        (values(1, 2, 3),),
        values(3, 2, 1),
    ),
    Program(
        "lists of lists",
        LIST
        + MAP
        + "def @main(%l: List[List[int32]]) { @map(fn (%i: List[int32]) -> List[int32] { Cons(0, %i) }, %l) }",
        (values(values(1), values()),),
        values(values(0, 1), values(0)),
    ),
    Program(
        "quicksort",
        LIST
        + APPEND
        + "def @filter[A](%p: fn (A) -> bool, %l: List[A]) -> List[A] { match (%l) { Cons(%h, %t) => if (%p(%h)) { Cons(%h, @filter(%p, %t)) } else { @filter(%p, %t) }, Nil => Nil, } }\ndef @main(%l: List[int32]) -> List[int32] { match (%l) { Nil => Nil, Cons(%h, %t) => @append(@main(@filter(fn (%x: int32) -> bool { %x < %h }, %t)), Cons(%h, @main(@filter(fn (%x: int32) -> bool { %x >= %h }, %t)))), } }",
        (values(3, 1, 4, 1, 5, 9, 2, 6),),
        values(1, 1, 2, 3, 4, 5, 6, 9),
    ),
    Program(
        "zip to the shorter",
        LIST
        + "def @zip[A, B](%a: List[A], %b: List[B]) -> List[(A, B)] { match ((%a, %b)) { (Cons(%x, %s), Cons(%y, %t)) => Cons((%x, %y), @zip(%s, %t)), _ => Nil, } }\ndef @main(%a: List[int32], %b: List[bool]) { @zip(%a, %b) }",
        (values(1, 2, 3), values(True, False)),
        values((1, True), (2, False)),
    ),
    Program(
        "options",
        OPTION
        + "def @safe(%a: int32, %b: int32) -> Option[int32] { if (%b == 0) { None } else { Some(%a / %b) } }\ndef @or[A](%o: Option[A], %d: A) -> A { match (%o) { Some(%x) => %x, None => %d, } }\ndef @main(%b: int32) { (@or(@safe(7, %b), -1), @safe(7, %b)) }",
        (0,),
        (-1, Value("None")),
    ),
    Program(
        "an option of an option",
        OPTION
        + "def @join[A](%o: Option[Option[A]]) -> Option[A] { match (%o) { Some(Some(%x)) => Some(%x), _ => None, } }\ndef @main(%o: Option[Option[int32]]) { @join(%o) }",
        (Value("Some", Value("Some", 4)),),
        Value("Some", 4),
    ),
    Program(
        "either",
        LIST
        + EITHER
        + "def @sum(%l: List[Either[int32, float32]], %a: (int32, float32)) -> (int32, float32) { match (%l) { Cons(Left(%i), %t) => @sum(%t, (%a.0 + %i, %a.1)), Cons(Right(%x), %t) => @sum(%t, (%a.0, %a.1 + %x)), Nil => %a, } }\ndef @main(%l: List[Either[int32, float32]]) { @sum(%l, (0, 0f)) }",
        (values(Value("Left", 1), Value("Right", 0.5), Value("Left", 2)),),
        (3, 0.5),
    ),
    Program(
        "insertion into a tree",
        TREE
        + "def @insert(%t: Tree[int32], %x: int32) -> Tree[int32] { match (%t) { Leaf => Node(Leaf, %x, Leaf), Node(%l, %y, %r) => if (%x < %y) { Node(@insert(%l, %x), %y, %r) } else { Node(%l, %y, @insert(%r, %x)) }, } }\ndef @main(%t: Tree[int32], %x: int32) { @insert(%t, %x) }",
        (tree(4, 2, 6), 5),
        tree(4, 2, 6, 5),
    ),
    Program(
        "a tree in order",
        LIST
        + TREE
        + APPEND
        + "def @flat[A](%t: Tree[A]) -> List[A] { match (%t) { Leaf => Nil, Node(%l, %x, %r) => @append(@flat(%l), Cons(%x, @flat(%r))), } }\ndef @main(%t: Tree[int32]) { @flat(%t) }",
        (tree(4, 2, 6, 1, 3),),
        values(1, 2, 3, 4, 6),
    ),
    Program(
        "the depth of a tree",
        TREE
        + "def @depth[A](%t: Tree[A]) -> int32 { match (%t) { Leaf => 0, Node(%l, _, %r) => 1 + maximum(@depth(%l), @depth(%r)), } }\ndef @main(%t: Tree[int32]) { @depth(%t) }",
        (tree(1, 2, 3),),
        3,
    ),
    Program(
        "constructors of four kinds",
        SHAPE
        + "def @area(%s: Shape[]) -> float32 { match (%s) { Circle(%r) => 3f * %r * %r, Square(%a) => %a * %a, Box(%a, %b) => %a * %b, Point => 0f, } }\ndef @main(%s: Shape[], %t: Shape[]) { (@area(%s), @area(%t), @area(Point)) }",
        (Value("Circle", 2.0), Value("Box", 2.0, 3.0)),
        (12.0, 6.0, 0.0),
    ),
    Program(
        "the first pattern that fits",
        OPTION
        + "def @main(%p: (Option[int32], Option[int32])) { match (%p) { (Some(%a), Some(%b)) => %a * 10 + %b, (Some(%a), _) => %a, (_, Some(%b)) => -%b, (None, None) => 0, } }",
        ((Value("None"), Value("Some", 5)),),
        -5,
    ),
    Program(
        "wildcards and variables",
        LIST
        + "def @main(%l: List[int32]) { match (%l) { Cons(_, Cons(%s, Cons(_, %rest))) => match (%rest) { Nil => %s, _ => -1, }, Cons(%f, _) => %f * 100, Nil => 0, } }",
        (values(7, 8),),
        700,
    ),
    Program(
        "match? finds an arm",
        LIST + "def @main(%l: List[int32]) { match? (%l) { Cons(%h, Nil) => %h, Nil => 0, } }",
        (values(9),),
        9,
    ),
    Program(
        "match? finds none",
        LIST + "def @main(%l: List[int32]) { match? (%l) { Cons(%h, Nil) => %h, Nil => 0, } }",
        (values(1, 2),),
        raises=(ValueError, "no pattern"),
    ),
    Program(
        "a constructor as a function",
        LIST + OPTION + MAP + "def @main(%l: List[int32]) { @map(Some, %l) }",
        (values(1, 2),),
        values(Value("Some", 1), Value("Some", 2)),
    ),
    Program(
        "a list of tensors",
        LIST
        + "def @total(%l: List[Tensor[(2), float32]], %z: Tensor[(2), float32]) -> Tensor[(2), float32] { match (%l) { Cons(%h, %t) => @total(%t, %z * %h), Nil => %z, } }\ndef @main(%l: List[Tensor[(2), float32]], %x: Tensor[(2), float32]) { @total(%l, %x) }",
        (values(np.array([1, 2], F), np.array([3, 4], F)), np.array([2, 2], F)),
        np.array([6, 16], F),
    ),
    Program(
        "a result with tensors in it",
        OPTION + "def @main(%x: Tensor[(2), float32]) { Some((%x, %x * %x)) }",
        (np.array([1, 3], F),),
        Value("Some", (np.array([1, 3], F), np.array([1, 9], F))),
    ),
    Program(
        "types that mention each other",
        "type Even { Zero, OddNext(Odd[]), }\ntype Odd { EvenNext(Even[]), }\ndef @even(%e: Even[]) -> int32 { match (%e) { Zero => 0, OddNext(%o) => 1 + @odd(%o), } }\ndef @odd(%o: Odd[]) -> int32 { match (%o) { EvenNext(%e) => 1 + @even(%e), } }\ndef @main(%e: Even[]) { @even(%e) }",
        (Value("OddNext", Value("EvenNext", Value("Zero"))),),
        2,
    ),
    Program(
        "a rose tree",
        LIST
        + "type Rose[A] { Rose(A, List[Rose[A]]), }\ndef @sum(%t: Rose[int32]) -> int32 { match (%t) { Rose(%x, %ts) => %x + @all(%ts), } }\ndef @all(%l: List[Rose[int32]]) -> int32 { match (%l) { Cons(%h, %t) => @sum(%h) + @all(%t), Nil => 0, } }\ndef @main(%t: Rose[int32]) { @sum(%t) }",
        (Value("Rose", 1, values(Value("Rose", 2, values()), Value("Rose", 3, values(Value("Rose", 4, values()))))),),
        10,
    ),
    Program(
        "de Bruijn terms",
        LAMBDA
        + "def @size(%t: Term[]) -> int32 { match (%t) { Var(_) => 1, Lam(%b) => 1 + @size(%b), App(%f, %a) => @size(%f) + @size(%a), } }\ndef @main(%t: Term[]) { @size(%t) }",
        (Value("App", Value("Lam", Value("Var", 0)), Value("Lam", Value("App", Value("Var", 0), Value("Var", 0)))),),
        5,
    ),
    Program(
        "a tree that shares its parts",
        TREE
        + "def @full(%n: int32) -> Tree[int32] { if (%n == 0) { Leaf } else { let %t = @full(%n - 1); Node(%t, %n, %t) } }\ndef @sum(%t: Tree[int32]) -> int32 { match (%t) { Leaf => 0, Node(%l, %x, %r) => @sum(%l) + %x + @sum(%r), } }\ndef @main(%n: int32) { @sum(@full(%n)) }",
        (10,),
        sum(k * 2 ** (10 - k) for k in range(1, 11)),
    ),
    Program(
        "a list of functions",
        LIST
        + "def @all(%l: List[fn (int32) -> int32], %x: int32) -> int32 { match (%l) { Cons(%f, %t) => @all(%t, %f(%x)), Nil => %x, } }\ndef @main(%k: int32) { @all(Cons(fn (%x: int32) -> int32 { %x + %k }, Cons(fn (%x: int32) -> int32 { %x * %x }, Nil)), 3) }",
        (2,),
        25,
    ),
    Program(
        "a stream as a function in a record",
        "type Stream[A] { More(A, fn () -> Stream[A]), }\ndef @from(%n: int32) -> Stream[int32] { More(%n, fn () -> Stream[int32] { @from(%n + 1) }) }\ndef @nth(%s: Stream[int32], %k: int32) -> int32 { match (%s) { More(%x, %f) => if (%k == 0) { %x } else { @nth(%f(), %k - 1) }, } }\ndef @main(%k: int32) { @nth(@from(10), %k) }",
        (5,),
        15,
    ),
    Program(
        "shape in a field",
        "type Pair { Pair(Tensor[(2, 2), float32], Tensor[(2), float32]), }\ndef @main(%p: Pair[]) { match (%p) { Pair(%m, %v) => %m * %v, } }",
        (Value("Pair", np.ones((2, 2), F), np.array([1, 2], F)),),
        np.array([[1, 2], [1, 2]], F),
    ),
    Program(
        "a recursion makes a list of what no value is of",
        LIST + OPTION + MAP + "def @main(%l: List[int32]) { @map(fn (%x: int32) { None }, %l) }",
        (values(5, 6),),
        values(Value("None"), Value("None")),
    ),
    Program(
        "nested lists that are always empty",
        LIST
        + "def @nils(%n: int32) { if (%n < 1) { Nil } else { Cons((Nil, 1), @nils(%n - 1)) } }\ndef @main(%n: int32) { @nils(%n) }",
        (2,),
        values((Value("Nil"), 1), (Value("Nil"), 1)),
    ),
]

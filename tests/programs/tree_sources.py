"""Programs on algebraic data types, plain Python: classes, functions, and arguments for them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Optional, Union

import numpy as np

from myia_relay import Float, Float32, Int, Tensor


@dataclass(frozen=True)
class Leaf:
    value: float

    def size(self):
        return 1

    def __add__(self, x):
        return Leaf(self.value + x)

    def scaled(self, k=2.0):
        return Leaf(self.value * k)

    @property
    def total(self):
        return self.value


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree

    def size(self):
        return self.left.size() + self.right.size()

    def __add__(self, x):
        return Node(self.left + x, self.right + x)

    def scaled(self, k=2.0):
        return Node(self.left.scaled(k), self.right.scaled(k))

    @property
    def total(self):
        return self.left.total + self.right.total


Tree = Leaf | Node


@dataclass(frozen=True)
class Cell:
    head: int
    tail: Optional[Cell] = None  # noqa: UP045


@dataclass(frozen=True)
class Search:
    key: int
    left: Search | None
    right: Search | None


class Expr:
    """A base class that is no dataclass."""

    def describe(self):
        return 0


@dataclass(frozen=True)
class Num(Expr):
    value: float

    def describe(self):
        return 1


@dataclass(frozen=True)
class Add(Expr):
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Mul(Expr):
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Neg(Expr):
    inner: Expr


@dataclass(frozen=True)
class Var(Expr):
    index: int


@dataclass(frozen=True)
class Let(Expr):
    value: Expr
    body: Expr


# Two families that refer to each other.


@dataclass(frozen=True)
class Lit:
    value: int


@dataclass(frozen=True)
class Block:
    statement: Statement
    result: Term


Term = Union["Lit", "Block"]


@dataclass(frozen=True)
class Skip:
    pass


@dataclass(frozen=True)
class Then:
    first: Statement
    second: Statement


@dataclass(frozen=True)
class Run:
    term: Term


Statement = Union[Skip, Then, Run]  # noqa: UP007


@dataclass(frozen=True)
class Point:
    x: float
    y: float


@dataclass(frozen=True)
class Mixed:
    """Fields of many kinds."""

    flag: bool
    count: Int
    small: Float32
    where: Point
    pair: tuple[float, int]
    vector: Tensor[Float, (3,)]
    next: Mixed | None
    ratio: Float = 0.5


SMALL_DEFAULT = Node(Leaf(3.0), Leaf(9.0))


def total(t: Tree):
    match t:
        case Leaf(value):
            return value
        case Node(left, right):
            return total(left) + total(right)


def depth(t):
    if isinstance(t, Leaf):
        return 0
    return 1 + max(depth(t.left), depth(t.right))


def build(d, x):
    return Leaf(x) if d == 0 else Node(build(d - 1, x * 2.0), build(d - 1, x + 1.0))


def mirror(t):
    if isinstance(t, Leaf):
        return t
    return Node(mirror(t.right), mirror(t.left))


def mapped(f, t):
    match t:
        case Leaf(v):
            return Leaf(f(v))
        case Node(l, r):
            return Node(mapped(f, l), mapped(f, r))


def squares(t, k):
    return mapped(lambda v: v * v + k, t)


def leftmost(t):
    while isinstance(t, Node):
        t = t.left
    return t.value


def leftmost_leaf(t):
    while not isinstance(t, Leaf):
        t = t.left
    return t


def grown(t, n):
    for i in range(n):
        t = Node(t, Leaf(i * 1.0))
    return t


def build_and_drop(n, d):
    s = 0.0
    for i in range(n):
        t = build(d, i * 0.5)
        s += total(mirror(t))
    return s


def sizes(t):
    return t.size(), (t + 1.0).total, t.scaled().total, t.scaled(3.0).size()


def nested(t):
    match t:
        case Node(Leaf(a), Leaf(b)) if a > b:
            return a - b
        case Node(Leaf(a), Leaf(_) as other):
            return a + other.value
        case Node(left=Node(Leaf(a), _) as inner, right=r):
            return a + nested(inner) * nested(r)
        case Node(l, _):
            return nested(l)
        case Leaf(value=a):
            return -a


def or_patterns(e):
    match e:
        case Num(0.0) | Neg(Num(0.0)):
            return 0.0
        case Add() | Mul():
            return 2.0
        case Neg(Add(Num(x), _)):
            return x
        case _:
            return 1.5


def pair_of(t):
    return (t, total(t)), {"again": t, "mirror": mirror(t)}


def chosen(t, u, flag):
    best = t if flag else u
    both = (t, u)
    return best, both[0], total(both[1])


def by_index(t, u, i):
    return (t, u)[i]


def in_closure(t):
    def inside(k):
        return total(t) * k

    return inside(2.0) + inside(3.0)


def tagged(t, c):
    """Data in tuples through a loop."""
    state = (t, 0.0)
    while c is not None:
        t, s = state
        state = (mirror(t), s + total(t) * c.head)
        c = c.tail
    return state


def evaluate(e, env):
    match e:
        case Num(v):
            return v
        case Add(a, b):
            return evaluate(a, env) + evaluate(b, env)
        case Mul(a, b):
            return evaluate(a, env) * evaluate(b, env)
        case Neg(a):
            return -evaluate(a, env)
        case Var(i):
            return env[i]
        case Let(v, b):
            return evaluate(b, (evaluate(v, env), env[0]))


def simplify(e):
    """Rewriting: x + 0, x * 1, --x."""
    if isinstance(e, Add):
        a, b = simplify(e.left), simplify(e.right)
        if isinstance(a, Num) and a.value == 0.0:
            return b
        return Add(a, b)
    if isinstance(e, Mul):
        a, b = simplify(e.left), simplify(e.right)
        if isinstance(b, Num) and b.value == 1.0:
            return a
        return Mul(a, b)
    if isinstance(e, Neg):
        match simplify(e.inner):
            case Neg(inner):
                return inner
            case other:
                return Neg(other)
    if isinstance(e, Let):
        return Let(simplify(e.value), simplify(e.body))
    return e


def derivative(e):
    match e:
        case Num():
            return Num(0.0)
        case Var(i):
            return Num(1.0 if i == 0 else 0.0)
        case Add(a, b):
            return Add(derivative(a), derivative(b))
        case Mul(a, b):
            return Add(Mul(derivative(a), b), Mul(a, derivative(b)))
        case Neg(a):
            return Neg(derivative(a))
        case _:
            raise ValueError("no derivative")


def kinds(e):
    return e.describe(), isinstance(e, Add | Mul), isinstance(e, (Num, Var)), isinstance(e, Expr), isinstance(e, Leaf)


def length(c: Optional[Cell]):  # noqa: UP045
    n = 0
    while c is not None:
        n += 1
        c = c.tail
    return n


def sum_list(c: Cell | None):
    return c.head + sum_list(c.tail) if c else 0


def range_list(n):
    return None if n == 0 else Cell(n, range_list(n - 1))


def reversed_list(c):
    out = None
    while c:
        out = Cell(c.head, out)
        c = c.tail
    return out


def appended(a, b):
    return b if a is None else Cell(a.head, appended(a.tail, b))


def quicksorted(c: Cell | None):
    if c is None:
        return None
    pivot, low, high = c.head, None, None
    rest = c.tail
    while rest is not None:
        if rest.head < pivot:
            low = Cell(rest.head, low)
        else:
            high = Cell(rest.head, high)
        rest = rest.tail
    return appended(quicksorted(low), Cell(pivot, quicksorted(high)))


def nth(c, n):
    for _ in range(n):
        c = c.tail
    return c.head


def insert(t: Search | None, key):
    if t is None:
        return Search(key, None, None)
    if key < t.key:
        return replace(t, left=insert(t.left, key))
    if key > t.key:
        return replace(t, right=insert(t.right, key))
    return t


def from_keys(n):
    t = None
    x = 17
    for _ in range(n):
        x = x * 31 % 101
        t = insert(t, x)
    return t


def contains(t: Search | None, key):
    while t is not None:
        if key == t.key:
            return True
        t = t.left if key < t.key else t.right
    return False


def in_order(t: Search | None, out: Cell | None):
    if t is None:
        return out
    return in_order(t.left, Cell(t.key, in_order(t.right, out)))


def sort_by_tree(n):
    return in_order(from_keys(n), None)


def run_statement(s, x):
    match s:
        case Skip():
            return x
        case Then(a, b):
            return run_statement(b, run_statement(a, x))
        case Run(t):
            return x * 3 + run_term(t, x)


def run_term(t, x):
    match t:
        case Lit(v):
            return v
        case Block(s, r):
            return run_statement(s, x) + run_term(r, x)


def rename(t):
    match t:
        case Lit(v):
            return Block(Run(Lit(v + 1)), t)
        case Block(s, r):
            return Block(Then(Skip(), s), rename(r))


def equal(a, b):
    return a == b, a != b


def is_null(c):
    return c is None, c is not None, not c, c == None, bool(c)  # noqa: E711


def mixed(m: Mixed | None):
    n, s = 0, np.zeros(3, np.float32)
    scale = 0.0
    while m is not None:
        if m.flag:
            s = s + m.vector * m.small
        n += m.count + m.pair[1]
        scale += m.where.x * m.pair[0] + m.where.y + m.ratio
        m = m.next
    return n, s, scale


def remade(m):
    return Mixed(not m.flag, m.count + 1, m.small, Point(m.where.y, m.where.x), (1.5, 2), m.vector * 2, m)


def field_of_either(e):
    return e.left


def method_of_some(t):
    return t.total


def find(t: Search | None, key):
    while t and t.key != key:
        t = t.left if key < t.key else t.right
    return t and t.key, t is None or t.left is None, (t or SEARCH).key


def guarded(t):
    if isinstance(t, Leaf) and t.value > 0.0:
        return t.value
    x = t.left if isinstance(t, Node) else t
    return -x.value if isinstance(x, Leaf) else 100.0


def listed(t):
    many = [mirror(u) for u in (t, Leaf(1.0))]
    return many, {"t": t == many[1], "in": t in (Leaf(1.0), t)}


def by_default(x, t=SMALL_DEFAULT):
    def inner(u):
        return u.value if isinstance(u, Leaf) else inner(u.left) * x

    return inner(t)


@dataclass(frozen=True)
class Button:
    name_length: int
    next: Button | None

    def __call__(self, k):
        return self.name_length * k

    def follow(self, k):
        return self.next(k) if self.next else -k


def clicks(b: Button | None, k):
    return b(k) + b.follow(1 // k)


def no_case(t):
    match t:
        case Node(_, _):
            return 1.0


def printed(t):
    print(t, "has", total(t))
    return total(t)


def refused(t):
    assert total(t) > 100.0, f"too small: {t}"
    return t


def summed_floats(c: Cell | None):
    s = 0.0
    while c is not None:
        s += math.sqrt(c.head)
        c = c.tail
    return s


X = np.arange(3, dtype=np.float32)
SMALL = Node(Leaf(3.0), Leaf(9.0))
TALL = Node(Node(Leaf(3.0), Leaf(9.0)), Node(Leaf(7.5), Node(Leaf(1.0), Leaf(4.25))))
SHARED = Node(TALL, Node(SMALL, TALL))
ONE = Leaf(-2.5)
TREES = [SMALL, TALL, SHARED, ONE]
EMPTY, LIST = None, Cell(3, Cell(1, Cell(2, Cell(1))))
E1 = Add(Mul(Var(0), Num(1.0)), Neg(Neg(Num(2.0))))
E2 = Let(Add(Var(0), Num(1.0)), Mul(Var(0), Var(1)))
SEARCH = Search(5, Search(2, None, Search(3, None, None)), Search(9, None, None))
TERM = Block(Then(Run(Lit(2)), Skip()), Block(Run(Block(Skip(), Lit(5))), Lit(7)))
MIXED = Mixed(False, 2, np.float32(0.5), Point(1.0, 2.0), (0.25, 7), X + 1, None)
MIXED2 = Mixed(True, 1, np.float32(1.5), Point(3.0, -2.0), (2.0, -7), X, MIXED, 4.0)

BUTTON = Button(2, Button(3, None))

CASES = [
    (by_default, (2.0,)), *[(find, (SEARCH, k)) for k in (3, 4, 5)],
    *[(f, (t,)) for f in (guarded, listed) for t in (TALL, ONE, Leaf(1.0), SMALL)],
    (clicks, (BUTTON, 1)), (clicks, (BUTTON.next, 1)),
    *[(f, (t,)) for f in (total, depth, mirror, leftmost, leftmost_leaf, sizes, pair_of, in_closure, nested) for t in TREES],
    (build, (0, 1.0)), (build, (4, 1.5)), (squares, (TALL, 0.5)), (grown, (ONE, 0)), (grown, (SMALL, 5)), (build_and_drop, (5, 3)),
    *[(chosen, (TALL, ONE, flag)) for flag in (True, False)], *[(by_index, (TALL, ONE, i)) for i in (0, 1, -1)],
    (tagged, (TALL, LIST)), (tagged, (ONE, None)),
    *[(f, (e,)) for f in (or_patterns, simplify, kinds) for e in (E1, E2, Num(0.0), Neg(Num(0.0)), Neg(Add(Num(4.0), Num(1.0))))],
    *[(evaluate, (e, (3.0, 4.0))) for e in (E1, E2, Mul(E2, E1))], (derivative, (Mul(E1, Var(0)),)),
    *[(f, (c,)) for f in (length, sum_list, reversed_list, quicksorted, is_null, summed_floats) for c in (EMPTY, LIST)],
    (range_list, (0,)), (range_list, (6,)), (appended, (LIST, LIST)), (appended, (None, LIST)), (nth, (LIST, 2)),
    *[(insert, (SEARCH, k)) for k in (4, 5, 10)], (insert, (None, 1)), (from_keys, (0,)), (from_keys, (12,)), (sort_by_tree, (30,)),
    *[(contains, (SEARCH, k)) for k in (3, 4)], (contains, (None, 4)),
    (run_term, (TERM, 1)), (run_statement, (Then(Skip(), Run(TERM)), 2)), (rename, (TERM,)),
    (equal, (TALL, SHARED.left)), (equal, (TALL, mirror(mirror(TALL)))), (equal, (TALL, SHARED)), (equal, (ONE, SMALL)),
    (equal, (LIST, reversed_list(LIST))), (equal, (LIST, None)), (equal, (E1, E1)), (equal, (TERM, rename(TERM))),
    (equal, (LIST, 3)),
    (mixed, (MIXED2,)), (mixed, (None,)), (remade, (MIXED2,)),
    (field_of_either, (E1,)), (no_case, (SMALL,)), (no_case, (ONE,)), (method_of_some, (TALL,)), (refused, (build(5, 1.0),)),
]  # fmt: skip

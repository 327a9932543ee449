"""Small functions, one construct or trap each, with inputs: their graphs must do what CPython does."""

# The point of many of these is what a linter warns of.
# ruff: noqa: B007, B011, B023, C416, C417, E731, F541, F601, F821, F841, UP037

import math
from dataclasses import dataclass

import numpy as np

CASES = []


def case(*inputs):
    """Register the decorated function with several tuples of arguments."""

    def register(fn):
        CASES.append((fn, inputs))
        return fn

    return register


@dataclass(frozen=True)
class Leaf:
    value: int


@dataclass(frozen=True)
class Node:
    left: object
    right: object


@dataclass(frozen=True)
class Point:
    x: float
    y: float

    def norm(self):
        return math.sqrt(self.x**2 + self.y**2)


class Colour:
    RED = 1
    GREEN = 2


SCALE = 3
EVENTS = []


def note(x):
    EVENTS.append(x)
    return x


# Operators ---------------------------------------------------------------------------------------------------------


@case((7, 2), (-7, 2), (7, -2))
def operators(a, b):
    return a + b, a - b, a * b, a / b, a // b, a % b, a**2, -a, +a, ~a, a & b, a | b, a ^ b, a << 1, a >> 1, -7 // 2


@case((1, 2), (2, 2), (3, 2))
def comparisons(a, b):
    return a < b, a <= b, a > b, a >= b, a == b, a != b, a is None, a is not None, a in (1, 3), b not in (1, 3), not a


@case((1, 2, 3), (3, 2, 1), (1, 1, 1), (0, 5, 4))
def chained(a, b, c):
    return note(a) < note(b) <= note(c) != 5


@case((0, 0), (0, 3), (2, 0), (2, 3))
def operands(a, b):
    return a and b, a or b, note(a) and note(b) or note(7), not a or b, a and (b or 9) and 4


@case((0,), (5,))
def ternary(a):
    return (a if a else note("none")), 1 if a > 3 else 2 if a > 1 else 3


@case((2,), (0,))
def same_value_twice(a):
    b = a
    return b if note(a) else a


@case(((1, 2, 3, 4, 5),), ([5, 4, 3, 2],))
def subscripts(x):
    return x[0], x[-1], x[1:], x[:2], x[::2], x[::-1], x[1:3:1]


@case((np.arange(12.0).reshape(3, 4),))
def array_subscripts(x):
    return np.sum(x[1, ::-1]), x[..., 0].sum(), x[:, None].shape, x[(0, 1)], x.T.shape, (x @ x.T)[0, 0]


@case((2.0,))
def attributes(x):
    p = Point(x, y=x + 1)
    return p.x, p.y, p.norm(), math.pi, Colour.RED


@case((3,))
def literals(x):
    return (), (x,), [], [x, *[1, 2]], (*range(x), 9), {"a": x, "b": [x], "a": 4}, None, ..., "text", 1.5, True


@case((1.25, 3))
def format_strings(x, n):
    return f"x = {x}, {x:.1f} {n!r:>5} {{}} {n + 1} {x=}", f"plain", f"a{n}"


@case((2,))
def walrus(x):
    y = (z := x + 1) * z
    if (w := y) > 3 and (v := w + 1):
        return y, z, w, v
    return y, z, w


# Calls and functions -----------------------------------------------------------------------------------------------


def takes_all(a, b=2, *rest, c, d=4, **others):
    return a, b, rest, c, d, others


@case((1,))
def calls(x):
    pair, named = (x, 8), {"c": 5, "e": 6}
    return takes_all(x, c=3), takes_all(*pair, 9, 10, c=x), takes_all(x, **named), takes_all(*pair, *pair, d=1, **named)


@case((1, 5), (1,), ())
def defaults(a=3, b=SCALE):
    return a + b


@case((1, 2, 3, 4), (1,))
def variadic(a, *rest):
    total = a
    for r in rest:
        total += r
    return total, rest


@case((3, 4))
def factory(a, b):
    def make(n):
        def add(x, k=n):
            return x + n * k + SCALE

        return add

    return make(a)(b), make(b)(a, k=2)


@case((5,), (0,))
def inner_recursion(n):
    def fact(k):
        return 1 if k == 0 else k * fact(k - 1)

    return fact(n)


@case((10,), (7,))
def mutual_recursion(n):
    def even(k):
        return True if k == 0 else odd(k - 1)

    def odd(k):
        return False if k == 0 else even(k - 1)

    return even(n), odd(n)


@case((3,))
def mutual_recursion_in_a_loop(n):
    out = 0
    for i in range(n):

        def even(k):
            return True if k == 0 else odd(k - 1)

        def odd(k):
            return False if k == 0 else even(k - 1)

        out = out * 2 + even(i)
    return out


@case((6,))
def recursive_lambda(n):
    fact = lambda k: 1 if k == 0 else k * fact(k - 1)
    return fact(n)


@case((True,), (False,))
def bound_after_definition(flag):
    def reader():
        return value + 1

    if flag:
        value = 5
    else:
        value = 7
    return reader()


@case((3,))
def lambdas(x):
    f, g = lambda a: a + x, lambda a, b=x: a * b
    return f(1), g(2), (lambda: x)(), (lambda *args, k=1: (args, k))(1, 2)


@case((4,))
def default_freezes_loop_variable(n):
    fs = []
    for i in range(n):
        fs.append(lambda x, i=i: x + i)
    return [f(10) for f in fs]


@case((4,))
def closure_used_within_its_turn(n):
    total = 0
    for i in range(n):
        step = i * 2

        def bump(x):
            return x + step + i

        total = bump(total)
    return total


@case((4,))
def lambda_given_away_within_its_turn(n):
    total = 0
    for i in range(n):
        total += sum(map(lambda v: v * i, [1, 2]))
    return total


def twice(f):
    return lambda x: f(f(x))


@case((3,))
def decorated_inner(x):
    @twice
    def add(y):
        return y + x

    return add(1)


@case((3,))
def nonlocal_read(x):
    def inner():
        nonlocal x
        return x + 1

    return inner()


@case((3,))
def three_levels(x):
    def a():
        def b():
            def c():
                return x + y

            return c()

        y = 2
        return b() + y

    return a()


@case((3,))
def rebound_before_capture(x):
    y = 1
    y = y + x

    def inner():
        return y

    return inner()


@case((3,))
def rebound_when_the_closure_is_gone(x):
    y = 1
    z = (lambda: y + x)()
    y = 2
    return y + z


# Branches and loops ------------------------------------------------------------------------------------------------


@case((1,), (-1,), (0,))
def early_return(x):
    if x > 0:
        return "positive"
    elif x < 0:
        return "negative"
    return "zero"


@case((1,), (-1,))
def falls_off(x):
    if x > 0:
        return x


@case((1,), (-1,))
def bound_on_one_branch(x):
    if x > 0:
        y = x
    return y


@case((5,), (0,))
def loop_variable_afterwards(n):
    for i in range(n):
        pass
    return i


@case((3,), (10,))
def while_else(n):
    k = 0
    while k < n:
        if k == 5:
            break
        k += 1
    else:
        return "else", k
    return "break", k


@case((3,), (10,))
def for_else(n):
    for i in range(n):
        if i == 7:
            found = i
            break
    else:
        found = -1
    return found


@case((20,), (3,))
def return_from_two_loops(n):
    for i in range(n):
        for j in range(i):
            if i * j == 12:
                return i, j
    return None


@case((20,), (1,))
def while_true(n):
    k = 0
    while True:
        k += 3
        if k > n:
            return k


@case((20,), (1,))
def while_true_with_break(n):
    k = 0
    while True:
        k += 3
        if k % 2:
            continue
        if k > n:
            break
    return k


@case((7,), (0,))
def while_walrus(n):
    out = 0
    while (k := n - out) > 2 and (j := k):
        out += 1
        if out == 4:
            break
    else:
        out += 100
    return out, k


@case((6,))
def one_name_two_types(n):
    for i in range(n):
        t = i + 1
    t = "text"
    for i in range(n):
        t = (i, i)
        u = t[0]
    return u


@case((0,), (3,))
def zero_trip(n):
    x = 1
    while n > 0:
        x, n = x * 2, n - 1
    return x


@case((5,))
def loop_over_things(n):
    out = []
    for i, (a, *b) in enumerate(zip(range(n), "abcde", (1, 2, 3, 4, 5))):
        out.append((i, a, b))
    for c in reversed([1, 2]):
        out.append(c)
    return out


@case((4,))
def condition_with_effects(n):
    while note(n) > 0 and note(n) != 2:
        n -= 1
    return n


@case((1,), (2,), (3,), (4,), (5,))
def guards(x):
    if x == 1:
        return note("one")
    if x == 2:
        y = "two"
    elif x == 3:
        return "three"
    else:
        if x == 5:
            raise KeyError("five")
        y = "other"
    note(y)
    return y


@case((-1,), (1,), (20,))
def raising(x):
    assert x > 0, f"not positive: {note(x)}"
    if x > 10:
        raise ArithmeticError(f"too large: {x}")
    return x


@case((1,), (2,))
def unreachable_end(x):
    if x == 1:
        return "one"
    else:
        assert False, "never"


@case((3,))
def dead_code(x):
    return x
    return y


@case((5,))
def flow_through_expression(n):
    total = 0
    for i in range(n):
        total += 1 if i % 2 else (10 if i > 2 else 100)
        last = i if i < 3 else last
    return total, last


# Assignment ---------------------------------------------------------------------------------------------------------


@case(((1, 2, 3),))
def unpacking(triple):
    a, *b = triple
    first, (second, third) = a, (b[0], b[1])
    second, third = third, second
    [x, y], z = (1, 2), 3
    *p, q = triple
    (r,) = (4,)
    s = t = r
    return a, b, first, second, third, x, y, z, p, q, s, t


@case(((1, 2),), ((1,),))
def unpacking_too_few(pair):
    a, b = pair
    return a + b


@case((3,))
def annotated(x: int) -> int:
    y: int = x + 1
    z: "int"
    z = y
    return z


@case((3,))
def augmented(x):
    y = x
    y += 1
    y -= 2
    y *= 5
    y /= 2
    y //= 1
    y **= 2
    y %= 7
    return y


@case((3,))
def item_assignment(n):
    x = np.zeros(n)
    x[0] = 1.0
    x[1:] += np.ones(n - 1) * 2
    x[note(2)] *= 5
    y = x.copy()
    y[0] = 7
    return x, y


@case((5,))
def item_assignment_in_a_loop(n):
    x = np.zeros(n)
    for i in range(n):
        if i % 2:
            x[i] = i
        else:
            x[i] -= x[i - 1]
    return x


@case((6,))
def append(n):
    squares = []
    for i in range(n):
        if i % 2 == 1:
            squares.append(i * i)
    squares.append(-1)
    return squares


# Comprehensions -------------------------------------------------------------------------------------------------------


@case((4,))
def comprehensions(n):
    i = 100
    grid = [(i, j) for i in range(n) if i % 2 if i > 0 for j in range(i) if j != 1]
    return grid, i, sum(k * i for k in range(n)), [[k for k in range(m)] for m in range(3)], tuple(a for a, _ in grid)


@case((4,))
def comprehension_shadows_its_source(x):
    x = [x, x + 1]
    return [x * 2 for x in x]


@case((4,))
def lambda_in_comprehension(n):
    return [(lambda v: v + i)(1) for i in range(n)]


# Match
# ------------------------------------------------------------------------------------------------------------------


@case((4,), (0,))
def searches(n):
    return (
        any(note(i) > 1 for i in range(n)),
        all(note(i) < 1 for i in range(n)),
        any(note(i * j) == 2 for i in range(n) if i for j in range(n) if j != 1),
        all(note(i) or 1 / i for i in range(1, n)),
    )


TREE = Node(Node(Leaf(3), Leaf(9)), Leaf(7))


@case((TREE,), (Leaf(2),), (5,))
def match_classes(t):
    match t:
        case Leaf(value):
            return value
        case Node(l, r):
            return match_classes(l) + match_classes(r)


@case((TREE,), (Node(Leaf(1), Leaf(2)),), (Node(Leaf(1), 3),), (Leaf(4),), (4,))
def match_nested(t):
    match t:
        case Node(Leaf(1), right=Leaf(v) as leaf):
            out = ("deep", v, leaf.value)
        case Node(left=Node(), right=r):
            out = "left", r
        case Leaf(value=n) | Leaf(n) if False:
            out = n
        case Node():
            out = "node"
        case int(k):
            out = k
        case _:
            out = "other"
    return out


CASES.pop()  # alternatives that capture are refused: see test_parse_errors


@case((TREE,), (Node(Leaf(1), Leaf(2)),), (Node(Leaf(1), 3),), (Leaf(4),), (4,))
def match_deep(t):
    match t:
        case Node(Leaf(1), right=Leaf(v) as leaf):
            out = ("deep", v, leaf.value)
        case Node(left=Node(), right=r):
            out = "left", r
        case Node():
            out = "node"
        case int(k):
            out = k
        case _:
            out = "other"
    return out


@case((("circle", 2.0),), (("rect", 2, 3),), (("line",),), ((),), (3,), ([1, 2, 3, 4],))
def match_sequences(shape):
    match shape:
        case ("circle", r):
            return 3 * r * r
        case ("rect", w, h):
            return w * h
        case []:
            return "empty"
        case [first, *_, last]:
            return first, last
        case [only]:
            return only


@case((1,), (2,), (3,), (-4,), (None,), (True,), ("yes",), (9,), (12,))
def match_literals(x):
    match x:
        case None:
            return "none"
        case True:
            return "true"
        case Colour.RED | Colour.GREEN:
            return "colour"
        case -4:
            return "minus four"
        case "yes" | "no":
            return "text"
        case y if y > 10:
            return "large", y
        case 9:
            z = "nine"
        case _:
            z = "?"
    return z


@case(((1, 2),), ((3, 3),), ((5, 1),))
def match_guards(p):
    for _ in range(2):
        match p:
            case (a, b) if a < b:
                p = (b, b)
                continue
            case (a, b) if a == b:
                break
        p = (a - 1, b + 1)
    return p, a, b

"""`relay.grad` of definitions of a module."""
# ruff: noqa: E501  # a program is a line

import numpy as np

from .data import LIST, TREE
from .program import F, Program, Value, values

PROGRAMS = [
    Program("a product", "def @main(%x: float32, %y: float32) { %x * %y + %x }", (2.0, 3.0), (4.0, 2.0), wrt=(0, 1)),
    Program("a second derivative", "def @main(%x: float32) { %x * %x * %x }", (2.0,), 12.0, wrt=0, order=2),
    Program("a third derivative", "def @main(%x: float32) { exp(2f * %x) }", (0.0,), 8.0, wrt=0, order=3),
    Program("a branch", "def @main(%x: float32) { if (%x > 0f) { %x * %x } else { -%x } }", (3.0,), 6.0, wrt=0),
    Program(
        "the other branch", "def @main(%x: float32) { if (%x > 0f) { %x * %x } else { -%x } }", (-3.0,), -1.0, wrt=0
    ),
    Program(
        "a shared binding",
        "def @main(%x: float32) { %0 = tanh(%x); %0 * %0 + %0 }",
        (0.3,),
        float((2 * np.tanh(0.3) + 1) * (1 - np.tanh(0.3) ** 2)),
        wrt=0,
    ),
    Program(
        "a recursion",
        "def @power(%x: float32, %n: int32) -> float32 { if (%n == 0) { 1f } else { %x * @power(%x, %n - 1) } }\ndef @main(%x: float32, %n: int32) { @power(%x, %n) }",
        (2.0, 5),
        80.0,
        wrt=0,
    ),
    Program(
        "a loop",
        "def @main(%x: float32, %n: int32) { let %go = fn (%i: int32, %a: float32) -> float32 { if (%i == 0) { %a } else { %go(%i - 1, %a * %x) } }; %go(%n, 1f) }",
        (2.0, 4),
        32.0,
        wrt=0,
    ),
    Program(
        "a second derivative of a recursion",
        "def @main(%x: float32, %n: int32) -> float32 { if (%n == 0) { 1f } else { %x * @main(%x, %n - 1) } }",
        (2.0, 4),
        48.0,
        wrt=0,
        order=2,
    ),
    Program(
        "a closure",
        "def @main(%x: float32) { let %f = fn (%y: float32) -> float32 { %x * %y * %y }; %f(%x) + %f(2f) }",
        (3.0,),
        31.0,
        wrt=0,
    ),
    Program(
        "broadcasting",
        "def @main(%a: Tensor[(3), float32], %b: float32) { let %c = %a * %b; %c.0 }".replace("%c.0", "@dot(%c, %a)")
        + "\ndef @dot(%x: Tensor[(3), float32], %y: Tensor[(3), float32]) -> float32 { sum(%x * %y) }",
        (np.array([1, 2, 3], F), 2.0),
        (np.array([4, 8, 12], F), 14.0),
        wrt=(0, 1),
    ),
    Program(
        "a sum over a list",
        LIST
        + "def @sum(%l: List[float32]) -> float32 { match (%l) { Cons(%h, %t) => %h * %h + @sum(%t), Nil => 0f, } }\ndef @main(%l: List[float32]) { @sum(%l) }",
        (values(1.0, 2.0, 3.0),),
        values(2.0, 4.0, 6.0),
        wrt=0,
    ),
    Program(
        "through a list that is made",
        LIST
        + "def @upto(%x: float32, %n: int32) -> List[float32] { if (%n == 0) { Nil } else { Cons(%x * %x, @upto(%x, %n - 1)) } }\ndef @sum(%l: List[float32]) -> float32 { match (%l) { Cons(%h, %t) => %h + @sum(%t), Nil => 0f, } }\ndef @main(%x: float32, %n: int32) { @sum(@upto(%x, %n)) }",
        (3.0, 4),
        24.0,
        wrt=0,
    ),
    Program(
        "a tree",
        TREE
        + "def @main(%t: Tree[float32]) -> float32 { match (%t) { Leaf => 1f, Node(%l, %x, %r) => @main(%l) * %x * @main(%r), } }",
        (Value("Node", Value("Leaf"), 3.0, Value("Node", Value("Leaf"), 5.0, Value("Leaf"))),),
        Value("Node", Value("Leaf"), 5.0, Value("Node", Value("Leaf"), 3.0, Value("Leaf"))),
        wrt=0,
    ),
    Program(
        "a reference", "def @main(%x: float32) { let %r = ref(%x); %r := !%r * !%r; !%r * %x }", (2.0,), 12.0, wrt=0
    ),
    Program(
        "a reference in a loop",
        "def @main(%x: float32, %n: int32) { let %r = ref(1f); let %loop = fn (%i: int32) -> () { if (%i == 0) { () } else { %r := !%r * %x; %loop(%i - 1) } }; %loop(%n); !%r }",
        (2.0, 3),
        12.0,
        wrt=0,
    ),
    Program(
        "a higher-order function",
        "def @twice(%f: fn (float32) -> float32, %x: float32) -> float32 { %f(%f(%x)) }\ndef @main(%x: float32) { @twice(fn (%y: float32) -> float32 { %y * %y * %x }, %x) }",
        (2.0,),
        7 * 2.0**6,
        wrt=0,
    ),
    Program(
        "float64", "def @main(%x: float64) { sin(%x) * %x }", (0.5,), float(np.cos(0.5) * 0.5 + np.sin(0.5)), wrt=0
    ),
    Program(
        "a tuple of tensors", "def @main(%p: (float32, float32)) { %p.0 * %p.1 }", ((2.0, 3.0),), (3.0, 2.0), wrt=0
    ),
    Program(
        "functions made in a recursion",
        "def @power(%x: float32, %n: int32) -> fn (float32) -> float32 { if (%n == 0) { fn (%y: float32) -> float32 { %y } } else { let %rest = @power(%x, %n - 1); fn (%y: float32) -> float32 { %x * %rest(%y) } } }\ndef @main(%x: float32, %n: int32) { @power(%x, %n)(1f) }",
        (2.0, 3),
        12.0,
        wrt=0,
    ),
]

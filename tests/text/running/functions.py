"""Functions as values, closures, polymorphism."""
# ruff: noqa: E501  # a program is a line

import numpy as np

from .program import F, Global, Program

PROGRAMS = [
    Program(
        "a function of a function",
        "def @apply(%f: fn (int32) -> int32, %x: int32) -> int32 { %f(%x) }\ndef @main(%x: int32) { @apply(fn (%y: int32) -> int32 { %y - 1 }, %x) }",
        (3,),
        2,
    ),
    Program(
        "a function that is called where it stands",
        "def @main(%x: int32) { fn (%y: int32) -> int32 { %y * %x }(5) }",
        (3,),
        15,
    ),
    Program(
        "closures keep values",
        "def @adder(%k: int32) { fn (%x: int32) -> int32 { %x + %k } }\ndef @main() { let %a = @adder(1); let %b = @adder(10); (%a(5), %b(5), %a(%b(0))) }",
        (),
        (6, 15, 11),
    ),
    Program(
        "currying three deep",
        "def @main() { let %f = fn (%a: int32) { fn (%b: int32) { fn (%c: int32) { %a * 100 + %b * 10 + %c } } }; %f(1)(2)(3) }",
        (),
        123,
    ),
    Program(
        "polymorphic identity",
        "def @id[A](%x: A) -> A { %x }\ndef @main() { (@id(1), @id(2f), @id((True, 3i64))) }",
        (),
        (1, 2.0, (True, np.int64(3))),
    ),
    Program(
        "a polymorphic local function",
        "def @main() { let %pair = fn (%x) { (%x, %x) }; (%pair(1), %pair(True)) }",
        (),
        ((1, 1), (True, True)),
    ),
    Program(
        "generalised over an operator",
        "def @main() { let %double = fn (%x) { %x + %x }; (%double(2), %double(1.5f)) }",
        (),
        (4, 3.0),
    ),
    Program(
        "composition",
        "def @compose[A, B, C](%f: fn (B) -> C, %g: fn (A) -> B) -> fn (A) -> C { fn (%x: A) -> C { %f(%g(%x)) } }\ndef @main(%x: int32) { @compose(fn (%y: int32) -> bool { %y > 3 }, fn (%z: int32) -> int32 { %z * 2 })(%x) }",
        (2,),
        True,
    ),
    Program(
        "functions in a tuple",
        "def @main(%x: int32) { let %fs = (fn (%y: int32) { %y + 1 }, fn (%y: int32) { %y * 2 }); let %f = %fs.0; %f(%x) + %fs.1(%x) }",
        (5,),
        16,
    ),
    Program(
        "a function chosen by a condition",
        "def @main(%c: bool, %x: int32) { let %f = if (%c) { fn (%y: int32) -> int32 { %y + 1 } } else { fn (%y: int32) -> int32 { %y * %x } }; %f(10) }",
        (False, 3),
        30,
    ),
    Program(
        "an operator as a function",
        "def @fold(%f: fn (int32, int32) -> int32, %a: int32, %b: int32) -> int32 { %f(%a, %f(%a, %b)) }\ndef @main() { (@fold(add, 2, 3), @fold(multiply, 2, 3), @fold(subtract, 2, 3)) }",
        (),
        (7, 12, 3),
    ),
    Program(
        "an operator in a let", "def @main(%x: float32) { let %f = tanh; let %g = negative; %g(%f(%x)) }", (0.0,), 0.0
    ),
    Program(
        "type arguments at a call",
        "def @const[A, B](%x: A, %y: B) -> A { %x }\ndef @main() { @const<int32, bool>(3, True) }",
        (),
        3,
    ),
    Program(
        "a function of the module as an argument",
        "def @square(%x: float32) -> float32 { %x * %x }\ndef @main(%f: fn (float32) -> float32, %x: float32) { %f(%x) + %f(1f) }",
        (Global("square"), 3.0),
        10.0,
    ),
    Program(
        "two functions of the module as arguments",
        "def @a(%x: int32) -> int32 { %x + 1 }\ndef @b(%x: int32) -> int32 { %x * 2 }\ndef @main(%f: fn (int32) -> int32, %g: fn (int32) -> int32) { (%f(%g(5)), %g(%f(5))) }",
        (Global("a"), Global("b")),
        (11, 12),
    ),
    Program(
        "a function twice",
        "def @twice[A](%f: fn (A) -> A) -> fn (A) -> A { fn (%x: A) -> A { %f(%f(%x)) } }\ndef @main(%x: int32) { @twice(@twice(fn (%y: int32) -> int32 { %y * 2 }))(%x) }",
        (1,),
        16,
    ),
    Program(
        "a function without parameters", "def @main(%x: int32) { let %f = fn () { %x * 2 }; %f() + %f() }", (4,), 16
    ),
    Program(
        "shadowing in closures",
        "def @main() { let %x = 1; let %f = fn (%y: int32) { %x + %y }; let %x = 100; %f(%x) }",
        (),
        101,
    ),
    Program(
        "a parameter that shadows a let",
        "def @main() { let %x = 1; let %f = fn (%x: int32) { %x * 2 }; %f(5) + %x }",
        (),
        11,
    ),
    Program(
        "Church numerals",
        "def @main() { let %two = fn (%f: fn (int32) -> int32) { fn (%x: int32) -> int32 { %f(%f(%x)) } }; let %three = fn (%f: fn (int32) -> int32) { fn (%x: int32) -> int32 { %f(%f(%f(%x))) } }; %three(%two(fn (%x: int32) -> int32 { %x + 1 }))(0) }",
        (),
        6,
    ),
    Program(
        "a relation at every call",
        "def @scale(%x, %k) where Broadcast { multiply(%x, %k) }\ndef @main(%a: Tensor[(2, 2), float32]) { (@scale(%a, 2f), @scale(3, 4)) }",
        (np.ones((2, 2), F),),
        (np.full((2, 2), 2, F), 12),
    ),
    Program(
        "functions that call each other's results",
        "def @make(%n: int32) { (fn (%x: int32) -> int32 { %x + %n }, fn (%x: int32) -> int32 { %x * %n }) }\ndef @main() { let %p = @make(3); %p.1(%p.0(4)) }",
        (),
        21,
    ),
    Program(
        "a polymorphic function that is used at a function type",
        "def @id[A](%x: A) -> A { %x }\ndef @main(%x: int32) { @id(fn (%y: int32) -> int32 { %y + 1 })(%x) }",
        (1,),
        2,
    ),
    Program(
        "mutual use of global functions in any order",
        "def @main(%x: int32) { @later(%x) * 2 }\ndef @later(%x: int32) -> int32 { %x + @last() }\ndef @last() -> int32 { 7 }",
        (1,),
        16,
    ),
    Program(
        "functions made in a recursion",
        "def @power(%n: int32) -> fn (int32) -> int32 { if (%n == 0) { fn (%x: int32) -> int32 { 1 } } else { let %rest = @power(%n - 1); fn (%x: int32) -> int32 { %x * %rest(%x) } } }\ndef @main(%n: int32) { @power(%n)(2) }",
        (5,),
        32,
    ),
    Program(
        "a function carried by a loop",
        "def @loop(%i: int32, %f: fn (int32) -> int32) -> int32 { if (%i == 0) { %f(1) } else { @loop(%i - 1, fn (%x: int32) -> int32 { %f(%x * 2) }) } }\ndef @main(%n: int32) { @loop(%n, fn (%x: int32) -> int32 { %x + 1 }) }",
        (4,),
        17,
    ),
    Program(
        "a sum in continuation passing style",
        "def @sum(%n: int32, %k: fn (int32) -> int32) -> int32 { if (%n == 0) { %k(0) } else { @sum(%n - 1, fn (%s: int32) -> int32 { %k(%s + %n) }) } }\ndef @main(%n: int32) { @sum(%n, fn (%s: int32) -> int32 { %s * 2 }) }",
        (10,),
        110,
    ),
]

"""Recursion and loops."""
# ruff: noqa: E501  # a program is a line

from .program import Program

PROGRAMS = [
    Program(
        "factorial",
        "def @main(%n: int64) -> int64 { if (%n == 0i64) { 1i64 } else { %n * @main(%n - 1i64) } }",
        (10,),
        3628800,
    ),
    Program(
        "Fibonacci numbers",
        "def @fib(%n: int32) -> int32 { if (%n < 2) { %n } else { @fib(%n - 1) + @fib(%n - 2) } }\ndef @main(%n: int32) { @fib(%n) }",
        (12,),
        144,
    ),
    Program(
        "Ackermann's function",
        "def @main(%m: int32, %n: int32) -> int32 { if (%m == 0) { %n + 1 } else if (%n == 0) { @main(%m - 1, 1) } else { @main(%m - 1, @main(%m, %n - 1)) } }",
        (2, 4),
        11,
    ),
    Program(
        "greatest common divisor",
        "def @main(%a: int32, %b: int32) -> int32 { if (%b == 0) { %a } else { @main(%b, floor_mod(%a, %b)) } }",
        (1071, 462),
        21,
    ),
    Program(
        "even and odd",
        "def @even(%n: int32) -> bool { if (%n == 0) { True } else { @odd(%n - 1) } }\ndef @odd(%n: int32) -> bool { if (%n == 0) { False } else { @even(%n - 1) } }\ndef @main(%n: int32) { (@even(%n), @odd(%n)) }",
        (7,),
        (False, True),
    ),
    Program(
        "three functions in a circle",
        "def @a(%n: int32) -> int32 { if (%n <= 0) { 0 } else { 1 + @b(%n - 1) } }\ndef @b(%n: int32) -> int32 { if (%n <= 0) { 0 } else { 10 + @c(%n - 1) } }\ndef @c(%n: int32) -> int32 { if (%n <= 0) { 0 } else { 100 + @a(%n - 1) } }\ndef @main(%n: int32) { @a(%n) }",
        (7,),
        223,
    ),
    Program(
        "a local recursion",
        "def @main(%n: int32) { let %sum = fn (%k: int32) -> int32 { if (%k == 0) { 0 } else { %k + %sum(%k - 1) } }; %sum(%n) }",
        (10,),
        55,
    ),
    Program(
        "a local recursion that captures",
        "def @main(%n: int32, %step: int32) { let %up = fn (%k: int32, %t: int32) -> int32 { if (%k == 0) { %t } else { %up(%k - 1, %t + %step) } }; %up(%n, 0) }",
        (10, 3),
        30,
    ),
    Program(
        "a loop of a hundred thousand steps",
        "def @main(%n: int32) { let %loop = fn (%i: int32, %s: int64) -> int64 { if (%i == %n) { %s } else { %loop(%i + 1, %s + 2i64) } }; %loop(0, 0i64) }",
        (100_000,),
        200_000,
    ),
    Program(
        "tail calls between two functions",
        "def @ping(%n: int32, %s: int32) -> int32 { if (%n == 0) { %s } else { @pong(%n - 1, %s + 1) } }\ndef @pong(%n: int32, %s: int32) -> int32 { if (%n == 0) { -%s } else { @ping(%n - 1, %s) } }\ndef @main(%n: int32) { @ping(%n, 0) }",
        (10_001,),
        -5001,
    ),
    Program(
        "a loop with a tuple",
        "def @loop(%i: int32, %p: (int32, int32)) -> (int32, int32) { if (%i == 0) { %p } else { @loop(%i - 1, (%p.1, %p.0 + %p.1)) } }\ndef @main(%n: int32) { @loop(%n, (0, 1)).0 }",
        (20,),
        6765,
    ),
    Program(
        "Newton's method",
        "def @main(%a: float32) { let %go = fn (%x: float32, %k: int32) -> float32 { if (%k == 0) { %x } else { %go(0.5f * (%x + %a / %x), %k - 1) } }; %go(%a, 20) }",
        (2.0,),
        2.0**0.5,
    ),
    Program(
        "nested loops",
        "def @main(%n: int32) { let %outer = fn (%i: int32, %t: int32) -> int32 { if (%i == %n) { %t } else { let %inner = fn (%j: int32, %u: int32) -> int32 { if (%j == %i) { %u } else { %inner(%j + 1, %u + %i * %j) } }; %outer(%i + 1, %inner(0, %t)) } }; %outer(0, 0) }",
        (6,),
        sum(i * j for i in range(6) for j in range(i)),
    ),
    Program(
        "Collatz",
        "def @main(%n: int32) -> int32 { if (%n == 1) { 0 } else if (floor_mod(%n, 2) == 0) { 1 + @main(%n / 2) } else { 1 + @main(3 * %n + 1) } }",
        (27,),
        111,
    ),
    Program(
        "a recursion over a polymorphic function",
        "def @iterate[A](%n: int32, %f: fn (A) -> A, %x: A) -> A { if (%n == 0) { %x } else { @iterate(%n - 1, %f, %f(%x)) } }\ndef @main() { (@iterate(3, fn (%x: int32) -> int32 { %x * 2 }, 1), @iterate(2, fn (%x: float32) -> float32 { %x / 2f }, 1f)) }",
        (),
        (8, 0.25),
    ),
    Program(
        "McCarthy's function",
        "def @main(%n: int32) -> int32 { if (%n > 100) { %n - 10 } else { @main(@main(%n + 11)) } }",
        (50,),
        91,
    ),
]

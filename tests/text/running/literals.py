"""Literals, arithmetic, precedence, broadcasting."""
# ruff: noqa: E501  # a program is a line

import numpy as np

from .program import F, Program

A23 = np.arange(6, dtype=F).reshape(2, 3)

PROGRAMS = [
    Program("integers are int32", "def @main() { 40 + 2 }", (), np.int32(42)),
    Program("an integer that does not fit int32 is int64", "def @main() { 5000000000 }", (), np.int64(5000000000)),
    Program(
        "suffixes",
        "def @main() { (1i8, 2u8, 3i16, 4i64, 1f16, 2f, 3f64) }",
        (),
        tuple(
            np.dtype(d).type(k)
            for d, k in zip(
                ("int8", "uint8", "int16", "int64", "float16", "float32", "float64"), (1, 2, 3, 4, 1, 2, 3), strict=True
            )
        ),
    ),
    Program("a decimal point makes float32", "def @main() { 1.5 + 0.25 }", (), np.float32(1.75)),
    Program(
        "infinity and NaN",
        "def @main() { (inff, -inff, nanf, inff > 1f) }",
        (),
        (float("inf"), float("-inf"), float("nan"), True),
    ),
    Program(
        "division of integers truncates",
        "def @main(%a: int32, %b: int32) { (%a / %b, floor_divide(%a, %b), floor_mod(%a, %b)) }",
        (-7, 2),
        (-3, -4, 1),
    ),
    Program("division of floats", "def @main(%a: float32) { (%a / 2f, 1f / %a) }", (8.0,), (4.0, 0.125)),
    Program(
        "division of floats by zero",
        "def @main(%a: float32) { (%a / 0f, -%a / 0f, 0f / 0f * %a) }",
        (1.0,),
        (float("inf"), float("-inf"), float("nan")),
    ),
    Program(
        "bytes wrap",
        "def @main(%x: uint8) { (%x + 10u8, %x * 2u8, 0u8 - %x) }",
        (250,),
        (np.uint8(4), np.uint8(244), np.uint8(6)),
    ),
    Program("products of int32 wrap", "def @main(%x: int32) { %x * %x }", (65536,), 0),
    Program("int64 does not wrap where int32 would", "def @main(%x: int64) { %x * %x }", (65536,), np.int64(2**32)),
    Program("products bind tighter", "def @main(%x: int32) { 2 + %x * 3 - 4 / 2 }", (5,), 15),
    Program("from left to right", "def @main() { (20 - 5 - 3, 100 / 5 / 2 * 3) }", (), (12, 30)),
    Program("parentheses", "def @main(%x: int32) { (2 + %x) * (3 - 4) }", (5,), -7),
    Program("prefix minus", "def @main(%x: int32) { (-%x, - - %x, 3 - -%x, -2 * %x) }", (5,), (-5, 5, 8, -10)),
    Program("a name before a minus", "def @main(%x: int32) { %x-1 }", (5,), 4),
    Program(
        "comparisons",
        "def @main(%a: int32, %b: int32) { (%a < %b, %a <= %b, %a > %b, %a >= %b, %a == %b, %a != %b) }",
        (2, 3),
        (True, True, False, False, False, True),
    ),
    Program(
        "and, or, not",
        "def @main(%a: bool, %b: bool) { (%a && %b, %a || %b, logical_not(%a), %a || %b && logical_not(%a)) }",
        (True, False),
        (False, True, False, True),
    ),
    Program("comparisons before and", "def @main(%x: int32) { %x > 1 && %x < 10 }", (5,), True),
    Program("a tensor and a number", "def @main(%x: Tensor[(2, 3), float32]) { %x * 2f + 1f }", (A23,), A23 * 2 + 1),
    Program(
        "rows and columns",
        "def @main(%a: Tensor[(2, 1), float32], %b: Tensor[(1, 3), float32]) { %a - %b }",
        (A23[:, :1], A23[:1]),
        A23[:, :1] - A23[:1],
    ),
    Program(
        "ranks broadcast from the right",
        "def @main(%a: Tensor[(2, 3), float32], %b: Tensor[(3), float32]) { maximum(%a, %b) }",
        (A23, np.array([1, 5, 2], F)),
        np.maximum(A23, np.array([1, 5, 2], F)),
    ),
    Program("comparisons of tensors", "def @main(%a: Tensor[(2, 3), float32]) { %a > 2f }", (A23,), A23 > 2),
    Program(
        "a full constant", "def @main(%x: float32) { Constant(3, (2, 2), float32) * %x }", (2.0,), np.full((2, 2), 6, F)
    ),
    Program(
        "elementwise functions",
        "def @main(%x: float32) { (exp(%x), log(%x), sqrt(%x), tanh(%x), sigmoid(%x), abs(-%x)) }",
        (0.5,),
        tuple(map(float, (np.exp(0.5), np.log(0.5), np.sqrt(0.5), np.tanh(0.5), 1 / (1 + np.exp(-0.5)), 0.5))),
    ),
    Program("integers as floats", 'def @main(%x: int32) { cast(%x, dtype="float32") / 2f }', (3,), 1.5),
    Program(
        "floats as integers truncate",
        'def @main(%x: float32) { (cast(%x, dtype="int32"), cast(-%x, dtype="int32")) }',
        (2.75,),
        (2, -2),
    ),
    Program("unit", "def @main() { () }", (), ()),
    Program("a tuple of one", "def @main(%x: int32) { (%x,) }", (3,), (3,)),
    Program(
        "projections of projections",
        "def @main(%x: int32) { let %t = ((%x, 2), (3, (4, 5))); (%t.0.0, %t.1.1.1) }",
        (1,),
        (1, 5),
    ),
    Program(
        "bitwise operators",
        "def @main(%a: int32, %b: int32) { (bitwise_and(%a, %b), bitwise_or(%a, %b), bitwise_xor(%a, %b), left_shift(%a, 2), right_shift(%a, 1)) }",
        (12, 10),
        (8, 14, 6, 48, 6),
    ),
    Program("comments", "/* before */ def @main(/* %y */ %x: int32) { // end\n %x /* /* in */ */ + 1 }", (1,), 2),
]

"""Shape variables, unknown sizes, kinds, inference."""
# ruff: noqa: E501  # a program is a line

import numpy as np

from myia_relay import ShapeError, TypeError_

from .program import F, Program

ONES = np.ones((4, 3), F)

PROGRAMS = [
    Program(
        "a named size",
        "def @main(%x: Tensor[(n), float32]) -> Tensor[(n), float32] { %x * 2f }",
        (np.arange(3, dtype=F),),
        np.arange(3, dtype=F) * 2,
    ),
    Program(
        "the same of another size",
        "def @main(%x: Tensor[(n), float32]) -> Tensor[(n), float32] { %x * 2f }",
        (np.arange(7, dtype=F),),
        np.arange(7, dtype=F) * 2,
    ),
    Program(
        "two arrays of one size",
        "def @main(%x: Tensor[(n, 3), float32], %y: Tensor[(n, 1), float32]) { %x + %y }",
        (ONES, ONES[:, :1]),
        ONES + 1,
    ),
    Program(
        "two sizes that must agree",
        "def @main(%x: Tensor[(n), float32], %y: Tensor[(n), float32]) { %x + %y }",
        (np.ones(2, F), np.ones(3, F)),
        raises=(ShapeError, "'n' is 2"),
    ),
    Program("an unknown size", "def @main(%x: Tensor[(?, 3), float32]) { exp(%x) }", (ONES,), np.exp(ONES)),
    Program(
        "an unknown size that fits a declared one",
        "def @f(%x: Tensor[(4, 3), float32]) -> Tensor[(4, 3), float32] { %x + %x }\ndef @main(%x: Tensor[(?, 3), float32]) { @f(%x) }",
        (ONES,),
        ONES * 2,
    ),
    Program(
        "an unknown size that does not",
        "def @f(%x: Tensor[(5, 3), float32]) -> Tensor[(5, 3), float32] { %x + %x }\ndef @main(%x: Tensor[(?, 3), float32]) { @f(%x) }",
        (ONES,),
        raises=(ShapeError, "has the size 4 along axis 0, not 5"),
    ),
    Program(
        "an unknown size against a name",
        "def @f(%x: Tensor[(n), float32], %y: Tensor[(n), float32]) { %x * %y }\ndef @main(%x: Tensor[(?), float32], %y: Tensor[(?), float32]) { @f(%x, %y) }",
        (np.ones(2, F), np.ones(3, F)),
        raises=(ShapeError, "argument 'y' of f"),
    ),
    Program(
        "a let that says the size",
        "def @main(%x: Tensor[(?), float32]) { let %y: Tensor[(3), float32] = %x; %y + %y }",
        (np.ones(2, F),),
        raises=(ShapeError, "%y is"),
    ),
    Program(
        "branches of different sizes",
        "def @main(%c: bool, %x: Tensor[(?), float32], %y: Tensor[(2), float32]) -> Tensor[(?), float32] { if (%c) { %x } else { %y } }",
        (False, np.ones(5, F), np.zeros(2, F)),
        np.zeros(2, F),
    ),
    Program(
        "a parameter of kind Shape",
        "def @twice<s: Shape>(%x: Tensor[s, float32]) -> Tensor[s, float32] { %x + %x }\ndef @main(%x: Tensor[(4, 3), float32]) { (@twice(%x), @twice(1f)) }",
        (ONES,),
        (ONES * 2, 2.0),
    ),
    Program(
        "a parameter of kind BaseType",
        "def @twice<t: BaseType>(%x: Tensor[(2), t]) -> Tensor[(2), t] { %x }\ndef @main(%a: Tensor[(2), float32], %b: Tensor[(2), int8]) { (@twice(%a), @twice(%b)) }",
        (np.ones(2, F), np.ones(2, np.int8)),
        (np.ones(2, F), np.ones(2, np.int8)),
    ),
    Program("types follow from uses", "def @main(%x, %y) { if (%x) { %y + 1 } else { 0 } }", (True, 4), 5),
    Program("a polymorphic main", "def @main(%x) { (%x, %x) }", ((1, 2.5),), ((1, 2.5), (1, 2.5))),
    Program(
        "a float is no integer",
        "def @main(%x: int32) { %x }",
        (1.5,),
        raises=(TypeError_, "argument 'x' of @main is int32"),
    ),
    Program("an integer is a float", "def @main(%x: float32) { %x / 2f }", (3,), 1.5),
    Program(
        "an array of another dtype",
        "def @main(%x: Tensor[(2), float32]) { %x }",
        (np.ones(2),),
        raises=(TypeError_, "float64"),
    ),
    Program("a number that does not fit", "def @main(%x: int8) { %x }", (300,), raises=(TypeError_, "300")),
    Program(
        "an array of another rank",
        "def @main(%x: Tensor[(2), float32]) { %x }",
        (ONES,),
        raises=(ShapeError, "Tensor[(4, 3), float32]"),
    ),
    Program(
        "too few arguments",
        "def @main(%x: int32, %y: int32) { %x + %y }",
        (1,),
        raises=(TypeError_, "takes 2 arguments"),
    ),
    Program(
        "a tuple of another length",
        "def @main(%x: (int32, int32)) { %x.0 }",
        ((1, 2, 3),),
        raises=(TypeError_, "argument 'x'"),
    ),
]

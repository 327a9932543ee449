"""`let`, graph bindings, scopes, sharing."""

import numpy as np

from .program import F, Program

COUNT = """  let %n = ref(0);
  let %next = fn () -> int32 { %n := !%n + 1; !%n };
"""

PROGRAMS = [
    Program("let in order", "def @main(%x: int32) { let %a = %x + 1; let %b = %a * %a; %b - %a }", (3,), 12),
    Program("shadowing", "def @main(%x: int32) { let %x = %x + 1; let %x = %x * 10; %x }", (3,), 40),
    Program(
        "a let sees what was there before",
        "def @main() { let %a = 5; let %b = { let %a = %a * 2; %a + 1 }; (%a, %b) }",
        (),
        (5, 11),
    ),
    Program("annotations", "def @main(%x: int32) { let %t: (int32, float32) = (%x, 2f); %t.1 }", (3,), 2.0),
    Program("graph bindings", "def @main(%x: float32) { %0 = %x * %x; %1 = %0 + %x; %1 * %0 }", (2.0,), 24.0),
    Program(
        "graph bindings without semicolons",
        "def @main(%x: float32) {\n %0 = %x * %x\n %1 = %0 - 1f\n %1 - %0\n}",
        (3.0,),
        -1.0,
    ),
    Program(
        "numbers of each function are its own",
        "def @f(%x: int32) { %0 = %x * 3; %0 + %0 }\ndef @main(%x: int32) { %0 = @f(%x); %1 = @f(%0); (%0, %1) }",
        (1,),
        (6, 36),
    ),
    Program(
        "a binding in a branch that the other one names",
        "def @main(%c: bool, %x: int32) { if (%c) { %0 = %x * %x; %0 + 1 } else { %0 - 1 } }",
        (False, 5),
        24,
    ),
    Program(
        "that is computed once, before the branch",
        f"def @main(%c: bool) {{\n{COUNT}  let %r = if (%c) {{ %0 = %next(); %0 * 10 }} else {{ %0 }};\n  (%r, !%n)\n}}",
        (True,),
        (10, 1),
    ),
    Program(
        "a binding that is named in a function",
        "def @main(%x: int32) { %0 = %x + 1; let %f = fn (%y: int32) -> int32 { %0 * %y }; %f(2) + %f(3) }",
        (3,),
        20,
    ),
    Program(
        "a binding in a function is computed at each call",
        f"def @main() {{\n{COUNT}  let %f = fn (%y: int32) -> int32 {{ %0 = %next(); %0 + %0 * %y }};\n  (%f(1), %f(10), !%n)\n}}",
        (),
        (2, 22, 2),
    ),
    Program(
        "a binding is computed at its place",
        f"def @main() {{\n{COUNT}  let %a = %next();\n  %0 = %next();\n  let %b = %next();\n  (%a, %b, %0, %0)\n}}",
        (),
        (1, 3, 2, 2),
    ),
    Program("an unused binding has its effect", f"def @main() {{\n{COUNT}  %0 = %next();\n  !%n\n}}", (), 1),
    Program(
        "branches are expressions",
        "def @main(%x: int32) { 10 * (if (%x > 0) { 1 } else { 2 }) + if (%x > 5) { let %y = %x; %y } else { 0 } }",
        (7,),
        17,
    ),
    Program("else if", "def @main(%x: int32) { if (%x < 0) { -1 } else if (%x == 0) { 0 } else { 1 } }", (-3,), -1),
    Program("blocks are values", "def @main(%x: int32) { { let %y = %x + 1; %y * %y } - { %x } }", (2,), 7),
    Program(
        "a branch is computed only where it is taken",
        f"def @main(%c: bool) {{\n{COUNT}  let %r = if (%c) {{ 7 }} else {{ %next() }};\n  (%r, !%n)\n}}",
        (True,),
        (7, 0),
    ),
    Program(
        "a binding shared by three branches",
        "def @main(%x: int32) { if (%x > 2) { if (%x > 5) { %0 = %x * 2; %0 } else { %0 + 1 } } else { %0 + 2 } }",
        (4,),
        9,
    ),
    Program(
        "many bindings",
        "def @main(%x: float32) {"
        + " ".join(f"%{k} = {f'%{k - 1}' if k else '%x'} + 1f;" for k in range(60))
        + " %59 }",
        (0.0,),
        60.0,
    ),
    Program(
        "tensors in bindings",
        "def @main(%x: Tensor[(3), float32]) { %0 = exp(%x); %1 = %0 * %0; %1 / %0 }",
        (np.array([0, 1, -1], F),),
        np.exp(np.array([0, 1, -1], F)),
    ),
]

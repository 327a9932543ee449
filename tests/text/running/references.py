"""References, and the order of effects."""
# ruff: noqa: E501  # a program is a line

from .program import Program

PROGRAMS = [
    Program(
        "a cell", "def @main(%x: int32) { let %r = ref(%x); ref_write(%r, ref_read(%r) * 2); ref_read(%r) }", (4,), 8
    ),
    Program(
        "the papers' spelling",
        "def @main(%x: int32) { let %r = ref(%x); %r := !%r + 1; %r := !%r * !%r; !%r }",
        (4,),
        25,
    ),
    Program(
        "aliases",
        "def @main() { let %a = ref(1); let %b = %a; let %c = ref(1); %b := 5; (!%a, !%b, !%c) }",
        (),
        (5, 5, 1),
    ),
    Program("what a write gives", "def @main() { let %r = ref(1); (%r := 2, !%r) }", (), ((), 2)),
    Program(
        "a counter",
        "def @counter() { let %n = ref(0); fn () -> int32 { %n := !%n + 1; !%n } }\ndef @main() { let %a = @counter(); let %b = @counter(); (%a(), %a(), %b(), %a()) }",
        (),
        (1, 2, 1, 3),
    ),
    Program(
        "parts of a tuple from left to right",
        "def @main() { let %r = ref(1); let %f = fn (%k: int32) -> int32 { %r := !%r * 10 + %k; !%r }; (%f(1), %f(2), (%f(3), %f(4))) }",
        (),
        (11, 112, (1123, 11234)),
    ),
    Program(
        "arguments from left to right, then the function",
        "def @main() { let %r = ref(0); let %note = fn (%k: int32) -> int32 { %r := !%r * 10 + %k; %k }; let %f = { %note(1); fn (%a: int32, %b: int32) -> int32 { %a * %b } }; let %x = { %note(4); %f }(%note(2), %note(3)); (%x, !%r) }",
        (),
        (6, 1234),
    ),
    Program(
        "operands from left to right",
        "def @main() { let %r = ref(0); let %note = fn (%k: int32) -> int32 { %r := !%r * 10 + %k; %k }; let %x = %note(1) + %note(2) * %note(3); (%x, !%r) }",
        (),
        (7, 123),
    ),
    Program(
        "a write in a branch",
        "def @main(%c: bool) { let %r = ref(1); if (%c) { %r := 10 } else { () }; !%r }",
        (True,),
        10,
    ),
    Program(
        "a loop that writes",
        "def @main(%n: int32) { let %s = ref(0); let %loop = fn (%i: int32) -> () { if (%i > %n) { () } else { %s := !%s + %i * %i; %loop(%i + 1) } }; %loop(1); !%s }",
        (5,),
        55,
    ),
    Program(
        "a cell given to a function",
        "def @bump(%r: ref(int32), %k: int32) -> () { %r := !%r + %k }\ndef @main() { let %r = ref(1); @bump(%r, 10); @bump(%r, 100); !%r }",
        (),
        111,
    ),
    Program(
        "two cells changed together",
        "def @swap(%a: ref(int32), %b: ref(int32)) -> () { let %t = !%a; %a := !%b; %b := %t }\ndef @main() { let %a = ref(1); let %b = ref(2); @swap(%a, %b); (!%a, !%b) }",
        (),
        (2, 1),
    ),
    Program(
        "a cell that holds a tuple",
        "def @main() { let %r = ref((1, 2f)); %r := ((!%r).0 + 1, (!%r).1 * 2f); !%r }",
        (),
        (2, 4.0),
    ),
    Program("a cell in a cell", "def @main() { let %r = ref(ref(1)); let %s = !%r; %s := 5; !(!%r) }", (), 5),
    Program(
        "a cell that holds a function",
        "def @main() { let %f = ref(fn (%x: int32) -> int32 { %x + 1 }); let %a = (!%f)(1); %f := fn (%x: int32) -> int32 { %x * 10 }; (%a, (!%f)(1)) }",
        (),
        (2, 10),
    ),
    Program(
        "recursion through a cell",
        "def @main(%n: int32) { let %f = ref(fn (%k: int32) -> int32 { 0 }); %f := fn (%k: int32) -> int32 { if (%k == 0) { 1 } else { %k * (!%f)(%k - 1) } }; (!%f)(%n) }",
        (5,),
        120,
    ),
    Program(
        "cells in a list",
        "type List[A] { Cons(A, List[A]), Nil, }\ndef @add(%l: List[ref(int32)], %k: int32) -> () { match (%l) { Cons(%r, %t) => { %r := !%r + %k; @add(%t, %k) }, Nil => (), } }\ndef @main() { let %a = ref(1); let %b = ref(2); @add(Cons(%a, Cons(%b, Cons(%a, Nil))), 10); (!%a, !%b) }",
        (),
        (21, 12),
    ),
    Program(
        "a branch that chooses a cell",
        "def @main(%c: bool) { let %a = ref(1); let %b = ref(2); let %r = if (%c) { %a } else { %b }; %r := 10; (!%a, !%b) }",
        (False,),
        (1, 10),
    ),
    Program(
        "cells that a recursion makes",
        "def @sum(%n: int32) -> int32 { if (%n == 0) { 0 } else { let %r = ref(%n); %r := !%r * 2; !%r + @sum(%n - 1) } }\ndef @main(%n: int32) { @sum(%n) }",
        (4,),
        20,
    ),
    Program("sequences", "def @main() { let %r = ref(0); %r := 1; %r := !%r + 1; { %r := !%r * 5; () }; !%r }", (), 10),
]

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
    Program(
        "cells of which a recursion makes any number",
        "type List[A] { Cons(A, List[A]), Nil, }\ndef @make(%n: int32) -> List[ref(int32)] { if (%n == 0) { Nil } else { Cons(ref(%n), @make(%n - 1)) } }\ndef @bump(%l: List[ref(int32)]) -> () { match (%l) { Cons(%r, %t) => { %r := !%r * 2; @bump(%t) }, Nil => (), } }\ndef @sum(%l: List[ref(int32)]) -> int32 { match (%l) { Cons(%r, %t) => !%r + @sum(%t), Nil => 0, } }\ndef @main(%n: int32) { let %l = @make(%n); @bump(%l); @sum(%l) }",
        (4,),
        20,
    ),
    Program(
        "one cell many times in a list",
        "type List[A] { Cons(A, List[A]), Nil, }\ndef @rep(%r: ref(int32), %n: int32) -> List[ref(int32)] { if (%n == 0) { Nil } else { Cons(%r, @rep(%r, %n - 1)) } }\ndef @bump(%l: List[ref(int32)]) -> () { match (%l) { Cons(%r, %t) => { %r := !%r + 1; @bump(%t) }, Nil => (), } }\ndef @main(%n: int32) { let %r = ref(0); @bump(@rep(%r, %n)); !%r }",
        (5,),
        5,
    ),
    Program(
        "a linked list that changes",
        "type Node { Link(int32, ref(Node)), End, }\ndef @last(%n: Node) -> int32 { match (%n) { Link(%v, %r) => { match (!%r) { End => %v, Link(%a, %b) => @last(!%r), } }, End => 0, } }\ndef @main() { let %c = ref(End); let %b = Link(2, %c); let %a = Link(1, ref(%b)); %c := Link(3, ref(End)); @last(%a) }",
        (),
        3,
    ),
    Program(
        "a cell that a recursion returns",
        "def @find(%n: int32) -> ref(int32) { if (%n == 0) { ref(7) } else { @find(%n - 1) } }\ndef @main(%n: int32) { let %r = @find(%n); %r := !%r + 1; !%r }",
        (3,),
        8,
    ),
    Program(
        "union and find",
        "type T { Root(int32), Child(ref(T)), }\ndef @find(%r: ref(T)) -> ref(T) { match (!%r) { Root(%k) => %r, Child(%p) => @find(%p), } }\ndef @join(%a: ref(T), %b: ref(T)) -> () { let %x = @find(%a); let %y = @find(%b); %x := Child(%y) }\ndef @main() { let %a = ref(Root(1)); let %b = ref(Root(2)); let %c = ref(Root(3)); @join(%a, %b); @join(%b, %c); match (!(@find(%a))) { Root(%k) => %k, Child(%p) => 0, } }",
        (),
        3,
    ),
    Program(
        "cells of lists in a list",
        "type List[A] { Cons(A, List[A]), Nil, }\ndef @make(%n: int32) -> List[ref(List[int32])] { if (%n == 0) { Nil } else { Cons(ref(Nil), @make(%n - 1)) } }\ndef @add(%l: List[ref(List[int32])], %k: int32) -> () { match (%l) { Cons(%r, %t) => if (%k == 0) { %r := Cons(1, !%r) } else { @add(%t, %k - 1) }, Nil => (), } }\ndef @len(%l: List[int32]) -> int32 { match (%l) { Cons(%r, %t) => 1 + @len(%t), Nil => 0, } }\ndef @tot(%l: List[ref(List[int32])]) -> int32 { match (%l) { Cons(%r, %t) => @len(!%r) + 10 * @tot(%t), Nil => 0, } }\ndef @main(%n: int32) { let %l = @make(%n); @add(%l, 0); @add(%l, 2); @add(%l, 2); @tot(%l) }",
        (3,),
        201,
    ),
    Program(
        "a cell that holds itself",
        "type N { Z, S(ref(N)), }\ndef @walk(%r: ref(N), %k: int32) -> int32 { if (%k == 0) { 42 } else { match (!%r) { S(%q) => @walk(%q, %k - 1), Z => 0, } } }\ndef @main(%k: int32) { let %r = ref(Z); %r := S(%r); @walk(%r, %k) }",
        (9,),
        42,
    ),
    Program(
        "a list of cells in a cell",
        "type List[A] { Cons(A, List[A]), Nil, }\ndef @go(%acc: ref(List[ref(int32)]), %n: int32) -> () { if (%n == 0) { () } else { %acc := Cons(ref(%n), !%acc); @go(%acc, %n - 1) } }\ndef @sum(%l: List[ref(int32)]) -> int32 { match (%l) { Cons(%r, %t) => { %r := !%r + 1; !%r + @sum(%t) }, Nil => 0, } }\ndef @main(%n: int32) { let %acc = ref(Nil); @go(%acc, %n); @sum(!%acc) }",
        (3,),
        9,
    ),
    Program(
        "a recursion that gives itself new cells",
        "def @go(%r: ref(int32), %n: int32) -> int32 { if (%n == 0) { !%r } else { @go(ref(!%r + 1), %n - 1) } }\ndef @main(%n: int32) { @go(ref(10), %n) }",
        (3,),
        13,
    ),
    Program(
        "cells of a type parameter",
        "type Box[A] { Box(ref(A)), }\ndef @mk[A](%x: A) -> Box[A] { Box(ref(%x)) }\ndef @get[A](%b: Box[A]) -> A { match (%b) { Box(%r) => !%r, } }\ndef @set[A](%b: Box[A], %x: A) -> () { match (%b) { Box(%r) => %r := %x, } }\ndef @main(%n: int32) { let %a = @mk(%n); let %b = @mk(2.5f); let %c = @mk((%n, True)); @set(%a, %n + 1); @set(%b, 3f); (@get(%a), @get(%b), @get(%c)) }",
        (3,),
        (4, 3.0, (3, True)),
    ),
    Program(
        "a queue of any type",
        "type List[A] { Cons(A, List[A]), Nil, }\ntype Q[A] { Q(ref(List[A]), ref(int32)), }\ndef @push[A](%q: Q[A], %x: A) -> () { match (%q) { Q(%l, %n) => { %l := Cons(%x, !%l); %n := !%n + 1 }, } }\ndef @size[A](%q: Q[A]) -> int32 { match (%q) { Q(%l, %n) => !%n, } }\ndef @main(%n: int32) { let %q = Q(ref(Nil), ref(0)); @push(%q, %n); @push(%q, 7); let %p = Q(ref(Nil), ref(0)); @push(%p, 2.5f); (@size(%q), @size(%p), match (%q) { Q(%l, %k) => match (!%l) { Cons(%h, %t) => %h, Nil => 0, }, }) }",
        (3,),
        (2, 1, 7),
    ),
    Program(
        "cells of arrays",
        'type List[A] { Cons(A, List[A]), Nil, }\ndef @make(%x: Tensor[(3), float32], %n: int32) -> List[ref(Tensor[(3), float32])] { if (%n == 0) { Nil } else { Cons(ref(%x), @make(%x * 2f, %n - 1)) } }\ndef @step(%l: List[ref(Tensor[(3), float32])]) -> () { match (%l) { Cons(%r, %t) => { %r := !%r + 1f; @step(%t) }, Nil => (), } }\ndef @tot(%l: List[ref(Tensor[(3), float32])]) -> float32 { match (%l) { Cons(%r, %t) => sum(!%r) + @tot(%t), Nil => 0f, } }\ndef @main(%n: int32) { let %l = @make(ones(shape=(3), dtype="float32"), %n); @step(%l); @step(%l); @tot(%l) }',
        (3,),
        39.0,
    ),
    Program(
        "cells of cells in a list",
        "type List[A] { Cons(A, List[A]), Nil, }\ndef @main(%n: int32) { let %a = ref(ref(%n)); let %l = Cons(%a, Nil); match (%l) { Cons(%r, %t) => { %r := ref(5); (!%r) := !(!%r) + 1 }, Nil => (), }; !(!%a) }",
        (3,),
        6,
    ),
    Program(
        "the order of writes to cells in data",
        "type List[A] { Cons(A, List[A]), Nil, }\ndef @main(%n: int32) { let %l = Cons(ref(0), Nil); let %note = fn (%k: int32) -> int32 { match (%l) { Cons(%r, %t) => { %r := !%r * 10 + %k; %k }, Nil => 0, } }; let %x = %note(1) + %note(2) * %note(3); (%x, match (%l) { Cons(%r, %t) => !%r, Nil => 0, }) }",
        (3,),
        (7, 123),
    ),
    Program(
        "references that nothing makes",
        "type List[A] { Cons(A, List[A]), Nil, }\ndef @read[A](%l: List[ref(A)]) -> List[A] { match (%l) { Cons(%r, %t) => { let %v = !%r; Cons(%v, @read(%t)) }, Nil => Nil, } }\ndef @main(%n: int32) { match (@read(Nil)) { Cons(%v, _) => 1, Nil => %n, } }",
        (3,),
        3,
    ),
]

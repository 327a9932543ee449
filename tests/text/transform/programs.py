# ruff: noqa: E501  (Relay text)
"""Programs for the passes: text, arguments of `@main` as the evaluator takes them."""

from __future__ import annotations

import numpy as np

from .evaluator import Made

F = np.float32
LIST = "type List[A] { Cons(A, List[A]), Nil, }\n"
MAP = "def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] { match (%l) { Cons(%h, %t) => Cons(%f(%h), @map(%f, %t)), Nil => Nil, } }\n"
FOLDL = (
    "def @foldl[A, B](%f: fn (B, A) -> B, %z: B, %l: List[A]) -> B "
    "{ match (%l) { Cons(%h, %t) => @foldl(%f, %f(%z, %h), %t), Nil => %z, } }\n"
)
POWER = "def @power(%x: float32, %n: int32) -> float32 { if (%n == 0) { 1f } else { %x * @power(%x, %n - 1) } }\n"


def i(value: int) -> np.int32:
    return np.int32(value)


def f(*values: float) -> np.ndarray | np.float32:
    return F(values[0]) if len(values) == 1 else np.array(values, F)


def listed(*values):
    out = Made("Nil", ())
    for value in reversed(values):
        out = Made("Cons", (value, out))
    return out


PROGRAMS = {
    "arithmetic": ("def @main(%x: int32) -> int32 { let %c = 2 * 3 + 4; %x * (%c - 1) }", (i(2),)),
    "shared": (
        "def @main(%a: Tensor[(2), float32], %b: Tensor[(2), float32]) { exp(%a * %b) + tanh(%a * %b) + exp(%a * %b) }",
        (f(0, 1), f(2, 3)),
    ),
    "effects": (
        """def @main(%x: float32) -> (float32, float32) {
  let %r = ref(%x); let %a = exp(%x); let %b = tanh(%a); let %old = ref_read(%r);
  let %u = ref_write(%r, ref_read(%r) + 1f); let %v = ref_write(%r, ref_read(%r) * 2f); (ref_read(%r), %old) }""",
        (f(2.0),),
    ),
    "power": (
        POWER + "def @main(%x: float32, %n: int32) -> (float32, float32) { (@power(%x, 5), @power(%x, %n)) }",
        (f(2.0), i(3)),
    ),
    "tuple order": (
        """def @main() {
  let %r = ref(1);
  let %double = fn () -> int32 { let %u = ref_write(%r, ref_read(%r) * 2); ref_read(%r) };
  let %inc = fn () -> int32 { let %u = ref_write(%r, ref_read(%r) + 1); ref_read(%r) };
  (%double(), %inc(), %double()) }""",
        (),
    ),
    "once": (
        """def @main() {
  let %r = ref(0);
  let %tick = fn () -> int32 { let %u = ref_write(%r, ref_read(%r) + 1); ref_read(%r) };
  %0 = %tick(); let %s = %0 + %0 + %0; (%s, ref_read(%r)) }""",
        (),
    ),
    "counters": (
        """def @counter(%start: int32) -> fn () -> int32 {
  let %r = ref(%start); fn () -> int32 { let %old = ref_read(%r); let %u = ref_write(%r, %old + 1); %old } }
def @main(%n: int32) { let %a = @counter(%n); let %b = @counter(0); let %x = %a(); let %y = %a(); let %z = %b(); (%x, %y, %z) }""",
        (i(7),),
    ),
    "loop with a reference": (
        """def @main(%n: int32) -> int32 {
  let %total = ref(0);
  let %loop = fn (%i: int32) -> () {
    if (%i > %n) { () } else { let %u = ref_write(%total, ref_read(%total) + %i); %loop(%i + 1) } };
  let %u = %loop(1); ref_read(%total) }""",
        (i(10),),
    ),
    "static loop with a reference": (
        """def @main(%x: int32) -> int32 {
  let %total = ref(%x);
  let %loop = fn (%i: int32) -> () {
    if (%i > 3) { () } else { let %u = ref_write(%total, ref_read(%total) * %i); %loop(%i + 1) } };
  let %u = %loop(1); ref_read(%total) }""",
        (i(10),),
    ),
    "a reference in a branch": (
        """def @main(%c: bool, %x: int32) -> (int32, int32) {
  let %r = ref(%x); let %s = ref(%x + 1);
  let %u = if (%c) { ref_write(%r, ref_read(%s)) } else { let %v = ref_write(%s, 5); () };
  (ref_read(%r), ref_read(%s)) }""",
        (np.bool_(True), i(3)),
    ),
    "aliases": (
        """def @main(%c: bool) -> (int32, int32) {
  let %a = ref(1); let %b = ref(2); let %r = if (%c) { %a } else { %b };
  let %u = ref_write(%r, 10); let %before = ref_read(%a); let %v = ref_write(%b, 20); (%before, ref_read(%r)) }""",
        (np.bool_(False),),
    ),
    "a knot": (
        """def @main(%n: int32) -> int32 {
  let %r = ref(fn (%i: int32) -> int32 { %i });
  let %f = fn (%i: int32) -> int32 { if (%i == 0) { 1 } else { let %g = ref_read(%r); %i * %g(%i - 1) } };
  let %u = ref_write(%r, %f); %f(%n) }""",
        (i(5),),
    ),
    "map": (
        LIST
        + MAP
        + "def @main(%l: List[int32], %k: int32) -> List[int32] { let %z = %k + 1; @map(fn (%a: int32) -> int32 { %a * %z }, %l) }",
        (listed(i(1), i(2)), i(9)),
    ),
    "rnn": (
        LIST
        + FOLDL
        + """def @main(%h: float32, %a: float32, %b: float32, %c: float32, %w: float32) -> float32 {
  let %cell = fn (%s: float32, %x: float32) -> float32 { tanh(%s * %w + %x) };
  @foldl(%cell, %h, Cons(%a, Cons(%b, Cons(%c, Nil)))) }""",
        (f(0.1), f(0.2), f(0.3), f(0.4), f(0.5)),
    ),
    "even and odd": (
        """def @even(%n: int32) -> bool { if (%n == 0) { True } else { @odd(%n - 1) } }
def @odd(%n: int32) -> bool { if (%n == 0) { False } else { @even(%n - 1) } }
def @main(%n: int32) -> (bool, bool) { (@even(%n), @even(7)) }""",
        (i(4),),
    ),
    "adders": (
        """def @adders(%n: int32, %f: fn (int32) -> int32) -> fn (int32) -> int32 {
  if (%n == 0) { %f } else { @adders(%n - 1, fn (%x: int32) -> int32 { %f(%x) + %n }) } }
def @main(%n: int32) -> (int32, int32) {
  let %f = @adders(%n, fn (%x: int32) -> int32 { %x }); let %g = @adders(3, fn (%x: int32) -> int32 { %x * %n }); (%f(1000), %g(2)) }""",
        (i(4),),
    ),
    "polymorphic": (
        "def @id[A](%x: A) -> A { %x }\ndef @main(%x: int32) { let %id = fn (%y) { @id(%y) }; let %p = fn (%c) { (%id(%c), %id(True)) }; (%p(%x), %p(2f)) }",
        (i(3),),
    ),
    "fibonacci": (
        "def @main(%n: int32) -> int32 { let %fib = fn (%k: int32) -> int32 { if (%k < 2) { %k } else { %fib(%k - 1) + %fib(%k - 2) } }; %fib(%n) + %fib(6) }",
        (i(8),),
    ),
    "while": (
        """def @main(%n: int32) {
  let %while_loop = fn (%i: int32, %total: int32) -> (int32, int32) {
    %0 = less(%i, %n);
    if (%0) { %1 = add(%total, %i); %2 = add(%i, 1); %while_loop(%2, %1) } else { (%i, %total) } };
  %while_loop(0, 0) }""",
        (i(10),),
    ),
    "nested patterns": (
        LIST
        + """def @main(%l: List[int32], %x: int32) -> (int32, int32) {
  (match (%l) { Cons(_, Cons(%s, _)) => %s, _ => %x, }, match (Cons(%x, %l)) { Cons(%a, Cons(%b, _)) => %a - %b, Cons(%a, Nil) => %a, Nil => 0, }) }""",
        (listed(i(1), i(5)), i(2)),
    ),
    "currying": (
        """def @add3(%a: int32) { fn (%b: int32) { fn (%c: int32) -> int32 { %a + %b * 10 + %c * 100 } } }
def @main(%x: int32) { let %f = @add3(%x); let %g = %f(2); (%g(3), @add3(1)(%x)(3)) }""",
        (i(4),),
    ),
    "operators as values": (
        """def @apply(%f: fn (float32) -> float32, %x: float32) -> float32 { %f(%x) }
def @main(%x: float32) { let %p = (fn (%y: float32) -> float32 { negative(%y) }, 3f); let %n = %p.0; (@apply(exp, %x), %n(%p.1), @apply(negative, %x)) }""",
        (f(1.5),),
    ),
    "branches in the middle": (
        """def @f(%x: int32) -> int32 { %x * 3 }
def @main(%c: bool, %x: int32) -> int32 {
  let %y = if (%c) { @f(%x) } else { if (%x > 2) { @f(@f(%x)) } else { 7 } }; let %z = @f(%y) + %y; %z - (if (%c) { 1 } else { @f(2) }) }""",
        (np.bool_(False), i(3)),
    ),
    "inline": (
        """def @square(%x: int32, Inline=1) -> int32 { %x * %x }
def @quad[A](%f: fn (A) -> A, %x: A, Inline=1) -> A { %f(%f(%x)) }
def @main(%x: int32) -> int32 { let %g = fn (%y: int32, Inline=1) -> int32 { @square(%y) + 1 }; @quad(%g, %x) + @quad(@square, 3) + %g(2) }""",
        (i(3),),
    ),
    "an interpreter": (
        """type Expr { Num(int32), Var, Add(Expr[], Expr[]), Mul(Expr[], Expr[]), }
def @eval(%e: Expr[], %x: int32) -> int32 {
  match (%e) { Num(%n) => %n, Var => %x, Add(%a, %b) => @eval(%a, %x) + @eval(%b, %x), Mul(%a, %b) => @eval(%a, %x) * @eval(%b, %x), } }
def @main(%x: int32) -> int32 { @eval(Add(Mul(Var, Var), Mul(Num(3), Add(Var, Num(1)))), %x) }""",
        (i(5),),
    ),
    "neutral elements": (
        "def @main(%x: Tensor[(2), float32]) { negative(negative((%x * 1f + 0f) / 1f - 0f)) }",
        (f(1, 2),),
    ),
    "dead recursion": (
        """def @fact(%n: int32) -> int32 { if (%n == 0) { 1 } else { %n * @fact(%n - 1) } }
def @main(%n: int32) -> int32 { let %a = @fact(%n); let %g = fn (%i: int32) -> int32 { %g(%i) }; %n + 1 }""",
        (i(3),),
    ),
}

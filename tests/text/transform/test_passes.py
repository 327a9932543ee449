"""Every pass keeps types and values of every program, and its result prints and parses."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from myia_relay import relay
from myia_relay.text.walk import walk

from . import random_modules
from .evaluator import evaluate, same
from .programs import PROGRAMS

PASSES = [name for name in relay.transform.__all__ if name not in ("Gradient", "Sequential")]


def checked_result(before, step, args, rtol=0.0):
    """The module after a pass: well-typed, of the same value, and the same after a round trip."""
    after = step(before)
    assert relay.parse_text(str(after)) == after
    assert str(relay.parse_text(str(after))) == str(after)
    assert same(evaluate(before, "main", *args), evaluate(after, "main", *args), rtol)
    return after


@pytest.fixture(autouse=True)
def checked(monkeypatch):
    """The result of every pass is checked."""
    monkeypatch.setenv("MYIA_RELAY_DEBUG", "1")


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.sampled(7)
def test_a_pass_keeps_the_value(program):
    text, args = PROGRAMS[program]
    before = relay.parse_text(text)
    for name in PASSES:
        step = getattr(relay.transform, name)()
        once = checked_result(before, step, args)
        checked_result(once, step, args)


LISTS = """type List[A] { Cons(A, List[A]), Nil, }
def @squares(%l) { match (%l) { Cons(%h, %t) => Cons(%h * %h, @squares(%t)), Nil => Nil, } }
def @sum(%l: List[int32]) { match (%l) { Cons(%h, %t) => %h + @sum(%t), Nil => 0, } }
def @main(%x: int32) { %r = ref(Nil); DEAD let %w = ref_write(%r, @squares(ref_read(%r))); %x }"""


@pytest.mark.parametrize(
    ("name", "dead"),
    [
        ("DeadCodeElimination", "let %d = match (ref_read(%r)) { Cons(%h, _) => %h + 1, Nil => 0, };"),
        ("DeadCodeElimination", "let %d = fn () { @sum(ref_read(%r)) };"),
        ("FoldConstant", "let %d = if (False) { @sum(ref_read(%r)) } else { 0 };"),
    ],
)
@pytest.mark.parametrize("binding", ["%0", "let %r"])
def test_a_type_that_is_known_from_what_a_pass_drops(name, dead, binding):
    text = LISTS.replace("DEAD", dead).replace("%r = ref", f"{binding} = ref")
    before = relay.parse_text(text if binding != "%0" else text.replace("%r", "%0"))
    after = checked_result(before, getattr(relay.transform, name)(), (3,))
    assert "ref(List[int32]) = ref(Nil)" in str(after)
    assert after["main"](3) == 3


def test_types_that_are_known_from_what_a_pass_drops_in_patterns_and_with_sizes():
    text = """type Option[A] { Some(A), None, }
    def @main(%x: Tensor[(n), float32]) {
      let %r = ref(None);
      let %s = ref(None);
      let %d = if (False) { let %q = %r := Some(%x); let %p = %s := Some(1); () } else { () };
      let %v = match (ref_read(%r)) { Some(%y) => sum(%y * %y), None => 2f, };
      let %w = match (ref_read(%s)) { Some(%z) => { let %u = %z + %z; 3f }, None => 4f, };
      %v + %w
    }"""
    after = checked_result(relay.parse_text(text), relay.transform.FoldConstant(), (np.ones(3, np.float32),))
    assert "Some(%y: Tensor[(n), float32])" in str(after) and "Some(%z: int32)" in str(after)


def test_a_definition_that_is_inlined_twice_has_types_of_its_own_at_each_place():
    text = """type Option[A] { Some(A), None, }
    def @f[A](%x: A, Inline=1) { match (Some(%x)) { Some(%y) => (%y, None), None => (%x, None), } }
    def @main(%x: int32) { (@f(%x).0, @f(True).0) }"""
    module = relay.transform.Inline()(relay.parse_text(text)).with_executor("interpreter")
    nodes = [e for d in module.placed.definitions.values() for e in walk(d.function)]
    assert len(set(nodes)) == len(nodes)
    assert module["main"](3) == (3, True)


def test_continuation_passing_keeps_what_is_declared_of_types():
    text = "def @add(%x, %y) { %x + %y } def @main(%x: float32) { @add(%x, @add(%x, 1f)) }"
    module = relay.transform.InferType()(relay.parse_text(text))
    after = checked_result(module, relay.transform.ToCPS(), (np.float32(2),))
    assert str(after).count("where Broadcast") == 2  # of @add, and of its worker


def test_a_type_that_is_known_from_a_name_for_an_atom_alone():
    """The pass itself needs types, where it has dropped the name and with it the annotation."""
    text = """type List[A] { Cons(A, List[A]), Nil, }
    def @main(%p: int32) {
      match ({ let %v: List[int32] = Nil; %v }) { Cons(%x, Nil) => { %0 = %x * %x; %p }, _ => { %p + 1 }, }
    }"""
    after = checked_result(relay.parse_text(text), relay.transform.ToGraphNormalForm(), (np.int32(3),))
    assert "Cons(%x: int32, Nil)" in str(after)


def test_a_polymorphic_function_that_nothing_uses_has_no_graph_form():
    text = "def @main(%x: int32) { let %f = fn (%y) { reverse(%y, axis=0) }; %x + 1 }"
    after = checked_result(relay.parse_text(text), relay.transform.ToGraphNormalForm(), (np.int32(3),))
    assert str(after).endswith("def @main(%x: int32) {\n  add(%x, 1)\n}\n")


@pytest.mark.sampled(27)
@pytest.mark.parametrize("program", PROGRAMS)
def test_passes_one_after_another(program):
    text, args = PROGRAMS[program]
    module = relay.parse_text(text)
    for name in (*PASSES, *reversed(PASSES)):
        module = checked_result(module, getattr(relay.transform, name)(), args)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.sampled(8)
def test_random_modules(seed):
    check_random(seed)


@pytest.mark.campaign
@pytest.mark.parametrize("start", range(0, 10_000, 100))
def test_many_random_modules(start):
    for seed in range(start, start + 100):
        check_random(seed)


def check_random(seed):
    text, args = random_modules.module(seed)
    module = relay.parse_text(text)
    for name in PASSES:
        checked_result(module, made(name), args)
    random = Random(seed)
    for _ in range(4):
        module = checked_result(module, made(random.choice(PASSES)), args)


def made(name):
    """A pass that is exact."""
    options = {"signed_zeros": True} if name == "SimplifyExpr" else {}
    return getattr(relay.transform, name)(**options)

"""References that exist at run time: their derivatives, and where they may not go. Their programs are in `references`."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import grad, jvp, relay, vmap
from myia_relay.utils.errors import TypeError_

from .program import F, I

LIST = "type List[A] { Cons(A, List[A]), Nil, }\n"
SQUARES = (
    LIST
    + """
def @make(%x: float32, %n: int32) -> List[ref(float32)] { if (%n == 0) { Nil } else { Cons(ref(%x), @make(%x * 1.5f, %n - 1)) } }
def @square(%l: List[ref(float32)]) -> () { match (%l) { Cons(%r, %t) => { %r := !%r * !%r; @square(%t) }, Nil => (), } }
def @sum(%l: List[ref(float32)]) -> float32 { match (%l) { Cons(%r, %t) => !%r + @sum(%t), Nil => 0f, } }
def @main(%x: float32, %n: int32) -> float32 { let %l = @make(%x, %n); @square(%l); @sum(%l) }
"""
)
CALLBACKS = (
    LIST
    + """
def @with(%f: fn (List[ref(float32)]) -> float32, %x: float32) -> float32 {
  let %r = ref(%x); let %y = %f(Cons(%r, Cons(ref(%x * 2f), Nil))); !%r + %y
}
def @within(%f: fn (fn (float32) -> float32) -> float32, %x: float32) -> float32 {
  let %l = Cons(ref(%x), Nil);
  %f(fn (%y: float32) -> float32 { match (%l) { Cons(%r, _) => { %r := !%r + %y; !%r }, Nil => 0f, } })
}
def @triple(%l: List[ref(float32)]) -> float32 { match (%l) { Cons(%r, %t) => { %r := !%r * 3f; !%r + @triple(%t) }, Nil => 0f, } }
def @own(%x: float32) -> float32 { @triple(Cons(ref(%x), Nil)) }
def @counter(%x: float32) { let %l = Cons(ref(%x), Nil); fn () -> float32 { match (%l) { Cons(%r, _) => !%r, Nil => 0f, } } }
def @made(%x: float32) { Cons(ref(%x), Nil) }
"""
)
module = relay.parse_text(CALLBACKS).with_executor("interpreter")
within, triple, own, counter = module["within"], module["triple"], module["own"], module["counter"]
with_ = module["with"]
ONE = F(1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("run", ["interpreter", "native"])
def test_derivatives_and_batches(run):
    main = relay.parse_text(SQUARES).with_executor(run)["main"]  # x * x * (1 + 1.5 ** 2 + 1.5 ** 4), for n = 3
    assert main(F(2), I(3)) == grad(main)(F(2), I(3)) == 33.25
    assert grad(grad(main))(F(2), I(3)) == 16.625
    assert jvp(lambda x: main(x, I(3)), (F(2),), (F(1),)) == (33.25, 33.25)
    rows = vmap(main, in_axes=(0, 0))(np.array([1, 2], F), np.array([2, 3], I))
    assert np.array_equal(rows, np.array([3.25, 33.25], F))


def test_functions_of_python_may_take_them():
    @relay(executor="interpreter")
    def given_list(x):
        return with_(lambda entries: triple(entries) + own(x), x)

    @relay(executor="interpreter")
    def given_function(x):
        return within(lambda f: f(x) + own(x) + f(x), x)

    assert given_list(ONE) == 3 + (3 + 6) + 3 and given_function(ONE) == 2 + 3 + 3


def test_each_call_has_references_of_its_own():
    @relay(executor="interpreter")
    def several(x, n):
        s = F(0.0)
        for i in range(n):
            s = s + own(x * F(i))
        return s + grad(own)(x) if s > 0 else own(x)

    assert several(ONE, 3) == 9 + 3 and several(ONE, 0) == 3


@pytest.mark.parametrize(
    "transformed",
    [
        lambda f, x: grad(lambda y: own(y) * f(y))(x),
        lambda f, x: jvp(lambda y: own(y) * f(y), (x,), (x,))[1],
        lambda f, x: np.sum(vmap(lambda y: own(y) * f(y))(np.ones(2, F))),
    ],
    ids=["grad", "jvp", "vmap"],
)
def test_they_do_not_enter_what_is_transformed(transformed):
    @relay(executor="interpreter")
    def function(x):
        return within(lambda f: transformed(f, x), x)

    with pytest.raises(
        TypeError_, match="a reference to np.float32 cannot be used in what is differentiated or batched"
    ):
        function(ONE)


@pytest.mark.parametrize("name", ["counter", "made"])
def test_they_do_not_leave_the_call(name):
    with pytest.raises(TypeError_, match=f"a reference to np.float32 is in the result of @{name}"):
        module[name](ONE)

    @relay(executor="interpreter")
    def function(x):
        f = counter(x)
        return f() + own(x)

    with pytest.raises(TypeError_, match="a reference to np.float32 is in the result of @counter"):
        function(ONE)


def test_what_they_cannot_refer_to_is_refused():
    text = (
        LIST
        + "def @main(%x: Tensor[(?), float32]) -> int32 { match (Cons(ref(%x), Nil)) { Cons(%r, _) => 1, Nil => 0, } }"
    )
    with pytest.raises(TypeError_, match="a reference in data to something whose size is known at run time only"):
        relay.parse_text(text).with_executor("interpreter")["main"](np.ones(3, F))

"""A transform of a function is one object, so that `grad(f)(x)` in a loop compiles once."""

from __future__ import annotations

import copy
import functools
import gc
import weakref

import numpy as np

from myia_relay import grad, hessian, jacfwd, relay, vmap


@relay
def square(x):
    return x * x


def cube(x):
    return x**3


def test_the_same_object():
    for f in (square, cube):
        assert grad(f) is grad(f)
        assert grad(grad(f)) is grad(grad(f))
        assert vmap(f) is vmap(f, in_axes=0) and vmap(f) is not vmap(f, in_axes=(0,))
        assert hessian(f) is hessian(f) and jacfwd(f) is not hessian(f)


def test_another_object():
    assert grad(square, 0) is not grad(square, "x")
    assert grad(square, 1) is not grad(square, True)
    assert grad(square) is not grad(cube)
    assert grad(copy.deepcopy(square))(3.0) == 6.0


def test_attributes_that_wraps_copies_are_not_taken_for_the_wrappers_own():
    assert grad(cube)(2.0) == 12.0
    copied = functools.wraps(cube)(lambda x: 5 * cube(x))
    assert grad(copied)(2.0) == 60.0 and grad(cube)(2.0) == 12.0 and grad(copied)(2.0) == 60.0


def test_what_has_no_attributes_of_its_own():
    class Scale:
        factor = 3.0

        def of(self, x):
            return self.factor * x

    scale = Scale()
    assert grad(scale.of)(2.0) == 3.0 and grad(scale.of) is grad(scale.of)
    np.testing.assert_array_equal(vmap(scale.of)(np.ones(2)), [3.0, 3.0])


def test_closures_are_not_held():
    def times(factor):
        return lambda x: factor * x

    twice = times(2.0)
    assert grad(twice) is not grad(twice) and grad(twice)(1.0) == 2.0
    held = relay(twice)
    assert grad(held) is grad(held)
    died = weakref.ref(relay(times(3.0)))
    gc.collect()
    assert died() is None

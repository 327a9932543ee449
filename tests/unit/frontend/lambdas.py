"""Functions whose source is easily confused."""

import functools

# ruff: noqa
# fmt: off
f, g = lambda x: x + 1, lambda x: x + 2
in_list = [lambda x: x, lambda x: -x, lambda x: (lambda y: x + y)(2)]
by_constant = (lambda x: (x, 1), lambda x: (x, 1.0), lambda x: (x, True), lambda x: (x, -0.0), lambda x: (x, 0.0))
by_order = (lambda x: x.real.imag, lambda x: x.imag.real)
same = (lambda x: x + 1, lambda x: x + 1)
captured = (lambda a: (lambda x: a + x, lambda x: a - x))(5)
over_lines = [(lambda x: x * 2)
    , lambda x: x
    * 3]


def keep(fn):
    @functools.wraps(fn)
    def around(*args):
        return fn(*args)

    return around


class Thing:
    __hidden = 3

    @keep
    @keep
    def method(self, x):
        return x + self.__hidden

    @staticmethod
    def static(x, *, __k=4):
        return x + __k


def outer(a):
    b = a + 1

    def inner(x):
        return x + b + a

    return inner, lambda x: x + a, lambda x: x * b


def unicode_text(x):
    é = "ünïcode"; return é + undefined_ü(x), [x, {"a", é}]

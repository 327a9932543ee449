"""Lists that hold texts, in an order that what is known at compile time decides; and texts beside ranges in `zip`."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import relay
from myia_relay.utils.errors import TypeError_


def counted(s: str):
    out = {}
    for word in s.split():
        out[word] = out.get(word, 0) + 1
    return sorted(out.items(), key=lambda entry: (-entry[1], entry[0]))


def by_name(x, y):
    return sorted({"b": x, "a": y, "c": x * y}.items())


def last_first(x, y):
    return sorted([("b", x), ("a", y), ("c", x * y)], key=lambda entry: entry[0], reverse=True)


def in_place(x):
    entries = [("b", x), ("a", 2 * x)]
    entries.sort()
    return entries


def alike():
    """Entries that compare equal stay in their order, also backwards."""
    return sorted([("a", 1), ("b", 1), ("c", 0)], key=lambda entry: entry[1], reverse=True)


def started():
    return sorted([("b", 1, "y"), ("a", 2)]), sorted([(True, "x"), (0.5, "y")]), sorted("hello")


def told(x):
    """The function of the key runs once for each entry, in their order."""

    def key(entry):
        print(entry[0])
        return entry[0]

    return sorted([("b", x), ("a", x)], key=key)


def beside():
    return {k + "_": v for k, v in zip("abc", range(3))}, [
        (a, b, c) for a, b, c in zip("abcd", range(5, 0, -2), [True, None, 1])
    ]


def rows(x):
    return dict(zip(("x", "y"), x))


def none():
    return [(k, v) for k, v in zip("abc", range(0))]


def numbered(n):
    return sorted([("a", 3), ("b", n)], key=lambda entry: entry[1])


def some(n):
    return [k for k, _ in zip("abc", range(n))]


def chosen(n):
    return [entry for entry in [("a", 3), ("b", n)] if entry[1] > 2]


@pytest.mark.parametrize(
    "function, args",
    [
        (counted, ("a b a c b a",)),
        (by_name, (1.0, 2.0)),
        (last_first, (1.0, 2.0)),
        (in_place, (1.5,)),
        (alike, ()),
        (started, ()),
        (told, (2.0,)),
        (beside, ()),
        (none, ()),
        (numbered, (1,)),
        (numbered, (5,)),
        (some, (2,)),
        (chosen, (2,)),
        (chosen, (5,)),
    ],
)
def test_as_in_python(executor, function, args, capsys):
    want, said = function(*args), capsys.readouterr().out
    assert repr(relay(executor=executor)(function)(*args)) == repr(want)
    assert capsys.readouterr().out == said


def test_rows_by_name(executor):
    x = np.arange(6.0).reshape(2, 3)
    for name, row in relay(executor=executor)(rows)(x).items():
        np.testing.assert_array_equal(row, rows(x)[name])


def equal_names(x):
    return sorted([("b", x), ("b", 2 * x)])


def of_both():
    return sorted([1, (1, 2)])


def test_strings_that_only_a_run_has_are_not_sorted():
    with pytest.raises(TypeError_, match="compiled code sorts by numbers and by tuples") as found:
        relay(equal_names)(1.0)
    assert "differ" not in str(found.value)


def test_a_number_and_a_tuple_have_no_order():
    with pytest.raises(TypeError):
        of_both()
    with pytest.raises(TypeError_, match="these entries are int"):
        relay(of_both)()

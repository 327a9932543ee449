"""What `explain` says of arguments: what is structure, what is data, and why."""

from typing import NamedTuple

import numpy as np
import pytest

from myia_relay import relay


class Place(NamedTuple):
    x: float
    names: list


def use(x, xs, book, pair, options, mixed, mode, arrays, place, nothing):
    total = x + pair[0] + place.x + len(nothing) + mixed[0]
    for v in xs:
        total += v
    for p in book:
        total += p["price"]
    for row in options["rows"]:
        total += row[0]
    return total if mode == "a" else total + np.sum(arrays[0])


ARGUMENTS = (
    1.0,
    [1.0, 2.0],
    [{"name": "x", "price": 1.0, "at": (1, [2])}],
    (1, 2.0),
    {"rows": [[1.0], [2.0]], "n": 1},
    [1.0, "a"],
    "b",
    [np.ones(3), np.ones((2, 2))],
    Place(1.0, ["a", "b"]),
    [],
)


def table(f, *args):
    title, rows = f.explain(*args).sections[1]
    assert title == "arguments" and rows[0] == ["argument", "is", "type", "why"]
    return {row[0]: row[1:] for row in rows[1:]}


def test_each_container_is_explained():
    found = table(relay(use), *ARGUMENTS)
    kinds = {name: row[0] for name, row in found.items()}
    assert kinds == {
        **dict.fromkeys(("x", "xs", "book", "options['rows']", "place.names"), "data"),
        **dict.fromkeys(("pair", "options", "mixed", "mode", "arrays", "place", "nothing"), "structure"),
        **dict.fromkeys(
            ("book[...]['name']", "book[...]['at'][0]", "book[...]['at'][1][...]", "place.names[...]"), "not read"
        ),
    }
    assert found["book"][1] == "list[{name: str, price: float, at: (int, list[int])}]"
    assert found["mixed"][2] == "entry 1 is a str, and the first one a float"
    assert "has no type" in found["nothing"][2]


def stacked(rows, n):
    return np.stack([np.array(row) for row in rows]) * n


@pytest.mark.parametrize("rows", [[(1.0, 2.0), (3.0, 4.0)]])
def test_structure_that_a_program_or_a_decorator_asks_for(rows):
    def last(values):
        return (lambda a, b: a * b)(*values)

    assert table(relay(last), [1.0, 2.0])["values"][::2] == ["structure", "the program needs to know how long it is"]
    assert table(relay(stacked, static="n"), rows, 2)["n"] == ["structure", "", "static= names it"]

"""Strings in lists, in records and in dicts of lists: one program serves all of them, and CPython's answers come back."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from myia_relay import LoweringError, TypeError_, grad, relay
from myia_relay.abstract import reading, words
from tests.programs.cases import EXECUTORS


class Order(NamedTuple):
    kind: str
    price: float


@dataclass(frozen=True)
class Person:
    name: str
    friends: list[str]


def compared(rows):
    return sum(r["price"] for r in rows if r["kind"] == "buy"), [
        r["name"] != "b" and r["kind"] in ("sell", "") for r in rows
    ]


def returned(rows):
    dear, name = -1.0, ""
    for r in rows:
        if r["price"] > dear:
            dear, name = r["price"], r["name"]
    return name, rows[-1], [(r["name"], r["kind"]) for r in rows if r["name"]]


def labelled(rows):
    out = []
    for r in rows:
        out.append("high" if r["price"] > 2.5 else r["kind"] or "none")
    return out


def looked_up(rows):
    signs, total = {"buy": 1.0, "sell": -1.0, "": 0.5}, 0.0
    for r in rows:
        total += signs[r["kind"]] * signs.get(r["name"], 3.0)
    return total, [r["name"] in signs for r in rows]


def matched(rows):
    out = []
    for r in rows:
        match r["kind"]:
            case "buy":
                out.append(1)
            case "":
                out.append(0)
            case other if other == r["name"]:
                out.append(7)
            case _:
                out.append(-1)
    return out


def shown(rows):
    for r in rows:
        print(r["name"], f"{r['kind']!r:>8}|{r['name']:<4}|")
    return str(rows[0]["name"])


def raised(rows):
    for r in rows:
        if r["price"] > 5:
            raise ValueError(r["name"])
        if r["price"] < -5:
            raise ValueError(f"{r['kind']}: {r['name']!r}")
    return f"{rows[0]['name']}!"


def equal_pairs(rows):
    names = [r["name"] for r in rows]
    same = 0
    for i in range(len(names)):
        for j in range(i):
            same += names[i] == names[j]
    return same, names.count("b"), "zz" in names, names == ["a", "b"], isinstance(names[0], str), not names[0]


def in_records(rows):
    orders = [Order(r["kind"], r["price"]) for r in rows]
    return [o for o in orders if o.kind == "buy"], orders[0] == orders[-1]


ROWS = [
    {"name": "a", "kind": "buy", "price": 1.0},
    {"name": "b", "kind": "", "price": 3.0},
    {"name": "", "kind": "sell", "price": 2.0},
    {"name": "b", "kind": "buy", "price": 0.5},
    {"name": "a much longer name \u20ac", "kind": "sell", "price": 9.0},
    {"name": "\udc80", "kind": "buy", "price": -9.0},
]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    "function",
    [compared, returned, labelled, looked_up, matched, shown, equal_pairs, in_records],
    ids=lambda f: f.__name__,
)
def test_one_program_serves_all_strings(function, executor, capsys):
    compiled = relay(function, executor=executor)
    for rows in (ROWS[:2], ROWS[:5] if function is shown else ROWS, ROWS[2:4]):
        want = function(copy.deepcopy(rows)), capsys.readouterr().out
        assert repr((compiled(copy.deepcopy(rows)), capsys.readouterr().out)) == repr(want)
    assert compiled.cache_info().misses == 1


def deeper(groups):
    return [[w for w in row if w != "a"] for row in groups], sum(len(row) for row in groups)


def befriended(people):
    return [p for p in people if "ann" in p.friends]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_lists_of_strings_at_any_depth(executor):
    compiled = relay(deeper, executor=executor)
    for groups in ([["a", "b"], ["c"]], [["a"], [], ["b", "a", "b"]]):
        assert compiled(groups) == deeper(groups)
    people = [Person("bob", ["ann", "eve"]), Person("ann", []), Person("eve", ["bob", "ann"])]
    assert relay(befriended, executor=executor)(people) == befriended(people)


def settle(rows):
    for r in rows:
        r["kind"] = "done" if r["kind"] == "buy" else r["name"]
    rows.append({"name": "new", "kind": rows[0]["kind"], "price": 0.0})


def rename(names):
    names[0], names[-1] = names[-1], "last"
    names.append("new")
    names.pop(1)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_changes_are_made_in_the_callers_objects(executor):
    for function, given in ((settle, ROWS[:4]), (rename, ["a", "b", "", "a"])):
        want, have = copy.deepcopy(given), copy.deepcopy(given)
        function(want)
        entries = list(have)
        relay(function, executor=executor)(have)
        assert have == want
        assert function is rename or all(a is b for a, b in zip(entries, have))


def signed(rows):
    signs, total = {"buy": 1.0, "sell": -1.0}, 0.0
    for kind, price in rows:
        total += signs[kind] * price**2 if kind else price
    return total


@pytest.mark.parametrize("executor", EXECUTORS)
def test_messages_hold_strings(executor):
    compiled = relay(raised, executor=executor)
    assert compiled(ROWS[:2]) == "a!"
    for rows in (ROWS[:5], ROWS[5:]):
        with pytest.raises(ValueError) as want:
            raised(rows)
        with pytest.raises(ValueError) as have:
            compiled(rows)
        assert have.value.args == want.value.args
    assert compiled.cache_info().misses == 1


@pytest.mark.parametrize("executor", EXECUTORS)
def test_gradients_by_the_numbers_beside_strings(executor):
    rows = [("buy", 3.0), ("sell", 5.0), ("", 7.0)]
    assert grad(relay(signed, executor=executor))(rows) == [(None, 6.0), (None, -10.0), (None, 1.0)]
    with pytest.raises(KeyError) as found:
        relay(signed, executor=executor)([("hold", 1.0), ("buy", 1.0)])
    assert found.value.args == ("hold",)


REFUSED = [
    lambda words: [w.upper() for w in words],
    lambda words: [w[0] for w in words],
    lambda words: [w + "x" for w in words],
    lambda words: sum([len(w) for w in words]),
    lambda words: words[0] < words[1],
    lambda words: sorted(words),
    lambda words: [c for w in words for c in w],
    lambda words: words[0] is words[1],
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_what_needs_the_characters_is_refused_or_compiled_for_them(k):
    few, many = ["ab", "c"], [f"n{i}" for i in range(3000)]
    compiled = relay(REFUSED[k])
    if k < 7:
        assert compiled(few) == REFUSED[k](few)  # as structure
    with pytest.raises((LoweringError, TypeError_)) as found:
        relay(REFUSED[k])(many)
    assert found.value.origin is not None


def test_a_string_has_the_attributes_of_strings():
    with pytest.raises(AttributeError, match="'str' object has no attribute 'code'"):
        relay(lambda words: words[0].code)(["a", "b"])


def worth(book):
    return sum(p["price"] * p["count"] for p in book)


def test_strings_that_nobody_reads_get_no_codes():
    f = relay(worth)
    for k in range(5):
        book = [{"name": f"nobody reads {k} {i}", "price": i * 0.5, "count": i} for i in range(6)]
        assert f(book) == worth(book)
    assert not any(row["name"] in words.CODES for row in book) or not reading.in_use()
    assert f.cache_info().misses == 1
    for other in (3, None, "again"):
        assert f([{**row, "name": other} for row in book]) == worth(book)

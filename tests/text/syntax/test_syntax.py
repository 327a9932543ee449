"""The lexer, scopes of graph bindings, depth and size, comments, the prelude, colours."""

from __future__ import annotations

import pytest
from pygments import lex
from pygments.token import Error

from myia_relay import NameError_, ParseError, relay
from myia_relay.cli.format import formatted
from myia_relay.text.dtypes import DTYPES, integer_range, is_float, read_number, rounded, spelled
from myia_relay.text.equality import equal
from myia_relay.text.highlight import RelayLexer, html
from myia_relay.text.module import prelude_tree
from myia_relay.text.placement import placed
from myia_relay.text.printer import print_module
from myia_relay.text.syntax.items import parse
from tests.text.syntax.programs import PROGRAMS

LIMITS = (0.0, -0.0, 1.0, 1e-45, 0.1, 1 / 3, 65504.0, 3.4e38, float("inf"), float("-inf"), float("nan"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_number_is_read_as_it_is_spelled(dtype):
    values = [True, False] if dtype == "bool" else list(integer_range(dtype)) if not is_float(dtype) else LIMITS
    for value in values:
        if dtype == "bool":
            assert spelled(value, dtype) == str(value)
            continue
        value = rounded(value, dtype) if is_float(dtype) else value
        text = spelled(value, dtype)
        found = read_number(text.removeprefix("-"), text.startswith("-"))
        assert repr(found) == repr((value, dtype)) or value != value


PLACED = [
    # a binding stays where it stands
    ("def @main(%x) { %0 = f(%x); g(%0, %0) }", "def @main(%x) { %0 = f(%x); g(%0, %0) }"),
    (
        "def @main(%c) { %0 = f(%c); if (%c) { %0 } else { 1 } }",
        "def @main(%c) { %0 = f(%c); if (%c) { %0 } else { 1 } }",
    ),
    # named beside its block: computed around both
    (
        "def @main(%c, %x) { if (%c) { %0 = f(%x); %0 } else { g(%0) } }",
        "def @main(%c, %x) { %0 = f(%x); if (%c) { %0 } else { g(%0) } }",
    ),
    # named in the other block alone: computed there
    (
        "def @main(%c, %x) { if (%c) { %0 = f(%x); 1 } else { g(%0) } }",
        "def @main(%c, %x) { if (%c) { 1 } else { %0 = f(%x); g(%0) } }",
    ),
    # before the statement with the first use, and with those that it names
    (
        "def @main(%c, %x) { let %a = g(%x); let %b = if (%c) { %0 = f(%a); %1 = h(%0); 1 } else { 2 }; let %d = 3; k(%1, %b) }",
        "def @main(%c, %x) { let %a = g(%x); let %b = if (%c) { 1 } else { 2 }; let %d = 3; %0 = f(%a); %1 = h(%0); k(%1, %b) }",
    ),
    ("def @main(%x) { let %a = { %0 = f(%x); 1 }; %0 + %a }", "def @main(%x) { let %a = 1; %0 = f(%x); %0 + %a }"),
    # a function within is another scope, each call of which computes it
    (
        "def @main(%c, %x) { if (%c) { %0 = f(%x); 1 } else { fn () { g(%0) }() } }",
        "def @main(%c, %x) { if (%c) { 1 } else { fn () { %0 = f(%x); g(%0) }() } }",
    ),
]


@pytest.mark.parametrize("text, expected", PLACED)
def test_graph_bindings_are_placed_by_their_uses(text, expected):
    found = placed(parse(text))
    assert equal(found, parse(expected)), print_module(found)


def test_a_binding_cannot_leave_its_locals():
    text = "def @main(%c) { if (%c) { let %y = 1; %0 = %y; %0 } else { %0 } }"
    with pytest.raises(NameError_, match="%y is not visible"):
        placed(parse(text))


def chain(n: int) -> dict[str, str]:
    """Long and deep texts."""
    return {
        "lets": "def @f(%x0) { " + "".join(f"let %x{i + 1} = %x{i} * 2f;\n" for i in range(n)) + f" %x{n} }}",
        "numbers": "def @f(%x) { %0 = %x; " + "".join(f"%{i + 1} = %{i} + 1;\n" for i in range(n)) + f" %{n} }}",
        "operators": "def @f(%x) { " + " + ".join(["%x"] * n) + " }",
        "writes": "def @f(%x) { " + " := ".join(["%x"] * n) + " }",
        "prefixes": "def @f(%x) { " + "-" * n + "%x }",
        "branches": "def @f(%x) { " + "if (%x) { 1 } else " * n + "{ 2 } }",
        "calls": "def @f(%x) { " + "abs(" * n + "%x" + ")" * n + " }",
        "functions": "def @f(%x) { " + "fn (%y) { " * n + "%x" + " }" * n + " }",
        "sequence": "def @f(%x) { " + "%x; " * n + "%x }",
        "definitions": "".join(f"def @f{i}() {{ {i} }}\n" for i in range(n)),
    }


@pytest.mark.parametrize("kind", chain(1))
def test_long_and_deep_texts(kind):
    tree = parse(chain(2000)[kind])
    text = print_module(tree)
    assert equal(parse(text), tree) and placed(tree) is tree


def test_what_is_too_deep_is_refused():
    with pytest.raises(ParseError, match="nest more than 10000 deep"):
        parse(chain(20_000)["calls"])


@pytest.mark.parametrize("text", PROGRAMS)
def test_a_program_has_colours(text):
    found = list(lex(text, RelayLexer()))
    assert not [value for kind, value in found if kind is Error]
    assert "".join(value for _, value in found).strip() == text.strip()
    assert html(text)


COMMENTED = """// about the module
type L { C(int32, L), N } // a list
/* two
   lines */
def @main(%x: int32) { // head
  // about %y
  let %y = %x + 1; // behind
  if (%y > 2) {
    // in a branch
    %y } else { 0 }
  // at the end
}
def @f(%l: L) { match (%l) { // arms
  C(%x, _) => %x, // taken
  N => 0 } }
// last"""


def test_comments_stay():
    text = formatted(COMMENTED, "<text>", prelude=False)
    assert equal(parse(text), parse(COMMENTED))
    assert formatted(text, "<text>", prelude=False) == text
    for comment in (
        "about the module",
        "a list",
        "two\n   lines",
        "about %y",
        "behind",
        "in a branch",
        "at the end",
        "taken",
        "last",
    ):
        assert text.count(comment) == 1, comment
    assert "let %y = add(%x, 1);  // behind" in text


def test_the_prelude_is_part_of_a_module():
    module = relay.parse_text("def @main() { @length(Cons(1, Nil)) }", prelude=True)
    assert {"main", "map", "foldl", "foldr", "filter", "zip", "unzip", "nth", "Cons", "Some", "Rose"} <= {
        *module,
        *module.tree.constructors,
    }
    assert relay.parse_text(str(module)) == module
    with pytest.raises(ParseError, match="@map is defined already by the prelude"):
        relay.parse_text("def @map() { 1 }", prelude=True)


def test_the_prelude_is_whole():
    """Every type is used, and all signatures are written."""
    tree = prelude_tree()
    for name, definition in tree.definitions.items():
        function = definition.function
        assert function.result is not None and all(p.annotation is not None for p in function.params), name

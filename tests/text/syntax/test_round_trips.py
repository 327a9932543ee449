"""Text and JSON there and back: of programs that use everything, and of random trees."""

from __future__ import annotations

import copy
import json
import pickle

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from myia_relay import ParseError, relay
from myia_relay.text.binders import renewed
from myia_relay.text.equality import equal, fingerprint
from myia_relay.text.json import from_json, to_json
from myia_relay.text.placement import placed
from myia_relay.text.printer import print_module
from myia_relay.text.syntax.items import parse
from myia_relay.text.tree import Local, ModuleTree, TypeParam
from myia_relay.text.walk import bound_locals, walk
from myia_relay.utils.errors import CompileError, NameError_
from tests.text.syntax.mutants import mutant
from tests.text.syntax.programs import DIFFERENT, PROGRAMS, SAME
from tests.text.syntax.random_trees import RandomTrees


def check_round_trips(tree: ModuleTree) -> None:
    """A tree is equal to what its text and its JSON give, and these print the same."""
    text = print_module(tree)
    again = parse(text)
    assert print_module(again) == text
    assert equal(again, tree) and equal(tree, again) and fingerprint(again) == fingerprint(tree)
    loaded = from_json(to_json(again))
    assert equal(loaded, again) and print_module(loaded) == text
    assert to_json(loaded) == to_json(again)


@pytest.mark.parametrize("text", PROGRAMS)
def test_a_program_comes_back(text):
    check_round_trips(parse(text))


@pytest.mark.parametrize("text, other", SAME)
def test_spellings_of_one_module(text, other):
    a, b = parse(text), parse(other)
    assert equal(a, b) and equal(b, a) and fingerprint(a) == fingerprint(b)


@pytest.mark.parametrize("text, other", DIFFERENT)
def test_modules_that_differ(text, other):
    a, b = parse(text), parse(other)
    assert not equal(a, b) and not equal(b, a)


def test_programs_are_only_equal_to_themselves():
    """But for the spellings of one module among them."""
    trees = [parse(text) for text in PROGRAMS]
    texts = [print_module(tree) for tree in trees]
    for i, tree in enumerate(trees):
        for k in range(i):
            assert equal(tree, trees[k]) == (texts[i] == texts[k]), (texts[i], texts[k])


# ---------------------------------------------------------------- random trees


@st.composite
def trees(draw) -> ModuleTree:
    return RandomTrees(lambda n: draw(st.integers(0, n - 1))).module()


RANDOM = settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)


@RANDOM
@given(trees())
def test_random_trees_come_back(tree):
    check_round_trips(tree)


def random_tree(seed: int) -> ModuleTree:
    """The tree of a seed: much faster than one that Hypothesis draws."""
    numbers = np.random.default_rng(seed)
    return RandomTrees(lambda n: int(numbers.integers(n))).module()


@pytest.mark.parametrize("seeds", [range(200), pytest.param(range(200, 20_000), marks=pytest.mark.campaign)])
def test_many_random_trees_come_back(seeds):
    for seed in seeds:
        check_round_trips(random_tree(seed))


def binders(tree: ModuleTree) -> list[Local | TypeParam]:
    """Everything that a module binds."""
    found: list[Local | TypeParam] = []
    for definition in tree.definitions.values():
        for e in walk(definition):
            found.extend(bound_locals(e))
            found.extend(getattr(e, "type_params", ()))
    return found


def test_a_renewed_copy_is_equal_and_shares_no_binder():
    for seed in range(200):
        tree = random_tree(seed)
        copied = tree.mapped(lambda name, function: renewed(function))
        assert equal(tree, copied)
        assert not set(binders(tree)) & set(binders(copied))
        assert len(set(binders(copied))) == len(binders(copied))


def test_placed_bindings_stay_where_they_are():
    moved = 0
    for seed in range(300):
        tree = random_tree(seed)
        try:
            first = placed(tree)
        except NameError_:
            continue
        moved += first is not tree
        again = parse(print_module(first))
        assert placed(again) is again and equal(again, first)
    assert moved > 10


# ---------------------------------------------------------------- mutants


@pytest.mark.parametrize("seeds", [range(500), pytest.param(range(500, 100_000), marks=pytest.mark.campaign)])
def test_mutants_are_read_or_refused(seeds):
    """Whatever a text is, it has a tree that comes back, or errors that can be shown."""
    texts = [*PROGRAMS, *(print_module(random_tree(seed)) for seed in range(100))]
    refused = 0
    for seed in seeds:
        numbers = np.random.default_rng(seed)
        text = mutant(texts[seed % len(texts)], lambda n, numbers=numbers: int(numbers.integers(n)))
        try:
            if seed % 2:
                module = relay.parse_text(text)
                assert relay.parse_text(str(module)) == module
            else:
                check_round_trips(parse(text))
        except CompileError as error:
            refused += 1
            assert str(error) and error.loc is not None, text
    assert 0.5 < refused / len(seeds) < 0.99


# ---------------------------------------------------------------- modules


MODULE = """type List[A] { Cons(A, List[A]), Nil, }
def @main(%l: List[int32], %x: Tensor[(n, 2), float32]) -> int32 {
  %0 = Constant(1, (2), float32);
  match (%l) { Cons(%h, _) => %h, Nil => 0 }
}"""


def test_a_module_is_a_value():
    module = relay.parse_text(MODULE)
    for other in (
        relay.from_json(module.to_json()),
        relay.from_json(module.to_json().encode()),
        relay.parse_text(str(module)),
        pickle.loads(pickle.dumps(module)),
        copy.deepcopy(module),
        copy.copy(module),
    ):
        assert other == module and hash(other) == hash(module) and str(other) == str(module)
    assert module != relay.parse_text("def @main() { 1 }") and module != MODULE


def test_a_module_is_a_mapping():
    module = relay.parse_text(MODULE)
    assert list(module) == ["main"] and len(module) == 1
    assert "main" in module and "Cons" in module and "other" not in module
    assert repr(module) == "<relay module: @main, type List>"
    with pytest.raises(KeyError, match="did you mean 'main'"):
        module["mein"]


def test_a_module_in_a_notebook():
    html = relay.parse_text(MODULE)._repr_html_()
    assert "<span" in html and "Cons" in html and "%l" in html


def test_json_is_as_described():
    data = json.loads(relay.parse_text(MODULE).to_json())
    assert data["relay"] == 1 and [data["nodes"][i][0] for i in (*data["types"], *data["functions"])] == [
        "TypeDef",
        "Definition",
    ]
    assert data["constants"] == [{"dtype": "float32", "shape": [2], "data": "AACAPwAAgD8="}]
    for i, node in enumerate(data["nodes"]):
        for index in node[1:]:
            if (
                isinstance(index, int)
                and not isinstance(index, bool)
                and node[0] not in ("Literal", "Constant", "Projection")
            ):
                assert index < i
    texts = [json.dumps(node) for node in data["nodes"]]
    assert len(set(texts)) == len(texts)  # equal nodes are one


BROKEN = [
    ("", "no JSON"),
    ("[" * 100_000, "no JSON"),
    ("[]", "no module as JSON"),
    ('{"relay": 2}', "version 2"),
    ('{"relay": 1, "types": [], "functions": []}', "lacks a list 'nodes'"),
]


@pytest.mark.parametrize("text, message", BROKEN)
def test_other_json_is_refused(text, message):
    with pytest.raises(ParseError, match=message):
        relay.from_json(text)


def test_changed_json_is_read_or_refused():
    """Each value of a module's JSON, replaced by others."""
    original = json.loads(
        relay.parse_text(MODULE + "\ndef @f(%x: float64) { let %y = abs(%x); (%y, 1.5f, True).0 }").to_json()
    )
    read = 0
    for part in ("types", "functions", "nodes", "constants"):
        for i in range(len(original[part])):
            entry = original[part][i]
            for k in range(len(entry)) if isinstance(entry, list) else [None]:
                for value in (None, 0, -1, 10**9, 3, True, "x", "?", [], [0], {"var": 0}, {}, 1.5, [["a", [[1]]]]):
                    data = json.loads(json.dumps(original))
                    if k is None:
                        data[part][i] = value
                    else:
                        data[part][i][k] = value
                    try:
                        module = relay.from_json(json.dumps(data))
                    except CompileError as error:
                        assert str(error)
                    else:
                        read += 1
                        assert relay.from_json(module.to_json()) == module
    assert read > 10

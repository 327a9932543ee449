"""Mutated modules: the checker accepts or refuses them, and what it writes of their types is true."""

from __future__ import annotations

import random
import re

import pytest

from myia_relay.text.check.annotate import annotated
from myia_relay.text.check.module import check
from myia_relay.text.operators import OPERATORS
from myia_relay.text.placement import placed
from myia_relay.text.printer import print_module
from myia_relay.text.syntax.items import parse
from myia_relay.utils.errors import CompileError

from .operator_calls import program
from .test_checker import ERRORS, TYPES
from .test_operators import CASES

TOKEN = re.compile(r'"[^"]*"|\d+\.\d+\w*|%\w+|@\w+|\w+(?:\.\w+)*|->|=>|:=|[^\s\w]')
TEXTS = [
    *(text for text, _ in TYPES),
    *(text.replace("«", "").replace("»", "") for text, _, _ in ERRORS),
    *(program(*c.values[:3], through=bool(k % 2)) for k, c in enumerate(CASES)),
]


def kind_of(token):
    """Tokens of one kind may stand for each other."""
    if token in OPERATORS:
        return "operator"
    if token[0].isdigit():
        return "number"
    if token[0].isalpha():
        return "name"
    return token[0] if token[0] in '%@"(){}[]<>' else "sign"


POOLS: dict[str, list[str]] = {}
for _token in [t for text in TEXTS for t in TOKEN.findall(text)] + 3 * list(OPERATORS):
    POOLS.setdefault(kind_of(_token), []).append(_token)


def mutant(rng):
    """A text in which a few tokens are others, of the same kind for the most part."""
    tokens = TOKEN.findall(rng.choice(TEXTS))
    for _ in range(rng.randint(1, 3)):
        at, chance = rng.randrange(len(tokens)), rng.random()
        if chance < 0.8:
            own = [t for t in tokens if kind_of(t) == kind_of(tokens[at])]
            tokens[at] = rng.choice(own if rng.random() < 0.5 else POOLS[kind_of(tokens[at])])
        elif chance < 0.9 and len(tokens) > 3:
            del tokens[at]
        else:
            tokens.insert(at, rng.choice(tokens))
    return " ".join(tokens)


def hold(seed, count):
    """How many mutants are well-typed; each that is has a text with types that is, too."""
    rng, accepted = random.Random(seed), 0
    for _ in range(count):
        text = mutant(rng)
        try:
            found = check(placed(parse(text)))
        except CompileError as error:
            assert str(error)
            continue
        accepted += 1
        check(placed(parse(print_module(annotated(found)))))
    return accepted


def test_mutants():
    assert hold(1, 600) > 100


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(20))
def test_many_mutants(seed):
    assert hold(seed, 5000) > 500

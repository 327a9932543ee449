"""Operators and inferred types in modules that run: values have the types that the checker found."""

from __future__ import annotations

import random

import numpy as np
import pytest

import myia_relay as relay
from myia_relay.text.terms.show import show
from myia_relay.text.terms.terms import TensorTerm, resolved
from myia_relay.utils.errors import CompileError, InternalError

from .operator_calls import _flattened, agrees, program
from .test_mutants import mutant
from .test_operators import CASES, check_value

pytest.importorskip("myia_relay.text.run")


@pytest.mark.sampled(12)
@pytest.mark.parametrize("through", [False, True])
@pytest.mark.parametrize(("name", "args", "attrs", "expected"), CASES)
def test_operators_in_modules(name, args, attrs, expected, through):
    main = relay.parse_text(program(name, args, attrs, through=through))["main"]
    check_value(main.interpret(*_flattened(args, str)[1]), expected)


def arguments(scheme):
    """Arrays of the types of parameters; None where these are not all known and small."""
    rng, out = np.random.default_rng(0), []
    if scheme.params:
        return None
    for p in map(resolved, scheme.type.params):
        known = isinstance(p, TensorTerm) and isinstance(p.shape, tuple) and all(isinstance(n, int) for n in p.shape)
        if not known or p.dtype == "bfloat16" or np.prod(p.shape) > 5000:
            return None
        x = np.abs(rng.normal(size=p.shape) * 2) if "int" in p.dtype else rng.normal(size=p.shape) * 2
        out.append(np.asarray(x > 0 if p.dtype == "bool" else x).astype(p.dtype)[()])
    return out


def hold(seed, count):
    """How many mutants ran."""
    rng, ran = random.Random(seed), 0
    for _ in range(count):
        text = mutant(rng)
        try:
            module = relay.parse_text(text)
        except CompileError:
            continue
        for name, scheme in module.checked.schemes.items():
            given = arguments(scheme)
            result = resolved(scheme.type.result)
            if given is None or not isinstance(result, TensorTerm):
                continue
            try:
                value = module[name].interpret(*given)
            except InternalError:
                raise
            except Exception:
                continue
            ran += 1
            assert agrees(result, value), (text, show(result), np.shape(value))
    return ran


def test_mutants_have_the_types_that_were_inferred():
    assert hold(1, 150) > 20


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(10))
def test_many_mutants_have_the_types_that_were_inferred(seed):
    assert hold(seed + 2, 2000) > 200

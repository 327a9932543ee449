"""Constant tensors: `Constant(value, shape, dtype)`, and the pool behind `#[metadata]`."""

from __future__ import annotations

import json
import math

import numpy as np

from ...utils.errors import ParseError
from ..dtypes import DTYPES, integer_range, is_float, numpy_dtype
from ..lexer import Tokens
from ..pool import POOL, decoded
from ..span import Span
from ..tree import Expression, Literal, TensorConstant, TupleExpr, constant
from .attributes import AttributeParser

LARGEST = 1 << 30  # bytes of a constant that is written as one value and a shape


def full(parser: AttributeParser, at: int) -> Expression:
    """`Constant(value, shape, dtype)` behind its name, which is at `at`: a tensor full of one value."""
    opened = parser.expect("(", "(")
    value = parser.attribute()
    parser.expect(",", ", and a shape: Constant(value, shape, dtype)")
    shape = parser.attribute()
    parser.expect(",", ", and a dtype: Constant(value, shape, dtype)")
    if parser.kinds[parser.pos] == "string":
        dtype = parser.text()
    else:
        dtype = parser.texts[parser.expect("name", "a dtype")]
    parser.accept(",")
    parser.close(opened)
    span = parser.since(at)
    sizes = shape if isinstance(shape, tuple) else (shape,)
    problem = ""
    if dtype not in DTYPES:
        problem = f"there is no dtype {dtype}"
    elif not all(type(size) is int and size >= 0 for size in sizes):
        problem = "the shape of a constant is a list of numbers: Constant(2, (2, 3), float32)"
    elif not isinstance(value, (bool, int, float)):
        problem = "the value of a constant is a number"
    elif (problem := _misfit(value, dtype)) == "":
        lengths = [size for size in sizes if isinstance(size, int)]
        if math.prod(max(size, 1) for size in lengths) * 8 > LARGEST or len(lengths) > 32:
            problem = "this constant is too large"
        else:
            return constant(np.full(lengths, value, numpy_dtype(dtype)), span)
    parser.note(problem, span)
    return TupleExpr((), span=span)


def pooled(parser: AttributeParser, pool: list[Literal | TensorConstant], at: int) -> Expression:
    """`meta[relay.Constant][0]` behind its first word, which is at `at`: a constant of the metadata."""
    what = "meta[relay.Constant][0]"
    parser.expect("[", f"[ as in {what}")
    name = parser.texts[parser.expect("name", f"relay.Constant, as in {what}")]
    parser.expect("]", f"] as in {what}")
    parser.expect("[", f"[ as in {what}")
    index = parser.texts[parser.expect("number", "the number of a constant")]
    parser.expect("]", f"] as in {what}")
    span = parser.since(at)
    if name != "relay.Constant":
        parser.note("the metadata holds constants only: meta[relay.Constant][0]", span)
    elif not index.isdigit() or len(index) > 9 or int(index) >= len(pool):
        parser.unbound(f"the metadata of this text holds {len(pool)} constants, none of number {index[:9]}", span)
    else:
        value = pool[int(index)]
        if isinstance(value, Literal):
            return Literal(value.value, value.dtype, span=span)
        return TensorConstant(value.value, span=span)
    return TupleExpr((), span=span)


def _misfit(value: bool | int | float, dtype: str) -> str:
    """Why a number is none of a dtype; empty where it is."""
    if dtype == "bool":
        return "" if value in (0, 1) else f"{value} is no bool"
    if is_float(dtype):
        return "" if not isinstance(value, int) or abs(value) < 1 << 1000 else "the value is too large"
    least, largest = integer_range(dtype)
    if isinstance(value, float) and not value.is_integer() or not least <= value <= largest:
        return f"{value} is no {dtype}"
    return ""


def read_pool(tokens: Tokens) -> list[Literal | TensorConstant]:
    """The constants behind `#[metadata]`; what is wrong with them is added to the errors of the tokens."""
    if tokens.metadata is None:
        return []
    text, offset = tokens.metadata

    def wrong(message: str, at: int = 0) -> list:
        begin = min(offset + at, len(tokens.source.text))
        tokens.errors.append(ParseError(message, Span(tokens.source, begin, begin + 1).loc))
        return []

    start = len(text) - len(text.lstrip())
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        return wrong(f"the metadata is no JSON: {error.msg}", error.pos)
    except (RecursionError, ValueError):
        return wrong("the metadata is no JSON of ours", start)
    if not isinstance(data, dict) or not set(data) <= {POOL} or not isinstance(data.get(POOL, []), list):
        return wrong(f'the metadata is {{"{POOL}": [constants]}}', start)
    found = []
    for i, entry in enumerate(data.get(POOL, [])):
        try:
            found.append(constant(decoded(entry)))
        except ValueError as error:
            return wrong(f"constant {i} of the metadata: {error}", start)
    return found

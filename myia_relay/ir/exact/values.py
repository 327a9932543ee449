"""Values, types and sizes of exact texts (`ir.exact.printer`): what operands, attributes and headers are made of.

Input: a `LineScanner` before one of them. Output: the value, type or size, with the scanner behind it.
"""

from __future__ import annotations

import base64
import binascii
import builtins
import contextlib
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from ...abstract.dims import DimLike, divide, symbol
from ...abstract.family import Family
from ...abstract.types import (
    FLOATS,
    INTS,
    NONE,
    Array,
    Data,
    List,
    NoneT,
    Scalar,
    Str,
    Struct,
    Tape,
    Type,
    Undefined,
    numpy_dtype,
)
from ...utils.errors import nearest
from ..node import Graph
from .printer import PYTHON
from .scanner import LineScanner

DTYPES = frozenset({*FLOATS, *INTS, "bool"})
_NAMED: dict[str, Type] = {
    **{name: Scalar(dtype, True) for dtype, (name, _) in PYTHON.items()},
    "None": NONE,
    "str": Str(),
    "unbound": Undefined(),
}
_WORDS = {"True": True, "False": False, "None": None, "inf": float("inf"), "nan": float("nan")}


class ValueReader:
    """Reads values, types and sizes.

    Attributes:
        symbols, graphs, arrays: what the names in a text stand for.
    """

    symbols: Mapping[str, Any]
    graphs: dict[str, Graph]
    arrays: dict[str, np.ndarray]

    def series(self, scanner: LineScanner, closing: str, one: Callable[[], Any]) -> list[Any]:
        """What stands between commas, up to the bracket that closes it; a comma may be the last."""
        found = []
        while not scanner.accept(closing):
            found.append(one())
            if not scanner.accept(","):
                scanner.expect(closing)
                break
        return found

    def value(self, scanner: LineScanner) -> Any:
        """An attribute, or a constant.

        Raises:
            ParseError: it is neither.
        """
        token = scanner.token
        match token.kind:
            case "string" | "number":
                value = scanner.literal(token.text)
                scanner.take()
                return value
            case "sigil":
                return self.referred(scanner)
            case "name":
                return self._named(scanner)
        if scanner.accept("-"):
            if scanner.token.kind != "number" and scanner.token.text != "inf":
                raise scanner.expected("a number")
            return -self.value(scanner)
        if scanner.accept("("):
            return self._tuple(scanner, self.value)
        if scanner.accept("["):
            return self.series(scanner, "]", lambda: self.value(scanner))
        if scanner.accept("{"):
            return self._dict(scanner, self.value)
        raise scanner.expected("a value")

    def _tuple(self, scanner: LineScanner, one: Callable[[LineScanner], Any]) -> tuple:
        """The rest of a tuple. One element needs a comma behind it."""
        elements = self.series(scanner, ")", lambda: one(scanner))
        if len(elements) == 1 and scanner.tokens[scanner.position - 2].text != ",":
            raise scanner.fail("a tuple of one element has a comma: (x,)", scanner.tokens[scanner.position - 1])
        return tuple(elements)

    def _dict(self, scanner: LineScanner, one: Callable[[LineScanner], Any]) -> dict:
        found = {}

        def item() -> None:
            token = scanner.token
            key = self.value(scanner)
            if not isinstance(key, Hashable):
                raise scanner.fail("this is no key", token)
            scanner.expect(":")
            found[key] = one(scanner)

        self.series(scanner, "}", item)
        return found

    def referred(self, scanner: LineScanner) -> Any:
        token = scanner.token
        sigil = token.text[0]
        if sigil == "%":
            raise scanner.expected("a value")
        name = scanner.name(sigil, "a name")
        known: Mapping[str, Any] = self.graphs if sigil == "@" else self.symbols
        if name not in known:
            what = f"there is no graph {name}" if sigil == "@" else f"no symbol {name} was given"
            raise scanner.fail(f"{what}{nearest(name, known)}", token)
        return known[name]

    def _named(self, scanner: LineScanner) -> Any:
        """A value that begins with a name."""
        token = scanner.take()
        if token.text in _WORDS:
            return _WORDS[token.text]
        follows = scanner.token.text
        if token.text == "array" and follows == "[":
            scanner.take()
            number = scanner.take()
            scanner.expect("]")
            if number.text not in self.arrays:
                raise scanner.fail(f"there is no line array[{number.text[:20]}] = ...", number)
            return self.arrays[number.text]
        if token.text in DTYPES and follows == "[":
            scanner.position -= 1
            return self.array(scanner)
        if token.text == "bits":
            scanner.position -= 1
            return self._element(scanner, numpy_dtype("float64")).item()
        if scanner.accept("("):
            value = self._called(scanner, token.text)
            if value is not None:
                scanner.expect(")")
                return value
        found = getattr(builtins, token.text, None)
        if isinstance(found, type) and follows != "(":
            return found
        raise scanner.fail(f"{token.text} is no value", token)

    def _called(self, scanner: LineScanner, name: str) -> Any:
        """What stands between parentheses behind a name; None if the name means nothing."""
        match name:
            case "type":
                return self.type(scanner)
            case "size":
                return self.size(scanner)
        if name.startswith("np.") and name[3:] in DTYPES:
            return self._element(scanner, numpy_dtype(name[3:]))
        return None

    def array(self, scanner: LineScanner) -> np.ndarray:
        """An array: `float64[3]([1.0, 2.0, 3.0])`, or base64 between the parentheses."""
        first = scanner.token
        t = self.type(scanner)
        if not isinstance(t, Array) or not all(type(d) is int and d >= 0 for d in t.shape):
            raise scanner.fail("this is no array of known size", first)
        dtype = numpy_dtype(t.dtype)
        scanner.expect("(")
        token = scanner.token
        if token.kind == "string":
            try:
                data = base64.b64decode(scanner.literal(scanner.take().text), validate=True)
            except (ValueError, TypeError, binascii.Error):
                raise scanner.fail("this is no base64", token) from None
            if len(data) % dtype.itemsize:
                raise scanner.fail(f"{len(data)} bytes are no array of {t.dtype}", token)
            flat = np.frombuffer(data, dtype).copy()
        else:
            scanner.expect("[")
            flat = np.array(self.series(scanner, "]", lambda: self._element(scanner, dtype)), dtype)
        scanner.expect(")")
        if flat.size != t.size:
            raise scanner.fail(f"these are {flat.size} elements of {t.size}", token)
        return flat.reshape(t.shape)  # type: ignore[arg-type]

    def _element(self, scanner: LineScanner, dtype: np.dtype) -> Any:
        """One element of a dtype."""
        token = scanner.token
        if token.text == "bits":
            scanner.take()
            scanner.expect("(")
            bits = self.value(scanner)
            scanner.expect(")")
            if type(bits) is int and 0 <= bits < 1 << 8 * dtype.itemsize and dtype.name in FLOATS:
                return np.frombuffer(bits.to_bytes(dtype.itemsize, "little"), dtype)[0]
            raise scanner.fail(f"these are no bits of a {dtype.name}", token)
        value = self.value(scanner)
        if type(value) is {"f": float, "V": float, "b": bool}.get(dtype.kind, int):
            with contextlib.suppress(OverflowError):
                return np.array([value], dtype)[0]
        raise scanner.fail(f"this is no {dtype.name}", token)

    # ------------------------------------------------ types

    def type(self, scanner: LineScanner) -> Any:
        """A type.

        Raises:
            ParseError: it is none.
        """
        token = scanner.token
        if scanner.accept("("):
            return Struct("tuple", self._tuple(scanner, self.type))
        if scanner.accept("["):
            return Struct("list", tuple(self.series(scanner, "]", lambda: self.type(scanner))))
        if scanner.accept("{"):
            found = self._dict(scanner, self.type)
            return Struct("dict", tuple(found.values()), tuple(found))
        if token.kind == "sigil":
            return self._symbol_type(scanner)
        if token.kind != "name":
            raise scanner.expected("a type")
        scanner.take()
        name = token.text
        if name in DTYPES and scanner.accept("["):  # before bool by itself
            return Array(name, tuple(self.series(scanner, "]", lambda: self.size(scanner))))
        if name in _NAMED:
            return _NAMED[name]
        prefix, _, dtype = name.partition(".")
        if prefix in ("np", "weak") and dtype in DTYPES:
            return Scalar(dtype, prefix == "weak")
        if name in ("list", "tape") and scanner.accept("["):
            elem, owner = self.type(scanner), ""
            if name == "tape" and scanner.accept(","):
                owner = self._is(str, scanner, "the name of the tape's owner")
            scanner.expect("]")
            return List(elem) if name == "list" else Tape(elem, owner)
        if name == "struct" and scanner.accept("("):
            kind = self._is(str, scanner, "a kind of structures")
            scanner.expect(",")
            fields = self._is(tuple, scanner, "the names of the parts")
            scanner.expect(",")
            cls = self.value(scanner)
            parts = []
            if scanner.accept(","):
                parts = self.series(scanner, ")", lambda: self.type(scanner))
            else:
                scanner.expect(")")
            return Struct(kind, tuple(parts), fields, cls)
        if name == "data" and scanner.accept("("):
            family = self._is(Family, scanner, "the symbol of a family")
            scanner.expect(")")
            nullable = scanner.accept("|")
            if nullable and scanner.take().text != "None":
                raise scanner.fail("None is needed here", scanner.tokens[scanner.position - 1])
            return Data(family, nullable)
        raise scanner.fail(f"{name} is no type{nearest(name, [*_NAMED, *DTYPES])}", token)

    def _is(self, cls: type, scanner: LineScanner, what: str) -> Any:
        token = scanner.token
        value = self.value(scanner)
        if not isinstance(value, cls):
            raise scanner.fail(f"{what} is needed here", token)
        return value

    def _symbol_type(self, scanner: LineScanner) -> Type:
        """`$name`, a type; or `$name(x: float)`, a record of this class."""
        token = scanner.token
        found = self.referred(scanner)
        if not scanner.accept("("):
            if not isinstance(found, Type):
                raise scanner.fail("this symbol is no type", token)
            return found
        fields: list[str] = []

        def part() -> Type:
            fields.append(scanner.take().text)
            scanner.expect(":")
            return self.type(scanner)

        return Struct("record", tuple(self.series(scanner, ")", part)), tuple(fields), found)

    def size(self, scanner: LineScanner) -> DimLike:
        """A size: sums of products of names, numbers and quotients.

        Raises:
            ParseError: it is none.
        """
        total: DimLike = -self._product(scanner) if scanner.accept("-") else self._product(scanner)
        while scanner.token.text in ("+", "-"):
            minus = scanner.take().text == "-"
            term = self._product(scanner)
            total = total - term if minus else total + term
        return total

    def _product(self, scanner: LineScanner) -> DimLike:
        found = self._factor(scanner)
        while scanner.token.text in ("*", "//"):
            divides, token = scanner.take().text == "//", scanner.token
            factor = self._factor(scanner)
            if divides and factor == 0:
                raise scanner.fail("this divides by zero", token)
            found = divide(found, factor) if divides else found * factor
        return found

    def _factor(self, scanner: LineScanner) -> DimLike:
        token = scanner.token
        if scanner.accept("("):
            found = self.size(scanner)
            scanner.expect(")")
            return found
        if token.kind == "name":
            return symbol(scanner.take().text)
        number = self.value(scanner) if token.kind == "number" else None
        if type(number) is not int:
            raise scanner.fail("this is no size", token)
        return number


def type_of(value: Any) -> Type | None:
    """The type of a constant that is written without one."""
    if value is None:
        return NONE
    if type(value) is np.ndarray:
        return Array(value.dtype.name, value.shape)
    if isinstance(value, np.generic):
        return Scalar(value.dtype.name)
    return {cls: Scalar(dtype, True) for dtype, (_, cls) in PYTHON.items()}.get(type(value))


def fits(value: Any, t: Type) -> bool:
    """Whether a number or an array has the shape that its type says, and what has to be a number is one."""
    if isinstance(t, Scalar | Array):
        return isinstance(value, np.ndarray | np.generic | bool | int | float) and np.shape(value) == t.shape
    if isinstance(t, Str | NoneT):
        return isinstance(value, str) == isinstance(t, Str)
    return True


__all__ = ["DTYPES", "ValueReader", "fits", "type_of"]

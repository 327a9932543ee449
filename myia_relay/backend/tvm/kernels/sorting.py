"""Sorting rows: by their digits where they are long, else by merging.

Numbers become keys, integers in the same order (the bits of a float, inverted but for the sign where it is negative), so that every
dtype is sorted by the same code. Short rows are cut into runs that are sorted by insertion, and merged; for long ones
each byte of the keys is a digit by which they are distributed, from the last to the first (D. E. Knuth, "The Art of Computer
Programming" 3, 5.2.5, radix list sort). A digit that is the same in all keys is left out: small integers take one or two passes.
All of this is stable. Equal numbers have equal keys; -0.0 and NaN, whose bits the keys have lost, are put back in their order.

Input: a `Call` of `sort_rows` or `argsort_rows`. Output: statements in its kernel.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ..tir.block import call, const, idx, load

RUN = 16  # keys that are sorted by insertion
LONG = 384  # from this length on rows are sorted by digits
DIGITS = 256
FLOATS = ("float16", "bfloat16", "float32", "float64")
MANTISSA = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}


class _Keys:
    """Keys of the numbers of a dtype. They are signed: TVM takes bounds of uint64 for those of int64."""

    def __init__(self, block: Any, dtype: str):
        self.block, self.dtype = block, dtype
        self.bits = 8 if dtype == "bool" else int(dtype.lstrip("abfilnotu"))
        self.kind = f"int{self.bits}"
        self.floats = dtype in FLOATS
        self.highest = const((1 << (self.bits - 1)) - 1, self.kind)
        self.zero = const(0, self.kind)

    def word(self, value: Any) -> Any:
        """The bits of a number."""
        if self.dtype in ("bool", self.kind):
            return self.block.let(tirx.Cast(self.kind, value) if self.dtype == "bool" else value)
        return self.block.let(call("tirx.reinterpret", self.kind, value))  # one of bfloat16 is kept as its bits

    def size(self, word: Any) -> Any:
        """The bits of a float without its sign."""
        return tirx.bitwise_and(word, self.highest)

    def is_zero(self, word: Any) -> Any:
        """Whether these are the bits of a zero."""
        return tirx.EQ(self.size(word), self.zero)

    def is_nan(self, word: Any) -> Any:
        """Whether these are the bits of NaN."""
        mantissa = MANTISSA[self.dtype]
        infinity = ((1 << (self.bits - 1 - mantissa)) - 1) << mantissa
        return tirx.GT(self.size(word), const(infinity, self.kind))

    def loses(self, word: Any) -> Any:
        """Whether the key of a float of these bits is that of others too."""
        return tirx.Or(tirx.And(self.is_zero(word), tirx.LT(word, self.zero)), self.is_nan(word))

    def turned(self, word: Any) -> Any:
        """The key of a number, but for -0.0 and NaN, and the bits of the number of a key."""
        if self.floats:
            return tirx.Select(tirx.LT(word, self.zero), tirx.bitwise_xor(word, self.highest), word)
        if self.dtype.startswith("uint"):
            return tirx.bitwise_xor(word, const(-(1 << (self.bits - 1)), self.kind))
        return word

    def of(self, word: Any) -> Any:
        """The key of a number of these bits."""
        key = self.turned(word)
        if not self.floats:
            return key
        return tirx.Select(self.is_zero(word), self.zero, tirx.Select(self.is_nan(word), self.highest, key))

    def number(self, key: Any) -> Any:
        """The number of a key."""
        word = self.turned(key)
        if self.dtype == self.kind:
            return word
        if self.dtype == "bool":
            return tirx.NE(word, self.zero)
        return call("tirx.reinterpret", "uint16" if self.dtype == "bfloat16" else self.dtype, self.block.let(word))

    def digit(self, key: Any, place: int) -> Any:
        """A byte of a key, from the last on; of the first, the sign is turned."""
        byte = tirx.shift_right(key, const(8 * place, self.kind)) if place else key
        byte = tirx.bitwise_and(tirx.Cast("int64", byte), idx(DIGITS - 1))
        return tirx.bitwise_xor(byte, idx(DIGITS // 2)) if place == self.bits // 8 - 1 else byte


class _Sort:
    """The sorting of the rows of one matrix.

    Attributes:
        keys, places: memory for two times the keys of a row, and for their positions where these are asked for.
        at: the half in which they are.
    """

    def __init__(self, c: Any, positions: bool):
        (kind,), self.c, self.block = c.types, c, c.block
        rows, length = kind.shape
        self.x, self.out = c.operand(0)[0], c.result()[0]
        self.n = self.block.once(idx(c.dim(length)))
        self.key = _Keys(self.block, kind.dtype)
        self.keys = c.scratch(2 * length, self.key.kind)[0]
        self.places = c.scratch(2 * length, "int64")[0] if positions else None
        self.at = self.block.cell(idx(0), "half")
        with self.block.loop(c.dim(rows), name="row") as row:
            self.first = self.block.let(tirx.Mul(row, self.n))
            lost = self.read()
            if isinstance(length, int):
                self.by_merging() if length < LONG else self.by_digits()
            else:
                with self.block.when(tirx.LT(self.n, idx(LONG))):
                    self.by_merging()
                with self.block.otherwise():
                    self.by_digits()
            self.write(lost)

    def read(self) -> Any:
        """Make the keys of a row; returns a cell that is not 0 where one of them has lost bits, or None."""
        block, key = self.block, self.key
        lost = block.cell(const(0, "int64"), "lost") if key.floats and self.places is None else None
        block.store(self.at, idx(0), 0)
        with block.loop(self.n, name="k") as k:
            word = key.word(load(self.x, tirx.Add(self.first, k)))
            block.store(self.keys, key.of(word), k)
            if self.places is not None:
                block.store(self.places, k, k)
            if lost is not None:
                found = tirx.Cast("int64", key.loses(word))
                block.store(lost, tirx.bitwise_or(load(lost, 0), found), 0)
        return lost

    def move(self, source: Any, target: Any) -> None:
        """Copy a key, and its position."""
        self.block.store(self.keys, load(self.keys, source), target)
        if self.places is not None:
            self.block.store(self.places, load(self.places, source), target)

    def other(self) -> Any:
        """Where the other half begins."""
        return tirx.Sub(self.n, load(self.at, 0))

    def by_merging(self) -> None:
        """Sort by runs of growing length."""
        block, n = self.block, self.n
        with block.loop(tirx.Div(tirx.Add(n, idx(RUN - 1)), idx(RUN)), name="run") as run:
            start = block.let(tirx.Mul(run, idx(RUN)))
            stop = block.let(tirx.Min(tirx.Add(start, idx(RUN)), n))
            with block.loop(tirx.Sub(stop, start), name="k") as k:
                self.insert(start, block.let(tirx.Add(start, k)))
        width = block.cell(idx(RUN), "width")
        with block.while_(tirx.LT(load(width, 0), n)):
            old, new = block.let(load(self.at, 0)), block.let(self.other())
            start = block.cell(idx(0), "start")
            with block.while_(tirx.LT(load(start, 0), n)):
                begin = block.let(load(start, 0))
                middle = block.let(tirx.Min(tirx.Add(begin, load(width, 0)), n))
                stop = block.let(tirx.Min(tirx.Add(middle, load(width, 0)), n))
                self.merge(old, new, begin, middle, stop)
                block.store(start, stop, 0)
            block.store(self.at, new, 0)
            block.store(width, tirx.Mul(load(width, 0), idx(2)), 0)

    def insert(self, start: Any, k: Any) -> None:
        """Put key k where it belongs among those from `start` on, which are in order."""
        block = self.block
        key = block.let(load(self.keys, k))
        place = block.let(load(self.places, k)) if self.places is not None else None
        j = block.cell(k, "j")
        before = load(self.keys, tirx.Max(tirx.Sub(load(j, 0), idx(1)), idx(0)))
        with block.while_(tirx.And(tirx.GT(load(j, 0), start), tirx.GT(before, key))):
            self.move(tirx.Sub(load(j, 0), idx(1)), load(j, 0))
            block.store(j, tirx.Sub(load(j, 0), idx(1)), 0)
        block.store(self.keys, key, load(j, 0))
        if self.places is not None:
            block.store(self.places, place, load(j, 0))

    def merge(self, old: Any, new: Any, begin: Any, middle: Any, stop: Any) -> None:
        """Merge two runs, which are next to each other, into the other half."""
        block = self.block
        i, j, k = (block.cell(v, name) for v, name in ((begin, "i"), (middle, "j"), (begin, "k")))
        with block.while_(tirx.And(tirx.LT(load(i, 0), middle), tirx.LT(load(j, 0), stop))):
            a, b = (block.let(tirx.Add(old, load(at, 0))) for at in (i, j))
            left = block.let(tirx.LE(load(self.keys, a), load(self.keys, b)))
            self.move(tirx.Select(left, a, b), tirx.Add(new, load(k, 0)))
            one = block.let(tirx.Cast("int64", left))
            block.store(i, tirx.Add(load(i, 0), one), 0)
            block.store(j, tirx.Add(load(j, 0), tirx.Sub(idx(1), one)), 0)
            block.store(k, tirx.Add(load(k, 0), idx(1)), 0)
        for at, end in ((i, middle), (j, stop)):
            rest = block.let(tirx.Max(tirx.Sub(end, load(at, 0)), idx(0)))
            source, target = block.let(tirx.Add(old, load(at, 0))), block.let(tirx.Add(new, load(k, 0)))
            with block.loop(rest, name="r") as r:
                self.move(tirx.Add(source, r), tirx.Add(target, r))
            block.store(k, tirx.Add(load(k, 0), rest), 0)

    def by_digits(self) -> None:
        """Sort by each byte of the keys, the last first."""
        block, n, key = self.block, self.n, self.key
        count = key.bits // 8
        counts = block.local("int64", count * DIGITS, "counts")
        with block.loop(count * DIGITS, name="d") as d:
            block.store(counts, idx(0), d)

        with block.loop(n, name="k") as k:
            value = block.let(load(self.keys, k))
            for place in range(count):
                at = block.let(tirx.Add(idx(place * DIGITS), key.digit(value, place)))
                block.store(counts, tirx.Add(load(counts, at), idx(1)), at)
        for place in range(count):
            old, new = block.let(load(self.at, 0)), block.let(self.other())
            any_key = load(self.keys, old)
            shared = load(counts, tirx.Add(idx(place * DIGITS), key.digit(any_key, place)))
            with block.when(tirx.LT(shared, n)):
                total = block.cell(new, "total")
                with block.loop(DIGITS, name="d", begin=0) as d:
                    at = tirx.Add(idx(place * DIGITS), d)
                    begin = block.let(load(total, 0))
                    block.store(total, tirx.Add(begin, load(counts, at)), 0)
                    block.store(counts, begin, at)
                with block.loop(n, name="k") as k:
                    source = block.let(tirx.Add(old, k))
                    at = block.let(tirx.Add(idx(place * DIGITS), key.digit(block.let(load(self.keys, source)), place)))
                    target = block.let(load(counts, at))
                    block.store(counts, tirx.Add(target, idx(1)), at)
                    self.move(source, target)
                block.store(self.at, new, 0)

    def write(self, lost: Any) -> None:
        """Write the sorted row, or its positions."""
        block, key = self.block, self.key
        half = block.let(load(self.at, 0))
        if self.places is not None:
            with block.loop(self.n, name="k") as k:
                block.store(self.out, load(self.places, tirx.Add(half, k)), tirx.Add(self.first, k))
            return
        with block.loop(self.n, name="k") as k:
            block.store(self.out, key.number(block.let(load(self.keys, tirx.Add(half, k)))), tirx.Add(self.first, k))
        if lost is not None:
            with block.when(tirx.NE(load(lost, 0), idx(0))):
                self.put_back()

    def put_back(self) -> None:
        """Write zeros and NaN of a row in their order, and with their own bits."""
        block, key = self.block, self.key
        below, nans = block.cell(idx(0), "below"), block.cell(idx(0), "nans")

        def words() -> Any:
            return block.loop(self.n, name="k")

        with words() as k:
            word = key.word(load(self.x, tirx.Add(self.first, k)))
            is_nan = key.is_nan(word)
            block.store(nans, tirx.Add(load(nans, 0), tirx.Cast("int64", is_nan)), 0)
            less = tirx.And(tirx.LT(key.of(word), key.zero), tirx.Not(is_nan))
            block.store(below, tirx.Add(load(below, 0), tirx.Cast("int64", less)), 0)
        zero = block.cell(tirx.Add(self.first, load(below, 0)), "zero")
        last = block.cell(tirx.Sub(tirx.Add(self.first, self.n), load(nans, 0)), "last")
        with words() as k:
            number = load(self.x, tirx.Add(self.first, k))
            word = key.word(number)
            for cell, condition in ((zero, key.is_zero(word)), (last, key.is_nan(word))):
                with block.when(condition):
                    block.store(self.out, number, load(cell, 0))
                    block.store(cell, tirx.Add(load(cell, 0), idx(1)), 0)


def sort_rows(c: Any) -> None:
    """The elements of each row in order."""
    _Sort(c, False)


def argsort_rows(c: Any) -> None:
    """Their positions."""
    _Sort(c, True)


__all__ = ["argsort_rows", "sort_rows"]

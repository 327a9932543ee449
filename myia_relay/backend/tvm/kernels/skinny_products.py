"""Products of matrices of few rows, such as those of a layer and its gradients over a mini-batch, without copies.

A BLAS copies its operands into the order in which it reads them, which pays if each number is used hundreds of times. A
batch uses a layer's weights as often as it has rows, so here they are read in place. A tile of the result stays in
registers:

- `X @ W` and `X.T @ Y`: rows of the right matrix are vectors, and each row of a tile is a sum of multiples of them. A
  panel of its columns, as wide as a tile, stays in the second-level cache while the left matrix is traversed; meanwhile
  the next one is prefetched. From 129 rows on a copy of the panel is read, whose rows lie side by side.
- `X @ W.T`: from 16 rows on, a panel of W is transposed in registers, and multiplied as the others are. For fewer rows that
  does not pay: rows of both are vectors, whose products are summed lane by lane; a panel of rows of W stays in the
  first-level cache. While a panel is multiplied, the rows of the next one, which lie behind it, are prefetched.

- A matrix that a loop multiplies by again and again is packed before it (`opt.kernels.packed_products`): the panels are two
  vectors wide and lie one behind the other.

With a vector, or up to four, only the speed at which the matrix is read matters: long rows are read one after the other, and
fetched ahead. If a loop multiplies by the same matrix again and again, every other iteration reads it backwards: the part that
was read last is still in the second-level cache.

A tile is a function of its own, for any strides, which all products of a program share: LLVM needs tens of milliseconds
for one.

Input: an `opaque.Call`, static sizes. Output: statements in its kernel, and functions. Source: K. Goto and R. van de
Geijn, "Anatomy of high-performance matrix multiplication" (TOMS 2008), section 4, without its packing.

Measured (Zen 5, one thread, float32, OpenBLAS's AVX-512 kernels in the same run): for 64 rows and sides of 256 to 2048,
OpenBLAS takes 0.95 to 1.2 times as long for `X @ W`, 1.1 to 1.14 for `X.T @ Y`, 1.04 to 1.33 for `X @ W.T`; for 16 rows
1.5, 1.0 and 1.9; for 128 rows 1.14, 1.1 and 1.02. On Sapphire Rapids (2 MiB of second-level cache) it takes 1.3 to 1.5
times as long for `X @ W.T` of 64 and 128 rows, and 1.8 for 20; where the panel is not transposed ours takes up to 2.1
times as long. A matrix of 5 MB by a vector takes 0.17 ms there from the third-level cache, also in OpenBLAS, and 0.13 if
every other reading goes backwards. On Zen 4 (1 MiB of second-level cache) 35 rows by 2600 x 650 transposed take 1.25 ms
where the matrix is in no cache, and took 1.65 without the prefetching; two threads read a matrix of 1.7 MB in half the time.
With vectors of less than 512 bits nothing was measured, and the BLAS multiplies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tvm import tirx

from ....utils.switches import is_left_out
from ..plan import ITEM
from ..tir import pipeline
from ..tir.block import Block, broadcast, const, idx, load, shuffle, vload, with_lanes
from ..tir.exact import fma
from ..tir.transpose import transposed
from .kernel import address_of, buffer_parameter
from .nests import lanes_for

FEW = 128  # rows for which the other matrix is read in place, and of matrices that are given transposed
MANY = 512  # rows for which panels of the other matrix are copied; beyond, a BLAS is as quick
LEAST = 32  # of what is summed over
MOST = 2048  # of what is summed over, so that a panel stays in the cache
TURNED = 16  # rows from which on a transposed matrix is turned back, panel by panel
WORK = 1 << 23  # multiplications: below this, the gain in a call is not worth the time to compile the code
# Rows and vectors of columns: together with a row of vectors and a number, these are the registers of AVX-512.
TILE = (8, 3)
WIDTH = 2  # vectors of columns at least
PACKED_ROWS = 12  # rows of a tile of two vectors at most
ROWS_AHEAD = 48  # so far ahead rows of a packed panel are fetched
PACE = 1 << 16  # the unit of what a tile fetches for later, see `_columns`
DOTS = (4, 6)  # rows of both matrices
VECTORS = {1: 8, 2: 8, 3: 8, 4: 6}  # rows of the right matrix, for so few of the left
LONG = 1 << 13  # bytes of a row from which on rows are read one after the other
CHAINS = 8  # sums of a row, so that additions do not wait for each other
DOT_AHEAD = 1 << 11  # bytes: so far ahead a row is fetched
LARGE = 1 << 20  # bytes of a matrix: smaller ones are in the second-level cache; larger ones are shared by threads


def is_thin(m: Any, n: Any, k: Any, ta: bool, tb: bool, dtype: str, batch: Any = 1) -> bool:
    """Whether a product of (m, k) and (k, n), or a batch of them, is quicker so; either may be stored transposed."""
    if (
        not all(isinstance(size, int) for size in (batch, m, n, k))
        or is_left_out("skinny_products")
        or pipeline.vector_bytes() < 64
    ):
        return False
    if batch * m * n * k < WORK or not LEAST <= k <= MOST or (ta and tb):
        return False
    return n >= WIDTH * lanes_for(dtype) and (batch == 1 or m >= TILE[0]) and (k <= FEW if ta else m <= MANY)


def is_vector(m: Any, n: Any, k: Any, dtype: str) -> bool:
    """Whether a product of (m, k) with a large matrix of n rows, stored transposed, is quicker by its rows."""
    if not all(isinstance(size, int) for size in (m, n, k)) or is_left_out("skinny_products"):
        return False
    wide = pipeline.vector_bytes() >= 64 and m in VECTORS and k >= LEAST
    return wide and n >= VECTORS[m] and n * k * ITEM[dtype] >= LARGE


def vector_product(c: Any, operands: tuple[Any, Any], m: int, n: int, k: int, tasks: int) -> None:
    """Emit the product of (m, k), m at most 4, with a matrix (n, k), transposed.

    Args:
        c: the call.
        operands: which of its arguments is the small one, and which the matrix.
        m, n, k: sizes.
        tasks: on so many threads.
    """
    block, across = c.block, VECTORS[m]
    (left, right), out = (c.operand(a)[0] for a in operands), c.result()[0]
    turn = c.lowering.turn
    backwards = None if turn is None else c.kernel.value_param("turn", tirx.BitwiseAnd(idx(turn), idx(1)))

    alone = m == 1 and k * ITEM[c.out_type.dtype] >= LONG

    def tile(j: Any, rows: int) -> None:
        kind = ("dot", c.out_type.dtype) if alone else ("dots", c.out_type.dtype, m)
        key = (*kind, rows, k % lanes_for(c.out_type.dtype))
        call_tile(c, key, ((left, idx(0)), (right, tirx.Mul(j, idx(k))), (out, j)), (k, n))

    panels = n // across
    share = -(-panels // tasks)
    with block.loop(tasks, "parallel" if tasks > 1 else "serial") as task:
        first = block.let(tirx.Mul(task, idx(share)))
        count = block.let(tirx.Min(idx(share), tirx.Sub(idx(panels), first)))
        with block.loop(count) as i:
            place = i
            if backwards is not None:
                last = tirx.Sub(tirx.Sub(count, idx(1)), i)
                place = tirx.Select(tirx.EQ(backwards, idx(0)), i, last)
            tile(block.let(tirx.Mul(tirx.Add(first, place), idx(across))), across)
    if n % across:
        tile(idx(n - n % across), n % across)


def call_tile(c: Any, key: tuple, places: Iterable[tuple[Any, Any]], numbers: tuple[Any, ...]) -> None:
    """Call a tile's function."""
    addresses = [address_of(*place) for place in places]
    strides = [idx(n) if isinstance(n, int) else n for n in numbers]
    c.kernel.call(key, lambda: _TILES[key[0]](*key[1:]), [*addresses, *strides])


def thin_product(c: Any, m: int, n: int, k: int, ta: bool, tb: bool, tasks: int, batch: int = 1) -> None:
    """Emit it, on so many threads; of as many pairs of matrices as the batch has."""
    block, dtype = c.block, c.out_type.dtype
    lanes = lanes_for(dtype)
    left, right, out = (buffer for buffer, _ in (c.operand(0), c.operand(1), c.result()))
    dots = tb and m < TURNED
    down, across = DOTS if dots else (TILE[0], min(TILE[1], n // lanes) * lanes)
    pack = ta or m > FEW if not tb else not dots
    # Where the panels of one product are divided among threads each has a place of its own, since it does not know its thread.
    divided = tasks > 1 and batch == 1
    places = -(-n // across) if divided else tasks
    scratch = c.scratch(k * places * across, dtype) if pack else None

    def over(extent: int, step: int, body: Callable, kind: str = "serial") -> None:
        """`body(first, count)` for as many whole steps as there are, and for the rest."""
        with block.loop(extent // step, kind) as iteration:
            body(block.let(tirx.Mul(iteration, idx(step))), step)
        if extent % step:
            body(idx(extent - extent % step), extent % step)

    def one(task: Any, pair: Any) -> None:
        """A product."""
        a, b, into = (block.let(tirx.Mul(pair, idx(size))) for size in (m * k, k * n, m * n))

        def panel(j: Any, columns: int) -> None:
            """Some columns of the result."""
            source, step = (right, tirx.Add(b, tirx.Mul(j, idx(k)) if tb else j)), n
            matrix = source
            if scratch is not None:
                place = tirx.Mul(j, idx(k)) if divided else tirx.Mul(task, idx(k * across))
                packed = scratch[0], tirx.Add(idx(scratch[1]), place)
                key = ("turned", dtype, columns, k % lanes) if tb else ("copied", dtype, columns)
                call_tile(c, key, (source, packed), (k,) if tb else (n, k))
                source, step = packed, columns

            def part(i: Any, rows: int) -> None:
                target = out, tirx.Add(into, tirx.Add(tirx.Mul(i, idx(n)), j))
                along = tirx.Add(a, tirx.Mul(i, idx(k)))
                if dots:
                    call_tile(c, ("dots", dtype, rows, columns, k % lanes), ((left, along), source, target), (k, n))
                    return
                place, strides = (tirx.Add(a, i), (1, m)) if ta else (along, (k, 1))
                # The next panel: beside this one, or, of a transposed matrix, behind it, a part for each tile.
                ahead, further = idx(columns), idx(step)
                if tb:
                    lines = -(-columns // (lanes * -(-m // down)))
                    ahead = tirx.Add(idx(k * columns), tirx.Mul(tirx.Div(i, idx(down)), idx(k * lines * lanes)))
                    further = idx(lines * lanes)
                places = (left, place), source, matrix if tb else source, target
                call_tile(c, ("columns", dtype, rows, columns), places, (*strides, step, ahead, further, PACE, n, k))

            over(m, down, part)

        over(n, across, panel, "parallel" if divided else "serial")

    if batch == 1:
        one(idx(0), idx(0))
        return
    share = -(-batch // tasks)
    with block.loop(tasks, "parallel" if tasks > 1 else "serial") as task:
        first = block.let(tirx.Mul(task, idx(share)))
        with block.loop(tirx.Min(idx(share), tirx.Sub(idx(batch), first))) as i:
            one(task, block.let(tirx.Add(first, i)))


def pack(c: Any, n: int, k: int, transposed: bool, width: int, tasks: int) -> None:
    """Emit the copy of a matrix (k, n), or (n, k) if it is stored transposed, as panels of so many columns."""
    (matrix, _), (out, _), dtype = c.operand(0), c.result(), c.out_type.dtype

    def panel(j: Any, columns: int) -> None:
        places = (matrix, tirx.Mul(j, idx(k)) if transposed else j), (out, tirx.Mul(j, idx(k)))
        key = ("turned", dtype, columns, k % lanes_for(dtype)) if transposed else ("copied", dtype, columns)
        call_tile(c, key, places, (k,) if transposed else (n, k))

    _over_panels(c.block, n, width, panel, tasks)


def packed_product(c: Any, m: int, n: int, k: int, width: int, tasks: int) -> None:
    """Emit the product of (m, k) with a matrix of n columns that `pack` has packed."""
    block, dtype = c.block, c.out_type.dtype
    (left, _), (right, _), (out, _) = c.operand(0), c.operand(1), c.result()
    count = -(-m // PACKED_ROWS)
    parts = [(m * p // count, m * (p + 1) // count) for p in range(count)]

    def panel(j: Any, columns: int) -> None:
        source = right, tirx.Mul(j, idx(k))
        for start, end in parts:
            places = (left, idx(start * k)), source, source, (out, tirx.Add(idx(start * n), j))
            key = ("columns", dtype, end - start, columns)
            call_tile(c, key, places, (k, 1, columns, columns * ROWS_AHEAD, columns, PACE, n, k))

    _over_panels(block, n, width, panel, tasks)


def _over_panels(block: Block, n: int, width: int, panel: Callable[[Any, int], None], tasks: int) -> None:
    """`panel(first, columns)` for all panels of a matrix of n columns."""
    if n >= width:
        with block.loop(n // width, "parallel" if tasks > 1 else "serial") as iteration:
            panel(block.let(tirx.Mul(iteration, idx(width))), width)
    if n % width:
        panel(idx(n - n % width), n % width)


def _vectors(columns: int, lanes: int) -> list[tuple[int, int]]:
    """The first column and the width of each vector of a row."""
    return [(s, min(lanes, columns - s)) for s in range(0, columns, lanes)]


class _Tile:
    """The function of a tile under construction: of the addresses of its corner in the operands and the result, and of numbers."""

    def __init__(self, dtype: str, *numbers: str, places: tuple[str, ...] = ("left", "right", "out")):
        self.dtype, self.lanes, self.block = dtype, lanes_for(dtype), Block()
        pointers, buffers, declarations = zip(*(buffer_parameter(name, dtype) for name in places))
        found = dict(zip(places, buffers))
        self.left, self.right, self.out = found.get("left"), found["right"], found["out"]
        self.later, self.copy = found.get("later"), found.get("copy")
        for declaration in declarations:
            self.block.emit(declaration)
        self.numbers = [tirx.Var(name, "int64") for name in numbers]
        self.params = [*pointers, *self.numbers]

    def sums(self, rows: int, widths: list[int]) -> list[list[Any]]:
        """Accumulators of zeros: of each row, some of so many elements each."""
        return [[self.block.cell(const(0.0, with_lanes(self.dtype, w)), "acc") for w in widths] for _ in range(rows)]

    def vector(self, matrix: Any, place: Any, width: int) -> Any:
        """So many elements of a row, and zeros up to a whole vector."""
        lanes, found = self.lanes, vload(matrix, place, width)
        if width < lanes:
            zeros = const(0.0, f"{self.dtype}x{lanes}")
            vector = broadcast(found, 2) if width == 1 else found
            behind = width + (width == 1)
            found = shuffle([vector, zeros], [*range(width), *range(behind, behind + lanes - width)])
        return self.block.let(found)

    def function(self) -> tuple[list[Any], Block]:
        return self.params, self.block


def _columns(dtype: str, rows: int, columns: int, copies: bool = False) -> tuple[list[Any], Block]:
    """A tile of sums of multiples of rows of the right matrix: out[r, j] = sum over t of left[r * down + t * along] * right[t, j].

    Args:
        dtype, rows, columns: of the tile.
        copies: whether it copies its part of the right matrix, so that the rows lie side by side for the tiles below.

    Returns:
        Parameters and statements: of the addresses of the matrices, of what is read later, of the result, and of the copy where
        there is one; `down`, `along`, how far rows of the right matrix lie apart, how far behind the third address the fetching
        begins, how far the rows there lie apart, how many of them are fetched for `PACE` rows of the right matrix, how far
        rows of the result lie apart, and how many rows the right matrix has.
    """
    numbers = ("down", "along", "right_step", "ahead", "later_step", "pace", "out_step", "k")
    f = _Tile(dtype, *numbers, places=("left", "right", "later", "out", *(("copy",) if copies else ())))
    down, along, right_step, ahead, later_step, pace, out_step, k = f.numbers
    block, vectors = f.block, _vectors(columns, f.lanes)
    sums = f.sums(rows, [w for _, w in vectors])

    def places(first: int) -> Iterator[Any]:
        return (tirx.Add(tirx.Mul(idx(first + r), out_step), idx(s)) for r in range(rows) for s, _ in vectors)

    for place in places(rows):  # the tile below is next; its rows, which lie far apart, are in no cache
        block.prefetch(f.out, place)
    with block.loop(k) as t:
        row = block.let(tirx.Mul(t, right_step))
        line = tirx.Div(tirx.Mul(t, pace), idx(PACE))
        place = block.let(tirx.Add(tirx.Mul(line, later_step), ahead))
        for s, _ in vectors:
            block.prefetch(f.later, tirx.Add(place, idx(s)), write=False, near=2)
        values = [block.let(vload(f.right, tirx.Add(row, idx(s)), w)) for s, w in vectors]
        if f.copy is not None:
            for (s, _), value in zip(vectors, values):
                block.vstore(f.copy, value, tirx.Add(tirx.Mul(t, idx(columns)), idx(s)))
        for r in range(rows):
            factor = block.let(load(f.left, tirx.Add(tirx.Mul(t, along), tirx.Mul(idx(r), down))))
            for acc, value, (_, w) in zip(sums[r], values, vectors):
                block.store(acc, fma(broadcast(factor, w), value, load(acc, 0)), 0)
    for acc, place in zip((acc for row in sums for acc in row), places(0)):
        block.vstore(f.out, load(acc, 0), place)
    return f.function()


def _dots(dtype: str, rows: int, columns: int, rest: int) -> tuple[list[Any], Block]:
    """A tile of dot products of rows of both matrices; `rest`: how many elements of a row do not fill a vector.

    Returns:
        Parameters and statements: of three addresses, the length of the rows, and the columns of the result.
    """
    f = _Tile(dtype, "k", "n")
    k, n = f.numbers
    block, lanes = f.block, f.lanes
    sums = f.sums(rows, [lanes] * columns)

    def add(t: Any, width: int) -> None:
        left, right = (
            [f.vector(matrix, tirx.Add(tirx.Mul(idx(r), k), t), width) for r in range(count)]
            for matrix, count in ((f.left, rows), (f.right, columns))
        )
        for row, x in zip(sums, left):
            for acc, y in zip(row, right):
                block.store(acc, fma(x, y, load(acc, 0)), 0)

    with block.loop(tirx.Div(k, idx(lanes))) as iteration:
        add(block.let(tirx.Mul(iteration, idx(lanes))), lanes)
    if rest:
        add(block.let(tirx.Sub(k, idx(rest))), rest)

    for r, row in enumerate(sums):
        for s, acc in enumerate(row):
            block.store(f.out, block.folded(load(acc, 0), tirx.Add), tirx.Add(tirx.Mul(idx(r), n), idx(s)))
    return f.function()


def _dot(dtype: str, columns: int, rest: int) -> tuple[list[Any], Block]:
    """As `_dots`, of one row of the left matrix: rows of the right one are read one after the other, as they lie in memory.

    A matrix of 512 x 3136 takes 48 to 51 us so from the third-level cache of Zen 5, and 56 where eight rows are read at once;
    with rows of 650, of which a part is nearer, sums of lanes cost more than that.
    """
    f = _Tile(dtype, "k", "n")
    k, _ = f.numbers
    block, lanes = f.block, f.lanes
    vectors = block.let(tirx.Div(k, idx(lanes)))
    with block.loop(columns) as r:
        begin = block.let(tirx.Mul(r, k))
        (sums,) = f.sums(1, [lanes] * CHAINS)

        def add(acc: Any, t: Any, width: int) -> None:
            x, y = f.vector(f.left, t, width), f.vector(f.right, tirx.Add(begin, t), width)
            block.store(acc, fma(x, y, load(acc, 0)), 0)

        with block.loop(tirx.Div(vectors, idx(CHAINS))) as iteration:
            first = block.let(tirx.Mul(iteration, idx(lanes * CHAINS)))
            for u, acc in enumerate(sums):
                t = block.let(tirx.Add(first, idx(u * lanes)))
                block.prefetch(f.right, tirx.Add(tirx.Add(begin, t), idx(DOT_AHEAD // ITEM[dtype])), write=False)
                add(acc, t, lanes)
        left = block.let(tirx.Mod(vectors, idx(CHAINS)))
        with block.loop(left) as iteration:
            add(sums[0], block.let(tirx.Mul(tirx.Add(tirx.Sub(vectors, left), iteration), idx(lanes))), lanes)
        if rest:
            add(sums[0], block.let(tirx.Sub(k, idx(rest))), rest)
        while len(sums) > 1:
            for acc, other in zip(sums[::2], sums[1::2]):
                block.store(acc, tirx.Add(load(acc, 0), load(other, 0)), 0)
            sums = sums[::2]
        block.store(f.out, block.folded(load(sums[0], 0), tirx.Add), r)
    return f.function()


def _turned(dtype: str, columns: int, rest: int) -> tuple[list[Any], Block]:
    """A panel of a transpose: out[t, j] = right[j, t]; `rest`: how many elements of a row do not fill a vector.

    Returns:
        Parameters and statements: of two addresses and the length of the rows of the right matrix.
    """
    f = _Tile(dtype, "k", places=("right", "out"))
    (k,) = f.numbers
    block, lanes = f.block, f.lanes
    whole = columns - columns % lanes

    def row(r: int) -> Any:
        return tirx.Mul(idx(r), k)

    def column(t: Any) -> Any:
        return tirx.Mul(t, idx(columns))

    if whole:
        with block.loop(tirx.Div(k, idx(lanes))) as i:
            t = block.let(tirx.Mul(i, idx(lanes)))
            # A loop, not copies of its body: LLVM takes seconds for the addresses of three squares.
            with block.loop(whole // lanes) as j:
                first = block.let(tirx.Mul(j, idx(lanes)))
                source = block.let(tirx.Add(tirx.Mul(first, k), t))
                target = block.let(tirx.Add(column(t), first))
                rows = [vload(f.right, tirx.Add(source, row(r)), lanes) for r in range(lanes)]
                for r, vector in enumerate(transposed(block, rows)):
                    block.vstore(f.out, vector, tirx.Add(target, column(idx(r))))

    def copy(rows: range, t: Any) -> None:
        """Numbers that fill no square."""
        for r in rows:
            block.store(f.out, load(f.right, tirx.Add(row(r), t)), tirx.Add(column(t), idx(r)))

    if rest and whole:
        with block.loop(rest) as left:
            copy(range(whole), block.let(tirx.Add(tirx.Sub(k, idx(rest)), left)))
    if whole < columns:
        with block.loop(k) as t:
            copy(range(whole, columns), t)
    return f.function()


def _copied(dtype: str, columns: int) -> tuple[list[Any], Block]:
    """A panel of a matrix: out[t, j] = right[t, j], where its rows do not push each other out of the cache.

    Returns:
        Parameters and statements: of two addresses, how far rows of the right matrix lie apart, and how many there are.
    """
    f = _Tile(dtype, "step", "k", places=("right", "out"))
    step, k = f.numbers
    with f.block.loop(k) as t:
        source, target = f.block.let(tirx.Mul(t, step)), f.block.let(tirx.Mul(t, idx(columns)))
        for s, w in _vectors(columns, f.lanes):
            f.block.vstore(f.out, vload(f.right, tirx.Add(source, idx(s)), w), tirx.Add(target, idx(s)))
    return f.function()


_TILES = {"columns": _columns, "copied": _copied, "dot": _dot, "dots": _dots, "turned": _turned}

__all__ = [
    "LEAST",
    "MANY",
    "MOST",
    "PACE",
    "TILE",
    "VECTORS",
    "call_tile",
    "is_thin",
    "is_vector",
    "pack",
    "packed_product",
    "thin_product",
    "vector_product",
]

"""Convolutions of small planes, by BLAS: the patches of several samples in one matrix.

Idea: `conv` multiplies by the weights once for each sample. Where a plane has 4 or 16 elements and there are 512 channels,
these are products of a large matrix with a few columns: all weights are read for every sample, or, by their gradient, read and
written. With the patches of many samples in one matrix, weights are read once:

    Y = w @ col(x[0], ..., x[m-1]),    dw = [dy[0], ..., dy[m-1]] @ col(...).T,    dx = col2im(w.T @ [dy[0], ..., dy[m-1]])

A matrix has a row for each channel (or each element of a patch), and in it the samples are innermost: the elements that
neighbouring positions of the result have under one weight are then neighbours too, for all samples, and a row of the plane is
copied as vectors even where it has two elements. For that the samples are turned first: `planes` is (channel, row, column,
sample), with the padding around.

Threads divide the channels; where they multiply, the rows of the product.

Input, output: as `conv`; the number of samples is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from ..tir.block import Block, load, vload
from . import blas
from .conv import by_channel
from .patches import Conv, Operand, along_row, at, fill, plus, times

POSITIONS = 64  # elements of a plane of the result at most
WEIGHTS = 1 << 16  # of them at least: fewer stay in the first caches from sample to sample
COLUMNS = 256  # of a matrix: more make no product faster


def is_joined(s: Conv, n: Any) -> bool:
    """Whether a batch of n samples is convolved so."""
    return isinstance(n, int) and n > 1 and s.dilations == (1, 1) and s.positions <= POSITIONS and s.weights >= WEIGHTS


def scratch_size(s: Conv, n: int) -> int:
    """Elements of scratch that each of the functions needs."""
    m = _together(s, n)
    return m * (s.channels * _height(s) * _width(s) + (s.patch + s.filters) * s.positions)


def forward(b: Block, s: Conv, n: int, x: Operand, w: Operand, y: Operand, scratch: Operand, tasks: int) -> None:
    """y = w * x."""
    for samples, first in _groups(b, s, n, tasks, scratch):
        samples.forward(at(x, times(first, s.size_in)), w, at(y, times(first, s.size_out)))


def grad_weight(b: Block, s: Conv, n: int, x: Operand, dy: Operand, dw: Operand, scratch: Operand, tasks: int) -> None:
    """dw = the gradient of the weights, summed over the batch, in the same order for any number of threads."""
    for samples, first in _groups(b, s, n, tasks, scratch):
        begins = isinstance(first, int) and first == 0
        samples.grad_weight(at(x, times(first, s.size_in)), at(dy, times(first, s.size_out)), dw, begins)


def grad_input(b: Block, s: Conv, n: int, w: Operand, dy: Operand, dx: Operand, scratch: Operand, tasks: int) -> None:
    """dx = the gradient of the input."""
    for samples, first in _groups(b, s, n, tasks, scratch):
        samples.grad_input(w, at(dy, times(first, s.size_out)), at(dx, times(first, s.size_in)))


def _together(s: Conv, n: int) -> int:
    """Samples whose patches are in one matrix."""
    return min(n, max(1, COLUMNS // s.positions))


def _groups(b: Block, s: Conv, n: int, tasks: int, scratch: Operand) -> Iterator[tuple[_Samples, Any]]:
    """The samples that are taken together, and the number of the first; what the caller emits is for each such group."""
    m = _together(s, n)
    group = _Samples(b, s, m, tasks, scratch)
    yield group, 0
    if n // m > 1:
        with b.loop(n // m - 1, name="group") as k:
            yield group, times(plus(k, 1), m)
    if n % m:
        yield _Samples(b, s, n % m, tasks, scratch), n - n % m


def _height(s: Conv) -> int:
    return s.height + s.pads[0] + s.pads[1]


def _width(s: Conv) -> int:
    return s.width + s.pads[2] + s.pads[3]


@dataclass
class _Samples:
    """Some samples whose patches are in one matrix.

    Attributes:
        b: where to emit.
        s: the shape.
        m: how many.
        tasks: threads.
        scratch: holds the matrix of patches, the results' or their gradients' and the turned samples.
    """

    b: Block
    s: Conv
    m: int
    tasks: int
    scratch: Operand

    @property
    def columns(self) -> int:
        """Columns of the matrices."""
        return self.m * self.s.positions

    @property
    def results(self) -> Operand:
        """The matrix of the results or their gradients, with a row for each filter."""
        return at(self.scratch, self.s.patch * self.columns)

    @property
    def planes(self) -> Operand:
        """The turned samples, with the padding around: (channel, row, column, sample)."""
        return at(self.scratch, (self.s.patch + self.s.filters) * self.columns)

    def forward(self, x: Operand, w: Operand, y: Operand) -> None:
        """y = w * x."""
        s = self.s

        def product(o: Any, count: int) -> None:
            to = at(self.results, times(o, self.columns))
            blas.gemm(self.b, count, self.columns, s.patch, at(w, times(o, s.patch)), self.scratch, to)
            self.turn_results(y, o, count, back=True)

        by_channel(self.b, s.channels, self.tasks, lambda c, count: self.gather(x, c, count))
        by_channel(self.b, s.filters, self.tasks, product)

    def grad_weight(self, x: Operand, dy: Operand, dw: Operand, begins: bool) -> None:
        """dw (+)= the gradient of the weights; set where it `begins`."""
        s = self.s

        def product(o: Any, count: int) -> None:
            self.turn_results(dy, o, count)
            rows, into = at(self.results, times(o, self.columns)), at(dw, times(o, s.patch))
            beta = 0.0 if begins else 1.0
            blas.gemm(self.b, count, s.patch, self.columns, rows, self.scratch, into, trans_x=True, beta=beta)

        by_channel(self.b, s.channels, self.tasks, lambda c, count: self.gather(x, c, count))
        by_channel(self.b, s.filters, self.tasks, product)

    def grad_input(self, w: Operand, dy: Operand, dx: Operand) -> None:
        """dx = the gradient of the input."""
        s = self.s

        def product(c: Any, count: int) -> None:
            rows, to = at(w, times(c, s.taps)), at(self.scratch, times(c, s.taps * self.columns))
            blas.gemm(
                self.b, count * s.taps, self.columns, s.filters, rows, self.results, to, trans_a=True, lda=s.patch
            )
            self.scatter(dx, c, count)

        by_channel(self.b, s.filters, self.tasks, lambda o, count: self.turn_results(dy, o, count))
        by_channel(self.b, s.channels, self.tasks, product)

    def gather(self, x: Operand, begin: Any, count: int) -> None:
        """The patches of `count` channels of x, from channel `begin` on."""
        if any(self.s.pads):
            self.clear(begin, count)
        self.turn(x, begin, count)
        self.runs(begin, count, lambda plane, row, n: self.move(row, plane, n))

    def scatter(self, dx: Operand, begin: Any, count: int) -> None:
        """Add the patches of `count` channels to where their elements came from, and set dx to the sums."""
        self.clear(begin, count)
        self.runs(begin, count, lambda plane, row, n: self.move(plane, row, n, add=True))
        self.turn(dx, begin, count, back=True)

    def runs(self, begin: Any, count: int, emit: Callable[[Operand, Operand, int], None]) -> None:
        """Call emit(turned samples, row of the matrix, n) for all n neighbours in both, of channels."""
        s, b = self.s, self.b
        (high, wide), (down, across) = s.kernel, s.strides
        with b.loop(count, name="c") as k, b.loop(high, name="kh") as kh, b.loop(wide, name="kw") as kw:
            c = plus(k, begin)
            tap = plus(times(c, s.taps), times(kh, wide), kw)
            with b.loop(s.out_height, name="oh") as oh:
                at_row = plus(times(plus(times(c, _height(s)), times(oh, down), kh), _width(s)), kw)
                plane = at(self.planes, times(at_row, self.m))
                row = at(self.scratch, plus(times(tap, self.columns), times(oh, s.out_width * self.m)))
                if across == 1:
                    emit(plane, row, s.out_width * self.m)
                else:
                    with b.loop(s.out_width, name="ow") as ow:
                        emit(at(plane, times(ow, across * self.m)), at(row, times(ow, self.m)), self.m)

    def move(self, target: Operand, source: Operand, n: int, *, add: bool = False) -> None:
        """Copy n elements, or add them."""

        def step(i: Any, k: int) -> None:
            place, value = plus(target[1], i), vload(source[0], plus(source[1], i), k)
            self.b.vstore(target[0], tirx.Add(vload(target[0], place, k), value) if add else value, place)

        along_row(self.b, target, n, step)

    def clear(self, begin: Any, count: int) -> None:
        """Set `count` channels of the turned samples to 0."""
        size = _height(self.s) * _width(self.s) * self.m
        fill(self.b, at(self.planes, times(begin, size)), count * size)

    def turn(self, x: Operand, begin: Any, count: int, *, back: bool = False) -> None:
        """Turn `count` channels of samples; or back."""
        s, b = self.s, self.b
        with b.loop(count, name="c") as k, b.loop(s.height, name="h") as h, b.loop(s.width, name="w") as w:
            c = plus(k, begin)
            own = plus(times(plus(times(c, s.height), h), s.width), w)
            padded = plus(times(plus(times(c, _height(s)), h, s.pads[0]), _width(s)), w, s.pads[2])
            self.element(at(x, own), s.size_in, at(self.planes, times(padded, self.m)), back)

    def turn_results(self, y: Operand, begin: Any, count: int, *, back: bool = False) -> None:
        """Turn `count` filters of results or their gradients into the matrix; or back."""
        s, b = self.s, self.b
        with b.loop(count, name="o") as k, b.loop(s.positions, name="q") as q:
            own = plus(times(plus(k, begin), s.positions), q)
            self.element(at(y, own), s.size_out, at(self.results, times(own, self.m)), back)

    def element(self, first: Operand, size: int, turned: Operand, back: bool) -> None:
        """Copy one element of each sample, which are `size` apart, to where they are neighbours; or back."""
        with self.b.loop(self.m, name="i") as i:
            one, other = plus(first[1], times(i, size)), plus(turned[1], i)
            if back:
                self.b.store(first[0], load(turned[0], other), one)
            else:
                self.b.store(turned[0], load(first[0], one), other)

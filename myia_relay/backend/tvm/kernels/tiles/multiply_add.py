"""What tiles are sums of: products of floats, or of words that hold several small integers.

A word has 32 bits: four numbers of 8 bits, of which those of images are unsigned and those of filters signed, or two signed ones of
16 bits. All products of a word are added to a lane of int32, exactly:

- with VNNI by one instruction (`vpdpbusd`, `vpdpwssd`);
- with AVX2, or AVX-512 without VNNI, by products of pairs of 16 bits (`vpmaddwd`). For numbers of 8 bits the even and the odd ones
  are widened, which takes two of them; the instruction for pairs of 8 bits (`vpmaddubsw`) would saturate;
- elsewhere by shifts and products of 32 bits, for LLVM to make the best of.

Input: expressions of one vector. Output: expressions, named in the block.
"""

from __future__ import annotations

import functools
from typing import Any

from tvm import tirx
from tvm.target import codegen

from .....utils.switches import is_left_out
from ...tir import pipeline
from ...tir.block import Block, broadcast, call, const, dtype_of, lanes_of, llvm, with_lanes
from ...tir.exact import fma, wrapping_add

WORDS = {"words8": "int8", "words16": "int16"}
"""What words hold, of filters."""


def instructions() -> str:
    """What the machine that code is made for multiplies words by: "vnni", "madd" or "plain"."""
    machine = pipeline.standalone()
    return "plain" if machine is not None and machine.triple else _of_host(is_left_out("vnni"), is_left_out("madd"))


@functools.cache
def _of_host(without_vnni: bool, without_madd: bool) -> str:
    def has(*features: str) -> bool:
        return all(codegen.target_has_features(feature, pipeline.host_target()) for feature in features)

    if has("avx512vnni", "avx512vl", "avx512bw") and not without_vnni:
        return "vnni"
    wide = pipeline.vector_bytes() == 64
    return "madd" if has("avx512bw" if wide else "avx2") and not without_madd else "plain"


class MultiplyAdd:
    """The products of a kind of operands.

    Args:
        block: where to emit.
        kind: "float", or one of `WORDS`.
    """

    def __init__(self, block: Block, kind: str):
        self.block, self.kind = block, kind
        self.by = instructions() if kind in WORDS else ""

    def factor(self, value: Any, lanes: int) -> Any:
        """A number or word of the filters, for all lanes."""
        return self.filters(broadcast(value, lanes))

    def filters(self, vector: Any) -> Any:
        """A vector of the filters, prepared."""
        if self.kind == "float":
            return vector
        return self._prepared(self.block.let(vector), signed=True)

    def image(self, vector: Any) -> Any:
        """A vector of the image, prepared."""
        return vector if self.kind == "float" else self._prepared(vector, signed=False)

    def _prepared(self, words: Any, signed: bool) -> Any:
        block, lanes = self.block, lanes_of(dtype_of(words))
        if self.by == "vnni":
            return self._as(words, WORDS[self.kind])
        if self.kind == "words16":
            if self.by == "madd":
                return self._as(words, "int16")
            return [block.let(_right(_left(words, 16), 16)), block.let(_right(words, 16))]
        if self.by == "madd":
            if not signed:
                mask = const(0x00FF00FF, with_lanes("int32", lanes))
                parts = [tirx.BitwiseAnd(words, mask), tirx.BitwiseAnd(_right(words, 8), mask)]
                return [self._as(block.let(part), "int16") for part in parts]
            pairs = block.let(self._as(words, "int16"))
            return [block.let(_right(block.let(_left(pairs, 8)), 8)), block.let(_right(pairs, 8))]
        if signed:
            return [block.let(_right(_left(words, 24 - 8 * k) if k < 3 else words, 24)) for k in range(4)]
        mask = const(0xFF, with_lanes("int32", lanes))
        return [block.let(tirx.BitwiseAnd(_right(words, 8 * k) if k else words, mask)) for k in range(4)]

    def _as(self, words: Any, dtype: str) -> Any:
        lanes = lanes_of(dtype_of(words)) * (4 if dtype == "int8" else 2)
        return call("tirx.reinterpret", with_lanes(dtype, lanes), words)

    def sum(self, a: Any, b: Any) -> Any:
        """The sum of two totals."""
        return tirx.Add(a, b) if self.kind == "float" else wrapping_add(a, b)

    def __call__(self, factor: Any, value: Any, total: Any) -> Any:
        """`total` and the products of prepared operands."""
        if self.kind == "float":
            return fma(factor, value, total)
        lanes = lanes_of(dtype_of(total))
        out, bits = dtype_of(total), 32 * lanes
        if self.by == "vnni":
            name = "vpdpbusd" if self.kind == "words8" else "vpdpwssd"
            return llvm(f"x86.avx512.{name}.{bits}", out, total, value, factor)
        if self.by == "madd":
            name = {16: "x86.avx512.pmaddw.d.512", 8: "x86.avx2.pmadd.wd", 4: "x86.sse2.pmadd.wd"}[lanes]
            pairs = zip(factor, value) if isinstance(factor, list) else [(factor, value)]
            for a, b in pairs:
                total = wrapping_add(total, llvm(name, out, b, a))
            return total
        for a, b in zip(factor, value):
            total = wrapping_add(total, tirx.Mul(a, b))
        return total


def _left(x: Any, bits: int) -> Any:
    return tirx.LShift(x, const(bits, dtype_of(x)))


def _right(x: Any, bits: int) -> Any:
    return tirx.RShift(x, const(bits, dtype_of(x)))


__all__ = ["WORDS", "MultiplyAdd", "instructions"]

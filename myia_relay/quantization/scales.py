"""Scales: products of a small integer and a power of two, and the schemes that say how many bits there are.

A scheme `int8/int32` has data of 8 bits and sums of 32. Sums never overflow:

- `int8/int32`: 8 bits by 8 bits, summed in 32 (2**15 for each product: up to 65,000 of them).
- `int8/int16`: data of 7 bits, so that each two products fit into 16 bits; these are added up in 32.
- `int16/int32`: data of 12 bits, and for each filter as many bits of weights, up to 16, as its sum allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..utils.errors import ValueError_, nearest

DATA_BITS, WEIGHT_BITS = 7, 8
"""Bits of the integers in scales."""
SPREAD = 1 << 8
"""Scales of filters are at least this part of the largest one."""
INT32 = (1 << 31) - 1


@dataclass(frozen=True, eq=False)
class Grid:
    """Multiples of `mantissa * 2**-exponent`, from `low` to `high` times that.

    Attributes:
        mantissa: one integer, or an array that broadcasts against the values: one for each channel.
    """

    mantissa: np.ndarray
    exponent: int
    low: int
    high: int

    @property
    def scale(self) -> np.ndarray:
        """The scale, in float64."""
        return np.ldexp(np.asarray(self.mantissa, np.float64), -self.exponent)

    @property
    def dtype(self) -> str:
        """The integers that hold multiples."""
        if self.high - self.low < 256:
            return "uint8" if self.low >= 0 else "int8"
        return "int16"

    def steps(self, x: np.ndarray) -> np.ndarray:
        """What of the scale values are rounded to."""
        return np.clip(np.rint(np.asarray(x, np.float64) / self.scale), self.low, self.high)


@dataclass(frozen=True)
class BitScheme:
    """How many bits there are.

    Attributes:
        name: as users write it.
        data: the greatest multiple of data that are not negative; of others half as much.
        weights: the greatest multiple of weights.
    """

    name: str
    data: int
    weights: int

    def limits(self, signed: bool) -> tuple[int, int]:
        """The least and the greatest multiple of data."""
        half = (self.data + 1) // 2
        return (-half, half - 1) if signed else (0, self.data)


SCHEMES = {
    "int8/int16": BitScheme("int8/int16", 127, 127),
    "int8/int32": BitScheme("int8/int32", 255, 127),
    "int16/int32": BitScheme("int16/int32", (1 << 12) - 1, (1 << 15) - 1),
}


def scheme(name: str) -> BitScheme:
    """The scheme of a name.

    Raises:
        ValueError_: there is none.
    """
    if name not in SCHEMES:
        raise ValueError_(f"scheme={name!r}: choose one of {', '.join(SCHEMES)}{nearest(str(name), list(SCHEMES))}")
    return SCHEMES[name]


def data_grid(limit: float, signed: bool, s: BitScheme) -> Grid:
    """The grid of data up to a limit, with the least scale that reaches it."""
    low, high = s.limits(signed)
    mantissa, exponent = _rounded_up(np.asarray(max(limit, 1e-30) / high), DATA_BITS)
    return Grid(np.asarray(int(mantissa)), int(exponent), low, high)


def weight_grid(w: np.ndarray, limits: np.ndarray, axis: int, data: Grid, s: BitScheme) -> Grid:
    """The grid of weights, a scale for each index of an axis.

    Args:
        w: the weights.
        limits: for each index, up to what they are represented.
        axis: of the weights.
        data: the grid of what they are multiplied by.
        s: the scheme.

    Raises:
        ValueError_: a sum has so many terms that it does not fit.
    """
    rows = np.moveaxis(np.abs(np.asarray(w, np.float64)), axis, 0).reshape(w.shape[axis], -1)
    scale = np.asarray(limits, np.float64) / s.weights
    most = max(data.high, -data.low)
    terms = rows.shape[1]
    # The sum of |q| is at most that of |w| / scale, and half a step for each of them.
    room = INT32 // most - terms // 2 - 1
    if room <= 0:
        raise ValueError_(f"a sum of {terms} products of {s.name} does not fit into 32 bits")
    scale = np.maximum(scale, rows.sum(1) / room)
    greatest = scale.max(initial=0.0)
    scale = np.maximum(scale, greatest / SPREAD) if greatest > 0 else np.ones_like(scale)
    mantissas, exponents = _rounded_up(scale, WEIGHT_BITS)
    exponent = int(exponents.max(initial=0))
    shape = tuple(-1 if k == axis else 1 for k in range(w.ndim))
    mantissa = (mantissas.astype(np.int64) << (exponent - exponents).astype(np.int64)).reshape(shape)
    return Grid(mantissa, exponent, -s.weights, s.weights)


def _rounded_up(scale: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """(mantissa of so many bits, exponent) with the least mantissa * 2**-exponent that is not below a scale."""
    fraction, power = np.frexp(scale)
    mantissa = np.ceil(np.ldexp(fraction, bits)).astype(np.int64)
    over = mantissa == 1 << bits
    return np.where(over, 1 << (bits - 1), mantissa), bits - power - over.astype(power.dtype)


__all__ = ["SCHEMES", "Grid", "BitScheme", "data_grid", "scheme", "weight_grid"]

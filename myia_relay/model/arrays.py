"""The arrays of models: how parameters are drawn, and where in memory they begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..abstract.dims import known_size
from ..abstract.types import numpy_dtype
from ..utils.arrays import plain_array
from ..utils.errors import ShapeError, TypeError_, nearest
from .hidden import ModelSpec
from .init import STD, initialiser

ALIGN = 64


def aligned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An uninitialised contiguous array whose data start on a 64-byte boundary."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.empty(size + ALIGN, np.uint8)
    start = -raw.ctypes.data % ALIGN
    return raw[start : start + size].view(dtype).reshape(shape)


def realigned(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Arrays as native code wants those of a model: these themselves, or copies of those that were unpickled.

    Unpickled arrays may begin anywhere, and they have dtype objects of their own.
    """
    found = []
    for array in arrays:
        dtype = numpy_dtype(array.dtype.name)
        if array.ctypes.data % ALIGN or array.dtype is not dtype:
            array, old = aligned(array.shape, dtype), array
            array[...] = old
        found.append(array)
    return found


def checked(name: str, array: np.ndarray, value: Any) -> np.ndarray:
    """What takes the place of the numbers of an array, as an array of its shape.

    Raises:
        ShapeError: it has another shape.
        TypeError_: its dtype does not become that of the array without a loss of kind, or it is masked.
    """
    value = plain_array(value)
    if value.shape != array.shape:
        raise ShapeError(f"{name} has shape {array.shape}, not {value.shape}")
    if not np.can_cast(value.dtype, array.dtype, "same_kind"):
        raise TypeError_(f"{name} is {array.dtype}; convert the new value: .astype(np.{array.dtype})")
    return value


def take_over(own: Mapping[str, np.ndarray], values: Mapping) -> None:
    """Write all arrays, or none where one does not fit.

    Args:
        own: name -> array that is written.
        values: name -> what takes its place, for the same names.

    Raises:
        KeyError: the names differ.
        ShapeError, TypeError_: see `checked`.
    """
    if missing := set(own) ^ set(values):
        raise KeyError(f"the parameters differ in {', '.join(sorted(map(str, missing)))}")
    fitting = {name: checked(name, array, values[name]) for name, array in own.items()}
    written = set(map(id, own.values()))
    fitting = {name: value.copy() if id(value) in written else value for name, value in fitting.items()}
    for name, array in own.items():
        array[...] = fitting[name]


def initial_arrays(spec: ModelSpec, seed: int, init: Any) -> list[np.ndarray]:
    """Draw the parameters: normal with mean 0 and standard deviation 0.01, or as their layers or `init` say.

    Raises:
        KeyError: `init` is a mapping without one of the parameters.
        ShapeError: an initialiser made an array of another shape, or `init` has one.
        TypeError_: such an array is masked.
    """
    rng = np.random.default_rng(seed)
    arrays = []
    for index, (name, type_, own) in enumerate(zip(spec.names, spec.types, spec.inits, strict=True)):
        shape = tuple(map(known_size, type_.shape))
        array = aligned(shape, numpy_dtype(type_.dtype))
        if isinstance(init, Mapping):
            if name not in init:
                raise KeyError(f"init has no '{name}'{nearest(name, init)}")
            given = plain_array(init[name])
            if given.shape not in (shape, ()):
                raise ShapeError(f"init: {name} has shape {shape}, not {given.shape}")
            array[...] = given
        elif own is None and (init is None or isinstance(init, int | float)):
            array[...] = rng.standard_normal(shape, dtype=np.float64) * (STD if init is None else float(init))
        else:
            drawn = plain_array((own or initialiser(init))(parameter_seed(seed, index), shape, array.dtype))
            if drawn.shape != shape:
                raise ShapeError(f"the initialiser of {name} made an array of shape {drawn.shape}, not {shape}")
            array[...] = drawn
        arrays.append(array)
    for type_, own in spec.state.values():
        array = aligned(tuple(map(known_size, type_.shape)), numpy_dtype(type_.dtype))
        array[...] = own(parameter_seed(seed, len(arrays)), array.shape, array.dtype)
        arrays.append(array)
    if spec.draws:
        key = aligned((), np.uint64)
        key[...] = parameter_seed(seed, -1 % 2**63)
        arrays.append(key)
    return arrays


def parameter_seed(seed: int, index: int) -> np.uint64:
    """The key of `relay.random` that a parameter is drawn with: another one for each seed and parameter."""
    return np.random.SeedSequence([seed, index]).generate_state(1, np.uint64)[0]

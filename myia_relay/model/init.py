"""`relay.init`: how parameters are drawn.

An initialiser is a function `(key, shape, dtype) -> array`, where `key` is a key of `relay.random`, an np.uint64. Those here
draw with NumPy's generator, seeded with the key; they do not run in compiled code. Each may be configured,
`relay.init.normal(0.02)`, used as it is, `relay.init.xavier_uniform`, or named, `"xavier_uniform"`.

The fans of a weight are PyTorch's: a weight is (outputs, inputs, *window), and a fan counts the window. A vector (a bias) has no
fans: what needs them makes it zero.

Sources: X. Glorot and Y. Bengio (AISTATS 2010); K. He et al. (ICCV 2015); A. Saxe et al. (ICLR 2014).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..functions import ShownSignature
from ..infer.language.registry import of_class
from ..infer.objects.leaves import to_option
from ..infer.values.values import Static
from ..utils.errors import TypeError_, ValueError_, nearest

STD = 0.01
"""The deviation of all parameters whose layers say nothing else, as in the Relay paper."""


def fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """How many inputs and outputs a weight (outputs, inputs, *window) connects."""
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def _normal(rng, shape, std):
    return rng.standard_normal(shape) * std


def _uniform(rng, shape, low, high):
    return rng.uniform(low, high, shape)


def _scaled(rng, shape, variance: float, uniform: bool):
    if uniform:
        bound = math.sqrt(3 * variance)
        return rng.uniform(-bound, bound, shape)
    return rng.standard_normal(shape) * math.sqrt(variance)


def _xavier(uniform):
    def draw(rng, shape, gain):
        if len(shape) < 2:
            return np.zeros(shape)
        return _scaled(rng, shape, 2 * gain**2 / max(sum(fans(shape)), 1), uniform)

    return draw


def _kaiming(uniform):
    def draw(rng, shape, a, mode):
        if mode not in ("fan_in", "fan_out"):
            raise ValueError_(f"relay.init: mode={mode!r}; it is 'fan_in' or 'fan_out'")
        if len(shape) < 2:
            return np.zeros(shape)
        fan = fans(shape)[mode == "fan_out"]
        return _scaled(rng, shape, 2 / (1 + a**2) / max(fan, 1), uniform)

    return draw


def _orthogonal(rng, shape, gain):
    if len(shape) < 2:
        return np.zeros(shape)
    rows, columns = shape[0], math.prod(shape[1:])
    q, r = np.linalg.qr(rng.standard_normal((max(rows, columns), min(rows, columns))))
    q = q * np.sign(np.diag(r))  # uniform among all, F. Mezzadri (2007)
    return gain * (q if rows >= columns else q.T).reshape(shape)


def _zeros(rng, shape):
    return np.zeros(shape)


def _ones(rng, shape):
    return np.ones(shape)


_KINDS: dict[str, tuple[Callable, dict[str, Any]]] = {
    "normal": (_normal, {"std": STD}),
    "uniform": (_uniform, {"low": -0.1, "high": 0.1}),
    "xavier_uniform": (_xavier(True), {"gain": 1.0}),
    "xavier_normal": (_xavier(False), {"gain": 1.0}),
    "kaiming_uniform": (_kaiming(True), {"a": 0.0, "mode": "fan_in"}),
    "kaiming_normal": (_kaiming(False), {"a": 0.0, "mode": "fan_in"}),
    "orthogonal": (_orthogonal, {"gain": 1.0}),
    "zeros": (_zeros, {}),
    "ones": (_ones, {}),
}
"""Name -> how it draws, and its options with their defaults."""


_TEXTS = {
    "normal": "Normal numbers with mean 0 and standard deviation `std`.",
    "uniform": "Uniform numbers from `low` to `high`.",
    "xavier_uniform": "Uniform numbers with variance `2 * gain ** 2 / (inputs + outputs)`; vectors are zero.",
    "xavier_normal": "Normal numbers with variance `2 * gain ** 2 / (inputs + outputs)`; vectors are zero.",
    "kaiming_uniform": "Uniform numbers with variance `2 / (1 + a ** 2) / fan`, before a (leaky) relu; vectors are zero.",
    "kaiming_normal": "Normal numbers with variance `2 / (1 + a ** 2) / fan`, before a (leaky) relu; vectors are zero.",
    "orthogonal": "`gain` times a matrix with orthonormal rows or columns, whichever are fewer; vectors are zero.",
    "zeros": "Zeros.",
    "ones": "Ones.",
}
"""Name -> its docstring."""

_EXAMPLE = """

Example:
    >>> relay.init.{kind}(relay.random.key(0), (2, 3), np.float32).shape
    (2, 3)
"""


class Initialiser:
    """A way to draw a parameter: `(key, shape, dtype) -> array`. Called with its options instead it is another one.

    Attributes:
        kind: its name.
        options: the values of its options.
    """

    def __init__(self, kind: str, options: tuple[tuple[str, Any], ...]):
        self.kind, self.options = kind, options
        self.__doc__ = _TEXTS[kind] + _EXAMPLE.format(kind=kind)

    __signature__ = ShownSignature()

    def shown_signature(self) -> inspect.Signature:
        """That of a call which configures it."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(name, kind, default=value) for name, value in self.options])

    def __eq__(self, other) -> bool:
        return isinstance(other, Initialiser) and (self.kind, self.options) == (other.kind, other.options)

    def __hash__(self) -> int:
        return hash((self.kind, self.options))

    def __call__(self, *args, **kwargs) -> Any:
        """Draw, with `(key, shape, dtype)`; or configure, with options.

        Raises:
            TypeError_: there is no such option.
        """
        if len(args) == 3 or "shape" in kwargs:
            return self.draw(*args, **kwargs)
        names = [name for name, _ in self.options]
        if len(args) > len(names):
            raise TypeError_(f"relay.init.{self.kind} has the options {', '.join(names) or 'none'}")
        given = dict(zip(names, args)) | kwargs
        for name in given:
            if name not in names:
                raise TypeError_(f"relay.init.{self.kind} has no option '{name}'{nearest(name, names)}")
        return Initialiser(self.kind, tuple((dict(self.options) | given).items()))

    def draw(self, key, shape, dtype) -> np.ndarray:
        """An array of a shape."""
        rng = np.random.default_rng(int(key))
        return np.asarray(_KINDS[self.kind][0](rng, tuple(shape), **dict(self.options))).astype(dtype)

    def __repr__(self) -> str:
        return f"relay.init.{self.kind}({', '.join(f'{n}={v!r}' for n, v in self.options)})"


def initialiser(value: Any, what: str = "init") -> Callable:
    """An initialiser from its name, a standard deviation, or a function `(key, shape, dtype)`.

    Raises:
        TypeError_: it is of another kind.
        ValueError_: there is no initialiser of that name.
        TypeError_, ValueError_: it is none.
    """
    if isinstance(value, str):
        if value not in _KINDS:
            raise ValueError_(f"{what}={value!r}: there is no such initialiser{nearest(value, _KINDS)}")
        return _NAMED[value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return normal(float(value))
    if callable(value):
        return value
    raise TypeError_(
        f"{what}={value!r} is no initialiser: give a name such as 'xavier_uniform', one of relay.init, a standard deviation, "
        "or a function (key, shape, dtype)"
    )


_NAMED = {kind: Initialiser(kind, tuple(options.items())) for kind, (_, options) in _KINDS.items()}
normal, uniform = _NAMED["normal"], _NAMED["uniform"]
xavier_uniform, xavier_normal = _NAMED["xavier_uniform"], _NAMED["xavier_normal"]
kaiming_uniform, kaiming_normal = _NAMED["kaiming_uniform"], _NAMED["kaiming_normal"]
orthogonal, zeros, ones = _NAMED["orthogonal"], _NAMED["zeros"], _NAMED["ones"]


@of_class(Initialiser)
async def compiled_initialiser(engine, frame, value: Initialiser, args, kwargs, origin, site):
    """An initialiser called in compiled code: configured, at compile time.

    Raises:
        TypeError_: it is called to draw.
    """
    what = f"relay.init.{value.kind}"
    if len(args) == 3 or "shape" in kwargs:
        raise TypeError_(f"{what} draws in Python, not in compiled code; give it as init=, or use relay.random")
    return Static(value(*[to_option(a, what) for a in args], **{k: to_option(v, what) for k, v in kwargs.items()}))


__all__ = [
    "Initialiser",
    "kaiming_normal",
    "kaiming_uniform",
    "normal",
    "ones",
    "orthogonal",
    "uniform",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]

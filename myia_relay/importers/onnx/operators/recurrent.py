"""RNN, GRU and LSTM, written in the language: a scan over time in each direction."""

from __future__ import annotations

import numpy as np

from ....derivatives import scan
from ....ir.build import Var
from ....prims.ops.shape import slice_
from ....prims.rules.broadcast import broadcast_to, reshape
from ....prims.rules.relations import show_shape
from ....utils.errors import ShapeError, TypeError_, ValueError_
from ..table import Context, operator

DEFAULTS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
ALPHA = {"Affine": 1.0, "LeakyRelu": 0.01, "ThresholdedRelu": 1.0, "ScaledTanh": 1.0, "HardSigmoid": 0.2, "Elu": 1.0}
BETA = {"ScaledTanh": 1.0, "HardSigmoid": 0.5}
KNOWN = ("Relu", "Tanh", "Sigmoid", *ALPHA, "Softsign", "Softplus")


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def activated(x, name, alpha, beta):
    """An activation function, by its name."""
    if name == "Tanh":
        return np.tanh(x)
    if name == "Sigmoid":
        return _sigmoid(x)
    if name == "Relu":
        return np.maximum(x, 0)
    if name == "Affine":
        return alpha * x + beta
    if name == "LeakyRelu":
        return np.where(x < 0, alpha * x, x)
    if name == "ThresholdedRelu":
        return np.where(x > alpha, x, 0)
    if name == "ScaledTanh":
        return alpha * np.tanh(beta * x)
    if name == "HardSigmoid":
        return np.minimum(np.maximum(alpha * x + beta, 0), 1)
    if name == "Elu":
        return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)
    if name == "Softsign":
        return x / (1 + np.abs(x))
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _clipped(x, clip):
    return x if clip is None else np.minimum(np.maximum(x, -clip), clip)


def _function(x, f, clip):
    return activated(_clipped(x, clip), f[0], f[1], f[2])


def rnn_step(gates, h, c, weights, fs, clip, option):
    """One step of a plain recurrent layer."""
    new = _function(gates + h @ weights[0].T, fs[0], clip)
    return new, c


def gru_step(gates, h, c, weights, fs, clip, option):
    """One step of a gated recurrent layer; its gates are z, r, h."""
    n = h.shape[-1]
    whole, last, bias = weights
    own = h @ whole.T
    z = _function(gates[:, :n] + own[:, :n], fs[0], clip)
    reset = _function(gates[:, n : 2 * n] + own[:, n : 2 * n], fs[0], clip)
    inner = reset * (own[:, 2 * n :] + bias) if option else (reset * h) @ last.T + bias
    new = _function(gates[:, 2 * n :] + inner, fs[1], clip)
    return (1 - z) * new + z * h, c


def lstm_step(gates, h, c, weights, fs, clip, option):
    """One step of a layer with long short-term memory; its gates are i, o, f, c."""
    n = h.shape[-1]
    gates = gates + h @ weights[0].T
    peep = weights[1]
    i, o, f, new = gates[:, :n], gates[:, n : 2 * n], gates[:, 2 * n : 3 * n], gates[:, 3 * n :]
    if peep is not None:
        i = i + peep[:n] * c
        f = f + peep[2 * n :] * c
    i = _function(i, fs[0], clip)
    f = 1 - i if option else _function(f, fs[0], clip)
    c = f * c + i * _function(new, fs[1], clip)
    if peep is not None:
        o = o + peep[n : 2 * n] * c
    o = _function(o, fs[0], clip)
    return o * activated(c, fs[2][0], fs[2][1], fs[2][2]), c


def run(step, gates, h, c, weights, lens, fs, clip, option, reverse):
    """One direction: the outputs of all steps, and the last state."""

    def one(state, given):
        h, c = state
        if lens is None:
            h, c = step(given, h, c, weights, fs, clip, option)
            return (h, c), h
        gate, t = given
        new, inner = step(gate, h, c, weights, fs, clip, option)
        valid = np.reshape(t < lens, (h.shape[0], 1))
        h, c = np.where(valid, new, h), np.where(valid, inner, c)
        return (h, c), np.where(valid, new, np.zeros_like(new))

    if lens is None:
        (h, c), ys = scan(one, (h, c), gates, reverse=reverse)
    else:
        (h, c), ys = scan(one, (h, c), (gates, np.arange(gates.shape[0])), reverse=reverse)
    return ys, h, c


STEPS = {"RNN": (rnn_step, 1), "GRU": (gru_step, 3), "LSTM": (lstm_step, 4)}


def functions(name: str, count: int, activations, alphas, betas) -> list:
    """For each direction its activations, with their numbers.

    Raises:
        ValueError_: one is unknown, or there are too few.
    """
    each = len(DEFAULTS[name])
    names = list(activations) if activations else list(DEFAULTS[name]) * count
    if len(names) < each * count:
        raise ValueError_(f"it has {len(names)} activations, and needs {each * count}")
    lower = {k.lower(): k for k in KNOWN}
    first, second, found = list(alphas or ()), list(betas or ()), []
    for raw in names:
        known = lower.get(raw.lower())
        if known is None:
            raise ValueError_(f"its activation '{raw}' is unknown")
        alpha = (first.pop(0) if first else ALPHA[known]) if known in ALPHA else 0.0
        beta = (second.pop(0) if second else BETA.get(known, 0.0)) if known in BETA or known == "Affine" else 0.0
        found.append((known, float(alpha), float(beta)))
    return [tuple(found[k * each : (k + 1) * each]) for k in range(count)]


def part(x: Var | None, k: int) -> Var | None:
    """What belongs to a direction.

    Raises:
        ShapeError: there are fewer directions.
    """
    if x is None:
        return None
    if not x.shape or isinstance(x.shape[0], int) and x.shape[0] <= k:
        raise ShapeError(
            f"an input has the shape {show_shape(x.shape)}, and its first axis counts the {k + 1} directions"
        )
    out = slice_(x, starts=(k, *(0,) * (len(x.shape) - 1)), sizes=(1, *x.shape[1:]), steps=(1,) * len(x.shape))
    return reshape(out, shape=x.shape[1:])


def half(x: Var, start: int, stop: int) -> Var:
    """A part of a vector.

    Raises:
        ShapeError: the vector is shorter.
    """
    if len(x.shape) != 1 or isinstance(x.shape[0], int) and x.shape[0] < stop:
        raise ShapeError(f"an input has the shape {show_shape(x.shape)}, and needs {stop} elements for each direction")
    return slice_(x, starts=(start,), sizes=(stop - start,), steps=(1,))


async def recurrent(c: Context, name: str, x, w, r, bias, lens, h0, c0, peep, options: dict):
    """A recurrent layer of one or two directions.

    Raises:
        TypeError_: the sizes of the weights are not known.
        ValueError_: the direction is unknown.
    """
    direction = options.get("direction", "forward")
    if direction not in ("forward", "reverse", "bidirectional"):
        raise ValueError_(f"its direction '{direction}' is unknown")
    count = 2 if direction == "bidirectional" else 1
    if not all(isinstance(d, int) for d in (*w.shape, *r.shape)) or w.shape[0] != count:
        raise TypeError_(f"its weights have the shapes {w.shape} and {r.shape}")
    layout, n = options.get("layout", 0), r.shape[-1]
    if layout:
        x = c.numpy(np.swapaxes, x, 0, 1)
        h0, c0 = (None if v is None else c.numpy(np.swapaxes, v, 0, 1) for v in (h0, c0))
    batch = x.shape[1]
    zeros = broadcast_to(c.constant(0, x.dtype), shape=(count, batch, n))
    h0, c0 = zeros if h0 is None else h0, zeros if c0 is None else c0
    step, gates_count = STEPS[name]
    fs = functions(
        name, count, options.get("activations"), options.get("activation_alpha"), options.get("activation_beta")
    )
    option = bool(options.get("linear_before_reset", 0) or options.get("input_forget", 0))
    clip = options.get("clip")
    ys, hs, cs = [], [], []
    for k in range(count):
        own, back = part(w, k), part(r, k)
        gates = c.numpy(np.matmul, x, c.numpy(np.transpose, own))
        weights: tuple = (back, None)
        if name == "GRU" and not option:  # two products; in the loop, the parts would be copied at each step
            first_two = slice_(back, starts=(0, 0), sizes=(2 * n, n), steps=(1, 1))
            weights = (first_two, slice_(back, starts=(2 * n, 0), sizes=(n, n), steps=(1, 1)))
        if bias is not None:
            both = part(bias, k)
            assert both is not None
            size = gates_count * n
            first, second = half(both, 0, size), half(both, size, 2 * size)
            if name == "GRU":
                gates = gates + first
                zeros_ = c.numpy(np.concatenate, [half(second, 0, 2 * n), c.constant(np.zeros(n), x.dtype)])
                gates = gates + zeros_
                weights = (*weights, half(second, 2 * n, 3 * n))
            else:
                gates = gates + (first + second)
        elif name == "GRU":
            weights = (*weights, c.constant(np.zeros(n), x.dtype))
        if name == "LSTM":
            weights = (back, part(peep, k))
        reverse = direction == "reverse" or k == 1
        out = await c.call(run, step, gates, part(h0, k), part(c0, k), weights, lens, fs[k], clip, option, reverse)
        ys.append(out[0])
        hs.append(out[1])
        cs.append(out[2])
    y, h, last = c.numpy(np.stack, ys, axis=1), c.numpy(np.stack, hs), c.numpy(np.stack, cs)
    if layout:
        y = c.numpy(np.transpose, y, (2, 0, 1, 3))
        h, last = (c.numpy(np.swapaxes, v, 0, 1) for v in (h, last))
    return (y, h, last) if name == "LSTM" else (y, h)


@operator("RNN")
async def rnn(c: Context, x, w, r, bias=None, sequence_lens=None, initial_h=None, **options):
    """A plain recurrent layer."""
    return await recurrent(c, "RNN", x, w, r, bias, sequence_lens, initial_h, None, None, options)


@operator("GRU")
async def gru(c: Context, x, w, r, bias=None, sequence_lens=None, initial_h=None, **options):
    """A gated recurrent layer."""
    return await recurrent(c, "GRU", x, w, r, bias, sequence_lens, initial_h, None, None, options)


@operator("LSTM")
async def lstm(
    c: Context, x, w, r, bias=None, sequence_lens=None, initial_h=None, initial_c=None, peepholes=None, **options
):
    """A recurrent layer with long short-term memory."""
    return await recurrent(c, "LSTM", x, w, r, bias, sequence_lens, initial_h, initial_c, peepholes, options)

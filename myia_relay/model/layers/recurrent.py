"""Recurrent layers, written in the language: PyTorch's formulas, order of gates and names of weights.

    rnn   h' = tanh(W x + b + U h + c)
    gru   r, z = sigmoid(...);  n = tanh(W_n x + b_n + r (U_n h + c_n));  h' = (1 - z) n + z h
    lstm  i, f, o = sigmoid(...);  g = tanh(...);  c' = f c + i g;  h' = o tanh(c')

What a layer needs of its inputs alone is one product for all steps.
"""

from __future__ import annotations

import numpy as np

from ...derivatives import scan
from ...infer.language.registry import special
from ...infer.objects.leaves import to_option
from ...library.refusals import misfit, unsupported
from ...utils.errors import ShapeError
from ..hidden import Weight
from .declaration import count, layer
from .dense import linear
from .names import sigmoid

GATES = {"rnn": 1, "gru": 3, "lstm": 4}
WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def _cell_parts(name: str, x, state, num_hidden, no_bias) -> dict[str, Weight]:
    hidden = state
    if name == "lstm":
        hidden = state.elems[0] if len(getattr(state, "elems", ())) == 2 else None
    have = getattr(getattr(hidden, "type", hidden), "shape", ())
    if not have:
        shown = "(h, c), two arrays" if name == "lstm" else "an array"
        raise ShapeError(f"relay.{name}_cell: the state is {shown} of shape (num_hidden,) or (N, num_hidden)")
    if num_hidden is not None and num_hidden != have[-1]:
        raise ShapeError(f"relay.{name}_cell: num_hidden={num_hidden}, and the state has {have[-1]} elements")
    rows = GATES[name] * have[-1]
    parts = {"weight_ih": Weight((rows, x.shape[-1])), "weight_hh": Weight((rows, have[-1]))}
    return parts if no_bias else parts | {"bias_ih": Weight((rows,)), "bias_hh": Weight((rows,))}


def _layer_parts(name: str, xs, num_hidden, num_layers, bidirectional, no_bias) -> dict[str, Weight]:
    hidden, layers = count(num_hidden, "num_hidden", name), count(num_layers, "num_layers", name)
    if len(xs.shape) not in (2, 3):
        raise ShapeError(f"relay.{name} takes sequences (T, n) or (T, N, n), time first, and this has shape {xs.shape}")
    rows, size, parts = GATES[name] * hidden, xs.shape[-1], {}
    for k in range(layers):
        for end in ("", "_reverse") if bidirectional else ("",):
            parts[f"weight_ih_l{k}{end}"] = Weight((rows, size))
            parts[f"weight_hh_l{k}{end}"] = Weight((rows, hidden))
            if not no_bias:
                parts[f"bias_ih_l{k}{end}"] = parts[f"bias_hh_l{k}{end}"] = Weight((rows,))
        size = hidden * (2 if bidirectional else 1)
    return parts


# One step, after what the input gives: `gates` is W x + b.


def _rnn_step(gates, h, weight, bias):
    return np.tanh(gates + linear(h, weight, bias))


def _gru_step(gates, h, weight, bias):
    n = h.shape[-1]
    own = linear(h, weight, bias)
    r = sigmoid(gates[..., :n] + own[..., :n])
    z = sigmoid(gates[..., n : 2 * n] + own[..., n : 2 * n])
    new = np.tanh(gates[..., 2 * n :] + r * own[..., 2 * n :])
    return (1 - z) * new + z * h


def _lstm_step(gates, state, weight, bias):
    h, c = state
    n = h.shape[-1]
    gates = gates + linear(h, weight, bias)
    i, f = sigmoid(gates[..., :n]), sigmoid(gates[..., n : 2 * n])
    g, o = np.tanh(gates[..., 2 * n : 3 * n]), sigmoid(gates[..., 3 * n :])
    c = f * c + i * g
    return o * np.tanh(c), c


# Cells.


def _rnn_cell(x, state, num_hidden=None, no_bias=False):
    return _cell_parts("rnn", x, state, num_hidden, no_bias)


def _gru_cell(x, state, num_hidden=None, no_bias=False):
    return _cell_parts("gru", x, state, num_hidden, no_bias)


def _lstm_cell(x, state, num_hidden=None, no_bias=False):
    return _cell_parts("lstm", x, state, num_hidden, no_bias)


@layer(_rnn_cell, weights=WEIGHTS, staged=False, example="relay.rnn_cell(x, state)")
def rnn_cell(x, state, weight_ih, weight_hh, bias_ih=None, bias_hh=None):
    """One step of `rnn`: x (n,) or (N, n) and the state (num_hidden,) or (N, num_hidden) make the new state.

    In a model: `rnn_cell(x, state, num_hidden=None, no_bias=False)` with the parameters weight_ih (num_hidden, n), weight_hh
    (num_hidden, num_hidden), bias_ih and bias_hh (num_hidden,). Elsewhere the weights come after the state.

    Example:
        >>> h = relay.rnn_cell(np.ones(3), np.zeros(2), np.ones((2, 3)), np.eye(2), np.zeros(2), np.zeros(2))
        >>> h.round(3)
        array([0.995, 0.995])
    """
    return _rnn_step(linear(x, weight_ih, bias_ih), state, weight_hh, bias_hh)


@layer(_gru_cell, weights=WEIGHTS, staged=False, example="relay.gru_cell(x, state)")
def gru_cell(x, state, weight_ih, weight_hh, bias_ih=None, bias_hh=None):
    """One step of `gru`; see `rnn_cell`. Weights and biases are those of the gates r, z, n below each other: (3 * num_hidden,
    ...).

    Example:
        >>> h = relay.gru_cell(np.ones(3), np.zeros(2), np.ones((6, 3)), np.ones((6, 2)), np.zeros(6), np.zeros(6))
        >>> h.round(3)
        array([0.047, 0.047])
    """
    return _gru_step(linear(x, weight_ih, bias_ih), state, weight_hh, bias_hh)


@layer(_lstm_cell, weights=WEIGHTS, staged=False, example="relay.lstm_cell(x, (h, c))")
def lstm_cell(x, state, weight_ih, weight_hh, bias_ih=None, bias_hh=None):
    """One step of `lstm`: the state is (h, c), and so is the new one; see `rnn_cell`. Weights and biases are those of the gates
    i, f, g, o below each other: (4 * num_hidden, ...).

    Example:
        >>> state = (np.zeros(2), np.zeros(2))
        >>> h, c = relay.lstm_cell(np.ones(3), state, np.ones((8, 3)), np.ones((8, 2)), np.zeros(8), np.zeros(8))
        >>> h.round(3), c.round(3)
        (array([0.704, 0.704]), array([0.948, 0.948]))
    """
    return _lstm_step(linear(x, weight_ih, bias_ih), state, weight_hh, bias_hh)


# Layers.


def _run(step, xs, weights, end, state, reverse):
    """One direction of one layer: all outputs, and the last state."""
    gates = linear(xs, weights["weight_ih" + end], weights.get("bias_ih" + end))
    weight, bias = weights["weight_hh" + end], weights.get("bias_hh" + end)

    def one(carry, gate):
        new = step(gate, carry, weight, bias)
        return new, new[0] if isinstance(new, tuple) else new

    last, ys = scan(one, state, gates, reverse=reverse)  # pyright: ignore[reportGeneralTypeIssues]
    return ys, last


def _part(state, k):
    """The state of one direction of one layer."""
    if isinstance(state, tuple):
        return state[0][k], state[1][k]
    return state[k]


def _stacked(states):
    """The states of all layers and directions, as they came in."""
    if isinstance(states[0], tuple):
        return np.stack([s[0] for s in states]), np.stack([s[1] for s in states])
    return np.stack(states)


def _ends(num_layers, bidirectional):
    """What the names of the weights end with, by layer and direction."""
    return tuple((f"_l{k}", f"_l{k}_reverse") if bidirectional else (f"_l{k}",) for k in range(num_layers))


@special(_ends)
async def _compiled_ends(engine, frame, args, kwargs, origin, site):
    """The names are known at compile time."""
    numbers = [to_option(a, "a recurrent layer: num_layers and bidirectional") for a in args]
    return engine.from_python(frame, _ends(*numbers), None)


def _layers(step, xs, weights, num_layers, bidirectional, state):
    """All layers: the outputs of the last one, and the last states."""
    states = []
    for ends in _ends(num_layers, bidirectional):
        outputs = []
        for end in ends:
            ys, last = _run(step, xs, weights, end, _part(state, len(states)), len(outputs) == 1)
            outputs.append(ys)
            states.append(last)
        xs = np.concatenate(outputs, -1) if bidirectional else outputs[0]
    return xs, _stacked(states)


def _zeros(xs, weights, num_layers, bidirectional):
    """The state that a sequence begins with."""
    hidden = weights["weight_hh_l0"].shape[1]
    directions = 2 if bidirectional else 1
    return np.zeros((num_layers * directions, *xs.shape[1:-1], hidden), xs.dtype)


def _require_state(state, xs, weights, num_layers, bidirectional, name):
    hidden = weights["weight_hh_l0"].shape[1]
    directions = 2 if bidirectional else 1
    wanted = (num_layers * directions, *xs.shape[1:-1], hidden)
    for part in state if isinstance(state, tuple) else (state,):
        if np.shape(part) != wanted:
            misfit(
                f"relay.{name}: a state has the shape (num_layers * directions, num_hidden), with the N of the sequences between "
                f"where they have it; here num_layers * directions is {num_layers * directions} and num_hidden {hidden}"
            )


def _require_sequences(xs, name):
    if xs.ndim not in (2, 3):
        misfit(f"relay.{name} takes sequences (T, n) or (T, N, n), time first, and this has {xs.ndim} axes")


def _rnn(xs, num_hidden, num_layers=1, bidirectional=False, state=None, no_bias=False):
    return _layer_parts("rnn", xs, num_hidden, num_layers, bidirectional, no_bias)


def _gru(xs, num_hidden, num_layers=1, bidirectional=False, state=None, no_bias=False):
    return _layer_parts("gru", xs, num_hidden, num_layers, bidirectional, no_bias)


def _lstm(xs, num_hidden, num_layers=1, bidirectional=False, state=None, no_bias=False):
    return _layer_parts("lstm", xs, num_hidden, num_layers, bidirectional, no_bias)


STATIC = ("num_layers", "bidirectional")


@layer(_rnn, gathered="weights", static=STATIC, staged=False, example="relay.rnn(xs, num_hidden=128)")
def rnn(xs, weights, num_layers=1, bidirectional=False, state=None):
    """Elman's network over the first axis: h' = tanh(W x + b + U h + c).

    In a model: `rnn(xs, num_hidden, num_layers=1, bidirectional=False, state=None, no_bias=False)` with the parameters
    weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, then those of the other direction (..._l0_reverse), then those of layer
    1, as PyTorch names them. Elsewhere `rnn(xs, weights, ...)` with a dict of these.

    Args:
        xs: sequences (T, n) or (T, N, n), time first, float.
        weights: by name.
        num_layers: a layer reads the outputs of the one before.
        bidirectional: whether a second direction goes from the end to the beginning; the outputs of both stand beside each other.
        state: (num_layers * directions, num_hidden) or (num_layers * directions, N, num_hidden); zeros by default.

    Returns:
        (ys, state): the outputs of the last layer, (T, num_hidden * directions) or (T, N, num_hidden * directions), and the last
        states.

    Example:
        >>> @relay_model
        ... def f(x: Tensor[Float, (5, 3)]):
        ...     return relay.rnn(x, num_hidden=2)[0]
        >>> model = relay.create_model(f)
        >>> {k: v.shape for k, v in model.params.items()}
        {'rnn_0.weight_ih_l0': (2, 3), 'rnn_0.weight_hh_l0': (2, 2), 'rnn_0.bias_ih_l0': (2,), 'rnn_0.bias_hh_l0': (2,)}
        >>> model(np.ones((5, 3), np.float32)).shape
        (5, 2)
    """
    _require_sequences(xs, "rnn")
    if state is None:
        state = _zeros(xs, weights, num_layers, bidirectional)
    _require_state(state, xs, weights, num_layers, bidirectional, "rnn")
    return _layers(_rnn_step, xs, weights, num_layers, bidirectional, state)


@layer(_gru, gathered="weights", static=STATIC, staged=False, example="relay.gru(xs, num_hidden=128)")
def gru(xs, weights, num_layers=1, bidirectional=False, state=None):
    """Gated recurrent units (K. Cho et al. 2014, in PyTorch's form) over the first axis; arguments and results are those of
    `rnn`. The weights of a layer are those of its gates r, z, n below each other: (3 * num_hidden, ...).

    Example:
        >>> @relay_model
        ... def f(x: Tensor[Float, (5, 3)]):
        ...     return relay.gru(x, num_hidden=2, bidirectional=True)[0]
        >>> model = relay.create_model(f)
        >>> model(np.ones((5, 3), np.float32)).shape
        (5, 4)
    """
    _require_sequences(xs, "gru")
    if state is None:
        state = _zeros(xs, weights, num_layers, bidirectional)
    _require_state(state, xs, weights, num_layers, bidirectional, "gru")
    return _layers(_gru_step, xs, weights, num_layers, bidirectional, state)


@layer(_lstm, gathered="weights", static=STATIC, staged=False, example="relay.lstm(xs, num_hidden=128)")
def lstm(xs, weights, num_layers=1, bidirectional=False, state=None):
    """Long short-term memory (S. Hochreiter and J. Schmidhuber 1997, F. Gers et al. 1999) over the first axis; arguments and
    results are those of `rnn`, except that a state is (h, c), two such arrays. The weights of a layer are those of its gates i,
    f, g, o below each
    other: (4 * num_hidden, ...).

    Example:
        >>> @relay_model
        ... def f(x: Tensor[Float, (5, 3)]):
        ...     ys, (h, c) = relay.lstm(x, num_hidden=2, num_layers=2)
        ...     return ys, h, c
        >>> model = relay.create_model(f)
        >>> [part.shape for part in model(np.ones((5, 3), np.float32))]
        [(5, 2), (2, 2), (2, 2)]
    """
    _require_sequences(xs, "lstm")
    if state is None:
        first = _zeros(xs, weights, num_layers, bidirectional)
        state = (first, first)
    if not isinstance(state, tuple) or len(state) != 2:
        unsupported("relay.lstm: the state is (h, c), two arrays")
    _require_state(state, xs, weights, num_layers, bidirectional, "lstm")
    return _layers(_lstm_step, xs, weights, num_layers, bidirectional, state)

"""Layers and neural-network operators as users call them: `relay.conv2d`, `relay.gru`, `relay.tanh`, ...

A layer that is given no weight takes parameters from the model it is called in. Outside of compiled code every operator works on
NumPy arrays too: it compiles itself, once per signature, like any decorated function. `utils.names` lists them all.
"""

from __future__ import annotations

from .attention import attention, multi_head_attention
from .convolution import conv1d, conv2d, conv3d, conv_transpose2d
from .declaration import Layer
from .dense import embedding, linear
from .dropout import dropout
from .functions import top_k
from .names import STAGED
from .normalisation import batch_norm, group_norm, layer_norm, rms_norm
from .own import parameter
from .recurrent import gru, gru_cell, lstm, lstm_cell, rnn, rnn_cell

globals().update(STAGED)

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "Layer",
    "attention",
    "batch_norm",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose2d",
    "dropout",
    "embedding",
    "group_norm",
    "gru",
    "gru_cell",
    "layer_norm",
    "linear",
    "lstm",
    "lstm_cell",
    "multi_head_attention",
    "parameter",
    "rms_norm",
    "rnn",
    "rnn_cell",
    "top_k",
    *STAGED,
]

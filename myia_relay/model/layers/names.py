"""The operators without weights, by name: those that are rules on staged values."""

from __future__ import annotations

from typing import Any

from ...functions import OperatorFunction
from ...prims.api import nn_functions
from ...prims.api.nn_api import NN_OPS
from ...utils.names import LAYERS

STAGED = {
    name: OperatorFunction(__name__.rpartition(".")[0], name, implementation)
    for name, implementation in NN_OPS.items()
    if name not in LAYERS
}
"""Public name -> operator."""

sigmoid: Any = STAGED["sigmoid"]
softmax: Any = STAGED["softmax"]

__all__ = ["STAGED", "nn_functions", "sigmoid", "softmax"]

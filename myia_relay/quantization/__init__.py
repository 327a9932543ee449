"""Quantisation of trained networks, as in Relay: annotate, calibrate, realise.

- `graphs`: a model or function as a typed graph of its inputs and its arrays.
- `folding`: scales and shifts of channels become part of the filters before them.
- `annotation`: which values are rounded, by a rule for each operator; the simulated graph.
- `calibration`: to multiples of which scale.
- `realisation`: the simulated graph in integers.
- `quantized`, `report`: what users get; `training`: the simulated graph as a model.

Scales are products of a small integer and a power of two, so floats hold multiples exactly. The simulated graph sums them exactly,
and scales the sums as the realised one does. So both agree to the last integer.

Source: J. Roesch et al., "Relay: A High-Level Compiler for Deep Learning" (2019), section 4.2 and figures 3 and 4.
"""

from .annotation import CONTRACT, EXACT, FLOAT, KEEP, Contract, rule
from .quantized import QuantizedModel
from .report import QuantizationReport
from .training import SimulatedModel

__all__ = [
    "CONTRACT",
    "EXACT",
    "FLOAT",
    "KEEP",
    "Contract",
    "QuantizationReport",
    "QuantizedModel",
    "SimulatedModel",
    "rule",
]

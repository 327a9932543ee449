"""Networks and training steps beside PyTorch, ONNX Runtime and JAX: `python -m benchmarks.networks --help`.

The networks of figure 6 of J. Roesch et al., "Relay: A High-Level Compiler for Deep Learning" (2019), and steps of training.
"""

from .main import main

__all__ = ["main"]

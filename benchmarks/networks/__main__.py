"""`python -m benchmarks.networks`: inference and training steps of networks, beside PyTorch, ONNX Runtime and JAX."""

import sys

from .main import main

if __name__ == "__main__":
    sys.exit(main())

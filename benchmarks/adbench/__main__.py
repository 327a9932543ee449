"""`python -m benchmarks.adbench`: gradients and Jacobians of six workloads, beside JAX, PyTorch and hand-written C++."""

import sys

from .main import main

if __name__ == "__main__":
    sys.exit(main())

"""ADBench's problems and two of LAGrad's: gradients and Jacobians beside JAX, PyTorch and hand-written C++.

`python -m benchmarks.adbench --help`. The mathematics: F. Srajer, Z. Kukelova, A. Fitzgibbon, "A benchmark of selected
algorithmic differentiation tools on some problems in computer vision and machine learning" (2018); M. Peng, C. Dubach,
"LAGrad: Statically Optimized Differentiable Programming in MLIR" (CC 2023).
"""

from .main import main

__all__ = ["main"]

"""`python -m benchmarks NAME ...`: run one benchmark, or all of them with their defaults."""

from __future__ import annotations

import importlib
import sys

NAMES = {
    "lenet": "training steps a second of Figure 4's LeNet, beside PyTorch and JAX; agreement, memory, cold start",
    "accuracy": "what Figure 4 and relay.fit reach on the test images",
    "resnet_mnist": "the accuracy of a small ResNet with batch norm after three epochs",
    "compile": "what compiling costs, stage by stage, for programs of growing size",
    "containers": "what compiling costs for containers of 10 to 10,000 entries, as arguments and inside of programs",
    "lists": "lists of everything as arguments, of 10 to 100,000 entries, beside CPython and Numba's typed lists",
    "calls": "what a warm call costs over the kernel itself",
    "derivatives": "gradients over objectives over C, a Jacobian beside JAX, compile times",
    "language": "loops, recursion, trees and elements of arrays, beside CPython, C and Numba",
    "loops": "loops over rows and slices of arrays, beside NumPy and Numba: linear algebra, stencils and others",
    "adbench": "ADBench's gradients and Jacobians and two of LAGrad's, beside JAX, PyTorch and hand-written C++",
    "random_numbers": "a million random numbers of several distributions, beside NumPy and JAX",
    "notebooks": "training steps of the notebooks' programs, beside PyTorch and JAX",
    "convolutions": "layers of networks beside sgemm, and the error of Winograd's algorithm",
    "passes": "what fusion, folding, layouts and common subexpressions are worth on networks of Relay text",
    "text": "recursion, trees and lists of Relay text beside the same in decorated Python",
    "onnx": "imported ONNX models beside ONNX Runtime and PyTorch: latency, time until the first result, memory",
    "networks": "inference and training steps of networks, beside PyTorch, ONNX Runtime and JAX",
}


def main(argv: list[str]) -> int:
    """Run what the first word names.

    Args:
        argv: a benchmark's name and its options; without a name all of them run.

    Returns:
        The exit status.
    """
    if argv and argv[0] in NAMES:
        return importlib.import_module(f"benchmarks.{argv[0]}").main(argv[1:])
    if argv:
        asked = argv[0] in ("-h", "--help")
        lines = [f"  {name:<16}{what}" for name, what in NAMES.items()]
        text = "\n".join(
            ["usage: python -m benchmarks [NAME [--help | options]]", "", "without a name, all of:", *lines]
        )
        print(text, file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    status = 0
    for name in NAMES:
        print(f"== {name} ==", flush=True)
        status = importlib.import_module(f"benchmarks.{name}").main([]) or status
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

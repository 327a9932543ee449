"""`python -m benchmarks convolutions`: the layers of ResNet-18 and VGG-16 beside sgemm, and the error of Winograd's algorithm.

Each layer is computed by the kernel that is chosen and, where that is Winograd's, by the direct convolution too. Beside
them runs the matrix product of the same multiplications (filters x patches), by the BLAS that the compiler uses, and one
of 1024 x 1024 matrices. Speeds are floating-point operations of the direct algorithm in a second, so Winograd's may exceed
what the processor can do.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from . import common

LAYERS = {
    "resnet 7x7 /2": (3, 224, 64, 7, 2),
    "resnet 3x3 56": (64, 56, 64, 3, 1),
    "resnet 3x3 /2 56": (64, 56, 128, 3, 2),
    "resnet 3x3 28": (128, 28, 128, 3, 1),
    "resnet 3x3 /2 28": (128, 28, 256, 3, 2),
    "resnet 3x3 14": (256, 14, 256, 3, 1),
    "resnet 3x3 7": (512, 7, 512, 3, 1),
    "vgg 3x3 224, 3": (3, 224, 64, 3, 1),
    "vgg 3x3 224": (64, 224, 64, 3, 1),
    "vgg 3x3 112": (128, 112, 128, 3, 1),
    "vgg 3x3 56": (256, 56, 256, 3, 1),
    "vgg 3x3 28": (512, 28, 512, 3, 1),
    "mobilenet 1x1 112": (32, 112, 64, 1, 1),
    "mobilenet 1x1 28": (256, 28, 256, 1, 1),
    "mobilenet 1x1 14": (512, 14, 512, 1, 1),
}
"""Channels, height and width, filters, window, stride."""

SQUARE = 1024


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark.

    Args:
        argv: the options; by default the process's own.

    Returns:
        0.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks convolutions", description=__doc__.partition("\n")[0])
    common.add_common_options(parser)
    parser.add_argument("--threads", type=common.positive, default=1, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=common.positive, default=7, help="(default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.1, help="for each figure of a round (default: %(default)s)")
    parser.add_argument(
        "--only", type=lambda text: common.choose(text, tuple(LAYERS)), default=list(LAYERS), metavar="LAYERS"
    )
    options = parser.parse_args(argv)
    for name in ("TVM_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = str(options.threads)
    results: dict[str, Any] = {"benchmark": "convolutions", "environment": common.begin(), "threads": options.threads}
    results["layers"] = measure(options)
    common.write_json(options.json, results)
    return 0


def systems_of(layer: tuple[int, ...], executor: str) -> tuple[dict[str, Callable[[], Any]], float]:
    """What is measured for a layer, and the greatest error of the chosen kernel over the largest result."""
    import numpy as np

    from myia_relay import relay
    from myia_relay.utils.switches import VARIABLE

    channels, side, filters, window, stride = layer
    out = -(-side // stride)
    rng = np.random.default_rng(0)

    def drawn(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    def product(a, b):
        return a @ b

    def convolution(x, w):
        return relay.conv2d(x, w, strides=(stride, stride), padding=window // 2)

    x, w = drawn(1, channels, side, side), drawn(filters, channels, window, window)
    a, b = drawn(filters, channels * window * window), drawn(channels * window * window, out * out)
    square = drawn(SQUARE, SQUARE), drawn(SQUARE, SQUARE)
    chosen, gemm = relay(convolution, executor=executor), relay(product, executor=executor)
    result = chosen(x, w)
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = "winograd"
    direct = relay(lambda x, w: relay.conv2d(x, w, strides=(stride, stride), padding=window // 2), executor=executor)
    direct(x, w)
    exact = relay(convolution, executor=executor)(x.astype(np.float64), w.astype(np.float64))
    if before is None:
        del os.environ[VARIABLE]
    else:
        os.environ[VARIABLE] = before
    error = float(np.max(np.abs(result - exact)) / np.max(np.abs(exact)))
    gemm(a, b), gemm(*square)
    return {
        "chosen": lambda: chosen(x, w),
        "direct": lambda: direct(x, w),
        "product": lambda: gemm(a, b),
        "sgemm": lambda: gemm(*square),
    }, error


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure all layers in interleaved rounds and print the table."""
    results: dict[str, Any] = {}
    rows = [["", "GFLOP", "chosen", "direct", "its product", "sgemm", "chosen / sgemm", "direct / sgemm", "error"]]
    for name in options.only:
        channels, side, filters, window, stride = LAYERS[name]
        out = -(-side // stride)
        flops = 2.0 * channels * filters * window * window * out * out
        work = dict.fromkeys(("chosen", "direct", "product"), flops) | {"sgemm": 2.0 * SQUARE**3}
        functions, error = systems_of(LAYERS[name], options.executor)
        figures = common.interleave(
            {
                key: lambda key=key, work=work, functions=functions: (
                    work[key] / seconds(functions[key], options.seconds) / 1e9
                )
                for key in functions
            },
            options.rounds,
            rest=0.01,
        )
        shares = {key: common.ratio(figures[key], figures["sgemm"]) for key in ("chosen", "direct")}
        results[name] = {"gflops": {k: common.spread(v) for k, v in figures.items()}, **shares, "error": error}
        speeds = [f"{statistics.median(figures[key]):.0f}" for key in functions]
        rows.append(
            [name, f"{flops / 1e9:.2f}", *speeds, f"{shares['chosen']:.2f}", f"{shares['direct']:.2f}", f"{error:.1e}"]
        )
    print(common.table(rows))
    print("\nGFLOP/s: medians. Ratios: medians of the rounds. Error: of the largest result, against float64.")
    return results


def seconds(function: Callable[[], Any], budget: float) -> float:
    """Seconds of one call, over a budget."""
    count, started = 0, time.perf_counter()
    while True:
        function()
        count += 1
        spent = time.perf_counter() - started
        if spent >= budget:
            return spent / count


if __name__ == "__main__":
    sys.exit(main())

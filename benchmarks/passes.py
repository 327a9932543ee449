"""`python -m benchmarks passes`: what each optimisation is worth on four networks, as Figure 5 of Relay's 2019 paper asks.

The networks are modules of Relay text, with weights of convolutions as constants and a batch of one image. Each program has
one optimisation more than the one before; the last leaves the native layout for another:

- base: every operator has a kernel of its own, and convolutions are products with matrices of patches: the native pipeline
  without `fusion`, `fuse_epilogues`, `direct_conv` and `winograd`;
- fusion: with `fusion` and `fuse_epilogues`;
- folding: the module after `FoldScaleAxis` and `FoldConstant`, so that factors of channels are in the weights;
- layout: with `direct_conv` and `winograd`, which copy images and weights into layouts of their own;
- cse: the module after `EliminateCommonSubexpr` and `DeadCodeElimination`;
- nhwc: the module after `AlterOpLayout` and `FoldConstant`, beside "cse". The native kernels are written for NCHW, so this
  shows what another layout of the text costs here.

All go through one compiler and run in one process, round after round; a figure is the time of the base in a round over that of
a program in the same round.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import common

LAYOUT = "direct_conv,winograd"
STEPS = {
    "base": f"fusion,fuse_epilogues,{LAYOUT}",
    "fusion": LAYOUT,
    "folding": LAYOUT,
    "layout": "",
    "cse": "",
    "nhwc": "",
}
"""Name of a program -> the optimisations that it is compiled without."""


class NetworkText:
    """Writes a network as Relay text, operator by operator.

    Attributes:
        shape: the shape of the value that was written last.
        weights: name of a parameter -> its shape; those of convolutions and factors become constants.
    """

    def __init__(self, channels: int, side: int):
        self.lines: list[str] = []
        self.weights: dict[str, tuple[int, ...]] = {}
        self.input = self.shape = (1, channels, side, side)
        self.value = "%x"

    def parameter(self, kind: str, *shape: int) -> str:
        name = f"{kind}{len(self.weights)}"
        self.weights[name] = shape
        return f"%{name}"

    def bind(self, expression: str, *shape: int) -> str:
        self.value = f"%v{len(self.lines)}"
        self.lines.append(f"  let {self.value} = {expression};")
        self.shape = shape or self.shape
        return self.value

    def convolution(
        self, filters: int, window: int, stride: int = 1, padding: int = 0, depthwise: bool = False, relu: bool = True
    ) -> str:
        """A convolution, a factor and a shift for each channel (batch norm at inference), and relu."""
        _, channels, side, _ = self.shape
        groups = channels if depthwise else 1
        w = self.parameter("w", filters, channels // groups, window, window)
        out = (side + 2 * padding - window) // stride + 1
        pads = ", ".join([str(padding)] * 4)
        self.bind(
            f"nn.conv2d({self.value}, {w}, strides=[{stride}, {stride}], padding=[{pads}], groups={groups}, "
            f"channels={filters}, kernel_size=[{window}, {window}])",
            *(1, filters, out, out),
        )
        self.bind(f"multiply({self.value}, {self.parameter('s', filters, 1, 1)})")
        self.bind(f"add({self.value}, {self.parameter('b', filters, 1, 1)})")
        return self.bind(f"nn.relu({self.value})") if relu else self.value

    def dense(self, units: int, relu: bool = False) -> str:
        w, b = self.parameter("d", units, self.shape[1]), self.parameter("e", units)
        self.bind(f"nn.bias_add(nn.dense({self.value}, {w}), {b})", 1, units)
        return self.bind(f"nn.relu({self.value})") if relu else self.value

    def pool(self, window: int, stride: int, padding: int = 0) -> str:
        _, channels, side, _ = self.shape
        out = (side + 2 * padding - window) // stride + 1
        pads = ", ".join([str(padding)] * 4)
        return self.bind(
            f"nn.max_pool2d({self.value}, pool_size=[{window}, {window}], strides=[{stride}, {stride}], padding=[{pads}])",
            *(1, channels, out, out),
        )

    def flat(self, mean: bool = False) -> str:
        if mean:
            return self.bind(f"mean({self.value}, axis=[2, 3])", 1, self.shape[1])
        return self.bind(f"nn.batch_flatten({self.value})", 1, self.shape[1] * self.shape[2] * self.shape[3])

    def text(self) -> str:
        """The module."""
        shapes = {"x": self.input, **self.weights}
        params = ", ".join(
            f"%{n}: Tensor[({', '.join(map(str, s))}{',' * (len(s) == 1)}), float32]" for n, s in shapes.items()
        )
        return "\n".join([f"def @main({params}) {{", *self.lines, f"  {self.value}", "}"])


def dqn(part: float) -> NetworkText:
    """The network of deep Q learning: three convolutions, two dense layers."""
    n = NetworkText(4, max(36, int(84 * part)))
    for filters, window, stride in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
        n.convolution(filters, min(window, n.shape[2]), stride)
    n.flat()
    n.dense(512, relu=True)
    n.dense(18)
    return n


def mobilenet(part: float) -> NetworkText:
    """MobileNet: depthwise and pointwise convolutions in turn."""
    n = NetworkText(3, max(32, int(224 * part)))
    n.convolution(32, 3, 2, 1)
    for filters, stride in (
        (64, 1),
        (128, 2),
        (128, 1),
        (256, 2),
        (256, 1),
        (512, 2),
        *[(512, 1)] * 5,
        (1024, 2),
        (1024, 1),
    ):
        n.convolution(n.shape[1], 3, stride, 1, depthwise=True)
        n.convolution(filters, 1)
    n.flat(mean=True)
    n.dense(1000)
    return n


def resnet18(part: float) -> NetworkText:
    """ResNet-18: two convolutions and a sum, eight times."""
    n = NetworkText(3, max(32, int(224 * part)))
    n.convolution(64, 7, 2, 3)
    n.pool(3, 2, 1)
    for filters, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        before, shape = n.value, n.shape
        n.convolution(filters, 3, stride, 1)
        after = n.convolution(filters, 3, 1, 1, relu=False)
        if stride > 1:
            n.value, out, n.shape = before, n.shape, shape
            before = n.convolution(filters, 1, stride, relu=False)
            n.shape = out
        n.bind(f"add({after}, {before})")
        n.bind(f"nn.relu({n.value})")
    n.flat(mean=True)
    n.dense(1000)
    return n


def vgg16(part: float) -> NetworkText:
    """VGG-16: thirteen convolutions of 3x3, three dense layers."""
    n = NetworkText(3, max(32, int(224 * part)))
    for filters, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            n.convolution(filters, 3, 1, 1)
        n.pool(2, 2)
    n.flat()
    n.dense(4096, relu=True)
    n.dense(4096, relu=True)
    n.dense(1000)
    return n


NETWORKS: dict[str, Callable[[float], NetworkText]] = {
    "dqn": dqn,
    "mobilenet": mobilenet,
    "resnet18": resnet18,
    "vgg16": vgg16,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark.

    Args:
        argv: the options; by default the process's own.

    Returns:
        0.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks passes", description=(__doc__ or "").partition("\n")[0])
    common.add_common_options(parser)
    parser.add_argument("--rounds", type=common.positive, default=15, help="(default: %(default)s)")
    parser.add_argument("--size", type=float, default=1.0, help="part of the images' sides (default: %(default)s)")
    parser.add_argument(
        "--only", type=lambda text: common.choose(text, tuple(NETWORKS)), default=list(NETWORKS), metavar="NETWORKS"
    )
    parser.add_argument("--svg", type=Path, metavar="OUT", help="write the plot to a file")
    options = parser.parse_args(argv)
    results: dict[str, Any] = {"benchmark": "passes", "environment": common.begin(), "size": options.size}
    results["speedups"] = measure(options)
    print(plot(results["speedups"]))
    if options.svg:
        options.svg.write_text(svg(results["speedups"]), "utf-8")
    common.write_json(options.json, results)
    return 0


def measure(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Measure all networks in interleaved rounds and print the table."""
    found: dict[str, dict[str, float]] = {}
    rows = [["", *STEPS, "base, ms"]]
    for name in options.only:
        systems = programs(NETWORKS[name](options.size), options.executor)
        figures = common.interleave(systems, options.rounds, rest=0.01)
        found[name] = {step: common.ratio(figures["base"], figures[step]) for step in STEPS}
        base = 1e3 * statistics.median(figures["base"])
        rows.append([name, *(f"{found[name][step]:.2f}" for step in STEPS), f"{base:.1f}"])
    print(common.table(rows))
    print("\nTime of the base over that of each program: medians of the ratios of each round.")
    return found


def programs(network: NetworkText, executor: str) -> dict[str, Callable[[], float]]:
    """The compiled programs of a network: each runs once and returns seconds. They agree on the result.

    Raises:
        AssertionError: they do not.
    """
    import numpy as np

    from myia_relay import relay

    T = relay.transform
    rng = np.random.default_rng(0)
    values = {}
    for name, shape in network.weights.items():
        fan = int(np.prod(shape[1:])) if name[0] in "wd" else 1
        scale = 0.1 if name[0] in "be" else np.sqrt(2 / max(fan, 1))
        drawn = rng.standard_normal(shape) * scale
        values[name] = (abs(drawn) + 0.5 if name[0] == "s" else drawn).astype(np.float32)
    module = bound(relay.parse_text(network.text()), {n: v for n, v in values.items() if n[0] in "wsb"})
    rest = [v for n, v in values.items() if n[0] not in "wsb"]
    x = rng.standard_normal(network.input).astype(np.float32)
    modules = {"base": module, "fusion": module}
    modules["folding"] = T.Sequential([T.FoldScaleAxis(), T.FoldConstant()])(module)
    modules["layout"] = modules["folding"]
    modules["cse"] = T.Sequential([T.EliminateCommonSubexpr(), T.DeadCodeElimination()])(modules["layout"])
    modules["nhwc"] = T.Sequential([T.AlterOpLayout(), T.FoldConstant()])(modules["cse"])
    out: dict[str, Callable[[], float]] = {}
    first: Any = None
    for step, left_out in STEPS.items():
        with without(left_out):
            made = type(module)(modules[step].tree).with_executor(executor)["main"]
            result = made(x, *rest)
        first = result if first is None else first
        error = float(np.max(np.abs(result - first)) / np.max(np.abs(first)))
        assert error < 1e-3, f"{step} differs by {error:.1e}"

        def run(made: Any = made) -> float:
            started = time.perf_counter()
            made(x, *rest)
            return time.perf_counter() - started

        out[step] = run
    return out


def bound(module: Any, values: dict[str, Any]) -> Any:
    """A module whose `@main` has constants in place of some parameters."""
    from dataclasses import replace

    from myia_relay.text.binders import substituted
    from myia_relay.text.tree import constant

    function = module.tree.definitions["main"].function
    known = {p.local: constant(values[p.local.name]) for p in function.params if p.local.name in values}
    kept = tuple(p for p in function.params if p.local not in known)
    new = replace(function, params=kept, body=substituted(function.body, known))
    return type(module)(module.tree.mapped(lambda name, f: new if f is function else f))


@contextmanager
def without(names: str) -> Iterator[None]:
    """Compile without some optimisations."""
    from myia_relay.utils.switches import VARIABLE

    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = names
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def plot(speedups: dict[str, dict[str, float]], width: int = 40) -> str:
    """The speedups as bars of text."""
    longest = max(v for found in speedups.values() for v in found.values())
    lines = []
    for name, found in speedups.items():
        for step, value in found.items():
            lines.append(
                f"{name if step == 'base' else '':<11}{step:<9}{'#' * max(1, round(width * value / longest))} {value:.2f}"
            )
    return "\n" + "\n".join(lines)


def svg(speedups: dict[str, dict[str, float]]) -> str:
    """The speedups as bars, in a picture."""
    colours = ("#9aa5b1", "#4c78a8", "#59a14f", "#f28e2b", "#b07aa1", "#e15759")
    longest = max(v for found in speedups.values() for v in found.values())
    parts, left = [], 40
    for name, found in speedups.items():
        for k, value in enumerate(found.values()):
            height = 180 * value / longest
            parts.append(
                f'<rect x="{left + 22 * k}" y="{200 - height:.1f}" width="20" height="{height:.1f}" fill="{colours[k]}"/>'
            )
            parts.append(
                f'<text x="{left + 22 * k + 10}" y="{196 - height:.1f}" text-anchor="middle" font-size="8">{value:.2f}</text>'
            )
        parts.append(f'<text x="{left + 55}" y="216" text-anchor="middle">{name}</text>')
        left += 162
    for k, step in enumerate(STEPS):
        parts.append(f'<rect x="{40 + 90 * k}" y="226" width="10" height="10" fill="{colours[k]}"/>')
        parts.append(f'<text x="{54 + 90 * k}" y="235">{step}</text>')
    body = "".join(parts)
    style = f'width="{left + 20}" height="245" font-family="sans-serif" font-size="11"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {style}>{body}</svg>\n'


if __name__ == "__main__":
    sys.exit(main())

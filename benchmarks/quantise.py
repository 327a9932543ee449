"""`python -m benchmarks.quantise`: networks in integers beside float32 and ONNX Runtime: accuracy and time.

Time: ResNet-18 and MobileNet of `benchmarks.networks`, random weights, one image of 224 x 224. ONNX Runtime's are float32, and
quantised by its own `quantize_static` (QDQ, weights per channel). All systems are measured in turn, in one process. Accuracy: on
MNIST, of a trained CNN if `$MYIA_RELAY_DATA` has it, and of a small ResNet and a small MobileNet that are trained here.

The table is that of J. Roesch et al., "Relay: A High-Level Compiler for Deep Learning" (2019), figure 12: 8/16, 8/32 and 16/32 bits
beside float32.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # before a BLAS or TVM is loaded
    count = sys.argv[sys.argv.index("--threads") + 1] if "--threads" in sys.argv else "1"
    for variable in ("TVM_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = count

import numpy as np

from myia_relay import Float, Tensor, relay, relay_model

from . import common
from .networks import cases, vision

SCHEMES = ("int8/int16", "int8/int32", "int16/int32")
METHODS = ("global_scale", "percentile", "mse", "kl")
MEAN, DEVIATION = 0.1307, 0.3081


@relay_model
def mnist_cnn(x: Tensor[Float, (1, 28, 28)]) -> Tensor[Float, 10]:
    """Three convolutions and two dense layers, with the parameters of burn's example."""
    for channels in (8, 16, 24):
        x = relay.relu(relay.conv2d(x, channels, ksize=3, unshared=True))
    x = relay.flatten_layer(relay.batch_norm(x, axis=0))
    return relay.batch_norm(relay.linear(relay.relu(relay.linear(x, 32)), 10), axis=0)


@relay_model
def separable(x, channels, strides):
    """A depthwise convolution, and one of size 1."""
    x = relay.conv2d(
        x, x.shape[0], 3, strides=strides, padding=1, groups=x.shape[0], no_bias=True, init="kaiming_normal"
    )
    x = relay.relu(relay.batch_norm(x, axis=0))
    return relay.relu(relay.batch_norm(relay.conv2d(x, channels, 1, no_bias=True, init="kaiming_normal"), axis=0))


@relay_model
def small_mobilenet(x: Tensor[Float, (1, 28, 28)]) -> Tensor[Float, 10]:
    """Six separable convolutions (A. Howard et al., "MobileNets", 2017)."""
    x = relay.relu(relay.batch_norm(relay.conv2d(x, 16, 3, padding=1, no_bias=True, init="kaiming_normal"), axis=0))
    x = separable(x, 32, 2)
    x = separable(x, 32, 1)
    x = separable(x, 64, 2)
    x = separable(x, 64, 1)
    return relay.linear(relay.global_avg_pool(separable(x, 64, 1)), 10)


@relay_model
def block(x, channels, strides):
    """Two convolutions beside the input, or beside what a convolution of size one makes of it."""
    y = relay.conv2d(x, channels, 3, strides=strides, padding=1, no_bias=True, init="kaiming_normal")
    y = relay.relu(relay.batch_norm(y, axis=0))
    y = relay.batch_norm(relay.conv2d(y, channels, 3, padding=1, no_bias=True, init="kaiming_normal"), axis=0)
    if strides > 1:
        x = relay.conv2d(x, channels, 1, strides=strides, no_bias=True, init="kaiming_normal")
        x = relay.batch_norm(x, axis=0)
    return relay.relu(x + y)


@relay_model
def small_resnet(x: Tensor[Float, (1, 28, 28)]) -> Tensor[Float, 10]:
    """ResNet-8 (K. He et al. 2015, section 4.2, with n = 1)."""
    x = relay.conv2d(x, 16, 3, padding=1, no_bias=True, init="kaiming_normal")
    x = block(relay.relu(relay.batch_norm(x, axis=0)), 16, 1)
    return relay.linear(relay.global_avg_pool(block(block(x, 32, 2), 64, 2)), 10)


@relay
def resnet_loss(x, y):
    """Of one image."""
    return relay.softmax_cross_entropy(small_resnet(x), y)


@relay
def mobilenet_loss(x, y):
    """Of one image."""
    return relay.softmax_cross_entropy(small_mobilenet(x), y)


PARTS = {
    **{f"conv2d_{k}": f"conv{k + 1}" for k in range(3)},
    **{f"linear_{k}": f"fc{k + 1}" for k in range(2)},
    **{f"batch_norm_{k}": f"norm{k + 1}" for k in range(2)},
}


def trained_cnn(folder: Path) -> Any:
    """The CNN with its parameters; None where there are none."""
    path = folder / "weights_mnist_cnn" / "mnist.safetensors"
    if not path.exists():
        return None
    from safetensors.numpy import load_file

    model, known = relay.create_model(mnist_cnn), load_file(path)
    for group in (model.params, model.state):
        for name in group:
            layer, part = name.split(".")
            part = {"scale": "weight", "shift": "bias", "gamma": "weight", "beta": "bias"}.get(part, part)
            group[name] = known[f"{PARTS[layer]}.{part}"]
    return model


def accuracies(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Accuracy and time of networks on MNIST."""
    train, test = relay.datasets.mnist()
    test = test[: options.tests]
    networks: dict[str, tuple[Any, Callable]] = {}
    cnn = trained_cnn(Path(os.environ.get("MYIA_RELAY_DATA", ".")))
    if cnn is not None:
        networks["CNN"] = cnn, lambda x: ((x - MEAN) / DEVIATION).astype(np.float32)
    for name, function, loss in (
        ("ResNet-8", small_resnet, resnet_loss),
        ("MobileNet", small_mobilenet, mobilenet_loss),
    ):
        model = relay.create_model(function, seed=0)
        steps = options.epochs * -(-min(options.examples, len(train)) // 96)
        rate = relay.optim.schedules.warmup(relay.optim.schedules.cosine(6e-3, steps), min(50, steps // 4))
        relay.fit(
            model,
            loss,
            train[: options.examples],
            epochs=options.epochs,
            batch_size=96,
            optimizer=relay.optim.adam(model, lr=rate),
        )
        networks[name] = model, lambda x: np.asarray(x, np.float32)
    rows = []
    labels = np.asarray(test.labels)
    labels = labels.argmax(1) if labels.ndim == 2 else labels
    for name, (model, prepared) in networks.items():
        inputs = [prepared(np.asarray(x)) for x in test.images.reshape(-1, 1, 28, 28)]
        data = [prepared(np.asarray(x)) for x in train.images[: options.calibration].reshape(-1, 1, 28, 28)]
        systems = {"float32": model}
        for scheme in SCHEMES:
            for method in options.methods:
                systems[f"{scheme} {method}"] = relay.quantize(
                    model, data, scheme=scheme, calibrate=method, show_progress=False
                )
        guesses = {s: np.array([int(np.argmax(f(x))) for x in inputs]) for s, f in systems.items()}
        times = common.interleave({s: timed(f, inputs[:64]) for s, f in systems.items()}, options.rounds, 0.01)
        for system in systems:
            right = 100 * float(np.mean(guesses[system] == labels))
            equal = 100 * float(np.mean(guesses[system] == guesses["float32"]))
            micro = 1e6 * common.spread(times[system], False)["median"]
            speed = common.ratio(times["float32"], times[system])
            rows.append(
                {"network": name, "system": system, "accuracy": right, "equal": equal, "us": micro, "speed": speed}
            )
            print(
                f"{name:10} {system:26} {right:6.2f} %  equal {equal:6.2f} %  {micro:8.1f} us  {speed:5.2f}x",
                flush=True,
            )
    return rows


def timed(function: Callable, inputs: Sequence[Any]) -> Callable[[], float]:
    """A function that calls another one on all inputs and returns the seconds of one."""

    def run() -> float:
        begin = time.perf_counter()
        for x in inputs:
            function(x)
        return (time.perf_counter() - begin) / len(inputs)

    run()
    return run


def ort_systems(row: str, problem: Any, data: list, threads: int) -> dict[str, Callable]:
    """ONNX Runtime in float32, and quantised by itself; none where it is not installed."""
    try:
        import onnx
        import onnxruntime
        from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

        from .peers import ort_networks
    except ImportError:
        return {}
    session_of = onnxruntime.InferenceSession
    saved: list[bytes] = []
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.left = [{"x": x} for x in data]

        def get_next(self):
            return self.left.pop() if self.left else None

    def keep(model: bytes, *args: Any) -> Any:
        saved.append(model)
        return session_of(model, options, ["CPUExecutionProvider"])

    onnxruntime.InferenceSession = keep
    try:
        floats = ort_networks.BUILDERS[row](problem)
    finally:
        onnxruntime.InferenceSession = session_of
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
        onnx.save(onnx.load_from_string(saved[0]), source)
        types: Any = {"weight_type": QuantType.QInt8, "activation_type": QuantType.QUInt8}
        quantize_static(source, target, Reader(), quant_format=QuantFormat.QDQ, per_channel=True, **types)
        session = session_of(str(target), options, ["CPUExecutionProvider"])
    return {"ort float32": lambda x: floats(), "ort int8": lambda x: session.run(None, {"x": x})[0]}


def speeds(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Times of large networks."""
    rows = []
    for row in options.networks:
        problem = cases.load(row, options.tiny)
        (x,), weights, function = problem.inputs, problem.weights, getattr(vision, row)

        def net(x):
            return function(x, weights)  # noqa: B023

        own = relay(net)
        rng = np.random.default_rng(1)
        data = [x, *(rng.standard_normal(x.shape).astype(np.float32) for _ in range(3))]
        systems: dict[str, Callable] = {"float32": own}
        for scheme in SCHEMES:
            systems[scheme] = relay.quantize(own, data, scheme=scheme, calibrate="mse", show_progress=False)
        systems |= ort_systems(row, problem, data, options.threads)
        wanted = own(x)
        figures = common.interleave({s: timed(f, [x] * options.calls) for s, f in systems.items()}, options.rounds)
        for system, function_ in systems.items():
            error = float(np.linalg.norm(np.asarray(function_(x)) - wanted) / np.linalg.norm(wanted))
            median, speed = (
                1e3 * common.spread(figures[system], False)["median"],
                common.ratio(figures["float32"], figures[system]),
            )
            ort = common.ratio(figures["ort int8"], figures[system]) if "ort int8" in figures else float("nan")
            rows.append({"network": row, "system": system, "ms": median, "speed": speed, "ort": ort, "error": error})
            print(
                f"{row:10} {system:12} {median:8.2f} ms  {speed:5.2f}x float32  {ort:5.2f}x ort int8  error {error:.1e}",
                flush=True,
            )
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark.

    Args:
        argv: the options; by default the process's own.

    Returns:
        0, or 1 where a network loses more of its accuracy than it may.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quantise", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--threads", type=common.positive, default=1, help="default: %(default)s")
    parser.add_argument(
        "--networks", type=lambda t: [n for n in t.split(",") if n], default=["resnet18", "mobilenet"], metavar="NAMES"
    )
    parser.add_argument("--rounds", type=common.positive, default=9, help="default: %(default)s")
    parser.add_argument("--calls", type=common.positive, default=3, help="of each round (default: %(default)s)")
    parser.add_argument("--epochs", type=common.positive, default=3, help="of training (default: %(default)s)")
    parser.add_argument("--examples", type=common.positive, default=60_000, help="to train on (default: %(default)s)")
    parser.add_argument(
        "--tests", type=common.positive, default=10_000, help="images of the test (default: %(default)s)"
    )
    parser.add_argument(
        "--calibration", type=common.positive, default=128, help="images for calibration (default: %(default)s)"
    )
    parser.add_argument(
        "--methods", type=lambda t: t.split(","), default=list(METHODS), help="of calibration, default: all"
    )
    parser.add_argument("--tiny", action="store_true", help="small networks, to see that it runs")
    parser.add_argument("--no-accuracy", action="store_true", help="times alone")
    options = parser.parse_args(argv)
    common.begin()
    speeds(options)
    failed = False
    if not options.no_accuracy:
        rows = accuracies(options)
        best = {r["network"]: r["accuracy"] for r in rows if r["system"] == "float32"}
        for r in rows:
            scheme, _, method = r["system"].partition(" ")
            if method in ("kl", "mse"):
                loss = best[r["network"]] - r["accuracy"]
                if loss > (0.3 if scheme == "int8/int16" else 0.1) + 1e-9 or r["equal"] < 99:
                    print(f"{r['network']} {r['system']} loses {loss:.2f} points, {r['equal']:.2f} % equal")
                    failed = True
    return int(failed)


__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())

"""The command line: `python -m myia_relay train | compile | bisect | bench | doctor`.

Each command imports the compiler only if it needs it: `doctor` works where the compiler does not. A user's mistake ends
with one message and status 1, a wrong command line with status 2, Ctrl-C with one line and status 130.
"""

from __future__ import annotations

import argparse
import ast
import functools
import importlib.metadata
import importlib.util
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .utils.errors import CompileError, LoweringError
from .utils.files import CACHE_VARIABLE, SIZE_VARIABLE, cache_root, programs_limit

DATA_CHOICES = ("auto", "mnist", "fashion_mnist", "digits")
DEFAULT_EPOCHS = {"mnist": 3, "fashion_mnist": 5, "digits": 20}

_PACKAGES = ("numpy", "apache-tvm", "scipy-openblas32", "safetensors", "ml_dtypes", "astor", "tqdm", "matplotlib")


class UsageError(Exception):
    """Something the user can put right; the message says how."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: the words after the program's name; by default those it was started with.

    Returns:
        The exit status.

    Raises:
        CompileError: with `--traceback`, a program does not compile.
        UsageError: with `--traceback`, an argument makes no sense.
        OSError: with `--traceback`, a file cannot be read or written.
    """
    arguments = _parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except KeyboardInterrupt:
        print("\nstopped by Ctrl-C; nothing was written", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output is gone, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except CompileError as error:
        if arguments.traceback:
            raise
        print(f"{type(error).__name__}: {str(error).strip()}", file=sys.stderr)
    except (UsageError, OSError) as error:
        if arguments.traceback:
            raise
        print(f"error: {error}", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m myia_relay", description="A compiler for a pure Python subset, with automatic differentiation."
    )
    parser.add_argument("--version", action="version", version=f"myia_relay {_version('myia_relay')}")
    parser.add_argument("--traceback", action="store_true", help="show where in the program an error comes from")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    train = commands.add_parser("train", help="train an example model", description="Train an example model.")
    train.add_argument("model", choices=["lenet"], help="the model: lenet, figure 4 of the Relay paper")
    train.add_argument(
        "--data", choices=DATA_CHOICES, default="auto", help="by default mnist if it can be had, else digits"
    )
    train.add_argument("--epochs", type=_positive, help="passes over the data; by default 3 of mnist, 20 of digits")
    train.add_argument("--batch-size", type=_positive, default=64, help="images in a step (default: %(default)s)")
    train.add_argument("--lr", type=float, default=1e-3, help="Adam's step size (default: %(default)s)")
    train.add_argument("--seed", type=int, default=0, help="of the parameters and the order (default: %(default)s)")
    train.add_argument("--target", help="what to compile for, as @relay(target=...) takes it (default: cpu)")
    train.add_argument("--save", type=Path, metavar="FILE", help="write the trained parameters (safetensors)")
    train.set_defaults(run=_train)

    compile_ = commands.add_parser(
        "compile",
        help="compile a function of a file, report on it, write it as a library",
        description="Compile a function for the types of example arguments; show its program, kernels, memory and times.",
    )
    compile_.add_argument("function", metavar="MODULE.py:FUNCTION", help="a file and a name in it")
    compile_.add_argument(
        "--args",
        nargs="*",
        default=[],
        type=_example,
        metavar="ARG",
        help="an example of each argument: a Python literal such as 2.0 or '(1, 2)', or a type such as float32[3,4]",
    )
    compile_.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write it as a library, which relay.load_compiled runs without a compiler",
    )
    compile_.add_argument(
        "--target",
        metavar="MACHINE",
        help='write it for C, as NAME.a, for another machine: "aarch64-linux-gnu", "armv7l-linux-gnueabihf", ...',
    )
    compile_.add_argument("--ir", action="store_true", help="show the optimised program too")
    compile_.set_defaults(run=_compile)

    include = commands.add_parser(
        "include", help="show the folder of myia_relay.h", description="Show the folder of the header for C programs."
    )
    include.set_defaults(run=_include)

    bisect = commands.add_parser(
        "bisect",
        help="find the pass after which a function's answer changes",
        description="Run a function by the reference interpreter after each pass of the compiler, then as native code; name the "
        "first pass after which the answer is another one. Status 1 where there is one.",
    )
    bisect.add_argument("function", metavar="MODULE.py:FUNCTION", help="a file and a name in it")
    bisect.add_argument(
        "--args",
        nargs="*",
        default=[],
        type=functools.partial(_example, fill=_Random()),
        metavar="ARG",
        help="each argument: a Python literal such as 2.0 or '(1, 2)', or a type such as float32[3,4] for random numbers",
    )
    bisect.add_argument(
        "--tolerance",
        type=float,
        help="relative, of floats once derivatives or native code are involved (default: 1e-9, more for less than 64 bits)",
    )
    bisect.add_argument(
        "--dump", type=Path, metavar="FOLDER", help="write the graphs before and after the change there"
    )
    bisect.set_defaults(run=_bisect)

    bench = commands.add_parser(
        "bench", help="run the benchmarks of a checkout", description="Run benchmarks/ of a checkout."
    )
    bench.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help="what to hand to the benchmarks")
    bench.set_defaults(run=_bench)

    doctor = commands.add_parser(
        "doctor", help="show versions, targets, threads, cache, data", description="Show what is there to work with."
    )
    doctor.set_defaults(run=_doctor)
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return value


# train


def _train(arguments: argparse.Namespace) -> int:
    """Train LeNet and report its accuracy and speed."""
    name, train, test = _choose_data(arguments.data)
    epochs = arguments.epochs or DEFAULT_EPOCHS[name]

    from myia_relay import relay

    from .model import lenet as program

    print(
        f"LeNet on {name}: {len(train):,} images to train, {len(test):,} to test; "
        f"{epochs} epochs, batches of {arguments.batch_size}, Adam {arguments.lr:g}",
        flush=True,
    )
    model = relay.create_model(program.lenet, seed=arguments.seed)
    loss = program.loss
    if arguments.target:
        loss = relay(target=arguments.target)(loss.__wrapped__)
    start = time.perf_counter()
    history = relay.fit(
        model,
        loss,
        train,
        epochs=epochs,
        batch_size=arguments.batch_size,
        optimizer=relay.optim.adam(model, lr=arguments.lr),
        shuffle=True,
        seed=arguments.seed,
    )
    seconds = time.perf_counter() - start
    steps = history.steps
    last = history["loss"][-1] if "loss" in history.columns() else history.losses[-1]
    print(f"loss           {last:.4f} (first step {history.losses[0]:.4f})")
    print(f"test accuracy  {100 * program.accuracy(model, test):.2f} %")
    print(
        f"speed          {steps / seconds:,.0f} steps/s, {epochs * len(train) / seconds:,.0f} images/s "
        f"({seconds:.1f} s in all, compiling included)"
    )
    if arguments.save:
        model.save(arguments.save)
        print(f"saved          {arguments.save}")
    return 0


def _choose_data(wanted: str) -> tuple[str, Any, Any]:
    """The dataset to train on; prints in one line why it is not MNIST, if the user did not choose.

    Returns:
        Its name, the part to train on, and the part to test on.
    """
    from .model import datasets

    if wanted != "auto":
        return wanted, *getattr(datasets, wanted)()
    try:
        return "mnist", *datasets.mnist()
    except datasets.DatasetError as error:
        reason = str(error).splitlines()[0].partition(" Tried:")[0].rstrip(". ")
        print(f"no MNIST here ({reason}): using digits, part of the package")
        return "digits", *datasets.digits()


# compile


def _compile(arguments: argparse.Namespace) -> int:
    """Compile a function of a file for the types of the example arguments, and report the result."""
    function = _load_function(arguments.function)
    from myia_relay import relay

    compiled = function if hasattr(function, "explain") else relay(function)
    if arguments.ir:
        print(compiled.ir(*arguments.args))
    print(compiled.explain(*arguments.args))
    if arguments.output and (arguments.target or arguments.output.suffix == ".a"):
        relay.export_library(compiled, arguments.output, *arguments.args, target=arguments.target)
        print(f"wrote {arguments.output}: {arguments.output.stat().st_size:,} bytes; link it to a C program")
    elif arguments.output:
        compiled.save(arguments.output, *arguments.args)
        print(f"wrote {arguments.output}: {arguments.output.stat().st_size:,} bytes; load it with relay.load_compiled")
    return 0


def _include(_: argparse.Namespace) -> int:
    """Show where the header for C programs is."""
    from .backend.native.standalone import INCLUDE

    print(INCLUDE)
    return 0


# bisect


def _bisect(arguments: argparse.Namespace) -> int:
    """Name the pass after which a function's answer changes.

    Raises:
        UsageError: the name is of something that cannot be called.
    """
    function = _load_function(arguments.function)
    from myia_relay import relay

    from .bisect import bisect
    from .ir.text import to_text

    if not callable(function):
        raise UsageError(f"{arguments.function} is {type(function).__name__}, no function")
    compiled: Any = function if hasattr(function, "explain") else relay(function)
    found = bisect(compiled, tuple(arguments.args), arguments.tolerance)
    if arguments.dump:
        arguments.dump.mkdir(parents=True, exist_ok=True)
        for name, graph in (("before", found.before), ("after", found.after)):
            if graph is not None:
                path = arguments.dump / f"{name}.txt"
                path.write_text(to_text(graph) + "\n")
                print(f"wrote {path}")
    return 0 if found.culprit is None else 1


# Files, functions and arguments.


def _load_function(text: str) -> Callable:
    """Run a file as a module and take a name from it.

    Args:
        text: ``path/to/module.py:name``.

    Raises:
        UsageError: the text does not name a function of a Python file.
    """
    file, colon, name = text.rpartition(":")
    if not colon or not name.isidentifier():
        raise UsageError(f"{text!r} does not name a function: write MODULE.py:FUNCTION")
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"there is no file {file}")
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.resolve().parent))
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        from .utils.errors import nearest

        raise UsageError(f"{file} has no {name!r}{nearest(name, vars(module))}")
    return getattr(module, name)


def _example(text: str, fill: Callable | None = None) -> Any:
    """An example argument: a Python literal, or an array of a type such as ``float32[3,4]``.

    Args:
        text: what the user wrote.
        fill: `(shape, dtype) -> array`: makes it; by default zeros.

    Raises:
        argparse.ArgumentTypeError: it is neither.
    """
    if match := re.fullmatch(r"(bool|u?int\d+|b?float\d+)\s*\[([\d\s,]*)\]", text.strip()):
        import numpy as np

        try:
            return (fill or np.zeros)([int(n) for n in match[2].split(",") if n.strip()], _dtype(match[1]))
        except TypeError:
            raise argparse.ArgumentTypeError(f"{match[1]} is no array type") from None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a Python literal nor a type such as float32[3,4]"
        ) from None


class _Random:
    """Makes arrays of random numbers, the same in every process."""

    def __init__(self):
        self.generator: Any = None

    def __call__(self, shape: list[int], dtype: Any):
        import numpy as np

        self.generator = self.generator or np.random.default_rng(0)
        if dtype.kind in "bui":
            low, high = {"b": (0, 2), "u": (0, 10), "i": (-9, 10)}[dtype.kind]
            return self.generator.integers(low, high, shape).astype(dtype)
        return self.generator.standard_normal(shape).astype(dtype)


def _dtype(name: str):
    import ml_dtypes
    import numpy as np

    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


# bench


def _bench(arguments: argparse.Namespace) -> int:
    """Run the benchmarks that lie beside the package in a checkout.

    Raises:
        UsageError: the package is installed without them.
    """
    root = Path(__file__).resolve().parents[1]
    if not (root / "benchmarks" / "__main__.py").is_file():
        raise UsageError("the benchmarks are not part of an installed package: run this in a checkout of the project")
    return subprocess.call([sys.executable, "-m", "benchmarks", *arguments.rest], cwd=root)


# doctor


def _doctor(arguments: argparse.Namespace) -> int:
    """Print the environment; nothing is compiled, downloaded or written."""
    sections = {
        "versions": _versions(),
        "targets": _targets(),
        "threads": _threads(),
        "cache": _cache(),
        "data": _data(),
    }
    for title, rows in sections.items():
        print(title)
        width = max(len(name) for name, _ in rows)
        for name, text in rows:
            print(f"  {name:<{width}}  {text}")
    return 0


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _versions() -> list[tuple[str, str]]:
    return [
        ("python", f"{platform.python_version()} ({platform.python_implementation()}), {platform.platform()}"),
        ("myia_relay", _version("myia_relay")),
        *((package, _version(package)) for package in _PACKAGES),
    ]


def _targets() -> list[tuple[str, str]]:
    flags = _cpu_flags()
    vectors = next((v for v in ("avx512f", "avx2", "avx", "sve", "asimd", "sse2") if v in flags), "unknown")
    return [("cpu", f"{platform.machine()}, vectors: {vectors}"), ("native", _native()), ("products", _kernels())]


def _native() -> str:
    """What there is of the native executor on this system."""
    from .backend.native.library import supported
    from .pipeline import native_compiler

    try:
        native_compiler()
    except LoweringError as error:
        return error.message
    if supported():
        return "yes; programs are kept between processes"
    return "by TVM's loader; each process compiles, because files of programs are for Linux on x86-64"


def _kernels() -> str:
    """The processor for which OpenBLAS multiplies matrices, which an environment variable may have chosen."""
    from .backend.native.library import kernels

    try:
        name = kernels()
    except (ImportError, OSError, AttributeError) as error:
        return f"no OpenBLAS: {error}"
    forced = os.environ.get("OPENBLAS_CORETYPE")
    return f"OpenBLAS for {name}" + (
        f" (OPENBLAS_CORETYPE={forced}; without it the processor decides)" if forced else ""
    )


def _cpu_flags() -> set[str]:
    """The instruction sets that Linux reports; empty elsewhere."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return set()
    match = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return set(match[1].split()) if match else set()


def _threads() -> list[tuple[str, str]]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    variables = [name for name in ("OMP_NUM_THREADS", "TVM_NUM_THREADS", "OPENBLAS_NUM_THREADS") if name in os.environ]
    return [
        ("cores", f"{os.cpu_count()}, of which this process may use {usable}"),
        *((name, os.environ[name]) for name in variables),
    ]


def _cache() -> list[tuple[str, str]]:
    root, limit = cache_root(), programs_limit()
    files, size = _contents(root)
    what = f"{files} files, {size / 1e6:,.1f} MB" if root.is_dir() else "not there yet"
    origin = CACHE_VARIABLE if os.environ.get(CACHE_VARIABLE) else "the default; set " + CACHE_VARIABLE + " to move it"
    kept, bytes_ = _contents(root / "programs")
    programs = f"{kept} compiled programs, {bytes_ / 1e6:,.1f} of at most {limit / 1e6:,.0f} MB ({SIZE_VARIABLE})"
    return [
        ("folder", f"{root} ({origin})"),
        ("holds", what),
        ("programs", programs if limit else "kept nowhere: switched off"),
    ]


def _contents(root: Path) -> tuple[int, int]:
    """The number of files in a folder and their bytes; files that vanish meanwhile or cannot be read count nothing."""
    files = size = 0
    for folder, _, names in os.walk(root):
        for name in names:
            try:
                size += os.stat(os.path.join(folder, name)).st_size
            except OSError:
                continue
            files += 1
    return files, size


def _data() -> list[tuple[str, str]]:
    from .model import datasets

    rows = [(datasets.DATA_VARIABLE, os.environ.get(datasets.DATA_VARIABLE) or "not set")]
    for name in ("mnist", "fashion_mnist"):
        try:
            place = datasets.find(name)
            rows.append((name, str(place) if place else "not here; downloaded when first used"))
        except datasets.DatasetError as error:
            rows.append((name, str(error)))
    return [*rows, ("digits", "part of the package")]

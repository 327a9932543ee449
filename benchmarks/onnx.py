"""`python -m benchmarks.onnx`: imported ONNX models beside ONNX Runtime and PyTorch: latency, time until the first result, memory.

Models are those of a folder, `--models DIR` with `DIR/NAME/model.onnx` or `DIR/NAME.onnx`; inputs are drawn, or those of the first
case in `DIR/NAME/io.npz` (`0/in/INPUT`). Without a folder they are networks of `benchmarks.networks` as ONNX graphs. PyTorch
runs, eagerly, what `torch.export.save` wrote beside a model (`model.pt2`, or `NAME.pt2`): a module that takes the same inputs
in the same order, and gives the same outputs. Each system runs in processes of its own, with the same number of threads and
cores. Outputs are compared, and times measured in interleaved rounds. Shown: median milliseconds and the median of the ratios
of the rounds; seconds from the file to the first result, ours also from a process that finds the compiled program in a file;
megabytes after the imports, until the first result and while it runs, ours in that other process.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import common
from .networks.cases import load
from .workers import System, find_peer

OURS = "myia_relay"
PEERS = {"ort": System("onnxruntime, onnx", "ort_onnx"), "torch": System("torch", "torch_onnx")}
BESIDE = {"torch": ".pt2"}
"""What a system reads in place of the model: the suffix of a file beside it."""
TOLERANCE = 1e-3
"""How much outputs may differ, each array by its own largest entry."""
DTYPES = {1: "float32", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64"}
"""Element types of the inputs that can be drawn."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark.

    Args:
        argv: the options; by default the process's own.

    Returns:
        0, or 1 where ours failed or an output differs.
    """
    options = parse(argv)
    info = common.begin()
    runs: dict[str, tuple[System, str | None]] = {OURS: (System(None, "relay_onnx"), None)}
    for name in options.peers:
        package = PEERS[name].package
        assert package is not None
        python = find_peer(package, options.peer_python)
        if python is None:
            print(f"{name}: {package} is not installed here; --peer-python PATH names the Python that has it")
        else:
            runs[name] = PEERS[name], python
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="myia_relay_onnx.") as name:
        folder = Path(name)
        models = found_models(options, folder) if options.models else built_models(options, folder)
        for threads in options.threads:
            some: list[dict[str, Any]] = []
            print(f"\n{threads} thread{'s' * (threads > 1)}", flush=True)
            for model, (path, inputs) in models.items():
                found = measured(options, runs, model, path, inputs, threads, folder)
                print(lines(found), flush=True)
                some += found
            print(f"\n== {threads} thread{'s' * (threads > 1)} ==\n\n{table(some)}\n")
            rows += some
    common.write_json(options.json, {"benchmark": "onnx", "environment": info, "rows": rows})
    return int(not models or any(not right(row) for row in rows))


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.onnx", description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--models", type=Path, metavar="DIR", help="models to measure (default: networks that are made)")
    add("--only", type=lambda text: text.split(","), metavar="NAMES", help="of the models; commas between them")
    add("--size", type=common.positive, default=32, help="of axes with names, but the first (default: %(default)s)")
    add("--threads", type=common.several, default=[1, 2], metavar="N", help="commas between them (default: 1,2)")
    choice = {"type": lambda text: common.choose(text, tuple(PEERS)), "default": list(PEERS)}
    add("--peers", metavar="NAMES", help=f"of {','.join(PEERS)}, or none (default: all)", **choice)
    add("--peer-python", metavar="PATH", help="the Python that has the peers, where it is not the running one")
    add("--json", type=Path, metavar="OUT", help="write all figures to a file")
    add("--rounds", type=common.positive, default=5, help="how often each system is measured (default: %(default)s)")
    add("--seconds", type=float, default=0.5, help="for each system in each round (default: %(default)s)")
    add("--tiny", action="store_true", help="small sizes of the networks that are made, to see that it runs")
    return parser.parse_args(argv)


def built_models(options: argparse.Namespace, folder: Path) -> dict[str, tuple[Path, Path]]:
    """Networks of `benchmarks.networks`: name -> the files of the model and of its inputs."""
    from .networks.graphs import GRAPHS, input_of

    found = {}
    for row in [r for r in GRAPHS if options.only is None or r in options.only]:
        problem = load(row, options.tiny, None)
        path, inputs = folder / f"{row}.onnx", folder / f"{row}.inputs.npz"
        path.write_bytes(GRAPHS[row](problem).SerializeToString())
        np.savez(inputs, x=input_of(row, problem))
        found[row] = path, inputs
    return found


def found_models(options: argparse.Namespace, folder: Path) -> dict[str, tuple[Path, Path]]:
    """The models of a folder, as `built_models` has them."""
    found = {}
    for path in sorted([*options.models.glob("*/model.onnx"), *options.models.glob("*.onnx")]):
        name = path.parent.name if path.name == "model.onnx" else path.stem
        if options.only is not None and name not in options.only:
            continue
        inputs, cases = folder / f"{name}.inputs.npz", path.parent / "io.npz"
        values = given_inputs(cases) if path.name == "model.onnx" and cases.exists() else drawn(path, options.size)
        np.savez(inputs, **values)
        found[name] = path, inputs
    if not found:
        print(f"there are no such models in {options.models}")
    return found


def given_inputs(cases: Path) -> dict[str, np.ndarray]:
    """The inputs of the first case of a file."""
    with np.load(cases) as stored:
        return {key.removeprefix("0/in/"): stored[key] for key in stored if key.startswith("0/in/")}


def drawn(path: Path, size: int) -> dict[str, np.ndarray]:
    """Inputs of a model: floats, and ones of whole numbers, which any table has.

    Raises:
        ValueError: an input is of another kind.
    """
    from onnx import load_model

    graph = load_model(path, load_external_data=False).graph
    known, rng, found = {t.name for t in graph.initializer}, np.random.default_rng(0), {}
    for value in [v for v in graph.input if v.name not in known]:
        tensor = value.type.tensor_type
        if tensor.elem_type not in DTYPES:
            raise ValueError(f"{path}: the input {value.name} is no tensor that can be drawn")
        shape = [d.dim_value or (size if k else 1) for k, d in enumerate(tensor.shape.dim)]
        dtype = np.dtype(DTYPES[tensor.elem_type])
        array = rng.standard_normal(shape) if dtype.kind == "f" else np.ones(shape)
        found[value.name] = array.astype(dtype)
    return found


def measured(options, runs, model: str, path: Path, inputs: Path, threads: int, folder: Path) -> list[dict[str, Any]]:
    """The figures of a model in all systems, ours first."""
    cache = folder / f"cache{threads}"
    request = {"model": str(path.resolve()), "inputs": str(inputs)}
    starts = {
        name: functools.partial(system.start, threads, python, cache)
        for name, (system, python) in runs.items()
        if name not in BESIDE or path.with_suffix(BESIDE[name]).exists()
    }

    def prepared(name: str, figure: dict[str, Any]) -> None:
        """What a process tells that finds our program in a file."""
        if name == OURS:
            with starts[name]() as another:
                again = another("prepare", **request, out=str(folder / "again.npz"))
            figure["from a file"] = again["first"]
            figure |= {"running from a file": again["running"]} if "running" in again else {}

    found = common.side_by_side(starts, request, folder / "out.npz", options.rounds, options.seconds, prepared)
    return [{"model": model, "system": name, "threads": threads, **figure} for name, figure in found.items()]


def right(row: dict[str, Any]) -> bool:
    """Whether a system's outputs are ours, and ours are there; peers that fail are only shown."""
    return (row["system"] != OURS or "failed" not in row) and row.get("difference", 0.0) <= TOLERANCE


def lines(rows: list[dict[str, Any]]) -> str:
    """The figures of one model, a line for each system."""
    found, ours = [], rows[0]
    for row in rows:
        where = f"{row['model']:<20}{row['system']:<12}"
        if "seconds" not in row:
            found.append(f"{where}failed: {row.get('failed', 'it was not measured').strip()}")
            continue
        times = f"{1e3 * row['seconds']:10.3f} ms  first result {row['first']:6.2f} s"
        if row["system"] == OURS:
            found.append(f"{where}{times}, from a file {row['from a file']:.2f} s")
            continue
        ratio = f"{common.ratio(row['rounds'], ours['rounds']):6.2f} x ours" if "rounds" in ours else ""
        differs = f"differs by {row['difference']:.1e}" if "difference" in row else ""
        found.append(f"{where}{times}  {ratio}  {differs} {'' if right(row) else 'WRONG'}".rstrip())
    return "\n".join(found)


def table(rows: list[dict[str, Any]]) -> str:
    """Milliseconds, seconds and megabytes of the systems."""
    peers = [s for s in dict.fromkeys(row["system"] for row in rows) if s != OURS]
    head = ["", OURS, *[cell for p in peers for cell in (p, f"{p} / ours")], "first result s", "from a file", *peers]
    shown, ratios = [[*head, "MB first / running", *peers]], {p: [] for p in peers}
    for model in dict.fromkeys(row["model"] for row in rows):
        found = {row["system"]: row for row in rows if row["model"] == model}
        ours = found[OURS]
        cells = [model, cell(ours, "seconds", 1e3, 3)]
        for p in peers:
            row = found.get(p, {})
            if "seconds" in row and "seconds" in ours:
                ratios[p].append(common.ratio(row["rounds"], ours["rounds"]))
                cells += [cell(row, "seconds", 1e3, 3), f"{ratios[p][-1]:.2f}"]
            else:
                cells += [cell(row, "seconds", 1e3, 3), ""]
        cells += [cell(ours, "first"), cell(ours, "from a file"), *[cell(found.get(p, {}), "first") for p in peers]]
        cells += [memory(found.get(s, {})) for s in (OURS, *peers)]
        shown.append(cells)
    means = [
        f"{p} / ours: geometric mean {statistics.geometric_mean(r):.2f}, least {min(r):.2f}"
        for p, r in ratios.items()
        if r
    ]
    return "\n\n".join([common.table(shown), *means])


def cell(row: dict[str, Any], key: str, factor: float = 1.0, digits: int = 2) -> str:
    """A figure; empty where there is none."""
    return f"{factor * row[key]:,.{digits}f}" if key in row else ""


def memory(row: dict[str, Any]) -> str:
    """Megabytes until the first result, and while it runs: ours with the program from a file."""
    running = row.get("running from a file", row.get("running"))
    return f"{row['preparing'] / 1e6:,.0f} / {running / 1e6:,.0f}" if running is not None else ""


if __name__ == "__main__":
    raise SystemExit(main())

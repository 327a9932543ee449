"""What `torch.export.save` wrote beside an ONNX model, in PyTorch, eagerly."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.workload import prepare_process

if __name__ == "__main__":
    prepare_process(sys.argv)

import torch
from torch.utils._pytree import tree_leaves

from benchmarks.onnx_measure import serve_importer

if "--threads" in sys.argv:
    torch.set_num_threads(int(sys.argv[sys.argv.index("--threads") + 1]))


def imported(path, inputs):
    """See `benchmarks.onnx_measure.Importer`."""
    module = torch.export.load(Path(path).with_suffix(".pt2")).module()
    values = [torch.from_numpy(value) for value in inputs.values()]

    def call():
        with torch.inference_mode():
            return [value.numpy() for value in tree_leaves(module(*values))]

    return call


if __name__ == "__main__":
    serve_importer(imported)

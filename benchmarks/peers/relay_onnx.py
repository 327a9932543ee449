"""ONNX models in this compiler."""

from __future__ import annotations

import sys

from benchmarks.onnx_measure import serve_importer
from benchmarks.workload import prepare_process
from myia_relay import relay


def imported(path, inputs):
    """See `benchmarks.onnx_measure.Importer`."""
    f = relay.from_onnx(path)
    values = [inputs[port.name] for port in f.inputs]
    return lambda: f(*values)


if __name__ == "__main__":
    prepare_process(sys.argv)
    serve_importer(imported)

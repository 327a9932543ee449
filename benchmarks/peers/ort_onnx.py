"""ONNX models in ONNX Runtime."""

from __future__ import annotations

import sys

from benchmarks.workload import prepare_process

if __name__ == "__main__":
    prepare_process(sys.argv)

from benchmarks.onnx_measure import serve_importer
from benchmarks.peers.ort_networks import session_of


def imported(path, inputs):
    """See `benchmarks.onnx_measure.Importer`."""
    session = session_of(path)
    return lambda: session.run(None, inputs)


if __name__ == "__main__":
    serve_importer(imported)

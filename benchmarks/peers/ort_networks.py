"""The networks in ONNX Runtime: graphs of its operators, inference only."""

from __future__ import annotations

import sys

from benchmarks.workload import prepare_process

if __name__ == "__main__":
    prepare_process(sys.argv)

import onnxruntime

from benchmarks.networks.graphs import GRAPHS, input_of
from benchmarks.networks.measure import serve_builders

THREADS = int(sys.argv[sys.argv.index("--threads") + 1]) if "--threads" in sys.argv else 1


def session_of(model):
    """A session of a model: its bytes, or its path."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
    return onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])


def program(row):
    """The builder of a row."""

    def build(problem):
        session, x = session_of(GRAPHS[row](problem).SerializeToString()), input_of(row, problem)
        return lambda: session.run(None, {"x": x})[0]

    return build


BUILDERS = {row: program(row) for row in GRAPHS}

if __name__ == "__main__":
    serve_builders(BUILDERS)

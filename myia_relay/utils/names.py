"""The public names: everything that is reachable as `relay.name` and from `myia_relay`, in one table, with the module that
defines it.

Most names are imported on first use, so that `import myia_relay` is fast; this module imports nothing. An operator of
`OPERATORS` is either written with primitives in `prims.api.nn_api`, or is an elementwise primitive of floats with the
same name.
"""

from __future__ import annotations

OPERATORS = (
    "argmax",
    "avg_pool",
    "conv2d",
    "erf",
    "flatten_layer",
    "gelu",
    "linear",
    "log_softmax",
    "logsumexp",
    "max_pool",
    "one_hot",
    "relu",
    "sigmoid",
    "softmax",
    "softmax_cross_entropy",
    "softplus",
    "tanh",
)
"""Operators on arrays, inside of compiled code and outside."""

PUBLIC = {
    **dict.fromkeys(
        ["Tensor", "Float", "Int", "Bool", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]
        + ["Float16", "BFloat16", "Float32", "Float64", "Lower", "Upper"],
        "abstract.annotations",
    ),
    **dict.fromkeys(
        ["CompileError", "ParseError", "TypeError_", "ShapeError", "NameError_", "AttributeError_", "GradError"]
        + ["LoweringError", "InternalError"],
        "utils.errors",
    ),
    **dict.fromkeys(["grad", "value_and_grad", "vmap", "batch_mean", "stop_gradient", "at"], "transform"),
    **dict.fromkeys(
        ["jvp", "vjp", "hvp", "jacfwd", "jacrev", "jacobian", "hessian", "custom_vjp", "checkpoint", "check_grads"]
        + ["scan", "cond", "while_loop", "fori_loop", "tree_map"],
        "derivatives",
    ),
    **dict.fromkeys(
        ["Model", "relay_model", "create_model", "load_model", "export_model", "update_model_params"], "model.model"
    ),
    **dict.fromkeys(OPERATORS, "model.layers"),
    **dict.fromkeys(["register_op", "TensorType"], "operators"),
    "fit": "model.fit",
    "load_compiled": "cache.export",
    "History": "model.history",
    "Dataset": "model.datasets",
}
"""Public name -> the module that it is in."""

MODULES = {"random": "random", "optim": "model.optim", "datasets": "model.datasets"}
"""Public name -> the module that it is."""

__all__ = ["MODULES", "OPERATORS", "PUBLIC"]

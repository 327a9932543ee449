"""The public names: everything that is reachable as `relay.name` and from `myia_relay`, in one table, with the module that
defines it.

Most names are imported on first use, so that `import myia_relay` is fast; this module imports nothing. An operator of
`OPERATORS` is written with primitives in `prims.api`, written in the language in `model.layers`, or an elementwise
primitive of floats with the same name. A layer is an operator that is declared in `model.layers`.
"""

from __future__ import annotations

LAYERS = (
    "batch_norm",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose2d",
    "dropout",
    "embedding",
    "group_norm",
    "gru",
    "gru_cell",
    "layer_norm",
    "linear",
    "lstm",
    "lstm_cell",
    "multi_head_attention",
    "rms_norm",
    "rnn",
    "rnn_cell",
)
"""Operators with weights, which are parameters of the model where none are given."""

OPERATORS = (
    "adaptive_avg_pool",
    "argmax",
    "attention",
    "avg_pool",
    "cosine_similarity",
    "elu",
    "erf",
    "flatten_layer",
    "gelu",
    "global_avg_pool",
    "glu",
    "hard_sigmoid",
    "hard_swish",
    "huber_loss",
    "kl_divergence",
    "l1_loss",
    "leaky_relu",
    "log_softmax",
    "logsumexp",
    "max_pool",
    "mish",
    "mse_loss",
    "nll_loss",
    "one_hot",
    "pad",
    "relu",
    "selu",
    "sigmoid",
    "sigmoid_cross_entropy",
    "silu",
    "softmax",
    "softmax_cross_entropy",
    "softplus",
    "tanh",
    "top_k",
    "upsample",
    *LAYERS,
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
    **dict.fromkeys(["grad", "value_and_grad", "vmap", "batch_mean", "stop_gradient", "at"], "transforms"),
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
    **dict.fromkeys(["Module", "parse_text", "from_json"], "text.module"),
    "to_text": "text.python.to_text",
    "parameter": "model.layers",
    "fit": "model.fit",
    "evaluate": "model.evaluate",
    "Callback": "model.training",
    "CSVLogger": "model.callbacks",
    "TensorBoard": "model.callbacks",
    "from_onnx": "importers.onnx.model",
    "load_compiled": "cache.export",
    "export_library": "cache.standalone",
    "History": "model.history",
    "Dataset": "model.datasets",
    "quantize": "quantization.quantized",
}
"""Public name -> the module that it is in."""

MODULES = {
    "random": "random",
    "optim": "model.optim",
    "datasets": "model.datasets",
    "data": "model.batches",
    "init": "model.init",
    "transform": "text.transform",
    "quantization": "quantization",
}
"""Public name -> the module that it is."""

__all__ = ["LAYERS", "MODULES", "OPERATORS", "PUBLIC"]

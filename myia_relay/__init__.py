"""Compile and differentiate ordinary Python.

    from myia_relay import relay, grad

    @relay
    def f(x, y):
        return x ** 3 * y ** 4

    f(2.0, 3.0)
    grad(f, "x")(2.0, 3.0)

`relay` is both the decorator and the namespace of operators and tools. Imported at once is what a program needs that was compiled
before and is found in a file; the compiler, TVM that is, is imported when it is first needed.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Public name -> where it lives. Most is imported on first use, so that `import myia_relay` stays quick.
_PLACES = {
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
    **dict.fromkeys(
        [
            "conv2d",
            "linear",
            "max_pool",
            "avg_pool",
            "flatten_layer",
            "tanh",
            "relu",
            "sigmoid",
            "softmax",
            "log_softmax",
        ]
        + ["logsumexp", "softmax_cross_entropy", "argmax", "one_hot"],
        "model.layers",
    ),
    **dict.fromkeys(["register_op", "TensorType"], "operators"),
    "fit": "model.fit",
    "load_compiled": "cache.export",
    "History": "model.history",
    "Dataset": "model.datasets",
}
_MODULES = {"optim": "model.optim", "datasets": "model.datasets"}

__all__ = ["relay", *_PLACES, *_MODULES]


class _Namespace:
    """`relay`: the decorator, and every public name as an attribute."""

    def __call__(
        self, function=None, *, target=None, executor=None, static=(), fastmath=False, debug_nans=False
    ) -> Any:
        """Compile a function on call.

        Args:
            function: the function; None when the decorator is given options.
            target: "cpu" (default).
            executor: "native" (default), "python" or "interpreter".
            static: names of parameters whose values are compile-time constants.
            fastmath: permit contraction and reassociation of floating-point arithmetic.
            debug_nans: raise FloatingPointError where a NaN is made.
        """
        Relay = _api.Relay
        options = {
            "target": target,
            "executor": executor,
            "static": static,
            "fastmath": fastmath,
            "debug_nans": debug_nans,
        }
        return (lambda f: Relay(f, **options)) if function is None else Relay(function, **options)

    def __getattr__(self, name: str) -> Any:
        value = _find(name)
        object.__setattr__(self, name, value)
        return value

    def __dir__(self):
        return sorted({*_PLACES, *_MODULES})

    def __repr__(self) -> str:
        return "<relay: decorator and namespace of myia_relay>"


def _find(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{_MODULES[name]}", __name__)
    if name in _PLACES:
        return getattr(importlib.import_module(f".{_PLACES[name]}", __name__), name)
    from .utils.errors import nearest

    raise AttributeError(f"myia_relay has no attribute '{name}'{nearest(name, [*_PLACES, *_MODULES])}")


relay = _Namespace()


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    value = _find(name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_PLACES, *_MODULES})


from . import api as _api  # noqa: E402  now rather than at the first call, which is to be quick

"""`relay.parameter`: a parameter of one's own."""

from __future__ import annotations

from typing import Any

from ...abstract.annotations import Float32, annotated_type
from ...abstract.types import FLOATS, Scalar
from ...infer.language.registry import special
from ...infer.objects.leaves import to_option
from ...prims.api.numpy_elementwise import dtype_name
from ...utils.errors import ShapeError, TypeError_
from ...utils.names import LAYERS
from ..hidden import Weight, parameters
from .declaration import note


def parameter(name: str, shape: Any, dtype: Any = Float32, init: Any = None, unshared: bool = False):
    """A parameter of the model that this is called in.

    Args:
        name: what it is called: the first one is `name_0` in `model.params`, the second one `name_1`.
        shape: an int, or a tuple of ints.
        dtype: of floats.
        init: how it is drawn, as of `create_model`; by default as all others.
        unshared: whether each iteration of the loops around has its own.

    Raises:
        TypeError_: outside of a model.

    Example:
        >>> @relay_model
        ... def f(x: Tensor[Float, 3]):
        ...     return x * relay.parameter("scale", 3, init="ones")
        >>> model = relay.create_model(f)
        >>> list(model.params)
        ['scale_0']
        >>> model(np.array([1, 2, 3], np.float32))
        array([1., 2., 3.], dtype=float32)
    """
    raise TypeError_(
        "relay.parameter makes a parameter of a model: call it in a function decorated with @relay_model; elsewhere use an array"
    )


def _dtype(value: Any) -> str:
    """The name of a dtype, given as an annotation or as NumPy's.

    Raises:
        TypeError_: it is no dtype of floats.
    """
    try:
        type_ = annotated_type(value)
    except TypeError:
        type_ = None
    name = type_.dtype if isinstance(type_, Scalar) else dtype_name(value)
    if name not in FLOATS:
        raise TypeError_(f"relay.parameter: a parameter is made of floats, not of {name}")
    return name


@special(parameter)
async def compiled_parameter(engine, frame, args, kwargs, origin, site):
    """`relay.parameter(...)` in a model.

    Raises:
        ShapeError: the shape is none.
        TypeError_: an argument is missing or unknown, or the name cannot be one.
    """
    given = dict(zip(("name", "shape", "dtype", "init", "unshared"), args)) | kwargs
    options = {k: to_option(v, f"relay.parameter: {k}") for k, v in given.items()}
    missing = [k for k in ("name", "shape") if k not in options]
    unknown = [k for k in options if k not in ("name", "shape", "dtype", "init", "unshared")]
    if missing or unknown:
        wrong = f"needs {missing[0]}" if missing else f"got an unexpected keyword argument '{unknown[0]}'"
        raise TypeError_(f"relay.parameter(name, shape, dtype=Float32, init=None) {wrong}")
    name, shape = options["name"], options["shape"]
    if not isinstance(name, str) or not name.isidentifier():
        raise TypeError_(f"relay.parameter: the name {name!r} is no identifier, such as 'scale'")
    if name in LAYERS:
        raise TypeError_(
            f"relay.parameter: '{name}' is what the parameters of relay.{name} are called; choose another name"
        )
    sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    if not all(isinstance(d, int) and not isinstance(d, bool) and d >= 0 for d in sizes):
        raise ShapeError(f"relay.parameter: the shape {shape!r} is no int and no tuple of ints")
    part = Weight(sizes, None, _dtype(options.get("dtype", Float32)))
    chosen = {k: options[k] for k in ("init", "unshared") if k in options}
    instead = "use an array"
    made = parameters(engine, frame, site, name, {"": part}, what="relay.parameter", instead=instead, **chosen)[""]
    place = (site, frame.context.iteration) if chosen.get("unshared") else site
    note(frame, place, made, len(frame.graph.nodes))
    return made

"""Derivatives beyond gradients, and control flow as functions: `jvp`, `vjp`, `jacobian`, `hessian`, `scan`, `custom_vjp`,
...

All of them work on plain and on decorated functions, inside compiled code and outside, where each call is one compiled
program per function and signature. Arguments and results are trees. What is not a float in them (integers, booleans,
None) has no derivative: it is represented by None in tangents, cotangents and derivatives.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .infer.language.registry import special
from .infer.transforms import custom_rules as _rules
from .infer.transforms import derivatives as _infer
from .infer.transforms import functional as _functional
from .transforms import Transformed, _check_function, _is_model, _wrt, transformed
from .utils.errors import GradError, TypeError_


@functools.lru_cache(maxsize=256)
def _compiled(transform: str, function: Callable, options: tuple[tuple[str, Any], ...] = ()) -> Transformed:
    """A transform of a function, once: the compiled programs stay with it."""
    return Transformed(transform, function, dict(options))


def _function(transform: str, f: Any) -> Callable:
    if _is_model(f):
        raise GradError(f"{transform}: a model is no function of its parameters; use relay.grad(model, loss, args)")
    _check_function(transform, f)
    return f


# Directional derivatives.


def jvp(f, primals, tangents) -> Any:
    """The value of a function and its derivative along a direction, by forward mode.

    Args:
        f: a function of one or more trees, with any tree as its result.
        primals: a tuple with the arguments.
        tangents: a tuple with a tangent for each: its argument's structure, dtypes and shapes; None for zero.

    Returns:
        `(f(*primals), tangent)`; the tangent has the structure of the result.

    Raises:
        TypeError_, ShapeError: a tangent does not fit its argument.
        GradError: something on the way has no derivative.

    Cost: one run of `f` with its tangent, at most about three times that of `f`; nothing is stored, loops included.

    Source: A. Griewank and A. Walther, Evaluating Derivatives (2nd ed., 2008), chapter 3.
    """
    return _compiled("jvp", _function("jvp", f))(tuple(primals), tuple(tangents))


class Pullback:
    """The linear map from a cotangent of the result of `f(*xs)` to those of its arguments; what `vjp` returns.

    It holds copies of the arguments, so that later changes of an array do not matter.
    """

    def __init__(self, f: Callable, xs: tuple):
        self._run, self._xs = _compiled("vjp", f), _tree(_copy, xs)

    def __call__(self, dout):
        """The cotangents.

        Args:
            dout: a cotangent with the structure, shapes and dtypes of the result; None for zero.

        Returns:
            A tuple with a cotangent for each argument, of its structure.
        """
        return self._run(self._xs, dout)


def vjp(f, *xs):
    """The value of a function at a point, and the map that takes cotangents back through it, by reverse mode.

    Args:
        f: a function of one or more trees, with any tree as its result.
        *xs: the arguments.

    Returns:
        `(f(*xs), pullback)`: `pullback(dout)` takes a cotangent with the structure of the result and returns a tuple
        with a cotangent for each argument. In compiled code it is a function value.

    Raises:
        GradError: something on the way has no derivative.

    Cost: calling `vjp` runs `f`; a call of the pullback runs `f` once more, with what its adjoint needs kept, and then
    the adjoint, without printing again. In compiled code straight-line parts of the two runs are shared.

    Source: van Merriënboer et al., "Automatic differentiation in ML" (NeurIPS 2018).
    """
    f = _function("vjp", f)
    return _compiled("value", f)(*xs), Pullback(f, xs)


def hvp(f, xs, vs):
    """The product of the Hessian of a scalar function with a vector: forward over reverse.

    Args:
        f: a function with a scalar float result.
        xs: its arguments as a tuple; anything else is the one argument.
        vs: the vector, of the structure, shapes and dtypes of `xs`.

    Returns:
        With one argument the product, of the argument's structure; with several a tuple with a part for each.

    Raises:
        GradError: the result is no scalar float.
        TypeError_, ShapeError: `vs` does not fit.

    Cost: a small multiple of `f`, whatever the number of variables; the Hessian is never formed.

    Source: B. Pearlmutter, "Fast exact multiplication by the Hessian" (Neural Computation, 1994).
    """
    return _compiled("hvp", _function("hvp", f))(xs, vs)


# Jacobians.


def _jacobian(what: str, f: Any, wrt: Any, argnums: Any, sparse: Any) -> Transformed:
    options = {"wrt": _wrt(wrt, argnums), "sparse": _infer.checked_sparse(what, sparse)}
    return transformed(what, _function(what, f), options)


def jacfwd(f, wrt=0, *, argnums=None, sparse=False):
    """The Jacobian of a function, column by column: one forward pass, batched over a basis of its arguments.

    Args:
        f: a function of trees, with any tree of floats as its result.
        wrt: the parameters to differentiate by: a name, a position, or a tuple of either.
        argnums: another name of `wrt`.
        sparse: only the entries that may be other than zero, for Jacobians that are mostly zero.

    Returns:
        A function of the same arguments. Its result has the structure of `f`'s, each leaf of shape s replaced by the
        tree of the argument, with leaves of shape s + t where the argument's leaf has shape t (by a tuple of such trees
        for a tuple `wrt`).

        With `sparse` each array J of shape s + t is a pair `values, coordinates`, such that `J[coordinates] = values`
        and
        everything else is zero: a vector of the entries, row after row, and a tuple of int64 vectors, one for each axis
        of J. For vectors that is what `scipy.sparse.coo_array((values, coordinates), shape)` takes. Which entries these
        are follows from the program and the sizes of its arguments, not from their values: an entry among them may be
        zero.

    Raises:
        GradError: when called: nothing in the result, or nothing in an argument, has a derivative. With `sparse`: which
        entries
            are zero cannot be told (sizes with names, trees, lists).

    Cost: about that of `f` on as many examples as the arguments have elements, one program. Where sizes are known and
    the Jacobian is mostly zero (stencils, finite differences, separable functions) arguments that meet in no element of
    the result share a pass: as many passes as colours are needed, and with `sparse` no memory but for the entries.

    Source: layout as in JAX; compression by colouring in A. Gebremedhin, F. Manne, A. Pothen, "What color is your
    Jacobian?" (SIAM Review, 2005).
    """
    return _jacobian("jacfwd", f, wrt, argnums, sparse)


def jacrev(f, wrt=0, *, argnums=None, sparse=False):
    """The Jacobian of a function, row by row: one reverse pass, batched over a basis of its result.

    Args and result as for `jacfwd`; the entries have the dtype of the arguments.

    Cost: about that of a gradient for as many examples as the result has elements, one program.
    """
    return _jacobian("jacrev", f, wrt, argnums, sparse)


def jacobian(f, wrt=0, *, argnums=None, sparse=False):
    """The Jacobian of a function by whichever of `jacfwd` and `jacrev` needs fewer passes; forward where they tie.

    Args, result and errors as for `jacfwd`. With `sparse` passes are colours, otherwise elements of the argument or the
    result.
    """
    return _jacobian("jacobian", f, wrt, argnums, sparse)


def hessian(f, wrt=0, *, argnums=None, sparse=False):
    """The matrix of second derivatives: `jacfwd(jacrev(f))`.

    Args:
        f: a function of trees with a float result.
        wrt: the parameters to differentiate by, as for `grad`.
        argnums: another name of `wrt`.
        sparse: as for `jacfwd`.

    Returns:
        A function of the same arguments. For one array argument of shape t and a scalar result an array of shape t + t;
        for trees (and a tuple `wrt`) the tree of the argument twice over, as in JAX. With `sparse` pairs as of
        `jacfwd`.

    Raises:
        GradError: as for `jacfwd`.

    Cost: about that of a gradient for as many examples as the arguments have elements, or as colours are needed (see
    `jacfwd`), one program.
    """
    return _jacobian("hessian", f, wrt, argnums, sparse)


# Functions that are differentiated in a way of their own.


class CustomVjp(Transformed):
    """A function with a vjp rule that the user wrote; `rule` is None until `defvjp` is called."""

    def __init__(self, function: Callable):
        self.rule: Callable | None = None
        super().__init__("custom_vjp", function, {"holder": self})
        self.__name__ = getattr(function, "__name__", "f")

    def _made_of(self) -> tuple[tuple, dict[str, Any]]:
        return (self.__wrapped__,), {"rule": self.rule}

    def __setstate__(self, state: tuple[tuple, dict[str, Any]]) -> None:
        self.__init__(*state[0])
        self.rule = state[1]["rule"]

    def defvjp(self, rule: Callable) -> Callable:
        """Attach the rule; a decorator.

        Args:
            rule: `(*args, out, dout) -> tuple`. It takes the arguments, the result, and a cotangent of the result's
                structure (None in place of what is no float). It returns a cotangent for each positional argument, None
                for zero. It must be linear in `dout` for `jvp` to agree with it.

        Returns:
            The rule.

        Raises:
            TypeError_: it is no function.
        """
        if not callable(rule):
            raise TypeError_(f"defvjp takes a function, not {type(rule).__name__}")
        self.rule = rule
        return rule


def custom_vjp(f):
    """A function whose derivative the user states.

        f = custom_vjp(f)

        @f.defvjp
        def _(x, out, dout):
            return (dout * ...,)

    Args:
        f: a function of positional arguments; what it captures has no derivative.

    Returns:
        The same function, with a method `defvjp` to attach the rule. The rule is used at every order of derivative
        (higher ones differentiate the rule), by `jvp` (transposed) and under `vmap`. Without a rule `f` is
        differentiated as ever.

    Raises:
        GradError: when differentiated: the rule returns no tuple with a cotangent for each argument.

    Source: the interface of JAX's `custom_vjp`, without separate residuals: `out` and the arguments are given to the
    rule.
    """
    return CustomVjp(_function("custom_vjp", f))


def checkpoint(f):
    """A function of which reverse mode keeps the arguments only, and runs it again when its adjoint runs.

    Args:
        f: a function of positional arguments.

    Returns:
        The same function. Gradients through it need memory for one call of `f` at a time and take one more run of it. A
        loop of n iterations, written as about sqrt(n) iterations of a checkpointed loop of sqrt(n) iterations, needs
        memory for 2 sqrt(n) iterations.

    Source: A. Griewank, "Achieving logarithmic growth of temporal and spatial complexity in reverse automatic
    differentiation" (1992); T. Chen et al., "Training deep nets with sublinear memory cost" (2016).
    """
    return transformed("checkpoint", _function("checkpoint", f), {})


# Control as functions.


def scan(f, init, xs=None, length=None, reverse=False):
    """Go over arrays along their first axes, carrying a value and stacking results.

    Args:
        f: `(carry, x) -> (carry, y)`; the carry keeps its structure, dtypes and shapes.
        init: the first carry, a tree.
        xs: a tree of arrays of shapes (n, ...), or None.
        length: n, where `xs` is None.
        reverse: go from the last to the first; `ys[i]` still belongs to `xs[i]`.

    Returns:
        `(carry, ys)`: the last carry, and the tree of `y` with arrays (n, ...).

    Raises:
        TypeError_, ShapeError: the carry changes its type, or first axes differ.

    Cost: n iterations of one compiled loop; results are written into preallocated arrays.
    """
    options = (("length", length), ("reverse", bool(reverse)))
    return _compiled("scan", _callable("scan", f), options)(init, xs)


def cond(pred, true_fun, false_fun, *operands):
    """`true_fun(*operands) if pred else false_fun(*operands)`; only one of them runs.

    Args:
        pred: a bool or number.
        true_fun, false_fun: functions of the operands with results of one type.
        *operands: trees.
    """
    options = (("orelse", _callable("cond", false_fun)),)
    return _compiled("cond", _callable("cond", true_fun), options)(pred, *operands)


def while_loop(cond_fun, body_fun, init_val):
    """`val = init_val; while cond_fun(val): val = body_fun(val)`; returns `val`. All derivatives of it exist.

    Args:
        cond_fun: `val -> bool`.
        body_fun: `val -> val`, keeping structure, dtypes and shapes.
        init_val: a tree.
    """
    options = (("test", _callable("while_loop", cond_fun)),)
    return _compiled("while_loop", _callable("while_loop", body_fun), options)(init_val)


def fori_loop(lower, upper, body_fun, init_val):
    """`val = init_val; for i in range(lower, upper): val = body_fun(i, val)`; returns `val`.

    Args:
        lower, upper: ints.
        body_fun: `(i, val) -> val`, keeping structure, dtypes and shapes; `i` is an int.
        init_val: a tree.
    """
    return _compiled("fori_loop", _callable("fori_loop", body_fun))(lower, upper, init_val)


def _callable(what: str, f: Any) -> Callable:
    if not callable(f):
        raise TypeError_(f"{what}: a function is needed, not {type(f).__name__}")
    return f


def tree_map(f, tree, *rest):
    """A tree of the structure of `tree` with `f` of each leaf (and of those at the same place in the other trees).

    Args:
        f: a function of as many arguments as there are trees.
        tree: a number, an array, or tuples, lists, dicts, NamedTuples and dataclasses of them; None is no leaf.
        *rest: trees of the same structure.

    Raises:
        TypeError_: the structures differ.
    """
    return _tree(f, tree, *rest)


def _children(tree: Any) -> tuple[list, Callable] | None:
    """The parts of a structure by name or position, and what puts changed ones together; None for a leaf."""
    fields = getattr(tree, "_fields", None)
    if isinstance(tree, tuple) and fields is not None:
        return list(fields), lambda parts: type(tree)(*parts)
    if isinstance(tree, list | tuple):
        return list(range(len(tree))), type(tree)
    if isinstance(tree, dict):
        return list(tree), lambda parts: dict(zip(tree, parts, strict=True))
    if hasattr(tree, "__dataclass_fields__") and not isinstance(tree, type):
        names = list(tree.__dataclass_fields__)
        return names, lambda parts: type(tree)(**dict(zip(names, parts, strict=True)))
    return None


def _part(tree: Any, key: Any) -> Any:
    return getattr(tree, key) if isinstance(key, str) and not isinstance(tree, dict) else tree[key]


def _tree(f: Callable, tree: Any, *rest: Any) -> Any:
    if tree is None:
        return None
    structure = _children(tree)
    if structure is None:
        return f(tree, *rest)
    keys, build = structure
    for other in rest:
        theirs = _children(other)
        if theirs is None or set(theirs[0]) != set(keys):
            raise TypeError_(f"tree_map: the trees differ: {type(tree).__name__} and {type(other).__name__}")
    return build([_tree(f, _part(tree, k), *[_part(r, k) for r in rest]) for k in keys])


def _copy(leaf: Any) -> Any:
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


# Checking.


def check_grads(f, args, order=2, *, eps=1e-6, rtol=1e-5, atol=1e-6, seed=0):
    """Compare derivatives with central differences, entry by entry, and forward with reverse mode.

    Args:
        f: a function of trees with any tree of floats as its result.
        args: a tuple with its arguments, in float64 for these tolerances.
        order: up to which order; the derivative of order k is checked as the first derivative of that of order k - 1,
        along
            fixed random cotangents.
        eps: half the step of the differences.
        rtol, atol: the largest difference allowed, relative and absolute.
        seed: of the random directions.

    Raises:
        AssertionError: the worst entry: of which argument, at which order, its derivative (that of the result's product
        with
            fixed random cotangents), and what differences say.
        GradError: something has no derivative.

    Cost: two runs of `f` for each entry of the arguments and each order.
    """
    args = tuple(args)
    rng = np.random.default_rng(seed)
    for k in range(1, order + 1):
        _check_first(f, args, k, eps, rtol, atol, rng)
        if k < order:
            f = _gradient_along(f, _random_like(_plain(f)(*args), rng))


def _gradient_along(f: Callable, weights: Any) -> Callable:
    """The function that takes arguments to their cotangents, for fixed cotangents of the result."""

    def cotangents(*xs):
        return vjp(f, *xs)[1](weights)

    return cotangents


def _plain(f: Callable) -> Callable:
    return _compiled("value", f)


def _check_first(f: Callable, args: tuple, order: int, eps: float, rtol: float, atol: float, rng) -> None:
    run, leaves = _plain(f), _float_leaves(args)
    out, pullback = vjp(f, *args)
    weights = _random_like(out, rng)
    reverse = dict(_float_leaves(pullback(weights)))
    directions = _random_like(args, rng)
    forward = _dot(weights, jvp(f, args, directions)[1])

    def value(path: tuple, index: tuple, by: float) -> float:
        return _dot(weights, run(*_moved(args, path, index, by)))

    worst: tuple[float, str] | None = None
    along = 0.0
    steps = dict(_float_leaves(directions))
    for path, leaf in leaves:
        for index in np.ndindex(np.shape(leaf)):
            numeric = (value(path, index, eps) - value(path, index, -eps)) / (2 * eps)
            got = float(np.asarray(reverse[path])[index])
            along += numeric * float(np.asarray(steps[path])[index])
            worst = _worse(worst, got, numeric, rtol, atol, f"{_show(path, index)}: the derivative is {got!r}", order)
    if worst is None:
        worst = _worse(worst, forward, along, rtol, atol, f"forward mode along a random direction: {forward!r}", order)
    if worst is not None:
        raise AssertionError(worst[1])


def _worse(worst, got: float, numeric: float, rtol: float, atol: float, text: str, order: int):
    allowed = atol + rtol * abs(numeric)
    excess = abs(got - numeric) / allowed
    wrong = not excess <= 1.0 and not (np.isnan(got) and np.isnan(numeric))
    if not wrong or (worst is not None and excess <= worst[0]):
        return worst
    message = f"order {order}, {text}, central differences say {numeric!r} (allowed difference {allowed:.1e})"
    return (float("inf") if np.isnan(excess) else excess, message)


def _show(path: tuple, index: tuple) -> str:
    where = "".join(f"[{p!r}]" for p in path[1:]) + (f"[{', '.join(map(str, index))}]" if index else "")
    return f"argument {path[0]}{where}"


def _is_float(leaf: Any) -> bool:
    return isinstance(leaf, float | np.floating) or (isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f")


def _float_leaves(tree: Any, path: tuple = ()) -> list[tuple[tuple, Any]]:
    structure = None if tree is None else _children(tree)
    if structure is None:
        return [(path, tree)] if _is_float(tree) else []
    return [leaf for k in structure[0] for leaf in _float_leaves(_part(tree, k), (*path, k))]


def _random_like(tree: Any, rng) -> Any:
    """A tree of random numbers like the floats of a tree; None in place of everything else."""

    def one(leaf):
        if not _is_float(leaf):
            return None
        draw = rng.uniform(0.5, 1.5, np.shape(leaf))
        if isinstance(leaf, np.ndarray):
            return draw.astype(leaf.dtype)
        return type(leaf)(draw)

    return _tree(one, tree)


def _moved(args: tuple, path: tuple, index: tuple, by: float) -> tuple:
    """The arguments with one entry moved."""

    def go(tree: Any, rest: tuple) -> Any:
        if not rest:
            if isinstance(tree, np.ndarray):
                new = tree.copy()
                new[index] += by
                return new
            return type(tree)(tree + by)
        structure = _children(tree)
        assert structure is not None, path
        keys, build = structure
        return build([go(_part(tree, k), rest[1:]) if k == rest[0] else _part(tree, k) for k in keys])

    return go(args, path)


def _dot(weights: Any, values: Any) -> float:
    other = dict(_float_leaves(values))
    return sum(float(np.sum(w * other[p])) for p, w in _float_leaves(weights))


special(jvp)(_infer.jvp_request)
special(vjp)(_infer.vjp_request)
special(hvp)(_infer.hvp_request)
for _name, _public in (("jacfwd", jacfwd), ("jacrev", jacrev), ("jacobian", jacobian), ("hessian", hessian)):
    special(_public)(_infer.request_jacobian(_name))
special(checkpoint)(_rules.checkpoint_request)
special(custom_vjp)(_rules.custom_vjp_request)
special(scan)(_functional.scan_request)
special(cond)(_functional.cond)
special(while_loop)(_functional.while_loop)
special(fori_loop)(_functional.fori_loop)
special(tree_map)(_functional.tree_map)

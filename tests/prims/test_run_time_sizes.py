"""The registry once more: each primitive and its adjoint on arrays whose sizes values decide.

Arguments become arrays of such sizes first: `bind_dim` of numbers that the program is given, then `reshape`.
"""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay.abstract.types import INT, Array
from myia_relay.backend.interpreter import run
from myia_relay.backend.python import compile_python
from myia_relay.ir.build import Builder, as_type, type_of_constant
from myia_relay.ir.node import Graph
from myia_relay.ir.prim import REGISTRY
from myia_relay.ir.verify import verify
from myia_relay.opt.pipeline import optimize
from myia_relay.prims.api.promotion import bind_size
from myia_relay.prims.rules.broadcast import reshape
from myia_relay.utils.errors import LoweringError
from tests.typed_graphs import staged

from .examples import EXAMPLES
from .staged import execute
from .test_native import assert_close, native
from .test_registry import DIFFERENTIABLE, FIXED, OF_KNOWN_SIZE, compute, infer

SMOOTH = {c.id for c in DIFFERENTIABLE}
KNOWN = {
    *("broadcast_to", "conv2d", "conv2d_grad_input", "reshape"),  # attributes of the examples are numbers that must fit
    *("dft", "operator_kernel"),  # refused at the user's line where sizes are not known
    *(
        "pack_columns",
        "packed_dot",
        "pack_words",
        "conv2d_words",
        "depthwise_words",
    ),  # made by a pass of what has known sizes
    "conv2d_integer",
}
OF_KNOWN_CHANNELS = {"conv2d_grad_weight"}  # in native code
EXECUTORS = {
    "interpreter": lambda graph: lambda *args: run(graph, args),
    "python": compile_python,
    "native": native,
}


class Program:
    """A program of all examples of a primitive.

    Attributes:
        graph: the program; its results are those of the examples, and their adjoints.
        args: what it is called with.
        wants: what it should return.
        exact: which of that is a result of the primitive itself.
    """

    def __init__(self, name: str):
        self.graph, self.args, results = Graph(name), [], []
        self.wants, self.exact = [], []
        self.builder = Builder(self.graph)
        for number, (args, attrs) in enumerate(EXAMPLES[name]):
            prim, self.sizes = REGISTRY[name], {}
            attrs = {**prim.attr_defaults, **attrs}
            known = name in KNOWN
            xs = [self.parameter(a, known) for a in args]
            out = prim(*xs, **attrs)
            results.append(out)
            self.wants.append(compute(prim, args, attrs))
            self.exact.append(True)
            if f"{name}-{number}" in SMOOTH and not attrs.get("full") and name not in OF_KNOWN_SIZE:
                self.adjoint(prim, args, attrs, xs, out, results)
        self.graph.output = staged(self.builder, tuple(results)).node
        verify(self.graph, "the test")

    def parameter(self, value, known: bool):
        """An argument of the program: an array of sizes that values decide, unless they are known."""
        t = type_of_constant(value)
        x = self.builder.var(self.graph.add_parameter("x", t))
        self.args.append(value)
        if known or not isinstance(t, Array) or not t.shape:
            return x
        return reshape(x, shape=tuple(map(self.size, t.shape)))

    def size(self, n: int):
        """A size of an example as a dimension."""
        if n in (1, *FIXED.get(self.graph.name, ())):
            return n
        if n not in self.sizes:
            self.args.append(n)
            self.sizes[n] = bind_size(self.builder, self.builder.var(self.graph.add_parameter("n", INT)))
        return self.sizes[n]

    def adjoint(self, prim, args, attrs, xs, out, results) -> None:
        """The cotangents of the arguments, here and with sizes that are known."""
        t = infer(prim, args, attrs)
        dout = as_type(np.random.default_rng(3).uniform(0.5, 1.5, t.shape), t)
        d = self.parameter(dout, False)
        if d.type != out.type:
            d = reshape(d, shape=out.shape)
        grads = prim.vjp_rule(*xs, out, d, **attrs)
        plain = Graph("plain")
        builder = Builder(plain)
        ys = [builder.var(plain.add_parameter("x", type_of_constant(a))) for a in args]
        made = prim(*ys, **attrs)
        wanted = prim.vjp_rule(*ys, made, builder.var(plain.add_parameter("d", t)), **attrs)
        for g, w in zip(grads, wanted, strict=True):
            assert (g is None) == (w is None)
            if g is not None:
                results.append(g)
                self.wants.append(execute(plain, [*args, dout], w))
                self.exact.append(False)


@pytest.mark.sampled(73)
@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_sizes_that_values_decide(name):
    with np.errstate(all="ignore"):
        program = Program(name)
        for simple in (False, True):
            graph = optimize(program.graph, check=True) if simple else program.graph
            for executor, compiled in EXECUTORS.items():
                if executor == "native" and not simple:
                    continue
                if executor == "native" and name in OF_KNOWN_CHANNELS:
                    with pytest.raises(LoweringError, match="needs channels and filters of known size"):
                        compiled(graph)
                    continue
                results = compiled(graph)(*program.args)
                for k, (got, want, exact) in enumerate(zip(results, program.wants, program.exact, strict=True)):
                    what = f"{name}, result {k}, {executor}, optimised: {simple}"
                    if exact:
                        assert_close(got, want, what)
                    else:
                        assert np.shape(got) == np.shape(want), what
                        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12, err_msg=what)

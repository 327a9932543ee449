"""Forward mode: generators of `jvp` rules.

A rule is `rule(*args, out, tangents, **attrs) -> tangent`: `tangents[i]` is that of argument i, or None for zero; at
least one is not None. The tangent of the result may lack axes along which it would only be repeated:
`ad.forward.forward` broadcasts it.

    elementwise:  t = sum_i df/dx_i t_i          linear:  t = f(t)          bilinear:  t = f(ta, b) + f(a, tb)
"""

from __future__ import annotations

from .broadcast import zeros_like


def elementwise(prim):
    """The rule of an elementwise primitive, from its vjp rule: the Jacobian is diagonal, so it is its own transpose.

    Where the vjp rule ends by summing over broadcast axes, the rule before that (`prims.ops.elementwise.pull`) serves.
    """

    def rule(*args, **attrs):
        *xs, out, tangents = args
        pointwise = getattr(prim.vjp_rule, "pointwise", prim.vjp_rule)
        total = None
        for i, tangent in enumerate(tangents):
            if tangent is not None:
                part = pointwise(*xs, out, tangent, **attrs)[i]
                if part is not None:
                    total = part if total is None else total + part
        return total

    return rule


def linear(prim, *positions: int):
    """The rule of a primitive that is linear in the arguments at `positions` together (all of them where none is
    given), the others being parameters such as indices."""

    prim.linear_in = positions

    def rule(*args, **attrs):
        *xs, _out, tangents = args
        for i in positions or range(len(xs)):
            xs[i] = tangents[i] if tangents[i] is not None else zeros_like(xs[i])
        return prim(*xs, **attrs)

    return rule


def bilinear(prim):
    """The rule of a primitive that is linear in each of its two arguments."""
    prim.bilinear = True

    def rule(a, b, out, tangents, **attrs):
        ta, tb = tangents
        left = None if ta is None else prim(ta, b, **attrs)
        right = None if tb is None else prim(a, tb, **attrs)
        return left + right if left is not None and right is not None else left if right is None else right

    return rule

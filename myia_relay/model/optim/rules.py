"""The update rules of the optimisers, each in one place; what a rule is says `rule`.

The formulas and defaults are PyTorch's where PyTorch has the optimiser; Lion and LAMB are as in their papers.
"""

from __future__ import annotations

from typing import Any

from ...ir.prim import REGISTRY
from .declare import optimiser
from .rule import norm, weak

_sqrt, _pow, _where, _sign = (REGISTRY[name] for name in ("sqrt", "pow", "where", "sign"))


@optimiser(needs={"velocity": "momentum"})
def sgd(p, g, velocity, *, lr=0.01, momentum=0, nesterov=False, weight_decay=0):
    """Gradient descent: `p -= lr * g`; with momentum as `momentum`.

    Args:
        model: a model; without one the optimiser is for trees of arrays.
        lr: the learning rate, a number or a schedule.
        momentum: see there; by default there is none, and no velocity is kept.
        nesterov: whether a step goes along `g + momentum * v` (Sutskever et al., ICML 2013, in PyTorch's form).
        weight_decay: adds `weight_decay * p` to the gradient.
        mask: which parameters decay: a tree of bools like the parameters, or a function of a parameter.

    Example:
        >>> params, grads = {"w": np.array([1.0, 2.0])}, {"w": np.array([0.5, -0.5])}
        >>> opt = relay.optim.sgd(lr=0.1)
        >>> params, state = opt.update(params, grads, opt.init(params))
        >>> params["w"].round(3)
        array([0.95, 2.05])
    """
    g = _decayed(p, g, weight_decay)
    if momentum is None:
        return p - lr * g, None
    velocity = momentum * velocity + g
    return p - lr * (g + momentum * velocity if nesterov else velocity), velocity


@optimiser()
def momentum(p, g, velocity, *, lr=0.01, momentum=0.9, nesterov=False, weight_decay=0):
    """Gradient descent with momentum: `v = momentum * v + g; p -= lr * v` (Polyak 1964, in PyTorch's form).

    Args:
        model: a model; without one the optimiser is for trees of arrays.
        lr: the learning rate, a number or a schedule.
        momentum: how much of the velocity remains in a step.
        nesterov, weight_decay, mask: as in `sgd`.

    Example:
        >>> params, grads = {"w": np.array([1.0, 2.0])}, {"w": np.array([0.5, -0.5])}
        >>> opt = relay.optim.momentum(lr=0.1, nesterov=True)
        >>> params, state = opt.update(params, grads, opt.init(params))
        >>> params["w"].round(3)
        array([0.905, 2.095])
    """
    g = _decayed(p, g, weight_decay)
    velocity = momentum * velocity + g
    return p - lr * (g + momentum * velocity if nesterov else velocity), velocity


@optimiser()
def adam(p, g, m, v, t, *, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0):
    """Adam with bias correction (Kingma and Ba, ICLR 2015, algorithm 1).

    Args:
        model: a model; without one the optimiser is for trees of arrays.
        lr: the learning rate, a number or a schedule.
        beta1, beta2: how much of the moments remains in a step.
        eps: added to the root of the second moment.
        weight_decay: adds `weight_decay * p` to the gradient; see `adamw`.
        mask: as in `sgd`.

    Example:
        >>> params, grads = {"w": np.array([1.0, 2.0])}, {"w": np.array([0.5, -0.5])}
        >>> opt = relay.optim.adam(lr=0.1)
        >>> params, state = opt.update(params, grads, opt.init(params))
        >>> params["w"].round(3)
        array([0.9, 2.1])
    """
    g = _decayed(p, g, weight_decay)
    m, v = _moments(g, m, v, beta1, beta2)
    correction1, correction2 = _corrections(t, beta1, beta2)
    size = _sqrt(v) * (1.0 / correction2) + eps
    return p - (lr / correction1) * (m / size), m, v


@optimiser()
def adamw(p, g, m, v, t, *, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=1e-2):
    """Adam with decoupled weight decay: `p *= 1 - lr * weight_decay`, then Adam's step (Loshchilov and Hutter, ICLR 2019).

    Args:
        model: a model; without one the optimiser is for trees of arrays.
        lr: the learning rate, a number or a schedule.
        beta1, beta2, eps: as in `adam`.
        weight_decay: of the parameters themselves.
        mask: as in `sgd`; `mask=lambda p: p.ndim > 1` leaves out biases and scales.

    Example:
        >>> params, grads = {"w": np.array([1.0, 2.0])}, {"w": np.array([0.5, -0.5])}
        >>> opt = relay.optim.adamw(lr=0.1)
        >>> params, state = opt.update(params, grads, opt.init(params))
        >>> params["w"].round(3)
        array([0.899, 2.098])
    """
    if weight_decay is not None:
        p = p * (1.0 - lr * weight_decay)
    m, v = _moments(g, m, v, beta1, beta2)
    correction1, correction2 = _corrections(t, beta1, beta2)
    size = _sqrt(v) * (1.0 / correction2) + eps
    return p - (lr / correction1) * (m / size), m, v


@optimiser(needs={"mean": "centered", "velocity": "momentum"})
def rmsprop(p, g, square, mean, velocity, *, lr=0.01, alpha=0.99, eps=1e-8, momentum=0, centered=False, weight_decay=0):
    """RMSprop: steps in units of the root of a running mean of `g * g` (Hinton, lecture 6e, 2012; PyTorch's form).

    Args:
        model: a model; without one the optimiser is for trees of arrays.
        lr: the learning rate, a number or a schedule.
        alpha: how much of the mean remains in a step.
        eps: added to the root.
        momentum: of the steps.
        centered: whether the variance is taken for the mean square (Graves 2013).
        weight_decay, mask: as in `sgd`.

    Example:
        >>> params, grads = {"w": np.array([1.0, 2.0])}, {"w": np.array([0.5, -0.5])}
        >>> opt = relay.optim.rmsprop(lr=0.1)
        >>> params, state = opt.update(params, grads, opt.init(params))
        >>> params["w"].round(3)
        array([0., 3.])
    """
    g = _decayed(p, g, weight_decay)
    square = alpha * square + (1.0 - alpha) * (g * g)
    spread = square
    if centered:
        mean = mean + (1.0 - alpha) * (g - mean)
        spread = square - mean * mean
    step = g / (_sqrt(spread) + eps)
    if momentum is not None:
        step = velocity = momentum * velocity + step
    return p - lr * step, square, mean, velocity


@optimiser(fills={"total": "initial"})
def adagrad(p, g, total, *, lr=0.01, eps=1e-10, initial=0, weight_decay=0):
    """Adagrad: steps in units of the root of the sum of all `g * g` (Duchi, Hazan and Singer, JMLR 2011).

    PyTorch's `lr_decay` is a schedule here.

    Args:
        model: a model; without one the optimiser is for trees of arrays.
        lr: the learning rate, a number or a schedule.
        eps: added to the root.
        initial: what the sums begin with.
        weight_decay, mask: as in `sgd`.

    Example:
        >>> params, grads = {"w": np.array([1.0, 2.0])}, {"w": np.array([0.5, -0.5])}
        >>> opt = relay.optim.adagrad(lr=0.1)
        >>> params, state = opt.update(params, grads, opt.init(params))
        >>> params["w"].round(3)
        array([0.9, 2.1])
    """
    g = _decayed(p, g, weight_decay)
    total = total + g * g
    return p - lr * (g / (_sqrt(total) + eps)), total


@optimiser()
def lion(p, g, m, *, lr=1e-4, beta1=0.9, beta2=0.99, weight_decay=0):
    """Lion: steps of one size along the signs of a momentum (Chen et al., NeurIPS 2023, algorithm 2). PyTorch has none.

    Args:
        model: a model; without one the optimiser is for trees of arrays.
        lr: the learning rate, a number or a schedule.
        beta1: how much of the momentum is in a step.
        beta2: how much of it remains.
        weight_decay: decoupled, as in `adamw`.
        mask: as in `sgd`.

    Example:
        >>> params, grads = {"w": np.array([1.0, 2.0])}, {"w": np.array([0.5, -0.5])}
        >>> opt = relay.optim.lion(lr=0.1)
        >>> params, state = opt.update(params, grads, opt.init(params))
        >>> params["w"].round(3)
        array([0.9, 2.1])
    """
    step = _sign(beta1 * m + (1.0 - beta1) * g)
    if weight_decay is not None:
        step = step + weight_decay * p
    return p - lr * step, beta2 * m + (1.0 - beta2) * g


@optimiser()
def lamb(p, g, m, v, t, *, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-6, weight_decay=0):
    """LAMB: Adam's direction, as long as the parameter itself (You et al., ICLR 2020, algorithm 2). PyTorch has none.

    The ratio of the norms is not clipped; it is 1 where one of them is 0.

    Args:
        model: a model; without one the optimiser is for trees of arrays.
        lr: the learning rate, a number or a schedule.
        beta1, beta2, eps: as in `adam`.
        weight_decay: decoupled, and part of the direction.
        mask: as in `sgd`.

    Example:
        >>> params, grads = {"w": np.array([1.0, 2.0])}, {"w": np.array([0.5, -0.5])}
        >>> opt = relay.optim.lamb(lr=0.1)
        >>> params, state = opt.update(params, grads, opt.init(params))
        >>> params["w"].round(3)
        array([0.842, 2.158])
    """
    m, v = _moments(g, m, v, beta1, beta2)
    correction1, correction2 = _corrections(t, beta1, beta2)
    direction = (m * (1.0 / correction1)) / (_sqrt(v) * (1.0 / correction2) + eps)
    if weight_decay is not None:
        direction = direction + weight_decay * p
    own, along = norm([p]), norm([direction])
    one = own.const(1.0)
    some = REGISTRY["logical_and"](own > 0.0, along > 0.0)
    ratio = weak(_where(some, own / _where(some, along, one), one))
    return p - (lr * ratio) * direction, m, v


def _decayed(p: Any, g: Any, weight_decay: Any) -> Any:
    """The gradient with that of half the parameter's square."""
    return g if weight_decay is None else g + weight_decay * p


def _moments(g: Any, m: Any, v: Any, beta1: Any, beta2: Any) -> tuple[Any, Any]:
    """Running means of the gradient and of its square."""
    return m + (1.0 - beta1) * (g - m), beta2 * v + (1.0 - beta2) * (g * g)


def _corrections(t: Any, beta1: Any, beta2: Any) -> tuple[Any, Any]:
    """What the first moment, and the root of the second, are too small by."""
    return 1.0 - _pow(beta1, t), _sqrt(1.0 - _pow(beta2, t))

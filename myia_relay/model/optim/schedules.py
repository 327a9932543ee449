"""Learning rates that change: functions of the number of the step, 0 in the first.

    opt = relay.optim.adamw(lr=relay.optim.schedules.warmup(relay.optim.schedules.cosine(1e-3, 10_000), 500))

Any function of a number is a schedule; these are records, so other numbers in them need no compilation. They run in compiled
code and outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class constant:
    """Always `lr`.

    Example:
        >>> lr = relay.optim.schedules.constant(0.1)
        >>> [round(float(lr(step)), 4) for step in (0, 5, 10, 20)]
        [0.1, 0.1, 0.1, 0.1]
    """

    lr: float

    def __call__(self, step):
        return self.lr


@dataclass(frozen=True)
class linear:
    """From `lr` to `final` in `steps` steps, along a line; then `final`.

    Example:
        >>> lr = relay.optim.schedules.linear(0.1, 0.01, 10)
        >>> [round(float(lr(step)), 4) for step in (0, 5, 10, 20)]
        [0.1, 0.055, 0.01, 0.01]
    """

    lr: float
    final: float
    steps: int

    def __call__(self, step):
        return self.lr + (self.final - self.lr) * (min(step, self.steps) / self.steps)


@dataclass(frozen=True)
class cosine:
    """From `lr` to `final` in `steps` steps, along half a cosine (Loshchilov and Hutter, ICLR 2017); then `final`.

    PyTorch's rises again.

    Example:
        >>> lr = relay.optim.schedules.cosine(0.1, 10)
        >>> [round(float(lr(step)), 4) for step in (0, 5, 10, 20)]
        [0.1, 0.05, 0.0, 0.0]
    """

    lr: float
    steps: int
    final: float = 0.0

    def __call__(self, step):
        share = min(step, self.steps) / self.steps
        return self.final + (self.lr - self.final) * (0.5 * (1.0 + np.cos(np.pi * share)))


@dataclass(frozen=True)
class step:
    """`lr`, multiplied by `factor` after every `every` steps.

    Example:
        >>> lr = relay.optim.schedules.step(0.1, 10)
        >>> [round(float(lr(step)), 4) for step in (0, 5, 10, 20)]
        [0.1, 0.1, 0.01, 0.001]
    """

    lr: float
    every: int
    factor: float = 0.1

    def __call__(self, step):
        return self.lr * self.factor ** (step // self.every)


@dataclass(frozen=True)
class exponential:
    """`lr`, multiplied by `factor` after each step.

    Example:
        >>> lr = relay.optim.schedules.exponential(0.1, 0.9)
        >>> [round(float(lr(step)), 4) for step in (0, 5, 10, 20)]
        [0.1, 0.059, 0.0349, 0.0122]
    """

    lr: float
    factor: float

    def __call__(self, step):
        return self.lr * self.factor**step


@dataclass(frozen=True)
class warmup:
    """In `steps` steps from nearly 0 to where a schedule begins, along a line; then that schedule, from its beginning.

    Attributes:
        schedule: a schedule; `constant(lr)` for one rate.
        steps: of the line. The rate of the first is `1 / (steps + 1)` of the first rate of the schedule.

    Example:
        >>> lr = relay.optim.schedules.warmup(relay.optim.schedules.constant(0.1), 9)
        >>> [round(float(lr(step)), 4) for step in (0, 5, 10, 20)]
        [0.01, 0.06, 0.1, 0.1]
    """

    schedule: Any
    steps: int

    def __call__(self, step):
        if step < self.steps:
            return self.schedule(0) * ((step + 1) / (self.steps + 1))
        return self.schedule(step - self.steps)


__all__ = ["constant", "cosine", "exponential", "linear", "step", "warmup"]

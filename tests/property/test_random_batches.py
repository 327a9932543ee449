"""Random programs under vmap: what each example gives by itself, also of derivatives, whichever way round they are nested.

`python -m tests.property.test_random_batches FIRST COUNT [PROCESSES]` runs a campaign and prints what fails.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
import pytest

from myia_relay import CompileError, grad, jvp, relay, vmap
from tests.property.oracle import function_of
from tests.property.random_smooth import CLASSES, Writer
from tests.property.searches import campaign
from tests.property.thresholds import low

XS, NS = np.array([0.0137, -0.62, 1.31, 0.5003, -1.7]), np.array([3, 0, 1, 5, 2])


def program(seed: int) -> Callable:
    """A random program of a float and an int."""
    f = function_of(Writer(seed).text(), f"<smooth {seed}>", CLASSES)
    return lambda x, n: f(float(x), int(n))  # an example is a NumPy scalar; a field that is a float takes none


def problems(seed: int, executor: str) -> list[str]:
    """What is wrong with the batches of one random program, as readable lines."""
    f = program(seed)
    slope = relay(grad(f), executor="interpreter")
    each, alike = list(zip(XS.tolist(), NS.tolist())), [(x, 3) for x in XS.tolist()]
    checks = [
        ("numbers of its own", vmap(f, (0, 0)), (XS, NS), [f(*a) for a in each]),
        ("one number", vmap(f, (0, None)), (XS, 3), [f(*a) for a in alike]),
    ]
    if seed % 2 == 0:
        checks.append(("grad", vmap(grad(f), (0, 0)), (XS, NS), [slope(*a) for a in each]))
    if seed % 3 == 0:
        slopes = [slope(*a) for a in alike]
        checks += [
            ("grad around", grad(lambda xs: np.sum(vmap(f, (0, None))(xs, 3))), (XS,), slopes),
            ("jvp", vmap(lambda x: jvp(lambda y: f(y, 3), (x,), (1.0,))[1]), (XS,), slopes),
        ]
    if seed % 6 == 0:
        bend = relay(grad(grad(f)), executor="interpreter")
        checks.append(("grad grad", vmap(grad(grad(f)), (0, None)), (XS, 3), [bend(*a) for a in alike]))
    out = []
    for name, g, args, want in checks:
        got = relay(g, executor=executor)(*args)
        if not np.allclose(got, want, rtol=1e-8, atol=1e-9):
            out.append(f"{name}: {got} where each by itself gives {want}")
    return out


def one(seed: int) -> tuple[int, str]:
    try:
        with low() if seed % 20 == 9 else nullcontext():
            return seed, "; ".join(
                problems(seed, "native" if seed % 5 < 2 else "python" if seed % 5 == 2 else "interpreter")
            )
    except CompileError as error:  # an array that a closure holds is not changed in place
        return seed, "" if "changed in place" in str(error) else str(error)
    except Exception as error:
        return seed, f"{type(error).__name__}: {error}"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(1, 4))
def test_examples_by_themselves(seed):
    assert one(seed) == (seed, ""), Writer(seed).text()


if __name__ == "__main__":
    arguments = [int(a) for a in sys.argv[1:]]
    sys.exit(bool(campaign(one, *(arguments + [0, 1000, 2][len(arguments) :]))))

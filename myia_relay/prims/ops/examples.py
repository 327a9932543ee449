"""What a program for one example knows of the batch that it runs in.

Outside of `vmap` there is one example: `mean_over_examples(x)` is x, `example_count(x)` is 1, `example_index(x)` is 0. Batching
gives them their meaning (`ad.batch.examples`): where x is the same for all examples it is as before, otherwise the mean, the
size of the batch, and the position in it. So statistics of a whole batch and draws that differ between examples are written for
one.
"""

from __future__ import annotations

import numpy as np

from ...abstract.types import FLOATS
from .elementwise import unary

mean_over_examples = unary("mean_over_examples", lambda x: x, FLOATS, "The mean of x over the examples of a batch.")
example_count = unary(
    "example_count",
    lambda x: np.ones_like(x, dtype=np.int64)[()],
    FLOATS,
    "How many examples there are, one for each element of x.",
    "int64",
    False,
)
example_index = unary(
    "example_index",
    lambda x: np.zeros_like(x, dtype=np.int64)[()],
    FLOATS,
    "Which of the examples this is, once for each element of x.",
    "int64",
    False,
)

# A mean is its own transpose. As the derivative of one example's result it is that of the sum of all results.
mean_over_examples.vjp(lambda x, out, dout: (mean_over_examples(dout),))
mean_over_examples.lower(lambda b, x: x)
example_count.lower(lambda b, x: b.const(1, "int64"))
example_index.lower(lambda b, x: b.const(0, "int64"))

NAMES = ("mean_over_examples", "example_count", "example_index")

"""Checks of annotations that declare zeros: `Tensor[..., Lower]` and `Tensor[..., Upper]`.

The compiler replaces these entries by 0.0, so an entry of -0.0 would change; it is refused too.
"""

from __future__ import annotations

import numpy as np


def lower(x):
    """`x`, of which nothing stands above the diagonal.

    Raises:
        ValueError: an entry above the diagonal is not 0.0.
    """
    above = np.triu(x, 1)
    if np.any((above != 0) | np.signbit(above)):
        raise ValueError("an array annotated Lower has an entry other than 0.0 above its diagonal; pass np.tril(x)")
    return np.tril(x)


def upper(x):
    """`x`, of which nothing stands below the diagonal.

    Raises:
        ValueError: an entry below the diagonal is not 0.0.
    """
    below = np.tril(x, -1)
    if np.any((below != 0) | np.signbit(below)):
        raise ValueError("an array annotated Upper has an entry other than 0.0 below its diagonal; pass np.triu(x)")
    return np.triu(x)


TRIANGLES = {"Lower": lower, "Upper": upper}
"""Name of a triangle -> the function that checks an array with this annotation, and tells the compiler its zeros."""

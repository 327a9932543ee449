"""Colouring of Jacobians: directions can share one pass if no element of the result depends on two of them.

    J e_j for all j = 1 ... n          =>          J s_c for colours c = 1 ... k,   s_c = sum of the e_j of colour c

Each entry of J is then an entry of one of the k products. Compression takes k passes in place of n, and is exact.

Source: A. Curtis, M. Powell, J. Reid, "On the estimation of sparse Jacobian matrices" (1974); the order of the columns
after D. Welsh and M. Powell (1967); A. Gebremedhin, F. Manne, A. Pothen, "What color is your Jacobian?" (SIAM Review,
2005).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .sparsity import Pattern

MOST_WORK = 1 << 23  # pairs of neighbours that are visited at most


def colouring(pattern: Pattern, n: int, most: int) -> np.ndarray | None:
    """Colours for inputs, such that no element depends on two of the same colour.

    Args:
        pattern: what elements depend on, of inputs 0 ... n - 1.
        n: how many inputs.
        most: how many colours are acceptable.

    Returns:
        int64, shape (n,), the colours from 0 on; None where greedy colouring needs more, or there is too much to look at.

    Cost: the sum of the squares of the elements' numbers of inputs, some 0.1 us each.
    """
    widths = np.diff(pattern.starts)
    least = int(widths.max(initial=0))  # these inputs need different colours
    if least > most or int(np.sum(widths * widths)) > MOST_WORK:
        return None
    inputs, starts = pattern.inputs.tolist(), pattern.starts.tolist()
    together = [inputs[a:b] for a, b in zip(starts, starts[1:])]
    elements: list[list[int]] = [[] for _ in range(n)]
    for element, members in enumerate(together):
        for j in members:
            elements[j].append(element)
    found = greedy(range(n), elements, together)
    if found.max(initial=-1) >= least:
        neighbours = [sum(len(together[e]) for e in own) for own in elements]
        found = min(found, greedy(np.argsort(neighbours)[::-1].tolist(), elements, together), key=np.max)
    return found if found.max(initial=-1) < most else None


def greedy(order: Iterable[int], elements: list[list[int]], together: list[list[int]]) -> np.ndarray:
    """Colours in a given order of the inputs: each input takes the first colour that none of its neighbours has.

    Args:
        order: of all inputs.
        elements: those that depend on each input.
        together: the inputs of each element.
    """
    colours = [-1] * len(elements)
    for j in order:
        taken = {colours[i] for e in elements[j] for i in together[e]}
        colour = 0
        while colour in taken:
            colour += 1
        colours[j] = colour
    return np.array(colours, np.int64)

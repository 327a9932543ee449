"""The random number generator: Threefry-2x32 with 20 rounds, on NumPy's integers.

Source: J. Salmon, M. Moraes, R. Dror and D. Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
"""

from __future__ import annotations

import numpy as np

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def threefry2x32(key, counter):
    """The random words of keys and counters, of 64 bits each: their high halves are what the paper calls the first words."""
    shape = np.broadcast_shapes(np.shape(key), np.shape(counter))
    k0, k1, x0, x1 = (
        (np.atleast_1d(word) >> np.uint64(shift)).astype(np.uint32)
        for word in (np.asarray(key, np.uint64), np.asarray(counter, np.uint64))
        for shift in (32, 0)
    )
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(PARITY))
    x0, x1 = x0 + k0, x1 + k1
    for i in range(5):
        for r in ROTATIONS[i % 2]:
            x0 += x1
            high = x1 << np.uint32(r)
            x1 >>= np.uint32(32 - r)
            x1 |= high
            x1 ^= x0
        x0 += keys[(i + 1) % 3]
        x1 += keys[(i + 2) % 3] + np.uint32(i + 1)
    out = x0.astype(np.uint64) << np.uint64(32) | x1
    return out.reshape(shape)[()]

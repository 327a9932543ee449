"""What a program that times itself leaves in memory: the time of each part of its code, and a record of what ran when.

A program is divided into *regions*: kernels, and what the main function does between them. Where a region ends, native code
reads the processor's counter of cycles once; what has passed since the last reading belongs to the region. So all of the time
between the beginning and the end of a call belongs to some region. `backend/tvm/host/clock.py` emits the readings.

The memory is an array of int64: the last reading, the number of readings, the first one; (region, reading) for the first
`EVENTS` readings; then for each region its cycles and how often it ran.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...abstract.dims import DimLike
from ...ir.node import Apply

EVENTS = 1 << 15  # readings that are recorded one by one
LAST, COUNT, BEGIN, FIRST_EVENT = 0, 1, 2, 4
FIRST_REGION = FIRST_EVENT + 2 * EVENTS


@dataclass(eq=False)
class TimedRegion:
    """A part of native code.

    Attributes:
        kind: "kernel"; "loop" for a loop without kernels, "call" for a function without any; "host" for what is between.
        name: of the kernel's function, or of the loop's primitive.
        nodes: what it computes.
        arrays: the memory that it reads and writes (`backend.tvm.plan.Storage`, without scratch), and how many bytes of it.
        loops: the applications in whose graphs it is, outermost first.
        library: whether it calls a library (BLAS, LAPACK).
    """

    kind: str
    name: str
    nodes: list[Apply]
    arrays: list[tuple[Any, DimLike]] = field(default_factory=list)
    loops: list[Apply] = field(default_factory=list)
    library: bool = False


class Timing:
    """The memory of a program that times itself.

    Attributes:
        regions: those of the program, by number.
        array: the memory.
    """

    def __init__(self, regions: list[TimedRegion]):
        self.regions = regions
        self.array = np.zeros(FIRST_REGION + 2 * len(regions), np.int64)

    def clear(self) -> None:
        """Forget all readings."""
        self.array[:FIRST_EVENT] = 0
        self.array[FIRST_REGION:] = 0

    def restart(self) -> None:
        """Record the next readings one by one, from the first on."""
        self.array[COUNT] = 0

    @property
    def begin(self) -> int:
        """The reading at the beginning of the last call."""
        return int(self.array[BEGIN])

    def totals(self) -> list[tuple[TimedRegion, int, int]]:
        """The regions, with their cycles and how often each ran."""
        numbers: Any = self.array[FIRST_REGION:].reshape(-1, 2).tolist()
        return [(region, cycles, count) for region, (cycles, count) in zip(self.regions, numbers, strict=True)]

    def events(self) -> tuple[list[tuple[int, int]], int]:
        """The recorded readings (number of the region, cycles at its end), and how many more there were."""
        count = int(self.array[COUNT])
        kept = min(count, EVENTS)
        rows: Any = self.array[FIRST_EVENT : FIRST_EVENT + 2 * kept].reshape(-1, 2).tolist()
        return [(region, at) for region, at in rows], count - kept


__all__ = ["BEGIN", "COUNT", "EVENTS", "FIRST_EVENT", "FIRST_REGION", "LAST", "TimedRegion", "Timing"]

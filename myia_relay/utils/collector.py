"""Pausing the garbage collector while the compiler works.

A compilation makes hundreds of thousands of small objects that live until it ends, and TVM alone keeps some hundreds of
thousands more in the process. The cyclic collector walks all of them repeatedly and finds nothing, which takes a tenth
of the time.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def resting() -> Iterator[None]:
    """No automatic collections inside; afterwards as before. Nested and concurrent uses end with the outermost one that began."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

"""The one switch for debugging the compiler itself."""

from __future__ import annotations

import os


def debugging() -> bool:
    """Whether MYIA_RELAY_DEBUG asks for verification after every pass, and for full tracebacks."""
    return os.environ.get("MYIA_RELAY_DEBUG", "") not in ("", "0")

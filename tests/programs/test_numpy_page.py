"""docs/numpy.md lists the functions of NumPy that compiled code has: all of them, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from myia_relay.library.in_place import CHANGING
from myia_relay.library.sources import SOURCES
from myia_relay.prims.api.numpy_api import IMPLEMENTATIONS

PAGE = (Path(__file__).parents[2] / "docs" / "numpy.md").read_text()
KNOWN = {**IMPLEMENTATIONS, **SOURCES, **CHANGING}
REFUSED = {np.linalg.eig, np.linalg.eigvals}


@pytest.mark.parametrize(
    ("title", "module"),
    [
        ("## Functions\n", np),
        ("## Functions of `np.linalg`\n", np.linalg),
        ("## Functions of `np.fft`, and complex numbers\n", np.fft),
    ],
)
def test_the_lists_are_those_of_the_tables(title, module):
    text = PAGE.split(title)[1].strip().split("\n\n")[0]
    listed = {getattr(module, name) for name in re.findall(r"`(\w+)`", text) if hasattr(module, name)}
    assert listed and listed <= set(KNOWN)
    there = {
        function
        for name in dir(module)
        if not name.startswith("_")
        and callable(function := getattr(module, name, None))
        and not isinstance(function, type)
        and getattr(function, "__name__", "").rstrip("_") == name.rstrip("_")
        and function in KNOWN
    }
    assert there - REFUSED == listed

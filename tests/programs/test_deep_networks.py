"""Deep and wide networks compile in time that grows with their text: no walk over shared operands may look at them again and again.

Each is compiled in a process of its own, with its gradient. What is exponential in the depth would take years for these.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.programs.networks import NETWORKS

DEPTHS = {"residual": 30, "resnet": 2, "residual_rows": 30, "transformer": 6, "inception": 2, "dense": 30, "unet": 3}
DEPTHS |= {"stencil": 30, "counter": 40, "nested": 40}
LIMIT = 900  # seconds, of which they take a few


def test_every_network_is_compiled():
    assert set(DEPTHS) == set(NETWORKS)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", DEPTHS)
def test_networks_compile(name):
    command = [sys.executable, "-m", "tests.programs.networks", name, str(DEPTHS[name])]
    done = subprocess.run(command, timeout=LIMIT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

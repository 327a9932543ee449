"""Programs under tools that watch or change how Python runs them: coverage, tracing, profilers, `-O`, pytest, doctest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = '''
import sys
import numpy as np
from myia_relay import grad, relay, vmap

@relay
def f(x, n):
    """The sum of multiples."""
    assert n >= 0, f"n is {n}"
    total = 0.0
    for i in range(n):
        if i % 2 == 0:
            total += x * i
        else:
            total += np.sin(x)
    return total

def power(x, n):
    return 1.0 if n == 0 else x * power(x, n - 1)

found = [f(2.0, 4), grad(f)(2.0, 4), relay(power)(2.0, 5), relay(vmap(power), static=("n",)) is not None]
found += [relay(lambda x: x + 1)(1), relay(power, executor="interpreter")(2.0, 5), relay(power, executor="python")(2.0, 5)]
try:
    f(2.0, -1)
    found.append("no assertion")
except AssertionError as error:
    found.append(str(error))
print(found)
'''

TRACE = """
import sys, threading
def trace(frame, event, arg):
    return trace
sys.settrace(trace)
threading.settrace(trace)
"""
OPCODES = TRACE.replace("    return", "    frame.f_trace_opcodes = True\n    return")
PROFILE = "import sys\nsys.setprofile(lambda *args: None)\n"
MONITOR = """
import sys
tool, events = sys.monitoring, sys.monitoring.events
tool.use_tool_id(2, "watcher")
watched = (events.LINE, events.CALL, events.PY_START, events.PY_RETURN, events.INSTRUCTION, events.BRANCH, events.JUMP)
for event in watched:
    tool.register_callback(2, event, lambda *args: None)
tool.set_events(2, sum(set(watched)))
"""


def run(folder: Path, text: str, *before: str) -> str:
    path = folder / "program.py"
    path.write_text(text)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "MYIA_RELAY_CACHE": "0", "COVERAGE_FILE": str(folder / "data")}
    command = [sys.executable, *before, str(path)]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return run(tmp_path_factory.mktemp("plain"), PROGRAM)


def rarely(*values):
    return pytest.param(*values, marks=pytest.mark.campaign)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "tool", [TRACE, MONITOR, rarely(OPCODES), rarely(PROFILE)], ids=["settrace", "monitoring", "opcodes", "setprofile"]
)
def test_what_watches_changes_nothing(tmp_path, plain, tool):
    if tool is MONITOR and not hasattr(sys, "monitoring"):
        pytest.skip("sys.monitoring came with Python 3.12")
    assert run(tmp_path, tool + PROGRAM) == plain


@pytest.mark.parametrize("branches", [(), rarely("--branch")], ids=["lines", "branches"])
def test_coverage(tmp_path, plain, branches):
    pytest.importorskip("coverage")
    assert run(tmp_path, PROGRAM, "-m", "coverage", "run", *([branches] if branches else [])) == plain


@pytest.mark.parametrize("flag", ["-O", rarely("-OO")])
def test_without_asserts(tmp_path, plain, flag):
    assert run(tmp_path, PROGRAM, flag) == plain.replace("'n is -1'", "'no assertion'")


@pytest.mark.parametrize(
    "flags", [("-X", "dev"), ("-X", "importtime"), ("-W", "error"), ("-B", "-I"), ("-m", "cProfile")]
)
@pytest.mark.sampled(5)
def test_other_flags(tmp_path, plain, flags):
    folder = ROOT if "-I" in flags else None
    text = f"import sys\nsys.path.insert(0, {str(folder)!r})\n" + PROGRAM if folder else PROGRAM
    assert run(tmp_path, text, *flags).startswith(plain)

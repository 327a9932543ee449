"""The terminal of the debugger: what is not in the recorded sessions of tests/golden/debugging."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from myia_relay import grad, relay


@relay
def count(n):
    k = 0
    while k < n:
        k = k + 1
    return k


def said(session, *commands: str) -> str:
    screen = io.StringIO()
    session.interact(stdin=io.StringIO("".join(f"{c}\n" for c in commands)), stdout=screen)
    return screen.getvalue()


def test_the_end_of_the_input_leaves():
    assert said(count.debug(1)).endswith("(relay) \n")
    assert said(count.debug(1), "q", "p 1 / 0").endswith("(relay) ")


def test_every_command_can_be_given_nonsense():
    session = count.debug(2)
    commands = [f"{name} {arg}" for name in session_commands() for arg in ("", "?", "-1", "1 2", ",", "'", "9" * 30)]
    text = said(session, *[c for c in commands if not c.startswith(("q", "exit", "EOF"))])
    assert "Traceback" not in text and "InternalError" not in text
    ended = said(count.debug(1), "c", *[c for c in commands if not c.startswith(("q", "exit", "EOF", "r", "run"))])
    assert "Traceback" not in ended and "InternalError" not in ended


def session_commands() -> list[str]:
    from myia_relay.debug.terminal import Terminal

    return sorted(name.removeprefix("do_") for name in dir(Terminal) if name.startswith("do_"))


def test_expressions_may_raise_anything():
    @relay
    def f(x):
        return x * 2

    text = said(
        f.debug(np.ones(2)), "p 1 / 0", "p x[5]", "p x[0].nothing", "p exit()", "x[0] = 3", "p x", "p (yield)", "q"
    )
    assert "*** ZeroDivisionError" in text and "*** IndexError" in text and "*** AttributeError" in text
    assert "this is a statement" in text and "array([1., 1.])" in text


def test_variables_named_like_commands():
    @relay
    def f(c, n):
        s = c[0] + n
        return s

    text = said(f.debug(np.array([1.0, 2.0]), 3.0), "p c", "c[1]", "!n", "n", "!s", "q")
    assert text.split("(relay) ")[1:4] == ["array([1., 2.])\n", "np.float64(2.0)\n", "3.0\n"] or "2.0" in text
    assert "4.0" in text


def test_ctrl_c_stops_the_program_and_the_session_goes_on(interruptible):
    session = count.debug(10**12)

    def interrupt():
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    text = said(session, "c", "p k > 0", "q")
    assert "Program interrupted.\n> " in text and "True" in text


def test_large_arrays_are_shown_by_their_range():
    @relay
    def f(x):
        y = x * 2.0
        return np.sum(y)

    text = said(
        grad(f).debug(np.arange(400.0).reshape(20, 20)), "tbreak 1", "b f, d_return > 0", "c", "n", "n", "n", "n", "q"
    )
    assert "d_y = float64 of shape (20, 20), from 1 to 1" in text


def test_it_works_in_a_process_of_its_own(tmp_path):
    (tmp_path / "program.py").write_text(
        textwrap.dedent(
            """\
            from myia_relay import relay

            @relay
            def f(x):
                y = x + 1
                return y

            f.debug(2).interact()
            """
        )
    )
    done = subprocess.run(
        [sys.executable, "program.py"], input="n\np y\n", capture_output=True, text=True, cwd=tmp_path, timeout=120
    )
    assert done.returncode == 0 and not done.stderr
    assert "(6)f()\n-> return y\n(relay) 3\n" in done.stdout


@pytest.mark.parametrize("line", ["import os", "while x: pass", "def g(): pass"])
def test_statements_are_refused(line):
    assert "*** this is a statement" in said(count.debug(1), line, "q")

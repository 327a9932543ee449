"""Progress bars."""

from __future__ import annotations

import io
import sys
import threading

from myia_relay.utils import progress as module
from myia_relay.utils.progress import progress


def test_a_log_gets_few_lines_and_the_end(capsys):
    threads = threading.active_count()
    with progress(total=1000, desc="epoch 1/3", unit="steps") as bar:
        for _ in range(1000):
            bar.update(1)
            bar.set_postfix_str("loss 0.5", refresh=False)
    text = capsys.readouterr().err
    assert "epoch 1/3: 100%" in text and "1000/1000" in text and "loss 0.5" in text
    assert text.count("\r") + text.count("\n") < 6
    assert threading.active_count() == threads


def test_a_terminal_is_redrawn(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    assert progress(total=3).mininterval < 1
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert progress(total=3).mininterval == module.LOG_INTERVAL


def test_nothing_where_not_wanted(capsys):
    assert list(progress(range(5), enabled=False)) == [0, 1, 2, 3, 4]
    assert capsys.readouterr() == ("", "")

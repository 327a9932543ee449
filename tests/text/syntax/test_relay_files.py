"""The commands `check` and `format`, and the words of `run`."""

from __future__ import annotations

import io
import sys

import pytest

from myia_relay import cli

TEXT = "def @main(%x: int32) { // head\n  %x+1 }\n"
FORMATTED = '#[version = "0.0.5"]\ndef @main(%x: int32) {\n  // head\n  add(%x, 1)\n}\n'


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.relay"
    path.write_text(TEXT)
    return path


def test_format(file, capsys):
    assert cli.main(["format", "--check", str(file)]) == 1 and file.read_text() == TEXT
    assert "would change" in capsys.readouterr().out
    assert cli.main(["format", "--diff", str(file)]) == 1 and "+  add(%x, 1)" in capsys.readouterr().out
    assert cli.main(["format", str(file)]) == 0 and file.read_text() == FORMATTED
    assert cli.main(["format", "--check", str(file)]) == 0 and cli.main(["format", str(file)]) == 0


def test_format_standard_input(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert cli.main(["format", "-"]) == 0 and capsys.readouterr().out == FORMATTED


def test_check(file, tmp_path, capsys):
    assert cli.main(["check", str(file)]) == 0 and "1 definition, all right" in capsys.readouterr().out
    assert cli.main(["check", "--types", str(file)]) == 0
    assert "@main  fn (int32) -> int32" in capsys.readouterr().out
    wrong = tmp_path / "b.relay"
    wrong.write_text("def @main(%x: int32) {\n  %x + 1f\n}")
    assert cli.main(["check", str(file), str(wrong)]) == 1
    out, err = capsys.readouterr()
    assert "all right" in out and "TypeError_" in err and "line 2, column 3" in err


def test_check_warns_of_arms_that_are_never_taken(tmp_path, capsys):
    path = tmp_path / "c.relay"
    path.write_text("def @main(%l: List[int32]) { match (%l) { _ => 1, Nil => 2 } }")
    assert cli.main(["check", "--prelude", str(path)]) == 0
    assert "never taken" in capsys.readouterr().err


def test_wrong_files(tmp_path, capsys):
    assert cli.main(["check", str(tmp_path / "none.relay")]) == 1 and "there is no file" in capsys.readouterr().err
    (tmp_path / "d.relay").write_bytes(b"\xff\xfe")
    assert cli.main(["format", str(tmp_path / "d.relay")]) == 1 and "UTF-8" in capsys.readouterr().err
    assert cli.main(["run", "f.py:f", "--entry", "g"]) == 1 and "for files of Relay text" in capsys.readouterr().err


def test_run_names_the_definitions_that_there_are(file, capsys):
    assert cli.main(["run", str(file), "--entry", "mian", "1"]) == 1
    assert "did you mean 'main'" in capsys.readouterr().err

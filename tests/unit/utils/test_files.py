"""Atomic files and the place of the cache."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from myia_relay import relay
from myia_relay.model.checkpoint_io import load_safetensors
from myia_relay.utils import files


def test_write(tmp_path):
    path = tmp_path / "new" / "folder" / "file.bin"
    files.write_atomically(path, b"one", memoryview(b"two"))
    assert path.read_bytes() == b"onetwo"
    files.write_atomically(str(path), b"three")
    assert path.read_bytes() == b"three"
    assert [p.name for p in path.parent.iterdir()] == ["file.bin"]


def test_permissions_are_those_of_any_new_file(tmp_path):
    old = os.umask(0o027)
    try:
        files.write_atomically(tmp_path / "file", b"")
    finally:
        os.umask(old)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_a_link_is_followed(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "file")
    files.write_atomically(tmp_path / "link", b"x")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "folder" / "file").read_bytes() == b"x"


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file(tmp_path, monkeypatch, failure):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(handle):
        raise failure

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(type(failure)):
        files.write_atomically(path, b"new" * 1000)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def gone() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_what_killed_writers_left_is_removed(tmp_path):
    path, dead = tmp_path / "file", gone()
    left, others = tmp_path / f".file.{dead}.0123abcd.tmp", [
        tmp_path / f".file.{os.getpid()}.0123abcd.tmp",
        tmp_path / f".other.{dead}.0123abcd.tmp",
        tmp_path / f".file.{dead}.note",
        tmp_path / "file.0123abcd.tmp",
    ]  # fmt: skip
    for name in (left, *others):
        name.write_bytes(b"half")
    with open(left, "rb") as held:  # by a writer whose number means nothing here
        assert files.hold(held.fileno())
        files.write_atomically(path, b"one")
        assert left.exists()
    files.write_atomically(path, b"two")
    assert path.read_bytes() == b"two" and not left.exists() and all(other.exists() for other in others)


def test_a_writer_that_is_killed(tmp_path):
    """By a signal that nothing can handle, in the middle of a write: the next one leaves no trace of it."""
    program = """
        import os, signal, sys
        from myia_relay.utils import files
        files.os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)
        files.write_atomically(sys.argv[1], b"half")
    """
    path = tmp_path / "file"
    process = subprocess.run([sys.executable, "-c", textwrap.dedent(program), path], timeout=300)
    assert process.returncode == -signal.SIGKILL and len(list(tmp_path.iterdir())) == 1
    files.write_atomically(path, b"whole")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize(
    "read",
    [files.read_file, relay.from_onnx, relay.load_compiled, load_safetensors, relay.data.batches],
    ids=["files", "onnx", "compiled", "parameters", "batches"],
)
def test_a_pipe_is_refused(tmp_path, read):
    """To open one would wait for a writer, which may never come."""
    if read is relay.from_onnx:
        pytest.importorskip("onnx")
    os.mkfifo(tmp_path / "pipe.npy")
    with pytest.raises(OSError, match=r"this is a pipe, and no regular file"):
        read(tmp_path / "pipe.npy")
    with pytest.raises(OSError, match=r"no regular file"):
        files.read_file("/dev/null")


def test_cache_root(monkeypatch, tmp_path):
    monkeypatch.setenv("MYIA_RELAY_CACHE", "~/somewhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files.cache_root() == tmp_path / "somewhere"
    monkeypatch.delenv("MYIA_RELAY_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert files.cache_root() == Path("/x/myia_relay")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert files.cache_root() == tmp_path / ".cache" / "myia_relay"

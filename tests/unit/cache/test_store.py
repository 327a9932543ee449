"""The folder of programs under attack: nothing that others could have written is run, nothing blocks, nothing is left over."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from myia_relay.backend.native import library
from myia_relay.cache import programs, store
from myia_relay.utils import files as cache_files

from .cache_util import HEAD, PLAIN, ROOT, files, imported, loaded

pytestmark = pytest.mark.skipif(not library.supported(), reason="code is not linked here")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
OTHER = "@relay\ndef f(x, y):\n    return x ** 3 + y ** 4\n"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A default cache of our own, and warnings that were not given yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(store, "_warned", set())
    return tmp_path / "home" / "myia_relay" / "programs"


def made(folder: Path, text: str = PLAIN) -> Path:
    """The file of a program."""
    before = set(files())
    imported(folder, text).f(2.0, 3.0)
    (path,) = set(files()) - before
    return path


def compiles(folder: Path, text: str = PLAIN) -> None:
    """The program is compiled: there is nothing good to be found. The next process finds it."""
    f = imported(folder, text).f
    assert f(2.0, 3.0) == 648.0 and not loaded(f)
    f = imported(folder, text).f
    assert f(2.0, 3.0) == 648.0 and loaded(f)


def test_files_and_folders_are_not_for_others_to_write(folder):
    before = os.umask(0)
    try:
        path = made(folder)
    finally:
        os.umask(before)
    for place in (path, path.parent, path.parent.parent):
        assert not place.stat().st_mode & 0o022


@pytest.mark.parametrize("mode", [0o020, 0o002])
def test_a_file_that_others_can_write(folder, mode):
    path = made(folder)
    path.chmod(0o644 | mode)
    with pytest.warns(store.CacheWarning, match=rf"{path} is not used .* others can write it \(mode 6.*chmod -R go-w"):
        compiles(folder)
    assert not path.stat().st_mode & mode  # written anew


@needs_root
def test_a_file_of_another_user(folder):
    path = made(folder)
    os.chown(path, 12345, -1)
    with pytest.warns(store.CacheWarning, match=r"belongs to another user \(12345\)"):
        compiles(folder)


@pytest.mark.parametrize("depth", [1, 2])
def test_a_folder_that_others_can_write(folder, home, depth):
    path = made(folder)
    place = path.parents[depth - 1]
    place.chmod(0o777)
    with pytest.warns(store.CacheWarning, match=rf"others can write it \(mode 777\).* kept in {home}"):
        compiles(folder)
    assert list(home.rglob("*.so")), "kept elsewhere"
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it was said once
        imported(folder, PLAIN).f(2.0, 3.0)
    place.chmod(0o755)
    f = imported(folder, PLAIN).f
    assert f(2.0, 3.0) == 648.0 and loaded(f)


def test_a_folder_around_that_others_can_write(folder, home):
    """They could put another folder of programs there."""
    made(folder)
    root = folder / "cache" if (folder / "cache" / "programs").exists() else Path(os.environ["MYIA_RELAY_CACHE"])
    before = root.stat().st_mode
    root.chmod(0o777)
    try:
        with pytest.warns(
            store.CacheWarning, match=rf"others can write {root} \(mode 777\).* chmod -R go-w .* kept in {home}"
        ):
            compiles(folder)
        root.chmod(0o1777)  # as /tmp: only its owner takes a file away
        f = imported(folder, PLAIN).f
        assert f(2.0, 3.0) == 648.0 and loaded(f)
    finally:
        root.chmod(before)


@needs_root
def test_a_folder_of_another_user(folder, home):
    place = made(folder).parents[1]
    os.chown(place, 12345, -1)
    with pytest.warns(store.CacheWarning, match=r"belongs to another user \(12345\).* MYIA_RELAY_CACHE"):
        compiles(folder)
    assert list(home.rglob("*.so"))


def test_the_default_folder_has_no_other(folder, monkeypatch, home):
    monkeypatch.delenv("MYIA_RELAY_CACHE")
    imported(folder, PLAIN).f(2.0, 3.0)
    home.chmod(0o775)
    with pytest.warns(store.CacheWarning, match="none are kept"):
        f = imported(folder, PLAIN).f
        assert f(2.0, 3.0) == 648.0 and not loaded(f)


def test_the_warning_can_be_an_error(folder):
    made(folder).chmod(0o666)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(store.CacheWarning):
            imported(folder, PLAIN).f(2.0, 3.0)


def test_links_are_not_followed(folder):
    path = made(folder)
    aside = path.rename(folder / "aside.so")
    path.symlink_to(aside)
    compiles(folder)
    assert path.is_symlink() is False and path.read_bytes() == aside.read_bytes()


@pytest.mark.parametrize("depth", [1, 2])
def test_links_to_folders_are_not_followed(folder, depth):
    place = made(folder).parents[depth - 1]
    place.rename(folder / "aside")
    place.symlink_to(folder / "aside")
    with pytest.warns(store.CacheWarning, match="it is a symbolic link"):
        compiles(folder)


@pytest.mark.parametrize("how", [os.rename, os.link])
def test_a_file_under_the_name_of_another(folder, how):
    """It holds the key that it is for: the name alone once decided, and another program's result came back."""
    path = made(folder)
    other = made(folder, OTHER)
    path.unlink()
    how(other, path)
    compiles(folder)


def test_two_files_that_are_swapped(folder):
    path, other = made(folder), made(folder, OTHER)
    path.rename(folder / "aside")
    other.rename(path)
    (folder / "aside").rename(other)
    compiles(folder)
    f = imported(folder, OTHER).f
    assert f(2.0, 3.0) == 89.0 and not loaded(f)


def test_a_library_in_the_folder(folder):
    path = made(folder)
    imported(folder, PLAIN).f.save(path, 2.0, 3.0)
    compiles(folder)


@pytest.mark.parametrize("kind", ["pipe", "socket", "folder", "huge", "device"])
def test_what_is_no_file(folder, kind, monkeypatch):
    path = made(folder)
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)  # to open it would wait for a writer
    elif kind == "socket":
        monkeypatch.chdir(path.parent)  # names of sockets are short
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    elif kind == "folder":
        path.mkdir()
    elif kind == "huge":
        with open(path, "wb") as file:
            file.truncate(1 << 42)
    elif os.geteuid() == 0:
        try:
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))  # endless zeros
        except OSError:
            pytest.skip("no devices can be made here")
    else:
        pytest.skip("only root can make devices")
    f = imported(folder, PLAIN).f
    assert f(2.0, 3.0) == 648.0 and not loaded(f)
    again = imported(folder, PLAIN).f
    assert again(2.0, 3.0) == 648.0 and loaded(again) == (kind != "folder")


def test_every_flipped_byte_is_noticed(folder):
    path = made(folder)
    data = bytearray(path.read_bytes())
    for at in (0, 7, 64, len(data) // 3, len(data) // 2, len(data) - 40, len(data) - 1):
        bad = data.copy()
        bad[at] ^= 0x40
        path.unlink()
        path.write_bytes(bad)
        f = imported(folder, PLAIN).f
        assert f(2.0, 3.0) == 648.0 and not loaded(f)


def test_the_file_that_was_checked_is_the_one_that_runs(folder, monkeypatch):
    """Another file takes the name between the look at it and the loading of its code."""
    path = made(folder)
    unpack = programs.unpack

    def replaced(data):
        path.unlink()
        path.write_bytes(b"not what was looked at")
        return unpack(data)

    monkeypatch.setattr(programs, "unpack", replaced)
    f = imported(folder, PLAIN).f
    assert f(2.0, 3.0) == 648.0 and loaded(f)


def test_no_descriptor_is_left_open(folder):
    made(folder)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        f = imported(folder, PLAIN).f
        assert f(2.0, 3.0) == 648.0 and loaded(f)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_folder_that_can_only_be_read(folder):
    path = made(folder)
    for place in (path.parent, path.parent.parent):
        place.chmod(0o555)
    try:
        f = imported(folder, PLAIN).f
        assert f(2.0, 3.0) == 648.0 and loaded(f)
        assert imported(folder, OTHER).f(2.0, 3.0) == 89.0
    finally:
        for place in (path.parent, path.parent.parent):
            place.chmod(0o755)


@pytest.mark.parametrize("size", ["inf", "1e400", "1e300"])
def test_no_limit(folder, monkeypatch, size):
    monkeypatch.setenv("MYIA_RELAY_CACHE_SIZE", size)
    assert cache_files.programs_limit() == sys.maxsize
    made(folder)
    compiled = imported(folder, PLAIN).f
    assert compiled(2.0, 3.0) == 648.0 and loaded(compiled)


@pytest.mark.parametrize("size", ["nan", "-1", "-inf", "a lot", "0x10"])
def test_a_size_that_is_none(folder, monkeypatch, size):
    monkeypatch.setenv("MYIA_RELAY_CACHE_SIZE", size)
    cache_files._bytes_of.cache_clear()
    message = f"MYIA_RELAY_CACHE_SIZE='{size}' is not a number of megabytes .* taken as 512"
    with pytest.warns(RuntimeWarning, match=message):
        made(folder)
    assert cache_files.programs_limit() == 512_000_000


def test_what_killed_writers_left(folder):
    path = made(folder)
    old, new = path.parent / f".{path.name}.1.aa.tmp", path.parent / f".{path.name}.2.bb.tmp"
    for temporary in (old, new):
        temporary.write_bytes(b"half")
    before = time.time() - 2 * store.ABANDONED_SECONDS
    os.utime(old, (before, before))
    store.sweep(path.parents[1], now=True)
    assert not old.exists() and new.exists() and path.exists()


def script(folder: Path) -> Path:
    path = folder / "script.py"
    path.write_text(HEAD + PLAIN + "print(f(2.0, 3.0), f.cache_info().misses)\n")
    return path


def run(path: Path) -> subprocess.CompletedProcess:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, str(path)], env=env, capture_output=True, text=True, timeout=300)


LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
"""


def test_a_limit_on_the_size_of_files(folder):
    path = script(folder)
    text = path.read_text()
    # The script limits itself: a `preexec_fn` would fork this process, whose memory may be too large to be copied.
    path.write_text(LIMITED + text)
    done = run(path)
    if "648.0" not in done.stdout:  # where the compiler itself is not able to write its object
        assert "File too large" in done.stderr
    assert not files() and not list(folder.rglob("*.tmp"))
    path.write_text(text)
    assert run(path).stdout == "648.0 1\n"
    assert run(path).stdout == "648.0 0\n"


KILLED = """
import os, signal
from myia_relay.cache import programs, store
def killed(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)
os.replace = killed
"""


def test_killed_while_it_writes(folder):
    path = script(folder)
    text = path.read_text()
    path.write_text(KILLED + text)
    assert run(path).returncode == -signal.SIGKILL
    assert not files() and list(folder.rglob("*.tmp"))
    path.write_text(text)
    assert run(path).stdout == "648.0 1\n"
    assert run(path).stdout == "648.0 0\n"

"""Atomic writing of files (they are either complete or absent), and the location of this project's cache."""

from __future__ import annotations

import contextlib
import errno
import functools
import math
import os
import re
import secrets
import stat
import sys
import warnings
from pathlib import Path

CACHE_VARIABLE = "MYIA_RELAY_CACHE"
SIZE_VARIABLE = "MYIA_RELAY_CACHE_SIZE"
OFF = ("0", "off", "none")
DEFAULT_MEGABYTES = 512


def cache_root() -> Path:
    """The folder for everything that can be made again: `$MYIA_RELAY_CACHE`, or a folder in the user's cache.

    It need not exist. It is safe to delete, and to share between processes whose writers use `write_atomically`.
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen and chosen.lower() not in OFF:
        return Path(chosen).expanduser()
    return default_root()


def default_root() -> Path:
    """The folder in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "myia_relay"


def programs_limit() -> int:
    """How many bytes of compiled programs may be kept: `$MYIA_RELAY_CACHE_SIZE` in megabytes, none if the cache is switched off."""
    if os.environ.get(CACHE_VARIABLE, "").lower() in OFF:
        return 0
    return _bytes_of(os.environ.get(SIZE_VARIABLE, ""))


@functools.lru_cache(maxsize=8)
def _bytes_of(megabytes: str) -> int:
    """A size in bytes; the default, with a warning, where the text is no size."""
    try:
        number = float(megabytes) if megabytes.strip() else DEFAULT_MEGABYTES
    except ValueError:
        number = math.nan
    if number >= 0:
        return sys.maxsize if number * 1e6 >= sys.maxsize else int(number * 1e6)
    text = f"{SIZE_VARIABLE}={megabytes!r} is not a number of megabytes (0 keeps no programs, inf all); it is taken as "
    warnings.warn(f"{text}{DEFAULT_MEGABYTES}", RuntimeWarning, stacklevel=3)
    return DEFAULT_MEGABYTES * 10**6


def read_file(path: str | os.PathLike) -> bytes:
    """The contents of a file; a pipe or a device, which may have no end or wait for a writer for ever, is refused.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    # O_NONBLOCK: opening a pipe would wait for a writer.
    fd = os.open(path, os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_BINARY", "O_CLOEXEC")))
    with open(fd, "rb") as file:
        require_regular(path, os.fstat(fd))
        return file.read()


def require_regular(path: str | os.PathLike, status: os.stat_result) -> None:
    """Refuse what is no regular file.

    Raises:
        OSError: with what it is.
    """
    kinds = (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket")
    if not stat.S_ISREG(status.st_mode):
        what = next((name for test, name in kinds if test(status.st_mode)), "a device")
        number = errno.EISDIR if what == "a folder" else errno.EINVAL
        raise OSError(number, f"this is {what}, and no regular file", os.fspath(path))


def write_atomically(path: str | os.PathLike, *contents: bytes | memoryview, sync: bool = True) -> None:
    """Write a file that others see either whole or not at all, whatever happens meanwhile.

    The contents go to a temporary file in the same folder, which then takes the name. On any failure, Ctrl-C included,
    the temporary file is removed and an older file of that name stays as it was; those of writers that were killed are removed
    by the next one. Missing folders are made.

    Args:
        path: the file; a symbolic link is followed.
        contents: its bytes, in pieces.
        sync: wait until they are on the disk; without, a crash of the machine may leave a file of other contents.

    Raises:
        OSError: the folder cannot be written, the disk is full, ...
    """
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    stem = f".{target.name[:100]}."
    _remove_abandoned(target.parent, stem)
    temporary = target.with_name(f"{stem}{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            hold(file.fileno())
            for piece in contents:
                file.write(piece)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _remove_abandoned(folder: Path, stem: str) -> None:
    """Remove the temporary files of a name whose writers were killed."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(stem) and is_abandoned(entry.path):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)


def is_abandoned(path: str) -> bool:
    """Whether a file is the temporary one of a writer that was killed: no process has its number, or holds the file."""
    found = re.search(r"\.(\d+)\.[0-9a-f]{8}\.tmp$", path)
    if found is None or _runs(int(found[1])):
        return False
    try:
        with open(path, "rb") as file:
            return hold(file.fileno())  # a process of another machine does, otherwise
    except OSError:
        return False


def _runs(process: int) -> bool:
    """Whether there is a process of a number on this machine, as far as that can be known."""
    if os.name != "posix":
        return True  # `os.kill` would end it
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def hold(file: int) -> bool:
    """Hold an open file, until it is closed or the process ends; False where another process holds it."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # a file system without locks
        pass
    return True

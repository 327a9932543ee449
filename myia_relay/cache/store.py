"""The folder of compiled programs: files named by the hash of what they were compiled for.

Many processes may use it at once, and it may be deleted at any time. Files are written atomically; a file that is
damaged, or that cannot be read or loaded, is ignored. If the folder cannot be written, programs are not kept. If it
grows too large, the least recently used files are deleted.

The contents of the folder are executed. Folders and files must therefore belong to this user (or to root) and be
writable by nobody else, nor may anybody write the folder around; no link is followed below `programs`. What fails this
is refused with a warning; programs are then kept in the user's default cache. Each file is opened once, checked by its
descriptor, and read and loaded through that descriptor.

Input: keys, bytes. Output: bytes and descriptors. Layout: `programs/AB/KEY.DIGEST.so`, where AB are the first letters
of the key. A key has several files if one function was compiled with several values of a free name.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
import warnings
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..utils.files import CACHE_VARIABLE, cache_root, default_root, hold, is_abandoned, programs_limit

VARIANTS = 8  # files of one key at most
SWEEP_SECONDS = 60.0  # seconds between two checks of the size of the folder
ABANDONED_SECONDS = 3600.0  # seconds after which a temporary file belongs to a writer that was killed, wherever it ran
TRUSTED = {0, os.geteuid()} if hasattr(os, "geteuid") else {0}
KEPT = 0.8  # part of the limit that remains after old files were removed
_swept = 0.0
_warned: set[str] = set()


@dataclass
class Kept:
    """A file of the folder, open.

    Attributes:
        path: for messages.
        fd: its descriptor.
        data: its contents.
    """

    path: str
    fd: int
    data: bytes


class CacheWarning(RuntimeWarning):
    """Something in the folder is not trusted."""


class _Refused(Exception):
    """A folder or file that is not trusted; the message says why, and what to do."""


def places() -> list[Path]:
    """The folders in which programs may be kept: the first one that is trusted is used."""
    return list(dict.fromkeys(root / "programs" for root in (cache_root(), default_root())))


def enabled() -> bool:
    """Whether programs are kept in files."""
    return hasattr(os, "O_NOFOLLOW") and programs_limit() > 0


# --- trust ------------------------------------------------------------------------------------------------------------


def _check(status: os.stat_result, path: str) -> None:
    """Refuse what others could have written.

    Raises:
        _Refused: with the reason.
    """
    if status.st_uid not in TRUSTED:
        reason = f"it belongs to another user ({status.st_uid})"
        raise _Refused(f"{reason}. Remove it, or set {CACHE_VARIABLE} to a folder of your own.")
    if status.st_mode & 0o022:
        reason = f"others can write it (mode {stat.S_IMODE(status.st_mode):o})"
        raise _Refused(f"{reason}. Remove it, or make sure of its contents and run: chmod -R go-w {path}")


def _check_around(folder: Path) -> None:
    """Refuse a folder in which anybody could put another one in the place of that of programs; its group may be ours alone.

    Raises:
        _Refused: with the reason.
    """
    try:
        mode = folder.stat().st_mode
    except OSError:  # it is not there, or cannot be looked at: then neither can what is in it
        return
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        reason = f"others can write {folder} (mode {stat.S_IMODE(mode):o})"
        raise _Refused(f"{reason}. Make sure of its contents and run: chmod -R go-w {folder}")


def _warn(path: str, refused: _Refused, instead: str) -> None:
    """Warn once in a process that something is not used."""
    if path not in _warned:
        _warned.add(path)
        text = f"{path} is not used for compiled programs, which are run as code: {refused} {instead}"
        warnings.warn(text, CacheWarning, stacklevel=2)


def _opened(name: str, path: str, parent: int | None, make: bool) -> int | None:
    """The descriptor of a folder that is trusted; None if it does not exist.

    Args:
        name: of the folder, in `parent`.
        path: the whole path.
        parent: descriptor of the folder that it is in; None where `name` is a whole path.
        make: whether to make it.

    Raises:
        _Refused: it cannot be trusted.
        OSError: it cannot be opened.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=parent)
    try:
        fd = os.open(name, flags, dir_fd=parent)
    except FileNotFoundError:
        return None
    except OSError:
        if os.path.islink(path):
            raise _Refused(f"it is a symbolic link. Remove it, or set {CACHE_VARIABLE} to another folder.") from None
        raise
    try:
        _check(os.fstat(fd), path)
    except _Refused:
        os.close(fd)
        raise
    return fd


@contextlib.contextmanager
def _folder(key: str, make: bool = False) -> Iterator[tuple[int, str] | None]:
    """The descriptor and the path of the folder for a key's files; None where there is none."""
    found = None
    candidates = places()
    for k, place in enumerate(candidates):
        if make:
            place.parent.parent.mkdir(parents=True, exist_ok=True)
            place.parent.mkdir(mode=0o755, exist_ok=True)
        path, inner = str(place), str(place / key[:2])
        try:
            _check_around(place.parent)
            outer = _opened(path, path, None, make)
            if outer is None:
                break
            try:
                fd = _opened(key[:2], inner, outer, make)
            finally:
                os.close(outer)
        except _Refused as refused:
            rest = candidates[k + 1 :]
            _warn(path, refused, f"Until then they are kept in {rest[0]}." if rest else "Until then none are kept.")
            continue
        found = (fd, inner) if fd is not None else None
        break
    try:
        yield found
    finally:
        if found is not None:
            os.close(found[0])


# --- files ------------------------------------------------------------------------------------------------------------


def _names(folder: int, key: str) -> list[str]:
    """The names of a key's files in a folder, the most recently used first."""
    with os.scandir(folder) as entries:
        found = [
            (e.stat(follow_symlinks=False).st_mtime_ns, e.name)
            for e in entries
            if e.name.startswith(f"{key}.") and e.name.endswith(".so")
        ]
    return [name for _, name in sorted(found, reverse=True)]


def files(key: str) -> Generator[Kept, None, None]:
    """The files of a key, the most recently used first; each is marked as used now, and is closed when the next is
    requested.
    """
    try:
        with _folder(key) as found:
            if found is None:
                return
            folder, path = found
            for name in _names(folder, key):
                kept = _read(folder, name, os.path.join(path, name))
                if kept is None:
                    continue
                try:
                    yield kept
                finally:
                    os.close(kept.fd)
    except (OSError, RuntimeError):  # RuntimeError: the user has no home folder
        return


def _read(folder: int, name: str, path: str) -> Kept | None:
    """A file of a folder; None where it cannot be read, is not trusted or too large to be ours."""
    try:
        # O_NONBLOCK: opening a pipe would wait for a writer.
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:  # a link, a socket, or it was removed
        return None
    try:
        status = os.fstat(fd)
        if stat.S_ISREG(status.st_mode) and status.st_size <= _largest():
            _check(status, path)
            with open(fd, "rb", closefd=False) as file:
                kept = Kept(path, fd, file.read())
            with contextlib.suppress(OSError):  # it belongs to root: it is read anyway
                os.utime(fd)
            fd = -1
            return kept
    except _Refused as refused:
        _warn(path, refused, "It is compiled anew.")
    except OSError:
        pass
    finally:
        if fd >= 0:
            os.close(fd)
    return None


def _largest() -> int:
    """The size of the largest file that is kept."""
    return programs_limit() // 4


def remove(path: str) -> None:
    """Remove a file that is of no use."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def write(key: str, variant: str, data: bytes) -> None:
    """Store a program, if possible."""
    if len(data) > _largest():
        return
    try:
        with _folder(key, make=True) as found:
            if found is None:
                return
            folder, path = found
            _write(folder, f"{key}.{variant}.so", data)
            for old in _names(folder, key)[VARIANTS:]:
                remove(os.path.join(path, old))
        sweep(Path(path).parent)
    except (OSError, RuntimeError):
        pass


def _write(folder: int, name: str, data: bytes) -> None:
    """Write a file of a folder atomically, so that others cannot write it."""
    temporary = f".{name}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(temporary, flags, 0o644, dir_fd=folder), "wb") as file:
            hold(file.fileno())
            file.write(data)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def contents(place: Path) -> list[tuple[float, int, str]]:
    """Time of last use, size and path of all files."""
    out = []
    for folder, _, names in os.walk(place):
        for name in names:
            path = os.path.join(folder, name)
            try:
                status = os.lstat(path)
            except OSError:
                continue
            out.append((status.st_mtime, status.st_size, path))
    return out


def sweep(place: Path, now: bool = False) -> None:
    """Remove what killed writers left and, if the folder is too large, the least recently used files.

    Args:
        place: the folder of programs.
        now: whatever the time of the last look at it.
    """
    global _swept
    if not now and time.monotonic() - _swept < SWEEP_SECONDS and _swept:
        return
    _swept = time.monotonic()
    found, old = [], time.time() - ABANDONED_SECONDS
    for used, size, path in sorted(contents(place)):
        if path.endswith(".tmp") and (used < old or is_abandoned(path)):
            remove(path)
        else:
            found.append((size, path))
    total, limit = sum(size for size, _ in found), programs_limit()
    for size, path in found if total > limit else ():
        if total <= KEPT * limit:
            break
        remove(path)
        total -= size

"""The folder of compiled programs: files by the hash of what they were compiled for.

Many processes may use it at once, and anybody may delete it at any time. Files are written whole or not at all; one that is
damaged, or that cannot be read or loaded, is none. Where the folder cannot be written, programs are just not kept. When there is
more in it than wanted, what was used longest ago goes.

Input: keys, bytes. Output: bytes. Layout: `programs/AB/KEY.DIGEST.so`, where AB are the first letters of the key, and a key has
several files where one function was compiled with several values of a free name.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from ..utils.files import cache_root, programs_limit, write_atomically

VARIANTS = 8  # files of one key
SWEEP_SECONDS = 60.0  # between two looks at the size of the folder, at least
TRUSTED = {0, os.geteuid()} if hasattr(os, "geteuid") else {0}
KEPT = 0.8  # of the limit, after old files were removed
_swept = 0.0


def folder() -> Path:
    """Where programs are kept."""
    return cache_root() / "programs"


def enabled() -> bool:
    """Whether programs are kept in files."""
    return programs_limit() > 0


def files(key: str) -> Iterator[Path]:
    """The files of a key, those used last first."""
    try:
        place = folder() / key[:2]
        with os.scandir(place) as entries:
            found = [
                (e.stat().st_mtime_ns, e.path) for e in entries if e.name.startswith(key) and e.name.endswith(".so")
            ]
    except (OSError, RuntimeError):  # RuntimeError: nobody has a home
        return
    for _, path in sorted(found, reverse=True):
        yield Path(path)


def read(path: Path) -> bytes | None:
    """The contents of a file, None where it cannot be read; it counts as used now."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_uid not in TRUSTED:  # this is code that is going to run
                return None
            data = file.read()
    except OSError:
        return None
    try:
        os.utime(path)
    except OSError:  # of somebody else: it is read all the same
        pass
    return data


def remove(path: Path) -> None:
    """Take a file away that is of no use."""
    try:
        path.unlink()
    except OSError:
        pass


def write(key: str, variant: str, data: bytes) -> None:
    """Keep a program, if that is possible."""
    if len(data) > programs_limit() // 4:
        return
    try:
        write_atomically(folder() / key[:2] / f"{key}.{variant}.so", data, sync=False)
        for old in list(files(key))[VARIANTS:]:
            remove(old)
        sweep()
    except (OSError, RuntimeError):
        pass


def contents() -> list[tuple[float, int, str]]:
    """Time of last use, size and path of everything kept."""
    out = []
    for place, _, names in os.walk(folder()):
        for name in names:
            path = os.path.join(place, name)
            try:
                status = os.stat(path)
            except OSError:
                continue
            out.append((status.st_mtime, status.st_size, path))
    return out


def sweep(now: bool = False) -> None:
    """Remove what was used longest ago where there is more than wanted; looks from time to time only."""
    global _swept
    if not now and time.monotonic() - _swept < SWEEP_SECONDS and _swept:
        return
    _swept = time.monotonic()
    found = sorted(contents())
    total, limit = sum(size for _, size, _ in found), programs_limit()
    for _, size, path in found if total > limit else ():
        if total <= KEPT * limit:
            break
        remove(Path(path))
        total -= size

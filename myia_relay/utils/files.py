"""Files that are either whole or absent, and the place of this project's cache."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

CACHE_VARIABLE = "MYIA_RELAY_CACHE"


def cache_root() -> Path:
    """The folder for everything that can be made again: `$MYIA_RELAY_CACHE`, or a folder in the user's cache.

    It need not exist. It is safe to delete, and to share between processes whose writers use `write_atomically`.
    """
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "myia_relay"


def write_atomically(path: str | os.PathLike, *contents: bytes | memoryview) -> None:
    """Write a file that others see either whole or not at all, whatever happens meanwhile.

    The contents go to a temporary file in the same folder, which then takes the name. On any failure, Ctrl-C included,
    the temporary file is removed and an older file of that name stays as it was. Missing folders are made.

    Args:
        path: the file; a symbolic link is followed.
        contents: its bytes, in pieces.

    Raises:
        OSError: the folder cannot be written, the disk is full, ...
    """
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name[:100]}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            for piece in contents:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)

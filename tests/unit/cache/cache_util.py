"""Programs as files of source text, imported anew: what another process would see, without one."""

from __future__ import annotations

import importlib.util
import linecache
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from myia_relay.cache.program import LoadedProgram

ROOT = Path(__file__).resolve().parents[3]
NAME = "program_of_a_cache_test"
PLAIN = "@relay\ndef f(x, y):\n    return x ** 3 * y ** 4\n"
HEAD = "import numpy as np\nfrom myia_relay import relay, grad, Tensor, Float, Float64\n"


def imported(folder: Path, text: str) -> ModuleType:
    """The text as a module of always the same name and file."""
    path = folder / f"{NAME}.py"
    path.write_text(HEAD + text)
    linecache.clearcache()
    spec = importlib.util.spec_from_file_location(NAME, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), vars(module))
    return module


def loaded(function) -> bool:
    """Whether a function's only program came out of a file."""
    (compiled,) = function._programs.values()
    return isinstance(compiled.run, LoadedProgram)


def files() -> list[Path]:
    """The files of the cache."""
    return sorted(Path(os.environ["MYIA_RELAY_CACHE"]).rglob("*.so"))


def python(script: str, *args: str, **environment: str) -> str:
    """What a script prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", script, *args] if not script.endswith(".py") else [sys.executable, script, *args],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout

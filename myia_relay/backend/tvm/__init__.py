"""The native executor: typed graphs to tirx, and tirx to machine code. The only package that imports tvm.

TVM's packages import PyTorch wherever it is installed, to exchange tensors with it, which nothing here does: that is most of the
time that they take, and hundreds of megabytes. So they do not find it while they are imported here. Whoever imports PyTorch, before
or later, has it as usual. On Windows it is not hidden: there the two must be loaded in that order.
"""

from __future__ import annotations

import sys
import threading
from typing import Any


class _Hidden:
    """A finder that does not let one thread find a module.

    Args:
        name: of the module.
    """

    def __init__(self, name: str):
        self.name, self.thread = name, threading.get_ident()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Nothing; the other finders are asked, unless it is that module, in that thread.

        Raises:
            ModuleNotFoundError: it is.
        """
        if name == self.name and threading.get_ident() == self.thread:
            raise ModuleNotFoundError(f"{name} is not looked for here", name=name)


def _import_tvm() -> None:
    """Import TVM without PyTorch."""
    hidden: Any = _Hidden("torch")
    if sys.platform != "win32":
        sys.meta_path.insert(0, hidden)
    try:
        import tvm  # noqa: F401
        from tvm import tirx  # noqa: F401
    finally:
        if hidden in sys.meta_path:
            sys.meta_path.remove(hidden)


_import_tvm()

"""What native code imports: TVM, but not PyTorch, which TVM would import wherever it is installed."""

import subprocess
import sys

SCRIPT = """
import sys
from myia_relay import relay

@relay
def f(x):
    return x * 2.0

assert f(1.5) == 3.0 and "tvm" in sys.modules
assert "torch" not in sys.modules
import torch
assert torch.here and len([f for f in sys.meta_path if type(f).__module__.startswith("myia_relay")]) == 0
"""


def test_pytorch_is_not_imported_with_tvm(tmp_path, monkeypatch):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("here = True\n")
    (tmp_path / "script.py").write_text(SCRIPT)  # its folder comes first on the path, and has a package of that name
    monkeypatch.setenv("MYIA_RELAY_CACHE", "0")
    done = subprocess.run([sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr

"""Functions whose source is in no file: `python -c`, the prompt, the standard input, cells, doctests, archives."""

import os
import select
import subprocess
import sys
import zipfile

import pytest

from tests.unit.cache.cache_util import ROOT, python

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "dumb", "NO_COLOR": "1"}

PROGRAM = '''
import dataclasses, doctest, functools, sys, typing
from myia_relay import relay

def refused(f, *args):
    try:
        f(*args)
    except SyntaxError as error:
        return str(error)

@relay(executor="python")
def asserted(x):
    """
    >>> @relay(executor="python")
    ... def f(x):
    ...     return x * 3.0
    >>> f(2.0)
    6.0
    """
    assert x > 0.0, "not positive"
    return x * 2.0

@dataclasses.dataclass(frozen=True)
class Own:
    x: float
    def __eq__(self, other):
        return True

@dataclasses.dataclass(frozen=True)
class Made:
    x: float

class Named(typing.NamedTuple):
    x: float
    y: float = 5.0

@relay(executor="python")
def compared(a, b):
    return Own(a) == Own(b), Made(a) == Made(b), Made(a) == Made(a), Named(a).y, Named(a) == Named(b)

print(asserted(2.0), compared(1.0, 2.0) == compared.__wrapped__(1.0, 2.0) == (True, False, True, 5.0, False))
try:
    print(asserted(-1.0))
except AssertionError as error:
    print(error)
print(doctest.run_docstring_examples(asserted.__wrapped__, globals(), name="docs"))
# Same name, line, parameters, names and constants as `asserted`: only the operator is another one.
exec("\\n" * (asserted.__wrapped__.__code__.co_firstlineno - 1) +
     "@relay(executor='python')\\ndef asserted(x):\\n    assert x > 0.0, 'not positive'\\n    return x / 2.0", globals())
print("cannot be found (it was made by exec" in (refused(asserted, 2.0) or ""))
'''


@pytest.mark.sampled(2)
@pytest.mark.parametrize("flag, negative", [("-B", "not positive"), ("-OO", "-2.0")])
def test_programs_of_c(flag, negative):
    done = subprocess.run([sys.executable, flag, "-c", PROGRAM], env=ENVIRONMENT, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["4.0 True", negative, "None", "True"], done.stderr


def test_standard_input(tmp_path):
    text = "from myia_relay import relay\n@relay(executor='python')\ndef f(x):\n    return x + 1.0\nprint(f(1.0))\n"
    (tmp_path / "program.py").write_text(text)
    with open(tmp_path / "program.py") as file:
        done = subprocess.run([sys.executable], stdin=file, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.stdout == "2.0\n", done.stderr
    done = subprocess.run([sys.executable], input=text, env=ENVIRONMENT, capture_output=True, text=True)
    assert "it was read from a pipe" in done.stderr and "put the function into a file" in done.stderr


TYPED = [
    "from myia_relay import relay",
    "def f(x):",
    "    return x + 2.0",
    "",
    "def f(x):",
    "    return missing - x",
    "",
    "relay(f, executor='python')(1.0)",
    "class A:",
    "    def m(self, x):",
    "        return x * 7.0",
    "    def other(self):",
    "        return 1.0",
    "",
    "relay(A().m, executor='python')(2.0) + relay(lambda x: x - 4.0, executor='python')(8.5)",
    "exit()",
]


def test_the_prompt(tmp_path):
    pty = pytest.importorskip("pty")
    pytest.importorskip("readline")
    child, terminal = pty.fork()
    if child == 0:
        try:
            environment = {**ENVIRONMENT, "HOME": str(tmp_path)}
            os.execve(sys.executable, [sys.executable, "-q", "-i", "-c", "import readline"], environment)
        finally:
            os._exit(1)
    shown = ""
    try:
        for line in TYPED:
            until = len(shown)
            while not shown[until:].rstrip(" ").endswith((">>>", "...")):
                if not select.select([terminal], [], [], 120)[0]:
                    pytest.fail(f"the prompt says nothing after {shown!r}")
                shown += os.read(terminal, 4096).decode()
            os.write(terminal, line.encode() + b"\n")
    finally:
        os.close(terminal)
        os.waitpid(child, 0)
    # The second definition of f is meant, and its line is shown.
    assert "    return missing - x\r\n           ^^^^^^^\r\n" in shown, shown
    assert "\r\n18.5\r\n" in shown, shown


CELLS = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
def cell(text):
    return shell.run_cell(text, store_history=True).result
cell("from myia_relay import relay")
first = "@relay(executor='python')\\ndef f(x):\\n    return x * 2.0\\nf(3.0)"
answers = [cell(first), cell(first.replace("*", "-")), cell(first)]
cell("%%time\\n@relay(executor='python')\\ndef g(x):\\n    return x * 4.0\\n")
print(answers, cell("g(3.0)"))
"""


def test_cells_of_notebooks(tmp_path):
    assert python(CELLS, IPYTHONDIR=str(tmp_path)).splitlines()[-1] == "[6.0, 1.0, 6.0] 12.0"


MODULES = """
import sys
from myia_relay import relay, ParseError
sys.path.insert(0, sys.argv[1])
import only_bytes, zipped.module
sys.settrace(lambda *what: None)  # as coverage and debuggers do
print(relay(zipped.module.f, executor="python")(1.0))
sys.settrace(None)
try:
    relay(only_bytes.f)(1.0)
except ParseError as error:
    print(error.message)
"""


def test_archives_and_byte_code(tmp_path):
    import py_compile

    source = tmp_path / "only_bytes.py"
    source.write_text("from __future__ import annotations\ndef f(x: float) -> float:\n    return x + 1.0\n")
    py_compile.compile(str(source), cfile=str(tmp_path / "only_bytes.pyc"))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("zipped/__init__.py", "")
        archive.write(source, "zipped/module.py")
        archive.write(tmp_path / "only_bytes.pyc", "only_bytes.pyc")
    source.unlink()
    works, refused = python(MODULES, str(tmp_path / "a.zip")).splitlines()
    assert works == "2.0"
    assert "'f' cannot be found (there is no file" in refused and "keep the .py file" in refused

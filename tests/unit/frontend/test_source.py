"""Finding the source of a function: lambdas, methods, notebook cells, files that change, no source at all."""

import ast
import importlib.util
import linecache
import sys
from types import SimpleNamespace

import pytest

from myia_relay.frontend import parse
from myia_relay.utils.errors import ParseError
from myia_relay.utils.source import Loc, short_name

from . import lambdas
from .parsed_eval import evaluate

ON_ONE_LINE = [lambdas.f, lambdas.g, *lambdas.in_list, *lambdas.by_constant, *lambdas.by_order, *lambdas.same]


@pytest.mark.parametrize("k", range(len(ON_ONE_LINE)))
def test_lambdas_on_one_line(k):
    fn = ON_ONE_LINE[k]
    assert repr(evaluate(fn, 5)) == repr(fn(5))


def test_lambdas_that_capture():
    for fn in (*lambdas.captured, *lambdas.over_lines, *lambdas.outer(5)):
        assert evaluate(fn, 3) == fn(3)


def test_decorated_methods_and_private_names():
    method = lambdas.Thing.method.__wrapped__.__wrapped__
    assert evaluate(method, lambdas.Thing(), 1) == 4
    assert evaluate(lambdas.Thing.static, 1) == 5


def test_columns_count_characters():
    with pytest.raises(ParseError) as caught:
        parse(lambdas.unicode_text)
    source, carets = str(caught.value).splitlines()[2:4]
    assert source[carets.index("^") : carets.rindex("^") + 1] == '{"a", é}'


@pytest.mark.parametrize("make", ["exec", "eval"])
def test_no_source(make):
    scope = {}
    if make == "exec":
        exec("def nowhere(x):\n    return x", scope)
        fn = scope["nowhere"]
    else:
        fn = eval("lambda x: x")
    with pytest.raises(ParseError, match="exec, eval") as caught:
        parse(fn)
    assert caught.value.loc.line == 1


def test_notebook_cell():
    text = "y = 1\n\ndef cell(x):\n    return x + y\n"
    linecache.cache["<ipython-input-1>"] = (len(text), None, text.splitlines(True), "<ipython-input-1>")
    scope = {}
    exec(compile(text, "<ipython-input-1>", "exec"), scope)
    assert evaluate(scope["cell"], 2) == 3
    assert parse(scope["cell"]).origin.loc.line == 3


def test_a_cell_of_ipython_is_named_as_its_tracebacks_name_it(monkeypatch):
    """The names of files of ipykernel are temporary files, which say nothing to anybody."""
    loc = Loc("/tmp/ipykernel_17/42.py", 4, 0, 4, 1, "f")
    other = Loc("/tmp/other.py", 4, 0, 4, 1, "f")
    assert loc.render() == '  File "/tmp/ipykernel_17/42.py", line 4, column 1, in f'
    compiler = SimpleNamespace(format_code_name=lambda name: ("Cell", "In[3]") if "ipykernel" in name else None)
    shell = SimpleNamespace(compile=compiler)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert loc.render() == "  Cell In[3], line 4, column 1, in f"
    assert str(loc) == "Cell In[3]:4:1"
    assert short_name(loc.file) == "Cell In[3]"
    assert other.render() == '  File "/tmp/other.py", line 4, column 1, in f'
    assert short_name(other.file) == "other.py"
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))  # imported, not running
    assert str(loc) == "/tmp/ipykernel_17/42.py:4:1"


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "later",
    [
        "def fn(x):\n    return x + 2\n",
        "\n\ndef fn(x):\n    return x + 1\n",
        "def fn(x, y):\n    return x + 1\n",
        "def fn(x):\n    return x - 1\n",
        "def fn(x):\n    return 1 + x\n",
        "def fn(x):\n    return other(x + 1)\n",
        "def fn(x:\n",
        "",
    ],
)
def test_file_changed_since_import(tmp_path, later, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path = tmp_path / "changing.py"
    path.write_text("def fn(x):\n    return x + 1\n")
    module = load(path, "changing")
    path.write_text(later)
    with pytest.raises(ParseError, match="changed|does not parse|cannot be found"):
        parse(module.fn)


def test_inner_function_changed_since_import(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path = tmp_path / "changing_inside.py"
    text = "def fn(x):\n    def inner(y):\n        return y * 2\n    return inner(x)\n"
    path.write_text(text)
    module = load(path, "changing_inside")
    path.write_text(text.replace("*", "+"))
    with pytest.raises(ParseError, match="has changed since it was imported"):
        parse(module.fn)


ASSERTED = "def fn(x):\n    assert x > 0, 'no'\n    return x * 2\n"


@pytest.mark.parametrize("hook", [False, True])
def test_modules_that_pytest_rewrites(tmp_path, hook):
    from _pytest.assertion.rewrite import rewrite_asserts

    path = tmp_path / "rewritten.py"
    path.write_text(ASSERTED)
    module = ast.parse(ASSERTED)
    rewrite_asserts(module, ASSERTED.encode(), str(path), SimpleNamespace(getini=lambda name: hook))
    scope = {}
    exec(compile(module, str(path), "exec", dont_inherit=True), scope)
    assert "@pytest_ar" in scope["fn"].__code__.co_names
    assert evaluate(scope["fn"], 3) == 6
    path.write_text(ASSERTED.replace("x * 2", "x - 2"))
    exec(compile(module, str(path), "exec", dont_inherit=True), scope)
    with pytest.raises(ParseError, match="has changed since it was imported"):
        parse(scope["fn"])


def test_graph_is_kept_per_function():
    inner, other, _ = lambdas.outer(1)
    again, _, _ = lambdas.outer(1)
    assert parse(inner) is parse(inner)
    assert parse(inner) is not parse(again)
    assert parse(inner) is not parse(other)


def test_new_defaults_make_a_new_graph():
    def fn(x=1):
        return x

    graph = parse(fn)
    fn.__defaults__ = (2,)
    assert parse(fn) is not graph
    assert parse(fn).signature.defaults[0].value == 2

"""Modules of Relay text as Python sees them: `relay.parse_text`, `relay.from_json`, and `Module`.

A module is immutable. Its stages are computed when they are first needed: the tree as written, with graph bindings placed, its
types, its graphs.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..utils.compiling import compiling, once, once_property
from ..utils.debugging import debugging
from ..utils.errors import ParseError, TypeError_, nearest
from ..utils.raising import for_user
from . import json as relay_json
from .check.module import check
from .equality import equal, fingerprint
from .operators import OPERATORS
from .placement import placed
from .printer import print_module
from .span import SourceText
from .syntax.items import parse
from .tree import ModuleTree

if TYPE_CHECKING:
    from .check.checked import Checked


class Module(Mapping[str, Any]):
    """A module: definitions and types, checked.

    `module["f"]` is a function, of the same kind as a decorated one: it compiles on call, and can be differentiated, batched,
    looked into. `module["Cons"]` makes values of a data type. `str(module)` is its text, `module.to_json()` the same as JSON.
    Modules are equal if their texts are, up to the names of locals and the order of definitions.

    Args:
        tree: what was written.
        options: with which its functions are compiled, as of `relay(..)`.

    Attributes:
        tree: what was written.
        options: of its functions.

    >>> module = relay.parse_text("def @square(%x: float32) { %x * %x }")
    >>> list(module), module == relay.parse_text("def @square(%y: float32) { multiply(%y, %y) }")
    (['square'], True)
    """

    def __init__(self, tree: ModuleTree, **options: Any):
        self.tree, self.options = tree, options
        self._members: dict[str, Any] = {}

    @once_property
    def placed(self) -> ModuleTree:
        """The tree with graph bindings where they are computed."""
        return placed(self.tree)

    @once_property
    def checked(self) -> Checked:
        """The types; their nodes are those of `placed`."""
        return check(self.placed)

    @functools.cached_property
    def text(self) -> str:
        """The text, as `str` gives it."""
        return print_module(self.tree)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        names = [f"@{name}" for name in self.tree.definitions]
        names += [f"type {name}" for name in self.tree.types]
        shown = ", ".join(names[:8]) + (f", and {len(names) - 8} more" if len(names) > 8 else "")
        return f"<relay module: {shown or 'empty'}>"

    def _repr_html_(self) -> str:
        from .highlight import html

        return html(self.text)

    def to_json(self) -> str:
        """The module as JSON, which `relay.from_json` reads."""
        return relay_json.to_json(parse(self.text))  # with the names of the text

    # ------------------------------------------------ as a mapping

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """A definition or a constructor.

        Raises:
            KeyError: there is none of this name.
        """
        found = self._members.get(name)
        if found is None:
            if name not in self:
                known = [*self.tree.definitions, *self.tree.constructors]
                raise KeyError(f"the module has no definition or constructor '{name}'{nearest(str(name), known)}")
            run = importlib.import_module(".run", __package__)
            make = run.function if name in self.tree.definitions else run.constructor
            with compiling():
                found = self._members.setdefault(name, make(self, name))
        return found

    def __relay_item__(self, name: str) -> Callable[..., Any]:
        """A definition or a constructor, where compiled code asks for it."""
        return self[name]

    def __relay_description__(self) -> list:
        """What it is, in any process."""
        return ["module of text", self.text, sorted(self.options.items())]

    def with_executor(self, executor: str) -> Module:
        """The same module, whose functions run on an executor: "native", "python" or "interpreter"."""
        made = Module(self.tree, **{**self.options, "executor": executor})
        vars(made).update({k: v for k, v in vars(self).items() if k not in ("options", "_members")})
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self.tree.definitions)

    def __len__(self) -> int:
        return len(self.tree.definitions)

    def __contains__(self, name: object) -> bool:
        return name in self.tree.definitions or name in self.tree.constructors

    # ------------------------------------------------ as a value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Module):
            return NotImplemented
        return self is other or equal(self.tree, other.tree)

    def __hash__(self) -> int:
        return self._hash

    @functools.cached_property
    def _hash(self) -> int:
        return fingerprint(self.tree)

    def __reduce__(self):
        return from_json, (self.to_json(),)

    def __copy__(self) -> Module:
        return self

    def __deepcopy__(self, memo: dict) -> Module:
        return self


def parse_text(text: str, prelude: bool = False, name: str = "<text>") -> Module:
    """Read a module in the Relay text format, and check its types.

    Args:
        text: the text.
        prelude: whether to add the prelude: lists, options, trees and their functions.
        name: what errors call the text; the name of its file, if it is from one.

    Returns:
        The module.

    Raises:
        ParseError: the text is not Relay.
        NameError_: a name means nothing.
        TypeError_: a definition has no type, or not the one that it declares.
        ShapeError: shapes do not fit.

    >>> print(relay.parse_text("def @main(%x: int32) { let %y = %x + 1; %y * %y }"))
    #[version = "0.0.5"]
    def @main(%x: int32) {
      let %y = add(%x, 1);
      multiply(%y, %y)
    }
    <BLANKLINE>
    """  # noqa: DOC501 (for_user makes the exception)
    if not isinstance(text, str):
        raise TypeError_(f"relay.parse_text(text) takes a text, not {type(text).__name__}")
    try:
        base = prelude_tree() if prelude else None
        module = Module(parse(SourceText(text, name), OPERATORS, base))
        module.checked  # noqa: B018  every definition is checked, called or not
    except Exception as error:
        raise for_user(error, debugging()) from None
    return module


@once
def prelude_tree() -> ModuleTree:
    """The tree of the prelude."""
    text = (Path(__file__).parent / "prelude.relay").read_text("utf-8")
    return parse(SourceText(text, "<prelude>"), OPERATORS)


def from_json(text: str | bytes) -> Module:
    """Read a module that `module.to_json()` wrote, and check it.

    Args:
        text: the JSON.

    Returns:
        The module.

    Raises:
        ParseError: it is no JSON of a module.
        NameError_: a name means nothing.
        TypeError_: a definition has no type.

    >>> module = relay.parse_text("def @main(%x: int32) { %x + 1 }")
    >>> relay.from_json(module.to_json()) == module
    True
    """  # noqa: DOC501 (for_user makes the exception)
    try:
        tree = relay_json.from_json(text)
        again = parse(SourceText(print_module(tree), "<json>"), OPERATORS)
        if not equal(tree, again):
            raise ParseError(
                "the JSON is not that of a module: a local is bound twice, or used where it is not visible"
            )
        module = Module(again)
        module.checked  # noqa: B018
    except Exception as error:
        raise for_user(error, debugging()) from None
    return module

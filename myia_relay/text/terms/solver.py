"""Type relations, in a queue with dependencies.

A relation holds between types of arguments, attributes and the type of a result (J. Roesch et al., "Relay: A High-Level
Compiler for Deep Learning", 2019, section 3.2). A rule is tried as soon as the relation comes up. It finds what follows from
what is known, and says what it waits for; it is tried again when that is found. A rule may be tried any number of times,
so it must find the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...abstract.dims import Dim
from ...utils.errors import CompileError, InternalError, ShapeError, TypeError_
from ..span import Span, loc
from .show import show
from .terms import (
    ANY,
    BASE,
    POISON,
    SHAPE,
    SIZE,
    TYPE,
    Rigid,
    TensorTerm,
    TupleTerm,
    Unknown,
    prune,
    tensor,
    tuple_term,
    unknowns,
)
from .unify import Clash, Unifier


class Waiting(Exception):
    """A rule cannot go on before something is found."""


class TypeRelation:
    """A relation between types, at a place of a program.

    Attributes:
        name: what errors call it: the operator.
        rule: finds what follows from what is known.
        args: the types of the arguments.
        result: the type of the result.
        attrs: the attributes.
        span: the place.
        cause: for one that an instance of a polymorphic function brings with it, the place in that function.
        done: whether nothing more will follow from it: it holds, is wrong, or belongs to a scheme.
        names: names of the arguments, for errors.
        constants: the arguments that are literals, as numbers; None for others.
        family: by which name it can be declared: "Broadcast".
        notes: makes further lines of an error.
        waits: what it waited for when it was tried last: unknowns, and parameters that would have to be something specific.
    """

    __slots__ = (
        "args",
        "attrs",
        "cause",
        "constants",
        "done",
        "family",
        "name",
        "names",
        "notes",
        "result",
        "rule",
        "span",
        "waits",
    )

    def __init__(
        self,
        name: str,
        rule: Callable[[Facts], None],
        args: tuple[Any, ...],
        result: Any,
        attrs: Mapping[str, Any] | None = None,
        span: Span | None = None,
        names: tuple[str, ...] = (),
        family: str = "",
        notes: Callable[[], list] | None = None,
    ):
        self.name, self.rule, self.args, self.result = name, rule, args, result
        self.attrs, self.span, self.names, self.notes = attrs or {}, span, names, notes
        self.family = family or name
        self.cause: Span | None = None
        self.constants: tuple[Any, ...] = ()
        self.done = False
        self.waits: list[Any] = []

    def copied(self, change: Callable[[Any], Any], span: Span | None) -> TypeRelation:
        """This relation between other types, at another place."""
        args, result = change(self.args), change(self.result)
        out = TypeRelation(self.name, self.rule, args, result, self.attrs, span, self.names, self.family)
        out.cause, out.constants = self.cause or self.span, self.constants
        return out


class Solver:
    """The queue of relations.

    Attributes:
        unifier: makes types equal.
        level: how many generalising bindings stand around what is being inferred.
        pending: for each of these levels the relations that came up there and may not hold yet.
        demands: for each of these levels, of which dtypes what is demanded already.
        given: relations that hold by declaration: name, types of the arguments, type of the result.
        report: takes the errors.
    """

    def __init__(self, report: Callable[[CompileError], None]):
        self.unifier = Unifier()
        self.level = 0
        self.pending: list[list[TypeRelation]] = [[]]
        self.demands: list[dict[Any, TypeRelation]] = [{}]
        self.given: list[tuple[str, tuple[Any, ...]]] = []
        self.report = report

    def fresh(self, kind: str = TYPE) -> Unknown:
        """A new unknown of the present level."""
        return Unknown(kind, self.level)

    def fresh_tensor(self) -> TensorTerm:
        """A tensor of which nothing is known."""
        return TensorTerm(Unknown(SHAPE, self.level), Unknown(BASE, self.level))

    def add(self, relation: TypeRelation) -> None:
        """Demand a relation."""
        self.attempt(relation)
        if not relation.done:
            self.pending[-1].append(relation)
        if self.unifier.woken:
            self.run()

    def demand(self, relation: TypeRelation, dtype: Any, accepted: tuple[str, ...], words: str) -> None:
        """Demand of a dtype that is not known yet that it is one of some: a relation of its own, once for all that demand it."""
        demands = self.demands[-1]
        key = (id(dtype), accepted)
        if key in demands:
            return
        attrs = {"accepted": accepted, "words": words}
        part = TypeRelation(relation.name, _one_of, (TensorTerm((), dtype),), POISON, attrs, relation.span)
        part.cause, part.waits = relation.cause, [dtype]
        demands[key] = part  # keeps the dtype alive, so that its id stays its own
        self.pending[-1].append(part)
        if isinstance(dtype, Unknown):
            if dtype.waiting is None:
                dtype.waiting = {}
            dtype.waiting[part] = None

    def enter(self) -> None:
        """Begin what will be generalised."""
        self.level += 1
        self.pending.append([])
        self.demands.append({})

    def leave(self) -> list[TypeRelation]:
        """End what will be generalised; the relations that came up there."""
        self.level -= 1
        self.demands.pop()
        return self.pending.pop()

    def run(self) -> None:
        """Try the relations again for which something was found."""
        woken = self.unifier.woken
        while woken:
            relation = woken.pop()
            if not relation.done:
                self.attempt(relation)

    def unify(self, left: Any, right: Any) -> Clash | None:
        """Make two types equal, and try the relations that waited for what this finds."""
        clash = self.unifier.unify(left, right)
        if self.unifier.woken:
            self.run()
        return clash

    def attempt(self, relation: TypeRelation) -> None:
        """Try a relation once; register for what it waits for.

        Raises:
            InternalError: a rule stops without saying what it waits for.
        """
        facts = Facts(self, relation)
        try:
            if not self.given or not facts.holds_by_declaration():
                relation.rule(facts)
        except Waiting:
            if not facts.waits:
                raise InternalError("solver", f"the rule of {relation.name} waits for nothing") from None
        except Poisoned:
            relation.done = True
            self.unifier.unify(relation.result, POISON)
            return
        except CompileError as error:
            relation.done = True
            self.unifier.unify(relation.result, POISON)
            self.report(self._placed(error, relation))
            return
        relation.waits = facts.waits
        if not facts.waits:
            relation.done = True
            return
        for x in facts.waits:
            if isinstance(x, Unknown):
                if x.waiting is None:
                    x.waiting = {}
                x.waiting[relation] = None

    def _placed(self, error: CompileError, relation: TypeRelation) -> CompileError:
        error.at(loc(relation.span))
        if relation.cause is not None and relation.cause is not relation.span:
            error.notes.append(("what was called needs it here", relation.cause.loc))
        if relation.notes is not None:
            error.notes.extend(relation.notes())
        return error


class Poisoned(Exception):
    """A rule meets the type of an expression with an error."""


class Facts:
    """What is known in one attempt at a relation, and what is found.

    The methods raise `Waiting` where what they are asked for is not known yet, and note for what. A rule that can go on
    without it catches that.

    Attributes:
        waits: the unknowns that the rule waits for, and parameters that would have to be something specific.
    """

    __slots__ = ("relation", "solver", "waits")

    def __init__(self, solver: Solver, relation: TypeRelation):
        self.solver, self.relation = solver, relation
        self.waits: list[Any] = []

    def attr(self, name: str) -> Any:
        """An attribute."""
        return self.relation.attrs.get(name)

    @property
    def count(self) -> int:
        """How many arguments there are."""
        return len(self.relation.args)

    def constant(self, index: int) -> Any:
        """The value of an argument that is a literal; None of any other."""
        constants = self.relation.constants
        return constants[index] if index < len(constants) else None

    @property
    def name(self) -> str:
        """The operator."""
        return self.relation.name

    def wait(self, x: Any) -> Waiting:
        """Note that an unknown, or a parameter, stands in the way."""
        self.waits.append(x)
        return Waiting()

    # What the arguments are.

    def arg(self, index: int) -> Any:
        """The type of an argument, as far as it is known.

        Raises:
            Poisoned: it is that of an expression with an error.
        """
        t = prune(self.relation.args[index])
        if t is POISON:
            raise Poisoned
        return t

    def called(self, index: int) -> str:
        """What errors call an argument."""
        names = self.relation.names
        return f"'{names[index]}'" if index < len(names) else f"argument {index + 1}"

    def tensor(self, index: int) -> TensorTerm:
        """An argument as a tensor; what is unknown becomes one."""
        return self.as_tensor(self.arg(index), self.called(index))

    def as_tensor(self, t: Any, called: str) -> TensorTerm:
        """A type as that of a tensor; what is unknown becomes one.

        Args:
            t: the type.
            called: what errors call it.

        Raises:
            Poisoned: it is that of an expression with an error.
            TypeError_: it is something else.
        """
        t = prune(t)
        if t.__class__ is TensorTerm:
            return t
        if t.__class__ is Unknown:
            out = TensorTerm(Unknown(SHAPE, t.level), Unknown(BASE, t.level))
            self.solver.unifier.bind(t, out)
            return out
        if t is POISON:
            raise Poisoned
        why = ""
        if isinstance(t, Rigid):
            given = ", ".join(map(show, self.relation.args))
            why = f", which is declared and so stands for every type; it is applied to ({given})"
        raise TypeError_(f"{self.name} takes a tensor, and {called} is {show(t)}{why}")

    def tensors(self, index: int) -> list[TensorTerm]:
        """An argument as a tuple of tensors.

        Raises:
            TypeError_: it is something else.
            Waiting: its number of elements is not known.
        """
        t = self.arg(index)
        if isinstance(t, Unknown):
            raise self.wait(t)
        if not isinstance(t, TupleTerm):
            raise TypeError_(f"{self.name} takes a tuple of tensors, and this is {show(t)}; write it as (%a, %b)")
        return [self.as_tensor(e, f"element {k} of the tuple") for k, e in enumerate(t.elems)]

    def shape(self, t: TensorTerm) -> tuple[Any, ...]:
        """The sizes of a tensor, each as far as it is known.

        Raises:
            Waiting: their number is not known.
        """
        shape = prune(t.shape)
        if isinstance(shape, tuple):
            return tuple(map(prune, shape))
        raise self.wait(shape)

    def rank(self, t: TensorTerm, *ranks: int, what: str = "") -> tuple[Any, ...]:
        """The sizes of a tensor that must have a number of axes, or one of several.

        A tensor of which nothing is known becomes one where only one number of axes is possible.

        Args:
            t: the tensor.
            ranks: the numbers of axes.
            what: what errors call it.

        Raises:
            ShapeError: it has another.
        """
        shape = prune(t.shape)
        if isinstance(shape, Unknown) and len(ranks) == 1:
            shape = tuple(Unknown(SIZE, shape.level) for _ in range(ranks[0]))
            self.solver.unifier.unify(t.shape, shape)
        sizes = self.shape(t)
        if len(sizes) not in ranks:
            wanted = " or ".join(map(str, ranks))
            axes = "axis" if ranks == (1,) else "axes"
            raise ShapeError(f"{self.name}: {what or 'its argument'} has {wanted} {axes}, and this is {show(t)}")
        return sizes

    def dtype(self, t: TensorTerm) -> str:
        """The dtype of a tensor.

        Raises:
            Waiting: it is not known.
        """
        dtype = prune(t.dtype)
        if isinstance(dtype, str):
            return dtype
        raise self.wait(dtype)

    def size(self, size: Any) -> Any:
        """A size: an int, `ANY` or a polynomial.

        Raises:
            Waiting: it is not known.
        """
        size = prune(size)
        if isinstance(size, Unknown):
            raise self.wait(size)
        return size

    def known(self, size: Any) -> bool:
        """Whether a size is known; notes that it is waited for where it is not."""
        size = prune(size)
        if isinstance(size, Unknown):
            self.waits.append(size)
            return False
        return True

    def compute(self, function: Callable[..., Any], *sizes: Any) -> Any:
        """A size that follows from others: `ANY` where one of them is, None where one (or None itself) is not known yet."""
        sizes = tuple(map(prune, sizes))
        if any(s is None for s in sizes):
            return None
        found = [s for s in sizes if isinstance(s, Unknown)]
        if found:
            self.waits.extend(found)
            return None
        if any(s is ANY for s in sizes):
            return ANY
        return function(*sizes)

    # What follows.

    def require_dtype(self, t: TensorTerm, accepted: tuple[str, ...], words: str) -> None:
        """Demand one of some dtypes; a declared parameter is taken at its word, and checked where it becomes a dtype.

        Args:
            t: the tensor.
            accepted: names of dtypes.
            words: what they are: "floats".

        Raises:
            TypeError_: it has another.
        """
        dtype = prune(t.dtype)
        if isinstance(dtype, str):
            if dtype not in accepted:
                raise TypeError_(f"{self.name} takes {words}, and this is {show(t)}{_cast(accepted)}")
        else:
            self.solver.demand(self.relation, dtype, accepted, words)

    def equal(self, left: Any, right: Any, message: Callable[[Clash], CompileError] | None = None) -> None:
        """Demand that two types, shapes, sizes or dtypes are equal.

        Raises:
            CompileError: they cannot be.
        """
        clash = self.solver.unifier.unify(left, right)
        if clash is not None:
            raise (message or self._clash)(clash)

    def _clash(self, clash: Clash) -> CompileError:
        kind = ShapeError if clash.of_shapes else TypeError_
        if clash.reason == "dtype":
            return kind(
                f"{self.name}: the dtypes {show(clash.left)} and {show(clash.right)} differ; nothing is converted by "
                f'itself: write cast(.., dtype="{show(clash.right)}")'
            )
        return kind(f"{self.name}: {show(clash.left)} and {show(clash.right)} do not agree")

    def same_dtype(self, *tensors: TensorTerm) -> Any:
        """Demand that tensors have one dtype, and return it.

        Raises:
            TypeError_: they differ.
        """
        first = tensors[0]
        for other in tensors[1:]:
            if self.solver.unifier.unify(first.dtype, other.dtype) is not None:
                a, b = prune(first.dtype), prune(other.dtype)
                dtype = show(a if isinstance(a, str) else b)
                number = () in (prune(first.shape), prune(other.shape)) and dtype in _LITERALS
                literal = f", or a literal of that dtype ({_LITERALS[dtype]})" if number else ""
                raise TypeError_(
                    f"{self.name} of {show(first)} and {show(other)}: their dtypes differ, and nothing is converted "
                    f'by itself; write cast(.., dtype="{dtype}"){literal}'
                )
        return prune(first.dtype)

    def same_size(self, left: Any, right: Any, message: str) -> None:
        """Demand that two sizes are equal.

        Raises:
            ShapeError: they cannot be.
        """
        if self.solver.unifier.unify(left, right) is not None:
            raise ShapeError(message)

    def gives(self, result: Any) -> None:
        """Say what is known of the type of the result; None stands for a size that is not known yet.

        Raises:
            TypeError_: the result is used as something else.
            ShapeError: as a tensor of another shape.
        """
        wanted = self.relation.result
        clash = self.solver.unifier.unify(wanted, self._filled(result, prune(wanted)))
        if clash is not None:
            kind = ShapeError if clash.of_shapes else TypeError_
            raise kind(f"the result of {self.name} is {show(result)}, and {show(wanted)} is needed here")

    def gives_tensor(self, shape: Any, dtype: Any) -> None:
        """Say what is known of a result that is a tensor."""
        self.gives(TensorTerm(shape, dtype))

    def _filled(self, result: Any, wanted: Any) -> Any:
        """A type with what is known of the result in place of None."""
        if isinstance(result, TensorTerm):
            shape, have = result.shape, ()
            if isinstance(wanted, TensorTerm) and isinstance(prune(wanted.shape), tuple):
                have = prune(wanted.shape)
            if isinstance(shape, tuple) and any(s is None for s in shape):
                if len(have) != len(shape):
                    have = tuple(Unknown(SIZE, self._level()) for _ in shape)
                shape = tuple(h if s is None else s for s, h in zip(shape, have, strict=True))
            return tensor(shape, result.dtype)
        if isinstance(result, TupleTerm):
            have = wanted.elems if isinstance(wanted, TupleTerm) else ()
            if len(have) != len(result.elems):
                have = (None,) * len(result.elems)
            return tuple_term(self._filled(r, prune(h)) for r, h in zip(result.elems, have, strict=True))
        return result

    def _level(self) -> int:
        """The level of an unknown that is part of the result."""
        for x in unknowns(self.relation.result):
            return x.level
        return self.solver.level

    def holds_by_declaration(self) -> bool:
        """Whether the relation is one that was declared; then its result is the declared one."""
        for name, types in self.solver.given:
            if (
                name == self.relation.family
                and len(types) == len(self.relation.args) + 1
                and all(map(identical, types[:-1], self.relation.args))
            ):
                self.gives(types[-1])
                return True
        return False


def _one_of(facts: Facts) -> None:
    """A dtype is one of some."""
    t = facts.tensor(0)
    dtype = prune(t.dtype)
    if isinstance(dtype, str):
        facts.require_dtype(t, facts.attr("accepted"), facts.attr("words"))
    else:
        facts.waits.append(dtype)


def identical(a: Any, b: Any) -> bool:
    """Whether two types are equal without anything having to be found."""
    a, b = prune(a), prune(b)
    if a is b:
        return True
    if isinstance(a, TensorTerm) and isinstance(b, TensorTerm):
        return identical(a.shape, b.shape) and identical(a.dtype, b.dtype)
    if isinstance(a, TupleTerm) and isinstance(b, TupleTerm):
        return identical(a.elems, b.elems)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(identical, a, b))
    return isinstance(a, int | Dim | str) and a.__class__ is b.__class__ and a == b


_LITERALS = {
    "int32": "1",
    "float32": "1f",
    "float64": "1f64",
    "float16": "1f16",
    "int64": "1i64",
    "int8": "1i8",
    "uint8": "1u8",
}


def _cast(accepted: tuple[str, ...]) -> str:
    return '; convert it with cast(.., dtype="float32")' if "float32" in accepted and "int32" not in accepted else ""


__all__ = ["Facts", "Poisoned", "TypeRelation", "Solver", "Waiting", "identical"]

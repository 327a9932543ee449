"""The partial evaluator: it runs a function on what is known, and writes code for the rest.

Relay's (2019 paper, section 4.3; P. Thiemann and D. Dussart, "Partial evaluation for higher-order languages with state", 1996):
online, with partially static values, a store of what references hold, and residual code in A-normal form, so that effects
are neither repeated nor dropped nor reordered.

*Unfolding.* A call of a known function is unfolded. A recursive call is unfolded as long as the control that leads to it is
static. Where it depends on a dynamic decision, the unfolding that it would repeat is taken back, and becomes a call in residual
code: a recursion either runs to its end at compile time, or stays as it is. What has been done is on a trail, as in a Prolog
machine, and is undone from there. A limit on the number of unfoldings bounds what never ends, or is too long.

*The store.* A reference that only the evaluator knows exists at compile time alone. When it is lifted, a `ref` of what it holds is
emitted, and reads and writes from then on; what it holds stays known until something unknown may have written to it.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ...tree import (
    Arm,
    CallExpr,
    ConstructorName,
    ConstructorPattern,
    Expression,
    Function,
    GlobalVar,
    IfExpr,
    Literal,
    Local,
    LocalVar,
    MatchExpr,
    ModuleTree,
    OperatorName,
    Param,
    PatternExpr,
    Projection,
    RefNew,
    RefRead,
    RefWrite,
    Statement,
    TensorConstant,
    TupleExpr,
    TuplePattern,
    VariablePattern,
)
from ..common.effects import EffectAnalysis
from ..common.folding import fold
from ..common.keys import atom_key
from ..common.normal import result, statements
from ..common.rewriting import is_marked
from .residual import ROOT, ResidualCode
from .values import (
    Dynamic,
    Environment,
    KnownCell,
    KnownClosure,
    KnownConstant,
    KnownData,
    KnownName,
    KnownTuple,
    PartialValue,
    Residual,
    Slot,
)


@dataclass(eq=False, slots=True)
class Activation:
    """An unfolding in progress.

    Attributes:
        function: what is unfolded.
        depth: that of the block in which it was called.
        root: whether it is no unfolding, but residual code for the function itself.
    """

    function: Function
    depth: int
    root: bool = False


class Unwind(Exception):
    """An unfolding is taken back."""

    def __init__(self, activation: Activation):
        self.activation = activation


class PartialEvaluator(ResidualCode):
    """Evaluates the definitions of a module.

    Args:
        tree: the module, in A-normal form.
        effects: its effects.
        limit: how many calls are unfolded for one definition.
    """

    def __init__(self, tree: ModuleTree, effects: EffectAnalysis, limit: int):
        super().__init__()
        self.tree, self.effects, self.limit = tree, effects, limit
        self.stack: list[Activation] = []
        self.active: defaultdict[Function, list[Activation]] = defaultdict(list)
        self.failed: set = set()
        self.left = limit
        self.unfolds = True

    def definition(self, function: Function) -> Function:
        """A definition, evaluated on arguments of which nothing is known."""
        self.block, self.store, self.trail = Residual(), {}, []
        self.left, self.unfolds, self.cells = self.limit, True, 0
        env = Environment(None, True)
        for p in function.params:
            env.values[p.local] = Dynamic(LocalVar(p.local, span=p.span))
        with self.activation(Activation(function, 0, root=True)):
            last = self.lift(self.evaluate(function.body, env))
        return replace(function, body=self.block.finished(last))

    # ------------------------------------------------------------ evaluation

    def evaluate(self, block: Expression, env: Environment) -> PartialValue:
        """The value of a block; what cannot be computed is emitted."""
        for s in statements(block):
            if isinstance(s.value, Function):
                env.values[s.local] = self.closure(s.value, env, s.local.name)
            else:
                env.values[s.local] = self.operation(s.value, env, s)
        return self.operation(result(block), env, None)

    def operation(self, op: Expression, env: Environment, s: Statement | None) -> PartialValue:
        """The value of an operation, which a statement binds."""
        match op:
            case CallExpr():
                return self.call(op, env, s)
            case Function():
                return self.closure(op, env, "f")
            case IfExpr():
                condition = self.atom(op.condition, env)
                if isinstance(condition, KnownConstant) and isinstance(condition.atom, Literal):
                    return self.evaluate(op.then if condition.atom.value else op.otherwise, env)
                return self.branch(op, env, s)
            case MatchExpr():
                return self.match(op, env, s)
            case TupleExpr(fields=fields) if fields:
                return KnownTuple(self.slot(), tuple(self.atom(x, env) for x in fields))
            case Projection():
                value = self.atom(op.tuple, env)
                if isinstance(value, KnownTuple):
                    return value.fields[op.index]
                return self.emit(replace(op, tuple=self.lift(value)), s, env)
            case RefNew():
                cell = KnownCell(self.slot(), self.atom(op.value, env), s.local.name if s else "r", has_cells=True)
                self.write(cell, cell.initial)
                self.cells += 1
                return cell
            case RefRead():
                return self.read(op, env, s)
            case RefWrite():
                ref, value = self.atom(op.ref, env), self.atom(op.value, env)
                if isinstance(ref, KnownCell) and ref.lifted is None:
                    self.write(ref, value)
                    return self.unit()
                self.emit(replace(op, ref=self.lift(ref), value=self.lift(value)), s, env)
                if isinstance(ref, KnownCell):
                    self.write(ref, value)
                else:
                    self.forget()
                return self.unit()
        return self.atom(op, env)

    def atom(self, x: Expression, env: Environment) -> PartialValue:
        """The value of an atom."""
        match x:
            case LocalVar():
                return env[x.local]
            case Literal() | TensorConstant():
                return KnownConstant(x)
            case ConstructorName():
                _, constructor = self.tree.constructors[x.name]
                if not constructor.fields:
                    return KnownData(Slot(self.block), x.name, (), lifted=(x, ROOT), has_cells=False)
                return KnownName(x)
            case TupleExpr():
                return self.unit()
        return KnownName(x)

    def unit(self) -> PartialValue:
        """The value ()."""
        return KnownTuple(Slot(self.block), (), lifted=(TupleExpr(()), ROOT), has_cells=False)

    def closure(self, function: Function, env: Environment, name: str) -> KnownClosure:
        """A function as a value."""
        return KnownClosure(self.slot(), function, env, name)

    def call(self, op: CallExpr, env: Environment, s: Statement | None) -> PartialValue:
        """The value of a call."""
        args = tuple(self.atom(a, env) for a in op.args)
        callee = self.atom(op.callee, env)
        if isinstance(callee, KnownName):
            if isinstance(callee.atom, OperatorName):
                return self.operator(op, callee.atom, args, s, env)
            if isinstance(callee.atom, ConstructorName):
                return KnownData(self.slot(), callee.atom.name, args)
        function, around = None, None
        if isinstance(callee, KnownClosure):
            function, around = callee.function, callee.environment
        elif isinstance(callee, KnownName) and isinstance(callee.atom, GlobalVar):
            function = self.tree.definitions[callee.atom.name].function
        if function is not None and len(function.params) == len(args):
            value = self.unfolded(function, around, args)
            if value is not None:
                return value
        writes = self.effects.of(op).writes
        keep = env.annotations and isinstance(callee, KnownName)
        new = replace(
            op, callee=self.lift(callee), args=tuple(map(self.lift, args)), type_args=op.type_args if keep else ()
        )
        value = self.emit(new, s, env)
        if writes:
            self.forget()
        return value

    def operator(
        self, op: CallExpr, name: OperatorName, args: tuple[PartialValue, ...], s: Statement | None, env: Environment
    ) -> PartialValue:
        """The value of an application of an operator."""
        known = [self.constant(a) for a in args]
        if all(x is not None for x in known):
            value = fold(name.name, tuple(known), op.attributes, op.span)  # type: ignore[arg-type]
            if value is not None:
                return self.unfold_constant(value)
        return self.emit(replace(op, callee=name, args=tuple(map(self.lift, args))), s, env)

    def unfold_constant(self, value: Expression) -> PartialValue:
        """A constant expression, a tuple perhaps, as a value."""
        if isinstance(value, TupleExpr) and value.fields:
            return KnownTuple(self.slot(), tuple(map(self.unfold_constant, value.fields)), has_cells=False)
        return KnownConstant(value) if not isinstance(value, TupleExpr) else self.unit()

    def constant(self, value: PartialValue) -> Expression | None:
        """A value as a constant expression, if everything is known of it."""
        if isinstance(value, KnownConstant):
            return value.atom
        if isinstance(value, KnownTuple):
            fields = [self.constant(f) for f in value.fields]
            return TupleExpr(tuple(fields)) if all(f is not None for f in fields) else None  # type: ignore[arg-type]
        return None

    # ------------------------------------------------------------ unfolding

    def unfolded(
        self, function: Function, around: Environment | None, args: tuple[PartialValue, ...]
    ) -> PartialValue | None:
        """The value of a call of a known function; None if it has to be a call in residual code.

        Raises:
            Unwind: an unfolding in progress has to be taken back.
        """
        if not self.unfolds or is_marked(function, "Primitive"):
            return None
        running = self.active[function]
        if running:
            if running[-1].root:
                return None
            if self.block.depth > running[-1].depth:
                raise Unwind(running[-1])
        key = (function, tuple(signature(a) for a in args))
        if key in self.failed:
            return None
        if self.left <= 0:
            outermost = next((a for a in self.stack if not a.root), None)
            self.left = self.limit // 10
            if outermost is None:
                return None
            raise Unwind(outermost)
        self.left -= 1
        activation = Activation(function, self.block.depth)
        env = Environment(around, (around is None or around.annotations) and not function.type_params)
        for p, a in zip(function.params, args, strict=True):
            env.values[p.local] = a
        mark, block, length, store = len(self.trail), self.block, len(self.block.items), self.store
        try:
            with self.activation(activation):
                return self.evaluate(function.body, env)
        except Unwind as unwind:
            if unwind.activation is not activation:
                raise
        while len(self.trail) > mark:
            self.trail.pop()()
        self.block, self.store = block, store
        del block.items[length:]
        self.failed.add(key)
        return None

    @contextmanager
    def activation(self, activation: Activation):
        """While a function is unfolded, or residual code is written for it."""
        self.stack.append(activation)
        self.active[activation.function].append(activation)
        try:
            yield
        finally:
            self.stack.pop()
            self.active[activation.function].pop()

    # ------------------------------------------------------------ dynamic decisions

    def match(self, op: MatchExpr, env: Environment, s: Statement | None) -> PartialValue:
        """The value of a match."""
        value = self.atom(op.value, env)
        for arm in op.arms:
            bound: dict[Local, PartialValue] = {}
            fits = self.fits(arm.pattern, value, bound)
            if fits:
                env.values.update(bound)
                return self.evaluate(arm.body, env)
            if fits is None:
                break
        return self.branch(op, env, s)

    def fits(self, pattern: PatternExpr, value: PartialValue, bound: dict[Local, PartialValue]) -> bool | None:
        """Whether a pattern fits a value; None where that is not known. Its variables are added to `bound`."""
        match pattern:
            case VariablePattern():
                bound[pattern.local] = value
                return True
            case TuplePattern() if isinstance(value, KnownTuple):
                return self.all_fit(pattern.fields, value.fields, bound)
            case ConstructorPattern() if isinstance(value, KnownData):
                if pattern.constructor != value.constructor:
                    return False
                return self.all_fit(pattern.fields, value.fields, bound)
            case TuplePattern() | ConstructorPattern():
                return None
        return True

    def all_fit(
        self, patterns: tuple[PatternExpr, ...], values: tuple[PartialValue, ...], bound: dict[Local, PartialValue]
    ) -> bool | None:
        """Whether all patterns fit: False if one certainly does not."""
        found = [self.fits(p, v, bound) for p, v in zip(patterns, values, strict=True)]
        return False if False in found else None if None in found else True

    def branch(self, op: IfExpr | MatchExpr, env: Environment, s: Statement | None) -> PartialValue:
        """The value of a branch that residual code has to take."""
        self.lift_cells(op, env)
        if isinstance(op, IfExpr):
            condition = self.lift(self.atom(op.condition, env))
            stores: list[dict[KnownCell, PartialValue]] = []
            then = self.alternative(op.then, env, stores)
            otherwise = self.alternative(op.otherwise, env, stores)
            new: Expression = replace(op, condition=condition, then=then, otherwise=otherwise)
        else:
            value = self.lift(self.atom(op.value, env))
            stores, arms = [], []
            for arm in op.arms:
                pattern = self.pattern(arm.pattern, env)
                arms.append(Arm(pattern, self.alternative(arm.body, env, stores), span=arm.span))
            new = replace(op, value=value, arms=tuple(arms))
        self.join(stores)
        return self.emit(new, s, env)

    def alternative(
        self, block: Expression, env: Environment, stores: list[dict[KnownCell, PartialValue]]
    ) -> Expression:
        """Residual code for one branch; what references hold behind it is added to `stores`."""
        outer, before = self.block, self.store
        self.block, self.store = Residual(outer, outer.depth + 1), dict(before)
        try:
            last = self.lift(self.evaluate(block, env))
            stores.append(self.store)
            return self.block.finished(last)
        finally:
            self.block, self.store = outer, before

    def join(self, stores: list[dict[KnownCell, PartialValue]]) -> None:
        """Keep what references hold whichever branch was taken."""
        before = self.store
        self.trail.append(lambda: setattr(self, "store", before))
        self.store = {c: v for c, v in before.items() if all(store.get(c) is v for store in stores)}

    def pattern(self, pattern: PatternExpr, env: Environment) -> PatternExpr:
        """A pattern for residual code, whose variables are dynamic."""
        match pattern:
            case VariablePattern():
                local = Local(pattern.local.name, span=pattern.local.span)
                env.values[pattern.local] = Dynamic(LocalVar(local))
                return replace(pattern, local=local, annotation=pattern.annotation if env.annotations else None)
            case ConstructorPattern() | TuplePattern():
                return replace(pattern, fields=tuple(self.pattern(f, env) for f in pattern.fields))
        return pattern

    # ------------------------------------------------------------ references

    def read(self, op: RefRead, env: Environment, s: Statement | None) -> PartialValue:
        """The value of reading a reference."""
        ref = self.atom(op.ref, env)
        if isinstance(ref, KnownCell):
            value = self.store.get(ref)
            if value is None:
                value = self.emit(replace(op, ref=self.lift(ref)), s, env)
                self.write(ref, value)
            return value
        return self.emit(replace(op, ref=self.lift(ref)), s, env)

    def function(self, closure: KnownClosure) -> Function:
        """Residual code for a function: its body, evaluated on arguments of which nothing is known."""
        function = closure.function
        annotations = closure.environment.annotations and not function.type_params
        env = Environment(closure.environment, annotations)
        params = []
        for p in function.params:
            local = Local(p.local.name, span=p.local.span)
            env.values[p.local] = Dynamic(LocalVar(local, span=p.span))
            params.append(Param(local, p.annotation if annotations else None, span=p.span))
        outer, before, unfolds = self.block, self.store, self.unfolds
        self.block, self.store = Residual(outer, outer.depth + 1), {}
        # A function within its own residual code would never end.
        self.unfolds = unfolds and not any(a.root for a in self.active[function])
        try:
            with self.activation(Activation(function, self.block.depth, root=True)):
                last = self.lift(self.evaluate(function.body, env))
            body = self.block.finished(last)
        finally:
            self.block, self.store, self.unfolds = outer, before, unfolds
        return Function(
            tuple(params),
            body,
            function.result if annotations else None,
            (),
            function.attributes,
            function.relations if annotations else (),
            span=function.span,
        )


def signature(value: PartialValue, depth: int = 4):
    """What is known of an argument, as a key."""
    match value:
        case KnownConstant() | KnownName():
            return atom_key(value.atom)
        case KnownTuple() if depth:
            return ("tuple", tuple(signature(f, depth - 1) for f in value.fields))
        case KnownData() if depth:
            return (value.constructor, tuple(signature(f, depth - 1) for f in value.fields))
        case KnownClosure():
            return value.function
    return type(value).__name__

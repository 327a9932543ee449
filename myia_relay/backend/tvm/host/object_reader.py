"""Machine code that reads the numbers in lists of Python objects.

CPython's C functions copy lists of lists and of tuples, but nothing in it takes the numbers out of them at once. Here one function
walks the objects as `abstract.reading.Recipe` describes them, and writes the numbers into columns. It is written in LLVM's own
language: TIR has neither pointers to objects nor recursion through memory. TVM links such a text into a module if a function of the
module inlines it, so the walk calls itself through that function.

Input: nothing. Output: a shared object that exports `abstract.reading.FUNCTION`.
"""

from __future__ import annotations

import sys
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import PrimType

from ....abstract.reading import (
    ARRAY_DATA,
    ATTRIBUTES,
    BOOLS,
    COLUMN,
    DICT,
    FAILED,
    FUNCTION,
    HEADER,
    INTS,
    LIST,
    NOTHING,
    TUPLE,
    TUPLE_ITEMS,
    WORDS,
)
from ..tir import machine, pipeline
from ..tir.block import Block
from ..tir.parts import callable_by_name

WALK = f"{FUNCTION}_walk"

# How many digits an int has, and whether it is negative: `PyLongObject` before Python 3.12, and since.
_SIZE = """
  %signed = load i64, ptr %size.at
  %negative = icmp slt i64 %signed, 0
  %opposite = sub i64 0, %signed
  %count = select i1 %negative, i64 %opposite, i64 %signed"""
_TAG = """
  %tag = load i64, ptr %size.at
  %count = lshr i64 %tag, 3
  %sign = and i64 %tag, 3
  %negative = icmp eq i64 %sign, 2"""


def _each(name: str, body: str) -> str:
    """A loop over the objects: checks the class of each `%NAME.o`, and goes on with `body`, which ends by going to `NAME.next`."""
    return f"""
{name}:
  br label %{name}.loop
{name}.loop:
  %{name}.k = phi i64 [ 0, %{name} ], [ %{name}.k1, %{name}.next ]
  %{name}.o.at = getelementptr ptr, ptr %items, i64 %{name}.k
  %{name}.o = load ptr, ptr %{name}.o.at
  %{name}.class.at = getelementptr i64, ptr %{name}.o, i64 1
  %{name}.class = load ptr, ptr %{name}.class.at
  %{name}.fits = icmp eq ptr %{name}.class, %class
  br i1 %{name}.fits, label %{name}.body, label %bad
{name}.body:{body}
{name}.next:
  %{name}.k1 = add i64 %{name}.k, 1
  %{name}.more = icmp ult i64 %{name}.k1, %n
  br i1 %{name}.more, label %{name}.loop, label %good
"""


def _inside(name: str, items: str, n: str, child: str, then: str) -> str:
    """The walk over what is inside of an object: `child` is how many words after this node the node of it is."""
    return f"""
  %{name}.node = getelementptr i64, ptr %node, i64 {child}
  %{name}.node.word = ptrtoint ptr %{name}.node to i64
  %{name}.items.word = ptrtoint ptr {items} to i64
  %{name}.called = call i32 @{WALK}(i64 %{name}.items.word, i64 {n}, i64 %{name}.node.word, i64 %columns.word, i64 %counting)
  %{name}.status = load i64, ptr %columns
  %{name}.good = icmp eq i64 %{name}.status, 0
  br i1 %{name}.good, label %{then}, label %bad"""


def _parts(name: str, width: int, body: str) -> str:
    """A loop over the parts of an object: `%NAME.entry` is what the node says of one; `body` ends by going to `NAME.part.next`."""
    return f"""
  br label %{name}.part
{name}.part:
  %{name}.p = phi i64 [ 0, %{name}.PARTS ], [ %{name}.p1, %{name}.part.next ]
  %{name}.p.words = mul i64 %{name}.p, {width}
  %{name}.entry = getelementptr i64, ptr %rest, i64 %{name}.p.words{body}
{name}.part.next:
  %{name}.p1 = add i64 %{name}.p, 1
  %{name}.p.more = icmp ult i64 %{name}.p1, %third
  br i1 %{name}.p.more, label %{name}.part, label %{name}.next"""


def _key(name: str, found: str, then: str) -> str:
    """Checks that the key `found` of a dict is the one of an entry: the same object, or an equal string."""
    return f"""
  %{name}.want = load ptr, ptr %{name}.entry
  %{name}.same = icmp eq ptr {found}, %{name}.want
  br i1 %{name}.same, label %{then}, label %{name}.other
{name}.other:
  %{name}.key.class.at = getelementptr i64, ptr {found}, i64 1
  %{name}.key.class = load ptr, ptr %{name}.key.class.at
  %{name}.want.class.at = getelementptr i64, ptr %{name}.want, i64 1
  %{name}.want.class = load ptr, ptr %{name}.want.class.at
  %{name}.string = icmp eq ptr %{name}.key.class, %{name}.want.class
  br i1 %{name}.string, label %{name}.compare, label %bad
{name}.compare:
  %{name}.order = call i32 %helper(ptr {found}, ptr %{name}.want)
  %{name}.equal = icmp eq i32 %{name}.order, 0
  br i1 %{name}.equal, label %{then}, label %bad"""


def walk() -> str:
    """The text of the walk, for the Python that runs.

    Its parameters: where the pointers to so many objects of one kind are; the node of that kind; the columns, of which the first
    holds the status; whether to count only what is in lists. It leaves by `good`, or by `bad` where something differs.
    """
    store = "\n  store i64 %{0}, ptr %{0}.to\n  br label %{1}.next"
    words = """
  %word.at = getelementptr i64, ptr %word.o, i64 2
  %bits = load i64, ptr %word.at
  %place.w = add i64 %filled, %word.k
  %bits.to = getelementptr i64, ptr %data, i64 %place.w""" + store.format("bits", "word")
    bools = """
  %true = load ptr, ptr %rest
  %is.true = icmp eq ptr %bool.o, %true
  %bit = zext i1 %is.true to i8
  %place.b = add i64 %filled, %bool.k
  %bit.to = getelementptr i8, ptr %data, i64 %place.b
  store i8 %bit, ptr %bit.to
  br label %bool.next"""
    ints = f"""
  %size.at = getelementptr i64, ptr %int.o, i64 2{_TAG if sys.version_info >= (3, 12) else _SIZE}
  %digits = getelementptr i64, ptr %int.o, i64 3
  %short = icmp ult i64 %count, 2
  br i1 %short, label %int.one, label %int.two
int.one:
  %digit = load i32, ptr %digits
  %zero = icmp eq i64 %count, 0
  %digit.0 = select i1 %zero, i32 0, i32 %digit
  %one = zext i32 %digit.0 to i64
  br label %int.signed
int.two:
  %low = load i32, ptr %digits
  %low.wide = zext i32 %low to i64
  %high.at = getelementptr i32, ptr %digits, i64 1
  %high = load i32, ptr %high.at
  %high.wide = zext i32 %high to i64
  %high.moved = shl i64 %high.wide, 30
  %two = or i64 %low.wide, %high.moved
  %of.two = icmp eq i64 %count, 2
  br i1 %of.two, label %int.signed, label %int.three
int.three:
  %of.three = icmp eq i64 %count, 3
  br i1 %of.three, label %int.top, label %bad
int.top:
  %top.at = getelementptr i32, ptr %digits, i64 2
  %top = load i32, ptr %top.at
  %top.fits = icmp ult i32 %top, 8
  br i1 %top.fits, label %int.whole, label %bad
int.whole:
  %top.wide = zext i32 %top to i64
  %top.moved = shl i64 %top.wide, 60
  %three = or i64 %two, %top.moved
  br label %int.signed
int.signed:
  %size = phi i64 [ %one, %int.one ], [ %two, %int.two ], [ %three, %int.whole ]
  %minus = sub i64 0, %size
  %number = select i1 %negative, i64 %minus, i64 %size
  %place.i = add i64 %filled, %int.k
  %number.to = getelementptr i64, ptr %data, i64 %place.i""" + store.format("number", "int")
    lists = """
  %length.at = getelementptr i64, ptr %list.o, i64 2
  %length = load i64, ptr %length.at
  %entries.at = getelementptr i64, ptr %list.o, i64 3
  %entries = load ptr, ptr %entries.at
  br i1 %only, label %list.inside, label %list.note
list.note:
  %place.l = add i64 %filled, %list.k
  %length.to = getelementptr i64, ptr %data, i64 %place.l
  store i64 %length, ptr %length.to
  br label %list.inside
list.inside:
  %list.child = load i64, ptr %rest""" + _inside("list", "%entries", "%length", "%list.child", "list.next")
    tuples = f"""
  %extent.at = getelementptr i64, ptr %tuple.o, i64 2
  %extent = load i64, ptr %extent.at
  %extent.fits = icmp eq i64 %extent, %third
  br i1 %extent.fits, label %tuple.PARTS, label %bad
tuple.PARTS:
  %first = getelementptr i8, ptr %tuple.o, i64 {TUPLE_ITEMS}""" + _parts(
        "tuple",
        1,
        """
  %item = getelementptr ptr, ptr %first, i64 %tuple.p
  %tuple.child = load i64, ptr %tuple.entry"""
        + _inside("tuple", "%item", "1", "%tuple.child", "tuple.part.next"),
    )
    dicts = """
  %used.at = getelementptr i64, ptr %dict.o, i64 2
  %used = load i64, ptr %used.at
  %used.fits = icmp eq i64 %used, %third
  store i64 0, ptr %position
  br i1 %used.fits, label %dict.PARTS, label %bad
dict.PARTS:""" + _parts(
        "dict",
        2,
        """
  %found = call i32 %accessor(ptr %dict.o, ptr %position, ptr %key, ptr %value)
  %there = icmp ne i32 %found, 0
  br i1 %there, label %dict.there, label %bad
dict.there:
  %have = load ptr, ptr %key"""
        + _key("dict", "%have", "dict.inside")
        + """
dict.inside:
  %dict.child.at = getelementptr i64, ptr %dict.entry, i64 1
  %dict.child = load i64, ptr %dict.child.at"""
        + _inside("dict", "%value", "1", "%dict.child", "dict.part.next"),
    )
    attributes = """
  br label %fields.PARTS
fields.PARTS:""" + _parts(
        "fields",
        2,
        """
  %name = load ptr, ptr %fields.entry
  %attribute = call ptr %accessor(ptr %fields.o, ptr %name)
  %lacks = icmp eq ptr %attribute, null
  br i1 %lacks, label %bad, label %fields.inside
fields.inside:
  store ptr %attribute, ptr %value
  %fields.child.at = getelementptr i64, ptr %fields.entry, i64 1
  %fields.child = load i64, ptr %fields.child.at"""
        + _inside("fields", "%value", "1", "%fields.child", "fields.done").replace("label %bad", "label %fields.bad")
        + """
fields.bad:
  call void %helper(ptr %attribute)
  br label %bad
fields.done:
  call void %helper(ptr %attribute)
  br label %fields.part.next""",
    )
    return f"""
declare i32 @{WALK}(i64, i64, i64, i64, i64)
define i32 @{WALK}_body(i64 %items.word, i64 %n, i64 %node.word, i64 %columns.word, i64 %counting) {{
entry:
  %items = inttoptr i64 %items.word to ptr
  %node = inttoptr i64 %node.word to ptr
  %columns = inttoptr i64 %columns.word to ptr
  %position = alloca i64
  %key = alloca ptr
  %value = alloca ptr
  %kind = load i64, ptr %node
  %class.at = getelementptr i64, ptr %node, i64 1
  %class = load ptr, ptr %class.at
  %third.at = getelementptr i64, ptr %node, i64 2
  %third = load i64, ptr %third.at
  %accessor.at = getelementptr i64, ptr %node, i64 3
  %accessor = load ptr, ptr %accessor.at
  %helper.at = getelementptr i64, ptr %node, i64 4
  %helper = load ptr, ptr %helper.at
  %rest = getelementptr i64, ptr %node, i64 5
  %only = icmp ne i64 %counting, 0
  %empty = icmp eq i64 %n, 0
  br i1 %empty, label %good, label %choose
choose:
  switch i64 %kind, label %column [
    i64 {NOTHING}, label %none
    i64 {TUPLE}, label %tuple
    i64 {DICT}, label %dict
    i64 {ATTRIBUTES}, label %fields ]
good:
  ret i32 0
bad:
  store i64 {FAILED}, ptr %columns
  ret i32 0

column:
  %column.at = getelementptr i64, ptr %columns, i64 %third
  %data = load ptr, ptr %column.at
  %filled.at = getelementptr i64, ptr %column.at, i64 1
  %filled = load i64, ptr %filled.at
  %sum = add i64 %filled, %n
  store i64 %sum, ptr %filled.at
  %capacity.at = getelementptr i64, ptr %column.at, i64 2
  %capacity = load i64, ptr %capacity.at
  %over = icmp sgt i64 %sum, %capacity
  %filling = xor i1 %only, true
  %too.many = and i1 %over, %filling
  br i1 %too.many, label %bad, label %fill
fill:
  %is.list = icmp eq i64 %kind, {LIST}
  br i1 %is.list, label %list, label %number.or.count
number.or.count:
  br i1 %only, label %good, label %number.kind
number.kind:
  switch i64 %kind, label %bad [
    i64 {WORDS}, label %word
    i64 {INTS}, label %int
    i64 {BOOLS}, label %bool ]
{_each("word", words)}{_each("int", ints)}{_each("bool", bools)}{_each("none", chr(10) + "  br label %none.next")}
{_each("list", lists)}{_each("tuple", tuples)}{_each("dict", dicts)}{_each("fields", attributes)}
}}
"""


def entry() -> str:
    """The text of what is called: prepares the columns, walks, and leaves in the block what came of it.

    Its parameters: a list, a recipe, an array of words (see `abstract.reading.Recipe`), whether to count only.
    """
    return f"""
declare i32 @{WALK}(i64, i64, i64, i64, i64)
define i32 @{FUNCTION}_body(i64 %list.word, i64 %recipe.word, i64 %array.word, i64 %counting) {{
entry:
  %recipe = inttoptr i64 %recipe.word to ptr
  %array = inttoptr i64 %array.word to ptr
  %list = inttoptr i64 %list.word to ptr
  %given = alloca i64
  store i64 %list.word, ptr %given
  %items.word = ptrtoint ptr %given to i64
  %block.at = getelementptr i64, ptr %array, i64 {ARRAY_DATA}
  %block = load ptr, ptr %block.at
  %count = load i64, ptr %recipe
  %counted.at = getelementptr i64, ptr %recipe, i64 1
  %counted = load i64, ptr %counted.at
  %length.at = getelementptr i64, ptr %list, i64 2
  %length = load i64, ptr %length.at
  %columns = getelementptr i64, ptr %recipe, i64 {HEADER}
  %columns.word = ptrtoint ptr %columns to i64
  %table.words = mul i64 %count, {COLUMN}
  %nodes.at = add i64 %table.words, {HEADER + COLUMN}
  %nodes = getelementptr i64, ptr %recipe, i64 %nodes.at
  %nodes.word = ptrtoint ptr %nodes to i64
  store i64 0, ptr %columns
  %known = icmp eq i64 %counted, 0
  %begin = add i64 %count, 1
  br label %set
set:
  %k = phi i64 [ 0, %entry ], [ %k1, %set.next ]
  %offset = phi i64 [ %begin, %entry ], [ %offset.next, %set.next ]
  %k1 = add i64 %k, 1
  %capacity.at = getelementptr i64, ptr %block, i64 %k1
  br i1 %known, label %set.known, label %set.next
set.known:
  %first = icmp eq i64 %k, 0
  %of.list = select i1 %first, i64 1, i64 %length
  store i64 %of.list, ptr %capacity.at
  br label %set.next
set.next:
  %capacity = load i64, ptr %capacity.at
  %data = getelementptr i64, ptr %block, i64 %offset
  %triple = mul i64 %k1, {COLUMN}
  %column = getelementptr i64, ptr %columns, i64 %triple
  store ptr %data, ptr %column
  %filled.at = getelementptr i64, ptr %column, i64 1
  store i64 0, ptr %filled.at
  %limit.at = getelementptr i64, ptr %column, i64 2
  store i64 %capacity, ptr %limit.at
  %offset.next = add i64 %offset, %capacity
  %set.more = icmp ult i64 %k1, %count
  br i1 %set.more, label %set, label %walk
walk:
  %called = call i32 @{WALK}(i64 %items.word, i64 1, i64 %nodes.word, i64 %columns.word, i64 %counting)
  br label %check
check:
  %j = phi i64 [ 0, %walk ], [ %j1, %check.next ]
  %j1 = add i64 %j, 1
  %word.at = getelementptr i64, ptr %block, i64 %j1
  %wanted = load i64, ptr %word.at
  %done.words = mul i64 %j1, {COLUMN}
  %done.words1 = add i64 %done.words, 1
  %done.at = getelementptr i64, ptr %columns, i64 %done.words1
  %done = load i64, ptr %done.at
  %only = icmp ne i64 %counting, 0
  br i1 %only, label %tell, label %compare
tell:
  store i64 %done, ptr %word.at
  br label %check.next
compare:
  %whole = icmp eq i64 %done, %wanted
  br i1 %whole, label %check.next, label %differs
differs:
  store i64 {FAILED}, ptr %columns
  br label %check.next
check.next:
  %check.more = icmp ult i64 %j1, %count
  br i1 %check.more, label %check, label %end
end:
  %status = load i64, ptr %columns
  store i64 %status, ptr %block
  ret i32 0
}}
"""


def _function(name: str, parameters: tuple[str, ...], text: str) -> Any:
    """A function that is its text."""
    params = [tirx.Var(parameter, "int64") for parameter in parameters]
    block = Block()
    nothing: Any = tirx.Evaluate(tirx.IntImm("int32", 0))
    block.emit(tirx.AttrStmt(tirx.IntImm("int32", 0), "pragma_import_llvm", tvm.ir.StringImm(text), nothing))
    block.emit(tirx.Evaluate(tirx.call_extern("int32", f"{name}_body", *params)))
    return callable_by_name(tirx.PrimFunc(params, block.stmt(), ret_type=PrimType("int32")), name)


def compiled() -> bytes:
    """The shared object."""
    functions = {
        WALK: _function(WALK, ("items", "n", "node", "columns", "counting"), walk()),
        FUNCTION: _function(FUNCTION, ("values", "recipe", "block", "counting"), entry()),
    }
    built = pipeline.build(tvm.IRModule(functions))
    return machine.linked((machine.object_of(built),))


__all__ = ["compiled", "entry", "walk"]

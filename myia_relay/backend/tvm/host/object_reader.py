"""Machine code that reads the numbers in lists of Python objects.

CPython's C functions copy lists of lists and of tuples, but nothing in it takes the numbers out of them at once. Here one function
walks the objects as `abstract.reading.Recipe` describes them, and writes the numbers into columns. It is written in LLVM's own
language: TIR has neither pointers to objects nor functions that return one.

Input: nothing. Output: the text of functions, of which `abstract.reading.FUNCTION` is called from outside.
"""

from __future__ import annotations

import sys

from ....abstract.reading import (
    ALONE,
    ARRAY_CLASS,
    ATTRIBUTES,
    BOOLS,
    CLEAR,
    COLUMN,
    COUNT,
    COUNTED,
    DICT,
    DROP,
    FAILED,
    FUNCTION,
    GET,
    HEADER,
    INTS,
    LIST,
    LIST_CLASS,
    NEW_ARRAY,
    NEW_TUPLE,
    NONE,
    NOTHING,
    TEXTS,
    TUPLE,
    TUPLE_ITEMS,
    WORDS,
)
from ....utils.cpython import ARRAY_DATA
from .object_builder import word

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


def _each(name: str, body: str, then: str = "good") -> str:
    """A loop over the objects: checks the class of each `%NAME.o`, and goes on with `body`, which ends by going to `NAME.next`."""
    return f"""
{name}:
  br label %{name}.loop
{name}.loop:
  %{name}.k = phi i64 [ 0, %{name} ], [ %{name}.k1, %{name}.next ]
  %{name}.direct = getelementptr ptr, ptr %items, i64 %{name}.k
  %{name}.outer = load ptr, ptr %{name}.direct
  %{name}.part.at = getelementptr i8, ptr %{name}.outer, i64 %offset
  %{name}.o.at = select i1 %direct, ptr %{name}.direct, ptr %{name}.part.at
  %{name}.o = load ptr, ptr %{name}.o.at
  %{name}.class.at = getelementptr i64, ptr %{name}.o, i64 1
  %{name}.class = load ptr, ptr %{name}.class.at
  %{name}.fits = icmp eq ptr %{name}.class, %class
  br i1 %{name}.fits, label %{name}.body, label %bad
{name}.body:{body}
{name}.next:
  %{name}.k1 = add i64 %{name}.k, 1
  %{name}.more = icmp ult i64 %{name}.k1, %n
  br i1 %{name}.more, label %{name}.loop, label %{then}
"""


def _inside(name: str, items: str, n: str, child: str, then: str, offset: str = "0") -> str:
    """The walk over what is inside of an object: `child` is how many words after this node the node of it is."""
    return f"""
  %{name}.node = getelementptr i64, ptr %node, i64 {child}
  call void @walk(ptr {items}, i64 {n}, i64 {offset}, ptr %{name}.node, ptr %columns, i1 %only)
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

    Its parameters: where the pointers to so many objects of one kind are; unless it is 0, how many bytes after the beginning of
    what these point to the pointers are; the node of that kind; the columns, of which the first holds the status; whether to
    count only what is in lists. It leaves by `good`, or by `bad` where something differs.

    The parts of many tuples are read one after the other, each of all tuples: that is a tight loop for each.
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
    texts = """
  %table = load ptr, ptr %rest
  %known = call ptr %accessor(ptr %table, ptr %text.o)
  %unknown = icmp eq ptr %known, null
  br i1 %unknown, label %text.unknown, label %text.known
text.unknown:
  %missing.at = getelementptr i64, ptr %rest, i64 1
  %missing = load ptr, ptr %missing.at
  %append.at = getelementptr i64, ptr %rest, i64 2
  %append = load ptr, ptr %append.at
  %appended = call i32 %append(ptr %missing, ptr %text.o)
  br label %text.note
text.known:
  %number.of = call i64 %helper(ptr %known)
  br label %text.note
text.note:
  %code = phi i64 [ -1, %text.unknown ], [ %number.of, %text.known ]
  %place.t = add i64 %filled, %text.k
  %code.to = getelementptr i64, ptr %data, i64 %place.t""" + store.format("code", "text")
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
    extent = """
  %{0}.extent.at = getelementptr i64, ptr %{0}.o, i64 2
  %{0}.extent = load i64, ptr %{0}.extent.at
  %{0}.fits.too = icmp eq i64 %{0}.extent, %third
  br i1 %{0}.fits.too, label %{1}, label %bad"""
    sizes = extent.format("sizes", "sizes.next")
    columns = (
        f"""
across:
  br label %across.part
across.part:
  %p = phi i64 [ 0, %across ], [ %p1, %across.next ]
  %across.entry = getelementptr i64, ptr %rest, i64 %p
  %across.child = load i64, ptr %across.entry
  %before = mul i64 %p, 8
  %across.offset = add i64 %before, {TUPLE_ITEMS}"""
        + _inside("across", "%items", "%n", "%across.child", "across.next", "%across.offset")
        + """
across.next:
  %p1 = add i64 %p, 1
  %p.more = icmp ult i64 %p1, %third
  br i1 %p.more, label %across.part, label %good
"""
    )
    tuples = (
        extent.format("tuple", "tuple.PARTS")
        + f"""
tuple.PARTS:
  %first = getelementptr i8, ptr %tuple.o, i64 {TUPLE_ITEMS}"""
        + _parts(
            "tuple",
            1,
            """
  %item = getelementptr ptr, ptr %first, i64 %tuple.p
  %tuple.child = load i64, ptr %tuple.entry"""
            + _inside("tuple", "%item", "1", "%tuple.child", "tuple.part.next"),
        )
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
define internal void @walk(ptr %items, i64 %n, i64 %offset, ptr %node, ptr %columns, i1 %only) {{
entry:
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
  %direct = icmp eq i64 %offset, 0
  %empty = icmp eq i64 %n, 0
  br i1 %empty, label %good, label %choose
choose:
  switch i64 %kind, label %column [
    i64 {NOTHING}, label %none
    i64 {TUPLE}, label %tuples
    i64 {DICT}, label %dict
    i64 {ATTRIBUTES}, label %fields ]
good:
  ret void
bad:
  store i64 {FAILED}, ptr %columns
  ret void

tuples:
  %some = icmp ne i64 %third, 0
  %flat = and i1 %direct, %some
  br i1 %flat, label %sizes, label %tuple

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
    i64 {BOOLS}, label %bool
    i64 {TEXTS}, label %text ]
{_each("word", words)}{_each("int", ints)}{_each("bool", bools)}{_each("none", chr(10) + "  br label %none.next")}
{_each("sizes", sizes, "across")}{columns}{_each("text", texts)}{_each("list", lists)}
{_each("tuple", tuples)}{_each("dict", dicts)}{_each("fields", attributes)}
}}
"""


def entry() -> str:
    """The text of what is called: a function of CPython's kind `METH_O`, whose `self` is the array of a recipe's words.

    It counts, makes the columns, walks, and returns their tuple; None where the list is of another type. The tuple is made last:
    CPython may collect garbage then, which runs code that may come here again.
    """

    def column(name: str, k: str) -> str:
        """`%NAME` is the first word of a column."""
        return f"""
  %{name}.words = mul i64 {k}, {COLUMN}
  %{name} = getelementptr i64, ptr %columns, i64 %{name}.words"""

    def loop(name: str, body: str, then: str, first: int = 1) -> str:
        """`%NAME.k` goes through the columns, of which number 0 is the status."""
        return f"""
{name}:
  br label %{name}.loop
{name}.loop:
  %{name}.k = phi i64 [ {first}, %{name} ], [ %{name}.k1, %{name}.next ]{column(f"{name}.column", f"%{name}.k")}{body}
{name}.next:
  %{name}.k1 = add i64 %{name}.k, 1
  %{name}.more = icmp ule i64 %{name}.k1, %count
  br i1 %{name}.more, label %{name}.loop, label %{then}"""

    clear = """
  store i64 0, ptr %clear.column
  %clear.filled.at = getelementptr i64, ptr %clear.column, i64 1
  store i64 0, ptr %clear.filled.at
  %clear.limit.at = getelementptr i64, ptr %clear.column, i64 2
  store i64 0, ptr %clear.limit.at
  %clear.array.at = getelementptr i64, ptr %clear.column, i64 3
  store i64 0, ptr %clear.array.at
  br label %clear.next"""
    make = (
        word("make.counted", "%make.column", 1)
        + f"""
  %make.first = icmp eq i64 %make.k, 1
  %make.known = select i1 %make.first, i64 1, i64 %length
  %make.size = select i1 %known, i64 %make.known, i64 %make.counted
  %make.none = icmp eq i64 %make.size, 0
  br i1 %make.none, label %other, label %make.some
make.some:
  store i64 %make.size, ptr %size
  %make.dtype.word = add i64 %make.k, {HEADER - 1}
  %make.dtype.at = getelementptr i64, ptr %recipe, i64 %make.dtype.word
  %make.dtype = load i32, ptr %make.dtype.at
  %make.array = call ptr %new.array(ptr %array.class, i32 1, ptr %size, i32 %make.dtype, ptr null, ptr null, i32 0, i32 0, ptr null)
  %make.array.at = getelementptr i64, ptr %make.column, i64 3
  store ptr %make.array, ptr %make.array.at
  %make.failed = icmp eq ptr %make.array, null
  br i1 %make.failed, label %raise, label %make.made
make.made:"""
        + word("make.data", "%make.array", ARRAY_DATA, "ptr")
        + """
  store ptr %make.data, ptr %make.column
  %make.filled.at = getelementptr i64, ptr %make.column, i64 1
  store i64 0, ptr %make.filled.at
  %make.limit.at = getelementptr i64, ptr %make.column, i64 2
  store i64 %make.size, ptr %make.limit.at
  br label %make.next"""
    )
    check = (
        word("check.filled", "%check.column", 1)
        + word("check.limit", "%check.column", 2)
        + """
  %check.whole = icmp eq i64 %check.filled, %check.limit
  br i1 %check.whole, label %check.next, label %other"""
    )
    give = (
        word("give.array", "%give.column", 3, "ptr")
        + f"""
  %give.place.word = sub i64 %give.k, 1
  %give.items = getelementptr i8, ptr %tuple, i64 {TUPLE_ITEMS}
  %give.place = getelementptr ptr, ptr %give.items, i64 %give.place.word
  store ptr %give.array, ptr %give.place
  br label %give.next"""
    )

    def drop(name: str) -> str:
        return (
            word(f"{name}.array", f"%{name}.column", 3, "ptr")
            + f"""
  call void %drop(ptr %{name}.array)
  br label %{name}.next"""
        )

    return f"""
define ptr @{FUNCTION}(ptr %self, ptr %list) {{
entry:
  %given = alloca ptr
  %size = alloca i64
  store ptr %list, ptr %given
  %recipe.at = getelementptr i64, ptr %self, i64 {ARRAY_DATA}
  %recipe = load ptr, ptr %recipe.at
  {word("count", "%recipe", COUNT)}{word("counted", "%recipe", COUNTED)}
  {word("alone", "%recipe", ALONE)}{word("list.class", "%recipe", LIST_CLASS, "ptr")}
  {word("none", "%recipe", NONE, "ptr")}{word("array.class", "%recipe", ARRAY_CLASS, "ptr")}
  {word("new.array", "%recipe", NEW_ARRAY, "ptr")}{word("new.tuple", "%recipe", NEW_TUPLE, "ptr")}
  {word("get", "%recipe", GET, "ptr")}{word("drop", "%recipe", DROP, "ptr")}
  {word("forget", "%recipe", CLEAR, "ptr")}
  %columns.word = add i64 %count, {HEADER}
  %columns = getelementptr i64, ptr %recipe, i64 %columns.word
  %table.words = mul i64 %count, {COLUMN}
  %nodes.word = add i64 %table.words, {COLUMN}
  %nodes = getelementptr i64, ptr %columns, i64 %nodes.word
  %known = icmp eq i64 %counted, 0
  br label %clear
{loop("clear", clear, "look", first=0)}
look:
  %class.at = getelementptr i64, ptr %list, i64 1
  %class = load ptr, ptr %class.at
  %is.list = icmp eq ptr %class, %list.class
  br i1 %is.list, label %measure, label %other
measure:
  %length.at = getelementptr i64, ptr %list, i64 2
  %length = load i64, ptr %length.at
  %is.empty = icmp eq i64 %length, 0
  br i1 %is.empty, label %other, label %some
some:
  br i1 %known, label %make, label %counting
counting:
  call void @walk(ptr %given, i64 1, i64 0, ptr %nodes, ptr %columns, i1 true)
  %status.1 = load i64, ptr %columns
  %counted.well = icmp eq i64 %status.1, 0
  br i1 %counted.well, label %make, label %other
{loop("make", make, "walk")}
walk:
  call void @walk(ptr %given, i64 1, i64 0, ptr %nodes, ptr %columns, i1 false)
  %status.2 = load i64, ptr %columns
  %read.well = icmp eq i64 %status.2, 0
  br i1 %read.well, label %check, label %other
{loop("check", check, "good")}
good:
  %is.alone = icmp ne i64 %alone, 0
  br i1 %is.alone, label %one, label %all
one:{column("one.first", "1")}{column("one.column", "2")}{word("one.length", "%one.first", 3, "ptr")}
  call void %drop(ptr %one.length){word("one.array", "%one.column", 3, "ptr")}
  ret ptr %one.array
all:
  %tuple = call ptr %new.tuple(i64 %count)
  %failed = icmp eq ptr %tuple, null
  br i1 %failed, label %raise, label %give
{loop("give", give, "given.all")}
given.all:
  ret ptr %tuple

other:
  call void %forget()
  br label %other.drop
{loop("other.drop", drop("other.drop"), "nothing")}
nothing:
  call void %get(ptr %none)
  ret ptr %none
raise:
  br label %raise.drop
{loop("raise.drop", drop("raise.drop"), "raised")}
raised:
  ret ptr null
}}
"""


__all__ = ["entry", "walk"]

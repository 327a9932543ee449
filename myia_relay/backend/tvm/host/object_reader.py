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
    LEAST,
    LIST,
    LIST_CLASS,
    MISSING,
    NEW_ARRAY,
    NEW_TUPLE,
    NONE,
    NOTHING,
    OPTIONS,
    REST,
    TEXT,
    TUPLE,
    TUPLE_ITEMS,
    UNION,
    UNREAD,
    WORDS,
)
from ....abstract.words import FIRST, SECOND
from ....utils.cpython import ARRAY_DATA
from .object_builder import word

CHUNK = 32  # dicts whose values are collected, which are then read one key after the other, each in a tight loop

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

_DIGITS = _TAG if sys.version_info >= (3, 12) else _SIZE


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
  %size.at = getelementptr i64, ptr %int.o, i64 2{_DIGITS}
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
  %fresh = call i64 @intern(ptr %node, ptr %text.o)
  %refused = icmp slt i64 %fresh, 0
  br i1 %refused, label %bad, label %text.note
text.known:
  %number.of = call i64 @whole(ptr %known)
  br label %text.note
text.note:
  %code = phi i64 [ %fresh, %text.unknown ], [ %number.of, %text.known ]
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
    dicts = (
        f"""
dict:
  %chunk.words = mul i64 %third, {CHUNK}
  %chunk = alloca ptr, i64 %chunk.words
  br label %dict.chunk
dict.chunk:
  %start = phi i64 [ 0, %dict ], [ %start1, %dict.read ]
  %rest.of.them = sub i64 %n, %start
  %is.last = icmp ult i64 %rest.of.them, {CHUNK}
  %together = select i1 %is.last, i64 %rest.of.them, i64 {CHUNK}
  br label %dict.loop
dict.loop:
  %dict.k = phi i64 [ 0, %dict.chunk ], [ %dict.k1, %dict.next ]
  %dict.at = add i64 %start, %dict.k
  %dict.direct = getelementptr ptr, ptr %items, i64 %dict.at
  %dict.outer = load ptr, ptr %dict.direct
  %dict.part.at = getelementptr i8, ptr %dict.outer, i64 %offset
  %dict.o.at = select i1 %direct, ptr %dict.direct, ptr %dict.part.at
  %dict.o = load ptr, ptr %dict.o.at
  %dict.class.at = getelementptr i64, ptr %dict.o, i64 1
  %dict.class = load ptr, ptr %dict.class.at
  %dict.fits = icmp eq ptr %dict.class, %class
  br i1 %dict.fits, label %dict.body, label %bad
dict.body:
  %used.at = getelementptr i64, ptr %dict.o, i64 2
  %used = load i64, ptr %used.at
  %used.fits = icmp eq i64 %used, %third
  store i64 0, ptr %position
  br i1 %used.fits, label %dict.PARTS, label %bad
dict.PARTS:"""
        + _parts(
            "dict",
            2,
            """
  %found = call i32 %accessor(ptr %dict.o, ptr %position, ptr %key, ptr %value)
  %there = icmp ne i32 %found, 0
  br i1 %there, label %dict.there, label %bad
dict.there:
  %have = load ptr, ptr %key"""
            + _key("dict", "%have", "dict.inside")
            + f"""
dict.inside:
  %dict.value = load ptr, ptr %value
  %dict.column = mul i64 %dict.p, {CHUNK}
  %dict.place = add i64 %dict.column, %dict.k
  %dict.to = getelementptr ptr, ptr %chunk, i64 %dict.place
  store ptr %dict.value, ptr %dict.to
  br label %dict.part.next""",
        )
        + f"""
dict.next:
  %dict.k1 = add i64 %dict.k, 1
  %dict.more = icmp ult i64 %dict.k1, %together
  br i1 %dict.more, label %dict.loop, label %down
down:
  %down.p = phi i64 [ 0, %dict.next ], [ %down.p1, %down.next ]
  %down.words = mul i64 %down.p, 2
  %down.entry = getelementptr i64, ptr %rest, i64 %down.words
  %down.child.at = getelementptr i64, ptr %down.entry, i64 1
  %down.child = load i64, ptr %down.child.at
  %down.place = mul i64 %down.p, {CHUNK}
  %down.items = getelementptr ptr, ptr %chunk, i64 %down.place"""
        + _inside("down", "%down.items", "%together", "%down.child", "down.next")
        + """
down.next:
  %down.p1 = add i64 %down.p, 1
  %down.more = icmp ult i64 %down.p1, %third
  br i1 %down.more, label %down, label %dict.read
dict.read:
  %start1 = add i64 %start, %together
  %dict.left = icmp ult i64 %start1, %n
  br i1 %dict.left, label %dict.chunk, label %good
"""
    )
    unions = f"""
union:
  br label %union.loop
union.loop:
  %union.k = phi i64 [ 0, %union ], [ %union.k1, %union.next ]
  %union.direct = getelementptr ptr, ptr %items, i64 %union.k
  %union.outer = load ptr, ptr %union.direct
  %union.part.at = getelementptr i8, ptr %union.outer, i64 %offset
  %union.o.at = select i1 %direct, ptr %union.direct, ptr %union.part.at
  %union.o = load ptr, ptr %union.o.at
  %union.class.at = getelementptr i64, ptr %union.o, i64 1
  %union.class = load ptr, ptr %union.class.at
  %options = ptrtoint ptr %helper to i64
  br label %which
which:
  %j = phi i64 [ 0, %union.loop ], [ %j1, %which.next ]
  %which.entry = getelementptr i64, ptr %rest, i64 %j
  %which.child = load i64, ptr %which.entry
  %which.node = getelementptr i64, ptr %node, i64 %which.child
  %which.class.at = getelementptr i64, ptr %which.node, i64 1
  %which.class = load ptr, ptr %which.class.at
  %is.it = icmp eq ptr %which.class, %union.class
  br i1 %is.it, label %union.note, label %which.next
which.next:
  %j1 = add i64 %j, 1
  %j.more = icmp ult i64 %j1, %options
  br i1 %j.more, label %which, label %bad
union.note:{word("missing", "%column.at", MISSING)}
  %this = shl i64 1, %j
  %others = xor i64 %this, -1
  %missed = and i64 %missing, %others
  store i64 %missed, ptr %missing.at
  br i1 %only, label %option, label %union.store
union.store:
  %place.u = add i64 %filled, %union.k
  %which.to = getelementptr i64, ptr %data, i64 %place.u
  store i64 %j, ptr %which.to
  br label %option
option:
  %o = phi i64 [ 0, %union.note ], [ 0, %union.store ], [ %o1, %option.next ]
  %option.entry = getelementptr i64, ptr %rest, i64 %o
  %option.child = load i64, ptr %option.entry
  %option.node = getelementptr i64, ptr %node, i64 %option.child
  %chosen = icmp eq i64 %o, %j
  br i1 %chosen, label %option.read, label %option.fill
option.read:
  call void @walk(ptr %union.o.at, i64 1, i64 0, ptr %option.node, ptr %columns, i1 %only)
  br label %option.done
option.fill:
  call void @fill(ptr %option.node, ptr %columns, i1 %only)
  br label %option.done
option.done:
  %option.status = load i64, ptr %columns
  %option.good = icmp eq i64 %option.status, 0
  br i1 %option.good, label %option.next, label %bad
option.next:
  %o1 = add i64 %o, 1
  %o.more = icmp ult i64 %o1, %options
  br i1 %o.more, label %option, label %union.next
union.next:
  %union.k1 = add i64 %union.k, 1
  %union.more = icmp ult i64 %union.k1, %n
  br i1 %union.more, label %union.loop, label %good
"""
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
  br i1 %is.list, label %list, label %no.list
no.list:
  %is.union = icmp eq i64 %kind, {UNION}
  br i1 %is.union, label %union, label %number.or.count
number.or.count:
  br i1 %only, label %good, label %number.kind
number.kind:
  switch i64 %kind, label %bad [
    i64 {WORDS}, label %word
    i64 {INTS}, label %int
    i64 {BOOLS}, label %bool
    i64 {TEXT}, label %text
    i64 {UNREAD}, label %unread ]
{_each("word", words)}{_each("int", ints)}{_each("bool", bools)}{_each("none", chr(10) + "  br label %none.next")}
{_each("unread", chr(10) + "  br label %unread.next")}{unions}{dicts}
{_each("sizes", sizes, "across")}{columns}{_each("text", texts)}{_each("list", lists)}
{_each("tuple", tuples)}{_each("fields", attributes)}
}}
{_fill()}{_intern()}"""


def _fill() -> str:
    """Puts zeros where the parts of an option would be that an object is not; a list of zero entries for a list."""
    parts = """
{0}:
  %{0}.empty = icmp eq i64 %third, 0
  br i1 %{0}.empty, label %good, label %{0}.loop
{0}.loop:
  %{0}.k = phi i64 [ 0, %{0} ], [ %{0}.k1, %{0}.loop ]
  %{0}.words = mul i64 %{0}.k, {1}
  %{0}.word = add i64 %{0}.words, {2}
  %{0}.entry = getelementptr i64, ptr %rest, i64 %{0}.word
  %{0}.child = load i64, ptr %{0}.entry
  %{0}.node = getelementptr i64, ptr %node, i64 %{0}.child
  call void @fill(ptr %{0}.node, ptr %columns, i1 %only)
  %{0}.k1 = add i64 %{0}.k, 1
  %{0}.more = icmp ult i64 %{0}.k1, %third
  br i1 %{0}.more, label %{0}.loop, label %good"""
    return f"""
define internal void @fill(ptr %node, ptr %columns, i1 %only) {{
entry:{word("kind", "%node", 0)}{word("third", "%node", 2)}
  %rest = getelementptr i64, ptr %node, i64 {REST}
  switch i64 %kind, label %number [
    i64 {NOTHING}, label %good
    i64 {TUPLE}, label %tuple
    i64 {DICT}, label %named
    i64 {ATTRIBUTES}, label %named ]
good:
  ret void
bad:
  store i64 {FAILED}, ptr %columns
  ret void
number:
  %column = getelementptr i64, ptr %columns, i64 %third{word("data", "%column", 0, "ptr")}{word("filled", "%column", 1)}
  {word("capacity", "%column", 2)}
  %after = add i64 %filled, 1
  store i64 %after, ptr %filled.at
  br i1 %only, label %good, label %room
room:
  %fits = icmp ult i64 %filled, %capacity
  br i1 %fits, label %zero, label %bad
zero:
  %is.bool = icmp eq i64 %kind, {BOOLS}
  br i1 %is.bool, label %byte, label %word
byte:
  %byte.to = getelementptr i8, ptr %data, i64 %filled
  store i8 0, ptr %byte.to
  ret void
word:
  %word.to = getelementptr i64, ptr %data, i64 %filled
  store i64 0, ptr %word.to
  ret void{parts.format("tuple", 1, 0)}{parts.format("named", 2, 1)}
}}
"""


def _intern() -> str:
    """`@whole` is the value of an int that is a code; `@intern` gives a string its code, as `abstract.words.intern` does.

    The latter is -1 where it has no UTF-8, or the code of another string.
    """
    same = """
  %{0} = call ptr %find(ptr %{1}, ptr %number)
  %{0}.none = icmp eq ptr %{0}, null
  br i1 %{0}.none, label %{0}.well, label %{0}.compare
{0}.compare:
  %{0}.order = call i32 %compare(ptr %{0}, ptr %text)
  %{0}.same = icmp eq i32 %{0}.order, 0
  br i1 %{0}.same, label %{0}.well, label %drop
{0}.well:"""
    first, second = (x - (1 << 64) if x >> 63 else x for x in (FIRST, SECOND))
    return f"""
define internal i64 @whole(ptr %int) {{
entry:
  %size.at = getelementptr i64, ptr %int, i64 2{_DIGITS}
  %digits = getelementptr i64, ptr %int, i64 3
  %some = icmp ugt i64 %count, 0
  br i1 %some, label %loop, label %end
loop:
  %k = phi i64 [ %count, %entry ], [ %k1, %loop ]
  %sum = phi i64 [ 0, %entry ], [ %sum1, %loop ]
  %k1 = sub i64 %k, 1
  %digit.at = getelementptr i32, ptr %digits, i64 %k1
  %digit = load i32, ptr %digit.at
  %wide = zext i32 %digit to i64
  %moved = shl i64 %sum, 30
  %sum1 = or i64 %moved, %wide
  %more = icmp ugt i64 %k1, 0
  br i1 %more, label %loop, label %end
end:
  %number = phi i64 [ 0, %entry ], [ %sum1, %loop ]
  ret i64 %number
}}

define internal i64 @intern(ptr %node, ptr %text) {{
entry:
  %size.to = alloca i64
  %last = alloca i64
  {word("find", "%node", REST - 2, "ptr")}{word("codes", "%node", REST, "ptr")}{word("texts", "%node", REST + 1, "ptr")}
  {word("constants", "%node", REST + 2, "ptr")}{word("utf8", "%node", REST + 3, "ptr")}{word("new", "%node", REST + 4, "ptr")}
  {word("set", "%node", REST + 5, "ptr")}{word("compare", "%node", REST + 6, "ptr")}{word("free", "%node", REST + 7, "ptr")}
  {word("forget", "%node", REST + 8, "ptr")}
  %bytes = call ptr %utf8(ptr %text, ptr %size.to)
  %none = icmp eq ptr %bytes, null
  br i1 %none, label %bad, label %measure
measure:
  %size = load i64, ptr %size.to
  %empty = icmp eq i64 %size, 0
  br i1 %empty, label %hashed, label %start
start:
  %h0 = mul i64 %size, {first}
  %whole = and i64 %size, -8
  %tail = and i64 %size, 7
  br label %words
words:
  %at = phi i64 [ 0, %start ], [ %at1, %mix ]
  %h = phi i64 [ %h0, %start ], [ %h3, %mix ]
  %in.whole = icmp ult i64 %at, %whole
  br i1 %in.whole, label %full, label %behind
behind:
  %more = icmp ult i64 %at, %size
  br i1 %more, label %part, label %finish
full:
  %word.at = getelementptr i8, ptr %bytes, i64 %at
  %word = load i64, ptr %word.at, align 1
  br label %mix
part:
  store i64 0, ptr %last
  br label %copy
copy:
  %c = phi i64 [ 0, %part ], [ %c1, %copy ]
  %c.at = add i64 %at, %c
  %byte.at = getelementptr i8, ptr %bytes, i64 %c.at
  %byte = load i8, ptr %byte.at
  %byte.to = getelementptr i8, ptr %last, i64 %c
  store i8 %byte, ptr %byte.to
  %c1 = add i64 %c, 1
  %c.more = icmp ult i64 %c1, %tail
  br i1 %c.more, label %copy, label %copied
copied:
  %partial = load i64, ptr %last
  br label %mix
mix:
  %w = phi i64 [ %word, %full ], [ %partial, %copied ]
  %h1 = xor i64 %h, %w
  %h2 = mul i64 %h1, {second}
  %shifted = lshr i64 %h2, 32
  %h3 = xor i64 %h2, %shifted
  %at1 = add i64 %at, 8
  br label %words
finish:
  %f1 = mul i64 %h, {first}
  %f1.shifted = lshr i64 %f1, 29
  %f2 = xor i64 %f1, %f1.shifted
  %f3 = mul i64 %f2, {second}
  %f3.shifted = lshr i64 %f3, 32
  %f4 = xor i64 %f3, %f3.shifted
  %f5 = lshr i64 %f4, 1
  br label %hashed
hashed:
  %code = phi i64 [ 0, %measure ], [ %f5, %finish ]
  %number = call ptr %new(i64 %code)
  %numberless = icmp eq ptr %number, null
  br i1 %numberless, label %bad, label %look
look:{same.format("constant", "constants")}{same.format("known", "texts")}
  br i1 %known.none, label %remember, label %note
remember:
  %remembered = call i32 %set(ptr %texts, ptr %number, ptr %text)
  %kept = icmp eq i32 %remembered, 0
  br i1 %kept, label %note, label %drop
note:
  %noted = call i32 %set(ptr %codes, ptr %text, ptr %number)
  %well = icmp eq i32 %noted, 0
  br i1 %well, label %done, label %drop
done:
  call void %free(ptr %number)
  ret i64 %code
drop:
  call void %free(ptr %number)
  br label %bad
bad:
  call void %forget()
  ret i64 -1
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

    clear = (
        """
  store i64 0, ptr %clear.column
  %clear.filled.at = getelementptr i64, ptr %clear.column, i64 1
  store i64 0, ptr %clear.filled.at
  %clear.limit.at = getelementptr i64, ptr %clear.column, i64 2
  store i64 0, ptr %clear.limit.at
  %clear.array.at = getelementptr i64, ptr %clear.column, i64 3
  store i64 0, ptr %clear.array.at"""
        + word("clear.options", "%clear.column", OPTIONS)
        + f"""
  %clear.missing.at = getelementptr i64, ptr %clear.column, i64 {MISSING}
  store i64 %clear.options, ptr %clear.missing.at
  br label %clear.next"""
    )
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
        + word("check.missing", "%check.column", MISSING)
        + word("check.least", "%check.column", LEAST)
        + """
  %check.whole = icmp eq i64 %check.filled, %check.limit
  %check.all = icmp eq i64 %check.missing, 0
  %check.many = icmp uge i64 %check.filled, %check.least
  %check.options = and i1 %check.all, %check.many
  %check.good = and i1 %check.whole, %check.options
  br i1 %check.good, label %check.next, label %other"""
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

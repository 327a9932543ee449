"""Machine code that writes changes into lists of Python objects, as `backend.native.writing` describes them.

Written in LLVM's own language, as `object_reader` is, whose walk this one resembles. Other threads may have run since the objects
were read, so the classes of objects and the lengths of lists are looked at again before anything is read of them; what is no longer
what it was stays as it is. A borrowed object is kept while functions run that may run others' code.

Input: nothing. Output: the text of functions, of which those that `backend.native.writing` names are called from outside.
"""

from __future__ import annotations

from ....abstract.reading import TUPLE_ITEMS
from ....utils.cpython import ARRAY_DATA
from ...native.blocks import HEADER, LENGTH
from ...native.building import APPEND, AS_INT, ATTRIBUTE, CUT, DROP, FIND, GET, HEAD, NEW_LIST, NONE, PUT, SET_ITEM
from ...native.writing import (
    ATTRIBUTES,
    CHILD,
    COLUMN,
    COLUMN_WORDS,
    COUNT,
    DICT,
    FROM,
    FUNCTION,
    LEAF,
    LEAVES_AT,
    LIST,
    MAKE,
    NEW,
    PART,
    PARTS,
    PARTS_AT,
    RECORD,
    SHARED,
    TUPLE,
    VALUE,
)
from .object_builder import word

_ARRAY_SIZES = 4  # words of an array of NumPy's before the address of its sizes
_ALL = 2**63 - 1


def _column(name: str, number: str) -> str:
    """`%NAME` is the first word of a column."""
    return f"""
  %{name}.words = mul i64 {number}, {COLUMN_WORDS}
  %{name} = getelementptr i64, ptr %columns, i64 %{name}.words"""


def _parts(name: str, body: str, then: str) -> str:
    """A loop over the parts of a record: `%NAME.key`, `%NAME.node`; `body` ends by going to `NAME.next`."""
    return f"""
{name}:{word(f"{name}.count", "%node", PARTS)}
  %{name}.none = icmp eq i64 %{name}.count, 0
  br i1 %{name}.none, label %{then}, label %{name}.loop
{name}.loop:
  %{name}.k = phi i64 [ 0, %{name} ], [ %{name}.k1, %{name}.next ]
  %{name}.words = mul i64 %{name}.k, {PART}
  %{name}.place = add i64 %{name}.words, {PARTS_AT}
  %{name}.entry = getelementptr i64, ptr %node, i64 %{name}.place{word(f"{name}.key", f"%{name}.entry", 0, "ptr")}
  {word(f"{name}.index", f"%{name}.entry", 0)}{word(f"{name}.child", f"%{name}.entry", 2)}
  %{name}.node = getelementptr i64, ptr %node, i64 %{name}.child{body}
{name}.next:
  %{name}.k1 = add i64 %{name}.k, 1
  %{name}.more = icmp ult i64 %{name}.k1, %{name}.count
  br i1 %{name}.more, label %{name}.loop, label %{then}
"""


def _in_tuple(name: str) -> str:
    """`%NAME.object` is a part of the tuple `%object`; where it has none, this goes to `NAME.next`."""
    return f"""{word(f"{name}.size", "%object", 2)}
  %{name}.there = icmp ult i64 %{name}.index, %{name}.size
  br i1 %{name}.there, label %{name}.has, label %{name}.next
{name}.has:
  %{name}.items = getelementptr i8, ptr %object, i64 {TUPLE_ITEMS}
  %{name}.item = getelementptr ptr, ptr %{name}.items, i64 %{name}.index
  %{name}.object = load ptr, ptr %{name}.item"""


def write() -> str:
    """The text of the functions that write.

    `@write` takes an object that stays, its node, where its final value is, which entry of its level it is in, and the columns;
    `@slot` takes a list and an index, or a dict and a key, and what is there; `@skip` goes past entries of columns. The first
    two return 0 unless there is an exception.
    """
    values = f"""
{{0}}:{word("found", "%node", COUNT)}
  %some.leaves = icmp ne i64 %found, 0
  br i1 %some.leaves, label %leaf, label %same
leaf:
  %leaf.k = phi i64 [ 0, %{{0}} ], [ %leaf.k1, %leaf.next ]
  %leaf.words = mul i64 %leaf.k, {LEAF}
  %leaf.place = add i64 %leaf.words, {LEAVES_AT}
  %leaf.entry = getelementptr i64, ptr %node, i64 %leaf.place{word("leaf.offset", "%leaf.entry", 0)}
  {word("leaf.column", "%leaf.entry", 1)}{word("leaf.byte", "%leaf.entry", 2)}{_column("leaf.data", "%leaf.column")}
  {word("leaf.numbers", "%leaf.data", 0, "ptr")}{word("leaf.size", "%leaf.data", 1)}
  %leaf.from = getelementptr i8, ptr %from, i64 %leaf.offset
  %leaf.known = icmp ult i64 %index, %leaf.size
  br i1 %leaf.known, label %leaf.compare, label %changed
leaf.compare:
  %leaf.is.byte = icmp ne i64 %leaf.byte, 0
  br i1 %leaf.is.byte, label %leaf.bytes, label %leaf.words8
leaf.bytes:
  %byte.before.at = getelementptr i8, ptr %leaf.numbers, i64 %index
  %byte.before = load i8, ptr %byte.before.at
  %byte.after = load i8, ptr %leaf.from
  %byte.same = icmp eq i8 %byte.before, %byte.after
  br i1 %byte.same, label %leaf.next, label %changed
leaf.words8:
  %word.before.at = getelementptr i64, ptr %leaf.numbers, i64 %index
  %word.before = load i64, ptr %word.before.at
  %word.after = load i64, ptr %leaf.from
  %word.same = icmp eq i64 %word.before, %word.after
  br i1 %word.same, label %leaf.next, label %changed
leaf.next:
  %leaf.k1 = add i64 %leaf.k, 1
  %leaf.more = icmp ult i64 %leaf.k1, %found
  br i1 %leaf.more, label %leaf, label %same"""
    slot = f"""
define internal i64 @slot(ptr %words, ptr %node, ptr %from, i64 %index, ptr %columns, ptr %object, ptr %key, i64 %k) {{
entry:{word("kind", "%node", 0)}{word("want", "%node", 1, "ptr")}{word("drop", "%words", DROP, "ptr")}
  %in.list = icmp eq ptr %key, null
  %is.value = icmp eq i64 %kind, {VALUE}
  br i1 %is.value, label %value, label %find{values.format("value")}
changed:
  %no.float = icmp eq ptr %want, null
  br i1 %no.float, label %make, label %find
find:
  br i1 %in.list, label %find.entry, label %find.key
find.entry:{word("length", "%object", 2)}
  %inside = icmp ult i64 %k, %length
  br i1 %inside, label %entry.there, label %same
entry.there:{word("items", "%object", 3, "ptr")}
  %item = getelementptr ptr, ptr %items, i64 %k
  %entry.object = load ptr, ptr %item
  br label %there
find.key:{word("find.it", "%words", FIND, "ptr")}
  %key.object = call ptr %find.it(ptr %object, ptr %key)
  %missing = icmp eq ptr %key.object, null
  br i1 %missing, label %no.key, label %there
no.key:
  br i1 %is.value, label %make, label %same
there:
  %old = phi ptr [ %entry.object, %entry.there ], [ %key.object, %find.key ]
  br i1 %is.value, label %number, label %inner
number:{word("references", "%old", 0)}{word("class", "%old", 1, "ptr")}
  %alone = icmp eq i64 %references, 1
  %float = icmp eq ptr %class, %want
  %reuse = and i1 %alone, %float
  br i1 %reuse, label %put.in, label %make
put.in:{word("number.offset", "%node", FROM)}
  %number.from = getelementptr i8, ptr %from, i64 %number.offset
  %bits = load i64, ptr %number.from
  %bits.to = getelementptr i64, ptr %old, i64 2
  store i64 %bits, ptr %bits.to
  ret i64 0
make:{word("make.child", "%node", MAKE)}{word("make.offset", "%node", FROM)}
  %make.node = getelementptr i64, ptr %node, i64 %make.child
  %make.from = getelementptr i8, ptr %from, i64 %make.offset
  %made = call ptr @value(ptr %words, ptr %make.node, ptr %make.from)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %bad, label %put
put:
  br i1 %in.list, label %put.entry, label %put.key
put.entry:{word("set.item", "%words", SET_ITEM, "ptr")}
  %entry.status = call i32 %set.item(ptr %object, i64 %k, ptr %made)
  %entry.status.wide = sext i32 %entry.status to i64
  ret i64 %entry.status.wide
put.key:{word("put.it", "%words", PUT, "ptr")}
  %key.status = call i32 %put.it(ptr %object, ptr %key, ptr %made)
  call void %drop(ptr %made)
  %key.status.wide = sext i32 %key.status to i64
  ret i64 %key.status.wide
inner:{word("get", "%words", GET, "ptr")}
  call void %get(ptr %old)
  %status = call i64 @write(ptr %words, ptr %node, ptr %from, i64 %index, ptr %columns, ptr %old)
  call void %drop(ptr %old)
  ret i64 %status
same:
  ret i64 0
bad:
  ret i64 -1
}}
"""
    offset = """
  %{0}.offset.at = getelementptr i64, ptr %{0}.entry, i64 1
  %{0}.offset = load i64, ptr %{0}.offset.at
  %{0}.from = getelementptr i8, ptr %from, i64 %{0}.offset"""
    skip = "\n  call void @skip(ptr %parts.node, ptr %columns, i64 %index, i64 %count)\n  br label %parts.next"
    status = """
  %{0}.good = icmp eq i64 %{0}.status, 0
  br i1 %{0}.good, label %{0}.next, label %bad"""
    inner = "\n  %{0}.status = call i64 @write(ptr %words, ptr %{0}.node, ptr %{0}.from, i64 %index, ptr %columns, ptr %{0}.object)"
    of_dict = (
        offset
        + """
  %{0}.status = call i64 @slot(ptr %words, ptr %{0}.node, ptr %{0}.from, i64 %index, ptr %columns, ptr %object,
    ptr %{0}.key, i64 0)"""
        + status
    ).format("dict")
    of_tuple = offset.format("tuple") + _in_tuple("tuple") + (inner + status).format("tuple")
    return (
        slot
        + f"""
define internal i64 @write(ptr %words, ptr %node, ptr %from, i64 %index, ptr %columns, ptr %object) {{
entry:{word("kind", "%node", 0)}{word("want", "%node", 1, "ptr")}{word("class", "%object", 1, "ptr")}
  {word("drop", "%words", DROP, "ptr")}
  %fits = icmp eq ptr %class, %want
  br i1 %fits, label %choose, label %good
choose:
  switch i64 %kind, label %bad [
    i64 {LIST}, label %list
    i64 {DICT}, label %dict
    i64 {TUPLE}, label %tuple ]
good:
  ret i64 0
bad:
  ret i64 -1
list:{word("column", "%node", COLUMN)}{word("record", "%node", RECORD)}{word("child", "%node", CHILD)}{word("new", "%node", NEW)}
  %block = load ptr, ptr %from{word("count", "%block", LENGTH)}{word("had", "%object", 2)}{_column("lengths", "%column")}
  {word("start", "%lengths", 2)}
  %after = add i64 %start, %had
  store i64 %after, ptr %start.at
  %first = getelementptr i8, ptr %block, i64 {HEADER}
  %inner = getelementptr i64, ptr %node, i64 %child
  %fewer = icmp ult i64 %count, %had
  %both = select i1 %fewer, i64 %count, i64 %had
  %none = icmp eq i64 %both, 0
  %stay = icmp eq i64 %child, 0
  %skip.them = or i1 %none, %stay
  br i1 %skip.them, label %ends, label %loop
loop:
  %k = phi i64 [ 0, %list ], [ %k1, %next ]
  %entry.from = phi ptr [ %first, %list ], [ %entry.from1, %next ]
  %entry.index = add i64 %start, %k
  %done = call i64 @slot(ptr %words, ptr %inner, ptr %entry.from, i64 %entry.index, ptr %columns, ptr %object, ptr null, i64 %k)
  %well = icmp eq i64 %done, 0
  br i1 %well, label %next, label %bad
next:
  %k1 = add i64 %k, 1
  %entry.from1 = getelementptr i8, ptr %entry.from, i64 %record
  %more = icmp ult i64 %k1, %both
  br i1 %more, label %loop, label %ends
ends:
  br i1 %fewer, label %cut, label %longer
cut:
  %gone = sub i64 %had, %count
  %left = add i64 %start, %count
  br i1 %stay, label %cut.off, label %cut.skip
cut.skip:
  call void @skip(ptr %inner, ptr %columns, i64 %left, i64 %gone)
  br label %cut.off
cut.off:{word("cut.it", "%words", CUT, "ptr")}
  %cut.status = call i32 %cut.it(ptr %object, i64 %count, i64 {_ALL}, ptr null)
  %cut.wide = sext i32 %cut.status to i64
  ret i64 %cut.wide
longer:{word("append", "%words", APPEND, "ptr")}
  %make = getelementptr i64, ptr %node, i64 %new
  %is.longer = icmp ugt i64 %count, %had
  br i1 %is.longer, label %add, label %good
add:
  %add.k = phi i64 [ %had, %longer ], [ %add.k1, %added ]
  %add.bytes = mul i64 %add.k, %record
  %add.from = getelementptr i8, ptr %first, i64 %add.bytes
  %made = call ptr @value(ptr %words, ptr %make, ptr %add.from)
  %lacks = icmp eq ptr %made, null
  br i1 %lacks, label %bad, label %add.it
add.it:
  %add.status = call i32 %append(ptr %object, ptr %made)
  call void %drop(ptr %made)
  %add.well = icmp eq i32 %add.status, 0
  br i1 %add.well, label %added, label %bad
added:
  %add.k1 = add i64 %add.k, 1
  %add.more = icmp ult i64 %add.k1, %count
  br i1 %add.more, label %add, label %good
{_parts("dict", of_dict, "good")}{_parts("tuple", of_tuple, "good")}
}}

define internal void @skip(ptr %node, ptr %columns, i64 %index, i64 %count) {{
entry:{word("kind", "%node", 0)}
  switch i64 %kind, label %parts [
    i64 {VALUE}, label %end
    i64 {LIST}, label %list ]
end:
  ret void
list:{word("column", "%node", COLUMN)}{word("child", "%node", CHILD)}{_column("lengths", "%column")}
  {word("numbers", "%lengths", 0, "ptr")}{word("size", "%lengths", 1)}{word("start", "%lengths", 2)}
  br label %sum
sum:
  %k = phi i64 [ 0, %list ], [ %k1, %sum.next ]
  %total = phi i64 [ 0, %list ], [ %total1, %sum.next ]
  %k.more = icmp ult i64 %k, %count
  %at = add i64 %index, %k
  %at.known = icmp ult i64 %at, %size
  %on = and i1 %k.more, %at.known
  br i1 %on, label %sum.next, label %summed
sum.next:
  %length.at = getelementptr i64, ptr %numbers, i64 %at
  %length = load i64, ptr %length.at
  %total1 = add i64 %total, %length
  %k1 = add i64 %k, 1
  br label %sum
summed:
  %after = add i64 %start, %total
  store i64 %after, ptr %start.at
  %leaf = icmp eq i64 %child, 0
  br i1 %leaf, label %end, label %inside
inside:
  %inner = getelementptr i64, ptr %node, i64 %child
  call void @skip(ptr %inner, ptr %columns, i64 %start, i64 %total)
  ret void
{_parts("parts", skip, "end")}
}}

define ptr @{FUNCTION}(ptr %self, ptr %given) {{
entry:
  %from = alloca ptr
  {word("words", "%self", ARRAY_DATA, "ptr")}{word("as.int", "%words", AS_INT, "ptr")}
  %parts = getelementptr i8, ptr %given, i64 {TUPLE_ITEMS}
  {word("target", "%parts", 0, "ptr")}{word("number", "%parts", 1, "ptr")}{word("arrays", "%parts", 2, "ptr")}
  %address = call i64 %as.int(ptr %number)
  %block = inttoptr i64 %address to ptr
  store ptr %block, ptr %from{word("count", "%arrays", 2)}
  %size = mul i64 %count, {COLUMN_WORDS}
  %columns = alloca i64, i64 %size
  %array.items = getelementptr i8, ptr %arrays, i64 {TUPLE_ITEMS}
  %node = getelementptr i64, ptr %words, i64 {HEAD}
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k1, %loop ]{word("array", "%array.items", "%k", "ptr")}{word("data", "%array", ARRAY_DATA, "ptr")}
  {word("sizes", "%array", _ARRAY_SIZES, "ptr")}
  %length = load i64, ptr %sizes{_column("place", "%k")}
  store ptr %data, ptr %place
  %length.to = getelementptr i64, ptr %place, i64 1
  store i64 %length, ptr %length.to
  %behind.to = getelementptr i64, ptr %place, i64 2
  store i64 0, ptr %behind.to
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %count
  br i1 %more, label %loop, label %go
go:
  %status = call i64 @write(ptr %words, ptr %node, ptr %from, i64 0, ptr %columns, ptr %target)
  %well = icmp eq i64 %status, 0
  br i1 %well, label %good, label %bad
good:{word("get", "%words", GET, "ptr")}{word("nothing", "%words", NONE, "ptr")}
  call void %get(ptr %nothing)
  ret ptr %nothing
bad:
  ret ptr null
}}
"""
    )


def shared() -> str:
    """The text of the functions that find lists and dicts to which several references lead, from the list that they are in."""
    inside = """
  call void @visit(ptr %words, ptr %{0}.node, ptr %{0}.object, i1 %several, i1 false, ptr %out)
  br label %{0}.next"""
    of_tuple = _in_tuple("tuple") + inside.format("tuple")
    of_dict = (
        """
  %{0}.object = call ptr %find(ptr %object, ptr %{0}.key)
  %{0}.lacks = icmp eq ptr %{0}.object, null
  br i1 %{0}.lacks, label %{0}.next, label %{0}.inside
{0}.inside:"""
        + inside
    ).format("dict")
    of_fields = (
        """
  %{0}.object = call ptr %attribute(ptr %object, ptr %{0}.key)
  %{0}.lacks = icmp eq ptr %{0}.object, null
  br i1 %{0}.lacks, label %{0}.next, label %{0}.inside
{0}.inside:
  call void %drop(ptr %{0}.object)"""
        + inside
    ).format("fields")
    return f"""
define internal void @visit(ptr %words, ptr %node, ptr %object, i1 %below, i1 %root, ptr %out) {{
entry:{word("kind", "%node", 0)}{word("want", "%node", 1, "ptr")}
  {word("references", "%object", 0)}{word("class", "%object", 1, "ptr")}{word("find", "%words", FIND, "ptr")}
  {word("attribute", "%words", ATTRIBUTE, "ptr")}{word("drop", "%words", DROP, "ptr")}
  {word("append", "%words", APPEND, "ptr")}
  %fits = icmp eq ptr %class, %want
  br i1 %fits, label %look, label %end
look:
  %more.than.one = icmp ne i64 %references, 1
  %others = or i1 %more.than.one, %below
  %inner = xor i1 %root, true
  %several = and i1 %others, %inner
  %changes = icmp ule i64 %kind, {DICT}
  %note = and i1 %several, %changes
  br i1 %note, label %noted, label %choose
noted:
  %status = call i32 %append(ptr %out, ptr %object)
  br label %choose
choose:
  switch i64 %kind, label %end [
    i64 {LIST}, label %list
    i64 {DICT}, label %dict
    i64 {TUPLE}, label %tuple
    i64 {ATTRIBUTES}, label %fields ]
end:
  ret void
list:{word("child", "%node", CHILD)}
  %flat = icmp eq i64 %child, 0
  br i1 %flat, label %end, label %loop
loop:
  %k = phi i64 [ 0, %list ], [ %k1, %next ]{word("count", "%object", 2)}
  %more = icmp ult i64 %k, %count
  br i1 %more, label %next, label %end
next:{word("items", "%object", 3, "ptr")}
  %item = getelementptr ptr, ptr %items, i64 %k
  %entry.object = load ptr, ptr %item
  %entry.node = getelementptr i64, ptr %node, i64 %child
  call void @visit(ptr %words, ptr %entry.node, ptr %entry.object, i1 %several, i1 false, ptr %out)
  %k1 = add i64 %k, 1
  br label %loop
{_parts("dict", of_dict, "end")}{_parts("tuple", of_tuple, "end")}{_parts("fields", of_fields, "end")}
}}

define ptr @{SHARED}(ptr %self, ptr %list) {{
entry:{word("words", "%self", ARRAY_DATA, "ptr")}{word("new.list", "%words", NEW_LIST, "ptr")}
  %node = getelementptr i64, ptr %words, i64 {HEAD}
  %out = call ptr %new.list(i64 0)
  %failed = icmp eq ptr %out, null
  br i1 %failed, label %end, label %go
go:
  call void @visit(ptr %words, ptr %node, ptr %list, i1 false, i1 true, ptr %out)
  br label %end
end:
  ret ptr %out
}}
"""


__all__ = ["shared", "write"]

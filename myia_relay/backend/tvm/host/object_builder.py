"""Machine code that makes lists of Python objects out of blocks, as `backend.native.building` describes them.

Written in LLVM's own language, as `object_reader` is. What CPython's functions return as null is returned as null, with what was
made before given back: the exception that they have set is that of the call.

Input: nothing. Output: the text of functions, of which those that `backend.native.building` names are called from outside.
"""

from __future__ import annotations

from ....abstract.reading import TUPLE_ITEMS
from ....utils.cpython import ARRAY_DATA
from ...native.blocks import HEADER, LENGTH, NEXT
from ...native.building import (
    AS_INT,
    BOOLS,
    CALL,
    DICT,
    DROP,
    FALSE,
    FIND,
    FIXED,
    FREE,
    FUNCTION,
    GET,
    HEAD,
    INTS,
    LIST,
    LOOKUP,
    NAMED,
    NEW_DICT,
    NEW_FLOAT,
    NEW_INT,
    NEW_LIST,
    NEW_RECORD,
    NEW_TUPLE,
    NONE,
    NOTHING,
    PART,
    PARTS,
    PUT,
    RELEASE,
    TABLE,
    TEXT,
    TRUE,
    TUPLE,
    UNION,
    WORDS,
)


def word(name: str, base: str, k: int | str, kind: str = "i64") -> str:
    """`%NAME` is word `k` after an address."""
    return f"""
  %{name}.at = getelementptr i64, ptr {base}, i64 {k}
  %{name} = load {kind}, ptr %{name}.at"""


def _parts(name: str, put: str) -> str:
    """Makes the parts of `%NAME.new`; `put` puts `%NAME.part` into it, and ends by going to `NAME.next` or `NAME.bad`."""
    return f"""
  %{name}.failed = icmp eq ptr %{name}.new, null
  br i1 %{name}.failed, label %bad, label %{name}.parts
{name}.parts:
  %{name}.none = icmp eq i64 %count, 0
  br i1 %{name}.none, label %{name}.end, label %{name}.loop
{name}.loop:
  %{name}.k = phi i64 [ 0, %{name}.parts ], [ %{name}.k1, %{name}.next ]
  %{name}.words = mul i64 %{name}.k, {PART}
  %{name}.place = add i64 %{name}.words, {PARTS}
  %{name}.entry = getelementptr i64, ptr %node, i64 %{name}.place{word(f"{name}.offset", f"%{name}.entry", 1)}
  {word(f"{name}.child", f"%{name}.entry", 2)}
  %{name}.from = getelementptr i8, ptr %from, i64 %{name}.offset
  %{name}.node = getelementptr i64, ptr %node, i64 %{name}.child
  %{name}.part = call ptr @value(ptr %words, ptr %{name}.node, ptr %{name}.from)
  %{name}.lacks = icmp eq ptr %{name}.part, null
  br i1 %{name}.lacks, label %{name}.bad, label %{name}.put
{name}.put:{put}
{name}.next:
  %{name}.k1 = add i64 %{name}.k, 1
  %{name}.more = icmp ult i64 %{name}.k1, %count
  br i1 %{name}.more, label %{name}.loop, label %{name}.end
{name}.end:
  ret ptr %{name}.new
{name}.bad:
  call void %drop(ptr %{name}.new)
  ret ptr null
"""


def _into(name: str, items: str) -> str:
    """Puts a part into the memory of an object's entries."""
    return f"""{items}
  %{name}.to = getelementptr ptr, ptr %{name}.items, i64 %{name}.k
  store ptr %{name}.part, ptr %{name}.to
  br label %{name}.next"""


def build() -> str:
    """The text of the functions."""
    in_tuple = "\n  %{0}.items = getelementptr i8, ptr %{0}.new, i64 " + str(TUPLE_ITEMS)
    in_list = "\n  %{0}.items.at = getelementptr i64, ptr %{0}.new, i64 3\n  %{0}.items = load ptr, ptr %{0}.items.at"
    in_dict = f"""
  %dict.key = load ptr, ptr %dict.entry{word("put", "%words", PUT, "ptr")}
  %dict.status = call i32 %put(ptr %dict.new, ptr %dict.key, ptr %dict.part)
  call void %drop(ptr %dict.part)
  %dict.well = icmp eq i32 %dict.status, 0
  br i1 %dict.well, label %dict.next, label %dict.bad"""
    return f"""
define internal ptr @value(ptr %words, ptr %node, ptr %from) {{
entry:{word("kind", "%node", 0)}
  switch i64 %kind, label %bad [
    i64 {WORDS}, label %real
    i64 {INTS}, label %whole
    i64 {BOOLS}, label %truth
    i64 {NOTHING}, label %nothing
    i64 {TEXT}, label %text
    i64 {UNION}, label %union
    i64 {LIST}, label %list
    i64 {TUPLE}, label %parts
    i64 {NAMED}, label %parts
    i64 {FIXED}, label %parts
    i64 {DICT}, label %parts ]
bad:
  ret ptr null
real:
  %number = load double, ptr %from{word("new.float", "%words", NEW_FLOAT, "ptr")}
  %float = call ptr %new.float(double %number)
  ret ptr %float
whole:
  %integer = load i64, ptr %from{word("new.int", "%words", NEW_INT, "ptr")}
  %int = call ptr %new.int(i64 %integer)
  ret ptr %int
truth:
  %byte = load i8, ptr %from{word("false", "%words", FALSE, "ptr")}{word("true", "%words", TRUE, "ptr")}
  %is.false = icmp eq i8 %byte, 0
  %bool = select i1 %is.false, ptr %false, ptr %true
  br label %shared
nothing:{word("none", "%words", NONE, "ptr")}
  br label %shared
shared:
  %object = phi ptr [ %bool, %truth ], [ %none, %nothing ]{word("get", "%words", GET, "ptr")}
  call void %get(ptr %object)
  ret ptr %object
text:
  %code = load i64, ptr %from{word("new.code", "%words", NEW_INT, "ptr")}{word("find", "%words", FIND, "ptr")}
  {word("table", "%words", TABLE, "ptr")}{word("text.get", "%words", GET, "ptr")}{word("text.drop", "%words", DROP, "ptr")}
  %key = call ptr %new.code(i64 %code)
  %keyless = icmp eq ptr %key, null
  br i1 %keyless, label %bad, label %text.find
text.find:
  %known = call ptr %find(ptr %table, ptr %key)
  %unknown = icmp eq ptr %known, null
  br i1 %unknown, label %text.ask, label %text.known
text.known:
  call void %text.drop(ptr %key)
  call void %text.get(ptr %known)
  ret ptr %known
text.ask:{word("ask", "%words", CALL, "ptr")}{word("lookup", "%words", LOOKUP, "ptr")}
  %asked = call ptr (ptr, ...) %ask(ptr %lookup, ptr %key, ptr null)
  call void %text.drop(ptr %key)
  ret ptr %asked
union:{word("union.offset", "%node", PARTS + 1)}
  %which.at = getelementptr i8, ptr %from, i64 %union.offset
  %which = load i64, ptr %which.at
  %which.words = mul i64 %which, {PART}
  %option.place = add i64 %which.words, {PARTS + PART}
  %option.entry = getelementptr i64, ptr %node, i64 %option.place{word("option.offset", "%option.entry", 1)}
  {word("option.child", "%option.entry", 2)}
  %option.from = getelementptr i8, ptr %from, i64 %option.offset
  %option.node = getelementptr i64, ptr %node, i64 %option.child
  %option = call ptr @value(ptr %words, ptr %option.node, ptr %option.from)
  ret ptr %option
list:
  %block = load ptr, ptr %from
  %inner = call ptr @list(ptr %words, ptr %node, ptr %block)
  ret ptr %inner
parts:{word("count", "%node", 1)}{word("class", "%node", 2, "ptr")}{word("drop", "%words", DROP, "ptr")}
  switch i64 %kind, label %tuple [
    i64 {NAMED}, label %named
    i64 {FIXED}, label %fixed
    i64 {DICT}, label %dict ]
tuple:{word("new.tuple", "%words", NEW_TUPLE, "ptr")}
  %tuple.new = call ptr %new.tuple(i64 %count){_parts("tuple", _into("tuple", in_tuple.format("tuple")))}
named:{word("new.record", "%words", NEW_RECORD, "ptr")}
  %named.new = call ptr %new.record(ptr %class, i64 %count){_parts("named", _into("named", in_tuple.format("named")))}
fixed:{word("new.list", "%words", NEW_LIST, "ptr")}
  %fixed.new = call ptr %new.list(i64 %count){_parts("fixed", _into("fixed", in_list.format("fixed")))}
dict:{word("new.dict", "%words", NEW_DICT, "ptr")}
  %dict.new = call ptr %new.dict(){_parts("dict", in_dict)}
}}

define internal ptr @list(ptr %words, ptr %node, ptr %block) {{
entry:{word("count", "%block", LENGTH)}{word("record", "%node", 1)}{word("child", "%node", 2)}
  {word("new.list", "%words", NEW_LIST, "ptr")}
  %new = call ptr %new.list(i64 %count)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %bad, label %ready
bad:
  ret ptr null
ready:{word("items", "%new", 3, "ptr")}
  %inner = getelementptr i64, ptr %node, i64 %child
  %first = getelementptr i8, ptr %block, i64 {HEADER}
  %none = icmp eq i64 %count, 0
  br i1 %none, label %end, label %loop
loop:
  %k = phi i64 [ 0, %ready ], [ %k1, %next ]
  %from = phi ptr [ %first, %ready ], [ %from1, %next ]
  %made = call ptr @value(ptr %words, ptr %inner, ptr %from)
  %lacks = icmp eq ptr %made, null
  br i1 %lacks, label %give.up, label %next
next:
  %to = getelementptr ptr, ptr %items, i64 %k
  store ptr %made, ptr %to
  %k1 = add i64 %k, 1
  %from1 = getelementptr i8, ptr %from, i64 %record
  %more = icmp ult i64 %k1, %count
  br i1 %more, label %loop, label %end
end:
  ret ptr %new
give.up:{word("drop", "%words", DROP, "ptr")}
  call void %drop(ptr %new)
  ret ptr null
}}

define ptr @{RELEASE}(ptr %self, ptr %number) {{
entry:{word("words", "%self", ARRAY_DATA, "ptr")}{word("as.int", "%words", AS_INT, "ptr")}{word("free", "%words", FREE, "ptr")}
  %address = call i64 %as.int(ptr %number)
  %head = inttoptr i64 %address to ptr
  br label %next
next:
  %block = load ptr, ptr %head
  %none = icmp eq ptr %block, null
  br i1 %none, label %end, label %drop
drop:{word("after", "%block", NEXT, "ptr")}
  store ptr %after, ptr %head
  call void %free(ptr %block)
  br label %next
end:{word("get", "%words", GET, "ptr")}{word("nothing", "%words", NONE, "ptr")}
  call void %get(ptr %nothing)
  ret ptr %nothing
}}

define ptr @{FUNCTION}(ptr %self, ptr %number) {{
entry:{word("words", "%self", ARRAY_DATA, "ptr")}{word("as.int", "%words", AS_INT, "ptr")}
  %address = call i64 %as.int(ptr %number)
  %block = inttoptr i64 %address to ptr
  %node = getelementptr i64, ptr %words, i64 {HEAD}
  %made = call ptr @list(ptr %words, ptr %node, ptr %block)
  ret ptr %made
}}
"""


__all__ = ["build", "word"]

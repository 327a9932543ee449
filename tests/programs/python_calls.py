"""Programs with builtins, methods, slices, formats, iterators and patterns, each with what becomes of it.

A line is the body of a function of `n, x, l, t, d, s, a`, then `##`, then "same" (what CPython returns, prints or raises), or the
class of the refusal and how its message begins.
"""

# ruff: noqa: E501

PROGRAMS = r"""
return f"{x:d}"  ## ValueError_: Unknown format code 'd' for object of type '
f"{x:d}"; return 1  ## ValueError_: Unknown format code 'd' for object of type '
y=f"{x:d}"; return 1  ## ValueError_: Unknown format code 'd' for object of type '
y=f"{n:c}"; return 1  ## same
y=f"{n+2**40:c}"; return 1  ## same
return f"{n+100:c}"  ## same
return f"{n+2**40:c}"  ## same
return f"{x:.2f}", f"{n:5d}", f"{n:x}", f"{x!r:>10}", f"{n:>10}", f"{True:d}", f"{n>2:d}"  ## same
return f"{l:d}"  ## TypeError_: unsupported format string passed to list.__f
return f"{l:>10}"  ## TypeError_: unsupported format string passed to list.__f
return f"{t:>10}"  ## TypeError_: unsupported format string passed to tuple.__
return f"{l}", f"{t}", f"{d}", f"{s}", f"{s:>10}", f"{s!r}"  ## same
return f"{a}"  ## same
return f"{a:.2f}"  ## TypeError_: unsupported format string passed to ndarray.
return f"{P(1,2.0)}"  ## same
return f"{Q(1)}"  ## same
return f"{None}"  ## same
return f"{None:>5}"  ## TypeError_: unsupported format string passed to NoneType
return f"{np.float32(x):.3f}", f"{np.float32(x)}", f"{np.float64(x)!r}"  ## same
return f"{np.int64(n):d}", f"{np.int8(n):c}"  ## same
return f"{x:s}"  ## ValueError_: Unknown format code 's' for object of type '
return f"{n:s}"  ## ValueError_: Unknown format code 's' for object of type '
return f"{s:d}"  ## ValueError_: Unknown format code 'd' for object of type '
return f"{f'{n}':d}"  ## ValueError_: Unknown format code 'd' for object of type '
return f"{f'{n}':>5}"  ## same
y=n if n>2 else x; return f"{y:.2f}"  ## same
y=n if n>2 else x; return f"{y:d}"  ## ValueError_: Unknown format code 'd' for object of type '
"abc".nope; return 1  ## AttributeError_: 'str' object has no attribute 'nope'
s.nope; return 1  ## AttributeError_: 'str' object has no attribute 'nope'
y="abc".nope; return 1  ## AttributeError_: 'str' object has no attribute 'nope'
s.upper; return 1  ## same
n.nope; return 1  ## AttributeError_: int has no attribute 'nope' in the language
l.nope; return 1  ## AttributeError_: 'list' object has no attribute 'nope'
t.nope; return 1  ## AttributeError_: 'tuple' object has no attribute 'nope'
a.nope; return 1  ## AttributeError_: array of float64 with shape (3,) has no attr
d.nope; return 1  ## AttributeError_: 'dict' object has no attribute 'nope'
P(1,2.0).nope; return 1  ## AttributeError_: P has no field 'nope' (its fields are a, b)
return a[slice()]  ## TypeError_: slice(): missing a required argument: 'start
return a[slice(1)], a[slice(1,2)], l[slice(1,None)], t[slice(None,None,-1)]  ## same
return list(map(abs))  ## TypeError_: map(): missing a required argument: 'iterabl
print(1, sep=2); return 1  ## TypeError_: sep must be None or a string, not int
print(1, sep=None); return 1  ## same
print(1,2, sep=s, end=None); return 1  ## same
print(1, end=5); return 1  ## TypeError_: end must be None or a string, not int
print(1, file=None); return 1  ## TypeError_: print: file cannot be used in compiled code
print(1, flush=True); return 1  ## TypeError_: print: flush cannot be used in compiled code
return d.keys()  ## TypeError_: compiled code cannot return dict_keys to Pyt
return d.items()  ## TypeError_: compiled code cannot return dict_items to Py
return d.values()  ## TypeError_: compiled code cannot return dict_values to P
return list(d.keys()), list(d.items()), list(d.values()), tuple(d.items())  ## same
return isinstance(x, 5)  ## TypeError_: isinstance() arg 2 must be a type, a tuple o
return isinstance(x, (int, 5))  ## TypeError_: isinstance() arg 2 must be a type, a tuple o
return isinstance(x, list[int])  ## TypeError_: list cannot be indexed
return isinstance(l, list[int])  ## TypeError_: list cannot be indexed
return isinstance(x, int|float), isinstance(x, (int, (float, str))), isinstance(None, None|int)  ## same
return isinstance(None, type(None)), isinstance(x, ()), isinstance(True, int), isinstance(n, bool)  ## same
return isinstance(range(3), range), isinstance(slice(1), slice), isinstance(abs, type), isinstance(int, type)  ## same
return (1,2)[0:1.0]  ## TypeError_: slice indices must be integers or None or ha
return l[0:1.0]  ## TypeError_: slice indices must be integers or None, not
return a[0:1.0]  ## TypeError_: a slice index must be an int, and this is
return s[0:1.0]  ## TypeError_: slice indices must be integers or None or ha
return [1,2,3][0.0:2]  ## TypeError_: slice indices must be integers or None or ha
return (1,2)[0:n]  ## TypeError_: the bounds of a slice of a tuple must be kno
return (1,2)["a":2]  ## TypeError_: slice indices must be integers or None or ha
return (1,2)[None:None]  ## same
return (1,2)[::0]  ## same
return l[::0]  ## same
return [1,2][::0]  ## same
return s[::0]  ## same
return a[::0]  ## TypeError_: a slice step must be an int known at compile
return 1 in "abc"  ## TypeError_: 'in <string>' requires string as left operan
return n in s  ## TypeError_: 'in <string>' requires string as left operan
return x in "abc"  ## TypeError_: 'in <string>' requires string as left operan
return None in "abc"  ## TypeError_: 'in <string>' requires string as left operan
return l in "abc"  ## TypeError_: 'in <string>' requires string as left operan
return "a" in s, "z" in s, "" in s, s in s  ## same
return "a" in l  ## same
return "a" in t  ## same
return 1 in t, 2.5 in t, n in (1,2,3)  ## same
return "a" in d, "z" in d, "a" in d.keys(), 1.0 in d.values(), ("a",1.0) in d.items()  ## same
return n in d  ## TypeError_: a dict key must be known at compile time, bu
return 1 in n  ## TypeError_: `in` needs a tuple, list, dict, array or str
return str(), int(), float(), bool(), str(object=x), str(object=s), list(), tuple(), dict()  ## same
return W.nope  ## AttributeError_: object 'W' has no attribute 'nope'
return w.nope  ## AttributeError_: object 'W' has no attribute 'nope'
return len(zip(l,l))  ## TypeError_: object of type zip has no len()
return len(enumerate(l))  ## TypeError_: object of type enumerate has no len()
return len(reversed(l))  ## TypeError_: object of type reversed has no len()
return len(map(abs,l))  ## TypeError_: object of type iterator has no len()
return list(reversed(zip(l,l)))  ## TypeError_: 'zip' object is not reversible; make a list
return list(reversed(enumerate(l)))  ## TypeError_: 'enumerate' object is not reversible; make a
return list(reversed(map(abs,l)))  ## TypeError_: 'iterator' object is not reversible; make a
return list(reversed(d)), list(reversed(range(3))), list(reversed(s)), list(reversed(t))  ## same
z=zip(l,l); y=list(z); return y, list(z)  ## TypeError_: what zip() makes can be gone over only once,
z=enumerate(l); y=list(z); return y, list(z)  ## TypeError_: what enumerate() makes can be gone over only
z=map(abs,l); y=list(z); return y, list(z)  ## TypeError_: what map() makes can be gone over only once,
z=reversed(l); y=list(z); return y, list(z)  ## TypeError_: what reversed() makes can be gone over only
z=(v+1 for v in l); y=list(z); return y, list(z)  ## ParseError: a generator expression is only possible as t
z=(v+1 for v in t); y=tuple(z); return y, tuple(z)  ## ParseError: a generator expression is only possible as t
z=zip(l,l); return [p for p in z], [p for p in z]  ## TypeError_: what zip() makes can be gone over only once,
z=zip(t,t); y=tuple(z); return y, tuple(z)  ## TypeError_: what zip() makes can be gone over only once,
z=zip(l,l)\n    for p in z:\n        break\n    return list(z)  ## TypeError_: what zip() makes can be gone over only once,
z=iter(l); return list(z)  ## same
z=zip(l,l); return z  ## TypeError_: compiled code cannot return zip to Python; r
z=map(abs,l); return z  ## TypeError_: compiled code cannot return map to Python; r
z=enumerate(l); return z  ## TypeError_: compiled code cannot return enumerate to Pyt
z=range(n); return z  ## TypeError_: compiled code cannot return range to Python;
z=reversed(l); return z  ## TypeError_: compiled code cannot return reversed to Pyth
z=(v for v in l); return z  ## ParseError: a generator expression is only possible as t
return zip(l,l)[0]  ## TypeError_: zip cannot be indexed
return map(abs,l)[0]  ## TypeError_: iterator cannot be indexed
return enumerate(l)[0]  ## TypeError_: enumerate cannot be indexed
return (v for v in l)[0]  ## ParseError: a generator expression is only possible as t
return (v for v in t)[0]  ## ParseError: a generator expression is only possible as t
return len(v for v in t)  ## TypeError_: object of type iterator has no len()
return sum(v for v in l), max(v for v in l), any(v>1 for v in l), sum([v for v in t]), sorted(v for v in l)  ## same
return zip(l,l) == zip(l,l)  ## TypeError_: zip == zip is not part of the language; comp
return range(3)==range(3), range(0)==range(2,2), range(n)[1], range(n)[-1], range(10)[2:5], len(range(n))  ## TypeError_: compiled code cannot return range to Python;
return bool(zip()), bool(map(abs,[])), bool(range(0)), bool(range(n))  ## same
return 1 if zip() else 2  ## same
return 1 if (v for v in ()) else 2  ## ParseError: a generator expression is only possible as t
return (v for v in l) is None  ## ParseError: a generator expression is only possible as t
def f(*q): return q\n    return f(*zip(l,l))  ## same
def f(*q): return len(q)\n    return f(*map(abs,l)), f(*(v for v in l)), f(*d), f(*s), f(*d.items())  ## ParseError: a generator expression is only possible as t
y,*z=map(abs,l); return y,z  ## same
y,z,w=map(abs,l); return y,z,w  ## same
y,z=t; return z,y  ## same
y,z=n; return y  ## TypeError_: cannot unpack int, which is not iterable
y,z=l; return y  ## same
y,z=(1,2,3); return y  ## TypeError_: too many values to unpack (expected 2)
y,*z=(); return y  ## TypeError_: not enough values to unpack (expected at lea
(y,z),w=(1,2),3; return y,z,w  ## same
y,(z,w)=1,s[:2]; return y,z,w  ## same
[y,z]=t; return y  ## same
y=z=[1]; y.append(2); return z  ## ParseError: 'y' cannot be changed in place: 'z' may be,
y=z=n; y+=1; return y,z  ## same
return sorted(v for v in l)  ## same
return sorted(l)  ## same
return sorted(l, reverse=True)  ## same
return max(v for v in l)  ## same
return sum(v for v in l)  ## same
return any(v>1 for v in l)  ## same
return sum([v for v in t])  ## same
return any(v>1 for v in l), 1  ## same
return any(v>1 for v in t), all(v>1 for v in t), all(v<9 for v in l)  ## same
return range(10)[2:5]  ## TypeError_: compiled code cannot return range to Python;
return list(range(10)[2:5])  ## same
return range(n)[1], range(n)[-1]  ## same
return (n,3).index(3)  ## TypeError_: tuple.index() finds what is known at compile
return (1,2,3).index(3), (1,2.0).index(2)  ## same
return (1,2,3).index(9)  ## same
return t.index(2.5)  ## TypeError_: tuple.index() finds what is known at compile
return s.split(sep="b"), s.split("b", maxsplit=1), "a,b,c".rsplit(",", maxsplit=1)  ## same
e=[v for v in l]; e.extend(P(1,2.0)); return e  ## same
e=[v for v in l]; e.extend(Q(1)); return e  ## TypeError_: Q(a: int, b: float) is a dataclass, not a se
e=[v for v in l]; e.extend(t); return e  ## same
e=[1]; e.extend(s); return e  ## same
e=[1]; e+=d; return e  ## same
e=[1.0]; e+=s; return e  ## TypeError_: unsupported operand type(s) for +=: [float]
match n:\n        case int(v): return v\n        case _: return -1  ## same
match x:\n        case int(v): return 1\n        case float(v): return v  ## same
match n:\n        case int(): return 1\n        case _: return 2  ## same
match s:\n        case str(v): return v\n        case _: return 1  ## same
match t:\n        case tuple(v): return v\n        case _: return 1  ## same
match l:\n        case list(v): return v\n        case _: return [1.0]  ## same
match d:\n        case dict(v): return v\n        case _: return d  ## same
match True:\n        case bool(v): return v  ## same
match True:\n        case int(v): return v  ## same
match n:\n        case bool(v): return 5\n        case int(v): return 6  ## same
match n:\n        case int(3): return 5\n        case int(v): return v  ## same
match n:\n        case int(real=v): return v  ## same
match n:\n        case int(a, b): return 1  ## TypeError_: int() accepts 1 positional sub-patterns (2 g
match a:\n        case np.ndarray(): return 1  ## same
match a:\n        case np.ndarray(v): return 1  ## TypeError_: ndarray() accepts 0 positional sub-patterns
match x:\n        case float(v) if v > 2: return v\n        case float(v): return -v  ## same
match x:\n        case int() | float(): return 1  ## same
match x:\n        case int() | float() as v: return v  ## same
match (n, x):\n        case (int(p), float(q)): return p, q  ## same
match (n, x):\n        case [int(p), int(q)]: return 1\n        case [int(p), float(q)]: return q, p  ## same
match None:\n        case None: return 1  ## same
match P(1,2.0):\n        case P(p, q): return p, q  ## same
match P(1,2.0):\n        case tuple(p): return p  ## same
match P(1,2.0):\n        case P(a=1, b=q): return q  ## same
match Q(1):\n        case Q(p, b=q): return p, q  ## same
match Q(1):\n        case Q(5): return 1\n        case Q(p): return p  ## same
match n:\n        case 1 | 2: return 1\n        case 3: return 3  ## same
match s:\n        case "abc": return 1\n        case _: return 2  ## same
match t:\n        case (1, *r): return r  ## same
match l:\n        case [p, *r]: return p, r  ## same
match l:\n        case [p, q]: return 1\n        case [p, q, r]: return r  ## same
match d:\n        case {"a": p}: return p  ## ParseError: a mapping pattern is not part of the languag
match n:\n        case 5: return 1  ## same
match n:\n        case v if v > 5: return 1\n        case v: return v  ## same
match np.float64(x):\n        case float(v): return v  ## same
match np.float32(x):\n        case float(v): return v\n        case _: return 0.0  ## same
match n:\n        case str(v): return 1\n        case object(): return 2  ## same
match n:\n        case object(v): return 2  ## TypeError_: object() accepts 0 positional sub-patterns (
match n:\n        case complex(v): return 2\n        case _: return 1  ## same
match a[0]:\n        case float(v): return v  ## same
match range(3):\n        case range(): return 1\n        case _: return 2  ## same
match (1,2):\n        case tuple((p, q)): return p+q  ## same
match y:=n if n > 2 else x:\n        case int(v): return v\n        case float(v): return v  ## same
y=n if n>2 else x\n    match y:\n        case int(v): return v\n        case float(v): return v  ## same
y=n if n>2 else None\n    match y:\n        case int(v): return v\n        case None: return 0  ## same
v = abs(True); return v  ## same
v = abs(n); return v  ## same
v = abs(x); return v  ## same
v = abs(); return v  ## TypeError_: abs(): missing a required argument: 'x'
v = abs(l); return v  ## TypeError_: unsupported operand type(s) for abs: list[fl
v = abs(s); return v  ## TypeError_: bad operand type for abs(): 'str'
v = all(t); return v  ## same
v = all(d); return v  ## same
v = all(s); return v  ## same
v = all(P(1,2.0)); return v  ## same
v = all({}); return v  ## same
v = all(); return v  ## TypeError_: all(): missing a required argument: 'iterabl
v = all(n); return v  ## TypeError_: cannot all int: its length must be known at
v = all(x); return v  ## TypeError_: cannot all float: its length must be known a
v = all(abs); return v  ## TypeError_: abs is not iterable; a loop runs over range,
v = all(None); return v  ## TypeError_: None is not iterable; a loop runs over range
v = all(Q(1)); return v  ## TypeError_: Q(a: int, b: float) is a dataclass, not a se
v = all(True); return v  ## TypeError_: cannot all bool: its length must be known at
v = any(s); return v  ## same
v = any(t); return v  ## same
v = any([]); return v  ## same
v = any(P(1,2.0)); return v  ## same
v = any({}); return v  ## same
v = any(); return v  ## TypeError_: any(): missing a required argument: 'iterabl
v = any(n); return v  ## TypeError_: cannot any int: its length must be known at
v = any(x); return v  ## TypeError_: cannot any float: its length must be known a
v = any(abs); return v  ## TypeError_: abs is not iterable; a loop runs over range,
v = any(None); return v  ## TypeError_: None is not iterable; a loop runs over range
v = any(Q(1)); return v  ## TypeError_: Q(a: int, b: float) is a dataclass, not a se
v = any(True); return v  ## TypeError_: cannot any bool: its length must be known at
v = bool(Q(1)); return v  ## same
v = bool(x); return v  ## same
v = bool(t); return v  ## same
v = bool(None); return v  ## same
v = bool(()); return v  ## same
v = bool(n, n); return v  ## TypeError_: bool(): too many positional arguments
v = dict(d, a=1); return v  ## same
v = dict(d); return v  ## same
v = dict([]); return v  ## same
v = dict(); return v  ## same
v = dict(nope=1); return v  ## same
v = dict(n); return v  ## TypeError_: cannot make a dict of int: its length must b
v = dict(s); return v  ## TypeError_: dict: an entry is a pair (key, value), and t
v = dict(t); return v  ## TypeError_: cannot dict int: its length must be known at
v = dict(n, n); return v  ## TypeError_: dict(): too many positional arguments
v = dict(abs); return v  ## TypeError_: abs is not iterable; a loop runs over range,
v = dict(None); return v  ## TypeError_: None is not iterable; a loop runs over range
v = dict(Q(1)); return v  ## TypeError_: Q(a: int, b: float) is a dataclass, not a se
v = divmod(x, n); return v  ## same
v = divmod(n, n); return v  ## same
v = divmod(x, 1.0); return v  ## same
v = divmod(); return v  ## TypeError_: divmod(): missing a required argument: 'x'
v = divmod(l, n); return v  ## TypeError_: unsupported operand type(s) for divmod(): li
v = list(enumerate({})); return v  ## same
v = list(enumerate((), 1)); return v  ## same
v = list(enumerate(t)); return v  ## same
v = list(enumerate(s, n)); return v  ## same
v = list(enumerate(P(1,2.0))); return v  ## same
v = list(enumerate()); return v  ## TypeError_: enumerate(): missing a required argument: 'i
v = list(enumerate(n)); return v  ## TypeError_: int is not iterable; a loop runs over range,
v = list(enumerate(x)); return v  ## TypeError_: float is not iterable; a loop runs over rang
v = list(enumerate(s, s)); return v  ## TypeError_: unsupported operand type(s) for index: str
v = list(enumerate(l, 1.5)); return v  ## TypeError_: 'float' object cannot be interpreted as an i
v = list(enumerate(abs, l)); return v  ## TypeError_: unsupported operand type(s) for index: list[
v = list(enumerate(abs)); return v  ## TypeError_: abs is not iterable; a loop runs over range,
v = float(); return v  ## same
v = float(x); return v  ## same
v = float(n); return v  ## same
v = float(True); return v  ## same
v = float(s); return v  ## same
v = float(l); return v  ## TypeError_: unsupported operand type(s) for float: list[
v = float(n, n); return v  ## TypeError_: float(): too many positional arguments
v = float(None); return v  ## TypeError_: float() argument must be a string or a real
v = getattr(); return v  ## TypeError_: getattr(): missing a required argument: 'obj
v = getattr(n, n); return v  ## TypeError_: an attribute name must be known at compile t
v = getattr(s, s); return v  ## AttributeError_: 'str' object has no attribute 'abc'
v = getattr(l, 1.5); return v  ## TypeError_: attribute name must be string, not 'float'
v = getattr(n, n, n); return v  ## TypeError_: getattr() with a default is not part of the
v = int(); return v  ## same
v = int(x); return v  ## same
v = int(n); return v  ## same
v = int(s); return v  ## same
v = int(True); return v  ## same
v = int(l); return v  ## TypeError_: unsupported operand type(s) for int: list[fl
v = int(n, n); return v  ## TypeError_: int() can't convert non-string with explicit
v = int(s, s); return v  ## TypeError_: 'str' object cannot be interpreted as an int
v = int(n, n, n); return v  ## TypeError_: int(): too many positional arguments
v = int(None); return v  ## TypeError_: int() argument must be a string, a bytes-lik
v = int(s, n); return v  ## TypeError_: int: base must be known at compile time, but
v = isinstance(); return v  ## TypeError_: isinstance(): missing a required argument: '
v = isinstance(n, n); return v  ## TypeError_: isinstance: the class must be known at compi
v = isinstance(s, s); return v  ## TypeError_: isinstance() arg 2 must be a type, a tuple o
v = list(iter({})); return v  ## same
v = list(iter(P(1,2.0))); return v  ## same
v = list(iter(t)); return v  ## same
v = list(iter(l)); return v  ## same
v = list(iter([])); return v  ## same
v = list(iter()); return v  ## TypeError_: iter(): missing a required argument: 'object
v = list(iter(n)); return v  ## TypeError_: cannot make a list of int: its length must b
v = list(iter(n, n)); return v  ## TypeError_: iter(function, sentinel) is not part of the
v = list(iter(abs)); return v  ## TypeError_: abs is not iterable; a loop runs over range,
v = list(iter(None)); return v  ## TypeError_: None is not iterable; a loop runs over range
v = list(iter(Q(1))); return v  ## TypeError_: Q(a: int, b: float) is a dataclass, not a se
v = len(s); return v  ## same
v = len(l); return v  ## same
v = len(P(1,2.0)); return v  ## same
v = len(()); return v  ## same
v = len(d); return v  ## same
v = len(); return v  ## TypeError_: len(): missing a required argument: 'obj'
v = len(n); return v  ## TypeError_: object of type int has no len()
v = len(x); return v  ## TypeError_: object of type float has no len()
v = len(abs); return v  ## TypeError_: object of type abs has no len()
v = len(None); return v  ## TypeError_: object of type None has no len()
v = len(Q(1)); return v  ## TypeError_: object of type Q(a: int, b: float) has no le
v = len(True); return v  ## TypeError_: object of type bool has no len()
v = list(reversed(l)); return v  ## same
v = list(zip(P(1,2.0))); return v  ## same
v = list(d); return v  ## same
v = list(enumerate(s)); return v  ## same
v = list(l); return v  ## same
v = list(map(abs, l)); return v  ## same
v = list(map()); return v  ## TypeError_: map(): missing a required argument: 'functio
v = list(map(n, n)); return v  ## TypeError_: cannot map over int: its length must be know
v = list(map(s, s)); return v  ## TypeError_: 'str' object is not callable
v = list(map(l, 1.5)); return v  ## TypeError_: cannot map over float: its length must be kn
v = list(map(l, l, l)); return v  ## TypeError_: cannot map over list[float]: its length must
v = list(map(d, d)); return v  ## TypeError_: {a: float, b: float} is not callable
v = max(x, n); return v  ## same
v = max([]); return v  ## same
v = max(l, default=1); return v  ## same
v = max(x, 1.0); return v  ## same
v = max(l); return v  ## same
v = max(); return v  ## TypeError_: max expected at least 1 argument, got 0
v = max(n); return v  ## TypeError_: cannot take the max of int: its length must
v = max(s); return v  ## TypeError_: max: 'a' and 'b' cannot be compared
v = max(abs); return v  ## TypeError_: abs is not iterable; a loop runs over range,
v = max(None); return v  ## TypeError_: None is not iterable; a loop runs over range
v = max(nope=1); return v  ## TypeError_: max(): got an unexpected keyword argument 'n
v = max(Q(1)); return v  ## TypeError_: Q(a: int, b: float) is a dataclass, not a se
v = min(t); return v  ## same
v = min(n, n, n, n, n); return v  ## same
v = min(l, key=abs); return v  ## same
v = min(n, n, n, n); return v  ## same
v = min([]); return v  ## same
v = min(); return v  ## TypeError_: min expected at least 1 argument, got 0
v = min(n); return v  ## TypeError_: cannot take the min of int: its length must
v = min(s); return v  ## TypeError_: min: 'a' and 'b' cannot be compared
v = min(abs); return v  ## TypeError_: abs is not iterable; a loop runs over range,
v = min(None); return v  ## TypeError_: None is not iterable; a loop runs over range
v = min(nope=1); return v  ## TypeError_: min(): got an unexpected keyword argument 'n
v = min(Q(1)); return v  ## TypeError_: Q(a: int, b: float) is a dataclass, not a se
v = pow(n, n); return v  ## same
v = pow(x, 1.0); return v  ## same
v = pow(x, n); return v  ## same
v = pow(); return v  ## TypeError_: pow(): missing a required argument: 'base'
v = pow(l, n); return v  ## TypeError_: unsupported operand type(s) for **: list[flo
v = pow(n, n, n); return v  ## TypeError_: pow() with three arguments is not part of th
v = print(abs); return v  ## same
v = print(x, n); return v  ## same
v = print(*t, *t, *t); return v  ## same
v = print(True); return v  ## same
v = print(d); return v  ## same
v = print(nope=1); return v  ## TypeError_: print(): got an unexpected keyword argument
v = list(range(n, n)); return v  ## same
v = list(range(n, n, n)); return v  ## same
v = list(range(n)); return v  ## same
v = list(range(True)); return v  ## same
v = list(range()); return v  ## TypeError_: range(): missing a required argument: 'start
v = list(range(x)); return v  ## TypeError_: range: float cannot be interpreted as an int
v = list(reversed(s)); return v  ## same
v = list(reversed(P(1,2.0))); return v  ## same
v = list(reversed(t)); return v  ## same
v = list(reversed([])); return v  ## same
v = list(reversed()); return v  ## TypeError_: reversed(): missing a required argument: 'se
v = list(reversed(n)); return v  ## TypeError_: int is not iterable; a loop runs over range,
v = list(reversed(x)); return v  ## TypeError_: float is not iterable; a loop runs over rang
v = list(reversed(abs)); return v  ## TypeError_: abs is not iterable; a loop runs over range,
v = list(reversed(None)); return v  ## TypeError_: None is not iterable; a loop runs over range
v = list(reversed(Q(1))); return v  ## TypeError_: Q(a: int, b: float) is a dataclass, not a se
v = list(reversed(True)); return v  ## TypeError_: bool is not iterable; a loop runs over range
v = round(True); return v  ## same
v = round(x); return v  ## same
v = round(n, ndigits=1); return v  ## same
v = round(n); return v  ## same
v = round(); return v  ## TypeError_: round(): missing a required argument: 'numbe
v = round(l); return v  ## TypeError_: unsupported operand type(s) for round: list[
v = round(s); return v  ## TypeError_: type str doesn't define __round__ method
v = round(n, n); return v  ## TypeError_: round(x, n) to n decimal digits is decided o
v = round(None); return v  ## TypeError_: type NoneType doesn't define __round__ metho
v = slice(); return v  ## TypeError_: slice(): missing a required argument: 'start
v = slice(n); return v  ## TypeError_: compiled code cannot return slice to Python
v = sorted(l, key=abs); return v  ## same
v = sorted({}); return v  ## same
v = sorted(l, key=None); return v  ## same
v = sorted(l); return v  ## same
v = sorted(s); return v  ## same
v = sorted(); return v  ## TypeError_: sorted(): missing a required argument: 'iter
v = sorted(n); return v  ## TypeError_: int is not iterable; a loop runs over range,
v = sorted(x); return v  ## TypeError_: float is not iterable; a loop runs over rang
v = sorted(t); return v  ## TypeError_: a list whose length is known at run time onl
v = sorted(abs); return v  ## TypeError_: abs is not iterable; a loop runs over range,
v = sorted(None); return v  ## TypeError_: None is not iterable; a loop runs over range
v = sorted(l, reverse=s); return v  ## TypeError_: unsupported operand type(s) for index: str
v = str(()); return v  ## same
v = str(True); return v  ## same
v = str(l); return v  ## same
v = str(None); return v  ## same
v = str(abs); return v  ## same
v = str(n, n); return v  ## TypeError_: str() decodes bytes where it is given an enc
v = str(n, n, n, n); return v  ## TypeError_: str(): too many positional arguments
v = sum((), 1); return v  ## same
v = sum(l); return v  ## same
v = sum(l, start=1); return v  ## same
v = sum(l, n); return v  ## same
v = sum(P(1,2.0)); return v  ## same
v = sum(); return v  ## TypeError_: sum(): missing a required argument: 'iterabl
v = sum(n); return v  ## TypeError_: cannot sum int: its length must be known at
v = sum(x); return v  ## TypeError_: cannot sum float: its length must be known a
v = sum(s); return v  ## TypeError_: unsupported operand type(s) for +: int and s
v = sum(s, s); return v  ## TypeError_: sum() can't sum strings; add them with +
v = sum(abs, l); return v  ## TypeError_: abs is not iterable; a loop runs over range,
v = sum(None); return v  ## TypeError_: None is not iterable; a loop runs over range
v = tuple({}); return v  ## same
v = tuple([]); return v  ## same
v = tuple(()); return v  ## same
v = tuple(P(1,2.0)); return v  ## same
v = tuple(l); return v  ## same
v = tuple(n); return v  ## TypeError_: cannot make a tuple of int: its length must
v = tuple(n, n); return v  ## TypeError_: tuple(): too many positional arguments
v = tuple(abs); return v  ## TypeError_: abs is not iterable; a loop runs over range,
v = tuple(None); return v  ## TypeError_: None is not iterable; a loop runs over range
v = tuple(Q(1)); return v  ## TypeError_: Q(a: int, b: float) is a dataclass, not a se
v = type(t); return v  ## same
v = type(None); return v  ## same
v = type({}); return v  ## same
v = type(n); return v  ## same
v = type(P(1,2.0)); return v  ## same
v = type(); return v  ## TypeError_: type(): missing a required argument: 'object
v = list(zip(())); return v  ## same
v = list(zip(s, s)); return v  ## same
v = list(zip()); return v  ## same
v = list(zip(l, l, strict=True)); return v  ## same
v = list(zip(n)); return v  ## TypeError_: int is not iterable; a loop runs over range,
v = list(zip(x)); return v  ## TypeError_: float is not iterable; a loop runs over rang
v = list(zip(abs, l)); return v  ## TypeError_: abs is not iterable; a loop runs over range,
v = list(zip(None)); return v  ## TypeError_: None is not iterable; a loop runs over range
v = list(zip(nope=1)); return v  ## TypeError_: zip(): got an unexpected keyword argument 'n
v = list(zip(Q(1))); return v  ## TypeError_: Q(a: int, b: float) is a dataclass, not a se
v = list(zip(True)); return v  ## TypeError_: bool is not iterable; a loop runs over range
e=dict(d); v=e.keys(); return list(v), e  ## same
e=dict(d); v=e.keys(n); return list(v), e  ## TypeError_: dict.keys() is given 1 arguments
e=dict(d); v=e.values(); return list(v), e  ## same
e=dict(d); v=e.values(n); return list(v), e  ## TypeError_: dict.values() is given 1 arguments
e=dict(d); v=e.items(); return list(v), e  ## same
e=dict(d); v=e.items(n); return list(v), e  ## TypeError_: dict.items() is given 1 arguments
e=dict(d); v=e.get(s); return v, e  ## same
e=dict(d); v=e.get(); return v, e  ## TypeError_: dict.get() is given 0 arguments
e=dict(d); v=e.copy(); return v, e  ## AttributeError_: the method 'copy' of {a: float, b: float} is
e=dict(d); v=e.pop(); return v, e  ## AttributeError_: the method 'pop' of {a: float, b: float} is
e=dict(d); v=e.update(); return v, e  ## AttributeError_: the method 'update' of {a: float, b: float}
e=dict(d); v=e.setdefault(); return v, e  ## AttributeError_: the method 'setdefault' of {a: float, b: flo
e=dict(d); v=e.popitem(); return v, e  ## AttributeError_: the method 'popitem' of {a: float, b: float}
e=dict(d); v=e.clear(); return v, e  ## AttributeError_: the method 'clear' of {a: float, b: float} i
e=dict(d); v=e.fromkeys(); return v, e  ## AttributeError_: the method 'fromkeys' of {a: float, b: float
e=dict(d); v=e.__len__(); return v, e  ## AttributeError_: the method '__len__' of {a: float, b: float}
e=dict(d); v=e.nope(); return v, e  ## AttributeError_: 'dict' object has no attribute 'nope'
e=[3.0,1.0,2.0]; v=e.append(n); return v, e  ## same
e=[3.0,1.0,2.0]; v=e.append(); return v, e  ## TypeError_: .append() changes the list, which compiled c
e=[v for v in l]; v=e.append(n); return v, e  ## same
e=[v for v in l]; v=e.append(); return v, e  ## TypeError_: .append() changes the list, which compiled c
e=[3.0,1.0,2.0]; v=e.extend(s); return v, e  ## same
e=[3.0,1.0,2.0]; v=e.extend(); return v, e  ## TypeError_: list.extend() is given 0 arguments
e=[v for v in l]; v=e.extend(s); return v, e  ## same
e=[v for v in l]; v=e.extend(); return v, e  ## TypeError_: list.extend() is given 0 arguments
e=[3.0,1.0,2.0]; v=e.insert(); return v, e  ## TypeError_: list.insert() is given 0 arguments
e=[v for v in l]; v=e.insert(); return v, e  ## TypeError_: list.insert() is given 0 arguments
e=[3.0,1.0,2.0]; v=e.pop(); return v, e  ## same
e=[3.0,1.0,2.0]; v=e.pop(x); return v, e  ## TypeError_: list.pop: the index is an int, not float
e=[v for v in l]; v=e.pop(); return v, e  ## same
e=[v for v in l]; v=e.pop(x); return v, e  ## TypeError_: list.pop: the index is an int, not float
e=[3.0,1.0,2.0]; v=e.remove(n); return v, e  ## same
e=[3.0,1.0,2.0]; v=e.remove(); return v, e  ## TypeError_: list.remove() is given 0 arguments
e=[v for v in l]; v=e.remove(n); return v, e  ## same
e=[v for v in l]; v=e.remove(); return v, e  ## TypeError_: list.remove() is given 0 arguments
e=[3.0,1.0,2.0]; v=e.clear(); return v, e  ## same
e=[3.0,1.0,2.0]; v=e.clear(n); return v, e  ## TypeError_: list.clear() is given 1 arguments
e=[v for v in l]; v=e.clear(); return v, e  ## same
e=[v for v in l]; v=e.clear(n); return v, e  ## TypeError_: list.clear() is given 1 arguments
e=[3.0,1.0,2.0]; v=e.reverse(); return v, e  ## same
e=[3.0,1.0,2.0]; v=e.reverse(n); return v, e  ## TypeError_: list.reverse() is given 1 arguments
e=[v for v in l]; v=e.reverse(); return v, e  ## same
e=[v for v in l]; v=e.reverse(n); return v, e  ## TypeError_: list.reverse() is given 1 arguments
e=[3.0,1.0,2.0]; v=e.sort(); return v, e  ## same
e=[3.0,1.0,2.0]; v=e.sort(n); return v, e  ## TypeError_: list.sort() is given 1 arguments
e=[v for v in l]; v=e.sort(); return v, e  ## same
e=[v for v in l]; v=e.sort(n); return v, e  ## TypeError_: list.sort() is given 1 arguments
e=[3.0,1.0,2.0]; v=e.copy(); return v, e  ## same
e=[3.0,1.0,2.0]; v=e.copy(n); return v, e  ## TypeError_: the method 'copy' of lists is not part of th
v=l.copy(); return v  ## same
v=l.copy(n); return v  ## TypeError_: the method 'copy' of lists is not part of th
v=l.copy(x); return v  ## TypeError_: the method 'copy' of lists is not part of th
v=l.copy(s); return v  ## TypeError_: the method 'copy' of lists is not part of th
v=l.copy(l); return v  ## TypeError_: the method 'copy' of lists is not part of th
v=l.copy(n, n); return v  ## TypeError_: the method 'copy' of lists is not part of th
v=l.copy(s, s); return v  ## TypeError_: the method 'copy' of lists is not part of th
v=l.copy(s,s,s); return v  ## TypeError_: the method 'copy' of lists is not part of th
v=l.copy(nope=1); return v  ## TypeError_: the method 'copy' of lists is not part of th
v=l.copy(None); return v  ## TypeError_: the method 'copy' of lists is not part of th
v=l.copy(reverse=s); return v  ## TypeError_: the method 'copy' of lists is not part of th
v=l.copy(key=None); return v  ## TypeError_: the method 'copy' of lists is not part of th
v=l.copy(default=1); return v  ## TypeError_: the method 'copy' of lists is not part of th
v=l.copy('a'); return v  ## TypeError_: the method 'copy' of lists is not part of th
v=l.copy('z'); return v  ## TypeError_: the method 'copy' of lists is not part of th
v=l.copy(b=3.0); return v  ## TypeError_: the method 'copy' of lists is not part of th
v=l.copy(d); return v  ## TypeError_: the method 'copy' of lists is not part of th
v=l.copy(d, d); return v  ## TypeError_: the method 'copy' of lists is not part of th
v=l.copy(t); return v  ## TypeError_: the method 'copy' of lists is not part of th
v=l.copy(*t,*t,*t); return v  ## TypeError_: the method 'copy' of lists is not part of th
e=[3.0,1.0,2.0]; v=e.count(n); return v, e  ## same
e=[3.0,1.0,2.0]; v=e.count(); return v, e  ## TypeError_: the method 'count' of lists is not part of t
v=l.count(); return v  ## TypeError_: the method 'count' of lists is not part of t
v=l.count(n); return v  ## same
v=l.count(x); return v  ## same
v=l.count(s); return v  ## same
v=l.count(l); return v  ## same
v=l.count(n, n); return v  ## TypeError_: the method 'count' of lists is not part of t
v=l.count(s, s); return v  ## TypeError_: the method 'count' of lists is not part of t
v=l.count(nope=1); return v  ## TypeError_: the method 'count' of lists is not part of t
v=l.count(None); return v  ## same
v=l.count(reverse=s); return v  ## TypeError_: the method 'count' of lists is not part of t
v=l.count(key=None); return v  ## TypeError_: the method 'count' of lists is not part of t
v=l.count(default=1); return v  ## TypeError_: the method 'count' of lists is not part of t
v=l.count('a'); return v  ## same
v=l.count('a', 1); return v  ## TypeError_: the method 'count' of lists is not part of t
v=l.count('z'); return v  ## same
v=l.count('z', 5); return v  ## TypeError_: the method 'count' of lists is not part of t
v=l.count(b=3.0); return v  ## TypeError_: the method 'count' of lists is not part of t
v=l.count(d); return v  ## same
v=l.count(d, d); return v  ## TypeError_: the method 'count' of lists is not part of t
v=l.count(t); return v  ## same
v=l.count(*t,*t,*t); return v  ## TypeError_: the method 'count' of lists is not part of t
e=[3.0,1.0,2.0]; v=e.index(n); return v, e  ## same
e=[3.0,1.0,2.0]; v=e.index(); return v, e  ## TypeError_: the method 'index' of lists is not part of t
v=l.index(); return v  ## TypeError_: the method 'index' of lists is not part of t
v=l.index(n); return v  ## same
v=l.index(x); return v  ## same
v=l.index(s); return v  ## same
v=l.index(l); return v  ## same
v=l.index(n, n); return v  ## TypeError_: the method 'index' of lists is not part of t
v=l.index(s, s); return v  ## TypeError_: the method 'index' of lists is not part of t
v=l.index(nope=1); return v  ## TypeError_: the method 'index' of lists is not part of t
v=l.index(None); return v  ## same
v=l.index(reverse=s); return v  ## TypeError_: the method 'index' of lists is not part of t
v=l.index(key=None); return v  ## TypeError_: the method 'index' of lists is not part of t
v=l.index(default=1); return v  ## TypeError_: the method 'index' of lists is not part of t
v=l.index('a'); return v  ## same
v=l.index('a', 1); return v  ## TypeError_: the method 'index' of lists is not part of t
v=l.index('z'); return v  ## same
v=l.index('z', 5); return v  ## TypeError_: the method 'index' of lists is not part of t
v=l.index(b=3.0); return v  ## TypeError_: the method 'index' of lists is not part of t
v=l.index(d); return v  ## same
v=l.index(d, d); return v  ## TypeError_: the method 'index' of lists is not part of t
v=l.index(t); return v  ## same
v=l.index(*t,*t,*t); return v  ## TypeError_: the method 'index' of lists is not part of t
e=[3.0,1.0,2.0]; v=e.__len__(); return v, e  ## AttributeError_: the method '__len__' of [float, float, float
e=[v for v in l]; v=e.__len__(); return v, e  ## TypeError_: the method '__len__' of lists is not part of
e=[3.0,1.0,2.0]; v=e.nope(); return v, e  ## AttributeError_: 'list' object has no attribute 'nope'
v=l.nope(); return v  ## AttributeError_: 'list' object has no attribute 'nope'
v=l.nope(n); return v  ## AttributeError_: 'list' object has no attribute 'nope'
v=l.nope(x); return v  ## AttributeError_: 'list' object has no attribute 'nope'
v=l.nope(s); return v  ## AttributeError_: 'list' object has no attribute 'nope'
v=l.nope(l); return v  ## AttributeError_: 'list' object has no attribute 'nope'
v=l.nope(n, n); return v  ## AttributeError_: 'list' object has no attribute 'nope'
v=l.nope(s, s); return v  ## AttributeError_: 'list' object has no attribute 'nope'
v=l.nope(s,s,s); return v  ## AttributeError_: 'list' object has no attribute 'nope'
v=l.nope(nope=1); return v  ## AttributeError_: 'list' object has no attribute 'nope'
v=l.nope(None); return v  ## AttributeError_: 'list' object has no attribute 'nope'
v=l.nope(reverse=s); return v  ## AttributeError_: 'list' object has no attribute 'nope'
v=l.nope(key=None); return v  ## AttributeError_: 'list' object has no attribute 'nope'
v=l.nope(default=1); return v  ## AttributeError_: 'list' object has no attribute 'nope'
v=l.nope('a'); return v  ## AttributeError_: 'list' object has no attribute 'nope'
v=l.nope('z'); return v  ## AttributeError_: 'list' object has no attribute 'nope'
v=l.nope(b=3.0); return v  ## AttributeError_: 'list' object has no attribute 'nope'
v=l.nope(d); return v  ## AttributeError_: 'list' object has no attribute 'nope'
v=l.nope(d, d); return v  ## AttributeError_: 'list' object has no attribute 'nope'
v=l.nope(t); return v  ## AttributeError_: 'list' object has no attribute 'nope'
v=l.nope(*t,*t,*t); return v  ## AttributeError_: 'list' object has no attribute 'nope'
v=t.count(); return v  ## AttributeError_: the method 'count' of (int, float) is not pa
v=t.count(n); return v  ## AttributeError_: the method 'count' of (int, float) is not pa
v=t.count(x); return v  ## AttributeError_: the method 'count' of (int, float) is not pa
v=t.count(s); return v  ## AttributeError_: the method 'count' of (int, float) is not pa
v=t.count(l); return v  ## AttributeError_: the method 'count' of (int, float) is not pa
v=t.count(n, n); return v  ## AttributeError_: the method 'count' of (int, float) is not pa
v=t.count(s, s); return v  ## AttributeError_: the method 'count' of (int, float) is not pa
v=t.count(nope=1); return v  ## AttributeError_: the method 'count' of (int, float) is not pa
v=t.count(None); return v  ## AttributeError_: the method 'count' of (int, float) is not pa
v=t.count(reverse=s); return v  ## AttributeError_: the method 'count' of (int, float) is not pa
v=t.count(key=None); return v  ## AttributeError_: the method 'count' of (int, float) is not pa
v=t.count(default=1); return v  ## AttributeError_: the method 'count' of (int, float) is not pa
v=t.count('a'); return v  ## AttributeError_: the method 'count' of (int, float) is not pa
v=t.count('z'); return v  ## AttributeError_: the method 'count' of (int, float) is not pa
v=t.count(b=3.0); return v  ## AttributeError_: the method 'count' of (int, float) is not pa
v=t.count(d); return v  ## AttributeError_: the method 'count' of (int, float) is not pa
v=t.count(d, d); return v  ## AttributeError_: the method 'count' of (int, float) is not pa
v=t.count(t); return v  ## AttributeError_: the method 'count' of (int, float) is not pa
v=t.count(*t,*t,*t); return v  ## AttributeError_: the method 'count' of (int, float) is not pa
v=t.index(); return v  ## AttributeError_: the method 'index' of (int, float) is not pa
v=t.index(n); return v  ## TypeError_: tuple.index() finds what is known at compile
v=t.index(x); return v  ## TypeError_: tuple.index() finds what is known at compile
v=t.index(s); return v  ## same
v=t.index(l); return v  ## same
v=t.index(n, n); return v  ## AttributeError_: the method 'index' of (int, float) is not pa
v=t.index(s, s); return v  ## AttributeError_: the method 'index' of (int, float) is not pa
v=t.index(nope=1); return v  ## AttributeError_: the method 'index' of (int, float) is not pa
v=t.index(None); return v  ## same
v=t.index(reverse=s); return v  ## AttributeError_: the method 'index' of (int, float) is not pa
v=t.index(key=None); return v  ## AttributeError_: the method 'index' of (int, float) is not pa
v=t.index(default=1); return v  ## AttributeError_: the method 'index' of (int, float) is not pa
v=t.index('a'); return v  ## same
v=t.index('a', 1); return v  ## AttributeError_: the method 'index' of (int, float) is not pa
v=t.index('z'); return v  ## same
v=t.index('z', 5); return v  ## AttributeError_: the method 'index' of (int, float) is not pa
v=t.index(b=3.0); return v  ## AttributeError_: the method 'index' of (int, float) is not pa
v=t.index(d); return v  ## same
v=t.index(d, d); return v  ## AttributeError_: the method 'index' of (int, float) is not pa
v=t.index(t); return v  ## same
v=t.index(*t,*t,*t); return v  ## AttributeError_: the method 'index' of (int, float) is not pa
v=t.nope(); return v  ## AttributeError_: 'tuple' object has no attribute 'nope'
v=t.nope(n); return v  ## AttributeError_: 'tuple' object has no attribute 'nope'
v=t.nope(x); return v  ## AttributeError_: 'tuple' object has no attribute 'nope'
v=t.nope(s); return v  ## AttributeError_: 'tuple' object has no attribute 'nope'
v=t.nope(l); return v  ## AttributeError_: 'tuple' object has no attribute 'nope'
v=t.nope(n, n); return v  ## AttributeError_: 'tuple' object has no attribute 'nope'
v=t.nope(s, s); return v  ## AttributeError_: 'tuple' object has no attribute 'nope'
v=t.nope(s,s,s); return v  ## AttributeError_: 'tuple' object has no attribute 'nope'
v=t.nope(nope=1); return v  ## AttributeError_: 'tuple' object has no attribute 'nope'
v=t.nope(None); return v  ## AttributeError_: 'tuple' object has no attribute 'nope'
v=t.nope(reverse=s); return v  ## AttributeError_: 'tuple' object has no attribute 'nope'
v=t.nope(key=None); return v  ## AttributeError_: 'tuple' object has no attribute 'nope'
v=t.nope(default=1); return v  ## AttributeError_: 'tuple' object has no attribute 'nope'
v=t.nope('a'); return v  ## AttributeError_: 'tuple' object has no attribute 'nope'
v=t.nope('z'); return v  ## AttributeError_: 'tuple' object has no attribute 'nope'
v=t.nope(b=3.0); return v  ## AttributeError_: 'tuple' object has no attribute 'nope'
v=t.nope(d); return v  ## AttributeError_: 'tuple' object has no attribute 'nope'
v=t.nope(d, d); return v  ## AttributeError_: 'tuple' object has no attribute 'nope'
v=t.nope(t); return v  ## AttributeError_: 'tuple' object has no attribute 'nope'
v=t.nope(*t,*t,*t); return v  ## AttributeError_: 'tuple' object has no attribute 'nope'
v=s.upper(); return v  ## same
v=s.upper(n); return v  ## TypeError_: str.upper must be known at compile time, but
v=s.upper(x); return v  ## TypeError_: str.upper must be known at compile time, but
v=s.upper(s); return v  ## TypeError_: str.upper() takes no arguments (1 given)
v=s.upper(l); return v  ## TypeError_: str.upper must be known at compile time, but
v=s.upper(n, n); return v  ## TypeError_: str.upper must be known at compile time, but
v=s.upper(s, s); return v  ## TypeError_: str.upper() takes no arguments (2 given)
v=s.upper(nope=1); return v  ## TypeError_: str.upper() takes no keyword arguments
v=s.upper(None); return v  ## TypeError_: str.upper() takes no arguments (1 given)
v=s.upper(reverse=s); return v  ## TypeError_: str.upper() takes no keyword arguments
v=s.upper(key=None); return v  ## TypeError_: str.upper() takes no keyword arguments
v=s.upper(default=1); return v  ## TypeError_: str.upper() takes no keyword arguments
v=s.upper('a'); return v  ## TypeError_: str.upper() takes no arguments (1 given)
v=s.upper('z'); return v  ## TypeError_: str.upper() takes no arguments (1 given)
v=s.upper(b=3.0); return v  ## TypeError_: str.upper() takes no keyword arguments
v=s.upper(d); return v  ## TypeError_: str.upper must be known at compile time, but
v=s.upper(d, d); return v  ## TypeError_: str.upper must be known at compile time, but
v=s.upper(t); return v  ## TypeError_: str.upper must be known at compile time, but
v=s.upper(*t,*t,*t); return v  ## TypeError_: str.upper must be known at compile time, but
v=s.lower(); return v  ## same
v=s.lower(n); return v  ## TypeError_: str.lower must be known at compile time, but
v=s.lower(x); return v  ## TypeError_: str.lower must be known at compile time, but
v=s.lower(s); return v  ## TypeError_: str.lower() takes no arguments (1 given)
v=s.lower(l); return v  ## TypeError_: str.lower must be known at compile time, but
v=s.lower(n, n); return v  ## TypeError_: str.lower must be known at compile time, but
v=s.lower(s, s); return v  ## TypeError_: str.lower() takes no arguments (2 given)
v=s.lower(nope=1); return v  ## TypeError_: str.lower() takes no keyword arguments
v=s.lower(None); return v  ## TypeError_: str.lower() takes no arguments (1 given)
v=s.lower(reverse=s); return v  ## TypeError_: str.lower() takes no keyword arguments
v=s.lower(key=None); return v  ## TypeError_: str.lower() takes no keyword arguments
v=s.lower(default=1); return v  ## TypeError_: str.lower() takes no keyword arguments
v=s.lower('a'); return v  ## TypeError_: str.lower() takes no arguments (1 given)
v=s.lower('z'); return v  ## TypeError_: str.lower() takes no arguments (1 given)
v=s.lower(b=3.0); return v  ## TypeError_: str.lower() takes no keyword arguments
v=s.lower(d); return v  ## TypeError_: str.lower must be known at compile time, but
v=s.lower(d, d); return v  ## TypeError_: str.lower must be known at compile time, but
v=s.lower(t); return v  ## TypeError_: str.lower must be known at compile time, but
v=s.lower(*t,*t,*t); return v  ## TypeError_: str.lower must be known at compile time, but
v=s.strip(); return v  ## same
v=s.strip(n); return v  ## TypeError_: str.strip must be known at compile time, but
v=s.strip(x); return v  ## TypeError_: str.strip must be known at compile time, but
v=s.strip(s); return v  ## same
v=s.strip(l); return v  ## TypeError_: str.strip must be known at compile time, but
v=s.strip(n, n); return v  ## TypeError_: str.strip must be known at compile time, but
v=s.strip(s, s); return v  ## TypeError_: strip expected at most 1 argument, got 2
v=s.strip(nope=1); return v  ## TypeError_: str.strip() takes no keyword arguments
v=s.strip(None); return v  ## same
v=s.strip(reverse=s); return v  ## TypeError_: str.strip() takes no keyword arguments
v=s.strip(key=None); return v  ## TypeError_: str.strip() takes no keyword arguments
v=s.strip(default=1); return v  ## TypeError_: str.strip() takes no keyword arguments
v=s.strip('a'); return v  ## same
v=s.strip('a', 1); return v  ## TypeError_: strip expected at most 1 argument, got 2
v=s.strip('z'); return v  ## same
v=s.strip('z', 5); return v  ## TypeError_: strip expected at most 1 argument, got 2
v=s.strip(b=3.0); return v  ## TypeError_: str.strip() takes no keyword arguments
v=s.strip(d); return v  ## TypeError_: str.strip must be known at compile time, but
v=s.strip(d, d); return v  ## TypeError_: str.strip must be known at compile time, but
v=s.strip(t); return v  ## TypeError_: str.strip must be known at compile time, but
v=s.strip(*t,*t,*t); return v  ## TypeError_: str.strip must be known at compile time, but
v=s.split(); return v  ## same
v=s.split(n); return v  ## TypeError_: str.split must be known at compile time, but
v=s.split(x); return v  ## TypeError_: str.split must be known at compile time, but
v=s.split(s); return v  ## same
v=s.split(l); return v  ## TypeError_: str.split must be known at compile time, but
v=s.split(n, n); return v  ## TypeError_: str.split must be known at compile time, but
v=s.split(s, s); return v  ## TypeError_: 'str' object cannot be interpreted as an int
v=s.split(nope=1); return v  ## TypeError_: 'nope' is an invalid keyword argument for sp
v=s.split(None); return v  ## same
v=s.split(reverse=s); return v  ## TypeError_: 'reverse' is an invalid keyword argument for
v=s.split(key=None); return v  ## TypeError_: 'key' is an invalid keyword argument for spl
v=s.split(default=1); return v  ## TypeError_: 'default' is an invalid keyword argument for
v=s.split('a'); return v  ## same
v=s.split('a', 1, 2); return v  ## TypeError_: split() takes at most 2 arguments (3 given)
v=s.split('z'); return v  ## same
v=s.split(b=3.0); return v  ## TypeError_: 'b' is an invalid keyword argument for split
v=s.split(d); return v  ## TypeError_: str.split must be known at compile time, but
v=s.split(d, d); return v  ## TypeError_: str.split must be known at compile time, but
v=s.split(t); return v  ## TypeError_: str.split must be known at compile time, but
v=s.split(*t,*t,*t); return v  ## TypeError_: str.split must be known at compile time, but
v=s.join(); return v  ## TypeError_: str.join() takes exactly one argument (0 giv
v=s.join(n); return v  ## TypeError_: str.join must be known at compile time, but
v=s.join(x); return v  ## TypeError_: str.join must be known at compile time, but
v=s.join(s); return v  ## same
v=s.join(l); return v  ## TypeError_: str.join must be known at compile time, but
v=s.join(n, n); return v  ## TypeError_: str.join must be known at compile time, but
v=s.join(s, s); return v  ## TypeError_: str.join() takes exactly one argument (2 giv
v=s.join(s,s,s); return v  ## TypeError_: str.join() takes exactly one argument (3 giv
v=s.join(nope=1); return v  ## TypeError_: str.join() takes no keyword arguments
v=s.join(None); return v  ## TypeError_: can only join an iterable
v=s.join(reverse=s); return v  ## TypeError_: str.join() takes no keyword arguments
v=s.join(key=None); return v  ## TypeError_: str.join() takes no keyword arguments
v=s.join(default=1); return v  ## TypeError_: str.join() takes no keyword arguments
v=s.join('a'); return v  ## same
v=s.join('a', 1); return v  ## TypeError_: str.join() takes exactly one argument (2 giv
v=s.join('z'); return v  ## same
v=s.join('z', 5); return v  ## TypeError_: str.join() takes exactly one argument (2 giv
v=s.join(b=3.0); return v  ## TypeError_: str.join() takes no keyword arguments
v=s.join(d); return v  ## TypeError_: str.join must be known at compile time, but
v=s.join(d, d); return v  ## TypeError_: str.join must be known at compile time, but
v=s.join(t); return v  ## TypeError_: str.join must be known at compile time, but
v=s.join(*t,*t,*t); return v  ## TypeError_: str.join must be known at compile time, but
v=s.replace(s, s); return v  ## same
v=s.replace(); return v  ## TypeError_: replace expected at least 2 arguments, got 0
v=s.startswith(s); return v  ## same
v=s.startswith(); return v  ## TypeError_: startswith() takes at least 1 argument (0 gi
v=s.endswith(s); return v  ## same
v=s.endswith(); return v  ## TypeError_: endswith() takes at least 1 argument (0 give
v=s.find(); return v  ## TypeError_: find() takes at least 1 argument (0 given)
v=s.find(n); return v  ## TypeError_: str.find must be known at compile time, but
v=s.find(x); return v  ## TypeError_: str.find must be known at compile time, but
v=s.find(s); return v  ## same
v=s.find(l); return v  ## TypeError_: str.find must be known at compile time, but
v=s.find(n, n); return v  ## TypeError_: str.find must be known at compile time, but
v=s.find(s, s); return v  ## TypeError_: slice indices must be integers or None or ha
v=s.find(s,s,s); return v  ## TypeError_: slice indices must be integers or None or ha
v=s.find(nope=1); return v  ## TypeError_: find() takes no keyword arguments
v=s.find(None); return v  ## TypeError_: must be str, not NoneType
v=s.find(reverse=s); return v  ## TypeError_: find() takes no keyword arguments
v=s.find(key=None); return v  ## TypeError_: find() takes no keyword arguments
v=s.find(default=1); return v  ## TypeError_: find() takes no keyword arguments
v=s.find('a'); return v  ## same
v=s.find('z'); return v  ## same
v=s.find(b=3.0); return v  ## TypeError_: find() takes no keyword arguments
v=s.find(d); return v  ## TypeError_: str.find must be known at compile time, but
v=s.find(d, d); return v  ## TypeError_: str.find must be known at compile time, but
v=s.find(t); return v  ## TypeError_: str.find must be known at compile time, but
v=s.find(*t,*t,*t); return v  ## TypeError_: str.find must be known at compile time, but
v=s.index(); return v  ## TypeError_: index() takes at least 1 argument (0 given)
v=s.index(n); return v  ## TypeError_: str.index must be known at compile time, but
v=s.index(x); return v  ## TypeError_: str.index must be known at compile time, but
v=s.index(s); return v  ## same
v=s.index(l); return v  ## TypeError_: str.index must be known at compile time, but
v=s.index(n, n); return v  ## TypeError_: str.index must be known at compile time, but
v=s.index(s, s); return v  ## TypeError_: slice indices must be integers or None or ha
v=s.index(nope=1); return v  ## TypeError_: index() takes no keyword arguments
v=s.index(None); return v  ## TypeError_: must be str, not NoneType
v=s.index(reverse=s); return v  ## TypeError_: index() takes no keyword arguments
v=s.index(key=None); return v  ## TypeError_: index() takes no keyword arguments
v=s.index(default=1); return v  ## TypeError_: index() takes no keyword arguments
v=s.index('a'); return v  ## same
v=s.index('z'); return v  ## same
v=s.index(b=3.0); return v  ## TypeError_: index() takes no keyword arguments
v=s.index(d); return v  ## TypeError_: str.index must be known at compile time, but
v=s.index(d, d); return v  ## TypeError_: str.index must be known at compile time, but
v=s.index(t); return v  ## TypeError_: str.index must be known at compile time, but
v=s.index(*t,*t,*t); return v  ## TypeError_: str.index must be known at compile time, but
v=s.count(); return v  ## TypeError_: count() takes at least 1 argument (0 given)
v=s.count(n); return v  ## TypeError_: str.count must be known at compile time, but
v=s.count(x); return v  ## TypeError_: str.count must be known at compile time, but
v=s.count(s); return v  ## same
v=s.count(l); return v  ## TypeError_: str.count must be known at compile time, but
v=s.count(n, n); return v  ## TypeError_: str.count must be known at compile time, but
v=s.count(s, s); return v  ## TypeError_: slice indices must be integers or None or ha
v=s.count(nope=1); return v  ## TypeError_: count() takes no keyword arguments
v=s.count(None); return v  ## TypeError_: must be str, not NoneType
v=s.count(reverse=s); return v  ## TypeError_: count() takes no keyword arguments
v=s.count(key=None); return v  ## TypeError_: count() takes no keyword arguments
v=s.count(default=1); return v  ## TypeError_: count() takes no keyword arguments
v=s.count('a'); return v  ## same
v=s.count('z'); return v  ## same
v=s.count(b=3.0); return v  ## TypeError_: count() takes no keyword arguments
v=s.count(d); return v  ## TypeError_: str.count must be known at compile time, but
v=s.count(d, d); return v  ## TypeError_: str.count must be known at compile time, but
v=s.count(t); return v  ## TypeError_: str.count must be known at compile time, but
v=s.count(*t,*t,*t); return v  ## TypeError_: str.count must be known at compile time, but
v=s.format(); return v  ## same
v=s.format(nope=1); return v  ## same
v=s.format(n); return v  ## TypeError_: str.format must be known at compile time, bu
v=s.format(x); return v  ## TypeError_: str.format must be known at compile time, bu
v=s.format(s); return v  ## same
v=s.format(s, n); return v  ## TypeError_: str.format must be known at compile time, bu
v=s.format(l); return v  ## TypeError_: str.format must be known at compile time, bu
v=s.format(None); return v  ## same
v=s.format(reverse=s); return v  ## same
v=s.format(key=None); return v  ## same
v=s.format(default=1); return v  ## same
v=s.format(d); return v  ## TypeError_: str.format must be known at compile time, bu
v=s.format('a'); return v  ## same
v=s.format(b=3.0); return v  ## same
v=s.format(t); return v  ## TypeError_: str.format must be known at compile time, bu
v=s.format(*t,*t,*t); return v  ## TypeError_: str.format must be known at compile time, bu
v=s.zfill(); return v  ## TypeError_: str.zfill() takes exactly one argument (0 gi
v=s.zfill(n); return v  ## TypeError_: str.zfill must be known at compile time, but
v=s.zfill(x); return v  ## TypeError_: str.zfill must be known at compile time, but
v=s.zfill(s); return v  ## TypeError_: 'str' object cannot be interpreted as an int
v=s.zfill(l); return v  ## TypeError_: str.zfill must be known at compile time, but
v=s.zfill(n, n); return v  ## TypeError_: str.zfill must be known at compile time, but
v=s.zfill(s, s); return v  ## TypeError_: str.zfill() takes exactly one argument (2 gi
v=s.zfill(nope=1); return v  ## TypeError_: str.zfill() takes no keyword arguments
v=s.zfill(None); return v  ## TypeError_: 'NoneType' object cannot be interpreted as a
v=s.zfill(reverse=s); return v  ## TypeError_: str.zfill() takes no keyword arguments
v=s.zfill(key=None); return v  ## TypeError_: str.zfill() takes no keyword arguments
v=s.zfill(default=1); return v  ## TypeError_: str.zfill() takes no keyword arguments
v=s.zfill('a'); return v  ## TypeError_: 'str' object cannot be interpreted as an int
v=s.zfill('z'); return v  ## TypeError_: 'str' object cannot be interpreted as an int
v=s.zfill(b=3.0); return v  ## TypeError_: str.zfill() takes no keyword arguments
v=s.zfill(d); return v  ## TypeError_: str.zfill must be known at compile time, but
v=s.zfill(d, d); return v  ## TypeError_: str.zfill must be known at compile time, but
v=s.zfill(t); return v  ## TypeError_: str.zfill must be known at compile time, but
v=s.zfill(*t,*t,*t); return v  ## TypeError_: str.zfill must be known at compile time, but
v=s.isdigit(); return v  ## same
v=s.isdigit(n); return v  ## TypeError_: str.isdigit must be known at compile time, b
v=s.isalpha(); return v  ## same
v=s.isalpha(n); return v  ## TypeError_: str.isalpha must be known at compile time, b
v=s.title(); return v  ## same
v=s.title(n); return v  ## TypeError_: str.title must be known at compile time, but
v=s.title(x); return v  ## TypeError_: str.title must be known at compile time, but
v=s.title(s); return v  ## TypeError_: str.title() takes no arguments (1 given)
v=s.title(l); return v  ## TypeError_: str.title must be known at compile time, but
v=s.title(n, n); return v  ## TypeError_: str.title must be known at compile time, but
v=s.title(s, s); return v  ## TypeError_: str.title() takes no arguments (2 given)
v=s.title(nope=1); return v  ## TypeError_: str.title() takes no keyword arguments
v=s.title(None); return v  ## TypeError_: str.title() takes no arguments (1 given)
v=s.title(reverse=s); return v  ## TypeError_: str.title() takes no keyword arguments
v=s.title(key=None); return v  ## TypeError_: str.title() takes no keyword arguments
v=s.title(default=1); return v  ## TypeError_: str.title() takes no keyword arguments
v=s.title('a'); return v  ## TypeError_: str.title() takes no arguments (1 given)
v=s.title('z'); return v  ## TypeError_: str.title() takes no arguments (1 given)
v=s.title(b=3.0); return v  ## TypeError_: str.title() takes no keyword arguments
v=s.title(d); return v  ## TypeError_: str.title must be known at compile time, but
v=s.title(d, d); return v  ## TypeError_: str.title must be known at compile time, but
v=s.title(t); return v  ## TypeError_: str.title must be known at compile time, but
v=s.title(*t,*t,*t); return v  ## TypeError_: str.title must be known at compile time, but
v=s.center(); return v  ## TypeError_: center expected at least 1 argument, got 0
v=s.center(n); return v  ## TypeError_: str.center must be known at compile time, bu
v=s.center(x); return v  ## TypeError_: str.center must be known at compile time, bu
v=s.center(s); return v  ## TypeError_: 'str' object cannot be interpreted as an int
v=s.center(l); return v  ## TypeError_: str.center must be known at compile time, bu
v=s.center(None); return v  ## TypeError_: 'NoneType' object cannot be interpreted as a
v=s.center(reverse=s); return v  ## TypeError_: str.center() takes no keyword arguments
v=s.center(key=None); return v  ## TypeError_: str.center() takes no keyword arguments
v=s.center(default=1); return v  ## TypeError_: str.center() takes no keyword arguments
v=s.center('a'); return v  ## TypeError_: 'str' object cannot be interpreted as an int
v=s.center(b=3.0); return v  ## TypeError_: str.center() takes no keyword arguments
v=s.center(t); return v  ## TypeError_: str.center must be known at compile time, bu
v=s.center(*t,*t,*t); return v  ## TypeError_: str.center must be known at compile time, bu
v=s.partition(s); return v  ## same
v=s.partition(); return v  ## TypeError_: str.partition() takes exactly one argument (
v=s.splitlines(); return v  ## same
v=s.splitlines(n); return v  ## TypeError_: str.splitlines must be known at compile time
v=s.encode(); return v  ## same
v=s.encode(n); return v  ## TypeError_: str.encode must be known at compile time, bu
v=s.encode(x); return v  ## TypeError_: str.encode must be known at compile time, bu
v=s.encode(s); return v  ## same
v=s.encode(s, n); return v  ## TypeError_: str.encode must be known at compile time, bu
v=s.encode(l); return v  ## TypeError_: str.encode must be known at compile time, bu
v=s.encode(None); return v  ## TypeError_: encode() argument 'encoding' must be str, no
v=s.encode(reverse=s); return v  ## TypeError_: 'reverse' is an invalid keyword argument for
v=s.encode(key=None); return v  ## TypeError_: 'key' is an invalid keyword argument for enc
v=s.encode(default=1); return v  ## TypeError_: 'default' is an invalid keyword argument for
v=s.encode('a'); return v  ## same
v=s.encode('a', 1); return v  ## TypeError_: encode() argument 'errors' must be str, not
v=s.encode(b=3.0); return v  ## TypeError_: 'b' is an invalid keyword argument for encod
v=s.encode(t); return v  ## TypeError_: str.encode must be known at compile time, bu
v=s.encode(*t,*t,*t); return v  ## TypeError_: str.encode must be known at compile time, bu
v=s.nope(); return v  ## AttributeError_: 'str' object has no attribute 'nope'
v=s.nope(n); return v  ## AttributeError_: 'str' object has no attribute 'nope'
v=s.nope(x); return v  ## AttributeError_: 'str' object has no attribute 'nope'
v=s.nope(s); return v  ## AttributeError_: 'str' object has no attribute 'nope'
v=s.nope(l); return v  ## AttributeError_: 'str' object has no attribute 'nope'
v=s.nope(n, n); return v  ## AttributeError_: 'str' object has no attribute 'nope'
v=s.nope(s, s); return v  ## AttributeError_: 'str' object has no attribute 'nope'
v=s.nope(s,s,s); return v  ## AttributeError_: 'str' object has no attribute 'nope'
v=s.nope(nope=1); return v  ## AttributeError_: 'str' object has no attribute 'nope'
v=s.nope(None); return v  ## AttributeError_: 'str' object has no attribute 'nope'
v=s.nope(reverse=s); return v  ## AttributeError_: 'str' object has no attribute 'nope'
v=s.nope(key=None); return v  ## AttributeError_: 'str' object has no attribute 'nope'
v=s.nope(default=1); return v  ## AttributeError_: 'str' object has no attribute 'nope'
v=s.nope('a'); return v  ## AttributeError_: 'str' object has no attribute 'nope'
v=s.nope('z'); return v  ## AttributeError_: 'str' object has no attribute 'nope'
v=s.nope(b=3.0); return v  ## AttributeError_: 'str' object has no attribute 'nope'
v=s.nope(d); return v  ## AttributeError_: 'str' object has no attribute 'nope'
v=s.nope(d, d); return v  ## AttributeError_: 'str' object has no attribute 'nope'
v=s.nope(t); return v  ## AttributeError_: 'str' object has no attribute 'nope'
v=s.nope(*t,*t,*t); return v  ## AttributeError_: 'str' object has no attribute 'nope'
v=s.ljust(); return v  ## TypeError_: ljust expected at least 1 argument, got 0
v=s.ljust(n); return v  ## TypeError_: str.ljust must be known at compile time, but
v=s.ljust(x); return v  ## TypeError_: str.ljust must be known at compile time, but
v=s.ljust(s); return v  ## TypeError_: 'str' object cannot be interpreted as an int
v=s.ljust(l); return v  ## TypeError_: str.ljust must be known at compile time, but
v=s.ljust(n, n); return v  ## TypeError_: str.ljust must be known at compile time, but
v=s.ljust(s, s); return v  ## TypeError_: 'str' object cannot be interpreted as an int
v=s.ljust(nope=1); return v  ## TypeError_: str.ljust() takes no keyword arguments
v=s.ljust(None); return v  ## TypeError_: 'NoneType' object cannot be interpreted as a
v=s.ljust(reverse=s); return v  ## TypeError_: str.ljust() takes no keyword arguments
v=s.ljust(key=None); return v  ## TypeError_: str.ljust() takes no keyword arguments
v=s.ljust(default=1); return v  ## TypeError_: str.ljust() takes no keyword arguments
v=s.ljust('a'); return v  ## TypeError_: 'str' object cannot be interpreted as an int
v=s.ljust('z'); return v  ## TypeError_: 'str' object cannot be interpreted as an int
v=s.ljust(b=3.0); return v  ## TypeError_: str.ljust() takes no keyword arguments
v=s.ljust(d); return v  ## TypeError_: str.ljust must be known at compile time, but
v=s.ljust(d, d); return v  ## TypeError_: str.ljust must be known at compile time, but
v=s.ljust(t); return v  ## TypeError_: str.ljust must be known at compile time, but
v=s.ljust(*t,*t,*t); return v  ## TypeError_: str.ljust must be known at compile time, but
v=s.removeprefix(s); return v  ## same
v=s.removeprefix(); return v  ## TypeError_: str.removeprefix() takes exactly one argumen
v=s.capitalize(); return v  ## same
v=s.capitalize(n); return v  ## TypeError_: str.capitalize must be known at compile time
v=s.swapcase(); return v  ## same
v=s.swapcase(n); return v  ## TypeError_: str.swapcase must be known at compile time,
v=s.rsplit(); return v  ## same
v=s.rsplit(n); return v  ## TypeError_: str.rsplit must be known at compile time, bu
v=s.rsplit(x); return v  ## TypeError_: str.rsplit must be known at compile time, bu
v=s.rsplit(s); return v  ## same
v=s.rsplit(s, s); return v  ## TypeError_: 'str' object cannot be interpreted as an int
v=s.rsplit(l); return v  ## TypeError_: str.rsplit must be known at compile time, bu
v=s.rsplit(None); return v  ## same
v=s.rsplit(reverse=s); return v  ## TypeError_: 'reverse' is an invalid keyword argument for
v=s.rsplit(key=None); return v  ## TypeError_: 'key' is an invalid keyword argument for rsp
v=s.rsplit(default=1); return v  ## TypeError_: 'default' is an invalid keyword argument for
v=s.rsplit('a'); return v  ## same
v=s.rsplit('a', 1, 2); return v  ## TypeError_: rsplit() takes at most 2 arguments (3 given)
v=s.rsplit(b=3.0); return v  ## TypeError_: 'b' is an invalid keyword argument for rspli
v=s.rsplit(t); return v  ## TypeError_: str.rsplit must be known at compile time, bu
v=s.rsplit(*t,*t,*t); return v  ## TypeError_: str.rsplit must be known at compile time, bu
v=s.rfind(); return v  ## TypeError_: rfind() takes at least 1 argument (0 given)
v=s.rfind(n); return v  ## TypeError_: str.rfind must be known at compile time, but
v=s.rfind(x); return v  ## TypeError_: str.rfind must be known at compile time, but
v=s.rfind(s); return v  ## same
v=s.rfind(l); return v  ## TypeError_: str.rfind must be known at compile time, but
v=s.rfind(n, n); return v  ## TypeError_: str.rfind must be known at compile time, but
v=s.rfind(s, s); return v  ## TypeError_: slice indices must be integers or None or ha
v=s.rfind(nope=1); return v  ## TypeError_: rfind() takes no keyword arguments
v=s.rfind(None); return v  ## TypeError_: must be str, not NoneType
v=s.rfind(reverse=s); return v  ## TypeError_: rfind() takes no keyword arguments
v=s.rfind(key=None); return v  ## TypeError_: rfind() takes no keyword arguments
v=s.rfind(default=1); return v  ## TypeError_: rfind() takes no keyword arguments
v=s.rfind('a'); return v  ## same
v=s.rfind('z'); return v  ## same
v=s.rfind(b=3.0); return v  ## TypeError_: rfind() takes no keyword arguments
v=s.rfind(d); return v  ## TypeError_: str.rfind must be known at compile time, but
v=s.rfind(d, d); return v  ## TypeError_: str.rfind must be known at compile time, but
v=s.rfind(t); return v  ## TypeError_: str.rfind must be known at compile time, but
v=s.rfind(*t,*t,*t); return v  ## TypeError_: str.rfind must be known at compile time, but
v=s.expandtabs(); return v  ## same
v=s.expandtabs(n); return v  ## TypeError_: str.expandtabs must be known at compile time
v=s.casefold(); return v  ## same
v=s.casefold(n); return v  ## TypeError_: str.casefold must be known at compile time,
v=s.isidentifier(); return v  ## same
v=s.isidentifier(n); return v  ## TypeError_: str.isidentifier must be known at compile ti
v=s.translate(s); return v  ## same
v=s.translate(); return v  ## TypeError_: str.translate() takes exactly one argument (
v=s.format_map(s); return v  ## same
v=s.format_map(); return v  ## TypeError_: str.format_map() takes exactly one argument
v=P(1,2.0)._replace(); return v  ## same
v=P(1,2.0)._replace(n); return v  ## TypeError_: _replace() is given 1 arguments
v=P(1,2.0)._asdict(); return v  ## same
v=P(1,2.0)._asdict(n); return v  ## TypeError_: _asdict() is given 1 arguments
v=P(1,2.0).count(); return v  ## TypeError_: count cannot be compiled: it is neither Pyth
v=P(1,2.0).index(); return v  ## TypeError_: index cannot be compiled: it is neither Pyth
v=P(1,2.0).nope(); return v  ## AttributeError_: P has no field 'nope' (its fields are a, b)
v=Q(1).total(); return v  ## same
v=Q(1).total(n); return v  ## TypeError_: total() takes 1 positional argument but 2 we
v=Q(1).nope(); return v  ## AttributeError_: Q has no field 'nope' (its fields are a, b)
v=x.is_integer(); return v  ## AttributeError_: float has no attribute 'is_integer' in the l
v=n.is_integer(); return v  ## AttributeError_: int has no attribute 'is_integer' in the lan
v=x.bit_length(); return v  ## AttributeError_: float has no attribute 'bit_length' in the l
v=n.bit_length(); return v  ## AttributeError_: int has no attribute 'bit_length' in the lan
v=x.conjugate(); return v  ## AttributeError_: float has no attribute 'conjugate' in the la
v=n.conjugate(); return v  ## AttributeError_: int has no attribute 'conjugate' in the lang
v=x.real(); return v  ## TypeError_: float is not callable
v=n.real(); return v  ## TypeError_: int is not callable
v=x.real(n); return v  ## TypeError_: float is not callable
v=n.real(n); return v  ## TypeError_: int is not callable
v=x.real(n,n); return v  ## TypeError_: float is not callable
v=n.real(n,n); return v  ## TypeError_: int is not callable
v=x.real(nope=1); return v  ## TypeError_: float is not callable
v=n.real(nope=1); return v  ## TypeError_: int is not callable
v=x.real; return v  ## same
v=n.real; return v  ## same
v=x.imag(); return v  ## AttributeError_: float has no attribute 'imag' in the languag
v=n.imag(); return v  ## AttributeError_: int has no attribute 'imag' in the language
v=x.imag(n); return v  ## AttributeError_: float has no attribute 'imag' in the languag
v=n.imag(n); return v  ## AttributeError_: int has no attribute 'imag' in the language
v=x.imag(n,n); return v  ## AttributeError_: float has no attribute 'imag' in the languag
v=n.imag(n,n); return v  ## AttributeError_: int has no attribute 'imag' in the language
v=x.imag(nope=1); return v  ## AttributeError_: float has no attribute 'imag' in the languag
v=n.imag(nope=1); return v  ## AttributeError_: int has no attribute 'imag' in the language
v=x.imag; return v  ## AttributeError_: float has no attribute 'imag' in the languag
v=n.imag; return v  ## AttributeError_: int has no attribute 'imag' in the language
v=x.numerator(); return v  ## AttributeError_: float has no attribute 'numerator' in the la
v=n.numerator(); return v  ## AttributeError_: int has no attribute 'numerator' in the lang
v=x.as_integer_ratio(); return v  ## AttributeError_: float has no attribute 'as_integer_ratio' in
v=n.as_integer_ratio(); return v  ## AttributeError_: int has no attribute 'as_integer_ratio' in t
v=x.hex(); return v  ## AttributeError_: float has no attribute 'hex' in the language
v=n.hex(); return v  ## AttributeError_: int has no attribute 'hex' in the language
v=x.hex(n); return v  ## AttributeError_: float has no attribute 'hex' in the language
v=n.hex(n); return v  ## AttributeError_: int has no attribute 'hex' in the language
v=x.hex(n,n); return v  ## AttributeError_: float has no attribute 'hex' in the language
v=n.hex(n,n); return v  ## AttributeError_: int has no attribute 'hex' in the language
v=x.hex(nope=1); return v  ## AttributeError_: float has no attribute 'hex' in the language
v=n.hex(nope=1); return v  ## AttributeError_: int has no attribute 'hex' in the language
v=x.hex; return v  ## AttributeError_: float has no attribute 'hex' in the language
v=n.hex; return v  ## AttributeError_: int has no attribute 'hex' in the language
v=x.nope(); return v  ## AttributeError_: float has no attribute 'nope' in the languag
v=n.nope(); return v  ## AttributeError_: int has no attribute 'nope' in the language
v=x.nope(n); return v  ## AttributeError_: float has no attribute 'nope' in the languag
v=n.nope(n); return v  ## AttributeError_: int has no attribute 'nope' in the language
v=x.nope(n,n); return v  ## AttributeError_: float has no attribute 'nope' in the languag
v=n.nope(n,n); return v  ## AttributeError_: int has no attribute 'nope' in the language
v=x.nope(nope=1); return v  ## AttributeError_: float has no attribute 'nope' in the languag
v=n.nope(nope=1); return v  ## AttributeError_: int has no attribute 'nope' in the language
v=x.nope; return v  ## AttributeError_: float has no attribute 'nope' in the languag
v=n.nope; return v  ## AttributeError_: int has no attribute 'nope' in the language
v=x.__abs__(); return v  ## AttributeError_: float has no attribute '__abs__' in the lang
v=n.__abs__(); return v  ## AttributeError_: int has no attribute '__abs__' in the langua
v=x.__abs__; return v  ## AttributeError_: float has no attribute '__abs__' in the lang
v=n.__abs__; return v  ## AttributeError_: int has no attribute '__abs__' in the langua
v=x.__add__(); return v  ## AttributeError_: float has no attribute '__add__' in the lang
v=n.__add__(); return v  ## AttributeError_: int has no attribute '__add__' in the langua
v=x.__add__; return v  ## AttributeError_: float has no attribute '__add__' in the lang
v=n.__add__; return v  ## AttributeError_: int has no attribute '__add__' in the langua
"""

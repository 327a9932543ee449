"""Statements of plain Python, a snippet a line: compiled code returns, prints or raises what CPython does, or it is refused.

What is refused, and in which words, is listed in `refused_statements.json`;
`pytest tests/programs/test_python_statements.py --update-golden` writes it anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from myia_relay import relay
from tests.pins import Refusals
from tests.programs.compare import differences
from tests.programs.snippets import ARGS, P, Q, outcome
from tests.property.oracle import function_of

pytestmark = pytest.mark.filterwarnings("ignore")


NAMES = {"P": P, "Q": Q, "p0": P(1, 2.0)}
LINES = r"""
d=dict(d); d['c']=1.0; return d
d=dict(d); del d['a']; return d
d=dict(d); v=d.pop('a'); return v,d
d=dict(d); v=d.pop('z',0.0); return v,d
d=dict(d); v=d.pop('z'); return v
d=dict(d); v=d.setdefault('c',4.0); return v,d
d=dict(d); d.update({'a':9.0}); return d
d=dict(d); d.update(b=7.0,q=1.0); return d
d=dict(d); d.clear(); return d
d=dict(d); v=d.popitem(); return v,d
d=dict(d); d['a']+=1; return d
d=dict(d); d|={'x':1.0}; return d
e={}; e['k']=n; e['j']=x; return e, list(e)
e={'b':1,'a':2}; e['b']=3; return list(e.items())
e={i:i*i for i in (1,2,3)}; return e
e={'a':n,**d}; return e
e={**d,'a':n}; return e
e={k:v for k,v in zip('ab',l)}; return e
e={k:i for i,k in enumerate('ab')}; return e
t0=[]; [t0.append(v) for v in l]; return t0
m=[3,1,2]; m.sort(); return m
m=[3,1,2]; m.sort(reverse=True); return m
m=[3,1,2]; m.sort(key=lambda v:-v); return m
m=[3,1,2]; m.reverse(); return m
m=[3,1,2]; m.insert(1,9); return m
m=[3,1,2]; m.insert(-1,9); return m
m=[3,1,2]; m.insert(99,9); return m
m=[3,1,2]; v=m.pop(); return v,m
m=[3,1,2]; v=m.pop(0); return v,m
m=[3,1,2]; v=m.pop(5); return v,m
m=[3,1,2]; m.remove(1); return m
m=[3,1,2]; m.remove(9); return m
m=[3,1,2]; m.extend([4,5]); return m
m=[3,1,2]; m.extend((4,5)); return m
m=[3,1,2]; m.extend(range(2)); return m
m=[3,1,2]; m+=[4]; return m
m=[3,1,2]; m+=(4,); return m
m=[3,1,2]; m*=2; return m
m=[3,1,2]; m[0]=n; return m
m=[3,1,2]; m[-1]=n; return m
m=[3,1,2]; m[5]=n; return m
m=[3,1,2]; m[0],m[1]=m[1],m[0]; return m
m=[3,1,2]; m[1:2]=[7,8]; return m
m=[3,1,2]; del m[0]; return m
m=[3,1,2]; del m[1:]; return m
m=[3,1,2]; m.clear(); return m
m=[3,1,2]; k=m; k.append(4); return m
m=[3,1,2]; k=m[:]; k.append(4); return m,k
m=[3,1,2]; k=m.copy(); k[0]=0; return m,k
m=[[1],[2]]; m[0].append(3); return m
m=[[0]*2 for _ in range(2)]; m[0][1]=5; return m
m=[[0]*2]*2; m[0][1]=5; return m
a,*b=l; return a,b
*a,b=l; return a,b
a,*b,c=l; return a,b,c
(a,b),c=(1,2),3; return a,b,c
[a,b]=1,2; return a,b
a=b=n; return a,b
a=1; a+=0.5; return a
a=n; b=a; a+=1; return a,b
a,b=n,x; a,b=b,a; return a,b
s0=0; \nfor i in range(5):\n    if i==3: break\n    s0+=i\nelse:\n    s0=100\nreturn s0,i
s0=0; \nfor i in range(5):\n    if i%2: continue\n    s0+=i\nelse:\n    s0+=100\nreturn s0,i
i=0; \nwhile i<3:\n    i+=1\nelse:\n    i=10\nreturn i
i=0; \nwhile True:\n    i+=1\n    if i>3: break\nelse:\n    i=10\nreturn i
for i in range(0):\n    q=1\nreturn q
for i in range(2):\n    q=i\nreturn q,i
for k in d:\n    q=k\nreturn q
for k,v in d.items():\n    q=(k,v)\nreturn q
for i,(a,b) in enumerate([(1,2),(3,4)]):\n    q=(i,a,b)\nreturn q
fs=[lambda v:v+i for i in range(3)]; return fs[0](1),fs[2](1)
fs=[lambda v,i=i:v+i for i in range(3)]; return fs[0](1),fs[2](1)
def g(a,b=2,*c,k=5): return a,b,c,k\nreturn g(1),g(1,3),g(1,2,3,4),g(1,k=0),g(b=1,a=2)
def g(*a,**k): return a,k\nreturn g(1,2,z=3)
def g(a,/,b,*,c): return a,b,c\nreturn g(1,2,c=3),g(1,b=2,c=3)
def g(a,b): return a-b\nreturn g(*(1,2)),g(**{'a':1,'b':2}),g(1,*[2])
def g(a,b): return a-b\nreturn g(1)
def g(a,b): return a-b\nreturn g(1,2,3)
def g(a,b): return a-b\nreturn g(1,c=3)
def g(v=[]):\n    v.append(1)\n    return len(v)\nreturn g(),g()
def g():\n    return\nreturn g()
def g(): pass\nreturn g()
c=0\ndef g():\n    nonlocal c\n    c+=1\n    return c\nreturn g(),g(),c
def mk(k):\n    def h(v): return v*k\n    return h\nreturn mk(2)(n),mk(x)(n)
y=1\ndef g(): return y\ny=2\nreturn g()
if (w:=n*2)>5: return w\nreturn 0
return [w:=n,w+1]
return n if n>5 else x if x>5 else None
assert n>5,'small'
assert n>5
assert n, 'x'\nreturn 1
raise ValueError('bad')
raise ValueError
raise KeyError('k')
if n>2: raise IndexError(f'no {n}')\nreturn 1
print(n,x,s,l,t,d,None,True,sep='|'); return 0
print(f'{x:.3f}',end='!'); print(); return 0
print([1,'a',None,2.0,(1,),{'k':1}]); return 0
print(np.float64(1.5),np.int64(2),np.float32(0.1),[np.float64(1.5)]); return 0
print(np.array([1.0,2.5]),np.arange(3)); return 0
match n:\n    case 1: return 'a'\n    case 3: return 'b'\n    case _: return 'c'
match t:\n    case (1,b,c): return b\n    case _: return 0
match l:\n    case [a,*r]: return a,r\n    case _: return 0
match d:\n    case {'a':v}: return v\n    case _: return 0
match x:\n    case int(): return 1\n    case float(): return 2
match (n,x):\n    case (int(a),float(b)) if a>b: return a\n    case (a,b): return b
match s:\n    case 'abc'|'d': return 1\n    case _: return 0
return P(1,2.0).a,P(1,2.0).b,P(1,2.0)==P(1,2.0),P(1,2.0)!=P(1,3.0)
p=P(1,2.0); return p._replace(b=3.0),p[0],p[-1],len(p),list(p),tuple(p),sum(p),p+(1,)
p=P(1,2.0); a,b=p; return a,b
p=P(1,2.0); return [*p],(*p,),{**p._asdict()}
p=P(1,2.0); return P._fields,p._asdict()
return p0.a,p0.b,[v for v in p0],p0==(1,2.0),p0<(1,3.0),1 in p0,p0.index(2.0),p0.count(1)
q=Q(1,2.0); return q.a,q.b,q==Q(1,2.0),q!=Q(1,2.0)
q=Q(1); return q.b,q.total(),q.double
q=Q(1,2.0); q.a=5
q=Q(1,2.0); return [*q]
q=Q(1,2.0); return list(q)
q=Q(1,2.0); return len(q)
q=Q(1,2.0); return q[0]
q=Q(b=3.0,a=1); return q
q=Q(1,2.0); return str(q)
q=Q(1,2.0); return f'{q}'
q=Q(1,2.0); print(q); return 0
p=P(1,2.0); print(p); return 0
q=Q(1,2.0); return bool(q), q is not None, isinstance(q,Q), isinstance(q,P)
q=Q(1,2.0); return q<Q(2,1.0)
q=Q(1,2.0); return q.zz
q=Q(1,2.0,3)
q=Q()
return Q(1,2.0)+Q(3,4.0)
return max([P(1,2.0),P(0,5.0)],key=lambda p:p.b)
return sorted([3,1,2],key=lambda v:(v%2,v))
return [p for p in (P(1,2.0),P(3,4.0)) if p.a>1]
return sum(p.b for p in (P(1,2.0),P(3,4.0)))
del n
try:\n    return 1/0\nexcept ZeroDivisionError:\n    return 5
yield n
import os
class C: pass
return lambda v: v+1
return abs
return P
return Q(1,2.0)
return P(1,2.0)
return (n,[x,{'a':l}])
return np.float64(x),np.int64(n),np.array(l)
return None
return n,
return
x.y
n()
l.foo()
n.foo
'a'+1
[1]+(2,)
n+'a'
l+1
d+d
None+1
n<'a'
l<1
-s
len(n)
n[0]
s['a']
l['a']
l[1.0]
t['a']
d[1]
undefined
np.foo
math.foo(1)
int('x')
float('y')
int([1])
sum('ab')
max(n)
max()
min(1)
range('a')
range(1.5)
zip(1)
enumerate(1)
sorted(1)
abs('a')
round('a')
len()
isinstance(n)
P(1)
P(1,2,3)
math.sqrt(-1)
math.sqrt('a')
math.log(0)
math.factorial(-1)
math.factorial(x)
np.zeros(-1)
np.zeros((2,3))[2]
np.zeros((2,3))[0,3]
np.zeros((2,3))@np.zeros((2,3))
np.zeros(3)+np.zeros(4)
np.zeros((2,3)).reshape(4,2)
np.concatenate([np.zeros(2),np.zeros((2,2))])
np.array([[1,2],[3]])
"""
"""Bodies of functions of a list l of floats, a tuple t, a string s, a dict d, an int n and a float x; expressions are returned."""
SNIPPETS = list(dict.fromkeys(LINES.strip().split("\n")))

KEYWORDS = ("raise", "assert", "del", "class", "import", "for", "while", "if", "match", "def", "try", "yield", "return")


def program(snippet: str):
    body = snippet.replace("\\n", "\n")
    plain = "\n" not in body and ";" not in body and not body.startswith(KEYWORDS) and "=" not in body.replace("==", "")
    lines = (f"return {body}" if plain else body).replace("; \n", "\n").split("\n")
    return function_of(
        "def program(l, t, s, d, n, x):\n" + "".join(f"    {line}\n" for line in lines), f"<{snippet}>", NAMES
    )


@pytest.fixture(scope="module")
def refusals(updating):
    return Refusals(
        Path(__file__).with_name("refused_statements.json"), "tests/programs/test_python_statements.py", updating
    )


@pytest.mark.parametrize("executor", ["interpreter", "native"])
@pytest.mark.parametrize("snippet", SNIPPETS)
@pytest.mark.sampled(9)
def test_snippets(snippet, executor, refusals):
    function = program(snippet)
    (want, shown), (got, printed) = outcome(function, ARGS), outcome(relay(function, executor=executor), ARGS)
    if refusals.check(snippet, got):
        return
    assert printed == shown
    if isinstance(want, Exception):
        assert (type(got), str(got)) == (type(want), str(want))
    elif not (callable(want) and callable(got)):
        assert not isinstance(got, Exception), repr(got)
        assert not differences(got, want)


def test_the_list_of_refusals(refusals):
    refusals.check_all(SNIPPETS, lambda s: outcome(relay(program(s), executor="interpreter"), ARGS)[0])

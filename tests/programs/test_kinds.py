"""Kinds, dtypes and ranges: what NumPy makes of an expression, or raises, is what compiled code makes of it, or it is refused.

What is refused, and in which words, is listed in `refused_kinds.json`; `pytest tests/programs/test_kinds.py --update-golden`
writes it anew.

Python numbers beside arrays of other dtypes are taken in two ways: as numbers that fit themselves to the array (`np.add(2.0, f)`),
or, by functions that make arrays of their arguments first, as float64 and int64 (`np.dot(2.0, f)`, `np.hstack([f, 2.0])`).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from myia_relay import relay
from tests.pins import Refusals
from tests.programs.compare import differences
from tests.programs.snippets import outcome
from tests.property.oracle import function_of

pytestmark = pytest.mark.filterwarnings("ignore")

KINDS = """\
np.dot(2.0,f); np.dot(f,2); np.dot(2,i); np.inner(2.0,f); np.outer(2.0,f); np.outer(f,2); np.tensordot(2.0,f,0);
np.einsum(',i->i',2.0,f); np.convolve(f,[1.0]); np.convolve(f,f); np.convolve(i,[1,2]); np.cross(f,[1.0,2.0,3.0]);
np.average(f,weights=[1.0,2,3]); np.average(f); np.average(i); np.kron(2.0,f); np.multiply(2.0,f); np.sum(f,initial=2.0);
np.sum(i,initial=2); np.interp(0.5,f,f); np.interp(f,f,f); np.linspace(np.float32(0),1,3); np.full(2,f[0]);
np.where(f>0,2.0,f); np.where(i>0,2,i); np.where(i>0,300,i); np.append(f,2.0); np.pad(f,1,constant_values=2.5);
np.pad(i,1,constant_values=2); np.stack([f,f*2.0]); np.hstack([f,2.0]); np.hstack([i,2]); np.concatenate([f,[2.0]]);
np.concatenate([i,[2]]); np.concatenate([i,f]); np.select([f>0],[f],2.0); np.clip(f,0.0,2.0); np.clip(i,0,2.5);
np.maximum(f,2.0); np.maximum(i,2); np.diff(f,prepend=1.0); np.roll(f,1); np.meshgrid(f,2.0)[0]; np.polyval([1.0,2.0],f);
np.trapezoid(f,dx=2.0); np.trapezoid(f); np.trapezoid(i); np.nan_to_num(f,nan=1.0); np.std(f); np.std(i); np.median(f);
np.median(i); np.quantile(f,0.5); np.percentile(i,50); np.var(i); np.var(f); np.mean(i); np.mean(f); np.cumsum(i);
np.cumprod(i); np.cumsum(f); np.prod(i); np.prod(f); np.sum(b); np.cumsum(b); np.mean(b); np.heaviside(f,0.5);
np.heaviside(i,0); np.ldexp(f,2); np.power(f,2); np.power(i,2); np.power(2,i); np.float_power(f,2); np.arctan2(f,1);
np.arctan2(i,1); np.hypot(f,1); np.copysign(f,1); np.copysign(i,1.0); np.fmod(f,2.0); np.square(i); np.sqrt(i); np.sqrt(b);
np.exp(i); np.sin(b); np.abs(i); np.sign(i); np.floor(i); np.ceil(f); np.rint(i); np.round(i); np.round(f,1); np.trunc(i);
np.reciprocal(f); np.reciprocal(i); np.cbrt(i); np.degrees(i); np.log1p(i); np.isclose(f,1.0); np.allclose(f,1.0);
np.array_equal(f,f); np.argmax(f); np.sort(f); np.searchsorted(f,2.0); np.searchsorted(f,f);
np.digitize(f,f); np.bincount(np.abs(i)); np.histogram(f)[0]; np.ptp(f); np.ptp(i); np.all(f); np.any(i); np.max(f);
np.min(i); np.trace(np.ones((2,2),'f4')); np.diag(f); np.tril(np.ones((2,2),'i1')); np.eye(2); np.eye(2,dtype='i1');
np.arange(3); np.arange(3.0); np.arange(f[0]); np.zeros_like(i); np.zeros_like(i,dtype=float); np.ones_like(f,shape=(2,));
np.full_like(i,2); np.full_like(f,2); np.full_like(i,2.5); np.empty_like(f).dtype==f.dtype; np.repeat(f,2); np.tile(i,2);
np.flip(f); np.rot90(np.ones((2,2),'f4')); np.squeeze(f[None]); np.expand_dims(f,0); np.broadcast_to(f,(2,3));
np.atleast_1d(2.0); np.atleast_2d(f); np.asarray(2.0); np.asarray([1,2.0]); np.array([f[0],2.0]); np.array([i[0],2]);
np.array([True,2]); np.array([i[0],f[0]]); np.float32(2)*f; np.float64(2)*f; np.int64(2)*i; f*2; f*2.0; i*2; i*2.0; b*2;
b*2.0; b*i; b+b; f+i; f//2; i//2; i/2; f%2; i%2; f**2; i**2; f**2.0; f**0.5; i**2.0; 2**i; 2.0**i; ~b; ~i; i&3; i|b; b&b;
b^b; i<<1; i>>1; f>2; f==2; i==2.0; divmod(f,2); divmod(i,2); abs(f); abs(i); f.mean(); i.mean(); i.sum();
f.sum(dtype=float); f.astype(int); i.astype(bool); f.max(); f.argmax(); f.round(1); f.clip(0,1); i.clip(0,1); f.dot(f);
f.dot(2.0); f.item(0); float(f[0]); int(i[0]); f[0]; i[0]; b[0]; f[0]*2; f[0]*2.0; i[0]*2; i[0]/2; i[0]//2; i[0]**2;
f[0]**2; b[0]+1; b[0]+b[0]; round(f[0]); round(f[0],1); abs(i[0]); divmod(i[0],2); max(f[0],f[1]); sum(f); sum(i); sum(b);
sum([f,f]); len(f); f.T; f.shape; f.size; f.ndim; f.dtype==np.float32; np.result_type(f,2.0)==f.dtype;
np.dtype(float)==f.dtype; np.linalg.norm(f); np.linalg.norm(i); np.linalg.det(np.eye(2,dtype='f4'));
np.linalg.inv(np.eye(2,dtype='f4')); np.linalg.solve(np.eye(3,dtype='f4'),f); np.linalg.solve(np.eye(3,dtype='i1'),i);
np.linalg.det(np.eye(2,dtype='i1')); np.linalg.matrix_power(np.eye(2,dtype='f4'),2); np.vander(f); np.logspace(0,1,3);
np.geomspace(1,10,3); np.tri(2); np.indices((2,2)); np.unravel_index(3,(2,2)); np.triu_indices(2); np.sinc(f); np.i0(f);
np.angle(f); np.real(f); np.gradient(f); np.ediff1d(f); np.nansum(f); np.nanmean(f); np.nanmax(f); np.logaddexp(f,1);
np.exp2(i); np.deg2rad(f); np.modf(f); np.frexp(f); np.fix(f); np.lcm(i,2); np.gcd(i,2); np.bitwise_count(i); np.invert(i);
np.left_shift(i,1); np.cov(f,f); np.corrcoef(f,f); np.dstack([f,f]); np.vstack([f,i]); np.column_stack([f,i]);
np.block([f,f]); np.array_split(f,2); np.take(f,[0,1]); np.take(f,0); np.take_along_axis(f,np.array([0]),0);
np.choose([0,1,0],[f,f]); np.unique(i); np.isin(i,[1]); np.ix_([0],[1]); np.moveaxis(f[None],0,1); np.swapaxes(f[None],0,1);
np.transpose(f[None]); np.ravel(f); np.reshape(f,(3,1)); np.isfinite(i); np.isnan(b); np.signbit(f); np.nextafter(f,2);
np.spacing(f); np.logical_and(f,1); np.logical_not(i); np.iscomplexobj(f); np.ndim(2.0); np.shape(f); np.size(f);
np.vdot(f,f); np.vecdot(f,f); np.matvec(np.ones((2,3),'f4'),f); np.linalg.cross(f,f); np.linalg.trace(np.eye(2,dtype='f4'));
np.linalg.outer(f,f); np.linalg.vector_norm(f); np.linalg.matrix_norm(np.eye(2,dtype='f4')); np.cumulative_sum(f);
np.permute_dims(f[None],(1,0)); np.astype(f,int); np.concat([f,f]); np.pow(f,2); np.acos(f/9); np.unstack(f)"""
"""Of a float32 array f, an int8 array i, an array of booleans b, the int n = 3 and the float x = 2.5."""

RANGES = """\
np.array([300],dtype=np.uint8); np.array([-1],dtype=np.uint8); np.array([i[0],300],dtype=np.int8);
np.full(2,300,dtype=np.uint8); np.full(2,-1,dtype=np.uint16); np.asarray(300,np.int8); np.full_like(i,300);
np.where(i>0,300,i); np.pad(i,1,constant_values=300); np.append(i,300); np.int8(300); np.uint8(-1); np.int8(i[0]+300);
i+300; i==300; i<300; 300-i; np.maximum(i,300); np.array([1.5,n]).astype(int); np.array([True,n]);
np.array([n,2.5],dtype=int); np.array([x,n]); np.array([x,2],dtype=np.float32); np.array((n,n)); np.array([[n,1],[2,x]]);
np.array([[n],[2]]); np.array([i,i]); np.array([i,[1,2,3]]); np.array([i,[1,2,300]]); np.array([f,[n,1,2]]); np.array(n);
np.array(x,dtype=np.float32); np.array(True); np.array([]); np.array([[]]); np.array([[],[]]); np.array([()]);
np.asarray([n,n],np.uint8); np.asarray(x,int); np.array([x],int); np.arange(n); np.arange(n,dtype=np.int8); np.ones(3)*n;
np.ones(3,np.int8)*n; np.ones(3,np.int8)*300; np.int8(n); np.uint8(n); np.float32(n); np.float16(x); np.int32(x);
np.bool_(n); np.int64(x); np.uint64(n); np.zeros(3,np.int8)+n; np.linspace(0,n,3); np.linspace(0,n,3,dtype=int);
np.full(3,n); np.full(3,x); np.full(3,True); np.full((2,),n,np.float32); np.full(3,x,int); np.eye(2)*n; np.sum([n,2]);
np.sum([n,x]); np.mean([n,2]); np.max([n,x]); np.prod([n,2]); np.dot([n,1],[2,x]); np.cumsum([n,2]); np.sort([n,1]);
np.argmax([n,1]); np.round(x); np.round(n); np.abs(n); np.abs(-x); np.sqrt(n); np.square(n); np.sign(x); np.sign(n);
np.floor(n); np.exp(n); np.add(n,2); np.add(n,x); np.multiply(n,2); np.power(n,2); np.maximum(n,2); np.maximum(n,x);
np.clip(n,0,2); np.clip(x,0,2); np.where(n>1,n,2); np.where(n>1,n,x); np.mod(n,2); np.isnan(x); np.isclose(x,n);
np.hypot(n,2); np.arctan2(n,2); np.floor_divide(n,2); np.true_divide(n,2); np.negative(n); np.bitwise_and(n,3);
np.left_shift(n,1); np.logical_and(n,x); np.less(n,x); np.equal(n,2); np.all([n,x]); np.any(n); np.outer(n,x);
np.inner(n,x); np.concatenate([[n],[x]]); np.stack([n,x]); np.stack([n,n]); np.hstack([n,x]); np.vstack([n,x]);
np.append(n,x); np.repeat(n,2); np.tile(n,2); np.tile([n,x],2); np.expand_dims(n,0); np.reshape(n,(1,)); np.ravel(n);
np.transpose(n); np.squeeze(n); np.atleast_1d(n); np.broadcast_to(n,(2,)); np.roll([n,x],1); np.flip([n,1]); np.diff([n,1]);
np.interp(n,[0,1],[0,1]); np.ptp([n,1]); np.std([n,1]); np.median([n,1]); np.zeros_like(n);
np.ones_like(x); np.full_like(x,2); np.full_like(n,2.5); np.shape(n); np.ndim(n); np.size(n); np.copy(n); np.heaviside(x,1);
np.copysign(n,-1); np.float_power(n,2); np.cbrt(n); np.nan_to_num(x); np.real(n); np.trunc(n); np.rint(n); np.deg2rad(n);
np.sinc(n); np.reciprocal(x); np.reciprocal(n); np.min(n); np.sum(n); np.mean(n); np.prod(x); np.linalg.norm([n,1]);
np.cross([n,0,0],[0,1,x]); np.trace([[n,1],[1,x]]); np.diag([n,1]); np.polyval([n,1],2); np.polyval([n,1],x);
np.vander([n,1]); np.convolve([n,1],[1,x]); np.meshgrid([n,1],[x])[0]; np.searchsorted([0,1,5],n); np.triu([[n,1],[1,x]]);
np.average([n,1]); np.average([n,1],weights=[x,1]); np.select([n>1],[x],0)"""
"""The same, with numbers that do not fit and with numbers in place of arrays."""

CONVERSIONS = """\
np.array([2**60+1,x],dtype=np.int64); np.array([2**60+1,x],dtype=np.int64)[0]-2**60; np.array([300.5],dtype=np.uint8);
np.array([x-5],np.uint8); np.array([float('nan')],dtype=int); np.asarray(float('inf'),np.int32);
np.full(2,float('nan'),dtype=np.int64); np.full(2,300.5,np.float32); np.full(2,n*100,np.int8); np.full_like(i,n*100);
np.array([n*100],np.int8); np.pad(i,1,constant_values=n*100); np.pad(i,1,constant_values=300.5);
np.int64(float('nan')); np.array([np.float64(300.5)]).astype(int); np.linalg.norm(b); np.linalg.norm(i,1);
np.linalg.norm(i,np.inf)"""
"""Of numbers to other dtypes."""

F, I, B = np.array([1, 2, 3.5], np.float32), np.array([3, -1, 2], np.int8), np.array([True, False, True])
ARGS = F, I, B, 3, 2.5
EXPRESSIONS = [e.strip() for text in (KINDS, RANGES, CONVERSIONS) for e in text.replace("\n", " ").split("; ")]


def program(expression: str):
    return function_of(f"def program(f, i, b, n, x):\n    return {expression}\n", f"<{expression}>")


@pytest.fixture(scope="module")
def refusals(updating):
    return Refusals(Path(__file__).with_name("refused_kinds.json"), "tests/programs/test_kinds.py", updating)


@pytest.mark.sampled(37)
@pytest.mark.parametrize("executor", ["interpreter", "native"])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions(expression, executor, refusals):
    function = program(expression)
    (want, _), (got, _) = outcome(function, ARGS), outcome(relay(function, executor=executor), ARGS)
    if refusals.check(expression, got):
        return
    if isinstance(want, Exception):
        assert isinstance(got, type(want)), repr(got)
    else:
        assert not isinstance(got, Exception), repr(got)
        assert not differences(got, want, rtol=1e-6)


def test_the_list_of_refusals(refusals):
    refusals.check_all(EXPRESSIONS, lambda e: outcome(relay(program(e), executor="interpreter"), ARGS)[0])


def stored(text: str):
    return function_of(f"def program(x):\n    y = np.zeros(3, np.int8)\n    {text}\n    return y\n", f"<{text}>")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("executor", ["interpreter", "native"])
@pytest.mark.parametrize(
    "text", ["y[0] = x", "y[:2] = [1, x]", "y[1:] = (x, x)", "y[:] = int(x) * 2", "y[1:] = [int(x), 100]"]
)
def test_what_is_assigned_fits(text, executor):
    function = stored(text)
    for x in (2.5, -1.0, 127.5, 200.0, float("nan"), float("inf"), 1e300):
        (want, _), (got, _) = outcome(function, (x,)), outcome(relay(function, executor=executor), (x,))
        if isinstance(want, Exception):
            assert isinstance(got, type(want)), (x, got)
        else:
            assert not differences(got, want)

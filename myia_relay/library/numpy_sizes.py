"""NumPy functions whose results have sizes that values decide, mostly: sets, histograms, deleting and inserting."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .refusals import misfit, unsupported

# Sets.


def setdiff1d(ar1, ar2, assume_unique=False):
    """np.setdiff1d."""
    first = np.ravel(ar1) if assume_unique else np.unique(ar1)
    return first[np.isin(first, ar2, invert=True)]


def intersect1d(ar1, ar2, assume_unique=False, return_indices=False):
    """np.intersect1d without positions."""
    if return_indices:
        unsupported("np.intersect1d returns the values only in compiled code; np.isin tells where they are")
    first, second = np.unique(ar1), np.unique(ar2)
    both = np.sort(np.concatenate((first, second)))
    return both[1:][both[1:] == both[:-1]]


def union1d(ar1, ar2):
    """np.union1d of arrays."""
    if not isinstance(ar1, np.ndarray | list | tuple) or not isinstance(ar2, np.ndarray | list | tuple):
        unsupported("np.union1d takes arrays in compiled code; write np.asarray(x) for a number")
    return np.unique(np.concatenate((np.ravel(ar1), np.ravel(ar2))))


def setxor1d(ar1, ar2, assume_unique=False):
    """np.setxor1d."""
    both = np.sort(np.concatenate((np.unique(ar1), np.unique(ar2))))
    if both.shape[0] == 0:
        return both
    end = np.ones(1, np.bool_)
    new = np.concatenate((end, both[1:] != both[:-1], end))
    return both[new[1:] & new[:-1]]


# Parts taken out and put in.


def trim_zeros(filt, trim="fb"):
    """np.trim_zeros of a vector."""
    if not isinstance(filt, np.ndarray):
        unsupported("np.trim_zeros takes an array in compiled code; write np.asarray(x)")
    if filt.ndim != 1:
        unsupported("np.trim_zeros takes a vector in compiled code")
    places = np.flatnonzero(filt)
    if places.shape[0] == 0:
        return filt[:0]
    start = places[0] if "f" in trim or "F" in trim else 0
    stop = places[-1] + 1 if "b" in trim or "B" in trim else filt.shape[0]
    return filt[start:stop]


def _place(obj, n, axis, top):
    """A position counted from the start.

    Raises:
        IndexError: there is none such.
    """
    if obj < -n or obj > top:
        raise IndexError(f"index {obj} is out of bounds for axis {axis} with size {n}")
    return obj + n if obj < 0 else obj


def delete(arr, obj, axis=None):
    """np.delete; where one position is given, the size of the result is known.

    Raises:
        IndexError: there is no such position.
        ValueError: a mask has another size than the axis.
    """
    arr = np.asarray(arr)
    if axis is None:
        arr, axis = np.ravel(arr), 0
    n = np.size(arr, axis)
    if isinstance(obj, int | np.integer) and not isinstance(obj, bool):
        place = _place(obj, n, axis, n - 1)
        at = np.arange(n - 1)
        return np.take(arr, at + (at >= place), axis)
    if isinstance(obj, slice):
        unsupported("np.delete takes positions or a mask in compiled code; write np.delete(x, np.arange(start, stop))")
    obj = np.asarray(obj)
    if obj.dtype.kind == "b":
        if obj.ndim != 1:
            misfit("np.delete: a mask has one axis")
        if obj.shape[0] != n:
            raise ValueError(
                f"boolean array argument obj to delete must be one dimensional and match the axis length of {n}"
            )
        return np.compress(np.logical_not(obj), arr, axis=axis)
    if obj.size == 0:
        return arr.copy()
    keep = np.ones(n, np.bool_)
    keep[np.ravel(obj)] = False
    return np.compress(keep, arr, axis=axis)


def insert(arr, obj, values, axis=None):
    """np.insert before one position or several; the size of the result is known where the number of values is.

    Raises:
        IndexError: there is no such position.
        ValueError: one of several positions is less than the first.
    """
    arr = np.asarray(arr)
    if axis is None:
        arr, axis = np.ravel(arr), 0
    n = np.size(arr, axis)
    if isinstance(obj, slice):
        unsupported("np.insert takes positions in compiled code; write np.insert(x, np.arange(start, stop), values)")
    given = np.array(values, dtype=arr.dtype)
    if given.ndim > arr.ndim:
        misfit("np.insert: the values have more axes than the array")
    given = np.reshape(given, (1,) * (arr.ndim - given.ndim) + given.shape)
    rest = np.moveaxis(arr, axis, 0)
    places = np.asarray(obj)
    if places.dtype.kind == "b":
        unsupported("np.insert takes positions in compiled code; write np.flatnonzero(mask)")
    if places.ndim == 0 or places.shape == (1,):
        new = (
            np.moveaxis(given, axis, 0) if places.ndim else given
        )  # of one position NumPy takes the first axis of the values
        places = np.reshape(places, ())
        count = new.shape[0]
        place = _place(places[()], n, axis, n)
        at = np.arange(n + count)
        source = np.where(at < place, at, np.where(at < place + count, at - place + n, at - count))
    else:
        places = np.ravel(places)
        count = places.shape[0]
        new = np.moveaxis(given, axis, 0)
        places = np.where(places < 0, places + n, places)
        order = np.argsort(places, kind="stable")
        into = np.zeros(count, np.int64)
        into[order] = places[order] + np.arange(count)
        if np.any(places < 0):
            raise ValueError(f"np.insert: a position is less than -{n}, where axis {axis} begins")
        outside = places > n
        if np.any(outside):
            raise IndexError(
                f"index {into[np.argmax(outside)]} is out of bounds for axis 0 with size {n + count}"  # of the result
            )
        source = np.zeros(n + count, np.int64)
        old = np.ones(n + count, np.bool_)
        old[into] = False
        source = np.cumsum(old) - 1
        source[into] = n + np.arange(count)
    new = np.broadcast_to(new, (count, *rest.shape[1:]))
    return np.moveaxis(np.take(np.concatenate((rest, new)), source, 0), 0, axis)


def resize(a, new_shape):
    """np.resize: the elements again and again, as many as there is room for.

    Raises:
        ValueError: a size is negative.
    """
    flat = np.ravel(a)
    shape = new_shape if isinstance(new_shape, tuple) else (new_shape,)
    count = 1
    for size in shape:
        if size < 0:
            raise ValueError("all elements of `new_shape` must be non-negative")
        count = count * size
    if flat.shape[0] == 0:
        return np.zeros(shape, flat.dtype)
    return np.reshape(flat[np.arange(count) % flat.shape[0]], shape)


# Intervals.


def digitize(x, bins, right=False):
    """np.digitize.

    Raises:
        ValueError: the bins neither ascend nor descend.
    """
    bins = np.asarray(bins)
    if bins.ndim != 1:
        misfit("np.digitize: object of too small depth for desired array; the bins are a vector")
    side = "left" if right else "right"
    if np.all(bins[1:] >= bins[:-1]):
        return np.searchsorted(bins, x, side=side)
    if not np.all(bins[1:] <= bins[:-1]):
        raise ValueError("bins must be monotonically increasing or decreasing")
    return bins.shape[0] - np.searchsorted(np.flip(bins), x, side=side)


def _limits(a, limits):
    """The first and the last edge of bins of equal width.

    Raises:
        ValueError: they are not finite, or in the wrong order.
    """
    if limits is not None:
        low, high = limits
        if low > high:
            raise ValueError("max must be larger than min in range parameter.")
        if not (np.isfinite(low) and np.isfinite(high)):
            raise ValueError(f"supplied range of [{low}, {high}] is not finite")
        low, high = low * 1.0, high * 1.0
    elif a.size == 0:
        low, high = 0.0, 1.0
    else:
        low, high = np.min(a) * 1.0, np.max(a) * 1.0
        if not (np.isfinite(low) and np.isfinite(high)):
            raise ValueError(f"autodetected range of [{low}, {high}] is not finite")
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _edges(a, bins, limits):
    """The edges of the bins of a vector.

    Raises:
        ValueError: there are no bins, or the edges do not ascend.
    """
    if isinstance(bins, str):
        unsupported("np.histogram takes the number of bins or their edges in compiled code")
    if np.ndim(bins) == 0:
        if bins < 1:
            raise ValueError("`bins` must be positive, when an integer")
        low, high = _limits(a, limits)
        return np.linspace(low, high, bins + 1).astype(a.dtype if a.dtype.kind == "f" else np.float64)
    edges = np.asarray(bins)
    if edges.ndim != 1:
        misfit("`bins` must be 1d, when an array")
    if np.any(edges[:-1] > edges[1:]):
        raise ValueError("`bins` must increase monotonically, when an array")
    return edges


def histogram_bin_edges(a, bins=10, range=None, weights=None):
    """np.histogram_bin_edges for a number of bins, or for edges."""
    return _edges(np.ravel(a), bins, range)


def histogram(a, bins=10, range=None, density=None, weights=None):
    """np.histogram for a number of bins, or for edges.

    Raises:
        ValueError: there are no bins, the edges do not ascend, or there is not a weight for each number.
    """
    a = np.ravel(a)
    if a.dtype.kind == "b":
        unsupported("np.histogram takes numbers; convert the booleans with .astype(np.int64)")
    edges = _edges(a, bins, range)
    count = edges.shape[0] - 1
    inside = (a >= edges[0]) & (a <= edges[count])
    if np.ndim(bins) == 0:
        width = edges[count] * 1.0 - edges[0]
        at = np.where(inside, (a - edges[0]) / width * count, 0.0).astype(np.int64)
        at = np.minimum(at, count - 1)
        at = at - (inside & (a < edges[at]))
        at = np.maximum(at + (inside & (a >= edges[at + 1]) & (at != count - 1)), 0)
    else:
        at = np.clip(np.searchsorted(edges, a, side="right") - 1, 0, max(count - 1, 0))
    room = max(count, 1)  # of one edge there are no bins, and nothing is inside
    if weights is None:
        found = np.zeros(room, np.int64)
        np.add.at(found, at, inside.astype(np.int64))
    else:
        given = np.asarray(weights)
        if given.ndim != 1 and given.size != a.size:
            misfit("weights should have the same shape as a.")
        given = np.ravel(given)
        found = np.zeros(room, given.dtype)
        np.add.at(found, at, np.where(inside, given, np.zeros_like(given)))
    found = found[:count]
    if density:
        return found / np.diff(edges).astype(np.float64) / np.sum(found), edges
    return found, edges


def logspace(start, stop, num=50, endpoint=True, base=10.0):
    """np.logspace between two numbers."""
    return np.power(base, np.linspace(start, stop, num, endpoint=endpoint))


def geomspace(start, stop, num=50, endpoint=True):
    """np.geomspace between two numbers of one sign.

    Raises:
        ValueError: one of them is zero.
    """
    if start == 0 or stop == 0:
        raise ValueError("Geometric sequence cannot include zero")
    sign = -1.0 if start < 0 and stop < 0 else 1.0
    low, high = start * sign, stop * sign
    out = np.logspace(np.log10(low), np.log10(high), num, endpoint=endpoint)
    at = np.arange(num)
    out = np.where(at == 0, low, out)
    if endpoint:
        out = np.where((at == num - 1) & (at > 0), high, out)
    return out * sign


# Positions.


def lexsort(keys, axis=-1):
    """np.lexsort of vectors: the last key comes first."""
    order = np.argsort(np.asarray(keys[0]), kind="stable")
    for key in keys[1:]:
        order = order[np.argsort(np.asarray(key)[order], kind="stable")]
    return order


def unravel_index(indices, shape, order="C"):
    """np.unravel_index.

    Raises:
        TypeError: the positions are no integers.
        ValueError: a position is out of bounds.
    """
    if order != "C":
        unsupported("np.unravel_index counts in the order of C in compiled code")
    shape = shape if isinstance(shape, tuple) else (shape,)
    rest = np.asarray(indices)
    if rest.dtype.kind not in "iu":
        raise TypeError("only int indices permitted")
    rest = rest.astype(np.int64)
    total = 1
    for size in shape:
        total = total * size
    outside = np.ravel((rest < 0) | (rest >= total))
    if np.any(outside):
        raise ValueError(f"index {np.ravel(rest)[np.argmax(outside)]} is out of bounds for array with size {total}")
    found = ()
    for size in shape[::-1]:
        found = ((rest % size)[()], *found)
        rest = rest // size
    return found


def ravel_multi_index(multi_index, dims):
    """np.ravel_multi_index.

    Raises:
        ValueError: a position is out of bounds, or there is not one for each axis.
    """
    dims = dims if isinstance(dims, tuple) else (dims,)
    if len(multi_index) != len(dims):
        raise ValueError(f"parameter multi_index must be a sequence of length {len(dims)}")
    at = np.asarray(0)
    for k in range(len(dims)):
        part = np.asarray(multi_index[k])
        if np.any((part < 0) | (part >= dims[k])):
            raise ValueError("invalid entry in coordinates array")
        at = at * dims[k] + part
    return at[()]


def ix_(*args):
    """np.ix_ of vectors of positions or masks."""
    out = ()
    for k in range(len(args)):
        at = np.asarray(args[k])
        if at.ndim != 1:
            misfit("Cross index must be 1 dimensional")
        if at.dtype.kind == "b":
            at = np.flatnonzero(at)
        out = (*out, np.reshape(at, (1,) * k + (at.shape[0],) + (1,) * (len(args) - k - 1)))
    return out


def tril_indices(n, k=0, m=None):
    """np.tril_indices."""
    return np.nonzero(np.tri(n, n if m is None else m, k=k))


def triu_indices(n, k=0, m=None):
    """np.triu_indices."""
    return np.nonzero(np.tri(n, n if m is None else m, k=k - 1) == 0)


# Choices.


def select(condlist, choicelist, default=0):
    """np.select.

    Raises:
        TypeError: a condition is no array of booleans, or a choice is an int where the result is unsigned.
    """
    if len(condlist) != len(choicelist):
        misfit("list of cases must be same length as list of conditions")
    kind = np.result_type(*choicelist, default)
    out = np.asarray(default).astype(kind)
    for k in range(len(condlist)):
        i = len(condlist) - 1 - k
        if np.asarray(condlist[i]).dtype.kind != "b":
            raise TypeError(f"invalid entry {i} in condlist: should be boolean ndarray")
        if isinstance(choicelist[i], int) and not isinstance(choicelist[i], bool | np.bool_) and kind.kind == "u":
            raise TypeError(f"Cannot cast array data from dtype('int64') to {kind!r} according to the rule 'same_kind'")
        out = np.where(condlist[i], np.asarray(choicelist[i]).astype(kind), out)
    return out


def choose(a, choices):
    """np.choose.

    Raises:
        ValueError: there is no such choice.
    """
    a = np.asarray(a)
    if np.any((a < 0) | (a >= len(choices))):
        raise ValueError("invalid entry in choice array")
    kind = np.result_type(*choices)
    out = np.asarray(choices[0]).astype(kind)
    for k in range(1, len(choices)):
        out = np.where(a == k, np.asarray(choices[k]).astype(kind), out)
    return np.where(a == 0, np.asarray(choices[0]).astype(kind), out)[()]


# Differences, moments, windows.


def ediff1d(ary):
    """np.ediff1d."""
    return np.diff(np.ravel(ary))


def _even_slopes(y, step, edge_order):
    """The derivative along the last axis, of points at one distance."""
    inner = (y[..., 2:] - y[..., :-2]) / (2.0 * step)
    if edge_order == 1:
        first, last = (y[..., 1:2] - y[..., :1]) / step, (y[..., -1:] - y[..., -2:-1]) / step
    else:
        first = -1.5 / step * y[..., :1] + 2.0 / step * y[..., 1:2] + -0.5 / step * y[..., 2:3]
        last = 0.5 / step * y[..., -3:-2] + -2.0 / step * y[..., -2:-1] + 1.5 / step * y[..., -1:]
    return np.concatenate((first, inner, last), -1).astype(y.dtype)


def _uneven_slopes(y, gaps, edge_order):
    """The derivative along the last axis, of points with these distances between them."""
    before, after = gaps[:-1], gaps[1:]
    a, c = -after / (before * (before + after)), before / (after * (before + after))
    b = (after - before) / (before * after)
    inner = a * y[..., :-2] + b * y[..., 1:-1] + c * y[..., 2:]
    if edge_order == 1:
        first, last = (y[..., 1:2] - y[..., :1]) / gaps[0], (y[..., -1:] - y[..., -2:-1]) / gaps[-1]
    else:
        near, far = gaps[0], gaps[1]
        first = -(2.0 * near + far) / (near * (near + far)) * y[..., :1]
        first = first + (near + far) / (near * far) * y[..., 1:2] + -near / (far * (near + far)) * y[..., 2:3]
        far, near = gaps[-2], gaps[-1]
        last = near / (far * (far + near)) * y[..., -3:-2] + -(near + far) / (far * near) * y[..., -2:-1]
        last = last + (2.0 * near + far) / (near * (far + near)) * y[..., -1:]
    return np.concatenate((first, inner, last), -1).astype(y.dtype)


def _distances(places, n):
    """The distances between places along an axis of `n` elements.

    Raises:
        ValueError: there is another number of places.
    """
    places = np.asarray(places)
    if places.ndim != 1:
        misfit("distances must be either scalars or 1d")
    if places.shape[0] != n:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    return np.diff(places if places.dtype.kind == "f" else places.astype(np.float64))


def gradient(f, *varargs, axis=None, edge_order=1):
    """np.gradient, of points at equal distances or at the places that a vector gives for each axis.

    Raises:
        TypeError: the number of distances is neither one nor that of the axes.
        ValueError: there are too few points, or another number of places.
    """
    f = np.asarray(f)
    if f.dtype.kind == "b":
        unsupported("np.gradient takes numbers; convert the booleans with .astype(np.float64)")
    if f.dtype.kind != "f":
        f = f.astype(np.float64)
    axes = tuple(range(f.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    one_for_all = len(varargs) == 1 and np.ndim(varargs[0]) == 0
    if len(varargs) > 0 and not one_for_all and len(varargs) != len(axes):
        raise TypeError("invalid number of arguments")
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    found = ()
    for k in range(len(axes)):
        y = np.moveaxis(f, axes[k], -1)
        step = 1.0 if len(varargs) == 0 else varargs[0] if len(varargs) == 1 else varargs[k]
        if y.shape[-1] < edge_order + 1:
            raise ValueError(
                "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are required."
            )
        if np.ndim(step) == 0:
            slopes = _even_slopes(y, step, edge_order)
        else:
            gaps = _distances(step, y.shape[-1])
            even = np.all(gaps == gaps[0])  # NumPy computes these by the other formula
            slopes = np.where(even, _even_slopes(y, gaps[0], edge_order), _uneven_slopes(y, gaps, edge_order))
        found = (*found, np.moveaxis(slopes, -1, axes[k]))
    return found[0] if len(found) == 1 else found


def cov(m, y=None, rowvar=True, bias=False, ddof=None):
    """np.cov: float64, whatever is given."""
    x = np.asarray(m).astype(np.float64)
    if x.ndim > 2:
        misfit("m has more than 2 dimensions")
    x = np.reshape(x, (1, -1)) if x.ndim < 2 else x if rowvar else np.transpose(x)
    if y is not None:
        other = np.asarray(y).astype(np.float64)
        if other.ndim > 2:
            misfit("y has more than 2 dimensions")
        other = np.reshape(other, (1, -1)) if other.ndim < 2 else other
        x = np.concatenate((x, other if rowvar or other.shape[0] == 1 else np.transpose(other)), 0)
    if x.shape[0] == 0:
        return np.zeros((0, 0))
    freedom = max(x.shape[1] - (ddof if ddof is not None else 0 if bias else 1), 0)
    away = x - np.mean(x, axis=1, keepdims=True)
    return np.squeeze(away @ np.transpose(away) * np.true_divide(1, freedom))


def corrcoef(x, y=None, rowvar=True):
    """np.corrcoef: float64, whatever is given."""
    c = np.cov(x, y, rowvar)
    if np.ndim(c) == 0:
        return c[()] / c[()]
    scale = np.sqrt(np.diag(c))
    return np.clip(c / scale[:, None] / scale[None, :], -1, 1)


def sliding_window_view(x, window_shape, axis=None):
    """np.lib.stride_tricks.sliding_window_view, as a copy.

    Raises:
        ValueError: a window is larger than the array.
    """
    x = np.asarray(x)
    sizes = window_shape if isinstance(window_shape, tuple) else (window_shape,)
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if len(sizes) != len(axes):
        misfit("Since axis is None, must provide window_shape for all dimensions of `x`")
    for k in range(len(axes)):
        size, along = sizes[k], axes[k] % x.ndim
        n = x.shape[along]
        if size < 0:
            raise ValueError("`window_shape` cannot contain negative values")
        if size > n:
            raise ValueError("window shape cannot be larger than input array shape")
        at = np.arange(n - size + 1)[:, None] + np.arange(size)[None, :]
        x = np.moveaxis(np.take(x, at, along), along + 1, -1)
    return x


def tolist(a):
    """The method `tolist` of arrays."""
    if a.ndim == 0:
        return a.item()
    if a.ndim > 1:
        return [tolist(row) for row in a]
    if a.dtype.kind == "f":
        return [float(v) for v in a]
    if a.dtype.kind == "b":
        return [bool(v) for v in a]
    return [int(v) for v in a]


def dstack(tup):
    """np.dstack."""
    parts = ()
    for part in tup:
        part = np.atleast_2d(part) if np.ndim(part) < 2 else np.asarray(part)
        parts = (*parts, part[:, :, None] if np.ndim(part) == 2 and np.ndim(part) < 3 else part)
    return np.concatenate(parts, 2)


SOURCES: dict[Callable, Callable] = {
    getattr(np, function.__name__): function
    for function in (
        *(setdiff1d, intersect1d, union1d, setxor1d, trim_zeros, delete, insert, resize),
        *(digitize, histogram, histogram_bin_edges, logspace, geomspace),
        *(lexsort, unravel_index, ravel_multi_index, ix_, tril_indices, triu_indices),
        *(select, choose, ediff1d, gradient, cov, corrcoef, dstack),
    )
    if hasattr(np, function.__name__)
}
SOURCES[np.lib.stride_tricks.sliding_window_view] = sliding_window_view

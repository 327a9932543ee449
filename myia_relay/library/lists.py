"""Python's list operations, written in Python: inference compiles these functions like the user's own.

They change no argument: `out = out + [x]` appends in place where the old `out` is dead. They do not raise: their
callers, `infer.language.builtins` and `infer.objects.list_methods`, check before.
"""

from __future__ import annotations

import numpy as np

from .kernels import argsort_rows, sort_rows


def listed(xs):
    """`list(xs)`."""
    out = []
    for x in xs:
        out = out + [x]
    return out


def extended(out, xs):
    """`out.extend(xs)`."""
    for x in xs:
        out = out + [x]
    return out


def mapped(f, xs):
    """`list(map(f, xs))`."""
    out = []
    for x in xs:
        out = out + [f(x)]
    return out


def column(rows, k):
    """`[row[k] for row in rows]`."""
    out = []
    for row in rows:
        out = out + [row[k]]
    return out


def transposed(rows):
    """`list(map(list, zip(*rows)))`."""
    count = 0
    for i in range(len(rows)):
        count = len(rows[i]) if i == 0 else min(count, len(rows[i]))
    out = []
    for k in range(count):
        out = out + [column(rows, k)]
    return out


def reduced(f, xs, start):
    """`functools.reduce(f, xs, start)`."""
    for x in xs:
        start = f(start, x)
    return start


def total(xs, start):
    """`sum(xs, start)`."""
    for x in xs:
        start = start + x
    return start


def total_compensated(xs, start):
    """`sum(xs, start)` of floats from Python 3.12 on: Neumaier's sum."""
    error = 0.0
    for x in xs:
        t = start + x
        if abs(start) >= abs(x):
            error = error + ((start - t) + x)
        else:
            error = error + ((x - t) + start)
        start = t
    if error != 0.0 and error - error == 0.0:
        start = start + error
    return start


def smallest(xs):
    """`min(xs)` of a list that is not empty."""
    best = xs[0]
    for x in xs:
        if x < best:
            best = x
    return best


def largest(xs):
    """`max(xs)` of a list that is not empty."""
    best = xs[0]
    for x in xs:
        if x > best:
            best = x
    return best


def any_of(xs):
    """`any(xs)`."""
    for x in xs:
        if x:
            return True
    return False


def all_of(xs):
    """`all(xs)`."""
    for x in xs:
        if not x:
            return False
    return True


def place_of(xs, x):
    """`xs.index(x)`, or -1 where it is not there."""
    for i in range(len(xs)):
        if (xs[i],) == (x,):  # as elements of containers are compared
            return i
    return -1


def count_of(xs, x):
    """`xs.count(x)`."""
    count = 0
    for y in xs:
        if (y,) == (x,):
            count += 1
    return count


def equal(xs, ys):
    """`xs == ys`."""
    if len(xs) != len(ys):
        return False
    for i in range(len(xs)):
        if (xs[i],) != (ys[i],):
            return False
    return True


def has_nan(x):
    """Whether a number in a list, at any depth, is not equal to itself."""
    if isinstance(x, (tuple, list)):
        for y in x:
            if has_nan(y):
                return True
        return False
    return bool(x != x)


def sorted_numbers(xs, reverse):
    """`sorted(xs, reverse=reverse)` of Python's numbers of one type."""
    return _in_order(np.array(xs), reverse).tolist()


def sorted_numpy_numbers(xs, reverse):
    """The same of NumPy's."""
    return list(_in_order(np.array(xs), reverse))


def _in_order(x, reverse):
    if reverse:  # equal ones stay as they stand
        return np.flip(sort_rows(np.reshape(np.flip(x), (1, x.shape[0])))[0])
    return sort_rows(np.reshape(x, (1, x.shape[0])))[0]


def _places(x, reverse):
    """The positions of numbers in order, those of equal ones as they stand."""
    if reverse:
        return (x.shape[0] - 1) - np.flip(argsort_rows(np.reshape(np.flip(x), (1, x.shape[0])))[0])
    return argsort_rows(np.reshape(x, (1, x.shape[0])))[0]


def entry(k, xs):
    """`xs[k]`."""
    return xs[k]


def ordered_by_numbers(xs, columns, reverse):
    """`sorted(xs, key=..., reverse=reverse)` by keys that are numbers, or tuples of them, of one type: by the last entries first.

    Args:
        xs: the list.
        columns: the lists of the keys' entries, the last first.
        reverse: as for `sorted`.
    """
    order = _places(np.array(columns[0]), reverse)
    for column in columns[1:]:
        order = order[_places(np.array(column)[order], reverse)]
    return [xs[i] for i in order.tolist()]


def ordered(xs, keys, reverse):
    """`sorted(xs, key=..., reverse=reverse)`, with the keys of all entries, or these themselves: a stable merge sort."""
    places = list(range(len(keys)))
    n = len(keys)
    width = 1
    while width < n:
        out = places[:0]
        low = 0
        while low < n:
            i = low
            middle = min(low + width, n)
            j = middle
            high = min(middle + width, n)
            while i < middle or j < high:
                if j >= high:
                    first = True
                elif i >= middle:
                    first = False
                elif reverse:
                    first = not (keys[places[i]] < keys[places[j]])
                else:
                    first = not (keys[places[j]] < keys[places[i]])
                if first:
                    out = out + [places[i]]
                    i += 1
                else:
                    out = out + [places[j]]
                    j += 1
            low = high
        places = out
        width = 2 * width
    return [xs[i] for i in places]


def first_difference(xs, ys):
    """Where two lists first differ, or -1."""
    for i in range(min(len(xs), len(ys))):
        if (xs[i],) != (ys[i],):
            return i
    return -1


def least(xs, key):
    """`min(xs, key=key)`."""
    best = xs[0]
    low = key(best)
    for x in xs[1:]:
        k = key(x)
        if k < low:
            best, low = x, k
    return best


def greatest(xs, key):
    """`max(xs, key=key)`."""
    best = xs[0]
    high = key(best)
    for x in xs[1:]:
        k = key(x)
        if k > high:
            best, high = x, k
    return best


def in_range(start, stop, step, x):
    """`x in range(start, stop, step)`."""
    if step > 0:
        return bool(start <= x < stop and (x % step - start % step) % step == 0)
    return bool(stop < x <= start and (x % step - start % step) % step == 0)

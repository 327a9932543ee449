"""Programs of NumPy's users with arrays whose sizes values decide: sieves, hulls, clusters, ragged batches, sparse matrices."""

import copy

import numpy as np
import pytest

from myia_relay import relay
from tests.programs.compare import differences

rng = np.random.default_rng(0)
PROGRAMS = []


def program(*calls):
    """Put a program into the table, with arguments."""

    def put(function):
        PROGRAMS.extend((function, args) for args in calls)
        return function

    return put


@program((30,), (2,), (100,))
def sieve(n):
    is_p = np.ones(n + 1, dtype=bool)
    is_p[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if is_p[i]:
            is_p[i * i :: i] = False
    return np.nonzero(is_p)[0]


@program((np.array([1, 1, 2, 2, 2, 3, 1, 1]),))
def rle(x):
    n = len(x)
    y = x[1:] != x[:-1]
    i = np.append(np.where(y)[0], n - 1)
    z = np.diff(np.append(-1, i))
    pos = np.cumsum(np.append(0, z))[:-1]
    return z, pos, x[i]


@program((np.array([2, 1, 3]), np.array([5, 6, 7])))
def rld(lengths, values):
    return np.repeat(values, lengths)


@program((rng.normal(size=(20, 2)),))
def hull(points):
    order = np.lexsort((points[:, 1], points[:, 0]))
    pts = points[order]
    lower = []
    for k in range(len(pts)):
        while len(lower) >= 2:
            a = pts[lower[-2]]
            b = pts[lower[-1]]
            c = pts[k]
            if (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]) <= 0:
                lower.pop()
            else:
                break
        lower.append(k)
    return pts[np.array(lower)]


@program((rng.normal(size=(30, 2)), 3, 5), (rng.normal(size=(5, 2)), 5, 3))
def kmeans(x, k, steps):
    c = x[:k].copy()
    for _ in range(steps):
        d = ((x[:, None] - c[None]) ** 2).sum(-1)
        lab = d.argmin(1)
        for j in range(k):
            m = lab == j
            if m.any():
                c[j] = x[m].mean(axis=0)
    return c, lab


@program((np.abs(rng.normal(size=(12, 4))).cumsum(1), rng.random(12), 0.4))
def nms(boxes, scores, thr):
    x1, y1, x2, y2 = boxes[:, 0], boxes[:, 1], boxes[:, 2], boxes[:, 3]
    areas = (x2 - x1) * (y2 - y1)
    order = scores.argsort()[::-1]
    keep = []
    while order.size > 0:
        i = order[0]
        keep.append(i)
        xx1 = np.maximum(x1[i], x1[order[1:]])
        yy1 = np.maximum(y1[i], y1[order[1:]])
        xx2 = np.minimum(x2[i], x2[order[1:]])
        yy2 = np.minimum(y2[i], y2[order[1:]])
        inter = np.maximum(0.0, xx2 - xx1) * np.maximum(0.0, yy2 - yy1)
        iou = inter / (areas[i] + areas[order[1:]] - inter)
        order = order[1:][iou <= thr]
    return np.array(keep)


@program((np.arange(10.0), 3, 2), (np.arange(10.0), 4, 3))
def windows(x, w, s):
    n = (len(x) - w) // s + 1
    return np.array([x[i * s : i * s + w].mean() for i in range(n)])


@program((rng.normal(size=15), rng.integers(0, 15, (6, 15))))
def bootstrap(x, idx):
    means = x[idx].mean(axis=1)
    return np.percentile(means, 5), np.percentile(means, 95), means.std(ddof=1)


@program((np.array([[0, 2.0, 0], [1, 0, 3], [0, 0, 0]]), np.array([1.0, 2.0, 3.0])))
def csr(a, v):
    rows, cols = np.nonzero(a)
    data = a[rows, cols]
    indptr = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=a.shape[0]))))
    out = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        out[i] = data[indptr[i] : indptr[i + 1]] @ v[cols[indptr[i] : indptr[i + 1]]]
    return data, cols, indptr, out


@program((np.arange(10.0), np.array([3, 0, 5, 2])))
def pad_ragged(flat, lengths):
    out = np.zeros((len(lengths), lengths.max()))
    at = 0
    for i in range(len(lengths)):
        out[i, : lengths[i]] = flat[at : at + lengths[i]]
        at += lengths[i]
    return out, np.arange(lengths.max())[None] < lengths[:, None]


@program((np.arange(10.0), np.array([3, 0, 5, 2])))
def ragged_mask(flat, lengths):
    mask = np.arange(np.max(lengths)) < lengths[:, None]
    out = np.full(mask.shape, -1.0)
    out[mask] = flat
    return out


@program((np.array([5, 3, 8, 1, 9, 2]),))
def quicksort(x):
    if len(x) <= 1:
        return x
    pivot = x[len(x) // 2]
    return np.concatenate((quicksort(x[x < pivot]), x[x == pivot], quicksort(x[x > pivot])))


@program((rng.normal(size=50), 4))
def outliers(x, k):
    while True:
        m, s = x.mean(), x.std()
        keep = np.abs(x - m) < 2 * s
        if keep.all():
            break
        x = x[keep]
    return x


@program((27,), (1,))
def collatz(n):
    seq = [n]
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        seq.append(n)
    return np.array(seq)


@program((rng.integers(0, 5, 20),))
def groupby(keys):
    u, inv = np.unique(keys, return_inverse=True)
    s = np.zeros(len(u))
    np.add.at(s, inv, np.arange(20.0))
    return u, s / np.bincount(inv)


@program((np.array([3.0, 1.0, 2.0]), np.array([2.0, 2.5, 9.0])))
def merge(a, b):
    a = np.sort(a)
    out = np.empty(len(a) + len(b))
    i = j = 0
    for k in range(len(out)):
        if j >= len(b) or (i < len(a) and a[i] <= b[j]):
            out[k] = a[i]
            i += 1
        else:
            out[k] = b[j]
            j += 1
    return out


@program((np.array([0.0, 1, 0, 2, 0, 1, 3, 1, 0]),))
def peaks(x):
    i = np.where((x[1:-1] > x[:-2]) & (x[1:-1] > x[2:]))[0] + 1
    return i, x[i], np.diff(i)


@program((rng.random((6, 6)) < 0.4, 0))
def bfs(adj, s):
    seen = np.zeros(len(adj), bool)
    seen[s] = True
    front = np.array([s])
    levels = []
    while front.size:
        levels.append(front.size)
        nxt = adj[front].any(axis=0) & ~seen
        seen |= nxt
        front = np.flatnonzero(nxt)
    return seen, levels


@program((10,), (1,))
def pascal(n):
    row = np.array([1])
    for _ in range(n):
        row = np.concatenate(([1], row[1:] + row[:-1], [1]))
    return row


@program((rng.normal(size=(8, 3)), rng.normal(size=8), 3))
def lstsq_subset(A, y, n):
    m = y > 0
    w, *_ = np.linalg.lstsq(A[m], y[m], rcond=None)
    return w, A[:n] @ w


@program((np.array([1, 0, 1, 1, 0, 1, 1, 1]),))
def longest_run(b):
    d = np.diff(np.concatenate(([0], b, [0])))
    starts = np.where(d == 1)[0]
    ends = np.where(d == -1)[0]
    return (ends - starts).max(), starts[np.argmax(ends - starts)]


@program((rng.random(30), 5))
def hist_eq(x, bins):
    h, e = np.histogram(x, bins=bins, range=(0, 1))
    cdf = h.cumsum() / h.sum()
    return np.interp(x, e[1:], cdf)


@program((np.arange(12.0).reshape(3, 4), 2))
def pooling(x, k):
    h, w = x.shape[0] // k, x.shape[1] // k
    return x[: h * k, : w * k].reshape(h, k, w, k).max(axis=(1, 3))


@program((np.array([0.5, 0.2, 0.9, 0.1]), 0.3), (np.array([0.5, 0.2]), 0.9))
def topp(p, t):
    o = np.argsort(-p)
    c = np.cumsum(p[o]) / p.sum()
    n = np.searchsorted(c, t) + 1
    k = o[:n]
    return k, p[k] / p[k].sum()


@program((20, 3))
def primes_factor(n, k):
    out = []
    d = 2
    while n > 1:
        while n % d == 0:
            out.append(d)
            n //= d
        d += 1
    return np.array(out), np.unique(np.array(out))


@program((np.linspace(0, 1, 11), 0.35))
def bisect(x, v):
    i = np.searchsorted(x, v)
    return x[:i], x[i:], x[i - 1 : i + 1]


@program((rng.normal(size=12), 3))
def ema_batches(x, b):
    out = []
    for i in range(0, len(x), b):
        out.append(x[i : i + b].sum())
    return np.array(out)


@program((rng.normal(size=13), 4))
def last_batch(x, b):
    return [x[i : i + b].mean() for i in range(0, len(x), b)]


@program((rng.normal(size=(5, 5)),))
def upper(a):
    i, j = np.triu_indices(len(a), 1)
    return a[i, j], a[np.triu_indices(5)]


@program((np.array([3, 1, 2, 0]),))
def cycles(perm):
    seen = np.zeros(len(perm), bool)
    lens = []
    for i in range(len(perm)):
        n = 0
        j = i
        while not seen[j]:
            seen[j] = True
            j = perm[j]
            n += 1
        if n > 0:
            lens.append(n)
    return lens


@pytest.mark.sampled(24)
@pytest.mark.parametrize("function, args", PROGRAMS, ids=lambda f: getattr(f, "__name__", ""))
def test_as_in_numpy(function, args, executor):
    want = function(*copy.deepcopy(args))
    assert not differences(relay(executor=executor)(function)(*args), want, rtol=1e-9)

"""Layers of networks, written out in NumPy: windows in loops, products, normalisation over the batch."""

from __future__ import annotations

import numpy as np

from .case import case


def _float32(rng, *shape):
    return rng.random(shape).astype(np.float32)


def relu(x):
    """What is positive."""
    return np.maximum(x, 0)


def conv2d(image, weights):
    """A convolution, one position of the result after the other."""
    k = weights.shape[0]
    n, h, w = image.shape[0], image.shape[1] - k + 1, image.shape[2] - k + 1
    out = np.empty((n, h, w, weights.shape[3]), dtype=np.float32)
    for i in range(h):
        for j in range(w):
            out[:, i, j, :] = np.sum(
                image[:, i : i + k, j : j + k, :, np.newaxis] * weights[np.newaxis, :, :, :], axis=(1, 2, 3)
            )
    return out


def maxpool2d(x):
    """The largest of each window of two by two."""
    out = np.empty([x.shape[0], x.shape[1] // 2, x.shape[2] // 2, x.shape[3]], dtype=x.dtype)
    for i in range(x.shape[1] // 2):
        for j in range(x.shape[2] // 2):
            out[:, i, j, :] = np.max(x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, :], axis=(1, 2))
    return out


def batchnorm(x):
    """Normalised over the batch."""
    mean = np.mean(x, axis=0, keepdims=True)
    std = np.std(x, axis=0, keepdims=True)
    return (x - mean) / np.sqrt(std + 1e-5)


def _lenet(rng, n, size):
    flat = ((size - 4) // 2 - 4) // 2
    fc = flat * flat * 16
    sizes = (
        (n, size, size, 1),
        (5, 5, 1, 6),
        (6,),
        (5, 5, 6, 16),
        (16,),
        (fc, 120),
        (120,),
        (120, 84),
        (84,),
        (84, 10),
        (10,),
    )
    return tuple(_float32(rng, *s) / 8 for s in sizes)


@case(S=(4, 28), M=(8, 44), make=_lenet, tiny=(1, 16), numba=False)
def lenet(x, c1, b1, c2, b2, w1, v1, w2, v2, w3, v3):
    """LeNet-5's forward pass."""
    x = maxpool2d(relu(conv2d(x, c1) + b1))
    x = maxpool2d(relu(conv2d(x, c2) + b2))
    x = np.reshape(x, (x.shape[0], w1.shape[0]))
    x = relu(x @ w1 + v1)
    x = relu(x @ w2 + v2)
    return x @ w3 + v3


@case(
    S=(4, 14, 64, 16),
    M=(8, 28, 64, 16),
    make=lambda rng, n, size, c, inner: (
        _float32(rng, n, size, size, c),
        _float32(rng, 1, 1, c, inner),
        _float32(rng, 3, 3, inner, inner),
        _float32(rng, 1, 1, inner, c),
    ),
    tiny=(2, 5, 4, 2),
    numba=False,
)
def resnet_block(x, c1, c2, c3):
    """A bottleneck of a residual network."""
    padded = np.zeros((x.shape[0], x.shape[1] + 2, x.shape[2] + 2, c1.shape[3]))
    padded[:, 1:-1, 1:-1, :] = conv2d(x, c1)
    y = relu(batchnorm(padded))
    y = relu(batchnorm(conv2d(y, c2)))
    y = batchnorm(conv2d(y, c3))
    return relu(y + x)


def _mlp(rng, n, *widths):
    pairs = [(_float32(rng, a, b) / a, _float32(rng, b)) for a, b in zip(widths, widths[1:])]
    return (_float32(rng, n, widths[0]), *(x for pair in pairs for x in pair))


@case(S=(8, 3, 1000, 1000, 1000), M=(8, 3, 3000, 3000, 1000), make=_mlp, tiny=(3, 3, 6, 7, 5), numba=False)
def mlp(x, w1, b1, w2, b2, w3, b3):
    """Three layers and a softmax."""
    x = relu(x @ w1 + b1)
    x = relu(x @ w2 + b2)
    x = x @ w3 + b3
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)

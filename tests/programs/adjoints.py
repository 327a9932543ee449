"""Thirty straight-line functions, each with its gradient written by hand: as short as one would write it.

Each entry: the function, its gradient by all arguments (a tuple), and arguments.
"""

from __future__ import annotations

import math

import numpy as np

V = np.array([0.3, -1.2, 0.8, 2.0])
W = np.array([1.5, 0.4, -0.7, 0.9])
M = np.arange(12.0).reshape(3, 4) / 7 - 0.8
N = np.arange(8.0).reshape(4, 2) / 5 - 0.6


def square(x):
    return x * x


def d_square(x):
    return (2.0 * x,)


def cubic(x):
    return 3.0 * x * x * x - 2.0 * x


def d_cubic(x):
    return (9.0 * x * x - 2.0,)


def product(x, y, z):
    return x * y * z


def d_product(x, y, z):
    return y * z, x * z, x * y


def monomial(x, y):
    return x**3 * y**4


def d_monomial(x, y):
    return 3.0 * x**2 * y**4, 4.0 * x**3 * y**3


def rosenbrock(x, y):
    a = y - x * x
    b = 1.0 - x
    return 100.0 * a * a + b * b


def d_rosenbrock(x, y):
    a = y - x * x
    da = 200.0 * a
    return -2.0 * (1.0 - x) - 2.0 * x * da, da


def sine_of_product(x, y):
    return math.sin(x * y)


def d_sine_of_product(x, y):
    c = math.cos(x * y)
    return c * y, c * x


def logistic(x, w, b):
    return math.tanh(w * x + b)


def d_logistic(x, w, b):
    y = math.tanh(w * x + b)
    d = 1.0 - y * y
    return d * w, d * x, d


def gaussian(x, m, s):
    z = (x - m) * s
    return math.exp(-0.5 * z * z)


def d_gaussian(x, m, s):
    a = x - m
    z = a * s
    d = -z * math.exp(-0.5 * z * z)
    return d * s, -d * s, d * a


def polynomial(x, a, b, c):
    return (a * x + b) * x + c


def d_polynomial(x, a, b, c):
    return 2.0 * a * x + b, x * x, x, 1.0


def chain_of_sines(x):
    return math.sin(math.sin(math.sin(x)))


def d_chain_of_sines(x):
    a = math.sin(x)
    b = math.sin(a)
    return (math.cos(b) * math.cos(a) * math.cos(x),)


def exponentials(x, y):
    return math.exp(x) * math.exp(y) + math.exp(x)


def d_exponentials(x, y):
    a = math.exp(x)
    c = a * math.exp(y)
    return c + a, c


def distance(x, y, u, v):
    a, b = x - u, y - v
    return a * a + b * b


def d_distance(x, y, u, v):
    a, b = 2.0 * (x - u), 2.0 * (y - v)
    return a, b, -a, -b


def length(x, y):
    return np.sqrt(x * x + y * y)


def d_length(x, y):
    r = 1.0 / np.sqrt(x * x + y * y)
    return x * r, y * r


def ratio(x, y):
    return x / (y * y + 1.0)


def d_ratio(x, y):
    r = 1.0 / (y * y + 1.0)
    return r, -2.0 * y * x * r * r


def sum_of_squares(v):
    return np.sum(v * v)


def d_sum_of_squares(v):
    return (2.0 * v,)


def inner_product(v, w):
    return np.dot(v, w)


def d_inner_product(v, w):
    return w, v


def half_norm(v):
    return 0.5 * np.sum(v**2)


def d_half_norm(v):
    return (v,)


def weighted_tanh(v, w):
    return np.sum(w * np.tanh(v))


def d_weighted_tanh(v, w):
    t = np.tanh(v)
    return w * (1.0 - t * t), t


def mean_error(v, w):
    e = v - w
    return np.mean(e * e)


def d_mean_error(v, w):
    d = (v - w) * 0.5
    return d, -d


def scaled_sum(v, s):
    return s * np.sum(v)


def d_scaled_sum(v, s):
    return s * np.ones(4), np.sum(v)


def sum_of_sines(v):
    return np.sum(np.sin(v))


def d_sum_of_sines(v):
    return (np.cos(v),)


def log_sum_exp(v):
    return np.log(np.sum(np.exp(v)))


def d_log_sum_exp(v):
    e = np.exp(v)
    return (e / np.sum(e),)


def linear_map(m, v):
    return np.sum(m @ v)


def d_linear_map(m, v):
    ones = np.ones(3)
    return np.outer(ones, v), m.T @ ones


def quadratic_form(m, v):
    y = m @ v
    return np.dot(y, y)


def d_quadratic_form(m, v):
    y = 2.0 * (m @ v)
    return np.outer(y, v), m.T @ y


def layer(m, v):
    return np.sum(np.tanh(m @ v))


def d_layer(m, v):
    t = np.tanh(m @ v)
    d = 1.0 - t * t
    return np.outer(d, v), m.T @ d


def two_layers(m, n, v):
    h = np.tanh(v @ n)
    return np.sum(h * h) + np.sum(m)


def d_two_layers(m, n, v):
    h = np.tanh(v @ n)
    d = 2.0 * h * (1.0 - h * h)
    return np.ones((3, 4)), np.outer(v, d), n @ d


def matrix_product(m, n):
    return np.sum(m @ n)


def d_matrix_product(m, n):
    ones = np.ones((3, 2))
    return ones @ n.T, m.T @ ones


def row_scaled(m, v):
    return np.sum((m * v) ** 2)


def d_row_scaled(m, v):
    y = 2.0 * (m * v)
    return y * v, np.sum(y * m, axis=0)


def rectified(v, w):
    return np.sum(np.maximum(v, 0.0) * w)


def d_rectified(v, w):
    """At a tie either side has half of the derivative."""
    return np.where(v > 0.0, w, np.where(v == 0.0, 0.5 * w, 0.0)), np.maximum(v, 0.0)


def picked(v, w):
    return v[0] * w[1] + v[2]


def d_picked(v, w):
    return np.array([w[1], 0.0, 1.0, 0.0]), np.array([0.0, v[0], 0.0, 0.0])


FUNCTIONS = [
    (square, d_square, (1.3,)),
    (cubic, d_cubic, (1.3,)),
    (product, d_product, (1.3, 0.4, -0.7)),
    (monomial, d_monomial, (1.3, 0.4)),
    (rosenbrock, d_rosenbrock, (1.3, 0.4)),
    (sine_of_product, d_sine_of_product, (1.3, 0.4)),
    (logistic, d_logistic, (1.3, 0.4, -0.7)),
    (gaussian, d_gaussian, (1.3, 0.4, 0.7)),
    (polynomial, d_polynomial, (1.3, 0.4, -0.7, 0.2)),
    (chain_of_sines, d_chain_of_sines, (1.3,)),
    (exponentials, d_exponentials, (1.3, 0.4)),
    (distance, d_distance, (1.3, 0.4, -0.7, 0.2)),
    (length, d_length, (np.float64(1.3), np.float64(0.4))),
    (ratio, d_ratio, (np.float64(1.3), np.float64(0.4))),
    (sum_of_squares, d_sum_of_squares, (V,)),
    (inner_product, d_inner_product, (V, W)),
    (half_norm, d_half_norm, (V,)),
    (weighted_tanh, d_weighted_tanh, (V, W)),
    (mean_error, d_mean_error, (V, W)),
    (scaled_sum, d_scaled_sum, (V, np.float64(0.7))),
    (sum_of_sines, d_sum_of_sines, (V,)),
    (log_sum_exp, d_log_sum_exp, (V,)),
    (linear_map, d_linear_map, (M, V)),
    (quadratic_form, d_quadratic_form, (M, V)),
    (layer, d_layer, (M, V)),
    (two_layers, d_two_layers, (M, N, V)),
    (matrix_product, d_matrix_product, (M, N)),
    (row_scaled, d_row_scaled, (M, V)),
    (rectified, d_rectified, (V, W)),
    (picked, d_picked, (V, W)),
]

"""ADBench's workloads in JAX: vectorised, jitted, double precision, the quickest of several ways of writing each."""

from __future__ import annotations

import math
import sys

from benchmarks.workload import prepare_process

if __name__ == "__main__":
    prepare_process(sys.argv)

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp

from benchmarks.adbench.measure import Work, serve_builders

jax.config.update("jax_enable_x64", True)


def work(objective, gradient, args, flat, note=""):
    """Jitted functions, their arguments on the device."""
    args = jax.tree.map(jnp.asarray, args)
    value, derivative = jax.jit(objective), jax.jit(gradient)
    return Work(
        lambda: jax.block_until_ready(value(*args)),
        lambda: jax.block_until_ready(derivative(*args)),
        flat,
        compile=lambda: derivative.lower(*args).compile(),
        note=note,
    )


# Gaussian mixture.


def factors(icf, d):
    """The lower-triangular matrices of all components, (K, d, d)."""
    columns, rows = np.triu_indices(d, 1)
    lower = jnp.zeros((len(icf), d, d)).at[:, rows, columns].set(icf[:, d:])
    return lower + jax.vmap(jnp.diag)(jnp.exp(icf[:, :d]))


def centred(factor, means, x):
    """Every component's matrix times every point's distance from its mean: (K, n, d), as one batched product."""
    return jnp.einsum("kij,knj->kni", factor, x - means[:, None])


def expanded(factor, means, x):
    """The same as one product with all points, less the products with the means."""
    return jnp.einsum("kij,nj->kni", factor, x) - jnp.einsum("kij,kj->ki", factor, means)[:, None]


def mixture(record):
    """`gmm`"""
    args = (record.alphas, record.means, record.icf, record.x, record.gamma, float(record.m))

    def make(product):
        def objective(alphas, means, icf, x, gamma, m):
            (k, d), n = means.shape, len(x)
            y = product(factors(icf, d), means, x)
            terms = (alphas + icf[:, :d].sum(1))[:, None] - 0.5 * jnp.sum(y * y, axis=2)
            nu = d + m + 1
            gammas = 0.25 * d * (d - 1) * math.log(math.pi) + jnp.sum(gammaln(0.5 * (nu + 1 - jnp.arange(1, d + 1))))
            constant = nu * d * (jnp.log(gamma) - 0.5 * math.log(2)) - gammas
            squares = jnp.sum(jnp.exp(2 * icf[:, :d])) + jnp.sum(icf[:, d:] ** 2)
            prior = 0.5 * gamma**2 * squares - m * jnp.sum(icf[:, :d]) - k * constant
            likelihood = jnp.sum(logsumexp(terms, axis=0)) - n * logsumexp(alphas)
            return likelihood - 0.5 * n * d * math.log(2 * math.pi) + prior

        gradient = jax.value_and_grad(objective, (0, 1, 2))
        return work(objective, gradient, args, lambda result: [result[0], *result[1]], product.__name__)

    return [make(centred), make(expanded)]


# Bundle adjustment.


def rotated(axis, x):
    """Rodrigues' formula; the branch for no rotation keeps its derivatives from dividing by zero."""
    square = jnp.dot(axis, axis)
    still = square == 0.0
    angle = jnp.sqrt(jnp.where(still, 1.0, square))
    unit = axis / angle
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    turned = x * cos + jnp.cross(unit, x) * sin + unit * (jnp.dot(unit, x) * (1.0 - cos))
    return jnp.where(still, x + jnp.cross(axis, x), turned)


def reprojection(camera, point, weight, feature):
    """Residuals of an observation, (2,)."""
    seen = rotated(camera[:3], point - camera[3:6])
    projected = seen[:2] / seen[2]
    square = jnp.dot(projected, projected)
    distortion = 1.0 + camera[9] * square + camera[10] * square * square
    return weight * (projected * distortion * camera[6] + camera[7:9] - feature)


def scene(r):
    """`ba`"""
    args = (r.cameras, r.points, r.weights, r.observations, r.features)

    def objective(cameras, points, weights, observations, features):
        rows = (cameras[observations[:, 0]], points[observations[:, 1]], weights, features)
        return jax.vmap(reprojection)(*rows), 1.0 - weights**2

    def make(mode, last):
        def block(*row):
            by_camera, by_point, by_weight = mode(reprojection, (0, 1, 2))(*row)
            return reprojection(*row), jnp.concatenate([by_camera, by_point, by_weight[:, None]], axis=1)

        def gradient(cameras, points, weights, observations, features):
            rows = [cameras[observations[:, 0]], points[observations[:, 1]], weights, features]
            if last:  # observations along the last axis, where they are neighbours in memory
                errors, blocks = jax.vmap(block, -1, -1)(*(a.T for a in rows))
                errors, blocks = errors.T, jnp.moveaxis(blocks, -1, 0)
            else:
                errors, blocks = jax.vmap(block)(*rows)
            return errors, 1.0 - weights**2, blocks, -2.0 * weights

        return work(objective, gradient, args, list, f"{mode.__name__}{', transposed' * last}")

    return [make(jax.jacrev, True), make(jax.jacrev, False), make(jax.jacfwd, True)]


# Hand tracking.


def bone_levels(parents):
    """The bones by their depth, for products a level at a time."""
    depth = []
    for parent in parents:
        depth.append(0 if parent < 0 else depth[parent] + 1)
    return [np.flatnonzero(np.array(depth) == level) for level in range(max(depth) + 1)]


def local_rotations(theta, count):
    """Rotations of all bones by their two angles, (B, 4, 4)."""
    angles = theta[6:].reshape(-1, 4)
    fingers = len(angles)
    nothing = jnp.zeros((fingers, 1))
    x = jnp.concatenate([nothing, angles[:, :1], angles[:, 2:]], axis=1).ravel()
    z = jnp.concatenate([nothing, angles[:, 1:2], nothing, nothing], axis=1).ravel()
    x, z = (jnp.pad(a, (1, count - 1 - 4 * fingers)) for a in (x, z))
    (cx, sx), (cz, sz) = (jnp.cos(x), jnp.sin(x)), (jnp.cos(z), jnp.sin(z))
    o, l = jnp.zeros(count), jnp.ones(count)
    rows = [[cz, -sz * cx, sz * sx, o], [sz, cz * cx, -cz * sx, o], [o, sx, cx, o], [o, o, o, l]]
    return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)


def global_rotation(axis):
    """By the angle |axis| around `axis`, (3, 3)."""
    square = jnp.dot(axis, axis)
    still = square < 1e-8
    angle = jnp.sqrt(jnp.where(still, 1.0, square))
    x, y, z = unit = axis / angle
    c, s = jnp.cos(angle), jnp.sin(angle)
    cross = jnp.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return jnp.where(still, jnp.eye(3), c * jnp.eye(3) + s * cross + (1.0 - c) * jnp.outer(unit, unit))


def skin(theta, parents, relative, inverse, positions, weights):
    """Vertices in a pose, (V, 3): a level of bones at a time, then each vertex by its mixture of transforms."""
    local = jnp.einsum("bij,bjk->bik", relative, local_rotations(theta, len(parents)))
    absolute = local
    for bones in bone_levels(parents)[1:]:
        above = absolute[np.array(parents)[bones]]
        absolute = absolute.at[bones].set(jnp.einsum("bij,bjk->bik", above, local[bones]))
    transforms = jnp.einsum("bij,bjk->bik", absolute, inverse)[:, :3]
    mixed = (weights @ transforms.reshape(len(parents), 12)).reshape(-1, 3, 4)
    posed = jnp.einsum("vij,vj->vi", mixed[:, :, :3], positions) + mixed[:, :, 3]
    return posed @ global_rotation(theta[:3]).T + theta[3:6]


def tracking(r):
    """`hand`"""
    used, places = np.unique(r.corners, return_inverse=True)
    places = places.reshape(r.corners.shape)

    def make(vertices, corners, note):
        model = (r.base_relative, r.inverse_base_absolute, r.positions[vertices], r.weights[vertices])

        def residuals(theta, us, corners, points, *model):
            posed = skin(theta, r.parents, *model)[corners]
            if us is not None:
                mix = jnp.concatenate([us, 1.0 - us.sum(1, keepdims=True)], axis=1)
                posed = jnp.einsum("nk,nki->ni", mix, posed)
            return (points - posed).ravel()

        def gradient(theta, us, *rest):
            errors, push = jax.linearize(lambda theta: residuals(theta, us, *rest), theta)
            columns = jax.vmap(push)(jnp.eye(len(theta)))
            if us is not None:
                directions = jnp.broadcast_to(jnp.eye(2)[:, None], (2, *us.shape))
                along = jax.linearize(lambda us: residuals(theta, us, *rest), us)[1]
                columns = jnp.concatenate([jax.vmap(along)(directions), columns])
            return errors, columns

        args = (r.theta, r.us, corners, r.points, *model)
        return work(residuals, gradient, args, list, note)

    one_each = np.arange(r.corners.size).reshape(r.corners.shape)
    return [
        make(used, places, "used vertices"),
        make(r.corners.ravel(), one_each, "a vertex for each corner"),
        make(np.arange(len(r.positions)), r.corners, "all vertices"),
    ]


# LSTM.


def character_model(r):
    """`lstm`"""

    def make(unroll):
        def objective(main, extra, state, sequence):
            def step(state, bits):
                x, after = bits * extra[0], []
                for (w, b), (hidden, cell) in zip(main, state):
                    gates = jnp.stack([x, hidden, x, hidden]) * w + b
                    forget, ingate, outgate = jax.nn.sigmoid(gates[:3])
                    cell = cell * forget + ingate * jnp.tanh(gates[3])
                    x = outgate * jnp.tanh(cell)
                    after.append((x, cell))
                return after, x

            start = [(state[i, 0], state[i, 1]) for i in range(len(main))]
            _, outputs = jax.lax.scan(step, start, sequence[:-1], unroll=unroll)
            y = outputs * extra[1] + extra[2]
            log_sum = jnp.log(2.0 + jnp.sum(jnp.exp(y), axis=1, keepdims=True))
            return -jnp.mean(sequence[1:] * (y - log_sum))

        gradient = jax.value_and_grad(objective, (0, 1))
        args = (r.main, r.extra, r.state, r.sequence)
        return work(objective, gradient, args, lambda result: [result[0], *result[1]], f"unroll {unroll}")

    return [make(1), make(8)]


# Triangular product.


def triangle(r):
    """`trmv`"""
    n = len(r.x)
    columns, rows = (a.astype(np.int32) for a in np.triu_indices(n, 1))
    args = (r.lower, r.x, r.g, rows, columns)

    def dense(lower, x, rows, columns):
        return jnp.zeros((n, n)).at[rows, columns].set(lower, unique_indices=True) @ x

    def segments(lower, x, rows, columns):
        return jax.ops.segment_sum(lower * x[columns], rows, n)

    def make(product):
        def pullback(lower, x, g, rows, columns):
            return jax.vjp(lambda lower, x: product(lower, x, rows, columns), lower, x)[1](g)

        def objective(lower, x, g, rows, columns):
            return product(lower, x, rows, columns)

        return work(objective, pullback, args, list, product.__name__)

    return [make(dense), make(segments)]


# Perceptron.


def perceptron(r):
    """`mlp`"""

    def objective(parameters, x, labels):
        w1, b1, w2, b2, w3, b3 = parameters
        hidden = jax.nn.relu(jax.nn.relu(x @ w1 + b1) @ w2 + b2)
        scores = hidden @ w3 + b3
        chosen = jnp.take_along_axis(scores, labels[:, None], axis=1)[:, 0]
        return jnp.mean(logsumexp(scores, axis=1) - chosen)

    args = (r.parameters, r.x, r.labels)
    return [work(objective, jax.value_and_grad(objective), args, lambda result: [result[0], *result[1]])]


BUILDERS = {
    "gmm": mixture,
    "ba": scene,
    "hand": tracking,
    "lstm": character_model,
    "trmv": triangle,
    "mlp": perceptron,
}

if __name__ == "__main__":
    jax.block_until_ready(jax.jit(lambda x: x * 2.0)(jnp.ones(3)))
    serve_builders(BUILDERS)

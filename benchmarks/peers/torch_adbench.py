"""ADBench's workloads in PyTorch: vectorised; compiled too (`--variant compile`); or as ADBench does (`--variant rows`).

ADBench's own module calls `backward` for one row of a Jacobian after the other; gradients of scalars are the same in both
styles. Where all rows take too long, some of them are measured.
"""

from __future__ import annotations

import math
import sys

from benchmarks.workload import prepare_process

if __name__ == "__main__":
    prepare_process(sys.argv)

import numpy as np
import torch

from benchmarks.adbench.measure import Work, serve_builders, variant

VARIANT = variant()
if "--threads" in sys.argv:
    torch.set_num_threads(int(sys.argv[sys.argv.index("--threads") + 1]))


def compiled(function):
    """The function, through torch.compile in that variant."""
    return torch.compile(function, dynamic=False) if VARIANT == "compile" else function


def scalar_work(objective, parameters, args, note="", whole=True):
    """A function with one result, and its gradient.

    Args:
        objective: `(*parameters, *args)`.
        parameters, args: arrays.
        note: which variant.
        whole: whether it is to be compiled as a whole, in that variant.
    """
    parameters = [torch.tensor(p, requires_grad=True) for p in parameters]
    args = [torch.tensor(a) if isinstance(a, np.ndarray) else a for a in args]
    function = compiled(objective) if whole else objective

    def value():
        with torch.no_grad():
            return function(*parameters, *args)

    def gradient():
        result = function(*parameters, *args)
        return result.detach(), *torch.autograd.grad(result, parameters)

    return Work(value, gradient, list, note=note)


# Gaussian mixture.


def factors(icf, d):
    """The lower-triangular matrices of all components, (K, d, d)."""
    columns, rows = np.triu_indices(d, 1)
    lower = torch.zeros(len(icf), d, d, dtype=icf.dtype)
    lower[:, torch.from_numpy(rows), torch.from_numpy(columns)] = icf[:, d:]
    return lower + torch.diag_embed(torch.exp(icf[:, :d]))


def centred(factor, means, x):
    """Every component's matrix times every point's distance from its mean: (K, n, d), as one batched product."""
    return (x - means[:, None]) @ factor.mT


def expanded(factor, means, x):
    """The same as one product with all points, less the products with the means."""
    return x @ factor.mT - (factor @ means[:, :, None]).mT


def mixture(record):
    """`gmm`"""

    def make(product):
        def objective(alphas, means, icf, x, gamma, m):
            (k, d), n = means.shape, len(x)
            y = product(factors(icf, d), means, x)
            terms = (alphas + icf[:, :d].sum(1))[:, None] - 0.5 * torch.sum(y * y, dim=2)
            nu = d + m + 1
            gammas = 0.25 * d * (d - 1) * math.log(math.pi) + sum(
                math.lgamma(0.5 * (nu + 1 - j)) for j in range(1, d + 1)
            )
            constant = nu * d * (math.log(gamma) - 0.5 * math.log(2)) - gammas
            squares = torch.sum(torch.exp(2 * icf[:, :d])) + torch.sum(icf[:, d:] ** 2)
            prior = 0.5 * gamma**2 * squares - m * torch.sum(icf[:, :d]) - k * constant
            likelihood = torch.sum(torch.logsumexp(terms, dim=0)) - n * torch.logsumexp(alphas, dim=0)
            return likelihood - 0.5 * n * d * math.log(2 * math.pi) + prior

        parameters = (record.alphas, record.means, record.icf)
        return scalar_work(objective, parameters, (record.x, record.gamma, record.m), product.__name__)

    return [make(centred), make(expanded)]


# Bundle adjustment.


def rotated(axis, x):
    """Rodrigues' formula; the branch for no rotation keeps its derivatives from dividing by zero."""
    square = torch.sum(axis * axis)
    still = square == 0.0
    angle = torch.sqrt(torch.where(still, torch.ones_like(square), square))
    unit = axis / angle
    cos, sin = torch.cos(angle), torch.sin(angle)
    turned = x * cos + torch.linalg.cross(unit, x) * sin + unit * (torch.sum(unit * x) * (1.0 - cos))
    return torch.where(still, x + torch.linalg.cross(axis, x), turned)


def reprojection(camera, point, weight, feature):
    """Residuals of an observation, (2,)."""
    seen = rotated(camera[:3], point - camera[3:6])
    projected = seen[:2] / seen[2]
    square = torch.sum(projected * projected)
    distortion = 1.0 + camera[9] * square + camera[10] * square * square
    return weight * (projected * distortion * camera[6] + camera[7:9] - feature)


def scene(r):
    """`ba`"""
    args = [torch.from_numpy(a) for a in (r.cameras, r.points, r.weights, r.observations, r.features)]
    cameras, points, weights, observations, features = args
    if VARIANT == "rows":
        return scene_rows(*args)

    def both(*row):
        errors = reprojection(*row)
        return errors, errors

    def make(mode):
        def block(*row):
            by, errors = mode(both, (0, 1, 2), has_aux=True)(*row)
            return errors, torch.cat([by[0], by[1], by[2][:, None]], dim=1)

        blocks = compiled(torch.func.vmap(block))

        def gradient():
            rows = (cameras[observations[:, 0]], points[observations[:, 1]], weights, features)
            with torch.no_grad():
                errors, jacobian = blocks(*rows)
                return errors, 1.0 - weights**2, jacobian, -2.0 * weights

        return Work(objective, gradient, list, note=mode.__name__)

    residuals = compiled(torch.func.vmap(reprojection))

    def objective():
        with torch.no_grad():
            rows = (cameras[observations[:, 0]], points[observations[:, 1]], weights, features)
            return residuals(*rows), 1.0 - weights**2

    return [make(torch.func.jacrev), make(torch.func.jacfwd)]


def scene_rows(cameras, points, weights, observations, features, most=100):
    """Two calls of `backward` for each observation, one for its weight; at most some observations are measured."""
    count = min(most, len(weights))

    def objective():
        rows = [
            (cameras[i], points[j], weights[n], features[n]) for n, (i, j) in enumerate(observations[:count].tolist())
        ]
        return [(reprojection(*row), 1.0 - row[2] ** 2) for row in rows]

    def gradient():
        results = []
        for n, (i, j) in enumerate(observations[:count].tolist()):
            row = torch.cat([cameras[i], points[j], weights[n : n + 1]]).requires_grad_()
            errors = reprojection(row[:11], row[11:14], row[14], features[n])
            jacobian = []
            for k in range(2):
                row.grad = None
                errors[k].backward(retain_graph=k == 0)
                jacobian.append(row.grad)
            weight = weights[n].clone().requires_grad_()
            weight_error = 1.0 - weight**2
            weight_error.backward()
            results.append((errors.detach(), weight_error.detach(), torch.stack(jacobian), weight.grad))
        return results

    def flat(results):
        return [torch.stack(part) for part in zip(*results)]

    whole = count == len(weights)
    return [
        Work(objective, gradient, flat if whole else None, scale=len(weights) / count, note=f"{count} observations")
    ]


# Hand tracking.


def bone_levels(parents):
    """The bones by their depth, for products a level at a time: bones, their parents."""
    depth = []
    for parent in parents:
        depth.append(0 if parent < 0 else depth[parent] + 1)
    levels = [np.flatnonzero(np.array(depth) == level) for level in range(max(depth) + 1)]
    return [(torch.from_numpy(bones), torch.from_numpy(np.array(parents)[bones])) for bones in levels]


def local_rotations(theta, count):
    """Rotations of all bones by their two angles, (B, 4, 4)."""
    angles = theta[6:].reshape(-1, 4)
    fingers = len(angles)
    nothing = torch.zeros(fingers, 1, dtype=theta.dtype)
    x = torch.cat([nothing, angles[:, :1], angles[:, 2:]], dim=1).ravel()
    z = torch.cat([nothing, angles[:, 1:2], nothing, nothing], dim=1).ravel()
    one, rest = torch.zeros(1, dtype=theta.dtype), torch.zeros(count - 1 - 4 * fingers, dtype=theta.dtype)
    x, z = torch.cat([one, x, rest]), torch.cat([one, z, rest])
    cx, sx, cz, sz = torch.cos(x), torch.sin(x), torch.cos(z), torch.sin(z)
    o, l = torch.zeros_like(x), torch.ones_like(x)
    rows = [[cz, -sz * cx, sz * sx, o], [sz, cz * cx, -cz * sx, o], [o, sx, cx, o], [o, o, o, l]]
    return torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)


def global_rotation(axis):
    """By the angle |axis| around `axis`, (3, 3)."""
    square = torch.sum(axis * axis)
    still = square < 1e-8
    angle = torch.sqrt(torch.where(still, torch.ones_like(square), square))
    unit = axis / angle
    x, y, z = unit.unbind()
    c, s, o = torch.cos(angle), torch.sin(angle), torch.zeros_like(x)
    cross = torch.stack([torch.stack(row) for row in ((o, -z, y), (z, o, -x), (-y, x, o))])
    eye = torch.eye(3, dtype=axis.dtype)
    return torch.where(still, eye, c * eye + s * cross + (1.0 - c) * torch.outer(unit, unit))


def skin(theta, levels, relative, inverse, positions, weights):
    """Vertices in a pose, (V, 3): a level of bones at a time, then each vertex by its mixture of transforms."""
    local = relative @ local_rotations(theta, len(relative))
    done = [local[levels[0][0]]]
    for bones, parents in levels[1:]:
        # Bones of a level have their parents in the one before, in the order in which that was made.
        above = done[-1][[levels[len(done) - 1][0].tolist().index(p) for p in parents.tolist()]]
        done.append(above @ local[bones])
    order = torch.argsort(torch.cat([bones for bones, _ in levels]))
    transforms = (torch.cat(done)[order] @ inverse)[:, :3]
    mixed = (weights @ transforms.reshape(len(relative), 12)).reshape(-1, 3, 4)
    posed = (mixed[:, :, :3] @ positions[:, :, None])[:, :, 0] + mixed[:, :, 3]
    return posed @ global_rotation(theta[:3]).T + theta[3:6]


def tracking(r):
    """`hand`"""
    used, places = np.unique(r.corners, return_inverse=True)
    corners = torch.from_numpy(places.reshape(r.corners.shape))
    arrays = (r.base_relative, r.inverse_base_absolute, r.positions[used], r.weights[used], r.points, r.theta)
    *model, points, theta = map(torch.from_numpy, arrays)
    levels = bone_levels(r.parents)
    us = None if r.us is None else torch.from_numpy(r.us)

    def residuals(theta, us):
        posed = skin(theta, levels, *model)[corners]
        if us is not None:
            posed = torch.einsum("nk,nki->ni", torch.cat([us, 1.0 - us.sum(1, keepdim=True)], dim=1), posed)
        return (points - posed).ravel()

    if VARIANT == "rows":
        return tracking_rows(residuals, theta, us)

    def whole(theta, us):
        def along_theta(direction):
            return torch.func.jvp(lambda theta: residuals(theta, us), (theta,), (direction,))

        errors, columns = torch.func.vmap(along_theta, out_dims=(None, 0))(torch.eye(len(theta), dtype=theta.dtype))
        if us is not None:
            directions = torch.eye(2, dtype=us.dtype)[:, None].expand(2, *us.shape)

            def along_us(direction):
                return torch.func.jvp(lambda us: residuals(theta, us), (us,), (direction,))[1]

            columns = torch.cat([torch.func.vmap(along_us)(directions), columns])
        return errors, columns

    function, derivative = compiled(residuals), compiled(whole)

    def objective():
        with torch.no_grad():
            return function(theta, us)

    def gradient():
        with torch.no_grad():
            return derivative(theta, us)

    return [Work(objective, gradient, list)]


def tracking_rows(residuals, theta, us, most=60):
    """A call of `backward` for each residual; at most some residuals are measured."""
    theta = theta.clone().requires_grad_()
    us = None if us is None else us.clone().requires_grad_()
    inputs = [theta] if us is None else [us, theta]
    total = len(residuals(theta, us))
    count = min(most, total)
    graph = residuals(theta, us) if count < total else None

    def gradient():
        errors = residuals(theta, us) if graph is None else graph
        rows = []
        for k in range(count):
            for value in inputs:
                value.grad = None
            errors[k].backward(retain_graph=True)
            rows.append(torch.cat([*([] if us is None else [us.grad[k // 3]]), theta.grad]))
        return errors.detach(), torch.stack(rows)

    def flat(result):
        return [result[0], result[1].T]

    note = f"{count} residuals" + ("" if graph is None else " of a graph that is there")
    return [
        Work(lambda: residuals(theta, us), gradient, flat if graph is None else None, scale=total / count, note=note)
    ]


# LSTM.


def character_model(r):
    """`lstm`"""

    def step(x, main, hidden, cells):
        after = []
        for i in range(len(main)):
            gates = torch.stack([x, hidden[i], x, hidden[i]]) * main[i, 0] + main[i, 1]
            forget, ingate, outgate = torch.sigmoid(gates[:3]).unbind()
            cell = cells[i] * forget + ingate * torch.tanh(gates[3])
            x = outgate * torch.tanh(cell)
            after.append((x, cell))
        hidden, cells = zip(*after)
        return hidden, cells

    step = compiled(step)

    def objective(main, extra, state, sequence):
        hidden, cells = state[:, 0].unbind(), state[:, 1].unbind()
        outputs = []
        for x in (sequence[:-1] * extra[0]).unbind():
            hidden, cells = step(x, main, hidden, cells)
            outputs.append(hidden[-1])
        y = torch.stack(outputs) * extra[1] + extra[2]
        log_sum = torch.log(2.0 + torch.sum(torch.exp(y), dim=1, keepdim=True))
        return -torch.mean(sequence[1:] * (y - log_sum))

    return [scalar_work(objective, (r.main, r.extra), (r.state, r.sequence), whole=False)]


# Triangular product.


def triangle(r):
    """`trmv`"""
    n = len(r.x)
    columns, rows = map(torch.from_numpy, np.triu_indices(n, 1))
    g = torch.from_numpy(r.g)

    def dense(lower, x):
        matrix = torch.zeros(n, n, dtype=x.dtype)
        matrix[rows, columns] = lower
        return matrix @ x

    def segments(lower, x):
        return torch.zeros(n, dtype=x.dtype).index_add(0, rows, lower * x[columns])

    def make(product):
        lower, x = (torch.tensor(a, requires_grad=True) for a in (r.lower, r.x))
        function = compiled(product)

        def objective():
            with torch.no_grad():
                return function(lower, x)

        return Work(
            objective, lambda: torch.autograd.grad(function(lower, x), (lower, x), g), list, note=product.__name__
        )

    return [make(dense), make(segments)]


# Perceptron.


def perceptron(r):
    """`mlp`"""

    def objective(w1, b1, w2, b2, w3, b3, x, labels):
        hidden = torch.relu(torch.addmm(b1, x, w1))
        hidden = torch.relu(torch.addmm(b2, hidden, w2))
        return torch.nn.functional.cross_entropy(torch.addmm(b3, hidden, w3), labels)

    return [scalar_work(objective, r.parameters, (r.x, r.labels.astype(np.int64)))]


BUILDERS = {
    "gmm": mixture,
    "ba": scene,
    "hand": tracking,
    "lstm": character_model,
    "trmv": triangle,
    "mlp": perceptron,
}

if __name__ == "__main__":
    torch.ones(3, requires_grad=True).sum().backward()
    serve_builders(BUILDERS)

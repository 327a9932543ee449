"""LeNet in JAX: one jitted step in a Python loop, or all steps in one `lax.scan` (`--variant scan`).

Parameters are donated to the step, so that they are updated in place; batches are taken on the host, where it
costs nothing.
"""

from __future__ import annotations

import sys

from benchmarks.workload import ADAM_RATE, BATCH, SGD_RATE, System, batches, prepare_process, serve_system

if __name__ == "__main__":
    prepare_process(sys.argv)

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def scores(p, x):
    """The network: images (n, 1, 28, 28) -> scores (n, 10).

    On this back end batches are quicker with channels last (1.4 times for 64 images), single images with channels first;
    and the maximum over an axis of equal windows is no slower than `reduce_window`, its gradient much quicker.
    """
    return scores_of_batch(p, x) if len(x) > 1 else scores_of_one(p, x)


def scores_of_one(p, x):
    """Channels first, as the images are stored."""
    for layer in ("conv2d_0", "conv2d_1"):
        x = lax.conv_general_dilated(x, p[f"{layer}.weight"], (1, 1), "VALID")
        x = jnp.tanh(x + p[f"{layer}.bias"][:, None, None])
        n, c, h, w = x.shape
        x = x.reshape(n, c, h // 2, 2, w // 2, 2).max(axis=(3, 5))
    return dense(p, x.reshape(len(x), -1))


def scores_of_batch(p, x):
    """Channels last; turned back before the linear layers, whose weights have them first."""
    x = x.transpose(0, 2, 3, 1)
    for layer in ("conv2d_0", "conv2d_1"):
        layout = ("NHWC", "OIHW", "NHWC")
        x = lax.conv_general_dilated(x, p[f"{layer}.weight"], (1, 1), "VALID", dimension_numbers=layout)
        x = jnp.tanh(x + p[f"{layer}.bias"])
        n, h, w, c = x.shape
        x = x.reshape(n, h // 2, 2, w // 2, 2, c).max(axis=(2, 4))
    return dense(p, x.transpose(0, 3, 1, 2).reshape(len(x), -1))


def dense(p, x):
    """The two linear layers."""
    x = jnp.tanh(x @ p["linear_0.weight"].T + p["linear_0.bias"])
    return x @ p["linear_1.weight"].T + p["linear_1.bias"]


def mean_loss(p, x, y):
    """The mean cross entropy of a batch; labels as class numbers."""
    z = scores(p, x)
    return jnp.mean(jax.nn.logsumexp(z, axis=1) - jnp.take_along_axis(z, y[:, None], axis=1)[:, 0])


def sgd_step(state, x, y):
    """One step of gradient descent."""
    loss, grads = jax.value_and_grad(mean_loss)(state, x, y)
    return jax.tree.map(lambda p, g: p - SGD_RATE * g, state, grads), loss


def adam_step(state, x, y):
    """One step of Adam (Kingma and Ba, algorithm 1)."""
    params, m, v, t = state
    loss, grads = jax.value_and_grad(mean_loss)(params, x, y)
    t = t + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
    rate, scale = ADAM_RATE / (1 - 0.9**t), 1 / jnp.sqrt(1 - 0.999**t)
    params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) * scale + 1e-8), params, m, v)
    return (params, m, v, t), loss


class JaxLenet(System):
    """JAX at the work."""

    def __init__(self, work, options):
        super().__init__(work, options)
        self.labels = work.labels.astype(np.int32)
        self.states = {}
        steps = {"batch1": sgd_step, "batch64": adam_step}
        self.step = {case: jax.jit(step, donate_argnums=0) for case, step in steps.items()}

        def scan(step):
            return jax.jit(
                lambda state, xs, ys: lax.scan(lambda s, xy: step(s, *xy), state, (xs, ys)), donate_argnums=0
            )

        self.scan = {case: scan(step) for case, step in steps.items()}

    def reset(self, case):
        params = {name: jnp.array(value) for name, value in self.work.params.items()}
        if case == "batch1":
            self.states[case] = params
        else:
            zeros = {name: jnp.zeros_like(value) for name, value in params.items()}
            self.states[case] = (params, zeros, jax.tree.map(jnp.copy, zeros), jnp.float32(0))

    def run(self, case, rows, record):
        state, size = self.states[case], BATCH[case]
        if self.options.variant == "scan":
            images, labels = self.work.images[rows], self.labels[rows]
            state, losses = self.scan[case](
                state, images.reshape(-1, size, *images.shape[1:]), labels.reshape(-1, size)
            )
        else:
            step, losses = self.step[case], []
            for batch in batches(rows, size):
                state, loss = step(state, self.work.images[batch], self.labels[batch])
                if record:
                    losses.append(loss)
        self.states[case] = jax.block_until_ready(state)
        return np.asarray(losses)

    def versions(self):
        return {"jax": jax.__version__}


if __name__ == "__main__":
    serve_system(JaxLenet)

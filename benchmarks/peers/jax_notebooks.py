"""The fits of the notebook of physics in JAX: jitted, loops as `lax.scan`, Adam by hand."""

from __future__ import annotations

import sys

from benchmarks.workload import prepare_process

if __name__ == "__main__":
    prepare_process(sys.argv)

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.notebooks import Measured, serve_peer

jax.config.update("jax_enable_x64", True)


def adam(value_and_grad, first, rate: float, sign: float):
    """A jitted loop of Adam's updates: (parameters, values on the way)."""

    def fit(parameters, count):
        def step(i, carried):
            x, m, v, values = carried
            value, g = value_and_grad(x)
            g = sign * g
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            t = i + 1.0
            x = x - rate * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
            return x, m, v, values.at[i].set(value)

        return lax.fori_loop(0, count, step, (parameters, 0.0 * parameters, 0.0 * parameters, jnp.zeros(1000)))

    fit = jax.jit(fit)
    return lambda count: jax.block_until_ready(fit(first, count))


def pendulum(weights: dict, data: dict, sizes: dict) -> Measured:
    """`pendulum`"""
    start, times, measured, guess = (jnp.asarray(data[k]) for k in ("start", "times", "measured", "guess"))
    dt = times[1] - times[0]

    def rate(y, parameters):
        return jnp.array([y[1], -parameters[0] * jnp.sin(y[0]) - parameters[1] * y[1]])

    def misfit(parameters):
        def step(y, _):
            k1 = rate(y, parameters)
            k2 = rate(y + 0.5 * dt * k1, parameters)
            k3 = rate(y + 0.5 * dt * k2, parameters)
            k4 = rate(y + dt * k3, parameters)
            return y + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4), y[0]

        _, angles = lax.scan(step, start, None, len(times))
        return jnp.mean((angles - measured) ** 2)

    fit = adam(jax.value_and_grad(misfit), guess, 0.03, 1.0)
    return Measured(lambda count=20: fit(count)[3][:1].tolist(), 20)


def kalman(weights: dict, data: dict, sizes: dict) -> Measured:
    """`kalman`"""
    readings, f, h, noise = (jnp.asarray(data[k]) for k in ("readings", "F", "H", "Q"))

    def log_likelihood(logs):
        q, r = jnp.exp(logs)

        def step(carried, z):
            mean, covariance, total = carried
            mean, covariance = f @ mean, f @ covariance @ f.T + q * noise
            error = z - (h @ mean)[0]
            variance = (h @ covariance @ h.T)[0, 0] + r
            gain = (covariance @ h.T)[:, 0] / variance
            total = total - 0.5 * (error**2 / variance + jnp.log(2.0 * jnp.pi * variance))
            return (mean + gain * error, covariance - jnp.outer(gain, gain) * variance, total), None

        (_, _, total), _ = lax.scan(step, (jnp.zeros(2), 100.0 * jnp.eye(2), 0.0), readings)
        return total / len(readings)

    fit = adam(jax.value_and_grad(log_likelihood), jnp.zeros(2), 0.1, -1.0)
    return Measured(lambda count=20: fit(count)[3][:count].tolist(), 20)


if __name__ == "__main__":
    serve_peer({"pendulum": pendulum, "kalman": kalman})

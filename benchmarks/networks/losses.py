"""Losses of a transformer, a variational autoencoder and a policy as plain decorated functions."""

import numpy as np

from myia_relay import relay

from .vision import dense


@relay
def norm(x, layer):
    """Layer normalisation."""
    return relay.layer_norm(x, layer["weight"], layer["bias"])


@relay
def heads_of(x, heads):
    """(sequences, heads, context, width of a head) of (sequences, context, width)."""
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


@relay(static=("heads",))
def gpt_loss(weights, letters, following, heads):
    """Mean cross entropy of the next letters."""
    x = weights["letters"][letters] + weights["places"]
    for block in weights["blocks"]:
        q, k, v = np.split(dense(norm(x, block["norm1"]), block["qkv"]), 3, axis=-1)
        y = relay.attention(heads_of(q, heads), heads_of(k, heads), heads_of(v, heads), causal=True)
        x = x + dense(y.transpose(0, 2, 1, 3).reshape(x.shape), block["out"])
        x = x + dense(relay.gelu(dense(norm(x, block["norm2"]), block["up"])), block["down"])
    scores = dense(norm(x, weights["norm"]), weights["head"])
    return np.mean(relay.softmax_cross_entropy(scores, following))


@relay
def vae_loss(weights, images, noise):
    """The negative evidence lower bound of a batch, its mean by image."""
    h = relay.relu(dense(images, weights["encode"]))
    mean, spread = dense(h, weights["mean"]), dense(h, weights["spread"])
    z = mean + np.exp(0.5 * spread) * noise
    scores = dense(relay.relu(dense(z, weights["decode"])), weights["image"])
    error = relay.sigmoid_cross_entropy(scores, images, reduction="sum")
    divergence = -0.5 * np.sum(1.0 + spread - mean**2 - np.exp(spread))
    return (error + divergence) / len(images)


@relay
def pushed(x, v, angle, spin, right):
    """Cart-poles after 0.02 s (R. Sutton and A. Barto, "Reinforcement Learning", section 3.4): positions, speeds, angles, rates."""
    force = np.where(right, np.float32(10.0), np.float32(-10.0))
    sine, cosine = np.sin(angle), np.cos(angle)
    push = (force + 0.05 * spin**2 * sine) / 1.1
    turn = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - 0.1 * cosine**2 / 1.1))
    speed = push - 0.05 * turn * cosine / 1.1
    return x + 0.02 * v, v + 0.02 * speed, angle + 0.02 * spin, spin + 0.02 * turn


@relay
def reinforce_loss(weights, start, draws):
    """The surrogate loss of REINFORCE with the mean return as baseline (R. Williams, 1992), by cart-pole."""
    x, v, angle, spin = start
    alive = np.ones(draws.shape[1], np.float32)
    logs, rewards = np.zeros(draws.shape, np.float32), np.zeros(draws.shape, np.float32)
    for t in range(len(draws)):
        h = np.tanh(dense(np.stack((x, v, angle, spin), axis=1), weights["hidden"]))
        logit = dense(h, weights["logit"])[:, 0]
        right = draws[t] < 1.0 / (1.0 + np.exp(-logit))
        logs[t] = -alive * relay.softplus(np.where(right, -logit, logit))
        rewards[t] = alive
        x, v, angle, spin = pushed(x, v, angle, spin, right)
        alive = alive * ((np.abs(x) < 2.4) & (np.abs(angle) < 0.2095))
    total, future = np.float32(0.0), np.zeros(draws.shape[1], np.float32)
    for t in range(len(draws) - 1, -1, -1):
        future = rewards[t] + 0.99 * future
        total -= np.sum(logs[t] * (future - np.mean(future)))
    return total / draws.shape[1]

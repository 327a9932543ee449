"""The programs of the notebooks in PyTorch, eagerly: its own functions, recurrent layers and optimisers."""

from __future__ import annotations

import json
import sys

from benchmarks.workload import prepare_process

if __name__ == "__main__":
    prepare_process(sys.argv)

import numpy as np
import torch
from torch.nn import functional as F

from benchmarks.notebooks import Measured, serve_peer

if "--threads" in sys.argv:
    torch.set_num_threads(int(sys.argv[sys.argv.index("--threads") + 1]))


def parameters(weights: dict) -> dict[str, torch.Tensor]:
    """Tensors to be trained."""
    return {name: torch.tensor(array).requires_grad_() for name, array in weights.items()}


def char_rnn(weights: dict, data: dict, sizes: dict) -> Measured:
    """`char_rnn`"""
    p = parameters(weights)
    names = [f"{part}_l{k}" for k in range(2) for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    lstm = torch.nn.LSTM(64, p["lstm_0.weight_hh_l0"].shape[1], num_layers=2)
    for name in names:
        setattr(lstm, name, torch.nn.Parameter(p.pop(f"lstm_0.{name}").detach()))
    trained = [*p.values(), *lstm.parameters()]
    optimizer = torch.optim.Adam(trained)
    ids, following, test, test_following = (
        torch.tensor(data[k]) for k in ("ids", "following", "test", "test_following")
    )
    length = 64

    def scores(ids, state):
        y, state = lstm(F.embedding(ids, p["embedding_0.weight"]), state)
        return F.linear(y, p["linear_0.weight"], p["linear_0.bias"]), state

    def run(count: int = 10) -> list[float]:
        losses, state = [], None
        for i in range(count):
            start = i * length % (len(ids) - length)
            out, state = scores(ids[start : start + length], state)
            loss = F.cross_entropy(out.flatten(0, 1), following[start : start + length].flatten())
            state = tuple(part.detach() for part in state)
            optimizer.param_groups[0]["lr"] = float(data["rates"][i])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            losses.append(loss.item())
        return losses

    def validate() -> float:
        with torch.no_grad():
            return F.cross_entropy(scores(test, None)[0].flatten(0, 1), test_following.flatten()).item()

    return Measured(run, 10, validate=validate)


def gpt(weights: dict, data: dict, sizes: dict) -> Measured:
    """`gpt`"""
    p, layers, heads = parameters(weights), sizes["layers"], sizes["heads"]
    decaying = [a for a in p.values() if a.ndim > 1]
    others = [a for a in p.values() if a.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": decaying, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}])
    letters, starts = torch.tensor(data["letters"]), torch.tensor(data["starts"])
    context = p["places_0"].shape[0]

    def layer(name, function, x, *rest):
        return function(x, *rest, p[f"{name}.weight"], p[f"{name}.bias"])

    def norm(name, x):
        return layer(name, F.layer_norm, x, x.shape[-1:])

    def scores(ids, training):
        x = F.embedding(ids, p["embedding_0.weight"]) + p["places_0"]
        for k in range(layers):
            at = f"multi_head_attention_{k}"
            h = F.linear(norm(f"layer_norm_{2 * k}", x), p[f"{at}.in_proj_weight"], p[f"{at}.in_proj_bias"])
            q, k_, v = h.view(*h.shape[:2], 3, heads, -1).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k_, v, is_causal=True).transpose(1, 2).flatten(2)
            y = F.linear(y, p[f"{at}.out_proj_weight"], p[f"{at}.out_proj_bias"])
            x = x + F.dropout(y, 0.1, training)
            h = F.gelu(layer(f"linear_{2 * k}", F.linear, norm(f"layer_norm_{2 * k + 1}", x)))
            x = x + F.dropout(layer(f"linear_{2 * k + 1}", F.linear, h), 0.1, training)
        return layer(f"linear_{2 * layers}", F.linear, norm(f"layer_norm_{2 * layers}", x))

    def run(count: int = 5) -> list[float]:
        losses = []
        for i in range(count):
            taken = letters[starts[i][:, None] + torch.arange(context + 1)]
            loss = F.cross_entropy(scores(taken[:, :-1], True).flatten(0, 1), taken[:, 1:].flatten())
            for group in optimizer.param_groups:
                group["lr"] = float(data["rates"][i])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(list(p.values()), 1.0)
            optimizer.step()
            losses.append(loss.item())
        return losses

    def validate() -> float:
        with torch.no_grad():
            out = scores(torch.tensor(data["test"]), False)
            return F.cross_entropy(out.flatten(0, 1), torch.tensor(data["test_following"]).flatten()).item()

    return Measured(run, 5, validate=validate)


def tree_lstm(weights: dict, data: dict, sizes: dict) -> Measured:
    """`tree_lstm`"""
    p, trees, size = parameters(weights), json.loads(str(data["trees"])), sizes["batch"]
    optimizer = torch.optim.Adagrad(p.values(), lr=0.05)
    width = p["scores"].shape[1]

    def phrase(tree):
        label, *parts = tree
        if len(parts) == 1:
            gates = p["word"] @ p["words"][parts[0]] + p["bias"]
            kept, inner = 0.0, 0.0
        else:
            (h1, c1, loss1, _), (h2, c2, loss2, _) = map(phrase, parts)
            gates = p["phrase"] @ torch.cat([h1, h2]) + p["bias"]
            forget = torch.sigmoid(gates[3 * width :] + 1.0)
            kept, inner = forget[:width] * c1 + forget[width:] * c2, loss1 + loss2
        add, show = torch.sigmoid(gates[:width]), torch.sigmoid(gates[width : 2 * width])
        c = add * torch.tanh(gates[2 * width : 3 * width]) + kept
        h = show * torch.tanh(c)
        scores = p["scores"] @ h + p["shift"]
        return h, c, inner + F.cross_entropy(scores, torch.tensor(label)), scores

    def run(count: int = 10) -> list[float]:
        losses = []
        for i in range(count):
            some = [trees[k % len(trees)] for k in range(i * size, (i + 1) * size)]
            loss = sum(phrase(tree)[2] for tree in some) / size
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    def validate() -> float:
        unseen = json.loads(str(data["unseen"]))
        with torch.no_grad():
            return 100 * sum(phrase(tree)[3].argmax().item() == tree[0] for tree in unseen) / len(unseen)

    return Measured(run, 10, validate=validate)


def pendulum(weights: dict, data: dict, sizes: dict) -> Measured:
    """`pendulum`: one step in a call, for it takes a second."""
    times, measured = torch.tensor(data["times"]), torch.tensor(data["measured"])
    dt = float(data["times"][1] - data["times"][0])

    def rate(y, parameters):
        return torch.stack([y[1], -parameters[0] * torch.sin(y[0]) - parameters[1] * y[1]])

    def run(count: int = 1) -> list[float]:
        parameters = torch.tensor(data["guess"]).requires_grad_()
        optimizer = torch.optim.Adam([parameters], lr=0.03)
        for _ in range(count):
            y, angles = torch.tensor(data["start"]), []
            for _ in range(len(times)):
                angles.append(y[0])
                k1 = rate(y, parameters)
                k2 = rate(y + 0.5 * dt * k1, parameters)
                k3 = rate(y + 0.5 * dt * k2, parameters)
                k4 = rate(y + dt * k3, parameters)
                y = y + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
            loss = ((torch.stack(angles) - measured) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return [loss.item()]

    return Measured(run, 1)


def kalman(weights: dict, data: dict, sizes: dict) -> Measured:
    """`kalman`: one step in a call."""
    readings, f, h, noise = (torch.tensor(data[k]) for k in ("readings", "F", "H", "Q"))

    def run(count: int = 1) -> list[float]:
        logs, losses = torch.zeros(2, dtype=torch.float64, requires_grad=True), []
        optimizer = torch.optim.Adam([logs], lr=0.1)
        for _ in range(count):
            q, r = torch.exp(logs)
            mean, covariance = torch.zeros(2, dtype=torch.float64), 100.0 * torch.eye(2, dtype=torch.float64)
            total = 0.0
            for z in readings:
                mean, covariance = f @ mean, f @ covariance @ f.T + q * noise
                error = z - (h @ mean)[0]
                variance = (h @ covariance @ h.T)[0, 0] + r
                gain = (covariance @ h.T)[:, 0] / variance
                mean = mean + gain * error
                covariance = covariance - torch.outer(gain, gain) * variance
                total = total - 0.5 * (error**2 / variance + torch.log(2.0 * np.pi * variance))
            loss = -total / len(readings)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(-loss.item())
        return losses

    return Measured(run, 1)


def vae(weights: dict, data: dict, sizes: dict) -> Measured:
    """`vae`"""
    p, images, size = parameters(weights), torch.tensor(data["images"]), sizes["batch"]
    optimizer = torch.optim.Adam(p.values(), lr=1e-3)

    def dense(k, x):
        return F.linear(x, p[f"linear_{k}.weight"], p[f"linear_{k}.bias"])

    def run(count: int = 1) -> list[float]:
        means = []
        for _ in range(count):
            order, total = torch.randperm(len(images)), 0.0
            for i in range(len(images) // size):
                x = images[order[i * size : (i + 1) * size]]
                h = F.relu(dense(0, x))
                mean, log_std = dense(1, h), dense(2, h)
                z = mean + torch.exp(log_std) * torch.randn_like(mean)
                logits = dense(4, F.relu(dense(3, z)))
                restored = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
                told = 0.5 * (torch.exp(2.0 * log_std) + mean**2 - 1.0 - 2.0 * log_std).sum()
                loss = (restored + told) / size
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            means.append(total / (len(images) // size))
        return means

    return Measured(run, len(images) // size)


BUILDERS = {
    "char_rnn": char_rnn,
    "tree_lstm": tree_lstm,
    "gpt": gpt,
    "pendulum": pendulum,
    "kalman": kalman,
    "vae": vae,
}


if __name__ == "__main__":
    serve_peer(BUILDERS)

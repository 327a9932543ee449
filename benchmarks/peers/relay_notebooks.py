"""The programs of the notebooks in this compiler: their own cells, up to where they train."""

from __future__ import annotations

import json
import runpy
import sys
import tempfile
from pathlib import Path

from benchmarks.workload import prepare_process

if __name__ == "__main__":
    prepare_process(sys.argv)

import numpy as np

from benchmarks.notebooks import FILES, Measured
from benchmarks.workers import ROOT, serve
from myia_relay import relay


def program(row: str) -> dict:
    """What the cells of a notebook that are marked as its program define."""
    notebook = json.loads((ROOT / "notebooks" / f"{FILES[row]}.ipynb").read_text("utf-8"))
    cells = [c for c in notebook["cells"] if "program" in c["metadata"].get("tags", ())]
    path = Path(FOLDER.name) / f"{row}.py"  # the compiler reads the source
    path.write_text("\n\n".join("".join(c["source"]) for c in cells), "utf-8")
    return runpy.run_path(str(path), run_name=row)


STEPS = 1000
"""At most so many are compared."""

FOLDER = tempfile.TemporaryDirectory(prefix="myia_relay_notebooks.")


def char_rnn(n: dict) -> Measured:
    """`char_rnn`: ten steps in a call."""
    weights = {k: v.copy() for k, v in n["model"].params.items()}

    def run(count: int = 10) -> list[float]:
        losses, _ = n["train"](n["model"], n["optimizer"], n["ids"], n["following"], n["state"], 0, count)
        return losses.tolist()

    strips = [strip[:1000] for strip in n["strips"](n["test_letters"])]

    def validate() -> float:
        scores, _ = n["model"](strips[0], n["state"])
        return float(np.mean(cross_entropy(scores, strips[1])))

    data = {"ids": n["ids"], "following": n["following"], "test": strips[0], "test_following": strips[1]}
    data["rates"] = np.array([n["rate"](i) for i in range(STEPS)])
    return Measured(run, 10, weights, data, validate)


def gpt(n: dict) -> Measured:
    """`gpt`: five steps in a call; the pieces of text that it draws are handed on."""
    weights = {k: v.copy() for k, v in n["model"].params.items()}
    letters, key = n["train_letters"], n["key"]
    starts = [
        relay.random.randint(relay.random.fold_in(key, i), (n["BATCH"],), 0, len(letters) - n["CONTEXT"])
        for i in range(STEPS)
    ]

    def run(count: int = 5) -> list[float]:
        return n["train"](n["model"], n["optimizer"], letters, key, count).tolist()

    test, following = n["pieces"](n["test_letters"], relay.random.key(2))

    def validate() -> float:
        return float(np.mean([cross_entropy(n["model"](x), y) for x, y in zip(test, following)]))

    data = {"letters": letters, "starts": np.array(starts), "test": test, "test_following": following}
    data["rates"] = np.array([n["rate"](i) for i in range(STEPS)])
    sizes = {"heads": n["HEADS"], "layers": n["LAYERS"]}
    return Measured(run, 5, weights, data, validate, sizes)


def tree_lstm(n: dict) -> Measured:
    """`tree_lstm`: ten batches of sentences in a call; the trees are handed on as text."""
    now = [n["p"], n["state"]]
    weights = {k: v.copy() for k, v in n["p"].items()}
    trees, size, unseen = n["train_trees"], n["BATCH"], n["test_trees"]
    phrase = n["phrase"]

    def run(count: int = 10) -> list[float]:
        losses = []
        for i in range(count):
            some = [trees[k % len(trees)] for k in range(i * size, (i + 1) * size)]
            value, *now[:] = n["step"](*now, some, n["optimizer"])
            losses.append(float(value))
        return losses

    def parts(tree):
        if isinstance(tree, n["Word"]):
            return [tree.label, tree.word]
        return [tree.label, parts(tree.left), parts(tree.right)]

    @relay
    def label_of(p, tree: relay.datasets.Tree):
        return np.argmax(phrase(tree, p)[2])

    def validate() -> float:
        return 100 * float(np.mean([label_of(now[0], tree) == tree.label for tree in unseen]))

    data = {name: np.array(json.dumps([*map(parts, some)])) for name, some in (("trees", trees), ("unseen", unseen))}
    return Measured(run, 10, weights, data, validate, {"batch": size})


def pendulum(n: dict) -> Measured:
    """`pendulum`: twenty steps of the fit in a call."""

    def run(count: int = 20) -> list[float]:
        n["fit"](n["guess"], n["start"], n["times"], n["measured"], count)
        return [n["misfit"](n["guess"], n["start"], n["times"], n["measured"])]

    data = {name: n[name] for name in ("guess", "start", "times", "measured")}
    return Measured(run, 20, {}, data)


def kalman(n: dict) -> Measured:
    """`kalman`: twenty steps of the fit in a call."""

    def run(count: int = 20) -> list[float]:
        _, path = n["likeliest"](np.zeros(2), n["readings"], count)
        return path.tolist()

    return Measured(run, 20, {}, {name: n[name] for name in ("readings", "F", "H", "Q")})


def vae(n: dict) -> Measured:
    """`vae`: fifty batches of pictures in a call."""
    weights = {k: v.copy() for k, v in n["model"].params.items()}
    images = n["images"][: 50 * n["BATCH"]]

    def run(count: int = 1) -> list[float]:
        return [float(n["train_epoch"](n["model"], n["optimizer"], images, relay.random.key(0))) for _ in range(count)]

    return Measured(run, 50, weights, {"images": images}, None, {"batch": n["BATCH"]})


def cross_entropy(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Of each letter, in float64."""
    scores = scores.astype(np.float64)
    shifted = scores - scores.max(-1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return -np.take_along_axis(logs, labels[..., None], -1)[..., 0]


BUILDERS = {
    "char_rnn": char_rnn,
    "tree_lstm": tree_lstm,
    "gpt": gpt,
    "pendulum": pendulum,
    "kalman": kalman,
    "vae": vae,
}


class Ours:
    """The answers of this worker."""

    def prepare(self, row: str, path: str) -> list[float]:
        """Compile a row and write what the others start from; returns what the first call gives."""
        self.measured = BUILDERS[row](program(row))
        m = self.measured
        with open(path, "wb") as file:
            np.savez(file, sizes=json.dumps(m.sizes), **m.data, **{f"weight:{k}": v for k, v in m.weights.items()})
        return m.run()

    def measure(self) -> float:
        """Seconds of a step."""
        return self.measured.seconds()

    def train(self, row: str, path: str, count: int) -> float:
        """What `TESTED` says, after so many steps from the beginning."""
        self.measured = BUILDERS[row](program(row))
        self.measured.run(count)
        assert self.measured.validate
        return self.measured.validate()


if __name__ == "__main__":
    ours = Ours()
    serve({"prepare": ours.prepare, "measure": ours.measure, "train": ours.train})

"""The file of a run of `relay.fit` that can be taken up again: written whole or not at all, read before the first step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ..utils.errors import ShapeError, TypeError_
from .checkpoint_io import load_safetensors, save_safetensors
from .history import Counts
from .optim import Optimiser

STATE_FILE = "state.safetensors"


class Checkpoint:
    """The file of a run in a directory."""

    def __init__(self, directory: Any):
        self.path = Path(directory) / STATE_FILE
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def save(self, run: Any) -> None:
        """Write everything that decides how a run, a `Training`, goes on: atomically."""
        arrays = {f"model/{n}": a for n, a in run.model.saved().items()}
        arrays |= {f"optimizer/{n}": a for n, a in run.optimizer.state().items()}
        arrays |= {f"best/{n}": a for n, a in run.best.items()}
        arrays |= {f"sums/{n}": a for n, a in run.sums.items()}
        arrays["losses"] = run.history.step_losses()
        arrays["counts"] = run.counts.array()
        meta = {
            "settings": run.settings,
            "position": run.position(),
            "epochs": run.history.epochs,
            "optimizer": {"settings": run.given, "scheduled": run.optimizer.schedule is not None},
        }
        save_safetensors(self.path, arrays, {name: json.dumps(value, default=_plain) for name, value in meta.items()})

    def load(self, run: Any) -> None:
        """Take up a run where it ended; nothing happens if there is none yet.

        Raises:
            ValueError: the file is of a run with other settings, those of the optimizer among them.
            KeyError: it is of another model, or of another optimizer.
            ShapeError: it is of a model with other shapes.
            TypeError_: it is of a model with other dtypes.
            OSError: it cannot be read.
        """
        if not self.path.exists():
            return
        arrays, texts = load_safetensors(self.path)
        try:
            meta = {name: json.loads(texts[name]) for name in ("settings", "position", "epochs", "optimizer")}
        except (KeyError, ValueError):
            raise ValueError(f"{self.path} is no checkpoint of this version; use another directory") from None
        now, optimizer = meta["optimizer"]["settings"], run.optimizer
        if now != optimizer.settings():
            _refuse_optimizer(self.path, now, optimizer)
        for name, value in run.settings.items():
            have = meta["settings"].get(name)
            if have != value:
                raise ValueError(
                    f"{self.path}: made with {name}={have}, not {value}; use the same settings or another directory"
                )

        def part(prefix: str) -> dict[str, np.ndarray]:
            return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}

        before = run.model.copy()
        run.model.restore(part("model/"))
        try:
            run.optimizer.load_state(part("optimizer/"))
        except (KeyError, ShapeError, TypeError_):
            run.model.restore(before.saved())
            raise
        if not meta["optimizer"]["scheduled"]:
            optimizer.schedule = None
        run.best, run.sums = part("best/"), part("sums/")
        run.counts = Counts(arrays["counts"])
        run.history.record_steps(arrays["losses"])
        for row in meta["epochs"]:
            run.history.record_epoch(**row)
        run.take_up(meta["position"])


def _refuse_optimizer(path: Path, was: str, optimizer: Optimiser) -> None:
    """Refuse an optimizer that is not the one of the file.

    Raises:
        KeyError: it is of another kind.
        ValueError: it is given other numbers.
    """
    if was.partition("(")[0] != optimizer.spec.kind:
        raise KeyError(f"{path} has no state of {optimizer.spec}: it was made with {was}; use another directory")
    raise ValueError(
        f"{path}: made with optimizer={was}, not {optimizer.settings()}; use the same settings or another directory. A run goes on "
        "with another learning rate where a callback sets run.optimizer.lr"
    )


def _plain(value: Any) -> Any:
    """A number of NumPy as Python's; anything else as its text."""
    return value.item() if isinstance(value, np.generic) else str(value)


__all__ = ["Checkpoint"]

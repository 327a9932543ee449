"""LeNet in PyTorch: eager, eager with channels last (`--variant channels_last`), or `torch.compile` (`--variant compile`).

The usual program, with what helps it: fused optimisers, labels as class numbers, slices for batches (no gathering), and
the losses kept as tensors until the end.
"""

from __future__ import annotations

import sys

from benchmarks.workload import ADAM_RATE, BATCH, SGD_RATE, System, batches, prepare_process, serve_system

if __name__ == "__main__":
    prepare_process(sys.argv)

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy


class TorchLenet(System):
    """PyTorch at the work."""

    def __init__(self, work, options):
        super().__init__(work, options)
        torch.set_num_threads(options.threads)
        self.images = torch.from_numpy(work.images)
        self.labels = torch.from_numpy(work.labels)
        self.nets = {}
        self.optimisers = {}
        self.forward = {}

    def reset(self, case):
        if case not in self.nets:
            net = nn.Sequential(
                nn.Conv2d(1, 20, 5),
                nn.Tanh(),
                nn.MaxPool2d(2),
                nn.Conv2d(20, 50, 5),
                nn.Tanh(),
                nn.MaxPool2d(2),
                nn.Flatten(),
                nn.Linear(800, 500),
                nn.Tanh(),
                nn.Linear(500, 10),
            )
            if self.options.variant == "channels_last":
                net = net.to(memory_format=torch.channels_last)
            self.nets[case] = net

            def loss(x, y):
                return cross_entropy(net(x), y)

            self.forward[case] = torch.compile(loss) if self.options.variant == "compile" else loss
        with torch.no_grad():
            for parameter, value in zip(self.nets[case].parameters(), self.work.params.values(), strict=True):
                parameter.copy_(torch.from_numpy(value))
        parameters = self.nets[case].parameters()
        if case == "batch1":
            self.optimisers[case] = torch.optim.SGD(parameters, lr=SGD_RATE, fused=True)
        else:
            self.optimisers[case] = torch.optim.Adam(parameters, lr=ADAM_RATE, fused=True)

    def run(self, case, rows, record):
        forward, optimiser = self.forward[case], self.optimisers[case]
        losses = []
        for batch in batches(rows, BATCH[case]):
            optimiser.zero_grad(set_to_none=True)
            loss = forward(self.images[batch], self.labels[batch])
            loss.backward()
            optimiser.step()
            if record:
                losses.append(loss.detach())
        return np.array([float(loss) for loss in losses])

    def versions(self):
        return {"torch": torch.__version__}


if __name__ == "__main__":
    serve_system(TorchLenet)

"""LeNet in this compiler: the loop of Figure 4, and `relay.fit`; `--variant` names the executor."""

# No `from __future__ import annotations` here: annotations are part of decorated programs.
import sys

from benchmarks.workload import ADAM_RATE, BATCH, System, prepare_process, serve_system

if __name__ == "__main__":
    prepare_process(sys.argv)

import numpy as np

from myia_relay import relay
from myia_relay.model.lenet import lenet, loss


def train(model, training_data):
    """The loop of Figure 4 over a model that is handed in: a round goes on from where the last one ended."""
    for x, y in training_data:
        model_grad = relay.grad(model, loss, (x, y))
        relay.update_model_params(model, model_grad)
    return model


def train_and_record(model, training_data, losses):
    """The same, keeping the loss of every step."""
    step = 0
    for x, y in training_data:
        value, model_grad = relay.value_and_grad(model, loss, (x, y))
        relay.update_model_params(model, model_grad)
        losses = relay.at(losses)[step].set(value)
        step += 1
    return losses


class RelayLenet(System):
    """myia_relay at the work."""

    def __init__(self, work, options):
        super().__init__(work, options)
        executor = options.variant or "native"
        self.data = relay.Dataset(work.images, work.labels, classes=10)
        _ = self.data.onehot  # made once, not while the clock runs
        self.loss = relay(executor=executor)(loss.__wrapped__)
        self.train = relay(executor=executor)(train)
        self.train_and_record = relay(executor=executor)(train_and_record)
        self.models = {}
        self.optimisers = {}

    def reset(self, case):
        self.models[case] = relay.create_model(lenet, init=self.work.params)
        self.optimisers[case] = relay.optim.adam(self.models[case], lr=ADAM_RATE)

    def run(self, case, rows, record):
        model, data = self.models[case], self.data[rows]
        if case == "batch1":
            if record:
                return self.train_and_record(model, data, np.zeros(len(data), np.float32))
            self.train(model, data)
            return ()
        history = relay.fit(
            model,
            self.loss,
            data,
            batch_size=BATCH[case],
            optimizer=self.optimisers[case],
            shuffle=False,
            verbose=False,
        )
        return history.losses

    def versions(self):
        import myia_relay

        return {"myia_relay": myia_relay.__version__}


if __name__ == "__main__":
    serve_system(RelayLenet)

"""What `relay.fit` does around its steps: the last batch, accumulation, metrics, callbacks, early stopping, and being taken up."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import textwrap

import ml_dtypes
import numpy as np
import pytest

from myia_relay import Float, Tensor, relay, relay_model
from myia_relay.abstract.types import Array
from myia_relay.backend.native.arguments import conform
from myia_relay.model import lenet as lenet_module
from myia_relay.model import steps as steps_module
from myia_relay.model import training as training_module
from myia_relay.model.batches import epoch_order
from myia_relay.model.checkpoint_io import CheckpointError
from myia_relay.model.feed import arguments
from myia_relay.utils.errors import ShapeError, TypeError_, ValueError_

Rows2, Rows3, Rows4 = (Tensor[Float, ("n", size)] for size in (2, 3, 4))


@relay_model
def net(x: Tensor[Float, 4]) -> Tensor[Float, 3]:
    return relay.linear(relay.tanh(relay.linear(x, num_hidden=5)), num_hidden=3)


@relay_model
def moody(x: Tensor[Float, 4]) -> Tensor[Float, 3]:
    """With state and random draws."""
    h = relay.batch_norm(relay.linear(x, num_hidden=5))
    return relay.linear(relay.dropout(h, 0.25), num_hidden=3)


@relay_model
def whole_batch(x: Rows4) -> Rows3:
    return relay.linear(relay.batch_norm(relay.linear(x, num_hidden=5)), num_hidden=3)


def measures(model):
    """The loss and the accuracy of a model."""

    @relay(executor="interpreter")
    def loss(x, y):
        return relay.softmax_cross_entropy(model(x), y)

    @relay(executor="interpreter")
    def accuracy(x, y):
        return np.argmax(model(x)) == np.argmax(y)

    return loss, accuracy


loss, accuracy = measures(net)
moody_loss, moody_accuracy = measures(moody)


@relay(executor="interpreter")
def batch_loss(x, y):
    return np.mean(relay.softmax_cross_entropy(whole_batch(x), y))


@relay(executor="interpreter")
def batch_accuracy(x, y):
    return np.mean(np.argmax(whole_batch(x), axis=1) == np.argmax(y, axis=1))


NATIVE = {f: relay(f.__wrapped__) for f in (loss, accuracy, moody_loss, moody_accuracy, batch_loss, batch_accuracy)}


def data(count: int = 23, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, 4)).astype(np.float32)
    return x, np.eye(3, dtype=np.float32)[np.argmax(x[:, :3], axis=1)]


def make(function=net, seed: int = 0):
    return relay.create_model(function, seed=seed, init=0.5)


def fit(function=net, of=loss, examples=None, **options):
    model = make(function)
    options = {"batch_size": 4, "verbose": False, "optimizer": relay.optim.sgd(model, lr=0.3)} | options
    history = relay.fit(model, of, data() if examples is None else examples, **options)
    return model, history


def same(one, two) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one.arrays, two.arrays, strict=True))


@pytest.fixture(params=["interpreter", "native"])
def chosen(request):
    """A decorated function on an executor."""
    return (lambda f: f) if request.param == "interpreter" else NATIVE.__getitem__


class TestLastBatch:
    def test_it_is_a_step_by_its_own_mean(self, chosen):
        model, history = fit(of=chosen(loss), epochs=2)
        by_hand, optimiser = make(), None
        optimiser = relay.optim.sgd(by_hand, lr=0.3)
        x, y = data()
        means = []
        for epoch in range(2):
            order = epoch_order(23, True, 0, epoch)
            losses = []
            for start in range(0, 23, 4):
                rows = order[start : start + 4]
                value, grads = relay.value_and_grad(by_hand, relay.batch_mean(loss), (x[rows], y[rows]))
                optimiser.step(grads)
                losses.append(float(value))
            means.append(np.average(losses, weights=[4] * 5 + [3]))
        assert history["steps"] == [6, 6]
        np.testing.assert_allclose(history["loss"], means, rtol=1e-5)
        for name, p in model.params.items():
            np.testing.assert_allclose(p, by_hand.params[name], rtol=1e-4, atol=1e-6)

    def test_drop_last(self):
        _, history = fit(drop_last=True)
        assert history["steps"] == [5]

    def test_a_batch_larger_than_the_data(self):
        _, history = fit(batch_size=64, epochs=2)
        assert history["steps"] == [1, 1]

    def test_two_programs_for_all_epochs_and_lengths(self):
        run = steps_module.training(loss, "interpreter", False, None)
        fit()
        before = run.cache_info().misses
        fit(epochs=3)
        for count in (11, 15, 39):  # the last batches are of 3 as well
            fit(examples=data(count), epochs=2)
        assert run.cache_info().misses == before
        fit(examples=data(22))
        assert run.cache_info().misses == before + 1


class TestAccumulation:
    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("count", [24, 23, 17, 26, 3])
    def test_it_is_the_large_batch(self, count, chosen):
        """Whole groups, groups whose last batch is smaller, and last groups of one batch."""
        examples = data(count)
        large, expected = fit(of=chosen(loss), examples=examples, batch_size=12, epochs=2)
        model, history = fit(of=chosen(loss), examples=examples, accumulate=3, epochs=2)
        assert history["steps"] == expected["steps"]
        np.testing.assert_allclose(history.losses, expected.losses, rtol=1e-5)
        np.testing.assert_allclose(history["loss"], expected["loss"], rtol=1e-5)
        for name, p in model.params.items():
            np.testing.assert_allclose(p, large.params[name], rtol=2e-5, atol=1e-6)

    def test_batches_of_a_stream(self):
        one, _ = fit(accumulate=3, epochs=2)
        other, history = fit(examples=relay.data.batches(data(), 4), batch_size=None, accumulate=3, epochs=2)
        assert same(one, other) and history["steps"] == [2, 2]

    def test_each_batch_has_draws_of_its_own(self):
        """Twice the same batch: with the same draws of dropout the gradients would be those of one."""
        x, y = data(4)
        twice = (np.concatenate([x, x]), np.concatenate([y, y]))
        once, _ = fit(moody, moody_loss, (x, y), shuffle=False)
        both, history = fit(moody, moody_loss, twice, shuffle=False, accumulate=2)
        assert history.steps == 1
        assert not np.allclose(once.params["linear_1.weight"], both.params["linear_1.weight"], rtol=1e-3)


class TestBatched:
    @pytest.mark.sampled(2)
    def test_a_loss_over_the_batch(self, chosen):
        """Batch norm by `batch_mean` and in a loss that takes the batch are the same."""
        _, lifted = fit(moody_without_dropout, chosen_lifted(chosen), epochs=3)
        model, history = fit(whole_batch, chosen(batch_loss), batched=True, epochs=3)
        np.testing.assert_allclose(history.losses, lifted.losses, rtol=2e-4)
        assert not np.allclose(model.state["batch_norm_0.running_var"], 1)

    def test_metrics_and_validation_take_batches(self, chosen):
        x, y = data(10, 1)
        model, history = fit(
            whole_batch,
            chosen(batch_loss),
            batched=True,
            metrics={"accuracy": chosen(batch_accuracy)},
            validation_data=(x, y),
        )
        z = np.asarray(model(x))
        assert history["val_accuracy"] == [pytest.approx(np.mean(z.argmax(1) == y.argmax(1)))]
        expected = np.mean(np.log(np.exp(z).sum(1)) - (z * y).sum(1))
        assert history["val_loss"] == [pytest.approx(expected, rel=1e-5)]

    def test_a_contrastive_loss(self, chosen):
        """InfoNCE: each example against all others of its batch. The gradient of step one is that by hand."""
        x, _ = data(16)
        pairs = (x, x[:, ::-1].copy())
        model, history = fit(embed, contrastive if chosen(loss) is loss else relay(contrastive.__wrapped__), pairs,
                             batched=True, batch_size=8, epochs=40)  # fmt: skip
        w = make(embed).params["linear_0.weight"]
        rows = epoch_order(16, True, 0, 0)[:8]
        a, b = pairs[0][rows] @ w.T, pairs[1][rows] @ w.T
        scores = a @ b.T
        by_hand = np.mean(np.log(np.exp(scores).sum(1)) - np.diag(scores))
        assert history.losses[0] == pytest.approx(by_hand, rel=1e-4)
        assert history["loss"][-1] < 0.7 * history["loss"][0]


@relay_model
def moody_without_dropout(x: Tensor[Float, 4]) -> Tensor[Float, 3]:
    return relay.linear(relay.batch_norm(relay.linear(x, num_hidden=5)), num_hidden=3)


def _lifted(x, y):
    return relay.softmax_cross_entropy(moody_without_dropout(x), y)


LIFTED = {name: relay(executor=name)(_lifted) for name in ("interpreter", "native")}


def chosen_lifted(chosen):
    return LIFTED["interpreter" if chosen(loss) is loss else "native"]


@relay_model
def embed(x: Rows4) -> Rows2:
    return relay.linear(x, num_hidden=2, no_bias=True)


@relay(executor="interpreter")
def contrastive(x, y):
    scores = embed(x) @ embed(y).T
    return np.mean(relay.softmax_cross_entropy(scores, np.arange(len(x))))


class TestMetrics:
    def test_over_training_and_validation_data(self, chosen):
        x, y = data()
        vx, vy = data(10, 1)
        model, history = fit(
            of=chosen(loss), metrics={"accuracy": chosen(accuracy), "size": lambda m: m.num_params},
            validation_data=(vx, vy), epochs=2,
        )  # fmt: skip
        assert history.columns() == [
            "epoch",
            "loss",
            "seconds",
            "steps",
            "accuracy",
            "val_loss",
            "val_accuracy",
            "size",
        ]
        z, vz = (np.stack([model(e) for e in part]) for part in (x, vx))
        assert history["accuracy"][-1] == pytest.approx(np.mean(z.argmax(1) == y.argmax(1)))
        assert history["val_accuracy"][-1] == pytest.approx(np.mean(vz.argmax(1) == vy.argmax(1)))
        expected = np.mean(np.log(np.exp(vz).sum(1)) - (vz * vy).sum(1))
        assert history["val_loss"][-1] == pytest.approx(expected, rel=1e-5)
        assert history["size"] == [model.num_params] * 2

    def test_one_program_measures_all_data(self):
        run = steps_module.evaluating((loss, accuracy), "interpreter", False)
        before = run.cache_info().misses
        for count in (10, 3, 22):
            fit(metrics={"accuracy": accuracy}, validation_data=data(count, 1), epochs=2)
        assert run.cache_info().misses <= before + 1

    def test_layers_infer(self):
        """Measured twice it is the same: no draws, and running statistics, which no metric moves."""
        model, _ = fit(moody, moody_loss)
        saved = [a.copy() for a in model.arrays]
        one = relay.evaluate(model, {"loss": moody_loss, "accuracy": moody_accuracy}, data())
        two = relay.evaluate(model, moody_loss, data(), batch_size=5)
        assert one["loss"] == pytest.approx(two, rel=1e-5)
        assert all(np.array_equal(a, b) for a, b in zip(saved, model.arrays, strict=True))
        x, y = data()
        z = np.stack([model(e) for e in x])
        assert one["accuracy"] == pytest.approx(np.mean(z.argmax(1) == y.argmax(1)))

    def test_evaluate_takes_batches(self):
        model = make()
        whole = relay.evaluate(model, accuracy, data())
        assert relay.evaluate(model, accuracy, relay.data.batches(data(), 5)) == pytest.approx(whole)

    def test_a_metric_that_is_no_number(self):
        with pytest.raises(TypeError, match="gives one number for each example"):
            fit(metrics={"scores": relay(executor="interpreter")(lambda x, y: net(x))})

    def test_refused(self):
        with pytest.raises(TypeError_, match="the metric 'a' is a function, not 3"):
            fit(metrics={"a": 3})
        with pytest.raises(TypeError_, match="evaluate needs a model"):
            relay.evaluate(3, loss, data())
        with pytest.raises(TypeError_, match="evaluate needs functions"):
            relay.evaluate(make(), 3, data())


class Noted(relay.Callback):
    """Writes down what it is called for."""

    def __init__(self):
        self.calls = []

    def on_train_begin(self, run):
        self.calls.append(("begin", run.step))

    def on_batch_end(self, run):
        self.calls.append(("batch", run.step, run.epoch, run.loss))

    def on_epoch_end(self, run):
        self.calls.append(("epoch", run.epoch, run.history.epochs[-1]["loss"]))

    def on_train_end(self, run):
        self.calls.append(("end", run.step))


class TestCallbacks:
    def test_when_they_are_called(self):
        noted = Noted()
        plain, expected = fit(epochs=2)
        model, history = fit(epochs=2, callbacks=[noted])
        assert same(plain, model) and history.losses == expected.losses
        kinds = [call[0] for call in noted.calls]
        assert kinds == ["begin", *["batch"] * 6, "epoch", *["batch"] * 6, "epoch", "end"]
        batches = [call[1:] for call in noted.calls if call[0] == "batch"]
        assert batches == [(i + 1, i // 6, history.losses[i]) for i in range(12)]

    def test_after_updates_where_gradients_accumulate(self):
        noted = Noted()
        fit(accumulate=2, callbacks=[noted])
        assert [c[1] for c in noted.calls if c[0] == "batch"] == [1, 2, 3]

    @pytest.mark.parametrize("hook", ["on_batch_end", "on_epoch_end"])
    def test_stop(self, hook):
        stopper = type("Stopper", (), {hook: lambda self, run: run.stop() if run.step >= 3 else None})()
        _, history = fit(epochs=5, callbacks=[stopper])
        assert history["steps"] == [3 if hook == "on_batch_end" else 6]

    def test_they_may_set_the_rate(self):
        rates = []

        class Rate:
            def on_epoch_end(self, run):
                rates.append(run.optimizer.lr)
                run.optimizer.lr = 0.0

        once, _ = fit(epochs=1)
        model, _ = fit(epochs=3, callbacks=[Rate()])
        assert rates == [pytest.approx(0.3), 0.0, 0.0] and same(once, model)

    def test_an_error_reaches_the_caller(self, tmp_path):
        class Broken:
            def on_batch_end(self, run):
                if run.step == 4:
                    raise LookupError("mine")

        model = make()
        with pytest.raises(LookupError, match="mine") as caught:
            relay.fit(model, loss, data(), batch_size=4, callbacks=[Broken()], verbose=False,
                      optimizer=relay.optim.sgd(model, lr=0.3))  # fmt: skip
        assert caught.value.__cause__ is None and caught.value.__context__ is None
        noted = Noted()
        first, _ = fit(callbacks=[noted, type("S", (), {"on_batch_end": lambda s, r: r.step == 4 and r.stop()})()])
        assert same(first, model)

    def test_refused(self):
        with pytest.raises(TypeError_, match="no on_epoch_ended; did you mean 'on_epoch_end'"):
            fit(callbacks=[type("C", (), {"on_epoch_ended": lambda self, run: None})()])
        for wrong in (3, Noted, print):
            with pytest.raises(TypeError_, match="a callback is an object with some of the methods on_train_begin"):
                fit(callbacks=[wrong])


class TestEarlyStopping:
    def worse(self, **options):
        """From the fifth epoch on, the loss grows."""
        model = make()
        snapshots = []

        class Taker:
            def on_epoch_end(self, run):
                snapshots.append([a.copy() for a in model.arrays])
                run.optimizer.lr = 0.3 if run.epoch < 4 else -0.3

        history = relay.fit(
            model, loss, data(), batch_size=4, verbose=False, optimizer=relay.optim.sgd(model, lr=0.3),
            callbacks=[Taker()], **options,
        )  # fmt: skip
        return model, history, snapshots

    @pytest.mark.parametrize("monitored", ["loss", "val_loss"])
    @pytest.mark.parametrize("epochs", [40, 6])
    def test_the_best_parameters_come_back(self, monitored, epochs):
        options = {"validation_data": data(12, 3)} if monitored == "val_loss" else {}
        model, history, snapshots = self.worse(epochs=epochs, early_stopping=3, **options)
        values = history[monitored]
        best = int(np.argmin(values))
        if epochs == 40:
            assert len(values) == best + 4 < 40  # three epochs that were no better
        assert all(np.array_equal(a, b) for a, b in zip(model.arrays, snapshots[best], strict=True))
        plain = self.worse(epochs=len(values), **options)[1]
        assert plain.losses == history.losses

    def test_nan_is_no_better(self):
        x, y = data()
        calls = []

        class Spoil:
            def on_epoch_end(self, run):
                calls.append(run.epoch)
                run.model.params["linear_0.bias"][...] = np.nan

        model, history = fit(callbacks=[Spoil()], early_stopping=2, epochs=50)
        assert len(history) == 3 and np.isnan(history["loss"][-1])
        assert all(np.isfinite(p).all() for p in model.params.values())

    def test_taken_up(self, tmp_path):
        """Ended early: taking it up gives the same, and trains no further."""
        options = {"epochs": 40, "early_stopping": 2, "validation_data": data(12, 3)}
        whole, expected, _ = self.worse(**options)
        first, _, _ = self.worse(**(options | {"epochs": 3}), checkpoint=tmp_path)
        again, history, snapshots = self.worse(**options, checkpoint=tmp_path)
        assert history.losses == expected.losses and same(whole, again) and len(snapshots) == len(expected) - 3
        once_more, history, snapshots = self.worse(**options, checkpoint=tmp_path)
        assert history["val_loss"] == expected["val_loss"] and same(whole, once_more) and not snapshots


class Killed(BaseException):
    """The end of a process, as far as a test can have it."""


class TestTakenUp:
    """A run that ends anywhere and is taken up is, to the bit, the run that did not end."""

    def start(self, folder=None, **options):
        model = make(moody, seed=options.pop("seed", 0))
        optimiser = relay.optim.adamw(model, lr=relay.optim.schedules.cosine(0.1, 40))
        options = {"epochs": 3, "accumulate": 2, "batch_size": 4, "verbose": False} | options
        options |= {"metrics": {"accuracy": moody_accuracy}, "validation_data": data(10, 1), "early_stopping": 9}
        history = relay.fit(
            model, moody_loss, options.pop("data", data()), optimizer=optimiser, checkpoint=folder, **options
        )
        return [a.copy() for a in (*model.arrays, *optimiser.arrays)], history

    def equal(self, one, two) -> None:
        for a, b in zip(one[0], two[0], strict=True):
            np.testing.assert_array_equal(a, b)
        assert one[1].losses == two[1].losses and one[1].columns() == two[1].columns()
        for name in one[1].columns():
            assert name == "seconds" or one[1][name] == two[1][name], name

    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("at", [1, 3, 4, 8, 11])
    @pytest.mark.sampled(5)
    def test_killed_after_any_save(self, at, stream, tmp_path, monkeypatch):
        options = {"data": relay.data.batches(data(), 4), "batch_size": None} if stream else {}
        whole = self.start(**options)
        monkeypatch.setattr(training_module, "CHECKPOINT_SECONDS", 0.0)
        monkeypatch.setattr(training_module, "CHUNK_SECONDS", 0.0)
        saves = []
        save = training_module.Checkpoint.save

        def save_and_die(self, run):
            save(self, run)
            saves.append(run.position())
            if len(saves) == at:
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(training_module.Checkpoint, "save", save_and_die)
            with pytest.raises(Killed):
                self.start(tmp_path, **options)
        again = self.start(tmp_path, seed=5, **options)
        self.equal(whole, again)
        self.equal(whole, self.start(tmp_path, seed=6, **options))  # finished: nothing happens

    @pytest.mark.parametrize("step", [1, 2, 3, 5])
    def test_interrupted(self, step, tmp_path, interruptible):
        """Ctrl-C writes a checkpoint: no step is lost."""
        whole = self.start()
        done = []

        class Interrupt:
            def on_batch_end(self, run):
                if run.step == step:
                    done.append(run.step)
                    signal.raise_signal(signal.SIGINT)

        with pytest.raises(KeyboardInterrupt):
            self.start(tmp_path, callbacks=[Interrupt()])
        seen = []
        again = self.start(
            tmp_path, seed=5, callbacks=[type("S", (), {"on_batch_end": lambda s, run: seen.append(run.step)})()]
        )
        self.equal(whole, again)
        assert seen[0] == step + 1

    def test_a_full_disk(self, tmp_path, monkeypatch):
        """The write that fails is told; the checkpoint before it is whole."""
        whole = self.start()
        self.start(tmp_path, epochs=1)
        before = (tmp_path / "state.safetensors").read_bytes()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
        try:
            with pytest.raises(CheckpointError, match=r"cannot write .*state\.safetensors"):
                self.start(tmp_path, epochs=2)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, handler)
        assert (tmp_path / "state.safetensors").read_bytes() == before
        assert os.listdir(tmp_path) == ["state.safetensors"]
        self.equal(whole, self.start(tmp_path, seed=5))

    def test_what_does_not_fit_is_refused(self, tmp_path):
        self.start(tmp_path, epochs=1)
        for name, value, had in (("accumulate", 3, 2), ("drop_last", True, 0), ("batch_size", 5, 4)):
            with pytest.raises(ValueError, match=f"made with {name}={had}, not {int(value)}"):
                self.start(tmp_path, **{name: value})
        model = make(moody)
        before = [a.copy() for a in model.arrays]
        with pytest.raises(KeyError, match="no state of sgd"):
            relay.fit(
                model, moody_loss, data(), batch_size=4, accumulate=2, checkpoint=tmp_path, verbose=False,
                optimizer=relay.optim.sgd(model, momentum=0.5),
            )  # fmt: skip
        assert all(np.array_equal(a, b) for a, b in zip(model.arrays, before, strict=True))
        path = tmp_path / "state.safetensors"
        whole = path.read_bytes()
        path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 16]) + whole[-8:])
        with pytest.raises(CheckpointError, match="was damaged after it was written"):
            self.start(tmp_path)
        path.write_bytes(whole[:-7])
        with pytest.raises(CheckpointError, match="not a whole safetensors file"):
            self.start(tmp_path)

    MADE = (
        ("adam", {"lr": 0.01}, "adam", {"lr": 0.02}, ValueError),
        ("adam", {"lr": 0.01}, "adam", {"lr": 0.01, "beta1": 0.8}, ValueError),
        ("adam", {"lr": 0.01}, "lamb", {"lr": 0.01}, KeyError),
        ("adam", {"lr": 0.01}, "lion", {"lr": 0.01}, KeyError),
        ("adam", {"lr": 0.01}, "sgd", {"lr": 0.5}, KeyError),
        ("momentum", {}, "momentum", {"nesterov": True}, ValueError),
        ("adam", {"lr": relay.optim.schedules.cosine(0.1, 40)}, "adam", {"lr": relay.optim.schedules.cosine(0.1, 50)}, ValueError),
        ("adamw", {}, "adamw", {"mask": lambda p: p.ndim > 1}, ValueError),
    )  # fmt: skip

    @pytest.mark.parametrize("case", range(len(MADE)))
    def test_another_optimiser_is_refused(self, case, tmp_path):
        name, given, other, wanted, error = self.MADE[case]

        def run(name, given, epochs):
            model = make(moody)
            optimizer = getattr(relay.optim, name)(model, **given)
            before = [a.copy() for a in (*model.arrays, *optimizer.arrays)]
            options = {"batch_size": 4, "checkpoint": tmp_path, "optimizer": optimizer, "verbose": False}
            try:
                relay.fit(model, relay(executor="interpreter")(moody_loss), data(), epochs, **options)
            except (KeyError, ValueError):
                assert all(
                    np.array_equal(a, b) for a, b in zip(before, (*model.arrays, *optimizer.arrays), strict=True)
                )
                raise
            return optimizer

        run(name, given, 1)
        with pytest.raises(error, match="made with"):
            run(other, wanted, 2)
        run(name, given, 2)

    def test_what_callbacks_set_goes_on(self, tmp_path):
        """The learning rate of the file is that of a callback, and the one that the program gives is the same as before."""

        class Halve(relay.Callback):
            def on_epoch_end(self, run):
                run.optimizer.lr = run.optimizer.lr / 2

        def run(epochs, folder, model=None, optimizer=None):
            model = model or make(moody)
            optimizer = optimizer or relay.optim.adam(model, lr=relay.optim.schedules.linear(0.1, 0.05, 9))
            options = {"batch_size": 4, "checkpoint": folder, "optimizer": optimizer, "verbose": False}
            of = relay(executor="interpreter")(moody_loss)
            relay.fit(model, of, data(), epochs, callbacks=[Halve()], **options)
            return model, optimizer

        whole = run(3, None)
        for again in (run(1, tmp_path), run(2, tmp_path)):
            model, optimizer = run(3, tmp_path / str(again[1].lr), *run(1, tmp_path / str(again[1].lr)))
            for a, b in zip((*whole[0].arrays, *whole[1].arrays), (*model.arrays, *optimizer.arrays), strict=True):
                np.testing.assert_array_equal(a, b)
            assert optimizer.lr == whole[1].lr
        model, optimizer = run(3, tmp_path)
        assert same(whole[0], model)
        optimizer.lr = 0.3
        with pytest.raises(ValueError, match=r"lr=0\.3, beta1.*a callback sets run\.optimizer\.lr"):
            run(3, tmp_path, model, optimizer)


PROGRAM = """
    import os, sys, signal
    import numpy as np
    from myia_relay import Float, Tensor, relay, relay_model
    from myia_relay.model import training
    training.CHECKPOINT_SECONDS = 0.0
    training.LONGEST_CHUNK = 3

    @relay_model
    def net(x: Tensor[Float, 4]) -> Tensor[Float, 3]:
        return relay.linear(relay.dropout(relay.linear(x, num_hidden=5), 0.2), num_hidden=3)

    @relay
    def loss(x, y):
        return relay.softmax_cross_entropy(net(x), y)

    class Die:
        def on_epoch_end(self, run):
            if run.epoch == 3 and sys.argv[2] == "die":
                os.kill(os.getpid(), signal.SIGKILL)

    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 4)).astype(np.float32)
    y = np.eye(3, dtype=np.float32)[rng.integers(0, 3, 50)]
    model = relay.create_model(net)
    history = relay.fit(model, loss, (x, y), epochs=6, batch_size=8, checkpoint=sys.argv[1] or None, verbose=False,
                        callbacks=[Die()])
    print(history.steps, *[a.tobytes().hex() for a in model.arrays], np.float64(history["loss"]).tobytes().hex())
"""


@pytest.mark.campaign  # tests/programs/test_killed.py has a shorter one
def test_a_process_that_is_killed(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(PROGRAM))

    def run(*args):
        return subprocess.run([sys.executable, path, *args], capture_output=True, text=True, timeout=300)

    whole = run("", "live")
    assert whole.returncode == 0, whole.stderr
    folder = str(tmp_path / "run")
    assert run(folder, "die").returncode == -signal.SIGKILL
    again = run(folder, "live")
    assert again.stdout == whole.stdout and again.stdout.startswith("42 ")


class TestData:
    def test_batches_are_the_arrays(self, chosen):
        one, first = fit(of=chosen(loss), epochs=2)
        for prefetch in (0, 2):
            loop = relay.data.batches(data(), 4, prefetch=prefetch)
            other, second = fit(of=chosen(loss), examples=loop, batch_size=None, epochs=2)
            assert same(one, other) and first.losses == second.losses and first["loss"] == second["loss"]

    def test_a_generator(self):
        x, y = data()
        loop = relay.data.batches(lambda: zip(x, y, strict=True), 4, shuffle=False)
        one, first = fit(shuffle=False, epochs=2)
        other, second = fit(examples=loop, batch_size=None, epochs=2, validation_data=loop)
        assert same(one, other) and first.losses == second.losses and second["steps"] == [6, 6]

    def test_files(self, tmp_path):
        x, y = data()
        np.save(tmp_path / "x.npy", x)
        np.save(tmp_path / "y.npy", y)
        one, _ = fit()
        other, _ = fit(examples=(tmp_path / "x.npy", tmp_path / "y.npy"))
        assert same(one, other)

    def test_strides_and_byte_orders(self):
        x, y = data()
        wide = np.zeros((23, 8), ">f4")
        wide[:, ::2] = x
        one, _ = fit()
        other, _ = fit(examples=(wide[:, ::2], y))
        assert same(one, other)

    def test_one_argument_and_dicts(self):
        x, y = data()
        squared = relay(executor="interpreter")(lambda x: np.sum(net(x) ** 2))
        _, history = fit(of=squared, examples=x)
        assert history["loss"][0] > 0
        named = relay(executor="interpreter")(lambda e: relay.softmax_cross_entropy(net(e["x"]), e["y"]))
        one, _ = fit()
        for examples in ({"x": x, "y": y}, [{"x": a, "y": b} for a, b in zip(x, y, strict=True)]):
            other, _ = fit(of=named, examples=examples)
            assert same(one, other)

    def test_three_arguments_and_nests(self):
        x, y = data()
        weighted = relay(executor="interpreter")(lambda x, t, w: w * relay.softmax_cross_entropy(net(x), t["y"]))
        one, _ = fit()
        other, _ = fit(of=weighted, examples=(x, {"y": y}, np.ones(23, np.float32)))
        for a, b in zip(one.arrays, other.arrays, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)

    def test_refused(self):
        x, y = data()
        with pytest.raises(TypeError_, match=r"the data are one argument, a tuple of inputs and targets: \(x, y\)"):
            relay.fit(make(), loss, x, y)
        with pytest.raises(TypeError_, match="leave batch_size out"):
            fit(examples=relay.data.batches((x, y), 4))
        with pytest.raises(ShapeError, match="fit: the arrays differ in length: 23 and 22 examples"):
            fit(examples=(x, y[1:]))
        for name, value in (("epochs", -1), ("accumulate", 0), ("early_stopping", 0), ("accumulate", 1.5)):
            with pytest.raises(ValueError_, match=f"fit: {name}={value} is an int of at least"):
                fit(**{name: value})


MASKED = np.ma.array(data()[0], mask=data()[0] > 1)


@pytest.mark.parametrize(
    "examples",
    [
        (MASKED, data()[1]),
        (data()[0], np.ma.array(data()[1])),
        relay.data.batches(lambda: zip(MASKED, data()[1], strict=True), 4),
        [*zip(MASKED, data()[1], strict=True)],
    ],
    ids=["inputs", "targets", "stream", "examples"],
)
def test_masked_arrays_are_refused(examples):
    """Their masks would be lost."""
    size = {"batch_size": None} if isinstance(examples, relay.data.batches((1.0 * data()[0],)).__class__) else {}
    with pytest.raises(TypeError_, match="a MaskedArray calculates by rules of its own.*which drops the mask"):
        fit(examples=examples, **size)


class TestPrecision:
    def test_products_of_bfloat16(self, chosen):
        """The first steps, by hand: operands of products are rounded, forward and backward, and nothing else."""
        x, y = data(8)
        model, history = fit(
            of=chosen(loss), examples=(x, y), batch_size=8, shuffle=False, precision="bfloat16", epochs=2
        )
        p = {n: a.astype(np.float32) for n, a in make().params.items()}
        for step in range(2):
            w0, b0, w1, b1 = p.values()
            h = np.tanh(rounded(x) @ rounded(w0).T + b0)
            z = rounded(h) @ rounded(w1).T + b1
            e = np.exp(z - z.max(1, keepdims=True))
            s = e / e.sum(1, keepdims=True)
            assert history.losses[step] == pytest.approx(-np.mean(np.log((s * y).sum(1))), rel=1e-4)
            dz = (s - y) / len(x)
            dh = rounded(dz) @ rounded(w1) * (1 - h * h)
            grads = (rounded(dh).T @ rounded(x), dh.sum(0), rounded(dz).T @ rounded(h), dz.sum(0))
            p = {n: a - np.float32(0.3) * g for (n, a), g in zip(p.items(), grads, strict=True)}
        for name, a in model.params.items():
            assert a.dtype == np.float32
            np.testing.assert_allclose(a, p[name], rtol=2e-3, atol=2e-5)
        exact, _ = fit(of=chosen(loss), examples=(x, y), batch_size=8, shuffle=False, epochs=2)
        assert any(np.abs(a - exact.params[n]).max() > 1e-5 for n, a in model.params.items())

    def test_it_learns_as_well(self):
        train, test = relay.datasets.digits()
        found = {}
        for precision in ("float32", "bfloat16"):
            model = relay.create_model(lenet_module.lenet)
            relay.fit(model, lenet_module.loss, train, epochs=4, precision=precision, verbose=False)
            found[precision] = lenet_module.accuracy(model, test)
        assert found["float32"] > 0.9 and abs(found["float32"] - found["bfloat16"]) < 0.03

    def test_refused(self, tmp_path):
        with pytest.raises(ValueError, match='precision=\'half\': choose "float32" or "bfloat16"'):
            fit(precision="half")
        fit(checkpoint=tmp_path)
        with pytest.raises(ValueError, match="made with precision=float32, not bfloat16"):
            fit(checkpoint=tmp_path, precision="bfloat16")


def rounded(a: np.ndarray) -> np.ndarray:
    return a.astype(ml_dtypes.bfloat16).astype(np.float32)


def test_a_history_without_an_epoch():
    _, history = fit(epochs=0)
    assert len(history) == 0 and history.steps == 0


def test_data_are_read_where_they_are():
    """Native code takes its slow path for arrays whose dtype is not NumPy's own object: for each chunk, if these were such."""
    x, y = data()
    images, targets = arguments((x, y)).tree
    assert images.dtype is x.dtype and np.shares_memory(images, x) and np.shares_memory(targets, y)
    swapped, _ = arguments((x.astype(x.dtype.newbyteorder("S")), y)).tree
    assert swapped.dtype.isnative and np.array_equal(swapped, x)


def test_arrays_with_a_dtype_of_their_own_are_not_copied():
    """Unpickled arrays have one, and what `newbyteorder` gives."""
    x = np.arange(6.0).reshape(2, 3)
    other = x.view(x.dtype.newbyteorder("="))
    assert other.dtype is not x.dtype
    found = conform(other, Array("float64", (2, 3)), "argument 0")
    assert found.dtype is x.dtype and np.shares_memory(found, x)
    assert relay(lambda x: 2.0 * x)(other).tolist() == (2.0 * x).tolist()

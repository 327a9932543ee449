"""`relay.fit` and the optimisers: against NumPy, reproducible, resumable, interruptible."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest

from myia_relay import Float, Tensor, relay, relay_model
from myia_relay.model import lenet as lenet_module
from myia_relay.model import steps as steps_module
from myia_relay.model import training as training_module
from myia_relay.model.batches import epoch_order
from myia_relay.model.feed import arguments, collected
from myia_relay.model.resume import Checkpoint
from myia_relay.utils.errors import ShapeError, TypeError_

CLASSES, WIDTH = 3, 4


@relay_model
def net(x: Tensor[Float, 4]) -> Tensor[Float, 3]:
    return relay.linear(relay.tanh(relay.linear(x, num_hidden=5)), num_hidden=3)


def net_loss(x, y):
    return relay.softmax_cross_entropy(net(x), y)


LOSSES = {name: relay(executor=name)(net_loss) for name in ("interpreter", "native")}
LENET = {name: relay(executor=name)(lenet_module.loss.__wrapped__) for name in ("interpreter", "native")}


def data(count: int = 24, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Random inputs float32 (count, 4) and one-hot targets float32 (count, 3)."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, WIDTH)).astype(np.float32)
    return x, np.eye(CLASSES, dtype=np.float32)[rng.integers(0, CLASSES, count)]


def make_model(seed: int = 0):
    return relay.create_model(net, seed=seed, init=0.5)


def gradients(params: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray):
    """The mean loss of a batch and its gradients, by hand, in float64."""
    w0, b0, w1, b1 = params.values()
    h = np.tanh(x @ w0.T + b0)
    z = h @ w1.T + b1
    top = z.max(axis=1, keepdims=True)
    lse = top + np.log(np.exp(z - top).sum(axis=1, keepdims=True))
    loss = float(np.mean(lse[:, 0] - (z * y).sum(axis=1)))
    dz = (np.exp(z - lse) - y) / len(x)
    dh = (dz @ w1) * (1 - h * h)
    return loss, dict(zip(params, (dh.T @ x, dh.sum(axis=0), dz.T @ h, dz.sum(axis=0)), strict=True))


class NumpySgd:
    """p -= lr * g"""

    def __init__(self, params, lr=0.01):
        self.params, self.lr = params, lr

    def step(self, grads):
        for name, g in grads.items():
            self.params[name] -= self.lr * g


class NumpyMomentum(NumpySgd):
    """v = momentum * v + g; p -= lr * v"""

    def __init__(self, params, lr=0.01, momentum=0.9):
        super().__init__(params, lr)
        self.momentum, self.v = momentum, {n: np.zeros_like(p) for n, p in params.items()}

    def step(self, grads):
        for name, g in grads.items():
            self.v[name] = self.momentum * self.v[name] + g
            self.params[name] -= self.lr * self.v[name]


class NumpyAdam(NumpySgd):
    """Algorithm 1 of Kingma and Ba."""

    def __init__(self, params, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8):
        super().__init__(params, lr)
        self.beta1, self.beta2, self.eps, self.t = beta1, beta2, eps, 0
        self.m = {n: np.zeros_like(p) for n, p in params.items()}
        self.v = {n: np.zeros_like(p) for n, p in params.items()}

    def step(self, grads):
        self.t += 1
        for name, g in grads.items():
            self.m[name] = self.beta1 * self.m[name] + (1 - self.beta1) * g
            self.v[name] = self.beta2 * self.v[name] + (1 - self.beta2) * g * g
            m = self.m[name] / (1 - self.beta1**self.t)
            v = self.v[name] / (1 - self.beta2**self.t)
            self.params[name] -= self.lr * m / (np.sqrt(v) + self.eps)


OPTIMISERS = {
    "sgd": (relay.optim.sgd, NumpySgd, {"lr": 0.5}),
    "momentum": (relay.optim.momentum, NumpyMomentum, {"lr": 0.2, "momentum": 0.8}),
    "adam": (relay.optim.adam, NumpyAdam, {"lr": 0.05, "beta1": 0.8, "beta2": 0.95, "eps": 1e-3}),
}


class TestOptimisers:
    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("executor", LOSSES)
    @pytest.mark.parametrize("name", OPTIMISERS)
    def test_fit_is_what_numpy_does(self, name, executor):
        make, reference, options = OPTIMISERS[name]
        x, y = data()
        model = make_model()
        params = {n: p.astype(np.float64) for n, p in model.params.items()}
        by_hand = reference(params, **options)
        losses = []
        for epoch in range(2):
            for rows in epoch_order(len(x), True, 7, epoch).reshape(-1, 8):
                loss, grads = gradients(params, x[rows], y[rows])
                losses.append(loss)
                by_hand.step(grads)
        optimiser = make(model, **options)
        history = relay.fit(
            model, LOSSES[executor], (x, y), epochs=2, batch_size=8, optimizer=optimiser, seed=7, verbose=False
        )
        np.testing.assert_allclose(history.losses, losses, rtol=2e-5)
        for n, p in model.params.items():
            np.testing.assert_allclose(p, params[n], rtol=2e-4, atol=2e-5, err_msg=n)

    @pytest.mark.parametrize("name", OPTIMISERS)
    def test_step_outside_of_compiled_code(self, name):
        make, reference, options = OPTIMISERS[name]
        x, y = data(1)
        model = make_model()
        params = {n: p.astype(np.float64) for n, p in model.params.items()}
        by_hand = reference(params, **options)
        optimiser = make(model, **options)
        arrays = [id(a) for a in model.arrays]
        for _ in range(3):
            optimiser.step(relay.grad(model, LOSSES["interpreter"], (x[0], y[0])))
            by_hand.step(gradients(params, x, y)[1])
        for n, p in model.params.items():
            np.testing.assert_allclose(p, params[n], rtol=2e-4, atol=2e-5, err_msg=n)
        assert [id(a) for a in model.arrays] == arrays  # in place

    def test_update_model_params(self):
        x, y = data(1)
        model = make_model()
        before = {n: p.copy() for n, p in model.params.items()}
        grads = relay.grad(model, LOSSES["interpreter"], (x[0], y[0]))
        relay.update_model_params(model, grads)
        for n, p in model.params.items():
            np.testing.assert_allclose(p, before[n] - np.float32(0.01) * grads[n], rtol=1e-6)
        relay.update_model_params(model, grads, lr=-0.01)
        for n, p in model.params.items():
            np.testing.assert_allclose(p, before[n], rtol=1e-6, atol=1e-7)

    def test_the_rate_changes_without_compiling_again(self):
        x, y = data()
        model = make_model()
        optimiser = relay.optim.sgd(model, lr=0.5)
        run = steps_module.training(LOSSES["interpreter"], "interpreter", False, None)
        relay.fit(model, LOSSES["interpreter"], (x, y), batch_size=8, optimizer=optimiser, verbose=False)
        compiled = run.cache_info().misses
        optimiser.lr = 0.0
        assert optimiser.lr == 0.0
        still = [p.copy() for p in model.arrays]
        relay.fit(model, LOSSES["interpreter"], (x, y), batch_size=8, optimizer=optimiser, verbose=False)
        assert all(np.array_equal(a, b) for a, b in zip(still, model.arrays, strict=True))
        assert run.cache_info().misses == compiled

    def test_one_program_serves_every_length_of_data(self):
        run = steps_module.training(LOSSES["interpreter"], "interpreter", False, None)
        model = make_model()
        optimiser = relay.optim.adam(model)
        for count in (16, 24, 40):
            relay.fit(model, LOSSES["interpreter"], data(count), batch_size=8, optimizer=optimiser, verbose=False)
        compiled = run.cache_info().misses
        relay.fit(model, LOSSES["interpreter"], data(64), batch_size=8, optimizer=optimiser, verbose=False)
        assert run.cache_info().misses == compiled

    def test_state_goes_round(self):
        model = make_model()
        one, other = relay.optim.adam(model, lr=0.1), relay.optim.adam(model)
        one.step({n: np.ones_like(p) for n, p in model.params.items()})
        other.load_state({n: a.copy() for n, a in one.state().items()})
        assert all(np.array_equal(a, b) for a, b in zip(one.arrays, other.arrays, strict=True))
        assert other.lr == 0.1 and float(other.state()["t"]) == 1.0

    def test_an_optimiser_shows_itself(self):
        assert "adam(lr=0.001, beta1=0.9" in repr(relay.optim.adam(make_model()))

    def test_an_optimiser_needs_a_model(self):
        with pytest.raises(TypeError_, match="adam needs a model, not dict"):
            relay.optim.adam({})


class TestLenet:
    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("batch", [8, 64])
    def test_native_steps_are_the_interpreters(self, batch):
        """Labels are gathered in the kernel that reads the scores: its results once overwrote them before they were read."""
        train, _ = relay.datasets.digits()
        models = {name: relay.create_model(lenet_module.lenet) for name in LENET}
        losses = {
            name: relay.fit(models[name], LENET[name], train[: 2 * batch], batch_size=batch, verbose=False).losses
            for name in LENET
        }
        np.testing.assert_allclose(losses["native"], losses["interpreter"], rtol=1e-5)
        assert losses["native"][0] == pytest.approx(np.log(10), abs=0.05)
        for n, p in models["native"].params.items():
            # Adam's first steps are the rate times the sign of a gradient that may be rounding noise around zero.
            apart = np.abs(p - models["interpreter"].params[n])
            assert np.quantile(apart, 0.99) < 1e-5, n

    def test_figure_4_learns(self):
        train, _ = relay.datasets.digits()
        model = lenet_module.train_lenet(train[:200])
        by_hand = relay.create_model(lenet_module.lenet)
        for x, y in train[:3]:
            relay.update_model_params(by_hand, relay.grad(by_hand, lenet_module.loss, (x, y)))
        compiled = lenet_module.train_lenet(train[:3])
        for n, p in compiled.params.items():
            np.testing.assert_allclose(p, by_hand.params[n], rtol=1e-4, atol=1e-6, err_msg=n)
        assert model.num_params == by_hand.num_params == 431_080


class TestReproducible:
    def run(self, **options):
        model = make_model()
        history = relay.fit(model, LOSSES["interpreter"], data(), batch_size=5, verbose=False, **options)
        return [p.copy() for p in model.arrays], history

    def test_the_same_seed_gives_the_same_bits(self):
        (one, first), (two, second) = self.run(epochs=2, seed=3), self.run(epochs=2, seed=3)
        assert first.losses == second.losses
        assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))

    def test_another_seed_another_order(self):
        assert self.run(seed=3)[1].losses != self.run(seed=4)[1].losses

    def test_orders(self):
        order = epoch_order(10, True, 0, 0)
        assert order.dtype == np.int64 and sorted(order) == list(range(10))
        assert not np.array_equal(order, epoch_order(10, True, 0, 1))  # every epoch has its own
        assert np.array_equal(epoch_order(10, False, 0, 1), np.arange(10))

    def test_history(self):
        seen = []

        def metric(model):
            seen.append(model)
            return float(len(seen))

        _, history = self.run(epochs=3, metrics={"iteration": metric})
        assert len(history.losses) == 3 * 5 and history["steps"] == [5, 5, 5]
        assert history["iteration"] == [1.0, 2.0, 3.0]
        for epoch, mean in enumerate(history["loss"]):
            losses = history.losses[5 * epoch : 5 * epoch + 5]
            assert mean == pytest.approx(np.average(losses, weights=[5, 5, 5, 5, 4]))

    def test_it_learns(self):
        x, _ = data(64)
        y = np.eye(CLASSES, dtype=np.float32)[np.argmax(x[:, :CLASSES], axis=1)]
        model = make_model()
        history = relay.fit(
            model,
            LOSSES["interpreter"],
            (x, y),
            epochs=20,
            batch_size=16,
            optimizer=relay.optim.adam(model, lr=0.05),
            verbose=False,
        )
        assert history["loss"][-1] < 0.3 * history["loss"][0]


class Stop(Exception):
    """What kills a run in these tests."""


class TestCheckpoint:
    def whole(self, epochs: int):
        model = make_model()
        history = relay.fit(model, LOSSES["interpreter"], data(), epochs=epochs, batch_size=4, verbose=False)
        return model, history

    def resumable(self, folder, epochs: int, **options):
        model = make_model(seed=99)  # whatever a new process starts with is replaced
        optimiser = relay.optim.adam(model)
        settings = {"batch_size": 4, "optimizer": optimiser, "checkpoint": folder, "verbose": False} | options
        return model, relay.fit(model, LOSSES["interpreter"], data(), epochs=epochs, **settings)

    def test_taken_up_after_an_epoch(self, tmp_path):
        first, _ = self.whole(1)
        model = make_model()
        relay.fit(model, LOSSES["interpreter"], data(), batch_size=4, checkpoint=tmp_path, verbose=False)
        assert all(np.array_equal(a, b) for a, b in zip(first.arrays, model.arrays, strict=True))
        resumed, history = self.resumable(tmp_path, 3)
        whole, expected = self.whole(3)
        assert history.losses == expected.losses
        assert all(np.array_equal(a, b) for a, b in zip(whole.arrays, resumed.arrays, strict=True))

    def test_taken_up_within_an_epoch(self, tmp_path, monkeypatch):
        """Killed at an arbitrary step: what the last checkpoint has, and no more, is taken up."""
        monkeypatch.setattr(training_module, "CHECKPOINT_SECONDS", 0.0)
        monkeypatch.setattr(training_module, "CHUNK_SECONDS", 0.0)  # one step in each chunk
        saved = []
        save = Checkpoint.save

        def save_and_die(self, run):
            save(self, run)
            saved.append(run.position())
            if len(saved) == 9:
                raise Stop

        model = make_model()
        with monkeypatch.context() as patch:
            patch.setattr(Checkpoint, "save", save_and_die)
            with pytest.raises(Stop):
                relay.fit(
                    model, LOSSES["interpreter"], data(), epochs=3, batch_size=4, checkpoint=tmp_path, verbose=False
                )
        assert saved[-1]["batch"] > 0
        resumed, history = self.resumable(tmp_path, 3)
        whole, expected = self.whole(3)
        assert history.losses == expected.losses
        assert all(np.array_equal(a, b) for a, b in zip(whole.arrays, resumed.arrays, strict=True))

    def test_a_finished_run_is_not_repeated(self, tmp_path):
        self.resumable(tmp_path, 2)
        model, history = self.resumable(tmp_path, 2)
        whole, _ = self.resumable(tmp_path / "other", 2)
        assert len(history.losses) == 12
        assert all(np.array_equal(a, b) for a, b in zip(whole.arrays, model.arrays, strict=True))

    def test_other_settings_are_refused(self, tmp_path):
        self.resumable(tmp_path, 1)
        with pytest.raises(ValueError, match="made with batch_size=4, not 8"):
            self.resumable(tmp_path, 2, batch_size=8)


class TestInterrupt:
    def test_ctrl_c_leaves_a_whole_step(self, monkeypatch, interruptible):
        """SIGINT while a chunk runs: every parameter has seen the same number of steps."""
        x, y = data()
        states = {tuple(p.tobytes() for p in make_model().arrays)}
        reference = make_model()
        optimiser = relay.optim.sgd(reference, lr=0.1)
        monkeypatch.setattr(training_module, "CHUNK_SECONDS", 0.0)
        run = steps_module.training(LOSSES["interpreter"], "interpreter", False, None)
        for epoch in range(4):
            for rows in epoch_order(len(x), True, 0, epoch).reshape(-1, 4):
                run(reference, optimiser, arguments((x, y)), rows[None], np.zeros(1, np.float32))
                states.add(tuple(p.tobytes() for p in reference.arrays))
        model = make_model()
        calls = []

        def metric(_):
            calls.append(1)
            if len(calls) == 2:
                # As the terminal does, from outside of the training loop.
                sender = threading.Thread(target=signal.raise_signal, args=(signal.SIGINT,))
                sender.start()
                sender.join()
            return 0.0

        with pytest.raises(KeyboardInterrupt):
            relay.fit(
                model,
                LOSSES["interpreter"],
                (x, y),
                epochs=1000,
                batch_size=4,
                optimizer=relay.optim.sgd(model, lr=0.1),
                metrics={"calls": metric},
                verbose=False,
            )
        assert tuple(p.tobytes() for p in model.arrays) in states

    @pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer to interrupt with")
    def test_ctrl_c_within_a_native_chunk(self, monkeypatch, interruptible):
        """The signal comes in the middle of thousands of native steps, and stops them early, between two of them."""
        x, y = data(4096)
        model = make_model()
        twin = make_model()
        optimiser = relay.optim.adam(model, lr=1e-3)
        options = {"epochs": 10**4, "batch_size": 1, "shuffle": False, "verbose": False}
        relay.fit(twin, LOSSES["native"], (x[:2], y[:2]), batch_size=1, verbose=False)  # compiled before the clock runs
        monkeypatch.setattr(training_module, "CHUNK_SECONDS", 1e9)  # chunks as long as an epoch
        old = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            with pytest.raises(KeyboardInterrupt):
                relay.fit(model, LOSSES["native"], (x, y), optimizer=optimiser, **options)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)
        steps = int(optimiser.state()["t"])
        assert steps > 0
        # Exactly so many steps from the start lead to exactly this model.
        again = make_model()
        fresh = relay.optim.adam(again, lr=1e-3)
        run = steps_module.training(LOSSES["native"], "native", False, None)
        rows = np.arange(steps, dtype=np.int64)[:, None] % len(x)
        run(again, fresh, arguments((x, y)), rows, np.zeros(steps, np.float32))
        assert all(np.array_equal(a, b) for a, b in zip(model.arrays, again.arrays, strict=True))
        assert all(np.array_equal(a, b) for a, b in zip(optimiser.arrays, fresh.arrays, strict=True))


class TestRefusals:
    def test_no_model(self):
        with pytest.raises(TypeError_, match="fit needs a model, not function; make one with relay.create_model"):
            relay.fit(lambda x: x, LOSSES["interpreter"], data())

    def test_an_optimiser_of_another_model(self):
        with pytest.raises(TypeError_, match="optimizer is of another model"):
            relay.fit(make_model(), LOSSES["interpreter"], data(), optimizer=relay.optim.adam(make_model()))

    def test_batches_that_cannot_be(self):
        for size, drop in ((0, False), (25, True)):
            with pytest.raises(ValueError, match=f"batch_size={size} for 24 examples"):
                relay.fit(make_model(), LOSSES["interpreter"], data(), batch_size=size, drop_last=drop)

    def test_inputs_of_a_wrong_shape(self):
        x, y = data()
        with pytest.raises(ShapeError) as caught:
            relay.fit(make_model(), LOSSES["interpreter"], (x[:, :3], y), batch_size=8, verbose=False)
        assert "4" in str(caught.value) and "3" in str(caught.value)

    def test_inputs_of_a_wrong_dtype(self):
        x, y = data()
        with pytest.raises(TypeError_) as caught:
            relay.fit(make_model(), LOSSES["interpreter"], (x.astype(np.float64), y), batch_size=8, verbose=False)
        assert "float64" in str(caught.value) and "astype" in str(caught.value)

    def test_arrays_that_differ_in_length(self):
        x, y = data()
        with pytest.raises(ShapeError, match="the arrays differ in length: 24 and 23 examples"):
            collected((x, y[1:]))

    def test_no_data(self):
        for nonsense in (3, [object()], [(np.zeros(3), 1), (np.zeros(4), 2)]):
            with pytest.raises((TypeError_, ShapeError), match="data must be arrays, a dataset|differ in shape"):
                collected(nonsense)
        with pytest.raises(TypeError_, match=r"relay.data.batches\(\.\.\.\): there are no examples"):
            collected([])

    def test_examples_are_stacked(self):
        x, y = data(3)
        xs, ys = collected(list(zip(x, y, strict=True)))
        assert np.array_equal(xs, x) and np.array_equal(ys, y)


def test_the_progress_bar_goes_to_stderr(capsys):
    pytest.importorskip("tqdm")
    relay.fit(make_model(), LOSSES["interpreter"], data(), batch_size=8, verbose=True)
    out, err = capsys.readouterr()
    assert not out and "epoch 1/1" in err and "loss=" in err

"""State of models, training and inference: batch normalisation, dropout, files, resumed runs."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import Float, Tensor, relay, relay_model
from myia_relay.utils.errors import CompileError, GradError, ShapeError, TypeError_, ValueError_

EXECUTORS = ("interpreter", "python", "native")
RNG = np.random.default_rng(5)
X = RNG.standard_normal((6, 3)).astype(np.float32)
Y = RNG.standard_normal((6, 2)).astype(np.float32)
IMAGES = RNG.standard_normal((4, 2, 3, 3)).astype(np.float32)
EPS = 1e-5


@relay_model
def net(x: Tensor[Float, 3]):
    return relay.linear(relay.batch_norm(relay.linear(x, 4), momentum=0.25), 2)


def net_loss(x, y):
    return relay.mse_loss(net(x), y)


def forward(p, x, mean=None, var=None):
    """The network and what batch normalisation saw, by hand."""
    h = x @ p["linear_0.weight"].T + p["linear_0.bias"]
    mean, var = (h.mean(0), h.var(0)) if mean is None else (mean, var)
    n = (h - mean) / np.sqrt(var + EPS) * p["batch_norm_0.weight"] + p["batch_norm_0.bias"]
    return n @ p["linear_1.weight"].T + p["linear_1.bias"], h


def wide(arrays):
    return {n: a.astype(np.float64) for n, a in arrays.items()}


class TestBatchNorm:
    def test_names_and_first_values(self):
        model = relay.create_model(net)
        assert list(model.state) == ["batch_norm_0.running_mean", "batch_norm_0.running_var"]
        assert (model.params["batch_norm_0.weight"] == 1).all() and not model.params["batch_norm_0.bias"].any()
        assert not model.state["batch_norm_0.running_mean"].any()
        assert (model.state["batch_norm_0.running_var"] == 1).all()
        assert model.num_params == 16 + 8 + 10
        assert not any("running" in n for n in model.params)

    @pytest.mark.parametrize("executor", EXECUTORS)
    def test_training_sees_the_whole_batch_and_moves_the_running_statistics(self, executor):
        model = relay.create_model(net, init=0.7)
        loss = relay(lambda x, y: relay.batch_mean(net_loss)(x, y), executor=executor)
        p = wide(model.params)
        out, h = forward(p, X)
        value, grads = relay.value_and_grad(model, loss, (X, Y))
        assert value == pytest.approx(((out - Y) ** 2).mean(), rel=1e-5)
        assert list(grads) == list(model.params)
        np.testing.assert_allclose(model.state["batch_norm_0.running_mean"], 0.25 * h.mean(0), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(model.state["batch_norm_0.running_var"], 0.75 + 0.25 * h.var(0, ddof=1), rtol=1e-4)
        for name, g in grads.items():  # slopes of the formula, whose statistics move with the parameters
            direction = np.random.default_rng(1).standard_normal(p[name].shape)
            ends = []
            for sign in (1, -1):
                moved = {**p, name: p[name] + sign * 1e-5 * direction}
                ends.append(((forward(moved, X.astype(np.float64))[0] - Y) ** 2).mean())
            slope = (ends[0] - ends[1]) / 2e-5
            assert float(np.sum(g * direction)) == pytest.approx(slope, rel=2e-3, abs=2e-5), name

    @pytest.mark.parametrize("executor", EXECUTORS)
    def test_inference_takes_the_running_statistics(self, executor):
        model = relay.create_model(net, init=0.7)
        model.state = {"batch_norm_0.running_mean": np.arange(4), "batch_norm_0.running_var": np.arange(1, 5)}
        wanted, _ = forward(wide(model.params), X, np.arange(4), np.arange(1, 5))
        np.testing.assert_allclose(model(X[0]), wanted[0], rtol=1e-4)
        run = relay(lambda model, x: model(x), executor=executor)
        np.testing.assert_allclose(run(model, X[0]), wanted[0], rtol=1e-4)
        loss = relay(lambda x, y: relay.batch_mean(net_loss)(x, y), executor=executor)
        value = relay.value_and_grad(model, loss, (X, Y), training=False)[0]
        assert value == pytest.approx(((wanted - Y) ** 2).mean(), rel=1e-4)
        assert relay.grad(model, loss, (X, Y), training=False)["linear_0.bias"].any()  # statistics do not cancel it
        assert model.state["batch_norm_0.running_var"].tolist() == [1, 2, 3, 4]

    def test_a_call_that_trains(self):
        model = relay.create_model(net, init=0.7)
        before = model(X[0])
        model(X[0], training=True)
        assert model.state["batch_norm_0.running_mean"].any()
        assert not np.array_equal(before, model(X[0]))

    def test_a_batch_given_whole_and_images(self):
        @relay_model
        def whole(x: Tensor[Float, (4, 2, 3, 3)]):
            return relay.batch_norm(x)

        @relay_model
        def one(x: Tensor[Float, (2, 3, 3)]):
            return relay.batch_norm(x)

        wanted = (IMAGES - IMAGES.mean((0, 2, 3), keepdims=True)) / np.sqrt(IMAGES.var((0, 2, 3), keepdims=True) + EPS)
        models = relay.create_model(whole), relay.create_model(one)
        np.testing.assert_allclose(models[0](IMAGES, training=True), wanted, rtol=1e-4, atol=1e-5)

        @relay(executor="interpreter")
        def loss(x, w):
            return np.sum(relay.vmap(lambda x: one(x))(x) * w)

        relay.grad(models[1], loss, (IMAGES, IMAGES))
        for name, array in models[0].state.items():
            np.testing.assert_allclose(array, models[1].state[name], rtol=1e-5, err_msg=name)
        alone = relay.create_model(one)
        relay.grad(alone, relay(lambda x: np.sum(one(x)), executor="interpreter"), (IMAGES[0],))
        np.testing.assert_allclose(
            alone.state["batch_norm_0.running_mean"], 0.1 * IMAGES[0].mean((1, 2)), rtol=1e-4, atol=1e-7
        )

    def test_a_plain_function(self):
        x = X.astype(np.float64)
        w, c, m, v = (RNG.uniform(0.5, 2, 3) for _ in range(4))
        np.testing.assert_allclose(relay.batch_norm(x, w, c, m, v), (x - m) / np.sqrt(v + EPS) * w + c, rtol=1e-10)
        y, mean, var = relay(lambda *a: relay.batch_norm(*a, training=True, momentum=0.5), executor="interpreter")(
            x, w, c, m, v
        )
        np.testing.assert_allclose(y, (x - x.mean(0)) / np.sqrt(x.var(0) + EPS) * w + c, rtol=1e-10)
        np.testing.assert_allclose(mean, (m + x.mean(0)) / 2, rtol=1e-10)
        np.testing.assert_allclose(var, (v + x.var(0, ddof=1)) / 2, rtol=1e-10)

    @pytest.mark.parametrize("executor", EXECUTORS)
    def test_a_shared_layer_moves_its_statistics_in_every_iteration(self, executor):
        @relay_model
        def looped(x: Tensor[Float, (6, 3)]):
            for _ in range(3):
                x = relay.batch_norm(x * 2.0 + 1.0)
            return x

        model = relay.create_model(looped)
        loss = relay(lambda x: np.sum(looped(x) ** 2), executor=executor)
        relay.grad(model, loss, (X,))
        x, mean, var = X.astype(np.float64), np.zeros(3), np.ones(3)
        for _ in range(3):
            h = 2 * x + 1
            mean, var = 0.9 * mean + 0.1 * h.mean(0), 0.9 * var + 0.1 * h.var(0, ddof=1)
            x = (h - h.mean(0)) / np.sqrt(h.var(0) + EPS)
        np.testing.assert_allclose(model.state["batch_norm_0.running_mean"], mean, rtol=1e-3)
        np.testing.assert_allclose(model.state["batch_norm_0.running_var"], var, rtol=1e-3)

    def test_the_directions_of_a_jacobian_are_no_examples(self):
        def plain(x):
            ones = np.ones(3)
            return relay.batch_norm(x, ones, ones, ones, ones, training=True)[0]

        def by_hand(x):
            return (x - x.mean(0)) / np.sqrt(x.var(0) + EPS) + 1

        x = X.astype(np.float64)
        found = relay.jacrev(relay(plain, executor="interpreter"))(x)
        for place in ((0, 0), (4, 2)):
            step = np.zeros_like(x)
            step[place] = 1e-6
            slope = (by_hand(x + step) - by_hand(x - step)) / 2e-6
            np.testing.assert_allclose(found[(..., *place)], slope, atol=1e-6)

    def test_refusals(self):
        def updated(m, v):
            relay.update_model_params(m, relay.grad(m, net_loss, (X[0], Y[0])))
            return np.sum(v)

        def some(x, y):
            out = net(x) if np.sum(x) > 0 else x[:2]
            return relay.mse_loss(out, y)

        model = relay.create_model(net)
        with pytest.raises(TypeError_, match="only some examples of the batch run"):
            relay.grad(model, relay(lambda x, y: relay.batch_mean(some)(x, y)), (X, Y))
        with pytest.raises(GradError, match="a model is updated inside of a differentiated function"):
            relay.grad(relay(lambda v, m: relay.checkpoint(updated)(m, v)))(X[0], model)
        with pytest.raises(ShapeError, match="running_mean has shape"):
            relay.batch_norm(X, X[0], X[0], X[:, 0], X[0])
        with pytest.raises(TypeError_, match="training= is an option"):
            relay.grad(net_loss, training=False)
        with pytest.raises(TypeError, match="must be called in a function decorated with @relay_model"):
            relay(lambda x: relay.batch_norm(x))(X)
        with pytest.raises(KeyError, match="no parameter 'batch_norm_0.mean'"):
            model.state["batch_norm_0.mean"]


class TestCheckpoints:
    """What runs a second time moves no statistics: gradients and state are those without checkpoints."""

    @pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
    @pytest.mark.parametrize("lifted", [False, True])
    @pytest.mark.parametrize("depth", [1, 2])
    @pytest.mark.sampled(6)
    def test_the_same_as_without(self, executor, lifted, depth):
        def hidden(x):
            return relay.tanh(relay.batch_norm(relay.dropout(relay.linear(x, 5), 0.3)))

        again = relay.checkpoint(hidden)
        twice = relay.checkpoint(lambda x: again(x) * 2)

        def run(inner):
            @relay_model
            def deep(x: Tensor[Float, 3]) -> Tensor[Float, 2]:
                return relay.linear(inner(x), 2)

            def one(x, y):
                return relay.mse_loss(deep(x), y)

            model = relay.create_model(deep, seed=1, init=0.5)
            optimiser = relay.optim.sgd(model, lr=0.1)
            loss = relay(executor=executor)(one)
            for _ in range(2):
                args = (X, Y) if lifted else (X[0], Y[0])
                optimiser.step(relay.grad(model, relay.batch_mean(loss) if lifted else loss, args))
            return model

        plain = run(hidden if depth == 1 else lambda x: hidden(x) * 2)
        kept = run(again if depth == 1 else twice)
        assert list(plain.state) == list(kept.state) == ["batch_norm_0.running_mean", "batch_norm_0.running_var"]
        for name, value in plain.saved().items():
            np.testing.assert_allclose(kept.saved()[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
        assert not np.allclose(plain.state["batch_norm_0.running_mean"], 0)


# Dropout.


@relay_model
def dropped(x: Tensor[Float, 32]):
    return relay.dropout(x * relay.parameter("scale", 32, init="ones"), 0.25)


def total(x):
    return np.sum(dropped(x))


ONES = np.ones(32, np.float32)


def masks(model, loss, *args, executor="interpreter"):
    return relay.grad(model, relay(loss, executor=executor), args)["scale_0"]


class TestDropout:
    def test_a_plain_function(self):
        key = relay.random.key(3)
        out = relay.dropout(np.ones((100, 100)), 0.25, key)
        assert set(np.unique(out)) == {0, 1 / 0.75}
        assert abs((out == 0).mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 1e4)
        np.testing.assert_array_equal(out, relay.dropout(np.ones((100, 100)), 0.25, key=key))

    def test_it_drops_while_training_only(self):
        model = relay.create_model(dropped)
        np.testing.assert_array_equal(model(ONES), ONES)
        mask = masks(model, total, ONES)
        assert set(np.unique(mask)) == {0, np.float32(1 / 0.75)}
        np.testing.assert_array_equal(
            relay.grad(model, relay(total, executor="interpreter"), (ONES,), training=False)["scale_0"], ONES
        )
        assert (model(ONES, training=True) == 0).any()

    @pytest.mark.parametrize("executor", ["python", "native"])
    def test_the_same_in_every_executor(self, executor):
        def batch(x):
            return relay.batch_mean(total)(x)

        model, x = relay.create_model(dropped), np.ones((5, 32), np.float32)
        np.testing.assert_array_equal(masks(model, total, ONES), masks(model, total, ONES, executor=executor))
        np.testing.assert_allclose(masks(model, batch, x), masks(model, batch, x, executor=executor), rtol=1e-6)

    def test_the_key_moves_with_each_update_and_is_saved(self, tmp_path):
        model = relay.create_model(dropped, seed=4)
        key, first = model.key, masks(model, total, ONES)
        np.testing.assert_array_equal(first, masks(model, total, ONES))  # a gradient alone changes nothing
        assert model.key == key == relay.create_model(dropped, seed=4).key != relay.create_model(dropped, seed=5).key
        relay.update_model_params(model, {"scale_0": np.zeros(32, np.float32)})
        assert model.key != key
        second = masks(model, total, ONES)
        assert not np.array_equal(first, second)
        model.save(tmp_path / "m.safetensors")
        again = relay.load_model(dropped, tmp_path / "m.safetensors")
        assert again.key == model.key
        np.testing.assert_array_equal(masks(again, total, ONES), second)
        relay.optim.adam(model).step({"scale_0": np.zeros(32, np.float32)})
        assert model.key != again.key
        assert model.copy().key == model.key

    def test_every_example_iteration_and_call_draws_for_itself(self):
        def parts(x):
            return relay.vmap(lambda w: np.sum(dropped(x) * w))

        def examples(x):
            weights = np.asarray([1.0, 10.0, 100.0], np.float32)
            return np.sum(relay.vmap(lambda x: np.sum(dropped(x)))(x) * weights)

        def iterations(x):
            out = np.float32(0.0)
            for k in range(3):
                out += np.sum(dropped(x)) * np.float32(10.0) ** k
            return out

        def unrolled(x):
            out = np.float32(0.0)
            for weight in (1.0, 10.0, 100.0):
                out += np.sum(dropped(x)) * np.float32(weight)
            return out

        def calls(x):
            return np.sum(dropped(x)) + 10 * np.sum(dropped(x)) + 100 * np.sum(dropped(x))

        model = relay.create_model(dropped)
        for function, x in (
            (examples, np.ones((3, 32), np.float32)),
            (iterations, ONES),
            (unrolled, ONES),
            (calls, ONES),
        ):
            digits = np.rint(masks(model, function, x) * 0.75).astype(int)
            planes = np.array([digits // 10**k % 10 for k in range(3)])
            assert set(np.unique(planes)) == {0, 1}, function
            assert all((planes[i] != planes[j]).any() for i, j in ((0, 1), (0, 2), (1, 2))), function

    def test_layers_differ_and_a_layer_in_a_loop_too(self):
        @relay_model
        def two(x: Tensor[Float, 32]):
            s = relay.parameter("scale", 32, init="ones")
            return relay.dropout(s, 0.5) + 10 * relay.dropout(s, 0.5)

        @relay_model
        def inside(x: Tensor[Float, 32]):
            s, out = relay.parameter("scale", 32, init="ones"), np.zeros(32, np.float32)
            for k in range(2):
                out = out + relay.dropout(s, 0.5) * np.float32(10.0) ** k
            return out

        for function in (two, inside):
            loss = relay(lambda x, f=function: np.sum(f(x)), executor="interpreter")
            digits = np.rint(relay.grad(relay.create_model(function), loss, (ONES,))["scale_0"] / 2).astype(int)
            assert (digits % 10 != digits // 10).any() and set(np.unique(digits)) <= {0, 1, 10, 11}

    def test_training_is_repeatable_bit_for_bit_and_resumes_exactly(self, tmp_path):
        @relay_model
        def both(x: Tensor[Float, 3]):
            h = relay.relu(relay.batch_norm(relay.linear(x, 8)))
            return relay.linear(relay.dropout(h, 0.5), 2)

        @relay
        def loss(x, y):
            return relay.mse_loss(both(x), y)

        def trained(epochs, directory=None):
            model = relay.create_model(both, seed=2)
            relay.fit(model, loss, (X, Y), epochs=epochs, batch_size=3, verbose=False, checkpoint=directory)
            return model

        whole = trained(4)
        for other in (trained(4), (trained(2, tmp_path), trained(4, tmp_path))[1]):
            for name, array in whole.saved().items():
                np.testing.assert_array_equal(array, other.saved()[name], err_msg=name)

    def test_refusals(self):
        def unending(x):
            out = np.float32(0.0)
            while out < 100.0:
                out += np.sum(dropped(x))
            return out

        model = relay.create_model(dropped)
        with pytest.raises(TypeError_, match="write a `for` over a range") as caught:
            masks(model, unending, ONES)
        assert isinstance(caught.value, CompileError) and "dropped(x)" in str(caught.value)
        with pytest.raises(TypeError_, match=r"give it a key: relay\.dropout\(x, rate, key=key\)"):
            relay(lambda x: relay.dropout(x, 0.5), executor="interpreter")(ONES)

        @relay_model
        def wrong(x: Tensor[Float, 32]):
            return relay.dropout(x, 1.5)

        with pytest.raises(ValueError_, match="rate=1.5"):
            relay.create_model(wrong)


def test_files_hold_parameters_and_state(tmp_path):
    model = relay.create_model(net)
    model(X[0], training=True)
    model.save(tmp_path / "m.safetensors")
    again = relay.load_model(net, tmp_path / "m.safetensors")
    for name, array in model.saved().items():
        np.testing.assert_array_equal(array, again.saved()[name])
    np.testing.assert_array_equal(model(X[0]), again(X[0]))
    exported = relay.export_model(model)
    np.testing.assert_array_equal(exported(X[0]), model(X[0]))
    exported.save(tmp_path / "m.so")
    np.testing.assert_array_equal(relay.load_compiled(tmp_path / "m.so")(X[0]), model(X[0]))

"""`relay.optim` on trees and models: against NumPy written from the papers' formulas, in all executors."""

from __future__ import annotations

import dataclasses
import math
import pickle

import numpy as np
import pytest

from myia_relay import Float, Tensor, relay, relay_model
from myia_relay.utils.errors import CompileError, ShapeError, TypeError_, ValueError_

optim, schedules = relay.optim, relay.optim.schedules
EXECUTORS = ("interpreter", "python", "native")
STEPS = 4


# What the papers say: (parameter, gradient, memory of the parameter, number of the step from 1, hyper-parameters) -> parameter.


def numpy_sgd(p, g, memory, t, lr=0.01, momentum=0.0, nesterov=False, weight_decay=0.0):
    g = g + weight_decay * p
    v = memory["v"] = momentum * memory.get("v", 0.0) + g
    return p - lr * (g + momentum * v if nesterov else v)


def numpy_momentum(p, g, memory, t, momentum=0.9, **options):
    return numpy_sgd(p, g, memory, t, momentum=momentum, **options)


def numpy_adam(p, g, memory, t, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    g = g + weight_decay * p
    m = memory["m"] = beta1 * memory.get("m", 0.0) + (1 - beta1) * g
    v = memory["v"] = beta2 * memory.get("v", 0.0) + (1 - beta2) * g**2
    return p - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)


def numpy_adamw(p, g, memory, t, lr=1e-3, weight_decay=0.01, **options):
    return numpy_adam(p, g, memory, t, lr=lr, **options) - lr * weight_decay * p


def numpy_rmsprop(p, g, memory, t, lr=0.01, alpha=0.99, eps=1e-8, momentum=0.0, centered=False, weight_decay=0.0):
    g = g + weight_decay * p
    s = memory["s"] = alpha * memory.get("s", 0.0) + (1 - alpha) * g**2
    mean = memory["mean"] = alpha * memory.get("mean", 0.0) + (1 - alpha) * g
    d = g / (np.sqrt(s - mean**2 if centered else s) + eps)
    b = memory["b"] = momentum * memory.get("b", 0.0) + d
    return p - lr * b


def numpy_adagrad(p, g, memory, t, lr=0.01, eps=1e-10, initial=0.0, weight_decay=0.0):
    g = g + weight_decay * p
    s = memory["s"] = memory.get("s", initial) + g**2
    return p - lr * g / (np.sqrt(s) + eps)


def numpy_lion(p, g, memory, t, lr=1e-4, beta1=0.9, beta2=0.99, weight_decay=0.0):
    m = memory.get("m", 0.0)
    memory["m"] = beta2 * m + (1 - beta2) * g
    return p - lr * (np.sign(beta1 * m + (1 - beta1) * g) + weight_decay * p)


def numpy_lamb(p, g, memory, t, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-6, weight_decay=0.0):
    m = memory["m"] = beta1 * memory.get("m", 0.0) + (1 - beta1) * g
    v = memory["v"] = beta2 * memory.get("v", 0.0) + (1 - beta2) * g**2
    r = m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps) + weight_decay * p
    own, along = np.sqrt(np.sum(p**2)), np.sqrt(np.sum(r**2))
    return p - lr * (own / along if own > 0 and along > 0 else 1.0) * r


RULES = {
    "sgd": numpy_sgd,
    "momentum": numpy_momentum,
    "adam": numpy_adam,
    "adamw": numpy_adamw,
    "rmsprop": numpy_rmsprop,
    "adagrad": numpy_adagrad,
    "lion": numpy_lion,
    "lamb": numpy_lamb,
}

CASES = [
    ("sgd", {}),
    ("sgd", {"lr": 0.2, "momentum": 0.8}),
    ("sgd", {"lr": 0.2, "momentum": 0.8, "nesterov": True, "weight_decay": 0.3}),
    ("momentum", {"lr": 0.1}),
    ("momentum", {"lr": 0.1, "nesterov": True}),
    ("adam", {}),
    ("adam", {"lr": 0.1, "beta1": 0.7, "beta2": 0.8, "eps": 1e-2, "weight_decay": 0.2}),
    ("adamw", {}),
    ("adamw", {"lr": 0.1, "weight_decay": 0.4}),
    ("rmsprop", {}),
    ("rmsprop", {"lr": 0.1, "alpha": 0.9, "momentum": 0.5, "centered": True, "weight_decay": 0.1}),
    ("adagrad", {}),
    ("adagrad", {"lr": 0.3, "initial": 0.5, "weight_decay": 0.1}),
    ("lion", {}),
    ("lion", {"lr": 0.05, "beta1": 0.5, "weight_decay": 0.3}),
    ("lamb", {}),
    ("lamb", {"lr": 0.1, "weight_decay": 0.3}),
]
IDS = ["-".join([name, *options]) for name, options in CASES]


def params():
    rng = np.random.default_rng(1)
    return {"w": rng.standard_normal((2, 3)), "b": rng.standard_normal(3), "zero": np.zeros(2)}


def gradients(step: int):
    rng = np.random.default_rng([2, step])
    return {"w": rng.standard_normal((2, 3)), "b": rng.standard_normal(3), "zero": rng.standard_normal(2)}


def expected(name, options, start=None, rates=None, steps=STEPS):
    """Parameters after some steps, by NumPy; `rates`: the learning rate of every step."""
    out, memory = dict(params() if start is None else start), {}
    for i in range(steps):
        given = options if rates is None else {**options, "lr": rates[i]}
        for n, g in gradients(i).items():
            out[n] = RULES[name](out[n], g, memory.setdefault(n, {}), i + 1, **given)
    return out


def close(tree, want, **tolerance):
    assert list(tree) == list(want)
    for n in want:
        np.testing.assert_allclose(tree[n], want[n], **({"rtol": 1e-12, "atol": 1e-14} | tolerance), err_msg=n)


@relay_model
def net(x: Tensor[Float, 4]) -> Tensor[Float, 3]:
    return relay.linear(relay.tanh(relay.linear(x, num_hidden=5)), num_hidden=3)


def make_model():
    return relay.create_model(net, seed=0, init=0.5)


def model_gradients(model, step: int):
    rng = np.random.default_rng([3, step])
    return {n: rng.standard_normal(p.shape).astype(np.float32) for n, p in model.params.items()}


class TestRules:
    @pytest.mark.sampled(3)
    @pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
    def test_a_tree(self, name, options):
        opt = getattr(optim, name)(**options)
        tree = params()
        state = opt.init(tree)
        for i in range(STEPS):
            tree, state = opt.update(tree, gradients(i), state)
        close(tree, expected(name, options))
        assert state["t"] == STEPS

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("executor", EXECUTORS)
    @pytest.mark.parametrize(("name", "options"), [CASES[i] for i in (2, 6, 8, 10, 12, 14, 16)])
    def test_a_compiled_loop(self, name, options, executor):
        opt = getattr(optim, name)(**options)

        @relay(executor=executor)
        def run(tree, all_grads):
            state = opt.init(tree)
            for i in range(STEPS):
                grads = {"w": all_grads["w"][i], "b": all_grads["b"][i], "zero": all_grads["zero"][i]}
                tree, state = opt.update(tree, grads, state)
            return tree, state["t"]

        stacked = {n: np.stack([gradients(i)[n] for i in range(STEPS)]) for n in params()}
        tree, t = run(params(), stacked)
        close(tree, expected(name, options))
        assert t == STEPS

    @pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
    @pytest.mark.sampled(2)
    def test_a_model(self, name, options):
        model = make_model()
        opt = getattr(optim, name)(model, **options)
        want = {n: p.astype(np.float64) for n, p in model.params.items()}
        memory, arrays = {}, [id(a) for a in model.arrays]
        for i in range(STEPS):
            grads = model_gradients(model, i)
            opt.step(grads)
            for n, g in grads.items():
                want[n] = RULES[name](want[n], g.astype(np.float64), memory.setdefault(n, {}), i + 1, **options)
        close(dict(model.params), want, rtol=1e-4, atol=1e-5)
        assert [id(a) for a in model.arrays] == arrays

    @pytest.mark.parametrize("executor", EXECUTORS)
    def test_an_optimiser_made_in_compiled_code(self, executor):
        @relay(executor=executor)
        def run(tree, grads, lr):
            opt = optim.rmsprop(lr=lr, alpha=0.9, momentum=0.5, centered=True)
            state = opt.init(tree)
            tree, state = opt.update(tree, grads, state)
            return tree

        close(
            run(params(), gradients(0), 0.1),
            expected("rmsprop", {"lr": 0.1, "alpha": 0.9, "momentum": 0.5, "centered": True}, steps=1),
        )

    def test_float32_stays(self):
        tree = {n: p.astype(np.float32) for n, p in params().items()}
        for name in RULES:
            opt = getattr(optim, name)(lr=0.1)
            new, state = opt.update(tree, {n: g.astype(np.float32) for n, g in gradients(0).items()}, opt.init(tree))
            assert {a.dtype for a in new.values()} == {np.dtype(np.float32)}, name
            close(new, expected(name, {"lr": 0.1}, steps=1), rtol=1e-5, atol=1e-6)

    def test_off_keeps_nothing(self):
        assert set(optim.sgd(lr=0.1).init(params())) == {"t"}
        assert set(optim.sgd(lr=0.1, momentum=0.5).init(params())) == {"t", "velocity"}
        assert set(optim.sgd(make_model(), lr=0.1).state()) == {"lr"}
        assert set(optim.rmsprop().init(params())) == {"t", "square"}


@dataclasses.dataclass(frozen=True)
class Layer:
    w: np.ndarray
    scale: float
    count: int = 2


class TestTrees:
    @pytest.mark.parametrize("executor", EXECUTORS)
    def test_every_kind(self, executor):
        opt = optim.adam(lr=0.1)

        @relay(executor=executor)
        def run(tree, grads):
            state = opt.init(tree)
            tree, state = opt.update(tree, grads, state)
            return opt.update(tree, grads, state)

        tree = {"a": (np.ones(2), [np.ones((1, 2)), None]), "b": Layer(np.ones(2), 1.0), "c": np.float64(1.0)}
        grads = {"a": (np.ones(2), [np.ones((1, 2)), None]), "b": Layer(np.ones(2), 1.0, 0), "c": np.float64(1.0)}
        new, state = run(tree, grads)
        want, memory = 1.0, {}
        for t in (1, 2):
            want = numpy_adam(want, 1.0, memory, t, lr=0.1)
        for leaf in (new["a"][0], new["a"][1][0], new["b"].w, new["b"].scale, new["c"]):
            np.testing.assert_allclose(leaf, want, rtol=1e-12)
        assert type(new["b"]) is Layer and new["b"].count == 2 and type(new["b"].scale) is float
        assert new["a"][1][1] is None and state["m"]["b"].count is None
        np.testing.assert_allclose(state["v"]["a"][0], memory["v"], rtol=1e-12)

    def test_one_array(self):
        opt = optim.sgd(lr=0.5)
        new, _ = opt.update(np.ones(3), np.ones(3), opt.init(np.ones(3)))
        np.testing.assert_array_equal(new, np.full(3, 0.5))

    def test_gradients_of_a_loop_descend(self):
        @relay
        def fit(p, x, y):
            opt = optim.adam(lr=0.1)
            state = opt.init(p)
            for _ in range(300):
                grads = relay.grad(lambda p: np.mean((x @ p["w"] + p["b"] - y) ** 2))(p)
                p, state = opt.update(p, optim.clip_by_global_norm(grads, 5.0), state)
            return p

        x = np.random.default_rng(0).standard_normal((50, 2))
        p = fit({"w": np.zeros(2), "b": 0.0}, x, x @ np.array([1.0, -2.0]) + 0.5)
        np.testing.assert_allclose(p["w"], [1.0, -2.0], atol=1e-2)
        assert p["b"] == pytest.approx(0.5, abs=1e-2)

    @pytest.mark.parametrize("executor", EXECUTORS)
    def test_sizes_that_values_decide(self, executor):
        @relay(executor=executor)
        def run(p, g, n, k):
            opt = optim.momentum(lr=0.5)
            p, g = p[:n], g[:k]
            state = opt.init(p)
            p, state = opt.update(p, g, state)
            return opt.update(p, g, state)[0]

        for n in (1, 3):
            np.testing.assert_allclose(run(np.ones(4), np.ones(4), n, n), np.full(n, 1 - 0.5 - 0.5 * 1.9))
        with pytest.raises(ValueError, match="the gradient of params: sizes 3 and 2 meet in axis 0"):
            run(np.ones(4), np.ones(4), 3, 2)
        assert run.cache_info().misses == 1

    def test_under_vmap(self):
        def train(p, g):
            opt = optim.lamb(lr=0.1, weight_decay=0.1)
            state = opt.init(p)
            for _ in range(3):
                p, state = opt.update(p, g, state)
            return p

        rng = np.random.default_rng(0)
        p, g = rng.standard_normal((2, 3)), rng.standard_normal((2, 3))
        single = relay(train)
        both = relay.vmap(train)(p, g)
        np.testing.assert_allclose(both, [single(a, b) for a, b in zip(p, g, strict=True)], rtol=1e-12)

    def test_the_rate_is_differentiable(self):
        @relay
        def after(lr):
            opt = optim.sgd(lr=lr)
            new, _ = opt.update(3.0, 2.0, opt.init(3.0))
            return new

        assert relay.grad(after)(0.1) == pytest.approx(-2.0)

    def test_an_optimiser_is_an_argument_and_pickles(self):
        @relay
        def run(opt, tree, grads):
            return opt.update(tree, grads, opt.init(tree))[0]

        opt = pickle.loads(pickle.dumps(optim.lion(lr=schedules.cosine(0.1, 10), beta1=0.5)))
        close(run(opt, params(), gradients(0)), expected("lion", {"lr": 0.1, "beta1": 0.5}, steps=1))

    def test_other_numbers_need_no_compilation(self):
        @relay
        def run(opt, tree, grads):
            return opt.update(tree, grads, opt.init(tree))[0]

        for lr in (0.1, 0.2, 0.3):
            close(run(optim.sgd(lr=lr), params(), gradients(0)), expected("sgd", {"lr": lr}, steps=1))
        assert run.cache_info().misses == 1


class TestMasks:
    MASKS = (lambda p: p.ndim > 1, {"w": True, "b": False, "zero": False})

    @pytest.mark.parametrize("mask", MASKS, ids=["function", "tree"])
    def test_on_a_tree(self, mask):
        opt = optim.adamw(lr=0.1, weight_decay=0.5, mask=mask)
        new, _ = opt.update(params(), gradients(0), opt.init(params()))
        decayed, plain = (expected("adamw", {"lr": 0.1, "weight_decay": d}, steps=1) for d in (0.5, 0.0))
        close(new, {"w": decayed["w"], "b": plain["b"], "zero": plain["zero"]})

    def test_on_a_model(self):
        names = list(make_model().params)
        results = []
        for mask in (lambda p: p.ndim > 1, {n: "weight" in n for n in names}, None):
            model = make_model()
            optim.adamw(model, lr=0.1, weight_decay=0.5, mask=mask).step(model_gradients(model, 0))
            results.append({n: p.copy() for n, p in model.params.items()})
        plain = make_model()
        optim.adam(plain, lr=0.1).step(model_gradients(plain, 0))
        for n in names:
            np.testing.assert_array_equal(results[0][n], results[1][n])
            np.testing.assert_allclose(results[0][n], (results[2] if "weight" in n else plain.params)[n], rtol=1e-6)


SCHEDULES = [
    (schedules.constant(0.3), lambda t: 0.3),
    (schedules.linear(0.3, 0.1, 4), lambda t: 0.3 - 0.2 * min(t, 4) / 4),
    (schedules.cosine(0.3, 4, 0.1), lambda t: 0.1 + 0.1 * (1 + math.cos(math.pi * min(t, 4) / 4))),
    (schedules.step(0.3, 2, 0.5), lambda t: 0.3 * 0.5 ** (t // 2)),
    (schedules.exponential(0.3, 0.9), lambda t: 0.3 * 0.9**t),
    (
        schedules.warmup(schedules.exponential(0.3, 0.9), 2),
        lambda t: 0.3 * (t + 1) / 3 if t < 2 else 0.3 * 0.9 ** (t - 2),
    ),
]
SCHEDULE_IDS = [type(s).__name__ for s, _ in SCHEDULES]


class TestSchedules:
    @pytest.mark.parametrize(("schedule", "formula"), SCHEDULES, ids=SCHEDULE_IDS)
    def test_values(self, schedule, formula):
        @relay
        def compiled(schedule, step):
            return schedule(step)

        for t in range(7):
            assert schedule(t) == pytest.approx(formula(t), rel=1e-12)
            assert compiled(schedule, t) == pytest.approx(formula(t), rel=1e-12)

    @pytest.mark.parametrize("executor", EXECUTORS)
    @pytest.mark.parametrize(("schedule", "formula"), SCHEDULES, ids=SCHEDULE_IDS)
    def test_in_a_loop(self, schedule, formula, executor):
        @relay(executor=executor)
        def run(p, g):
            opt = optim.sgd(lr=schedule)
            state = opt.init(p)
            for _ in range(6):
                p, state = opt.update(p, g, state)
            return p

        np.testing.assert_allclose(run(np.ones(2), np.ones(2)), 1.0 - sum(map(formula, range(6))), rtol=1e-12)

    def test_a_function(self):
        opt = optim.adam(lr=lambda t: 0.1 / (1 + t))
        tree, state = params(), opt.init(params())
        for i in range(STEPS):
            tree, state = opt.update(tree, gradients(i), state)
        close(tree, expected("adam", {}, rates=[0.1 / (1 + i) for i in range(STEPS)]))

    def test_on_a_model(self):
        model, by_hand = make_model(), make_model()
        schedule, formula = SCHEDULES[5]
        one, other = optim.sgd(model, lr=schedule), optim.sgd(by_hand, lr=0.0)
        for i in range(4):
            assert one.lr == pytest.approx(formula(i))
            other.lr = formula(i)
            one.step(model_gradients(model, i))
            other.step(model_gradients(model, i))
        for a, b in zip(model.arrays, by_hand.arrays, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        one.lr = 0.25
        assert one.lr == 0.25 and "lr=0.25" in repr(one)

    def test_given_too_late(self):
        model = make_model()
        optimizer = optim.sgd(model, lr=0.1)
        optimizer.schedule = schedules.constant(0.1)
        with pytest.raises(TypeError_, match="does not count its steps; give it the schedule where it is made"):
            optimizer.step(model_gradients(model, 0))

    @pytest.mark.parametrize("executor", EXECUTORS)
    def test_a_models_optimiser_made_in_compiled_code(self, executor):
        @relay(executor=executor)
        def run(model, grads):
            optimizer = optim.sgd(model, lr=schedules.linear(0.3, 0.1, 4), momentum=0.5)
            for _ in range(3):
                optimizer.step(grads)

        model, by_hand = make_model(), make_model()
        grads = model_gradients(model, 0)
        run(model, grads)
        other = optim.sgd(by_hand, lr=schedules.linear(0.3, 0.1, 4), momentum=0.5)
        for _ in range(3):
            other.step(grads)
        for a, b in zip(model.arrays, by_hand.arrays, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


class TestState:
    @pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
    def test_goes_round(self, name, options):
        model, twin = make_model(), make_model()
        one, other = getattr(optim, name)(model, **options), getattr(optim, name)(twin, **options)
        one.step(model_gradients(model, 0))
        other.load_state({n: a.copy() for n, a in one.state().items()})
        twin.params = model.params
        for o in (one, other):
            o.step(model_gradients(model, 1))
        for a, b in zip([*model.arrays, *one.arrays], [*twin.arrays, *other.arrays], strict=True):
            np.testing.assert_array_equal(a, b)

    def test_of_another_optimiser(self):
        model = make_model()
        with pytest.raises(KeyError, match="no state of adam optimiser: it has no 'beta1'"):
            optim.adam(model).load_state(optim.sgd(model).state())
        with pytest.raises(KeyError, match="no state of sgd optimiser, which has no 'beta1'"):
            optim.sgd(model).load_state(optim.adam(model).state())
        with pytest.raises(KeyError, match="no state of lion optimiser, which has no 'eps'"):
            optim.lion(model).load_state(optim.adam(model).state())
        with pytest.raises(KeyError, match="no state of lamb optimiser: it is of adam, and not of lamb"):
            optim.lamb(model).load_state(optim.adam(model).state())
        with pytest.raises(KeyError, match="it is of momentum, nesterov=True, and not of momentum"):
            optim.momentum(model).load_state(optim.momentum(model, nesterov=True).state())

    def test_a_state_that_does_not_fit_changes_nothing(self):
        optimiser = optim.momentum(make_model(), lr=0.5)
        state = {n: a.copy() for n, a in optimiser.state().items()}
        name = next(n for n in state if n.endswith(".weight"))
        for wrong, error in ((np.ones(1, np.float32), ShapeError), (np.ma.array(state[name]), TypeError_)):
            with pytest.raises(error):
                optimiser.load_state({**state, "lr": 0.1, name: wrong})
            assert optimiser.lr == 0.5
        optimiser.load_state({**state, "lr": 0.1})
        assert optimiser.lr == 0.1

    def test_a_fit_goes_on_from_a_checkpoint(self, tmp_path):
        @relay(executor="interpreter")
        def loss(x, y):
            return relay.softmax_cross_entropy(net(x), y)

        rng = np.random.default_rng(0)
        data = rng.standard_normal((16, 4)).astype(np.float32), np.eye(3, dtype=np.float32)[rng.integers(0, 3, 16)]

        def run(epochs, **options):
            model = make_model()
            optimizer = optim.adamw(model, lr=schedules.cosine(0.1, 8))
            relay.fit(model, loss, data, epochs=epochs, batch_size=4, optimizer=optimizer, verbose=False, **options)
            return [*model.arrays, *optimizer.arrays]

        run(1, checkpoint=tmp_path)
        for a, b in zip(run(2, checkpoint=tmp_path), run(2), strict=True):
            np.testing.assert_array_equal(a, b)


class TestClipping:
    @pytest.mark.parametrize("executor", EXECUTORS)
    @pytest.mark.parametrize("n", [0.5, 100.0])
    def test_global_norm(self, executor, n):
        @relay(executor=executor)
        def clip(grads, n):
            return optim.clip_by_global_norm(grads, n)

        grads = gradients(0)
        norm = math.sqrt(sum(float(np.sum(g * g)) for g in grads.values()))
        want = {k: g * min(1.0, n / (norm + 1e-6)) for k, g in grads.items()}
        close(clip(grads, n), want)
        close(optim.clip_by_global_norm(grads, n), want)

    @pytest.mark.parametrize("executor", EXECUTORS)
    def test_value(self, executor):
        @relay(executor=executor)
        def clip(grads, n):
            return optim.clip_by_value(grads, n)

        want = {k: np.clip(g, -0.3, 0.3) for k, g in gradients(0).items()}
        close(clip(gradients(0), 0.3), want)
        close(optim.clip_by_value(gradients(0), 0.3), want)

    @pytest.mark.parametrize("executor", EXECUTORS)
    def test_ema(self, executor):
        @relay(executor=executor)
        def averaged(trees):
            average = optim.ema(trees[0], 0.9)
            for tree in trees:
                average = optim.ema(tree, 0.9, average)
            return average

        trees = [gradients(i) for i in range(3)]
        want = dict(trees[0])
        for tree in trees:
            want = {n: 0.9 * want[n] + 0.1 * tree[n] for n in want}
        close(averaged(tuple(trees)), want)
        close(optim.ema(trees[2], 0.9, optim.ema(trees[1], 0.9, optim.ema(trees[0], 0.9))), want)

    def test_half_precision_has_norms_beyond_its_range(self):
        grads = {"w": np.full(4, 300.0, np.float16)}
        clipped = optim.clip_by_global_norm(grads, 6.0)
        np.testing.assert_allclose(clipped["w"], np.full(4, 3.0), rtol=1e-3)
        assert clipped["w"].dtype == np.float16

    def test_parameters_of_a_model(self):
        model = make_model()
        average = optim.ema(model.params, 0.9)
        assert list(average) == list(model.params)


class TestRefusals:
    @pytest.mark.parametrize(
        ("make", "error", "message"),
        [
            (lambda: optim.adam(lr=None), TypeError_, "adam: lr is a number or a schedule .*such as lr=1e-3, not None"),
            (lambda: optim.adam(lr="fast"), TypeError_, "lr is a number or a schedule"),
            (lambda: optim.adam(lr=-0.1), ValueError_, "adam: lr is -0.1; it is a finite number that is not negative"),
            (lambda: optim.adam(lr=math.nan), ValueError_, "lr is nan"),
            (lambda: optim.adam(beta1=1.0), ValueError_, "beta1 is 1.0; it is below 1"),
            (lambda: optim.sgd(nesterov=1), TypeError_, "nesterov is True or False, not 1"),
            (
                lambda: optim.adamw(weight_decy=0.1),
                TypeError_,
                "no hyper-parameter 'weight_decy'; did you mean 'weight_decay'",
            ),
            (lambda: optim.adam({}), TypeError_, r"adam needs a model, not dict; .* relay.optim.adam\(lr=...\)"),
            (lambda: optim.sgd(0.1), TypeError_, "sgd needs a model, not float"),
            (lambda: optim.sgd(make_model(), 0.1, lr=0.2), TypeError_, "lr is given twice"),
            (lambda: optim.adamw(make_model(), mask={"w": True}), TypeError_, "the mask and the parameters differ"),
            (lambda: optim.adamw(make_model(), mask=3), TypeError_, "a mask is a dict of bools or a function"),
        ],
    )
    def test_hyper_parameters(self, make, error, message):
        with pytest.raises(error, match=message):
            make()

    def test_in_compiled_code_at_the_line(self):
        @relay
        def negative(p):
            opt = optim.adam(lr=-0.1)
            return opt.init(p)

        @relay
        def unknown(p):
            return optim.adam(lr=0.1, bet1=0.1).init(p)

        @relay
        def none(p):
            return optim.adam(lr=None).init(p)

        for f, message in (
            (negative, "not negative"),
            (unknown, "did you mean 'beta1'"),
            (none, "a number or a schedule"),
        ):
            with pytest.raises(CompileError, match=message) as caught:
                f(np.ones(2))
            assert caught.value.loc is not None and caught.value.loc.file == __file__

    @pytest.mark.parametrize(
        ("grads", "error", "message"),
        [
            ({"w": np.ones(2)}, TypeError_, "grads has another structure than params: they differ in 'b'"),
            ({"w": np.ones(2), "b": (np.ones(1),)}, TypeError_, r"the gradient of params\['b'\] is"),
            (
                {"w": np.ones(3), "b": np.ones(1)},
                ShapeError,
                r"gradient of params\['w'\] has shape \(3,\), but .* \(2,\)",
            ),
            (
                {"w": np.ones(2, np.float32), "b": np.ones(1)},
                TypeError_,
                r"float32, but .*float64; convert it: .astype",
            ),
            (np.ones(2), TypeError_, "grads has another structure than params"),
        ],
    )
    def test_gradients_that_do_not_fit(self, grads, error, message):
        opt, p = optim.adam(), {"w": np.ones(2), "b": np.ones(1)}

        @relay
        def run(p, grads):
            return opt.update(p, grads, opt.init(p))

        for f in (run, lambda p, grads: opt.update(p, grads, opt.init(p))):
            with pytest.raises(error, match=message):
                f(p, grads)

    def test_a_state_of_another_optimiser(self):
        p = params()
        with pytest.raises(TypeError_, match=r"not of this relay.optim.adam; make it with init\(params\)"):
            optim.adam().update(p, p, optim.sgd().init(p))

    def test_a_schedule_that_gives_no_number(self):
        opt = optim.sgd(lr=lambda t: np.ones(2))
        with pytest.raises(TypeError_, match="the schedule of lr gives"):
            opt.update(1.0, 1.0, opt.init(1.0))

    def test_what_is_no_tree(self):
        with pytest.raises(TypeError_, match=r"params\['a'\] is .*; a tree of arrays is"):
            optim.sgd().init({"a": "text"})

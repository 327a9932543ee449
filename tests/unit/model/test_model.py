"""Models: names, shapes and values of parameters, what may be assigned, files, summaries, and what is refused."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

from myia_relay import Float, Model, Tensor, relay, relay_model
from myia_relay.frontend import parser
from myia_relay.model import lenet as program
from myia_relay.model.model import ExportedModel
from myia_relay.utils.errors import CompileError, ShapeError, TypeError_

SHAPES = {
    "conv2d_0.weight": (20, 1, 5, 5),
    "conv2d_0.bias": (20,),
    "conv2d_1.weight": (50, 20, 5, 5),
    "conv2d_1.bias": (50,),
    "linear_0.weight": (500, 800),
    "linear_0.bias": (500,),
    "linear_1.weight": (10, 500),
    "linear_1.bias": (10,),
}


@relay_model
def small(x: Tensor[Float, 4]) -> Tensor[Float, 3]:
    return relay.linear(x, num_hidden=3)


@relay(executor="interpreter")
def small_loss(x, y):
    return relay.softmax_cross_entropy(small(x), y)


@relay_model
def block(x):
    return relay.tanh(relay.linear(x, num_hidden=4))


@relay_model
def stacked(x: Tensor[Float, 4]) -> Tensor[Float, 2]:
    return relay.linear(block(block(x)), num_hidden=2)


@relay_model
def shared(x: Tensor[Float, 4]) -> Tensor[Float, 4]:
    for _ in range(3):
        x = relay.tanh(relay.linear(x, num_hidden=4))
    return x


@relay_model
def no_bias(x: Tensor[Float, (1, 4, 4)]) -> Tensor[Float, 2]:
    conv = relay.conv2d(x, num_filter=2, ksize=3, no_bias=True)
    return relay.linear(relay.flatten_layer(conv), num_hidden=2, no_bias=True)


def example() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal(4).astype(np.float32), np.eye(3, dtype=np.float32)[1]


@relay_model
def deep(x: Tensor[Float, 4]) -> Tensor[Float, 4]:
    for _ in range(2):
        x = relay.dropout(relay.linear(x, num_hidden=4, unshared=True), 0.5)
    return block(block(x))


@relay
def doubled(x):
    x += x
    return x


class TestParsedAgain:
    """A model knows its layers by their place in the source, however often its functions are parsed."""

    def test_after_a_function_that_changes_its_argument(self):
        model, x = relay.create_model(deep), example()[0]
        model(x)
        doubled(x.copy())  # what parameters keep has changed: all functions are parsed again
        assert np.array_equal(model(np.stack([x, x])[1]), model(x))
        assert deep_loss(model, x).shape == ()

    def test_after_many_other_functions(self, monkeypatch):
        model, x = relay.create_model(deep), example()[0]
        monkeypatch.setattr(parser, "_GRAPHS", OrderedDict())
        assert np.isclose(deep_loss(model, x), np.sum(model(x)))

    def test_a_layer_in_a_default(self, monkeypatch):
        model, x = relay.create_model(with_default), example()[0]
        monkeypatch.setattr(parser, "_GRAPHS", OrderedDict())
        assert np.isclose(deep_loss(model, x), np.sum(model(x)))

    def test_layers_of_two_functions_from_one_def_stay_apart(self):
        model = relay.create_model(two_heads)
        assert [p.shape for p in model.params.values()] == [(4, 4), (4,), (4, 4), (4,)]


def head(scale):
    def layer(x):
        return scale * relay.linear(x, num_hidden=4)

    return layer


HEADS = head(1.0), head(2.0)


@relay_model
def two_heads(x: Tensor[Float, 4]):
    for layer in HEADS:
        x = layer(x)
    return x


@relay_model
def with_default(x: Tensor[Float, 4]) -> Tensor[Float, 4]:
    def applied(y, layer=lambda v: relay.linear(v, num_hidden=4)):
        return layer(y)

    return applied(x)


@relay
def deep_loss(model, x):
    return np.sum(model(x))


class TestParameters:
    def test_names_and_shapes_of_lenet(self):
        model = relay.create_model(program.lenet)
        assert {n: p.shape for n, p in model.params.items()} == SHAPES
        assert list(model.params) == list(SHAPES)  # in call order
        assert all(p.dtype == np.float32 for p in model.params.values())
        assert model.num_params == 431_080

    def test_they_are_drawn_with_a_deviation_of_a_hundredth(self):
        model = relay.create_model(program.lenet)
        for name, p in model.params.items():
            # Biases too. The bounds are five standard errors wide.
            assert abs(p.mean()) < 5 * 0.01 / np.sqrt(p.size), name
            assert abs(p.std() - 0.01) < 5 * 0.01 / np.sqrt(2 * p.size), name

    def test_the_seed_decides(self):
        one, same, other = (relay.create_model(small, seed=s).params["linear_0.weight"] for s in (1, 1, 2))
        assert np.array_equal(one, same) and not np.array_equal(one, other)

    def test_init_is_a_deviation(self):
        weight = relay.create_model(program.lenet, init=0.5).params["linear_0.weight"]
        assert weight.std() == pytest.approx(0.5, rel=0.01)
        assert not relay.create_model(small, init=0.0).params["linear_0.weight"].any()

    def test_init_is_a_function(self):
        seen = []

        def init(key, shape, dtype):
            seen.append((type(key), shape, dtype))
            return np.random.default_rng(key).uniform(1, 2, shape)

        model = relay.create_model(small, init=init, seed=5)
        assert seen == [(np.uint64, shape, np.float32) for shape in ((3, 4), (3,))]
        assert all((p >= 1).all() and (p <= 2).all() for p in model.params.values())
        with pytest.raises(ShapeError, match=r"initialiser of linear_0.weight made an array of shape \(\)"):
            relay.create_model(small, init=lambda key, shape, dtype: 1.0)

    def test_init_is_a_mapping(self):
        given = {"linear_0.weight": np.ones((3, 4)), "linear_0.bias": np.arange(3)}
        model = relay.create_model(small, init=given)
        assert (model.params["linear_0.weight"] == 1).all()
        with pytest.raises(KeyError, match=r"no 'linear_0.bias'"):
            relay.create_model(small, init={"linear_0.weight": np.ones((3, 4))})

    def test_two_calls_of_a_layer_are_two_sets(self):
        names = list(relay.create_model(stacked).params)
        assert len(names) == len(set(names)) == 6

    def test_a_layer_in_a_loop_is_one_set(self):
        model = relay.create_model(shared)
        assert {n: p.shape for n, p in model.params.items()} == {"linear_0.weight": (4, 4), "linear_0.bias": (4,)}
        x = np.ones(4, np.float32)
        w, b = model.params.values()
        expected = x
        for _ in range(3):
            expected = np.tanh(w @ expected + b)
        np.testing.assert_allclose(model(x), expected, rtol=1e-5, atol=1e-7)

    def test_without_bias(self):
        model = relay.create_model(no_bias)
        assert {n: p.shape for n, p in model.params.items()} == {
            "conv2d_0.weight": (2, 1, 3, 3),
            "linear_0.weight": (2, 8),
        }

    def test_they_are_assigned_in_place(self):
        model = relay.create_model(small)
        weight = model.params["linear_0.weight"]
        model.params["linear_0.weight"] = np.full((3, 4), 2.0)  # float64: rounded to the parameter's own type
        assert (weight == 2).all() and weight.dtype == np.float32
        model.params["linear_0.weight"][0, 0] = 7
        assert weight[0, 0] == 7
        model.params = {n: np.zeros_like(p) for n, p in model.params.items()}
        assert not weight.any()
        assert model.params["linear_0.weight"] is weight

    def test_what_cannot_be_assigned(self):
        model = relay.create_model(small)
        with pytest.raises(ShapeError, match=r"linear_0.weight has shape \(3, 4\), not \(4, 3\)"):
            model.params["linear_0.weight"] = np.zeros((4, 3), np.float32)
        with pytest.raises(ShapeError):
            model.params["linear_0.weight"] = 0.0  # no broadcasting: this is rarely meant
        with pytest.raises(TypeError_, match=r"is float32.*\.astype\(np\.float32\)"):
            model.params["linear_0.bias"] = np.zeros(3, np.complex64)
        with pytest.raises(KeyError, match=r"no parameter 'linear_0.wieght'.*linear_0.weight"):
            model.params["linear_0.wieght"]
        with pytest.raises(KeyError, match="differ in linear_0.bias"):
            model.params = {"linear_0.weight": np.zeros((3, 4))}

    def test_a_mapping_shows_itself(self):
        text = repr(relay.create_model(small).params)
        assert text == "{'linear_0.weight': float32[3, 4], 'linear_0.bias': float32[3]}"


class TestModel:
    def test_it_computes_what_numpy_does(self):
        model = relay.create_model(small, init=1.0)
        x, _ = example()
        w, b = model.params.values()
        np.testing.assert_allclose(model(x), w @ x + b, rtol=1e-5)

    def test_it_takes_an_example(self):
        train, _ = relay.datasets.digits()
        model = relay.create_model(program.lenet)
        assert np.array_equal(model(train[3]), model(train.images[3]))

    def test_lenet_is_what_numpy_says(self):
        model = relay.create_model(program.lenet, init=0.1)
        x = relay.datasets.digits()[0].images[0]
        p = {n: a.astype(np.float64) for n, a in model.params.items()}
        h = x.astype(np.float64)
        for layer in ("conv2d_0", "conv2d_1"):
            windows = np.lib.stride_tricks.sliding_window_view(h, (5, 5), axis=(1, 2))
            h = np.tanh(np.einsum("chwij,ocij->ohw", windows, p[f"{layer}.weight"]) + p[f"{layer}.bias"][:, None, None])
            c, rows, columns = h.shape
            h = h.reshape(c, rows // 2, 2, columns // 2, 2).max(axis=(2, 4))
        h = np.tanh(p["linear_0.weight"] @ h.ravel() + p["linear_0.bias"])
        np.testing.assert_allclose(model(x), p["linear_1.weight"] @ h + p["linear_1.bias"], rtol=1e-4, atol=1e-5)

    def test_summary(self):
        lines = relay.create_model(program.lenet).summary().splitlines()
        assert lines[0].split() == ["layer", "output", "parameters", "flops"]
        flops = [20 * 24 * 24 * 51, 50 * 8 * 8 * 1001, 2 * 500 * 800 + 500, 2 * 10 * 500 + 10]
        other = 20 * 24 * 24 * 2 + 50 * 8 * 8 * 2 + 500  # tanh and windows of 4
        assert lines[1].split() == ["conv2d_0", "(20,", "24,", "24)", "520", f"{flops[0]:,}"]
        assert lines[3].split() == ["linear_0", "(500,)", "400,500", f"{flops[2]:,}"]
        assert lines[5].split() == ["(other)", f"{other:,}"]
        assert lines[-1].split() == ["total", "431,080", f"{sum(flops) + other:,}"]
        assert len(lines) == 7

    def test_summary_of_loops_and_written_layers(self):
        @relay_model
        def net(xs: Tensor[Float, (6, 3)]):
            h, _ = relay.gru(xs, 4)
            for _ in range(2):
                h = relay.linear(h, 4, unshared=True) * relay.parameter("scale", 4)
            return relay.multi_head_attention(relay.layer_norm(h), 2)

        rows = {line.split()[0]: line.split()[-2:] for line in relay.create_model(net).summary().splitlines()}
        assert list(rows) == [
            "layer",
            "gru_0",
            "linear_0",
            "scale_0",
            "linear_1",
            "layer_norm_0",
            "multi_head_attention_0",
        ] + [
            "(other)",
            "total",
        ]
        assert rows["linear_1"] == ["20", f"{6 * 4 * 4 * 2 + 6 * 4}"]
        assert rows["scale_0"] == ["4", "0"]
        assert rows["gru_0"][0] == "108" and 6 * 12 * 7 * 2 < int(rows["gru_0"][1].replace(",", "")) < 6 * 12 * 7 * 4

    def test_repr(self):
        assert repr(relay.create_model(small)) == "<Model small: 2 arrays, 15 parameters>"
        assert repr(small) == "<relay model function small>"

    def test_a_copy_has_arrays_of_its_own(self):
        model = relay.create_model(small)
        twin = model.copy()
        twin.params["linear_0.bias"] = np.full(3, 9.0)
        assert not (model.params["linear_0.bias"] == 9).any()
        x, _ = example()
        assert not np.array_equal(model(x), twin(x))

    def test_exported(self):
        model = relay.create_model(small)
        exported = relay.export_model(model)
        assert isinstance(exported, ExportedModel) and relay.export_model(exported) is exported
        x, _ = example()
        assert np.array_equal(exported(x), model(x))
        assert exported.num_params == 15 and list(exported.params) == list(model.params)
        assert repr(exported) == "<exported <Model small: 2 arrays, 15 parameters>>"
        with pytest.raises(AttributeError):
            exported.nonsense

    def test_an_exported_model_saves_its_parameters(self, tmp_path):
        exported = relay.export_model(relay.create_model(small))
        exported.save(tmp_path / "m.safetensors")
        np.testing.assert_array_equal(
            relay.load_model(small, tmp_path / "m.safetensors").params["linear_0.bias"],
            exported.params["linear_0.bias"],
        )

    def test_an_update_is_seen_through_every_alias(self):
        model = relay.create_model(small)
        exported, alias = relay.export_model(model), model
        x, y = example()
        before = model(x).copy()
        relay.update_model_params(model, relay.grad(model, small_loss, (x, y)), lr=1.0)
        assert not np.array_equal(before, model(x))
        assert np.array_equal(exported(x), model(x)) and np.array_equal(alias(x), model(x))

    def test_a_changed_global_is_noticed(self, monkeypatch):
        monkeypatch.setitem(globals(), "WIDTH", 3)
        assert relay.create_model(adjustable).params["linear_0.weight"].shape == (3, 4)
        monkeypatch.setitem(globals(), "WIDTH", 5)
        assert relay.create_model(adjustable).params["linear_0.weight"].shape == (5, 4)


WIDTH = 3


@relay_model
def adjustable(x: Tensor[Float, 4]):
    return relay.linear(x, num_hidden=WIDTH)


class TestFiles:
    def test_there_and_back(self, tmp_path):
        model = relay.create_model(program.lenet, seed=3)
        path = tmp_path / "lenet.safetensors"
        model.save(path)
        again = relay.load_model(program.lenet, path)
        assert all(np.array_equal(model.params[n], again.params[n]) for n in SHAPES)
        assert [p.name for p in tmp_path.iterdir()] == [path.name]  # no temporary file is left

    def test_other_libraries_read_it(self, tmp_path):
        safetensors = pytest.importorskip("safetensors.numpy")
        model = relay.create_model(small)
        model.save(tmp_path / "m.safetensors")
        stored = safetensors.load_file(tmp_path / "m.safetensors")
        assert set(stored) == set(model.params)
        assert np.array_equal(stored["linear_0.weight"], model.params["linear_0.weight"])

    def test_a_file_of_another_model(self, tmp_path):
        relay.create_model(small).save(tmp_path / "m.safetensors")
        with pytest.raises(KeyError, match="differ in"):
            relay.load_model(program.lenet, tmp_path / "m.safetensors")

    def test_numbers_that_are_no_weights(self, tmp_path):
        safetensors = pytest.importorskip("safetensors.numpy")
        path = tmp_path / "m.safetensors"
        stored = {n: p.copy() for n, p in relay.create_model(small).params.items()}
        for wrong, error in (
            (stored["linear_0.bias"].astype(np.int32), TypeError),
            (stored["linear_0.bias"] > 0, TypeError),
            (stored["linear_0.bias"].astype(np.float64) + 1e300, ValueError),
        ):
            safetensors.save_file({**stored, "linear_0.bias": wrong}, path)
            with pytest.raises(error, match=r"linear_0\.bias"):
                relay.load_model(small, path)
        wide = {n: np.full(p.shape, np.inf) for n, p in stored.items()}
        safetensors.save_file(wide, path)
        assert np.all(np.isinf(relay.load_model(small, path).params["linear_0.bias"]))

    def test_no_file(self, tmp_path):
        with pytest.raises(OSError):
            relay.load_model(small, tmp_path / "nowhere.safetensors")


class TestGradients:
    def test_the_tree_is_that_of_the_parameters(self):
        model = relay.create_model(small)
        grads = relay.grad(model, small_loss, example())
        assert list(grads) == list(model.params)
        assert {n: g.shape for n, g in grads.items()} == {n: p.shape for n, p in model.params.items()}

    def test_they_are_the_slopes(self):
        model = relay.create_model(program.lenet, init=0.1)
        train, _ = relay.datasets.digits()
        x, y = train[0]
        value, grads = relay.value_and_grad(model, program.loss, (x, y))
        assert all(
            np.array_equal(g, h) for g, h in zip(grads.values(), relay.grad(model, program.loss, (x, y)).values())
        )
        rng = np.random.default_rng(0)
        for name, g in grads.items():
            direction = rng.standard_normal(g.shape).astype(np.float32)
            direction /= np.linalg.norm(direction)
            keep = model.params[name].copy()
            losses = []
            for sign in (1, -1):
                model.params[name] = keep + np.float32(sign * 1e-2) * direction
                losses.append(float(relay.value_and_grad(model, program.loss, (x, y))[0]))
            model.params[name] = keep
            slope = (losses[0] - losses[1]) / 2e-2
            assert float(np.sum(g * direction)) == pytest.approx(slope, rel=0.02, abs=2e-4), name
        assert value == pytest.approx(2.3, abs=2)

    def test_inside_of_compiled_code(self):
        @relay(executor="interpreter")
        def step(model, x, y):
            value, grads = relay.value_and_grad(model, small_loss, (x, y))
            relay.update_model_params(model, grads, lr=0.5)
            return value, grads["linear_0.bias"]

        inside, outside = relay.create_model(small), relay.create_model(small)
        x, y = example()
        value, bias = step(inside, x, y)
        expected, grads = relay.value_and_grad(outside, small_loss, (x, y))
        assert value == expected and np.array_equal(bias, grads["linear_0.bias"])
        relay.update_model_params(outside, grads, lr=0.5)
        for n, p in inside.params.items():
            np.testing.assert_allclose(p, outside.params[n], rtol=1e-6, atol=1e-8)

    def test_created_and_returned_by_compiled_code(self):
        @relay(executor="interpreter")
        def make() -> Model:
            return relay.export_model(relay.create_model(small, seed=4))

        one, two = make(), make()
        expected = relay.create_model(small, seed=4)
        assert np.array_equal(one.params["linear_0.weight"], expected.params["linear_0.weight"])
        one.params["linear_0.weight"] = np.zeros((3, 4))
        assert two.params["linear_0.weight"].any()  # a model of its own for every call


class TestRefusals:
    def test_a_loss_without_its_model(self):
        x, y = example()
        with pytest.raises(CompileError) as caught:
            small_loss(x, y)
        text = str(caught.value)
        assert "small(x)" in text and "^" in text  # the place
        assert "relay.create_model" in text  # what to do

    def test_a_model_function_called_by_itself(self):
        x, _ = example()
        with pytest.raises(
            TypeError, match=r"small has hidden parameters.*relay\.create_model\(small\), then model\(x\)"
        ):
            small(x)

    def test_an_input_of_a_wrong_shape(self):
        model = relay.create_model(small)
        with pytest.raises(ShapeError) as caught:
            model(np.zeros(5, np.float32))
        assert "5" in str(caught.value) and "4" in str(caught.value)
        assert isinstance(caught.value, ValueError)

    def test_an_input_of_a_wrong_dtype(self):
        model = relay.create_model(small)
        with pytest.raises(TypeError_, match=r"float64(.|\n)*\.astype") as caught:
            model(np.zeros(4))
        assert isinstance(caught.value, TypeError)

    def test_a_loss_of_wrong_arguments(self):
        model = relay.create_model(small)
        x, y = example()
        with pytest.raises(ShapeError):
            relay.grad(model, small_loss, (x, y[:2]))
        with pytest.raises(TypeError_, match="args must be a tuple"):
            relay.grad(model, small_loss, x)

    def test_gradients_of_another_model(self):
        model = relay.create_model(small)
        with pytest.raises(TypeError_, match="differ in"):
            relay.update_model_params(model, {"linear_0.weight": np.zeros((3, 4), np.float32)})
        wrong = {"linear_0.weight": np.zeros((4, 3), np.float32), "linear_0.bias": np.zeros(3, np.float32)}
        with pytest.raises(ShapeError, match=r"gradient of linear_0.weight"):
            relay.update_model_params(model, wrong)

    def test_a_result_that_is_not_as_annotated(self):
        @relay_model
        def wrong(x: Tensor[Float, 4]) -> Tensor[Float, 10]:
            return relay.linear(x, num_hidden=11)

        with pytest.raises(CompileError) as caught:
            relay.create_model(wrong)
        assert "11" in str(caught.value) and "10" in str(caught.value)

    def test_a_model_of_inputs_without_a_shape(self):
        @relay_model
        def unknown(x):
            return relay.linear(x, num_hidden=3)

        with pytest.raises(CompileError, match="annotat"):
            relay.create_model(unknown)

    def test_no_model_function(self):
        with pytest.raises(TypeError_, match="needs a function decorated with @relay_model"):
            relay.create_model(lambda x: x)
        with pytest.raises(TypeError_, match="export_model needs a model, not int"):
            relay.export_model(3)

    def test_no_frames_of_the_compiler_show(self):
        import traceback

        model = relay.create_model(small)
        with pytest.raises(CompileError) as caught:
            model(np.zeros(5, np.float32))
        files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert not [f for f in files if "/infer/" in f or "/frontend/" in f or "/pipeline" in f]

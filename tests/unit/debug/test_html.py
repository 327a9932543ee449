"""What notebooks show: well-formed, with what matters, and nothing of the user's taken for markup."""

import io
from xml.etree import ElementTree

import numpy as np
import pytest

from myia_relay import CompileError, Float, Tensor, grad, relay, relay_model
from myia_relay.debug.html import png
from myia_relay.model.datasets import Dataset


def square(x):
    return x * x if x < 3.0 else x  # compares


@relay_model
def scores(x: Tensor[Float, 6]) -> Tensor[Float, 2]:
    return relay.linear(x, num_hidden=2)


def parsed(html):
    return ElementTree.fromstring(f"<div>{html}</div>")


def text_of(html):
    return "".join(parsed(html).itertext())


def test_functions_show_their_source_and_what_was_compiled():
    f = relay(square)
    assert "x if x < 3.0 else x" in text_of(f._repr_html_()) and "compilations" not in f._repr_html_()
    f(2.0)
    assert "compilations" in f._repr_html_()
    assert "grad(square)" in text_of(grad(f)._repr_html_()) and "x < 3.0" in text_of(grad(f)._repr_html_())
    assert "relay.linear" in text_of(scores._repr_html_())


def test_models_show_layers_and_arrays():
    model = relay.create_model(scores)
    text = text_of(model._repr_html_())
    assert "linear_0.weight" in text and "float32[2, 6]" in text and "flops" in text and f"{model.num_params:,}" in text
    assert "linear_0.bias" in text_of(model.params._repr_html_())


def test_data_sets_show_images():
    data = Dataset(np.arange(60.0).reshape(5, 1, 3, 4), np.array([0, 1, 2, 1, 0]), name="<five>")
    found = parsed(data._repr_html_())
    assert len(list(found.iter("img"))) == 5 and "<five>" in "".join(found.itertext())
    assert not list(parsed(Dataset(np.ones((2, 7)), np.array([0, 1]))._repr_html_()).iter("img"))


def test_images_are_the_pixels():
    image = pytest.importorskip("PIL.Image")
    for channels in (1, 3):
        pixels = np.random.default_rng(0).integers(0, 256, (channels, 5, 7))
        pixels.flat[:2] = 0, 255
        back = np.asarray(image.open(io.BytesIO(png(pixels))))
        assert np.array_equal(back.reshape(5, 7, channels), np.moveaxis(pixels, 0, -1))


def test_errors_show_the_place():
    @relay
    def wrong(x):
        return np.ones(2) @ x + "<a>"

    with pytest.raises(CompileError) as caught:
        wrong(np.ones(3))
    found = parsed(caught.value._repr_html_())
    assert "np.ones(2) @ x" in "".join(found.itertext()) and any("^" in (b.text or "") for b in found.iter("b"))

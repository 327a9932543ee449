"""Arrays of other libraries, by DLPack: read where they are; refused where compiled code cannot read them."""

from __future__ import annotations

import gc
import weakref

import ml_dtypes
import numpy as np
import pytest

from myia_relay import TypeError_, relay
from myia_relay.infer.arguments.dlpack import from_dlpack
from myia_relay.model.batches import as_arrays


class Foreign:
    """An array of another library, on some device."""

    dtype = "float64"

    def __init__(self, array, device=1, error=None, requires_grad=False):
        self.array, self.device, self.error, self.requires_grad = array, device, error, requires_grad
        self.shape = np.shape(array)

    def __dlpack__(self, **options):
        if self.error is not None:
            raise self.error
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device, 0


@pytest.fixture(params=["interpreter", "python", "native"])
def executor(request):
    return request.param


def test_arguments_and_results(executor):
    double = relay(lambda x, rest: x * 2.0 + rest[0], executor=executor)
    array = np.arange(3.0)
    result = double(Foreign(array), [Foreign(array)])
    assert type(result) is np.ndarray and result.tolist() == [0.0, 3.0, 6.0]
    again = np.from_dlpack(result)
    assert np.shares_memory(again, result)
    frozen = array.copy()
    frozen.flags.writeable = False
    assert double(frozen, [frozen]).tolist() == [0.0, 3.0, 6.0]


def test_no_copy_is_made_and_the_memory_lives_as_long_as_its_array():
    owner = np.arange(5.0)
    gone = weakref.ref(owner)
    array = from_dlpack(Foreign(owner))
    assert np.shares_memory(array, owner)
    del owner
    gc.collect()
    assert gone() is not None and array.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    del array
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    "options, message",
    [
        ({"device": 2}, r"this .*Foreign is not in the memory of the CPU \(DLPack device 2\); pass x\.cpu\(\)"),
        ({"requires_grad": True}, r"records gradients, .* pass x\.detach\(\)"),
        (
            {"error": BufferError("no such strides")},
            "of float64 cannot be read by NumPy: no such strides; pass an array",
        ),
        ({"error": RuntimeError("Unsupported dtype")}, "cannot be read by NumPy: Unsupported dtype"),
    ],
)
def test_refusals(options, message):
    double = relay(lambda x: x * 2.0, executor="interpreter")
    with pytest.raises(TypeError_, match=message):
        double(Foreign(np.arange(3.0), **options))


def test_a_foreign_array_is_not_changed_in_place():
    def clear(x):
        x[0] = 0.0
        return x.sum()

    with pytest.raises(TypeError_, match="'x' is changed in place, and is a Foreign: give a NumPy array"):
        relay(clear, executor="python")(Foreign(np.ones(3)))


def test_training_data():
    owner = np.arange(6.0).reshape(3, 2)
    tree = as_arrays((Foreign(owner), owner))
    assert np.shares_memory(tree[0], owner)


def test_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    double = relay(lambda x: x * 2.0, executor="python")
    result = double(torch.arange(3.0))
    assert result.dtype == np.float32 and torch.equal(torch.from_dlpack(result), torch.tensor([0.0, 2.0, 4.0]))
    small = torch.arange(3.0).bfloat16()
    seen = from_dlpack(small)
    assert seen.dtype == ml_dtypes.bfloat16 and seen.ctypes.data == small.data_ptr()
    assert double(small).astype(float).tolist() == [0.0, 2.0, 4.0]
    with pytest.raises(TypeError_, match=r"torch\.Tensor records gradients"):
        double(torch.ones(3, requires_grad=True))

"""NumPy's functions with every keyword, over dtypes, ranks, empty arrays and edge values: what NumPy gives, or a refusal.

A longer sweep: `python -m tests.property.numpy_sweep.sweep --calls 1000`.
"""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay.library.sources import SOURCES
from myia_relay.prims.api.numpy_api import IMPLEMENTATIONS, METHODS

from .numpy_sweep.compare import CALLS, judge
from .numpy_sweep.sweep import FINE, sweep

CALLS_EACH = 3
CAMPAIGN = 100
NATIVE = 25  # every so manieth function runs natively in the default run
APART = {  # without values of their own, or refused whatever the operands are
    *("np.empty", "np.empty_like", "np.bool", "np.linalg.eig", "np.linalg.eigvals"),
    # In test_linear_algebra:
    *("np.linalg.svd", "np.linalg.eigh", "np.linalg.eigvalsh", "np.linalg.qr", "np.linalg.lstsq", "np.linalg.pinv"),
    *("np.linalg.cond", "np.linalg.matrix_rank", "np.linalg.slogdet", "np.linalg.svdvals"),
    # In test_fourier:
    *(f"np.fft.{name}" for name in ("fft", "fft2", "fftn", "ifft", "ifft2", "ifftn", "rfft", "irfft")),
    *(f"np.fft.{name}" for name in ("fftfreq", "rfftfreq", "fftshift", "ifftshift")),
    # In test_order_and_counts:
    *("np.partition", "np.argpartition", "np.bincount", "np.isin"),
    # In test_array_idioms:
    *("np.unwrap", "np.polyfit", "np.apply_along_axis"),
}


def test_every_function_of_the_tables_is_swept():
    functions = {
        f for table in (IMPLEMENTATIONS, SOURCES) for f in table if "numpy" in (getattr(f, "__module__", "") or "numpy")
    }
    swept = {_function(name) for name in (*CALLS, *APART) if name.startswith("np.")}
    assert not {f for f in functions if f not in swept}
    assert not set(METHODS) - {name.removeprefix("ndarray.") for name in CALLS}


def _function(name: str):
    at = np
    for part in name.split(".")[1:]:
        at = getattr(at, part, None)
    return at


def found(verdicts) -> list[str]:
    """What is wrong, as text."""
    return [str(v) for _, v in verdicts if v.kind not in FINE]


@pytest.mark.sampled(23)
@pytest.mark.parametrize("name", CALLS)
def test_a_few_calls(name):
    assert not found(sweep([name], CALLS_EACH, "interpreter"))


@pytest.mark.parametrize("name", list(CALLS)[::NATIVE])
def test_a_few_native_calls(name):
    assert not found(sweep([name], 1, "native"))


@pytest.mark.campaign
@pytest.mark.parametrize("name", CALLS)
def test_many_calls(name):
    assert not found(sweep([name], CAMPAIGN, "interpreter", first=CALLS_EACH))


@pytest.mark.campaign
@pytest.mark.parametrize("name", CALLS)
def test_many_native_calls(name):
    assert not found(sweep([name], 5, "native", first=CALLS_EACH + CAMPAIGN))


def test_the_comparison_sees_differences():
    """The judge itself: another answer, another dtype, an answer where NumPy raises."""
    x = np.array([1.0, np.nan, -0.0])
    assert judge("np.add", "np.add(a0, a0)", [x]).kind == "same"
    for wrong, kind in (
        ("np.subtract", "differs"),
        ("np.float32", "dtype"),
        ("len", "kind"),
        ("np.atleast_2d", "shape"),
    ):
        assert _swapped("np.positive(a0)", f"{wrong}(a0{', a0' if wrong == 'np.subtract' else ''})", x) == kind


def _swapped(theirs: str, ours: str, x) -> str:
    from .numpy_sweep.compare import different, function_of

    return different("np.add", function_of(theirs, ["a0"], -1)(x), function_of(ours, ["a0"], -2)(x), [x])

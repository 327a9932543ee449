"""`relay.data.batches`: every example once, in an order that follows from the seed, from every kind of data."""

from __future__ import annotations

import gc
import itertools
import time
from typing import NamedTuple

import numpy as np
import pytest

from myia_relay import relay
from myia_relay.model.datasets import Example
from myia_relay.utils.errors import ShapeError, TypeError_, ValueError_

X = np.arange(20, dtype=np.float32).reshape(10, 2)
Y = np.arange(10)
batches = relay.data.batches


def rows(loop) -> list[int]:
    return [int(i) for batch in loop for i in batch]


class Squares:
    """A data set by index."""

    def __len__(self):
        return 10

    def __getitem__(self, i):
        assert type(i) is int
        return {"x": np.full(3, i, np.float32), "y": i * i}


class Pair(NamedTuple):
    """An example with names."""

    a: np.ndarray
    b: int


def pairs(count: int = 10):
    for i in range(count):
        yield np.full(3, i, np.float32), i


@pytest.fixture(params=[0, 2], ids=["no thread", "a thread"])
def prefetch(request):
    return request.param


class TestOrder:
    def test_every_example_once_in_another_order_each_epoch(self, prefetch):
        loop = batches(Y, 3, prefetch=prefetch)
        first, second = rows(loop), rows(loop)
        assert sorted(first) == sorted(second) == list(range(10)) and first != second
        again = batches(Y, 3, prefetch=prefetch)
        assert rows(again) == first and rows(again) == second
        assert rows(again.epoch(0)) == first  # as often as wanted
        assert rows(batches(Y, 3, seed=1, prefetch=prefetch)) != first

    def test_unshuffled(self, prefetch):
        assert [list(b) for b in batches(Y, 4, shuffle=False, prefetch=prefetch)] == [
            [0, 1, 2, 3],
            [4, 5, 6, 7],
            [8, 9],
        ]

    def test_drop_last(self, prefetch):
        loop = batches(Y, 4, drop_last=True, prefetch=prefetch)
        assert [len(b) for b in loop] == [4, 4] and len(loop) == 2
        assert len(batches(Y, 4)) == 3

    def test_skip_leaves_out_the_first_batches(self, prefetch):
        for data in (Y, pairs):
            loop = batches(data, 3, prefetch=prefetch)
            whole, part = list(loop.epoch(1)), list(loop.epoch(1, skip=2))
            assert len(part) == 2
            for a, b in zip(whole[2:], part):
                np.testing.assert_equal(a, b)

    def test_it_is_the_order_of_fit(self):
        from myia_relay.model.batches import epoch_order

        assert rows(batches(Y, 3, seed=7).epoch(2)) == list(epoch_order(10, True, 7, 2))


class TestData:
    def test_tuples_dicts_and_nests(self, prefetch):
        data = {"ids": X, "rest": (Y, {"again": Y})}
        for batch in batches(data, 4, prefetch=prefetch):
            assert np.array_equal(batch["ids"], X[batch["rest"][0]])
            assert np.array_equal(batch["rest"][1]["again"], batch["rest"][0])
        assert isinstance(next(iter(batches(Pair(X, Y), 4))), Pair)

    def test_a_dataset(self):
        train, _ = relay.datasets.digits()
        batch = next(iter(batches(train, 5, shuffle=False)))
        assert isinstance(batch, Example) and batch.x.shape == (5, 1, 28, 28) and batch.y.shape == (5, 10)
        assert np.array_equal(batch.x, train.images[:5])

    def test_a_data_set_by_index(self, prefetch):
        seen = list(batches(Squares(), 4, prefetch=prefetch))
        assert [b["x"].shape for b in seen] == [(4, 3), (4, 3), (2, 3)]
        for b in seen:
            assert np.array_equal(b["x"][:, 0] ** 2, b["y"]) and b["y"].dtype == np.int64

    def test_a_list_of_examples(self):
        first = next(iter(batches([Pair(x, i) for i, x in enumerate(X)], 3, shuffle=False)))
        assert isinstance(first, Pair) and np.array_equal(first.a, X[:3]) and list(first.b) == [0, 1, 2]

    def test_lists_of_numbers_in_a_tuple_are_arrays(self):
        x, y = next(iter(batches((X.tolist(), Y.tolist()), 4, shuffle=False)))
        assert np.array_equal(x, X[:4]) and np.array_equal(y, Y[:4])

    def test_a_generator_function_serves_every_epoch(self, prefetch):
        loop = batches(pairs, 4, shuffle=False, prefetch=prefetch)
        for _ in range(2):
            seen = list(loop)
            assert [len(x) for x, _ in seen] == [4, 4, 2]
            assert [int(i) for _, y in seen for i in y] == list(range(10))
        assert [len(x) for x, _ in batches(pairs, 4, drop_last=True)] == [4, 4]

    def test_a_generator_serves_one(self, prefetch):
        loop = batches(pairs(), 4, prefetch=prefetch)
        assert sorted(int(i) for _, y in loop for i in y) == list(range(10))
        with pytest.raises(RuntimeError, match="give batches the function that makes it"):
            next(iter(loop))

    def test_a_stream_is_shuffled_in_a_buffer(self):
        loop = batches(lambda: iter(range(1000)), 2)
        first, second = rows(loop), rows(loop)
        assert sorted(first) == list(range(1000)) and first != second != list(range(1000))
        assert max(i - place for place, i in enumerate(first)) <= 32  # no example comes before it is read
        assert rows(batches(lambda: iter(range(1000)), 2)) == first

    def test_an_endless_stream(self):
        loop = batches(itertools.count, 3, shuffle=False)
        assert [list(b) for b in itertools.islice(loop, 2)] == [[0, 1, 2], [3, 4, 5]]
        with pytest.raises(TypeError, match="known at its end"):
            len(loop)

    def test_files_are_mapped(self, tmp_path, prefetch):
        path = tmp_path / "x.npy"
        np.save(path, X)
        mapped = np.load(path, mmap_mode="r")
        for data in ((path, Y), (str(path), Y), (mapped, Y)):
            for x, y in batches(data, 4, prefetch=prefetch):
                assert type(x) is np.ndarray and x.flags.writeable and np.array_equal(x, X[y])

    def test_a_batch_is_ones_own(self):
        x = X.copy()
        for shuffle in (True, False):
            for batch in batches(x, 4, shuffle=shuffle):
                batch[...] = -1
        assert np.array_equal(x, X)

    def test_arrays_of_other_libraries(self):
        torch = pytest.importorskip("torch")
        assert np.array_equal(next(iter(batches(torch.tensor(X), 10, shuffle=False))), X)


class TestRefusals:
    def test_what_is_no_data(self):
        with pytest.raises(TypeError_, match="data are arrays, a sequence of examples, or a function"):
            batches(3)
        with pytest.raises(TypeError_, match=r"data\.csv is no \.npy file"):
            batches("data.csv")
        with pytest.raises(ShapeError, match="differ in length: 10 and 9"):
            batches((X, Y[:9]))
        with pytest.raises(ShapeError, match="has no axis"):
            batches(np.float32(3))
        with pytest.raises(ValueError_, match="there are no examples"):
            batches([])
        with pytest.raises(ValueError_, match="10 examples fill no batch of 11"):
            batches(X, 11, drop_last=True)
        for name, value in (("batch_size", 0), ("batch_size", 2.5), ("prefetch", -1), ("batch_size", True)):
            with pytest.raises(ValueError_, match=f"{name}={value}"):
                batches(X, **{name: value})

    @pytest.mark.parametrize(
        ("examples", "error", "message"),
        [
            ([np.zeros(2), np.zeros(3)], ShapeError, "differ in shape"),
            ([(1, 2), (1,)], TypeError_, "are not all 2 parts"),
            ([{"a": 1}, {"b": 1}], TypeError_, "different keys"),
            ([object(), object()], TypeError_, "an example is arrays and numbers"),
        ],
    )
    def test_examples_that_are_no_batch(self, examples, error, message, prefetch):
        with pytest.raises(error, match=message):
            list(batches(examples, 2, shuffle=False, prefetch=prefetch))


def test_an_error_of_a_generator_comes_in_the_loop():
    def broken():
        yield from range(5)
        raise OSError("the disk is gone")

    seen = []
    with pytest.raises(OSError, match="the disk is gone"):
        for batch in batches(broken, 2, shuffle=False):
            seen.append(list(batch))
    assert seen == [[0, 1], [2, 3]]


def test_a_generator_is_closed_when_the_loop_is_left():
    closed = []

    def endless():
        try:
            yield from itertools.count()
        finally:
            closed.append(True)

    for _ in batches(endless, 2):
        break
    gc.collect()
    end = time.monotonic() + 60
    while not closed and time.monotonic() < end:
        time.sleep(0.005)
    assert closed

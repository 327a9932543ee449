"""Datasets: what they hold, where they are looked for, and what damaged files and broken mirrors lead to."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import os
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest

from myia_relay.model import datasets
from myia_relay.model.datasets import Dataset, DatasetError, Example
from myia_relay.utils import files


def idx(array: np.ndarray) -> bytes:
    """An IDX file of unsigned bytes."""
    array = np.asarray(array, np.uint8)
    return bytes((0, 0, 8, array.ndim)) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def four_files(train: int = 6, test: int = 4, seed: int = 0) -> dict[str, bytes]:
    """A small dataset in MNIST's format: name -> contents."""
    rng = np.random.RandomState(seed)
    return {
        "train-images-idx3-ubyte": idx(rng.randint(0, 256, (train, 28, 28))),
        "train-labels-idx1-ubyte": idx(rng.randint(0, 10, train)),
        "t10k-images-idx3-ubyte": idx(rng.randint(0, 256, (test, 28, 28))),
        "t10k-labels-idx1-ubyte": idx(rng.randint(0, 10, test)),
    }


def write(folder: Path, contents: dict[str, bytes], compress: bool = True) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in contents.items():
        (folder / (f"{name}.gz" if compress else name)).write_bytes(gzip.compress(data) if compress else data)


@pytest.fixture
def data_root(tmp_path, monkeypatch) -> Path:
    """An empty $MYIA_RELAY_DATA, an empty cache and no mirrors."""
    root = tmp_path / "data"
    root.mkdir()
    monkeypatch.setenv("MYIA_RELAY_DATA", str(root))
    monkeypatch.setenv("MYIA_RELAY_CACHE", str(tmp_path / "cache"))
    for source in ("_MNIST", "_FASHION_MNIST"):
        known = getattr(datasets, source)
        monkeypatch.setattr(datasets, source, datasets._Source(known.name, (), known.files))
    return root


class Mirror:
    """A web server on this machine that serves files from a dict, and counts what it was asked for."""

    def __init__(self):
        self.served: dict[str, bytes] = {}
        self.cut: set[str] = set()
        self.asked: list[str] = []
        mirror = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                name = self.path.strip("/")
                mirror.asked.append(name)
                if name not in mirror.served:
                    self.send_error(404)
                    return
                body = mirror.served[name]
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: len(body) // 2] if name in mirror.cut else body)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *args: None  # a client that hangs up
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def mirror(data_root, monkeypatch):
    """A mirror that serves a small MNIST, whose checksums and sizes the loader then expects."""
    contents = four_files()
    server = Mirror()
    server.served = {f"{name}.gz": gzip.compress(data) for name, data in contents.items()}
    described = tuple(
        datasets._File(name, (6 if "train" in name else 4, 28, 28)[: data[3]], hashlib.sha256(data).hexdigest())
        for name, data in contents.items()
    )
    monkeypatch.setattr(datasets, "_MNIST", datasets._Source("mnist", (server.url,), described))
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield server
    server.close()


def test_mnist_is_the_real_one(mnist_dir):
    train, test = datasets.mnist()
    assert (len(train), len(test)) == (60000, 10000)
    assert np.bincount(train.labels).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(test.labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    pixels = np.rint(test.images * 255).astype(np.uint8)
    header = bytes((0, 0, 8, 3)) + np.array((10000, 28, 28), ">u4").tobytes()
    assert hashlib.sha256(header + pixels.tobytes()).hexdigest() == datasets._MNIST.files[2].sha256
    assert abs(float(train.images.mean()) - 0.1306604) < 1e-5  # the mean that every tutorial normalises with


@pytest.mark.parametrize("compress", [True, False])
def test_local_files(data_root, compress):
    contents = four_files()
    write(data_root / "mnist", contents, compress)
    train, test = datasets.mnist()
    assert (train.name, test.name) == ("mnist (train)", "mnist (test)")
    pixels = np.frombuffer(contents["train-images-idx3-ubyte"][16:], np.uint8).reshape(6, 1, 28, 28)
    np.testing.assert_array_equal(train.images, pixels.astype(np.float32) / np.float32(255))
    assert train.labels.tolist() == list(contents["train-labels-idx1-ubyte"][8:])
    assert (train.images.dtype, train.labels.dtype, train.onehot.dtype) == (np.float32, np.int64, np.float32)
    for array in (train.images, train.onehot, test.images):
        assert array.flags.c_contiguous and array.ctypes.data % 64 == 0
    assert datasets.find("mnist") == data_root / "mnist" and datasets.find("fashion_mnist") is None


@pytest.mark.parametrize("folder", ["fashion_mnist", "fashion-mnist"])
def test_fashion_mnist_by_either_name(data_root, folder):
    write(data_root / folder, four_files())
    train, _ = datasets.fashion_mnist()
    assert len(train) == 6 and train.name == "fashion_mnist (train)"


def test_digits_are_the_same_everywhere():
    train, test = datasets.digits()
    assert (len(train), len(test)) == (1437, 360)
    assert train.images.shape == (1437, 1, 28, 28) and train.classes == test.classes == 10
    assert train.images.min() == 0 and train.images.max() == 1
    assert min(np.bincount(test.labels)) > 20
    digest = hashlib.sha256()
    for array in (train.images, train.labels, test.images, test.labels):
        digest.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
    assert digest.hexdigest() == "2533840c46a38a5db4c823fa8bb58190a5873e65c3f849adfe3e07fcd8620352"


def test_digits_are_recognisable():
    """The nearest neighbour in the training part nearly always has the right label: labels belong to their images."""
    train, test = datasets.digits()
    a, b = train.images.reshape(len(train), -1), test.images.reshape(len(test), -1)
    distance = (a * a).sum(1) - 2 * b @ a.T
    assert (train.labels[distance.argmin(1)] == test.labels).mean() > 0.97


def test_enlargement_is_bilinear():
    """A plane stays a plane, but for the border, where the outermost pixels are repeated."""
    rows, columns = np.mgrid[0:8, 0:8]
    large = datasets._enlarge((rows + columns)[None].astype(np.uint8), 28)[0, 0]
    place = np.clip((np.arange(28) + 0.5) * 8 / 28 - 0.5, 0, 7)
    np.testing.assert_allclose(large, (place[:, None] + place) / 16, rtol=1e-6)


class TestDataset:
    images = np.arange(5 * 4, dtype=np.float32).reshape(5, 1, 2, 2)
    data = Dataset(images, np.array([0, 2, 1, 2, 0]), name="five")

    def test_examples(self):
        x, y = self.data[1]
        assert isinstance(self.data[1], Example)
        np.testing.assert_array_equal(x, self.images[1])
        assert y.tolist() == [0, 0, 1] and y.dtype == np.float32
        assert self.data[-1].x.tolist() == self.images[4].tolist()
        assert self.data[np.int64(2)].y.tolist() == self.data[np.array(2)].y.tolist() == [0, 1, 0]

    def test_examples_share_memory(self):
        assert np.shares_memory(self.data[1].x, self.data.images)
        assert np.shares_memory(self.data[1].y, self.data.onehot)
        assert self.data.onehot is self.data.onehot

    def test_iteration(self):
        seen = [(x.tolist(), int(y.argmax())) for x, y in self.data]
        assert seen == [(self.images[i].tolist(), label) for i, label in enumerate([0, 2, 1, 2, 0])]
        assert len(list(self.data)) == len(self.data) == 5

    @pytest.mark.parametrize(
        "index", [slice(1, 4), slice(None, None, -2), slice(9, None), [3, 0], [], np.array([True, False] * 2 + [True])]
    )
    @pytest.mark.parametrize("onehot_first", [True, False])
    def test_parts(self, index, onehot_first):
        data = Dataset(self.images, self.data.labels)
        if onehot_first:
            assert data.onehot.shape == (5, 3)
        part = data[index]
        wanted = (
            index if isinstance(index, slice) else np.asarray(index, bool if np.array(index).dtype == bool else int)
        )
        assert isinstance(part, Dataset) and part.classes == 3
        np.testing.assert_array_equal(part.images, self.images[wanted])
        np.testing.assert_array_equal(part.labels, data.labels[wanted])
        np.testing.assert_array_equal(part.onehot, np.eye(3, dtype=np.float32)[part.labels])
        assert part.images.flags.c_contiguous and part.onehot.flags.c_contiguous and part.labels.flags.c_contiguous

    @pytest.mark.parametrize("index", [5, -6, np.int64(99)])
    def test_out_of_range(self, index):
        with pytest.raises(IndexError, match=r"five has 5 examples"):
            self.data[index]

    def test_bad_index(self):
        with pytest.raises(TypeError, match="not str"):
            self.data["0"]
        with pytest.raises(TypeError, match="not float"):
            self.data[1.0]

    @pytest.mark.parametrize(
        ("labels", "classes", "message"),
        [
            ([0, 1], None, "do not fit together"),
            ([0, 1, 2, 3, -1], None, "between 0 and 3"),
            ([0, 1, 2, 3, 4], 3, "between 0 and 2"),
            ([0.0, 1, 2, 3, 4], None, "must be integers, not float64"),
            ([[0], [1], [2], [3], [4]], None, "do not fit together"),
        ],
    )
    def test_refused(self, labels, classes, message):
        with pytest.raises(ValueError, match=message):
            Dataset(self.images, np.array(labels), classes=classes)

    def test_conversion(self):
        data = Dataset(np.asfortranarray(self.images.astype(np.float64)), np.array([0, 1, 2, 3, 4], ">u2"))
        assert data.images.dtype == np.float32 and data.images.flags.c_contiguous
        assert data.labels.dtype == np.int64 and data.labels.tolist() == [0, 1, 2, 3, 4]
        assert repr(data) == "<Dataset dataset: 5 examples of shape (1, 2, 2), 5 classes>"

    def test_empty(self):
        assert list(self.data[:0]) == []
        assert self.data[:0].onehot.shape == (0, 3)


IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        (IMAGES, lambda data: data[:-1], "has 4703 bytes where its header says"),
        (IMAGES, lambda data: data + b"x", "has 4705 bytes where its header says"),
        (IMAGES, lambda data: data[:7], "not an IDX file"),
        (IMAGES, lambda data: b"", "not an IDX file"),
        (IMAGES, lambda data: b"<html>no such file</html>", "not an IDX file"),
        (IMAGES, lambda data: data[:2] + b"\x0d" + data[3:], "not an IDX file"),
        (IMAGES, lambda data: gzip.compress(data)[:-40], "not a complete gzip file"),
        (IMAGES, lambda data: b"\x1f\x8b" + b"garbage" * 9, "not a complete gzip file"),
        (IMAGES, lambda data: gzip.compress(data)[:-8] + bytes(8), "not a complete gzip file"),
        (IMAGES, lambda data: idx(np.zeros((6, 27, 28))), r"shape \(6, 27, 28\), not"),
        (IMAGES, lambda data: idx(np.zeros((7, 28, 28))), "7 images and 6 labels"),
        (LABELS, lambda data: idx([0, 1, 2, 3, 4, 10]), "labels up to 10"),
    ],
)
def test_damaged_files(data_root, name, damage, message):
    contents = four_files()
    contents[name] = damage(contents[name])
    write(data_root / "mnist", contents, compress=False)
    with pytest.raises(DatasetError, match=message) as caught:
        datasets.mnist()
    assert str(data_root / "mnist") in str(caught.value)


def test_an_incomplete_folder_is_named(data_root):
    contents = four_files()
    del contents[LABELS]
    write(data_root / "mnist", contents)
    with pytest.raises(DatasetError, match=f"lacks {LABELS}"):
        datasets.mnist()


def test_a_wrong_variable_is_named(data_root, monkeypatch):
    monkeypatch.setenv("MYIA_RELAY_DATA", str(data_root / "nowhere"))
    with pytest.raises(DatasetError, match="MYIA_RELAY_DATA is .*not a folder"):
        datasets.mnist()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_files(data_root):
    write(data_root / "mnist", four_files())
    (data_root / "mnist" / f"{IMAGES}.gz").chmod(0)
    with pytest.raises(DatasetError, match="cannot read"):
        datasets.mnist()


def test_nothing_anywhere(data_root):
    with pytest.raises(DatasetError) as caught:
        datasets.mnist()
    message = str(caught.value)
    for part in ("MYIA_RELAY_DATA/mnist", str(datasets.cache_dir() / "mnist"), "digits()"):
        assert part in message
    assert not datasets.cache_dir().exists()


def test_download(mirror, capsys):
    train, test = datasets.mnist()
    assert (len(train), len(test)) == (6, 4)
    assert sorted(mirror.asked) == sorted(mirror.served)
    assert "mnist/train-images-idx3-ubyte" in capsys.readouterr().err
    folder = datasets.cache_dir() / "mnist"
    assert sorted(p.name for p in folder.iterdir()) == sorted(four_files())
    assert datasets.find("mnist") == folder
    again, _ = datasets.mnist()
    assert len(mirror.asked) == 4, "the cache was not used"
    np.testing.assert_array_equal(again.images, train.images)


def test_download_without_the_variable(mirror, monkeypatch):
    monkeypatch.delenv("MYIA_RELAY_DATA")
    assert len(datasets.mnist()[0]) == 6


def test_a_local_folder_is_preferred(mirror, data_root):
    write(data_root / "mnist", four_files(train=2))
    assert len(datasets.mnist()[0]) == 2 and mirror.asked == []


def test_a_truncated_cache_is_filled_again(mirror):
    datasets.mnist()
    path = datasets.cache_dir() / "mnist" / IMAGES
    path.write_bytes(path.read_bytes()[:100])
    assert len(datasets.mnist()[0]) == 6
    assert mirror.asked.count(f"{IMAGES}.gz") == 2


def test_the_next_mirror_is_asked(mirror, monkeypatch):
    source = datasets._MNIST
    mirrors = (f"{mirror.url}missing/", "http://127.0.0.1:1/", *source.mirrors)
    monkeypatch.setattr(datasets, "_MNIST", datasets._Source("mnist", mirrors, source.files))
    assert len(datasets.mnist()[0]) == 6
    assert len(mirror.asked) == 8


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda archive: gzip.compress(zlib.decompress(archive, 31)[:-1] + b"!"), "checksum [0-9a-f]{64}, expected"),
        (lambda archive: archive[:-20], "ends too early"),
        (lambda archive: b"<html>please log in</html>", "incorrect header check"),
        (lambda archive: gzip.compress(bytes(10**6)), "more than 4720 bytes inside"),
        (lambda archive: os.urandom(10**6), "not the file we look for"),
    ],
)
def test_a_bad_download_leaves_nothing(mirror, spoil, reason):
    mirror.served[f"{IMAGES}.gz"] = spoil(mirror.served[f"{IMAGES}.gz"])
    with pytest.raises(DatasetError, match=reason) as caught:
        datasets.mnist()
    assert mirror.url in str(caught.value)
    assert not [p for p in datasets.cache_dir().rglob("*") if p.is_file()]


def test_a_cut_connection(mirror):
    mirror.cut.add(f"{IMAGES}.gz")
    with pytest.raises(DatasetError, match="of .* bytes|IncompleteRead|more expected"):
        datasets.mnist()
    assert not [p for p in datasets.cache_dir().rglob("*") if p.is_file()]


def test_ctrl_c_during_a_download(mirror, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        datasets.mnist()
    assert not [p for p in datasets.cache_dir().rglob("*") if p.is_file()]


def test_a_full_disk(mirror, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(DatasetError, match=r"cannot write .*No space left.*MYIA_RELAY_CACHE"):
        datasets.mnist()
    assert not [p for p in datasets.cache_dir().rglob("*") if p.is_file()]


def test_a_cache_that_cannot_be_made(mirror, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("MYIA_RELAY_CACHE", str(tmp_path / "file"))
    with pytest.raises(DatasetError, match="cannot write"):
        datasets.mnist()


def test_an_archive_checksum(mirror, monkeypatch):
    """Fashion-MNIST's checksums are of the compressed files."""
    archives = tuple(
        file._replace(sha256=hashlib.sha256(mirror.served[f"{file.name}.gz"]).hexdigest(), hashed="archive")
        for file in datasets._MNIST.files
    )
    monkeypatch.setattr(datasets, "_FASHION_MNIST", datasets._Source("fashion_mnist", (mirror.url,), archives))
    assert len(datasets.fashion_mnist()[0]) == 6


def test_published_checksums_are_complete():
    for source in (datasets._MNIST, datasets._FASHION_MNIST):
        assert len(source.mirrors) >= 2 and len({file.sha256 for file in source.files}) == 4
        assert all(len(file.sha256) == 64 and all(m.endswith("/") for m in source.mirrors) for file in source.files)

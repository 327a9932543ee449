"""Datasets: labelled images, which are MNIST, Fashion-MNIST and digits, which needs no network; and those of `text_datasets`.

Each loader of images returns `(train, test)`, two `Dataset`s over stacked arrays. The files are looked for in
`$MYIA_RELAY_DATA/<name>/`, then in the user's cache, and otherwise downloaded into the cache. A download is stored only
if its checksum is right, and gets its final name only when it is complete.

Sources: Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten digits"; H. Xiao, K. Rasul, R. Vollgraf,
"Fashion-MNIST" (arXiv:1708.07747); E. Alpaydin, C. Kaynak, "Optical Recognition of Handwritten Digits" (UCI, 1998).
"""

from __future__ import annotations

import hashlib
import operator
import os
import urllib.error
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..abstract.annotations import TensorAnnotation
from ..utils.arrays import plain_array
from ..utils.files import CACHE_VARIABLE, read_file, write_atomically
from .dataset_files import DATA_VARIABLE, GZIP_MAGIC, DatasetError, cache_dir, fetch, gunzip, local_dir, stored
from .text_datasets import TEXT_FILES, Phrase, Sentiment, Tree, Word, sst, tinyshakespeare

_ALIGNMENT = 64
_OVERHEAD = 4096  # by how much an archive may exceed its contents


class Example(NamedTuple):
    """One labelled image.

    Attributes:
        x: float32 (1, 28, 28), in [0, 1].
        y: float32 (10,), one-hot.
    """

    x: np.ndarray
    y: np.ndarray


class Dataset:
    """Labelled images as stacked arrays, and as a sequence of `Example(x, y)`.

    An index gives an `Example` whose arrays are views; a slice, an array of indices or a mask gives a `Dataset`. All
    arrays are C-contiguous; those that a loader returns start on a 64-byte boundary.

    Args:
        images: (n, ...) array, kept as it is where it is contiguous float32, else converted.
        labels: (n,) integers from 0 to `classes - 1`.
        name: what to call it.
        classes: number of classes; by default the greatest label plus one.

    Attributes:
        images: float32 (n, ...).
        labels: int64 (n,).
        name: what it is called.
        classes: number of classes.
    """

    __slots__ = ("_onehot", "classes", "images", "labels", "name")

    def __init__(self, images: np.ndarray, labels: np.ndarray, *, name: str = "dataset", classes: int | None = None):
        images, labels = plain_array(images), plain_array(labels)
        if not np.issubdtype(labels.dtype, np.integer):
            raise ValueError(f"labels must be integers, not {labels.dtype}")
        self.images = np.ascontiguousarray(images, dtype=np.float32)
        self.labels = np.ascontiguousarray(labels, dtype=np.int64)
        if self.labels.ndim != 1 or self.images.ndim < 1 or len(self.images) != len(self.labels):
            raise ValueError(
                f"images of shape {self.images.shape} and labels of shape {self.labels.shape} do not fit together"
            )
        least, greatest = (int(self.labels.min()), int(self.labels.max())) if len(self.labels) else (0, -1)
        self.classes = greatest + 1 if classes is None else classes
        if least < 0 or greatest >= self.classes:
            raise ValueError(f"labels from {least} to {greatest} are not all between 0 and {self.classes - 1}")
        self.name = name
        self._onehot: np.ndarray | None = None

    @property
    def onehot(self) -> np.ndarray:
        """The labels as float32 (n, classes): 1 in the label's column, 0 elsewhere. Made once."""
        if self._onehot is None:
            onehot = _aligned_empty((len(self), self.classes), np.float32)
            onehot[...] = 0
            onehot[np.arange(len(self)), self.labels] = 1
            self._onehot = onehot
        return self._onehot

    def __relay_tree__(self, name: str):
        """How compiled code sees a dataset: a run-time sequence over stacked arrays; one program serves every length."""
        parts = []
        for array in (self.images, self.onehot):
            parts.append((array, TensorAnnotation("float32", (name, *array.shape[1:]))))
        return "dataset", ("images", "onehot"), Example, parts

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Example]:
        return map(Example, self.images, self.onehot)

    def __getitem__(self, index):
        if isinstance(index, list):
            index = np.asarray(index, dtype=None if index else np.int64)
        if isinstance(index, slice) or (isinstance(index, np.ndarray) and index.ndim):
            part = Dataset(self.images[index], self.labels[index], name=self.name, classes=self.classes)
            if self._onehot is not None:
                part._onehot = np.ascontiguousarray(self._onehot[index])
            return part
        try:
            position = operator.index(index)
        except TypeError:
            raise TypeError(
                f"a dataset is indexed with an integer, a slice or an array, not {type(index).__name__}"
            ) from None
        if not -len(self) <= position < len(self):
            raise IndexError(f"index {position} is out of range: {self.name} has {len(self)} examples")
        return Example(self.images[position], self.onehot[position])

    def _repr_html_(self) -> str:
        """The first images with their labels."""
        from ..debug.html import images_html

        return images_html(repr(self)[1:-1], self.images[:16], self.labels[:16])

    def __repr__(self) -> str:
        return f"<Dataset {self.name}: {len(self)} examples of shape {self.images.shape[1:]}, {self.classes} classes>"


class _File(NamedTuple):
    """One file of a dataset: its name without ``.gz``, the shape of its contents, and its SHA-256."""

    name: str
    shape: tuple[int, ...]
    sha256: str
    hashed: str = "contents"
    """What the checksum is of: the uncompressed ``contents``, or the ``archive`` as it is published."""

    @property
    def num_bytes(self) -> int:
        return 4 + 4 * len(self.shape) + int(np.prod(self.shape))


@dataclass(frozen=True)
class _Source:
    """A dataset in the four IDX files of MNIST, in the order train images, labels, test images, labels."""

    name: str
    mirrors: tuple[str, ...]
    files: tuple[_File, _File, _File, _File]


_MNIST = _Source(
    "mnist",
    (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    (
        _File(
            "train-images-idx3-ubyte",
            (60000, 28, 28),
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        _File(
            "train-labels-idx1-ubyte",
            (60000,),
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
        _File(
            "t10k-images-idx3-ubyte",
            (10000, 28, 28),
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        _File(
            "t10k-labels-idx1-ubyte",
            (10000,),
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ),
)

_FASHION_MNIST = _Source(
    "fashion_mnist",
    (
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    ),
    (
        _File(
            "train-images-idx3-ubyte",
            (60000, 28, 28),
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "archive",
        ),
        _File(
            "train-labels-idx1-ubyte",
            (60000,),
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "archive",
        ),
        _File(
            "t10k-images-idx3-ubyte",
            (10000, 28, 28),
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "archive",
        ),
        _File(
            "t10k-labels-idx1-ubyte",
            (10000,),
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            "archive",
        ),
    ),
)


def mnist() -> tuple[Dataset, Dataset]:
    """The MNIST handwritten digits: 60,000 to train and 10,000 to test, 28x28.

    Returns:
        `(train, test)`.

    Raises:
        DatasetError: the files are neither in `$MYIA_RELAY_DATA/mnist` nor in the cache and cannot be downloaded, or
            one of them is damaged.
    """
    return _load(_MNIST)


def fashion_mnist() -> tuple[Dataset, Dataset]:
    """Zalando's pictures of clothes, in MNIST's format: 60,000 to train and 10,000 to test, 28x28.

    Returns:
        `(train, test)`.

    Raises:
        DatasetError: as for `mnist`.
    """
    return _load(_FASHION_MNIST)


def digits() -> tuple[Dataset, Dataset]:
    """The UCI handwritten digits, part of this package: 1,437 to train and 360 to test, 8x8 enlarged to 28x28.

    The split is a fixed shuffle, the enlargement bilinear and in integers: every machine gets the same bits.

    Returns:
        `(train, test)`.
    """
    with (
        (resources.files(__name__.rpartition(".")[0]) / "data" / "digits.npz").open("rb") as file,
        np.load(file) as stored,
    ):
        small, labels = stored["images"], stored["labels"]
    order = np.random.RandomState(0).permutation(len(labels))
    images = _enlarge(small[order], 28)
    labels = labels[order].astype(np.int64)
    cut = len(labels) * 4 // 5
    return (
        Dataset(images[:cut], labels[:cut], name="digits (train)", classes=10),
        Dataset(images[cut:], labels[cut:], name="digits (test)", classes=10),
    )


def find(name: str) -> Path | None:
    """The folder with all files of a dataset, complete or not valid: nothing is read, nothing downloaded.

    Args:
        name: ``"mnist"``, ``"fashion_mnist"``, ``"tinyshakespeare"`` or ``"sst"``.
    """
    names = {source.name: [file.name for file in source.files] for source in (_MNIST, _FASHION_MNIST)} | TEXT_FILES
    folders = (local_dir(name, name.replace("_", "-")), cache_dir() / name)
    return next((d for d in folders if d and all(stored(d, file) for file in names[name])), None)


def _aligned_empty(shape: tuple[int, ...], dtype) -> np.ndarray:
    """An uninitialised C-contiguous array that starts on a 64-byte boundary."""
    num_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.empty(num_bytes + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + num_bytes].view(dtype).reshape(shape)


def _enlarge(small: np.ndarray, size: int) -> np.ndarray:
    """Bilinear enlargement, pixel centres at half integers, values from 0..16 to 0..1.

    With m pixels in and n out, output pixel i lies at ((2i + 1) m - n) / 2n: weights are multiples of 1/2n, and the
    sums are exact in integers.

    Args:
        small: uint8 (count, m, m).
        size: n.

    Returns:
        float32 (count, 1, n, n).
    """
    m, unit = small.shape[1], 2 * size
    place = np.clip((2 * np.arange(size) + 1) * m - size, 0, (m - 1) * unit)
    low = np.minimum(place // unit, m - 2)
    weights = np.zeros((size, m), np.int32)
    weights[np.arange(size), low] = unit - (place - low * unit)
    weights[np.arange(size), low + 1] = place - low * unit
    sums = np.einsum("ip,bpq,jq->bij", weights, small.astype(np.int32), weights, optimize=True)
    images = _aligned_empty((len(small), 1, size, size), np.float32)
    images[...] = (sums / (16.0 * unit * unit))[:, None]
    return images


def _load(source: _Source) -> tuple[Dataset, Dataset]:
    """Read the four files of a dataset, wherever they are.

    Raises:
        DatasetError: a file is missing, damaged, or cannot be downloaded.
    """
    folder = local_dir(source.name, source.name.replace("_", "-"))
    if folder is not None:
        missing = [file.name for file in source.files if not stored(folder, file.name)]
        if len(missing) == len(source.files):
            folder = None
        elif missing:
            raise DatasetError(f"{folder} lacks {', '.join(missing)} (as is or with .gz): add it, or remove the folder")
    if folder is None:
        folder = cache_dir() / source.name
        _fill_cache(source, folder)
        expected = [file.shape for file in source.files]
    else:  # the user's own files may be a part of the dataset
        expected = [None] * len(source.files)
    train, train_labels, test, test_labels = (_read_idx(folder, *each) for each in zip(source.files, expected))
    return _dataset(source, "train", train, train_labels, folder), _dataset(source, "test", test, test_labels, folder)


def _dataset(source: _Source, part: str, pixels: np.ndarray, labels: np.ndarray, folder: Path) -> Dataset:
    """Pixels 0..255 and labels as they are stored -> a `Dataset` with pixels in [0, 1].

    Raises:
        DatasetError: the numbers of images and labels differ, or a label is above 9.
    """
    if len(pixels) != len(labels) or (len(labels) and labels.max() > 9):
        raise DatasetError(
            f"{folder}: {len(pixels)} images and {len(labels)} labels up to {labels.max(initial=0)} ({part}) "
            "do not belong together: remove the files and try again"
        )
    images = _aligned_empty((len(pixels), 1, *pixels.shape[1:]), np.float32)
    np.divide(pixels[:, None], np.float32(255), out=images)
    return Dataset(images, labels.astype(np.int64), name=f"{source.name} ({part})", classes=10)


def _read_idx(folder: Path, file: _File, shape: tuple[int, ...] | None) -> np.ndarray:
    """Read one IDX file of unsigned bytes.

    Layout: two zero bytes, the type (8), the number of axes, each axis as a big-endian int32, then the bytes.

    Args:
        folder: where it is.
        file: which one.
        shape: what its shape must be; None accepts any number of images.

    Raises:
        DatasetError: the file cannot be read, is damaged, or holds an array of another shape.
    """
    path = stored(folder, file.name)
    if path is None:
        raise DatasetError(f"{folder / file.name} has vanished: try again")
    again = f"remove it and try again (it should hold {'x'.join(map(str, shape or file.shape))} bytes)"
    try:
        data = read_file(path)
    except OSError as error:
        raise DatasetError(f"cannot read {path}: {error.strerror or error}") from error
    if data[:2] == GZIP_MAGIC:
        try:
            data = gunzip(data, file.num_bytes)
        except (zlib.error, ValueError) as error:
            raise DatasetError(f"{path} is not a complete gzip file ({error}): {again}") from error
    axes = len(file.shape)
    header = 4 + 4 * axes
    if len(data) < header or data[:4] != bytes((0, 0, 8, axes)):
        raise DatasetError(f"{path} is not an IDX file of unsigned bytes with {axes} axes: {again}")
    found = tuple(int(n) for n in np.frombuffer(data, ">u4", axes, 4))
    if len(data) - header != int(np.prod(found, dtype=np.int64)):
        raise DatasetError(f"{path} has {len(data) - header} bytes where its header says {found}: {again}")
    if found[1:] != file.shape[1:] or (shape is not None and found != shape):
        raise DatasetError(f"{path} holds an array of shape {found}, not {shape or ('n', *file.shape[1:])}: {again}")
    return np.frombuffer(data, np.uint8, offset=header).reshape(found)


def _fill_cache(source: _Source, folder: Path) -> None:
    """Download the files that the cache lacks; each appears complete and checked, or not at all.

    Raises:
        DatasetError: a file cannot be downloaded or written.
    """
    for file in source.files:
        path = folder / file.name
        if path.is_file() and path.stat().st_size == file.num_bytes:
            continue
        contents = _download(source, file)
        try:
            write_atomically(path, contents)
        except OSError as error:
            raise DatasetError(
                f"cannot write {path}: {error.strerror or error}; free some space there, or set {CACHE_VARIABLE} to a "
                "folder that can be written"
            ) from error


def _download(source: _Source, file: _File) -> bytes:
    """Get a file from the first mirror that has it, whole and unchanged.

    Returns:
        The uncompressed contents.

    Raises:
        DatasetError: no mirror has it.
    """
    failures = []
    for mirror in source.mirrors:
        url = f"{mirror}{file.name}.gz"
        try:
            archive = fetch(url, f"{source.name}/{file.name}", file.num_bytes + _OVERHEAD)
            contents = gunzip(archive, file.num_bytes)
        except (OSError, HTTPException, zlib.error, ValueError) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            failures.append(f"  {url}: {reason}")
            continue
        found = hashlib.sha256(archive if file.hashed == "archive" else contents).hexdigest()
        if found == file.sha256:
            return contents
        failures.append(f"  {url}: checksum {found}, expected {file.sha256}")
    tried = "\n".join(
        [
            f"  ${DATA_VARIABLE}/{source.name}: "
            + ("no such folder" if os.environ.get(DATA_VARIABLE) else f"{DATA_VARIABLE} is not set"),
            f"  {cache_dir() / source.name}: no {file.name}",
            *failures,
        ]
    )
    raise DatasetError(
        f"{source.name} was not found and cannot be downloaded. Tried:\n{tried}\n"
        f"Put the four files of {source.name} into a folder {source.name}, set {DATA_VARIABLE} to the folder around "
        "it, or use relay.datasets.digits(), which needs no network."
    )


__all__ = [
    "Dataset",
    "DatasetError",
    "Example",
    "Word",
    "Phrase",
    "Sentiment",
    "Tree",
    "digits",
    "fashion_mnist",
    "find",
    "mnist",
    "sst",
    "tinyshakespeare",
]

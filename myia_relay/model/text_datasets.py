"""Datasets of text: Shakespeare's plays as letters, and sentences with the sentiment of all their phrases.

The files are looked for in `$MYIA_RELAY_DATA/<name>/`, then in the user's cache.

Sources: A. Karpathy, "The unreasonable effectiveness of recurrent neural networks" (2015); R. Socher et al., "Recursive deep
models for semantic compositionality over a sentiment treebank" (EMNLP 2013).
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple

from ..utils.files import CACHE_VARIABLE, read_file, write_atomically
from .dataset_files import DATA_VARIABLE, GZIP_MAGIC, DatasetError, cache_dir, fetch, gunzip, local_dir, stored

SHAKESPEARE = "tinyshakespeare"
SHAKESPEARE_URL = (
    "https://raw.githubusercontent.com/karpathy/char-rnn/6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e/"
    "data/tinyshakespeare/input.txt"
)
SHAKESPEARE_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
SST = "sst"
PARTS = ("train", "dev", "test")
TEXT_FILES = {SHAKESPEARE: ["input.txt"], SST: [f"{part}.txt" for part in PARTS]}
"""name -> the files that belong to it."""

_LIMIT = 1 << 28  # bytes of a file, uncompressed
_DEEPEST = 500  # a sentence of the treebank has at most 56 words


@dataclass(frozen=True)
class Word:
    """A word.

    Attributes:
        label: 0, very negative, to 4, very positive.
        word: its number; 0 stands for words that no training sentence has.
    """

    label: int
    word: int


@dataclass(frozen=True)
class Phrase:
    """A phrase of two parts.

    Attributes:
        label: of the phrase, as that of a word.
        left, right: its parts.
    """

    label: int
    left: Tree
    right: Tree


Tree = Word | Phrase


class Sentiment(NamedTuple):
    """Sentences as trees.

    Attributes:
        train, dev, test: lists of trees.
        words: number -> word, ``"<unknown>"`` first.
    """

    train: list[Tree]
    dev: list[Tree]
    test: list[Tree]
    words: list[str]


def tinyshakespeare() -> str:
    """A million letters of Shakespeare's plays, in which 65 different ones occur.

    Raises:
        DatasetError: the file is neither in `$MYIA_RELAY_DATA/tinyshakespeare` nor in the cache and cannot be downloaded, or
            is damaged.
    """
    folder = local_dir(SHAKESPEARE)
    if folder is not None:
        path = stored(folder, "input.txt")
        if path is None:
            raise DatasetError(f"{folder} lacks input.txt (as is or with .gz): add it, or remove the folder")
        return _text(path)
    path = cache_dir() / SHAKESPEARE / "input.txt"
    if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != SHAKESPEARE_SHA256:
        _download_shakespeare(path)
    return _text(path)


def _download_shakespeare(path: Path) -> None:
    """Get the file, whole and unchanged, or nothing.

    Raises:
        DatasetError: it cannot be downloaded or written.
    """
    try:
        contents = _checked(fetch(SHAKESPEARE_URL, f"{SHAKESPEARE}/input.txt", _LIMIT))
    except (OSError, HTTPException, ValueError) as error:
        where = "no such folder" if os.environ.get(DATA_VARIABLE) else f"{DATA_VARIABLE} is not set"
        raise DatasetError(
            f"{SHAKESPEARE} was not found and cannot be downloaded. Tried:\n  ${DATA_VARIABLE}/{SHAKESPEARE}: {where}\n"
            f"  {path}: no such file\n  {SHAKESPEARE_URL}: {error}\n"
            f"Put any text into a file input.txt in a folder {SHAKESPEARE}, and set {DATA_VARIABLE} to the folder around it."
        ) from error
    try:
        write_atomically(path, contents)
    except OSError as error:
        raise DatasetError(
            f"cannot write {path}: {error.strerror or error}; free some space there, or set {CACHE_VARIABLE} to a folder that "
            "can be written"
        ) from error


def _checked(contents: bytes) -> bytes:
    """The contents, if they are Shakespeare's.

    Raises:
        ValueError: they are not.
    """
    found = hashlib.sha256(contents).hexdigest()
    if found != SHAKESPEARE_SHA256:
        raise ValueError(f"checksum {found}, expected {SHAKESPEARE_SHA256}")
    return contents


def sst() -> Sentiment:
    """The Stanford Sentiment Treebank: 8,544 sentences to train, 1,101 to develop and 2,210 to test.

    Every phrase has a label from 0, very negative, to 4, very positive. The words of the training sentences are numbered from 1, in
    the order in which they come.

    Raises:
        DatasetError: the files are neither in `$MYIA_RELAY_DATA/sst` nor in the cache (they are not downloaded), or one is damaged.
    """
    folder = local_dir(SST) or cache_dir() / SST
    paths = [stored(folder, f"{part}.txt") for part in PARTS]
    missing = [f"{part}.txt" for part, path in zip(PARTS, paths) if path is None]
    if missing:
        raise DatasetError(
            f"{folder} lacks {', '.join(missing)} (as is or with .gz), trees in the bracketed form of the Penn treebank. They are "
            "part of trainDevTestTrees_PTB.zip at https://nlp.stanford.edu/sentiment, which is not downloaded for you; "
            f"put them into a folder {SST}, and set {DATA_VARIABLE} to the folder around it."
        )
    words = ["<unknown>"]
    numbers: dict[str, int] = {}

    def learn(word: str) -> int:
        if word not in numbers:
            numbers[word] = len(words)
            words.append(word)
        return numbers[word]

    trees = []
    for part, path in zip(PARTS, paths):
        assert path is not None
        number = learn if part == "train" else lambda word: numbers.get(word, 0)
        trees.append(list(_trees(path, number)))
    train, dev, test = trees
    return Sentiment(train, dev, test, words)


def _trees(path: Path, number) -> Iterator[Tree]:
    """The trees of a file, one in each line that is not empty.

    Args:
        path: of the file.
        number: word -> its number.

    Raises:
        DatasetError: a line is no tree.
    """
    for i, line in enumerate(_text(path).split("\n"), 1):
        # Only these separate: there are words with other spaces in them.
        tokens = [token for token in line.replace("(", " ( ").replace(")", " ) ").split(" ") if token.strip("\r\t")]
        if not tokens:
            continue
        tokens.reverse()
        try:
            tree = _tree(tokens, number, 0, alone=True)
        except (ValueError, IndexError) as error:
            reason = error if isinstance(error, ValueError) else "a bracket is open"
            raise DatasetError(
                f"{path}, line {i} is no tree such as '(3 (2 very) (4 good))': {reason}; get the file anew"
            ) from error
        yield tree


def _tree(tokens: list[str], number, depth: int, alone: bool = False) -> Tree:
    """The tree at the end of a reversed list of tokens, which loses it.

    Args:
        tokens: the list.
        number: word -> its number.
        depth: how many brackets are open.
        alone: whether there is nothing else.

    Raises:
        ValueError: there is none.
    """
    if depth > _DEEPEST:
        raise ValueError(f"more than {_DEEPEST} brackets are open")
    if tokens.pop() != "(":
        raise ValueError("a bracket is missing")
    label = tokens.pop()
    if label not in ("0", "1", "2", "3", "4"):
        raise ValueError(f"{label!r} is no label from 0 to 4")
    if tokens[-1] != "(":
        word = tokens.pop()
        if word == ")" or tokens.pop() != ")":
            raise ValueError("a leaf is a label and a word")
        if alone and tokens:
            raise ValueError("there is more after the tree")
        return Word(int(label), number(word))
    parts = []
    while tokens[-1] == "(":
        parts.append(_tree(tokens, number, depth + 1))
    if tokens.pop() != ")" or len(parts) > 2:
        raise ValueError("a phrase is a label and one or two parts")
    if alone and tokens:
        raise ValueError("there is more after the tree")
    return Phrase(int(label), *parts) if len(parts) == 2 else parts[0]


def _text(path: Path) -> str:
    """The contents of a text file, compressed or not.

    Raises:
        DatasetError: it cannot be read, is damaged, empty, or no UTF-8.
    """
    try:
        data = read_file(path)
        if data[:2] == GZIP_MAGIC:
            data = gunzip(data, _LIMIT)
        text = data.decode("utf-8")
    except OSError as error:
        raise DatasetError(f"cannot read {path}: {error.strerror or error}") from error
    except (zlib.error, ValueError) as error:
        raise DatasetError(f"{path} is damaged ({error}): remove it and try again") from error
    if not text:
        raise DatasetError(f"{path} is empty: remove it and try again")
    return text

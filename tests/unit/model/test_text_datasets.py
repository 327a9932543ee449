"""Datasets of text: what they hold, where they are looked for, and what damaged files lead to."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from myia_relay import relay
from myia_relay.model import text_datasets
from myia_relay.model.datasets import DatasetError, Phrase, Word, find, sst, tinyshakespeare

GOOD = "(3 (2 very) (4 good))\n"


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty $MYIA_RELAY_DATA, and a cache of its own."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("MYIA_RELAY_DATA", str(folder))
    monkeypatch.setenv("MYIA_RELAY_CACHE", str(tmp_path / "cache"))
    return folder


def write_trees(root, train=GOOD, dev="(1 (2 not) (4 good))\n", test="(2 word)\n"):
    (root / "sst").mkdir(exist_ok=True)
    (root / "sst" / "train.txt").write_text(train, "utf-8")
    (root / "sst" / "dev.txt.gz").write_bytes(gzip.compress(dev.encode()))
    (root / "sst" / "test.txt").write_text(test, "utf-8")


def test_trees_have_labels_and_numbered_words(root):
    write_trees(root, train="(3 (2 very) (4 good))\n\n(0 (1 good) (2 (1 a\u00a0b) (0 very)))\r\n")
    found = sst()
    assert found.words == ["<unknown>", "very", "good", "a\u00a0b"]
    assert found.train == [
        Phrase(3, Word(2, 1), Word(4, 2)),
        Phrase(0, Word(1, 2), Phrase(2, Word(1, 3), Word(0, 1))),
    ]
    assert found.dev == [Phrase(1, Word(2, 0), Word(4, 2))]
    assert found.test == [Word(2, 0)]
    assert find("sst") == root / "sst"


def test_a_phrase_of_one_part_is_its_part(root):
    write_trees(root, test="(3 (1 (2 very) (4 good)))\n")
    assert sst().test == [Phrase(1, Word(2, 1), Word(4, 2))]


def test_compiled_code_takes_trees(root):
    write_trees(root, train="(3 (2 very) (4 (1 good) (2 fun)))\n")

    @relay
    def labels(tree: relay.datasets.Tree):
        match tree:
            case Word(label, _):
                return label
            case Phrase(label, left, right):
                return label + labels(left) + labels(right)

    assert labels(sst().train[0]) == 3 + 2 + 4 + 1 + 2


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("(3 (2 very) (4 good)", "a bracket is open"),
        ("(3 (2 very) (4 good)))", "more after the tree"),
        ("(2 a) (2 b)", "more after the tree"),
        ("(7 good)", "'7' is no label"),
        ("(3 good film)", "a label and a word"),
        ("(3 )", "a label and a word"),
        ("(3 (2 a) (2 b) (2 c))", "one or two parts"),
        ("good", "a bracket is missing"),
        ("(3 " * 600 + "(2 a)" + ")" * 600, "more than 500 brackets"),
    ],
)
def test_lines_that_are_no_trees_are_refused_with_their_number(root, line, reason):
    write_trees(root, train=GOOD + line + "\n")
    with pytest.raises(DatasetError, match=rf"train\.txt, line 2 is no tree.*{reason}"):
        sst()


def test_missing_trees_are_refused_with_advice(root):
    with pytest.raises(DatasetError, match=r"lacks train.txt, dev.txt, test.txt.*not downloaded.*MYIA_RELAY_DATA"):
        sst()
    write_trees(root)
    (root / "sst" / "dev.txt.gz").write_bytes(gzip.compress(GOOD.encode())[:-9])
    with pytest.raises(DatasetError, match=r"dev.txt.gz is damaged"):
        sst()
    (root / "sst" / "dev.txt.gz").unlink()
    with pytest.raises(DatasetError, match=r"sst lacks dev.txt "):
        sst()


def test_shakespeare_is_read_from_the_folder(root):
    (root / "tinyshakespeare").mkdir()
    with pytest.raises(DatasetError, match="lacks input.txt"):
        tinyshakespeare()
    path = root / "tinyshakespeare" / "input.txt"
    path.write_text("To be, or not to be – that is the question.\n", "utf-8")
    assert tinyshakespeare() == "To be, or not to be – that is the question.\n"
    assert find("tinyshakespeare") == root / "tinyshakespeare"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DatasetError, match="is damaged"):
        tinyshakespeare()
    path.write_bytes(b"")
    with pytest.raises(DatasetError, match="is empty"):
        tinyshakespeare()


def test_shakespeare_is_downloaded_whole_or_not_at_all(root, tmp_path, monkeypatch):
    source = tmp_path / "elsewhere.txt"
    source.write_text("First Citizen:\n")
    monkeypatch.setattr(text_datasets, "SHAKESPEARE_URL", source.as_uri())
    kept = tmp_path / "cache" / "datasets" / "tinyshakespeare" / "input.txt"
    with pytest.raises(DatasetError, match="checksum") as error:
        tinyshakespeare()
    assert "no such folder" in str(error.value)
    assert not kept.exists()
    sha256 = text_datasets.hashlib.sha256(source.read_bytes()).hexdigest()
    monkeypatch.setattr(text_datasets, "SHAKESPEARE_SHA256", sha256)
    assert tinyshakespeare() == "First Citizen:\n"
    source.unlink()
    assert tinyshakespeare() == "First Citizen:\n"
    kept.write_text("First Cit")  # cut off: it is downloaded again
    with pytest.raises(DatasetError, match="cannot be downloaded"):
        tinyshakespeare()


def test_the_real_trees(sst_dir):
    found = sst()
    assert (len(found.train), len(found.dev), len(found.test)) == (8544, 1101, 2210)
    assert np.bincount([tree.label for tree in found.dev]).tolist() == [139, 289, 229, 279, 165]
    assert len(found.words) == 18281

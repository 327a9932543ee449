"""The intermediate representation of ten small programs after each stage, as text.

A difference is not a fault by itself: it shows what a change of the compiler does to programs. Where it is meant,
`pytest tests/golden --update-golden` writes the texts anew.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from myia_relay import relay
from tests.golden.programs import PROGRAMS
from tests.pins import in_words_of_3_11

STAGES = ("parsed", "inferred", "differentiated", "optimized")
FOLDER = Path(__file__).parent


def text_of(f, args) -> str:
    """The program after each stage. The python executor is this machine's nowhere."""
    compiled = relay(f, executor="python")
    parts = []
    for stage in STAGES:
        text = in_words_of_3_11(re.sub(r" at 0x[0-9a-f]+", "", str(compiled.ir(*args, stage=stage))))
        parts.append(f"--- {stage} ---\n{text.strip()}\n")
    return "\n".join(parts)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_stages(f, updating):
    path = FOLDER / f"{f.__name__}.txt"
    found = text_of(f, PROGRAMS[f])
    if updating:
        path.write_text(found)
    assert path.exists(), "pytest tests/golden --update-golden"
    assert found.splitlines() == path.read_text().splitlines()


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_texts_are_the_same_each_time(f):
    assert text_of(f, PROGRAMS[f]) == text_of(f, PROGRAMS[f])


def test_no_text_is_left_over():
    assert {p.stem for p in FOLDER.glob("*.txt")} == {f.__name__ for f in PROGRAMS}

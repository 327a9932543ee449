"""The cache of programs, which other tests switch off."""

import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a cache of our own in it, switched on."""
    monkeypatch.setenv("MYIA_RELAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MYIA_RELAY_CACHE_SIZE", "64")
    return tmp_path

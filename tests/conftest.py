"""Isolation of all tests from the data of the user."""

import itertools

import pytest

_NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def _own_store(tmp_path_factory, monkeypatch):
    """Gives each test a store of results of its own: no result of another test answers its runs."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.getbasetemp() / "data" / str(next(_NUMBERS))))

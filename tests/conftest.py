"""Isolation of all tests from the data of the user, the draw of cases that `make test` runs, and the order of tests."""

import hashlib
import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

_NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def _own_store(tmp_path_factory, monkeypatch):
    """Gives each test a store of results of its own: no result of another test answers its runs."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.getbasetemp() / "data" / str(next(_NUMBERS))))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Draws cases, and moves the tests marked `minutes(N)` to the front, the longest first.

    A worker that has nothing left takes the next test. So the last tests are short, and all workers end together.
    """
    _draw(config, items)
    yield
    items.sort(key=_minutes, reverse=True)


def _draw(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Makes those cases of a test marked `drawn(N)` long that the commit does not draw: it draws one in N.

    All cases run in `make test-all`. A case that is named on the command line runs.
    """
    if any("::" in argument for argument in config.args):
        return
    tree = _tree()
    for item in items:
        drawn = item.get_closest_marker("drawn")
        if drawn is not None and hasattr(item, "callspec"):
            (of,) = drawn.args
            digest = hashlib.sha256(f"{tree} {item.nodeid}".encode()).digest()
            if int.from_bytes(digest[:8]) % of:
                item.add_marker(pytest.mark.long)


def _minutes(item: pytest.Item) -> float:
    marker = item.get_closest_marker("minutes")
    return 0 if marker is None else marker.args[0]


def _tree() -> str:
    """Returns the hash of the files of the commit; an empty text outside of a repository."""
    command = ["git", "rev-parse", "HEAD^{tree}"]
    folder = Path(__file__).parent
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""

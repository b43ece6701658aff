"""Isolation of all tests from the data of the user, and the draw of the cases that `make test` runs."""

import hashlib
import itertools
import subprocess
from pathlib import Path

import pytest

_NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def _own_store(tmp_path_factory, monkeypatch):
    """Gives each test a store of results of its own: no result of another test answers its runs."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.getbasetemp() / "data" / str(next(_NUMBERS))))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
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


def _tree() -> str:
    """Returns the hash of the files of the commit; an empty text outside of a repository."""
    command = ["git", "rev-parse", "HEAD^{tree}"]
    folder = Path(__file__).parent
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""

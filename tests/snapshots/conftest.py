"""Guest programs for the tests of snapshots."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import compiled

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def program() -> Callable[[str], Path]:
    """Compiles a program of tests/programs or tests/hardware_transactions."""

    def build(name: str) -> Path:
        folders = (TESTS / "programs", TESTS / "hardware_transactions")
        found = [path for source in folders for path in source.glob(f"{name}.c*")]
        (source,) = [path for path in found if path.suffix in (".c", ".cpp")]
        return compiled.program(source)

    return build

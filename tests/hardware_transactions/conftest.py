"""Guest programs for the tests of hardware transactions."""

from __future__ import annotations

from pathlib import Path

import pytest
from htm_runs import HERE, Program

import compiled


@pytest.fixture(scope="session")
def program() -> Program:
    """Compiles a source of this folder, once per set of flags."""

    def build(name: str, *flags: str) -> Path:
        return compiled.program(HERE / f"{name}.cpp", flags)

    return build

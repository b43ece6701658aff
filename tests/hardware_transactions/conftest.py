"""Guest programs for the tests of hardware transactions."""

from __future__ import annotations

from pathlib import Path

import pytest
from htm_runs import HERE, Program

from durasim import toolchain


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Compiles a source of this folder, once for each set of flags."""
    folder = tmp_path_factory.mktemp("hardware-transactions")

    def build(name: str, *flags: str) -> Path:
        output = folder / "-".join([name, *(flag.lstrip("-") for flag in flags)])
        return output if output.is_file() else toolchain.compile_program(HERE / f"{name}.cpp", output, flags)

    return build

"""Guest programs for the tests of snapshots."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from durasim import toolchain

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Compile a program of tests/programs or tests/hardware_transactions, once per session."""
    folder = tmp_path_factory.mktemp("programs")

    def build(name: str) -> Path:
        elf = folder / name
        if not elf.is_file():
            folders = (TESTS / "programs", TESTS / "hardware_transactions")
            found = [path for source in folders for path in source.glob(f"{name}.c*")]
            (source,) = [path for path in found if path.suffix in (".c", ".cpp")]
            flags = ("-x", "c", "-std=gnu17") if source.suffix == ".c" else ()
            toolchain.compile_program(source, elf, flags)
        return elf

    return build

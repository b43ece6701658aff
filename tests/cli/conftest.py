"""Helpers of the tests of the command line, which call it inside the process of the test."""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import command_line
import elf_files
import schemas

Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def program() -> Program:
    """Runs `durasim` with the given arguments in this process and returns its output; see `command_line.run`."""
    return command_line.run


@pytest.fixture(scope="session")
def refused(program: Program) -> Callable[..., str]:
    """Runs `durasim`, expects a refusal with one sentence on standard error, and returns the sentence."""

    def start(arguments: Sequence[str | Path], exit_code: int, *words: str, **options: Any) -> str:
        result = program(*arguments, **options)
        sentence = result.stderr
        assert result.returncode == exit_code, sentence
        assert sentence.count("\n") == 1, sentence
        assert sentence.endswith("\n"), sentence
        assert "Traceback" not in sentence
        assert "panicked" not in sentence
        for word in words:
            assert word in sentence
        return sentence

    return start


@pytest.fixture
def elf(tmp_path: Path) -> Callable[[bytes], Path]:
    """Writes an ELF file and returns its path."""

    def write(data: bytes, name: str = "prog") -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


@pytest.fixture
def hello(elf: Callable[[bytes], Path]) -> Path:
    """Returns a program that greets on both streams and exits with 0."""
    code = elf_files.write_from_pc(1, b"hello out\n") + elf_files.write_from_pc(2, b"hello err\n")
    return elf(elf_files.elf64(code + elf_files.exit_with(0)), "hello")


@pytest.fixture(scope="session")
def conforms() -> Callable[[str, Any], None]:
    """Checks a document against one of the checked-in schemas."""
    return schemas.validate

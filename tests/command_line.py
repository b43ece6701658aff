"""Runs the command `durasim` in the process of a test: starting an interpreter takes longer than most commands."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO
from unittest import mock

from durasim.cli import app


def run(
    *arguments: str | Path, env: Mapping[str, str] | None = None, cwd: str | Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command and returns its exit code and output. An unexpected exception reaches the test.

    Args:
        arguments: The words after `durasim`.
        env: The environment, that of this process if None.
        cwd: The working folder, that of this process if None.
    """
    words = [str(word) for word in arguments]
    with (
        _streams() as (out, err),
        _descriptor_of_errors() as direct,
        contextlib.chdir(cwd or Path.cwd()),
        _environment(env, words),
    ):
        try:
            app(words, prog_name="durasim")
        except SystemExit as end:
            code = end.code
        texts = [stream.buffer.getvalue().decode() for stream in (out, err) if stream.flush() is None]
        direct.seek(0)
        texts[1] += direct.read().decode()
    return subprocess.CompletedProcess(["durasim", *words], code if isinstance(code, int) else 1, *texts)


@contextlib.contextmanager
def _streams() -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    """Replaces the standard streams; programs write bytes to their buffers."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield out, err


@contextlib.contextmanager
def _descriptor_of_errors() -> Iterator[BinaryIO]:
    """Keeps what is written to the descriptor of standard error directly, as by a panic of the Rust core."""
    before = os.dup(2)
    with tempfile.TemporaryFile() as direct:
        os.dup2(direct.fileno(), 2)
        try:
            yield direct
        finally:
            os.dup2(before, 2)
            os.close(before)


@contextlib.contextmanager
def _environment(env: Mapping[str, str] | None, words: list[str]) -> Iterator[None]:
    with mock.patch.object(sys, "argv", ["durasim", *words]), mock.patch.dict(os.environ):
        if env is not None:
            os.environ.clear()
            os.environ.update(env)
        yield

"""A copy of the repository with an addition, and the files edited for it.

`CONTRIBUTING.md` states the numbers of files; a test makes the addition and compares.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "build" / "scratch-target"
TIMEOUT_S = 1800


def stated_files() -> dict[str, int]:
    """Returns the number of files stated by CONTRIBUTING.md for each kind of addition."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = re.search(r"^\| to add \| files \| number \|\n.*?\n((?:\|.*\n)+)", page, re.MULTILINE)
    assert table is not None, "CONTRIBUTING.md has no table of what is edited"
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table[1].splitlines()]
    return {name: int(number) for name, _, number in rows}


class ScratchCopy:
    """A copy of the current files of this checkout, with its own history.

    It runs in the Python environment of these tests, which finds the copy's package first. It has its own target
    directory, because cargo distinguishes copies of a workspace only by the times of their files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = _run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], ROOT).stdout
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).exists():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                # With the current time, so that cargo rebuilds the results of another copy.
                shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
        # Names of compiled guest programs are hashes of their inputs.
        for cache in ("guest", "zig-cache"):
            if (ROOT / "build" / cache).is_dir():
                shutil.copytree(ROOT / "build" / cache, folder / "build" / cache)
        _run(["git", "init", "--quiet"], folder)
        self.keep()

    def write(self, name: str, text: str) -> None:
        """Writes a new file."""
        path = self.folder / name
        assert not path.exists(), f"{name} already exists"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        """Returns a file."""
        return (self.folder / name).read_text(encoding="utf-8")

    def replace(self, name: str, old: str, new: str) -> None:
        """Replaces the only place where a file has this text."""
        text = self.read(name)
        assert text.count(old) == 1, f"{name} has {text.count(old)} places with {old!r}"
        (self.folder / name).write_text(text.replace(old, new), encoding="utf-8")

    def edited(self) -> list[str]:
        """Returns the files written or changed since the last `keep`."""
        listed = _run(["git", "status", "--porcelain", "--untracked-files=all", "-z"], self.folder).stdout
        return sorted(entry[3:] for entry in listed.split("\0") if entry)

    def keep(self) -> None:
        """Commits the current state, from which later edits are counted."""
        _run(["git", "add", "--all"], self.folder)
        who = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
        _run(["git", *who, "commit", "--quiet", "--allow-empty", "--message", "kept"], self.folder)

    def build(self) -> None:
        """Builds the Rust core with all assertions, and copies it to the package."""
        TARGET.mkdir(parents=True, exist_ok=True)
        # Copies share the folder, one after the other. Cargo compares only times of files: those of a copy that is
        # older than the build of another one would count as built.
        with (TARGET / "copy.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for source in (self.folder / "crates").rglob("*.rs"):
                source.touch()
            self._build()

    def _build(self) -> None:
        command = ["cargo", "build", "--package", "durasim-py", "--locked", "--offline", "--message-format", "json"]
        lines = _run(command, self.folder, self._environment()).stdout.splitlines()
        messages = [json.loads(line) for line in lines]
        libraries = [
            name
            for message in messages
            if message["reason"] == "compiler-artifact" and message["target"]["name"] == "_core"
            for name in message["filenames"]
        ]
        assert len(libraries) == 1, libraries
        shutil.copy2(libraries[0], self.folder / "python/durasim/_core.abi3.so")

    def python(self, *arguments: str, code: int = 0) -> str:
        """Runs Python with the copy's package and returns its output.

        Raises:
            AssertionError: Its exit code is not `code`.
        """
        return _run([sys.executable, *arguments], self.folder, self._environment(), code).stdout

    def durasim(self, *arguments: str, code: int = 0) -> Any:
        """Runs the copy's command line and returns the printed JSON document."""
        return json.loads(self.python("-m", "durasim", *arguments, "--json", "-", code=code))

    def _environment(self) -> dict[str, str]:
        return os.environ | {"CARGO_TARGET_DIR": str(TARGET), "PYTHONPATH": str(self.folder / "python")}


def _run(
    command: list[str], folder: Path, environment: Mapping[str, str] | None = None, code: int = 0
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
    )
    assert done.returncode == code, (
        f"{' '.join(command)}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    )
    return done

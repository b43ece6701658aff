"""Keys of stored results: a hash of all that a simulation reads."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from durasim import _core
from durasim.errors import host_io

_READ = ("elf", "pool", "from", "root")
"""Fields of a request that name files or folders of the host; their contents are part of the key."""
_WRITTEN = ("pool", "snapshot")
"""Fields of a request that name files that the run writes."""
_WITHOUT_EFFECT = ("workers",)
"""Fields of a request that change no result."""
_CHUNK_BYTES = 2**20
STANDARD_INPUT = b""
"""Standard input of every simulated program."""


def writes(request: Mapping[str, Any]) -> str | None:
    """Returns the field of a request that makes its run write to the host; None if it only reads.

    Changes in the folder of `root` stay in memory without `root_write`.
    """
    for name in _WRITTEN:
        if request.get(name) is not None:
            return name
    return "root_write" if request.get("root_write") else None


class Keys:
    """Keys of requests. Each file is read once, as long as its size and times are unchanged: create one per study."""

    def __init__(self) -> None:
        self._hashes: dict[tuple[str, tuple[int, ...]], str] = {}

    def of(self, kind: str, request: Mapping[str, Any]) -> str:
        """Returns the key of a simulation.

        Args:
            kind: The kind of simulation; equal requests of two kinds have two keys.
            request: The request passed to the Rust core.

        Raises:
            HostIoError: A file of the request cannot be read.
        """
        described = {name: value for name, value in request.items() if name not in (*_READ, *_WITHOUT_EFFECT)}
        read = {name: self._content(str(request[name])) for name in _READ if request.get(name) is not None}
        if (machine := str(request["machine"])) not in presets():
            # A machine file: its path changes no result.
            read["machine"] = described["machine"] = self._content(machine)
        standard_input = hashlib.blake2b(STANDARD_INPUT, digest_size=16).hexdigest()
        text = json.dumps([kind, build(), standard_input, read, described], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def _content(self, path: str) -> str:
        try:
            return self._folder(Path(path)) if Path(path).is_dir() else self._file(path)
        except OSError as error:
            raise host_io(error.filename or path, error) from None

    def _file(self, path: str) -> str:
        try:
            facts = os.stat(path)  # noqa: PTH116 - with the text of the path as the key
        except FileNotFoundError:
            # A pool that the run creates, or a file that the run refuses.
            return "missing"
        version = (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)
        if (path, version) not in self._hashes:
            self._hashes[path, version] = content_hash(path)
        return self._hashes[path, version]

    def _folder(self, folder: Path) -> str:
        """Returns a hash of names, kinds, right to execute, and contents of all files in a folder."""
        digest = hashlib.blake2b(digest_size=16)
        for path in sorted(folder.rglob("*")):
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                content = f"link {os.readlink(path)}"  # noqa: PTH115 - a text
            elif stat.S_ISREG(mode):
                content = f"file {mode & 0o100} {self._file(str(path))}"
            else:
                content = "folder" if stat.S_ISDIR(mode) else "special"
            # JSON separates the parts, whatever characters a name has.
            digest.update(json.dumps([os.fspath(path.relative_to(folder)), content]).encode(errors="surrogateescape"))
        return digest.hexdigest()


def content_hash(path: str | os.PathLike[str]) -> str:
    """Returns a hash of the contents of a file."""
    digest = hashlib.blake2b(digest_size=16)
    with Path(path).open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


@cache
def build() -> str:
    """Returns a hash of the Rust core, which simulates everything."""
    return content_hash(_core.__file__)


@cache
def presets() -> frozenset[str]:
    """Returns the machine presets, which every installation has."""
    return frozenset(row["name"] for row in json.loads(_core.machines()))

"""Files and folders that a task reads, named by the SHA-256 of their contents: a worker elsewhere has none of them."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from durasim.errors import host_io, refusal
from durasim.store.keys import presets, writes

FILES = ("elf", "machine", "from")
"""Fields of a request that name a file."""
FOLDER = "root"
"""The field of a request that names a folder."""
_CHUNK_BYTES = 2**20
_RIGHTS = 0o777


def check(request: Mapping[str, Any]) -> None:
    """Refuses a request that a worker on another computer cannot simulate.

    Raises:
        ConfigError: Its run writes to the host.
    """
    if (written := writes(request)) is not None:
        raise refusal(written, "is written on the computer that simulates: leave --cluster out")


@dataclass
class Contents:
    """The contents of files, read once each as long as their size and times are unchanged.

    Attributes:
        paths: A file with these contents, by hash.
    """

    paths: dict[str, str] = field(default_factory=dict)
    _hashes: dict[tuple[str, tuple[int, ...]], str] = field(default_factory=dict)

    def of(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the part `files` of a task: a hash for each file, a list of entries for a folder.

        Raises:
            ConfigError: The folder contains a name or a special file that cannot be sent.
            HostIoError: A file cannot be read.
        """
        found: dict[str, Any] = {}
        for name in FILES:
            path = request.get(name)
            if path is not None and not (name == "machine" and path in presets()):
                found[name] = self._file(Path(path))
        if request.get(FOLDER) is not None:
            found[FOLDER] = list(self._folder(Path(request[FOLDER])))
        return found

    def _file(self, path: Path) -> str:
        try:
            facts = path.stat()
            version = (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)
            known = (str(path), version)
            if known not in self._hashes:
                self._hashes[known] = sha256(path)
        except OSError as error:
            raise host_io(path, error) from None
        self.paths[self._hashes[known]] = str(path)
        return self._hashes[known]

    def _folder(self, folder: Path) -> Iterator[dict[str, Any]]:
        for path in sorted(folder.rglob("*")):
            mode = path.lstat().st_mode
            name = os.fspath(path.relative_to(folder))
            if not name.isprintable():
                raise refusal(FOLDER, f"{name!r} has a name that cannot be sent to a worker")
            entry = {"path": name, "rights": mode & _RIGHTS}
            if stat.S_ISLNK(mode):
                yield {"path": name, "link": os.fspath(path.readlink())}
            elif stat.S_ISREG(mode):
                yield entry | {"file": self._file(path)}
            elif stat.S_ISDIR(mode):
                yield entry
            else:
                raise refusal(FOLDER, f"{name} is neither a file, a folder nor a link: it cannot be sent to a worker")


def hashes_of(files: Mapping[str, Any]) -> set[str]:
    """Returns all hashes in the part `files` of a task."""
    plain = {files[name] for name in FILES if name in files}
    return plain | {entry["file"] for entry in files.get(FOLDER, ()) if "file" in entry}


def sha256(path: Path) -> str:
    """Returns the hash of the contents of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()

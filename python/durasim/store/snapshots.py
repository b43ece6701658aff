"""Populated snapshots of a store: files named by their contents, in a folder beside it, below a size limit."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from pathlib import Path

from durasim.errors import host_io, refusal
from durasim.store.database import Store
from durasim.store.keys import content_hash

LIMIT_BYTES = 4 * 2**30
"""Largest size of all snapshots of a store; those that were used least recently are removed first."""
_PARTIAL_S = 24 * 3600
"""Age at which a partly written snapshot is removed."""
_OTHERS_WRITE = 0o022


class Snapshots:
    """The snapshots of an open store. A key is that of the request that populates; equal contents share a file."""

    def __init__(self, store: Store, limit_bytes: int = LIMIT_BYTES) -> None:
        """Creates the folder for this user alone if it does not exist."""
        self._store, self._limit_bytes = store, limit_bytes
        self.folder = Path(f"{store.path}.snapshots")
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise host_io(self.folder, error) from None
        _refuse_of_others(self.folder)
        for partial in self.folder.glob("*.new"):
            # Left by a process that was killed.
            if partial.stat().st_mtime < time.time() - _PARTIAL_S:
                partial.unlink(missing_ok=True)

    def get(self, key: str) -> Path | None:
        """Returns the snapshot of a key; None if it is not kept, or its file is not what was stored.

        Raises:
            ConfigError: The file belongs to another user, or others may write it.
        """
        content = self._store.snapshot(key)
        if content is None:
            return None
        path = self._path(content)
        if not path.exists():
            return None
        _refuse_of_others(path)
        if content_hash(path) != content:
            path.unlink()
            return None
        self._store.put_snapshot(key, content, path.stat().st_size, int(time.time()))
        return path

    def fresh_path(self, key: str) -> Path:
        """Returns the path to which the snapshot of a key is written before `keep`."""
        return self.folder / f"{key}.{os.getpid()}.new"

    def keep(self, key: str, written: Path, used: Collection[Path] = ()) -> Path:
        """Keeps the file of a snapshot and returns its new path.

        Args:
            key: The key of the request that populated it.
            written: The file, which is renamed.
            used: Snapshots that are not removed to make room.

        Raises:
            HostIoError: The file cannot be read or renamed.
        """
        try:
            content = content_hash(written)
            path = self._path(content)
            written.replace(path)
            path.chmod(0o600)
            self._store.put_snapshot(key, content, path.stat().st_size, int(time.time()))
            self._make_room({path, *used})
        except OSError as error:
            raise host_io(error.filename or written, error) from None
        return path

    def _path(self, content: str) -> Path:
        return self.folder / f"{content}.snapshot"

    def _make_room(self, used: Collection[Path]) -> None:
        sizes = self._store.snapshot_sizes()
        total = sum(sizes.values())
        for content, size in sizes.items():
            path = self._path(content)
            if total > self._limit_bytes and path not in used:
                self._store.remove_snapshot(content)
                path.unlink(missing_ok=True)
                total -= size


def _refuse_of_others(path: Path) -> None:
    """Refuses a file or folder that another user could have written: a snapshot is the memory of a program."""
    facts = path.stat()
    if facts.st_uid != os.geteuid():
        raise refusal("store", f"{path} belongs to another user: use another --store")
    if facts.st_mode & _OTHERS_WRITE:
        raise refusal("store", f"{path} can be written by other users: change its mode, or use another --store")

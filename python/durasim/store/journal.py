"""Choice of SQLite's journal: a write-ahead log needs shared memory, which network file systems do not provide."""

from __future__ import annotations

import os
from pathlib import Path

WRITE_AHEAD, ROLLBACK = "wal", "delete"
_LOCAL = frozenset({
    "bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "nilfs2", "overlay", "ramfs", "reiserfs", "tmpfs",
    "xfs", "zfs",
})  # fmt: skip
"""File systems of one computer. All others, such as nfs, cifs, lustre and fuse, get a rollback journal."""
_MOUNTS = "/proc/self/mountinfo"


def journal_for(folder: Path, mounts: str = _MOUNTS) -> str:
    """Returns the journal of a store in `folder`: `wal` on a local file system, else `delete`."""
    return WRITE_AHEAD if _file_system_of(folder, mounts) in _LOCAL else ROLLBACK


def _file_system_of(folder: Path, mounts: str) -> str | None:
    """Returns the type of the file system that holds a folder; None if the host does not list it."""
    place = os.path.realpath(folder)
    found: tuple[int, str | None] = (-1, None)
    try:
        lines = Path(mounts).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    for line in lines:
        before, _, after = line.partition(" - ")
        point = _unescaped(before.split()[4])
        if os.path.commonpath([place, point]) == point and len(point) >= found[0]:
            found = len(point), after.split()[0]
    return found[1]


def _unescaped(text: str) -> str:
    """Returns a path of the list of mounts, which has spaces and the like as octal numbers."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text

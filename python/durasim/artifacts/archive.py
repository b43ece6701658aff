"""The file of an artifact: a compressed tar archive with equal bytes for equal members."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from durasim.errors import host_io

MANIFEST = "MANIFEST.sha256"
"""The list of all other files with their hashes, in the format of `sha256sum`."""
_TIME_S = 315_532_800
"""The time of all members, the first second of 1980: wheels, which are zip files, know no earlier one."""
_LEVEL = 6
_FILE, _PROGRAM, _FOLDER = 0o644, 0o755, 0o755


@dataclass(frozen=True, slots=True)
class Member:
    """A file, link or folder of an artifact.

    Attributes:
        path: Its path in the artifact, with `/` between the parts.
        content: Its bytes, or the file that has them; None for a link or a folder.
        link: The target of a link; None otherwise.
        rights: Rights as in `chmod`; those of a file or folder that all may read if None.
    """

    path: str
    content: bytes | Path | None = None
    link: str | None = None
    rights: int | None = None

    def read(self) -> bytes:
        """Returns the bytes of a file.

        Raises:
            HostIoError: The file cannot be read.
        """
        if isinstance(self.content, bytes):
            return self.content
        if self.content is None:
            raise ValueError(f"{self.path} is no file")
        try:
            return self.content.read_bytes()
        except OSError as error:
            raise host_io(self.content, error) from None


def program(path: str, text: str) -> Member:
    """Returns a text that can be executed."""
    return Member(path, text.encode(), rights=_PROGRAM)


def write(target: str, top: str, members: Iterable[Member]) -> int:
    """Writes an archive, atomically, and returns the bytes of all its files.

    Args:
        target: The file.
        top: The folder that has all members when the archive is unpacked.
        members: The members, each with another path. The manifest is added.

    Raises:
        HostIoError: A member cannot be read, or the archive cannot be written.
    """
    total, listed = 0, list[str]()
    with _replaced(target) as file, _tar(file) as archive:
        for member in sorted(members, key=lambda each: each.path):
            info = _info(f"{top}/{member.path}", member)
            if member.content is None:
                archive.addfile(info)
                continue
            data = member.read()
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
            total += len(data)
            listed.append(f"{hashlib.sha256(data).hexdigest()}  {member.path}\n")
        manifest = "".join(listed).encode()
        info = _info(f"{top}/{MANIFEST}", Member(MANIFEST))
        info.type, info.mode, info.size = tarfile.REGTYPE, _FILE, len(manifest)
        archive.addfile(info, io.BytesIO(manifest))
    return total + len(manifest)


def _info(path: str, member: Member) -> tarfile.TarInfo:
    info = tarfile.TarInfo(path)
    info.mtime = _TIME_S
    if member.link is not None:
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, member.link, 0o777
    elif member.content is None:
        info.type, info.mode = tarfile.DIRTYPE, _FOLDER if member.rights is None else member.rights
    else:
        info.mode = _FILE if member.rights is None else member.rights
    return info


@contextlib.contextmanager
def _tar(file: IO[bytes]) -> Iterator[tarfile.TarFile]:
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=_LEVEL, mtime=_TIME_S) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        yield archive


@contextlib.contextmanager
def _replaced(target: str) -> Iterator[IO[bytes]]:
    """Gives a temporary file that becomes `target` at the end, unless an error is raised."""
    path = Path(target).resolve()
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise host_io(target, error) from None
    partial = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        partial.chmod(0o666 & ~mask)
        partial.replace(path)
    except OSError as error:
        raise host_io(target, error) from None
    finally:
        partial.unlink(missing_ok=True)

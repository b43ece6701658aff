"""What a guest program says of itself in its file: the transaction backend that it was built for."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

SECTION = b".durasim.backend"
"""Not loaded; `guest/include/durasim/backend.h` writes it: the name of a backend with a zero byte behind it."""

_HEADER = struct.Struct("<16s24xQ10xHHH")
"""Of an ELF64 file: identification, where the section headers are, the size of one, how many, and which has names."""
_SECTION_HEADER = struct.Struct("<I20xQQ24x")
"""Of a section: where its name is among the names, where its bytes are, and how many."""
_IDENT = b"\x7fELF\x02\x01"
# No names of backends need more; a file that claims more is not ours.
_SECTION_MAX_BYTES = 4096


def backends_of(path: str | Path) -> frozenset[str]:
    """Gives the names of the backends that a program was built for: one, if it was built with durasim's headers.

    Nothing if the file does not say, or cannot be read: whoever loads it says what is wrong with it.
    """
    try:
        with Path(path).open("rb") as file:
            names = _section(file).split(b"\0")
        return frozenset(name.decode("ascii") for name in names if name)
    except (OSError, ValueError, struct.error):
        return frozenset()


def _section(file: BinaryIO) -> bytes:
    """Gives the bytes of the section, or none. A file that is cut raises struct.error."""
    ident, start, size_bytes, count, names_number = _HEADER.unpack(file.read(_HEADER.size))
    if not ident.startswith(_IDENT) or size_bytes != _SECTION_HEADER.size or names_number >= count:
        return b""
    file.seek(start)
    headers = [_SECTION_HEADER.unpack(file.read(size_bytes)) for _ in range(count)]
    _, names_start, _ = headers[names_number]
    for name, offset, length in headers:
        file.seek(names_start + name)
        if file.read(len(SECTION) + 1) == SECTION + b"\0":
            file.seek(offset)
            return file.read(min(length, _SECTION_MAX_BYTES))
    return b""

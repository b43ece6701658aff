"""The guest programs that the wheel carries, so that the commands need no compiler.

``tools/prebuilt.py`` compiles and packs them. A program is named by the hash of all inputs of its build, as in the
folder of cached results: a program whose sources were changed is not found, and is compiled.
"""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "prebuilt"
INDEX = "index.json"
_XZ = {"format": lzma.FORMAT_XZ, "check": lzma.CHECK_SHA256, "preset": 9 | lzma.PRESET_EXTREME}


@dataclass(frozen=True)
class Prebuilt:
    """The packed programs.

    ``compiler`` describes the compiler of all of them, as :class:`durasim.programs.toolchain.Compiler` has it.
    ``places`` are by name of a program: the pack, its offset in the unpacked bytes and its size in bytes.
    """

    folder: Path
    compiler: dict[str, Any]
    places: dict[str, tuple[str, int, int]]

    def program(self, name: str) -> bytes | None:
        """Returns the bytes of a program, or None if it is not packed."""
        if name not in self.places:
            return None
        pack, offset, size_bytes = self.places[name]
        return _unpacked(self.folder / pack)[offset : offset + size_bytes]


@cache
def prebuilt() -> Prebuilt | None:
    """Returns the packed programs, or None in a checkout or an installation without them."""
    return read(FOLDER) if (FOLDER / INDEX).is_file() else None


def read(folder: Path) -> Prebuilt:
    """Returns the programs that :func:`pack` has written into a folder."""
    index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    return Prebuilt(folder, index["compiler"], {name: tuple(place) for name, place in index["programs"].items()})


def pack(programs: dict[str, dict[str, bytes]], compiler: dict[str, Any], folder: Path) -> None:
    """Writes packs of programs, each a file of ``programs`` by program, and the index. Equal programs give equal bytes.

    The programs of a pack are compressed together: they have most of their bytes in common.
    """
    folder.mkdir(parents=True, exist_ok=True)
    places: dict[str, tuple[str, int, int]] = {}
    for name, members in sorted(programs.items()):
        offset, pack_name, together = 0, f"{name}.xz", []
        for program, content in sorted(members.items()):
            places[program] = (pack_name, offset, len(content))
            together.append(content)
            offset += len(content)
        (folder / pack_name).write_bytes(lzma.compress(b"".join(together), **_XZ))
    index = {"compiler": compiler, "programs": dict(sorted(places.items()))}
    (folder / INDEX).write_text(json.dumps(index, indent=0, sort_keys=True) + "\n", encoding="utf-8")


@cache
def _unpacked(path: Path) -> bytes:
    return lzma.decompress(path.read_bytes())

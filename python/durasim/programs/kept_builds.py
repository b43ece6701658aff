"""Programs of the user in the folder of built programs: found again while no file that they include has changed.

The compiler lists the included files. A program is named by a hash of its build, which the caller makes, and of the
contents of these files; the list of the last build is in a file beside it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

_WORD = re.compile(r"(?:\\.|[^\\\s])+")


def built_before(base: Path) -> Path | None:
    """Returns the program that was built from the present contents of all files; None if there is none.

    Args:
        base: Folder and name of the program, without the hash of included files.
    """
    try:
        files = json.loads(_list_of(base).read_text(encoding="utf-8"))
        program = _named(base, [Path(file) for file in files])
    except (OSError, ValueError):
        return None
    return program if program.is_file() else None


def keep(base: Path, built: Path, listed: Path, started_ns: int) -> Path:
    """Moves a program that was just built to its name, and returns it.

    Args:
        base: Folder and name of the program, without the hash of included files.
        built: The program.
        listed: The list of included files that the compiler has written, in the form of a rule of make.
        started_ns: When the compiler was started. A file that was changed since is not listed, so that the program is
            built again the next time.
    """
    # The build has removed the files that it had written itself.
    files = sorted({file for file in _of_rule(listed.read_text(encoding="utf-8")) if file.is_file()})
    if any(file.stat().st_mtime_ns >= started_ns for file in files):
        # The compiler has read one content or the other: no list may find this program by the present one.
        return built.replace(base.with_name(f"{base.name}-unlisted-{started_ns}"))
    program = built.replace(_named(base, files))
    partial = built.with_suffix(".json")
    partial.write_text(json.dumps([os.fspath(file) for file in files]), encoding="utf-8")
    partial.replace(_list_of(base))
    return program


def _of_rule(text: str) -> list[Path]:
    """Returns the files on the right side of a rule of make."""
    _, _, right = text.replace("\\\n", " ").partition(": ")
    return [Path(re.sub(r"\\(.)", r"\1", word).replace("$$", "$")).resolve() for word in _WORD.findall(right)]


def _list_of(base: Path) -> Path:
    return base.with_name(f"{base.name}.json")


def _named(base: Path, files: Sequence[Path]) -> Path:
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file}\0{len(content)}\0".encode(errors="surrogateescape") + content)
    return base.with_name(f"{base.name}-{digest.hexdigest()[:16]}")

"""Reads source files that the debug information of a program names.

The names come from the program, so they are untrusted: a file is read only if it is below the folder that the user
gave, after all links are resolved.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

SIZE_MAX_BYTES = 2 << 20
"""Maximum size of a source file in bytes."""


@dataclass(frozen=True, slots=True)
class SourceText:
    """A source file.

    Attributes:
        name: Its name in the debug information.
        lines: Its lines; None if it is not shown.
        problem: One sentence that says why it is not shown; None if it is.
    """

    name: str
    lines: list[str] | None
    problem: str | None


def read_source(name: str, root: Path | None) -> SourceText:
    """Reads a source file below `root`; a relative name is below it.

    A file that cannot be shown is no error: the result says why.
    """
    if root is None:
        return _not_shown(name, "no source is shown without --source-root FOLDER")
    try:
        return SourceText(name, _lines_below(root.resolve(strict=True), name), None)
    except _RefusedError as refused:
        return _not_shown(name, str(refused))
    except ValueError:
        return _not_shown(name, "its name is no name of a file")
    except RuntimeError:
        # Python 3.11 and 3.12 report links that lead to each other in this way.
        return _not_shown(name, "it cannot be read: its links lead to each other")
    except OSError as error:
        return _not_shown(name, f"it cannot be read: {error.strerror or error}")


class _RefusedError(Exception):
    """The file exists and may not be shown."""


def _not_shown(name: str, problem: str) -> SourceText:
    return SourceText(name, None, problem)


def _lines_below(root: Path, name: str) -> list[str]:
    # Without links, so that a check of the text of the path is a check of the file.
    path = (root / name).resolve(strict=False)
    if not path.is_relative_to(root):
        raise _RefusedError("it is outside of --source-root")
    path = path.resolve(strict=True)
    with open(path, "rb", opener=_opened) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise _RefusedError("it is not a file")
        if not Path(f"/proc/self/fd/{file.fileno()}").readlink().is_relative_to(root):
            raise _RefusedError("it is outside of --source-root")
        if found.st_size > SIZE_MAX_BYTES:
            raise _RefusedError(f"it is larger than {SIZE_MAX_BYTES:,} bytes")
        return file.read(SIZE_MAX_BYTES).decode("utf-8", errors="replace").splitlines()


def _opened(path: str, flags: int) -> int:
    # Opening a pipe or a device could wait without end. A link that replaces the file meanwhile is refused.
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)

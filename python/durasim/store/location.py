"""Place of the store of results: the user's folder for data, unless a command names another file."""

from __future__ import annotations

import os
from pathlib import Path

NAME = "results.sqlite"


def default_path() -> Path:
    """Returns the path of the store that commands use by default."""
    import platformdirs  # noqa: PLC0415 - keeps the start-up of other commands short

    return platformdirs.user_data_path("durasim") / NAME


def problem_of_default() -> str | None:
    """Returns the reason why the store that commands use by default cannot be written; None if it can."""
    path = default_path()
    try:
        path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    unwritable = [each for each in (path, path.parent) if each.exists() and not os.access(each, os.W_OK)]
    return f"{unwritable[0]}: not writable" if unwritable else None

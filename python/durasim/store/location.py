"""Place of the store of results: the user's folder for data, unless a command names another file."""

from __future__ import annotations

from pathlib import Path

NAME = "results.sqlite"


def default_path() -> Path:
    """Returns the path of the store that commands use by default."""
    import platformdirs  # noqa: PLC0415 - keeps the start-up of other commands short

    return platformdirs.user_data_path("durasim") / NAME

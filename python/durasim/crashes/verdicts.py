"""Persistent verdicts of campaigns, so that an interrupted campaign resumes without repeating runs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from durasim import _core
from durasim.errors import HostIoError, host_io

_LAYOUT = "CREATE TABLE IF NOT EXISTS verdict (key TEXT PRIMARY KEY, request TEXT NOT NULL, document TEXT NOT NULL)"


class Verdicts:
    """A file of verdicts. Each verdict is synced to the disk before the next one."""

    def __init__(self, path: str) -> None:
        """Opens or creates the file at `path`."""
        self.path = path
        with self._errors():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, isolation_level=None)
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute(_LAYOUT)

    def get(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """Returns the verdict on this request by this build of durasim, if stored."""
        with self._errors():
            rows = self._connection.execute("SELECT document FROM verdict WHERE key = ?", (key_of(request),)).fetchall()
        return json.loads(rows[0][0]) if rows else None

    def put(self, request: Mapping[str, Any], document: Mapping[str, Any]) -> None:
        """Stores a verdict."""
        row = (key_of(request), json.dumps(request, sort_keys=True), json.dumps(document))
        with self._errors():
            self._connection.execute("INSERT OR REPLACE INTO verdict VALUES (?, ?, ?)", row)

    def count(self) -> int:
        """Returns the number of stored verdicts, including those of other campaigns and builds."""
        with self._errors():
            return int(self._connection.execute("SELECT count(*) FROM verdict").fetchone()[0])

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise host_io(self.path, error) from None
        except sqlite3.Error as error:
            failure = HostIoError(f"{self.path}: {error}")
            failure.path = self.path
            raise failure from None


def key_of(request: Mapping[str, Any]) -> str:
    """Returns a hash of all inputs of a verdict: the request, the build of durasim and the program."""
    program = hashlib.blake2b(Path(request["elf"]).read_bytes(), digest_size=16).hexdigest()
    described = {name: value for name, value in request.items() if name not in {"elf", "workers"}}
    text = json.dumps([_build(), program, described], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@cache
def _build() -> str:
    return hashlib.blake2b(Path(_core.__file__).read_bytes(), digest_size=16).hexdigest()

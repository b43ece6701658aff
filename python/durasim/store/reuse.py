"""Reuse of stored results by commands that simulate one thing, or a few."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from durasim.store.database import Store
from durasim.store.keys import Keys, writes


class Reuse:
    """Answers requests from a store, and stores new results. Without a store it does nothing.

    Requests whose runs write to the host are neither answered nor stored: their effect is more than their result.
    """

    def __init__(self, store: Store | None) -> None:
        """`store` is an open store, or None."""
        self._store, self._keys = store, Keys()
        self.reused = 0
        """Number of requests that the store answered."""

    def find(self, kind: str, request: Mapping[str, Any]) -> tuple[str | None, dict[str, Any] | None]:
        """Returns the key of a request, None if its result is not stored in any case, and the stored document.

        Raises:
            HostIoError: A file of the request or the store cannot be read.
        """
        if self._store is None or writes(request) is not None:
            return None, None
        key = self._keys.of(kind, request)
        document = self._store.get(key)
        if document is not None and "error" in document:
            # A campaign keeps errors; here the simulation raises its own.
            document = None
        self.reused += document is not None
        return key, document

    def keep(
        self, key: str | None, kind: str, request: Mapping[str, Any], document: Mapping[str, Any], command: str
    ) -> None:
        """Stores a new document, unless a file that its simulation read has changed since `find`.

        Raises:
            HostIoError: The store cannot be written.
        """
        if self._store is not None and key is not None and self._keys.of(kind, request) == key:
            seconds = float(document["host"]["seconds"])
            self._store.put(key, kind, request, document, seconds=seconds, command=command)

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
        self.store, self._keys = store, Keys()
        self.asked = 0
        """Number of requests that the store was asked for."""
        self.reused = 0
        """Number of requests that the store answered."""

    def key(self, kind: str, request: Mapping[str, Any]) -> str | None:
        """Returns the key of a request; None if its result is not stored in any case.

        Raises:
            HostIoError: A file of the request cannot be read.
        """
        return None if self.store is None or writes(request) is not None else self._keys.of(kind, request)

    def find(
        self, kind: str, request: Mapping[str, Any], *, with_errors: bool = False
    ) -> tuple[str | None, dict[str, Any] | None]:
        """Returns the key of a request as `key` does, and the stored document; None if there is none.

        Args:
            kind: The kind of simulation.
            request: The request passed to the Rust core.
            with_errors: Whether a stored error is an answer; otherwise the simulation raises its own.

        Raises:
            HostIoError: A file of the request or the store cannot be read.
        """
        key = self.key(kind, request)
        document = None if key is None or self.store is None else self.store.get(key)
        if document is not None and "error" in document and not with_errors:
            document = None
        self.asked += 1
        self.reused += document is not None
        return key, document

    def keep(
        self,
        key: str | None,
        kind: str,
        request: Mapping[str, Any],
        document: Mapping[str, Any],
        command: str,
        *,
        seconds: float | None = None,
    ) -> None:
        """Stores a new document, unless a file that its simulation read has changed since `find`.

        Args:
            key: The key that `find` has returned.
            kind: The kind of simulation.
            request: The request passed to the Rust core.
            document: The result.
            command: The command that repeats it.
            seconds: Host time of the simulation; that in the document if None.

        Raises:
            HostIoError: The store cannot be written.
        """
        if self.store is not None and key is not None and self._keys.of(kind, request) == key:
            host_s = float(document["host"]["seconds"]) if seconds is None else seconds
            self.store.put(key, kind, request, document, seconds=host_s, command=command)

    def kept(self) -> str:
        """Describes what remains of an interrupted command."""
        if self.store is None:
            return "are lost"
        return f"are kept in {self.store.path}: the same command resumes"

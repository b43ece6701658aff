"""The document of `durasim results list`: the stored results without their documents."""

from __future__ import annotations

from dataclasses import dataclass

from durasim.documents.document import Document
from durasim.store.database import Entry

SCHEMA = "durasim-results/1"


@dataclass(frozen=True, slots=True)
class StoredResults(Document):
    """The document of `durasim results list`.

    Attributes:
        schema: Name and version of this document.
        durasim_version: Version of durasim.
        store: The file of the store.
        size_bytes: Its size.
        results: The results in the order of their storage.
    """

    schema: str
    durasim_version: str
    store: str
    size_bytes: int
    results: tuple[Entry, ...]

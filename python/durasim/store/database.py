"""The store of results: an SQLite file with one compressed document per simulation.

Only the process that submits simulations opens it. Each result, or all that arrive together, is one transaction that is
synced to the disk, so a process killed at any moment leaves only whole documents.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from durasim.errors import HostIoError, host_io, refusal
from durasim.store.journal import journal_for
from durasim.store.keys import build

APPLICATION_ID = 0x64757261
"""The mark of a store in the header of its file: "dura"."""
_WAIT_S = 60.0
"""Longest wait for another process that writes."""
_DOCUMENT_BYTES_MAX = 2**28
"""Largest document. Decompression stops there, whatever a damaged or forged store contains."""
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FORMAT}
_LAYOUT = """
CREATE TABLE result (
    number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, study TEXT NOT NULL, design TEXT NOT NULL,
    workload TEXT NOT NULL, machine TEXT NOT NULL, digest TEXT NOT NULL, created_s INTEGER NOT NULL,
    seconds REAL NOT NULL, build TEXT NOT NULL, command TEXT NOT NULL, request BLOB NOT NULL, document BLOB NOT NULL,
    checksum BLOB NOT NULL)
"""
_COLUMNS = "key, kind, study, design, workload, machine, digest, created_s, seconds, build, command"
TIMES_OF_HOST = ("host", "trials_per_s_per_core")
"""Fields of documents that differ from simulation to simulation: times and memory of the host."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored result without its document.

    Attributes:
        key: The hash of all that the simulation read.
        kind: `run`, `crash`, `mutant` (a crash of a design with a planted fault) or `random` (random machines).
        study: Name of the study that simulated it; empty for other commands.
        design: Durability design.
        workload: Name of the workload or program.
        machine: Preset, or the path of a machine file.
        digest: Equal for equal results.
        created_s: Time at which it was stored, in seconds since 1970.
        seconds: Host time of the simulation.
        build: Hash of the Rust core that simulated it.
        command: The command that repeats it.
    """

    key: str
    kind: str
    study: str
    design: str
    workload: str
    machine: str
    digest: str
    created_s: int
    seconds: float
    build: str
    command: str


def digest_of(kind: str, document: Mapping[str, Any]) -> str:
    """Returns the digest of a document: that of its run, or for a crash a hash of all except times of the host."""
    if kind == "run":
        return str(document["digest"])
    kept = {name: value for name, value in document.items() if name not in TIMES_OF_HOST}
    return hashlib.blake2b(json.dumps(kept, sort_keys=True).encode(), digest_size=16).hexdigest()


class Store:
    """An open store. Several processes may use one store at the same time."""

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True) -> None:
        """Opens the store at `path`.

        Args:
            path: The file.
            create: Whether to create the file, and its folder for this user alone, if it does not exist.

        Raises:
            ConfigError: The store is of a newer version, or the file is another kind of database.
            HostIoError: The file cannot be opened, or is damaged.
        """
        self.path = os.fspath(path)
        file = Path(self.path)
        if not file.exists() and not create:
            raise host_io(self.path, FileNotFoundError(0, "there is no store of results"))
        with self._errors():
            if not file.parent.exists():
                file.parent.mkdir(parents=True, mode=_FOLDER_MODE, exist_ok=True)
            # SQLite gives its other files the rights of this one.
            os.close(os.open(file, os.O_RDWR | os.O_CREAT, _FILE_MODE))
            self._connection = sqlite3.connect(self.path, isolation_level=None, timeout=_WAIT_S)
        try:
            with self._errors():
                self._prepare(journal_for(file.parent))
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self, journal: str) -> None:
        self._refuse_others()
        if self._value("PRAGMA journal_mode") != journal:
            # Another process may have the file open for a moment, which this statement does not wait for.
            _repeated_while_busy(lambda: self._connection.execute(f"PRAGMA journal_mode = {journal}"))
        self._connection.execute("PRAGMA synchronous = FULL")
        if self._value("PRAGMA user_version") < len(_MIGRATIONS):
            with self._transaction():
                # Another process may have migrated it meanwhile.
                for number in range(int(self._value("PRAGMA user_version")), len(_MIGRATIONS)):
                    _MIGRATIONS[number](self._connection)
                self._connection.execute(f"PRAGMA user_version = {len(_MIGRATIONS)}")
                self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    def _refuse_others(self) -> None:
        version, mark = self._value("PRAGMA user_version"), self._value("PRAGMA application_id")
        tables = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if mark not in (0, APPLICATION_ID) or (mark == 0 and tables - {"verdict"}):
            raise refusal("store", f"{self.path} is a database of another program: give another file")
        if version > len(_MIGRATIONS):
            raise refusal(
                "store",
                f"{self.path} has version {version}, and this durasim reads up to version {len(_MIGRATIONS)}: use a "
                "newer durasim, or another --store",
            )

    def get(self, key: str) -> dict[str, Any] | None:
        """Returns the document with this key; None if it is not stored.

        Raises:
            HostIoError: The document is damaged, or the file cannot be read.
        """
        with self._errors():
            row = self._connection.execute("SELECT document, checksum FROM result WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        try:
            return _unpacked(*row)
        except ValueError as problem:
            raise self._damaged(f"result {key}: {problem}") from None

    def request(self, key: str) -> dict[str, Any]:
        """Returns the request of a stored simulation."""
        with self._errors():
            (packed,) = self._connection.execute("SELECT request FROM result WHERE key = ?", (key,)).fetchone()
        try:
            return _unpacked(packed, _checksum(packed))
        except ValueError as problem:
            raise self._damaged(f"request of {key}: {problem}") from None

    def put(
        self,
        key: str,
        kind: str,
        request: Mapping[str, Any],
        document: Mapping[str, Any],
        *,
        seconds: float,
        command: str = "",
        study: str = "",
    ) -> bool:
        """Stores a document; returns False if another process has stored one with this key.

        Raises:
            HostIoError: The disk is full, or the file cannot be written.
        """
        packed = _packed(document)
        digest = "" if "error" in document else digest_of(kind, document)
        row = (
            key, kind, study, request["design"], request["workload"], request["machine"], digest,
            int(time.time()), seconds, build(), command, _packed(request), packed, _checksum(packed),
        )  # fmt: skip
        with self._errors():
            done = self._connection.execute(
                f"INSERT INTO result ({_COLUMNS}, request, document, checksum) "  # noqa: S608 - constants
                f"VALUES ({', '.join('?' * len(row))}) ON CONFLICT (key) DO NOTHING",
                row,
            )
        return done.rowcount == 1

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Syncs all results that a block stores at once, at its end. An exception in the block loses none of them.

        Raises:
            HostIoError: Another process has locked the store, the disk is full, or the file cannot be written.
        """
        with self._errors():
            self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            # SQLite has ended the transaction itself if the disk is full.
            if self._connection.in_transaction:
                with self._errors():
                    self._connection.execute("COMMIT")

    def entries(self, **where: str) -> list[Entry]:
        """Returns the stored results in the order of their storage.

        Args:
            where: Values that fields of an entry have to have.
        """
        condition = " AND ".join(f"{name} = ?" for name in where) or "1"
        with self._errors():
            rows = self._connection.execute(
                f"SELECT {_COLUMNS} FROM result WHERE {condition} ORDER BY number",  # noqa: S608 - constants
                tuple(where.values()),
            ).fetchall()
        return [Entry(*row) for row in rows]

    def find(self, prefix: str) -> Entry:
        """Returns the result whose key begins with `prefix`.

        Raises:
            ConfigError: No key, or more than one, begins with it.
        """
        with self._errors():
            rows = self._connection.execute(
                f"SELECT {_COLUMNS} FROM result WHERE substr(key, 1, ?) = ? LIMIT 2",  # noqa: S608 - constants
                (len(prefix), prefix),
            ).fetchall()
        if len(rows) != 1 or not prefix:
            problem = "no result has" if not rows else "several results have"
            raise refusal("key", f"{problem} a key that begins with '{prefix}': `durasim results list` prints the keys")
        return Entry(*rows[0])

    def count(self) -> int:
        """Returns the number of stored results, including those of other studies and builds."""
        with self._errors():
            return int(self._value("SELECT count(*) FROM result"))

    def size_bytes(self) -> int:
        """Returns the size of the file."""
        return Path(self.path).stat().st_size

    def remove(self, keys: list[str]) -> None:
        """Removes results and returns their space to the file system."""
        with self._errors():
            with self._transaction():
                self._connection.executemany("DELETE FROM result WHERE key = ?", ((key,) for key in keys))
            self._connection.execute("VACUUM")
            # In a write-ahead log the file shrinks only when the log is copied back.
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def snapshot(self, key: str) -> str | None:
        """Returns the hash of the contents of a populated snapshot; None if none is kept."""
        with self._errors():
            row = self._connection.execute("SELECT content FROM snapshot WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def put_snapshot(self, key: str, content: str, size_bytes: int, used_s: int) -> None:
        """Notes the contents of a populated snapshot, or its use."""
        with self._errors():
            self._connection.execute(
                "INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?)", (key, content, size_bytes, used_s)
            )

    def snapshot_sizes(self) -> dict[str, int]:
        """Returns the sizes of all contents of snapshots in bytes, least recently used first."""
        with self._errors():
            rows = self._connection.execute(
                "SELECT content, max(size_bytes) FROM snapshot GROUP BY content ORDER BY max(used_s), content"
            ).fetchall()
        return dict(rows)

    def remove_snapshot(self, content: str) -> None:
        """Removes all keys of a snapshot with these contents."""
        with self._errors():
            self._connection.execute("DELETE FROM snapshot WHERE content = ?", (content,))

    def problems(self) -> list[str]:
        """Returns the damage found in the file and in each document; empty if all is whole."""
        try:
            with self._errors():
                found = [text for (text,) in self._connection.execute("PRAGMA integrity_check") if text != "ok"]
        except HostIoError as error:
            return [str(error)]
        for row in self._readable("key, kind, digest, document, checksum"):
            key, kind, digest, packed, checksum = row
            try:
                document = _unpacked(packed, checksum)
                if "error" not in document and digest_of(kind, document) != digest:
                    found.append(f"result {key}: its digest is not that of its document")
            except (ValueError, KeyError, TypeError) as problem:
                found.append(f"result {key}: {problem}")
        return found

    def copy_readable(self, target: Store) -> int:
        """Copies all whole results into another store and returns their number."""
        copied = 0
        for row in self._readable(f"{_COLUMNS}, request, document, checksum"):
            try:
                _unpacked(*row[-2:])
            except (ValueError, TypeError):
                continue
            with target._errors():
                done = target._connection.execute(
                    f"INSERT OR IGNORE INTO result ({_COLUMNS}, request, document, checksum) "  # noqa: S608 - constants
                    f"VALUES ({', '.join('?' * len(row))})",
                    row,
                )
            copied += done.rowcount
        return copied

    def _readable(self, columns: str) -> Iterator[tuple[Any, ...]]:
        """Yields the rows that SQLite can read: from the first on, and after damaged pages from the last back."""
        seen: set[int] = set()
        for order, beyond in (("ASC", ">"), ("DESC", "<")):
            place: int | None = None
            while True:
                condition = "" if place is None else f"WHERE number {beyond} {place}"
                try:
                    row = self._connection.execute(
                        f"SELECT number, {columns} FROM result {condition} ORDER BY number {order} LIMIT 1"  # noqa: S608
                    ).fetchone()
                except sqlite3.Error:
                    break
                if row is None or row[0] in seen:
                    return
                place = row[0]
                seen.add(row[0])
                yield row[1:]

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _value(self, statement: str) -> Any:
        return self._connection.execute(statement).fetchone()[0]

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def _damaged(self, problem: str) -> HostIoError:
        return self._failed(
            f"the store is damaged ({problem}): `durasim results check --store {self.path} --salvage NEW.sqlite` "
            "copies all whole results into a new store"
        )

    def _failed(self, problem: str) -> HostIoError:
        failure = HostIoError(f"{self.path}: {problem}")
        failure.path = self.path
        return failure

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise host_io(self.path, error) from None
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            # The lower byte is the kind of the error.
            kind = None if code is None else code & 0xFF
            if kind in _DAMAGED:
                raise self._damaged(str(error)) from None
            if kind == sqlite3.SQLITE_NOTADB:
                raise self._failed(
                    f"is no store of results, or its first page is destroyed: `sqlite3 {self.path} .recover` may save "
                    "parts of it"
                ) from None
            if kind == sqlite3.SQLITE_FULL:
                raise self._failed("the disk is full; all results stored before are kept") from None
            if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise self._failed(f"another process has locked the store for {_WAIT_S:.0f} seconds") from None
            raise self._failed(str(error)) from None


def _repeated_while_busy(statement: Callable[[], object]) -> None:
    deadline = time.monotonic() + _WAIT_S
    while True:
        try:
            statement()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def _packed(document: Mapping[str, Any]) -> bytes:
    return zlib.compress(json.dumps(document, ensure_ascii=False).encode(), 6)


def _checksum(packed: bytes) -> bytes:
    return hashlib.blake2b(packed, digest_size=16).digest()


def _unpacked(packed: bytes, checksum: bytes) -> dict[str, Any]:
    """Returns a document.

    Raises:
        ValueError: It is not what was stored, or too large.
    """
    if not isinstance(packed, bytes) or _checksum(packed) != checksum:
        raise ValueError("its checksum is wrong")
    inflate = zlib.decompressobj()
    try:
        text = inflate.decompress(packed, _DOCUMENT_BYTES_MAX)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not inflate.eof:
        raise ValueError(f"it is cut off, or larger than {_DOCUMENT_BYTES_MAX} bytes")
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("it is not a document")
    return document


def _create(connection: sqlite3.Connection) -> None:
    """Creates the first layout. A file of verdicts of a campaign, the form before, becomes a store."""
    connection.execute(_LAYOUT)
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'verdict'").fetchone()
    for key, request, document in connection.execute("SELECT * FROM verdict").fetchall() if known else ():
        asked, found = json.loads(request), json.loads(document)
        packed = _packed(found)
        digest = "" if "error" in found else digest_of("crash", found)
        row = (
            key, "crash", "", asked["design"], asked["workload"], asked["machine"], digest, 0, 0.0, "", "",
            _packed(asked), packed, _checksum(packed),
        )  # fmt: skip
        connection.execute(
            f"INSERT INTO result ({_COLUMNS}, request, document, checksum) "  # noqa: S608 - constants
            f"VALUES ({', '.join('?' * len(row))})",
            row,
        )
    if known:
        connection.execute("DROP TABLE verdict")


def _add_snapshots(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE snapshot (key TEXT PRIMARY KEY, content TEXT NOT NULL, size_bytes INTEGER NOT NULL, "
        "used_s INTEGER NOT NULL)"
    )


_MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_create, _add_snapshots)
"""The step from each version to the next one; a new store takes all of them."""

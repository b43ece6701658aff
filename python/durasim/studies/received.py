"""Files that a worker has received: kept by hash, and placed where a request names them."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from durasim.errors import HostIoError
from durasim.studies.contents import FILES, FOLDER, sha256


class ContentFolder:
    """The files that a worker has received. A file has its hash as its name only if its contents are right."""

    def __init__(self, folder: Path) -> None:
        """Creates the folder for this user alone if it does not exist."""
        self._folder = folder
        self._placing = threading.Lock()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def missing(self, hashes: set[str]) -> list[str]:
        """Returns the hashes without a file."""
        return sorted(each for each in hashes if not self._path(each).exists())

    def append(self, content: str, sender: str, offset: int, data: bytes) -> None:
        """Adds a part to a file that is being received. Several senders may send the same file."""
        with self._partial(content, sender).open("r+b" if offset else "wb") as file:
            file.seek(offset)
            file.write(data)

    def finish(self, content: str, sender: str) -> None:
        """Verifies a received file.

        Raises:
            HostIoError: Its contents have another hash; it is removed.
        """
        partial = self._partial(content, sender)
        if sha256(partial) != content:
            partial.unlink()
            raise HostIoError(f"the file {content} arrived with other contents: it changed, or was damaged in transit")
        partial.replace(self._path(content))

    def placed(self, request: Mapping[str, Any], files: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a request with the paths of received files and folders."""
        found = dict(request)
        with self._placing:
            for name in FILES:
                if name in files:
                    found[name] = str(self._named(files[name], Path(request[name]).name))
            if FOLDER in files:
                found[FOLDER] = str(self._tree(files[FOLDER]))
        return found

    def _path(self, content: str) -> Path:
        return self._folder / content

    def _partial(self, content: str, sender: str) -> Path:
        return self._folder / f"{content}.{sender}.part"

    def _named(self, content: str, name: str) -> Path:
        """Returns a file with these contents that has the last part of its name, which a result may show."""
        path = self._folder / f"{content}.named" / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            path.hardlink_to(self._path(content))
        return path

    def _tree(self, entries: list[dict[str, Any]]) -> Path:
        """Returns a folder with these entries."""
        path = self._folder / f"{hashlib.sha256(json.dumps(entries).encode()).hexdigest()}.tree"
        if not path.exists():
            new = path.with_suffix(".new")
            shutil.rmtree(new, ignore_errors=True)
            self._fill(new, entries)
            new.rename(path)
        return path

    def _fill(self, folder: Path, entries: list[dict[str, Any]]) -> None:
        folder.mkdir()
        for entry in entries:
            path = folder / entry["path"]
            if not path.parent.resolve().is_relative_to(folder.resolve()) or path == folder:
                raise HostIoError(f"{entry['path']}: leaves the folder of its task")
            if path.is_symlink() or path.exists():
                raise HostIoError(f"{entry['path']}: is in the folder of its task twice")
            if "link" in entry:
                path.symlink_to(entry["link"])
            elif "file" in entry:
                path.write_bytes(self._path(entry["file"]).read_bytes())
            else:
                path.mkdir()
        # The rights of a folder may forbid to fill it.
        for entry in reversed(entries):
            if "rights" in entry:
                (folder / entry["path"]).chmod(entry["rights"])

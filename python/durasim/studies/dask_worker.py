"""Functions that a study calls in a Dask worker. They need the installed package alone, and never open a store."""

from __future__ import annotations

import asyncio
import json
import threading
import uuid
from functools import cache
from pathlib import Path
from typing import Any

from durasim.documents.toml_files import schema_named, validate
from durasim.errors import DurasimError
from durasim.studies.contents import hashes_of
from durasim.studies.received import ContentFolder
from durasim.studies.tasks import simulate_request, simulator

SESSION = uuid.uuid4().hex
"""Different for each process, even if a new one gets the address of an old one."""
_CREATING = threading.Lock()


def greet() -> str:
    """Returns the build of this worker."""
    return simulator()


def answer(text: str) -> str:
    """Returns the answer to a task: its result, or the files that have to be sent first."""
    from distributed import get_worker  # noqa: PLC0415 - only workers have Dask

    worker = get_worker()
    task = json.loads(text)
    if task.get("build") != simulator():
        return json.dumps({"other_build": simulator(), "worker": worker.address})
    try:
        validate(task, schema_named("task"), "task")
    except DurasimError as error:
        return json.dumps({"error": f"the task is refused: {error}", "seconds": 0.0})
    received = _received(worker.local_directory)
    if missing := received.missing(hashes_of(task["files"])):
        return json.dumps({"missing": missing, "worker": worker.address, "session": SESSION})
    try:
        request = received.placed(task["request"], task["files"])
    except (OSError, DurasimError) as error:
        return json.dumps({"error": f"{worker.address}: its files cannot be placed: {error}", "seconds": 0.0})
    found = simulate_request(task["kind"], task["build"], request)
    return _with_paths_of(task["request"], request, found)


def _with_paths_of(asked: dict[str, Any], placed: dict[str, Any], text: str) -> str:
    """Returns an answer that names files as the submitting computer does."""
    found = json.loads(text)
    if "error" in found:
        for name in ("elf", "machine", "from", "root"):
            if asked.get(name) != placed.get(name):
                found["error"] = found["error"].replace(placed[name], asked[name])
    return json.dumps(found)


async def receive(content: str, sender: str, offset: int, data: bytes, dask_worker: Any = None) -> None:
    """Receives a part of a file from a sender. Dask passes its worker."""
    received = _received(dask_worker.local_directory)
    await asyncio.to_thread(received.append, content, sender, offset, data)


async def finish(content: str, sender: str, dask_worker: Any = None) -> None:
    """Verifies a file that has been received.

    Raises:
        HostIoError: It has other contents.
    """
    await asyncio.to_thread(_received(dask_worker.local_directory).finish, content, sender)


def _received(folder: str) -> ContentFolder:
    with _CREATING:
        return _folder(folder)


@cache
def _folder(folder: str) -> ContentFolder:
    return ContentFolder(Path(folder) / f"durasim-{SESSION}")

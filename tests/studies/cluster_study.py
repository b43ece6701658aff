"""A study for tests of clusters, its reference on this computer, and what has to hold after any disturbance."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

from in_process import sweep

ROOT = Path(__file__).resolve().parents[2]
POINTS = 8
STUDY = """
name = "cluster"
designs = ["tc", "hercules"]
workloads = ["array-swap"]
machine = "own.toml"
ops = OPS
args = { populate = 8 }
[axes]
"llc.size_bytes" = ["4KiB", "8KiB"]
"pmem.controller.write_queue_entries" = [2, 4]
"""
AXES = {"llc.size_bytes": ["4KiB", "8KiB"], "pmem.controller.write_queue_entries": [2, 4]}


def write_study(folder: Path, ops: int) -> Path:
    """Writes the study file and the machine file that it names."""
    (folder / "own.toml").write_text((ROOT / "machines" / "tiny.toml").read_text())
    file = folder / "study.toml"
    file.write_text(STUDY.replace("OPS", str(ops)))
    return file


def reference(folder: Path, ops: int) -> dict[str, str]:
    """Returns the digests of the study by key, simulated in this process."""
    write_study(folder, ops)
    found = sweep(folder=folder, name="other", designs=["tc", "hercules"], machine="own.toml", ops=ops, axes=AXES)
    return {point.key: point.digest for point in found.points}


def start(file: Path, *words: object, **environment: str) -> subprocess.Popen[str]:
    """Starts `durasim sweep` in a process of its own: Dask leaves threads in its process."""
    return subprocess.Popen(
        [sys.executable, "-m", "durasim", "sweep", *map(str, (file, *words))],
        cwd=file.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "DASK_DISTRIBUTED__ADMIN__TICK__LIMIT": "60s", **environment},
    )


def rows(store: Path) -> list[tuple[str, str]]:
    """Returns key and digest of each stored result."""
    if not store.exists():
        return []
    try:
        with sqlite3.connect(store) as connection:
            return connection.execute("SELECT key, digest FROM result").fetchall()
    except sqlite3.OperationalError:
        return []


def check_complete(process: subprocess.Popen[str], folder: Path, expected: dict[str, str]) -> str:
    """Checks that each point was simulated once, and is what this computer simulates; returns the messages."""
    _, messages = process.communicate(timeout=900)
    assert process.returncode == 0, messages
    document = json.loads((folder / "out.json").read_text())
    assert (document["simulated"], document["reused"], document["failed"]) == (POINTS, 0, 0)
    assert sorted(rows(folder / "store.sqlite")) == sorted(expected.items())
    return messages

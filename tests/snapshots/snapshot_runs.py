"""Runs of the tests of snapshots, forks and fast-forwarding."""

from __future__ import annotations

import json
from typing import Any

import durasim as ds
from durasim import _core, output
from durasim.documents.results import RunResult
from durasim.runs.scenario import Scenario

# Caches large enough for the data of transactions, so that hardware transactions commit.
ROOMY = ("l1d.size_bytes=32768", "l2.size_bytes=65536", "llc.size_bytes=1048576")
HARDWARE_TX = frozenset(row["name"] for row in ds.designs() if row["hardware"] == "rtm")


def scenario(design: str, threads: int = 1, **options: Any) -> Scenario:
    """Returns a short run on a machine with full queues and long delays; hardware transactions get larger caches."""
    interfaces = next(row["interfaces"] for row in ds.designs() if row["name"] == design)
    workload = "btree" if "transactions" in interfaces else "pinspect-btree"
    plain = {"machine": "tiny", "workload": workload, "ops": 40, "control": True, "threads": threads}
    plain["settings"] = (f"cores={threads}", *(ROOMY if design in HARDWARE_TX else ()))
    plain["workload_args"] = (("populate", "15"),)
    return Scenario(design=design, **(plain | options))


def document(result: dict[str, Any]) -> dict[str, Any]:
    """Returns the values that must be equal in every run, independent of its start."""
    return {key: value for key, value in result.items() if key not in ("host", "provenance")}


def run(request: Scenario | dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Runs to the end; returns the document without the parts of host and start, and the output of the guest."""
    request = request.request() if isinstance(request, Scenario) else request
    written: list[bytes] = []
    result = _core.run(json.dumps(request), lambda _, data: written.append(data))
    return document(json.loads(result)), b"".join(written).decode()


def run_in_pieces(request: Scenario | dict[str, Any], stops: list[int], how: str) -> dict[str, Any]:
    """Runs with stops after these numbers of instructions; see `_core.run_in_pieces`."""
    request = request.request() if isinstance(request, Scenario) else request
    pieces: dict[str, Any] = json.loads(_core.run_in_pieces(json.dumps(request), stops, how))
    pieces["result"] = document(pieces["result"])
    return pieces


def result_of(request: Scenario) -> RunResult:
    """Runs to the end and returns the typed result."""
    return RunResult.from_dict(json.loads(_core.run(json.dumps(request.request()), output.discard)))

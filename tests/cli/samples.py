"""Sample documents for tests without simulation."""

import dataclasses
from typing import Any

from durasim.documents.results import METRICS, RunResult

_KNOWN: dict[str, Any] = {
    "schema": "durasim-run/5",
    "durasim_version": "0.1.0",
    "design": "opt",
    "workload": "btree",
    "machine": "tiny",
    "domain": "eadr",
    "seed": 1,
    "threads": 1,
    "ops": 10,
    "roi": {"instructions": 1000, "cycles": 2000, "ipc": 0.5},
    "program": {"instructions": 3000, "cycles": 4000, "ipc": 0.75},
    "throughput_ops_per_us": 15.0,
    "pmem_write_bytes": {"total": 640, "data": 640, "log": 0, "metadata": 0, "migration": 0, "checkpoint": 0},
    "pmem_residual_dirty_bytes": 128,
    "latency_ns": {"p50": 60.0, "p99": 90.0, "p999": 95.0, "max": 95.0},
    "phases": {
        "execute": {"count": 10, "mean_cycles": 90.0, "p99_cycles": 99},
        "prepare": {"count": 10, "mean_cycles": 20.0, "p99_cycles": 22},
        "commit": {"count": 10, "mean_cycles": 10.0, "p99_cycles": 11},
    },
    "accesses_per_tx": {"reads": 0.5, "writes": 1.0},
    "tx": {
        "begun": 10,
        "committed": 10,
        "aborted": 0,
        "htm_committed": None,
        "sgl_committed": None,
        "aborted_by": None,
    },
    "replay": None,
    "digest": "0123456789abcdef0123456789abcdef",
    "guest_exit_code": 0,
    "persistence": None,
    "batches": None,
    "host": {"seconds": 0.5, "mips": 0.006, "peak_rss_bytes": 1048576},
    "provenance": {
        "durasim_build": "00112233445566778899aabbccddeeff",
        "scale": "paper",
        "workload_args": {"populate": 10, "node-bytes": 5440},
        "set": [],
        "guest_compiler": "ziglang 0.17.0",
        "elf_hash": "5f" * 32,
        "elf_args": ["run", "--ops", "10"],
        "env": [],
        "fast_forward": None,
        "functional": False,
        "warm": True,
        "snapshot_hash": None,
        "pool_hash": None,
        "max_instructions": None,
        "stop_after_roi": False,
    },
    "configuration": {"name": "tiny", "cores": 4, "pmem": {"media": {"read_latency_ns": 150}}},
    "stats": {
        "l1d": {
            "misses": {"value": 12, "unit": "count", "description": "Misses."},
            "miss_ratio": {"value": 0.25, "unit": "ratio", "description": "Misses per access."},
        },
        "cycles": {"value": 2000, "unit": "cycles", "description": "Cycles."},
    },
}
_METRICS = {metric.name: 0 for metric in METRICS}
RUN = {field.name: (_METRICS | _KNOWN)[field.name] for field in dataclasses.fields(RunResult)}
"""The fields in order; metrics not listed here are 0."""


def run(**changes: Any) -> dict[str, Any]:
    """Returns the sample with some fields changed; a dotted name selects a nested field."""
    document: dict[str, Any] = {key: dict(value) if isinstance(value, dict) else value for key, value in RUN.items()}
    for path, value in changes.items():
        folder, _, name = path.rpartition("__")
        (document[folder] if folder else document)[name] = value
    return document


def crash(**changes: Any) -> dict[str, Any]:
    """Returns the document of a crash campaign with a failure for each message in `messages`."""
    messages = changes.pop("messages", ())
    failure = {"oracle": "guest", "disagreement": False, "alike": 2, "command": "durasim crash --replay"}
    shared = ("durasim_version", "design", "workload", "machine", "domain", "seed", "threads", "ops", "host")
    document: dict[str, Any] = {name: run()[name] for name in shared} | {
        "schema": "durasim-crash/6",
        "points": 40,
        "trials": 60,
        "trials_by_fault": {"clean": 40, "nested": 20, "torn": 0},
        "not_tried": {"energy": "the domain has no residual energy"},
        "persistency_model": None,
        "control": False,
        "points_at_risk": 3,
        "violations": 2 * len(messages),
        "hangs": 0,
        "disagreements": 0,
        "losses_reported": 0,
        "nested_depth_max": 1,
        "trials_per_s_per_core": 100.0,
        "judged_by": {"guest": 60},
        "failures": [failure | {"id": f"e{number}", "message": text} for number, text in enumerate(messages)],
        "events_by_kind": {"media_write": 40},
        "marks": {},
        "timeline": None,
        "causes": None,
        "check_outputs": None,
        "limits": {},
        "shrunk": None,
        "provenance": run()["provenance"],
        "configuration": {},
        "stats": {},
    }
    return document | changes


def sweep(name: str = "sizes", workloads: tuple[str, ...] = ("btree",), **changes: Any) -> dict[str, Any]:
    """Returns the document of a study over workloads, two designs and two sizes; the last point failed."""
    from durasim.documents.metrics import run_metrics  # noqa: PLC0415 - polars takes a while to load

    metrics = run_metrics(RunResult.from_dict(run()))
    values = [
        {"workload": workload, "design": design, "llc.size_bytes": size}
        for workload in workloads for design in ("opt", "tc") for size in (4096, 8192)
    ]  # fmt: skip
    point = {
        "key": "0",
        "state": "simulated",
        "seconds": 1.0,
        "command": "durasim run",
        "digest": "0",
        "error": None,
        "failures": [],
        "causes": None,
    }
    points = [point | {"values": of, "metrics": metrics | {"ipc": 0.5 + at}} for at, of in enumerate(values)]
    points[-1] |= {"state": "failed", "digest": None, "metrics": {}, "error": "stuck"}
    document: dict[str, Any] = {
        "schema": "durasim-sweep/2", "durasim_version": "0.1.0", "name": name, "kind": "run", "axes": list(values[0]),
        "points": points, "simulated": len(points) - 1, "reused": 0, "failed": 1, "notes": [], "refined": [],
    }  # fmt: skip
    return document | changes


def causes(function: str, file: str = "list.c") -> dict[str, Any]:
    """Returns the causes of two violations: a store of this function that is not cleaned."""
    frame = {"function": function, "file": file, "line": 48}
    place = {"pc": 4096, "at": frame, "inlined_into": [], "callers": [frame], "thread": 0}
    store = place | {"address": 1 << 40, "data_offset": None, "size_bytes": 8, "value": "0x1", "tx": None}
    cause = {
        "violations": 2, "first": "e3", "what": "lost", "missing": "no-clean", "stores": [store], "relied": None,
        "inserted": [place | {"what": "clean"}], "confirmed": True, "tested": {"trials": 9, "violations": 0},
        "unconfirmed_because": None,
    }  # fmt: skip
    numbers = {"examined": 2, "unexplained": 0, "not_examined": 0}
    return {"found": [cause], **numbers, "debug_information": None, "not_searched": None}


def crash_sweep(text: str) -> dict[str, Any]:
    """Returns the document of a study of crashes whose names, messages and causes have this text."""
    document = sweep(text, (text,), kind="crash")
    (failure,) = crash(messages=(text,))["failures"]
    found = {"failures": [failure], "causes": causes(text, text), "metrics": {"violations": 2}}
    return document | {"points": [point | found for point in document["points"]]}


def stalled(stalls: dict[str, int], base: int = 400, **changes: Any) -> dict[str, Any]:
    """Returns the sample of a run on one hardware thread with these stall counters and cycles with a commit."""
    tree: dict[str, Any] = {}
    for name, cycles in stalls.items():
        *folders, last = f"core.stalls.{name}".split(".")
        level = tree
        for folder in folders:
            level = level.setdefault(folder, {})
        level[last] = {"value": cycles, "unit": "cycles", "description": "Cycles in which nothing committed."}
    document = run(roi__cycles=base + sum(stalls.values()), roi__instructions=2 * base, stats=tree)
    for path, value in changes.items():
        folder, _, name = path.rpartition("__")
        (document[folder] if folder else document)[name] = value
    return document


def explanation(workloads: tuple[str, ...] = ("btree",), **changes: Any) -> dict[str, Any]:
    """Returns the document of an explanation of two designs beside opt."""
    from durasim.documents.explanation import explain_all  # noqa: PLC0415 - other samples need none

    of_designs = {
        "opt": stalled({"front_end": 500, "load.pmem": 300, "load.llc": 80}),
        "tc": stalled({"front_end": 450, "load.pmem": 310, "store_queue.structure.transaction_cache": 900}),
        "kiln": stalled({"front_end": 200, "commit.llc": 90, "commit.structure.fifo": 7}, base=410),
    }
    runs = [
        RunResult.from_dict(document | {"design": design, "workload": workload} | changes)
        for workload in workloads for design, document in of_designs.items()
    ]  # fmt: skip
    return explain_all(runs, "opt", len(runs)).to_dict()

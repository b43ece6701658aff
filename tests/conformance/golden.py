"""Golden statistics: what every row of the registry does with every workload on `tiny`.

`python tests/conformance/golden.py` writes the file anew; a commit that changes it says why.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import durasim as ds

FILE = Path(__file__).with_name("golden.json")
OPS = 40
POPULATE = 60


def cases() -> list[tuple[str, str, int]]:
    """Gives rows, workloads and numbers of threads."""
    return [(row["name"], workload.name, n) for row in ds.designs() for workload in ds.workloads() for n in (1, 4)]


def name_of(design: str, workload: str, threads: int) -> str:
    """Gives the name of a case in the file."""
    return f"{design} {workload}" if threads == 1 else f"{design} {workload} {threads} threads"


def measure(design: str, workload: str, threads: int) -> dict[str, Any]:
    """Gives the statistics of one run that a change of the model would change."""
    result = ds.run(
        design=design,
        workload=workload,
        machine="tiny",
        ops=OPS,
        threads=threads,
        workload_args={"populate": POPULATE},
        guest_output=lambda *_: None,
    ).to_dict()
    keys = ("roi", "program", "pmem_write_bytes", "pmem_residual_dirty_bytes", "latency_ns", "tx")
    return {key: result[key] for key in keys} | {design: result["stats"].get(design, {})}


def main() -> None:
    """Writes the golden file."""
    document = {name_of(*case): measure(*case) for case in cases()}
    FILE.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()

"""Golden statistics of every design with every workload on `tiny`.

Values and units are golden; descriptions are excluded, so that they can be reworded.
`python tests/conformance/golden.py` rewrites the file; a commit that changes it must give the reason.
"""

from __future__ import annotations

import sys
import zlib
from pathlib import Path
from typing import Any

import recorded

import durasim as ds

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pairing import MET_LESS_OFTEN, stride_of

FILE = Path(__file__).with_name("golden.json")
OPS = 40
POPULATE = 60
THREADS = (1, 4)
DESIGNS = ds.designs()
AXES = ([row["name"] for row in DESIGNS], [workload.name for workload in ds.workloads()])


def is_among_pairs(design: str, workload: str, threads: int) -> bool:
    """Whether `make test` runs the case: each design with a part of the workloads and alternating thread counts."""
    row, column = AXES[0].index(design), AXES[1].index(workload)
    stride = stride_of(DESIGNS[row], workload)
    if workload in MET_LESS_OFTEN:
        return _is_every(stride, _number(design), _number(workload), threads)
    return _is_every(stride, row, column, threads)


def _is_every(stride: int, design: int, workload: int, threads: int) -> bool:
    return (design + workload) % stride == 0 and threads == THREADS[workload // 3 % len(THREADS)]


def _number(name: str) -> int:
    """Returns a number that depends only on the name, not on other designs and workloads."""
    return zlib.crc32(name.encode())


def _is_fifth(design: str, workload: str, threads: int) -> bool:
    return _is_every(5, _number(design), _number(workload), threads)


def cases() -> list[tuple[str, str, int]]:
    """Returns designs, workloads and thread counts: the product, but only each fifth pair of these programs."""
    fitting = {design: [workload.name for workload in ds.workloads(design)] for design in AXES[0]}
    return [
        (design, workload, threads)
        for design, workloads in fitting.items()
        for workload in workloads
        for threads in THREADS
        if workload not in MET_LESS_OFTEN or _is_fifth(design, workload, threads)
    ]


def name_of(design: str, workload: str, threads: int) -> str:
    """Returns the name of a case in the file."""
    return f"{design} {workload}" if threads == 1 else f"{design} {workload} {threads} threads"


def measure(design: str, workload: str, threads: int) -> dict[str, Any]:
    """Returns the statistics of one run that depend on the model."""
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
    result["tx"] = recorded.transactions(result)
    measured = {key: result[key] for key in keys} | {design: result["stats"].get(design, {})}
    return recorded.without_descriptions(measured)


def measure_case(case: tuple[str, str, int]) -> dict[str, Any]:
    """Gives what `measure` gives of a case of `cases`."""
    return measure(*case)


def main() -> None:
    """Writes the golden file."""
    recorded.write(FILE, {name_of(*case): measure(*case) for case in cases()})


if __name__ == "__main__":
    main()

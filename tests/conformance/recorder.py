"""Recorded runs: one list of cases, one run of each, and what is compared of it.

golden.json holds readable statistics of each design with each workload on `tiny`. digests.json holds a digest of all
statistics of each configuration: an optimisation of the simulator must not change any.

`python -m tools.generate recorded` rewrites both files; a commit that changes them must give the reason. Descriptions
of statistics are excluded, so that they can be reworded.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import durasim as ds
from durasim import output

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pairing import MET_LESS_OFTEN, stride_of

HERE = Path(__file__).parent
GOLDEN, DIGESTS = HERE / "golden.json", HERE / "digests.json"
TIMING = HERE.resolve().parent / "timing"
DESIGNS = ds.designs()

GOLDEN_SIZES = {"ops": 40, "workload_args": {"populate": 60}}
GOLDEN_KEYS = ("roi", "program", "pmem_write_bytes", "pmem_residual_dirty_bytes", "latency_ns", "tx")
THREADS = (1, 4)

DIGEST_SIZES = {"ops": 150, "workload_args": {"populate": 300}}
# Values that are not part of the model, differ between runs, are derived from others, or are newer than the digests.
NOT_IN_DIGESTS = (
    "durasim_version",
    "host",
    "provenance",
    "configuration",
    "accesses_per_tx",
    "replay",
    "persistence",
    "batches",
)
NEWER_STATISTICS = ("pmem_stores",)
NEWER_BY_THREAD = ("l1d", "l2")
# Additional fields of a document do not change the model: digests keep the name with which they were recorded.
RECORDED_SCHEMA = "durasim-run/1"
# Machines that differ from another one only in sizes or rows.
NOT_DIGESTED = ("hercules-tecs23-eighth", "hercules-tecs23-rows")
# Earlier names of machines.
RECORDED_MACHINE = {
    "hercules-tecs23-modern": "hercules-tecs23",
    "hercules-tecs23-modern-eighth": "hercules-tecs23-eighth",
}
KERNELS = ("sort 500", "matmul 12", "rbmap 300", "hash 2000", "atomics 500", "divs 500")
GEM5_MACHINES = ("gem5-a", "gem5-b")
# Parts of the machine without a preset, on `tiny`.
VARIANTS = {
    "crossbar": {"interconnect.topology": "crossbar", "interconnect.llc_banks": 2},
    "random replacement": {"l1d.replacement": "random", "l2.replacement": "random", "llc.replacement": "random"},
    "four controllers": {"pmem.controllers": 4, "dram.controllers": 2},
    "drain": {"pmem.controller.write_policy": "read-first", "pmem.controller.drain_start_percent": 75},
    "serial stores": {"core.pipelined_stores": False, "core.ownership_prefetch": False, "core.fences": "all"},
    "two-wide": {"core.width": 2, "core.rob_entries": 32},
    "non-inclusive": {"interconnect.inclusion": "non-inclusive"},
}
OBJECT_WORKLOADS = ("pinspect-hashmap", "object-sharing")
DOMAINS = ("adr", "eadr", "media", "bbb", "nv-llc")
# A machine with two hardware threads per core is for the designs with hardware transactions; others use it with one.
TWO_THREADS = "spht-eadr-2022"
ON_TWO_THREADS = ("htm-sgl", "spht-eadr", "spht-eadr-flush", "spht", "nv-htm")

Document = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A run that is recorded.

    Attributes:
        file: Where what is compared of it is recorded.
        name: Its name in the file.
        arguments: Those of `durasim.run`.
        compared: Returns what is compared of its document.
        in_pairs: Whether it is part of `make test`; `make test-all` runs all.
    """

    file: Path
    name: str
    arguments: Mapping[str, Any]
    compared: Callable[[Document], Any]
    in_pairs: bool


@dataclass(frozen=True)
class Recorded:
    """Values of one run: `value` is compared; only the pinned compiler gives equal values of workloads."""

    value: Any
    is_comparable: bool


def cases() -> list[Case]:
    """Returns all recorded runs, those of a file together."""
    return [*_golden_cases(), *_digest_cases()]


def record(case: Case) -> Recorded:
    """Runs a case."""
    # A program sees its path, which must therefore be equal everywhere.
    with contextlib.chdir(TIMING):
        document = ds.run(**case.arguments, guest_output=output.discard).to_dict()
    assert document["guest_exit_code"] == 0, case.name
    compiler = document["provenance"]["guest_compiler"]
    is_comparable = "elf" in case.arguments or "ziglang" in compiler
    return Recorded(case.compared(document), is_comparable)


def write(file: Path, values: Mapping[str, Any]) -> None:
    """Writes recorded values with one case per line, so that a difference shows the changed cases."""
    lines = (f"{json.dumps(name)}: {json.dumps(values[name], sort_keys=True)}" for name in sorted(values))
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def statistics(document: Document) -> Document:
    """Returns the statistics that depend on the model and are readable."""
    design = document["design"]
    measured = {key: document[key] for key in GOLDEN_KEYS} | {design: document["stats"].get(design, {})}
    measured["tx"] = _transactions(document)
    return _without_descriptions(measured)


def digest(document: Document) -> str:
    """Returns the digest of a document, without values outside the model."""
    for key in NOT_IN_DIGESTS:
        del document[key]
    for key in NEWER_STATISTICS:
        del document["stats"]["core"][key]
    for level in NEWER_BY_THREAD:
        counters = document["stats"].get(level, {})
        for name in [name for name in counters if name.startswith("thread_")]:
            del counters[name]
    if document["phases"] is None:
        del document["phases"]
    document["tx"] = _transactions(document)
    document["schema"] = RECORDED_SCHEMA
    document["machine"] = RECORDED_MACHINE.get(document["machine"], document["machine"])
    text = json.dumps(_without_descriptions(document), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _without_descriptions(node: Any) -> Any:
    """Returns a part of a document without the description of each statistic in it."""
    if not isinstance(node, Mapping):
        return node
    left_out = {"description"} if node.keys() == {"value", "unit", "description"} else set()
    return {key: _without_descriptions(node[key]) for key in node if key not in left_out}


def _transactions(document: Document) -> dict[str, Any]:
    """Returns the counts of transactions, without those specific to designs with hardware transactions."""
    return {name: count for name, count in document["tx"].items() if count is not None}


def _golden_cases() -> Iterator[Case]:
    """Yields the product of designs, workloads and threads, but only each fifth pair of long programs."""
    columns = [workload.name for workload in ds.workloads()]
    for row, design in enumerate(DESIGNS):
        name = design["name"]
        for workload in (workload.name for workload in ds.workloads(name)):
            is_long = workload in MET_LESS_OFTEN
            # Numbers that depend only on the names, not on other designs and workloads.
            by_name = zlib.crc32(name.encode()) + zlib.crc32(workload.encode())
            alternating = THREADS[
                (zlib.crc32(workload.encode()) if is_long else columns.index(workload)) // 3 % len(THREADS)
            ]
            place = by_name if is_long else row + columns.index(workload)
            for threads in THREADS:
                if is_long and not (by_name % 5 == 0 and threads == alternating):
                    continue
                in_pairs = place % stride_of(design, workload) == 0 and threads == alternating
                title = f"{name} {workload}" if threads == 1 else f"{name} {workload} {threads} threads"
                arguments = {"design": name, "workload": workload, "machine": "tiny", "threads": threads}
                yield Case(GOLDEN, title, arguments | GOLDEN_SIZES, statistics, in_pairs)


def _digest_cases() -> Iterator[Case]:
    """Yields each design on each machine, parts of machines without a preset, domains, and programs without a design.

    `make test` has each design on every second machine once, and all cases that are not of a design.
    """
    machines = [row["name"] for row in ds.machines() if row["name"] not in NOT_DIGESTED]
    for (column, machine), (row, design) in itertools.product(enumerate(machines), enumerate(DESIGNS)):
        name, number = design["name"], column + row
        settings = {"threads_per_core": 1} if machine == TWO_THREADS and name not in ON_TWO_THREADS else {}
        workloads = ("btree", "array-swap") if "transactions" in design["interfaces"] else OBJECT_WORKLOADS
        for way, (workload, threads) in enumerate(itertools.product(workloads, THREADS)):
            yield _digest_case(
                f"{name} {workload} on {machine}, {threads} threads",
                DIGEST_SIZES
                | {"design": name, "workload": workload, "machine": machine, "threads": threads, "set": settings},
                in_pairs=number % 2 == 0 and way == number // 2 % 4,
            )
    for variant, settings in VARIANTS.items():
        arguments = {"design": "opt", "workload": "btree", "machine": "tiny", "threads": 4, "set": settings}
        yield _digest_case(f"opt btree on tiny with {variant}", DIGEST_SIZES | arguments)
    for domain in DOMAINS:
        arguments = {"design": "swl-flush", "workload": "btree", "machine": "tiny", "threads": 2, "domain": domain}
        yield _digest_case(f"swl-flush btree on tiny under {domain}", DIGEST_SIZES | arguments)
    for machine, kernel in itertools.product(GEM5_MACHINES, KERNELS):
        program = {"elf": "kernels.rv64", "args": kernel.split()}
        yield _digest_case(f"{kernel} on {machine}", {"design": "opt", "machine": f"machines/{machine}.toml"} | program)


def _digest_case(name: str, arguments: Mapping[str, Any], *, in_pairs: bool = True) -> Case:
    return Case(DIGESTS, name, arguments, digest, in_pairs)

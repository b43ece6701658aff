"""A digest of all statistics for each configuration: an optimisation of the simulator must not change any.

Descriptions of statistics are excluded, so that they can be reworded.
`python tests/conformance/digests.py` rewrites the file; a commit that changes it must give the reason.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

import recorded

import durasim as ds
from durasim import output

FILE = Path(__file__).with_name("digests.json")
TIMING = Path(__file__).resolve().parents[1] / "timing"
OPS = 150
POPULATE = 300
# Values that are not part of the model, or differ between runs.
NOT_OF_THE_MODEL = ("durasim_version", "host", "provenance", "configuration")
# Numbers derived from statistics in the digest.
DERIVED = ("accesses_per_tx",)
# Values newer than the digests, reported by runtimes.
NEWER = ("replay",)
# Statistics that are newer than the digests: of the core, and of levels by thread.
NEWER_STATISTICS = ("pmem_stores",)
NEWER_BY_THREAD = ("l1d", "l2")
# Additional fields of a document do not change the model: digests keep the name with which they were recorded.
RECORDED_SCHEMA = "durasim-run/1"
KERNELS = ("sort 500", "matmul 12", "rbmap 300", "hash 2000", "atomics 500", "divs 500")
GEM5_MACHINES = ("gem5-a", "gem5-b")
# Machines that differ from another one only in sizes or rows.
NOT_DIGESTED = ("hercules-tecs23-eighth", "hercules-tecs23-rows")
# Earlier names of machines.
RECORDED_MACHINE = {
    "hercules-tecs23-modern": "hercules-tecs23",
    "hercules-tecs23-modern-eighth": "hercules-tecs23-eighth",
}
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


def workloads_of(row: dict[str, Any]) -> tuple[str, ...]:
    """Returns the workloads of the digests of a design."""
    return ("btree", "array-swap") if "transactions" in row["interfaces"] else OBJECT_WORKLOADS


def _machines() -> list[str]:
    return [row["name"] for row in ds.machines() if row["name"] not in NOT_DIGESTED]


def cases() -> dict[str, dict[str, Any]]:
    """Returns the arguments of `durasim.run` by the name of the case."""
    found: dict[str, dict[str, Any]] = {}
    for machine in _machines():
        for row in ds.designs():
            settings = {"threads_per_core": 1} if machine == TWO_THREADS and row["name"] not in ON_TWO_THREADS else {}
            for workload in workloads_of(row):
                for threads in (1, 4):
                    name = f"{row['name']} {workload} on {machine}, {threads} threads"
                    found[name] = _workload(
                        design=row["name"], workload=workload, machine=machine, threads=threads, set=settings
                    )
    for variant, settings in VARIANTS.items():
        name = f"opt btree on tiny with {variant}"
        found[name] = _workload(design="opt", workload="btree", machine="tiny", threads=4, set=settings)
    for domain in DOMAINS:
        name = f"swl-flush btree on tiny under {domain}"
        found[name] = _workload(design="swl-flush", workload="btree", machine="tiny", threads=2, domain=domain)
    for machine in GEM5_MACHINES:
        for kernel in KERNELS:
            found[f"{kernel} on {machine}"] = {
                "design": "opt", "machine": f"machines/{machine}.toml", "elf": "kernels.rv64", "args": kernel.split(),
            }  # fmt: skip
    return found


def is_among_pairs(name: str) -> bool:
    """Whether `make test` runs the case: each design on every second machine once, and all cases without a design."""
    places = {
        f"{row['name']} {workload} on {machine}, {threads} threads": (number, way)
        for machine_number, machine in enumerate(_machines())
        for row_number, row in enumerate(ds.designs())
        for number in [machine_number + row_number]
        for way, (workload, threads) in enumerate(itertools.product(workloads_of(row), (1, 4)))
    }
    number, way = places.get(name, (0, 0))
    return number % 2 == 0 and way == number // 2 % 4


def _workload(**arguments: Any) -> dict[str, Any]:
    return arguments | {"ops": OPS, "workload_args": {"populate": POPULATE}}


def digest(arguments: dict[str, Any]) -> str:
    """Runs a case and returns the digest of its document, without values outside the model."""
    # A program sees its path, which must therefore be equal everywhere.
    with contextlib.chdir(TIMING):
        document = ds.run(**arguments, guest_output=output.discard).to_dict()
    for key in (*NOT_OF_THE_MODEL, *DERIVED, *NEWER):
        del document[key]
    for key in NEWER_STATISTICS:
        del document["stats"]["core"][key]
    for level in NEWER_BY_THREAD:
        counters = document["stats"].get(level, {})
        for name in [name for name in counters if name.startswith("thread_")]:
            del counters[name]
    if document["phases"] is None:
        del document["phases"]
    document["tx"] = recorded.transactions(document)
    document["schema"] = RECORDED_SCHEMA
    document["machine"] = RECORDED_MACHINE.get(document["machine"], document["machine"])
    text = json.dumps(recorded.without_descriptions(document), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def main() -> None:
    """Writes the file."""
    recorded.write(FILE, {name: digest(arguments) for name, arguments in cases().items()})


if __name__ == "__main__":
    main()

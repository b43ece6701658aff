"""The experiments of TC: Lai, Zhao and Yang, "Leave the Cache Hierarchy Operation as It Is", DAC 2017, section 5.

At scale quick: data and data caches are an eighth of the paper's, instructions a sixteenth or less. SP is `sp`.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean
from typing import Any

from tools.additional_tables.comparison import (
    Command,
    Documents,
    Experiment,
    half_interval,
    pmem_bytes,
    throughput,
)

MACHINE = "tc-dac17"
THREADS = 4
WORKLOADS = ("sps", "graph", "rbtree", "btree", "hashtable")
# Suites by the location of the data. Figure 9 is relative to the writes of a program without durability, which are
# evictions of the last level: numbers of the paper are therefore compared with runs with data beyond it.
FOOTPRINTS = {"beyond": "tc", "inside": "tc-inside"}
DESIGNS = ("opt", "tc", "kiln", "sp")
SEEDS = (1, 2, 3)
# Experiments with which docs/results/tc-dac17.md explains differences: one change relative to the compared runs.
OTHER = {
    "one thread": ("--threads", "1"),
    "no latency": (
        "--set",
        "design.tc.latency_read_cycles=0",
        "--set",
        "design.tc.latency_write_cycles=0",
    ),
    "stores joined": ("--set", 'design.tc.coalesce="line"'),
    "two versions in the LLC": ("--set", 'design.kiln.versions="two-in-llc"'),
}
OF = {
    "one thread": ("opt", "tc", "kiln"),
    "no latency": ("tc",),
    "stores joined": ("tc",),
    "two versions in the LLC": ("kiln",),
}


def _run(design: str, suite: str, workload: str, seed: int, *more: str) -> Command:
    run = ["run", "--design", design, "--machine", MACHINE, "--workload", f"{suite}-{workload}", "--scale", "quick"]
    if "--threads" not in more:
        run += ["--threads", str(THREADS)]
    run += ["--seed", str(seed), "--arg", "no-check=true"]
    program = "" if "--threads" in more else f"{suite}-{workload}-{'sp' if design == 'sp' else 'hardware'}-{seed}"
    return Command((*run, *more, *(() if program else ("--fast-forward", "0"))), program)


def key(workload: str, design: str, footprint: str = "beyond", seed: int = 1, other: str = "") -> str:
    """Returns the name of a run's document."""
    return f"{workload}.{design}.{footprint}.{seed}{f'.{other}'.replace(' ', '-') if other else ''}"


COMMANDS = {
    key(workload, design, footprint, seed): _run(design, suite, workload, seed)
    for footprint, suite in FOOTPRINTS.items()
    for workload in WORKLOADS
    for seed in SEEDS
    for design in DESIGNS
} | {
    key(workload, design, footprint, 1, other): _run(design, suite, workload, 1, *OTHER[other])
    for footprint, suite in FOOTPRINTS.items()
    for other, designs in OF.items()
    for design in designs
    for workload in WORKLOADS
}
EXPERIMENTS: tuple[Experiment, ...] = ()
EXPERIMENT_COMMANDS: dict[str, Command] = {}


def _ipc(document: Mapping[str, Any]) -> float:
    return float(document["roi"]["ipc"])


def _llc_miss_rate(document: Mapping[str, Any]) -> float:
    llc = document["stats"]["llc"]
    return float(llc["misses"]["value"]) / float(llc["accesses"]["value"])


def _load_latency(document: Mapping[str, Any]) -> float:
    return float(document["stats"]["core"]["pmem_loads"]["latency_mean"]["value"])


def _full_share(document: Mapping[str, Any]) -> float:
    """Returns the share of the time of all cores without commits because a structure of the design is full."""
    stalls = document["stats"]["core"]["stalls"]
    structures = [of["structure"] for of in stalls.values() if isinstance(of.get("structure"), Mapping)]
    waited = sum(cycles["value"] for names in structures for cycles in names.values())
    return float(waited) / (THREADS * float(document["roi"]["cycles"]))


def _workloads(documents: Documents) -> list[dict[str, str]]:
    """Returns all measures of each workload relative to `opt`: means over the seeds, throughput with its interval."""
    found = []
    for footprint in FOOTPRINTS:
        for workload in WORKLOADS:
            for design in DESIGNS[1:]:
                pairs = [[documents[key(workload, of, footprint, seed)] for of in (design, "opt")] for seed in SEEDS]
                ratios = [throughput(ours) / throughput(opt) for ours, opt in pairs]
                half = half_interval(ratios)
                row = {"data": footprint, "workload": workload, "design": design}
                row |= {"throughput": f"{mean(ratios):.3f}", "95_percent": f"{half:.3f}"}
                measures = {
                    "ipc": _ipc,
                    "llc_miss_rate": _llc_miss_rate,
                    "load_latency": _load_latency,
                    "bytes": pmem_bytes,
                }
                for name, value in measures.items():
                    of_opt = [value(opt) for _, opt in pairs]
                    ours = [value(of) for of, _ in pairs]
                    row[name] = f"{mean(ours) / mean(of_opt):.2f}" if all(of_opt) else "-"
                row["full_percent"] = f"{mean(_full_share(of) for of, _ in pairs) * 100:.2f}" if design == "tc" else "-"
                found.append(row)
    return found


def _other(documents: Documents) -> list[dict[str, str]]:
    """Returns the throughput relative to `opt` of the experiments with one change."""
    found = []
    for footprint in FOOTPRINTS:
        for other, designs in OF.items():
            for design in designs:
                if design == "opt":
                    continue
                row = {"data": footprint, "other": other, "design": design}
                for workload in WORKLOADS:
                    opt = key(workload, "opt", footprint, 1, other if "opt" in designs else "")
                    run = key(workload, design, footprint, 1, other)
                    ratio = throughput(documents[run]) / throughput(documents[opt])
                    row[workload] = f"{ratio:.3f}"
                found.append(row)
    return found


TABLES = {"workloads": _workloads, "other": _other}

"""Additional tables for Hercules: causes of differences from the published numbers, and runs of the paper's size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.additional_tables.comparison import Command, Documents, Part, Rows, geomean, pmem_bytes, throughput
from tools.additional_tables.hercules_tecs23 import regimes
from tools.additional_tables.hercules_tecs23.runs import (
    DESIGNS,
    HUGE,
    MACHINES,
    MACRO,
    MOTIVATION,
    RESETS,
    RUNS,
    SCALED_DOWN,
    UNLIMITED,
    WORKLOADS,
    huge,
    key,
    macro,
    run,
)

# Figure 7b: the slowest transactions of the B+-tree by size of the data; the last has the long ones of Table 4.
TAIL_SUITES = {
    "0.5": "hercules-half",
    "1": "hercules-one",
    "1.4": "hercules",
    "4": "hercules-four",
    "long transactions": "hercules-beyond",
}


# The unchanged designs, and Kiln without the larger last level that its STT-RAM permits in Table 2.
TAILS: dict[str, tuple[str, tuple[str, ...]]] = {design: (design, ()) for design in DESIGNS} | {
    "kiln, LLC of the others": ("kiln", ("--set", "design.kiln.llc_size_factor=1"))
}


def _tail(name: str, suite: str) -> str:
    return f"tail.{name.replace(', ', '-').replace(' ', '-')}.{suite}"


def _tail_runs() -> dict[str, Command]:
    return {
        _tail(name, suite): run(MACHINES["gem5"], design, suite, MOTIVATION, 1, *settings)
        for suite in TAIL_SUITES.values()
        for name, (design, settings) in TAILS.items()
    }


def _tails(documents: Documents) -> Rows:
    """The 99.9th percentile of the latency of a transaction in ns."""
    return [
        {"design": name}
        | {of: f"{documents[_tail(name, suite)]['latency_ns']['p999']:.0f}" for of, suite in TAIL_SUITES.items()}
        for name in TAILS
    ]


def _huge_runs() -> dict[str, Command]:
    found = {
        f"huge-{lines}.{design}.down": huge(design, lines, *settings)
        for lines in HUGE
        for design, settings in SCALED_DOWN.items()
    }
    return found | {f"huge-{lines}.hercules.unlimited": huge("hercules", lines, *UNLIMITED) for lines in HUGE}


def _huge(documents: Documents) -> Rows:
    """Figure 10: Hercules relative to Proteus and TC, with an eWPQ of 64 entries and one that never spills."""
    found = []
    for lines in HUGE:
        row = {"lines": f"{lines},000"}
        for name, of in (("64 entries", "down"), ("unlimited", "unlimited")):
            ours = documents[f"huge-{lines}.hercules.{of}"]
            for baseline in ("proteus", "tc"):
                ratio = throughput(ours) / throughput(documents[f"huge-{lines}.{baseline}.down"])
                row[f"over {baseline}, {name}"] = f"{ratio:.2f}"
        stats = documents[f"huge-{lines}.hercules.down"]["stats"]["hercules"]
        row["spills"] = f"{stats['ewpq_spills']['value']:,}"
        row["lines of the extension read"] = f"{stats['extension_lines_read']['value']:,}"
        found.append(row)
    mean = {"lines": "geometric mean"}
    for column in found[0]:
        if column.startswith("over"):
            mean[column] = f"{geomean([float(row[column]) for row in found]):.2f}"
    return [*found, mean | {"spills": "", "lines of the extension read": ""}]


def _reset_runs() -> dict[str, Command]:
    names = [f"{workload}.hercules.reset-{cycles}" for workload in WORKLOADS for cycles in RESETS]
    return {name: RUNS[name] for name in names}


def _resets(documents: Documents) -> Rows:
    """Figure 11: cycles of a transaction by the cost of the state reset at its commit."""
    found = []
    for workload in WORKLOADS:
        fast, slow = (_cycles_per_tx(documents[f"{workload}.hercules.reset-{cycles}"]) for cycles in RESETS)
        found.append({
            "workload": workload,
            "cycles at 0": f"{fast:.0f}",
            "cycles at 90": f"{slow:.0f}",
            "more": f"{slow - fast:.0f}",
            "throughput lost, percent": f"{100 * (1 - fast / slow):.1f}",
        })  # fmt: skip
    return found


def _cycles_per_tx(document: Mapping[str, Any]) -> float:
    return float(document["roi"]["cycles"]) / float(document["tx"]["committed"])


# Figure 16: more banks of persistent memory, then also more locks. TPC-C has one lock per warehouse and one warehouse
# per thread.
THREADS = 16
BANKS = ("--set", "pmem.media.banks=64")
LOCKS = ("--arg", "shards=1024")
CHANGES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "none": ((), ()),
    "64 banks": (BANKS, BANKS),
    "64 banks, 1,024 locks": (BANKS, (*BANKS, *LOCKS)),
}


def _scaled(workload: str, design: str, threads: int, change: str) -> str:
    return f"{workload}.{design}.{threads}.{change.replace(' ', '-').replace(',', '')}"


def _scaling_runs() -> dict[str, Command]:
    found = {}
    for workload in MACRO:
        for design in ("opt", "hercules"):
            for change, (of_tpcc, of_ycsb) in CHANGES.items():
                settings = of_tpcc if workload == "tpcc" else of_ycsb
                for threads in (1, THREADS):
                    cores = ("--set", f"cores={threads}") if threads > 1 else ()
                    found[_scaled(workload, design, threads, change)] = macro(
                        design, workload, threads, *settings, *cores
                    )
    return found


def _scaling(documents: Documents) -> Rows:
    """Throughput with sixteen threads relative to one."""

    def of(design: str, change: str, workload: str) -> float:
        one, many = (throughput(documents[_scaled(workload, design, threads, change)]) for threads in (1, THREADS))
        return many / one

    found = []
    for design in ("opt", "hercules"):
        for change in CHANGES:
            values = {workload: of(design, change, workload) for workload in MACRO}
            values["geometric mean"] = geomean(list(values.values()))
            found.append(
                {"design": f"`{design}`", "change": change} | {of: f"{ours:.1f}" for of, ours in values.items()}
            )
    return found


def _full_runs() -> dict[str, Command]:
    return {
        f"{key(workload, design)}.full": Command((
            *("run", "--design", design, "--machine", MACHINES["gem5"], "--workload", f"hercules-{workload}"),
            *("--seed", "1", "--arg", "no-check=true", "--fast-forward", "roi"),
        ))
        for workload in WORKLOADS
        for design in DESIGNS
    }  # fmt: skip


def _full(documents: Documents) -> Rows:
    """The paper's million transactions: throughput of Hercules over that of each design, and its share of the bytes."""
    found = []
    for design in DESIGNS:
        if design == "hercules":
            continue
        ratios, ours, theirs = {}, 0.0, 0.0
        for workload in WORKLOADS:
            hercules, other = (documents[f"{key(workload, of)}.full"] for of in ("hercules", design))
            ratios[workload] = throughput(hercules) / throughput(other)
            ours, theirs = ours + pmem_bytes(hercules), theirs + pmem_bytes(other)
        row = {"design": f"`{design}`"} | {name: f"{ratio:.2f}" for name, ratio in ratios.items()}
        row["geometric mean"] = f"{geomean(list(ratios.values())):.2f}"
        row["bytes, percent"] = f"{100 * ours / theirs:.1f}" if theirs else "-"
        found.append(row)
    return found


# What TC's commits and stores wait for: one thing changed, and the two that change most together.
TC_VARIED: dict[str, tuple[str, ...]] = {
    "as assumed": (),
    "pipelined array": ("--set", "design.tc.pipelined=true"),
    "four ports of each kind": ("--set", "design.tc.write_ports=4", "--set", "design.tc.read_ports=4"),
    "no latency of the array": (
        *("--set", "design.tc.latency_read_cycles=0"),
        *("--set", "design.tc.latency_write_cycles=0"),
    ),
    "a commit holds no later store": ("--set", "design.tc.commit=early"),
    "pipelined array, a commit holds no later store": (
        *("--set", "design.tc.pipelined=true"),
        *("--set", "design.tc.commit=early"),
    ),
    "each store takes an entry": ("--set", "design.tc.coalesce=none"),
}


def _tc_runs() -> dict[str, Command]:
    found = {}
    for workload in WORKLOADS:
        found[f"{workload}.hercules.tc-part"] = run(MACHINES["gem5"], "hercules", "hercules", workload, 1)
        for number, settings in enumerate(TC_VARIED.values()):
            found[f"{workload}.tc.{number}"] = run(MACHINES["gem5"], "tc", "hercules", workload, 1, *settings)
    return found


def _tc(documents: Documents) -> Rows:
    """Throughput of Hercules over that of TC."""
    found = []
    for number, name in enumerate(TC_VARIED):
        ratios = {
            workload: throughput(documents[f"{workload}.hercules.tc-part"])
            / throughput(documents[f"{workload}.tc.{number}"])
            for workload in WORKLOADS
        }
        ratios["geometric mean"] = geomean(list(ratios.values()))
        found.append({"TC": name} | {of: f"{ratio:.2f}" for of, ratio in ratios.items()})
    return found


PARTS: dict[str, Part] = {
    "tc": (_tc_runs(), _tc),
    "tails": (_tail_runs(), _tails),
    "huge": (_huge_runs(), _huge),
    "resets": (_reset_runs(), _resets),
    "scaling": (_scaling_runs(), _scaling),
    "full": (_full_runs(), _full),
    **regimes.PARTS,
}

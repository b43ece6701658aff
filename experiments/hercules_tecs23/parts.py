"""Tables beside the published numbers of Hercules: what decides where ours differ, and the paper's size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from comparison import Command, Documents, geomean, pmem_bytes, throughput
from hercules_tecs23.runs import (
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

Rows = list[dict[str, str]]
Part = tuple[dict[str, Command], Callable[[Documents], Rows]]

# Figure 7b: the slowest transactions of the B+-tree, by what the data come to; the last has the long ones of Table 4.
TAIL_SUITES = {"0.5": "hercules-half", "1.4": "hercules", "4": "hercules-four", "long transactions": "hercules-beyond"}


def _tail_runs() -> dict[str, Command]:
    return {
        f"tail.{design}.{suite}": run(MACHINES["gem5"], design, suite, MOTIVATION, 1)
        for suite in TAIL_SUITES.values()
        for design in DESIGNS
    }


def _tails(documents: Documents) -> Rows:
    """The 99.9th percentile of the latency of a transaction in ns."""
    return [
        {"design": f"`{design}`"}
        | {
            name: f"{documents[f'tail.{design}.{suite}']['latency_ns']['p999']:.0f}"
            for name, suite in TAIL_SUITES.items()
        }
        for design in DESIGNS
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
    """Figure 11: cycles of a transaction by what resetting the states at its commit costs."""
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


# Figure 16: all that is changed is the number of banks of persistent memory.
THREADS = 16
BANKS = (16, 64)


def _scaling_runs() -> dict[str, Command]:
    found = {}
    for workload in MACRO:
        for design in ("opt", "hercules"):
            for banks in BANKS:
                settings = ("--set", f"pmem.media.banks={banks}")
                for threads in (1, THREADS):
                    cores = ("--set", f"cores={threads}") if threads > 1 else ()
                    name = f"{workload}.{design}.{threads}.banks-{banks}"
                    found[name] = macro(design, workload, threads, *settings, *cores)
    return found


def _scaling(documents: Documents) -> Rows:
    """Throughput with sixteen threads relative to one."""

    def of(design: str, banks: int, workload: str) -> float:
        one, many = (throughput(documents[f"{workload}.{design}.{threads}.banks-{banks}"]) for threads in (1, THREADS))
        return many / one

    found = []
    for design in ("opt", "hercules"):
        for banks in BANKS:
            values = {workload: of(design, banks, workload) for workload in MACRO}
            values["geometric mean"] = geomean(list(values.values()))
            found.append(
                {"design": f"`{design}`", "banks": f"{banks}"}
                | {name: f"{value:.1f}" for name, value in values.items()}
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


PARTS: dict[str, Part] = {
    "tails": (_tail_runs(), _tails),
    "huge": (_huge_runs(), _huge),
    "resets": (_reset_runs(), _resets),
    "scaling": (_scaling_runs(), _scaling),
    "full": (_full_runs(), _full),
}

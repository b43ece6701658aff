"""Figures 5 and 6 of Hercules in both regimes: short transactions and those of Table 4, with data of four sizes.

The runs of each size and regime are a part of their own, because all together take hours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tools.additional_tables.comparison import Command, Documents, Part, Rows, geomean, pmem_bytes, throughput
from tools.additional_tables.hercules_tecs23.runs import DESIGNS, FOOTPRINTS, MACHINES, WORKLOADS, run

# Suites by size of the data in multiples of the last-level cache.
REGIMES = {
    "short": FOOTPRINTS,
    "table4": {
        "0.5": "hercules-table4-half",
        "1": "hercules-table4-one",
        "1.4": "hercules-table4",
        "4": "hercules-table4-four",
    },
}
OURS, TC, MEAN = "hercules", "tc", "mean"
# Programs without a usable length in Table 4, which are equal in both regimes.
SAME = ("binary-heap", "hash-table")


def _name(regime: str, footprint: str, workload: str, design: str) -> str:
    of = "both" if workload in SAME else regime
    return f"{workload}.{design}.{of}.{footprint}.regimes"


def _runs(regime: str, footprint: str) -> dict[str, Command]:
    return {
        _name(regime, footprint, workload, design): run(
            MACHINES["gem5"], design, (FOOTPRINTS if workload in SAME else REGIMES[regime])[footprint], workload, 1
        )
        for workload in WORKLOADS
        for design in DESIGNS
    }


def drained_bytes(document: Mapping[str, Any]) -> float:
    """Returns the bytes that a run wrote to persistent memory, with the dirty lines that it left in caches."""
    return pmem_bytes(document) + float(document["pmem_residual_dirty_bytes"])


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Returns the geometric mean of ratios, or the ratio of the sums if some programs write nothing."""
    if min(*ours, *theirs) == 0:
        return sum(ours) / sum(theirs) if sum(theirs) else float("nan")
    return geomean([a / b for a, b in zip(ours, theirs, strict=True)])


def _rows(regime: str, footprint: str, documents: Documents) -> Rows:
    def of(design: str, workloads: Sequence[str]) -> list[Mapping[str, Any]]:
        return [documents[_name(regime, footprint, workload, design)] for workload in workloads]

    found = []
    for workload, workloads in {MEAN: WORKLOADS, **{name: (name,) for name in WORKLOADS}}.items():
        for design in DESIGNS:
            named = {"transactions": regime, "data": footprint, "workload": workload, "design": design}
            found.append(named | _row(of(OURS, workloads), of(TC, workloads), of(design, workloads)))
    return found


def _row(ours: Sequence[Any], tc: Sequence[Any], runs: Sequence[Any]) -> dict[str, str]:
    """Returns the numbers of a design: throughput, and bytes without and with the dirty lines that remain in caches."""
    row = {"hercules_over_it": f"{ratio(*([throughput(of) for of in some] for some in (ours, runs))):.3f}"}
    for suffix, of_run in (("", pmem_bytes), ("_drained", drained_bytes)):
        of_ours, of_tc, theirs = ([of_run(one) for one in some] for some in (ours, tc, runs))
        row[f"hercules_percent{suffix}"] = f"{100 * ratio(of_ours, theirs):.2f}"
        row[f"over_tc{suffix}"] = f"{ratio(theirs, of_tc):.3f}"
        row[f"bytes_per_tx{suffix}"] = f"{sum(theirs) / sum(one['tx']['committed'] for one in runs):.1f}"
    return row


PARTS: dict[str, Part] = {
    f"{regime}-{footprint}": (_runs(regime, footprint), partial(_rows, regime, footprint))
    for regime in REGIMES
    for footprint in sorted(FOOTPRINTS, key=float)
}

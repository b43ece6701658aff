"""Tables of a comparison for the terminal."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from rich.console import Group, RenderableType

from durasim.cli.tables import Column, FoldedTable
from durasim.documents.results import LostCycles, PmemWriteBytes
from durasim.documents.summaries import comparison_headers, comparison_rows, number
from durasim.runs.comparison import Judged, means
from durasim.runs.lost_cycles import lost_cycles
from durasim.runs.scenario import DEFAULT_DESIGN
from durasim.runs.sensitivity import DAGGER, range_of, range_text, varied_text, with_dagger


def comparison_tables(
    judged: Sequence[Judged], *, with_lost_cycles: bool = False, wide: bool = False
) -> RenderableType:
    """Returns a table of runs, the means if there are several workloads, and tables of lost cycles if requested.

    Args:
        judged: The runs.
        with_lost_cycles: Whether to explain the cycles lost relative to `opt`.
        wide: Whether to show all columns instead of the main ones.
    """
    parts: list[RenderableType] = [_runs(judged) if wide else _first_columns(judged)]
    if len({run.result.workload for run in judged}) > 1:
        parts.append(_means(judged, wide=wide))
    if with_lost_cycles:
        parts.extend(_lost(lost) for lost in lost_cycles(run.result for run in judged))
    if any(with_dagger(run.result.design) != run.result.design for run in judged):
        parts.append(_ranges(judged))
    return Group(*parts)


_SHOWN_MIN = 0.01
"""Smallest share of the lost cycles at which a cause is shown."""


def _lost(lost: LostCycles) -> FoldedTable:
    title = (
        f"{lost.workload}: causes of {lost.core_cycles:,} more cycles of {lost.design} than opt ({lost.of_opt:+.1%})"
    )
    headers = ("cycles more", "of the loss")
    columns = [Column("at the head of the reorder buffer"), *(Column(header, right=True) for header in headers)]
    table = FoldedTable(title, columns)
    causes = {name.replace(".", ": ").replace("_", " "): cycles for name, cycles in lost.stalls.items()}
    causes["something commits"] = lost.committing_cycles
    shown = {name: n for name, n in causes.items() if abs(n) >= _SHOWN_MIN * abs(lost.core_cycles)}
    for name, cycles in sorted(shown.items(), key=lambda cause: -cause[1]):
        table.add_row(name, f"{cycles:,}", f"{cycles / lost.core_cycles:.1%}" if lost.core_cycles else "")
    if lost.attributed is not None:
        more = f", including {lost.instructions:,} more instructions" if lost.instructions > 0 else ""
        table.caption = f"the counters explain {lost.attributed:.1%} of the loss{more}; negative: waits of opt only"
    return table


def _ranges(judged: Sequence[Judged]) -> FoldedTable:
    machine = judged[0].result.machine
    headers = (f"throughput under alternative\nassumptions on {machine}", "assumptions\nvaried")
    columns = [Column("design"), *(Column(header, right=True) for header in headers)]
    table = FoldedTable(f"{DAGGER} depends on assumptions", columns)
    for design in dict.fromkeys(run.result.design for run in judged):
        if (name := with_dagger(design)) != design:
            found = range_of(design, machine)
            shown = "not varied" if found is None else range_text(found.throughput)
            table.add_row(name, shown, varied_text(design, machine))
    table.caption = "one assumption at a time, in short runs; `durasim designs NAME` lists them"
    return table


def _machines(judged: Sequence[Judged]) -> str:
    return ", ".join(dict.fromkeys(run.result.machine for run in judged))


def _design(run: Judged) -> str:
    return with_dagger(run.result.design) + ("" if run.scored else " (not scored)")


def _first_columns(judged: Sequence[Judged]) -> FoldedTable:
    headers = comparison_headers(*next(((run.baseline, run.pmem_baseline) for run in judged), (None, None)))
    columns = [Column("workload"), Column("design"), *(Column(header, right=True) for header in headers)]
    table = FoldedTable(f"designs on {_machines(judged)}", columns, keys=2)
    previous = None
    for row in comparison_rows(((run.result, run) for run in judged), with_dagger):
        if previous not in (None, row[0]):
            table.add_section()
        previous = row[0]
        table.add_row(*row)
    return table


def _runs(judged: Sequence[Judged]) -> FoldedTable:
    causes = _causes_shown(judged)
    headers = (
        "throughput\nops/us", f"vs. {_baseline(judged)}", "IPC", "pmem bytes\nwritten",
        f"vs. {_pmem_baseline(judged)}", *causes, "p99\nns", "p99.9\nns", "simulated\nMIPS",
    )  # fmt: skip
    columns = [
        Column("workload"),
        Column("design"),
        Column("domain"),
        *(Column(header, right=True) for header in headers),
    ]
    table = FoldedTable(f"designs on {_machines(judged)}", columns, keys=2)
    previous = None
    for run in judged:
        result = run.result
        if previous not in (None, result.workload):
            table.add_section()
        previous = result.workload
        written = result.pmem_write_bytes
        table.add_row(
            result.workload,
            _design(run),
            result.domain,
            *(number(value) for value in (result.throughput_ops_per_us, run.relative_to_baseline, result.roi.ipc)),
            *(number(value) for value in (written.total, run.pmem_relative_to_baseline)),
            *(number(getattr(written, cause)) for cause in causes),
            *(number(getattr(result.latency_ns, name, None)) for name in ("p99", "p999")),
            number(result.host.mips),
        )
    return table


def _causes_shown(judged: Sequence[Judged]) -> list[str]:
    """Returns the causes of bytes written, which add up to the total; rare ones only if some run has them."""
    causes = [field.name for field in dataclasses.fields(PmemWriteBytes) if field.name != "total"]
    always = {"data", "log", "metadata"}
    return [
        cause
        for cause in causes
        if cause in always or any(getattr(run.result.pmem_write_bytes, cause) for run in judged)
    ]


def _baseline(judged: Sequence[Judged]) -> str:
    return next((run.baseline for run in judged if run.baseline), DEFAULT_DESIGN)


def _pmem_baseline(judged: Sequence[Judged]) -> str:
    return next((run.pmem_baseline for run in judged if run.pmem_baseline), "a baseline")


def _means(judged: Sequence[Judged], *, wide: bool) -> FoldedTable:
    headers = [
        "workloads\nscored", f"throughput\nvs. {_baseline(judged)}", f"pmem bytes\nvs. {_pmem_baseline(judged)}",
    ]  # fmt: skip
    if wide:
        headers.append("pmem bytes with\ndirty data at the end")
    table = FoldedTable("geometric means", [Column("design"), *(Column(header, right=True) for header in headers)])
    for mean in means(judged):
        ratios = [mean.relative_to_baseline, mean.pmem_relative_to_baseline]
        if wide:
            ratios.append(mean.pmem_drained_relative_to_baseline)
        table.add_row(with_dagger(mean.design), str(mean.workloads), *(number(ratio) for ratio in ratios))
    return table

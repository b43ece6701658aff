"""Measures the effects of the assumptions of DEVIATIONS.md: `python/durasim/sensitivity.csv` and its tables.

The alternatives are those below and, for the assumptions of designs, those declared with the designs. Nothing is tuned
here: the first runs use the presets and designs unchanged, the others show the effect of the assumption.

    .venv/bin/python -m tools.sensitivity            # all keys
    .venv/bin/python -m tools.sensitivity coalescing # one of them
    .venv/bin/python -m tools.sensitivity --outdated # those with missing or outdated measurements
    .venv/bin/python -m tools.sensitivity --missing  # only their missing runs, such as those of a new design

Runs of the same build are answered from the user's store of results (`durasim results`).
`make generate` writes the tables of docs/results/sensitivity.md and DEVIATIONS.md from the same file.
"""

import csv
import io
import itertools
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

import durasim
from durasim.crashes.test_plans import Measurement
from durasim.crashes.test_plans import measurements as of_designs
from durasim.papers.sensitivity_file import machine_alternatives
from durasim.runs.assumptions import written_from_nothing
from durasim.runs.scenario import design_variants, workload_info
from durasim.runs.sensitivity import (
    COLUMNS,
    PLACES,
    Measured,
    Place,
    Ratio,
    baseline_setting,
    measurements,
    range_of,
    range_text,
    ratios,
)

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "python/durasim/sensitivity.csv"
ALL = ("opt", "swl-flush", "swl-eadr", "tc", "hercules")
EVERY = tuple(row["name"] for row in durasim.designs())
"""For assumptions between the caches and the media: each design has its own traffic there."""
OVER_OBJECTS = ("opt", *(row["name"] for row in durasim.designs() if row["interfaces"] == ["objects"]))
"""For the machine of programs over objects."""

Alternative = tuple[str, ...]
"""Settings as for `--set`; `--arg NAME=VALUE` for an argument of the workload."""

PLAIN: Alternative = ()
OF_MACHINES: dict[str, tuple[str, ...]] = {
    "core-queues": ALL,
    "core-pipeline": ALL,
    "stores": ALL,
    "fences": ALL,
    "mshrs": ALL,
    "response": ALL,
    "hops": EVERY,
    "snoop": ALL,
    "skew": ALL,
    "write-back-buffers": ALL,
    "dram": ALL,
    "coalescing": EVERY,
    "pmem-banks": ALL,
    "interleaving": ("opt", "swl-flush", "swl-eadr", "tc"),
    "write-drain": EVERY,
    "write-granularity": EVERY,
    "pinspect-machine": OVER_OBJECTS,
    "tag-latency": OVER_OBJECTS,
    "tlb": OVER_OBJECTS,
}
"""Designs with which the alternatives to assumptions about machines are measured."""
# Assumptions that concern only several cores.
OF_SEVERAL_CORES = {"snoop", "skew"}
# Parameters of media of one kind; those of other media follow a standard.
OF_MACHINES_WITH = {
    "dram": ("tiny", "hercules-tecs23-modern", "hercules-tecs23-modern-eighth"),
    "pinspect-machine": ("pinspect-micro20",),
    "tag-latency": ("pinspect-micro20",),
    "tlb": ("pinspect-micro20",),
}


def _tables() -> dict[str, Measurement]:
    """Returns the measurements of each key: those of machines from above, those of designs from their test plans."""
    of_machines = {
        key: Measurement(
            designs,
            machine_alternatives()[key],
            threads=4 if key in OF_SEVERAL_CORES else 1,
            machines=OF_MACHINES_WITH.get(key, ()),
        )
        for key, designs in OF_MACHINES.items()
    }
    return of_machines | of_designs()


TABLES = _tables()

OUTDATED = "--outdated"
MISSING = "--missing"


def places_of(key: str) -> list[Place]:
    """Returns the places to measure the alternatives of a key: all, or those with the programs that it affects.

    The designs measured for the key decide whether programs with transactions, with objects, or both are run.
    """
    of = TABLES[key]
    interfaces = _interfaces_of(of.designs)
    if of.workload != "btree":
        places = [
            replace(place, workload=of.workload, threads=of.threads, what="")
            for place in PLACES
            if _has_own_data(place)
        ]
    else:
        # Assumptions about several cores have no effect on one.
        places = [
            place if place.threads > 1 else replace(place, threads=of.threads)
            for place in PLACES
            if _interface_of(place) in interfaces
        ]
    return [place for place in places if not of.machines or place.machine in of.machines]


def _has_own_data(place: Place) -> bool:
    return not place.arguments and _interface_of(place) == "transactions"


def _interface_of(place: Place) -> str:
    return _interface_of_workload(place.workload)


@cache
def _interface_of_workload(name: str) -> str:
    return workload_info(name).interface


def _interfaces_of(designs: Iterable[str]) -> set[str]:
    """Returns the interfaces of programs for these designs, without designs that run all interfaces."""
    of_each = [design_variants()[design]["interfaces"] for design in designs]
    return {interfaces[0] for interfaces in of_each if len(interfaces) == 1} or {"transactions"}


def measure(key: str, place: Place, point: Alternative, design: str) -> Measured:
    """Measures one run; returns a remark instead of numbers if it fails."""
    numbers, remark = _run(design, place, point)
    return Measured(key, place.name, " ".join(point), design, numbers, remark)


@cache
def _run(design: str, place: Place, point: Alternative) -> tuple[tuple[float, int] | None, str]:
    own = [item.removeprefix("--arg ") for item in point if item.startswith("--arg ")]
    arguments = dict(item.split("=", 1) for item in (*place.arguments, *own))
    settings = [*place.settings, *(item for item in point if not item.startswith("--arg "))]
    try:
        result = durasim.run(
            design=design,
            workload=place.workload,
            machine=place.machine,
            ops=place.ops,
            threads=place.threads,
            set=settings,
            workload_args=arguments,
            fast_forward="roi" if place.fast_forward else None,
            store=True,
            guest_output=lambda _stream, _bytes: None,
        )
    except durasim.DurasimError as error:
        return None, f"refused: {error}"
    if result.guest_exit_code != 0:
        return None, f"the program ends with exit code {result.guest_exit_code}"
    return (result.throughput_ops_per_us, result.pmem_write_bytes.total), ""


def _known(known: dict[tuple[str, ...], Measured], key: str, run: tuple[Place, Alternative, str]) -> Measured | None:
    place, point, design = run
    return known.get((key, place.name, " ".join(point), design))


def described(key: str) -> list[tuple[Place, Alternative, str]]:
    """Returns place, alternative and design of each run for `key`, in order."""
    of = TABLES[key]
    runs = itertools.product(places_of(key), (PLAIN, *of.points), of.designs)
    return [run for run in runs if _interface_of(run[0]) in design_variants()[run[2]]["interfaces"]]


def outdated(measured: Iterable[Measured]) -> list[str]:
    """Returns the keys without measurements of all described designs, places and settings."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for run in measured:
        found.setdefault(run.key, []).append((run.place, run.setting, run.design))
    return [
        key
        for key in TABLES
        if found.get(key) != [(place.name, " ".join(point), design) for place, point, design in described(key)]
    ]


def csv_text(measured: Iterable[Measured]) -> str:
    """Returns the measurements as CSV, by keys in the order of their descriptions."""
    order = list(TABLES)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for run in sorted((run for run in measured if run.key in TABLES), key=lambda run: order.index(run.key)):
        throughput, written = run.numbers or ("", "")
        shown = f"{throughput:.5f}" if run.numbers else ""
        writer.writerow((run.key, run.place, run.setting, run.design, shown, written, run.remark))
    return out.getvalue()


def tables() -> str:
    """Returns a Markdown table for each key: absolute values of the unchanged run, ratios to it for alternatives."""
    measured = measurements()
    changed = {of.measured: of for of in ratios(measured)}
    lines: list[str] = []
    for key, group in itertools.groupby(measured, lambda run: run.key):
        lines += [f"### {key}", "", f"[The assumption](../../DEVIATIONS.md#{key}).", ""]
        rows = [list(cells) for _, cells in itertools.groupby(group, lambda run: (run.place, run.setting))]
        # Programs with transactions and programs with objects have separate designs.
        for designs, of_table in itertools.groupby(rows, lambda cells: tuple(run.design for run in cells)):
            lines += [f"| where | setting | {' | '.join(f'`{design}`' for design in designs)} |"]
            lines += ["| --- | --- |" + " ---: |" * len(designs)]
            lines += [_row(cells, changed) for cells in of_table]
            lines.append("")
    return "\n".join(lines).rstrip("\n")


def _row(cells: Sequence[Measured], changed: Mapping[Measured, Ratio]) -> str:
    place, setting = cells[0].place, cells[0].setting
    items = re.split(r"(?<!--arg) ", setting)
    shown = "<br>".join(f"`{item}`" for item in items) if setting else "as assumed"
    if second := baseline_setting(cells[0]):
        shown = f"{shown.removeprefix(f'`{second}`<br>')}<br>over the run with `{second}`"
    return f"| {place} | {shown} | {' | '.join(_cell(run, changed.get(run)) for run in cells)} |"


def _cell(run: Measured, ratio: Ratio | None) -> str:
    if run.numbers is None:
        return run.remark
    throughput, written = run.numbers
    if not run.setting:
        return f"{throughput:.5f} / {written:,}"
    # Without writes in the baseline there is no ratio.
    if ratio is None or ratio.pmem_bytes is None:
        return f"{ratio.throughput if ratio else 1:.2f} / {f'{written:,} bytes' if written else '0'}"
    return f"{ratio.throughput:.2f} / {ratio.pmem_bytes:.2f}"


def ranges() -> str:
    """Returns the sensitivity range of each design that depends on assumptions, in Markdown."""
    lines = ["| design | throughput | lowest | highest | pmem bytes | lowest | highest | from almost none |"]
    lines.append("| --- | ---: | --- | --- | ---: | --- | --- | ---: |")
    for row in durasim.designs():
        if found := range_of(row["name"]):
            throughput = " | ".join(f"[{key}](#{key})" if key else "-" for key in found.throughput_keys)
            written = " | ".join(f"[{key}](#{key})" if key else "-" for key in found.pmem_bytes_keys)
            most = max(written_from_nothing(key, row["name"]) for key in row["assumptions"])
            cells = f"{range_text(found.throughput)} | {throughput} | {range_text(found.pmem_bytes)} | {written}"
            cells += f" | {most:,}" if most else " | "
            lines.append(f"| `{row['name']}` | {cells} |")
    return "\n".join(lines)


def places() -> str:
    """Returns the places to measure alternatives, in Markdown."""
    return "\n".join(f"- {place.name}: {place.what}." for place in PLACES)


def main(keys: list[str]) -> None:
    """Measures `keys`, those with outdated measurements, the missing runs, or all, and writes the results."""
    measured = measurements()
    known = {(run.key, run.place, run.setting, run.design): run for run in measured if keys == [MISSING]}
    if keys in ([OUTDATED], [MISSING]):
        keys = outdated(measured)
    elif unknown := set(keys) - TABLES.keys():
        sys.exit(f"unknown key {', '.join(sorted(unknown))} (allowed: {', '.join(TABLES)})")
    else:
        keys = keys or list(TABLES)
    for key in keys:
        print(key, flush=True)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = list(pool.map(lambda run, key=key: _known(known, key, run) or measure(key, *run), described(key)))
        measured = [run for run in measured if run.key != key] + found
        FILE.write_text(csv_text(measured), encoding="utf-8")
    FILE.write_text(csv_text(measured), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

"""How far the assumptions of a design matter: daggers, and the sensitivity ranges that measurements span."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from durasim.scenario import design_rows

DAGGER = "\N{DAGGER}"
"""Stands beside a design whose parameters rest on assumptions."""

COLUMNS = (
    "key", "workload", "threads", "machine", "setting", "design", "throughput_ops_per_us", "pmem_write_bytes", "remark"
)  # fmt: skip
"""Columns of `sensitivity.csv`, which `tools/sensitivity.py` writes. No setting: everything as it is assumed. No
numbers, but a remark: the program did not end well."""


@dataclass(frozen=True)
class Measured:
    """What a design does under one alternative to an assumption.

    Attributes:
        key: The key of DEVIATIONS.md.
        workload: Name of the workload.
        threads: Its threads.
        machine: The machine.
        setting: What is changed, separated by spaces; empty if nothing is.
        design: The row of the registry.
        numbers: Throughput in operations per simulated microsecond, and bytes written to persistent memory; None if
            there are none.
        remark: Why there are none.
    """

    key: str
    workload: str
    threads: int
    machine: str
    setting: str
    design: str
    numbers: tuple[float, int] | None
    remark: str


def measurements() -> list[Measured]:
    """Gives what `sensitivity.csv` has, in its order."""
    with (files("durasim") / "sensitivity.csv").open(encoding="utf-8") as file:
        return read_measurements(file)


def read_measurements(lines: Iterable[str]) -> list[Measured]:
    """Reads lines of a file such as `sensitivity.csv`."""
    return [_measured(row) for row in csv.DictReader(lines)]


def _measured(row: dict[str, str]) -> Measured:
    throughput, written = row["throughput_ops_per_us"], row["pmem_write_bytes"]
    numbers = (float(throughput), int(written)) if throughput else None
    places = (row["key"], row["workload"], int(row["threads"]), row["machine"], row["setting"], row["design"])
    return Measured(*places, numbers, row["remark"])


@dataclass(frozen=True)
class Ratio:
    """What an alternative changes: `measured` divided by the same run as it is.

    Attributes:
        measured: The run with the alternative.
        throughput: The ratio of throughput.
        pmem_bytes: The ratio of bytes written to persistent memory; None if none are written as it is.
    """

    measured: Measured
    throughput: float
    pmem_bytes: float | None


def ratios(measured: Iterable[Measured]) -> list[Ratio]:
    """Gives what each alternative changes, in order; those without numbers are left out."""
    found, usual = [], {}
    for run in measured:
        if run.numbers is None:
            continue
        place = (run.key, run.machine, run.design)
        if not run.setting:
            usual[place] = run.numbers
            continue
        throughput, written = usual[place]
        pmem_bytes = round(run.numbers[1] / written, 4) if written else None
        found.append(Ratio(run, round(run.numbers[0] / throughput, 4), pmem_bytes))
    return found


@dataclass(frozen=True)
class SensitivityRange:
    """What the alternatives of a row's assumptions, tried one at a time, do to it, as it is being 1.

    Attributes:
        throughput: The lowest and the highest ratio of throughput.
        pmem_bytes: The same of bytes written to persistent memory; None if nothing is written in these runs.
    """

    throughput: tuple[float, float]
    pmem_bytes: tuple[float, float] | None


@cache
def _ranges() -> dict[str, SensitivityRange]:
    """Gives the sensitivity range of each design. Some alternatives matter on one machine alone, so all count."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for ratio in ratios(measurements()):
        design = ratio.measured.design
        if ratio.measured.key in design_rows()[design]["assumptions"]:
            throughput, pmem_bytes = found.setdefault(design, ([1.0], [1.0]))
            throughput.append(ratio.throughput)
            if ratio.pmem_bytes is not None:
                pmem_bytes.append(ratio.pmem_bytes)
    return {
        key: SensitivityRange(
            (min(throughput), max(throughput)), (min(written), max(written)) if len(written) > 1 else None
        )
        for key, (throughput, written) in found.items()
    }


def range_of(design: str) -> SensitivityRange | None:
    """Gives the sensitivity range of a design over the machines on which alternatives were measured.

    None if the row has no assumption, or none with an alternative.
    """
    return _ranges().get(design)


def with_dagger(design: str) -> str:
    """Gives the name of a row, with a dagger if it rests on assumptions."""
    return f"{design}{DAGGER}" if design_rows()[design]["assumptions"] else design


def range_text(ends: tuple[float, float] | None) -> str:
    """Writes the ends of a range, as in `0.92-1.10`."""
    return "-" if ends is None else f"{ends[0]:.2f}-{ends[1]:.2f}"

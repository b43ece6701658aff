"""Effects of the assumptions of a design: daggers, and sensitivity ranges from measurements."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from durasim.runs.scenario import design_variants

DAGGER = "\N{DAGGER}"
"""Marks a design whose parameters depend on assumptions."""

COLUMNS = (
    "key", "place", "setting", "design", "throughput_ops_per_us", "pmem_write_bytes", "remark"
)  # fmt: skip
"""Columns of `sensitivity.csv`, which `tools/sensitivity.py` writes. An empty setting is the run with all assumptions.
A remark instead of numbers means that the program failed."""


@dataclass(frozen=True)
class Place:
    """A machine and a program on which alternatives are measured.

    Attributes:
        machine: The machine.
        workload: The program.
        ops: Its measured operations.
        threads: Its threads.
        arguments: Further arguments of the program, as `NAME=VALUE`.
        settings: Differences from the preset, as for `--set`.
        fast_forward: Whether the run is functional up to its measured region.
        what: Short description.
    """

    machine: str
    workload: str
    ops: int
    threads: int = 1
    arguments: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    fast_forward: bool = False
    what: str = ""

    @property
    def name(self) -> str:
        """Name with all components of the place."""
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return ", ".join((self.machine, *self.settings, " ".join((self.workload, *self.arguments)), threads))


PLACES = (
    Place("tiny", "btree", 300, what="medium transactions, data beyond the LLC"),
    Place("hercules-tecs23-modern", "btree", 2000, what="medium transactions, data in the LLC"),
    Place(
        "hercules-tecs23-modern-eighth", "array-swap", 300, arguments=("element-bytes=2048", "populate=1600"),
        fast_forward=True, what="large transactions, data beyond the LLC",
    ),
    Place(
        "tc-dac17", "sps", 4000, threads=4, arguments=("populate=20000",), fast_forward=True,
        what="small transactions, data in the LLC",
    ),
    Place(
        "tc-dac17", "sps", 2000, threads=4, arguments=("populate=150000",), settings=("llc.size_bytes=1048576",),
        fast_forward=True, what="small transactions, data beyond the LLC",
    ),
    Place("tiny", "pinspect-btree", 300, what="objects beyond the LLC"),
    Place(
        "pinspect-micro20", "pinspect-hashmap", 2000, arguments=("no-check=true", "populate=20000"),
        fast_forward=True, what="objects in the LLC",
    ),
    Place(
        "pinspect-micro20", "pinspect-bplustree", 2000, threads=4, arguments=("no-check=true", "populate=30000"),
        settings=("llc.size_bytes=1048576",), fast_forward=True, what="objects of four threads, beyond the LLC",
    ),
)  # fmt: skip
"""Places to measure the alternatives of every assumption, unless the assumption affects only a certain program. A
design is measured on the places with a program for which it has a runtime."""


@dataclass(frozen=True)
class Measured:
    """Measurement of a design under one alternative to an assumption.

    Attributes:
        key: The key of DEVIATIONS.md.
        place: The place, as `Place.name`.
        setting: The changes, separated by spaces; empty for the unchanged run.
        design: The design variant.
        numbers: Throughput in operations per simulated microsecond, and bytes written to persistent memory; None if the
            program failed.
        remark: The reason of the failure.
    """

    key: str
    place: str
    setting: str
    design: str
    numbers: tuple[float, int] | None
    remark: str


def measurements() -> list[Measured]:
    """Returns the rows of `sensitivity.csv` in order."""
    with (files("durasim") / "sensitivity.csv").open(encoding="utf-8") as file:
        return read_measurements(file)


def read_measurements(lines: Iterable[str]) -> list[Measured]:
    """Parses lines of a file such as `sensitivity.csv`."""
    return [_measured(row) for row in csv.DictReader(lines)]


def _measured(row: dict[str, str]) -> Measured:
    throughput, written = row["throughput_ops_per_us"], row["pmem_write_bytes"]
    numbers = (float(throughput), int(written)) if throughput else None
    return Measured(row["key"], row["place"], row["setting"], row["design"], numbers, row["remark"])


FEW_BYTES = 4096
"""With fewer bytes than this in the baseline, a ratio of bytes is meaningless."""

SECOND_SETTINGS: Mapping[str, str] = {
    "hercules-partial-match": "design.hercules.ewpq_home_bits=4",
    "hercules-log-extension": "design.hercules.log_zone_bytes=30400",
    "kiln-overflow": "design.kiln.fifo_entries=8",
    "picl-sizes": "design.picl.epoch_instructions=300000",
    "picl-scan": "design.picl.epoch_instructions=300000",
}
"""A setting without which alternatives to an assumption have no effect, by key. An alternative that starts with it is
compared with the run that has this setting only, so that its ratio is the effect of the alternative."""


def baseline_setting(run: Measured) -> str:
    """Returns the setting of the run with which a measurement is compared; empty for the unchanged run."""
    second = SECOND_SETTINGS.get(run.key, "")
    return second if second and run.setting.startswith(f"{second} ") else ""


@dataclass(frozen=True)
class Ratio:
    """Effect of an alternative: `measured` divided by the run without the alternative (see `baseline_setting`).

    Attributes:
        measured: The run with the alternative.
        throughput: The ratio of throughput.
        pmem_bytes: The ratio of bytes written to persistent memory; None if the baseline writes fewer than `FEW_BYTES`.
        baseline_bytes: Bytes that the baseline writes.
    """

    measured: Measured
    throughput: float
    pmem_bytes: float | None
    baseline_bytes: int


def ratios(measured: Iterable[Measured]) -> list[Ratio]:
    """Returns the effect of each alternative with numbers, in order."""
    runs = [run for run in measured if run.numbers is not None]
    # Runs without a change are those of the same key; runs with a second setting may be those of another one.
    unchanged = {(run.key, run.place, run.design): run.numbers for run in runs if not run.setting}
    changed = {(run.place, run.design, run.setting): run.numbers for run in runs if run.setting}
    found = []
    for run in runs:
        if not run.setting:
            continue
        second = baseline_setting(run)
        place = (run.place, run.design)
        baseline = changed.get((*place, second)) if second else unchanged.get((run.key, *place))
        # Without numbers of that run there is no baseline.
        if baseline is None or run.numbers is None:
            continue
        throughput, written = baseline
        pmem_bytes = round(run.numbers[1] / written, 4) if written >= FEW_BYTES else None
        found.append(Ratio(run, round(run.numbers[0] / throughput, 4), pmem_bytes, written))
    return found


@dataclass(frozen=True)
class SensitivityRange:
    """Effect of alternatives to a design's assumptions, one at a time, relative to the unchanged run.

    Attributes:
        throughput: The lowest and the highest ratio of throughput.
        pmem_bytes: The lowest and the highest ratio of bytes written to persistent memory; None if these runs write
            none.
        throughput_keys: The assumptions at the two ends of `throughput`; None if no alternative changes it in that
            direction.
        pmem_bytes_keys: The assumptions at the two ends of `pmem_bytes`.
    """

    throughput: tuple[float, float]
    pmem_bytes: tuple[float, float] | None
    throughput_keys: tuple[str | None, str | None]
    pmem_bytes_keys: tuple[str | None, str | None]


@cache
def _ranges(machine: str | None = None) -> dict[str, SensitivityRange]:
    """Returns the sensitivity range of each design, on one machine or, because effects differ by machine, over all."""
    found: dict[str, tuple[list[_End], list[_End]]] = {}
    for ratio in ratios(measurements()):
        design, key = ratio.measured.design, ratio.measured.key
        if machine not in (None, ratio.measured.place.partition(",")[0]):
            continue
        if key in design_variants()[design]["assumptions"]:
            throughput, pmem_bytes = found.setdefault(design, ([(1.0, None)], [(1.0, None)]))
            throughput.append((ratio.throughput, key))
            if ratio.pmem_bytes is not None:
                pmem_bytes.append((ratio.pmem_bytes, key))
    ranges = {}
    for design, (throughput, written) in found.items():
        (low, low_key), (high, high_key) = _ends(throughput)
        (few, few_key), (many, many_key) = _ends(written)
        bytes_of = (few, many) if len(written) > 1 else None
        ranges[design] = SensitivityRange((low, high), bytes_of, (low_key, high_key), (few_key, many_key))
    return ranges


_End = tuple[float, str | None]


def _ends(ratios_of: list[_End]) -> tuple[_End, _End]:
    # The first of equal ones; no key if nothing changes.
    return min(ratios_of, key=lambda end: end[0]), max(ratios_of, key=lambda end: end[0])


def range_of(design: str, machine: str | None = None) -> SensitivityRange | None:
    """Returns the sensitivity range of a design on a machine, or over all machines with measurements.

    None if the design has no assumption, or no alternative was measured there.
    """
    return _ranges(machine).get(design)


@cache
def _varied() -> frozenset[tuple[str, str]]:
    return frozenset((ratio.measured.design, ratio.measured.key) for ratio in ratios(measurements()))


def not_varied(design: str) -> list[str]:
    """Returns the keys of a design's assumptions without a measured alternative: no range covers them."""
    return [key for key in design_variants()[design]["assumptions"] if (design, key) not in _varied()]


def varied_text(design: str, machine: str) -> str:
    """Says how many of a design's assumptions have alternatives that were measured on a machine."""
    keys = design_variants()[design]["assumptions"]
    of_machine = {
        (of.measured.design, of.measured.key)
        for of in ratios(measurements())
        if of.measured.place.partition(",")[0] == machine
    }
    return f"{sum((design, key) in of_machine for key in keys)} of {len(keys)}"


def footnote(design: str, machine: str) -> str | None:
    """Returns the footnote of a result: the design depends on assumptions, with their effect on this machine.

    None if the design has no assumption.
    """
    if not design_variants()[design]["assumptions"]:
        return None
    found = range_of(design, machine)
    where = (
        f"not varied on {machine}"
        if found is None
        else f"throughput {range_text(found.throughput)} times; {varied_text(design, machine)} varied, "
        f"one at a time, in short runs on {machine}"
    )
    return f"{DAGGER} depends on assumptions ({where}): durasim designs {design}"


def with_dagger(design: str) -> str:
    """Returns the name of a design, with a dagger if it depends on assumptions."""
    return f"{design}{DAGGER}" if design_variants()[design]["assumptions"] else design


def range_text(ends: tuple[float, float] | None) -> str:
    """Formats a range, as in `0.92-1.10`."""
    return "-" if ends is None else f"{ends[0]:.2f}-{ends[1]:.2f}"

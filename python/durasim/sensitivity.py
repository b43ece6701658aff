"""How far the assumptions of a design matter: daggers, and the bands that the measurements of DEVIATIONS.md span."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from durasim.scenario import design_rows

DAGGER = "\N{DAGGER}"
"""Stands beside a design whose parameters rest on assumptions."""

COLUMNS = ("design", "machine", "key", "setting", "throughput_ratio", "pmem_bytes_ratio")
"""Columns of `sensitivity.csv`, which `tools/sensitivity.py` writes: what a row makes under an alternative of one of
its assumptions, divided by what it makes as it is. No ratio of bytes where none are written as it is."""


@dataclass(frozen=True)
class Band:
    """What the alternatives of a row's assumptions, tried one at a time, do to it, as it is being 1.

    Attributes:
        throughput: The lowest and the highest ratio of throughput.
        pmem_bytes: The same of bytes written to persistent memory; None if nothing is written in these runs.
    """

    throughput: tuple[float, float]
    pmem_bytes: tuple[float, float] | None


@cache
def _bands() -> dict[str, Band]:
    """Gives the band of each row. Some alternatives show themselves on one machine alone, so they count together."""
    ratios: dict[str, tuple[list[float], list[float]]] = {}
    with (files("durasim") / "sensitivity.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            throughput, pmem_bytes = ratios.setdefault(row["design"], ([1.0], [1.0]))
            throughput.append(float(row["throughput_ratio"]))
            if row["pmem_bytes_ratio"]:
                pmem_bytes.append(float(row["pmem_bytes_ratio"]))
    return {
        key: Band((min(throughput), max(throughput)), (min(written), max(written)) if len(written) > 1 else None)
        for key, (throughput, written) in ratios.items()
    }


def band_of(design: str) -> Band | None:
    """Gives the band of a row over the machines on which alternatives were measured.

    None if the row has no assumption, or none with an alternative.
    """
    return _bands().get(design)


def with_dagger(design: str) -> str:
    """Gives the name of a row, with a dagger if it rests on assumptions."""
    return f"{design}{DAGGER}" if design_rows()[design]["assumptions"] else design


def band_text(ends: tuple[float, float] | None) -> str:
    """Writes the ends of a band, as in `0.92-1.10`."""
    return "-" if ends is None else f"{ends[0]:.2f}-{ends[1]:.2f}"

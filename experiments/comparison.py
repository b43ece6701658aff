"""What experiments share: their commands, their documents, and the numbers that formulas make of these.

`scoring.py` has the rule by which a measured number is compared with a published one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import stdev
from typing import Any

from scoring import Published

# A throughput below this has three digits after the point in tables.
SMALL = 0.1


@dataclass(frozen=True)
class Command:
    """A command of durasim.

    Attributes:
        arguments: Its arguments, without the file of its document.
        program: What it shares its populated pool with; empty if it shares it with none.
    """

    arguments: tuple[str, ...]
    program: str = ""

    @property
    def by_itself(self) -> tuple[str, ...]:
        """Its arguments where it populates its pool itself, functionally: the same result."""
        return (*self.arguments, "--fast-forward", "0") if self.program else self.arguments


@dataclass(frozen=True)
class Experiment:
    """Runs in which one thing is other than in those that are compared, to see whether it explains a difference.

    Attributes:
        name: Its name.
        workloads: Workloads, as the table of the paper names them.
        designs: Designs.
        settings: What is set.
        baseline: The runs whose `opt` its throughputs are relative to; its own if empty.
        threads: Threads.
        operations: Operations before the measured region and in it; those of the other runs if None.
    """

    name: str
    workloads: tuple[str, ...]
    designs: tuple[str, ...]
    settings: tuple[str, ...] = ()
    baseline: str = ""
    threads: int = 15
    operations: tuple[int, int] | None = None


@dataclass(frozen=True)
class Measured:
    """What was measured for a published number.

    Attributes:
        text: Ours, in the unit of the paper.
        values: The numbers that are compared, in the unit of the paper; none if there is nothing to compare.
        reason: What a reader has to know about it.
    """

    text: str
    values: tuple[float, ...] = ()
    reason: str = ""


def measured(value: float, digits: int, reason: str = "") -> Measured:
    """Gives a number in the unit of the paper, whose text has some digits after the point."""
    return Measured(f"{value:.{digits}f}", (value,), reason)


def percent_more(ratio: float, digits: int = 1, reason: str = "") -> Measured:
    """Gives a ratio as what it is more than one, in percent."""
    return measured((ratio - 1) * 100, digits, reason)


def percent_less(ratio: float, digits: int = 1, reason: str = "") -> Measured:
    """Gives a ratio as what it is less than one, in percent."""
    return measured((1 - ratio) * 100, digits, reason)


@dataclass
class Documents:
    """The documents of all commands by name, and which of them a formula has read."""

    by_name: Mapping[str, Any]
    used: set[str] = field(default_factory=set)

    def __getitem__(self, name: str) -> Any:
        """Gives the document of a command."""
        self.used.add(name)
        return self.by_name[name]


Formula = Callable[[Documents, Published], Measured]
Rows = list[dict[str, str]]
# A further table of a page: its commands, and what makes its rows of their documents.
Part = tuple[dict[str, Command], Callable[[Documents], Rows]]


def throughput(document: Mapping[str, Any]) -> float:
    """Gives the operations of a run in each microsecond."""
    return float(document["throughput_ops_per_us"])


def throughput_text(value: float) -> str:
    """Writes a throughput with two digits behind the point, or three if it is small."""
    return f"{value:.{3 if value < SMALL else 2}f}"


def pmem_bytes(document: Mapping[str, Any]) -> float:
    """Gives the bytes that a run has written to persistent memory."""
    return float(document["pmem_write_bytes"]["total"])


def half_interval(of_three_seeds: list[float]) -> float:
    """Gives half of the 95 % interval of the mean of three values, by Student's t for two degrees of freedom."""
    return 4.303 * stdev(of_three_seeds) / len(of_three_seeds) ** 0.5


def geomean(ratios: list[float]) -> float:
    """Gives the geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


# A limit on how many threads have a transaction open at once: arguments of a run of SPHT-eADR by their names.
LIMITS = {
    "4": ("--arg", "open-max=4"),
    "8": ("--arg", "open-max=8"),
    "12": ("--arg", "open-max=12"),
    "tunes itself": ("--arg", "tune-open-max=true"),
}


def limit_key(baseline: str, limit: str) -> str:
    """The name of the document of a run like `baseline`, with a limit."""
    return f"{baseline}.open-{limit.replace(' ', '-')}"


def limit_rows(documents: Documents, baselines: Mapping[str, str]) -> list[dict[str, str]]:
    """Throughput of runs without a limit, each by its name, and with each; beside it how many commits took the lock."""
    return [
        {
            "program": name,
            "limit": limit,
            "throughput_ops_per_us": f"{documents[run]['throughput_ops_per_us']:.2f}",
            "sgl_commits": str(documents[run]["tx"]["sgl_committed"]),
        }
        for name, baseline in baselines.items()
        for limit, run in (("none", baseline), *((limit, limit_key(baseline, limit)) for limit in LIMITS))
    ]


def attempts(document: Mapping[str, Any]) -> dict[str, str]:
    """Gives the throughput of a run with hardware transactions, its commits by path, and its aborts by cause."""
    tx = document["tx"]
    return {
        "throughput_ops_per_us": throughput_text(document["throughput_ops_per_us"]),
        "htm_commits": str(tx["htm_committed"]),
        "sgl_commits": str(tx["sgl_committed"]),
        **{f"aborts_{cause}": str(count) for cause, count in tx["aborted_by"].items()},
    }

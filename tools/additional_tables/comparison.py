"""Common parts of additional tables: commands, documents, and the numbers that tables derive from these."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import stdev
from typing import Any

# A throughput below this is shown with three decimals.
SMALL = 0.1


@dataclass(frozen=True)
class Command:
    """A command of durasim.

    Attributes:
        arguments: Its arguments, without the file of its document.
        program: Name of the group of commands with which it shares a populated pool; empty if none.
    """

    arguments: tuple[str, ...]
    program: str = ""

    @property
    def by_itself(self) -> tuple[str, ...]:
        """Its arguments if it populates its own pool functionally, which gives an equal result."""
        return (*self.arguments, "--fast-forward", "0") if self.program else self.arguments


@dataclass(frozen=True)
class Experiment:
    """Runs with one change relative to the compared runs, to test whether it explains a difference.

    Attributes:
        name: Its name.
        workloads: Workloads, as the table of the paper names them.
        designs: Designs.
        settings: The changed settings.
        baseline: The runs with the `opt` that its throughputs are relative to; its own if empty.
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


@dataclass
class Documents:
    """The documents of all commands by name, with a record of those that a formula has read."""

    by_name: Mapping[str, Any]
    used: set[str] = field(default_factory=set)

    def __getitem__(self, name: str) -> Any:
        """Returns the document of a command."""
        self.used.add(name)
        return self.by_name[name]


Rows = list[dict[str, str]]
# Another table of a page: its commands, and the function that computes its rows from their documents.
Part = tuple[dict[str, Command], Callable[[Documents], Rows]]


def throughput(document: Mapping[str, Any]) -> float:
    """Returns the operations of a run per microsecond."""
    return float(document["throughput_ops_per_us"])


def throughput_text(value: float) -> str:
    """Formats a throughput with two decimals, or three if it is small."""
    return f"{value:.{3 if value < SMALL else 2}f}"


def pmem_bytes(document: Mapping[str, Any]) -> float:
    """Returns the bytes that a run wrote to persistent memory."""
    return float(document["pmem_write_bytes"]["total"])


def half_interval(of_three_seeds: list[float]) -> float:
    """Returns half of the 95 % interval of the mean of three values, by Student's t for two degrees of freedom."""
    return 4.303 * stdev(of_three_seeds) / len(of_three_seeds) ** 0.5


def geomean(ratios: list[float]) -> float:
    """Returns the geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


# Limits on the number of threads with an open transaction: arguments of a run of SPHT-eADR, by name.
LIMITS = {
    "4": ("--arg", "open-max=4"),
    "8": ("--arg", "open-max=8"),
    "12": ("--arg", "open-max=12"),
    "tunes itself": ("--arg", "tune-open-max=true"),
}


def limit_key(baseline: str, limit: str) -> str:
    """Returns the name of the document of a run like `baseline`, with a limit."""
    return f"{baseline}.open-{limit.replace(' ', '-')}"


def limit_rows(documents: Documents, baselines: Mapping[str, str]) -> list[dict[str, str]]:
    """Returns the throughput of runs without and with each limit, and the number of commits under the lock."""
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
    """Returns the throughput of a run with hardware transactions, its commits by path, and its aborts by cause."""
    tx = document["tx"]
    return {
        "throughput_ops_per_us": throughput_text(document["throughput_ops_per_us"]),
        "htm_commits": str(tx["htm_committed"]),
        "sgl_commits": str(tx["sgl_committed"]),
        **{f"aborts_{cause}": str(count) for cause, count in tx["aborted_by"].items()},
    }

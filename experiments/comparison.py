"""How a measured number is held against a published one.

Every published gain, loss or share is a ratio of two designs here. *reproduced*: ours is within 15 % of it, or a rate
below 5 % within one point, or a claim holds. *direction holds*: the same design is ahead, and the logarithm of our
ratio is between half of the published one and twice of it. *differs*: else. *calibration*: it decided
how the experiment is set up. *not comparable*: the reason says why.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from statistics import stdev
from typing import Any

WITHIN = 0.15
POINT = 0.01
# A throughput below this has three digits behind the point in tables.
SMALL = 0.1


class Kind(Enum):
    """What a measured number is compared as."""

    RATIO = "a ratio of two designs"
    RATE = "a rate, of which a point counts"
    AMOUNT = "a number that is no ratio"
    CLAIM = "a claim that holds or does not"
    CALIBRATION = "what decided how the experiment is set up, and therefore reproduces nothing"
    NONE = "nothing"


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
class Published:
    """A number of a paper. `exact` is `true` if it is printed, `approx` if the text rounds it."""

    figure: str
    metric: str
    design: str
    workload: str
    baseline: str
    value: str
    unit: str
    exact: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What identifies it."""
        return self.figure, self.metric, self.design, self.workload

    @property
    def number(self) -> float:
        """Its value."""
        return float(self.value)


def read_published(name: str) -> list[Published]:
    """Reads the numbers of a paper, in its order."""
    file = Path(__file__).parent / name.replace("-", "_") / "published.csv"
    with file.open(encoding="utf-8", newline="") as text:
        return [Published(**row) for row in csv.DictReader(text)]


@dataclass(frozen=True)
class Measured:
    """What was measured for a published number.

    Attributes:
        text: Ours, in the unit of the paper.
        kind: What it is compared as.
        ours: Our ratio, rate or amount; whether a claim holds.
        published: Theirs.
        reason: What is to be known about it.
    """

    text: str
    kind: Kind
    ours: float = math.nan
    published: float = math.nan
    reason: str = ""


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


def verdict(measured: Measured) -> str:
    """Says what follows from a measured number."""
    ours, published = measured.ours, measured.published
    if measured.kind is Kind.NONE:
        return "not comparable"
    if measured.kind is Kind.CALIBRATION:
        return "calibration"
    if measured.kind is Kind.CLAIM:
        return "reproduced" if ours else "differs"
    if measured.kind is Kind.RATE:
        return "reproduced" if abs(ours - published) <= POINT else "differs"
    if published and abs(ours / published - 1) <= WITHIN:
        return "reproduced"
    if measured.kind is Kind.RATIO and ours > 0 and math.log(published) * math.log(ours) > 0:
        share = math.log(ours) / math.log(published)
        if 0.5 <= share <= 2:  # noqa: PLR2004 - half and twice
            return "direction holds"
    return "differs"


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

"""Gives the generated parts of README.md and TRUST.md, from recorded results alone: nothing is run.

The ratios are those of docs/results/hercules-tecs23*.csv, which `python -m tools.measured_tables` makes with one build
on one preset and suite. `sensitivity.csv` is not among them: its rows come from several builds and other presets.
"""

from __future__ import annotations

import csv
import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from durasim.crashes.mutants import all_mutants
from durasim.runs.assumptions import MEASURED, assumptions, headline
from durasim.runs.sensitivity import PLACES, measurements
from tools import deviations, published, sources

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "timing"))
import multicore  # noqa: E402 - found by the path above
import validation  # noqa: E402

RESULTS = "docs/results"
PAGE = f"{RESULTS}/hercules-tecs23.md"
# The column that published numbers are compared with.
AS_ASSUMED = "gem5 1.4"
COMPARED = ("tc", "kiln", "proteus", "hoop", "fwb", "swl-eadr")
"""The designs that Hercules is compared with."""
ROWS_SHOWN = 10
TC_PART = "tc"
# A ratio that changes by less is not among those that move most.
SMALL_FACTOR = 1.05


@dataclass(frozen=True)
class Reading:
    """A row of hercules-tecs23-readings.csv: one thing that is changed.

    Attributes:
        name: The name of the row.
        design: The design that is changed.
        key: The assumption that it varies.
        alternative: What it is instead, in words.
        part: The table that has the row.
    """

    name: str
    design: str
    key: str
    alternative: str
    part: str = "readings"


# What a reading varies that is an argument of the programs and no assumption of a design.
LOG_SIZE = "size of the log"
PAGES_OF_READINGS = {LOG_SIZE: "docs/software-logging.md#the-size-of-the-log"}
READINGS = (
    Reading(
        "TC: a commit holds later stores until persistent memory has all lines",
        "tc",
        "tc-commit",
        "a commit waits for persistent memory",
    ),
    Reading("Kiln: an LLC as large as that of the others", "kiln", "kiln-llc", "an LLC as large as all others have"),
    Reading("Kiln: writes of the LLC are pipelined", "kiln", "kiln-llc-ports", "writes of the LLC are pipelined"),
    Reading("Kiln: both versions of a line in the LLC", "kiln", "kiln-home-first", "both versions stay in the LLC"),
    Reading("Proteus: a log queue of 8 entries", "proteus", "proteus-lpq", "a log queue of 8 entries"),
    Reading("Proteus: on eADR", "proteus", "proteus-eadr", "on a machine with eADR"),
    Reading("HOOP: on eADR", "hoop", "hoop-eadr", "on a machine with eADR"),
    Reading("FWB: on eADR", "fwb", "fwb-eadr", "on a machine with eADR"),
    Reading("SWL_eADR: a log of four times the LLC", "swl-eadr", LOG_SIZE, "a log of 4 times the LLC"),
    Reading("pipelined array", "tc", "tc-ports", "an array that takes an access in each cycle", TC_PART),
    Reading("four ports of each kind", "tc", "tc-ports", "four ports for reads and four for writes", TC_PART),
    Reading("no latency of the array", "tc", "tc-latency", "an array without latency", TC_PART),
    Reading("a commit holds no later store", "tc", "tc-commit", "a commit holds no later store", TC_PART),
    Reading("each store takes an entry", "tc", "tc-coalescing", "each store takes an entry", TC_PART),
)
# Kiln where all caches survive is another variant and no assumption of this one. In the part of TC, the run as assumed,
# and two assumptions at once.
NOT_VARIED = {"Kiln: on eADR"}
NOT_VARIED_OF_TC = {"as assumed", "pipelined array, a commit holds no later store"}


@cache
def _csv(name: str) -> tuple[dict[str, str], ...]:
    with (ROOT / RESULTS / f"hercules-tecs23-{name}.csv").open(encoding="utf-8", newline="") as text:
        return tuple(csv.DictReader(text))


def _by_design(name: str) -> dict[str, dict[str, str]]:
    return {row["design"].strip("`"): row for row in _csv(name)}


def _throughput(design: str, column: str) -> tuple[float, float]:
    """The throughput of Hercules over that of a design, and half of its 95 % interval over seeds."""
    ratio, half = _by_design("throughput")[design][column].split(" ± ")
    return float(ratio), float(half)


@dataclass(frozen=True)
class Varied:
    """Hercules over a design, with one thing changed: the ratio, and what was changed."""

    ratio: float
    what: str


def _all_varied(design: str) -> Iterator[Varied]:
    for column in _by_design("throughput")[design]:
        if column not in ("design", "published"):
            core, data = column.split()
            yield Varied(_throughput(design, column)[0], f"data {data}, {core} core")
    yield Varied(float(_by_design("medium")[design]["mean"]), "medium with rows")
    yield Varied(float(_by_design("full")[design]["geometric mean"]), "full size, gem5 core")
    for reading in READINGS:
        if reading.design == design:
            yield Varied(_reading(reading), reading.alternative)


def _reading(reading: Reading) -> float:
    name, value = ("TC", "geometric mean") if reading.part == TC_PART else ("reading", "hercules_over_it")
    return next(float(row[value]) for row in _csv(reading.part) if row[name] == reading.name)


def ranges() -> str:
    """Gives Hercules over each design: published, here with the interval over seeds, and the readings at the ends."""
    lines = [
        "| design | source | published | here | 95 % over seeds | lowest reading | highest reading |",
        "| --- | --- | ---: | ---: | ---: | --- | --- |",
    ]
    for design in COMPARED:
        ratio, half = _throughput(design, AS_ASSUMED)
        varied = sorted(_all_varied(design), key=lambda of: of.ratio)
        ends = [f"{of.ratio:.2f} ({of.what})" for of in (varied[0], varied[-1])]
        of_paper = _by_design("throughput")[design]["published"]
        interval = f"± {half:.2f}" if half else "within 0.005"
        source = sources.source_of(design).partition(":")[0]
        lines.append(f"| `{design}` | {source} | {of_paper} | {ratio:.2f} | {interval} | {' | '.join(ends)} |")
    return "\n".join(lines)


@dataclass(frozen=True)
class Moved:
    """The effect of an alternative to an assumption on a ratio."""

    key: str
    design: str
    alternative: str
    assumed: float
    ratios: tuple[float, ...]

    @property
    def factor(self) -> float:
        """By which factor it changes the ratio at most."""
        return max(math.exp(abs(math.log(ratio / self.assumed))) for ratio in self.ratios)


def _moved() -> list[Moved]:
    """Gives what was measured on the preset and suite of the page, the largest change first.

    A reading of the part of TC is compared with the run as assumed of the same part and build.
    """
    found = [
        Moved(
            of.key,
            of.design,
            of.alternative,
            _of_tc() if of.part == TC_PART else _throughput(of.design, AS_ASSUMED)[0],
            (_reading(of),),
        )
        for of in READINGS
    ]
    for design in COMPARED:
        assumed, of_rows = _throughput(design, AS_ASSUMED)[0], float(_by_design("medium")[design]["mean"])
        found += [
            Moved(key, design, alternative, assumed, tuple(_throughput(design, column)[0] for column in columns))
            for key, alternative, columns in OF_MACHINE
        ]
        found.append(Moved("pmem-rows", design, "rows of 256 bytes on one bank", assumed, (of_rows,)))
    return sorted(found, key=lambda of: -of.factor)


def _of_tc() -> float:
    return next(float(row["geometric mean"]) for row in _csv(TC_PART) if row["TC"] == "as assumed")


OF_MACHINE = (
    ("hercules-regime", "data of 0.5 and of 4 times the LLC", ("gem5 0.5", "gem5 4")),
    ("gem5-core", "a core of today", ("modern 1.4",)),
)


def _largest(moved: Iterable[Moved]) -> list[Moved]:
    """Gives the first entry of each assumption."""
    found: dict[str, Moved] = {}
    for of in moved:
        found.setdefault(of.key, of)
    return list(found.values())


def headline_assumptions() -> str:
    """Gives the assumptions that move the ratios most, of those that were measured on this machine and suite."""
    moved = [of for of in _largest(_moved()) if of.factor >= SMALL_FACTOR][:ROWS_SHOWN]
    lines = ["| assumption | instead | Hercules over | as assumed | instead |", "| --- | --- | --- | ---: | ---: |"]
    for of in moved:
        instead = ", ".join(f"{ratio:.2f}" for ratio in of.ratios)
        lines.append(f"| {_link(of.key)} | {of.alternative} | `{of.design}` | {of.assumed:.2f} | {instead} |")
    missing = _not_measured()
    count = len(missing) + len({of.key for of in _moved()} - PAGES_OF_READINGS.keys())
    first = ", ".join(_link(key) for key in missing[:UNMEASURED_SHOWN])
    return "\n".join([
        *lines,
        "",
        f"{count - len(missing)} of the {count} assumptions of these designs and this machine were varied so. Of the "
        f"others, those with the largest effect in [short runs on other machines](DEVIATIONS.md) are {first}.",
    ])  # fmt: skip


UNMEASURED_SHOWN = 3


def leading(design: str) -> str:
    """Gives the assumptions of a design that matter most: for its throughput, and for the published comparison."""
    text = deviations.leading(design)
    moved = [of for of in _largest(of for of in _moved() if of.design == design) if of.factor >= SMALL_FACTOR]
    if moved:
        found = []
        for of in moved[:2]:
            ratios = ", ".join(f"{ratio:.2f}" for ratio in of.ratios)
            found.append(f"[{of.key}]({_from_page(design, of.key)}) ({ratios}: {of.alternative})")
        text += (
            f" For the published comparison, Hercules over `{design}` ({moved[0].assumed:.2f} as assumed), "
            f"{', then '.join(found)}."
        )
    pages = ", ".join(f"[{name}](../results/{name}.md)" for name in published.pages_with(design))
    return f"{text}\n\nMeasured again, numbers that score first: {pages}." if pages else text


def _from_page(design: str, key: str) -> str:
    page = assumptions()[key].page
    return deviations.link_from(design, page, key)


def _link(key: str) -> str:
    return f"[{key}]({PAGES_OF_READINGS.get(key, f'DEVIATIONS.md#{key}')})"


def _not_measured() -> list[str]:
    """Gives the assumptions of the compared designs that were varied only elsewhere or nowhere, as DEVIATIONS.md."""
    measured = {of.key for of in _moved()}
    compared = {*COMPARED, "hercules"}
    found = [of for of in assumptions().values() if of.key not in measured and compared & set(of.designs)]
    found.sort(key=lambda of: (of.status != MEASURED, -round(headline(of), 2)))
    return [of.key for of in found]


def tc_by_machine() -> str:
    """Gives TC and Hercules relative to `opt` on three machines, from recorded runs."""
    lines = ["| machine, program | a commit of TC | `tc` | `hercules` |", "| --- | --- | ---: | ---: |"]
    for column, machine in (("gem5 1.4", "hercules-tecs23"), ("modern 1.4", "hercules-tecs23-modern")):
        over_opt, over_tc = (_throughput(design, column)[0] for design in ("opt", "tc"))
        lines.append(
            f"| `{machine}`, mean of seven, 1.4 x LLC | `accepted` | {over_opt / over_tc:.2f} | {over_opt:.2f} |"
        )
    for place in (place for place in PLACES if place.workload == "sps"):
        of = {
            run.design: run.numbers[0]
            for run in measurements()
            if run.key == "core-queues" and run.place == place.name and not run.setting and run.numbers
        }
        ours = (f"{of[design] / of['opt']:.2f}" for design in ("tc", "hercules"))
        lines.append(f"| `{place.machine}`, sps, {place.what} | `early` | {' | '.join(ours)} |")
    return "\n".join(lines)


def papers_not_read() -> str:
    """Gives the designs whose papers were not read, and what was read instead."""
    lines = ["| design | read instead |", "| --- | --- |"]
    for source, designs in sources.not_read().items():
        lines.append(f"| {', '.join(f'`{design}`' for design in designs)} | {source} |")
    return "\n".join(lines)


def scoreboard() -> str:
    """Gives how many numbers of each paper score, and the verdicts of those."""
    headers = ("numbers", *published.VERDICTS, "not scored")
    lines = [f"| page | {' | '.join(headers)} |", f"| --- |{' ---: |' * len(headers)}"]
    for title, rows in published.results_by_page().items():
        counts = published.score(rows)
        verdicts = [counts[verdict] for verdict in published.VERDICTS]
        cells = " | ".join(str(count) for count in (len(rows), *verdicts, len(rows) - sum(verdicts)))
        lines.append(f"| {title if title == 'all' else f'[{title}]({RESULTS}/{title}.md)'} | {cells} |")
    return "\n".join(lines)


def gem5() -> str:
    """Gives the error of IPC by program, and of cycles with several cores by the reason that is named for it."""
    errors = {args.split()[0]: of for args, of in validation.ipc_errors().items()}
    flat = [abs(error) for of in errors.values() for error in of.values()]
    half = (len(errors) + 1) // 2
    cells = [f"`{name}` | {of['A']:+.1f} | {of['B']:+.1f}" for name, of in errors.items()]
    lines = ["| program | A | B | program | A | B |", "| --- | ---: | ---: | --- | ---: | ---: |"]
    lines += [f"| {left} | {right} |" for left, right in zip(cells[:half], cells[half:], strict=True)]
    rows = multicore.recorded()
    far = [row for row in rows if not row.is_close]
    lines += [
        "",
        f"Mean {sum(flat) / len(flat):.1f} %, largest {max(flat):.1f} %. {multicore_counts()} The {len(far)} others, "
        f"by [reason]({REASONS_OF_ROWS}); *open* has none:",
        "",
        "| reason | rows | cycles, percent | reason | rows | cycles, percent |",
        "| --- | ---: | ---: | --- | ---: | ---: |",
    ]
    cells = [_reason(name, [row for row in far if multicore.reason(row.gem5) == name]) for name in multicore.REASONS]
    half = (len(cells) + 1) // 2
    lines += [f"| {left} | {right} |" for left, right in zip(cells[:half], cells[half:], strict=True)]
    return "\n".join(lines)


def multicore_counts() -> str:
    """Gives how many rows of several cores are close to gem5, and to its variant whose snoops take time."""
    rows = multicore.recorded()
    within = multicore.DIFFERENCE_PERCENT_MAX
    of_gem5 = sum(abs(row.differences_percent[0]) <= within for row in rows)
    of_either = sum(row.is_close for row in rows)
    return (
        f"Several cores and cache-block operations: of {len(rows)} rows {of_gem5} are within {within} % of gem5's "
        f"cycles, {of_either - of_gem5} more only of those of gem5 with snoops that take 30 cycles."
    )


REASONS_OF_ROWS = "tests/timing/README.md#several-cores-and-cache-block-operations"


def _reason(name: str, rows: Sequence[multicore.Row]) -> str:
    differences = sorted(row.difference_percent for row in rows)
    ends = dict.fromkeys(f"{end:+.0f}" for end in (differences[0], differences[-1]))
    return f"{name} | {len(rows)} | {' to '.join(ends)}"


CAMPAIGN = re.compile(r"^\| `campaigns/([\w-]+)\.toml` \|.*\| ([\d,.]+(?: million)?) \| [^|]+ \|$", re.MULTILINE)
CAUGHT = re.compile(r"`([a-z-]+)` (\d+) of (\d+)")
MILLION = 1_000_000


def _crash_page() -> str:
    return (ROOT / "docs" / "crash.md").read_text(encoding="utf-8")


def crashes() -> str:
    """Gives the trials of the campaigns that docs/crash.md records, each with its command."""
    found = CAMPAIGN.findall(_crash_page())
    cells = [f"`{name}` | {trials}" for name, trials in found]
    cells += [" | "] * (len(cells) % 2)
    half = len(cells) // 2
    title = "`durasim campaign`"
    lines = [f"| {title} | trials | {title} | trials |", "| --- | ---: | --- | ---: |"]
    lines += [f"| {left} | {right} |" for left, right in zip(cells[:half], cells[half:], strict=True)]
    total = sum(_number(trials) for _, trials in found)
    return "\n".join(
        [
            *lines,
            "",
            f"Together {total / MILLION:.1f} million trials, no violation; every control failed, as it has to.",
        ]
    )


def _number(text: str) -> float:
    number, _, unit = text.partition(" ")
    return float(number.replace(",", "")) * (MILLION if unit else 1)


def planted() -> str:
    """Gives how many faults are planted, and how many of them the recorded runs have counted."""
    mutants = all_mutants()
    faults = [mutant for mutant in mutants if mutant.equivalent is None]
    counted = CAUGHT.findall(_crash_page())
    caught, tried = (sum(int(of[at]) for of in counted) for at in (1, 2))
    designs = len({mutant.design for mutant in mutants})
    return (
        f"{len(faults)} faults are planted in {designs} designs (`durasim mutation`); {len(mutants) - len(faults)} "
        f"more provably change nothing. The recorded runs of {len(counted)} designs caught {caught} of {tried}; for "
        "the other designs the record says only that all were caught. It is older than the newest faults: "
        "`make test-all` tries all."
    )

"""Gives the generated parts of README.md and TRUST.md, from recorded results alone: nothing is run.

The ratios are those of docs/results/hercules-tecs23*.csv, which `tools/published.py` makes with one build on one preset
and suite. `sensitivity.csv` is not among them: its rows come from several builds and other presets.
"""

from __future__ import annotations

import csv
import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from durasim.crashes.mutants import all_mutants
from durasim.runs.assumptions import MEASURED, assumptions, headline
from tools import published

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "timing"))
import multicore  # noqa: E402 - found by the path above
import validation  # noqa: E402

RESULTS = "docs/results"
PAGE = f"{RESULTS}/hercules-tecs23.md"
# The column that published numbers are compared with.
AS_ASSUMED = "gem5 1.4"
OWN_PAPER, OF_HERCULES = "its paper", "as Hercules describes it"
SOURCES = {
    "tc": OWN_PAPER,
    "kiln": "as Hercules and TC describe it",
    "proteus": OF_HERCULES,
    "hoop": OF_HERCULES,
    "fwb": OF_HERCULES,
    "swl-eadr": "our logs",
}
"""The designs that Hercules is compared with, and what their models were made from."""
ROWS_SHOWN = 10
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
    """

    name: str
    design: str
    key: str
    alternative: str


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
    Reading("SWL_eADR: a log of 64 MB, four times the LLC", "swl-eadr", "swl-granularity", "a log of 4 times the LLC"),
)
# Kiln where all caches survive is another row of the registry and no assumption of this one.
NOT_VARIED = {"Kiln: on eADR"}


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
    for reading in READINGS:
        if reading.design == design:
            yield Varied(_reading(reading), reading.alternative)


def _reading(reading: Reading) -> float:
    return next(float(row["hercules_over_it"]) for row in _csv("readings") if row["reading"] == reading.name)


def ranges() -> str:
    """Gives Hercules over each design: published, here with the interval over seeds, and what the model spans."""
    lines = [
        "| design | known from | published | here, 1.4 x LLC | 95 % over seeds | model: lowest | model: highest |",
        "| --- | --- | ---: | ---: | ---: | --- | --- |",
    ]
    for design, source in SOURCES.items():
        ratio, half = _throughput(design, AS_ASSUMED)
        varied = sorted(_all_varied(design), key=lambda of: of.ratio)
        ends = [f"{of.ratio:.2f} ({of.what})" for of in (varied[0], varied[-1])]
        of_paper = _by_design("throughput")[design]["published"]
        interval = f"± {half:.2f}" if half else "within 0.005"
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
    """Gives what was measured on the preset and suite of the page, with one build, the largest change first."""
    found = [
        Moved(of.key, of.design, of.alternative, _throughput(of.design, AS_ASSUMED)[0], (_reading(of),))
        for of in READINGS
    ]
    of_machine = {
        "hercules-regime": ("data of 0.5 and of 4 times the LLC", ("gem5 0.5", "gem5 4")),
        "gem5-core": ("a core of today", ("modern 1.4",)),
    }
    for key, (alternative, columns) in of_machine.items():
        each = [
            Moved(key, design, alternative, _throughput(design, AS_ASSUMED)[0],
                  tuple(_throughput(design, column)[0] for column in columns))
            for design in SOURCES
        ]  # fmt: skip
        found.append(max(each, key=lambda of: of.factor))
    rows = [
        Moved("pmem-rows", design, "rows of 256 bytes on one bank", _throughput(design, AS_ASSUMED)[0],
              (float(_by_design("medium")[design]["mean"]),))
        for design in SOURCES
    ]  # fmt: skip
    found.append(max(rows, key=lambda of: of.factor))
    return sorted(found, key=lambda of: -of.factor)


def headline_assumptions() -> str:
    """Gives the ten assumptions that move the ratios most: those that were measured here, then those that were not."""
    moved = [of for of in _moved() if of.factor >= SMALL_FACTOR][:ROWS_SHOWN]
    lines = ["| assumption | instead | Hercules over | as assumed | instead |", "| --- | --- | --- | ---: | ---: |"]
    for of in moved:
        instead = ", ".join(f"{ratio:.2f}" for ratio in of.ratios)
        lines.append(f"| {_link(of.key)} | {of.alternative} | `{of.design}` | {of.assumed:.2f} | {instead} |")
    missing = _not_measured()
    for key in missing[: ROWS_SHOWN - len(moved)]:
        of_key = assumptions()[key]
        designs = ", ".join(f"`{design}`" for design in of_key.designs if design in SOURCES)
        lines.append(f"| {_link(key)} | {of_key.range} | {designs} | | not measured |")
    count = len(missing) + len({of.key for of in _moved()})
    return "\n".join([
        *lines,
        "",
        f"Not measured here: {len(missing)} of the {count} assumptions of these designs and this machine; those at the "
        "end of the table come first in DEVIATIONS.md, whose effects are of several builds and other presets and are "
        "not repeated here.",
    ])  # fmt: skip


def _link(key: str) -> str:
    return f"[{key}](DEVIATIONS.md#{key})"


def _not_measured() -> list[str]:
    """Gives the assumptions of the compared designs that were varied elsewhere alone or nowhere, as DEVIATIONS.md."""
    measured = {of.key for of in _moved()}
    compared = {*SOURCES, "hercules"}
    found = [of for of in assumptions().values() if of.key not in measured and compared & set(of.designs)]
    found.sort(key=lambda of: (of.status != MEASURED, -round(headline(of), 2)))
    return [of.key for of in found]


def scoreboard() -> str:
    """Gives how many numbers of each paper score, and the verdicts of those."""
    lines = [
        "| page | numbers | reproduced | direction holds | differs | not comparable | not scored |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
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
        f"Mean {sum(flat) / len(flat):.1f} %, largest {max(flat):.1f} %. Several cores and cache-block operations: "
        f"{len(rows) - len(far)} of {len(rows)} rows are within {multicore.DIFFERENCE_PERCENT_MAX} % of gem5's cycles. "
        f"The others by their [reason]({REASONS_OF_ROWS}):",
        "",
        "| reason | rows | cycles, percent | reason | rows | cycles, percent |",
        "| --- | ---: | ---: | --- | ---: | ---: |",
    ]
    cells = [_reason(name, [row for row in far if multicore.reason(row.gem5) == name]) for name in multicore.REASONS]
    half = (len(cells) + 1) // 2
    lines += [f"| {left} | {right} |" for left, right in zip(cells[:half], cells[half:], strict=True)]
    return "\n".join(lines)


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
        f"more provably change nothing. Recorded runs counted {caught} caught of {tried} in {len(counted)} designs and "
        'say "every" of the others; faults that were added since are not among them. `make test-all` tries all.'
    )

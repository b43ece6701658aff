"""Tables of Figures 5 and 6 of Hercules in both regimes, from recorded results.

`python -m tools.measured_tables hercules-tecs23 --part table4-1` measures one size of the data in one of the regimes.
What is not measured has no column, except the scored runs: their results by program are recorded, rounded and without
the dirty lines that remain in caches.
"""

from __future__ import annotations

import csv
from pathlib import Path

from tools.additional_tables.comparison import geomean
from tools.additional_tables.hercules_tecs23.regimes import MEAN, OURS, PARTS, TC, ratio
from tools.additional_tables.hercules_tecs23.table import PUBLISHED_BYTES, PUBLISHED_GAINS

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
RIVALS = ("kiln", "tc", "proteus", "hoop", "fwb", "swl-eadr")
SCORED = ("short", "1.4")
NONE = "-"

Row = dict[str, str]


def _csv(part: str) -> list[Row]:
    with _file(part).open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def _file(part: str) -> Path:
    return RESULTS / f"hercules-tecs23-{part}.csv"


def _columns() -> dict[tuple[str, str], dict[str, Row]]:
    """Returns the means of designs by transactions and data."""
    found = {}
    for part in PARTS:
        place = (part.split("-")[0], part.split("-")[1])
        if _file(part).exists():
            found[place] = {row["design"]: row for row in _csv(part) if row["workload"] == MEAN}
        elif place == SCORED:
            found[place] = _scored()
    return found


def _scored() -> dict[str, Row]:
    """Returns the means of the scored runs, whose dirty lines at the end are not recorded."""
    by_design: dict[str, dict[str, Row]] = {}
    for row in _csv("workloads"):
        by_design.setdefault(row["design"], {})[row["workload"]] = row

    def mean(column: str, design: str, other: str) -> float:
        ours, theirs = by_design[design], by_design[other]
        return geomean([float(ours[of][column]) / float(theirs[of][column]) for of in ours])

    return {
        design: {
            "hercules_over_it": str(mean("throughput_over_opt", OURS, design)),
            "hercules_percent": str(100 * mean("pmem_bytes_over_hercules", OURS, design)),
            "over_tc": str(mean("pmem_bytes_over_hercules", design, TC)),
        }
        for design in by_design
    }


def _table(designs: tuple[str, ...], published: Row, values: tuple[str, ...], digits: int) -> str:
    columns = _columns()
    headers = ["design", "published", *(f"{transactions} {data}" for transactions, data in columns)]
    lines = [f"| {' | '.join(headers)} |", f"| --- |{' ---: |' * (len(headers) - 1)}"]
    for design in designs:
        cells = [
            " / ".join(_number(rows[design][of], digits) for of in values if of in rows[design])
            for rows in columns.values()
        ]
        lines.append(f"| `{design}` | {' | '.join([published.get(design, NONE), *cells])} |")
    return "\n".join([*lines, "", f"As CSV: {_links()}."])


def _links() -> str:
    measured = [part for part in PARTS if _file(part).exists()]
    return ", ".join(f"[{part}]({_file(part).name})" for part in [*measured, "workloads"])


def _number(text: str, digits: int) -> str:
    return NONE if text == "nan" else f"{float(text):.{digits}f}"


def published_against_tc() -> Row:
    """Returns the bytes of the rivals over those of TC, by the shares of Figure 6."""
    return {of: f"{PUBLISHED_BYTES[TC] / share:.2f}" for of, share in PUBLISHED_BYTES.items()}


def against_tc() -> str:
    """Returns the bytes of the rivals of Hercules over those of TC, without and with the dirty lines that remain."""
    rivals = tuple(of for of in RIVALS if of != TC)
    return _table(rivals, published_against_tc(), ("over_tc", "over_tc_drained"), 2)


def against_tc_by_size() -> str:
    """Returns the bytes of the rivals over those of TC by the size of the data, for three programs."""
    rows = _csv("sizes")
    sizes = [column for column in rows[0] if column not in ("workload", "design")]

    def of(design: str, size: str) -> list[float]:
        return [float(row[size].split(" / ")[1]) for row in rows if row["design"] == design]

    lines = [f"| design | published | {' | '.join(sizes)} |", f"| --- | ---: |{' ---: |' * len(sizes)}"]
    for design, published in published_against_tc().items():
        if design != TC:
            cells = [f"{ratio(of(design, size), of(TC, size)):.2f}" for size in sizes]
            lines.append(f"| `{design}` | {' | '.join([published, *cells])} |")
    return "\n".join(lines)


def shares() -> str:
    """Returns the bytes of Hercules in percent of each rival's, without and with the dirty lines that remain."""
    published = {of: f"{share}" for of, share in PUBLISHED_BYTES.items()}
    return _table(RIVALS, published, ("hercules_percent", "hercules_percent_drained"), 1)


def throughputs() -> str:
    """Returns the throughput of Hercules over that of each design."""
    published = {of: f"{gain:.2f}" for of, gain in PUBLISHED_GAINS.items()}
    return _table(("opt", *RIVALS), published, ("hercules_over_it",), 2)

"""Records the results of papers, and writes them as tables of the pages of results.

    .venv/bin/python -m tools.published lad-micro19      # 15 minutes on two cores
    .venv/bin/python -m tools.published lad-micro19 --reading sps-64-locks
    .venv/bin/python -m tools.published all --compare    # no runs: applies the rule to the recorded numbers

It runs `durasim reproduce` and writes `experiments/NAME/recorded.csv` and `recorded-series.csv`, from which
`make generate` builds the table and the charts of the page. With `--reading` or `--readings` it also writes the
verdicts under other readings, `recorded-readings.csv`. The other tables of a page are those of
`python -m tools.measured_tables`. Nothing is tuned here: a number that differs remains.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import durasim
from durasim.papers import recorded as records
from durasim.papers.evaluation import verdict_of
from durasim.papers.paper_files import paper_named, paper_names
from durasim.papers.verdicts import (
    BANDS,
    NOT_COMPARABLE,
    REPRODUCED,
    SCORING,
    UNCERTAIN,
    VERDICTS,
    WITHIN,
    Published,
    class_of,
    verdict,
)
from tools import recorded_readings, recorded_series
from tools.measured_tables import EXPERIMENT_COLUMNS

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"


def main() -> None:
    """Reproduces a paper and records the results, or compares the recorded numbers again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=[*paper_names(), "all"])
    parser.add_argument("--compare", action="store_true", help="no runs: compare the recorded numbers again")
    parser.add_argument("--readings", action="store_true", help="also record all other readings of the paper")
    parser.add_argument("--reading", action="append", default=[], help="also record this other reading; repeatable")
    parser.add_argument("--store", type=Path, help="store of results (default: that of the user)")
    parser.add_argument(
        "--jobs", type=int, choices=range(1, 65), metavar="1-64", default=2, help="number of concurrent runs"
    )
    arguments = parser.parse_args()
    names = paper_names() if arguments.name == "all" else (arguments.name,)
    for name in names:
        if arguments.compare:
            rows = compared_again(name)
        else:
            readings = arguments.reading or arguments.readings
            document = durasim.reproduce(name, readings=readings, jobs=arguments.jobs, store=arguments.store or True)
            if document.failed:
                sys.exit(f"{name}: {document.failed} runs failed; `durasim reproduce {name}` lists them")
            rows = list(map(records.as_recorded, document.rows))
            if document.readings:
                file = recorded_readings.file_of(name)
                file.write_text(recorded_readings.text_of(document.readings), encoding="utf-8")
            recorded_series.file_of(name).write_text(recorded_series.text_of(document.series), encoding="utf-8")
        records.recorded_file(name).write_text(records.text_of(rows), encoding="utf-8")
        print(f"experiments/{name}/recorded.csv: {summary(rows)}")


def compared_again(name: str) -> list[dict[str, str]]:
    """Compares the recorded numbers of a paper with the published ones by the current rule, without runs."""
    claims = [claim for figure in paper_named(name).figures for claim in figure.claims]
    rows = {records.place_of(row): row for row in records.recorded_rows(name)}
    found = []
    for claim in claims:
        place = records.place_of_published(claim.published)
        if place not in rows:
            sys.exit(
                f"experiments/{name}/recorded.csv has no result for {', '.join(filter(None, place))}: measure again"
            )
        row = rows.pop(place)
        values, interval = (tuple(map(float, row[name].split())) for name in ("values", "interval"))
        again = verdict_of(claim.published, values, interval)
        found.append(row | {"class": class_of(claim.published), "unit": claim.published.unit, "verdict": again})
    if rows:
        sys.exit(f"experiments/{name}/recorded.csv has results that no figure names: {sorted(rows)}")
    return found


def score(rows: Iterable[Mapping[str, str]]) -> dict[str, int]:
    """Counts rows of results: by verdict if they score, else by class."""
    found: Counter[str] = Counter()
    for row in rows:
        is_scored = row["class"] in SCORING or row["verdict"] == NOT_COMPARABLE
        found[row["verdict"] if is_scored else row["class"]] += 1
    return {name: found[name] for name in (*VERDICTS, "null", "repeat", "arithmetic", "input")}


def table(name: str) -> str:
    """Returns the results of a paper as tables of its page: numbers that score, then the others."""
    rows = records.recorded_rows(name)
    scored = [row for row in rows if row["class"] in SCORING and row["verdict"] != NOT_COMPARABLE]
    others = [row for row in rows if row not in scored]
    return "\n".join([
        f"{summary(rows)}. {_as_csv(name)}",
        "",
        "### Numbers that score",
        "",
        *_result_lines(scored),
        "",
        "### Numbers that do not score",
        "",
        *_result_lines(others),
    ])  # fmt: skip


def readings(name: str) -> str:
    """Returns the recorded readings of a paper as a part of its page."""
    return recorded_readings.table(recorded_readings.rows_of(name), score(records.recorded_rows(name)))


def _result_lines(rows: Iterable[Mapping[str, str]]) -> Iterator[str]:
    yield "| where | what | design | baseline | workload | published | ours | verdict | note |"
    yield "| --- | --- | --- | --- | --- | ---: | ---: | --- | --- |"
    for row in rows:
        published = f"{row['published']} {row['unit']}".strip()
        names = (row["figure"], row["metric"], row["design"], row["baseline"], row["workload"])
        ours = f"{row['ours']} ({row['interval'].replace(' ', ' to ')})" if row["interval"] else row["ours"]
        yield f"| {' | '.join((*names, published, ours, shown_verdict(row), row['reason']))} |"


def _as_csv(name: str) -> str:
    return f"[As CSV]({name}.csv)."


def shown_verdict(row: Mapping[str, str]) -> str:
    """Returns a verdict with the class of its number, in brackets if it does not score."""
    if row["class"] in SCORING or row["verdict"] == NOT_COMPARABLE:
        return row["verdict"]
    return f"({row['class']}: {row['verdict']})"


def results_by_page() -> dict[str, list[dict[str, str]]]:
    """Gives the recorded results of all papers by the name of their page, and of all together."""
    names = paper_names()
    results = {name: records.recorded_rows(name) for name in names}
    return results | {"all": [row for of in results.values() for row in of]}


def scoreboard() -> str:
    """Gives the verdicts of all papers that score, and what does not score by its class."""
    lines = []
    for title, rows in results_by_page().items():
        cells = {
            column: f"{count} ({_brackets(rows, column)})" if count and column not in VERDICTS else str(count)
            for column, count in score(rows).items()
        }
        link = title if title == "all" else f"[{title}]({title}.md)"
        lines.append(f"| {link} | {len(rows)} | {' | '.join(cells.values())} |")
    header = f"| experiment | numbers | {' | '.join(cells)} |"
    return "\n".join([header, f"| --- |{' ---: |' * (len(cells) + 1)}", *lines])


def bands() -> str:
    """Returns the recorded numbers that score by their verdict for several widths of the band, without intervals."""
    scored: list[tuple[Published, tuple[float, ...]]] = []
    for name in paper_names():
        claims = [claim.published for figure in paper_named(name).figures for claim in figure.claims]
        rows = {records.place_of(row): row for row in records.recorded_rows(name)}
        of_claims = ((claim, rows[records.place_of_published(claim)]) for claim in claims)
        scored += [
            (claim, tuple(map(float, row["values"].split())))
            for claim, row in of_claims
            if row["class"] in SCORING and row["verdict"] != NOT_COMPARABLE
        ]
    shown = [verdict for verdict in VERDICTS if verdict not in (UNCERTAIN, NOT_COMPARABLE)]
    lines = [f"| band | {' | '.join(shown)} |", f"| ---: |{' ---: |' * len(shown)}"]
    for within in sorted((WITHIN, *BANDS)):
        found = Counter(verdict(claim, values, within) for claim, values in scored)
        lines.append(f"| {100 * within:g} % | {' | '.join(str(found[name]) for name in shown)} |")
    return "\n".join(lines)


def _brackets(rows: Sequence[Mapping[str, str]], kind: str) -> int:
    """Returns the reproduced numbers of a class that does not score."""
    return sum(row["class"] == kind and row["verdict"] == REPRODUCED for row in rows)


def experiments_table(name: str) -> str:
    """Returns the results of the experiments as a table of the paper's page."""
    with (ROOT / "docs" / "results" / f"{name}-experiments.csv").open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    shown = [column for column in EXPERIMENT_COLUMNS if column not in ("throughput_ops_per_us", "command")]
    lines = [f"| {' | '.join(column.replace('_', ' ') for column in shown)} |"]
    lines.append("| --- | --- | --- |" + " ---: |" * (len(shown) - 3))
    lines += [f"| {' | '.join(row[column] for column in shown)} |" for row in rows]
    return "\n".join([*lines, "", _as_csv(f"{name}-experiments")])


def part_table(name: str, part: str) -> str:
    """Returns a table of a paper's `TABLES` in the form of its page."""
    with (ROOT / "docs" / "results" / f"{name}-{part}.csv").open(encoding="utf-8", newline="") as text:
        header, *rows = csv.reader(text)
    are_numbers = [all(_is_number(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = [
        f"| {' | '.join(header)} |",
        f"| {' | '.join('---:' if is_number else '---' for is_number in are_numbers)} |",
    ]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows), "", _as_csv(f"{name}-{part}")])


def pages_with(design: str) -> list[str]:
    """Returns the names of the pages of results whose files have a design."""
    names = re.compile(rf"(?:--design {re.escape(design)} |[,.`]{re.escape(design)}[,.`])")
    found = []
    for name in paper_names():
        files = [file for file in RESULTS.glob(f"{name}*.csv") if _page_of(file) == name]
        if any(names.search(file.read_text(encoding="utf-8")) for file in files):
            found.append(name)
    return found


def _page_of(file: Path) -> str:
    """Returns the page of a file of results: the longest name of a page with which its name begins."""
    pages = [page.stem for page in RESULTS.glob("*.md") if file.stem.startswith(page.stem)]
    return max(pages, key=len, default="")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def summary(rows: Sequence[Mapping[str, str]]) -> str:
    """Returns the counts of numbers by verdict if they score, else by class."""
    of = score(rows)
    scored = {name: of.pop(name) for name in VERDICTS}
    texts = [", ".join(f"{count} {name}" for name, count in part.items() if count) for part in (scored, of)]
    return f"{len(rows)} numbers: {texts[0]}" + (f"; not scored: {texts[1]}" if texts[1] else "")


if __name__ == "__main__":
    main()

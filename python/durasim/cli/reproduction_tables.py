"""Tables of reproductions for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from durasim.cli.tables import Column, FoldedTable
from durasim.documents.reproduction import Chance, ReadingResult, ReproducedRow, Reproduction
from durasim.papers.verdicts import SCORING


def tables(document: Reproduction, changed: Sequence[str], *, wide: bool = False) -> RenderableType:
    """Returns a table of the numbers of each paper, the counts of verdicts, failed runs and changed verdicts.

    Args:
        document: The reproduction.
        changed: Sentences about verdicts that differ from the recorded ones.
        wide: Whether to show intervals, ranges over assumptions and remarks.
    """
    parts: list[RenderableType] = []
    for paper in document.papers:
        rows = [row for row in document.rows if row.paper == paper]
        parts.append(_numbers(paper, rows, wide=wide))
    counts = FoldedTable("published numbers", [Column("verdict or class"), Column("numbers", right=True)])
    for name, count in document.claims.items():
        counts.add_row(name.replace("_", " "), str(count))
    parts += [counts, _bands(document)]
    if document.readings:
        parts += [*map(_reading, document.readings), Text(readings_sentence(document.readings))]
    unmeasured = [row for row in document.rows if row.error is not None]
    if unmeasured:
        table = FoldedTable("numbers that could not be measured", [Column("reason", wraps=True)], keys=0)
        for row in unmeasured:
            table.add_row(row.error or "")
        parts.append(table)
    failed = [point for point in document.points if point.error is not None]
    if failed:
        table = FoldedTable("failed runs", [Column("reason", wraps=True), Column("command", wraps=True)], keys=0)
        for point in failed:
            table.add_row(point.error or "", point.command)
        parts.append(table)
    parts += [Text(f"changed: {sentence}") for sentence in changed]
    return Group(*parts)


def _bands(document: Reproduction) -> FoldedTable:
    names = ("reproduced", "direction", "differs", "uncertain")
    columns = [Column("band", right=True), *(Column(name, right=True) for name in names)]
    table = FoldedTable("numbers that score, by the width of the band of reproduced ones", columns)
    for width, counts in document.bands.items():
        table.add_row(f"{width} %", *(str(counts[name]) for name in names))
    table.caption = chance_sentence(document.chance)
    return table


def chance_sentence(chance: Chance) -> str:
    """Returns what chance gives, as a sentence."""
    if not chance.numbers:
        return "no number that scores reads runs of several designs whose labels could be exchanged"
    low, high = chance.interval
    return (
        f"chance: of {chance.numbers} numbers that depend on labels of designs {chance.ours} are reproduced; "
        f"with labels exchanged at random {chance.mean:.1f} are ({low} to {high} in 95 % of {chance.permutations} "
        "permutations)"
    )


def _reading(reading: ReadingResult) -> FoldedTable:
    title = f'{reading.paper}, reading {reading.name} ({reading.place}: "{reading.sentence}")'
    columns = [Column("verdict"), Column("number", wraps=True), Column("published", right=True)]
    columns += [Column("scored", right=True), Column("here", right=True)]
    table = FoldedTable(title, columns)
    for of in reading.numbers:
        before, after = of.scored_verdict, of.other_verdict
        verdict = after if before == after else f"{before} -> {after}"
        table.add_row(verdict, of.number, of.published, of.scored, of.other)
    table.caption = (
        f"{len(reading.gained)} gained, {len(reading.lost)} lost, {reading.changed} verdicts differ; it reproduces "
        f"{reading.claims['reproduced']} numbers that score"
    )
    return table


def readings_sentence(readings: Sequence[ReadingResult]) -> str:
    """Returns how many other readings were tried, and what they gain and lose together."""
    gained, lost = (
        sum(len(named) for named in of) for of in ([r.gained for r in readings], [r.lost for r in readings])
    )
    return f"readings tried: {len(readings)}; verdicts gained {gained}, lost {lost}; no reading is chosen by its result"


def _numbers(paper: str, rows: Sequence[ReproducedRow], *, wide: bool) -> FoldedTable:
    columns = [Column("figure"), Column("metric", wraps=True), Column("design"), Column("baseline"), Column("workload")]
    columns += [Column("published", right=True), Column("durasim", right=True), Column("verdict")]
    columns += _wide_columns() if wide else []
    table = FoldedTable(f"{paper}: published numbers beside durasim's", columns, keys=2)
    for row in rows:
        is_scored = row.class_ in SCORING
        verdict = row.verdict if is_scored else f"({row.class_}: {row.verdict})"
        cells = [row.figure, row.metric, row.design, row.baseline, row.workload]
        cells += [f"{row.published} {row.unit}".strip(), row.text, verdict]
        table.add_row(*cells, *(_wide_cells(row) if wide else []))
    if not wide:
        table.caption = "a verdict in brackets does not score; --wide adds intervals, ranges and remarks"
    return table


def _wide_columns() -> list[Column]:
    numbers = [Column("95 %", right=True), Column("from"), Column("over assumptions", right=True), Column("robust")]
    return [*numbers, Column("remark", wraps=True)]


def _wide_cells(row: ReproducedRow) -> list[str]:
    is_robust = "" if row.robust is None else "yes" if row.robust else "no"
    return [_ends(row.interval), row.interval_from, _ends(row.sensitivity_range), is_robust, row.note]


def _ends(ends: Sequence[float]) -> str:
    return " to ".join(f"{end:.4g}" for end in ends)

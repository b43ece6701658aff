"""Files of papers: `paper.toml` with the citation and common runs, and one file for each figure, table or section."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from durasim.documents.toml_files import read_toml, schema_named, validate
from durasim.errors import ConfigError, refusal, unknown_name
from durasim.papers.formulas import Formula, formula_of
from durasim.papers.grids import RUN_AS, merged
from durasim.papers.series import Series, series_of_tables
from durasim.papers.verdicts import Published, check
from durasim.programs import suites

ALL = "all"
_OF_MEASURE = ("measure", "note", "unmeasured", "at")
"""Keys of a published number that say how it is measured and drawn; the others are those of `Published`."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A formula over runs.

    Attributes:
        formula: The formula; its numbers are in the unit of the paper.
        digits: Decimals of the numbers where they are shown.
        note: Remark for the reader.
        beside: Further formulas by their label, shown in the remark.
    """

    formula: Formula
    digits: int
    note: str
    beside: Mapping[str, Formula]


@dataclass(frozen=True, slots=True)
class Claim:
    """A published number and how it is measured.

    Attributes:
        published: The number.
        measure: How it is measured; None if it is not.
        selections: The selection of runs of each value, by the name that formulas use.
        note: Remark for the reader; the reason if it is not measured.
        under: The claim under other readings of the paper that measure it by another formula, by their names.
    """

    published: Published
    measure: Measure | None
    selections: Mapping[str, Mapping[str, Any]]
    note: str
    under: Mapping[str, Claim] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, table or section of a paper.

    Attributes:
        place: Its name in the paper, such as `Fig5`.
        title: What it shows.
        runs: Tables of its runs by name, those of the paper among them.
        claims: Its published numbers.
        plot: The table `[plot]`, empty if it is not drawn.
        series: Its tables `[[series]]`.
        file: Name of its file.
    """

    place: str
    title: str
    runs: Mapping[str, Mapping[str, Any]]
    claims: tuple[Claim, ...]
    plot: Mapping[str, Any]
    series: tuple[Series, ...]
    file: str

    @property
    def names(self) -> tuple[str, str]:
        """Its name in the paper, and that of its file, such as `figure-5`."""
        return self.place, self.file.removesuffix(".toml")


@dataclass(frozen=True, slots=True)
class Reading:
    """A reading of a paper other than that of its runs.

    Attributes:
        name: Its name.
        place: Where the paper allows it.
        sentence: What the paper says that allows it.
        runs: Names of the tables of runs that it changes; all if empty.
        changes: What it changes in runs, as in tables `where`.
        workloads: Workloads that run in the place of those of the tables, by the names of the latter.
        measures: Other measures of published numbers, by the name of the one that they replace.
    """

    name: str
    place: str
    sentence: str
    runs: tuple[str, ...]
    changes: tuple[Mapping[str, Any], ...]
    workloads: Mapping[str, str]
    measures: Mapping[str, str]

    def changed(self, runs: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
        """Returns tables of runs by name as this reading has them."""
        return {name: self._of(table) if self._changes(name) else table for name, table in runs.items()}

    def _of(self, table: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**table, "where": [*table.get("where", ()), *self.changes], RUN_AS: self.workloads}

    def _changes(self, name: str) -> bool:
        return self.changes_runs and (not self.runs or name in self.runs)

    @property
    def changes_runs(self) -> bool:
        """Whether it changes runs, not only formulas."""
        return bool(self.changes or self.workloads)

    def selected(self, selections: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
        """Returns selections of values by name with the lines of the workloads that run."""
        return {
            name: {**of, "lines": self.workloads.get(of["lines"], of["lines"])} if "lines" in of else of
            for name, of in selections.items()
        }


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper.

    Attributes:
        name: Name of its folder.
        title: Its title.
        citation: Its citation.
        figures: Its figures in the order of the file.
        readings: Other readings.
    """

    name: str
    title: str
    citation: str
    figures: tuple[Figure, ...]
    readings: tuple[Reading, ...]


def papers_folder() -> Path:
    """Returns the folder of the papers in the package."""
    return Path(str(resources.files("durasim").joinpath("experiments")))


@cache
def paper_names() -> tuple[str, ...]:
    """Returns the names of all papers."""
    return tuple(sorted(file.parent.name for file in papers_folder().glob("*/paper.toml")))


def paper_named(name: str) -> Paper:
    """Returns a paper by its name, or by an alias of it.

    Raises:
        ConfigError: There is no such paper, or one of its files is wrong.
        HostIoError: A file cannot be read.
    """
    aliases = {alias: of for of in paper_names() for alias in _paper_tables(_file(of, "paper")).get("aliases", ())}
    found = aliases.get(name, name)
    if found not in paper_names():
        raise unknown_name("paper", name, (*paper_names(), *aliases, ALL))
    return read_paper(papers_folder() / found)


def read_paper(folder: Path) -> Paper:
    """Reads the files of a paper.

    Raises:
        ConfigError: A file is wrong; the sentence names the file, and the key or line.
        HostIoError: A file cannot be read.
    """
    file = folder / "paper.toml"
    tables = _paper_tables(file)
    readings = tuple(_reading_of(reading, file) for reading in tables.get("readings", ()))
    found = [_figure_of(folder / f"{name}.toml", tables, readings) for name in tables["figures"]]
    listed = {figure.file for figure in found} | {file.name}
    own = [name for figure in found for name in figure.runs.keys() - {of["name"] for of in tables.get("runs", ())}]
    if twice := sorted({name for name in own if own.count(name) > 1}):
        raise refusal("runs", f"two figures of {file} name runs {', '.join(twice)}: move them to paper.toml")
    if others := sorted(other.name for other in folder.glob("*.toml") if other.name not in listed):
        raise refusal("figures", f"{file} does not list {', '.join(others)}")
    for reading in readings:
        _check_reading(reading, found, file)
    return Paper(folder.name, tables["title"], tables["citation"], tuple(found), readings)


def _reading_of(table: Mapping[str, Any], file: Path) -> Reading:
    changes = [table["change"]] if "change" in table else []
    changes += table.get("changes", [])
    workloads, measures = _workloads_of(table.get("suites", {})), table.get("measures", {})
    if not changes and not workloads and not measures:
        raise refusal("readings", f"{file}: '{table['name']}' changes neither runs nor measures")
    runs = tuple(table.get("runs", ()))
    return Reading(table["name"], table["place"], table["sentence"], runs, tuple(changes), workloads, measures)


def _workloads_of(replaced: Mapping[str, str]) -> dict[str, str]:
    """Returns the workloads of suites in the place of those of others, by the names of the latter."""
    found = {}
    for old, new in replaced.items():
        for suite in (old, new):
            if suite not in suites.suite_names():
                raise unknown_name("readings.suites", suite, suites.suite_names())
        known = suites.expand([f"{suites.GROUP_PREFIX}{new}"])
        for workload in suites.expand([f"{suites.GROUP_PREFIX}{old}"]):
            other = new + workload.removeprefix(old)
            if other not in known:
                raise unknown_name("readings.suites", other, known)
            found[workload] = other
    return found


def _check_reading(reading: Reading, figures: Sequence[Figure], file: Path) -> None:
    """Refuses a reading of runs or measures that no figure has."""
    known = {run for figure in figures for run in figure.runs}
    for name in reading.runs:
        if name not in known:
            raise unknown_name("readings.runs", name, known)
    if reading.measures and not any(reading.name in claim.under for figure in figures for claim in figure.claims):
        named = ", ".join(reading.measures)
        raise refusal("readings", f"{file}: '{reading.name}' replaces {named}, by which no number is measured")


def _paper_tables(file: Path) -> dict[str, Any]:
    tables = read_toml(file, "paper")
    validate(tables, schema_named("paper-file"), "paper", f"{file}: ")
    return tables


def _file(paper: str, name: str) -> Path:
    return papers_folder() / paper / f"{name}.toml"


def _figure_of(file: Path, paper: Mapping[str, Any], readings: Sequence[Reading]) -> Figure:
    tables = read_toml(file, "figure")
    validate(tables, schema_named("figure-file"), "figure", f"{file}: ")
    try:
        runs = _runs_of((*paper.get("runs", ()), *tables.get("runs", ())))
        names = {kind: {**_names(paper, kind), **_names(tables, kind)} for kind in _KINDS}
        claims = tuple(_claims(tables, names, runs, readings))
        published = [(claim.published, row) for claim, row in zip(claims, tables.get("published", ()), strict=True)]
        series = tuple(series_of_tables(tables, published, names))
    except ConfigError as error:
        raise refusal(error.field, f"{file}{_line_of(file, error)}: {error.problem}") from None
    _check_plot(tables.get("plot", {}), claims, file)
    return Figure(tables["place"], tables["title"], runs, claims, tables.get("plot", {}), series, file.name)


def _check_plot(plot: Mapping[str, Any], claims: Sequence[Claim], file: Path) -> None:
    for key in ("metric", "baseline"):
        known = {getattr(claim.published, key) for claim in claims}
        if key in plot and plot[key] not in known:
            raise refusal(f"plot.{key}", f"{file}: no published number has '{plot[key]}'")


def _runs_of(tables: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Returns tables of runs by name, each with the keys of the one that it is like."""
    found: dict[str, Mapping[str, Any]] = {}
    for table in tables:
        name = table["name"]
        if name in found:
            raise refusal("runs", f"two tables have the name '{name}'")
        like = table.get("like")
        if like is not None and like not in found:
            raise unknown_name(f"runs.{name}.like", like, found)
        own = {key: value for key, value in table.items() if key != "like"}
        found[name] = own if like is None else merged(found[like], own)
        if missing := [key for key in ("designs", "workloads") if key not in found[name]]:
            raise refusal(f"runs.{name}", f"'{missing[0]}' is required")
    return found


def _line_of(file: Path, error: ConfigError) -> str:
    """Returns the line, after a colon, of the first quoted text of a problem that is in the file; empty if none is."""
    lines = file.read_text(encoding="utf-8").splitlines()
    for part in re.findall(r"'([^']+)'", error.problem):
        # A quoted name is a whole word of its line.
        word = re.compile(rf"(?<![\w-]){re.escape(part)}(?![\w-])")
        for number, line in enumerate(lines, 1):
            if word.search(line):
                return f":{number}"
    return ""


def _claims(
    tables: Mapping[str, Any],
    names: Mapping[str, Mapping[str, Any]],
    runs: Mapping[str, Mapping[str, Any]],
    readings: Sequence[Reading],
) -> Iterator[Claim]:
    values = tables.get("values", {})
    for name, selection in values.items():
        _check_selection(name, selection, runs)
    measures = {name: _measure_of(of, tuple(values)) for name, of in tables.get("measures", {}).items()}
    for row in tables.get("published", ()):
        published = _published_of(tables["place"], row)
        check(published)
        if "unmeasured" in row:
            yield Claim(published, None, {}, row["unmeasured"], {})
            continue
        named = row.get("measure", published.metric)
        under = {
            reading.name: _claim(published, row, reading.measures[named], measures, values, names)
            for reading in readings
            if named in reading.measures and reading.measures[named] in measures
        }
        yield replace(_claim(published, row, named, measures, values, names), under=under)


def _claim(
    published: Published,
    row: Mapping[str, Any],
    named: str,
    measures: Mapping[str, Measure],
    values: Mapping[str, Any],
    names: Mapping[str, Mapping[str, Any]],
) -> Claim:
    if named not in measures:
        raise unknown_name("measure", named, measures)
    measure = measures[named]
    used = dict.fromkeys(measure.formula.names())
    for beside in measure.beside.values():
        used |= dict.fromkeys(beside.names())
    selections = {name: _filled(values[name], published, names) for name in used}
    return Claim(published, measure, selections, row.get("note", "") or measure.note, {})


def _names(tables: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = tables.get("names", {}).get(kind, {})
    return found


def _published_of(place: str, row: Mapping[str, Any]) -> Published:
    own = {field.name: "" for field in dataclasses.fields(Published)} | {"figure": place, "exact": "true"}
    given = {name: value for name, value in row.items() if name not in _OF_MEASURE}
    given |= {"note": given.pop("remark", ""), "kind": given.pop("class")}
    return Published(**(own | given))


def _measure_of(of: Mapping[str, Any], known: Sequence[str]) -> Measure:
    return Measure(
        formula_of(of["formula"], known),
        of.get("digits", 1),
        of.get("note", ""),
        {label: formula_of(text, known) for label, text in of.get("beside", {}).items()},
    )


def _check_selection(name: str, selection: Mapping[str, Any], runs: Mapping[str, Any]) -> None:
    sources = [source for source in ("runs", "cost", "lines") if source in selection]
    if len(sources) != 1:
        raise refusal(f"values.{name}", "needs one of runs, cost and lines")
    for group in _listed(selection.get("runs", ())):
        if group not in runs:
            raise unknown_name(f"values.{name}.runs", group, runs)


_KINDS = ("designs", "workloads")
_PLACES = {
    "$design": ("design", "designs"),
    "$baseline": ("baseline", "designs"),
    "$workload": ("workload", "workloads"),
}


def _filled(
    selection: Mapping[str, Any], published: Published, names: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Returns a selection with the designs and the workload of a published number in place of $design and so on."""
    found = {}
    for key, value in selection.items():
        if not isinstance(value, str) or value not in _PLACES:
            found[key] = value
            continue
        field, kind = _PLACES[value]
        paper_name = getattr(published, field)
        if paper_name not in names[kind]:
            raise refusal(f"names.{kind}", f"does not have '{paper_name}'")
        if names[kind][paper_name] != ALL:
            found[key] = names[kind][paper_name]
    return found


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]

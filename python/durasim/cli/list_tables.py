"""Tables of designs, workloads and machines for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from durasim.cli.render import cell
from durasim.cli.tables import Column, FoldedTable
from durasim.runs.sensitivity import DAGGER, range_of, range_text, with_dagger

if TYPE_CHECKING:
    from durasim.documents.results import TxProfile
    from durasim.programs.suites import Member


class _Lines:
    """Names with one sentence each, truncated at the width of the terminal."""

    def __init__(self, named: Sequence[tuple[str, str]], caption: str) -> None:
        self._named, self._caption = named, caption

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """Yields the lines to rich."""
        width = max((cell_len(name) for name, _ in self._named), default=0)
        for name, sentence in self._named:
            line = Text(f"{name.ljust(width)}  {sentence}")
            line.truncate(options.max_width, overflow="ellipsis")
            yield line
        yield Text(self._caption)


def workloads_list(entries: Sequence[Member]) -> RenderableType:
    """Returns the workloads with one line each, at any width of the terminal."""
    named = [(entry.info.name, entry.info.description) for entry in entries]
    return _Lines(named, "`durasim workloads NAME` lists the arguments of one")


def workloads_table(entries: Sequence[Member], profiles: Mapping[str, TxProfile]) -> FoldedTable:
    """Returns the workloads with their arguments and defaults, or with the measured profiles."""
    if profiles:
        return _profiles_table(entries, profiles)
    columns = (Column("name and arguments"), Column("default", right=True), Column("description", wraps=True))
    table = FoldedTable("workloads", columns)
    for entry in entries:
        info = entry.info
        table.add_section()
        table.add_row(info.name, "", info.description, style="bold")
        if entry.suite is None:
            shown = [argument for argument in info.arguments if "run" in argument.commands]
        else:
            table.add_row("", "", f"{info.program} as in {entry.source}, {entry.threads} threads")
            shown = [argument for argument in info.arguments if argument.name in info.given]
        for argument in shown:
            table.add_row(f"  {argument.name}", cell(argument.default), argument.help)
    return table


def _profiles_table(entries: Sequence[Member], profiles: Mapping[str, TxProfile]) -> FoldedTable:
    headers = ("threads", "lines min", "avg", "max", "published", "footprint MiB", "instructions per tx")
    table = FoldedTable("writes of transactions", [Column("name"), *(Column(header, right=True) for header in headers)])
    for entry in entries:
        profile, published = profiles[entry.info.name], entry.published_tx_lines
        lines = profile.tx_lines
        table.add_row(
            entry.info.name,
            str(entry.threads),
            *(("-", "-", "-") if lines is None else (str(lines.min), f"{lines.avg:.1f}", str(lines.max))),
            " to ".join(str(number) for number in published) if isinstance(published, list) else str(published or "-"),
            f"{profile.footprint_bytes / 2**20:.2f}",
            "-" if profile.instructions_per_tx is None else f"{profile.instructions_per_tx:,.0f}",
        )
    return table


def machines_table(machines: Iterable[Mapping[str, Any]]) -> FoldedTable:
    """Returns the machine presets."""
    table = FoldedTable("machines", (Column("name"), Column("cores", right=True), Column("description", wraps=True)))
    for machine in machines:
        table.add_row(*(cell(machine[column.header]) for column in table.columns))
    return table


def machine_tables(machines: Iterable[Mapping[str, Any]]) -> RenderableType:
    """Returns each machine preset with its parameters for `--set`."""
    parts: list[RenderableType] = []
    for machine in machines:
        columns = (Column("parameter"), Column("value", right=True), Column("description", wraps=True))
        table = FoldedTable(f"{machine['name']}: {machine['description']}", columns)
        for parameter in machine["parameters"]:
            table.add_row(parameter["name"], cell(parameter["value"]), parameter["description"])
        table.caption = "--set PARAMETER=VALUE changes a parameter; `durasim designs NAME` lists those of a design"
        parts.append(table)
    return Group(*parts)


def designs_table(designs: Iterable[Mapping[str, Any]]) -> FoldedTable:
    """Returns the designs, with sensitivity ranges of those that depend on assumptions."""
    columns = (
        Column("name"), Column("hardware"), Column("backend"), Column("domains"), Column("promise"),
        Column("commits\nretire"), Column("control"), Column("sensitivity\nrange"), Column("summary", wraps=True),
    )  # fmt: skip
    table = FoldedTable("designs", columns)
    table.caption = (
        f"{DAGGER} depends on assumptions; the sensitivity range is that of throughput under alternatives, varied "
        "one at a time in the short runs of DEVIATIONS.md; `durasim run` lists the assumptions that no range covers"
    )
    for design in designs:
        found = range_of(design["name"])
        plain = ("hardware", "backend", "domains", "promise", "commits_retire", "control")
        table.add_row(
            ", ".join([with_dagger(design["name"]), *design["aliases"]]),
            *(cell(design[key]) for key in plain),
            range_text(found and found.throughput),
            design["summary"],
        )
    return table


def parameter_tables(designs: Iterable[Mapping[str, Any]]) -> RenderableType:
    """Returns each design with its parameters for `--set`."""
    parts: list[RenderableType] = []
    for design in designs:
        columns = (
            Column("parameter"), Column("default", right=True), Column("range"),
            Column("source", wraps=True, wraps_at=20), Column("description", wraps=True),
        )  # fmt: skip
        table = FoldedTable(f"{with_dagger(design['name'])}: {design['summary']}", columns)
        for parameter in design["parameters"]:
            table.add_row(
                parameter["name"],
                cell(parameter["default"]),
                parameter["range"] or "-",
                parameter["source"],
                parameter["description"],
            )
        prefix = f"--set design.{design['hardware']}.PARAMETER=VALUE changes a parameter"
        table.caption = prefix if design["parameters"] else "no parameters"
        parts.append(table)
        if design["rests_on"]:
            parts.append(_assumptions_table(design))
    return Group(*parts)


def _assumptions_table(design: Mapping[str, Any]) -> FoldedTable:
    """Returns the assumptions that a design depends on, from `assumptions.described`."""
    columns = (
        Column("assumption"), Column("silent", wraps=True, wraps_at=18), Column("assumed", wraps=True),
        Column("effect of alternatives", wraps=True, wraps_at=22),
    )  # fmt: skip
    table = FoldedTable(f"{with_dagger(design['name'])} depends on", columns)
    for of in design["rests_on"]:
        silent = of["paper"] if of["section"] == "none" else f"{of['paper']}, {of['section']}"
        table.add_row(of["key"], silent, of["assumed"].replace("`", ""), of["effect"].replace("`", ""))
    table.caption = (
        "Varied one at a time in short runs, largest effect first, throughput relative to opt; DEVIATIONS.md and "
        "the pages that it names have the parameters and the full text"
    )
    return table

"""Results as text for the terminal. Tables go to standard output, progress to standard error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from durasim.difference import Difference
from durasim.output import write_stdout
from durasim.results import METRICS, CrashResult, RunResult, TxProfile
from durasim.sensitivity import DAGGER, band_of, band_text, with_dagger
from durasim.timeline import timeline_text

if TYPE_CHECKING:
    from durasim.suites import Member

# Wide enough for every table; a terminal tells its own width.
_WIDTH_OF_PIPES = 200


def show(renderable: RenderableType) -> None:
    """Prints to standard output.

    Raises:
        HostIoError: Standard output cannot take it.
    """
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _WIDTH_OF_PIPES
    with console.capture() as capture:
        # In a group a text keeps what it says of its wrapping.
        console.print(Group(renderable), crop=False)
    write_stdout(capture.get())


def progress_bar() -> Progress:
    """Gives a progress display on standard error, which is silent where that is no terminal."""
    console = Console(stderr=True)
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def run_table(result: RunResult) -> Table:
    """Gives the summary of a run."""
    table = Table(
        title=f"{result.workload} under {with_dagger(result.design)} on {result.machine} ({result.domain})",
        show_header=False,
    )
    table.add_column("measure")
    table.add_column("value", justify="right")
    table.add_column("unit")
    if result.throughput_ops_per_us is not None:
        table.add_row("throughput", number(result.throughput_ops_per_us), "ops/us")
        table.add_row("operations", number(result.ops), "")
    table.add_row("instructions per cycle", number(result.roi.ipc), "")
    table.add_row("instructions", number(result.roi.instructions), "")
    table.add_row("cycles", number(result.roi.cycles), "")
    for cause, size_bytes in result.pmem_write_bytes.to_dict().items():
        if cause == "total" or size_bytes:
            table.add_row(f"pmem written, {cause}", number(size_bytes), "bytes")
    for metric in METRICS:
        label = metric.metadata.get("label", metric.name.replace("_", " "))
        table.add_row(label, number(getattr(result, metric.name)), metric.metadata["unit"])
    if result.latency_ns is not None:
        for name, label in (("p50", "p50"), ("p99", "p99"), ("p999", "p99.9"), ("max", "maximum")):
            table.add_row(f"latency {label}", number(getattr(result.latency_ns, name)), "ns")
    table.add_row("transactions committed", number(result.tx.committed), "")
    table.add_row("transactions aborted", number(result.tx.aborted), "")
    table.add_row("guest exit code", str(result.guest_exit_code), "")
    table.add_row("simulation speed", number(result.host.mips), "MIPS")
    table.add_row("digest", result.digest, "")
    if band := band_of(result.design):
        table.caption = (
            f"{DAGGER} Other assumptions than those of DEVIATIONS.md, tried one at a time in short runs, "
            f"give sensitivity ranges of {band_text(band.throughput)} for throughput "
            f"and {band_text(band.pmem_bytes)} for pmem writes."
        )
    return table


def crash_text(result: CrashResult) -> Text:
    """Gives the verdict of a campaign."""
    text = _unwrapped()
    case = f"{with_dagger(result.design)} on {result.machine} ({result.domain}), {result.workload}"
    if result.ops is not None:
        case += f", {result.ops} operations"
    text.append(f"{case}: {result.trials} crashes at {result.points} persist events, ")
    if result.violations:
        text.append(f"{result.violations} of them violate the promise", style="bold red")
    else:
        text.append("every recovery is right", style="bold green")
    if result.disagreements:
        text.append(f"; {result.disagreements} times the oracles disagree", style="bold red")
    if result.losses_reported:
        text.append(f"; {result.losses_reported} times recovery reports a loss")
    counts = (("crashes", result.trials_by_fault), ("events", result.events_by_kind), ("inside", result.marks))
    for label, numbers in counts:
        if numbers:
            text.append(f"\n  {label}: " + ", ".join(f"{name} {number}" for name, number in numbers.items()))
    for failure in result.failures:
        text.append(f"\n  {failure.id} ({failure.oracle}): {failure.message}\n    {failure.command}")
    if result.timeline is not None:
        text.append("\n\n").append(timeline_text(result.timeline))
    if result.shrunk is not None:
        text.append("\n\n").append(shrunk_text(result.shrunk))
    return text


def _unwrapped() -> Text:
    """Gives a text whose lines stay whole, so that commands in it can be copied."""
    return Text(no_wrap=True, overflow="ignore")


def shrunk_text(shrunk: Mapping[str, Any]) -> Text:
    """Gives a reduced failure: its command and its timeline."""
    text = _unwrapped()
    text.append(f"reduced, after {shrunk['candidates']} smaller campaigns, to")
    text.append(f"\n  {shrunk['command']}\n", style="bold").append(timeline_text(shrunk["timeline"]))
    return text


def campaign_tables(document: Mapping[str, Any]) -> Group:
    """Gives the end of a campaign: its runs, controls, marks, failures and whether it is red."""
    runs = Table(title=f"campaign {document['name']}")
    for name in ("design", "domain", "workload"):
        runs.add_column(name)
    for name in ("threads", "runs", "trials", "violations"):
        runs.add_column(name, justify="right")
    for row in document["rows"]:
        style = "bold red" if row["violations"] else ""
        shown = {**row, "design": with_dagger(row["design"])}
        runs.add_row(*(_cell(shown[column.header]) for column in runs.columns), style=style)
    controls = Table(title="controls")
    for name in ("name", "expects", "found", "violations", "trials"):
        controls.add_column(name)
    for control in document["controls"]:
        style = "bold red" if control["found"] != control["expects"] else ""
        controls.add_row(*(_cell(control[column.header]) for column in controls.columns), style=style)
    marks = Table(title="marks")
    marks.add_column("mark")
    marks.add_column("crash points inside", justify="right")
    for name, hits in document["marks"].items():
        marks.add_row(name, _cell(hits), style="bold red" if name in document["marks_missed"] else "")
    faults = ", ".join(f"{name} {number}" for name, number in document["trials_by_fault"].items())
    text = _unwrapped().append(
        f"{document['trials']} trials in {document['wall_s']:.0f} s ({faults}), "
        f"{document['trials_per_s_per_core']:.0f} trials per second and core, "
        f"up to {document['nested_depth_max']} recoveries failed in a row, "
        f"{document['losses_reported']} losses reported, {document['disagreements']} disagreements"
    )
    for failure in document["failures"]:
        text.append(f"\n  {failure['id']} ({failure['oracle']}): {failure['message']}\n    {failure['command']}")
    for shrunk in document["shrunk"]:
        text.append(f"\n\nfirst failure of {shrunk['design']}, {shrunk['workload']}: ").append(shrunk_text(shrunk))
    if document["red"]:
        for reason in document["red"]:
            text.append(f"\nred: {reason}", style="bold red")
    else:
        text.append("\ngreen: every recovery is right, every control ended as expected", style="bold green")
    return Group(runs, controls, marks, text)


def difference_table(difference: Difference) -> Table:
    """Gives the configuration keys that differ, then the measures."""
    table = Table(title="a against b")
    table.add_column("key")
    for name in ("a", "b", "b / a"):
        table.add_column(name, justify="right")
    for change in difference.configuration:
        table.add_row(change.key, str(change.a), str(change.b), "")
    table.add_section()
    for measure in difference.measures:
        table.add_row(
            f"{measure.key} ({measure.unit})", *(number(value) for value in (measure.a, measure.b, measure.ratio))
        )
    return table


def workloads_table(entries: Sequence[Member], profiles: Mapping[str, TxProfile]) -> Table:
    """Gives the workloads, each with its arguments and their defaults, or with what was measured."""
    if profiles:
        return _profiles_table(entries, profiles)
    table = Table(title="workloads")
    for name in ("name", "argument", "default", "description"):
        table.add_column(name)
    for entry in entries:
        info = entry.info
        table.add_section()
        table.add_row(info.name, "", "", info.description, style="bold")
        if entry.suite is None:
            shown = [argument for argument in info.arguments if "run" in argument.commands]
        else:
            table.add_row("", "", "", f"{info.program} as in {entry.source}, {entry.threads} threads")
            shown = [argument for argument in info.arguments if argument.name in info.given]
        for argument in shown:
            table.add_row("", argument.name, _cell(argument.default), argument.help)
    return table


def _profiles_table(entries: Sequence[Member], profiles: Mapping[str, TxProfile]) -> Table:
    table = Table(title="what transactions write")
    table.add_column("name")
    for name in ("threads", "lines min", "avg", "max", "published", "footprint MiB", "instructions per tx"):
        table.add_column(name, justify="right")
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


def lines_text(lines: Iterable[str]) -> Text:
    """Gives lines that no terminal wraps."""
    return _unwrapped().append("\n".join(lines))


def rows_table(title: str, rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Table:
    """Gives the given columns of a list of objects."""
    table = Table(title=title)
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row[column]) for column in columns))
    return table


def designs_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Gives the rows of the registry, with the bands of those that rest on assumptions."""
    columns = (
        "name",
        "hardware",
        "backend",
        "domains",
        "promise",
        "commits_retire",
        "control",
        "band",
        "summary",
    )
    shown = []
    for row in rows:
        band = band_of(row["name"])
        names = ", ".join([with_dagger(row["name"]), *row["aliases"]])
        shown.append({**row, "name": names, "band": band_text(band and band.throughput)})
    table = rows_table("designs", shown, columns)
    table.caption = (
        f"{DAGGER} rests on assumptions; its band is the sensitivity range of throughput under "
        "other ones, tried one at a time in the short runs of DEVIATIONS.md"
    )
    return table


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(_cell(item) for item in value)
    return str(value)


def number(value: float | None) -> str:
    """Gives a number with the digits that a reader wants; a dash if there is none."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"  # noqa: PLR2004

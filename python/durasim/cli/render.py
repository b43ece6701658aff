"""Terminal output of results. Tables go to standard output, progress to standard error."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from durasim.cli.tables import Column, FoldedTable
from durasim.crashes.timeline import timeline_text
from durasim.documents.difference import Difference
from durasim.documents.results import METRICS, CrashResult, RunResult, Transactions
from durasim.output import write_stdout
from durasim.runs.sensitivity import footnote, with_dagger

if TYPE_CHECKING:
    from durasim.crashes.mutants import MutationResult

# Wide enough for every table. The width of a terminal, or COLUMNS, takes precedence.
_WIDTH_OF_PIPES = 200


def show(renderable: RenderableType) -> None:
    """Prints to standard output.

    Raises:
        HostIoError: Standard output is not writable.
    """
    console = _console()
    with console.capture() as capture:
        # A text in a group keeps its own wrapping.
        console.print(Group(renderable), crop=False)
    write_stdout(capture.get())


def _console() -> Console:
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDTH_OF_PIPES
    return console


def progress_bar() -> Progress:
    """Returns a progress bar on standard error with the remaining time; it is removed at the end.

    It prints nothing if standard error is no terminal.
    """
    console = Console(stderr=True)
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
        # Output of the guest goes directly to the streams, byte for byte.
        redirect_stdout=False,
        redirect_stderr=False,
    )


def _add_functional_rows(table: FoldedTable, result: RunResult) -> None:
    """Counts of a functional run, without caches and time."""
    if result.ops is not None:
        table.add_row("operations", number(result.ops), "")
    table.add_row("instructions", number(result.roi.instructions), "")
    table.add_row("transactions committed", number(result.tx.committed), "")
    _add_last_rows(table, result)


def _add_last_rows(table: FoldedTable, result: RunResult) -> None:
    table.add_row("guest exit code", _ending(result), "")
    table.add_row("simulation speed", number(result.host.mips), "MIPS")
    table.add_row("digest", result.digest, "")


def _ending(result: RunResult) -> str:
    return "stopped after the region" if result.guest_exit_code is None else str(result.guest_exit_code)


def run_table(result: RunResult, *, wide: bool = False) -> FoldedTable:
    """Returns the summary of a run: the main measures, or all of them."""
    table = FoldedTable(
        f"{result.workload} under {with_dagger(result.design)} on {result.machine} ({result.domain})",
        (Column("measure"), Column("value", right=True), Column("unit")),
        header=False,
    )
    if result.provenance.functional:
        _add_functional_rows(table, result)
        return table
    if result.throughput_ops_per_us is not None:
        table.add_row("throughput", number(result.throughput_ops_per_us), "ops/us")
        table.add_row("operations", number(result.ops), "")
    if wide:
        _add_all_rows(table, result)
    else:
        _add_first_rows(table, result)
    table.caption = footnote(result.design, result.machine)
    return table


def _add_first_rows(table: FoldedTable, result: RunResult) -> None:
    """The main measures; aborts and the exit code only if they are not zero."""
    table.add_row("cycles", number(result.roi.cycles), "")
    table.add_row("instructions per cycle", number(result.roi.ipc), "")
    table.add_row("pmem written", number(result.pmem_write_bytes.total), "bytes")
    if result.latency_ns is not None:
        table.add_row("latency p99", number(result.latency_ns.p99), "ns")
    table.add_row("transactions committed", number(result.tx.committed), "")
    if result.tx.aborted:
        table.add_row("transactions aborted", number(result.tx.aborted), "")
    if result.guest_exit_code != 0:
        table.add_row("guest exit code", _ending(result), "")


def _add_all_rows(table: FoldedTable, result: RunResult) -> None:
    table.add_row("instructions per cycle", number(result.roi.ipc), "")
    table.add_row("instructions", number(result.roi.instructions), "")
    table.add_row("cycles", number(result.roi.cycles), "")
    for cause, size_bytes in result.pmem_write_bytes.to_dict().items():
        if cause == "total" or size_bytes:
            table.add_row(f"pmem written, {cause}", number(size_bytes), "bytes")
    for metric in METRICS:
        label = metric.metadata.get("label", metric.name.replace("_", " "))
        unit = metric.metadata["unit"]
        table.add_row(label, number(getattr(result, metric.name)), "" if label.startswith(unit) else unit)
    if result.latency_ns is not None:
        for name, label in (("p50", "p50"), ("p99", "p99"), ("p999", "p99.9"), ("max", "maximum")):
            table.add_row(f"latency {label}", number(getattr(result.latency_ns, name)), "ns")
    if result.phases is not None:
        for name, phase in result.phases.to_dict().items():
            table.add_row(f"mean cycles to {name}", number(phase["mean_cycles"]), "cycles")
    if result.accesses_per_tx is not None:
        for kind, value in result.accesses_per_tx.to_dict().items():
            table.add_row(f"media {kind} per transaction", number(value), "")
    table.add_row("transactions committed", number(result.tx.committed), "")
    table.add_row("transactions aborted", number(result.tx.aborted), "")
    _add_hardware_transaction_rows(table, result.tx)
    _add_replay_rows(table, result)
    _add_last_rows(table, result)


def _add_hardware_transaction_rows(table: FoldedTable, tx: Transactions) -> None:
    """Commits and aborts, with their causes, of a design with hardware transactions."""
    if tx.htm_committed is None or tx.sgl_committed is None or tx.aborted_by is None:
        return
    table.add_row("committed in hardware", number(tx.htm_committed), "")
    table.add_row("committed under the lock", number(tx.sgl_committed), "")
    causes = tx.aborted_by.to_dict()
    table.add_row("attempts in hardware aborted", number(sum(causes.values())), "")
    for cause, attempts in causes.items():
        if attempts:
            table.add_row(f"attempts aborted, {cause}", number(attempts), "")


def _add_replay_rows(table: FoldedTable, result: RunResult) -> None:
    if result.replay is None or not any(result.replay.to_dict().values()):
        return
    table.add_row("transactions replayed", number(result.replay.transactions), "")
    table.add_row("waits for space in logs", number(result.replay.stall_cycles), "cycles")


_FAILURES_SHOWN = 3


def crash_text(result: CrashResult, *, wide: bool = False) -> Text:
    """Returns the verdict of a campaign, with its first failures or all failures listed in the document."""
    text = _unwrapped()
    case = f"{with_dagger(result.design)} on {result.machine} ({result.domain}), {result.workload}"
    if result.ops is not None:
        case += f", {result.ops} operations"
    text.append(f"{case}: {_count(result.trials, 'crash')} at {_count(result.points, 'persist event')}: ")
    text.append(*_verdict(result))
    if result.hangs:
        text.append(f"; the program does not terminate in {result.hangs:,}", style="bold red")
    if result.disagreements:
        text.append(f"; oracles disagree on {result.disagreements:,}", style="bold red")
    if result.losses_reported:
        text.append(f"; {result.losses_reported:,} recoveries reported data loss")
    if result.not_tried:
        text.append(f"; not applicable: {', '.join(result.not_tried)}")
    counts = (("crashes", result.trials_by_fault), ("events", result.events_by_kind))
    for label, numbers in (*counts, ("rare states hit", result.marks)):
        if shown := [f"{name} {number:,}" for name, number in numbers.items() if number]:
            text.append(f"\n  {label}: {', '.join(shown)}")
    for fault, reason in result.not_tried.items():
        text.append(f"\n  {fault}: {reason}")
    is_unproven = result.control and not result.violations and not result.points_at_risk
    if is_unproven and result.trials and result.timeline is None:
        text.append(
            "\n  never at risk: at no crash point did a clean power failure lose a dirty line of persistent memory",
            style="bold yellow",
        )
    _add_failures(text, result, len(result.failures) if wide else _FAILURES_SHOWN)
    if result.timeline is not None:
        text.append("\n\n").append(timeline_text(result.timeline, _console().width))
    if result.shrunk is not None:
        text.append("\n\n").append(shrunk_text(result.shrunk))
    return text


def _count(number_of: int, noun: str) -> str:
    """Returns a number with its noun."""
    plural = noun + ("es" if noun.endswith("sh") else "s")
    return f"{number_of:,} {noun if number_of == 1 else plural}"


def _verdict(result: CrashResult) -> tuple[str, str]:
    """Returns the verdict and its style. Without nested or recrash trials, recoveries are not called correct."""
    if result.violations:
        return _count(result.violations, "violation"), "bold red"
    if not result.trials:
        return "no trials", "bold yellow"
    if {"nested", "recrash"} & result.not_tried.keys():
        return "no violation", "bold green"
    return "all recoveries correct", "bold green"


def _add_failures(text: Text, result: CrashResult, most: int) -> None:
    """Adds at most `most` of the listed failures, one per message."""
    shown = set()
    for failure in result.failures:
        if (failure.oracle, failure.message) in shown or len(shown) == most:
            continue
        shown.add((failure.oracle, failure.message))
        times = f" [{failure.alike:,} times]" if failure.alike > 1 else ""
        text.append(f"\n  {failure.id} ({failure.oracle}): {failure.message}{times}\n    {failure.command}")
    alike = {(failure.oracle, failure.message): failure.alike for failure in result.failures}
    if further := result.violations - sum(alike[kind] for kind in shown):
        hint = f" (--wide lists {len(alike) - len(shown)} of these messages)" if len(alike) > len(shown) else ""
        text.append(f"\n  and {_count(further, 'violation')} with other messages{hint}")


def _unwrapped() -> Text:
    """Returns a text without line wrapping, so that its commands can be copied."""
    return Text(no_wrap=True, overflow="ignore")


def shrunk_text(shrunk: Mapping[str, Any]) -> Text:
    """Returns the command and the timeline of a minimized failure."""
    text = _unwrapped()
    text.append(f"minimized, after {shrunk['candidates']} smaller campaigns, to")
    text.append(f"\n  {shrunk['command']}\n", style="bold").append(timeline_text(shrunk["timeline"], _console().width))
    return text


def campaign_tables(document: Mapping[str, Any]) -> Group:
    """Returns the result of a campaign: runs, controls, marks, failures and failed checks."""
    numbers = [Column(name, right=True) for name in ("threads", "runs", "trials", "violations")]
    names = [Column(name) for name in ("design", "domain", "workload")]
    runs = FoldedTable(f"campaign {document['name']}", [*names, *numbers], keys=3)
    for result in document["results"]:
        shown = {**result, "design": with_dagger(result["design"])}
        runs.add_row(*(cell(shown[column.header]) for column in runs.columns), style=_alarm(result["violations"]))
    columns = [Column(name) for name in ("name", "expects", "found")]
    controls = FoldedTable("controls", [*columns, *(Column(name, right=True) for name in ("violations", "trials"))])
    for control in document["controls"]:
        style = _alarm(control["found"] != control["expects"])
        controls.add_row(*(cell(control[column.header]) for column in controls.columns), style=style)
    marks = FoldedTable("marks", (Column("mark"), Column("crash points inside", right=True)))
    for name, hits in document["marks"].items():
        marks.add_row(name, cell(hits), style=_alarm(name in document["marks_missed"]))
    faults = ", ".join(f"{name} {number}" for name, number in document["trials_by_fault"].items())
    text = _unwrapped().append(
        f"{document['trials']} trials in {document['wall_s']:.0f} s ({faults}), "
        f"{document['trials_per_s_per_core']:.0f} trials per second and core, "
        f"up to {document['nested_depth_max']} recoveries failed in a row, "
        f"{document['losses_reported']} losses reported, {document['disagreements']} disagreements"
    )
    if document["not_tried"]:
        text.append(f"\nnot applicable in any run: {', '.join(document['not_tried'])}")
    listed = Counter((failure["oracle"], failure["message"]) for failure in document["failures"])
    for failure in document["failures"]:
        # Show only the first failure of each message.
        if times := listed.pop((failure["oracle"], failure["message"]), 0):
            also = f" [{times} listed]" if times > 1 else ""
            text.append(
                f"\n  {failure['id']} ({failure['oracle']}): {failure['message']}{also}\n    {failure['command']}"
            )
    for shrunk in document["shrunk"]:
        text.append(f"\n\nfirst failure of {shrunk['design']}, {shrunk['workload']}: ").append(shrunk_text(shrunk))
    if document["failed_checks"]:
        for reason in document["failed_checks"]:
            text.append(f"\nfailed: {reason}", style="bold red")
    else:
        text.append("\npassed: all recoveries correct, every control ended as expected", style="bold green")
    return Group(runs, controls, marks, text)


def random_tables(document: Mapping[str, Any]) -> Group:
    """Returns the result of a random campaign: counts for each design, and violations."""
    numbers = ("runs", "operations", "loads", "commits", "aborts", "switches", "images", "reordered", "interrupted")
    names = ("design", *numbers, "violations")
    table = FoldedTable("random campaign", [Column(name, right=name != "design") for name in names], keys=1)
    for row in document["designs"]:
        shown = {**row, "design": with_dagger(row["design"])}
        table.add_row(*(cell(shown[name]) for name in names), style=_alarm(row["violations"]))
    text = _unwrapped().append(f"{document['runs']} runs, {document['trials']} crashes")
    for failure in document["failures"]:
        text.append(f"\n  {failure['id']}: {failure['message']}\n    {failure['command']}")
    if document["violations"]:
        text.append(f"\nfailed: {document['violations']} runs with violations", style="bold red")
    else:
        text.append("\npassed: all loads and all recoveries correct", style="bold green")
    return Group(table, text)


def random_replay_text(document: Mapping[str, Any]) -> Text:
    """Returns the last steps of one run of a random campaign, and its violation."""
    text = _unwrapped()
    for step in document["steps"]:
        text.append(f"{step}\n")
    text.append(f"{document['design']} on {document['domain']}, {document['id']}: ")
    text.append(" ".join(f"--set '{setting}'" for setting in document["settings"]))
    wrong = document["message"]
    return text.append("\nno violation" if wrong is None else f"\n{wrong}", style=_alarm(wrong) or "bold green")


def _alarm(is_wrong: object) -> str:
    return "bold red" if is_wrong else ""


def mutation_tables(result: MutationResult) -> RenderableType:
    """Returns all mutants with the oracle and the time of the first detection."""
    caught = len(result.outcomes) - len(result.missed)
    columns = (
        Column("mutant"), Column("caught by"), Column("in"), Column("seconds", right=True),
        Column("fault", wraps=True),
    )  # fmt: skip
    table = FoldedTable(f"{caught} of {len(result.outcomes)} mutants caught", columns)
    for outcome in result.outcomes:
        of, found = outcome.campaign, outcome.objection
        where = "" if of is None or found is None else f"{of.workload}, {of.threads} threads, seed {found.seed}"
        table.add_row(
            outcome.mutant.path,
            outcome.caught_by or "missed",
            where,
            f"{outcome.seconds:.2f}",
            outcome.mutant.summary,
            style=_alarm(outcome.caught_by is None),
        )
    if not result.equivalent:
        return table
    sentences = (Column("fault", wraps=True), Column("why it is equivalent", wraps=True))
    apart = FoldedTable(f"{len(result.equivalent)} equivalent mutants", (Column("mutant"), *sentences))
    for mutant in result.equivalent:
        apart.add_row(mutant.path, mutant.summary, mutant.equivalent or "")
    return Group(table, apart) if result.outcomes else apart


def difference_table(difference: Difference) -> Group:
    """Returns the configuration keys that differ, then the measures and counters."""
    keys = FoldedTable(
        "configured differently", (Column("key"), *(Column(name, wraps=True, wraps_at=16) for name in ("a", "b")))
    )
    for change in difference.configuration:
        keys.add_row(change.key, cell(change.a), cell(change.b))
    parts: list[RenderableType] = [keys] if difference.configuration else [Text("identical configuration")]
    numbers = [Column(name, right=True) for name in ("a", "b", "b / a")]
    for title, changes in (("measures", difference.measures), ("counters that differ", difference.counters)):
        table = FoldedTable(title, [Column("key"), Column("unit"), *numbers])
        for measure in changes:
            values = (number(value) for value in (measure.a, measure.b, measure.ratio))
            table.add_row(measure.key, measure.unit, *values)
        if changes:
            parts.append(table)
    return Group(*parts)


def lines_text(lines: Iterable[str]) -> Text:
    """Returns lines without wrapping."""
    return _unwrapped().append("\n".join(lines))


def cell(value: Any) -> str:
    """Formats a value for a table cell."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(cell(item) for item in value)
    return str(value)


def number(value: float | None) -> str:
    """Formats a number with a readable precision; a dash for None."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"  # noqa: PLR2004

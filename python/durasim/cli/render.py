"""Terminal output of results. Tables go to standard output, progress to standard error."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.text import Text

from durasim.cli.tables import Column, FoldedTable
from durasim.crashes.timeline import timeline_text
from durasim.documents.causes import cause_lines
from durasim.documents.difference import Difference
from durasim.documents.escaping import printable, printable_lines
from durasim.documents.results import CrashResult, RunResult
from durasim.documents.summaries import (
    BAD,
    FAILURES_SHOWN,
    GOOD,
    UNCLEAR,
    count,
    crash_case,
    first_failures,
    number,
    run_rows,
    verdict,
)
from durasim.output import write_stdout
from durasim.runs.sensitivity import footnote, with_dagger

if TYPE_CHECKING:
    from durasim.crashes.mutants import MutationResult

# Wide enough for every table. The width of a terminal, or COLUMNS, takes precedence.
_WIDTH_OF_PIPES = 200


class _Printable:
    """Another renderable, in which control characters in texts of others are visible and have no effect."""

    def __init__(self, shown: RenderableType) -> None:
        self._shown = shown

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yields the segments to rich."""
        for segment in console.render(self._shown, options):
            yield segment if segment.control else Segment(printable_lines(segment.text), segment.style)


def show(renderable: RenderableType) -> None:
    """Prints to standard output.

    Raises:
        HostIoError: Standard output is not writable.
    """
    console = _console()
    # A string would be parsed as markup.
    shown = Text(renderable) if isinstance(renderable, str) else renderable
    with console.capture() as capture:
        # A text in a group keeps its own wrapping.
        console.print(_Printable(Group(shown)), crop=False)
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
        # Names are no markup.
        TextColumn("{task.description}", markup=False),
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


def run_table(result: RunResult, *, wide: bool = False) -> FoldedTable:
    """Returns the summary of a run: the main measures, or all of them."""
    table = FoldedTable(
        f"{result.workload} under {with_dagger(result.design)} on {result.machine} ({result.domain})",
        (Column("measure"), Column("value", right=True), Column("unit")),
        header=False,
    )
    for row in run_rows(result, wide=wide):
        table.add_row(*row)
    if not result.provenance.functional:
        table.caption = footnote(result.design, result.machine)
    return table


_STYLES = {GOOD: "bold green", UNCLEAR: "bold yellow", BAD: "bold red"}


def crash_text(result: CrashResult, *, wide: bool = False) -> Text:
    """Returns the verdict of a campaign, with its first failures or all failures listed in the document."""
    text = _unwrapped()
    text.append(f"{crash_case(result, with_dagger(result.design))}: ")
    sentence, judged = verdict(result)
    text.append(sentence, style=_STYLES[judged])
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
    _add_failures(text, result, len(result.failures) if wide else FAILURES_SHOWN)
    _add_check_outputs(text, result, wide=wide)
    if result.causes is not None:
        text.append("".join(f"\n  {line}" for line in cause_lines(result.causes)))
    if result.timeline is not None:
        text.append("\n\n").append(timeline_text(result.timeline, _console().width))
    if result.shrunk is not None:
        text.append("\n\n").append(shrunk_text(result.shrunk))
    return text


def _add_failures(text: Text, result: CrashResult, most: int) -> None:
    """Adds at most `most` of the listed failures, one per message."""
    shown = first_failures(result, most)
    for failure in shown:
        times = f" [{failure.alike:,} times]" if failure.alike > 1 else ""
        message = printable(failure.message)
        text.append(f"\n  {failure.id} ({failure.oracle}): {message}{times}\n    {failure.command}")
    alike = {(failure.oracle, failure.message): failure.alike for failure in result.failures}
    if further := result.violations - sum(failure.alike for failure in shown):
        hint = f" (--wide lists {len(alike) - len(shown)} of these messages)" if len(alike) > len(shown) else ""
        text.append(f"\n  and {count(further, 'violation')} with other messages{hint}")


def _add_check_outputs(text: Text, result: CrashResult, *, wide: bool) -> None:
    """Adds what the check wrote in a replay, or in the failures that are shown."""
    shown = {failure.id for failure in first_failures(result, len(result.failures) if wide else FAILURES_SHOWN)}
    for trial in result.check_outputs or ():
        if result.timeline is None and trial.id not in shown:
            continue
        if not trial.checks:
            text.append(f"\n  {trial.id}: the trial ended before a check")
        for at, output in enumerate(trial.checks):
            text.append(f"\n  {trial.id}: the check wrote" if at == 0 else "\n    and, started again,")
            _add_stream(text, "stdout", output.stdout, output.stdout_left_out_bytes)
            _add_stream(text, "stderr", output.stderr, output.stderr_left_out_bytes)


def _add_stream(text: Text, name: str, written: str, left_out_bytes: int) -> None:
    lines = printable_lines(written).splitlines()
    if left_out_bytes:
        lines.append(f"... and {count(left_out_bytes, 'further byte')}")
    text.append("".join(f"\n    {name}: {line}" for line in lines or ["nothing"]))


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
            message = printable(failure["message"])
            text.append(f"\n  {failure['id']} ({failure['oracle']}): {message}{also}\n    {failure['command']}")
    for of in document["causes"]:
        text.append(f"\n  causes of violations in {printable(of['workload'])}:\n    {of['command']}")
        text.append("".join(f"\n    {line}" for line in cause_lines(of["causes"])))
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
        text.append(f"\n  {failure['id']}: {printable(failure['message'])}\n    {failure['command']}")
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

"""The timeline of a replayed crash as text for a terminal of 80 columns or more."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.text import Text

WIDTH = 100
"""Maximum width."""
_WIDTH_MIN = 80
_WORD_BYTES = 8
_EVENTS_SHOWN = 24
_INDENT = 4
_LABEL = 28
_CELL = 17
_WRITES_SHOWN = 6
_TRANSACTIONS_SHOWN = 6

Json = Mapping[str, Any]

_PROGRAMS = {"run": "the run", "recovery": "the program's recovery", "work": "further work"}


class _Page(Text):
    """A text wrapped at a given width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    @property
    def words(self) -> int:
        """Number of words of a line that fit side by side."""
        return (self.width - _INDENT - _LABEL) // _CELL


def timeline_text(timeline: Json, width: int = WIDTH) -> Text:
    """Returns the timeline of a trial: the verdict, the transactions involved, and a section for each line.

    Args:
        timeline: The timeline of the document of a replay.
        width: Width of the terminal; 80 to 100 columns are used.
    """
    text = _Page(min(max(width, _WIDTH_MIN), WIDTH))
    text.append(f"timeline of {timeline['id']}", style="bold")
    for objection in timeline["objections"]:
        _paragraph(text, f"{objection['oracle']}: {objection['message']}", "  ", style="red")
    if timeline["reported_loss"] is not None:
        _paragraph(text, f"recovery reports data loss: {timeline['reported_loss']}", "  ")
    if not timeline["objections"]:
        _paragraph(text, "no oracle reports a violation", "  ", style="green")
    transactions = timeline["transactions"]
    for transaction in transactions[-_TRANSACTIONS_SHOWN:]:
        _paragraph(text, _transaction(transaction), "  ")
    if len(transactions) > _TRANSACTIONS_SHOWN:
        _paragraph(text, f"and {len(transactions) - _TRANSACTIONS_SHOWN} earlier transactions", "  ")
    lines = timeline["lines"]
    left_out = timeline["lines_in_question"] - len(lines)
    more = f"; {left_out} more not shown" if left_out else ""
    shown = f"lines shown: {len(lines)}{more}" if lines else "no line shown"
    _paragraph(text, f"{shown}; reason: {timeline['lines_chosen_because']}", "  ")
    if not lines:
        for phase in timeline["phases"]:
            _head(text, phase)
    for line in lines:
        _line(text, timeline, line)
    return text


def _transaction(transaction: Json) -> str:
    names = (("core", "core"), ("thread", "thread"), ("operation", "operation"))
    whose = [f"{label} {transaction[name]}" for name, label in names if transaction[name] is not None]
    return f"transaction {transaction['tx']} ({', '.join(whose)}): {transaction['state']} when the power failed"


def _line(text: _Page, timeline: Json, line: Json) -> None:
    number = line["line"]
    offset = line["data_offset"]
    where = "outside the program's data" if offset is None else f"data offset {offset:#x}"
    text.append(f"\n\nline {number:#x} ({where})", style="bold")
    columns, more = _columns(timeline, line, text.words)
    before: Sequence[str | None] = []
    for phase in timeline["phases"]:
        _head(text, phase)
        if phase["kind"] == "run":
            _events(text, phase, number)
            _copies(text, phase, number, columns)
            before = _of(phase["left"], number)
            continue
        for write in [w for w in phase.get("writes", []) if w["line"] == number][:_WRITES_SHOWN]:
            _row(text, f"write {write['number']}", write["words"], columns)
        after = _of(phase["lines"], number)
        if after == before:
            text.append("\n    the line is unchanged")
        else:
            _row(text, "after it", after, columns)
        before = after
    if line["found"] is not None:
        text.append("\n  final contents")
        _row(text, "found", line["found"], columns, style="red" if timeline["objections"] else "")
        for index, expected in enumerate(line["expected"]):
            _row(text, "expected" if index == 0 else "or, committed", expected, columns, style="green")
    if more:
        text.append(f"\n    {more} more words differ")


def _head(text: _Page, phase: Json) -> None:
    if phase["kind"] == "run":
        failure = phase["failure"]
        shown = (
            f"{_PROGRAMS[phase['program']]}: power fails after event {failure['event']} ({failure['event_kind']}, "
            f"cycle {failure['cycle']:,}), {failure['how']}"
        )
    elif phase["kind"] == "hardware_recovery":
        cut = phase["cut_at_write"]
        shown = f"the hardware's recovery makes {_count(phase['writes_total'], 'write')}"
        shown += f" and is interrupted at write {cut}" if cut is not None else _report(phase)
    else:
        shown = "the program's recovery ran"
    _paragraph(text, shown, "  ")
    for loss in phase.get("losses", []):
        _paragraph(text, f"it reports data loss: {loss}", "    ")


def _report(phase: Json) -> str:
    return f": {phase['replayed']} transactions replayed, {phase['discarded']} discarded"


def _events(text: _Page, phase: Json, line: int) -> None:
    own = [h for h in phase["events"] if h["line"] == line]
    touching = {h["tx"] for h in own if h["tx"] is not None}
    # Show all events of transactions that touch this line; of a long list, only the end.
    shown = [h for h in phase["events"] if h["line"] == line or (h["line"] is None and h["tx"] in touching)]
    hidden = len(shown) - _EVENTS_SHOWN
    if hidden > 0:
        text.append(f"\n    ... {hidden} earlier ones")
    text.append(f"\n    {'cycle':>12}  {'event':>7}", style="dim")
    is_after_failure = False
    for event in shown[-_EVENTS_SHOWN:]:
        if event["after_failure_event"] and not is_after_failure:
            is_after_failure = True
            _paragraph(text, "after that event, before the next one:", " " * 4)
        number = "" if event["event"] is None else str(event["event"])
        shown = f"    {event['cycle']:>12,}  {number:>7}  {_what(event)}"
        text.append("\n" + textwrap.fill(shown, text.width, subsequent_indent=" " * 29))


def _what(event: Json) -> str:
    tx = "" if event["tx"] is None else f"transaction {event['tx']}"
    match event["what"]:
        case "store":
            size = "" if event["size_bytes"] == _WORD_BYTES else f" ({_count(event['size_bytes'], 'byte')})"
            return (
                f"store by core {event['core']}{', ' + tx if tx else ''}: +{event['offset']:#04x}{size} "
                f"{event['old']} -> {event['new']}"
            )
        case "clean":
            return f"clean by core {event['core']}"
        case "fence":
            return f"a fence of core {event['core']} has waited for the clean"
        case "begin" | "resumed":
            return f"{tx} {'begins' if event['what'] == 'begin' else 'resumes'}"
        case "suspended" | "acknowledged" | "aborted":
            return f"{tx} is {event['what']}"
        case "committing":
            return f"{tx} starts to commit"
    words = event["what"]
    if event["cause"] is not None:
        words += f" ({event['cause']})"
    if event["place"] is not None:
        words += f" at {event['place']}"
    if event["core"] is not None:
        words += f", core {event['core']}"
    return words + (f", {tx}" if tx else "")


def _copies(text: _Page, phase: Json, line: int, columns: Sequence[int]) -> None:
    headings = "".join(_heading(column) for column in columns).rstrip()
    text.append("\n    " + "when the power failed".ljust(_LABEL) + headings)
    for copy in [copy for copy in phase["copies"] if copy["line"] == line]:
        label = copy["place"] + (", dirty" if copy["dirty"] else "")
        if copy["tag"]:
            label += f", tag {copy['tag']}"
        lost = copy["dirty"] and not copy["survived"]
        label += ", lost" if lost else ""
        _row(text, label, copy["words"], columns, style="red" if lost else "")
    flush = "left (energy ended)" if phase["dirty_shutdown"] else "left in persistent memory"
    _row(text, flush, _of(phase["left"], line), columns, style="bold")
    traces = [trace for trace in phase["traces"] if trace["line"] == line]
    for place in dict.fromkeys(trace["place"] for trace in traces):
        offsets = ", ".join(f"{trace['offset']:#x}" for trace in traces if trace["place"] == place)
        _paragraph(text, f"{place} refers to the line at byte {offsets}", "    ")


def _columns(timeline: Json, line: Json, shown_max: int) -> tuple[list[int], int]:
    """Chooses the words to show and counts the others that differ."""
    number = line["line"]
    versions = [*line["expected"], *([line["found"]] if line["found"] else [])]
    for phase in timeline["phases"]:
        parts = ("copies", "left") if phase["kind"] == "run" else ("writes", "lines")
        versions += [seen["words"] for part in parts for seen in phase.get(part, []) if seen["line"] == number]
    differing = []
    wrong = []
    for word in range(_WORD_BYTES):
        values = {version[word] for version in versions if version[word] is not None}
        if len(values) > 1:
            differing.append(word)
        if line["found"] is not None and line["found"][word] not in {e[word] for e in line["expected"]}:
            wrong.append(word)
    chosen = (wrong + [word for word in differing if word not in wrong] or [0])[:shown_max]
    return sorted(chosen), max(len(set(differing) | set(wrong)) - len(chosen), 0)


def _heading(column: int) -> str:
    return f"+{column * _WORD_BYTES:#04x}".ljust(_CELL)


def _of(seen: Iterable[Json], line: int) -> Sequence[str | None]:
    return next(one["words"] for one in seen if one["line"] == line)


def _row(text: _Page, label: str, words: Sequence[str | None], columns: Sequence[int], style: str = "") -> None:
    cells = "".join((words[column] or "-").ljust(_CELL) for column in columns).rstrip()
    # A label wider than its column gets its own line.
    head = f"\n    {label}" + ("\n    ".ljust(_LABEL + 5) if len(label) >= _LABEL else " " * (_LABEL - len(label)))
    text.append(head + cells, style=style)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _paragraph(text: _Page, content: str, indent: str, style: str = "") -> None:
    wrapped = textwrap.fill(content, text.width, initial_indent=indent, subsequent_indent=indent + "  ")
    text.append("\n" + wrapped, style=style)

"""The table of system calls in docs/system-calls.md, from the table of the kernel's sources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).resolve().parents[1] / "crates" / "kernel" / "src" / "syscalls" / "states.rs"
ROWS = re.compile(r"^pub const SYSTEM_CALLS\b.*?= rows! \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"^    // (.+)\.$")
ROW = re.compile(r'^    \[([a-z0-9_, ]+)\] => ?(\w+)(?:\(Errno::(\w+)\))?, "(.*)";$')
# A string literal that continues in the next line, and a row that does.
CONTINUED = re.compile(r"\\\n\s+|(?<==>)\n\s+(?=\w)")
STATES = {"Emulated": "emulated", "Absent": "`ENOSYS`", "Refused": "ends the run"}


@dataclass(frozen=True)
class Row:
    """Calls that share a state and a remark."""

    section: str
    calls: tuple[str, ...]
    state: str
    errno: str | None
    remark: str


def rows() -> Iterator[Row]:
    """Gives the rows of the table, in its order.

    Raises:
        ValueError: a line of the table has another form.
    """
    found = ROWS.search(TABLE.read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(f"{TABLE.name} has no table SYSTEM_CALLS")
    section = ""
    for line in filter(str.strip, CONTINUED.sub("", found[1]).splitlines()):
        if heading := SECTION.match(line):
            section = heading[1]
        elif row := ROW.match(line):
            names, state, errno, remark = row.groups()
            yield Row(section, tuple(names.split(", ")), state, errno, remark)
        else:
            raise ValueError(f"{TABLE.name}: a line of the table cannot be read: {line}")


def table() -> str:
    """Returns a table of all calls for each section of the source."""
    lines: list[str] = []
    section = ""
    for row in rows():
        if row.section != section:
            section = row.section
            lines += ["", f"### {section}", "", "| calls | answer | remark |", "| --- | --- | --- |"]
        names = ", ".join(f"`{name}`" for name in row.calls)
        state = f"`{row.errno}`" if row.errno else STATES[row.state]
        lines.append(f"| {names} | {state} | {row.remark} |")
    return "\n".join([*lines[1:], ""])


def counts() -> str:
    """Returns a sentence with the number of calls in each state."""
    number = dict.fromkeys(("Emulated", "Absent", "Fails", "Refused"), 0)
    for row in rows():
        number[row.state] += len(row.calls)
    return (
        f"Of the {sum(number.values())} calls of riscv64 Linux {number['Emulated']} are emulated, "
        f"{number['Absent']} are absent, {number['Fails']} always fail with the error of the table, "
        f"and {number['Refused']} end the run."
    )

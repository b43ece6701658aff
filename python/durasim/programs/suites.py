"""Suites: the workloads of one paper, each a program with arguments from the paper or chosen for durasim.

A suite is a table ``guest/suites/NAME.toml``. Its members are workloads with their own names and other defaults of the
arguments of their programs. ``all-NAME`` in a list of workloads means all of them, and in a list of designs those that
the paper compares.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from durasim.errors import ToolchainError, refusal
from durasim.programs import workload_tables
from durasim.programs.scale import Scale
from durasim.programs.workload_tables import Argument, WorkloadInfo

GROUP_PREFIX = "all-"
SIZES = ("populate", "items-max", "buckets", "lists", "vertices", "footprint-bytes")
"""Arguments for the size of the data."""


@dataclass(frozen=True)
class Member:
    """A workload of a suite.

    Attributes:
        info: The workload, with its own name and defaults.
        suite: The name of the suite; None for a program itself.
        source: The paper and its section.
        threads: Threads in the paper.
        published_tx_lines: Published number of lines that a transaction modifies: the average, or minimum and maximum;
            None if the paper gives none.
        published_note: Note about that number.
    """

    info: WorkloadInfo
    suite: str | None
    source: str
    threads: int = 1
    published_tx_lines: float | list[float] | None = None
    published_note: str = ""


@dataclass(frozen=True)
class _Row:
    """A row of a suite's table."""

    name: str
    program: str
    description: str
    given: dict[str, int | str] = field(default_factory=dict)
    quick: dict[str, int | str] = field(default_factory=dict)
    threads: int = 1
    published_tx_lines: float | list[float] | None = None
    published_note: str = ""


def suite_names() -> list[str]:
    """Returns the names of all suites."""
    return [path.stem for path in _files()]


@cache
def members() -> tuple[Member, ...]:
    """Returns the workloads of all suites, in the order of the tables.

    Raises:
        ToolchainError: A table is wrong.
    """
    programs = {info.name: info for info in workload_tables.workloads()}
    found = [member for path in _files() for member in _read(path, programs)]
    names = [*programs, *(member.info.name for member in found)]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ToolchainError(f"the workload {min(twice)!r} is defined twice")
    return tuple(found)


def expand(names: list[str]) -> list[str]:
    """Expands ``all-SUITE`` to the members of that suite, and ``all`` to all programs."""
    groups = {GROUP_PREFIX + suite: [m.info.name for m in members() if m.suite == suite] for suite in suite_names()}
    groups["all"] = [info.name for info in workload_tables.workloads()]
    return [member for name in names for member in groups.get(name, [name])]


def _files() -> list[Path]:
    return sorted((workload_tables.guest_folder() / "suites").glob("*.toml"))


def _read(path: Path, programs: dict[str, WorkloadInfo]) -> list[Member]:
    table = workload_tables.read_toml(path)
    try:
        source, rows = str(table["source"]), [_Row(**row) for row in table["workload"]]  # type: ignore[attr-defined]
    except (KeyError, TypeError) as error:
        raise ToolchainError(f"{path}: {error}") from None
    broken = workload_tables.broken_workloads()
    return [_member(path, source, row, programs) for row in rows if row.program not in broken]


def _member(path: Path, source: str, row: _Row, programs: dict[str, WorkloadInfo]) -> Member:
    program = programs.get(row.program)
    if program is None:
        raise ToolchainError(f"{path}: {row.name}: unknown program {row.program!r}")
    unknown = (row.given.keys() | row.quick.keys()) - {argument.name for argument in program.arguments}
    if unknown:
        raise ToolchainError(f"{path}: {row.name}: {min(unknown)!r} is no argument of {row.program}")
    arguments = tuple(_with_default(argument, row.given) for argument in program.arguments)
    info = replace(
        program, name=row.name, description=row.description, arguments=arguments, given=row.given, quick=row.quick
    )
    return Member(info, path.stem, source, row.threads, row.published_tx_lines, row.published_note)


def at_scale(info: WorkloadInfo, scale: Scale) -> WorkloadInfo:
    """Returns a workload with its data divided by the scale and with the operations of a short run.

    Raises:
        ConfigError: Its suite does not define the operations of a short run.
    """
    if scale.divisor == 1:
        return info
    if not info.quick:
        known = ", ".join(sorted({str(member.suite) for member in members() if member.info.quick}))
        raise refusal(
            "scale", f"'{scale.name}' is defined only for the workloads of the suites {known}, not for {info.name}"
        )
    sizes = {name: int(info.given[name]) // scale.divisor for name in SIZES if name in info.given}
    given = info.given | sizes | info.quick
    arguments = tuple(_with_default(argument, given) for argument in info.arguments)
    return replace(info, arguments=arguments, given=given)


def threads_of(workload: str) -> int:
    """Returns the default threads of a workload: those of its suite, or one for a program itself."""
    return next((member.threads for member in members() if member.info.name == workload), 1)


def designs_for(workloads: list[str]) -> list[str]:
    """Returns the designs that the paper of the workloads compares.

    Raises:
        ConfigError: The workloads are not of one suite, or the suite does not list designs.
    """
    of = {member.info.name: member.suite for member in members()}
    found = {of.get(workload) for workload in workloads}
    if len(found) != 1 or found == {None}:
        raise refusal("designs", "is required: the workloads are not of one suite")
    return designs_of([f"{GROUP_PREFIX}{found.pop()}"])


def designs_of(names: list[str]) -> list[str]:
    """Expands ``all-SUITE`` to the designs that the paper of that suite compares."""
    groups = {GROUP_PREFIX + path.stem: [str(row) for row in _compared(path)] for path in _files()}
    for name in names:
        if name in groups and not groups[name]:
            raise refusal("designs", f"the suite of {name!r} does not list the designs that its paper compares")
    return [row for name in names for row in groups.get(name, [name])]


def _compared(path: Path) -> list[str]:
    return list(workload_tables.read_toml(path).get("designs", []))  # type: ignore[call-overload]


def _with_default(argument: Argument, given: dict[str, int | str]) -> Argument:
    return replace(argument, default=given[argument.name]) if argument.name in given else argument

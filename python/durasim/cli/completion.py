"""Shell completion of the names of designs, workloads and machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

_Offered = Iterator[tuple[str, str]]
"""Names with a one-line description each."""
_TEXT_MAX = 40


def designs(incomplete: str) -> _Offered:
    """Returns the designs with this prefix."""
    from durasim.runs.scenario import design_variants  # noqa: PLC0415 - only while a shell completes

    for row in design_variants().values():
        yield from _beginning(incomplete, ((name, row["summary"]) for name in (row["name"], *row["aliases"])))


def machines(incomplete: str) -> _Offered:
    """Returns the machine presets with this prefix."""
    from durasim.runs.scenario import machine_rows  # noqa: PLC0415

    return _beginning(incomplete, ((row["name"], row["description"]) for row in machine_rows().values()))


def workloads(incomplete: str) -> _Offered:
    """Returns the workloads with this prefix, including those of suites."""
    from durasim.programs import suites, workload_tables  # noqa: PLC0415

    infos = [*workload_tables.workloads(), *(member.info for member in suites.members())]
    return _beginning(incomplete, ((info.name, info.description) for info in infos))


def workloads_and_suites(incomplete: str) -> _Offered:
    """Returns the workloads and the suites with this prefix."""
    yield from workloads(incomplete)
    yield from _suites(incomplete)


def design_lists(incomplete: str) -> _Offered:
    """Returns designs and suites that complete the last name of a comma-separated list."""
    return _of_list(incomplete, lambda last: (*designs(last), *_suites(last)))


def workload_lists(incomplete: str) -> _Offered:
    """Returns workloads and suites that complete the last name of a comma-separated list."""
    return _of_list(incomplete, workloads_and_suites)


def domains(incomplete: str) -> _Offered:
    """Returns the persistence domains with this prefix."""
    from durasim import _core  # noqa: PLC0415

    return _beginning(incomplete, ((name, "") for name in _core.DOMAINS))


def _suites(incomplete: str) -> _Offered:
    from durasim.programs import suites  # noqa: PLC0415

    names = dict.fromkeys(member.suite for member in suites.members())
    return _beginning(incomplete, ((f"all-{name}", "All workloads of this suite.") for name in names))


def _of_list(incomplete: str, offered: Callable[[str], Iterable[tuple[str, str]]]) -> _Offered:
    before, comma, last = incomplete.rpartition(",")
    for name, text in offered(last):
        yield before + comma + name, text


def _beginning(incomplete: str, named: Iterable[tuple[str, str]]) -> _Offered:
    return ((name, _cut(text)) for name, text in named if name.startswith(incomplete))


def _cut(text: str) -> str:
    """Shortens a description to one line: shells take a wrapped line for two names."""
    return text if len(text) <= _TEXT_MAX else text[: _TEXT_MAX - 1].rstrip() + "…"

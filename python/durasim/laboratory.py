"""How each design is tested, as the description beside its design says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from durasim import _core
from durasim.crash_request import DEFAULT_FAULTS
from durasim.scenario import design_rows, row_name

Settings = tuple[str, ...]
"""Settings as for `--set`."""


@dataclass(frozen=True)
class ShortCampaign:
    """A crash campaign on the machine `tiny`, so short and small that rare paths are common.

    Attributes:
        workload: Name of the workload.
        arguments: Its arguments.
        threads: Threads of the guest.
        ops: Operations.
        points: Persist events to crash at.
        faults: What goes wrong there.
        settings: Parameters that differ from those of `tiny`.
        domain: Persistence domain, the row's usual one if None.
        rehearsals: Whether every transaction is aborted and retried once before it commits.
        seeds: How many times it runs, each time with another seed.
    """

    workload: str
    arguments: tuple[tuple[str, str], ...]
    threads: int
    ops: int
    points: int
    faults: tuple[str, ...]
    settings: Settings
    domain: str | None
    rehearsals: bool
    seeds: int


@dataclass(frozen=True)
class Alternatives:
    """Other values of parameters that rest on an assumption.

    Attributes:
        key: The key of DEVIATIONS.md.
        points: Settings to try; `--arg NAME=VALUE` is an argument of the workload.
        workload: Name of the workload.
        threads: Its threads.
        machines: Machines that have room for it, all that are usual if empty.
        beside: Rows that stand beside for comparison.
    """

    key: str
    points: tuple[Settings, ...]
    workload: str
    threads: int
    machines: tuple[str, ...]
    beside: tuple[str, ...]


@dataclass(frozen=True)
class Laboratory:
    """What tests and tools have to know of a row.

    Attributes:
        campaigns: The campaigns that its planted faults are sent through, those that catch the most first.
        quick_faults: Planted faults of different kinds that these catch quickly.
        canary: The planted fault whose recovery overlooks one entry.
        common_counters: Counters of the design that are not zero after a short run on `tiny`.
        common_marks: Marks that crash points of a short campaign on `tiny` fall into.
        short_run_settings: Settings under which a run of a few transactions meets what takes time.
        overflow_settings: Settings under which queues, logs and identifiers run over.
        alternatives: What the tables of DEVIATIONS.md are measured at.
    """

    campaigns: tuple[ShortCampaign, ...]
    quick_faults: tuple[str, ...]
    canary: str | None
    common_counters: tuple[str, ...]
    common_marks: tuple[str, ...]
    short_run_settings: Settings
    overflow_settings: Settings
    alternatives: tuple[Alternatives, ...]


@cache
def laboratories() -> Mapping[str, Laboratory]:
    """Gives the descriptions by the name of the row, in the order of the registry."""
    documents = json.loads(_core.laboratories())
    return {name: _laboratory(documents[name]) for name in design_rows()}


def laboratory_of(design: str) -> Laboratory:
    """Gives the description of a row."""
    return laboratories()[row_name(design)]


def _laboratory(document: Mapping[str, Any]) -> Laboratory:
    plain = _tuples(document)
    campaigns = [_tuples(campaign) for campaign in document["campaigns"]]
    return Laboratory(**plain | {
        "campaigns": tuple(ShortCampaign(**c | {"faults": c["faults"] or DEFAULT_FAULTS}) for c in campaigns),
        "alternatives": tuple(Alternatives(**_tuples(of)) for of in document["alternatives"]),
    })  # fmt: skip


def _tuples(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _tuple(value) for key, value in document.items()}


def _tuple(value: Any) -> Any:
    return tuple(_tuple(item) for item in value) if isinstance(value, list) else value


@dataclass(frozen=True)
class Measurement:
    """What a table of DEVIATIONS.md is measured with.

    Attributes:
        designs: The rows: its columns.
        points: What is tried, beside everything as it is.
        workload: Name of the workload.
        threads: Its threads.
        machines: Machines, all that are usual if empty.
    """

    designs: tuple[str, ...]
    points: tuple[Settings, ...]
    workload: str = "btree"
    threads: int = 1
    machines: tuple[str, ...] = ()


def measurements() -> dict[str, Measurement]:
    """Gives what is measured for the assumptions of designs, by key; designs that share a key are measured together."""
    sharing: dict[str, dict[str, Alternatives]] = {}
    for design, laboratory in laboratories().items():
        assumptions = design_rows()[design]["assumptions"]
        for of in laboratory.alternatives:
            # A row over the same hardware may rest on fewer assumptions.
            if of.key in assumptions:
                sharing.setdefault(of.key, {})[design] = of
    return {key: _together(rows) for key, rows in sharing.items()}


def _together(rows: Mapping[str, Alternatives]) -> Measurement:
    first = next(iter(rows.values()))
    # Rows over the same hardware name the same points.
    different = dict.fromkeys(of.points for of in rows.values())
    points = tuple(_merged(lists) for lists in zip(*different, strict=True))
    beside = [name for name in first.beside if name not in rows]
    return Measurement((*beside, *rows), points, first.workload, first.threads, first.machines)


def _merged(lists: Iterable[Settings]) -> Settings:
    return tuple(dict.fromkeys(setting for settings in lists for setting in settings))

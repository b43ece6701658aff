"""The test plan of each design, from crates/test_plans."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from durasim import _core
from durasim.documents.described_crash import DEFAULT_FAULTS
from durasim.runs.scenario import design_variants, variant_name

Settings = tuple[str, ...]
"""Settings as for `--set`."""


@dataclass(frozen=True)
class ShortCampaign:
    """A short crash campaign on the machine `tiny`, which is small enough to reach rare paths often.

    Attributes:
        workload: Name of the workload.
        arguments: Its arguments.
        threads: Threads of the guest.
        ops: Operations.
        points: Persist events to crash at.
        faults: Kinds of power failures.
        settings: Parameters that differ from those of `tiny`.
        domain: Persistence domain; the design's default if None.
        rehearsals: Whether every transaction is aborted and retried once before it commits.
        seeds: Number of runs, each with a different seed.
        macros: Macros with which the workload is compiled.
        include_folders: Folders of further headers of the workload.
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
    macros: tuple[str, ...] = ()
    include_folders: tuple[str, ...] = ()


@dataclass(frozen=True)
class Alternatives:
    """Alternative values of parameters that are assumptions.

    Attributes:
        key: The key of DEVIATIONS.md.
        points: Settings to measure; `--arg NAME=VALUE` is an argument of the workload.
        workload: Name of the workload.
        threads: Its threads.
        machines: Machines that are large enough; the default machines if empty.
        beside: Design variants to measure for comparison.
    """

    key: str
    points: tuple[Settings, ...]
    workload: str
    threads: int
    machines: tuple[str, ...]
    beside: tuple[str, ...]


@dataclass(frozen=True)
class TestPlan:
    """Test plan of a design variant.

    Attributes:
        campaigns: The campaigns for its planted faults, those that catch the most first.
        quick_faults: Planted faults of different kinds that these campaigns catch quickly.
        canary: The planted fault whose recovery skips one entry.
        common_counters: Counters of the design that are not zero after a short run on `tiny`.
        common_marks: Marks that contain crash points of a short campaign on `tiny`.
        short_run_settings: Settings under which a run of a few transactions triggers periodic or delayed work.
        overflow_settings: Settings under which queues, logs and identifiers overflow.
        alternatives: The measurement points of the tables of DEVIATIONS.md.
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
def plans() -> Mapping[str, TestPlan]:
    """Returns the test plans by name of the design, in the order of the registry."""
    documents = json.loads(_core.test_plans())
    return {name: _test_plan(documents[name]) for name in design_variants()}


def plan_of(design: str) -> TestPlan:
    """Returns the test plan of a design."""
    return plans()[variant_name(design)]


def _test_plan(document: Mapping[str, Any]) -> TestPlan:
    plain = _tuples(document)
    campaigns = [_tuples(campaign) for campaign in document["campaigns"]]
    return TestPlan(**plain | {
        "campaigns": tuple(ShortCampaign(**c | {"faults": c["faults"] or DEFAULT_FAULTS}) for c in campaigns),
        "alternatives": tuple(Alternatives(**_tuples(of)) for of in document["alternatives"]),
    })  # fmt: skip


def _tuples(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _tuple(value) for key, value in document.items()}


def _tuple(value: Any) -> Any:
    return tuple(_tuple(item) for item in value) if isinstance(value, list) else value


@dataclass(frozen=True)
class Measurement:
    """The measurements of a table of DEVIATIONS.md.

    Attributes:
        designs: The designs: its columns.
        points: The alternatives, in addition to the unchanged run.
        workload: Name of the workload.
        threads: Its threads.
        machines: Machines; the default machines if empty.
    """

    designs: tuple[str, ...]
    points: tuple[Settings, ...]
    workload: str = "btree"
    threads: int = 1
    machines: tuple[str, ...] = ()


def measurements() -> dict[str, Measurement]:
    """Returns the measurements of the assumptions of designs, by key; designs that share a key are merged."""
    sharing: dict[str, dict[str, Alternatives]] = {}
    for design, plan in plans().items():
        assumptions = design_variants()[design]["assumptions"]
        for of in plan.alternatives:
            # Another variant of one hardware may depend on fewer assumptions.
            if of.key in assumptions:
                sharing.setdefault(of.key, {})[design] = of
    return {key: _together(rows) for key, rows in sharing.items()}


def _together(rows: Mapping[str, Alternatives]) -> Measurement:
    first = next(iter(rows.values()))
    # Variants of one hardware list equal points.
    different = dict.fromkeys(of.points for of in rows.values())
    points = tuple(_merged(lists) for lists in zip(*different, strict=True))
    beside = [name for name in first.beside if name not in rows]
    return Measurement((*beside, *rows), points, first.workload, first.threads, first.machines)


def _merged(lists: Iterable[Settings]) -> Settings:
    return tuple(dict.fromkeys(setting for settings in lists for setting in settings))

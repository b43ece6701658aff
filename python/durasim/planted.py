"""Planted faults: every durable design is built with one fault at a time, and crash campaigns have to catch each.

A fault is a line in the list of a hardware design (`planted.rs` beside it) or of a software runtime
(`guest/runtimes/planted`). It goes through a fixed list of short campaigns until the first violation. Faults that
nobody can see are listed as equivalent, with the argument why, and are not run.
"""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from durasim import _core, toolchain
from durasim._core import __version__
from durasim.campaign import CrashOptions, crash_request
from durasim.errors import GuestFault, InternalError, StuckError, unknown_name
from durasim.laboratory import ShortCampaign, laboratory_of
from durasim.scenario import Scenario, design_rows

Caught = Callable[["Outcome"], None]
"""Takes the outcome of each fault as soon as it is there."""


@dataclass(frozen=True)
class PlantedFault:
    """A fault that a row can be built with.

    Attributes:
        design: Row of the registry.
        name: Its name, unique in the row.
        summary: What goes wrong, in one sentence.
        equivalent: Why nobody can see it, if nobody can.
        in_guest: Whether the guest's runtime has it, not the hardware.
    """

    design: str
    name: str
    summary: str
    equivalent: str | None
    in_guest: bool

    @property
    def path(self) -> str:
        """Its name among the faults of all designs."""
        return f"{self.design}/{self.name}"


@dataclass(frozen=True)
class Outcome:
    """What became of a fault.

    Attributes:
        fault: The fault.
        caught_by: The oracle that objected first, or `run` if the program failed before any crash; None if none did.
        message: What was wrong.
        campaign: The campaign that caught it.
        seconds: Time to the first catch, or until all campaigns had passed.
    """

    fault: PlantedFault
    caught_by: str | None
    message: str
    campaign: ShortCampaign | None
    seconds: float


@dataclass(frozen=True)
class PlantedResult:
    """The kill table.

    Attributes:
        outcomes: What became of each fault that was run.
        equivalent: The faults that nobody can see.
    """

    outcomes: Sequence[Outcome] = field(default=())
    equivalent: Sequence[PlantedFault] = field(default=())

    @property
    def missed(self) -> list[Outcome]:
        """Gives the faults that no campaign caught."""
        return [outcome for outcome in self.outcomes if outcome.caught_by is None]

    def to_dict(self) -> dict[str, Any]:
        """Gives the document that `durasim crash --planted --json` writes."""
        caught = [outcome for outcome in self.outcomes if outcome.caught_by is not None]
        return {
            "schema": "durasim-planted/1",
            "durasim_version": __version__,
            "planted": len(self.outcomes),
            "caught": len(caught),
            "equivalent": [fault.path for fault in self.equivalent],
            "missed": [outcome.fault.path for outcome in self.missed],
            "seconds_to_catch": {outcome.fault.path: round(outcome.seconds, 3) for outcome in caught},
            "caught_by": {outcome.fault.path: outcome.caught_by for outcome in caught},
            "why_equivalent": {fault.path: fault.equivalent for fault in self.equivalent},
        }


@cache
def planted_faults() -> tuple[PlantedFault, ...]:
    """Gives the faults of all rows that are no controls, in the order of the registry."""
    hardware = json.loads(_core.planted())
    rows = [row for row in design_rows().values() if not row["control"]]
    faults = []
    for row in rows:
        faults += [PlantedFault(row["name"], **planted, in_guest=False) for planted in hardware[row["name"]]]
        faults += _faults_of_runtime(row["name"], row["backend"])
    return tuple(faults)


def _faults_of_runtime(design: str, backend: str) -> Iterator[PlantedFault]:
    for path in sorted((toolchain.guest_folder() / "runtimes" / "planted").glob("*.toml")):
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        for planted in document["planted"] if backend in document["backends"] else ():
            why = planted.get("equivalent")
            why = why.get(backend) if isinstance(why, dict) else why
            yield PlantedFault(design, planted["name"], planted["summary"], why, in_guest=True)


def chosen_faults(design: str | None, names: Sequence[str] | None = None) -> list[PlantedFault]:
    """Gives the faults of `design`, or of all designs, with one of these names, or with any.

    Raises:
        ConfigError: There is no such design or no such fault.
    """
    faults = list(planted_faults())
    if design is not None:
        if design not in design_rows():
            raise unknown_name("design", design, {fault.design for fault in faults})
        faults = [fault for fault in faults if fault.design == design]
        if not faults:
            raise unknown_name("design", design, {fault.design for fault in planted_faults()})
    known = {fault.name for fault in faults}
    for name in names or ():
        if name not in known:
            raise unknown_name("fault", name, known)
    return [fault for fault in faults if not names or fault.name in names]


def run_planted(faults: Iterable[PlantedFault], progress: Caught | None = None) -> PlantedResult:
    """Sends each fault through the campaigns of its design until one catches it."""
    outcomes, equivalent = [], []
    for fault in faults:
        if fault.equivalent is not None:
            equivalent.append(fault)
            continue
        outcomes.append(try_fault(fault))
        if progress is not None:
            progress(outcomes[-1])
    return PlantedResult(outcomes, equivalent)


def try_fault(fault: PlantedFault) -> Outcome:
    """Sends a fault through the campaigns of its design until one catches it."""
    started = time.perf_counter()
    for campaign in laboratory_of(fault.design).campaigns:
        objection = first_objection(fault.design, fault, campaign)
        if objection is not None:
            return Outcome(fault, *objection, campaign, time.perf_counter() - started)
    return Outcome(fault, None, "", None, time.perf_counter() - started)


def kill_table(result: PlantedResult) -> RenderableType:
    """Gives the table of all faults, with the oracle and the time of the first catch."""
    caught = len(result.outcomes) - len(result.missed)
    table = Table(title=f"{caught} of {len(result.outcomes)} planted faults caught")
    for column in ("fault", "what goes wrong", "caught by", "in"):
        table.add_column(column)
    table.add_column("seconds", justify="right")
    for outcome in result.outcomes:
        of = outcome.campaign
        where = "" if of is None else f"{of.workload}, {of.threads} threads"
        by = outcome.caught_by or Text("missed", style="bold red")
        table.add_row(outcome.fault.path, outcome.fault.summary, by, where, f"{outcome.seconds:.2f}")
    if not result.equivalent:
        return table
    apart = Table(title=f"{len(result.equivalent)} faults that nobody can see")
    for column in ("fault", "what goes wrong", "why it cannot be seen"):
        apart.add_column(column)
    for fault in result.equivalent:
        apart.add_row(fault.path, fault.summary, fault.equivalent)
    return Group(table, apart)


INSTRUCTIONS_MAX = 20_000_000
"""Instructions after which a program counts as stuck: with a fault it may never end."""

# A machine that refuses a transaction for its size says nothing of the fault, which may have made it run another way.
_TOO_LARGE = "(cause 0x200)"


def first_objection(design: str, fault: PlantedFault | None, campaign: ShortCampaign) -> tuple[str, str] | None:
    """Runs one campaign on a design with a fault, or without one; the first objection: who, and what.

    Raises:
        ConfigError: The campaign does not fit the design.
        HostIoError, ToolchainError: The guest program cannot be had.
    """
    request = request_of(design, fault, campaign)
    try:
        document = json.loads(_core.crash(json.dumps(request)))
    except (GuestFault, StuckError, InternalError) as error:
        if fault is not None and _TOO_LARGE in str(error):
            return None
        return "run", str(error)
    if not document["violations"]:
        return None
    first = document["failures"][0]
    return first["oracle"], first["message"]


def request_of(design: str, fault: PlantedFault | None, campaign: ShortCampaign) -> dict[str, Any]:
    """Gives the request for the compiled half."""
    scenario = Scenario(
        design=design,
        workload=campaign.workload,
        machine="tiny",
        ops=campaign.ops,
        threads=campaign.threads,
        settings=campaign.settings,
        domain=campaign.domain,
        workload_args=campaign.arguments,
        max_instructions=INSTRUCTIONS_MAX,
    )
    request = crash_request(scenario, CrashOptions(campaign.points, campaign.faults))
    in_guest = fault is not None and fault.in_guest
    if in_guest or campaign.rehearsals:
        program = toolchain.build(
            campaign.workload, scenario.backend, history=True, planted=in_guest, rehearsals=campaign.rehearsals
        )
        request["elf"] = str(program)
    if fault is None:
        return request
    if not fault.in_guest:
        return request | {"planted": fault.name}
    for arguments in ("args", "recover_args", "check_args", "again_args"):
        request[arguments] = [*request[arguments], "--planted", fault.name]
    return request

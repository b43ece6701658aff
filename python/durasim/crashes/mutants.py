"""Mutation tests: inject one planted fault at a time into a design; crash campaigns must catch each mutant.

A fault is an entry in the list of a hardware design (its `planted.rs`) or of a software runtime
(`guest/runtimes/planted`). A mutant goes through a fixed list of short campaigns until the first violation.
Equivalent mutants, which behave like the design, are listed with the reason and are not run.
"""

from __future__ import annotations

import json
import shlex
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

from durasim import _core
from durasim._core import __version__
from durasim.crashes.crash_request import CrashOptions, crash_request
from durasim.crashes.test_plans import ShortCampaign, plan_of
from durasim.errors import GuestFault, InternalError, StuckError, unknown_name
from durasim.own_core import command
from durasim.programs import workload_tables
from durasim.runs.scenario import Scenario, design_variants, variant_name, workload_info
from durasim.store.reuse import Reuse

Tried = Callable[["Outcome"], None]
"""Called with the outcome of each mutant as soon as it is known."""


@dataclass(frozen=True)
class Mutant:
    """A design with one planted fault.

    Attributes:
        design: The design.
        name: Name of the fault, unique in the design.
        summary: The fault in one sentence.
        equivalent: Reason why it is equivalent to the design, if it is.
        in_guest: Whether the fault is in the guest's runtime instead of the hardware.
    """

    design: str
    name: str
    summary: str
    equivalent: str | None
    in_guest: bool

    @property
    def path(self) -> str:
        """Name, unique over the mutants of all designs."""
        return f"{self.design}/{self.name}"


class Objection(NamedTuple):
    """First violation that a campaign detected.

    Attributes:
        oracle: The oracle that reported it, or `run` if the program failed before any crash.
        message: The message of the oracle.
        seed: The seed of the campaign's run.
    """

    oracle: str
    message: str
    seed: int


@dataclass(frozen=True)
class Outcome:
    """Outcome of a mutant.

    Attributes:
        mutant: The mutant.
        objection: First violation of the first campaign that caught it; None if none did.
        campaign: The campaign that caught it.
        seconds: Host time of its campaigns up to the first one that caught it; that of stored ones is of the time when
            they were simulated.
    """

    mutant: Mutant
    objection: Objection | None
    campaign: ShortCampaign | None
    seconds: float

    @property
    def caught_by(self) -> str | None:
        """The oracle of the first violation, or `run` for a failure before any crash; None without a violation."""
        return None if self.objection is None else self.objection.oracle


@dataclass(frozen=True)
class MutationResult:
    """Outcomes of all mutants.

    Attributes:
        outcomes: Outcome of each mutant that was run.
        equivalent: The mutants that are equivalent to the design.
    """

    outcomes: Sequence[Outcome] = field(default=())
    equivalent: Sequence[Mutant] = field(default=())

    @property
    def missed(self) -> list[Outcome]:
        """Returns the mutants that no campaign caught."""
        return [outcome for outcome in self.outcomes if outcome.caught_by is None]

    def to_dict(self) -> dict[str, Any]:
        """Returns the document that `durasim mutation --json` writes."""
        caught = [outcome for outcome in self.outcomes if outcome.caught_by is not None]
        return {
            "schema": "durasim-mutation/1",
            "durasim_version": __version__,
            "mutants": len(self.outcomes),
            "caught": len(caught),
            "equivalent": [mutant.path for mutant in self.equivalent],
            "missed": [outcome.mutant.path for outcome in self.missed],
            "seconds_to_catch": {outcome.mutant.path: round(outcome.seconds, 3) for outcome in caught},
            "caught_by": {outcome.mutant.path: outcome.caught_by for outcome in caught},
            "caught_with_seed": {
                outcome.mutant.path: outcome.objection.seed for outcome in caught if outcome.objection
            },
            "why_equivalent": {mutant.path: mutant.equivalent for mutant in self.equivalent},
        }


@cache
def all_mutants() -> tuple[Mutant, ...]:
    """Returns the mutants of all designs except controls, in the order of the registry."""
    hardware = json.loads(_core.planted())
    variants = [variant for variant in design_variants().values() if not variant["control"]]
    mutants: list[Mutant] = []
    for variant in variants:
        mutants += [Mutant(variant["name"], **planted, in_guest=False) for planted in hardware[variant["name"]]]
        mutants += _mutants_of_runtime(variant["name"], variant["backend"])
    return tuple(mutants)


def _mutants_of_runtime(design: str, backend: str) -> Iterator[Mutant]:
    for path in sorted((workload_tables.guest_folder() / "runtimes" / "planted").glob("*.toml")):
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        for planted in document["planted"] if backend in document["backends"] else ():
            why = planted.get("equivalent")
            why = why.get(backend) if isinstance(why, dict) else why
            yield Mutant(design, planted["name"], planted["summary"], why, in_guest=True)


def chosen_mutants(design: str | None = None, names: Sequence[str] | None = None) -> list[Mutant]:
    """Returns the mutants of `design`, or of all designs, restricted to these names if given.

    Raises:
        ConfigError: The design or a mutant is unknown.
    """
    mutants = list(all_mutants())
    if design is not None:
        durable = dict.fromkeys(mutant.design for mutant in mutants)
        mutants = [mutant for mutant in mutants if mutant.design == variant_name(design)]
        if not mutants:
            raise unknown_name("design", design, durable)
    known = {mutant.name for mutant in mutants}
    for name in names or ():
        if name not in known:
            raise unknown_name("mutant", name, known)
    return [mutant for mutant in mutants if not names or mutant.name in names]


@dataclass(frozen=True)
class OwnWorkload:
    """A workload that replaces those of all campaigns.

    Attributes:
        name: Its name, or the path of its source.
        macros: Macros with which it is compiled.
        include_folders: Folders of its headers.
    """

    name: str
    macros: tuple[str, ...] = ()
    include_folders: tuple[str, ...] = ()

    def in_place_of(self, campaign: ShortCampaign) -> ShortCampaign:
        """Returns a campaign with this workload, at the sizes of its short run."""
        small = dict(workload_info(self.name).small)
        small.pop("ops", None)
        arguments = tuple((name, str(value)) for name, value in small.items())
        return replace(
            campaign, workload=self.name, arguments=arguments, macros=self.macros, include_folders=self.include_folders
        )

    def words(self) -> list[str]:
        """Returns the options that name it, as words of a command."""
        macros = [word for macro in self.macros for word in ("-D", macro)]
        return ["--workload", self.name, *macros, *(word for folder in self.include_folders for word in ("-I", folder))]


class Verdicts:
    """Crashes mutants, or takes the results from a store."""

    KIND = "mutant"
    """Their kind in a store."""

    def __init__(self, reuse: Reuse, repeated_by: str = "") -> None:
        """`repeated_by` is the command that repeats the mutant."""
        self._reuse, self._command = reuse, repeated_by
        self.seconds = 0.0
        """Host time of all simulations, stored ones included."""

    def of(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the document of a campaign, or `error` with the sentence of a program that fails before any crash."""
        key, document = self._reuse.find(self.KIND, request, with_errors=True)
        if document is None:
            began, is_sure = time.perf_counter(), True
            try:
                document = json.loads(_core.crash(json.dumps(request)))
            except (GuestFault, StuckError, InternalError) as error:
                document = {"error": str(error)}
                # The host may be the reason of an internal error: it is no result to keep.
                is_sure = not isinstance(error, InternalError)
            document.setdefault("host", {"seconds": time.perf_counter() - began})
            self._reuse.keep(key if is_sure else None, self.KIND, request, document, self._command)
        self.seconds += float(document["host"]["seconds"])
        return document


def run_mutants(
    mutants: Iterable[Mutant],
    progress: Tried | None = None,
    workload: OwnWorkload | None = None,
    reuse: Reuse | None = None,
) -> MutationResult:
    """Runs the campaigns of each mutant's design until one catches it.

    Args:
        mutants: The mutants.
        progress: Called with each outcome.
        workload: Replaces the workloads of the campaigns.
        reuse: The store that answers campaigns of mutants and keeps new results.
    """
    outcomes, equivalent, kept = [], [], reuse or Reuse(None)
    for mutant in mutants:
        if mutant.equivalent is not None:
            equivalent.append(mutant)
            continue
        try:
            outcomes.append(try_mutant(mutant, workload, kept))
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(f"the outcomes of {len(outcomes)} mutants {kept.kept()}")
            raise
        if progress is not None:
            progress(outcomes[-1])
    return MutationResult(outcomes, equivalent)


def try_mutant(mutant: Mutant, workload: OwnWorkload | None = None, reuse: Reuse | None = None) -> Outcome:
    """Runs the campaigns of a mutant's design until one catches it; see `run_mutants`."""
    words = [command(), "mutation", "--design", mutant.design, "--mutant", mutant.name]
    verdicts = Verdicts(reuse or Reuse(None), shlex.join(words + ([] if workload is None else workload.words())))
    planned = plan_of(mutant.design).campaigns
    for campaign in planned if workload is None else map(workload.in_place_of, planned):
        objection = first_objection(mutant.design, mutant, campaign, verdicts)
        if objection is not None:
            _require_that_sound_runs_end(mutant.design, campaign, objection)
            return Outcome(mutant, objection, campaign, verdicts.seconds)
    return Outcome(mutant, None, None, verdicts.seconds)


def _require_that_sound_runs_end(design: str, campaign: ShortCampaign, objection: Objection) -> None:
    """Refuses a campaign in which the correct design exceeds the limit: all faults would count as caught.

    Raises:
        InternalError: The campaign is too long.
    """
    if _TOO_LONG in objection.message and first_objection(design, None, campaign) is not None:
        message = (
            f"a campaign of {design} ({campaign.workload}, {campaign.ops} operations) exceeds the instruction limit "
            "even without a fault"
        )
        raise InternalError(message)


INSTRUCTIONS_MAX = 60_000_000
"""Instruction limit of a program: with a fault it may not terminate."""

# Message of the Rust core for a program that exceeds the limit.
_TOO_LONG = "it needs more instructions than it may have"

# The machine may refuse a transaction for its size. That does not detect the fault, which may only change the path.
_TOO_LARGE = "(cause 0x200)"


def first_objection(
    design: str, mutant: Mutant | None, campaign: ShortCampaign, verdicts: Verdicts | None = None
) -> Objection | None:
    """Runs one campaign with all its seeds on a mutant, or on the correct design, and returns the first violation.

    Args:
        design: The design.
        mutant: The mutant; None for the correct design.
        campaign: The campaign.
        verdicts: Gives the result of each crash; simulates all if None.

    Raises:
        ConfigError: The campaign does not fit the design.
        HostIoError, ToolchainError: The guest program cannot be built or read.
    """
    given = verdicts or Verdicts(Reuse(None))
    objections = (_objection(design, mutant, campaign, seed, given) for seed in range(1, campaign.seeds + 1))
    return next(filter(None, objections), None)


def _objection(
    design: str, mutant: Mutant | None, campaign: ShortCampaign, seed: int, verdicts: Verdicts
) -> Objection | None:
    document = verdicts.of(request_of(design, mutant, campaign, seed))
    if "error" in document:
        if mutant is not None and _TOO_LARGE in document["error"]:
            return None
        return Objection("run", document["error"], seed)
    if not document["violations"]:
        return None
    first = document["failures"][0]
    return Objection(first["oracle"], first["message"], seed)


def request_of(design: str, mutant: Mutant | None, campaign: ShortCampaign, seed: int) -> dict[str, Any]:
    """Returns the request for the Rust core."""
    scenario = Scenario(
        design=design,
        workload=campaign.workload,
        machine="tiny",
        ops=campaign.ops,
        threads=campaign.threads,
        seed=seed,
        settings=campaign.settings,
        domain=campaign.domain,
        workload_args=campaign.arguments,
        macros=campaign.macros,
        include_folders=campaign.include_folders,
        max_instructions=INSTRUCTIONS_MAX,
    )
    in_guest = mutant is not None and mutant.in_guest
    options = CrashOptions(campaign.points, campaign.faults)
    request = crash_request(scenario, options, planted=in_guest, rehearsals=campaign.rehearsals)
    if mutant is None:
        return request
    if not mutant.in_guest:
        return request | {"planted": mutant.name}
    for arguments in ("args", "recover_args", "check_args", "again_args"):
        request[arguments] = [*request[arguments], "--planted", mutant.name]
    return request

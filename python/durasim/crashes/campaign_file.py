"""Campaign files: TOML with sweeps of runs that must survive and controls that must end as expected."""

from __future__ import annotations

import dataclasses
import itertools
import os
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durasim.crashes.crash_request import FIELDS, CrashOptions, check_options, crash_request, has, options_of
from durasim.crashes.test_plans import plan_of
from durasim.documents.described_crash import DEFAULT_FAULTS
from durasim.documents.toml_files import read_toml, schema_named, validate
from durasim.errors import refusal, unknown_name
from durasim.programs import suites
from durasim.programs.workload_tables import is_path
from durasim.runs import settings as parameter_settings
from durasim.runs.scenario import (
    OWN_OPTIONS,
    Scenario,
    check_argument,
    design_variants,
    settings_of,
    variant_name,
    workload_info,
)

if TYPE_CHECKING:
    from durasim.programs.workload_tables import Argument

SHIPPED = Path(__file__).parents[1] / "campaigns"
MACHINE = "tiny"
POINTS = 200
OPS = 20
ROUND_SEEDS = 1000
"""Increment of all seeds from one round of a campaign to the next."""


@dataclass(frozen=True, slots=True)
class Control:
    """Purpose of a control run.

    Attributes:
        name: Its name in the table.
        why: Reason for the expected end.
        expects: "violation" or "survival".
        mutant: The planted fault of the hardware.
    """

    name: str
    why: str
    expects: str
    mutant: str | None


@dataclass(frozen=True, slots=True)
class Unit:
    """One crashed run of a campaign: the unit that is done or not done as a whole."""

    scenario: Scenario
    options: CrashOptions
    control: Control | None = None

    def request(self) -> dict[str, Any]:
        """Returns the request for the Rust core; builds the guest program if needed."""
        planted = {} if self.control is None or self.control.mutant is None else {"planted": self.control.mutant}
        return crash_request(self.scenario, self.options) | planted


@dataclass(frozen=True, slots=True)
class CampaignFile:
    """The content of a campaign file.

    Attributes:
        name: Its name.
        marks: Whether the campaign fails if a declared mark is never hit.
        mutants: Designs whose mutants must be caught.
        trials: Required number of trials, in rounds with new seeds; None for one round.
        tables: The file.
    """

    name: str
    marks: bool
    mutants: tuple[str, ...]
    trials: int | None
    tables: Mapping[str, Any]

    def units(self, round_number: int = 0) -> list[Unit]:
        """Returns the runs of a round; controls run in the first round.

        Raises:
            ConfigError: A name or number is not allowed.
        """
        controls = [_control(table) for table in self.tables.get("control", [])] if round_number == 0 else []
        swept = [unit for table in self.tables.get("sweep", []) for unit in _sweep(table, round_number)]
        programs = [unit for table in self.tables.get("program", []) for unit in _program(table, round_number)]
        for unit in (*controls, *swept, *programs):
            unit.scenario.check()
            check_options(unit.options)
        return controls + swept + programs

    def mutated_designs(self) -> list[str]:
        """Returns the designs whose mutants must be caught."""
        return _design_names(list(self.mutants))

    def designs(self) -> list[str]:
        """Returns the designs of all sweeps and programs."""
        tables = [*self.tables.get("sweep", []), *self.tables.get("program", [])]
        return sorted({name for table in tables for name in _design_names(table["designs"])})


def shipped() -> list[str]:
    """Returns the names of the campaigns included in durasim."""
    return sorted(file.stem for file in SHIPPED.glob("*.toml") if "name" in read_toml(file, "campaign"))


def read(path: str) -> CampaignFile:
    """Reads and checks a campaign file; a name without suffix, such as `quick`, is one included in durasim.

    Raises:
        ConfigError: The file is not TOML, or not a campaign.
        HostIoError: The file cannot be read.
    """
    file = Path(path)
    if path in shipped():
        file = SHIPPED / f"{path}.toml"
    schema = schema_named("campaign-file")
    tables = read_toml(file, "campaign")
    validate(tables, schema, "campaign")
    _find_sources(tables, file.parent)
    for table, kind in itertools.product(tables.get("sweep", []), ("draw", "draw_args")):
        for name, choice in table.get(kind, {}).items():
            _check_range(kind, name, choice)
    for name in tables.get("controls", []):
        controls = read_toml(file.parent / name, "campaign")
        only = {"type": "object", "required": ["control"], "additionalProperties": False}
        of_controls = {"control": schema["properties"]["control"]}
        validate(controls, only | {"properties": of_controls, "$defs": schema["$defs"]}, "campaign", f"{name}: ")
        _find_sources(controls, (file.parent / name).parent)
        tables["control"] = [*tables.get("control", []), *controls["control"]]
    return CampaignFile(
        tables["name"], tables.get("marks", False), tuple(tables.get("mutants", ())), tables.get("trials"), tables
    )


def _find_sources(tables: dict[str, Any], folder: Path) -> None:
    """Replaces paths, which are relative to their file, in the sweeps, programs and controls of a file."""
    where = "" if folder == Path() else os.fspath(folder)

    def found(name: str) -> str:
        return os.path.join(where, name) if is_path(name) else name  # noqa: PTH118 - a text

    for table in tables.get("sweep", []):
        table["workloads"] = [found(name) for name in table["workloads"]]
        if "workload_args" in table:
            table["workload_args"] = {found(name): given for name, given in table["workload_args"].items()}
    for table in tables.get("control", []):
        table["workload"] = found(table["workload"])
    for table in tables.get("program", []):
        table |= {name: os.path.join(where, table[name]) for name in ("elf", "root") if name in table}  # noqa: PTH118


def _design_names(names: list[str]) -> list[str]:
    durable = [name for name, variant in design_variants().items() if not variant["control"]]
    designs = [design for name in names for design in (durable if name == "durable" else [name])]
    for design in designs:
        if variant_name(design) not in design_variants():
            raise unknown_name("design", design, design_variants())
    return designs


def _options(table: Mapping[str, Any]) -> CrashOptions:
    keys = {name: table[name] for name in FIELDS if has(name, "file") and name in table}
    return options_of({"points": POINTS, "faults": DEFAULT_FAULTS, **keys, "workers": 1})


def _args(*tables: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    merged = {name: value for table in tables for name, value in table.items()}
    return tuple(
        (name, str(value).lower() if isinstance(value, bool) else str(value)) for name, value in merged.items()
    )


def _check_range(kind: str, name: str, choice: Any) -> None:
    if isinstance(choice, Mapping) and choice["from"] > choice["to"]:
        raise refusal(kind, f"{name}: a range from {choice['from']} to {choice['to']} is empty")


def _drawn(choices: Mapping[str, Any], *run: object) -> dict[str, Any]:
    """Returns the random values of a run: equal for equal runs, different in each round."""
    values = random.Random(" ".join(map(str, run)))  # noqa: S311 - not used for secrets
    return {
        name: values.randint(choice["from"], choice["to"]) if isinstance(choice, Mapping) else values.choice(choice)
        for name, choice in choices.items()
    }


@cache
def _arguments(design: str, workload: str) -> Mapping[str, Argument]:
    """Returns the arguments of a workload over the runtime of a design that have no key of their own."""
    found = Scenario(design=design, workload=workload).arguments()
    return {name: argument for name, argument in found.items() if name not in OWN_OPTIONS}


def _drawn_args(table: Mapping[str, Any], *run: object) -> dict[str, Any]:
    """Returns the random arguments of a run, as far as its workload and runtime have them."""
    design, workload, *_ = map(str, run)
    drawn = _drawn(table.get("draw_args", {}), "arguments", *run)
    return {name: value for name, value in drawn.items() if name in _arguments(design, workload)}


def _check_drawn_args(table: Mapping[str, Any], pairs: Iterable[tuple[str, str]]) -> None:
    """Refuses a random argument that no run of a sweep has, that is also given, or whose values no run takes."""
    drawn, found = table.get("draw_args", {}), list(pairs)
    known = {name for pair in found for name in _arguments(*pair)} if drawn else set()
    given = [table.get("args", {}), *table.get("workload_args", {}).values(), *table.get("design_args", {}).values()]
    for name, choice in drawn.items():
        if name not in known:
            raise unknown_name("draw_args", name, known)
        if any(name in args for args in given):
            raise refusal("draw_args", f"'{name}' is drawn and given")
        values = _args({str(n): value for n, value in enumerate(_ends(choice))})
        for arguments in (_arguments(*pair) for pair in found):
            for _, value in values if name in arguments else ():
                check_argument(arguments[name], value)


def _ends(choice: Any) -> Iterable[Any]:
    """Returns the values of a list, or both ends of a range."""
    return choice.values() if isinstance(choice, Mapping) else choice


def _sweep(table: Mapping[str, Any], round_number: int) -> Iterator[Unit]:
    designs, workloads = _design_names(table["designs"]), suites.expand(table["workloads"])
    is_small, overflows = table.get("small", False), table.get("overflow", False)
    if overflows:
        designs = [design for design in designs if plan_of(design).overflow_settings]
    common = settings_of({**table.get("set", {}), **dict.fromkeys(table.get("draw", {}), "")})
    parameter_settings.check_any(common, map(_hardware, designs))
    _check_drawn_args(table, (pair for pair in itertools.product(designs, workloads) if _fits(table, *pair)))
    seeds = [1 + ROUND_SEEDS * round_number + n for n in range(table.get("seeds", 1))]
    for design, workload, threads, seed in itertools.product(designs, workloads, table.get("threads", [1]), seeds):
        if not _fits(table, design, workload):
            continue
        sizes = dict(workload_info(workload).small) if is_small else {"ops": OPS}
        ops = table.get("ops", sizes.pop("ops"))
        overflow = dict(pair.split("=", 1) for pair in plan_of(design).overflow_settings) if overflows else {}
        own = table.get("workload_args", {}).get(workload, {})
        run = design, workload, threads, seed
        drawn, of_design = _drawn(table.get("draw", {}), *run), table.get("design_set", {}).get(design, {})
        for_all = {**table.get("set", {}), **drawn, **overflow}
        all_settings = {name: value for name, value in for_all.items() if name not in of_design}
        settings = parameter_settings.of_design(settings_of(all_settings), _hardware(design))
        of_runtime = table.get("design_args", {}).get(design, {})
        scenario = Scenario(
            design=design,
            workload=workload,
            machine=table.get("machine", MACHINE),
            ops=int(ops),
            threads=threads,
            seed=seed,
            settings=settings + settings_of(of_design),
            workload_args=_args(sizes, table.get("args", {}), own, _drawn_args(table, *run), of_runtime),
        )
        tolerated = design_variants()[variant_name(design)]["domains"]
        for domain in tolerated if table.get("domains") == "all" else [None]:
            yield Unit(dataclasses.replace(scenario, domain=domain), _options(table))


def _program(table: Mapping[str, Any], round_number: int) -> Iterator[Unit]:
    """Yields the runs of a program of the user, with its number of threads and seed in its arguments."""
    of_check = {"check_args": table["check"], "again_args": table.get("again"), "oracles": table.get("oracle")}
    texts = [*table.get("args", ()), table["check"], table.get("again", "")]
    if "threads" in table and not any("{threads}" in text for text in texts):
        raise refusal("program", f"threads of {table['elf']} have no effect: no argument has {{threads}}")
    keys = {name: table[name] for name in FIELDS if has(name, "file") and name in table}
    seeds = [1 + ROUND_SEEDS * round_number + n for n in range(table.get("seeds", 1))]
    for design, threads, seed in itertools.product(_design_names(table["designs"]), table.get("threads", [1]), seeds):

        def filled(text: str, threads: int = threads, seed: int = seed) -> str:
            return text.replace("{threads}", str(threads)).replace("{seed}", str(seed))

        scenario = Scenario(
            design=design,
            elf=table["elf"],
            args=tuple(map(filled, table.get("args", []))),
            env=tuple(table.get("env", ())),
            root=table.get("root"),
            machine=table.get("machine", MACHINE),
            seed=seed,
            settings=parameter_settings.of_design(settings_of(table.get("set", {})), _hardware(design)),
        )
        of_run = {name: filled(text) if isinstance(text, str) else text for name, text in of_check.items()}
        options = options_of({"points": POINTS, **keys, **of_run, "workers": 1})
        tolerated = design_variants()[variant_name(design)]["domains"]
        for domain in tolerated if table.get("domains") == "all" else [None]:
            yield Unit(dataclasses.replace(scenario, domain=domain), options)


def _hardware(design: str) -> str:
    """Returns the hardware of a design."""
    return str(design_variants()[variant_name(design)]["hardware"])


def _fits(table: Mapping[str, Any], design: str, workload: str) -> bool:
    """Whether the sweep includes this pair. A design that the file names is included, and refused later if need be."""
    is_named = design in table["designs"]
    return is_named or workload_info(workload).interface in design_variants()[variant_name(design)]["interfaces"]


def _control(table: Mapping[str, Any]) -> Unit:
    scenario = Scenario(
        design=table["design"],
        workload=table["workload"],
        machine=table.get("machine", MACHINE),
        ops=table.get("ops", OPS),
        threads=table.get("threads", 1),
        seed=table.get("seed", 1),
        settings=settings_of(table.get("set", {})),
        domain=table.get("domain"),
        control=True,
        workload_args=_args(table.get("args", {})),
    )
    return Unit(scenario, _options(table), Control(table["name"], table["why"], table["expects"], table.get("mutant")))

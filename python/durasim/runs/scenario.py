"""Scenarios: names and options of a simulation, their checks, and the request passed to the Rust core."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from durasim import _core
from durasim.documents.described import RunOptionArguments, RunOptions
from durasim.errors import refusal, unknown_name
from durasim.output import check_writable
from durasim.programs import workload_tables
from durasim.programs.scale import DEFAULT_SCALE, scale_named
from durasim.runs import settings as parameter_settings
from durasim.runs.machine import Machine, machine_option

if TYPE_CHECKING:
    from durasim.programs.workload_tables import Argument, WorkloadInfo

DEFAULT_DESIGN = "opt"
DEFAULT_MACHINE = "hercules-tecs23-modern"
DEFAULT_SEED = 1
_SEED_LIMIT = 2**64
# More than any machine has; the machine file is read later.
_THREADS_MAX = 64
# Arguments of every workload with a dedicated option of the command line and the API.
OWN_OPTIONS = ("ops", "seed", "threads")

Settings = Mapping[str, Any] | Sequence[str]
"""Machine and design parameters: `{"path.to.key": value}` or `["path.to.key=value"]`."""


class CommonArguments(TypedDict, total=False):
    """The fields of a scenario that runs, crashes and comparisons have as arguments of the Python API."""

    machine: str | os.PathLike[str] | Machine
    ops: int | None
    seed: int
    set: Settings | None
    domain: str | None
    control: bool
    elf: str | os.PathLike[str] | None
    args: Iterable[str]
    env: Iterable[str]
    workload_args: Mapping[str, Any] | None
    macros: Iterable[str]
    include_folders: Iterable[str | os.PathLike[str]]


class ComparisonArguments(CommonArguments, RunOptionArguments, total=False):
    """The fields of all scenarios of a comparison as arguments of the Python API."""

    scale: str


class ScenarioArguments(ComparisonArguments, total=False):
    """The fields of a scenario as arguments of the Python API."""

    design: str
    workload: str | None
    threads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario(RunOptions):
    """One simulation: a program, a design, a machine. The fields are the options of the command line.

    `RunOptions`, which are passed to the machine unchanged, are described there.

    Attributes:
        design: Durability design.
        workload: Name of a workload or of a member of a suite, or the path of a workload's source; give either
            `workload` or `elf`.
        machine: Preset, or path of a machine file; the API also accepts a `Machine`.
        ops: Operations in the region of interest; None takes the workload's default.
        threads: Threads of the guest.
        seed: Seed of all random choices.
        settings: Parameters that differ from the machine's, `path.to.key=value` each; the API also accepts a mapping.
        domain: Persistence domain; None takes the design's default.
        control: Permits a case that is expected to fail, such as a domain that the design does not support.
        elf: An RV64GC Linux program; a dynamic one needs `root`.
        args: Its arguments.
        env: Its environment, as `NAME=value`.
        workload_args: Arguments of the workload, by name.
        macros: Macros with which the workload is compiled, `NAME` or `NAME=VALUE` each.
        include_folders: Folders of further headers of the workload.
        scale: Size of machine, design and workload relative to the paper, see `durasim.programs.scale`.
    """

    design: str = DEFAULT_DESIGN
    workload: str | None = None
    machine: str = DEFAULT_MACHINE
    ops: int | None = None
    threads: int = 1
    seed: int = DEFAULT_SEED
    settings: tuple[str, ...] = ()
    domain: str | None = None
    control: bool = False
    elf: str | None = None
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    workload_args: tuple[tuple[str, str], ...] = ()
    macros: tuple[str, ...] = ()
    include_folders: tuple[str, ...] = ()
    scale: str = DEFAULT_SCALE

    def __post_init__(self) -> None:
        object.__setattr__(self, "design", variant_name(self.design))

    def check(self) -> None:
        """Runs the checks that need no machine.

        Raises:
            ConfigError: A name is unknown, a number is out of range, or options exclude each other.
        """
        if self.design not in design_variants():
            raise unknown_name("design", self.design, design_variants())
        if not _is_path(self.machine) and self.machine not in machine_names():
            raise unknown_name("machine", self.machine, machine_names())
        if self.domain is not None and self.domain not in _core.DOMAINS:
            raise unknown_name("domain", self.domain, _core.DOMAINS)
        self._check_program()
        _in_range("seed", self.seed, 0, _SEED_LIMIT - 1)
        _in_range("threads", self.threads, 1, _THREADS_MAX)
        if self.ops is not None:
            _in_range("ops", self.ops, 1, _SEED_LIMIT - 1)
        for option in dataclasses.fields(RunOptions):
            value = getattr(self, option.name)
            if "minimum" in option.metadata and value is not None:
                _in_range(option.name, value, option.metadata["minimum"], _SEED_LIMIT - 1)
        self._check_start()
        _have_equals_sign("set", self.settings, "path.to.key=value")
        parameter_settings.check(self.settings, self.design, str(design_variants()[self.design]["hardware"]))
        _have_equals_sign("env", self.env, "NAME=value")

    def _check_start(self) -> None:
        if not self.warm and self.fast_forward is None and self.from_ is None:
            raise refusal(
                "warm",
                "requires fast_forward or from: it trains caches and predictors for a start after a snapshot point",
            )
        if self.root is not None and self.workload is not None:
            raise refusal("root", "requires --elf: a workload reads no files")
        if (self.snapshot_at is None) != (self.snapshot is None):
            raise refusal("snapshot", "requires both snapshot_at, the snapshot point, and snapshot, the file")
        if self.from_ is not None and self.pool is not None:
            raise refusal("pool", "cannot be combined with --from: the run uses the pool in the snapshot")
        if self.from_ is not None and self.fast_forward is not None:
            raise refusal("fast_forward", "cannot be combined with --from: the run starts at the snapshot")
        mark = self.fast_forward
        if not (mark is None or mark == "roi" or (str(mark).isascii() and str(mark).isdigit())):
            raise refusal("fast_forward", f"'{mark}' is neither 'roi' nor the number of a snapshot point")

    def _check_program(self) -> None:
        if (self.workload is None) == (self.elf is None):
            raise refusal("workload", "give either a workload or a program with --elf")
        if self.workload is not None:
            self._check_interface(self._info())
            if self.args:
                raise refusal(
                    "arguments", "a workload takes --arg name=value; only an --elf program takes arguments after --"
                )
            self._check_workload_args()
        else:
            self._check_elf(self.elf or "")

    def _check_elf(self, elf: str) -> None:
        """Refuses options that do not apply to an external program, and a program built for another backend.

        Designs without a promise run programs without persistence (`plain`), and --control permits any pair.
        """
        if self.scale != DEFAULT_SCALE:
            raise refusal("scale", "applies only to suite workloads, not to --elf programs")
        if self.macros or self.include_folders:
            option = "D" if self.macros else "I"
            raise refusal(option, "applies only to a workload, which is compiled here, not to an --elf program")
        own = {"ops": self.ops is not None, "arg": bool(self.workload_args), "threads": self.threads != 1}
        if given := [option for option, is_given in own.items() if is_given]:
            raise refusal(given[0], "applies only to workloads; give the arguments of an --elf program after --")
        allowed = {self.backend, "plain"} if design_variants()[self.design]["control"] else {self.backend}
        for backend in () if self.control else sorted(set(_core.backends_of(elf)) - allowed):
            raise refusal(
                "elf",
                f"{elf} is built for the backend {backend}, and {self.design} runs programs of the backend "
                f"{self.backend}; build it for that backend, or add --control to run it anyway",
            )

    def _check_interface(self, info: WorkloadInfo) -> None:
        """Refuses a workload with an interface for which the design has no runtime."""
        interfaces = design_variants()[self.design]["interfaces"]
        if info.interface in interfaces:
            return
        fitting = ", ".join(work.name for work in workloads_of(self.design))
        written = " and ".join(interfaces)
        sentence = f"{info.name} is written with {info.interface}, and {self.design} supports only {written}: {fitting}"
        raise refusal("workload", sentence)

    def _check_workload_args(self) -> None:
        known = {name: argument for name, argument in self.arguments().items() if name not in OWN_OPTIONS}
        for name, value in self.workload_args:
            if name in OWN_OPTIONS:
                raise refusal("arg", f"'{name}' has its own option, --{name}")
            if name not in known:
                raise unknown_name(f"arg of {self.workload}", name, known)
            check_argument(known[name], value)
        values = {name: argument.default for name, argument in known.items()} | dict(self.workload_args)
        for name, argument in known.items():
            if argument.is_footprint:
                _check_footprint(name, int(values[name]))

    def check_promise(self) -> None:
        """Refuses a workload with locks that the promise of the design does not cover: no crash could be judged.

        Raises:
            ConfigError: Words of different locks share a line, and the design separates transactions only by lines or
                blocks.
        """
        arguments = self.arguments()
        values = {name: argument.default for name, argument in arguments.items()} | dict(self.workload_args)
        for name, argument in arguments.items():
            if argument.shares_lines is not None and values[name] == argument.shares_lines:
                self._check_sharing(name)

    def _check_sharing(self, name: str) -> None:
        """Refuses words of different locks on one line for a design that separates only larger units."""
        row = design_variants()[self.design]
        larger = {"blocks": "blocks of 32 bytes", "lines": "lines"}
        if self.threads == 1 or self.control or row["control"] or row["locking"] not in larger:
            return
        raise refusal(
            f"arg {name}",
            f"{self.design} requires that different locks protect different {larger[row['locking']]}, and here words "
            f"of different locks share a line; set {name}=false, or add --control to run it anyway",
        )

    def request(self, **build: bool) -> dict[str, Any]:
        """Checks the scenario, builds the guest program if needed, and returns the request passed to the Rust core.

        Args:
            build: The variant of a workload's program, as for `toolchain.build`.

        Raises:
            ConfigError: As from `check`.
            HostIoError: The pool or the snapshot could not be saved.
            ToolchainError: The guest program cannot be built.
        """
        self.check()
        if self.pool is not None:
            check_writable(self.pool)
        if self.snapshot is not None:
            check_writable(self.snapshot)
        options = {option.name.rstrip("_"): getattr(self, option.name) for option in dataclasses.fields(RunOptions)}
        request: dict[str, Any] = options | {
            "machine": self.machine,
            "design": self.design,
            "domain": self.domain,
            "control": self.control,
            "set": parameter_settings.in_bytes(self.settings),
            "shrink": None if self.scale == DEFAULT_SCALE else scale_named(self.scale).divisor,
            "env": list(self.env),
            "seed": self.seed,
            "ops": self.ops,
            "threads": self.threads,
            "fast_forward": None if self.fast_forward is None else str(self.fast_forward),
        }
        if self.elf is not None:
            # The program sees the same bytes as when a shell starts it by that path: C libraries depend on all of them.
            name, link = self._names_in_guest(self.elf)
            return request | {
                "elf": self.elf,
                "elf_name": name,
                "exe_link": link,
                "workload": Path(self.elf).name,
                "args": list(self.args),
                "origin": self._origin({}, None),
            }
        return request | self._workload_request(build)

    def _names_in_guest(self, elf: str) -> tuple[str, str]:
        """Returns the first argument of a program and the target of its `/proc/self/exe`.

        They are paths in the root folder for a program in that folder, and else those of the host.
        """
        real = Path(os.path.realpath(elf))
        if self.root is not None:
            root = Path(os.path.realpath(self.root))
            # The file itself may be a link.
            named = Path(os.path.realpath(Path(elf).parent)) / Path(elf).name
            if named.is_relative_to(root) and real.is_relative_to(root):
                return f"/{named.relative_to(root)}", f"/{real.relative_to(root)}"
        return elf, str(real)

    def _workload_request(self, build: Mapping[str, bool]) -> dict[str, Any]:
        from durasim.programs import own_programs, toolchain  # noqa: PLC0415 - keeps the start-up of others short

        if build.get("history"):
            # Crashes are judged by the history.
            self.check_promise()
        info = self._info()
        flags = own_programs.compiler_flags(self.macros, self.include_folders)
        elf = toolchain.build(info.program, self.backend, flags=flags, **build)
        ops = self.arguments()["ops"].default if self.ops is None else self.ops
        return {
            "elf": os.fspath(elf),
            # The place of a source of the user changes no byte that the program sees.
            "elf_name": Path(info.program).stem,
            "workload": self.workload,
            "ops": ops,
            "args": self.guest_command("run", int(ops)),
            "origin": self._origin(self._values(), toolchain.description_of_compiler()),
        }

    def _origin(self, workload_args: dict[str, Any], guest_compiler: str | None) -> dict[str, Any]:
        """Returns the provenance that the machine does not know."""
        return {
            "durasim_build": _core.__build__,
            "scale": self.scale,
            "workload_args": workload_args,
            "guest_compiler": guest_compiler,
        }

    def _values(self) -> dict[str, Any]:
        """Returns the values of all arguments of the workload's run."""
        given = dict(self.workload_args)
        return {
            name: argument.value_of(given[name]) if name in given else argument.default
            for name, argument in self.arguments().items()
            if name not in OWN_OPTIONS and "run" in argument.commands
        }

    def _info(self) -> WorkloadInfo:
        from durasim.programs import suites  # noqa: PLC0415 - keeps the start-up of other commands short

        return suites.at_scale(workload_info(self.workload or ""), scale_named(self.scale))

    @property
    def backend(self) -> str:
        """Transaction runtime of the workload."""
        return str(design_variants()[self.design]["backend"])

    def arguments(self) -> dict[str, Argument]:
        """Returns the arguments of the workload by name, including those of its transaction runtime."""
        arguments, runtime = self._info().arguments, workload_tables.find_backend(self.backend)
        if runtime is not None:
            arguments += runtime.arguments
        return {argument.name: argument for argument in arguments}

    def guest_command(self, command: str, ops: int) -> list[str]:
        """Returns the command line of the workload for `run`, `check`, `recover` or `recover-and-check`."""
        arguments = self.arguments()
        own = {"ops": ops, "seed": self.seed, "threads": self.threads}
        words = [command]
        given = dict(self._info().given)
        for name, value in (given | own | dict(self.workload_args)).items():
            argument = arguments[name]
            if command not in argument.commands or (argument.type == "flag" and value != "true"):
                continue
            words += [f"--{name}"] if argument.type == "flag" else [f"--{name}", str(value)]
        return words


def scenario_of(
    *,
    set: Settings | None = None,  # noqa: A002 - the name of the option on the command line
    args: Iterable[str] = (),
    env: Iterable[str] = (),
    workload_args: Mapping[str, Any] | None = None,
    macros: Iterable[str] = (),
    include_folders: Iterable[str | os.PathLike[str]] = (),
    **fields: Any,
) -> Scenario:
    """Builds a scenario from the arguments of the API."""
    settings = settings_of(set)
    if "machine" in fields:
        fields["machine"], changed = machine_option(fields["machine"])
        settings = settings_of(changed) + settings
    paths = {name: os.fspath(value) for name, value in fields.items() if isinstance(value, os.PathLike)}
    return Scenario(
        settings=settings,
        args=tuple(args),
        env=tuple(env),
        workload_args=tuple((name, _argument(value)) for name, value in (workload_args or {}).items()),
        macros=tuple(macros),
        include_folders=tuple(map(os.fspath, include_folders)),
        **(fields | paths),
    )


def _argument(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def design_variants() -> dict[str, dict[str, Any]]:
    """Returns the descriptions of the designs in the registry, by name."""
    return {row["name"]: row for row in json.loads(_core.designs())}


def variant_name(name: str) -> str:
    """Returns the name of the design for a name or an alias; unknown names unchanged."""
    return next((row["name"] for row in design_variants().values() if name in row["aliases"]), name)


@cache
def machine_rows() -> dict[str, dict[str, Any]]:
    """Returns the machine presets by name."""
    return {row["name"]: row for row in json.loads(_core.machines())}


def machine_names() -> list[str]:
    """Returns the names of the machine presets."""
    return list(machine_rows())


def workloads_of(design: str) -> list[WorkloadInfo]:
    """Returns the programs that a design has a runtime for.

    Raises:
        ConfigError: The design is unknown.
    """
    if design not in design_variants():
        raise unknown_name("design", design, design_variants())
    interfaces = design_variants()[design]["interfaces"]
    return [work for work in workload_tables.workloads() if work.interface in interfaces]


def workload_info(name: str) -> WorkloadInfo:
    """Returns the description of the workload `name`, which may be a member of a suite or the path of a source.

    Raises:
        ConfigError: The name is unknown.
        ToolchainError: Its table of arguments is missing or wrong.
    """
    from durasim.programs import suites  # noqa: PLC0415 - keeps the start-up of other commands short

    if (program := workload_tables.find_workload(name)) is not None:
        return program
    members = {member.info.name: member.info for member in suites.members()}
    if name not in members:
        names = [*(info.name for info in workload_tables.workloads()), *members]
        raise unknown_name("workload", name, names, "durasim workloads")
    return members[name]


def settings_of(settings: Settings | None) -> tuple[str, ...]:
    """Converts `set=` of the Python API to the form of `--set`."""
    if settings is None:
        return ()
    if isinstance(settings, str):
        raise refusal("set", "expected a mapping or a list of 'path.to.key=value', not one string")
    if isinstance(settings, Mapping):
        return tuple(f"{path}={_literal(value)}" for path, value in settings.items())
    return tuple(settings)


def _literal(value: Any) -> str:
    """Formats a value for `--set`: text unchanged, everything else as a TOML literal."""
    return value if isinstance(value, str) else json.dumps(value)


def _is_path(machine: str) -> bool:
    return machine.endswith(".toml") or os.sep in machine


def _in_range(field: str, value: int, lowest: int, highest: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise refusal(field, f"{value!r} is out of range (allowed: {lowest} to {highest})")


def _have_equals_sign(field: str, values: Sequence[str], form: str) -> None:
    for value in values:
        if "=" not in value:
            raise refusal(field, f"'{value}' is not of the form {form}")


def _available_bytes() -> int:
    """Returns the available memory of the host on Linux; elsewhere its total memory."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_argument(argument: Argument, value: str) -> None:
    """Refuses a value that an argument of a workload does not take.

    Raises:
        ConfigError: It is out of range, of another type or an unknown name.
    """
    field = f"arg {argument.name}"
    if argument.type == "u64":
        if not (value.isascii() and value.isdigit() and argument.minimum <= int(value) <= argument.maximum):
            raise refusal(field, f"'{value}' is not a number from {argument.minimum} to {argument.maximum}")
    elif argument.type == "flag" and value not in ("true", "false"):
        raise refusal(field, f"'{value}' is neither true nor false")
    elif argument.type == "choice" and value not in argument.choices:
        raise unknown_name(field, value, argument.choices)


def _check_footprint(name: str, size_bytes: int) -> None:
    if size_bytes <= (available := _available_bytes()):
        return
    sentence = f"data of {size_bytes:,} bytes do not fit into {available:,} bytes of host memory"
    raise refusal(f"arg {name}", sentence)

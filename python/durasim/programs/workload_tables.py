"""The workloads and the transaction runtimes, as the tables beside their sources describe them."""

from __future__ import annotations

import contextlib
import copy
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from durasim.errors import ToolchainError

SOURCE_SUFFIXES = (".cpp", ".cc", ".cxx")
"""Ends of the names of C++ sources."""
COMMANDS = ("run", "check", "recover", "recover-and-check")
INTERFACES = ("transactions", "objects")
_U64_MAX = 2**64 - 1
# A workload of the user.
_KEYS_OF_OWN = {"argument", "constants", "interface", "small"}
_SMALL_OF_OWN: dict[str, int | str] = {"ops": 20, "populate": 20}
_FILE_NAME = re.compile(r"[a-z0-9-]+")
_WORKLOAD_LINE = re.compile(rf"// durasim-workload: ({_FILE_NAME.pattern}) — (.+)")
# Argument names become fields of a C++ struct.
_ARGUMENT_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Argument:
    """An argument of a workload, given to the program as ``--name value`` (a flag: as ``--name``).

    ``type`` is ``u64``, ``flag``, ``text`` or ``choice``; ``commands`` are the subcommands that take the argument. With
    ``is_footprint`` the value is a size in bytes that must fit into memory. With ``shares_lines`` locks share lines.
    """

    name: str
    type: str
    default: int | bool | str
    help: str
    commands: tuple[str, ...] = COMMANDS
    minimum: int = 0
    maximum: int = _U64_MAX
    choices: tuple[str, ...] = ()
    is_footprint: bool = False
    shares_lines: str | None = None

    def to_dict(self) -> dict[str, object]:
        """Returns the description of the argument for lists."""
        return {key: value for key, value in asdict(self).items() if key not in ("is_footprint", "shares_lines")}

    def value_of(self, text: str) -> int | bool | str:
        """Converts the value of an option of the command line."""
        return int(text) if self.type == "u64" else text == "true" if self.type == "flag" else text


PLANTED_ARGUMENT = Argument(
    "planted", "text", "none", "the fault that the runtime shall have", ("run", "recover", "recover-and-check")
)
"""Argument of programs built with planted faults."""


@dataclass(frozen=True)
class WorkloadInfo:
    """A workload, described by the first line of its source and its table of arguments.

    The table of a workload of a family names the common ``source``, and has the ``constants`` that differ: each is the
    macro ``DURASIM_NAME`` in that source.

    ``small`` are arguments of a run short enough to crash at each of its events. A workload of a suite has its own name
    and the arguments ``given`` to ``program`` instead of the defaults of ``program``; ``quick`` are those of a run with
    smaller data and a smaller machine. ``interface`` is ``transactions`` (durasim/tx.h) or ``objects``
    (durasim/objects.h). ``program`` is the name of the program, or the path of its source if it is one of the user.
    """

    name: str
    description: str
    source: Path
    arguments: tuple[Argument, ...]
    small: dict[str, int | str]
    program: str
    interface: str = "transactions"
    constants: dict[str, int | str] = field(default_factory=dict)
    given: dict[str, int | str] = field(default_factory=dict)
    quick: dict[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True)
class BackendInfo:
    """A runtime for the workloads of its ``interfaces``, as ``guest/backends/NAME.toml`` describes it."""

    name: str
    description: str
    arguments: tuple[Argument, ...]
    interfaces: tuple[str, ...] = ("transactions",)

    @property
    def define(self) -> str:
        """The definition with which a program is compiled for it."""
        return f"DURASIM_BACKEND={self.name}"


def guest_folder() -> Path:
    """Returns the folder with the headers, runtimes and workloads: in a checkout a link to that of the repository.

    Raises ToolchainError if it is not installed.
    """
    folder = (Path(__file__).parents[1] / "guest").resolve()
    if not (folder / "include" / "durasim").is_dir():
        raise ToolchainError(f"the guest sources are missing: the folder {folder} does not exist")
    return folder


def workloads() -> list[WorkloadInfo]:
    """Returns all workloads in ``guest/workloads``, by name. Common arguments come before a workload's own.

    A workload with a missing or wrong table is skipped, so that the others remain usable.
    """
    return [work for work in _read_workloads().values() if isinstance(work, WorkloadInfo)]


def broken_workloads() -> dict[str, ToolchainError]:
    """Returns the skipped workloads by name, with the reasons."""
    return {name: work for name, work in _read_workloads().items() if isinstance(work, ToolchainError)}


_unchanged: ContextVar[dict[Any, Any] | None] = ContextVar("unchanged", default=None)


@contextlib.contextmanager
def unchanged_sources() -> Iterator[None]:
    """Takes the sources of guest programs as unchanged: each table is read and each program is built once.

    For thousands of simulations, whose requests otherwise look at all sources each.
    """
    token = _unchanged.set({})
    try:
        yield
    finally:
        _unchanged.reset(token)


def once(key: Any, make: Callable[[], Any]) -> Any:
    """Returns the result of `make`, made once for each key in `unchanged_sources` and each time elsewhere."""
    known = _unchanged.get()
    if known is None:
        return make()
    if key not in known:
        known[key] = make()
    return known[key]


def _read_workloads() -> dict[str, WorkloadInfo | ToolchainError]:
    folder = guest_folder() / "workloads"
    found: dict[str, WorkloadInfo | ToolchainError] = {}
    # In the order of the file names: btree-large.cpp is before btree.cpp.
    names = {path.stem for kind in ("*.cpp", "*.toml") for path in folder.glob(kind)}
    for name in sorted(names, key=lambda name: f"{name}."):
        try:
            work = find_workload(name)
        except ToolchainError as problem:
            found[name] = problem
        else:
            if work is not None:
                found[name] = work
    return found


def is_path(name: str) -> bool:
    """Whether a workload is given by the path of its source and not by a name."""
    return "." in name or os.sep in name


def find_workload(name: str) -> WorkloadInfo | None:
    """Returns one workload: that of a source of the user by its path, or of ``guest/workloads`` by its name.

    Returns None if there is none of that name. The tables of the others are not read. Raises ToolchainError if its
    source or its table is missing or wrong.
    """
    find = _own_workload if is_path(name) else _find_workload_now
    found: WorkloadInfo | None = once(("workload", name), lambda: find(name))
    return found


def _own_workload(path: str) -> WorkloadInfo:
    """Returns the workload of a source of the user. Its first line may describe it, a table beside it is optional."""
    source = Path(path)
    if source.suffix not in SOURCE_SUFFIXES:
        endings = f"{', '.join(SOURCE_SUFFIXES[:-1])} or {SOURCE_SUFFIXES[-1]}"
        raise ToolchainError(f"{path} is not the source of a workload: its name does not end in {endings}")
    try:
        first_line = _first_line(source, *state_of(source))
    except (OSError, ToolchainError) as error:
        cause = error.__cause__ if isinstance(error, ToolchainError) else error
        raise ToolchainError(f"the source file {path} cannot be read: {getattr(cause, 'strerror', cause)}") from cause
    except UnicodeDecodeError:
        raise ToolchainError(f"the source file {path} is not text in UTF-8") from None
    described, table = _WORKLOAD_LINE.fullmatch(first_line), source.with_suffix(".toml")
    summary = described[2] if described else f"the workload of {source.name}"
    document = _document(table) if table.is_file() else {}
    if unknown := set(document) - _KEYS_OF_OWN:
        allowed = ", ".join(sorted(_KEYS_OF_OWN))
        raise ToolchainError(f"{table}: unknown key {min(unknown)!r} (allowed: {allowed})")
    interface = _interface_of(table, document)
    shipped = guest_folder() / "workloads"
    arguments = _read_arguments(shipped / "common.toml")
    if interface == "objects":
        arguments += _read_arguments(shipped / "objects.toml")
    own = _read_arguments(table) if document else ()
    if twice := {argument.name for argument in arguments} & {argument.name for argument in own}:
        raise ToolchainError(f"{table}: every workload has the argument {min(twice)!r} already: choose another name")
    arguments += own
    small = _read_small(table, arguments) if "small" in document else dict(_SMALL_OF_OWN)
    constants = dict(document.get("constants", {}))  # type: ignore[call-overload]
    return WorkloadInfo(source.stem, summary, source, arguments, small, path, interface, constants)


def _find_workload_now(name: str) -> WorkloadInfo | None:
    if not _FILE_NAME.fullmatch(name):
        return None
    folder = guest_folder() / "workloads"
    program, table = folder / f"{name}.cpp", folder / f"{name}.toml"
    if program.is_file():
        if table.is_file() and "source" in _document(table):
            raise ToolchainError(f"{table}: the key 'source' is for workloads without a program {name}.cpp")
        source, summary = program, _summary_of(program)
    else:
        document = _document(table) if table.is_file() else {}
        if "source" not in document and "summary" not in document:
            return None
        if "source" not in document:
            raise ToolchainError(f"{table}: there is no program {name}.cpp, and the key 'source' names none")
        source, summary = folder / str(document["source"]), str(document.get("summary", ""))
    return _read_workload(name, summary, source, table, _read_arguments(folder / "common.toml"))


def backends() -> list[BackendInfo]:
    """Returns all transaction runtimes, by name."""
    return [_read_backend(path) for path in sorted((guest_folder() / "backends").glob("*.toml"))]


def find_backend(name: str) -> BackendInfo | None:
    """Returns one transaction runtime, or None if there is none. Raises ToolchainError if its table is wrong."""
    found: BackendInfo | None = once(("backend", name), lambda: _find_backend_now(name))
    return found


def _find_backend_now(name: str) -> BackendInfo | None:
    path = guest_folder() / "backends" / f"{name}.toml"
    return _read_backend(path) if _FILE_NAME.fullmatch(name) and path.is_file() else None


def _read_backend(path: Path) -> BackendInfo:
    table = _document(path)
    try:
        interfaces = tuple(table.get("interfaces", ("transactions",)))  # type: ignore[arg-type]
        return BackendInfo(path.stem, str(table["summary"]), _read_arguments(path), interfaces)
    except KeyError as key:
        raise ToolchainError(f"{path}: the key {key} is missing") from None


def describe(workload: str, backend: str, *, history: bool = False, planted: bool = False) -> dict[str, object]:
    """Returns the JSON printed by ``PROG --describe``: name, description, backend and all arguments."""
    work, back = workload_named(workload), backend_named(backend)
    extra = extra_arguments(history, planted)
    return {
        "name": work.name,
        "description": work.description,
        "backend": back.name,
        "arguments": [argument.to_dict() for argument in work.arguments + back.arguments + extra],
    }


def extra_arguments(history: bool, planted: bool) -> tuple[Argument, ...]:
    """Returns the arguments of certain builds only."""
    of_history = _read_arguments(guest_folder() / "workloads" / "history.toml") if history else ()
    return of_history + ((PLANTED_ARGUMENT,) if planted else ())


def workload_named(name: str) -> WorkloadInfo:
    """Returns a workload. Raises ToolchainError if there is none with this name, or its table is wrong."""
    return find_workload(name) or _refuse_name("workload", name, workloads())


def backend_named(name: str) -> BackendInfo:
    """Returns a transaction runtime. Raises ToolchainError if there is none with this name."""
    return find_backend(name) or _refuse_name("backend", name, backends())


def _refuse_name(what: str, name: str, infos: Sequence[WorkloadInfo] | Sequence[BackendInfo]) -> NoReturn:
    raise ToolchainError(f"unknown {what} {name!r} (allowed: {', '.join(info.name for info in infos)})")


def _summary_of(source: Path) -> str:
    """Returns the description of a workload in the first line of its source."""
    match = _WORKLOAD_LINE.fullmatch(_first_line(source, *state_of(source)))
    if match is None or match[1] != source.stem:
        raise ToolchainError(
            f"{source}: the first line must be '// durasim-workload: {source.stem} — one line about it'"
        )
    return match[2]


def _read_workload(name: str, summary: str, source: Path, table: Path, shared: tuple[Argument, ...]) -> WorkloadInfo:
    document = _document(table)
    interface = _interface_of(table, document)
    common = document.get("argument-tables", [])
    if not isinstance(common, list):
        raise ToolchainError(f"{table}: argument-tables must be a list of files")
    tables = [*(["objects.toml"] if interface == "objects" else []), *common, table.name]
    arguments = shared + tuple(argument for path in tables for argument in _read_arguments(table.parent / str(path)))
    constants = dict(document.get("constants", {}))  # type: ignore[call-overload]
    small = _read_small(table, arguments)
    return WorkloadInfo(name, summary, source, arguments, small, name, interface, constants)


def _interface_of(table: Path, document: Mapping[str, object]) -> str:
    interface = str(document.get("interface", INTERFACES[0]))
    if interface not in INTERFACES:
        raise ToolchainError(f"{table}: interface {interface!r} is unknown (allowed: {', '.join(INTERFACES)})")
    return interface


@cache
def _first_line(path: Path, _modified_ns: int, _size_bytes: int) -> str:
    with path.open(encoding="utf-8") as text:
        return text.readline().rstrip("\n")


def _read_small(path: Path, arguments: tuple[Argument, ...]) -> dict[str, int | str]:
    small = _document(path).get("small")
    if not isinstance(small, dict) or not {"ops", "populate"} <= small.keys():
        raise ToolchainError(f"{path}: a table [small] with ops and populate is required")
    unknown = small.keys() - {argument.name for argument in arguments}
    if unknown:
        raise ToolchainError(f"{path}: [small] has the unknown argument {min(unknown)!r}")
    return dict(small)


def read_toml(path: Path) -> dict[str, object]:
    """Reads a table next to the sources, again whenever the file has changed. Raises ToolchainError."""
    return copy.deepcopy(_document(path))


def _document(path: Path) -> dict[str, object]:
    """Returns a cached table, which callers must not modify. A run reads all tables several times."""
    return _parsed(path, *state_of(path))


def state_of(path: Path) -> tuple[int, int]:
    """Returns time of change in nanoseconds and size in bytes of a file. Raises ToolchainError if it cannot be read."""
    try:
        stat = path.stat()
    except OSError as error:
        raise ToolchainError(f"{path}: {error}") from error
    return stat.st_mtime_ns, stat.st_size


@cache
def _parsed(path: Path, _modified_ns: int, _size_bytes: int) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ToolchainError(f"{path}: {error}") from error


def _read_arguments(path: Path) -> tuple[Argument, ...]:
    return _arguments(path, *state_of(path))


@cache
def _arguments(path: Path, modified_ns: int, size_bytes: int) -> tuple[Argument, ...]:
    rows = _parsed(path, modified_ns, size_bytes).get("argument", [])
    if not isinstance(rows, list):
        raise ToolchainError(f"{path}: arguments must be [[argument]] tables")
    return tuple(_read_argument(path, row) for row in rows)


def _read_argument(path: Path, row: dict[str, object]) -> Argument:
    def refuse(problem: str) -> ToolchainError:
        return ToolchainError(f"{path}: argument {row.get('name')!r}: {problem}")

    unknown = set(row) - set(Argument.__dataclass_fields__)
    if unknown:
        raise refuse(f"unknown key {min(unknown)!r}")
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    if values.get("type") == "flag":
        values["default"] = False
    try:
        argument = Argument(**values)  # type: ignore[arg-type]
    except TypeError:
        raise refuse("name, type, default and help are required") from None
    if not _ARGUMENT_NAME.fullmatch(argument.name):
        raise refuse("a name must consist of lower-case words joined by -")
    if argument.type not in ("u64", "flag", "text", "choice"):
        raise refuse(f"unknown type {argument.type!r} (allowed: u64, flag, text, choice)")
    if set(argument.commands) - set(COMMANDS):
        raise refuse(f"unknown command (allowed: {', '.join(COMMANDS)})")
    if argument.type == "u64" and not (
        isinstance(argument.default, int) and argument.minimum <= argument.default <= argument.maximum
    ):
        raise refuse("the default is out of range")
    if argument.type == "choice" and argument.default not in argument.choices:
        raise refuse("the default is not among the choices")
    return argument

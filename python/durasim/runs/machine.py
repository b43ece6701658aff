"""Machines in Python: the keys of a machine file as arguments, checked by the schema of machine files."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from durasim import _core
from durasim.documents.described_machine import MachineArguments
from durasim.documents.presentation import Summary
from durasim.documents.toml_files import read_toml, validate
from durasim.errors import host_io, refusal, unknown_name
from durasim.output import replace_file
from durasim.runs.parameters import machine_schema, parameters_of_machine, resolve
from durasim.runs.settings import size_in_bytes

if TYPE_CHECKING:
    import polars

_IDENTITY = ("name", "description")
_DIGEST_CHARACTERS = 12


class Machine:
    """A machine: what a machine file describes, with the same keys.

    Keys end with their unit; sizes may be texts such as `"64KiB"`. Sections are mappings, and a key of a section may
    also be given as in `--set`: `**{"llc.size_bytes": "64KiB"}`. `durasim.describe_machine` lists the keys of a preset
    with their descriptions. Ranges are checked when the machine is used.

    >>> machine = Machine.preset("tiny", cores=2, llc={"size_bytes": "8KiB"})
    >>> machine.to_dict().get("llc").get("size_bytes")
    8192
    """

    def __init__(self, **keys: Unpack[MachineArguments]) -> None:
        """Describes a machine by all its keys.

        Raises:
            ConfigError: A key is unknown or missing, or a value has the wrong type.
        """
        self._base: str | None = None
        self._changes: dict[str, Any] = {}
        self._values = _without_none(_nested(keys))
        validate(self._values, machine_schema(), "machine")

    @classmethod
    def preset(cls, base: str | os.PathLike[str], /, **changes: Unpack[MachineArguments]) -> Machine:
        """Returns a preset, or the machine of a file, with changed keys.

        Results name the preset and list the changed keys, as with `--set`. A machine with a `name` of its own is a new
        machine: results have only that name.

        Args:
            base: A preset, see `durasim.machines()`, or the path of a machine file.
            changes: Keys with new values. A section changes only the keys that it gives; None removes an optional one.

        Raises:
            ConfigError: The preset or a key is unknown, or a value has the wrong type.
            HostIoError: The file cannot be read.
        """
        made = cls.__new__(cls)
        made._changes = _nested(changes)
        own = _IDENTITY[0] in made._changes
        made._base = None if own else os.fspath(base)
        made._values = _without_none(_merged(_tables_of(os.fspath(base)), made._changes))
        validate(made._values, machine_schema(), "machine")
        return made

    def to_dict(self) -> dict[str, Any]:
        """Returns the tables of the machine file."""
        copied: dict[str, Any] = json.loads(json.dumps(self._values))
        return copied

    def to_toml(self) -> str:
        """Returns the text of the machine file, without the comments of a preset: changed values have other sources."""
        import tomli_w  # noqa: PLC0415 - keeps the start-up of commands short

        return tomli_w.dumps(self._values)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the machine file, atomically.

        Raises:
            HostIoError: The file cannot be written.
        """
        try:
            replace_file(Path(path), self.to_toml().encode())
        except OSError as error:
            raise host_io(path, error) from None

    def option(self) -> str:
        """Returns the value of `--machine`: the preset or file, or a file in the user's cache of a new machine.

        Raises:
            HostIoError: The file cannot be written.
        """
        if self._base is not None:
            return self._base
        import platformdirs  # noqa: PLC0415 - keeps the start-up of commands short

        text = self.to_toml()
        digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARACTERS]
        path = platformdirs.user_cache_path("durasim") / "machines" / f"{digest}.toml"
        try:
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                path.parent.mkdir(parents=True, exist_ok=True)
                self.save(path)
        except OSError as error:
            raise host_io(path, error) from None
        return os.fspath(path)

    def settings(self) -> dict[str, Any]:
        """Returns the changed keys of a preset by their names for `--set`; none of a machine with a name of its own."""
        return {} if self._base is None else dict(_leaves(self._changes, ""))

    def summary(self) -> Summary:
        """Returns the table that a notebook shows: the keys that are given, their values and descriptions."""
        given = dict(_leaves(self._values, ""))
        described = parameters_of_machine(self._values)
        rows = [(of.name, str(of.value), of.description) for of in described if of.name in given]
        return Summary(f"{self._values['name']}: {self._values['description']}", ("key", "value", "meaning"), rows)

    def to_frame(self) -> polars.DataFrame:
        """Returns a polars data frame with the given keys, their values as texts, and descriptions."""
        import polars  # noqa: PLC0415 - polars takes a while to load

        summary = self.summary()
        return polars.DataFrame(list(summary.rows), schema=list(summary.headers), orient="row")

    def _repr_html_(self) -> str:
        return self.summary().to_html()

    def __repr__(self) -> str:
        changed = "".join(f", {key}={value!r}" for key, value in self.settings().items())
        return f"Machine({self._values['name']!r}{changed})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Machine) and (self._base, self._values) == (other._base, other._values)

    def __hash__(self) -> int:
        return hash((self._base, self.to_toml()))


# Interactive help lists the keys; type checkers read `MachineArguments`.
Machine.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind)
        for name, kind in MachineArguments.__annotations__.items()
    ]
)


def machine_option(machine: Any) -> tuple[Any, dict[str, Any]]:
    """Returns the value of `--machine` and the parameters to set for a machine, or for its name or path."""
    if isinstance(machine, Machine):
        return machine.option(), machine.settings()
    return os.fspath(machine) if isinstance(machine, os.PathLike) else machine, {}


def machine_options(machines: Sequence[Any]) -> list[Any]:
    """Returns the values of `--machine` for several machines of a study.

    Raises:
        ConfigError: One has changed keys and no name of its own.
    """
    found = [machine_option(machine) for machine in machines]
    for option, settings in found:
        if settings:
            raise refusal("machine", f"{option} has changed keys: give it a name=... of its own, or use axes")
    return [option for option, _ in found]


def _tables_of(name: str) -> dict[str, Any]:
    if name.endswith(".toml") or os.sep in name:
        return read_toml(Path(name), "machine")
    presets = [row["name"] for row in json.loads(_core.machines())]
    if name not in presets:
        raise unknown_name("machine", name, presets)
    return tomllib.loads(_core.machine_toml(name))


def _nested(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Returns keys as tables, with sizes in bytes; a key with dots is one of a section.

    Raises:
        ConfigError: A key is unknown, or a size has an unknown unit.
    """
    tables: dict[str, Any] = {}
    for name, value in keys.items():
        first, _, rest = name.partition(".")
        given = _nested_value({rest: value}) if rest else value
        tables = _merged(tables, {first: given})
    return _checked(tables, machine_schema(), "")


def _nested_value(keys: Mapping[str, Any]) -> dict[str, Any]:
    (name, value), *_ = keys.items()
    first, _, rest = name.partition(".")
    return {first: _nested_value({rest: value}) if rest else value}


def _checked(tables: Mapping[str, Any], node: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    known, found = node["properties"], {}
    for name, value in tables.items():
        if name not in known:
            raise unknown_name(prefix.rstrip(".") or "machine", name, known)
        below = resolve(known[name])
        if isinstance(value, Mapping) and "properties" in below:
            found[name] = _checked(value, below, f"{prefix}{name}.")
        else:
            found[name] = size_in_bytes(f"{prefix}{name}", value)
    return found


def _merged(tables: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(tables)
    for name, value in changes.items():
        below = merged.get(name)
        merged[name] = _merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged


def _without_none(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Returns tables without keys that are None, which TOML cannot write."""
    return {
        name: _without_none(value) if isinstance(value, Mapping) else value
        for name, value in tables.items()
        if value is not None
    }


def _leaves(tables: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in tables.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", "none" if value is None else value

"""Checks of `--set`: parameters of designs, sizes with units, and suggestions for misspelled names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from durasim.errors import ConfigError, refusal, unknown_name
from durasim.runs.parameters import machine_schema, resolve

_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SIZE = re.compile(r"\s*['\"]?(\d[\d_]*)\s*([A-Za-z]+)['\"]?\s*")
# Stricter than the default of difflib, because a suggestion replaces the list of allowed names.
_CLOSE = 0.75


def check(settings: Iterable[str], design: str, hardware: str) -> None:
    """Refuses settings without effect on a design, or with a wrong name or size.

    Raises:
        ConfigError: A parameter is unknown or belongs to another design, or the unit of a size is unknown.
    """
    for setting in settings:
        path = _path(setting)
        _refuse_unknown(path)
        owner = _design_of(path)
        if owner is not None and owner != hardware:
            raise refusal(path, f"is a parameter of {owner} and has no effect on {design}: {_takes(hardware)}")
        _in_bytes(setting)


def of_design(settings: Iterable[str], hardware: str) -> tuple[str, ...]:
    """Returns the settings without those of other designs."""
    return tuple(setting for setting in settings if _design_of(_path(setting)) in (None, hardware))


def check_any(settings: Iterable[str], hardware: Iterable[str]) -> None:
    """Refuses settings of designs that are not in a comparison or sweep.

    Raises:
        ConfigError: No design has the parameter.
    """
    compared = set(hardware)
    for setting in settings:
        path = _path(setting)
        _refuse_unknown(path)
        owner = _design_of(path)
        if owner is not None and owner not in compared:
            raise refusal(path, f"is a parameter of {owner}, which is not among the designs")


def in_bytes(settings: Iterable[str]) -> list[str]:
    """Converts sizes such as 64KiB or 1MiB to bytes.

    Raises:
        ConfigError: A size has another unit.
    """
    return [_in_bytes(setting) for setting in settings]


def _in_bytes(setting: str) -> str:
    name, separator, value = setting.partition("=")
    size = _SIZE.fullmatch(value)
    if size is None or not name.strip().rstrip("'\"").endswith("_bytes"):
        return setting
    number, unit = int(size[1].replace("_", "")), size[2]
    if unit not in _UNITS:
        raise refusal(
            _path(setting), f"'{value.strip()}' is not a size (allowed: bytes, or a number with KiB, MiB or GiB)"
        )
    return f"{name}{separator}{number * _UNITS[unit]}"


def size_in_bytes(path: str, value: Any) -> Any:
    """Converts the value of a parameter to bytes if it is a size such as 64KiB; other values are unchanged.

    Raises:
        ConfigError: A size has another unit.
    """
    if not isinstance(value, str):
        return value
    converted = _in_bytes(f"{path}={value}").partition("=")[2]
    return int(converted) if converted != value else value


def check_known(path: str) -> None:
    """Refuses a name that is no parameter of a machine or design.

    Raises:
        ConfigError: The name is unknown; the sentence suggests the closest one.
    """
    _refuse_unknown(path)
    if _is_unknown(path):
        raise refusal(path, "unknown parameter: `durasim machines NAME` and `durasim designs NAME` list all")


def _path(setting: str) -> str:
    return ".".join(word.strip().strip("'\"") for word in setting.partition("=")[0].split("."))


def _design_of(path: str) -> str | None:
    """Returns the design that owns a parameter."""
    words = path.split(".")
    return words[1] if len(words) > 1 and words[0] == "design" else None


def _takes(hardware: str) -> str:
    own = sorted(
        name.removeprefix(f"design.{hardware}.") for name in _paths() if name.startswith(f"design.{hardware}.")
    )
    return f"design.{hardware} takes {', '.join(own)}" if own else "it has no parameters"


def _refuse_unknown(path: str) -> None:
    """Refuses an unknown name that is close to a name in the schema of machine files.

    The machine refuses all other unknown names and lists the allowed ones.
    """
    owner = _design_of(path)
    designs = _node(["design"]).get("properties", {})
    if owner is not None and owner not in designs:
        raise unknown_name("design", owner, designs)
    if not _is_unknown(path):
        return
    if close := _closest(path):
        raise _unknown(path, close)


def _unknown(path: str, close: str) -> ConfigError:
    return refusal(path, f"unknown parameter; did you mean {close}?")


def _closest(path: str) -> str | None:
    names = _paths()
    ends = [name for name in names if name.endswith(f".{path}")]
    if len(ends) == 1:
        return ends[0]
    found = difflib.get_close_matches(path, names, n=1, cutoff=_CLOSE)
    return found[0] if found else None


def _is_unknown(path: str) -> bool:
    node: Mapping[str, Any] = machine_schema()
    for word in path.split("."):
        properties = node.get("properties")
        if properties is None:
            # The machine refuses keys below a value.
            return False
        if word not in properties:
            return True
        node = resolve(properties[word])
    return False


def _node(words: Sequence[str]) -> Mapping[str, Any]:
    node: Mapping[str, Any] = machine_schema()
    for word in words:
        node = resolve(node["properties"][word])
    return node


@cache
def _paths() -> tuple[str, ...]:
    return tuple(_leaves(machine_schema(), ""))


def _leaves(node: Mapping[str, Any], prefix: str) -> Iterable[str]:
    for name, below in node.get("properties", {}).items():
        resolved = resolve(below)
        if resolved.get("properties"):
            yield from _leaves(resolved, f"{prefix}{name}.")
        else:
            yield prefix + name

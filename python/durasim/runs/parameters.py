"""The parameters of designs and machines from the schema of machine files: default, range, source."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from durasim import _core

# A description ends with its source in parentheses: a section of the paper, or the key of an assumption.
_SOURCE = re.compile(r"\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)\.$")
_ASSUMED = re.compile(r"(?:not [\w ]+; )?DEVIATIONS\.md, ([a-z0-9-]+)")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a design.

    Attributes:
        name: Its name, prefixed by `design.HARDWARE.` for `--set`.
        default: Its value unless a machine file or `--set` changes it.
        range: Allowed values; None if all values of its type are allowed.
        source: Source of the default: a section of the paper, or `assumed` with the key of DEVIATIONS.md.
        description: One sentence.
    """

    name: str
    default: int | bool | str
    range: str | None
    source: str
    description: str

    def to_dict(self) -> dict[str, Any]:
        """Returns the parameter in the form of the document of `durasim designs NAME`."""
        return asdict(self)


def parameters_of(hardware: str) -> list[Parameter]:
    """Returns the parameters of a hardware design by name."""
    section = machine_schema()["properties"]["design"]["properties"][hardware]
    return [_parameter(name, schema) for name, schema in section.get("properties", {}).items()]


@dataclass(frozen=True, slots=True)
class MachineParameter:
    """A parameter of a machine preset.

    Attributes:
        name: Its name, for `--set`.
        value: Its value.
        description: Description; empty if the schema of machine files has none.
    """

    name: str
    value: Any
    description: str

    def to_dict(self) -> dict[str, Any]:
        """Returns the parameter in the form of the document of `durasim machines NAME`."""
        return asdict(self)


def parameters_of_machine(preset: Mapping[str, Any]) -> list[MachineParameter]:
    """Returns the parameters of a machine file, with the schema's defaults for those that it omits.

    Parameters of designs are included only if the file sets them.
    """
    found = dict(_leaves(preset, machine_schema(), ""))
    return [MachineParameter(name, value, text) for name, (value, text) in found.items() if name not in _OF_PRESET]


_OF_PRESET = ("name", "description")


def _leaves(given: Mapping[str, Any], node: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, tuple[Any, str]]]:
    for name, below in node.get("properties", {}).items():
        resolved, path = resolve(below), prefix + name
        value = given.get(name, below.get("default", resolved.get("default")))
        if resolved.get("properties"):
            if isinstance(value, Mapping) and (name in given or not path.startswith("design")):
                yield from _leaves(value, resolved, f"{path}.")
        elif value is not None and (name in given or not path.startswith("design.")):
            yield path, (value, " ".join(below.get("description", "").split()))


def resolve(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Resolves a reference in the schema of machine files, including those of optional sections."""
    for choice in (node, *node.get("anyOf", ()), *node.get("oneOf", ())):
        if "$ref" in choice:
            found: Mapping[str, Any] = machine_schema()["$defs"][choice["$ref"].rpartition("/")[2]]
            return found
    return node


@cache
def machine_schema() -> Mapping[str, Any]:
    """Returns the schema of machine files."""
    schema: Mapping[str, Any] = json.loads(_core.machine_schema())
    return schema


def _parameter(name: str, schema: Mapping[str, Any]) -> Parameter:
    text = " ".join(schema["description"].split())
    found = _SOURCE.search(text)
    source = _ASSUMED.sub(r"assumed, \1", found[1]) if found else "not stated"
    return Parameter(name, schema["default"], _range(schema), source, text[: found.start()] + "." if found else text)


def _range(schema: Mapping[str, Any]) -> str | None:
    if "$ref" in schema:
        choices = machine_schema()["$defs"][schema["$ref"].rpartition("/")[2]]
        return ", ".join(choice["const"] for choice in choices["oneOf"])
    if schema.get("type") == "boolean":
        return "true, false"
    if "maximum" in schema:
        return f"{schema['minimum']} to {schema['maximum']}"
    return f"from {schema['minimum']}" if "minimum" in schema else None

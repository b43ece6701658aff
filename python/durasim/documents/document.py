"""Typed JSON documents: dataclasses with the fields of a JSON object."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, Self

from durasim.documents.stats import StatTree
from durasim.errors import refusal
from durasim.output import to_json


class Document:
    """Conversion of a dataclass to and from a JSON object.

    A field whose name is a keyword of Python ends with an underscore, its key does not: `class_` is `class`.
    """

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Converts the JSON object.

        Raises:
            ConfigError: A field is missing or unknown, for example in a document of another version.
        """
        return _read(cls, document, "")

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON object with its keys in the documented order."""
        return _fields_of(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle and copy the JSON object: read-only mappings in the fields support neither.
        return (type(self).from_dict, (self.to_dict(),))

    def to_json(self) -> str:
        """Returns the JSON text that `--json` writes."""
        return to_json(self.to_dict())


def _read(kind: Any, value: Any, path: str) -> Any:
    """Converts `value` to `kind`: a document or another dataclass, a tuple, a mapping, an optional or a plain type."""
    if kind is Any:
        return value
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:
        return _read_union(arguments, value, path)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise refusal(path, f"expected a list, found {value!r}")
        return tuple(_read(arguments[0], item, f"{path}[{index}]") for index, item in enumerate(value))
    if kind is StatTree:
        return StatTree.from_dict(_object(value, path))
    if origin is not None:
        return types.MappingProxyType(dict(_object(value, path)))
    if dataclasses.is_dataclass(kind):
        return _read_document(kind, _object(value, path), path)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise refusal(path, f"expected {kind.__name__}, found {value!r}")
    return value


def _read_union(kinds: tuple[Any, ...], value: Any, path: str) -> Any:
    """Converts an optional value, or a plain one of several types."""
    if value is None and types.NoneType in kinds:
        return None
    plain = [kind for kind in kinds if kind is not types.NoneType]
    if value is not None and type(value) in plain:
        return value
    return _read(plain[-1], value, path)


def _read_document(kind: Any, value: Mapping[str, Any], path: str) -> Any:
    hints = _types_of(kind)
    missing, unknown = hints.keys() - value.keys(), value.keys() - hints.keys()
    if missing or unknown:
        names = ", ".join(sorted(missing or unknown))
        problem = "lacks" if missing else "has unknown"
        raise refusal(path or kind.__name__, f"{problem} {names}; the document may be of another version or kind")
    prefix = f"{path}." if path else ""
    found = {name: _read(hint, value[name], prefix + name) for name, hint in hints.items()}
    return kind(**{field.name: found[field.name.rstrip("_")] for field in dataclasses.fields(kind)})


@cache
def _types_of(kind: Any) -> Mapping[str, Any]:
    """Returns the types of the fields of a class by their keys. Evaluating annotations takes most of the time."""
    return {name.rstrip("_"): hint for name, hint in typing.get_type_hints(kind).items()}


def _object(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise refusal(path or "document", f"expected an object, found {value!r}")
    return value


def _fields_of(value: Any) -> dict[str, Any]:
    return {field.name.rstrip("_"): _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, StatTree):
        return value.to_dict()
    if dataclasses.is_dataclass(value):
        return _fields_of(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, Mapping) else value

"""Arguments of functions of the Python API, generated from dataclasses."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

# Arguments of the API whose name differs from the field.
_NAMES = {"settings": "set"}
_TYPES: dict[str, Any] = {"settings": "Settings | None", "workload_args": "Mapping[str, Any] | None"}


def takes_fields_of(*classes: type, without: Iterable[str] = ()) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds the fields of these dataclasses to the signature and docstring of a function of the API.

    The function itself takes them as `**fields`; a call with any other name is refused.
    """
    described = [
        (field, text)
        for described_class in classes
        for field, text in _attributes(described_class)
        if field.name not in without
    ]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        own = inspect.signature(function)
        before = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        names = {parameter.name for parameter in before}
        added = [_parameter(field) for field, _ in described if field.name not in names]
        signature = own.replace(parameters=[*before, *added])

        @functools.wraps(function)
        def checked(*args: Any, **fields: Any) -> Any:
            signature.bind(*args, **fields)
            return function(*args, **fields)

        lines = [f"        {_NAMES.get(field.name, field.name)}: {text}" for field, text in described]
        checked.__signature__ = signature  # type: ignore[attr-defined]
        checked.__doc__ = (function.__doc__ or "").replace("    Args:\n", "\n".join(["    Args:", *lines, ""]), 1)
        return checked

    return decorate


def _parameter(field: dataclasses.Field[Any]) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
    if field.name in _TYPES:
        default = None
    annotation = _TYPES.get(field.name, field.type)
    name = _NAMES.get(field.name, field.name)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _attributes(described_class: type) -> Iterable[tuple[dataclasses.Field[Any], str]]:
    """Returns the fields of a dataclass with their descriptions from its docstring or that of a base class."""
    texts: dict[str, str] = {}
    for level in described_class.__mro__[:-1]:
        for name, text in re.findall(r"^ {8}(\w+): (.*(?:\n {12}.*)*)", level.__doc__ or "", re.MULTILINE):
            texts.setdefault(name, text)
    own = [
        field for field in dataclasses.fields(described_class) if field.name in vars(described_class)["__annotations__"]
    ]
    below = [field for field in dataclasses.fields(described_class) if field not in own]
    for field in (*own, *below):
        yield field, texts[field.name]

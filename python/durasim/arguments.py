"""Arguments of functions of the Python API, from dataclasses and typed dictionaries."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

from durasim.errors import unknown_name

# The type of a decorated function stays that of the function, whose keywords a type checker and an editor read.
Function = TypeVar("Function", bound=Callable[..., Any])

# Arguments of the API whose name differs from the field.
_NAMES = {"settings": "set"}
_TYPES: dict[str, Any] = {"settings": "Settings | None", "workload_args": "Mapping[str, Any] | None"}


def takes_fields_of(*classes: type, without: Iterable[str] = ()) -> Callable[[Function], Function]:
    """Adds the fields of these dataclasses or typed dictionaries to the signature and docstring of an API function.

    The function itself takes them as keywords, `**fields`; a call with any other name is refused, and the error names
    the nearest ones.
    """
    described = [
        (parameter, text)
        for described_class in classes
        for parameter, text in _described(described_class)
        if parameter.name not in {_NAMES.get(name, name) for name in without}
    ]

    def decorate(function: Function) -> Function:
        own = inspect.signature(function)
        before = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        names = {parameter.name for parameter in before}
        added = [parameter for parameter, _ in described if parameter.name not in names]
        signature = own.replace(parameters=[*before, *added])
        keywords = [name for name, of in signature.parameters.items() if of.kind is inspect.Parameter.KEYWORD_ONLY]

        @functools.wraps(function)
        def checked(*args: Any, **fields: Any) -> Any:
            for name in fields:
                if name not in signature.parameters:
                    raise TypeError(str(unknown_name(f"{function.__name__}()", name, keywords)))
            signature.bind(*args, **fields)
            return function(*args, **fields)

        lines = [f"        {of.name}: {text}" for of, text in described if of.name not in names]
        checked.__signature__ = signature  # type: ignore[attr-defined]
        checked.__doc__ = (function.__doc__ or "").replace("    Args:\n", "\n".join(["    Args:", *lines, ""]), 1)
        return cast("Function", checked)

    return decorate


def _described(described_class: type) -> Iterator[tuple[inspect.Parameter, str]]:
    """Yields the parameters of a class with their descriptions."""
    if dataclasses.is_dataclass(described_class):
        yield from ((_parameter(field), text) for field, text in _attributes(described_class))
        return
    texts = _texts(described_class)
    for name, kind in described_class.__annotations__.items():
        annotation = getattr(kind, "__forward_arg__", kind)
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation), texts[name]


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
        texts = _texts(level) | texts
    own = [
        field for field in dataclasses.fields(described_class) if field.name in vars(described_class)["__annotations__"]
    ]
    below = [field for field in dataclasses.fields(described_class) if field not in own]
    for field in (*own, *below):
        yield field, texts[field.name]


def _texts(described_class: type) -> dict[str, str]:
    """Returns the descriptions of attributes in the docstring of a class."""
    return dict(re.findall(r"^ {8}(\w+): (.*(?:\n {12}.*)*)", described_class.__doc__ or "", re.MULTILINE))

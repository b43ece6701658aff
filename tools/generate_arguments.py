"""Typed arguments of the Python API for machines and studies, from the schemas of machine files and study files.

`tools/generate_schemas.py` writes the modules: editors show the keys with types, and a type checker refuses others.
"""

from __future__ import annotations

import json
import keyword
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

LINE_LENGTH = 120
PLAIN_TYPES = {"integer": "int", "number": "float", "string": "str", "boolean": "bool"}
Schema = Mapping[str, Any]

MACHINE_HEAD = '''"""The keys of machine files as arguments of `durasim.Machine`, from the schema of machine files.

Written by tools/generate_schemas.py: to change it, change the parameters in crates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict'''
STUDY_HEAD = '''"""The keys of study files as arguments of `durasim.sweep`, from schemas/study-file.json.

Written by tools/generate_schemas.py: to change it, change that file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from durasim.runs.machine import Machine'''
# Types of keys of studies that the schema cannot say.
STUDY_TYPES = {"machine": "str | Machine | Sequence[str | Machine]", "programs": "Sequence[Mapping[str, Any]]"}


def machine_module(schema: Schema) -> str:
    """Returns the text of the module `durasim.documents.described_machine`."""
    definitions = schema["$defs"]
    sections = [name for name in definitions if "properties" in definitions[name]]
    parts = [_class(name, definitions[name], definitions) for name in sorted(sections)]
    designs = schema["properties"]["design"]["properties"]
    named: dict[str, str] = {}
    for name, of in designs.items():
        if of.get("properties"):
            # Designs with equal parameters share a class.
            same = next((named[other] for other in named if designs[other] == of), None)
            named[name] = same or _design_class(name)
            parts += [] if same else [_class(named[name], of, definitions)]
    pairs = ", ".join(f'"{name}": {of}' for name, of in named.items())
    text = '"""Parameters of durability designs by name; a design that is not given has its defaults."""'
    parts.append(f'DesignParameters = TypedDict("DesignParameters", {{{pairs}}}, total=False)\n{text}')
    parts.append(_class("MachineArguments", schema, definitions))
    return "\n\n\n".join([MACHINE_HEAD, *parts]) + "\n"


def study_module(schema: Schema) -> str:
    """Returns the text of the module `durasim.studies.described_study`."""
    text = {**schema, "description": "The keys of a study file."}
    return "\n\n\n".join([STUDY_HEAD, _class("StudyArguments", text, schema["$defs"], STUDY_TYPES)]) + "\n"


def _design_class(name: str) -> str:
    return "".join(word.capitalize() for word in re.split(r"\W+", name))


def _class(name: str, schema: Schema, definitions: Schema, known: Mapping[str, str] | None = None) -> str:
    lines = [f"class {name}(TypedDict, total=False):"]
    lines += [*_first_lines(schema["description"]), "", "    Attributes:"]
    fields = {key: of for key, of in schema["properties"].items() if not keyword.iskeyword(key)}
    for key, of in fields.items():
        lines += _wrapped(f"{key}: {of['description']}", 8, 12)
    lines += ['    """', ""]
    types = dict(known or {})
    for key, of in fields.items():
        found = types.get(key) or ("DesignParameters" if key == "design" else _type(key, of, definitions))
        lines.append(f"    {key}: {found}")
    return "\n".join(lines)


def _first_lines(description: str) -> Iterator[str]:
    """Yields the first lines of a docstring; the details of a long sentence have a paragraph of their own."""
    text = " ".join(description.split())
    lines = list(_wrapped(f'"""{text}', 4, 4))
    if len(lines) > 1:
        head, _, details = text.partition(": ")
        lines = [f'    """{head}.', "", *_wrapped(details[:1].upper() + details[1:], 4, 4)]
    yield from lines


def _type(key: str, schema: Schema, definitions: Schema) -> str:
    """Returns the type of a key; sizes may be texts with a unit."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return name if "properties" in definitions[name] else _type(key, definitions[name], definitions)
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(key, of, definitions) for of in schema["anyOf"]))
    if "oneOf" in schema or "enum" in schema:
        words = schema.get("enum") or [of["const"] for of in schema["oneOf"]]
        return f"Literal[{', '.join(json.dumps(word) for word in words)}]"
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return " | ".join(_plain(key, kind, schema, definitions) for kind in kinds)


def _plain(key: str, kind: str, schema: Schema, definitions: Schema) -> str:
    if kind == "array":
        return f"Sequence[{_type(key, schema['items'], definitions)}]"
    if kind == "object":
        return "Mapping[str, Any]"
    if kind == "null":
        return "None"
    return "int | str" if kind == "integer" and key.endswith("_bytes") else PLAIN_TYPES[kind]


def _wrapped(text: str, first: int, others: int) -> Iterator[str]:
    plain = " ".join(text.split())
    yield from textwrap.wrap(
        plain, LINE_LENGTH, initial_indent=" " * first, subsequent_indent=" " * others, break_long_words=False
    )

"""Schema of a JSON document from the source of its typed result: fields, types and the descriptions in docstrings.

The source is read and not imported, because the package imports generated modules.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PLAIN_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
SIGNED = "difference"
"""End of the names of fields that may be below 0."""


VALUE = {"type": ["number", "string", "boolean", "null"]}
"""The schema of a value in a mapping."""


def document_schema(sources: Sequence[Path], title: str, root: str) -> dict[str, Any]:
    """Returns the schema of a document.

    Args:
        sources: The modules with the dataclasses of the document; the first one has the constant `SCHEMA`.
        title: Title of the schema.
        root: The class of the whole document.

    Raises:
        ValueError: A field has no description, or a type that is none of a document.
    """
    modules = [ast.parse(source.read_text(encoding="utf-8")) for source in sources]
    classes = {node.name: node for module in modules for node in module.body if isinstance(node, ast.ClassDef)}
    name = next(
        ast.literal_eval(node.value)
        for node in modules[0].body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SCHEMA"
    )
    whole = _object(classes[root], classes)
    whole["properties"]["schema"] = {"const": name}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    named = _named_below(root, classes)
    used = {other: _object(node, classes) for other, node in classes.items() if other in named}
    return head | whole | {"$defs": used}


def _named_below(root: str, classes: dict[str, ast.ClassDef]) -> set[str]:
    """Returns the classes in the fields of a class, and in those of these."""
    found: set[str] = set()
    waiting = [root]
    while waiting:
        fields = [node for node in classes[waiting.pop()].body if isinstance(node, ast.AnnAssign)]
        words = {word for field in fields for word in re.findall(r"\w+", ast.unparse(field.annotation))}
        waiting += (words & classes.keys()) - found
        found |= words & classes.keys()
    return found


def _object(of: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> dict[str, Any]:
    text = ast.get_docstring(of) or ""
    descriptions = dict(re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", text, re.MULTILINE))
    fields = [node for node in of.body if isinstance(node, ast.AnnAssign)]
    properties = {}
    for field in fields:
        name = ast.unparse(field.target)
        if name not in descriptions:
            raise ValueError(f"{of.name}.{name} has no description")
        found = _type(ast.unparse(field.annotation), classes, is_signed=name.endswith(SIGNED))
        properties[name] = {"description": re.sub(r"\bNone\b", "null", " ".join(descriptions[name].split()))} | found
    return {
        "description": text.partition("\n")[0],
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _type(text: str, classes: dict[str, ast.ClassDef], *, is_signed: bool) -> dict[str, Any]:
    if text in classes:
        return {"$ref": f"#/$defs/{text}"}
    if listed := re.fullmatch(r"tuple\[(.+), \.\.\.\]", text):
        return {"type": "array", "items": _type(listed[1], classes, is_signed=is_signed)}
    if text == "Mapping[str, Any]":
        return {"type": "object", "additionalProperties": VALUE}
    plain = text.removesuffix(" | None")
    if plain not in PLAIN_TYPES:
        raise ValueError(f"{text} is no type of a document")
    kind = PLAIN_TYPES[plain]
    bound = {"minimum": 0} if plain in ("int", "float") and not is_signed else {}
    return {"type": kind if plain == text else [kind, "null"]} | bound

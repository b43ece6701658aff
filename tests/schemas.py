"""Checks of documents against the schemas of the package."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from referencing import Registry, Resource

import durasim

FOLDER = Path(durasim.__file__).parent / "schemas"


@cache
def _schemas() -> tuple[dict[str, Any], Registry]:
    """Returns all schemas by the name of their file, and the registry in which they find each other."""
    found = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
    for schema in found.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    return found, Registry().with_resources((name, Resource.from_contents(of)) for name, of in found.items())


def validate(name: str, document: Any) -> None:
    """Raises jsonschema.ValidationError if a document does not conform to the schema `name`."""
    found, registry = _schemas()
    jsonschema.Draft202012Validator(found[f"{name}.json"], registry=registry).validate(document)

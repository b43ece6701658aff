"""Schemas of the tasks and answers that a study exchanges with its workers, from the requests of the Rust core."""

from __future__ import annotations

from typing import Any

_HASH = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_BUILD = {"description": "Hash of the sources of durasim.", "type": "string", "pattern": "^[0-9a-f]+$"}
_RIGHTS = {"type": "integer", "minimum": 0, "maximum": 0o777}
_ENTRY = {
    "description": "A file (`file`), a link (`link`) or a folder (neither) below the folder of the request.",
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1}, "rights": _RIGHTS, "file": _HASH, "link": {"type": "string"},
    },
    "required": ["path"],
    "additionalProperties": False,
}  # fmt: skip
_OF_RUST = ("title", "description", "format", "default")


def task_schema(schemas: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of a task."""
    requests = {"run": schemas["request"], "crash": schemas["crash"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "durasim task",
        "description": "A simulation that a study sends to a worker.",
        "type": "object",
        "properties": {
            "kind": {"enum": list(requests)},
            "build": _BUILD,
            "request": {"description": "The request passed to the Rust core.", "type": "object"},
            "files": {
                "description": "SHA-256 of each file that the request names; the entries of its folder.",
                "type": "object",
                "properties": {
                    **dict.fromkeys(("elf", "machine", "from"), _HASH),
                    "root": {"type": "array", "items": _ENTRY},
                },
                "additionalProperties": False,
            },
            "expects": {
                "type": "object",
                "properties": {
                    "memory_bytes": {"type": "integer", "minimum": 0},
                    "seconds": {"description": "Host time; null if unknown.", "type": ["number", "null"]},
                },
                "required": ["memory_bytes", "seconds"],
                "additionalProperties": False,
            },
        },
        "required": ["kind", "build", "request", "files", "expects"],
        "additionalProperties": False,
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": kind}}},
                "then": {"properties": {"request": _plain(request) | {"additionalProperties": False}}},
            }
            for kind, request in requests.items()
        ],
    }


def answer_schema() -> dict[str, Any]:
    """Returns the schema of an answer: a result, an error, or the files that a worker lacks."""
    seconds = {"description": "Host time of the simulation.", "type": "number", "minimum": 0}
    worker = {"description": "Its address.", "type": "string"}
    forms = (
        {"document": {"description": "The result of the Rust core.", "type": "object"}, "seconds": seconds},
        {"error": {"description": "One sentence.", "type": "string"}, "seconds": seconds},
        {
            "missing": {"description": "Files that the worker has not received.", "type": "array", "items": _HASH},
            "worker": worker,
            "session": {"description": "Different for each worker process.", "type": "string"},
        },
        {"other_build": _BUILD, "worker": worker},
    )  # fmt: skip
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "durasim answer",
        "description": "The answer of a worker to a task.",
        "type": "object",
        "oneOf": [{"properties": form, "required": list(form), "additionalProperties": False} for form in forms],
    }


def _plain(schema: Any) -> Any:
    """Returns a schema without texts for people and without marks of Rust."""
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {}
    for key, value in schema.items():
        if key == "properties":
            found[key] = {name: _plain(value[name]) for name in value}
        elif key == "required":
            # The core fills in defaults.
            found[key] = [name for name in value if "default" not in schema["properties"][name]]
        elif key not in (*_OF_RUST, "$schema") and not key.startswith("x-"):
            found[key] = _plain(value)
    return found

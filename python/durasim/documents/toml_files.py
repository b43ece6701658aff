"""TOML files of users, checked by a JSON schema: one sentence names the place of what is wrong."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from durasim.errors import host_io, refusal, unknown_name


def read_toml(path: Path, field: str) -> dict[str, Any]:
    """Reads a TOML file.

    Raises:
        ConfigError: It is not TOML; `field` names the kind of file.
        HostIoError: It cannot be read.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise host_io(str(path), error) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise refusal(field, f"'{path}' is not TOML: {error}") from None


def validate(tables: Mapping[str, Any], schema: Mapping[str, Any], field: str, where: str = "") -> None:
    """Refuses tables that the schema does not allow.

    Args:
        tables: The content of a file.
        schema: The JSON schema.
        field: The kind of file, as the place of what concerns the whole file.
        where: Text before the problem, such as the name of a file.

    Raises:
        ConfigError: They are not allowed; the sentence begins with their place.
    """
    import jsonschema  # noqa: PLC0415 - keeps the start-up of other commands short

    problem = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(tables))
    if problem is not None:
        place = ".".join(str(part) for part in problem.absolute_path) or field
        known = problem.schema.get("properties", {}) if isinstance(problem.schema, Mapping) else {}
        if problem.validator == "additionalProperties" and (unknown := set(problem.instance) - set(known)):
            raise refusal(place, where + str(unknown_name(place, min(unknown), known).problem))
        raise refusal(place, where + problem.message)


@cache
def schema_named(name: str) -> Any:
    """Returns a JSON schema of the package, which callers must not modify."""
    return json.loads(resources.files("durasim").joinpath(f"schemas/{name}.json").read_text(encoding="utf-8"))

"""Generates schemas, options and types from crates/machine/src/{request,result}.rs and crates/crash/src/request.rs.

    .venv/bin/python -m tools.generate_schemas          # after `make setup`

The files are the schema of the JSON document of a run; the module `durasim.documents.described`, with the typed result
and the options that a run passes on unchanged; the module `durasim.documents.described_crash`, with the options of a
crash campaign; the keys of these options in the schema of campaign files; the modules of
`tools/generate_arguments.py`; the schemas of the tasks and answers of studies; and those of `durasim explain`, `durasim
sweep --plan` and `durasim results list`, from their typed results. `--check` writes nothing, and fails if a file is
out of date.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from tools.document_schemas import document_schema
from tools.generate_arguments import machine_module, study_module
from tools.task_schemas import answer_schema, task_schema

PACKAGE = Path(__file__).resolve().parents[1] / "python" / "durasim"
CAMPAIGN_FILE = PACKAGE / "schemas" / "campaign-file.json"
STUDY_FILE = PACKAGE / "schemas" / "study-file.json"
LINE_LENGTH = 120

# Fields of the request that the package sets itself, from the workload and from options shared with other commands.
# Every other field is an option of `durasim run`.
SET_BY_PACKAGE = frozenset({
    "machine", "design", "domain", "control", "set", "shrink", "elf", "elf_name", "exe_link", "args", "env", "seed",
    "workload", "ops", "threads", "origin",
})  # fmt: skip
# Fields of a crash request beside those of its run that the package sets itself.
SET_BY_CRASHES = frozenset({"follow", "planted", "cut_every_write", "history", "recover_args"})
# Objects of the result by the field that holds them.
CLASSES = {
    "roi": "Region", "program": "Region", "pmem_write_bytes": "PmemWriteBytes", "latency_ns": "LatencyNs",
    "tx": "Transactions", "replay": "Replay", "aborted_by": "AbortedBy", "host": "Host", "provenance": "Provenance",
    "accesses_per_tx": "AccessesPerTx", "phases": "Phases", "execute": "Phase", "prepare": "Phase", "commit": "Phase",
    "batches": "Batches",
}  # fmt: skip
# Base classes of results that notebooks show.
PRESENTED = {"RunResult": "PresentedRun"}
# Names of options that are keywords of Python.
RESERVED = {"from": "from_"}
# Descriptions of classes used by several fields; other classes take the description of their field.
CLASS_TEXTS = {
    "Region": "Instructions and core cycles of a part of the run.",
    "Phase": "Latency of one phase of the transactions of a region.",
}
PLAIN_TYPES = {"integer": "int", "number": "float", "string": "str", "boolean": "bool"}

# The statistics of a document: every leaf has a value, a unit and a description.
STATISTICS = {
    "stat": {
        "type": "object",
        "properties": {
            "value": {"description": "The value.", "type": "number"},
            "unit": {"description": "count, bytes, cycles, ns, ratio and the like.", "type": "string", "minLength": 1},
            "description": {"description": "One sentence.", "type": "string", "minLength": 1},
        },
        "required": ["value", "unit", "description"],
        "additionalProperties": False,
    },
    "tree": {
        "description": "A level of the tree: statistics and further levels by name.",
        "type": "object",
        "propertyNames": {"pattern": "^[^.]+$"},
        "additionalProperties": {
            "if": {"required": ["value", "unit"]},
            "then": {"$ref": "#/$defs/stat"},
            "else": {"$ref": "#/$defs/tree"},
        },
    },
}


def run_schema(result: dict[str, Any]) -> dict[str, Any]:
    """Returns the published schema of a run's result."""
    head = {"$schema": result["$schema"], "title": "durasim run", "description": result["description"]}
    return head | {key: _strict(result)[key] for key in ("type", "properties", "required", "additionalProperties")} | {
        "$defs": STATISTICS
    }  # fmt: skip


def _strict(schema: Any) -> Any:
    """Removes Rust-specific parts of a schema and restricts objects to the listed fields, in order."""
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: _strict(value) for key, value in schema.items() if key not in ("format", "title", "properties")}
    if "description" in plain:
        plain["description"] = " ".join(plain["description"].split())
    if "properties" in schema:
        plain["properties"] = {name: _strict(schema["properties"][name]) for name in schema["required"]}
        plain["required"] = schema["required"]
        plain["additionalProperties"] = False
    elif {"number", "integer"} & set(_types(plain)) and schema.get("format") != "int32":
        # No count or measure is below 0, except an exit code.
        plain = {"minimum": 0} | plain
    first = ("description", "type")
    last = ("properties", "required", "additionalProperties")
    keys = [
        *(k for k in first if k in plain),
        *(k for k in plain if k not in first + last),
        *(k for k in last if k in plain),
    ]
    return {key: plain[key] for key in keys}


def _types(schema: dict[str, Any]) -> list[str]:
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else kinds


def described(request: dict[str, Any], result: dict[str, Any]) -> str:
    """Returns the text of the module `durasim.documents.described`."""
    return (
        "\n\n\n".join([HEAD, *_result_classes(run_schema(result)), _options_class(request), _arguments_class(request)])
        + "\n"
    )


HEAD = '''"""The result and the options of a run, from `runs/result.rs` and `setup/request.rs` of crates/machine.

Written by tools/generate_schemas.py: to change it, change those files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from durasim.documents.document import Document
from durasim.documents.presentation import PresentedRun
from durasim.documents.stats import StatTree'''
METRICS_HEAD = '''"""The numeric measures of a run, from `runs/result.rs` of crates/machine.

Written by tools/generate_schemas.py: to change it, change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Metric(NamedTuple):
    """A measure of a run.

    Attributes:
        name: The field of `RunResult`.
        type: Its type.
        metadata: Its unit and, where its name is not readable, a label.
    """

    name: str
    type: str
    metadata: Mapping[str, str]'''


def described_metrics(result: dict[str, Any]) -> str:
    """Returns the text of the module `durasim.documents.described_metrics`."""
    rows = []
    for name, schema in run_schema(result)["properties"].items():
        if metadata := _metadata(schema):
            rows.append(f'    Metric("{name}", "{_result_type(name, schema)}", {json.dumps(metadata)}),')
    table = ["METRICS = (", *rows, ")", '"""The measures in the order of the document."""']
    return METRICS_HEAD + "\n\n\n" + "\n".join(table) + "\n"


def _metadata(schema: dict[str, Any]) -> dict[str, str]:
    return {key: schema[f"x-{key}"] for key in ("unit", "label") if f"x-{key}" in schema}


def _result_classes(schema: dict[str, Any]) -> Iterator[str]:
    yield from _classes_below(schema, set())
    yield _document_class("RunResult", schema, schema["description"])


def _classes_below(schema: dict[str, Any], done: set[str]) -> Iterator[str]:
    for name, field in schema["properties"].items():
        below = _object_in(field)
        if below is not None and CLASSES[name] not in done:
            done.add(CLASSES[name])
            yield from _classes_below(below, done)
            yield _document_class(CLASSES[name], below, CLASS_TEXTS.get(CLASSES[name], field["description"]))


def _object_in(field: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the object schema of a field, if it has named fields."""
    return next((part for part in (field, *field.get("anyOf", ())) if "properties" in part), None)


def _document_class(name: str, schema: dict[str, Any], description: str) -> str:
    base = PRESENTED.get(name, "Document")
    lines = ["@dataclass(frozen=True, slots=True)", f"class {name}({base}):", *_docstring(description, schema)]
    lines += [_result_field(field_name, part) for field_name, part in schema["properties"].items()]
    return "\n".join(lines)


def _result_field(name: str, schema: dict[str, Any]) -> str:
    metadata = _metadata(schema)
    default = f" = field(metadata={json.dumps(metadata)})" if metadata else ""
    return f"    {name}: {_result_type(name, schema)}{default}"


def _result_type(name: str, schema: dict[str, Any]) -> str:
    if schema.get("$ref") == "#/$defs/tree":
        return "StatTree"
    if any(part.get("$ref", "").endswith(".json") for part in schema.get("anyOf", ())):
        return "Mapping[str, Any] | None"
    if _object_in(schema) is not None:
        return CLASSES[name] + (" | None" if "anyOf" in schema or "null" in _types(schema) else "")
    if "const" in schema:
        return "str"
    return "Mapping[str, Any]" if schema["type"] == "object" else _plain_type(schema)


def _plain_type(schema: dict[str, Any]) -> str:
    if schema.get("type") == "array":
        return f"tuple[{_plain_type(schema['items'])}, ...]"
    kinds = [PLAIN_TYPES[kind] for kind in _types(schema) if kind != "null"]
    return " | ".join([*kinds, *(["None"] if "null" in _types(schema) else [])])


def _docstring(description: str, schema: dict[str, Any]) -> list[str]:
    lines = [*_wrapped(f'"""{description}', 4, 4), "", "    Attributes:"]
    for name, part in schema["properties"].items():
        lines += _wrapped(f"{name}: {part['description']}", 8, 12)
    return [*lines, '    """', ""]


def _wrapped(text: str, first: int, others: int) -> list[str]:
    in_python = re.sub(r"\bnull\b", "None", text)
    return textwrap.wrap(in_python, LINE_LENGTH, initial_indent=" " * first, subsequent_indent=" " * others)


def options(request: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the fields of a request that are options, by their Python names."""
    fields = {name: request["properties"][name] for name in request["required"] if name not in SET_BY_PACKAGE}
    return {RESERVED.get(name, name): schema for name, schema in fields.items()}


def _options_class(request: dict[str, Any]) -> str:
    fields = options(request)
    lines = ["@dataclass(frozen=True, slots=True, kw_only=True)", "class RunOptions:"]
    lines += _docstring("Options of a run that are passed to the machine unchanged.", {"properties": fields})
    for name, schema in fields.items():
        lines += [f"    {name}: {_plain_type(schema)} = field(", f"        default={schema.get('default')!r},"]
        lines += ["        metadata={", *_option_metadata(schema), "        },", "    )"]
    return "\n".join(lines)


def _option_metadata(schema: dict[str, Any]) -> Iterator[str]:
    for key, value in (("metavar", schema.get("x-metavar")), ("minimum", schema.get("minimum"))):
        if value is not None:
            yield f'            "{key}": {json.dumps(value)},'
    text = " ".join(schema["description"].split())
    pieces = textwrap.wrap(text, LINE_LENGTH - 30, drop_whitespace=False)
    yield f'            "help": {" ".join(json.dumps(piece) for piece in pieces)},'


def _arguments_class(request: dict[str, Any]) -> str:
    lines = ["class RunOptionArguments(TypedDict, total=False):"]
    lines += ['    """`RunOptions` as arguments of the Python API; files may be given as paths."""', ""]
    for name, schema in options(request).items():
        is_path = schema.get("x-metavar") in ("FILE", "DIR")
        lines.append(f"    {name}: {'str | os.PathLike[str] | None' if is_path else _plain_type(schema)}")
    return "\n".join(lines)


def crash_options(schemas: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the fields of a crash request that are options of a campaign, those of its run left out."""
    without = schemas["request"]["properties"].keys() | SET_BY_CRASHES
    crash = schemas["crash"]
    # `required` lists all fields, in their order.
    return {name: crash["properties"][name] for name in crash["required"] if name not in without}


CRASH_HEAD = '''"""The options of a crash campaign, as crates/crash/src/request.rs describes them.

Written by tools/generate_schemas.py: to change it, change that file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypedDict'''


def described_crash(fields: dict[str, dict[str, Any]]) -> str:
    """Returns the text of the module `durasim.documents.described_crash`."""
    faults = fields["faults"]
    names = [
        f"FAULTS = {tuple(_choices(faults))}",
        '"""Kinds of power failures; docs/crash.md explains each."""',
        f"DEFAULT_FAULTS = {tuple(faults['x-of-workloads'])}",
        '"""Faults of a workload if none are given."""',
        f"FAULTS_UNDER_MODELS = {tuple(faults['x-under-models'])}",
        '"""Faults that have a meaning under a persistency model."""',
    ]
    head = CRASH_HEAD + "\n\n" + "\n".join(names)
    return "\n\n\n".join([head, _crash_options_class(fields), _crash_arguments(fields)]) + "\n"


def _crash_options_class(fields: dict[str, dict[str, Any]]) -> str:
    lines = ["@dataclass(frozen=True, slots=True)", "class CrashOptions:"]
    lines += _docstring("Options of a crash campaign over a scenario.", {"properties": fields})
    for name, schema in fields.items():
        lines += [f"    {name}: {_crash_type(schema)} = field(", f"        default={schema.get('default')!r},"]
        lines += ["        metadata={", *_crash_metadata(schema), *_option_metadata(schema), "        },", "    )"]
    return "\n".join(lines)


def _crash_arguments(fields: dict[str, dict[str, Any]]) -> str:
    lines = ["class CrashOptionArguments(TypedDict, total=False):"]
    lines += ['    """`CrashOptions` as arguments of the Python API."""', ""]
    for name, schema in fields.items():
        if "x-internal" not in schema:
            lines.append(f"    {name}: {_crash_type(schema).replace('tuple[str, ...]', 'Iterable[str]')}")
    return "\n".join(lines)


def _crash_type(schema: dict[str, Any]) -> str:
    """Returns the type of an option. What has no default is determined by the package if it is not given."""
    if "anyOf" in schema:
        plain = [_plain_type(of) for of in schema["anyOf"] if "type" in of]
        words = ", ".join(map(json.dumps, _words(schema)))
        # What may be absent is named last.
        kinds = [*plain, *([f"Literal[{words}]"] if words else [])]
        return " | ".join(sorted(kinds, key=lambda kind: kind == "None"))
    kinds = _types(schema)
    found = "tuple[str, ...]" if "array" in kinds else _plain_type(schema)
    return found if "default" in schema and "null" not in kinds and schema["default"] is not None else _optional(found)


def _optional(kind: str) -> str:
    return kind if kind.endswith("| None") else f"{kind} | None"


def _choices(schema: dict[str, Any]) -> list[str]:
    """Returns the names that the elements of an array are taken from."""
    items = schema.get("items", {})
    return [name for part in items.get("oneOf", [items]) for name in part.get("enum", [part.get("const")]) if name]


def _words(schema: dict[str, Any]) -> tuple[str, ...]:
    """Returns the words that an option takes, alone or instead of a number."""
    parts = [part for of in schema.get("anyOf", ()) for part in of.get("oneOf", ())]
    return tuple(part["const"] for part in parts)


def _crash_metadata(schema: dict[str, Any]) -> Iterator[str]:
    for key in ("flag", "unit", "drawn", "file", "elf", "internal"):
        if f"x-{key}" in schema:
            yield f'            "{key}": {schema[f"x-{key}"]!r},'
    if choices := _choices(schema):
        yield f'            "choices": {tuple(choices)},'
    if words := _words(schema):
        yield f'            "words": {words},'
    for part in schema.get("anyOf", ()):
        for key in ("minimum", "maximum"):
            if key in part:
                yield f'            "{key}": {part[key]},'
    if "maximum" in schema:
        yield f'            "maximum": {schema["maximum"]},'


def campaign_file_schema(fields: dict[str, dict[str, Any]]) -> str:
    """Returns the schema of campaign files; in its tables the options of a campaign follow `ops` or `seeds`."""
    schema = json.loads(CAMPAIGN_FILE.read_text(encoding="utf-8"))
    keys = {name: _campaign_key(of) for name, of in fields.items() if "x-file" in of}
    for table, last in (("sweep", "ops"), ("program", "seeds"), ("control", "ops")):
        own = schema["$defs"][table]["properties"]
        before = list(own)[: list(own).index(last) + 1]
        hand_written = {name: of for name, of in own.items() if "x-option" not in of and name not in keys}
        schema["$defs"][table]["properties"] = {
            **{name: of for name, of in hand_written.items() if name in before},
            **keys,
            **{name: of for name, of in hand_written.items() if name not in before},
        }
    return json.dumps(schema, indent=2) + "\n"


def _campaign_key(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of a key. The loader also checks the largest number of points."""
    head = {"description": " ".join(schema["description"].split()), "x-option": True}
    if "array" in _types(schema):
        names = {"type": "string", "enum": ["all", *_choices(schema)]}
        return head | {"type": "array", "items": names, "minItems": 1}
    if {"type": "null"} in schema.get("anyOf", ()):
        return head | {"type": "string", "enum": list(_words(schema))}
    if "anyOf" in schema:
        return head | {"$ref": "#/$defs/points"}
    (kind,) = (of for of in _types(schema) if of != "null")
    return head | {"type": kind} | {key: schema[key] for key in ("minimum", "maximum") if key in schema}


def _formatted(text: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "python/durasim/documents/described.py", "-"]
    root = PACKAGE.parents[1]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=root).stdout


def _core() -> ModuleType:
    """Returns the Rust core without the package around it, which imports the generated modules."""
    # A process loads it once.
    if "durasim._core" in sys.modules:
        return sys.modules["durasim._core"]
    (path,) = PACKAGE.glob("_core*.so")
    spec = importlib.util.spec_from_file_location("_core", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python module")
    core = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(core)
    return core


def _document_schemas() -> dict[Path, str]:
    """Returns the schemas of documents from their typed results."""
    documents = PACKAGE / "documents"
    entries = PACKAGE / "store" / "database.py"
    schemas = {
        "explain": document_schema([documents / "explanation.py"], "durasim explain", "Explanation"),
        "sweep-plan": document_schema([documents / "sweep_plan.py"], "durasim sweep --plan", "Plan"),
        "sensitivity": document_schema([documents / "sensitivity.py"], "durasim sensitivity", "Sensitivity"),
        "results": document_schema([documents / "stored_results.py", entries], "durasim results list", "StoredResults"),
    }
    return {PACKAGE / "schemas" / f"{name}.json": json.dumps(of, indent=2) + "\n" for name, of in schemas.items()}


def generate() -> dict[Path, str]:
    """Returns the text of each generated file."""
    core = _core()
    schemas = json.loads(core.run_schemas())
    schema = run_schema(schemas["result"])
    return {
        PACKAGE / "schemas" / "run.json": json.dumps(schema, indent=2) + "\n",
        PACKAGE / "documents" / "described.py": _formatted(described(schemas["request"], schemas["result"])),
        PACKAGE / "documents" / "described_metrics.py": _formatted(described_metrics(schemas["result"])),
        PACKAGE / "documents" / "described_crash.py": _formatted(described_crash(crash_options(schemas))),
        CAMPAIGN_FILE: campaign_file_schema(crash_options(schemas)),
        PACKAGE / "documents" / "described_machine.py": _formatted(machine_module(json.loads(core.machine_schema()))),
        PACKAGE / "studies" / "described_study.py": _formatted(study_module(json.loads(STUDY_FILE.read_text()))),
        **_document_schemas(),
        PACKAGE / "schemas" / "task.json": json.dumps(task_schema(schemas), indent=1) + "\n",
        PACKAGE / "schemas" / "answer.json": json.dumps(answer_schema(), indent=1) + "\n",
    }


def main(arguments: list[str]) -> int:
    """Writes the files, or reports those that are out of date."""
    generated = generate()
    stale = [path for path, text in generated.items() if not path.exists() or path.read_text() != text]
    if arguments == ["--check"]:
        for path in stale:
            print(f"{path} is out of date: run tools/generate_schemas.py", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(generated[path])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

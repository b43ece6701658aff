"""Builds the site of the documents into build/site, without network: `make docs`.

    .venv/bin/python -m tools.build_site            # fails on a link or an anchor that leads nowhere
    .venv/bin/python -m tools.build_site --stage    # only gather the sources in build/site-source

The pages of the site are those of the repository in the same folders, so that their links are valid in both. A file of
another kind to which a page links is copied as it is. The reference of commands, configuration and Python API is
generated.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

import durasim
from durasim.runs.scenario import DEFAULT_MACHINE

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
SOURCE, SITE, CONFIGURATION = BUILD / "site-source", BUILD / "site", BUILD / "mkdocs.yml"
# What no page of the site links to, but its navigation.
ALSO = ("tests/timing/README.md",)

Nav = list[dict[str, Any]]


def pages() -> list[Path]:
    """Gives the pages of the repository that are pages of the site."""
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def linked_files(page: Path) -> Iterator[Path]:
    """Gives the files of the repository to which a page links or whose image it shows."""
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8")):
        for child in token.children or ():
            target = str(child.attrs.get("href") or child.attrs.get("src") or "").partition("#")[0]
            if target and not re.match(r"[a-z]+:", target):
                # Links of the file system are kept: the site has a page's files at its own place.
                yield Path(os.path.normpath(page.parent / target))


def sources() -> set[Path]:
    """Gives all files of the site that are files of the repository: pages, and what they link to."""
    found: set[Path] = set()
    waiting = [*pages(), *(ROOT / name for name in ALSO)]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        if not path.is_file():
            raise SystemExit(f"{path.relative_to(ROOT)} is no file: a page of the site can link to files only")
        found.add(path)
        if path.suffix == ".md":
            waiting += linked_files(path)
    return found


def title_of(page: Path) -> str:
    """Gives the first heading of a page."""
    found = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit(f"{page.relative_to(ROOT)} has no heading")
    return found[1].replace("`", "")


def commands() -> str:
    """Gives the reference of commands, as typer writes it from the program itself."""
    command = (sys.executable, "-m", "typer", "durasim.cli", "utils", "docs", "--name", "durasim")
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    first, _, rest = text.partition("\n")
    intro = (
        "What follows is written by the program from its own options. Examples with outputs: "
        "[the first hour](../docs/first-hour.md), [crashes](../docs/crash.md)."
    )
    return f"{first.replace('`durasim`', 'Commands')}\n\n{intro}\n{rest}"


def _cell(text: object) -> str:
    return re.sub(r"\s+", " ", str(text)).replace("|", "\\|").replace("<", "&lt;")


def _code(text: object) -> str:
    return f"`{_cell(text)}`" if str(text) else ""


def _allowed(schema: Mapping[str, Any]) -> str:
    """Gives the values that a schema allows, in few words."""
    if "oneOf" in schema or "anyOf" in schema:
        return ", ".join(filter(None, (_allowed(of) for of in schema.get("oneOf") or schema["anyOf"])))
    if "const" in schema or "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type", "")
    kind = " or ".join(kind) if isinstance(kind, list) else kind
    low, high = schema.get("minimum"), schema.get("maximum")
    bounds = f" {low} to {high}" if high is not None else f" from {low}" if low is not None else ""
    return f"{kind}{bounds}"


def configuration_rows(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, str, str, str]]:
    """Gives key, allowed values, default and description of each value that a machine file may have."""
    for name, field in schema.get("properties", {}).items():
        if prefix == "" and name == "design":
            continue
        merged = dict(field)
        for of in (field, *field.get("anyOf", ())):
            if "$ref" in of:
                merged = {
                    **definitions[of["$ref"].rpartition("/")[2]],
                    **{k: v for k, v in field.items() if k != "anyOf"},
                }
        if "properties" in merged:
            yield from configuration_rows(merged, definitions, f"{prefix}{name}.")
        else:
            is_needed = name in schema.get("required", ())
            default = _code(json.dumps(merged["default"])) if "default" in merged else "needed" if is_needed else ""
            yield f"{prefix}{name}", accepted(f"{prefix}{name}", merged), default, merged.get("description", "")


# Values that are out of almost every range: a check that refuses one names the range.
EXTREMES = (0, 2**16 - 1, 2**32 - 1, 2**63 - 1)
# Machines that have all sections of machine files together.
PROBED_MACHINES = (DEFAULT_MACHINE, "lad-micro19", "pinspect-micro20", "spht-eadr-2022")
BETWEEN = re.compile(r"is not (between (?P<low>\d+) and (?P<high>\d+)|(?P<text>a power of two [\w ^]+?))(?:$|[;,.])")


def refusal(key: str, value: object, machine: str = DEFAULT_MACHINE) -> str:
    """Gives the reason with which the program refuses a value of a key on a machine; empty if it accepts the value.

    No run starts: a file that is no program is refused after the machine has been checked.
    """
    try:
        durasim.run(design="opt", elf=str(ROOT / "LICENSE"), machine=machine, set=[f"{key}={json.dumps(value)}"])
    except durasim.ConfigError as error:
        at, _, reason = str(error).partition(": ")
        return reason if at == key else ""
    raise AssertionError(f"{key}: a file that is no program has run")


@cache
def accepted_range(key: str) -> str:
    """Gives the range of a key that the program accepts, in the words of its refusal; empty if it names none."""
    for machine in PROBED_MACHINES:
        for value in EXTREMES:
            if found := BETWEEN.search(refusal(key, value, machine)):
                return found["text"] or f"{found['low']} to {found['high']}"
    return ""


def accepted(key: str, schema: Mapping[str, Any]) -> str:
    """Gives the values that the program accepts: those of the schema without what its checks refuse."""
    text = _allowed(schema)
    if "integer" in text:
        null = " or null" if "null" in text else ""
        low = int(schema.get("minimum") or 0)
        bounds = accepted_range(key) or ("" if refusal(key, low) else f"from {low}")
        return f"integer{null} {bounds}".rstrip()
    words = re.findall(r"`([\w-]+)`", text)
    refused = [word for word in words if NOT_SUPPORTED in refusal(key, word)]
    return ", ".join(f"`{word}`" for word in words if word not in refused) if refused else text


NOT_SUPPORTED = "not supported"


def configuration() -> str:
    """Gives the reference of machine files and parameters of designs, from their schemas."""
    schema = durasim.machine_schema()
    preset = {of["name"]: of["value"] for of in durasim.describe_machine(DEFAULT_MACHINE)["parameters"]}
    lines = [
        "# Configuration",
        "",
        "The keys of a machine file and of `--set KEY=VALUE`, from the schema that refuses all others. Ranges are "
        "those of the checks that refuse a value. "
        "`durasim machines --show NAME` prints the file of a machine with the source of each value; "
        "[Add a machine](../CONTRIBUTING.md#add-a-machine) says how to write one. "
        "*Needed* keys have no default: the file, or the section if it is there, must have them. "
        f"The last column is the value of `{DEFAULT_MACHINE}`, "
        "the machine that runs without `--machine`.",
    ]
    section = None
    rows = configuration_rows(schema, schema["$defs"])
    for key, allowed, default, description in sorted(rows, key=lambda row: "." in row[0]):
        head = key.partition(".")[0] if "." in key else ""
        if head != section:
            section = head
            lines += ["", f"## {f'Section {head}' if head else 'The machine'}", ""]
            lines += ["| key | what it is | allowed | default | here |", "| --- | --- | --- | --- | --- |"]
        here = _code(preset[key]) if key in preset else ""
        lines.append(f"| `{key}` | {_cell(description)} | {_cell(allowed)} | {default} | {here} |")
    # Variants that share their hardware share its parameters.
    row_of = {row["hardware"]: row["name"] for row in reversed(durasim.designs())}
    for name in sorted(row_of):
        parameters = durasim.describe_design(row_of[name])["parameters"]
        if parameters:
            lines += ["", f"## Design {name}", ""]
            lines += ["| key | what it is | range | default | source |", "| --- | --- | --- | --- | --- |"]
            lines += [
                f"| `design.{name}.{of['name']}` | {_cell(of['description'])} | {_cell(of['range'])} "
                f"| {_code(of['default'])} | {_cell(of['source'])} |"
                for of in parameters
            ]
    return "\n".join(lines) + "\n"


def python_api() -> str:
    """Gives the page from which mkdocstrings makes the reference of the Python API."""
    lines = [
        "# Python API",
        "",
        "`import durasim as ds`. The commands do the same: each is a few lines around one of these functions. "
        "From the docstrings of the package.",
    ]
    lines += [f"\n::: durasim.{name}" for name in durasim.__all__ if name != "__version__"]
    return "\n".join(lines) + "\n"


GENERATED = {
    "reference/commands.md": commands,
    "reference/configuration.md": configuration,
    "reference/python.md": python_api,
}


def _group(title: str, *entries: str | tuple[str, str] | Nav) -> dict[str, Any]:
    group: list[Any] = []
    for entry in entries:
        if isinstance(entry, list):
            group += entry
        else:
            group.append(entry if isinstance(entry, str) else {entry[1]: entry[0]})
    return {title: group}


def _folder(pattern: str, *without: str) -> Nav:
    found = [page for page in sorted(ROOT.glob(pattern)) if page.name not in without]
    # What explains a name in its heading is too long for a list.
    return [{title_of(page).partition(":")[0]: page.relative_to(ROOT).as_posix()} for page in found]


def navigation() -> Nav:
    """Gives the navigation. A new page of a design, a result or a part of the machine is in it without an edit."""
    return [
        _group("Start", ("README.md", "durasim"), ("docs/first-hour.md", "Tutorial: the first hour"),
               ("docs/concepts.md", "Concepts"), ("docs/citing.md", "How to cite")),
        _group("Designs", ("docs/designs.md", "All designs"), _folder("docs/designs/*.md"),
               ("docs/software-logging.md", "Logs in software"),
               ("docs/hardware-transactions.md", "Hardware transactions")),
        _group("Machines", ("docs/machines.md", "All machines, and how to change one"),
               ("docs/machine-model.md", "The model in detail"),
               ("docs/machine-assumptions.md", "Assumptions about machines"),
               ("docs/performance.md", "Speed, and memory beside Ramulator")),
        _group("Programs", ("docs/workloads.md", "Workloads"), ("docs/own-programs.md", "Programs with own flushes"),
               ("docs/programs-of-others.md", "Programs with transactions"),
               ("docs/programs-of-a-distribution.md", "Programs of a distribution"),
               ("docs/system-calls.md", "System calls"),
               ("docs/own-designs.md", "A design of your own")),
        _group(
            "Studies",
            ("docs/studies.md", "Sweeps and the store of results"),
            ("docs/reproducing.md", "Figures and tables of papers"),
            ("docs/artifacts.md", "Artifacts for committees"),
            ("docs/python.md", "Python and notebooks"),
        ),
        _group("Crash laboratory", ("docs/crash.md", "Crashes and recovery"),
               ("docs/explore.md", "A run on a page"), ("docs/debugger.md", "A failure under gdb"),
               ("docs/trace.md", "A run over time"), ("docs/models.md", "Protocol models"),
               ("docs/fuzzing.md", "Fuzzing")),
        _group("Results", ("docs/results/scoreboard.md", "Scoreboard"), _folder("docs/results/*.md", "scoreboard.md")),
        _group("Trust", ("TRUST.md", "What the results are worth"), ("LIMITS.md", "Limits"),
               ("DEVIATIONS.md", "Deviations and assumptions"), ("tests/timing/README.md", "Timing beside gem5")),
        _group("Reference", ("reference/commands.md", "Commands"), ("reference/configuration.md", "Configuration"),
               ("reference/python.md", "Python API")),
        _group("Contributing", ("CONTRIBUTING.md", "Contributing"), ("ARCHITECTURE.md", "Architecture"),
               ("docs/NEXT.md", "Next"),
               ("docs/contract.md", "The contract of a design"), _folder("docs/internals/*.md"),
               ("docs/dependencies.md", "Dependencies"), ("docs/roadmap.md", "Roadmap"), ("CHANGELOG.md", "Changelog")),
    ]  # fmt: skip


def stage() -> None:
    """Gathers the sources of the site in build/site-source and writes the configuration of mkdocs."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    for path in sorted(sources()):
        copy = SOURCE / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    for name, write in GENERATED.items():
        (SOURCE / name).parent.mkdir(parents=True, exist_ok=True)
        (SOURCE / name).write_text(write(), encoding="utf-8")
    # The script that draws diagrams comes with a Python package, unchanged; nothing else of the package is used.
    package = importlib.util.find_spec("mermaidx")
    if package is None or package.origin is None:
        raise SystemExit("the packages of the site are not installed: `make docs` installs them")
    (SOURCE / "assets").mkdir()
    shutil.copyfile(Path(package.origin).parent / "assets" / "mermaid.js", SOURCE / "assets" / "mermaid.min.js")
    shutil.copyfile(ROOT / "docs/theme/site.css", SOURCE / "assets" / "site.css")
    own = {
        "INHERIT": str(ROOT / "mkdocs.yml"),
        "docs_dir": str(SOURCE),
        "site_dir": str(SITE),
        "theme": {"custom_dir": str(ROOT / "docs/theme")},
        "plugins": {"search": {}, "mkdocstrings": {"handlers": {"python": {"paths": [str(ROOT / "python")]}}}},
        "nav": navigation(),
    }
    # JSON is YAML.
    CONFIGURATION.write_text(json.dumps(own, indent=1), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Stages and builds the site; gives the exit code of mkdocs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stage", action="store_true", help="only gather the sources")
    options = parser.parse_args(arguments)
    stage()
    if options.stage:
        return 0
    command = (sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(CONFIGURATION))
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())

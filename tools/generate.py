"""Regenerates schemas, recorded statistics, effects of assumptions, and lists and tables in documents.

    .venv/bin/python -m tools.generate                    # everything, as `make generate`
    .venv/bin/python -m tools.generate documents          # one part
    .venv/bin/python -m tools.generate recorded --missing # only runs that are not recorded yet

A generated part of a document is enclosed by `<!-- generated NAME -->` and `<!-- end generated -->`.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import durasim
from durasim.papers.paper_files import paper_names
from durasim.programs import suites
from durasim.runs.assumptions import assumptions
from durasim.runs.sensitivity import DAGGER
from tools import (
    design_tables,
    deviations,
    figures,
    published,
    regime_tables,
    sensitivity,
    sources,
    system_calls,
    trust,
)

ROOT = Path(__file__).resolve().parents[1]

CONFORMANCE = ROOT / "tests" / "conformance"
PART = re.compile(r"(<!-- generated (\S+) -->\n).*?(<!-- end generated -->)", re.DOTALL)


def designs() -> str:
    """Returns the table of all variants, with their pages and what their models were made from."""
    lines = [
        "| design | description | published | source read | domains | promise |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in durasim.designs():
        page = f"designs/{row['name']}.md"
        name = f"[`{row['name']}`]({page})" if (ROOT / "docs" / page).is_file() else f"`{row['name']}`"
        dagger = DAGGER if row["assumptions"] else ""
        control = " Negative control: it must fail." if row["control"] else ""
        cells = (row["paper"], sources.source_of(row["name"]), ", ".join(row["domains"]), row["promise"])
        lines.append(f"| {name}{dagger} | {row['summary']}.{control} | {' | '.join(cells)} |")
    return "\n".join(lines)


def workloads() -> str:
    """Returns the table of all programs, with the suites that contain them."""
    lines = ["| program | description | suites |", "| --- | --- | --- |"]
    for workload in durasim.workloads():
        found = {of.suite for of in durasim.suite_members() if of.suite and of.info.program == workload.name}
        names = ", ".join(f"`{suite}`" for suite in sorted(found))
        lines.append(f"| `{workload.name}` | {workload.description} | {names} |")
    return "\n".join(lines)


def suite_table() -> str:
    """Gives the table of all suites: what they are from, and what their papers run and compare."""
    lines = ["| suite | source | workloads | threads | designs |", "| --- | --- | ---: | ---: | --- |"]
    for suite in suites.suite_names():
        members = [member for member in durasim.suite_members() if member.suite == suite]
        threads = " or ".join(str(count) for count in sorted({member.threads for member in members}))
        try:
            designs = ", ".join(f"`{name}`" for name in suites.designs_of([f"{suites.GROUP_PREFIX}{suite}"]))
        except durasim.ConfigError:
            designs = ""
        lines.append(f"| `{suite}` | {members[0].source} | {len(members)} | {threads} | {designs} |")
    return "\n".join(lines)


def machines() -> str:
    """Returns the table of all presets."""
    lines = ["| machine | description | cores | MHz |", "| --- | --- | ---: | ---: |"]
    for row in durasim.machines():
        lines.append(f"| `{row['name']}` | {row['description']} | {row['cores']} | {row['frequency_mhz']} |")
    return "\n".join(lines)


def mechanisms() -> str:
    """Returns the table of the pages of designs."""
    tables = design_tables.read_tables(ROOT)
    lines = ["| design | mechanisms | functions | tests |", "| --- | ---: | ---: | ---: |"]
    for name in dict.fromkeys(row.design for row in tables):
        rows = [row for row in tables if row.design == name]
        functions = {function for row in rows for function in row.functions}
        tests = {test for row in rows for test in row.tests}
        lines.append(f"| [`{name}`](designs/{name}.md) | {len(rows)} | {len(functions)} | {len(tests)} |")
    return "\n".join(lines)


def hooks() -> str:
    """Gives the table of hooks and of the designs that answer them, from the sources; required methods are left out."""
    trait = HOOKS_TRAIT.search((ROOT / "crates/contract/src/hooks.rs").read_text(encoding="utf-8"))
    if trait is None:
        raise ValueError("crates/contract/src/hooks.rs has no trait Durability")
    answered: dict[str, list[str]] = {}
    for file in sorted((ROOT / "crates/designs/src").glob("*.rs")):
        if found := HOOKS_OF_DESIGN.search(file.read_text(encoding="utf-8")):
            for hook in METHOD.findall(found[1]):
                answered.setdefault(hook, []).append(f"`{file.stem}`")
    lines, unused = ["| hook | designs |", "| --- | --- |"], []
    for hook in METHOD.findall(trait[1]):
        if hook in answered:
            lines.append(f"| `{hook}` | {', '.join(answered[hook])} |")
        else:
            unused.append(f"`{hook}`")
    return "\n".join([*lines, "", f"No registered design implements {', '.join(unused)}."])


HOOKS_TRAIT = re.compile(r"^pub trait Durability\b.*?\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
HOOKS_OF_DESIGN = re.compile(r"^impl Durability for \w+ \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
METHOD = re.compile(r"^    fn (\w+)\([^{;]*\{", re.MULTILINE)
PARTS: Mapping[str, Callable[[], str]] = {
    "designs": designs,
    "workloads": workloads,
    "suites": suite_table,
    "machines": machines,
    "mechanisms": mechanisms,
    "hooks": hooks,
    "system-calls": system_calls.table,
    "system-call-counts": system_calls.counts,
    "sensitivity": sensitivity.tables,
    "sensitivity-ranges": sensitivity.ranges,
    "sensitivity-places": sensitivity.places,
    "scoreboard": published.scoreboard,
    "scoreboard-bands": published.bands,
    "trust-scoreboard": trust.scoreboard,
    "trust-ranges": trust.ranges,
    "trust-assumptions": trust.headline_assumptions,
    "trust-gem5": trust.gem5,
    "trust-papers": trust.papers_not_read,
    "tc-by-machine": trust.tc_by_machine,
    "trust-crashes": trust.crashes,
    "trust-planted": trust.planted,
    "published-lad-micro19": partial(published.table, "lad-micro19"),
    "published-lad-micro19-workloads": partial(published.part_table, "lad-micro19", "workloads"),
    "experiments-lad-micro19": partial(published.experiments_table, "lad-micro19"),
    "published-pinspect-micro20": partial(published.table, "pinspect-micro20"),
    "published-pinspect-micro20-split": partial(published.part_table, "pinspect-micro20", "split"),
    "published-pinspect-micro20-filters": partial(published.part_table, "pinspect-micro20", "filters"),
    "published-spht-eadr-2022": partial(published.table, "spht-eadr-2022"),
    **{
        f"published-spht-eadr-2022-{part}": partial(published.part_table, "spht-eadr-2022", part)
        for part in (
            "threads",
            "links",
            "limits",
            "waits",
            "small-caches",
            "small-caches-threads",
            "shadow",
            "replay",
            "interrupts",
        )
    },
    "published-hercules-tecs23": partial(published.table, "hercules-tecs23"),
    **{
        f"published-hercules-tecs23-{part}": partial(published.part_table, "hercules-tecs23", part)
        for part in (
            *("throughput", "bytes", "workloads", "pairs", "readings", "medium", "sizes"),
            *("tails", "huge", "resets", "scaling", "full", "tc"),
        )
    },
    "regimes-against-tc": regime_tables.against_tc,
    "regimes-shares": regime_tables.shares,
    "regimes-throughput": regime_tables.throughputs,
    "regimes-against-tc-by-size": regime_tables.against_tc_by_size,
    "published-tc-dac17": partial(published.table, "tc-dac17"),
    "published-tc-dac17-workloads": partial(published.part_table, "tc-dac17", "workloads"),
    "published-tc-dac17-other": partial(published.part_table, "tc-dac17", "other"),
    **{f"figures-{name}": partial(figures.part, name) for name in paper_names()},
    **{f"readings-{name}": partial(published.readings, name) for name in paper_names()},
    "published-spht-eadr-2022-programs": partial(published.table, "spht-eadr-2022-programs"),
    **{
        f"published-spht-eadr-2022-programs-{part}": partial(published.part_table, "spht-eadr-2022-programs", part)
        for part in ("threads", "limits", "uncounted", "uncounted-threads", "variants")
    },
}
DEVIATIONS = ROOT / "DEVIATIONS.md"
LEADING = "leading-"


def documents() -> dict[Path, str]:
    """Returns each document with generated parts, with these parts up to date, and the charts of pages of results."""
    found = {}
    pages_of_assumptions = {assumption.page for assumption in assumptions().values()}
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(ROOT).as_posix()
        if name in pages_of_assumptions:
            text = deviations.with_effects(name, text)
        if PART.search(text) or name in pages_of_assumptions:
            found[path] = PART.sub(lambda part: f"{part[1]}{_part(part[2])}\n{part[3]}", text)
    return found | {DEVIATIONS: deviations.deviations()} | figures.files()


def _part(name: str) -> str:
    """Returns a generated part; `leading-NAME` is that of a design."""
    if name.startswith(LEADING):
        return trust.leading(name.removeprefix(LEADING))
    return PARTS[name]()


def write_documents() -> None:
    """Writes the generated parts of all documents."""
    for path, text in documents().items():
        path.write_text(text, encoding="utf-8")


def _find_conformance() -> None:
    """Lets a process of a pool import what runs are recorded with."""
    sys.path.insert(0, str(CONFORMANCE))


def write_recorded(*, is_missing_enough: bool) -> None:
    """Writes what runs are recorded to do; cases that are no longer there go."""
    _find_conformance()
    import recorder  # noqa: PLC0415 - found by the path above

    cases = recorder.cases()
    files = {case.file for case in cases}
    kept = {file: json.loads(file.read_text(encoding="utf-8")) if is_missing_enough else {} for file in files}
    wanted = [case for case in cases if case.name not in kept[case.file]]
    values: dict[Path, dict[str, Any]] = {
        file: {case.name: kept[file][case.name] for case in cases if case.file == file and case.name in kept[file]}
        for file in files
    }
    with ProcessPoolExecutor(mp_context=get_context("spawn"), initializer=_find_conformance) as pool:
        for case, found in zip(wanted, pool.map(recorder.record, wanted, chunksize=8), strict=True):
            values[case.file][case.name] = found.value
    for file in files:
        recorder.write(file, values[file])


def write_schemas() -> None:
    """Writes the schema, the typed result and the options generated from the description of a run."""
    subprocess.run([sys.executable, "-m", "tools.generate_schemas"], check=True, cwd=ROOT)


def write_assumptions() -> None:
    """Measures the assumptions whose measurements are missing or outdated."""
    subprocess.run([sys.executable, str(ROOT / "tools" / "sensitivity.py"), "--outdated"], check=True)


def main() -> None:
    """Regenerates the given parts, or all."""
    parser = argparse.ArgumentParser(description="Regenerate files and parts of documents.")
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help="schemas, recorded, assumptions or documents (default: all)"
    )
    parser.add_argument("--missing", action="store_true", help="measure only missing runs")
    chosen = parser.parse_args()
    write: dict[str, Callable[[], None]] = {
        "schemas": write_schemas,
        "recorded": lambda: write_recorded(is_missing_enough=chosen.missing),
        "assumptions": write_assumptions,
        "documents": write_documents,
    }
    for part in chosen.parts:
        if part not in write:
            parser.error(f"unknown part '{part}' (allowed: {', '.join(write)})")
    for part in chosen.parts or write:
        print(part, flush=True)
        write[part]()


if __name__ == "__main__":
    main()

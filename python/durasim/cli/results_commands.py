"""The commands `durasim results ...`: the store of results."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from durasim import _core, api, output
from durasim.cli import options, render
from durasim.cli.options import check_json, finish
from durasim.cli.shell import EXIT_NEGATIVE
from durasim.documents.difference import diff as difference_of
from durasim.documents.results import CrashResult, RunResult
from durasim.errors import refusal, unknown_name

results = typer.Typer(
    name="results",
    help="List, show, compare, export, prune and check stored results.",
    add_completion=False,
    rich_markup_mode=None,
)

Key = Annotated[str, typer.Argument(metavar="KEY", help="The key of a result, or its first characters.")]
StudyName = Annotated[str | None, typer.Option("--study", metavar="NAME", help="Only results of this study.")]
Design = Annotated[str | None, typer.Option("--design", metavar="NAME", help="Only results of this design.")]
Workload = Annotated[
    str | None, typer.Option("--workload", metavar="NAME", help="Only results of this workload or program.")
]
_DAY_S = 86400


def _opened(store: str | None) -> Any:
    """Opens the store of a command, which has to exist."""
    from durasim.store.database import Store  # noqa: PLC0415 - keeps the start-up of other commands short
    from durasim.store.location import default_path  # noqa: PLC0415

    return Store(default_path() if store is None else store, create=False)


def _where(**values: str | None) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}


_TABULAR = ("run", "crash")
"""Kinds with columns of metrics."""
_KINDS = (*_TABULAR, "mutant", "random")


def _check_kind(kind: str | None, allowed: Sequence[str]) -> None:
    if kind is not None and kind not in allowed:
        raise unknown_name("kind", kind, allowed)


@results.command("list")
def list_(
    store: options.StoreFile = None,
    study: StudyName = None,
    design: Design = None,
    workload: Workload = None,
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="NAME", help="Only `run`, `crash`, `mutant` or `random`.")
    ] = None,
    json: options.JsonFile = None,
) -> None:
    """List the stored results."""
    from durasim.cli import study_tables  # noqa: PLC0415 - keeps the start-up of other commands short
    from durasim.documents.stored_results import SCHEMA, StoredResults  # noqa: PLC0415

    check_json(json)
    _check_kind(kind, _KINDS)
    with _opened(store) as opened:
        entries = opened.entries(**_where(study=study, design=design, workload=workload, kind=kind))
        document = StoredResults(SCHEMA, _core.__version__, opened.path, opened.size_bytes(), tuple(entries))
    finish(json, document.to_dict(), study_tables.entries_table(document.store, entries))


@results.command()
def show(
    key: Key,
    store: options.StoreFile = None,
    wide: options.Wide = False,
    json: options.JsonFile = None,
) -> None:
    """Show one result as the command that simulated it did."""
    check_json(json)
    with _opened(store) as opened:
        entry = opened.find(key)
        document = opened.get(entry.key)
    if "error" in document:
        finish(json, document, document["error"])
    elif entry.kind == "run":
        finish(json, document, render.run_table(RunResult.from_dict(document), wide=wide))
    elif entry.kind == "random":
        finish(json, document, render.random_tables(document))
    else:
        document = _with_commands(document)
        finish(json, document, render.crash_text(CrashResult.from_dict(document), wide=wide))


def _with_commands(document: dict[str, Any]) -> dict[str, Any]:
    """Returns the document of a crash with what its command adds; the store keeps the command itself."""
    failures = [{"command": "", **failure} for failure in document["failures"]]
    return {"shrunk": None, **document, "failures": failures}


@results.command()
def diff(a: Key, b: Key, store: options.StoreFile = None, json: options.JsonFile = None) -> None:
    """Show how two stored runs differ in configuration and results, as `durasim diff` does for files."""
    check_json(json)
    with _opened(store) as opened:
        entries = [opened.find(key) for key in (a, b)]
        for field, entry in zip(("a", "b"), entries, strict=True):
            if entry.kind != "run":
                raise refusal(field, f"{entry.key} is of kind {entry.kind}; only runs are compared")
        first, second = (RunResult.from_dict(opened.get(entry.key)) for entry in entries)
    difference = difference_of(first, second)
    finish(json, difference.to_dict(), render.difference_table(difference))


@results.command()
def export(
    file: Annotated[str, typer.Argument(metavar="FILE", help="File to write: .parquet, .csv or .jsonl.")],
    store: options.StoreFile = None,
    study: StudyName = None,
    design: Design = None,
    workload: Workload = None,
    kind: Annotated[
        str, typer.Option("--kind", metavar="NAME", help="`run` or `crash`, which have separate columns.")
    ] = "run",
) -> None:
    """Export stored results as a table; FILE.units.json has the units of its columns."""
    from durasim.studies import export as exports  # noqa: PLC0415 - keeps the start-up of other commands short

    _check_kind(kind, _TABULAR)
    exports.check_name(file)
    output.check_writable(file)
    with _opened(store) as opened:
        entries = opened.entries(**_where(study=study, design=design, workload=workload, kind=kind))
        if not entries:
            raise refusal("results", f"{opened.path} has no such result")
        side = exports.write_frame(exports.export_frame(opened, entries), file)
    output.write_stdout(f"{len(entries)} results in {file}, units in {side}\n")


@results.command()
def prune(
    store: options.StoreFile = None,
    study: StudyName = None,
    days: Annotated[
        float | None, typer.Option("--older-than", metavar="DAYS", help="Only results stored longer ago.")
    ] = None,
    builds: Annotated[
        bool, typer.Option("--other-builds", help="Only results of other builds, which this one never reuses.")
    ] = False,
    dry: Annotated[bool, typer.Option("--dry-run", help="Print how many results would be removed.")] = False,
) -> None:
    """Remove the stored results that meet all given conditions, and shrink the file."""
    from durasim.store.keys import build  # noqa: PLC0415 - keeps the start-up of other commands short

    if study is None and days is None and not builds:
        raise refusal("prune", "give --study, --older-than or --other-builds")
    with _opened(store) as opened:
        before_s = None if days is None else time.time() - days * _DAY_S
        removed = [
            entry.key
            for entry in opened.entries(**_where(study=study))
            if (before_s is None or entry.created_s < before_s) and not (builds and entry.build == build())
        ]
        if not dry:
            opened.remove(removed)
        verb = "would be removed" if dry else "removed"
        sentence = f"{len(removed)} of {opened.count() + (0 if dry else len(removed))} results {verb}"
        output.write_stdout(f"{sentence}; {opened.path} has {opened.size_bytes():,} bytes\n")


@results.command()
def check(
    store: options.StoreFile = None,
    salvage: Annotated[
        str | None, typer.Option("--salvage", metavar="NEW", help="Copy all whole results into this new store.")
    ] = None,
) -> None:
    """Verify the file and every stored result; the exit code is 1 if something is damaged."""
    with _opened(store) as opened:
        problems = opened.problems()
        for problem in problems:
            output.write_stdout(f"{problem}\n")
        if salvage is not None:
            with api.opened_store(salvage) as target:
                assert target is not None  # noqa: S101 - a path is given
                output.write_stdout(f"{opened.copy_readable(target)} results copied to {salvage}\n")
        if not problems:
            output.write_stdout(f"{opened.count()} results, {opened.size_bytes():,} bytes, no damage\n")
    if problems:
        raise typer.Exit(EXIT_NEGATIVE)

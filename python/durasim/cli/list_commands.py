"""The commands that list designs, workloads and machines."""

from __future__ import annotations

from typing import Annotated

import typer

from durasim import api, output
from durasim.cli import completion, hints, list_tables, options, render
from durasim.cli.options import check_json, finish
from durasim.cli.shell import EXIT_NEGATIVE
from durasim.documents.mechanisms import check_document, verdict_lines
from durasim.documents.results import TxProfile
from durasim.errors import refusal
from durasim.programs import workload_list
from durasim.programs.scale import DEFAULT_SCALE
from durasim.programs.workload_tables import is_path


def designs(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Designs to describe with parameters and assumptions.",
            autocompletion=completion.designs,
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Verify the tables of docs/designs/ (of the given designs): all functions exist, all tests pass.",
        ),
    ] = False,
    json: options.JsonFile = None,
) -> None:
    """List the designs, describe some with parameters and assumptions, or verify their pages in docs/designs/."""
    check_json(json)
    if check:
        _check_designs(names, json)
    elif names:
        described = [api.describe_design(name) for name in names]
        finish(json, described, list_tables.parameter_tables(described))
    else:
        found = api.designs()
        finish(json, found, list_tables.designs_table(found))


def _check_designs(names: list[str] | None, json: str | None) -> None:
    with render.progress_bar() as bar:
        task = bar.add_task("reads the tables", total=None)
        mechanisms = api.check_designs(names, progress=lambda what: bar.update(task, description=what))
    lines = verdict_lines(mechanisms)
    finish(json, check_document(mechanisms), render.lines_text(lines))
    if any(mechanism.problems for mechanism in mechanisms):
        raise typer.Exit(EXIT_NEGATIVE)


def workloads(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Workloads, or sources of some, to describe with their arguments; all-SUITE: all of a suite.",
            autocompletion=completion.workloads_and_suites,
        ),
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Run each workload functionally and show what its transactions write.")
    ] = False,
    ops: Annotated[
        int | None,
        typer.Option("--ops", help="Transactions of each workload with --measure (default: its own number)."),
    ] = None,
    scale: options.ScaleName = DEFAULT_SCALE,
    json: options.JsonFile = None,
) -> None:
    """List the workloads and the suites of the papers, or describe some with their arguments."""
    check_json(json)
    if ops is not None and not measure:
        raise refusal("ops", "requires --measure")
    if scale != DEFAULT_SCALE and not measure:
        raise refusal("scale", "requires --measure")
    entries = workload_list.workload_entries(names)
    if not names:
        hints.warn_of_broken_workloads()
    profiles: dict[str, TxProfile] = {}
    if measure:
        with render.progress_bar() as bar:
            for entry in bar.track(entries, description="measuring"):
                named = entry.info.program if is_path(entry.info.program) else entry.info.name
                profiles[entry.info.name] = api.measure_workload(named, ops=ops, threads=entry.threads, scale=scale)
    shown = list_tables.workloads_table(entries, profiles) if names or measure else list_tables.workloads_list(entries)
    finish(json, workload_list.workload_rows(entries, profiles), shown)


def machines(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help="Presets to describe with parameters.", autocompletion=completion.machines
        ),
    ] = None,
    show: Annotated[
        str | None, typer.Option("--show", metavar="NAME", help="Print the TOML text of one preset.")
    ] = None,
    json: options.JsonFile = None,
) -> None:
    """List the machine presets, or describe some with all their parameters."""
    if names and show is not None:
        raise refusal("show", "prints one preset as TOML and excludes other names")
    if show is not None:
        text = api.machine_toml(show)
        if json is None:
            output.write_stdout(text)
        else:
            output.write_json(json, {"name": show, "toml": text})
        return
    if names:
        described = [api.describe_machine(name) for name in names]
        finish(json, described, list_tables.machine_tables(described))
        return
    found = api.machines()
    finish(json, found, list_tables.machines_table(found))

"""The command `durasim explain`: where the cycles and the bytes of designs went against a baseline."""

from __future__ import annotations

from typing import Annotated

import typer

from durasim import api, output
from durasim.cli import completion, formats, hints, options, render
from durasim.cli.options import check_json
from durasim.cli.shell import EXIT_NEGATIVE
from durasim.documents.chart_files import check_chart_file, write_chart
from durasim.documents.escaping import csv_text
from durasim.documents.explanation import Explanation, explain_all, explain_runs
from durasim.documents.explanation_rows import QUANTITIES, is_empty
from durasim.documents.loading import load_run
from durasim.documents.results import RunResult
from durasim.errors import refusal
from durasim.programs.scale import DEFAULT_SCALE
from durasim.runs import comparison
from durasim.runs.scenario import DEFAULT_MACHINE, DEFAULT_SEED
from durasim.store.reuse import Reuse

_WITH_FILES = frozenset({"files", "plot", "wide", "form", "json"})
"""Parameters that saved results take."""

Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[JSON|ARGS]...",
        help="Results of `durasim run --json`, the baseline first; with --elf the program's arguments, after --.",
    ),
]
Workloads = Annotated[
    str | None,
    typer.Option(
        "--workloads",
        "--workload",
        metavar="X,Y",
        help="Workloads or sources of some, separated by commas; all-SUITE: all of a suite.",
        autocompletion=completion.workload_lists,
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="NAME",
        help="The design that the others are explained against (default: opt).",
        autocompletion=completion.designs,
    ),
]
Plot = Annotated[
    str | None,
    typer.Option("--plot", metavar="FILE", help="Write stacked bars of cycles and bytes: .svg, .png or .html."),
]


def explain(
    ctx: typer.Context,
    files: Files = None,
    workloads: Workloads = None,
    designs: options.Designs = None,
    baseline: Baseline = None,
    machine: options.Machine = DEFAULT_MACHINE,
    ops: options.Ops = None,
    threads: options.SuiteThreads = None,
    seed: options.Seed = DEFAULT_SEED,
    scale: options.ScaleName = DEFAULT_SCALE,
    set_: options.Set = None,
    control: options.Control = False,
    arg: options.WorkloadArgs = None,
    macros: options.Macros = None,
    include_folders: options.IncludeFolders = None,
    elf: options.Elf = None,
    env: options.Env = None,
    fast_forward: options.FastForward = None,
    jobs: options.Jobs = None,
    store: options.StoreFile = None,
    no_store: options.NoStore = False,
    plot: Plot = None,
    wide: options.Wide = False,
    form: options.Format = formats.TABLE,
    json: options.JsonFile = None,
) -> None:
    """Explain where cycles went against a baseline, and where each byte written to pmem came from.

    It runs every workload under the baseline and every design, as `durasim compare` does, or reads saved results. The
    rows of a table add up to its sum exactly. After Ctrl-C the completed runs are explained.
    """
    _check_outputs(plot, form, json)
    if files and elf is None:
        _refuse_options_of_runs(ctx)
        _show(_of_files(files), plot=plot, form=form, json=json, wide=wide)
        return
    kept = options.store_of(store, no_store)
    if workloads is None and elf is None:
        raise refusal("explain", "give --workloads, a program with --elf, or two results of `durasim run --json`")
    of_baseline, scenarios = comparison.explained_scenarios(
        baseline,
        None if designs is None else options.names_of(designs),
        None if workloads is None else options.names_of(workloads),
        machine=machine, ops=ops, threads=threads, seed=seed, elf=elf, args=files or (), env=env or (),
        scale=scale, set=set_, control=control, workload_args=dict(options.pairs_of(arg)), fast_forward=fast_forward,
        macros=macros or (), include_folders=include_folders or (),
    )  # fmt: skip

    def show(results: list[RunResult]) -> None:
        explanation = explain_all(results, of_baseline, len(scenarios))
        if explanation.explained:
            _show(explanation, plot=plot, form=form, json=json, wide=wide)

    with render.progress_bar() as bar, api.opened_store(kept) as opened:
        task, reuse = bar.add_task("running", total=len(scenarios)), Reuse(opened)
        results = comparison.run_all(
            scenarios, jobs=jobs, running=lambda done: bar.update(task, completed=done), interrupted=show, reuse=reuse
        )
    show(results)
    hints.report_reuse(reuse.reused, len(scenarios))
    hints.warn_if_data_fits_in_cache(results)
    if any(result.guest_exit_code for result in results):
        raise typer.Exit(EXIT_NEGATIVE)


def _check_outputs(plot: str | None, form: str, json: str | None) -> None:
    """Checks before any run that all can be written."""
    check_json(json)
    formats.check(form, json)
    if plot is not None:
        check_chart_file("plot", plot)
        output.check_writable(plot)


def _refuse_options_of_runs(ctx: typer.Context) -> None:
    """Refuses options that saved results do not use."""
    for parameter in ctx.command.params:
        source = ctx.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE" and parameter.name not in _WITH_FILES:
            raise refusal(parameter.opts[0].lstrip("-"), "is about runs, and files of results are given: leave one out")


def _of_files(files: list[str]) -> Explanation:
    """Explains saved results, the first being that of the baseline."""
    if len(files) == 1:
        raise refusal("explain", f"{files[0]} is one result: give that of the baseline and at least another one")
    first, *others = [load_run(path, "explain") for path in files]
    return explain_runs(first, others, files)


def _show(explanation: Explanation, *, plot: str | None, form: str, json: str | None, wide: bool) -> None:
    """Writes the document and the chart if requested, and prints the tables."""
    from durasim.cli.explanation_tables import explanation_tables  # noqa: PLC0415 - keeps the start-up short

    document = explanation.to_dict()
    if json is not None:
        output.write_json(json, document)
    if json != output.STANDARD_OUTPUT:
        shown = explanation_tables(explanation, wide=wide or form != formats.TABLE)
        formats.show(form, document, shown, lambda: csv_text(explanation.to_frame()))
    if plot is not None:
        import altair  # noqa: PLC0415 - slow to load

        # Data that fits in caches is written by no design.
        drawn = [quantity for quantity in QUANTITIES if not is_empty(explanation, quantity)]
        charts = altair.hconcat(*(explanation.plot(quantity) for quantity in drawn))
        write_chart(charts.resolve_scale(color="independent").to_dict(), plot)

"""The commands `run`, `compare` and `diff`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Group, RenderableType

from durasim import api, output
from durasim.cli import formats, hints, options, render
from durasim.cli.comparison_tables import comparison_tables
from durasim.cli.options import check_json, finish
from durasim.cli.persistence_tables import persistence_table
from durasim.cli.progress import RunBar
from durasim.cli.shell import EXIT_NEGATIVE
from durasim.documents.described import RunOptions
from durasim.documents.difference import diff as difference_of
from durasim.documents.results import RunResult
from durasim.errors import refusal
from durasim.programs.scale import DEFAULT_SCALE
from durasim.runs import comparison
from durasim.runs.comparison_document import comparison_document
from durasim.runs.scenario import DEFAULT_DESIGN, DEFAULT_MACHINE, DEFAULT_SEED
from durasim.store.reuse import Reuse


@options.takes_options("run_options", RunOptions)
def run(
    args: options.ProgramArgs = None,
    design: options.Design = DEFAULT_DESIGN,
    workload: options.Workload = None,
    machine: options.Machine = DEFAULT_MACHINE,
    ops: options.Ops = None,
    threads: options.Threads = 1,
    seed: options.Seed = DEFAULT_SEED,
    set_: options.Set = None,
    domain: options.Domain = None,
    control: options.Control = False,
    arg: options.WorkloadArgs = None,
    macros: options.Macros = None,
    include_folders: options.IncludeFolders = None,
    elf: options.Elf = None,
    env: options.Env = None,
    run_options: options.OptionValues = None,
    scale: options.ScaleName = DEFAULT_SCALE,
    reuse: options.Reuse = False,
    store: options.StoreFile = None,
    wide: options.Wide = False,
    form: options.Format = formats.TABLE,
    json: options.JsonFile = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the output of the guest.")] = False,
) -> None:
    """Run a workload or a program; the output of the guest passes through.

    With `--json -`, `--format csv` and `--format json`, standard output carries only the document, and the output of
    the guest goes to standard error. A run answered by `--reuse` has no output of the guest.
    """
    scenario = options.scenario_of(
        design=design, workload=workload, machine=machine, ops=ops, threads=threads, seed=seed, set_=set_,
        domain=domain, control=control, arg=arg, macros=macros,
        include_folders=include_folders, elf=elf, args=args, env=env, run_options=run_options, scale=scale,
    )  # fmt: skip
    kept = options.reused_store(reuse, store)
    check_json(json)
    formats.check(form, json)
    if quiet and form != formats.TABLE:
        raise refusal("quiet", "prints no result and excludes --format: leave one out")
    to_stdout = formats.is_alone(form, json)
    with render.progress_bar() as bar:
        shown = RunBar(bar, f"running {scenario.design}", output.to_stderr if to_stdout else output.pass_through)
        result = api.run_scenario(scenario, shown.write, shown.show, kept)
    if json is not None:
        output.write_json(json, result.to_dict())
    if not quiet and json != output.STANDARD_OUTPUT:
        is_wide = wide or form != formats.TABLE
        shown: RenderableType = render.run_table(result, wide=is_wide)
        if result.persistence is not None:
            shown = Group(shown, persistence_table(result.persistence, wide=is_wide))
        formats.show(form, result.to_dict(), shown, lambda: formats.runs_csv([result]))
    if not quiet:
        hints.warn_if_data_fits_in_cache([result])
    _exit_with([result])


def compare(
    args: options.ProgramArgs = None,
    workloads: options.Workloads = None,
    designs: options.Designs = None,
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
    baseline: options.Baseline = None,
    pmem_baseline: options.PmemBaseline = None,
    fast_forward: options.FastForward = None,
    lost: Annotated[
        bool, typer.Option("--lost-cycles", help="Also print why each design takes more cycles than opt.")
    ] = False,
    jobs: options.Jobs = None,
    store: options.StoreFile = None,
    no_store: options.NoStore = False,
    wide: options.Wide = False,
    form: options.Format = formats.TABLE,
    json: options.JsonFile = None,
) -> None:
    """Run every workload, or one program, under every design and print one table.

    Runs are answered from the store of results if it has them. After Ctrl-C the table and the document contain the
    completed runs.

    At scale quick, a run too short for three rounds of a background engine is excluded from the means.
    """
    kept = options.store_of(store, no_store)
    check_json(json)
    formats.check(form, json)
    scenarios = comparison.scenarios(
        None if designs is None else options.names_of(designs),
        None if workloads is None else options.names_of(workloads),
        machine=machine, ops=ops, threads=threads, seed=seed, elf=elf, args=args or (), env=env or (),
        scale=scale, set=set_, control=control, workload_args=dict(options.pairs_of(arg)), fast_forward=fast_forward,
        macros=macros or (), include_folders=include_folders or (),
    )  # fmt: skip
    comparison.check_lost_cycles(lost, scenarios)
    throughput_of = comparison.baseline_of("baseline", baseline, scenarios)
    bytes_of = comparison.baseline_of("pmem_baseline", pmem_baseline, scenarios)

    def show(results: list[RunResult]) -> None:
        judged = comparison.judge(results, scale, bytes_of, throughput_of)
        document = comparison_document(judged, scale, len(scenarios)).to_dict()
        if json is not None:
            output.write_json(json, document)
        if json != output.STANDARD_OUTPUT:
            shown = comparison_tables(judged, with_lost_cycles=lost, wide=wide or form != formats.TABLE)
            formats.show(form, document, shown, lambda: formats.runs_csv(results, throughput_of))

    with render.progress_bar() as bar, api.opened_store(kept) as opened:
        task, reuse = bar.add_task("running", total=len(scenarios)), Reuse(opened)
        results = comparison.run_all(
            scenarios, jobs=jobs, running=lambda done: bar.update(task, completed=done), interrupted=show, reuse=reuse
        )
    show(results)
    hints.report_reuse(reuse.reused, len(scenarios))
    hints.warn_if_data_fits_in_cache(results)
    _exit_with(results)


def diff(
    a: Annotated[str, typer.Argument(metavar="A.JSON", help="A result of `durasim run --json`.")],
    b: Annotated[str, typer.Argument(metavar="B.JSON", help="Another one.")],
    json: options.JsonFile = None,
) -> None:
    """Show how two runs differ in configuration and results, largest change first."""
    check_json(json)
    first, second = (RunResult.from_dict(output.read_json(path, name)) for name, path in (("a", a), ("b", b)))
    difference = difference_of(first, second)
    finish(json, difference.to_dict(), render.difference_table(difference))


def _exit_with(results: list[RunResult]) -> None:
    if any(result.guest_exit_code for result in results):
        raise typer.Exit(EXIT_NEGATIVE)

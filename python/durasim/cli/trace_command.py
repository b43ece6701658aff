"""The command `trace`: a run over time, as a file for Perfetto."""

from __future__ import annotations

from typing import Annotated

import typer

from durasim import output
from durasim.cli import options, render
from durasim.cli.options import check_json
from durasim.cli.progress import RunBar
from durasim.cli.shell import EXIT_NEGATIVE
from durasim.documents.described import RunOptions
from durasim.errors import refusal
from durasim.programs.scale import DEFAULT_SCALE
from durasim.runs.scenario import DEFAULT_DESIGN, DEFAULT_MACHINE, DEFAULT_SEED


@options.takes_options("run_options", RunOptions)
def trace(
    args: options.ProgramArgs = None,
    out: Annotated[str | None, typer.Option("--output", metavar="FILE", help="File to write; required.")] = None,
    from_cycle: Annotated[int, typer.Option("--from-cycle", metavar="N", help="First cycle of the trace.")] = 0,
    to_cycle: Annotated[
        int | None,
        typer.Option(
            "--to-cycle", metavar="N", help="Cycle after the last one of the trace (default: end of the run)."
        ),
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option("--replay", metavar="ID", help="End the trace with this power failure, an id of `durasim crash`."),
    ] = None,
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
    json: options.JsonFile = None,
) -> None:
    """Run a workload or a program and write what happens over time: open the file in https://ui.perfetto.dev.

    The options are those of `durasim run`, and `--json` writes its document. The trace has transactions, stalls,
    commits, evictions, persist events and occupancies; more than 1,000,000 of them are refused.
    """
    from durasim.crashes import traced_run  # noqa: PLC0415 - keeps the start-up of other commands short

    if out is None:
        raise refusal("output", "is required: the file that the trace is written to")
    output.check_file(out)
    check_json(json)
    scenario = options.scenario_of(
        design=design, workload=workload, machine=machine, ops=ops, threads=threads, seed=seed, set_=set_,
        domain=domain, control=control, arg=arg, macros=macros,
        include_folders=include_folders, elf=elf, args=args, env=env, run_options=run_options, scale=scale,
    )  # fmt: skip
    request = traced_run.trace_request(scenario, from_cycle, to_cycle, replay)
    to_stdout = json == output.STANDARD_OUTPUT
    with render.progress_bar() as bar:
        shown = RunBar(bar, f"tracing {scenario.design}", output.to_stderr if to_stdout else output.pass_through)
        traced = traced_run.write_trace(out, request, shown.write, shown.show)
    if json is not None:
        output.write_json(json, traced.run.to_dict())
    if not to_stdout:
        window = f"cycles {traced.from_cycle:,} to {traced.to_cycle:,}"
        output.write_stdout(f"{out}: {traced.events:,} events of {window}; open it in https://ui.perfetto.dev\n")
    if traced.run.guest_exit_code:
        raise typer.Exit(EXIT_NEGATIVE)

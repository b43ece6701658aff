"""The command `durasim`. Every command is a few lines around the Python API; `--json` writes the same documents."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer
from rich.console import RenderableType

import durasim
from durasim import api, comparison, documents, options, output, render
from durasim.campaign import DEFAULT_POINTS, DEFAULT_VARIANTS, CrashOptions, faults_of, points_of
from durasim.comparison_tables import comparison_tables
from durasim.difference import diff as difference_of
from durasim.errors import refusal
from durasim.results import RunResult, TxProfile
from durasim.scale import DEFAULT_SCALE
from durasim.scenario import DEFAULT_DESIGN, DEFAULT_MACHINE, DEFAULT_SEED, Scenario
from durasim.shell import EXIT_NEGATIVE, Program

app = typer.Typer(
    name="durasim",
    cls=Program,
    help="Simulate RISC-V machines with persistent memory, crash them anywhere, recover and check.",
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        output.write_stdout(f"durasim {durasim.__version__}\n")
        raise typer.Exit


@app.callback()
def _program(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Simulate RISC-V machines with persistent memory, crash them anywhere, recover and check."""


@app.command()
@options.takes_run_options
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
    elf: options.Elf = None,
    env: options.Env = None,
    run_options: options.RunOptionValues = None,
    scale: options.ScaleName = DEFAULT_SCALE,
    json: options.JsonFile = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print what the guest prints and nothing else.")] = False,
) -> None:
    """Run a workload or a program; what the guest prints passes through.

    With `--json -` standard output carries the document alone and the guest's output goes to standard error.
    """
    scenario = options.scenario_of(
        design=design, workload=workload, machine=machine, ops=ops, threads=threads, seed=seed, set_=set_,
        domain=domain, control=control, arg=arg, elf=elf, args=args, env=env, run_options=run_options, scale=scale,
    )  # fmt: skip
    _check_json(json)
    to_stdout = json == output.STANDARD_OUTPUT
    result = api.run_scenario(scenario, output.to_stderr if to_stdout else output.pass_through)
    if json is not None:
        output.write_json(json, result.to_dict())
    if not quiet and not to_stdout:
        render.show(render.run_table(result))
    _exit_with([result])


@app.command()
def compare(
    designs: options.Designs,
    workloads: options.Workloads,
    machine: options.Machine = DEFAULT_MACHINE,
    ops: options.Ops = None,
    threads: options.Threads = 1,
    seed: options.Seed = DEFAULT_SEED,
    scale: options.ScaleName = DEFAULT_SCALE,
    set_: options.Set = None,
    control: options.Control = False,
    arg: options.WorkloadArgs = None,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="Runs at a time; all cores if not given.")] = None,
    json: options.JsonFile = None,
) -> None:
    """Run every workload under every design and print one table.

    At scale quick a run that was too short for three rounds of a background engine is not scored: it has no part in the
    means.
    """
    _check_json(json)
    scenarios = comparison.scenarios(
        options.names_of(designs), options.names_of(workloads), machine=machine, ops=ops, threads=threads, seed=seed,
        scale=scale, set=set_, control=control, workload_args=dict(options.pairs_of(arg)),
    )  # fmt: skip
    with render.progress_bar() as bar:
        task = bar.add_task("running", total=len(scenarios))
        results = comparison.run_all(scenarios, progress=lambda _: bar.advance(task), jobs=jobs)
    judged = comparison.judge(results, scale)
    _finish(json, documents.comparison(judged, scale), comparison_tables(judged))
    _exit_with(results)


@app.command()
def crash(
    args: options.ProgramArgs = None,
    design: options.MaybeDesign = None,
    workload: options.Workload = None,
    machine: options.Machine = DEFAULT_MACHINE,
    ops: options.Ops = None,
    points: options.CrashPoints = str(DEFAULT_POINTS),
    fault: options.FaultNames = None,
    variants: options.Variants = DEFAULT_VARIANTS,
    replay: options.Replay = None,
    shrink: options.Shrink = False,
    planted: options.PlantedFaults = False,
    threads: options.Threads = 1,
    seed: options.Seed = DEFAULT_SEED,
    set_: options.Set = None,
    domain: options.Domain = None,
    control: options.Control = False,
    arg: options.WorkloadArgs = None,
    elf: options.Elf = None,
    env: options.Env = None,
    check: options.Check = None,
    again: options.Again = None,
    campaign: options.CampaignFile = None,
    seconds: options.Seconds = None,
    verdicts: options.VerdictsFile = None,
    json: options.JsonFile = None,
) -> None:
    """Crash a workload or a program at persist events, recover every image and check it; or run a whole campaign.

    With `--planted` every durable design, or the one of --design, is built with one planted fault at a time, or with
    those that --fault names; short campaigns have to catch each.
    """
    given = _changed(crash, locals())
    _check_json(json)
    if planted:
        if given - {"planted", "design", "fault", "json"}:
            raise refusal("planted", "its campaigns are fixed: only --design, --fault and --json go with it")
        _crash_planted(design, fault, json)
        return
    if campaign is not None:
        if given & {"design", "workload", "elf", "replay"}:
            raise refusal(
                "campaign", "the file says what is crashed; --design, --workload, --elf and --replay do not go with it"
            )
        if shrink:
            raise refusal("shrink", "a campaign reduces the first failure of each row and workload by itself")
        _crash_campaign(campaign, seconds, verdicts, json)
        return
    _check_single_crash(given)
    chosen = CrashOptions(
        points_of(points),
        faults_of(fault),
        variants,
        replay,
        check_args=None if check is None else tuple(shlex.split(check)),
        again_args=None if again is None else tuple(shlex.split(again)),
    )
    chosen.check()
    scenario = options.scenario_of(
        design=design, workload=workload, machine=machine, ops=ops, threads=threads, seed=seed, set_=set_,
        domain=domain, control=control, arg=arg, elf=elf, args=args, env=env,
    )  # fmt: skip
    _crash_one(scenario, chosen, shrink, json)


def _changed(command: Callable[..., None], values: Mapping[str, Any]) -> set[str]:
    """Gives the options that do not have their default."""
    parameters = inspect.signature(command).parameters.values()
    return {parameter.name for parameter in parameters if values[parameter.name] != parameter.default}


def _check_single_crash(given: set[str]) -> None:
    for name in ("seconds", "verdicts"):
        if name in given:
            raise refusal(name, "goes with --campaign")
    if "design" not in given:
        raise refusal("design", "give a row with --design, or a file with --campaign")
    for name in ("check", "again"):
        if name in given and "elf" not in given:
            raise refusal(name, "goes with --elf: a workload knows its own commands")
    if {"elf", "shrink"} <= given:
        raise refusal("shrink", "only workloads can be reduced: what the arguments of a program mean is its own affair")


def _crash_one(scenario: Scenario, chosen: CrashOptions, shrink: bool, json: str | None) -> None:
    with render.progress_bar() as bar:
        task = bar.add_task(f"crashing {scenario.design}", total=None)
        result = api.crash_scenario(scenario, chosen, lambda done, total: bar.update(task, completed=done, total=total))
        if shrink:
            bar.update(task, description="reducing the first failure", completed=0, total=None)
            result = api.shrink_first(scenario, chosen, result, lambda tried, _: bar.update(task, completed=tried))
    _finish(json, result.to_dict(), render.crash_text(result))
    if result.violations:
        raise typer.Exit(EXIT_NEGATIVE)


def _crash_campaign(path: str, seconds: float | None, verdicts: str | None, json: str | None) -> None:
    if seconds is not None and not seconds > 0:
        raise refusal("seconds", f"{seconds:g} is not more than 0")
    with render.progress_bar() as bar:
        task = bar.add_task("crashing", total=None)
        document = api.crash_campaign(
            path,
            seconds=seconds,
            verdicts=verdicts,
            progress=lambda done, total, what: bar.update(
                task, completed=done, total=total, description=f"crashing {what}"
            ),
        )
    _finish(json, document, render.campaign_tables(document))
    if document["red"]:
        raise typer.Exit(EXIT_NEGATIVE)


def _crash_planted(design: str | None, names: list[str] | None, json: str | None) -> None:
    from durasim import planted  # noqa: PLC0415 - keeps the start-up of other commands short

    faults = planted.chosen_faults(design, names)
    with render.progress_bar() as bar:
        task = bar.add_task("planting faults", total=sum(fault.equivalent is None for fault in faults))
        result = planted.run_planted(faults, lambda _: bar.advance(task))
    _finish(json, result.to_dict(), planted.kill_table(result))
    if result.missed:
        raise typer.Exit(EXIT_NEGATIVE)


@app.command()
def diff(
    a: Annotated[str, typer.Argument(metavar="A.JSON", help="A result of `durasim run --json`.")],
    b: Annotated[str, typer.Argument(metavar="B.JSON", help="Another one.")],
    json: options.JsonFile = None,
) -> None:
    """Show what was configured differently in two runs and what that changed, the largest change first."""
    _check_json(json)
    first, second = (RunResult.from_dict(output.read_json(path, name)) for name, path in (("a", a), ("b", b)))
    difference = difference_of(first, second)
    _finish(json, difference.to_dict(), render.difference_table(difference))


@app.command()
def designs(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Rows whose pages --check looks at.")
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Verify the tables of docs/designs/: every function is there, every test passes."),
    ] = False,
    json: options.JsonFile = None,
) -> None:
    """List the rows of the registry, or verify what their pages say of them."""
    _check_json(json)
    if check:
        _check_designs(names, json)
        return
    if names:
        raise refusal("designs", "names go with --check")
    rows = api.designs()
    _finish(json, rows, render.designs_table(rows))


def _check_designs(names: list[str] | None, json: str | None) -> None:
    from durasim import design_tables  # noqa: PLC0415 - keeps the start-up of other commands short

    with render.progress_bar() as bar:
        task = bar.add_task("reading the tables", total=None)
        rows = api.check_designs(names, progress=lambda what: bar.update(task, description=what))
    _finish(json, design_tables.document(rows), render.lines_text(design_tables.verdict_lines(rows)))
    if any(row.problems for row in rows):
        raise typer.Exit(EXIT_NEGATIVE)


@app.command()
def workloads(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Workloads to list; all-SUITE stands for a suite.")
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Run each one, and say what its transactions write.")
    ] = False,
    ops: Annotated[
        int | None, typer.Option("--ops", help="Transactions that --measure runs, instead of each one's own number.")
    ] = None,
    json: options.JsonFile = None,
) -> None:
    """List the guest workloads and their arguments, and those of the papers' suites."""
    _check_json(json)
    if ops is not None and not measure:
        raise refusal("ops", "says how long --measure runs")
    entries = documents.workload_entries(names)
    profiles: dict[str, TxProfile] = {}
    if measure:
        with render.progress_bar() as bar:
            for entry in bar.track(entries, description="measuring"):
                profiles[entry.info.name] = api.measure_workload(entry.info.name, ops=ops, threads=entry.threads)
    _finish(json, documents.workload_rows(entries, profiles), render.workloads_table(entries, profiles))


@app.command()
def machines(
    show: Annotated[
        str | None, typer.Option("--show", metavar="NAME", help="Print the TOML text of a preset instead.")
    ] = None,
    json: options.JsonFile = None,
) -> None:
    """List the machine presets."""
    if show is not None:
        text = api.machine_toml(show)
        if json is None:
            output.write_stdout(text)
        else:
            output.write_json(json, {"name": show, "toml": text})
        return
    rows = api.machines()
    _finish(json, rows, render.rows_table("machines", rows, ("name", "cores", "description")))


def _check_json(path: str | None) -> None:
    if path is not None:
        output.check_writable(path)


def _finish(path: str | None, document: Any, shown: RenderableType) -> None:
    """Writes the document if it is asked for, and shows it unless it went to standard output."""
    if path is not None:
        output.write_json(path, document)
    if path != output.STANDARD_OUTPUT:
        render.show(shown)


def _exit_with(results: list[RunResult]) -> None:
    if any(result.guest_exit_code for result in results):
        raise typer.Exit(EXIT_NEGATIVE)

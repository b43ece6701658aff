"""The commands that crash: one run, a campaign, and mutation tests of the campaigns."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping
from typing import Any

import typer

from durasim import api, output
from durasim.cli import formats, hints, options, render
from durasim.cli.monitored import Monitor, monitored
from durasim.cli.options import check_json, finish
from durasim.cli.shell import EXIT_NEGATIVE
from durasim.crashes import known_findings
from durasim.crashes.crash_request import FIELDS, CrashOptions, PreparedCrash, flag_of, has, options_of, prepare_crash
from durasim.crashes.known_check import refuse_unknown_check
from durasim.crashes.sarif import sarif_log
from durasim.documents.results import CrashResult
from durasim.errors import refusal
from durasim.runs.scenario import DEFAULT_MACHINE, DEFAULT_SEED, Scenario
from durasim.store.reuse import Reuse


@options.takes_options("crash_options", CrashOptions)
def crash(
    args: options.ProgramArgs = None,
    design: options.NeededDesign = None,
    workload: options.Workload = None,
    machine: options.Machine = DEFAULT_MACHINE,
    ops: options.Ops = None,
    crash_options: options.OptionValues = None,
    shrink: options.Shrink = False,
    gdb: options.Gdb = None,
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
    root: options.Root = None,
    reuse: options.Reuse = False,
    store: options.StoreFile = None,
    wide: options.Wide = False,
    form: options.CrashFormat = formats.TABLE,
    known: options.Known = None,
    json: options.JsonFile = None,
) -> None:
    """Crash a workload or a program at persist events, recover every image and check it.

    `durasim campaign` crashes many runs; `durasim mutation` tests that campaigns detect faults of designs.
    """
    if design is None:
        raise refusal("design", "is required")
    chosen = options_of(crash_options or {})
    _refuse_without_effect(chosen)
    if gdb is not None and chosen.replay is None:
        raise refusal("gdb", "requires --replay: gdb follows one failure")
    kept = options.reused_store(reuse, store)
    check_json(json)
    formats.check(form, json, formats.FORMATS_OF_CRASH)
    findings = None if known is None else known_findings.read(known)
    scenario = options.scenario_of(
        design=design, workload=workload, machine=machine, ops=ops, threads=threads, seed=seed, set_=set_,
        domain=domain, control=control, arg=arg, macros=macros,
        include_folders=include_folders, elf=elf, args=args, env=env, root=root,
    )  # fmt: skip
    prepared, result = _crash_one(scenario, chosen, shrink, kept)
    if json is not None:
        output.write_json(json, result.to_dict())
    unknown = result.violations if findings is None else known_findings.unknown_violations(result, findings)
    if form == formats.SARIF:
        output.write_stdout(output.to_json(sarif_log(result, findings)))
    elif json != output.STANDARD_OUTPUT:
        shown = render.crash_text(result, wide=wide or form != formats.TABLE)
        if findings is not None:
            shown.append(f"\n  {unknown:,} of {result.violations:,} violations are not among the known findings")
        formats.show(form, result.to_dict(), shown, lambda: formats.crash_csv(result))
    if gdb is not None:
        prepared.debug(gdb, _announce_debugger(str(prepared.request["elf"])))
    if unknown:
        raise typer.Exit(EXIT_NEGATIVE)


def _refuse_without_effect(chosen: CrashOptions) -> None:
    """Refuses options without an effect beside the others."""
    changed = {name for name, field in FIELDS.items() if getattr(chosen, name) != field.default}
    for flag in sorted(flag_of(name) for name in changed if has(name, "drawn")) if "replay" in changed else ():
        raise refusal(flag, "cannot be combined with --replay: the id of the failure determines it")
    if chosen.again_args is not None and chosen.faults is not None and "recrash" not in chosen.faults:
        raise refusal("again", "applies only to runs between two crashes: add --fault recrash")
    if "variants" in changed and chosen.faults is not None and set(chosen.faults) == {"clean"}:
        raise refusal(
            "variants", "applies only to faults with several possible outcomes (allowed: any --fault except clean)"
        )


def _announce_debugger(elf: str) -> Callable[[int, bool, str], None]:
    """Returns the function that prints how gdb connects."""

    def announce(port: int, is_at_blamed_store: bool, place: str) -> None:
        where = "before the store that the cause names" if is_at_blamed_store else "at the first instruction"
        typer.echo(f"durasim: the replay is {where}: {place}", err=True)
        connect = f"gdb-multiarch {shlex.quote(elf)} -ex 'target remote 127.0.0.1:{port}'"
        typer.echo(f"durasim: connect with: {connect}", err=True)

    return announce


def _crash_one(
    scenario: Scenario, chosen: CrashOptions, shrink: bool, kept: str | bool = False
) -> tuple[PreparedCrash, CrashResult]:
    with render.progress_bar() as bar:
        # The program runs twice: once to count its events, once for the crashes. Both may take long to populate.
        task = bar.add_task(f"running {scenario.design} up to the first crash", total=None)
        crashing = f"crashing {scenario.design}"
        prepared = prepare_crash(scenario, chosen)
        refuse_unknown_check(prepared)
        if isinstance(chosen.points, str) and chosen.replay is None:
            points, seconds = api.estimate_crash(prepared)
            sentence = f"durasim: {points:,} persist events to crash at, about {_duration(seconds)}"
            bar.console.print(sentence, soft_wrap=True, markup=False, highlight=False)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, description=crashing)

        result = api.run_crash(prepared, show, kept)
        if shrink:
            bar.update(task, description="minimizing the first failure", completed=0, total=None)
            result = api.shrink_first(prepared, result, lambda tried, _: bar.update(task, completed=tried))
    return prepared, result


def _duration(seconds: float) -> str:
    """Returns an estimate in a readable unit."""
    for size, unit in ((3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size:
            number = round(seconds / size)
            return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
    return "a second"


def _changed(command: Callable[..., None], values: Mapping[str, Any]) -> set[str]:
    """Returns the options that differ from their default."""
    parameters = inspect.signature(command).parameters.values()
    return {parameter.name for parameter in parameters if values[parameter.name] != parameter.default}


def campaign(
    file: options.CampaignFile = None,
    random: options.Random = False,
    design: options.RandomDesigns = None,
    runs: options.Runs = None,
    seed: options.RandomSeed = DEFAULT_SEED,
    replay: options.RandomReplay = None,
    seconds: options.Seconds = None,
    store: options.StoreFile = None,
    no_store: options.NoStore = False,
    monitor: Monitor = None,
    json: options.JsonFile = None,
) -> None:
    """Run every crash test in a campaign file and check that its negative controls fail as expected.

    The store of results keeps each verdict: an interrupted campaign resumes, and a repeated one is answered from it.

    With --random: test random machines of all designs with random memory operations. Results are kept in blocks of 200
    runs, so a longer campaign, or a further one with --seconds, continues where the last one ended.
    """
    given = _changed(campaign, locals())
    if random:
        if file is not None:
            raise refusal("file", "cannot be combined with --random")
        if replay is not None:
            _replay_random(given, design or [], replay, json)
            return
        _random_campaign(design or [], runs, seed, seconds, options.store_of(store, no_store), monitor, json)
        return
    for name in ("design", "runs", "seed", "replay"):
        if name in given:
            raise refusal(name, "requires --random: a campaign file sets it itself")
    if file is None:
        raise refusal("campaign", "give a FILE.toml or --random")
    if seconds is not None and not seconds > 0:
        raise refusal("seconds", f"{seconds:g} is not above 0")
    kept = options.store_of(store, no_store)
    check_json(json)
    with monitored(monitor, "durasim campaign") as watch, render.progress_bar() as bar:
        task = bar.add_task("crashing", total=None)

        def show(done: int, total: int | None, what: str) -> None:
            bar.update(task, completed=done, total=total, description=f"crashing {what}")

        document = api.campaign(file, seconds=seconds, store=kept, progress=show, watch=watch)
    finish(json, document, render.campaign_tables(document))
    if document["failed_checks"]:
        raise typer.Exit(EXIT_NEGATIVE)


def _random_campaign(
    designs: list[str],
    runs: int | None,
    seed: int,
    seconds: float | None,
    kept: str | bool,
    monitor: int | None,
    json: str | None,
) -> None:
    from durasim.crashes import random_runs  # noqa: PLC0415 - keeps the start-up of other commands short

    check_json(json)
    with (
        monitored(monitor, "durasim campaign --random") as watch,
        render.progress_bar() as bar,
        api.opened_store(kept) as opened,
    ):
        task, stored = bar.add_task("testing random machines", total=None), random_runs.Blocks(Reuse(opened))
        watch.begin_study("random machines", "runs", seconds)
        watch.say("testing random machines")

        def show(done: int, total: int | None) -> None:
            watch.count(done, total)
            bar.update(task, completed=done, total=total)

        document = random_runs.run(designs, runs, seconds, seed, show, stored)
    finish(json, document, render.random_tables(document))
    hints.report_reuse(stored.reused_runs, document["runs"])
    if document["violations"]:
        raise typer.Exit(EXIT_NEGATIVE)


def _replay_random(given: set[str], designs: list[str], replay: str, json: str | None) -> None:
    check_json(json)
    if len(designs) != 1:
        raise refusal("design", "is required once with --replay")
    for name in ("runs", "seed", "seconds", "store", "no_store", "monitor"):
        if name in given:
            raise refusal(name, "cannot be combined with --replay, which repeats one run")
    document = api.random_replay(designs[0], replay)
    finish(json, document, render.random_replay_text(document))
    if document["message"] is not None:
        raise typer.Exit(EXIT_NEGATIVE)


def mutation(
    design: options.MutatedDesign = None,
    mutant: options.Mutants = None,
    workload: options.MutatedWorkload = None,
    macros: options.Macros = None,
    include_folders: options.IncludeFolders = None,
    store: options.StoreFile = None,
    no_store: options.NoStore = False,
    json: options.JsonFile = None,
) -> None:
    """Inject one fault at a time and check that short crash campaigns detect it.

    The store of results keeps each campaign, so an interrupted command resumes, and a repeated one is answered from it.
    """
    from durasim.crashes import mutants  # noqa: PLC0415 - keeps the start-up of other commands short

    kept = options.store_of(store, no_store)
    check_json(json)
    chosen = mutants.chosen_mutants(design, mutant)
    own = None
    if workload is not None:
        own = mutants.OwnWorkload(workload, tuple(macros or ()), tuple(include_folders or ()))
    elif macros or include_folders:
        raise refusal(
            "D" if macros else "I", "requires --workload: the workloads of the campaigns are compiled already"
        )
    with render.progress_bar() as bar, api.opened_store(kept) as opened:
        task, reuse = (
            bar.add_task("catching mutants", total=sum(one.equivalent is None for one in chosen)),
            Reuse(opened),
        )
        result = mutants.run_mutants(chosen, lambda _: bar.advance(task), own, reuse)
    finish(json, result.to_dict(), render.mutation_tables(result))
    hints.report_reuse(reuse.reused, reuse.asked)
    if result.missed:
        raise typer.Exit(EXIT_NEGATIVE)

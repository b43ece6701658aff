"""The command `explore`: a local page with one run, its power failures and their recovery."""

from __future__ import annotations

from pathlib import Path

from durasim import output
from durasim.cli import options
from durasim.crashes.crash_request import CrashOptions, options_of, prepare_crash
from durasim.crashes.known_check import refuse_unknown_check
from durasim.errors import host_io, refusal
from durasim.runs.scenario import DEFAULT_MACHINE, DEFAULT_SEED


@options.takes_options("crash_options", CrashOptions, without="drawn")
def explore(
    args: options.ProgramArgs = None,
    design: options.NeededDesign = None,
    workload: options.Workload = None,
    machine: options.Machine = DEFAULT_MACHINE,
    ops: options.Ops = None,
    crash_options: options.OptionValues = None,
    findings: options.Findings = None,
    source_root: options.SourceRoot = None,
    port: options.Port = 0,
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
) -> None:
    """Show a run and its power failures on a local page: steps, contents of each level, recovery, verdict, source.

    The options are those of `durasim crash`. With `explore` in place of `crash`, the command of a failure opens it.
    """
    from durasim.explore import explored_run, server  # noqa: PLC0415 - keeps the start-up of other commands short
    from durasim.local_server.handlers import listen  # noqa: PLC0415

    if design is None:
        raise refusal("design", "is required")
    chosen_options = options_of(crash_options or {})
    if chosen_options.persistency_model is not None:
        problem = "the page shows what the machine leaves; durasim crash --replay prints the image of a model"
        raise refusal("persistency-model", problem)
    server.check_page()
    folder = None if source_root is None else _folder(source_root)
    # A port in use is refused before the program is compiled and run.
    with listen(port) as opened:
        scenario = options.scenario_of(
            design=design, workload=workload, machine=machine, ops=ops, threads=threads, seed=seed, set_=set_,
            domain=domain, control=control, arg=arg, macros=macros,
            include_folders=include_folders, elf=elf, args=args, env=env, root=root,
        )  # fmt: skip
        prepared = prepare_crash(scenario, chosen_options)
        refuse_unknown_check(prepared)
        chosen = [] if findings is None else explored_run.read_findings(findings, prepared)
        run = explored_run.ExploredRun(prepared, findings=chosen, source_root=folder)
        server.serve(run, opened, lambda access: output.write_stdout(f"{access.address}\n"))


def _folder(name: str) -> Path:
    folder = Path(name)
    try:
        if not folder.is_dir():
            raise NotADirectoryError(0, "is no folder")
    except OSError as error:
        raise host_io(f"--source-root: {name}", error) from None
    return folder

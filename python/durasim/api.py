"""The Python API: the same jobs as the command line, with typed results."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from durasim import _core, comparison, output
from durasim.campaign import (
    DEFAULT_FAULTS,
    DEFAULT_POINTS,
    DEFAULT_VARIANTS,
    CrashOptions,
    Points,
    crash_request,
    finish_crash,
)
from durasim.errors import refusal, unknown_name
from durasim.results import CrashResult, RunResult, TxProfile
from durasim.scale import DEFAULT_SCALE
from durasim.scenario import (
    DEFAULT_DESIGN,
    DEFAULT_MACHINE,
    DEFAULT_SEED,
    Scenario,
    Settings,
    design_rows,
    machine_rows,
    row_name,
    settings_of,
    workload_info,
)

if TYPE_CHECKING:
    import polars

    from durasim.design_tables import Row
    from durasim.suites import Member
    from durasim.toolchain import WorkloadInfo

GuestOutput = Callable[[str, bytes], None]
"""Takes what the guest writes: the stream (`stdout` or `stderr`) and the bytes."""
Progress = Callable[[int, int], bool | None]
"""Takes crashes done and crashes in all; returning False ends the campaign early."""
ShrinkProgress = Callable[[int, str], None]
"""Takes candidates tried and the command of the smallest failure so far."""
CampaignProgress = Callable[[int, int | None, str], None]
"""Takes runs done, runs in all and the row of the last one."""


def run(
    *,
    design: str = DEFAULT_DESIGN,
    workload: str | None = None,
    machine: str = DEFAULT_MACHINE,
    ops: int | None = None,
    threads: int = 1,
    seed: int = DEFAULT_SEED,
    set: Settings | None = None,  # noqa: A002 - the name of the option on the command line
    domain: str | None = None,
    control: bool = False,
    elf: str | os.PathLike[str] | None = None,
    args: Sequence[str] = (),
    env: Sequence[str] = (),
    root: str | os.PathLike[str] | None = None,
    pool: str | os.PathLike[str] | None = None,
    workload_args: Mapping[str, Any] | None = None,
    max_instructions: int | None = None,
    snapshot_at: int | None = None,
    snapshot: str | os.PathLike[str] | None = None,
    from_: str | os.PathLike[str] | None = None,
    fast_forward: int | str | None = None,
    warm: bool = True,
    scale: str = DEFAULT_SCALE,
    guest_output: GuestOutput = output.pass_through,
) -> RunResult:
    """Runs a workload or a program on a simulated machine.

    Args:
        design: Row of the registry, see `designs()`.
        workload: Name of a workload, see `workloads()`; exactly one of it and `elf` is given.
        machine: Preset, see `machines()`, or path of a machine file.
        ops: Operations in the region of interest; the workload's default if None.
        threads: Threads of the guest.
        seed: Seed of everything random; equal seeds give equal results.
        set: Parameters that differ from the machine's: `{"path.to.key": value}` or `["path.to.key=value"]`.
        domain: Persistence domain; the design's default if None.
        control: Runs a case that is expected to fail.
        elf: A static RV64GC Linux program.
        args: Arguments of `elf`.
        env: Environment of the guest, as `NAME=value`.
        root: The folder of the host that the guest may see.
        pool: The host file that keeps the guest's persistent memory.
        workload_args: Arguments of the workload by name.
        max_instructions: Stops the guest after so many instructions.
        snapshot_at: Saves the machine when the guest passes the snapshot mark of this number for the first time.
            Workloads pass mark 0 between populating and measuring.
        snapshot: The host file that the snapshot goes to.
        from_: A snapshot: the run goes on exactly as that one would have. With another design, domain or other
            parameters the program moves to the new machine; it has to be the same program with the same arguments.
        fast_forward: Runs functionally, without caches and time, up to the snapshot mark of this number or to the begin
            of the region of interest ("roi").
        warm: Whether caches and predictors of the new machine are warm after `fast_forward` or a move.
        scale: `paper`, or `quick`: data caches, data, and what of the design shrinks with them, an eighth as large.
        guest_output: Takes what the guest writes; by default it goes to `sys.stdout` and `sys.stderr`.

    Raises:
        ConfigError: Refused before cycle 0.
        GuestFault: The guest was stopped.
        StuckError: The modelled machine cannot go on.
        HostIoError: A file of the host could not be read or written.
        ToolchainError: The guest program cannot be built.
    """
    scenario = _scenario_of(
        design=design,
        workload=workload,
        machine=machine,
        ops=ops,
        threads=threads,
        seed=seed,
        set=set,
        domain=domain,
        control=control,
        elf=elf,
        args=args,
        env=env,
        root=root,
        pool=pool,
        workload_args=workload_args,
        max_instructions=max_instructions,
        snapshot_at=snapshot_at,
        snapshot=_path(snapshot),
        from_=_path(from_),
        fast_forward=fast_forward,
        warm=warm,
        scale=scale,
    )
    return run_scenario(scenario, guest_output)


def run_scenario(scenario: Scenario, guest_output: GuestOutput = output.pass_through) -> RunResult:
    """Runs `scenario`; otherwise as `run`."""
    return _run_request(scenario.request(), guest_output)


def _run_request(request: dict[str, Any], guest_output: GuestOutput) -> RunResult:
    return RunResult.from_dict(json.loads(_core.run(json.dumps(request), guest_output)))


def crash(
    *,
    design: str,
    workload: str | None = None,
    machine: str = DEFAULT_MACHINE,
    ops: int | None = None,
    points: Points = DEFAULT_POINTS,
    faults: Iterable[str] = DEFAULT_FAULTS,
    variants: int = DEFAULT_VARIANTS,
    replay: str | None = None,
    threads: int = 1,
    seed: int = DEFAULT_SEED,
    set: Settings | None = None,  # noqa: A002 - the name of the option on the command line
    domain: str | None = None,
    control: bool = False,
    workload_args: Mapping[str, Any] | None = None,
    elf: str | os.PathLike[str] | None = None,
    args: Iterable[str] = (),
    env: Iterable[str] = (),
    check_args: Iterable[str] | None = None,
    again_args: Iterable[str] | None = None,
    shrink: bool = False,
    progress: Progress | None = None,
) -> CrashResult:
    """Crashes a workload or a program at persist events, recovers each image and checks it.

    Args:
        design: Row of the registry, see `designs()`.
        workload: Name of a workload, see `workloads()`; exactly one of it and `elf` is given.
        machine: Preset or path of a machine file.
        ops: Operations of the workload; the workload's default for crash campaigns if None.
        points: How many persist events to crash at, spread over the run, or "all".
        faults: What goes wrong at each of them: "clean", "torn", "reorder", "energy", "nested", "background", "twice".
        variants: Draws at each point of a fault that can end in many ways; all, if there are no more.
        replay: The id of a failure: tries that alone.
        threads: Threads of the guest.
        seed: Seed of everything random.
        set: Parameters that differ from the machine's.
        domain: Persistence domain; the design's default if None.
        control: Runs a case that is expected to fail.
        workload_args: Arguments of the workload by name.
        elf: A static RV64GC Linux program, which need not know of campaigns.
        args: Arguments of `elf`.
        env: Its environment, as NAME=value.
        check_args: Arguments with which it recovers its pool and checks it; it ends with 0 if all is well.
        again_args: Arguments with which it works on between two crashes; `args` if None.
        shrink: Reduces the first failure; the smallest one that is found is `shrunk` of the result.
        progress: Takes crashes done and crashes in all; returning False ends the campaign early.

    Raises:
        ConfigError: Refused before cycle 0.
        GuestFault: The guest was stopped during the run before the crash.
        StuckError: The modelled machine cannot go on.
        HostIoError: A file of the host could not be read or written.
        ToolchainError: The guest program cannot be built.
    """
    scenario = _scenario_of(
        design=design,
        workload=workload,
        machine=machine,
        ops=ops,
        threads=threads,
        seed=seed,
        set=set,
        domain=domain,
        control=control,
        workload_args=workload_args,
        elf=elf,
        args=args,
        env=env,
    )
    chosen = CrashOptions(
        points,
        tuple(faults),
        variants,
        replay,
        check_args=None if check_args is None else tuple(check_args),
        again_args=None if again_args is None else tuple(again_args),
    )
    result = crash_scenario(scenario, chosen, progress)
    return shrink_first(scenario, chosen, result) if shrink else result


def crash_scenario(scenario: Scenario, chosen: CrashOptions, progress: Progress | None = None) -> CrashResult:
    """Crashes `scenario`; otherwise as `crash`."""
    request = crash_request(scenario, chosen)
    callback = None if progress is None else (lambda done, total: progress(done, total) is not False)
    return finish_crash(json.loads(_core.crash(json.dumps(request), callback)), scenario, chosen)


def shrink_first(
    scenario: Scenario, chosen: CrashOptions, result: CrashResult, progress: ShrinkProgress | None = None
) -> CrashResult:
    """Gives `result`, which is of a campaign over `scenario`, with its first failure reduced, if it has one."""
    from durasim import shrink  # noqa: PLC0415 - keeps the start-up of other commands short

    if not result.failures:
        return result
    shrunk = shrink.shrink(scenario, chosen, result.failures[0], progress or (lambda *_: None))
    return dataclasses.replace(result, shrunk=shrunk)


def crash_campaign(
    path: str | os.PathLike[str],
    *,
    seconds: float | None = None,
    verdicts: str | os.PathLike[str] | None = None,
    progress: CampaignProgress | None = None,
) -> dict[str, Any]:
    """Crashes all runs that a campaign file describes; docs/crash.md explains such files.

    Args:
        path: The campaign file.
        seconds: Repeats the campaign with new seeds until so much time has passed; once if None. A file that wants
            a number of trials is repeated until they are judged, but not longer than this.
        verdicts: Keeps each verdict in this file, and goes on where an earlier campaign with it ended.
        progress: Takes runs done, runs in all (None if time decides) and the row of the last one; trials instead of
            runs if the file wants a number of them.

    Returns:
        The document that `--json` writes; its `red` lists why the campaign is red, if it is.

    Raises:
        ConfigError: The file is refused.
        HostIoError: A file of the host could not be read or written.
        ToolchainError: A guest program cannot be built.
    """
    from durasim import campaign_file, campaign_run  # noqa: PLC0415 - keeps the start-up of other commands short
    from durasim.verdicts import Verdicts  # noqa: PLC0415

    campaign = campaign_file.read(os.fspath(path))
    kept = None if verdicts is None else Verdicts(os.fspath(verdicts))
    try:
        return campaign_run.run(campaign, kept, seconds, progress or (lambda *_: None))
    finally:
        if kept is not None:
            kept.close()


def compare(
    *,
    designs: Iterable[str],
    workloads: Iterable[str],
    progress: Callable[[RunResult], None] | None = None,
    jobs: int | None = None,
    **options: Any,
) -> polars.DataFrame:
    """Runs every workload under every design and gives a data frame with one row for each pair.

    `relative_to_opt` is the throughput divided by that of `opt` on the same workload, null if `opt` is not among the
    designs. Units stand last in the names of the columns.

    Args:
        designs: Rows of the registry; `all-SUITE` stands for those that the paper of a suite compares.
        workloads: Names of workloads; `all-SUITE` stands for those of a suite.
        progress: Takes each result as soon as it is there.
        jobs: Runs at a time; all cores if None. Results do not depend on it.
        options: The other arguments of `run`.

    Raises:
        ConfigError: Refused before cycle 0, or the same name is given twice.
        GuestFault, StuckError, HostIoError, ToolchainError: As from `run`.
    """
    from durasim.frame import comparison_frame  # noqa: PLC0415 - polars takes a while to load

    return comparison_frame(compare_runs(designs, workloads, progress, jobs=jobs, **options))


def compare_runs(
    designs: Iterable[str],
    workloads: Iterable[str],
    progress: Callable[[RunResult], None] | None = None,
    *,
    jobs: int | None = None,
    **options: Any,
) -> list[RunResult]:
    """Gives the results behind `compare`, workload by workload in the given order of the designs."""
    from durasim import suites  # noqa: PLC0415 - keeps the start-up of other commands short

    design_names = _distinct("designs", [row_name(name) for name in suites.designs_of(_distinct("designs", designs))])
    workload_names = _distinct("workloads", suites.expand(_distinct("workloads", workloads)))
    # Every name is looked up before the first run, which may take minutes.
    for name in design_names:
        if name not in design_rows():
            raise unknown_name("designs", name, design_rows())
    for name in workload_names:
        workload_info(name)
    guest_output = options.pop("guest_output", output.discard)
    pairs = [(workload, design) for workload in workload_names for design in design_names]
    scenarios = [_scenario_of(design=design, workload=workload, **options) for workload, design in pairs]
    return comparison.run_all(scenarios, lambda request: _run_request(request, guest_output), progress, jobs)


def designs() -> list[dict[str, Any]]:
    """Gives the rows of the registry: name, hardware, backend, domains, promise, cost and so on."""
    return list(design_rows().values())


def check_designs(designs: Sequence[str] | None = None, *, progress: Callable[[str], None] | None = None) -> list[Row]:
    """Verifies the tables of docs/designs/: that every function is there, and that every test is there and passes.

    Args:
        designs: Rows of the registry whose pages are looked at; all pages if None.
        progress: Takes what is run next.

    Returns:
        The rows of the tables; `problems` of each says why it is refused, if it is.

    Raises:
        ConfigError: A page is not of the form, or this installation is no checkout of the sources.
        HostIoError: cargo cannot be started.
    """
    from durasim import design_tables  # noqa: PLC0415 - keeps the start-up of other commands short

    root = design_tables.checkout()
    rows = design_tables.read_tables(root, designs)
    design_tables.check(root, rows, progress or (lambda _: None))
    return rows


def workloads() -> list[WorkloadInfo]:
    """Gives the programs with their arguments."""
    from durasim import toolchain  # noqa: PLC0415 - keeps the start-up of other commands short

    return list(toolchain.workloads())


def suite_members() -> list[Member]:
    """Gives the workloads of all suites: the programs as the papers run them."""
    from durasim import suites  # noqa: PLC0415 - keeps the start-up of other commands short

    return list(suites.members())


def measure_workload(
    workload: str,
    *,
    ops: int | None = None,
    threads: int = 1,
    seed: int = DEFAULT_SEED,
    workload_args: Mapping[str, Any] | None = None,
) -> TxProfile:
    """Runs a workload without caches and time, and counts what its transactions write.

    Args:
        workload: Name of a workload, or of one of a suite.
        ops: Transactions in the region of interest; the workload's default if None.
        threads: Threads of the guest.
        seed: Seed of everything random.
        workload_args: Arguments of the workload by name.

    Raises:
        ConfigError: A name is unknown, a value out of range, or the program failed.
        GuestFault: The program did something that is not possible.
        ToolchainError: The guest program cannot be built.
    """
    scenario = _scenario_of(workload=workload, ops=ops, threads=threads, seed=seed, workload_args=workload_args)
    scenario = dataclasses.replace(scenario, workload_args=(*scenario.workload_args, ("no-check", "true")))
    return TxProfile.from_dict(json.loads(_core.profile(json.dumps(scenario.request()), output.discard)))


def machines() -> list[dict[str, Any]]:
    """Gives the machine presets: name, description, cores and so on."""
    return list(machine_rows().values())


def machine_toml(name: str) -> str:
    """Gives the TOML text of a machine preset.

    Raises:
        ConfigError: There is none of that name.
    """
    if name not in machine_rows():
        raise unknown_name("machine", name, machine_rows())
    return _core.machine_toml(name)


def machine_schema() -> dict[str, Any]:
    """Gives the JSON Schema of machine files."""
    schema: dict[str, Any] = json.loads(_core.machine_schema())
    return schema


def _distinct(field: str, names: Iterable[str]) -> list[str]:
    if isinstance(names, str):
        raise refusal(field, "expected a list of names, not one string")
    listed = list(names)
    if not listed:
        raise refusal(field, "names nothing")
    twice = sorted({name for name in listed if listed.count(name) > 1})
    if twice:
        raise refusal(field, f"names {', '.join(twice)} twice")
    return listed


def _path(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


def _scenario_of(
    *,
    set: Settings | None = None,  # noqa: A002 - the name of the option on the command line
    elf: str | os.PathLike[str] | None = None,
    args: Sequence[str] = (),
    env: Sequence[str] = (),
    root: str | os.PathLike[str] | None = None,
    pool: str | os.PathLike[str] | None = None,
    workload_args: Mapping[str, Any] | None = None,
    **plain: Any,
) -> Scenario:
    """Brings the arguments of the API into the form of a scenario."""
    return Scenario(
        settings=settings_of(set),
        elf=_path(elf),
        args=tuple(args),
        env=tuple(env),
        root=_path(root),
        pool=_path(pool),
        workload_args=tuple((name, _argument(value)) for name, value in (workload_args or {}).items()),
        **plain,
    )


def _argument(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

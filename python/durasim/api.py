"""The Python API: the same jobs as the command line, with typed results."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from durasim import _core, comparison, output
from durasim.arguments import takes_fields_of
from durasim.crash_request import CrashArguments, CrashOptions, crash_request, finish_crash
from durasim.described import RunOptions
from durasim.errors import unknown_name
from durasim.known_check import refuse_unknown_check
from durasim.results import CrashResult, RunResult, TxProfile
from durasim.scenario import (
    DEFAULT_SEED,
    Scenario,
    ScenarioArguments,
    design_rows,
    machine_rows,
    row_name,
    scenario_of,
    workloads_of,
)
from durasim.simulation import GuestOutput, RunProgress, run_request

if TYPE_CHECKING:
    import polars

    from durasim.design_tables import Mechanism
    from durasim.mutants import MutationResult, Outcome
    from durasim.suites import Member
    from durasim.toolchain import WorkloadInfo

Progress = Callable[[int, int], bool | None]
"""Takes crashes done and crashes in all; returning False ends the campaign early."""
ShrinkProgress = Callable[[int, str], None]
"""Takes candidates tried and the command of the smallest failure so far."""
MutationProgress = Callable[["Outcome"], None]
"""Takes what became of a mutant."""
CampaignProgress = Callable[[int, int | None, str], None]
"""Takes runs done, runs in all and the design of the last one."""
RandomProgress = Callable[[int, int | None], None]
"""Takes runs done, and runs in all (None if time decides)."""

_ESTIMATE_POINTS = 64
"""Crash points from which the time for all is estimated."""
_ONLY_OF_RUN = (*(field.name for field in dataclasses.fields(RunOptions)), "scale")


@takes_fields_of(Scenario)
def run(
    *,
    guest_output: GuestOutput = output.pass_through,
    progress: RunProgress | None = None,
    **fields: Unpack[ScenarioArguments],
) -> RunResult:
    """Runs a workload or a program on a simulated machine.

    Args:
        guest_output: Takes what the guest writes; by default it goes to `sys.stdout` and `sys.stderr`.
        progress: Takes now and then the operations done in the region of interest, and how many there will be (None if
            nobody knows).

    Raises:
        ConfigError: Refused before cycle 0.
        GuestFault: The guest was stopped.
        StuckError: The modelled machine cannot go on.
        HostIoError: A file of the host could not be read or written.
        ToolchainError: The guest program cannot be built.
    """
    return run_scenario(scenario_of(**fields), guest_output, progress)


def run_scenario(
    scenario: Scenario, guest_output: GuestOutput = output.pass_through, progress: RunProgress | None = None
) -> RunResult:
    """Runs `scenario`; otherwise as `run`."""
    request = scenario.request()
    written_before = _written_at(scenario.snapshot)
    try:
        return run_request(request, guest_output, progress)
    except KeyboardInterrupt as interrupt:
        if _written_at(scenario.snapshot) != written_before:
            interrupt.add_note(f"the snapshot {scenario.snapshot} is kept")
        raise


def _written_at(path: str | None) -> int | None:
    """Gives when a file was written, in the host's nanoseconds; None if there is none."""
    if path is None or not os.path.exists(path):  # noqa: PTH110 - one question, no path to work with
        return None
    return os.stat(path).st_mtime_ns  # noqa: PTH116


@takes_fields_of(Scenario, CrashOptions, without=("design", *_ONLY_OF_RUN, "workers"))
def crash(
    *, design: str, shrink: bool = False, progress: Progress | None = None, **fields: Unpack[CrashArguments]
) -> CrashResult:
    """Crashes a workload or a program at persist events, recovers each image and checks it.

    Args:
        design: Durability design, see `designs()`.
        shrink: Reduces the first failure; the smallest one that is found is `shrunk` of the result.
        progress: Takes crashes done and crashes in all; returning False ends the campaign early.

    Raises:
        ConfigError: Refused before cycle 0.
        GuestFault: The guest was stopped during the run before the crash.
        StuckError: The modelled machine cannot go on.
        HostIoError: A file of the host could not be read or written.
        ToolchainError: The guest program cannot be built.
    """
    tried = {field.name for field in dataclasses.fields(CrashOptions)}
    own: dict[str, Any] = {name: value for name, value in fields.items() if name in tried}
    for name in {"faults", "check_args", "again_args"} & own.keys():
        own[name] = None if own[name] is None else tuple(own[name])
    chosen = CrashOptions(**own)
    scenario = scenario_of(design=design, **{name: value for name, value in fields.items() if name not in tried})
    refuse_unknown_check(scenario, chosen)
    result = crash_scenario(scenario, chosen, progress)
    return shrink_first(scenario, chosen, result) if shrink else result


def crash_scenario(scenario: Scenario, chosen: CrashOptions, progress: Progress | None = None) -> CrashResult:
    """Crashes `scenario`; otherwise as `crash`, whose check of the program's own check is left to the caller."""
    request = crash_request(scenario, chosen)
    callback = None if progress is None else (lambda done, total: progress(done, total) is not False)
    return finish_crash(json.loads(_core.crash(json.dumps(request), callback)), scenario, chosen)


def estimate_crash(scenario: Scenario, chosen: CrashOptions) -> tuple[int, float]:
    """Gives the persist events of `scenario`, and about how many seconds it takes to crash at all of them.

    Crashes at a few of them to find out.
    """
    request = crash_request(scenario, dataclasses.replace(chosen, points=_ESTIMATE_POINTS))
    document = _core.crash(json.dumps(request | {"cut_every_write": True}), None)
    result = finish_crash(json.loads(document), scenario, chosen)
    cores = chosen.workers or os.cpu_count() or 1
    crashing_s = result.trials / (result.trials_per_s_per_core * cores) if result.trials_per_s_per_core else 0.0
    # A campaign runs the program twice: to count its events, and to crash it while other threads judge.
    counting_s = result.host.seconds - crashing_s
    judging_s = max(crashing_s - counting_s, crashing_s / 10)
    more = max(result.points / _ESTIMATE_POINTS - 1, 0.0)
    return result.points, result.host.seconds + more * judging_s


def shrink_first(
    scenario: Scenario, chosen: CrashOptions, result: CrashResult, progress: ShrinkProgress | None = None
) -> CrashResult:
    """Gives `result`, which is of a campaign over `scenario`, with its first failure reduced, if it has one."""
    from durasim import shrink  # noqa: PLC0415 - keeps the start-up of other commands short

    if not result.failures:
        return result
    shrunk = shrink.shrink(scenario, chosen, result.failures[0], progress or (lambda *_: None))
    return dataclasses.replace(result, shrunk=shrunk)


def campaign(
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
        progress: Takes runs done, runs in all (None if time decides) and the design of the last one; trials instead of
            runs if the file wants a number of them.

    Returns:
        The document that `--json` writes; `failed_checks` in it lists why the campaign failed, if it did.

    Raises:
        ConfigError: The file is refused.
        HostIoError: A file of the host could not be read or written.
        ToolchainError: A guest program cannot be built.
    """
    from durasim import campaign_file, campaign_run  # noqa: PLC0415 - keeps the start-up of other commands short
    from durasim.verdicts import Verdicts  # noqa: PLC0415

    described = campaign_file.read(os.fspath(path))
    kept = None if verdicts is None else Verdicts(os.fspath(verdicts))
    try:
        return campaign_run.run(described, kept, seconds, progress or (lambda *_: None))
    finally:
        if kept is not None:
            kept.close()


def random_campaign(
    designs: Iterable[str] = (),
    *,
    runs: int | None = None,
    seconds: float | None = None,
    seed: int = DEFAULT_SEED,
    progress: RandomProgress | None = None,
) -> dict[str, Any]:
    """Tries drawn machines without programs: every load is checked, and they are crashed and recovered.

    Args:
        designs: The designs, in turn; all that differ without programs if there are none.
        runs: Machines to draw; 200 if neither this nor `seconds` is given.
        seconds: No further run begins after so much time.
        seed: The first seed of each design. Equal seeds and numbers of runs give equal documents.
        progress: Takes runs done, and runs in all (None if time decides).

    Returns:
        The document that `--json` writes; `violations` in it is not 0 if anything was wrong.

    Raises:
        ConfigError: A name or number is not allowed.
    """
    from durasim import random_runs  # noqa: PLC0415 - keeps the start-up of other commands short

    return random_runs.run(tuple(designs), runs, seconds, seed, progress or (lambda *_: None))


def random_replay(design: str, run_id: str) -> dict[str, Any]:
    """Makes one run of a random campaign again, as `one-7` or `many-7`.

    Returns:
        The document that `--json` writes: `message` says what was wrong, if anything was, `steps` what led to it.

    Raises:
        ConfigError: There is no such design, or the text names no run.
    """
    from durasim import random_runs  # noqa: PLC0415 - keeps the start-up of other commands short

    return random_runs.replay(design, run_id)


def mutation(
    *, design: str | None = None, mutants: Iterable[str] | None = None, progress: MutationProgress | None = None
) -> MutationResult:
    """Builds designs with one planted fault each and has short crash campaigns catch these mutants.

    Args:
        design: The design whose mutants are tried; every durable one if None.
        mutants: Names of planted faults; all if None.
        progress: Takes what became of each mutant as soon as it is known.

    Returns:
        What became of each mutant; `missed` lists those that no campaign caught.

    Raises:
        ConfigError: There is no such design or mutant.
        ToolchainError: A guest program cannot be built.
    """
    from durasim import mutants as mutation_tests  # noqa: PLC0415 - keeps the start-up of other commands short

    chosen = mutation_tests.chosen_mutants(design, None if mutants is None else list(mutants))
    return mutation_tests.run_mutants(chosen, progress)


def compare(
    *,
    workloads: Iterable[str],
    designs: Iterable[str] | None = None,
    progress: Callable[[RunResult], None] | None = None,
    jobs: int | None = None,
    **options: Any,
) -> polars.DataFrame:
    """Runs every workload under every design and gives a data frame with one row for each pair.

    `relative_to_opt` is the throughput divided by that of `opt` on the same workload, null if `opt` is not among the
    designs. Units stand last in the names of the columns.

    Args:
        workloads: Names of workloads; `all-SUITE` stands for those of a suite.
        designs: Names of designs; `all-SUITE` stands for those that the paper of a suite compares, as None
            does for workloads of one suite.
        progress: Takes each result as soon as it is there.
        jobs: Runs at a time; all cores if None. Results do not depend on it.
        options: The other arguments of `run`; without threads each workload has those of its suite.

    Raises:
        ConfigError: Refused before cycle 0, or the same name is given twice.
        GuestFault, StuckError, HostIoError, ToolchainError: As from `run`.
    """
    from durasim.frame import comparison_frame  # noqa: PLC0415 - polars takes a while to load

    return comparison_frame(compare_runs(designs, workloads, progress, jobs=jobs, **options))


def compare_runs(
    designs: Iterable[str] | None,
    workloads: Iterable[str],
    progress: Callable[[RunResult], None] | None = None,
    *,
    jobs: int | None = None,
    **options: Any,
) -> list[RunResult]:
    """Gives the results behind `compare`, workload by workload in the given order of the designs."""
    guest_output = options.pop("guest_output", output.discard)
    return comparison.run_all(comparison.scenarios(designs, workloads, **options), guest_output, progress, jobs)


def designs() -> list[dict[str, Any]]:
    """Gives the designs: name, hardware, backend, domains, promise, cost and so on."""
    return list(design_rows().values())


def describe_design(name: str) -> dict[str, Any]:
    """Gives a design as `designs` does, its parameters, and the assumptions that it rests on.

    `parameters` has name, default, range, source and description of each; `rests_on` has key, paper, section, what is
    assumed, parameters, range, status, effect on this design and page of each assumption, the largest effect first.

    Raises:
        ConfigError: There is none of that name.
    """
    from durasim import assumptions, parameters  # noqa: PLC0415 - keeps the start-up of other commands short

    rows = design_rows()
    if row_name(name) not in rows:
        raise unknown_name("design", name, rows)
    design = rows[row_name(name)]
    return design | {
        "parameters": [parameter.to_dict() for parameter in parameters.parameters_of(design["hardware"])],
        "rests_on": assumptions.described(design["name"]),
    }


def check_designs(
    designs: Sequence[str] | None = None, *, progress: Callable[[str], None] | None = None
) -> list[Mechanism]:
    """Verifies the tables of docs/designs/: that every function is there, and that every test is there and passes.

    Args:
        designs: Designs whose pages are looked at; all pages if None.
        progress: Takes what is run next.

    Returns:
        The mechanisms in the tables; `problems` of each says why it is refused, if it is.

    Raises:
        ConfigError: A page is not of the form, or this installation is no checkout of the sources.
        HostIoError: cargo cannot be started.
    """
    from durasim import design_tables  # noqa: PLC0415 - keeps the start-up of other commands short

    root = design_tables.checkout()
    mechanisms = design_tables.read_tables(root, designs)
    design_tables.check(root, mechanisms, progress or (lambda _: None))
    return mechanisms


def workloads(design: str | None = None) -> list[WorkloadInfo]:
    """Gives the programs with their arguments: all, or those that a design has a runtime for.

    Raises:
        ConfigError: There is no such design.
    """
    from durasim import toolchain  # noqa: PLC0415 - keeps the start-up of other commands short

    if design is None:
        return list(toolchain.workloads())
    return workloads_of(row_name(design))


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
    scenario = scenario_of(workload=workload, ops=ops, threads=threads, seed=seed, workload_args=workload_args)
    scenario = dataclasses.replace(scenario, workload_args=(*scenario.workload_args, ("no-check", "true")))
    return TxProfile.from_dict(json.loads(_core.profile(json.dumps(scenario.request()), output.discard)))


def machines() -> list[dict[str, Any]]:
    """Gives the machine presets: name, description, cores and so on."""
    return list(machine_rows().values())


def describe_machine(name: str) -> dict[str, Any]:
    """Gives a machine preset as `machines` does, and its parameters: name, value and description of each.

    Raises:
        ConfigError: There is none of that name.
    """
    import tomllib  # noqa: PLC0415 - keeps the start-up of other commands short

    from durasim import parameters  # noqa: PLC0415

    preset = tomllib.loads(machine_toml(name))
    found = [parameter.to_dict() for parameter in parameters.parameters_of_machine(preset)]
    return machine_rows()[name] | {"parameters": found}


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

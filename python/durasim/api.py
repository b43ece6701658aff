"""The Python API: every command of the command line as a function with a typed result."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from durasim import _core, checkout, output
from durasim.arguments import takes_fields_of
from durasim.crashes.crash_request import CrashArguments, CrashOptions, PreparedCrash, has, options_of, prepare_crash
from durasim.crashes.known_check import refuse_unknown_check
from durasim.documents.campaign import CampaignResult
from durasim.documents.described import RunOptions
from durasim.documents.results import Comparison, CrashResult, RunResult, TxProfile
from durasim.errors import refusal, unknown_name
from durasim.programs import workload_tables
from durasim.programs.scale import DEFAULT_SCALE
from durasim.runs import comparison
from durasim.runs.command import run_command
from durasim.runs.comparison_document import comparison_document
from durasim.runs.machine import machine_option, machine_options
from durasim.runs.scenario import (
    DEFAULT_SEED,
    ComparisonArguments,
    Scenario,
    ScenarioArguments,
    design_variants,
    machine_rows,
    scenario_of,
    variant_name,
    workloads_of,
)
from durasim.runs.simulation import GuestOutput, RunProgress, reuse_or_run
from durasim.store.reuse import Reuse
from durasim.studies.described_study import StudyArguments
from durasim.watch import UNWATCHED, Watch

if TYPE_CHECKING:
    from durasim.crashes.mutants import MutationResult, Outcome
    from durasim.crashes.traced_run import TracedRun
    from durasim.documents.explanation import Explanation
    from durasim.documents.mechanisms import Mechanism
    from durasim.documents.sweep import SweepResult
    from durasim.programs.suites import Member
    from durasim.programs.workload_tables import WorkloadInfo
    from durasim.store.database import Store
    from durasim.studies.study import Study

Progress = Callable[[int, int], bool | None]
"""Called with the crashes done and the total; returning False ends the campaign early."""
ShrinkProgress = Callable[[int, str], None]
"""Called with the number of candidates tried and the command of the smallest failure so far."""
MutationProgress = Callable[["Outcome"], None]
"""Called with the outcome of a mutant."""
CampaignProgress = Callable[[int, int | None, str], None]
"""Called with the runs done, the total and the design of the last run."""
RandomProgress = Callable[[int, int | None], None]
"""Called with the runs done and the total (None if `seconds` is the limit)."""

SweepProgress = Callable[[int, int], None]
"""Called with the points of a study that are done and their total, which grows while an axis is bisected."""

StoreChoice = str | os.PathLike[str] | bool
"""A store of results: its file, True for that of the user, or False for none."""

_ESTIMATE_POINTS = 64
"""Crash points from which the total time is estimated."""
_CRASH_OPTIONS = frozenset(field.name for field in dataclasses.fields(CrashOptions))
_INTERNAL = tuple(name for name in _CRASH_OPTIONS if has(name, "internal"))
_ALSO_OF_CRASH = ("root",)
_ONLY_OF_RUN = (*(of.name for of in dataclasses.fields(RunOptions) if of.name not in _ALSO_OF_CRASH), "scale")


@takes_fields_of(Scenario)
def run(
    *,
    guest_output: GuestOutput = output.pass_through,
    progress: RunProgress | None = None,
    store: StoreChoice = False,
    **fields: Unpack[ScenarioArguments],
) -> RunResult:
    """Runs a workload or a program on a simulated machine.

    Args:
        store: A store of results that answers a repeated run, without the output of its guest, and keeps a new one;
            True is the user's store. Runs that write files of the host are never answered.
        guest_output: Called with the output of the guest; by default it goes to `sys.stdout` and `sys.stderr`.
        progress: Called from time to time with the operations done in the region of interest and their total (None if
            unknown).

    Raises:
        ConfigError: The configuration is refused before cycle 0.
        GuestFault: The guest was stopped.
        StuckError: The modelled machine cannot continue.
        HostIoError: A host file could not be read or written.
        ToolchainError: The guest program cannot be built.
    """
    return run_scenario(scenario_of(**fields), guest_output, progress, store)


def run_scenario(
    scenario: Scenario,
    guest_output: GuestOutput = output.pass_through,
    progress: RunProgress | None = None,
    store: StoreChoice = False,
) -> RunResult:
    """Runs `scenario`; see `run` for the other arguments."""
    request = scenario.request()
    written_before = _written_at(scenario.snapshot)
    try:
        with opened_store(store) as kept:
            return reuse_or_run(request, Reuse(kept), run_command(scenario), guest_output, progress)
    except KeyboardInterrupt as interrupt:
        if _written_at(scenario.snapshot) != written_before:
            interrupt.add_note(f"the snapshot {scenario.snapshot} was saved")
        raise


@takes_fields_of(Scenario)
def trace(
    file: str | os.PathLike[str],
    *,
    from_cycle: int = 0,
    to_cycle: int | None = None,
    replay: str | None = None,
    guest_output: GuestOutput = output.pass_through,
    progress: RunProgress | None = None,
    **fields: Unpack[ScenarioArguments],
) -> TracedRun:
    """Runs a workload or a program and writes what happens over time to a file for https://ui.perfetto.dev.

    Args:
        file: The file, which appears whole or not at all.
        from_cycle: First cycle of the trace.
        to_cycle: Cycle after its last one; None is the end of the run.
        replay: Id of a power failure, as `crash` gives it, that ends the trace. A workload then runs as in `crash`.
        guest_output: Called with the output of the guest, as for `run`.
        progress: Called from time to time with the operations done in the region of interest and their total.

    Raises:
        ConfigError: The configuration is refused, the window is empty, outside of the run or has too many events, or
            the run has no such power failure.
        GuestFault: The guest was stopped.
        StuckError: The modelled machine cannot continue.
        HostIoError: A host file could not be read or written.
        ToolchainError: The guest program cannot be built.
    """
    from durasim.crashes import traced_run  # noqa: PLC0415 - keeps the start-up of other commands short

    output.check_file(os.fspath(file))
    request = traced_run.trace_request(scenario_of(**fields), from_cycle, to_cycle, replay)
    return traced_run.write_trace(os.fspath(file), request, guest_output, progress)


def _written_at(path: str | None) -> int | None:
    """Returns the modification time of a file in nanoseconds of the host; None if the file does not exist."""
    if path is None or not os.path.exists(path):  # noqa: PTH110 - one question, no path to work with
        return None
    return os.stat(path).st_mtime_ns  # noqa: PTH116


@takes_fields_of(Scenario, CrashOptions, without=("design", *_ONLY_OF_RUN, *_INTERNAL))
def crash(
    *,
    design: str,
    shrink: bool = False,
    progress: Progress | None = None,
    store: StoreChoice = False,
    **fields: Unpack[CrashArguments],
) -> CrashResult:
    """Crashes a workload or a program at persist events, recovers each image and checks it.

    Args:
        store: A store of results that answers a repeated campaign and keeps a new one; True is the user's store.
        design: Durability design, see `designs()`.
        shrink: Minimizes the first failure; `shrunk` of the result is the smallest failure found.
        progress: Called with the crashes done and the total; returning False ends the campaign early.

    Raises:
        ConfigError: The configuration is refused before cycle 0.
        GuestFault: The guest was stopped during the run before the crash.
        StuckError: The modelled machine cannot continue.
        HostIoError: A host file could not be read or written.
        ToolchainError: The guest program cannot be built.
    """
    own = {name: value for name, value in fields.items() if name in _CRASH_OPTIONS}
    scenario = scenario_of(design=design, **{name: value for name, value in fields.items() if name not in own})
    prepared = prepare_crash(scenario, options_of(own))
    refuse_unknown_check(prepared)
    result = run_crash(prepared, progress, store)
    return shrink_first(prepared, result) if shrink else result


def run_crash(prepared: PreparedCrash, progress: Progress | None = None, store: StoreChoice = False) -> CrashResult:
    """Runs a campaign; see `crash`. The caller verifies first that the program understands its check arguments."""
    report = None if progress is None else (lambda done, total: progress(done, total) is not False)
    with opened_store(store) as kept:
        return prepared.reuse_or_crash(Reuse(kept), report)


def estimate_crash(prepared: PreparedCrash) -> tuple[int, float]:
    """Returns the number of persist events of a run and an estimate of the seconds to crash at all of them.

    The estimate comes from crashes at a few of them.
    """
    result = prepared.crash(points=_ESTIMATE_POINTS, cut_every_write=True)
    cores = prepared.options.workers or os.cpu_count() or 1
    crashing_s = result.trials / (result.trials_per_s_per_core * cores) if result.trials_per_s_per_core else 0.0
    # A campaign runs the program twice: once to count its events, once to crash it while other threads run the trials.
    counting_s = result.host.seconds - crashing_s
    judging_s = max(crashing_s - counting_s, crashing_s / 10)
    more = max(result.points / _ESTIMATE_POINTS - 1, 0.0)
    return result.points, result.host.seconds + more * judging_s


def shrink_first(prepared: PreparedCrash, result: CrashResult, progress: ShrinkProgress | None = None) -> CrashResult:
    """Returns `result` of a campaign with its first failure minimized, if it has a failure."""
    from durasim.crashes import shrink  # noqa: PLC0415 - keeps the start-up of other commands short

    if not result.failures:
        return result
    shrunk = shrink.shrink(prepared.scenario, prepared.options, result.failures[0], progress or (lambda *_: None))
    return dataclasses.replace(result, shrunk=shrunk)


def campaign(
    path: str | os.PathLike[str],
    *,
    seconds: float | None = None,
    store: StoreChoice = False,
    progress: CampaignProgress | None = None,
    watch: Watch = UNWATCHED,
) -> CampaignResult:
    """Runs every crash test in a campaign file; docs/crash.md explains such files.

    Args:
        path: The campaign file.
        seconds: Time budget; the campaign is repeated with new seeds until it is spent, or run once if None. A file
            with a required number of trials is repeated until they are done or the budget is spent.
        store: A store of results that keeps each verdict, and from which an interrupted campaign resumes; True is the
            user's store.
        progress: Called with the runs done, the total (None if `seconds` is the limit) and the design of the last run.
            The numbers are trials instead if the file requires a number of trials.
        watch: Is notified of each run.

    Returns:
        The document that `--json` writes, a dictionary; its `failed_checks` lists the reasons if the campaign failed.

    Raises:
        ConfigError: The file is refused.
        HostIoError: A host file could not be read or written.
        ToolchainError: A guest program cannot be built.
    """
    from durasim.crashes import campaign_file, campaign_run  # noqa: PLC0415 - keeps the start-up of other commands short

    described = campaign_file.read(os.fspath(path))
    with opened_store(store) as kept:
        return CampaignResult(campaign_run.run(described, kept, seconds, progress or (lambda *_: None), watch))


def random_campaign(
    designs: Iterable[str] = (),
    *,
    runs: int | None = None,
    seconds: float | None = None,
    seed: int = DEFAULT_SEED,
    store: StoreChoice = False,
    progress: RandomProgress | None = None,
) -> dict[str, Any]:
    """Tests random machines with random memory operations: checks every load, crashes and recovers.

    Args:
        designs: The designs, in turn; all if empty, except variants without a difference here.
        runs: Number of random machines; 200 if neither this nor `seconds` is given.
        seconds: Time budget; no run starts after it is spent.
        seed: The first seed of each design. Equal seeds and numbers of runs give equal documents.
        store: A store of results that keeps blocks of runs and answers them; True is the user's store.
        progress: Called with the runs done and the total (None if `seconds` is the limit).

    Returns:
        The document that `--json` writes; its `violations` is not 0 if a check failed.

    Raises:
        ConfigError: A name or number is not allowed.
    """
    from durasim.crashes import random_runs  # noqa: PLC0415 - keeps the start-up of other commands short

    with opened_store(store) as kept:
        blocks = random_runs.Blocks(Reuse(kept))
        return random_runs.run(tuple(designs), runs, seconds, seed, progress or (lambda *_: None), blocks)


def random_replay(design: str, run_id: str) -> dict[str, Any]:
    """Repeats one run of a random campaign, such as `one-7` or `many-7`.

    Returns:
        The document that `--json` writes: `message` names the violation, if any; `steps` lists the steps before it.

    Raises:
        ConfigError: The design is unknown, or the text is no run id.
    """
    from durasim.crashes import random_runs  # noqa: PLC0415 - keeps the start-up of other commands short

    return random_runs.replay(design, run_id)


def mutation(
    *,
    design: str | None = None,
    mutants: Iterable[str] | None = None,
    workload: str | os.PathLike[str] | None = None,
    macros: Iterable[str] = (),
    include_folders: Iterable[str | os.PathLike[str]] = (),
    store: StoreChoice = False,
    progress: MutationProgress | None = None,
) -> MutationResult:
    """Injects one fault at a time into a design and checks that short crash campaigns detect it.

    Args:
        design: The design whose mutants are tried; every durable one if None.
        mutants: Names of planted faults; all if None.
        workload: Replaces the workloads of the campaigns: a name, or the path of a source.
        macros: Macros with which `workload` is compiled.
        include_folders: Folders of further headers of `workload`.
        store: A store of results that answers campaigns of mutants and keeps new ones; True is the user's store.
        progress: Called with the outcome of each mutant as soon as it is known.

    Returns:
        The outcome of each mutant; `missed` lists the mutants that no campaign caught.

    Raises:
        ConfigError: The design or the mutant is unknown.
        ToolchainError: A guest program cannot be built.
    """
    from durasim.crashes import mutants as mutation_tests  # noqa: PLC0415 - keeps the start-up of other commands short

    chosen = mutation_tests.chosen_mutants(design, None if mutants is None else list(mutants))
    own = None
    if workload is not None:
        folders = tuple(map(os.fspath, include_folders))
        own = mutation_tests.OwnWorkload(os.fspath(workload), tuple(macros), folders)
    with opened_store(store) as kept:
        return mutation_tests.run_mutants(chosen, progress, own, Reuse(kept))


@takes_fields_of(StudyArguments)
def sweep(
    study: str | os.PathLike[str] | None = None,
    *,
    store: StoreChoice = True,
    jobs: int | None = None,
    cluster: str | None = None,
    insecure: bool = False,
    wait_minutes: float | None = None,
    yes: bool = False,
    progress: SweepProgress | None = None,
    **keys: Unpack[StudyArguments],
) -> SweepResult:
    """Runs a study: simulates each of its points that is not in the store, and stores it.

    docs/studies.md explains studies. `to_frame()` of the result has a row per point. The other arguments are the keys
    of a study file; paths are relative to the current folder.

    Args:
        study: A study file; give either it or the keys of one.
        store: The store of results; True is the user's store, False keeps nothing.
        jobs: Number of concurrent simulations; all cores if None. Results do not depend on it.
        cluster: Where points are simulated: `tls://HOST:PORT` or `tcp://HOST:PORT` of a Dask scheduler, `slurm`, `pbs`
            or `lsf`; processes of this computer if None or `local`.
        insecure: Permits `tcp://` beyond this computer.
        wait_minutes: Longest wait for the first worker of a cluster; half a minute for a running scheduler and a day
            for jobs if None.
        yes: Permits more than 10,000 points.
        progress: Called with the points done and the total.

    Raises:
        ConfigError: The study is refused before any point is simulated.
        HostIoError: The store or a file cannot be read or written.
        ToolchainError: A guest program cannot be built.
    """
    return run_study(
        described_study(study, keys),
        store=store, jobs=jobs, cluster=cluster, insecure=insecure, wait_minutes=wait_minutes, yes=yes,
        progress=progress,
    )  # fmt: skip


def run_study(
    study: Study,
    *,
    store: StoreChoice = True,
    jobs: int | None = None,
    cluster: str | None = None,
    insecure: bool = False,
    wait_minutes: float | None = None,
    yes: bool = False,
    progress: SweepProgress | None = None,
    watch: Watch = UNWATCHED,
) -> SweepResult:
    """Runs a study and notifies `watch` of each point; see `sweep`."""
    from durasim.studies.simulators import simulators  # noqa: PLC0415 - keeps the start-up of other commands short

    chosen = simulators(jobs, cluster, insecure=insecure, wait_minutes=wait_minutes)
    with opened_store(store) as kept:
        return chosen.run(study, kept, progress or (lambda *_: None), yes=yes, watch=watch)


def described_study(study: str | os.PathLike[str] | None, keys: Mapping[str, Any]) -> Study:
    """Returns a study from its file or its keys; see `sweep`."""
    from durasim.studies.study import read_study, study_of  # noqa: PLC0415 - keeps the start-up of other commands short

    if (study is None) != bool(keys):
        raise refusal("study", "give either a study file or the keys of one")
    return read_study(study) if study is not None else study_of(_with_machine_keys(keys))


def _with_machine_keys(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys of a study with the name and the changed keys of its `Machine`, or the names of several."""
    given = keys.get("machine")
    if isinstance(given, list | tuple):
        return {**keys, "machine": machine_options(given)}
    if given is None:
        return dict(keys)
    option, changed = machine_option(given)
    return {**keys, "machine": option} | ({"set": changed | dict(keys.get("set", {}))} if changed else {})


@contextlib.contextmanager
def opened_store(store: StoreChoice) -> Iterator[Store | None]:
    """Opens a store of results: that of the user if True, none if False."""
    if store is False:
        yield None
        return
    from durasim.store.database import Store  # noqa: PLC0415 - keeps the start-up of other commands short
    from durasim.store.location import default_path  # noqa: PLC0415

    with Store(default_path() if store is True else store) as found:
        yield found


@takes_fields_of(Scenario, without=("design", "workload"))
def compare(
    *,
    workloads: Iterable[str] | None = None,
    designs: Iterable[str] | None = None,
    threads: int | None = None,
    baseline: str | None = None,
    pmem_baseline: str | None = None,
    guest_output: GuestOutput = output.discard,
    progress: Callable[[RunResult], None] | None = None,
    jobs: int | None = None,
    store: StoreChoice = False,
    **fields: Unpack[ComparisonArguments],
) -> Comparison:
    """Runs every workload, or one program, under every design.

    `to_frame()` of the result has a row per run.

    Args:
        workloads: Names of workloads; `all-SUITE` means all workloads of a suite.
        designs: Names of designs; `all-SUITE` means the designs that the paper of a suite compares. None means the same
            for workloads of one suite.
        threads: Threads of the guest; for each workload the number of its suite if None.
        baseline: The design that throughputs are divided by; `opt` if None and it is among the designs.
        pmem_baseline: The design that bytes written are divided by; `hercules` or `opt` if None.
        guest_output: Called with the output of the guests; by default it is discarded.
        progress: Called with each result as soon as the run is done.
        jobs: Number of concurrent runs; all cores if None. Results do not depend on it.
        store: A store of results that answers repeated runs and keeps new ones; True is the user's store. It also keeps
            the snapshots that runs at a smaller scale share.

    Raises:
        ConfigError: The configuration is refused before cycle 0, or a name is given twice.
        GuestFault, StuckError, HostIoError, ToolchainError: As from `run`.
    """
    scenarios = comparison.scenarios(designs, workloads, threads=threads, **fields)
    throughput_of = comparison.baseline_of("baseline", baseline, scenarios)
    bytes_of = comparison.baseline_of("pmem_baseline", pmem_baseline, scenarios)
    with opened_store(store) as kept:
        results = comparison.run_all(scenarios, guest_output, progress, jobs, reuse=Reuse(kept))
    scale = fields.get("scale", DEFAULT_SCALE)
    return comparison_document(comparison.judge(results, scale, bytes_of, throughput_of), scale)


@takes_fields_of(Scenario, without=("design", "workload"))
def explain(
    *runs: RunResult,
    workloads: Iterable[str] | None = None,
    designs: Iterable[str] | None = None,
    threads: int | None = None,
    baseline: str | None = None,
    guest_output: GuestOutput = output.discard,
    progress: Callable[[RunResult], None] | None = None,
    jobs: int | None = None,
    store: StoreChoice = False,
    **fields: Unpack[ComparisonArguments],
) -> Explanation:
    """Explains where the cycles of designs went against a baseline, and where each byte written to pmem came from.

    `to_frame()` of the result has a row per stall counter and origin of bytes. All sums are exact.

    Args:
        runs: Results of `run` to explain, that of the baseline first, in place of all arguments about runs.
        workloads: Names of workloads; `all-SUITE` means all workloads of a suite.
        designs: Names of designs, with or without the baseline; as for `compare`.
        threads: Threads of the guest; for each workload the number of its suite if None.
        baseline: The design that the others are explained against; `opt` if None.
        guest_output: Called with the output of the guests; by default it is discarded.
        progress: Called with each result as soon as the run is done.
        jobs: Number of concurrent runs; all cores if None. Results do not depend on it.
        store: A store of results that answers repeated runs and keeps new ones; True is the user's store. It also keeps
            the snapshots that runs at a smaller scale share.

    Raises:
        ConfigError: The configuration is refused before cycle 0, results given in `runs` differ in more than the
            design, or a run has no stall counters.
        GuestFault, StuckError, HostIoError, ToolchainError: As from `run`.
    """
    from durasim.documents import explanation  # noqa: PLC0415 - keeps the start-up of other commands short

    given = {
        "workloads": workloads,
        "designs": designs,
        "threads": threads,
        "baseline": baseline,
        "jobs": jobs,
        **fields,
    }
    if runs:
        if superfluous := [name for name, value in given.items() if value is not None]:
            raise refusal(superfluous[0], "is about runs, and the results of runs are given: leave one out")
        return explanation.explain_runs(runs[0], runs[1:])
    of_baseline, scenarios = comparison.explained_scenarios(baseline, designs, workloads, threads=threads, **fields)
    with opened_store(store) as kept:
        results = comparison.run_all(scenarios, guest_output, progress, jobs, reuse=Reuse(kept))
    return explanation.explain_all(results, of_baseline, len(scenarios))


def designs() -> list[dict[str, Any]]:
    """Returns the designs: name, hardware, backend, domains, promise, cost and so on."""
    return list(design_variants().values())


def describe_design(name: str) -> dict[str, Any]:
    """Returns a design as `designs` does, with its parameters and the assumptions that it depends on.

    `parameters` lists name, default, range, source and description; `rests_on` lists key, paper, section, assumption,
    parameters, range, status, effect on this design and page of each assumption, largest effect first.

    Raises:
        ConfigError: The name is unknown.
    """
    from durasim.runs import assumptions, parameters  # noqa: PLC0415 - keeps the start-up of other commands short

    variants = design_variants()
    if variant_name(name) not in variants:
        raise unknown_name("design", name, variants)
    design = variants[variant_name(name)]
    return design | {
        "parameters": [parameter.to_dict() for parameter in parameters.parameters_of(design["hardware"])],
        "rests_on": assumptions.described(design["name"]),
    }


def check_designs(
    designs: Sequence[str] | None = None, *, progress: Callable[[str], None] | None = None
) -> list[Mechanism]:
    """Verifies the tables of docs/designs/: every function exists, and every test exists and passes.

    Args:
        designs: Designs whose pages are checked; all pages if None.
        progress: Called with the command that runs next.

    Returns:
        The mechanisms in the tables; `problems` of each lists the reasons if it is refused.

    Raises:
        ConfigError: A page has the wrong format, or durasim was not installed from a checkout.
        HostIoError: cargo cannot be started.
    """
    root, design_tables = checkout.checkout(), checkout.tool("design_tables")
    mechanisms: list[Mechanism] = design_tables.read_tables(root, designs)
    design_tables.check(root, mechanisms, progress or (lambda _: None))
    return mechanisms


def workloads(design: str | None = None) -> list[WorkloadInfo]:
    """Returns the workloads with their arguments: all, or those that a design has a runtime for.

    Raises:
        ConfigError: The design is unknown.
    """
    if design is None:
        return list(workload_tables.workloads())
    return workloads_of(variant_name(design))


def suite_members() -> list[Member]:
    """Returns the workloads of all suites: programs with the arguments of the papers."""
    from durasim.programs import suites  # noqa: PLC0415 - keeps the start-up of other commands short

    return list(suites.members())


def measure_workload(
    workload: str,
    *,
    ops: int | None = None,
    threads: int = 1,
    seed: int = DEFAULT_SEED,
    workload_args: Mapping[str, Any] | None = None,
    scale: str = DEFAULT_SCALE,
) -> TxProfile:
    """Runs a workload functionally, without caches and time, and counts the writes of its transactions.

    Args:
        workload: Name of a workload, or of a member of a suite.
        ops: Transactions in the region of interest; the workload's default if None.
        threads: Threads of the guest.
        seed: Seed of all random choices.
        workload_args: Arguments of the workload by name.
        scale: Size of the workload relative to the paper: `paper`, or `quick` for workloads of suites that define it.

    Raises:
        ConfigError: A name is unknown, a value is out of range, or the program failed.
        GuestFault: The guest was stopped.
        ToolchainError: The guest program cannot be built.
    """
    scenario = scenario_of(
        workload=workload, ops=ops, threads=threads, seed=seed, workload_args=workload_args, scale=scale
    )
    scenario = dataclasses.replace(scenario, workload_args=(*scenario.workload_args, ("no-check", "true")))
    return TxProfile.from_dict(json.loads(_core.profile(json.dumps(scenario.request()), output.discard)))


def machines() -> list[dict[str, Any]]:
    """Returns the machine presets: name, description, cores and so on."""
    return list(machine_rows().values())


def describe_machine(name: str) -> dict[str, Any]:
    """Returns a machine preset as `machines` does, with name, value and description of its parameters.

    Raises:
        ConfigError: The name is unknown.
    """
    import tomllib  # noqa: PLC0415 - keeps the start-up of other commands short

    from durasim.runs import parameters  # noqa: PLC0415

    preset = tomllib.loads(machine_toml(name))
    found = [parameter.to_dict() for parameter in parameters.parameters_of_machine(preset)]
    return machine_rows()[name] | {"parameters": found}


def machine_toml(name: str) -> str:
    """Returns the TOML text of a machine preset.

    Raises:
        ConfigError: The name is unknown.
    """
    if name not in machine_rows():
        raise unknown_name("machine", name, machine_rows())
    return _core.machine_toml(name)


def machine_schema() -> dict[str, Any]:
    """Returns the JSON Schema of machine files."""
    schema: dict[str, Any] = json.loads(_core.machine_schema())
    return schema

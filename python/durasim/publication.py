"""The Python API of papers and artifacts: published numbers beside ours, effects of assumptions, and packed results."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from durasim.api import StoreChoice, SweepProgress, described_study, opened_store
from durasim.errors import refusal, unknown_name
from durasim.watch import UNWATCHED, Watch

if TYPE_CHECKING:
    from durasim.artifacts.pack import Wanted
    from durasim.documents.artifact import Artifact, Rerun
    from durasim.documents.reproduction import Reproduction
    from durasim.documents.sensitivity import Sensitivity
    from durasim.documents.sweep_plan import Plan
    from durasim.papers.reproduction import Chosen
    from durasim.store.database import Store
    from durasim.studies.study import Study


_PROBE_INSTRUCTIONS = 2_000_000_000
"""The programs of papers at scale quick, populated, have fewer instructions."""


def reproduce(
    paper: str,
    *,
    figure: str | None = None,
    scale: str = "quick",
    readings: bool | Sequence[str] = False,
    seeds: int = 1,
    store: StoreChoice = True,
    jobs: int | None = None,
    cluster: str | None = None,
    insecure: bool = False,
    wait_minutes: float | None = None,
    yes: bool = False,
    progress: SweepProgress | None = None,
) -> Reproduction:
    """Runs what the figures of a paper need, and compares its published numbers with ours.

    Args:
        paper: A paper, or `all`.
        figure: Only this figure, table or section, such as `Fig5`.
        scale: `quick`, the sizes that are scored, or `paper`.
        readings: Whether to run the other readings of the paper as well, with the verdicts that they gain and lose, or
            the names of those to run.
        seeds: Repeats each run with at least this many seeds, for intervals of the numbers; a run that the paper's
            files repeat more often keeps its seeds.
        store: The store of results; True is the user's store, False keeps nothing.
        jobs: Number of concurrent simulations; all cores if None. Results do not depend on it.
        cluster: Where runs are simulated, as for `sweep`.
        insecure: Permits `tcp://` beyond this computer.
        wait_minutes: Longest wait for the first worker of a cluster, as for `sweep`.
        yes: Permits more than 10,000 runs.
        progress: Called with the runs done and the total.

    Raises:
        ConfigError: A name is unknown, a run is refused before any is simulated, or no size is published that scale
            `paper` needs.
        HostIoError: The store or a file cannot be read or written.
        ToolchainError: A guest program cannot be built.
    """
    chosen = chosen_papers(paper, figure, scale, readings)
    return run_reproduction(
        chosen, scale, readings=bool(readings), seeds=seeds, store=store, jobs=jobs, cluster=cluster, insecure=insecure,
        wait_minutes=wait_minutes, yes=yes, progress=progress,
    )  # fmt: skip


def chosen_papers(paper: str, figure: str | None, scale: str, readings: bool | Sequence[str] = False) -> list[Chosen]:
    """Returns the figures of a paper, or of all papers; see `reproduce`."""
    from durasim.papers.grids import SCALES  # noqa: PLC0415 - keeps the start-up of other commands short
    from durasim.papers.paper_files import ALL, paper_named, paper_names  # noqa: PLC0415
    from durasim.papers.reproduction import at_scale, chosen_figures, with_readings  # noqa: PLC0415

    if scale not in SCALES:
        raise unknown_name("scale", scale, SCALES)
    names = paper_names() if paper == ALL else (paper,)
    chosen = at_scale(chosen_figures([paper_named(name) for name in names], figure), scale)
    return chosen if isinstance(readings, bool) else with_readings(chosen, readings)


def run_reproduction(
    chosen: Sequence[Chosen],
    scale: str,
    *,
    readings: bool = False,
    seeds: int = 1,
    store: StoreChoice = True,
    jobs: int | None = None,
    cluster: str | None = None,
    insecure: bool = False,
    wait_minutes: float | None = None,
    yes: bool = False,
    progress: SweepProgress | None = None,
    watch: Watch = UNWATCHED,
) -> Reproduction:
    """Runs what chosen figures need and notifies `watch` of each run; see `reproduce`."""
    from durasim.papers import reproduction  # noqa: PLC0415 - keeps the start-up of other commands short
    from durasim.papers.counts import count_of  # noqa: PLC0415
    from durasim.studies.simulators import simulators  # noqa: PLC0415

    if seeds < 1:
        raise refusal("seeds", f"{seeds} is not at least 1")
    workers = simulators(jobs, cluster, insecure=insecure, wait_minutes=wait_minutes)
    report = progress or (lambda *_: None)
    with opened_store(store) as kept:
        return reproduction.reproduce(
            chosen, scale, run=lambda study, see: workers.run(study, kept, report, yes=yes, see=see, watch=watch),
            counts=count_of, with_readings=readings, seeds=seeds,
        )  # fmt: skip


def planned_reproduction(
    chosen: Sequence[Chosen],
    scale: str,
    *,
    readings: bool = False,
    seeds: int = 1,
    store: StoreChoice = True,
    jobs: int | None = None,
) -> list[Plan]:
    """Returns a plan for each paper that needs runs, and if asked for of what each reading adds; see `reproduce`."""
    from durasim.studies.estimates import ProgramLengths  # noqa: PLC0415 - keeps the start-up of other commands short
    from durasim.studies.plan import plan_of  # noqa: PLC0415

    lengths = ProgramLengths()
    planned = (of.planned_grids(scale, with_readings=readings, seeds=seeds) for of in chosen)
    grids = [grid for of in planned for grid in of if grid.distinct]
    with opened_store(store) as kept:
        return [plan_of(grid, kept, jobs, lengths) for grid in grids]


def sensitivity(
    paper: str | None = None,
    keys: Sequence[str] = (),
    *,
    store: StoreChoice = True,
    jobs: int | None = None,
    cluster: str | None = None,
    insecure: bool = False,
    wait_minutes: float | None = None,
    progress: SweepProgress | None = None,
    watch: Watch = UNWATCHED,
) -> Sensitivity:
    """Varies the assumptions of designs and machines one at a time, on machine and programs of their paper.

    Args:
        paper: A paper as for `reproduce`; all with a place in `experiments/sensitivity.toml` if None or `all`.
        keys: Keys of assumptions; all if empty.
        store: The store of results; True is the user's store, False keeps nothing.
        jobs: Number of concurrent simulations; all cores if None. Results do not depend on it.
        cluster: Where runs are simulated, as for `sweep`.
        insecure: Permits `tcp://` beyond this computer.
        wait_minutes: Longest wait for the first worker of a cluster, as for `sweep`.
        progress: Called with the runs done and the total.
        watch: Is notified of each run.

    Raises:
        ConfigError: A name is unknown, or nothing is varied there.
        HostIoError: The store or a file cannot be read or written.
        ToolchainError: A guest program cannot be built.
    """
    from durasim.papers import sensitivity_study  # noqa: PLC0415 - keeps the start-up of other commands short
    from durasim.papers.sensitivity_file import places  # noqa: PLC0415
    from durasim.studies.simulators import simulators  # noqa: PLC0415

    runs = sensitivity_study.planned(places(paper), keys)
    workers = simulators(jobs, cluster, insecure=insecure, wait_minutes=wait_minutes)
    report = progress or (lambda *_: None)
    with opened_store(store) as kept:
        return sensitivity_study.measure(
            runs, run=lambda study, see: workers.run(study, kept, report, see=see, watch=watch)
        )


def planned_sensitivity(
    paper: str | None = None, keys: Sequence[str] = (), *, store: StoreChoice = True, jobs: int | None = None
) -> Plan:
    """Returns the plan of the experiment; see `sensitivity`."""
    from durasim.papers.sensitivity_file import places  # noqa: PLC0415 - keeps the start-up of other commands short
    from durasim.papers.sensitivity_study import planned, study_of  # noqa: PLC0415
    from durasim.studies.estimates import ProgramLengths  # noqa: PLC0415
    from durasim.studies.plan import plan_of  # noqa: PLC0415

    study = study_of(planned(places(paper), keys))
    with opened_store(store) as kept:
        return plan_of(study, kept, jobs, ProgramLengths(_PROBE_INSTRUCTIONS))


def artifact(
    subject: str | os.PathLike[str],
    *,
    output: str | os.PathLike[str] | None = None,
    figure: str | None = None,
    scale: str | None = None,
    wheel: str | os.PathLike[str] | None = None,
    wheels: str | os.PathLike[str] | None = None,
    store: str | os.PathLike[str] | None = None,
) -> Artifact:
    """Packs the stored results of a study or of figures of a paper, with all that simulates them again.

    docs/artifacts.md explains the file. Nothing is simulated: each point has to be in the store.

    Args:
        subject: A study file, or a paper as for `reproduce`.
        output: The file to write; `NAME-artifact.tar.gz` in the present folder if None.
        figure: Only this figure, table or section of the paper, such as `Fig5`.
        scale: Scale of the runs of the paper, `quick` or `paper`; `quick` if None.
        wheel: The wheel of the durasim that is running; that in `dist` of the checkout if None.
        wheels: A folder with the wheels that durasim needs; `pip` downloads them if None.
        store: The store of results; that of the user if None.

    Raises:
        ConfigError: A name is unknown, a point is not stored, the wheel is of another build, or a text of the user or
            a file has the name of the user or the like.
        HostIoError: The store or a file cannot be read or written, or `pip` cannot get a wheel.
        ToolchainError: A guest program cannot be built.
    """
    from durasim.artifacts import pack  # noqa: PLC0415 - keeps the start-up of other commands short
    from durasim.artifacts.wheels import wheel_of_durasim  # noqa: PLC0415
    from durasim.store.database import Store  # noqa: PLC0415
    from durasim.store.location import default_path  # noqa: PLC0415

    pack.refuse_own_core()
    # A wrong name is refused before the store is opened.
    packed = _subject(subject, figure, scale)
    with Store(default_path() if store is None else store, create=False) as kept:
        wanted = _wanted(packed, os.fspath(subject), figure, scale, kept, None if store is None else os.fspath(store))
    target = pack.checked_target(output, wanted.top)
    return pack.pack(wanted, target, wheel_of_durasim(wheel), wheels)


def _subject(subject: str | os.PathLike[str], figure: str | None, scale: str | None) -> Study | list[Chosen]:
    """Returns the study or the figures that an artifact is about."""
    named = os.fspath(subject)
    if not (named.endswith(".toml") or os.path.isfile(named)):  # noqa: PTH113 - one question about a text
        return chosen_papers(named, figure, scale or "quick")
    for name, value in (("figure", figure), ("scale", scale)):
        if value is not None:
            raise refusal(name, "is for a paper, not for a study file")
    return described_study(named, {})


def _wanted(
    packed: Study | list[Chosen], named: str, figure: str | None, scale: str | None, kept: Store, store: str | None
) -> Wanted:
    """Returns the points and numbers of an artifact."""
    from durasim.artifacts import evidence  # noqa: PLC0415 - keeps the start-up of other commands short
    from durasim.artifacts.pack import Wanted  # noqa: PLC0415

    in_store = () if store is None else ("--store", store)
    if not isinstance(packed, list):
        command = evidence.command_line("durasim", "sweep", named, *in_store)
        return Wanted(evidence.of_study(packed, kept, command), packed, ("sweep", "study.toml"))
    shows = ["reproduce", named]
    shows += [word for flag, value in (("--figure", figure), ("--scale", scale)) if value for word in (flag, value)]
    command = evidence.command_line("durasim", *shows, *in_store)
    return Wanted(evidence.of_papers(packed, scale or "quick", kept, command), None, tuple(shows))


def rerun(folder: str | os.PathLike[str], *, jobs: int | None = None, progress: SweepProgress | None = None) -> Rerun:
    """Simulates all points of an unpacked artifact again, and compares their results with the packed ones.

    An interrupted rerun continues where it ended: it keeps its results in the folder `rerun` of the artifact.

    Args:
        folder: The unpacked artifact.
        jobs: Number of concurrent simulations; all cores if None. Results do not depend on it.
        progress: Called with the points done and their total.

    Raises:
        ConfigError: The folder is no artifact, one of its files is changed, or it is of another build of durasim.
        HostIoError: A file cannot be read or written.
    """
    from durasim.artifacts import rerun as artifact_rerun  # noqa: PLC0415 - keeps the start-up of other commands short
    from durasim.studies.executor import LocalProcesses  # noqa: PLC0415

    return artifact_rerun.rerun(folder, lambda: LocalProcesses(jobs), progress or (lambda *_: None))

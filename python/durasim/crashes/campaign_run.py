"""Runs campaigns: all runs on all cores of this computer, each verdict stored at once, one result at the end."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any

from durasim import _core
from durasim.crashes import mutants as mutation
from durasim.crashes.campaign_file import CampaignFile, Unit
from durasim.crashes.crash_request import crash_command, finish_crash
from durasim.crashes.shrink import shrink
from durasim.crashes.workers import worker_processes
from durasim.documents.described_crash import FAULTS, FAULTS_UNDER_MODELS
from durasim.documents.results import CrashFailure
from durasim.errors import DurasimError, HostIoError, InternalError
from durasim.runs.scenario import design_variants
from durasim.store.database import Store
from durasim.store.keys import Keys
from durasim.store.reuse import Reuse
from durasim.watch import FAILED, REUSED, SIMULATED, UNWATCHED, Finished, Watch

Progress = Callable[[int, int | None, str], None]
"""Called with the number done, the total (None if time is the limit), and the name of what was done last. The number
counts runs or, if the file requires a number of trials, trials."""
_FAILURES_MAX = 50
_CAUSES_MAX = 50
"""Number of runs whose causes of violations are listed."""
_SHRUNK_MAX = 8
"""Number of failures to minimize: the first one of each design and workload."""
_OF_HOST = (HostIoError.__name__, InternalError.__name__)
"""Errors that another attempt may not have."""
_SUMS = ("points", "trials", "violations", "disagreements", "losses_reported")


@dataclass
class Tally:
    """Intermediate results of a campaign."""

    sums: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    faults_asked: set[str] = field(default_factory=set)
    faults_tried: set[str] = field(default_factory=set)
    marks: dict[str, Counter[str]] = field(default_factory=dict)
    results: dict[tuple[str, str, str, int], Counter[str]] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)
    causes: list[dict[str, Any]] = field(default_factory=list)
    controls: list[dict[str, Any]] = field(default_factory=list)
    firsts: dict[tuple[str, str], tuple[Unit, CrashFailure]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    judging_s: float = 0.0
    depth: int = 0
    units: int = 0
    resumed: int = 0

    def add(self, unit: Unit, document: Mapping[str, Any]) -> None:
        """Adds the verdict of a unit."""
        self.units += 1
        if unit.control is not None:
            self._add_control(unit, document)
            return
        scenario = unit.scenario
        if "error" in document:
            program = scenario.workload or scenario.elf
            self.errors.append(f"{scenario.design} {program} seed {scenario.seed}: {document['error']}")
            return
        self.sums.update({name: document[name] for name in _SUMS})
        self.faults.update(document["trials_by_fault"])
        asked = set(unit.options.faults or FAULTS)
        if unit.options.persistency_model is not None:
            asked &= set(FAULTS_UNDER_MODELS)
        self.faults_asked |= asked
        self.faults_tried |= asked - document["not_tried"].keys()
        self.marks.setdefault(scenario.design, Counter()).update(document["marks"])
        self.depth = max(self.depth, document["nested_depth_max"])
        if document["trials_per_s_per_core"] > 0:
            self.judging_s += document["trials"] / document["trials_per_s_per_core"]
        key = (scenario.design, document["domain"], document["workload"], scenario.threads)
        self.results.setdefault(key, Counter()).update(
            {"runs": 1, **{name: document[name] for name in ("trials", "violations")}}
        )
        failures = finish_crash(document, scenario, unit.options).failures
        self.failures += [failure.to_dict() for failure in failures]
        if document["causes"] is not None:
            of_run = {name: document[name] for name in ("design", "domain", "workload", "seed")}
            command = crash_command(scenario, unit.options)
            self.causes.append({**of_run, "command": command, "causes": document["causes"]})
        if failures:
            # Runs end in any order; the first failure is the one of the smallest run.
            place = (scenario.design, document["workload"])
            runs = [*filter(None, [self.firsts.get(place)]), (unit, failures[0])]
            self.firsts[place] = min(runs, key=lambda run: (run[0].scenario.threads, repr(run[0])))

    def _add_control(self, unit: Unit, document: Mapping[str, Any]) -> None:
        control = unit.control
        assert control is not None  # noqa: S101 - checked by the caller
        self.controls.append(
            {
                "name": control.name,
                "expects": control.expects,
                "found": _found(document),
                "trials": document.get("trials", 0),
                "violations": document.get("violations", 0),
                "why": control.why,
            }
        )


def _found(document: Mapping[str, Any]) -> str:
    """Returns the outcome of a control."""
    return "error" if "error" in document else "violation" if document["violations"] else "survival"


def run(
    campaign: CampaignFile,
    store: Store | None,
    seconds: float | None,
    progress: Progress,
    watch: Watch = UNWATCHED,
) -> dict[str, Any]:
    """Runs a campaign once, or in rounds with new seeds.

    If the file requires a number of trials, rounds continue until they are done. With `seconds`, rounds continue until
    the time has passed or the required trials are done, and the runs of a round are in drawn order. Runs with a stored
    verdict are not repeated.

    Raises:
        ConfigError: A name or number in the file is not allowed.
        ToolchainError: A guest program cannot be built.
        HostIoError: A worker process was killed.
    """
    began = time.monotonic()
    tally, kept = Tally(), _Kept(store, campaign.name)
    try:
        watch.begin_study(campaign.name, "runs" if campaign.trials is None else "trials", seconds)
        report = _reporter(campaign, tally, seconds, progress, watch)
        with worker_processes() as (pool, workers):
            for batch in _batches(campaign, tally, seconds, began):
                _judge(pool, 2 * workers, batch, kept, tally, report, watch)
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(kept.sentence(tally))
        raise
    except BrokenProcessPool as broken:
        # Killed by the kernel for lack of memory, or by the user. All other workers have ended with it.
        raise HostIoError(f"a worker process was killed; {kept.sentence(tally)}") from broken
    watch.say("minimizing failures")
    shrunk = list(_shrunk(tally, report))
    watch.say("testing planted faults")
    planted = [mutant for name in campaign.mutated_designs() for mutant in mutation.chosen_mutants(name)]
    caught = mutation.run_mutants(planted, reuse=Reuse(store))
    return _document(campaign, tally, caught, time.monotonic() - began) | {"shrunk": shrunk}


def _reporter(
    campaign: CampaignFile, tally: Tally, seconds: float | None, progress: Progress, watch: Watch
) -> Callable[[str], None]:
    """Returns the function that reports progress, with the name of what was done last."""
    total = campaign.trials if seconds is None else None
    if total is None and seconds is None:
        total = len(campaign.units())

    def report(what: str) -> None:
        done = tally.units if campaign.trials is None else tally.sums["trials"]
        done = done if total is None else min(done, total)
        watch.count(done, total)
        progress(done, total, what)

    return report


class _Kept:
    """The verdicts of a campaign in a store, if there is one."""

    def __init__(self, store: Store | None, name: str) -> None:
        self._store, self._name, self._keys = store, name, Keys()

    def get(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """Returns the stored verdict on a request."""
        return None if self._store is None else self._store.get(self._keys.of("crash", request))

    def put(self, unit: Unit, request: Mapping[str, Any], document: Mapping[str, Any]) -> None:
        """Stores a verdict, or the error of a run that fails without a crash, unless the host may be the reason."""
        if self._store is not None and not document.get("error", "").startswith(_OF_HOST):
            seconds = float(document.get("host", {}).get("seconds", 0.0))
            self._store.put(
                self._keys.of("crash", request), "crash", request, document,
                seconds=seconds, command=crash_command(unit.scenario, unit.options), study=self._name,
            )  # fmt: skip

    def sentence(self, tally: Tally) -> str:
        """Describes what remains of an interrupted campaign."""
        if self._store is None:
            return f"the verdicts of {tally.units} runs are lost: without --no-store they are kept"
        return f"{self._store.path} holds {self._store.count()} results: the same command resumes the campaign"


def _judge(
    pool: ProcessPoolExecutor,
    running_max: int,
    units: Iterator[Unit],
    stored: _Kept,
    tally: Tally,
    report: Callable[[str], None],
    watch: Watch,
) -> None:
    """Computes the verdicts of all these runs, at most `running_max` at a time."""
    running: dict[Future[str], tuple[int, Unit, dict[str, Any]]] = {}
    exhausted = False

    def finish(number: int, unit: Unit, document: Mapping[str, Any], state: str) -> None:
        tally.add(unit, document)
        watch.finish(number, _finished(unit, document, state))
        report(unit.scenario.design)

    while running or not exhausted:
        while not exhausted and len(running) < running_max:
            unit = next(units, None)
            if unit is None:
                exhausted = True
                break
            request = unit.request()
            kept = stored.get(request)
            number = tally.units + len(running)
            watch.add([_name_of(unit)])
            if kept is not None:
                tally.resumed += 1
                finish(number, unit, kept, REUSED)
            else:
                running[pool.submit(crash_unit, json.dumps(request))] = (number, unit, request)
                watch.begin(number)
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            number, unit, request = running.pop(future)
            document = json.loads(future.result())
            stored.put(unit, request, document)
            finish(number, unit, document, SIMULATED)


def _name_of(unit: Unit) -> str:
    """Returns the design, program and seed of a run, and the name of a control."""
    scenario = unit.scenario
    name = f"{scenario.design} {scenario.workload or scenario.elf} threads={scenario.threads} seed={scenario.seed}"
    return name if unit.control is None else f"control {unit.control.name}: {name}"


def _finished(unit: Unit, document: Mapping[str, Any], state: str) -> Finished:
    control, problem = unit.control, document.get("error")
    counters = {name: document[name] for name in _SUMS} if problem is None else {}
    if control is not None:
        found = _found(document)
        problem = None if found == control.expects else f"{control.expects} expected, {found} found"
    return Finished(
        state=state if problem is None else FAILED,
        seconds=float(document.get("host", {}).get("seconds", 0.0)),
        command=crash_command(unit.scenario, unit.options),
        counters=counters,
        # Not those of controls, whose violations are wanted.
        sums=counters if control is None else {},
        problem=problem,
    )


def _batches(campaign: CampaignFile, tally: Tally, seconds: float | None, began: float) -> Iterator[Iterator[Unit]]:
    """Yields batches of runs; each batch is finished before the next one is chosen."""
    if campaign.trials is None:
        rounds = itertools.count() if seconds is not None else range(1)
        yield _units(campaign, rounds, seconds, began)
        return
    # Whole rounds, so that the set of runs depends only on the file and not on the speed of the computer.
    for round_number in itertools.count():
        yield _units(campaign, [round_number], seconds, began)
        is_late = seconds is not None and time.monotonic() - began >= seconds
        # If the runs fail without a crash or have no crash points, further rounds add no trials.
        is_futile = bool(tally.errors) or not tally.sums["trials"]
        if is_late or is_futile or tally.sums["trials"] >= campaign.trials:
            return


def _shrunk(tally: Tally, progress: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Minimizes the first failure of each design and workload."""
    for (design, workload), (unit, failure) in sorted(tally.firsts.items(), key=lambda item: item[0])[:_SHRUNK_MAX]:
        progress(f"a smaller {design}")
        options = dataclasses.replace(unit.options, workers=None)
        reduced = shrink(unit.scenario, options, failure, lambda *_: None)
        yield {"design": design, "workload": workload, **reduced}


def _units(campaign: CampaignFile, rounds: Iterable[int], seconds: float | None, began: float) -> Iterator[Unit]:
    for round_number in rounds:
        for unit in ordered(campaign.units(round_number), round_number, seconds):
            if seconds is not None and unit.control is None and time.monotonic() - began >= seconds:
                return
            yield unit


def ordered(units: list[Unit], round_number: int, seconds: float | None) -> list[Unit]:
    """Returns the runs of a round in the order to run them: as in the file, or drawn if time may end the round.

    In the order of the file a short budget would only ever reach the first sweeps.
    """
    if seconds is None:
        return units
    controls = [unit for unit in units if unit.control is not None]
    swept = [unit for unit in units if unit.control is None]
    random.Random(round_number).shuffle(swept)  # noqa: S311 - draws test cases
    return controls + swept


def crash_unit(request: str) -> str:
    """Crashes one run in a worker process; a run that fails without a crash is reported in the document."""
    try:
        return _core.crash(request, None)
    except DurasimError as error:
        return json.dumps({"error": f"{type(error).__name__}: {error}"})


def marks_required(designs: list[str]) -> dict[str, list[str]]:
    """Returns the marks that a long campaign over these designs must hit, by design."""
    return {name: design_variants()[name]["marks"] for name in designs}


def _document(campaign: CampaignFile, tally: Tally, mutated: mutation.MutationResult, wall_s: float) -> dict[str, Any]:
    required = marks_required(campaign.designs()) if campaign.marks else {}
    missed = [
        f"{design}/{mark}"
        for design, marks in required.items()
        for mark in marks
        if not tally.marks.get(design, {}).get(mark)
    ]
    failed = [f"control {c['name']}: {c['expects']} expected, {c['found']} found" for c in tally.controls
              if c["found"] != c["expects"]]  # fmt: skip
    if tally.sums["violations"]:
        failed.append(f"{tally.sums['violations']} violations")
    failed += [f"never hit: {mark}" for mark in missed]
    failed += [f"mutant not caught: {outcome.mutant.path}" for outcome in mutated.missed]
    failed += tally.errors
    of_mutants = {name: value for name, value in mutated.to_dict().items() if name not in {"schema", "durasim_version"}}
    hits = {f"{design}/{mark}": n for design, marks in sorted(tally.marks.items()) for mark, n in sorted(marks.items())}
    hits |= dict.fromkeys(missed, 0)
    order = sorted(tally.results)
    return {
        "schema": "durasim-campaign/4",
        "durasim_version": _core.__version__,
        "name": campaign.name,
        "units": tally.units,
        "units_resumed": tally.resumed,
        **{name: tally.sums[name] for name in _SUMS},
        "trials_by_fault": dict(sorted(tally.faults.items())),
        "not_tried": sorted(tally.faults_asked - tally.faults_tried),
        "trials_per_s_per_core": tally.sums["trials"] / tally.judging_s if tally.judging_s else 0.0,
        "nested_depth_max": tally.depth,
        "marks": hits,
        "marks_missed": missed,
        "results": [dict(zip(("design", "domain", "workload", "threads"), key, strict=True)) | dict(tally.results[key])
                    for key in order],
        # Runs end in any order.
        "failures": sorted(tally.failures, key=lambda failure: failure["command"])[:_FAILURES_MAX],
        "causes": sorted(tally.causes, key=lambda of: of["command"])[:_CAUSES_MAX],
        "controls": sorted(tally.controls, key=lambda control: control["name"]),
        **of_mutants,
        "failed_checks": failed,
        "wall_s": wall_s,
    }  # fmt: skip

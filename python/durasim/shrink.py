"""Reduces a failing crash: fewer threads and operations, smaller sizes and machines, fewer and earlier failures.

A plain loop over the parts of a scenario, smallest values first, again and again until nothing gets smaller.
A candidate is a campaign; it counts if some crash of it fails before the same oracles. Nothing is drawn, so equal
failures shrink alike. Libraries for delta debugging remove elements from long lists; here are a few numbers and
settings, each with a smallest value.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any

from durasim import _core
from durasim.crash_request import DEFAULT_OPS, CrashOptions, crash_request, finish_crash
from durasim.errors import ConfigError, GuestFault, StuckError
from durasim.results import CrashFailure, CrashResult
from durasim.scenario import DEFAULT_SEED, Scenario, machine_rows

CANDIDATES_MAX = 150
"""Campaigns that a reduction tries, at most."""
CANDIDATE_POINTS = 300
"""Crash points of each: all, if there are no more."""
SMALL_MACHINE = "tiny"
# Of the caches of the small machine, in this order: the smallest ones have one set.
_SMALL_CACHES = (
    ("l1d.size_bytes=256", "l2.size_bytes=256", "llc.size_bytes=512"),
    ("l1d.size_bytes=512", "l2.size_bytes=1024", "llc.size_bytes=2048"),
)
_FAULTS_BY_SIGN = {":torn": "torn", ":reorder": "reorder", ":energy": "energy", "/": "nested", "+": "recrash"}
_SIZES = ("populate",)
_NOT_A_SIZE = ("pool-bytes",)

Progress = Callable[[int, str], None]
"""Takes the candidates tried and the command of the smallest failure so far."""


@dataclasses.dataclass(frozen=True, slots=True)
class Failing:
    """A run with a crash that fails.

    Attributes:
        scenario: The run.
        faults: What goes wrong in its campaign.
        failure: The crash.
        added: Settings that the reduction has made, to get a smaller machine.
    """

    scenario: Scenario
    faults: tuple[str, ...]
    failure: CrashFailure
    added: tuple[str, ...] = ()

    def run(self) -> Scenario:
        """Gives the run with the settings of the reduction."""
        return dataclasses.replace(self.scenario, settings=self.scenario.settings + self.added)


def shrink(scenario: Scenario, options: CrashOptions, failure: CrashFailure, progress: Progress) -> dict[str, Any]:
    """Reduces `failure`, which a campaign with these options over `scenario` has found.

    Returns:
        The smallest failure found: its `id`, `oracle`, `message`, `command` and `timeline`, and how many `candidates`
        were tried.

    Raises:
        HostIoError, ToolchainError: As from a campaign.
    """
    ops = DEFAULT_OPS if scenario.ops is None else scenario.ops
    faults = ("clean", *(fault for sign, fault in _FAULTS_BY_SIGN.items() if sign in failure.id))
    reduction = _Reduction(options, failure.oracle, progress)
    failing = reduction.run(Failing(dataclasses.replace(scenario, ops=ops), faults, failure))
    replayed = _crash(failing.run(), dataclasses.replace(options, replay=failing.failure.id))
    (smallest,) = replayed.failures
    # A replay is one trial: no others are alike.
    found = {name: value for name, value in smallest.to_dict().items() if name != "alike"}
    return {**found, "candidates": reduction.tried, "timeline": replayed.to_dict()["timeline"]}


def _crash(scenario: Scenario, options: CrashOptions) -> CrashResult:
    return finish_crash(json.loads(_core.crash(json.dumps(crash_request(scenario, options)), None)), scenario)


class _Reduction:
    def __init__(self, options: CrashOptions, oracle: str, progress: Progress) -> None:
        self._options = options
        self._oracle = oracle
        self._progress = progress
        self._seen: set[tuple[Scenario, tuple[str, ...], str | None]] = set()
        self.tried = 0

    def run(self, failing: Failing) -> Failing:
        """Gives the smallest failure that is reached from `failing`."""
        while True:
            before = failing
            for candidates in (_faults, _threads, _ops, _sizes, _arguments, _settings, _machine, _seed, _allowances):
                failing = self._reduce(failing, candidates)
            failing = self._simplify(failing)
            if failing == before or self.tried >= CANDIDATES_MAX:
                return failing

    def _reduce(self, failing: Failing, candidates: Callable[[Failing], Iterator[Failing]]) -> Failing:
        """Takes the first candidate that fails, and goes on from there."""
        while True:
            for candidate in candidates(failing):
                found = self._try(candidate)
                if found is not None:
                    failing = dataclasses.replace(candidate, failure=found)
                    self._progress(self.tried, failing.failure.command)
                    break
            else:
                return failing

    def _try(self, candidate: Failing, replay: str | None = None) -> CrashFailure | None:
        """Gives the simplest crash of a candidate that fails before the same oracles."""
        key = (candidate.run(), candidate.faults, replay)
        if self.tried >= CANDIDATES_MAX or key in self._seen:
            return None
        self._seen.add(key)
        self.tried += 1
        options = dataclasses.replace(self._options, points=CANDIDATE_POINTS, faults=candidate.faults, replay=replay)
        try:
            failures = _crash(candidate.run(), options).failures
        except (ConfigError, GuestFault, StuckError):
            # Such a small run does not work even without a crash.
            return None
        return min((f for f in failures if f.oracle == self._oracle), key=_complexity, default=None)

    def _simplify(self, failing: Failing) -> Failing:
        """Leaves failures of the case out, the last one first."""
        while (shorter := _without_last(failing.failure.id)) is not None:
            found = self._try(failing, shorter)
            if found is None:
                break
            failing = dataclasses.replace(failing, failure=found)
        return failing


def _complexity(failure: CrashFailure) -> tuple[int, bool, int]:
    """Gives how much has to go wrong for a failure, then how late it comes."""
    further = failure.id.count("/") + failure.id.count("+")
    event = failure.id[1:].replace("/", " ").replace("+", " ").replace(":", " ").split()[0]
    return further, ":" in failure.id, int(event)


def _without_last(case: str) -> str | None:
    cut = max(case.rfind("/"), case.rfind("+"), case.rfind(":"))
    return case[:cut] if cut > 0 else None


def _change(failing: Failing, **fields: Any) -> Failing:
    return dataclasses.replace(failing, scenario=dataclasses.replace(failing.scenario, **fields))


def _smaller(value: int, lowest: int) -> Iterator[int]:
    """Gives smaller values: growing ones from the lowest, then those just below."""
    candidate = lowest
    while candidate < value:
        yield candidate
        candidate = max(2 * candidate, candidate + 1)
    for step in (value // 4, value // 8, 1):
        if step and value - step > lowest:
            yield value - step


def _faults(failing: Failing) -> Iterator[Failing]:
    if failing.faults != ("clean",):
        yield dataclasses.replace(failing, faults=("clean",))
    for fault in failing.faults[1:]:
        if len(failing.faults) > 2:  # noqa: PLR2004 - clean and one more are the least
            yield dataclasses.replace(failing, faults=("clean", fault))


def _threads(failing: Failing) -> Iterator[Failing]:
    for threads in range(1, failing.scenario.threads):
        yield _change(failing, threads=threads)


def _ops(failing: Failing) -> Iterator[Failing]:
    for ops in _smaller(failing.scenario.ops or 1, 1):
        yield _change(failing, ops=ops)


def _sizes(failing: Failing) -> Iterator[Failing]:
    """Sizes of the data: those given, and those that say so by their name."""
    given = dict(failing.scenario.workload_args)
    for name, argument in failing.scenario.arguments().items():
        is_size = name in given or name in _SIZES or name.endswith("-bytes")
        if argument.type != "u64" or name in ("ops", "threads", "seed", *_NOT_A_SIZE) or not is_size:
            continue
        value = int(given.get(name, argument.default))
        for smaller in _smaller(value, argument.minimum):
            yield _change(failing, workload_args=tuple({**given, name: str(smaller)}.items()))


def _arguments(failing: Failing) -> Iterator[Failing]:
    """Leaves arguments out that are no sizes: a size that is left out may be larger."""
    known = failing.scenario.arguments()
    for pair in failing.scenario.workload_args:
        if known[pair[0]].type != "u64" or pair[0] in _NOT_A_SIZE:
            kept = tuple(other for other in failing.scenario.workload_args if other != pair)
            yield _change(failing, workload_args=kept)


def _settings(failing: Failing) -> Iterator[Failing]:
    for setting in failing.scenario.settings:
        yield _change(failing, settings=tuple(other for other in failing.scenario.settings if other != setting))


def _machine(failing: Failing) -> Iterator[Failing]:
    if failing.scenario.machine != SMALL_MACHINE:
        yield _change(failing, machine=SMALL_MACHINE)
        return
    changed = {setting.partition("=")[0] for setting in (*failing.scenario.settings, *failing.added)}
    if "cores" not in changed:
        for cores in range(1, machine_rows()[SMALL_MACHINE]["cores"]):
            yield dataclasses.replace(failing, added=(*failing.added, f"cores={cores}"))
    for caches in _SMALL_CACHES:
        # A machine whose L2 was taken away has none to make smaller.
        sizes = tuple(size for size in caches if "l2" not in changed or not size.startswith("l2."))
        if not changed & {size.partition("=")[0] for size in sizes}:
            yield dataclasses.replace(failing, added=(*failing.added, *sizes))


def _seed(failing: Failing) -> Iterator[Failing]:
    if failing.scenario.seed != DEFAULT_SEED:
        yield _change(failing, seed=DEFAULT_SEED)


def _allowances(failing: Failing) -> Iterator[Failing]:
    if failing.scenario.domain is not None:
        yield _change(failing, domain=None)
    if failing.scenario.control:
        yield _change(failing, control=False)

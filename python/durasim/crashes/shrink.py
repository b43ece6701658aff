"""Minimizes a failing crash: fewer threads and operations, smaller sizes and machines, fewer and earlier failures.

A loop over the parts of a scenario, smallest values first, repeated until nothing gets smaller. A candidate is a
campaign; it is accepted if one of its crashes fails the same oracles. The search is deterministic, so equal failures
give equal results. Libraries for delta debugging remove elements from long lists; a scenario has few numbers and
settings, each with a smallest value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from durasim.crashes.crash_request import DEFAULT_OPS, CrashOptions, prepare_crash
from durasim.documents.results import CrashFailure, CrashResult
from durasim.errors import ConfigError, GuestFault, StuckError
from durasim.runs.scenario import DEFAULT_SEED, Scenario, machine_rows

CANDIDATES_MAX = 150
"""Maximum number of campaigns of a minimization."""
CANDIDATE_POINTS = 300
"""Maximum number of crash points of each campaign."""
SMALL_MACHINE = "tiny"
# Sets and ways of the caches of the small machine; the smallest caches have one set.
_SMALL_CACHES = (
    ("l1d.size_bytes=256", "l2.size_bytes=256", "llc.size_bytes=512"),
    ("l1d.size_bytes=512", "l2.size_bytes=1024", "llc.size_bytes=2048"),
)
_FAULTS_BY_SIGN = {
    ":torn": "torn",
    ":reorder": "reorder",
    ":evict": "evict",
    ":energy": "energy",
    "/": "nested",
    "+": "recrash",
}
_SIZES = ("populate",)
_NOT_A_SIZE = ("pool-bytes",)
_NUMBER_DIGITS_MAX = 12
"""Most digits of an argument of a program that is made smaller."""

Progress = Callable[[int, str], None]
"""Called with the number of candidates tried and the command of the smallest failure so far."""


@dataclasses.dataclass(frozen=True, slots=True)
class Failing:
    """A run with a failing crash.

    Attributes:
        scenario: The run.
        faults: Kinds of power failures of its campaign.
        failure: The failing crash.
        added: Settings added by the minimization for a smaller machine.
    """

    scenario: Scenario
    faults: tuple[str, ...]
    failure: CrashFailure
    added: tuple[str, ...] = ()

    def run(self) -> Scenario:
        """Returns the run with the added settings."""
        return dataclasses.replace(self.scenario, settings=self.scenario.settings + self.added)


def shrink(scenario: Scenario, options: CrashOptions, failure: CrashFailure, progress: Progress) -> dict[str, Any]:
    """Minimizes `failure`, found by a campaign with these options over `scenario`.

    Returns:
        The smallest failure found: its `id`, `oracle`, `message`, `command` and `timeline`, and the number of
        `candidates` tried.

    Raises:
        HostIoError, ToolchainError: As from a campaign.
    """
    ops = DEFAULT_OPS if scenario.ops is None and scenario.elf is None else scenario.ops
    faults = ("clean", *(fault for sign, fault in _FAULTS_BY_SIGN.items() if sign in failure.id))
    if ":image" in failure.id:
        faults += ("reorder", "evict")
    reduction = _Reduction(options, failure.oracle, progress)
    failing = reduction.run(Failing(dataclasses.replace(scenario, ops=ops), faults, failure))
    replayed = _crash(failing.run(), dataclasses.replace(options, replay=failing.failure.id))
    (smallest,) = replayed.failures
    # A replay is one trial, so there are no other trials with the same message.
    found = {name: value for name, value in smallest.to_dict().items() if name != "alike"}
    return {**found, "candidates": reduction.tried, "timeline": replayed.to_dict()["timeline"]}


def _crash(scenario: Scenario, options: CrashOptions) -> CrashResult:
    return prepare_crash(scenario, options).crash()


class _Reduction:
    def __init__(self, options: CrashOptions, oracle: str, progress: Progress) -> None:
        self._options = options
        self._oracle = oracle
        self._progress = progress
        self._seen: set[tuple[Scenario, tuple[str, ...], str | None]] = set()
        self.tried = 0

    def run(self, failing: Failing) -> Failing:
        """Returns the smallest failure reached from `failing`."""
        while True:
            before = failing
            for candidates in _PARTS_OF_WORKLOADS if failing.scenario.elf is None else _PARTS_OF_PROGRAMS:
                failing = self._reduce(failing, candidates)
            failing = self._simplify(failing)
            if failing == before or self.tried >= CANDIDATES_MAX:
                return failing

    def _reduce(self, failing: Failing, candidates: Callable[[Failing], Iterator[Failing]]) -> Failing:
        """Returns the first candidate that fails, as the next start."""
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
        """Returns the simplest crash of a candidate that fails the same oracles."""
        key = (candidate.run(), candidate.faults, replay)
        if self.tried >= CANDIDATES_MAX or key in self._seen:
            return None
        self._seen.add(key)
        self.tried += 1
        options = dataclasses.replace(self._options, points=CANDIDATE_POINTS, faults=candidate.faults, replay=replay)
        try:
            failures = _crash(candidate.run(), options).failures
        except (ConfigError, GuestFault, StuckError):
            # This run is too small to work even without a crash.
            return None
        return min((f for f in failures if f.oracle == self._oracle), key=_complexity, default=None)

    def _simplify(self, failing: Failing) -> Failing:
        """Removes power failures of the trial, last first."""
        while (shorter := _without_last(failing.failure.id)) is not None:
            found = self._try(failing, shorter)
            if found is None:
                break
            failing = dataclasses.replace(failing, failure=found)
        return failing


def _complexity(failure: CrashFailure) -> tuple[int, bool, int]:
    """Returns a sort key: the number and kinds of power failures, then their position."""
    further = failure.id.count("/") + failure.id.count("+")
    event = failure.id[1:].replace("/", " ").replace("+", " ").replace(":", " ").split()[0]
    return further, ":" in failure.id, int(event)


def _without_last(case: str) -> str | None:
    cut = max(case.rfind("/"), case.rfind("+"), case.rfind(":"))
    return case[:cut] if cut > 0 else None


def _change(failing: Failing, **fields: Any) -> Failing:
    return dataclasses.replace(failing, scenario=dataclasses.replace(failing.scenario, **fields))


def _smaller(value: int, lowest: int) -> Iterator[int]:
    """Yields smaller values: increasing ones from the lowest, then those just below."""
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
        if len(failing.faults) > 2:  # noqa: PLR2004 - the minimum is clean and one more
            yield dataclasses.replace(failing, faults=("clean", fault))


def _threads(failing: Failing) -> Iterator[Failing]:
    for threads in range(1, failing.scenario.threads):
        yield _change(failing, threads=threads)


def _ops(failing: Failing) -> Iterator[Failing]:
    for ops in _smaller(failing.scenario.ops or 1, 1):
        yield _change(failing, ops=ops)


def _sizes(failing: Failing) -> Iterator[Failing]:
    """Arguments for data sizes: those given, and those recognised by name."""
    given = dict(failing.scenario.workload_args)
    for name, argument in failing.scenario.arguments().items():
        is_size = name in given or name in _SIZES or name.endswith("-bytes")
        if argument.type != "u64" or name in ("ops", "threads", "seed", *_NOT_A_SIZE) or not is_size:
            continue
        value = int(given.get(name, argument.default))
        for smaller in _smaller(value, argument.minimum):
            yield _change(failing, workload_args=tuple({**given, name: str(smaller)}.items()))


def _arguments(failing: Failing) -> Iterator[Failing]:
    """Removes arguments other than sizes: the default of a removed size may be larger."""
    known = failing.scenario.arguments()
    for pair in failing.scenario.workload_args:
        if known[pair[0]].type != "u64" or pair[0] in _NOT_A_SIZE:
            kept = tuple(other for other in failing.scenario.workload_args if other != pair)
            yield _change(failing, workload_args=kept)


def _numbers(failing: Failing) -> Iterator[Failing]:
    """Makes whole numbers among the arguments of a program smaller: counts of operations, threads and elements.

    The check keeps its arguments. A program whose check then fails without a crash is no candidate.
    """
    args = failing.scenario.args
    for place, word in enumerate(args):
        if word.isascii() and word.isdecimal() and len(word) <= _NUMBER_DIGITS_MAX:
            for smaller in _smaller(int(word), 1):
                yield _change(failing, args=(*args[:place], str(smaller), *args[place + 1 :]))


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
        # A machine without L2 has none to make smaller.
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


_PARTS_OF_WORKLOADS = (_faults, _threads, _ops, _sizes, _arguments, _settings, _machine, _seed, _allowances)
_PARTS_OF_PROGRAMS = (_faults, _numbers, _settings, _machine, _seed, _allowances)

"""The document of `durasim explain`: categories of cycles and bytes of designs beside those of a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from durasim._core import __version__
from durasim.documents.document import Document
from durasim.documents.presentation import Presented, Summary
from durasim.documents.results import RunResult
from durasim.documents.stall_categories import (
    BASE,
    IDLE,
    base_and_idle_of,
    category_of,
    hardware_threads_of,
    has_stalls,
    origins_of,
    stalls_of,
)
from durasim.errors import refusal

if TYPE_CHECKING:
    import altair
    import polars

SCHEMA = "durasim-explain/1"
_ARG = "arg "


@dataclass(frozen=True, slots=True)
class ExplainedRun(Document):
    """A run whose cycles and bytes are explained.

    Attributes:
        design: The design.
        domain: Persistence domain of the machine.
        set: Parameters set for the run, as path.to.key=value.
        hardware_threads: Hardware threads that executed an instruction of the program, in the region or before it.
        region_cycles: Cycles of the region of interest.
        core_cycles: `region_cycles` times `hardware_threads`: the sum of the categories.
        instructions: Instructions of the region.
        pmem_write_bytes: Bytes that the media of persistent memory accepted in the region: the sum of the origins.
        pmem_residual_dirty_bytes: Bytes of persistent memory that are dirty in caches or wait in queues at the end of
            the region, which no origin contains.
        digest: Digest of the run.
    """

    design: str
    domain: str
    set: tuple[str, ...]
    hardware_threads: int
    region_cycles: int
    core_cycles: int
    instructions: int
    pmem_write_bytes: int
    pmem_residual_dirty_bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class Part(Document):
    """A stall counter, or an origin of bytes.

    Attributes:
        name: Its name: that of the counter below `core.stalls` in a run, or of the origin in `pmem_write_bytes`.
        baseline: Its cycles or bytes in the baseline.
        design: Its cycles or bytes in the design.
        difference: `design` minus `baseline`.
    """

    name: str
    baseline: int
    design: int
    difference: int


@dataclass(frozen=True, slots=True)
class Category(Document):
    """A category of cycles.

    Attributes:
        name: Its name, such as `base`, `memory.llc`, `commit` or `structure.NAME` for a structure of a design.
        baseline: Its cycles in the baseline.
        design: Its cycles in the design.
        difference: `design` minus `baseline`.
        counters: The stall counters that add up to it; empty for `base` and `idle`, the cycles in no counter.
    """

    name: str
    baseline: int
    design: int
    difference: int
    counters: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Explained(Document):
    """A run of a design beside that of the baseline. Sums are exact; one that is not cannot be created.

    Attributes:
        workload: The workload.
        machine: Preset, or the name given in a machine file.
        threads: Threads of the guest.
        ops: Operations in the region; None for a program that marks none.
        baseline: The run of the baseline.
        design: The run of the design.
        core_cycles_difference: Core cycles of the design minus those of the baseline: the sum of the differences.
        cycles: The categories of cycles that are not 0 in both runs.
        bytes_difference: Bytes written by the design minus those of the baseline: the sum of the differences.
        bytes: The origins of the bytes written to persistent memory.
    """

    workload: str
    machine: str
    threads: int
    ops: int | None
    baseline: ExplainedRun
    design: ExplainedRun
    core_cycles_difference: int
    cycles: tuple[Category, ...]
    bytes_difference: int
    bytes: tuple[Part, ...]

    def __post_init__(self) -> None:
        """Checks all sums.

        Raises:
            ConfigError: A sum is not exact.
        """
        before, after = self.baseline, self.design
        self._check("cycles", self.cycles, before.core_cycles, after.core_cycles, self.core_cycles_difference)
        self._check("bytes", self.bytes, before.pmem_write_bytes, after.pmem_write_bytes, self.bytes_difference)
        for category in self.cycles:
            if category.counters:
                sums = (category.baseline, category.design, category.difference)
                self._check(f"cycles of {category.name}", category.counters, *sums)

    def _check(self, what: str, parts: Sequence[Part | Category], baseline: int, design: int, difference: int) -> None:
        found = [sum(getattr(part, of) for part in parts) for of in ("baseline", "design", "difference")]
        is_exact = found == [baseline, design, difference] and difference == design - baseline
        if not is_exact or any(part.difference != part.design - part.baseline for part in parts):
            raise refusal(
                what,
                f"the parts of {self.design.design} on {self.workload} add up to {found[1]:,}, {found[2]:+,} against "
                f"{self.baseline.design}, and not to {design:,}, {difference:+,}: the document is damaged",
            )


@dataclass(frozen=True, slots=True)
class Explanation(Presented, Document):
    """The document of `durasim explain`.

    Attributes:
        schema: Name and version of this document.
        durasim_version: Version of durasim.
        baseline: The design of the baseline.
        runs_wanted: Number of runs, those of the baseline included; fewer are explained if it was interrupted.
        explained: The runs beside those of the baseline, workload by workload.
    """

    schema: str
    durasim_version: str
    baseline: str
    runs_wanted: int
    explained: tuple[Explained, ...]

    def summary(self) -> Summary:
        """Returns the main categories of cycles and the origins of bytes of each run, with their sums."""
        from durasim.documents.explanation_rows import summary  # noqa: PLC0415 - keeps the start-up of commands short

        return summary(self)

    def to_frame(self) -> polars.DataFrame:
        """Returns a polars data frame with a row for each stall counter, `base` and origin of each run.

        The numbers of a row have the unit that its column `unit` names, `cycles` or `bytes`; over the rows of a run and
        a unit they add up to the whole, and to its difference.
        """
        from durasim.documents.frame import explanation_frame  # noqa: PLC0415 - polars takes a while to load

        return explanation_frame(self)

    def plot(self, quantity: str = "cycles") -> altair.Chart:
        """Returns a chart with a stacked bar for the baseline and each design, side by side for each workload.

        Args:
            quantity: `cycles` by category, or `bytes` written to persistent memory by origin.

        Raises:
            ConfigError: The quantity is unknown, or there is nothing to draw.
        """
        from durasim.documents.explanation_rows import chart  # noqa: PLC0415 - keeps the start-up of commands short

        return chart(self, quantity)


def explain_runs(baseline: RunResult, runs: Iterable[RunResult], labels: Sequence[str] = ()) -> Explanation:
    """Explains runs of one workload beside a baseline.

    Args:
        baseline: The run of the baseline.
        runs: The other runs.
        labels: Names of the baseline and the runs in messages; their designs if empty.

    Raises:
        ConfigError: There is no other run, a run has no stall counters, or runs cannot be compared.
    """
    others = list(runs)
    if not others:
        raise refusal("explain", "requires a run beside that of the baseline")
    explained = _explained(baseline, others, labels or [run.design for run in (baseline, *others)])
    return Explanation(SCHEMA, __version__, baseline.design, 1 + len(others), tuple(explained))


def explain_all(results: Iterable[RunResult], baseline: str, runs_wanted: int) -> Explanation:
    """Explains the runs of several workloads, each beside the baseline of its workload.

    Args:
        results: The runs; those of a workload without its baseline are left out.
        baseline: The design of the baseline.
        runs_wanted: The number of runs if none is missing.

    Raises:
        ConfigError: As from `explain_runs`.
    """
    of: dict[str, list[RunResult]] = {}
    for result in results:
        of.setdefault(result.workload, []).append(result)
    explained: list[Explained] = []
    for group in of.values():
        first = next((result for result in group if result.design == baseline), None)
        others = [result for result in group if result is not first]
        if first is not None and others:
            explained += _explained(first, others, [result.design for result in (first, *others)])
    return Explanation(SCHEMA, __version__, baseline, runs_wanted, tuple(explained))


def _explained(baseline: RunResult, others: Sequence[RunResult], labels: Sequence[str]) -> list[Explained]:
    runs = [baseline, *others]
    for run, label in zip(runs, labels, strict=True):
        _refuse_without_stalls(run, label)
    for run, label in zip(others, labels[1:], strict=True):
        _refuse_unlike(baseline, run, labels[0], label)
    return [_beside(baseline, run, (labels[0], label)) for run, label in zip(others, labels[1:], strict=True)]


def _beside(baseline: RunResult, run: RunResult, labels: tuple[str, str]) -> Explained:
    before, after = _run(baseline), _run(run)
    counters = _parts(stalls_of(baseline), stalls_of(run))
    by_category: dict[str, list[Part]] = {}
    for counter in counters:
        by_category.setdefault(category_of(counter.name), []).append(counter)
    uncounted = zip(base_and_idle_of(baseline, labels[0]), base_and_idle_of(run, labels[1]), strict=True)
    named = zip((BASE, IDLE), uncounted, strict=True)
    categories = [Category(name, *_with_difference(*of), ()) for name, of in named if name == BASE or any(of)]
    for name in sorted(by_category):
        sums = (sum(getattr(counter, of) for counter in by_category[name]) for of in ("baseline", "design"))
        categories.append(Category(name, *_with_difference(*sums), tuple(by_category[name])))
    return Explained(
        workload=run.workload,
        machine=run.machine,
        threads=run.threads,
        ops=run.ops,
        baseline=before,
        design=after,
        core_cycles_difference=after.core_cycles - before.core_cycles,
        cycles=tuple(categories),
        bytes_difference=after.pmem_write_bytes - before.pmem_write_bytes,
        bytes=tuple(_parts(origins_of(baseline, labels[0]), origins_of(run, labels[1]))),
    )


def _run(result: RunResult) -> ExplainedRun:
    threads = hardware_threads_of(result)
    return ExplainedRun(
        design=result.design,
        domain=result.domain,
        set=result.provenance.set,
        hardware_threads=threads,
        region_cycles=result.roi.cycles,
        core_cycles=threads * result.roi.cycles,
        instructions=result.roi.instructions,
        pmem_write_bytes=result.pmem_write_bytes.total,
        pmem_residual_dirty_bytes=result.pmem_residual_dirty_bytes,
        digest=result.digest,
    )


def _parts(before: Mapping[str, int], after: Mapping[str, int]) -> list[Part]:
    """Returns the parts of both, in the order of the first."""
    names = dict.fromkeys((*before, *after))
    return [Part(name, *_with_difference(before.get(name, 0), after.get(name, 0))) for name in names]


def _with_difference(baseline: int, design: int) -> tuple[int, int, int]:
    return baseline, design, design - baseline


def _refuse_without_stalls(run: RunResult, label: str) -> None:
    if run.provenance.functional:
        raise refusal("functional", f"{label} is a functional run, which has no cycles to explain")
    if not has_stalls(run):
        raise refusal("stats", f"{label} has no counters core.stalls: run it again with this version of durasim")


def _refuse_unlike(baseline: RunResult, run: RunResult, first: str, second: str) -> None:
    """Refuses runs that differ in more than design, persistence domain and parameters of designs."""
    before, after = dict(_conditions(baseline)), dict(_conditions(run))
    for key in dict.fromkeys((*before, *after)):
        # Arguments that one run lacks are those of the runtime of a design.
        is_of_both = key in before and key in after
        if (is_of_both or not key.startswith(_ARG)) and before.get(key) != after.get(key):
            raise refusal(
                key,
                f"is {_shown(after.get(key))} in {second} and {_shown(before.get(key))} in the baseline {first}: "
                "explain runs that differ in the design only",
            )


def _shown(value: Any) -> str:
    return "not set" if value is None else str(value)


def _conditions(run: RunResult) -> Iterable[tuple[str, Any]]:
    """Yields the conditions that are equal in runs that can be compared."""
    of = run.provenance
    yield from (("workload", run.workload), ("machine", run.machine), ("ops", run.ops), ("threads", run.threads))
    yield from (("seed", run.seed), ("scale", of.scale), ("durasim_build", of.durasim_build))
    yield "durasim_version", run.durasim_version
    # At a smaller scale one design saves the snapshot that the others start from.
    yield "fast_forward", "functional start" if of.fast_forward or of.snapshot_hash else "no functional start"
    yield from (("warm", of.warm), ("max_instructions", of.max_instructions), ("env", " ".join(of.env)))
    yield from ((f"{_ARG}{name}", value) for name, value in of.workload_args.items())
    yield from _flat({key: value for key, value in run.configuration.items() if key != "design"}, "")


def _flat(section: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    for key, value in section.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value

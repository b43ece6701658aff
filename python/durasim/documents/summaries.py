"""Short tables of results, with units: the rows that the terminal and notebooks show.

Classes of results call these functions, so results are typed as Any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from durasim.documents.causes import first_cause
from durasim.documents.described_metrics import METRICS
from durasim.documents.escaping import printable

Row = tuple[str, str, str]
"""Measure, value and unit; the unit is empty if the name of the measure is the unit."""

POINT_METRICS: Mapping[str, Mapping[str, str]] = {
    "run": {
        "throughput_ops_per_us": "throughput\nops/us", "ipc": "IPC", "pmem_write_total_bytes": "pmem bytes\nwritten",
        "latency_p99_ns": "p99\nns",
    },
    "crash": {"points": "persist\nevents", "trials": "trials", "violations": "violations"},
}  # fmt: skip
"""The metrics of a short table of a study, with their headers."""
FAILURES_SHOWN = 3
GOOD, UNCLEAR, BAD = "good", "unclear", "bad"
_THOUSAND = 1000


def number(value: float | None) -> str:
    """Formats a number with a readable precision; a dash for None."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= _THOUSAND else f"{value:.4g}"


def count(number_of: int, noun: str) -> str:
    """Returns a number with its noun."""
    plural = noun + ("es" if noun.endswith("sh") else "s")
    return f"{number_of:,} {noun if number_of == 1 else plural}"


def run_rows(result: Any, *, wide: bool = False) -> Iterator[Row]:
    """Yields the main measures of a run, or all of them."""
    if result.provenance.functional:
        yield from _functional_rows(result)
        return
    if result.throughput_ops_per_us is not None:
        yield "throughput", number(result.throughput_ops_per_us), "ops/us"
        yield "operations", number(result.ops), ""
    yield from _all_rows(result) if wide else _first_rows(result)


def _functional_rows(result: Any) -> Iterator[Row]:
    """Counts of a functional run, without caches and time."""
    if result.ops is not None:
        yield "operations", number(result.ops), ""
    yield "instructions", number(result.roi.instructions), ""
    yield "transactions committed", number(result.tx.committed), ""
    yield from _last_rows(result)


def _last_rows(result: Any) -> Iterator[Row]:
    yield "guest exit code", _ending(result), ""
    yield "simulation speed", number(result.host.mips), "MIPS"
    yield "digest", result.digest, ""


def _ending(result: Any) -> str:
    return "stopped after the region" if result.guest_exit_code is None else str(result.guest_exit_code)


def _first_rows(result: Any) -> Iterator[Row]:
    """The main measures; aborts and the exit code only if they are not zero."""
    yield "cycles", number(result.roi.cycles), ""
    yield "instructions per cycle", number(result.roi.ipc), ""
    yield "pmem written", number(result.pmem_write_bytes.total), "bytes"
    if result.latency_ns is not None:
        yield "latency p99", number(result.latency_ns.p99), "ns"
    yield "transactions committed", number(result.tx.committed), ""
    if result.tx.aborted:
        yield "transactions aborted", number(result.tx.aborted), ""
    if result.guest_exit_code != 0:
        yield "guest exit code", _ending(result), ""


def _all_rows(result: Any) -> Iterator[Row]:
    yield "instructions per cycle", number(result.roi.ipc), ""
    yield "instructions", number(result.roi.instructions), ""
    yield "cycles", number(result.roi.cycles), ""
    for cause, size_bytes in result.pmem_write_bytes.to_dict().items():
        if cause == "total" or size_bytes:
            yield f"pmem written, {cause}", number(size_bytes), "bytes"
    for metric in METRICS:
        label = metric.metadata.get("label", metric.name.replace("_", " "))
        unit = metric.metadata["unit"]
        yield label, number(getattr(result, metric.name)), "" if label.startswith(unit) else unit
    if result.latency_ns is not None:
        for name, label in (("p50", "p50"), ("p99", "p99"), ("p999", "p99.9"), ("max", "maximum")):
            yield f"latency {label}", number(getattr(result.latency_ns, name)), "ns"
    if result.phases is not None:
        for name, phase in result.phases.to_dict().items():
            yield f"mean cycles to {name}", number(phase["mean_cycles"]), "cycles"
    if result.accesses_per_tx is not None:
        for kind, value in result.accesses_per_tx.to_dict().items():
            yield f"media {kind} per transaction", number(value), ""
    yield "transactions committed", number(result.tx.committed), ""
    yield "transactions aborted", number(result.tx.aborted), ""
    yield from _hardware_transaction_rows(result.tx)
    if result.replay is not None and any(result.replay.to_dict().values()):
        yield "transactions replayed", number(result.replay.transactions), ""
        yield "waits for space in logs", number(result.replay.stall_cycles), "cycles"
    yield from _last_rows(result)


def _hardware_transaction_rows(tx: Any) -> Iterator[Row]:
    """Commits and aborts, with their causes, of a design with hardware transactions."""
    if tx.htm_committed is None or tx.sgl_committed is None or tx.aborted_by is None:
        return
    yield "committed in hardware", number(tx.htm_committed), ""
    yield "committed under the lock", number(tx.sgl_committed), ""
    causes = tx.aborted_by.to_dict()
    yield "attempts in hardware aborted", number(sum(causes.values())), ""
    for cause, attempts in causes.items():
        if attempts:
            yield f"attempts aborted, {cause}", number(attempts), ""


def verdict(result: Any) -> tuple[str, str]:
    """Returns the verdict of a campaign, and whether it is `good`, `bad` or `unclear`.

    Without nested or recrash trials, recoveries are not called correct.
    """
    if result.violations:
        return count(result.violations, "violation"), BAD
    if not result.trials:
        return "no trials", UNCLEAR
    if {"nested", "recrash"} & result.not_tried.keys():
        return "no violation", GOOD
    return "all recoveries correct", GOOD


def crash_case(result: Any, design: str) -> str:
    """Returns the words before the verdict: what was crashed, and how often.

    Args:
        result: The result of the campaign.
        design: The name of its design as it is shown.
    """
    model = "" if result.persistency_model is None else f", persistency model {result.persistency_model}"
    case = f"{design} on {result.machine} ({result.domain}{model}), {result.workload}"
    if result.ops is not None:
        case += f", {result.ops} operations"
    return printable(f"{case}: {count(result.trials, 'crash')} at {count(result.points, 'persist event')}")


def first_failures(result: Any, most: int = FAILURES_SHOWN) -> list[Any]:
    """Returns at most `most` of the listed failures, one for each message."""
    firsts: dict[tuple[str, str], Any] = {}
    for failure in result.failures:
        firsts.setdefault((failure.oracle, failure.message), failure)
    return list(firsts.values())[:most]


class Ratios(Protocol):
    """The ratios of a run of a comparison."""

    relative_to_baseline: float | None
    pmem_relative_to_baseline: float | None
    scored: bool


def comparison_headers(baseline: str | None, pmem_baseline: str | None) -> tuple[str, ...]:
    """Returns the headers of the columns after workload and design in the short table of a comparison."""
    return (
        f"throughput\nvs. {baseline or 'opt'}", f"pmem bytes\nvs. {pmem_baseline or 'a baseline'}", "IPC", "p99\nns",
    )  # fmt: skip


def comparison_rows(runs: Iterable[tuple[Any, Ratios]], shown: Callable[[str], str] = str) -> Iterator[tuple[str, ...]]:
    """Yields the rows of the short table of a comparison.

    Args:
        runs: Each run with its ratios.
        shown: Returns the name of a design as it is shown.
    """
    for result, ratios in runs:
        design = shown(result.design) + ("" if ratios.scored else " (not scored)")
        p99_ns = getattr(result.latency_ns, "p99", None)
        values = (ratios.relative_to_baseline, ratios.pmem_relative_to_baseline, result.roi.ipc, p99_ns)
        yield (result.workload, design, *map(number, values))


def shown_axes(result: Any) -> list[str]:
    """Returns the axes of the short table of a study: design, workload or program, and those with several values."""
    named = ("design", "workload", "program")
    return [key for key in result.axes if key in named or has_several_values(result, key)]


def has_several_values(result: Any, key: str) -> bool:
    """Whether the points of a study have several values of an axis."""
    return len({str(point.values[key]) for point in result.points}) > 1


def sweep_title(result: Any) -> str:
    """Returns the name of a study with the numbers of its points."""
    return f"{result.name}: {result.simulated} simulated, {result.reused} from the store, {result.failed} failed"


def axis_value(value: Any) -> str:
    """Formats the value of an axis; a dash for a parameter of another design."""
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def point_rows(result: Any, axes: Sequence[str], metrics: Iterable[str]) -> list[tuple[str, ...]]:
    """Returns a row for each point that did not fail: values of axes, metrics, state."""
    names = list(metrics)
    return [
        (
            *(axis_value(point.values[key]) for key in axes),
            *(number(point.metrics.get(name)) for name in names),
            point.state,
        )
        for point in result.points
        if point.error is None
    ]


def point_name(result: Any, point: Any) -> str:
    """Returns the values of a point of a study on the axes of the short table."""
    return ", ".join(axis_value(point.values[key]) for key in shown_axes(result))


def first_causes(result: Any) -> list[tuple[str, str]]:
    """Returns the first points of a study with causes of violations, each with the place of its first cause."""
    found = [(point, first_cause(point.causes)) for point in result.points if point.causes is not None]
    return [(point_name(result, point), cause) for point, cause in found if cause is not None][:FAILURES_SHOWN]


def enclosed(found: Any) -> tuple[str, str, str, str]:
    """Returns the values of an axis below, and at or above, a threshold, and the metric at both."""
    if found.low is None or found.high is None:
        return "not enclosed", "", number(found.metric_low), number(found.metric_high)
    ends = [(found.low, found.metric_low), (found.high, found.metric_high)]
    if found.metric_low >= found.threshold:
        # The metric falls along the axis.
        ends.reverse()
    return axis_value(ends[0][0]), axis_value(ends[1][0]), number(ends[0][1]), number(ends[1][1])

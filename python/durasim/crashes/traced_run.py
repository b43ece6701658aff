"""A run with a trace of a window of it, in the format of Perfetto."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from durasim import _core, output
from durasim.crashes.crash_request import DEFAULT_OPS
from durasim.documents.results import RunResult
from durasim.errors import refusal
from durasim.runs.scenario import Scenario
from durasim.runs.simulation import GuestOutput, RunProgress

_CYCLES_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TracedRun:
    """A run with its trace.

    Attributes:
        run: The result of the run, equal to that without a trace.
        events: Number of slices, instants and values of counters of the trace.
        from_cycle: First cycle of the traced window.
        to_cycle: Cycle after its last one.
    """

    run: RunResult
    events: int
    from_cycle: int
    to_cycle: int


def trace_request(scenario: Scenario, from_cycle: int, to_cycle: int | None, replay: str | None) -> dict[str, Any]:
    """Returns the request for a trace.

    Args:
        scenario: The run. With a power failure of a workload it is the run that `durasim crash` crashes: it reports its
            operations, so that its persist events have the same numbers.
        from_cycle: First cycle of the window.
        to_cycle: Cycle after its last one; None is the end of the run.
        replay: Id of the power failure that ends the trace, or None.

    Raises:
        ConfigError: A number or a name is not allowed.
        ToolchainError: The guest program cannot be built.
    """
    for name, cycle in (("from_cycle", from_cycle), ("to_cycle", to_cycle)):
        if cycle is not None and not 0 <= cycle <= _CYCLES_MAX:
            raise refusal(name, f"{cycle} is not between 0 and 2^63 - 1")
    if replay is not None and scenario.elf is None:
        ops = DEFAULT_OPS if scenario.ops is None else scenario.ops
        run = dataclasses.replace(scenario, ops=ops).request(history=True)
    else:
        run = scenario.request()
    return {"run": run, "from_cycle": from_cycle, "to_cycle": to_cycle, "replay": replay}


def write_trace(
    path: str, request: Mapping[str, Any], guest_output: GuestOutput, progress: RunProgress | None = None
) -> TracedRun:
    """Runs a request from `trace_request` and writes its trace to `path`, whole or not at all.

    Raises:
        ConfigError: The configuration is refused, the window is empty, outside of the run or has too many events, or
            the run has no such power failure.
        GuestFault: The guest was stopped.
        StuckError: The modelled machine cannot continue.
        HostIoError: A host file could not be read or written.
    """
    output.check_file(path)
    total = request["run"]["ops"]
    report = None if progress is None else (lambda done: progress(done if total is None else min(done, total), total))
    text, trace = _core.trace(json.dumps(request), guest_output, report)
    document = json.loads(text)
    output.write_file(path, trace)
    return TracedRun(**document | {"run": RunResult.from_dict(document["run"])})

"""One run of the Rust core: takes a request, returns a typed result."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from durasim import _core
from durasim.documents.results import RunResult
from durasim.store.reuse import Reuse

GuestOutput = Callable[[str, bytes], None]
"""Called with output of the guest: the stream (`stdout` or `stderr`) and the bytes."""
RunProgress = Callable[[int, int | None], None]
"""Called with the operations done in the region of interest and their total; None if unknown."""


def run_request(
    request: Mapping[str, Any],
    guest_output: GuestOutput,
    progress: RunProgress | None = None,
    cancellation: _core.Cancellation | None = None,
) -> RunResult:
    """Runs a request from `Scenario.request` to completion.

    Only the main thread receives Ctrl-C; on other threads `cancellation` ends the run.

    Raises:
        ConfigError: The configuration is refused before cycle 0.
        GuestFault: The guest was stopped.
        StuckError: The modelled machine cannot continue.
        HostIoError: A host file could not be read or written.
    """
    return RunResult.from_dict(_simulated(request, guest_output, progress, cancellation))


def reuse_or_run(
    request: Mapping[str, Any],
    reuse: Reuse,
    command: str,
    guest_output: GuestOutput,
    progress: RunProgress | None = None,
) -> RunResult:
    """Returns the stored result of a request, or that of its run, which is stored.

    Raises:
        HostIoError: The store cannot be read or written.
        ConfigError, GuestFault, StuckError: As from `run_request`.
    """
    key, document = reuse.find("run", request)
    if document is None:
        document = _simulated(request, guest_output, progress, None)
        reuse.keep(key, "run", request, document, command)
    return RunResult.from_dict(document)


def _simulated(
    request: Mapping[str, Any],
    guest_output: GuestOutput,
    progress: RunProgress | None,
    cancellation: _core.Cancellation | None,
) -> dict[str, Any]:
    total = request["ops"]
    report = None if progress is None else (lambda done: progress(done if total is None else min(done, total), total))
    document: dict[str, Any] = json.loads(_core.run(json.dumps(request), guest_output, report, cancellation))
    return document

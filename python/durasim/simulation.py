"""One run of the compiled half: a request goes in, a typed result comes out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from durasim import _core
from durasim.results import RunResult

GuestOutput = Callable[[str, bytes], None]
"""Takes what the guest writes: the stream (`stdout` or `stderr`) and the bytes."""
RunProgress = Callable[[int, int | None], None]
"""Takes the operations done in the region of interest, and how many there will be; None if nobody knows."""


def run_request(
    request: Mapping[str, Any],
    guest_output: GuestOutput,
    progress: RunProgress | None = None,
    cancellation: _core.Cancellation | None = None,
) -> RunResult:
    """Runs a request, as `Scenario.request` gives it, to its end.

    On another thread than the main one, which alone receives Ctrl-C, `cancellation` ends the run.

    Raises:
        ConfigError: Refused before cycle 0.
        GuestFault: The guest was stopped.
        StuckError: The modelled machine cannot go on.
        HostIoError: A file of the host could not be read or written.
    """
    total = request["ops"]
    told = None if progress is None else (lambda done: progress(done if total is None else min(done, total), total))
    return RunResult.from_dict(json.loads(_core.run(json.dumps(request), guest_output, told, cancellation)))

"""One run of the compiled half: a request goes in, a typed result comes out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from durasim import _core
from durasim.results import RunResult

GuestOutput = Callable[[str, bytes], None]
"""Takes what the guest writes: the stream (`stdout` or `stderr`) and the bytes."""


def run_request(request: Mapping[str, Any], guest_output: GuestOutput) -> RunResult:
    """Runs a request, as `Scenario.request` gives it, to its end.

    Raises:
        ConfigError: Refused before cycle 0.
        GuestFault: The guest was stopped.
        StuckError: The modelled machine cannot go on.
        HostIoError: A file of the host could not be read or written.
    """
    return RunResult.from_dict(json.loads(_core.run(json.dumps(request), guest_output)))

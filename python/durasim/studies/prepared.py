"""Points of a study whose guest programs are built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from durasim.crashes.crash_request import crash_command, crash_request
from durasim.errors import refusal
from durasim.runs.command import run_command
from durasim.store.keys import Keys, writes
from durasim.studies.study import Point


@dataclass(frozen=True, slots=True)
class Prepared:
    """A point whose guest program is built.

    Attributes:
        point: The point.
        request: The request passed to the Rust core.
        key: The key of its result.
        command: The command that repeats it alone.
    """

    point: Point
    request: Mapping[str, Any]
    key: str
    command: str


def prepare(point: Point, keys: Keys) -> Prepared:
    """Checks a point, builds its guest program if needed, and computes its key.

    Raises:
        ConfigError: A name or number is not allowed.
        HostIoError: A file of the point cannot be read.
        ToolchainError: The guest program cannot be built.
    """
    if point.crash is None:
        request, command = point.scenario.request(), run_command(point.scenario)
        if (written := writes(request)) is not None:
            raise refusal(written, "each point would write it: a study only reads")
    else:
        request, command = crash_request(point.scenario, point.crash), crash_command(point.scenario, point.crash)
    return Prepared(point, request, keys.of(point.kind, request), command)

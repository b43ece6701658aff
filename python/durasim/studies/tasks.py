"""Tasks of a study: a simulation as a JSON text, which any worker process answers with a JSON text.

A task needs nothing else of the process that submits it, and a worker never opens the store. `schemas/task.json` and
`schemas/answer.json` describe both.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from durasim import _core
from durasim.errors import DurasimError
from durasim.output import discard
from durasim.store import keys


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected cost of a task.

    Attributes:
        memory_bytes: Memory of the process that simulates it; 0 if unknown.
        seconds: Host time; None if unknown.
    """

    memory_bytes: int = 0
    seconds: float | None = None


@cache
def simulator() -> str:
    """Returns the build that a worker has to have: the hash of durasim's sources, and of a module with own designs."""
    return _core.__build__ + (keys.build() if "DURASIM_CORE" in os.environ else "")


def task_text(kind: str, request: Mapping[str, Any], expected: Expected | None = None) -> str:
    """Returns the task of a simulation. Its files are those of this computer."""
    cost = expected or Expected()
    expects = {"memory_bytes": cost.memory_bytes, "seconds": cost.seconds}
    task = {"kind": kind, "build": simulator(), "request": request, "files": {}, "expects": expects}
    return json.dumps(task)


def simulate(task: str) -> str:
    """Simulates a task and returns its answer: `document`, or `error` with the sentence, and `seconds` of the host."""
    asked = json.loads(task)
    return simulate_request(asked["kind"], asked["build"], asked["request"])


def simulate_request(kind: str, build: str, request: Mapping[str, Any]) -> str:
    """Simulates a request and returns its answer."""
    began = time.monotonic()
    answer: dict[str, Any] = {}
    if build != simulator():
        answer["error"] = "the worker has another build of durasim: install the build of the submitting process there"
    else:
        try:
            text = json.dumps(request)
            document = _core.run(text, discard) if kind == "run" else _core.crash(text)
            answer["document"] = json.loads(document)
        except DurasimError as error:
            answer["error"] = str(error)
    return json.dumps(answer | {"seconds": time.monotonic() - began})

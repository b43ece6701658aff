"""Tasks of a study: a simulation as a JSON text, which any worker process answers with a JSON text.

A task needs nothing else of the process that submits it, and a worker never opens the store.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from durasim import _core
from durasim.errors import DurasimError
from durasim.output import discard
from durasim.store.keys import build


def task_text(kind: str, request: Mapping[str, Any]) -> str:
    """Returns the task of a simulation."""
    return json.dumps({"kind": kind, "request": request, "build": build()})


def simulate(task: str) -> str:
    """Simulates a task and returns its answer: `document`, or `error` with the sentence, and `seconds` of the host."""
    asked = json.loads(task)
    began = time.monotonic()
    answer: dict[str, Any] = {}
    if asked["build"] != build():
        answer["error"] = "the worker has another build of durasim: install the build of the submitting process there"
    else:
        try:
            text = json.dumps(asked["request"])
            document = _core.run(text, discard) if asked["kind"] == "run" else _core.crash(text)
            answer["document"] = json.loads(document)
        except DurasimError as error:
            answer["error"] = str(error)
    return json.dumps(answer | {"seconds": time.monotonic() - began})

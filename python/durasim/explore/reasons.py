"""Says for each copy of a line why it is in the image that a power failure leaves, or why not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]

_LINE_BYTES = 64
_PLACES = (
    # A pattern of the place of a copy, its name in sentences, and its key in `survives` of the record of a run.
    (r"(?:l1d|l2) of core \d+", "the caches of the cores", "private_caches"),
    (r"llc", "the last level", "last_level"),
    (r"persist buffer of core \d+", "the persist buffers", "persist_buffers"),
    (r"write queue \d+.*", "the write queues", "write_queues"),
)
_FAULTS = (("are torn", "torn"), ("unfenced cleans", "reorder"), ("have left", "evict"))
_NOT_ACCEPTED = "no write queue has accepted it"
_REPLACED = "another version replaced it"


def reasons(record: Json, timeline: Json) -> list[list[str]]:
    """Returns for each phase of a timeline, and each copy of a line in it, one sentence.

    Args:
        record: The record of the run (schemas/run-record.json).
        timeline: The timeline of a power failure in it (schemas/timeline.json).
    """
    found: list[list[str]] = []
    for phase in timeline["phases"]:
        # The record has the steps of the first run alone.
        steps = record["steps"] if not found and phase["kind"] == "run" else ()
        found.append([_reason(record, phase, copy, steps) for copy in phase.get("copies", ())])
    return found


def _reason(record: Json, phase: Json, copy: Json, steps: Sequence[Json]) -> str:
    place, is_in_image = copy["place"], copy["survived"]
    faults = _faults(phase["failure"]["how"])
    if place == "media":
        if is_in_image:
            return "the medium survives"
        return "the fault tore a write of this line" if "torn" in faults else f"{_REPLACED} when power failed"
    if place == "possible, unfenced":
        return "no fence has waited for this version: it may be durable or not"
    if place.startswith(("in flight", "before write queue")):
        return _NOT_ACCEPTED + ("; the image has the same bytes" if is_in_image else ": it is lost")
    name, key = next((name, key) for pattern, name, key in _PLACES if re.fullmatch(pattern, place))
    is_one = key == "last_level"
    if record["survives"][key]:
        if is_in_image:
            return f"{name} survive{'s' if is_one else ''} in {record['domain']}"
        if phase["dirty_shutdown"]:
            return "the energy of the crash flush ended before it was written"
        return "the fault dropped what no fence has waited for" if "reorder" in faults else _REPLACED
    lost = f"{name} {'is' if is_one else 'are'} lost in {record['domain']}"
    if is_in_image:
        early = "the fault evicted this version before" if "evict" in faults else "the image has the same bytes"
        return f"{lost}; {early if copy['dirty'] else 'the image has the same bytes'}"
    detail = _missing_step(phase, copy["line"], steps) if copy["dirty"] else None
    return lost if detail is None else f"{lost}, and {detail}"


def _faults(how: str) -> set[str]:
    """Returns the faults in the description of a power failure (crates/crash/src/timeline_document.rs)."""
    return {fault for words, fault in _FAULTS if words in how}


def _missing_step(phase: Json, line: int, steps: Sequence[Json]) -> str | None:
    """Returns what the program has not done after its last store to the line, or what has not happened yet."""
    stored = cleaned = None
    accepted = False
    for step in steps_before_next_event(steps, phase["failure"]["event"]):
        if step.get("address") is None or line_of(step["address"]) != line:
            continue
        if step["what"] == "store":
            stored, cleaned, accepted = step["cycle"], None, False
        elif step["what"] == "clean":
            cleaned, accepted = step["cycle"], False
        elif step["what"] == "queue_accept" and cleaned is not None:
            accepted = True
    if stored is None or accepted:
        return None
    if cleaned is None:
        return f"it was not cleaned after its last store (cycle {stored:,})"
    return f"its clean (cycle {cleaned:,}) has not reached a write queue"


def line_of(address: int) -> int:
    """Returns the first byte of the line of an address."""
    return address // _LINE_BYTES * _LINE_BYTES


def steps_before_next_event(steps: Sequence[Json], event: int) -> Iterator[Json]:
    """Yields the steps up to the persist event after `event`: the power failure after `event` comes before that one."""
    for step in steps:
        if step.get("event", 0) > event:
            return
        yield step

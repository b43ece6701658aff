"""The violations of a campaign in SARIF 2.1.0 (OASIS), which editors and continuous integration show beside the source.

A result is one cause of violations, or all violations with one message that have no cause. Its rule is the step that is
missing. Its fingerprint has no addresses and no values, so a cause keeps it while its lines keep their places.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from durasim.documents.causes import cause_lines, place
from durasim.documents.results import CrashResult

Json = Mapping[str, Any]

FINGERPRINT = "durasimCause/v1"
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
WITHOUT_CAUSE = "violation-without-cause"

_RULES = {
    "no-clean": "A store is not cleaned before other code relies on it",
    "clean-before-store": "The clean of a line comes before the store to it",
    "clean-of-another-line": "The clean after a store is of another line",
    "no-fence": "No fence waits for the clean of a line",
    "other-fence": "The fence after a clean does not order writes",
    "order": "A later store becomes durable before an earlier one",
    "nothing": "A store is lost although it was cleaned and fenced",
    "undo": "A store is durable that should not be",
    WITHOUT_CAUSE: "Recovered data violate the promise",
}


def sarif_log(result: CrashResult, known: Collection[str] | None = None) -> dict[str, Any]:
    """Returns the violations of a campaign as a SARIF log.

    Args:
        result: The campaign.
        known: Fingerprints of known findings; results then say whether they are `unchanged` or `new`.
    """
    results = [*_causes(result), *_without_cause(result)]
    for one in results if known is not None else ():
        is_known = one["partialFingerprints"][FINGERPRINT] in (known or ())
        one["baselineState"] = "unchanged" if is_known else "new"
    used = dict.fromkeys(one["ruleId"] for one in results)
    driver = {
        "name": "durasim",
        "version": result.durasim_version,
        "rules": [{"id": rule, "shortDescription": {"text": _RULES[rule]}} for rule in used],
    }
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def fingerprint_of_cause(cause: Json) -> str:
    """Returns the fingerprint of a cause: kind, missing step, and functions and lines of its stores."""
    frames = [store["at"] for store in cause["stores"]]
    places = [
        f"{PurePosixPath(frame['file'] or '').name}\0{frame['function']}\0{frame['line']}"
        if frame["line"] is not None
        else f"{store['pc']:#x}"
        for frame, store in zip(frames, cause["stores"], strict=True)
    ]
    return _hash(cause["what"], cause["missing"], *places)


def fingerprint_of_message(oracle: str, message: str) -> str:
    """Returns the fingerprint of violations without a cause: the oracle and what it says."""
    return _hash(WITHOUT_CAUSE, oracle, message)


def _hash(*parts: str) -> str:
    return hashlib.sha256("\1".join(parts).encode()).hexdigest()[:32]


def _causes(result: CrashResult) -> Iterator[dict[str, Any]]:
    causes = result.causes or {}
    for cause in causes.get("found", ()):
        store = cause["stores"][0]
        related = [_location(other, "a further store of this cause") for other in cause["stores"][1:]]
        if cause["relied"] is not None:
            related.append(_location(cause["relied"], "relies on the store"))
        related += [_location(one, f"{one['what']} inserted after this to test the cause") for one in cause["inserted"]]
        one_alone = {**causes, "found": [cause], "unexplained": 0, "not_examined": 0, "debug_information": None}
        yield {
            "ruleId": cause["missing"],
            "level": "error" if cause["confirmed"] else "warning",
            "message": {"text": "\n".join(line.strip() for line in cause_lines(one_alone))},
            "locations": [_location(store)],
            "relatedLocations": [{**location, "id": number} for number, location in enumerate(related, 1)],
            "stacks": [_stack(one) for one in cause["stores"]],
            "partialFingerprints": {FINGERPRINT: fingerprint_of_cause(cause)},
            "occurrenceCount": cause["violations"],
            "properties": {"first": cause["first"], "confirmed": cause["confirmed"], "design": result.design},
        }


def _without_cause(result: CrashResult) -> Iterator[dict[str, Any]]:
    """Gives the messages of violations, unless each violation has a cause."""
    if not violations_without_cause(result):
        return
    for failure in {(failure.oracle, failure.message): failure for failure in reversed(result.failures)}.values():
        yield {
            "ruleId": WITHOUT_CAUSE,
            "level": "error",
            "message": {"text": f"{failure.message}\n{failure.command}"},
            "partialFingerprints": {FINGERPRINT: fingerprint_of_message(failure.oracle, failure.message)},
            "occurrenceCount": failure.alike,
            "properties": {"first": failure.id, "oracle": failure.oracle, "design": result.design},
        }


def violations_without_cause(result: CrashResult) -> int:
    """Returns the number of violations that no cause explains."""
    found = (result.causes or {}).get("found", ())
    return result.violations - sum(cause["violations"] for cause in found)


def _stack(store: Json) -> dict[str, Any]:
    """Returns the calls that have led to a store, the innermost first."""
    frames = [store["at"], *store["inlined_into"], *store["callers"]]
    locations = [{"location": _location({**store, "at": frame, "pc": None})} for frame in frames]
    return {"message": {"text": f"the store at {place(store)}"}, "frames": locations}


def _location(at: Json, message: str | None = None) -> dict[str, Any]:
    """Returns a place in the source, or the address of the instruction if that is known and the line is not."""
    frame = at["at"]
    location: dict[str, Any] = {}
    if frame["file"] is not None and frame["line"] is not None:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": _uri(frame["file"])},
            "region": {"startLine": frame["line"]},
        }
    elif at["pc"] is not None:
        location["physicalLocation"] = {"address": {"absoluteAddress": at["pc"]}}
    if frame["function"] is not None:
        location["logicalLocations"] = [{"name": frame["function"], "kind": "function"}]
    if message is not None:
        location["message"] = {"text": f"{place(at)}: {message}"}
    return location


def _uri(path: str) -> str:
    """Returns a reference to a file; for one in the working folder it is relative to that."""
    if os.path.isabs(path):  # noqa: PTH117 - a text of the program, not a path that is opened
        relative = os.path.relpath(path)
        return f"file://{quote(path)}" if relative.startswith("..") else quote(relative)
    return quote(path)

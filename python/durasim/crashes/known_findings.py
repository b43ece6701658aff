"""Findings of an earlier campaign that are known: a SARIF file, as `durasim crash --format sarif` writes it."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from durasim.crashes.sarif import FINGERPRINT, fingerprint_of_cause, fingerprint_of_message, violations_without_cause
from durasim.documents.results import CrashResult
from durasim.errors import host_io, refusal

_BYTES_MAX = 64 << 20


def read(path: str) -> frozenset[str]:
    """Returns the fingerprints of the findings in a SARIF file.

    Raises:
        ConfigError: The file is no SARIF log with results of durasim.
        HostIoError: The file cannot be read.
    """
    file = Path(path)
    try:
        if file.stat().st_size > _BYTES_MAX:
            raise refusal("known", f"{path} is larger than {_BYTES_MAX:,} bytes")
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise host_io(path, error) from None
    except UnicodeDecodeError:
        raise refusal("known", f"{path} is not a SARIF file of durasim: it is not UTF-8 text") from None
    try:
        results = [result for run in json.loads(text)["runs"] for result in run["results"]]
        return frozenset(str(result["partialFingerprints"][FINGERPRINT]) for result in results)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise refusal("known", f"{path} is not a SARIF file of durasim (write one with --format sarif)") from None


def unknown_violations(result: CrashResult, known: Collection[str]) -> int:
    """Returns the number of violations that belong to no known finding.

    Violations without a cause, or not examined for one, are known only if every message of the campaign is.
    """
    found = (result.causes or {}).get("found", ())
    unknown = sum(cause["violations"] for cause in found if fingerprint_of_cause(cause) not in known)
    if not (without := violations_without_cause(result)):
        return unknown
    # A message does not say which of its violations have a cause, so all messages have to be known.
    messages = {(failure.oracle, failure.message): failure.alike for failure in result.failures}
    are_listed = sum(messages.values()) == result.violations
    are_known = all(fingerprint_of_message(*about) in known for about in messages)
    return unknown if are_listed and are_known else unknown + without

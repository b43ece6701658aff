"""A run that a page shows: its record, power failures in it, findings, and sources."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from durasim import _core
from durasim.crashes.crash_request import PreparedCrash, replay_command
from durasim.documents.causes import cause_lines
from durasim.errors import refusal
from durasim.explore.reasons import line_of, reasons, steps_before_next_event
from durasim.explore.sources import SourceText, read_source
from durasim.output import read_json

LINES_MAX = 16
"""Maximum number of lines that one moment follows."""
_CHOSEN_MAX = 4
"""Lines that are chosen if none is named, as in a replay."""
_KEPT_MAX = 512
"""Moments that are kept."""

Json = Mapping[str, Any]


class ExploredRun:
    """A run with all its steps. Power failures are simulated when they are asked for; answers are kept.

    Attributes:
        record: The steps of the run (schemas/run-record.json).
        start: The id of the power failure to begin with.
        findings: Id and message of the failures to choose from.
        files: The names of source files in the debug information.
    """

    def __init__(
        self, prepared: PreparedCrash, *, findings: Sequence[Json] = (), source_root: Path | None = None
    ) -> None:
        """Runs the program without a power failure and records its steps.

        Raises:
            ConfigError: The configuration is refused, the run has no persist event or too many steps, or the failure
                to begin with does not exist.
            GuestFault, StuckError, HostIoError: As from a run.
        """
        self._prepared = prepared
        self._root = source_root
        self._kept: dict[tuple[str, tuple[int, ...]], Json] = {}
        self.record: Json = json.loads(_core.record_run(json.dumps(prepared.request | {"replay": None})))
        if not self.record["events"]:
            raise refusal("explore", "the run has no persist event: it changes nothing that survives a power failure")
        self.findings = list(findings)
        first = self.findings[0]["id"] if self.findings else "e1"
        self.start: str = prepared.options.replay or first
        self.moment(self.start, ())
        frames = (frame for place in self.record["places"] for frame in place["frames"])
        self.files: list[str] = sorted({frame["file"] for frame in frames if frame["file"] is not None})

    def overview(self) -> Json:
        """Returns all that a page shows before a power failure is chosen (schemas/explored-run.json)."""
        return {
            "schema": "durasim-explored-run/1",
            "record": self.record,
            "start": self.start,
            "findings": self.findings,
            "files": self.files,
        }

    def moment(self, failure: str, lines: Sequence[int]) -> Json:
        """Returns a power failure, what each level held, and the recovery (schemas/moment.json).

        Args:
            failure: The id of the power failure, as `--replay` takes it.
            lines: Addresses of the lines to follow; if empty, the lines that matter for the verdict.

        Raises:
            ConfigError: There is no such failure, or a line is not in persistent memory.
            GuestFault, StuckError, HostIoError: As from a run.
        """
        key = (failure, tuple(sorted(set(lines))))
        if key not in self._kept:
            if len(self._kept) >= _KEPT_MAX:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = self._simulated(*key)
        return self._kept[key]

    def _simulated(self, failure: str, lines: Sequence[int]) -> Json:
        document = self._replayed(failure, lines)
        because = document["timeline"]["lines_chosen_because"]
        if not document["timeline"]["lines"]:
            # A program without transactions: a replay finds lines by transactions and by the bytes that they declare.
            lines, reason = _lines_of(document, self.record["steps"])
            if lines:
                document, because = self._replayed(failure, lines), reason
        timeline, prepared = document["timeline"], self._prepared
        return {
            "schema": "durasim-moment/1",
            "id": timeline["id"],
            "command": replay_command(prepared.scenario, document["ops"], timeline["id"], prepared.options),
            "lines_chosen_because": because,
            "timeline": timeline,
            "reasons": reasons(self.record, timeline),
            "causes": [] if document["causes"] is None else cause_lines(document["causes"]),
        }

    def _replayed(self, failure: str, lines: Sequence[int]) -> dict[str, Any]:
        request = self._prepared.request | {"replay": failure, "follow": list(lines)}
        document: dict[str, Any] = json.loads(_core.crash(json.dumps(request), None))
        return document

    def source(self, number: int) -> SourceText | None:
        """Returns the source file with this number in `files`, or None if there is none."""
        return read_source(self.files[number], self._root) if 0 <= number < len(self.files) else None


def _lines_of(document: Json, steps: Sequence[Json]) -> tuple[list[int], str]:
    """Returns the lines that explain a failure of a program without transactions, and the reason for them."""
    causes = document["causes"]["found"] if document["causes"] is not None else []
    lost = {line_of(store["address"]) for cause in causes for store in cause["stores"]}
    if lost:
        return sorted(lost)[:_CHOSEN_MAX], "the causes name them"
    event = document["timeline"]["phases"][0]["failure"]["event"]
    stored = [line_of(step["address"]) for step in steps_before_next_event(steps, event) if step["what"] == "store"]
    last = list(dict.fromkeys(reversed(stored)))[:_CHOSEN_MAX]
    return sorted(last), "the last stores before the power failure are to them"


def read_findings(path: str, prepared: PreparedCrash) -> list[Json]:
    """Returns the failures of this run, with id, oracle and message, in a document of `durasim crash` or `campaign`.

    Raises:
        HostIoError: The file cannot be read.
        ConfigError: It is no such document, or it has no failure of this run.
    """
    document = read_json(path, "findings")
    failures = document.get("failures") if isinstance(document, dict) else None
    if not isinstance(failures, list) or not all(_is_failure(failure) for failure in failures):
        raise refusal("findings", f"{path} is no document of `durasim crash --json` or `durasim campaign --json`")
    if not failures:
        raise refusal("findings", f"{path} has no failure")
    scenario, ops = prepared.scenario, prepared.request["ops"]
    own = [one for one in failures if one["command"] == replay_command(scenario, ops, one["id"], prepared.options)]
    if not own:
        words = shlex.split(failures[0]["command"])
        command = shlex.join(["explore" if at == 1 else word for at, word in enumerate(words)])
        raise refusal("findings", f"{path} has no failure of this run; its first one opens with `{command}`")
    return [{name: one[name] for name in ("id", "oracle", "message")} for one in own]


def _is_failure(failure: Any) -> bool:
    names = ("id", "oracle", "message", "command")
    return isinstance(failure, dict) and all(isinstance(failure.get(name), str) for name in names)

"""Estimates of the host time and memory of points before they are simulated."""

from __future__ import annotations

import itertools
import json
import resource
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from durasim import _core
from durasim.errors import DurasimError
from durasim.output import discard
from durasim.studies.prepared import Prepared

PROBE_INSTRUCTIONS = 200_000_000
"""Instructions after which a functional run that counts those of a program is given up."""
_PROBES_MAX = 100
"""Functional runs of a plan that count instructions; the length of further programs is unknown."""
_SIMULATED_PER_S = 4_000_000
"""Instructions per second of a simulation, where the store has no measurement (docs/performance.md)."""
_FUNCTIONAL_PER_S = 60_000_000
"""Instructions per second without caches and time: recovery and checks after a crash."""
WORKER_BYTES = 100 * 2**20
"""Memory of a worker process without a simulated machine."""


@dataclass(frozen=True, slots=True)
class _Instructions:
    """Instructions of a run.

    Attributes:
        program: Those of the whole program.
        region: Those of its region of interest, which is the whole program if it marks none.
    """

    program: int
    region: int


class ProgramLengths:
    """Instructions that programs execute, counted by functional runs. Each program runs once."""

    def __init__(self, probe_instructions: int = PROBE_INSTRUCTIONS) -> None:
        """Programs that execute more than `probe_instructions` have an unknown length."""
        self._probe_instructions = probe_instructions
        self._known: dict[str, _Instructions | None] = {}
        self._ops_too_many: dict[str, int] = {}
        self._probes_left = 0
        self.memory_bytes = WORKER_BYTES
        """Largest memory of a process that simulates one of the programs, as far as it is known."""

    def of(self, request: Mapping[str, Any]) -> _Instructions | None:
        """Returns the instructions of a run; None if they are too many to count, or it cannot run functionally."""
        # Seeds change what a program does, but hardly how much.
        kept, ops = [request[name] for name in _PROGRAM_FIELDS], _ops_of(request)
        program = json.dumps([*kept, _without_seed_and_ops(request)])
        text = f"{program} {ops}"
        if text not in self._known:
            # More operations take more instructions.
            is_too_long = ops >= self._ops_too_many.get(program, ops + 1)
            self._known[text] = None if is_too_long or not self._probes_left else self._probe(request, program)
        return self._known[text]

    def begin_plan(self) -> None:
        """Allows the runs of a further plan."""
        self._probes_left = _PROBES_MAX

    def _probe(self, request: Mapping[str, Any], program: str) -> _Instructions | None:
        self._probes_left -= 1
        of_run = {name: value for name, value in request.items() if name in _RUN_FIELDS}
        changed = {"functional": True, "max_instructions": self._probe_instructions, "fast_forward": None, "from": None}
        changed |= {"stop_after_roi": False, "root_write": False, "persistence_report": False, "batches": False}
        # The peak is that of this process, which may have held more before.
        before_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        try:
            document = json.loads(_core.run(json.dumps(of_run | changed), discard))
        except DurasimError as error:
            if getattr(error, "field", None) == "max_instructions":
                self._ops_too_many[program] = _ops_of(request)
            return None
        added_bytes = int(document["host"]["peak_rss_bytes"]) - before_bytes
        self.memory_bytes = max(self.memory_bytes, WORKER_BYTES + max(added_bytes, 0))
        return _Instructions(int(document["program"]["instructions"]), int(document["roi"]["instructions"]))


class Estimates:
    """Expected times: from results of the same program, or from the number of instructions of its run."""

    def __init__(self, entries: Sequence[Any], lengths: ProgramLengths | None = None) -> None:
        """Starts with the measured times of `entries`, those of the store, and with programs of known length."""
        self._measured: dict[tuple[str, ...], list[float]] = {}
        for entry in entries:
            of = (entry.kind, entry.design, entry.workload, entry.machine, _size_of(entry.command))
            self._measured.setdefault(of, []).append(entry.seconds)
        self._lengths = lengths or ProgramLengths()
        self._lengths.begin_plan()

    @property
    def memory_bytes(self) -> int:
        """Largest memory of a process that simulates one of the points, as far as it is known."""
        return self._lengths.memory_bytes

    def seconds(self, one: Prepared) -> float | None:
        """Returns the expected host time of a point; None if it is unknown."""
        request, scenario = one.request, one.point.scenario
        of = (one.point.kind, scenario.design, str(request["workload"]), scenario.machine, _size_of(one.command))
        # The run that counts instructions also says how much memory the program needs.
        count = self._lengths.of(request)
        if of in self._measured:
            return statistics.median(self._measured[of])
        if count is None:
            return None
        # Up to the region a fast-forwarded run is functional; what comes after it is little.
        functional = count.program - count.region if request.get("fast_forward") is not None else 0
        running = (count.program - functional) / _SIMULATED_PER_S + functional / _FUNCTIONAL_PER_S
        if one.point.crash is None:
            return running
        # The program runs twice; each trial recovers and checks.
        trials = 1000 if one.point.crash.points == "all" else one.point.crash.points
        return 2 * running + trials * one.point.crash.variants * count.program / _FUNCTIONAL_PER_S


def _ops_of(request: Mapping[str, Any]) -> int:
    """Returns the operations of a workload; 0 for another program, whose arguments say what it does."""
    return int(request["ops"] or 0)


def _without_seed_and_ops(request: Mapping[str, Any]) -> list[str]:
    """Returns the arguments of a program; those of a workload without seed and number of operations."""
    args = list(request["args"])
    if request["ops"] is not None:
        for option in ("--seed", "--ops"):
            if option in args:
                at = args.index(option)
                del args[at : at + 2]
    return args


def _size_of(command: str) -> str:
    """Returns the words of a command that decide how much its program does."""
    words = command.split()
    pairs = itertools.pairwise(words)
    return " ".join(f"{name} {value}" for name, value in pairs if name in ("--ops", "--threads", "--arg", "--points"))


_PROGRAM_FIELDS = ("elf", "elf_name", "env", "threads", "workload", "root")
"""The fields of a request, except its arguments and the number of operations, that decide what its program does."""
_RUN_FIELDS = frozenset(json.loads(_core.run_schemas())["request"]["properties"])
"""Fields of the request of a run; that of a crash has more."""

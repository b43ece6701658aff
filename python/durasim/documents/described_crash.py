"""The options of a crash campaign, as crates/crash/src/request.rs describes them.

Written by tools/generate_schemas.py: to change it, change that file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypedDict

FAULTS = ("clean", "torn", "reorder", "evict", "energy", "nested", "background", "recrash")
"""Kinds of power failures; docs/crash.md explains each."""
DEFAULT_FAULTS = ("clean", "nested")
"""Faults of a workload if none are given."""
FAULTS_UNDER_MODELS = ("clean", "nested", "recrash")
"""Faults that have a meaning under a persistency model."""


@dataclass(frozen=True, slots=True)
class CrashOptions:
    """Options of a crash campaign over a scenario.

    Attributes:
        points: Persist events to crash at, spread over the run; exhaustive: all, with every image of reordered cleans
            and early evictions.
        faults: Kinds of power failures (default: clean and nested for a workload, all with --elf); clean failures are
            always included.
        variants: Samples per crash point for faults with many possible outcomes; all outcomes if there are fewer.
        replay: Replay only the failure with this id.
        check_args: Arguments with which the --elf program recovers and checks its pool; durasim then compares the
            bytes.
        again_args: Arguments of the --elf program for the run between two crashes (default: those after --).
        oracles: A further judge of what an --elf program recovers: output compares what its check prints with what it
            prints after whole operations.
        persistency_model: A persistency model: its images take the place of those that the machine leaves at a power
            failure.
        check_output: Show what the check of an --elf program writes, in failing trials and in that of --replay: the
            first 4 KiB of each stream.
        recovery_limit: Instruction limit of recovery, check and rerun, each (default: 20 times the crash-free count, at
            least 10 million).
        workers: Threads of this computer that run trials; all its cores if not given.
    """

    points: int | Literal["all", "exhaustive"] = field(
        default=300,
        metadata={
            "drawn": True,
            "file": True,
            "words": ("all", "exhaustive"),
            "minimum": 1,
            "maximum": 1000000000000000,
            "metavar": "all|exhaustive|N",
            "help": "Persist events to crash at, spread over the run; exhaustive: all, with every image of "
            "reordered cleans and early evictions.",
        },
    )
    faults: tuple[str, ...] | None = field(
        default=None,
        metadata={
            "flag": "fault",
            "drawn": True,
            "file": True,
            "choices": ("clean", "torn", "reorder", "evict", "energy", "nested", "background", "recrash"),
            "metavar": "NAME",
            "help": "Kinds of power failures (default: clean and nested for a workload, all with --elf); clean "
            "failures are always included.",
        },
    )
    variants: int = field(
        default=2,
        metadata={
            "drawn": True,
            "file": True,
            "maximum": 1024,
            "minimum": 1,
            "help": "Samples per crash point for faults with many possible outcomes; all outcomes if there are fewer.",
        },
    )
    replay: str | None = field(
        default=None,
        metadata={
            "metavar": "ID",
            "help": "Replay only the failure with this id.",
        },
    )
    check_args: tuple[str, ...] | None = field(
        default=None,
        metadata={
            "flag": "check",
            "elf": True,
            "metavar": "ARGS",
            "help": "Arguments with which the --elf program recovers and checks its pool; durasim then compares"
            " the bytes.",
        },
    )
    again_args: tuple[str, ...] | None = field(
        default=None,
        metadata={
            "flag": "again",
            "elf": True,
            "metavar": "ARGS",
            "help": "Arguments of the --elf program for the run between two crashes (default: those after --).",
        },
    )
    oracles: tuple[str, ...] | None = field(
        default=None,
        metadata={
            "flag": "oracle",
            "elf": True,
            "choices": ("output",),
            "metavar": "NAME",
            "help": "A further judge of what an --elf program recovers: output compares what its check prints "
            "with what it prints after whole operations.",
        },
    )
    persistency_model: Literal["strict", "epoch", "x86", "x86-clflush"] | None = field(
        default=None,
        metadata={
            "file": True,
            "words": ("strict", "epoch", "x86", "x86-clflush"),
            "metavar": "strict|epoch|x86|x86-clflush",
            "help": "A persistency model: its images take the place of those that the machine leaves at a power"
            " failure.",
        },
    )
    check_output: bool = field(
        default=False,
        metadata={
            "elf": True,
            "help": "Show what the check of an --elf program writes, in failing trials and in that of --replay:"
            " the first 4 KiB of each stream.",
        },
    )
    recovery_limit: int | None = field(
        default=None,
        metadata={
            "unit": "instructions",
            "file": True,
            "maximum": 1000000000000000,
            "metavar": "N",
            "minimum": 1,
            "help": "Instruction limit of recovery, check and rerun, each (default: 20 times the crash-free "
            "count, at least 10 million).",
        },
    )
    workers: int | None = field(
        default=None,
        metadata={
            "internal": True,
            "maximum": 1024,
            "minimum": 1,
            "help": "Threads of this computer that run trials; all its cores if not given.",
        },
    )


class CrashOptionArguments(TypedDict, total=False):
    """`CrashOptions` as arguments of the Python API."""

    points: int | Literal["all", "exhaustive"]
    faults: Iterable[str] | None
    variants: int
    replay: str | None
    check_args: Iterable[str] | None
    again_args: Iterable[str] | None
    oracles: Iterable[str] | None
    persistency_model: Literal["strict", "epoch", "x86", "x86-clflush"] | None
    check_output: bool
    recovery_limit: int | None

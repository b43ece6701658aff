"""Categories of cycles, from the stall counters of a run, and origins of bytes written to persistent memory.

In each cycle of the region a hardware thread that has a software thread either commits an instruction or increments one
counter `core.stalls.PLACE.CAUSE` (docs/internals/time.md, "Where cycles go"). A category is a set of counters, and each
counter is in one category, so categories lose no cycle and count none twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from durasim.errors import refusal

BASE = "base"
"""Cycles in which at least one instruction commits."""
IDLE = "idle"
"""Cycles of hardware threads between their last commit and the end of the region: they have no software thread."""
_STALLS = "core.stalls."
_HARDWARE_THREAD = re.compile(r"core\.\d+(?:\.thread_\d+)?\.cycle")
_WITHOUT_CAUSE = ("front_end", "execution", "system", "abort")
_OF_DESIGN = ("design_lookup", "persist_buffer", "design", "order")
"""Causes that a design names beside its structures."""
_WITH_ALL_CAUSES = ("fence", "commit", "atomic")
"""Places that are a category of their own, without the causes above."""
_ACCESSES = ("load", "store", "store_queue")
_LEVELS = ("private_caches", "llc", "other_core", "dram", "pmem", "path", "eviction", "translation")
_BESIDE_LEVELS = ("queue", "store_buffer", "commit")


def category_of(counter: str) -> str:
    """Returns the category of a counter, such as `memory.llc` for `load.llc` and `store_queue.llc`.

    Args:
        counter: The name below `core.stalls`.

    Raises:
        ConfigError: The counter is in no category.
    """
    place, _, cause = counter.partition(".")
    if counter in _WITHOUT_CAUSE:
        return counter
    if place in (*_ACCESSES, *_WITH_ALL_CAUSES):
        if cause.startswith("structure.") or cause in _OF_DESIGN:
            return cause
        if place in _WITH_ALL_CAUSES and cause in (*_LEVELS, *_BESIDE_LEVELS):
            return place
        if cause in _LEVELS:
            return f"memory.{cause}"
        if cause in _BESIDE_LEVELS:
            return cause
    raise refusal("stats", f"the stall counter {_STALLS}{counter} is unknown, so its cycles have no category")


def stalls_of(result: Any) -> dict[str, int]:
    """Returns the stall counters of a run in cycles, without those that are 0; empty if it has none.

    Args:
        result: A `RunResult`.
    """
    found = ((path.removeprefix(_STALLS), stat) for path, stat in result.stats.walk() if path.startswith(_STALLS))
    return {name: _whole(name, stat.value) for name, stat in found if stat.value}


def has_stalls(result: Any) -> bool:
    """Whether a run has stall counters."""
    return any(path.startswith(_STALLS) for path, _ in result.stats.walk())


def _whole(name: str, cycles: float) -> int:
    if not float(cycles).is_integer() or cycles < 0:
        raise refusal("stats", f"{_STALLS}{name} is {cycles}, which is no number of cycles")
    return int(cycles)


def hardware_threads_of(result: Any) -> int:
    """Returns the number of hardware threads that executed an instruction of the program, in its region or before."""
    return max(1, len(_last_commits(result)))


def _last_commits(result: Any) -> list[int]:
    """Returns the cycle of the last commit of each hardware thread in the region; empty on a machine with one."""
    return [int(stat.value) for path, stat in result.stats.walk() if _HARDWARE_THREAD.fullmatch(path)]


def base_and_idle_of(result: Any, label: str) -> tuple[int, int]:
    """Returns `BASE` and `IDLE`: the cycles of all hardware threads that are in no stall counter.

    On one hardware thread all of them are `BASE`, exactly. Otherwise `IDLE` is what `_idle_cycles` returns, or the
    number of cycles beyond the instructions of the region if that is larger, and `BASE` is the rest. It is too small by
    the parts of waits before and after the region, because counters have waits as a whole.

    Args:
        result: A `RunResult`.
        label: The name of the run in messages.

    Raises:
        ConfigError: The stall counters are not those of the region.
    """
    threads, cycles, instructions = hardware_threads_of(result), result.roi.cycles, result.roi.instructions
    waited = sum(stalls_of(result).values())
    rest = threads * cycles - waited
    idle = 0 if threads == 1 else min(max(_idle_cycles(result), rest - instructions), max(rest, 0))
    base = rest - idle
    if not min(1, instructions) <= base <= instructions:
        hint = "; let the region begin after its threads have started, as waits count as a whole" if threads > 1 else ""
        raise refusal(
            "stats",
            f"the stall counters of {label} have {waited:,} of {threads} x {cycles:,} cycles, and the {base:,} that "
            f"are left do not fit {instructions:,} instructions{hint}",
        )
    return base, idle


def _idle_cycles(result: Any) -> int:
    """Returns the cycles between the last commits of hardware threads and the end of the region.

    That is the commit of a marker on one hardware thread; the others that run are some cycles ahead. It is taken as the
    earliest of the last commits that are at most a thread switch apart from the latest one.
    """
    last, cycles = _last_commits(result), result.roi.cycles
    switch_cycles = result.configuration.get("core", {}).get("context_switch_cycles", 0)
    end = min(each for each in last if each >= max(last) - switch_cycles)
    return sum(min(max(end - each, 0), cycles) for each in last)


def origins_of(result: Any, label: str) -> Mapping[str, int]:
    """Returns the bytes written to persistent memory by origin.

    Args:
        result: A `RunResult`.
        label: The name of the run in messages.

    Raises:
        ConfigError: The origins do not add up to the total.
    """
    origins = dict(result.pmem_write_bytes.to_dict())
    total = origins.pop("total")
    if sum(origins.values()) != total:
        raise refusal(
            "pmem_write_bytes", f"the origins of {label} add up to {sum(origins.values()):,} of {total:,} bytes"
        )
    return origins

"""JSON documents other than single results. Their schemas are in `schemas/`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from durasim._core import __version__
from durasim.comparison import Judged, means
from durasim.errors import unknown_name
from durasim.lost_cycles import lost_cycles
from durasim.results import Comparison, Relative, TxProfile

if TYPE_CHECKING:
    from durasim.suites import Member


def comparison(judged: Sequence[Judged], scale: str, runs_wanted: int | None = None) -> Comparison:
    """Returns the document of `durasim compare --json`: runs, ratios and means.

    Args:
        judged: The completed runs.
        scale: Their scale.
        runs_wanted: Total number of runs, if the comparison was interrupted.
    """
    own = {"design", "workload", "set"}
    names = [field.name for field in dataclasses.fields(Relative) if field.name not in own]
    relative = [
        Relative(
            run.result.design,
            run.result.workload,
            run.result.provenance.set,
            **{name: getattr(run, name) for name in names},
        )
        for run in judged
    ]
    return Comparison(
        schema="durasim-compare/4",
        durasim_version=__version__,
        scale=scale,
        runs_wanted=len(judged) if runs_wanted is None else runs_wanted,
        baseline=next((run.baseline for run in judged), None),
        pmem_baseline=next((run.pmem_baseline for run in judged), None),
        relative=tuple(relative),
        means=tuple(means(judged)),
        lost_cycles=tuple(lost_cycles(run.result for run in judged)),
        runs=tuple(run.result for run in judged),
    )


def workload_entries(names: Sequence[str] | None) -> list[Member]:
    """Returns the programs and the members of suites, or the given ones.

    Raises:
        ConfigError: A name is unknown.
        ToolchainError: The table of a given workload is missing or wrong.
    """
    from durasim import suites, toolchain  # noqa: PLC0415 - keeps the start-up of other commands short

    programs = [suites.Member(info, None, "") for info in toolchain.workloads()]
    known = {entry.info.name: entry for entry in (*programs, *suites.members())}
    chosen = suites.expand(list(names)) if names else list(known)
    broken = toolchain.broken_workloads()
    for name in chosen:
        if name in broken:
            raise broken[name]
        if name not in known:
            raise unknown_name("workload", name, known, "durasim workloads")
    return [known[name] for name in dict.fromkeys(chosen)]


def workload_rows(entries: Sequence[Member], profiles: Mapping[str, TxProfile]) -> list[dict[str, Any]]:
    """Returns the document of `durasim workloads --json`, without the paths of the sources."""
    rows = []
    for entry in entries:
        info, profile = entry.info, profiles.get(entry.info.name)
        row: dict[str, Any] = {
            "name": info.name,
            "description": info.description,
            "program": info.program,
            "suite": entry.suite,
            "source": entry.source,
            "threads": entry.threads,
            "published_tx_lines": entry.published_tx_lines,
            "published_note": entry.published_note,
            "arguments": [argument.to_dict() for argument in info.arguments],
        }
        rows.append(row if profile is None else row | profile.to_dict())
    return rows

"""The JSON documents that are not a single result. Their schemas are in `schemas/`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from durasim._core import __version__
from durasim.errors import unknown_name
from durasim.results import RunResult, TxProfile
from durasim.scenario import DEFAULT_DESIGN

if TYPE_CHECKING:
    from durasim.suites import Member


def comparison(results: Sequence[RunResult]) -> dict[str, Any]:
    """Gives the document of `durasim compare --json`: the runs and their throughput relative to `opt`."""
    baseline = {result.workload: result.throughput_ops_per_us for result in results if result.design == DEFAULT_DESIGN}
    rows = []
    for result in results:
        reference, throughput = baseline.get(result.workload), result.throughput_ops_per_us
        relative = throughput / reference if throughput is not None and reference else None
        rows.append({"design": result.design, "workload": result.workload, "relative_to_opt": relative})
    return {
        "schema": "durasim-compare/1",
        "durasim_version": __version__,
        "relative": rows,
        "runs": [result.to_dict() for result in results],
    }


def workload_entries(names: Sequence[str] | None) -> list[Member]:
    """Gives the programs and the members of suites, or those that are named.

    Raises:
        ConfigError: There is none of a name.
    """
    from durasim import suites, toolchain  # noqa: PLC0415 - keeps the start-up of other commands short

    programs = [suites.Member(info, None, "") for info in toolchain.workloads()]
    known = {entry.info.name: entry for entry in (*programs, *suites.members())}
    chosen = suites.expand(list(names)) if names else list(known)
    for name in chosen:
        if name not in known:
            raise unknown_name("workload", name, known)
    return [known[name] for name in dict.fromkeys(chosen)]


def workload_rows(entries: Sequence[Member], profiles: Mapping[str, TxProfile]) -> list[dict[str, Any]]:
    """Gives the document of `durasim workloads --json`; where the sources lie on this computer is left out."""
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
            "arguments": [dataclasses.asdict(argument) for argument in info.arguments],
        }
        rows.append(row if profile is None else row | profile.to_dict())
    return rows

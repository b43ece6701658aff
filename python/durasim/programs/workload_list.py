"""The list of workloads and members of suites that `durasim workloads` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from durasim.documents.results import TxProfile
from durasim.errors import unknown_name
from durasim.programs import suites, workload_tables


def workload_entries(names: Sequence[str] | None) -> list[suites.Member]:
    """Returns the programs and the members of suites, or the given ones.

    Raises:
        ConfigError: A name is unknown.
        ToolchainError: The table of a given workload is missing or wrong.
    """
    programs = [suites.Member(info, None, "") for info in workload_tables.workloads()]
    known = {entry.info.name: entry for entry in (*programs, *suites.members())}
    chosen = suites.expand(list(names)) if names else list(known)
    broken = workload_tables.broken_workloads()
    for name in chosen:
        if name in broken:
            raise broken[name]
        if workload_tables.is_path(name) and (own := workload_tables.find_workload(name)) is not None:
            known[name] = suites.Member(own, None, "")
        if name not in known:
            raise unknown_name("workload", name, known, "durasim workloads")
    return [known[name] for name in dict.fromkeys(chosen)]


def workload_rows(entries: Sequence[suites.Member], profiles: Mapping[str, TxProfile]) -> list[dict[str, Any]]:
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

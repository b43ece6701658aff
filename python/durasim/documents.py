"""The JSON documents that are not a single result. Their schemas are in `schemas/`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from durasim._core import __version__
from durasim.results import RunResult
from durasim.scenario import DEFAULT_DESIGN

if TYPE_CHECKING:
    from durasim.toolchain import WorkloadInfo


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


def workload_rows(workloads: Sequence[WorkloadInfo]) -> list[dict[str, Any]]:
    """Gives the document of `durasim workloads --json`; where the sources lie on this computer is left out."""
    return [
        {
            "name": workload.name,
            "description": workload.description,
            "arguments": [dataclasses.asdict(argument) for argument in workload.arguments],
        }
        for workload in workloads
    ]

"""The JSON document of a comparison. Its schema is `schemas/compare.json`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from durasim._core import __version__
from durasim.documents.results import Comparison, Relative
from durasim.runs.comparison import Judged, means
from durasim.runs.lost_cycles import lost_cycles


def comparison_document(judged: Sequence[Judged], scale: str, runs_wanted: int | None = None) -> Comparison:
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

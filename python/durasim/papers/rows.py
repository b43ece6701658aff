"""A published number as a row of a reproduction, before anything of ours is beside it."""

from __future__ import annotations

from durasim.documents.reproduction import ReproducedRow
from durasim.papers import verdicts
from durasim.papers.verdicts import Published


def published_row(paper: str, published: Published) -> ReproducedRow:
    """Returns the row without numbers of ours; its verdict is empty."""
    return ReproducedRow(
        paper=paper,
        figure=published.figure,
        metric=published.metric,
        design=published.design,
        workload=published.workload,
        baseline=published.baseline,
        published=published.value,
        unit=published.unit,
        relation=published.relation,
        ours=(),
        interval=(),
        interval_from="",
        sensitivity_range=(),
        text="",
        class_=verdicts.class_of(published),
        verdict="",
        null_verdict=verdicts.null_verdict(published),
        robust=None,
        readings={},
        note="",
        error=None,
        command="",
        runs=(),
    )

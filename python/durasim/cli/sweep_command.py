"""The command `durasim sweep`: a study, its plan, its table and its plot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from durasim import api, output
from durasim.cli import formats, options, render
from durasim.cli.monitored import Monitor, monitored
from durasim.cli.options import check_json, finish
from durasim.cli.shell import EXIT_NEGATIVE
from durasim.documents.escaping import csv_text
from durasim.documents.sweep import SweepResult

if TYPE_CHECKING:
    from durasim.studies.study import Study


def sweep(
    file: Annotated[str, typer.Argument(metavar="FILE.toml", help="Study file, see docs/studies.md.")],
    plan: Annotated[
        bool, typer.Option("--plan", help="Print points, expected minutes and memory, and simulate nothing.")
    ] = False,
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="METRIC", help="Plot a metric, such as throughput.")
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="KEY", help="One line of the plot per value of this axis.")
    ] = None,
    x: Annotated[
        str | None,
        typer.Option("--x", metavar="KEY", help="Horizontal axis of the plot (default: the last axis that varies)."),
    ] = None,
    plot_file: Annotated[
        str | None,
        typer.Option("--plot-file", metavar="FILE", help="File of the plot: .svg, .png or .html (default: NAME.svg)."),
    ] = None,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    insecure: options.Insecure = False,
    wait: options.Wait = None,
    store: options.StoreFile = None,
    no_store: options.NoStore = False,
    monitor: Monitor = None,
    yes: Annotated[bool, typer.Option("--yes", help="Permit more than 10,000 points.")] = False,
    wide: options.Wide = False,
    form: options.Format = formats.TABLE,
    json: options.JsonFile = None,
) -> None:
    """Run a study: simulate all its points that are not in the store, and print one table.

    An interrupted study continues where it ended. The exit code is 1 if a point failed or a crash lost data.
    """
    from durasim.cli import study_tables  # noqa: PLC0415 - keeps the start-up of other commands short
    from durasim.studies import pareto, plots  # noqa: PLC0415
    from durasim.studies import plan as plans  # noqa: PLC0415
    from durasim.studies.study import refuse_many  # noqa: PLC0415

    check_json(json)
    formats.check(form, json)
    kept = options.store_of(store, no_store)
    study = api.described_study(file, {})
    refuse_many(study, yes=yes)
    wanted = plots.plot_of(study, metric=plot, x=x, by=by, file=plot_file)
    if plan:
        needed = {"plot": plot is not None}
        options.refuse_with_plan(form, needed, cluster=cluster, insecure=insecure, wait=wait, monitor=monitor)
        with api.opened_store(kept) as opened:
            planned = plans.plan_of(study, opened, jobs)
        finish(json, planned.to_dict(), study_tables.plan_table(planned, wide=wide))
        return
    if wanted is not None:
        output.check_writable(wanted.file)
    result = _run(
        study, monitor, store=kept, jobs=jobs, cluster=cluster, insecure=insecure, wait_minutes=wait, yes=yes
    )  # fmt: skip
    if json is not None:
        output.write_json(json, result.to_dict())
    if json != output.STANDARD_OUTPUT:
        frame = pareto.frame_of(study, result)
        shown = study_tables.study_tables(result, frame, wide=wide or form != formats.TABLE)
        formats.show(form, result.to_dict(), shown, lambda: csv_text(frame))
    if wanted is not None:
        plots.write(result, wanted)
    if _is_negative(result):
        raise typer.Exit(EXIT_NEGATIVE)


def _run(study: Study, monitor: int | None, **how: Any) -> SweepResult:
    with monitored(monitor, "durasim sweep") as watch, render.progress_bar() as bar:
        task = bar.add_task(f"simulating {study.name}", total=None)
        return api.run_study(
            study, progress=lambda done, total: bar.update(task, completed=done, total=total), watch=watch, **how
        )


def _is_negative(result: SweepResult) -> bool:
    bad = (point.metrics.get("violations") or point.metrics.get("guest_exit_code") for point in result.points)
    return result.failed > 0 or any(bad)

"""The command `durasim reproduce`: figures and tables of papers beside durasim's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from durasim import output, publication
from durasim.cli import formats, options, render
from durasim.cli.monitored import Monitor, monitored
from durasim.cli.options import check_json, finish
from durasim.cli.shell import EXIT_NEGATIVE
from durasim.errors import refusal

if TYPE_CHECKING:
    from durasim.documents.reproduction import Reproduction
    from durasim.papers.reproduction import Chosen


AllReadings = Annotated[
    bool, typer.Option("--readings", help="Also run other readings of the paper: verdicts gained and lost.")
]
ReadingNames = Annotated[
    list[str] | None,
    typer.Option("--reading", metavar="NAME", help="Run only this other reading of the paper; repeatable."),
]


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="A paper, or `all`.")],
    figure: Annotated[
        str | None, typer.Option("--figure", metavar="PLACE", help="Only this figure, table or section, such as Fig5.")
    ] = None,
    scale: Annotated[
        str, typer.Option("--scale", metavar="NAME", help="`quick`, the sizes that are scored, or `paper`.")
    ] = "quick",
    plan: Annotated[
        bool, typer.Option("--plan", help="Print points, expected minutes and memory, and simulate nothing.")
    ] = False,
    report: Annotated[
        str | None, typer.Option("--report", metavar="DIR", help="Write a page for each paper to this folder.")
    ] = None,
    fail_on_change: Annotated[
        bool, typer.Option("--fail-on-change", help="Exit with 1 if a verdict differs from the recorded one.")
    ] = False,
    readings: AllReadings = False,
    reading: ReadingNames = None,
    seeds: options.Seeds = 1,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    insecure: options.Insecure = False,
    wait: options.Wait = None,
    monitor: Monitor = None,
    store: options.StoreFile = None,
    no_store: options.NoStore = False,
    yes: Annotated[bool, typer.Option("--yes", help="Permit more than 10,000 runs.")] = False,
    wide: options.Wide = False,
    form: options.Format = formats.TABLE,
    json: options.JsonFile = None,
) -> None:
    """Run what the figures of a paper need, and print the published numbers beside durasim's with verdicts.

    Runs in the store are not simulated again, and an interrupted reproduction continues where it ended. The exit code
    is 1 if a run failed or a number could not be measured; verdicts alone leave it 0.
    """
    from durasim.cli import reproduction_tables, study_tables  # noqa: PLC0415 - keeps the start-up of others short
    from durasim.papers import recorded  # noqa: PLC0415
    from durasim.papers.report import check_folder, write_report  # noqa: PLC0415

    check_json(json)
    formats.check(form, json)
    chosen = publication.chosen_papers(paper, figure, scale, reading or readings)
    readings = readings or bool(reading)
    kept = options.store_of(store, no_store)
    if plan:
        needed = {"report": report is not None, "fail_on_change": fail_on_change}
        options.refuse_with_plan(form, needed, cluster=cluster, insecure=insecure, wait=wait, monitor=monitor)
        planned = publication.planned_reproduction(chosen, scale, readings=readings, seeds=seeds, store=kept, jobs=jobs)
        finish(json, [of.to_dict() for of in planned], study_tables.plan_tables(planned, wide=wide))
        return
    _check_recorded(scale, seeds, fail_on_change=fail_on_change)
    recorded_of = {of.paper.name: recorded.recorded_rows(of.paper.name) for of in chosen} if fail_on_change else {}
    if report is not None:
        check_folder(report)
    document = _run(
        chosen, scale, readings=readings, seeds=seeds, store=kept, jobs=jobs, cluster=cluster, insecure=insecure,
        wait_minutes=wait, yes=yes, monitor=monitor,
    )  # fmt: skip
    if report is not None:
        write_report(report, chosen, document)
    if json is not None:
        output.write_json(json, document.to_dict())
    changed = recorded.changes_of(recorded_of, document.rows)
    if json != output.STANDARD_OUTPUT:
        shown = reproduction_tables.tables(document, changed, wide=wide or form != formats.TABLE)
        formats.show(form, document.to_dict(), shown, lambda: recorded.text_of_rows(document.rows))
    if document.failed or document.unmeasured or changed:
        raise typer.Exit(EXIT_NEGATIVE)


def _run(chosen: Sequence[Chosen], scale: str, *, monitor: int | None, **how: Any) -> Reproduction:
    with monitored(monitor, "durasim reproduce") as watch, render.progress_bar() as bar:
        task = bar.add_task("reproducing", total=None)
        return publication.run_reproduction(
            chosen, scale, progress=lambda done, total: bar.update(task, completed=done, total=total), watch=watch,
            **how,
        )  # fmt: skip


def _check_recorded(scale: str, seeds: int, *, fail_on_change: bool) -> None:
    """Refuses a comparison of other runs than those of the recorded results with them."""
    if fail_on_change and scale != "quick":
        raise refusal("fail_on_change", "compares with recorded results of scale quick")
    if fail_on_change and seeds > 1:
        raise refusal("fail_on_change", "compares with recorded results, whose seeds are those of the files")

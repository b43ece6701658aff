"""The command `durasim sensitivity`: what alternatives to assumptions change, on the machine of their paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from durasim import output, publication
from durasim.cli import formats, options, render
from durasim.cli.monitored import Monitor, monitored
from durasim.cli.options import check_json, finish
from durasim.cli.shell import EXIT_NEGATIVE

if TYPE_CHECKING:
    from durasim.documents.sensitivity import Sensitivity


def sensitivity(
    paper: Annotated[
        str, typer.Argument(metavar="[PAPER]", help="Only assumptions on the machine of this paper.")
    ] = "all",
    key: Annotated[
        list[str] | None,
        typer.Option("--key", metavar="NAME", help="Only this assumption, see DEVIATIONS.md; repeatable."),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print points, expected hours and memory, and simulate nothing.")
    ] = False,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    insecure: options.Insecure = False,
    wait: options.Wait = None,
    monitor: Monitor = None,
    store: options.StoreFile = None,
    no_store: options.NoStore = False,
    wide: options.Wide = False,
    form: options.Format = formats.TABLE,
    json: options.JsonFile = None,
) -> None:
    """Vary the assumptions of designs and machines one at a time, and print what moves comparisons most.

    Runs in the store are not simulated again, and an interrupted experiment continues where it ended. The exit code is
    1 if a run failed or a machine refuses an alternative. `--format csv` prints the file that is recorded.
    """
    from durasim.cli import sensitivity_tables  # noqa: PLC0415 - keeps the start-up of others short
    from durasim.papers.sensitivity_table import text_of  # noqa: PLC0415

    check_json(json)
    formats.check(form, json)
    keys, kept = tuple(key or ()), options.store_of(store, no_store)
    if plan:
        options.refuse_with_plan(form, {}, cluster=cluster, insecure=insecure, wait=wait, monitor=monitor)
        planned = publication.planned_sensitivity(paper, keys, store=kept, jobs=jobs)
        finish(json, planned.to_dict(), sensitivity_tables.plan(planned, wide=wide))
        return
    document = _run(
        paper, keys, store=kept, jobs=jobs, cluster=cluster, insecure=insecure, wait_minutes=wait, monitor=monitor
    )  # fmt: skip
    if json is not None:
        output.write_json(json, document.to_dict())
    if json != output.STANDARD_OUTPUT:
        shown = sensitivity_tables.tables(document, wide=wide or form != formats.TABLE)
        formats.show(form, document.to_dict(), shown, lambda: text_of(document))
    if document.failed:
        raise typer.Exit(EXIT_NEGATIVE)


def _run(paper: str, keys: tuple[str, ...], *, monitor: int | None, **how: Any) -> Sensitivity:
    with monitored(monitor, "durasim sensitivity") as watch, render.progress_bar() as bar:
        task = bar.add_task("varying assumptions", total=None)
        return publication.sensitivity(
            paper,
            keys,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
            watch=watch,
            **how,
        )

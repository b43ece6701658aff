"""The commands `durasim artifact` and `durasim rerun`: pack results for others, and simulate them again there."""

from __future__ import annotations

import json as json_text
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from durasim import output, publication
from durasim.cli import options, render
from durasim.cli.options import check_json, finish
from durasim.cli.shell import EXIT_NEGATIVE
from durasim.cli.tables import Column, FoldedTable
from durasim.documents.summaries import count

if TYPE_CHECKING:
    from durasim.documents.artifact import Rerun

_MEGABYTE = 1_000_000
_DIFFERENCES_SHOWN = 5
_POINTS_SHOWN = 20


def artifact(
    subject: Annotated[
        str, typer.Argument(metavar="STUDY.toml|PAPER", help="Study file, or a paper as for `durasim reproduce`.")
    ],
    out: Annotated[
        str | None,
        typer.Option("--output", metavar="FILE", help="File to write (default: NAME-artifact.tar.gz)."),
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(
            "--figure", metavar="PLACE", help="Only this figure, table or section of the paper, such as Fig5."
        ),
    ] = None,
    scale: Annotated[
        str | None, typer.Option("--scale", metavar="NAME", help="Scale of the paper's runs: quick (default) or paper.")
    ] = None,
    wheel: Annotated[
        str | None,
        typer.Option("--wheel", metavar="FILE", help="Wheel of this durasim (default: that in dist/ of the checkout)."),
    ] = None,
    wheels: Annotated[
        str | None,
        typer.Option(
            "--wheels", metavar="DIR", help="Folder with the wheels that it needs (default: pip downloads them)."
        ),
    ] = None,
    store: options.StoreFile = None,
) -> None:
    """Pack stored results with configuration, wheels, programs, and a script that simulates them again and compares.

    Nothing is simulated: `durasim sweep` or `durasim reproduce` has to have stored all points. The file has no
    private texts, and works without network.
    """
    made = publication.artifact(
        subject, output=out, figure=figure, scale=scale, wheel=wheel, wheels=wheels, store=store
    )
    output.write_stdout(
        f"wrote {made.path} ({made.size_bytes / _MEGABYTE:,.1f} MB): {count(made.points, 'simulation')}, "
        f"{count(made.programs, 'program')}, {count(made.wheels, 'wheel')}, {count(made.numbers, 'row')} of numbers\n"
        f"sha256 {made.sha256}\n"
    )


def rerun(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The unpacked artifact.")],
    jobs: options.Jobs = None,
    json: options.JsonFile = None,
) -> None:
    """Simulate all points of an unpacked artifact again, and compare each result with the packed one.

    The exit code is 1 if a result differs or a point fails. An interrupted rerun continues where it ended.
    """
    check_json(json)
    with render.progress_bar() as bar:
        task = bar.add_task("simulating again", total=None)
        result = publication.rerun(
            folder, jobs=jobs, progress=lambda done, total: bar.update(task, completed=done, total=total)
        )
    finish(json, result.to_dict(), _shown(result))
    if not result.passes:
        raise typer.Exit(EXIT_NEGATIVE)


def _shown(result: Rerun) -> RenderableType:
    """Returns PASS, or the differences of each point and FAIL."""
    if result.passes:
        return Text(f"PASS: equal results: {result.equal} of {len(result.points)}")
    table = FoldedTable(
        "differences",
        [Column("result"), Column("design"), Column("workload"), Column("value", wraps=True),
         Column("expected", right=True), Column("found", right=True)],
        keys=1,
    )  # fmt: skip
    bad = [point for point in result.points if point.state != "equal"]
    for point in bad[:_POINTS_SHOWN]:
        named = (point.result, point.design, point.workload)
        if point.error is not None:
            table.add_row(*named, f"failed: {point.error}", "", "")
        for deviation in point.differences[:_DIFFERENCES_SHOWN]:
            table.add_row(*named, deviation.place, _value(deviation.expected), _value(deviation.found))
        if (more := len(point.differences) - _DIFFERENCES_SHOWN) > 0:
            table.add_row(*named, f"and {count(more, 'value')} more", "", "")
    if len(bad) > _POINTS_SHOWN:
        table.caption = f"the first {_POINTS_SHOWN} of {len(bad)} points; --json FILE has all"
    counts = f"{result.equal} of {len(result.points)}; different: {result.different}; failed: {result.failed}"
    return Group(table, Text(f"FAIL: equal results: {counts}"))


def _value(value: Any) -> str:
    return json_text.dumps(value, ensure_ascii=False)

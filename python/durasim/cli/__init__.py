"""The command `durasim`: thin wrappers around the Python API. `--json` writes the documents of the API."""

from __future__ import annotations

from typing import Annotated

import typer

from durasim import output
from durasim._core import __build__, __version__
from durasim.cli.shell import Program

app = typer.Typer(
    name="durasim",
    cls=Program,
    help="Simulate RISC-V machines with persistent memory, crash them at any point, recover and check.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        output.write_stdout(f"durasim {__version__} (sources {__build__})\n")
        raise typer.Exit


@app.callback()
def _program(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print version and source hash.")
    ] = False,
) -> None:
    """Simulate RISC-V machines with persistent memory, crash them at any point, recover and check."""

"""The commands for parts of the user: `cc` compiles programs, `new` writes the start of a workload or a design."""

from __future__ import annotations

import os
import shlex
from typing import Annotated

import typer

from durasim import output
from durasim.cli import options
from durasim.errors import refusal


def cc(
    sources: Annotated[
        list[str] | None, typer.Argument(metavar="SOURCE...", help="C and C++ sources: .c, .cpp, .cc, .cxx.")
    ] = None,
    program: Annotated[
        str | None, typer.Option("-o", metavar="PROG", help="The executable to write; required.")
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend",
            metavar="NAME",
            help="Transaction runtime of sources that include durasim/tx.h: the backend of the design that runs them, "
            "see `durasim designs`.",
        ),
    ] = None,
    macros: options.Macros = None,
    include_folders: options.IncludeFolders = None,
) -> None:
    """Compile C or C++ to a program for --elf, with durasim's headers on the include path."""
    from durasim.programs import own_programs  # noqa: PLC0415 - keeps the start-up of other commands short

    if not sources:
        raise refusal("sources", "give at least one C or C++ source")
    if program is None:
        raise refusal("o", "is required: the executable to write")
    flags = own_programs.compiler_flags(macros or (), include_folders or ())
    output.check_writable(program)
    own_programs.compile_sources(sources, program, flags, backend)


new = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Write the start of a workload or a design of your own, outside of durasim's sources.",
)

_Name = Annotated[str, typer.Argument(metavar="NAME", help="Its name: lower-case words joined by -.")]
_Directory = Annotated[
    str, typer.Option("--directory", metavar="DIR", help="Folder to write to; made if it does not exist.")
]


@new.callback()
def _new() -> None:
    """Write the start of a workload or a design of your own, outside of durasim's sources."""


@new.command("workload")
def new_workload(name: _Name, directory: _Directory = ".") -> None:
    """Write NAME.cpp and NAME.toml: a small, complete workload with comments."""
    from durasim.templates import new_parts  # noqa: PLC0415 - keeps the start-up of other commands short

    source, table = new_parts.new_workload(name, directory)
    output.write_stdout(f"wrote {source} and {table}\n")


@new.command("design")
def new_design(
    name: _Name,
    directory: _Directory = ".",
    sources: Annotated[
        str | None,
        typer.Option(
            "--sources",
            metavar="DIR",
            help="Checkout of durasim's sources (default: the one that durasim was installed from).",
        ),
    ] = None,
) -> None:
    """Write the folder NAME: a Rust crate with an undo log, and a command NAME with it and all designs of durasim."""
    from durasim.templates import new_parts  # noqa: PLC0415 - keeps the start-up of other commands short

    folder = new_parts.new_design(name, directory, sources)
    run = shlex.quote(os.path.join(".", name))  # noqa: PTH118 - with the leading dot
    output.write_stdout(
        f"wrote {folder}: the design is src/design.rs\n"
        f"  cd {shlex.quote(str(folder))}\n"
        f"  cargo build --release\n"
        f"  {run} crash --design {name} --workload btree --machine tiny\n"
        f"  {run} mutation --design {name}\n"
    )

"""How the command line ends: one sentence on standard error and the exit code, never a traceback."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from durasim.errors import DurasimError
from durasim.toolchain import ToolchainError

EXIT_NEGATIVE = 1
EXIT_USAGE = 2
EXIT_HOST_IO = 4
EXIT_INTERRUPTED = 130


class Program(TyperGroup):
    """The command group `durasim`, which turns every error into a sentence and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Runs the command line; as a program it ends the process."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode, windows_expand_args, **extra)
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
            sys.stdout.flush()
        except typer.TyperException as error:
            code = complain(error.format_message(), error.exit_code)
        except DurasimError as error:
            code = complain(str(error), error.exit_code)
        except ToolchainError as error:
            code = complain(error.sentence, EXIT_HOST_IO if isinstance(error.__cause__, OSError) else EXIT_USAGE)
            # What the compiler said, for whoever wrote the source.
            print(error.output, end="", file=sys.stderr)
        except (KeyboardInterrupt, typer.Abort):
            code = complain("interrupted", EXIT_INTERRUPTED)
        except OSError as error:
            code = complain(f"standard output: {error.strerror or error}", EXIT_HOST_IO)
        sys.exit(code if isinstance(code, int) else 0)


def complain(sentence: str, exit_code: int) -> int:
    """Prints the sentence on one line of standard error and gives the exit code back."""
    line = " ".join(sentence.split())
    if line:
        print(f"durasim: {line}", file=sys.stderr)
    return exit_code

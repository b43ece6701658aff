"""Exit of the command line: one sentence on standard error and an exit code, never a traceback."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any, ClassVar

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from durasim.documents.escaping import printable
from durasim.errors import DurasimError, ToolchainError, refusal
from durasim.output import NoReaderError

EXIT_NEGATIVE = 1
EXIT_USAGE = 2
EXIT_HOST_IO = 4
_SIGNAL_EXIT = 128
"""Base of the exit code after a signal, to which the signal number is added, as in shells."""
_GRACE_S = 0.8
"""Time limit for an orderly end after a signal; then the process exits immediately."""


class _InterruptedError(Exception):
    """Ctrl-C or SIGTERM, caused by a KeyboardInterrupt, which Typer would turn into an exit code without a message."""


class Program(TyperGroup):
    """The command group `durasim`; converts every error into a sentence and an exit code."""

    # Each command is a function of a module of durasim.cli, or a group of commands, imported when the command is used.
    _MODULES: ClassVar = {
        "run": "run_commands",
        "compare": "run_commands",
        "explain": "explain_command",
        "sweep": "sweep_command",
        "crash": "crash_commands",
        "campaign": "crash_commands",
        "mutation": "crash_commands",
        "explore": "explore_command",
        "trace": "trace_command",
        "diff": "run_commands",
        "reproduce": "reproduce_command",
        "sensitivity": "sensitivity_command",
        "results": "results_commands",
        "artifact": "artifact_commands",
        "rerun": "artifact_commands",
        "new": "own_commands",
        "cc": "own_commands",
        "designs": "list_commands",
        "workloads": "list_commands",
        "machines": "list_commands",
        "demo": "demo_command",
    }

    def list_commands(self, ctx: typer.Context) -> list[str]:  # noqa: ARG002 - overrides
        """Returns the names of all commands, in the order of the help text."""
        return list(self._MODULES)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:
        """Returns a command, or None if there is none with this name."""
        if cmd_name in self._MODULES and cmd_name not in self.commands:
            command = getattr(importlib.import_module(f"durasim.cli.{self._MODULES[cmd_name]}"), cmd_name)
            if not isinstance(command, typer.Typer):
                function, command = command, typer.Typer(add_completion=False, rich_markup_mode=None)
                command.command(cmd_name, cls=CrashCommand if cmd_name == "crash" else TyperCommand)(function)
            self.add_command(typer.main.get_command(command), cmd_name)
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: typer.Context) -> Any:
        """Runs a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise _InterruptedError from interrupt

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Runs the command line; in standalone mode it exits the process."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode, windows_expand_args, **extra)
        signals = _Signals()
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
            sys.stdout.flush()
        except typer.TyperException as error:
            code = complain(error.format_message(), error.exit_code)
        except NoReaderError:
            code = _SIGNAL_EXIT + signal.SIGPIPE
        except DurasimError as error:
            code = complain(str(error), error.exit_code)
        except ToolchainError as error:
            code = complain(error.sentence, EXIT_HOST_IO if isinstance(error.__cause__, OSError) else EXIT_USAGE)
            # The output of the compiler, for the author of the source.
            print(error.output, end="", file=sys.stderr)
        except (_InterruptedError, KeyboardInterrupt, typer.Abort) as interrupt:
            signals.has_complained = True
            code = complain(
                "; ".join(["interrupted", *(_notes(interrupt) or ["no result was saved"])]), signals.exit_code
            )
        except OSError as error:
            code = complain(f"standard output: {error.strerror or error}", EXIT_HOST_IO)
        signals.restore()
        sys.exit(code if isinstance(code, int) else 0)


class _Signals:
    """Ends the program in order after Ctrl-C or SIGTERM, and within a second if a component does not react."""

    def __init__(self) -> None:
        self.has_complained = False
        self._received: signal.Signals | None = None
        # A signal that was ignored at start, as in the background of a script, stays ignored.
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        self._before = {number: handler for number, handler in handlers.items() if handler != signal.SIG_IGN}
        for number in self._before:
            signal.signal(number, self._receive)

    @property
    def exit_code(self) -> int:
        """Exit code after the received signal."""
        return _SIGNAL_EXIT + (self._received or signal.SIGINT)

    def restore(self) -> None:
        """Restores the previous handlers, unless the process ends because of a signal."""
        if self._received is None:
            for number, handler in self._before.items():
                signal.signal(number, handler)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        self._received = signal.Signals(number)
        for further in self._before:
            signal.signal(further, signal.SIG_IGN)
        # Files and verdicts are written atomically, so an exit at any moment is safe.
        deadline = threading.Timer(_GRACE_S, self._end)
        deadline.daemon = True
        deadline.start()
        raise KeyboardInterrupt

    def _end(self) -> None:
        if not self.has_complained:
            complain("interrupted; what was saved before is kept", self.exit_code)
        os._exit(self.exit_code)


def _notes(error: BaseException) -> list[str]:
    """Returns the notes attached to the interrupt: what an interrupted command has saved."""
    notes: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        notes += getattr(cause, "__notes__", [])
        cause = cause.__cause__ or cause.__context__
    return notes


class CrashCommand(TyperCommand):
    """The command `crash`; points to the new commands for options that were moved."""

    _MOVED: ClassVar = {"--campaign": "durasim campaign FILE.toml", "--planted": "durasim mutation"}

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:
        """Reads the arguments."""
        for word in args[: args.index("--")] if "--" in args else args:
            option = word.partition("=")[0]
            if option in self._MOVED:
                raise refusal(option.lstrip("-"), f"was moved to its own command: `{self._MOVED[option]}`")
        return super().parse_args(ctx, args)


def complain(sentence: str, exit_code: int) -> int:
    """Prints the sentence on one line of standard error and returns the exit code."""
    line = printable(" ".join(sentence.split()))
    if line:
        print(f"durasim: {line}", file=sys.stderr)
    return exit_code

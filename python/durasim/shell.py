"""How the command line ends: one sentence on standard error and the exit code, never a traceback."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from durasim.errors import DurasimError, refusal
from durasim.output import NobodyReadsError
from durasim.toolchain import ToolchainError

EXIT_NEGATIVE = 1
EXIT_USAGE = 2
EXIT_HOST_IO = 4
_SIGNAL_EXIT = 128
"""A command that a signal has ended exits with this and the number of the signal, as shells have it."""
_GRACE_S = 0.8
"""So long a command may take to end by itself after a signal; then the process ends whatever it is doing."""


class _InterruptedError(Exception):
    """Ctrl-C or SIGTERM, with the KeyboardInterrupt as its cause: of that, Typer would make a silent exit code."""


class Program(TyperGroup):
    """The command group `durasim`, which turns every error into a sentence and an exit code."""

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
        """Runs the command line; as a program it ends the process."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode, windows_expand_args, **extra)
        signals = _Signals()
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
            sys.stdout.flush()
        except typer.TyperException as error:
            code = complain(error.format_message(), error.exit_code)
        except NobodyReadsError:
            code = _SIGNAL_EXIT + signal.SIGPIPE
        except DurasimError as error:
            code = complain(str(error), error.exit_code)
        except ToolchainError as error:
            code = complain(error.sentence, EXIT_HOST_IO if isinstance(error.__cause__, OSError) else EXIT_USAGE)
            # What the compiler said, for whoever wrote the source.
            print(error.output, end="", file=sys.stderr)
        except (_InterruptedError, KeyboardInterrupt, typer.Abort) as interrupt:
            signals.has_complained = True
            code = complain("; ".join(["interrupted", *(_notes(interrupt) or ["nothing is kept"])]), signals.exit_code)
        except OSError as error:
            code = complain(f"standard output: {error.strerror or error}", EXIT_HOST_IO)
        signals.restore()
        sys.exit(code if isinstance(code, int) else 0)


class _Signals:
    """Makes Ctrl-C and SIGTERM end the program in order, and within a second even if something does not listen."""

    def __init__(self) -> None:
        self.has_complained = False
        self._received: signal.Signals | None = None
        # A program that was started with a signal ignored, as in the background of a script, goes on ignoring it.
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        self._before = {number: handler for number, handler in handlers.items() if handler != signal.SIG_IGN}
        for number in self._before:
            signal.signal(number, self._receive)

    @property
    def exit_code(self) -> int:
        """The exit code after the signal that was received."""
        return _SIGNAL_EXIT + (self._received or signal.SIGINT)

    def restore(self) -> None:
        """Puts back the handlers that were there before, unless the process ends because of a signal."""
        if self._received is None:
            for number, handler in self._before.items():
                signal.signal(number, handler)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        self._received = signal.Signals(number)
        for further in self._before:
            signal.signal(further, signal.SIG_IGN)
        # Files appear whole or not at all, and verdicts one by one: an end at any moment harms nothing.
        deadline = threading.Timer(_GRACE_S, self._end)
        deadline.daemon = True
        deadline.start()
        raise KeyboardInterrupt

    def _end(self) -> None:
        if not self.has_complained:
            complain("interrupted", self.exit_code)
        os._exit(self.exit_code)


def _notes(error: BaseException) -> list[str]:
    """Gives what was said of an interrupted command, by whoever knew what is kept."""
    notes: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        notes += getattr(cause, "__notes__", [])
        cause = cause.__cause__ or cause.__context__
    return notes


class CrashCommand(TyperCommand):
    """The command `crash`, which says where what it once did besides has gone."""

    _MOVED: ClassVar = {"--campaign": "durasim campaign FILE.toml", "--planted": "durasim mutation"}

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:
        """Reads the arguments."""
        for word in args[: args.index("--")] if "--" in args else args:
            option = word.partition("=")[0]
            if option in self._MOVED:
                raise refusal(option.lstrip("-"), f"has a command of its own: `{self._MOVED[option]}`")
        return super().parse_args(ctx, args)


def complain(sentence: str, exit_code: int) -> int:
    """Prints the sentence on one line of standard error and gives the exit code back."""
    line = " ".join(sentence.split())
    if line:
        print(f"durasim: {line}", file=sys.stderr)
    return exit_code

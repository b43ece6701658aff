"""The option `--monitor` of long commands: a local page with their progress."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from durasim.watch import UNWATCHED, Watch

Monitor = Annotated[
    int | None,
    typer.Option(
        "--monitor",
        min=0,
        max=65535,
        metavar="PORT",
        help="Show the progress on a local page at this port; 0 is a free one. Its address goes to standard error.",
    ),
]


@contextlib.contextmanager
def monitored(port: int | None, command: str) -> Iterator[Watch]:
    """Shows a command on a local page while the context lasts, if a port is given.

    Raises:
        HostIoError: Another program uses the port.
    """
    if port is None:
        yield UNWATCHED
        return
    from durasim.local_server.handlers import listen  # noqa: PLC0415 - commands without a page need no server
    from durasim.monitor.server import serving  # noqa: PLC0415

    with listen(port) as opened, serving(command, opened) as (watched, address):
        print(f"durasim: the monitor is at {address}", file=sys.stderr, flush=True)
        yield watched

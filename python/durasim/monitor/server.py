"""The server of `--monitor`: it answers in a thread of its own, beside the work of the command.

It reads the state and changes nothing, so results do not depend on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tornado.iostream

from durasim.local_server import handlers
from durasim.local_server.access import Access
from durasim.monitor.watched import Sent, Watched

PAGE = Path(__file__).parent / "page"
"""The page as a browser reads it: there is nothing to build."""
_FILES = ("index.html", "monitor.js", "monitor.css", "icon.svg")
_PERIOD_S = 1.0
"""Time between two states that a browser gets."""
_LAST_STATE_S = 0.5
"""Longest wait at the end for browsers to take the last state; a command has less than a second after Ctrl-C."""


@contextlib.contextmanager
def serving(command: str, opened: socket.socket) -> Iterator[tuple[Watched, str]]:
    """Serves the page until the context ends, and returns the state to update and the address to print.

    Args:
        command: The name of the command.
        opened: The listening socket, see `handlers.listen`.
    """
    access, watched = Access(opened.getsockname()[1]), Watched(command)
    server = _Server(access, watched, opened)
    server.start()
    how = "failed"
    try:
        yield watched, access.address
        how = "finished"
    except KeyboardInterrupt:
        how = "interrupted"
        raise
    finally:
        watched.end(how)
        server.end()


class _Server:
    """The thread of a server, with the event loop in it."""

    def __init__(self, access: Access, watched: Watched, opened: socket.socket) -> None:
        self._opened, self._loop, self._ended = opened, asyncio.new_event_loop(), asyncio.Event()
        self._streams: set[asyncio.Task[Any]] = set()
        shared = {"watched": watched, "ended": self._ended, "streams": self._streams}
        self._application = handlers.application(access, PAGE, _FILES, ((r"/state", _State),), **shared)
        # A thread that does not end does not keep the process.
        self._thread = threading.Thread(target=self._serve, name="monitor", daemon=True)

    def start(self) -> None:
        """Begins to answer."""
        self._thread.start()

    def end(self) -> None:
        """Ends the thread as soon as the browsers have the last state, or do not take it."""
        with contextlib.suppress(RuntimeError):
            # The loop is closed if the thread has ended before.
            self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(2 * _LAST_STATE_S)

    def _serve(self) -> None:
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._answer())

    async def _answer(self) -> None:
        server = handlers.answering(self._application, self._opened)
        await self._ended.wait()
        server.stop()
        await self._wait_for_streams()
        await server.close_all_connections()
        await self._wait_for_streams()

    async def _wait_for_streams(self) -> None:
        if self._streams:
            await asyncio.wait(self._streams, timeout=_LAST_STATE_S)


class _State(handlers.Handler):
    """The state as server-sent events: at once, each second, and a last one when the command ends."""

    async def get(self) -> None:
        self.set_header("Content-Type", "text/event-stream")
        streams: set[asyncio.Task[Any] | None] = self.shared["streams"]
        task = asyncio.current_task()
        streams.add(task)
        try:
            # A browser that is closed ends its own stream, and nothing else.
            with contextlib.suppress(tornado.iostream.StreamClosedError):
                await self._send()
        finally:
            streams.discard(task)

    async def _send(self) -> None:
        ended: asyncio.Event = self.shared["ended"]
        sent, is_last = Sent(), False
        while not is_last:
            is_last = ended.is_set()
            document, sent = self.shared["watched"].document(sent)
            self.write(f"data: {json.dumps(document, ensure_ascii=True, separators=(',', ':'))}\n\n")
            await self.flush()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), _PERIOD_S)
        await self.finish()

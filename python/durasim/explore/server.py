"""The server of the page of `durasim explore`.

Simulations run on one other thread, one after the other, so the server answers meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import re
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import tornado.web

from durasim.errors import DurasimError, refusal
from durasim.explore.explored_run import LINES_MAX, ExploredRun
from durasim.local_server import handlers
from durasim.local_server.access import Access

PAGE = Path(__file__).parent / "page"
"""The built page: `make page` writes it, and the wheel has it."""
_FILES = ("index.html", "page.js", "page.css", "icon.svg")
_LINE = re.compile(r"0x[0-9a-f]{1,16}")
_NUMBER = re.compile(r"[0-9]{1,9}")
_ID_LENGTH_MAX = 200


def check_page(folder: Path = PAGE) -> None:
    """Checks that the page was built.

    Raises:
        ConfigError: It was not.
    """
    if not (folder / "page.js").is_file():
        raise refusal("explore", "the page is not built: run `make page` in the checkout, or install the wheel")


def serve(run: ExploredRun, opened: socket.socket, ready: Callable[[Access], None], folder: Path = PAGE) -> None:
    """Serves the page of a run until the program is interrupted.

    Args:
        run: The run.
        opened: The listening socket, see `handlers.listen`.
        ready: Called with the access rules as soon as requests are answered.
        folder: The built page.
    """
    access = Access(opened.getsockname()[1])
    simulations = ThreadPoolExecutor(1)

    async def answer_requests() -> None:
        handlers.answering(application(run, access, simulations, folder), opened)
        ready(access)
        await asyncio.Event().wait()

    try:
        # Ctrl-C is the usual end of a server.
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(answer_requests())
    finally:
        simulations.shutdown(wait=False, cancel_futures=True)


def application(
    run: ExploredRun, access: Access, simulations: ThreadPoolExecutor, folder: Path = PAGE
) -> tornado.web.Application:
    """Returns the requests that the server answers."""
    data = ((r"/run", _Run), (r"/moment", _Moment), (r"/source", _Source))
    return handlers.application(access, folder, _FILES, data, run=run, simulations=simulations)


class _Run(handlers.Handler):
    def get(self) -> None:
        self.answer(self.shared["run"].overview())


class _Moment(handlers.Handler):
    async def get(self) -> None:
        failure, lines = self.get_query_argument("id", ""), self.get_query_argument("lines", "")
        addresses = lines.split(",") if lines else []
        if not failure or len(failure) > _ID_LENGTH_MAX:
            self.refuse(handlers.REFUSED, "id: give the id of a power failure, such as e12")
        elif len(addresses) > LINES_MAX or not all(_LINE.fullmatch(address) for address in addresses):
            self.refuse(handlers.REFUSED, f"lines: give up to {LINES_MAX} addresses such as 0x10000001080")
        else:
            await self._simulate(failure, [int(address, 16) for address in addresses])

    async def _simulate(self, failure: str, lines: list[int]) -> None:
        def simulated() -> Any:
            # The browser has asked for another moment since, or was closed.
            return None if self.closed else self.shared["run"].moment(failure, lines)

        try:
            document = await asyncio.get_running_loop().run_in_executor(self.shared["simulations"], simulated)
        except DurasimError as error:
            self.refuse(handlers.REFUSED, str(error))
            return
        if document is None or self.closed:
            print(f"durasim: the browser closed its request for {failure}", file=sys.stderr)
            self.set_status(handlers.CLOSED, "Closed")
            self.finish()
        else:
            self.answer(document)


class _Source(handlers.Handler):
    def get(self) -> None:
        number = self.get_query_argument("file", "")
        found = self.shared["run"].source(int(number)) if _NUMBER.fullmatch(number) else None
        if found is None:
            self.refuse(handlers.NOT_FOUND, "file: there is no source file with this number")
        else:
            self.answer(dataclasses.asdict(found))
